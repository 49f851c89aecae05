"use strict";

// Arrays and pictures, for any page: `unpack` what Python packed, colour maps, values to pixels.
const pictures = (() => {
  const TYPES = {
    uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array,
    uint32: Uint32Array, int32: Int32Array, float32: Float32Array, float64: Float64Array,
  };

  // {shape, dtype, data} -> {shape, values}, a typed array of the same numbers.
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.data), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return { shape: packed.shape, values: new TYPES[packed.dtype](await new Response(stream).arrayBuffer()) };
  }

  // A value with everything packed inside it unpacked; what else belongs to a packed array stays with it.
  async function unpackAll(value) {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) return Promise.all(value.map(unpackAll));
    if ("dtype" in value) return { ...value, ...(await unpack(value)) };
    const entries = Object.entries(value).map(async ([key, inner]) => [key, await unpackAll(inner)]);
    return Object.fromEntries(await Promise.all(entries));
  }

  // Colours at equal steps along matplotlib's maps of the same names; between them, straight lines.
  const STOPS = {
    grey: ["000000", "ffffff"],
    viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
    magma: ["000004", "180f3d", "440f76", "721f81", "9e2f7f", "cd4071", "f1605d", "fd9668", "feca8d", "fcfdbf"],
    cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
    prgn: ["40004b", "762a83", "9970ab", "c2a5cf", "e7d4e8", "f7f7f7", "d9f0d3", "a6dba0", "5aae61", "1b7837", "00441b"],
  };

  // An opaque colour as a 32-bit pixel (little-endian: alpha, blue, green, red), a share of the way between two.
  function mixed(from, to, share) {
    const [red, green, blue] = from.map((start, i) => Math.round(start + (to[i] - start) * share));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  }

  // Grey from 0 to 1; towards blue below and towards orange above, full after half as much again.
  const [BLACK, WHITE, BLUE, ORANGE] = [[0, 0, 0], [255, 255, 255], [66, 135, 245], [217, 72, 1]];
  function grey(value) {
    if (value < 0) return mixed(BLACK, BLUE, Math.min(1, -2 * value));
    if (value > 1) return mixed(WHITE, ORANGE, Math.min(1, 2 * (value - 1)));
    return mixed(BLACK, WHITE, value);
  }

  // 256 colours of a map as pixels.
  function table(name) {
    const stops = STOPS[name].map((text) => [0, 2, 4].map((at) => parseInt(text.slice(at, at + 2), 16)));
    return Uint32Array.from({ length: 256 }, (_, level) => {
      const place = (level / 255) * (stops.length - 1);
      const first = Math.min(Math.floor(place), stops.length - 2);
      return mixed(stops[first], stops[first + 1], place - first);
    });
  }
  const tables = Object.fromEntries(Object.keys(STOPS).map((name) => [name, table(name)]));

  // A small canvas, one off the page unless told, whose 32-bit `pixels` are set and then shown by `done()`.
  function buffer(width, height, canvas = document.createElement("canvas")) {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const image = context.createImageData(width, height);
    return { canvas, pixels: new Uint32Array(image.data.buffer), done: () => context.putImageData(image, 0, 0) };
  }

  // A CSS gradient of a map, for a legend.
  const gradient = (name) => `linear-gradient(to right, ${STOPS[name].map((text) => "#" + text).join(", ")})`;

  // Put a buffer on a visible canvas, enlarged in whole blocks, sharp on any screen.
  function show(canvas, small) {
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, canvas.width, canvas.height);
  }

  // A grid of any number of factors, the first slowest: rows of its points, and the plane of two of its axes.
  function grid(sizes) {
    const strides = sizes.map((_, axis) => sizes.slice(axis + 1).reduce((product, size) => product * size, 1));
    const row = (index) => index.reduce((sum, place, axis) => sum + place * strides[axis], 0);
    const index = (point) => sizes.map((size, axis) => Math.floor(point / strides[axis]) % size);
    // The row of cell (x, y) of the plane of `axes` through the point at `place`.
    const cell = ([first, second], place) => {
      const rest = row(place) - place[first] * strides[first] - place[second] * strides[second];
      return (x, y) => rest + x * strides[first] + y * strides[second];
    };
    const pairs = sizes.flatMap((_, first) => sizes.map((_, second) => [first, second]).filter(([a, b]) => a < b));
    return { row, index, cell, pairs };
  }

  // The line around the cells (x, y) that are inside, y upwards, as an SVG path with one unit per cell.
  function outline(columns, rows, inside) {
    const is = (x, y) => x >= 0 && y >= 0 && x < columns && y < rows && inside(x, y);
    const lines = [];
    for (let x = 0; x <= columns; x += 1) {
      for (let y = 0; y <= rows; y += 1) {
        if (is(x, y) !== is(x, y - 1)) lines.push(`M${x} ${rows - y}h1`);
        if (is(x, y) !== is(x - 1, y)) lines.push(`M${x} ${rows - y}v-1`);
      }
    }
    return lines.join("");
  }

  // A choice of two axes, and a slider for each of the others: `changed(axes, place)` is called with every choice.
  function planeControls(box, factors, chosen, changed) {
    const { pairs } = grid(factors.map(({ values }) => values.length));
    const select = document.createElement("select");
    pairs.forEach(([a, b], number) => select.append(new Option(`${factors[a].name} and ${factors[b].name}`, number)));
    const label = document.createElement("label");
    label.append("Plane of ", select);
    const sliders = factors.map(({ name, values }, axis) => {
      const input = Object.assign(document.createElement("input"), { type: "range", min: 0, max: values.length - 1, step: 1 });
      const output = document.createElement("output");
      const line = Object.assign(document.createElement("label"), { className: "slider" });
      const told = () => { output.textContent = input.ariaValueText = String(values[input.value]); };
      input.value = chosen.place[axis];
      told();
      input.addEventListener("input", () => {
        told();
        chosen.place[axis] = Number(input.value);
        changed();
      });
      line.append(`${name} `, output, input);
      return { line, input, told };
    });
    const show = () => {
      select.value = pairs.findIndex(([a, b]) => a === chosen.axes[0] && b === chosen.axes[1]);
      sliders.forEach(({ line, input, told }, axis) => {
        line.hidden = chosen.axes.includes(axis);
        input.value = chosen.place[axis];
        told();
      });
    };
    select.addEventListener("change", () => {
      chosen.axes = pairs[Number(select.value)];
      show();
      changed();
    });
    box.replaceChildren(label, ...sliders.map(({ line }) => line));
    box.hidden = false;
    show();
    return show;
  }

  return { unpack, unpackAll, grey, tables, buffer, gradient, show, grid, outline, planeControls };
})();
