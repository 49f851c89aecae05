"use strict";

// The explorer: a point on the latent plane, and what belongs to it, at once. Data: composcope.report.explorer.
(() => {
  const root = document.getElementById("explorer");
  const source = document.getElementById("explorer-data");
  if (!root || !source) return;
  const data = JSON.parse(source.textContent);
  if (!data.runs.length) return;

  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const control = (name) => root.querySelector(`[data-control="${name}"]`);
  const spots = Object.fromEntries([...root.querySelectorAll("[data-say]")].map((spot) => [spot.dataset.say, spot]));
  const say = (name, text) => { if (spots[name].textContent !== text) spots[name].textContent = text; };
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  const short = (value) => (typeof value === "string" ? value : String(Number(value.toFixed(2))));
  const exponent = (value) => (value === 0 ? "0" : value.toExponential(1));
  const number = (value) => (value === 0 || (Math.abs(value) >= 0.01 && Math.abs(value) < 1000)
    ? String(Number(value.toPrecision(2))) : value.toExponential(1).replace("+", ""));

  const DECADES = Math.log10(30); // of the volume map, either side of the seen mean
  const NOTHING = 255; // the level that stands for no value
  const EMPTY = 0;     // a pixel that is not drawn

  // Errors of all runs of a task share one logarithmic scale, on which a blank image lies too.
  const scales = data.tasks.map((_, task) => {
    const ends = data.runs.filter((run) => run.task === task).map((run) => run.errors);
    const most = Math.max(...ends.map(([, high]) => high), 1e-12);
    return [Math.max(Math.min(...ends.map(([low]) => low)), 1e-5 * most), most];
  });
  function height(error) {
    const [low, high] = scales[now.run.task];
    return clamp(Math.log(error / low) / Math.log(high / low) || 0, 0, 1);
  }

  // What is shown: the opened run and its task, the point as grid indices, the two axes of the plane, layer and unit.
  const now = { run: null, task: null, place: [0, 0], axes: [0, 1], layer: null, unit: 0 };
  const at = () => now.task.grid.row(now.place);
  const plane = () => now.axes.map((axis) => now.task.sizes[axis]);
  const cell = () => now.task.grid.cell(now.axes, now.place);
  const spot = () => now.axes.map((axis) => now.place[axis]);

  // The four images. Rows of pixels grow upwards.
  const images = Object.fromEntries([...root.querySelectorAll("[data-image]")].map((figure) => [figure.dataset.image, {
    canvas: figure.querySelector("canvas"),
    sheet: null,
    message: figure.querySelector(".frame p"),
    title: figure.querySelector("strong"),
    about: figure.querySelector("figcaption span"),
  }]));

  // Draw an image whose pixel i has the value `value(i)`; with no such function, nothing but a message.
  function paint(name, value, message = "") {
    const { sheet, message: line } = images[name];
    line.hidden = value !== null;
    line.textContent = value === null ? message : "";
    const [rows, columns] = now.task.image;
    const [low, high] = now.task.scale;
    for (let row = 0, place = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, place++) {
        const pixel = (rows - 1 - row) * columns + column;
        sheet.pixels[pixel] = value === null ? EMPTY : pictures.grey((value(place) - low) / (high - low));
      }
    }
    sheet.done();
  }

  // Values of one image in a stack of bytes.
  function values(stack, row) {
    const start = row * now.task.image[0] * now.task.image[1];
    const step = (stack.high - stack.low) / 254;
    return (i) => stack.low + step * Math.min(stack.values[start + i], 254);
  }

  function prediction(point) {
    const { base, sign, parts } = now.run.prediction;
    const rows = parts.map((one) => one.rows.values[point]);
    if (rows.some((row) => row < 0)) return null;
    const each = parts.map((one, i) => values(one.images, rows[i]));
    return (i) => base + sign * each.reduce((sum, value) => sum + value(i), 0);
  }

  // The maps over the plane: error, volume, tuning. The point is marked in all, and can be moved in all.
  const maps = Object.fromEntries([...root.querySelectorAll("[data-map]")].map((box) => [box.dataset.map, {
    box,
    canvas: box.querySelector("canvas"),
    svg: box.querySelector("svg"),
    cross: box.querySelector(".cross"),
    point: box.querySelector(".point"),
  }]));

  // Colour cell (x, y) by the table's entry `level(point)`, 0..255; cells without a number stay empty.
  function colourMap(map, table, level) {
    const [columns, rows] = plane();
    const row = cell();
    const { pixels, done } = pictures.buffer(columns, rows, map.canvas);
    for (let x = 0; x < columns; x++) {
      for (let y = 0; y < rows; y++) {
        const found = level(row(x, y));
        pixels[(rows - 1 - y) * columns + x] = Number.isFinite(found) ? table[Math.round(clamp(found, 0, 255))] : EMPTY;
      }
    }
    done();
  }

  function outlineMap(map) {
    const [columns, rows] = plane();
    const row = cell();
    map.box.style.aspectRatio = `1 / ${clamp(rows / columns, 0.12, 2)}`;
    map.svg.setAttribute("viewBox", `0 0 ${columns} ${rows}`);
    const border = pictures.outline(columns, rows, (x, y) => now.run.heldout.values[row(x, y)] === 1);
    for (const line of map.svg.querySelectorAll(".casing, .hole")) line.setAttribute("d", border);
    const dots = [];
    for (let x = 0; now.run.sparse && x < columns; x++) {
      for (let y = 0; y < rows; y++) {
        if (now.run.trained.values[row(x, y)]) dots.push(`M${x + 0.5} ${rows - y - 0.5}h0`);
      }
    }
    map.svg.querySelector(".trained").setAttribute("d", dots.join(""));
  }

  function markPoint(map) {
    const [columns, rows] = plane();
    const [x, y] = [spot()[0] + 0.5, rows - spot()[1] - 0.5];
    map.cross.setAttribute("d", `M${x} 0V${rows}M0 ${y}H${columns}`);
    map.point.style.left = `${(100 * x) / columns}%`;
    map.point.style.top = `${(100 * y) / rows}%`;
  }

  // Everything that follows the point. Runs within one frame, however many moves came before it.
  let waiting = 0;
  const refresh = () => { waiting ||= requestAnimationFrame(draw); };

  function draw() {
    waiting = 0;
    const { run, task } = now;
    const point = at();
    paint("truth", values(task.truth, point));
    paint("outputs", values(run.outputs, point));
    const near = run.nearest.values[point];
    paint("nearest", near < 0 ? null : values(task.truth, near), "No whole image was in the training set.");
    const lacking = run.prediction ? "Seen: there is no gap to bridge." : "There is none for this run.";
    paint("prediction", run.prediction && prediction(point), lacking);
    Object.values(maps).forEach(markPoint);
    write(point, near);
  }

  const named = (point) => now.task.factors
    .map(({ name, values: all }, axis) => `${name} ${short(all[now.task.grid.index(point)[axis]])}`)
    .join(", ");

  function write(point, near) {
    const { run, task } = now;
    const held = run.heldout.values[point] === 1;
    const trained = run.trained.values[point] === 1;
    const state = held ? "held out" : trained ? "seen" : "not in the training set";
    const error = run.error.values[point];
    const off = run.position_error ? run.position_error.values[point] : NaN;
    const place = Number.isNaN(off) ? "nowhere" : off < 0.1 ? "at the true position" : `${off.toFixed(1)} pixels off`;
    const match = run.match ? run.match.values[point] : NaN;
    say("where", named(point));
    say("state", state);
    spots.state.classList.toggle("held", held);
    say("error", exponent(error));
    say("blank", exponent(task.blank.values[point]));
    say("position", place);
    say("match", Number.isNaN(match) ? "–" : `r = ${match.toFixed(2)}`);
    root.querySelector('[data-tick="here"]').style.left = `${100 * height(error)}%`;
    root.querySelector('[data-tick="blank"]').style.left = `${100 * height(task.blank.values[point])}%`;
    images.nearest.about.textContent = near < 0 ? "" : near === point ? "this very image" : `at ${named(near)}`;
    const spoken = `${named(point)}: ${state}. Error ${exponent(error)}, of a blank image ${exponent(task.blank.values[point])}.`
      + (run.position_error ? ` Drawn ${place}.` : "");
    root.querySelectorAll("[data-axis]").forEach((slider) => {
      slider.value = spot()[Number(slider.dataset.axis)];
      slider.setAttribute("aria-valuetext", spoken);
    });
    announce(spoken);
    writeLayer(point);
  }

  // Speak after a rest, and only to who moves by the plane: the sliders speak for themselves.
  let resting = 0;
  function announce(text) {
    clearTimeout(resting);
    resting = setTimeout(() => { if (document.activeElement === maps.error.box) say("live", text); }, 250);
  }

  function writeLayer(point) {
    if (!now.layer) return;
    const { volume, tuning } = now.layer;
    if (volume) {
      say("volume", `here ${number(10 ** (volume.values[point] - volume.centre))} × the seen mean`);
    }
    if (tuning) {
      const [low, high] = tuning.ranges[now.unit];
      const level = tuning.maps.values[now.unit * now.run.error.values.length + point];
      say("tuning", level === NOTHING ? "" : `here ${number(low + ((high - low) * level) / 254)}`);
    }
  }

  function move(...to) {
    now.axes.forEach((axis, i) => { now.place[axis] = clamp(to[i], 0, now.task.sizes[axis] - 1); });
    refresh();
  }
  const by = (x, y) => move(spot()[0] + x, spot()[1] + y);

  // Another plane, or another place along the other factors.
  let showControls = () => {};
  function turn() {
    Object.values(maps).forEach(outlineMap);
    colourMap(maps.error, pictures.tables.viridis, (point) => 255 * height(now.run.error.values[point]));
    nameAxes();
    if (now.layer) showLayer(now.run.layers.indexOf(now.layer), now.unit);
    refresh();
  }

  // The middle of what is held out.
  function hole() {
    const held = [...now.run.heldout.values.keys()].filter((point) => now.run.heldout.values[point]);
    if (!held.length) return;
    const each = held.map((point) => now.task.grid.index(point));
    now.place = now.task.sizes.map((_, axis) => Math.round(each.reduce((sum, index) => sum + index[axis], 0) / each.length));
    showControls();
    turn();
  }

  const KEYS = {
    ArrowLeft: (step) => by(-step, 0), ArrowRight: (step) => by(step, 0),
    ArrowDown: (step) => by(0, -step), ArrowUp: (step) => by(0, step),
    Home: () => move(0, spot()[1]), End: () => move(Infinity, spot()[1]),
    PageDown: () => move(spot()[0], 0), PageUp: () => move(spot()[0], Infinity),
    h: hole, H: hole,
  };

  for (const { box } of Object.values(maps)) {
    const follow = (event) => {
      const area = box.getBoundingClientRect();
      const [columns, rows] = plane();
      move(Math.floor(((event.clientX - area.left) / area.width) * columns),
        rows - 1 - Math.floor(((event.clientY - area.top) / area.height) * rows));
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      box.setPointerCapture(event.pointerId);
      follow(event);
    });
    box.addEventListener("pointermove", (event) => { if (box.hasPointerCapture(event.pointerId)) follow(event); });
  }
  maps.error.box.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    KEYS[event.key](event.shiftKey ? 5 : 1);
  });
  root.querySelectorAll("[data-axis]").forEach((slider) => slider.addEventListener("input", () => {
    if (slider.dataset.axis === "0") move(Number(slider.value), spot()[1]);
    else move(spot()[0], Number(slider.value));
  }));

  function showLayer(index, unit = 0) {
    const layer = now.run.layers[index];
    now.layer = layer;
    now.unit = layer.tuning ? clamp(unit, 0, layer.tuning.units.length - 1) : 0;
    control("layer").value = index;
    control("layer").setAttribute("aria-valuetext", layer.name);
    say("layer", layer.name);
    say("layer-shape", layer.shape);
    part("volume").hidden = !layer.volume;
    part("tuning").hidden = part("unit-slider").hidden = !layer.tuning;
    part("silent").hidden = Boolean(layer.volume || layer.tuning);
    if (layer.volume) {
      const { values: logs, centre, gap } = layer.volume;
      colourMap(maps.volume, pictures.tables.prgn, (point) => 127.5 + (127.5 * (logs[point] - centre)) / DECADES);
      say("gap", gap === null ? "" : `in the hole, on average, ${number(10 ** gap)} ×`);
    }
    if (layer.tuning) {
      const { units, ranges, maps: stack } = layer.tuning;
      control("unit").max = units.length - 1;
      control("unit").value = now.unit;
      control("unit").setAttribute("aria-valuetext", `unit ${units[now.unit]}`);
      const start = now.unit * now.run.error.values.length;
      colourMap(maps.tuning, pictures.tables.cividis, (point) => (stack.values[start + point] * 255) / 254);
      say("unit", String(units[now.unit]));
      say("unit-rank", `no. ${now.unit + 1} of the ${units.length} most variable`);
      say("tuning-low", number(ranges[now.unit][0]));
      say("tuning-high", number(ranges[now.unit][1]));
    }
    refresh();
  }
  control("layer").addEventListener("input", () => showLayer(Number(control("layer").value), now.unit));
  control("unit").addEventListener("input", () => showLayer(now.run.layers.indexOf(now.layer), Number(control("unit").value)));

  const cache = new Map();
  function opened(value) {
    if (!cache.has(value)) cache.set(value, pictures.unpackAll(value));
    return cache.get(value);
  }

  let requested = 0;
  async function showRun(index) {
    requested = index;
    const chosen = data.runs[index];
    const [run, task] = await Promise.all([opened(chosen), opened(data.tasks[chosen.task])]);
    if (requested !== index) return; // another run was chosen meanwhile
    const before = now.task;
    const layer = now.layer;
    task.grid ??= pictures.grid(task.sizes);
    Object.assign(now, { run, task, layer: null });
    if (before !== task) {
      const middle = task.sizes.map((size) => Math.floor(size / 2));
      const same = before !== null && before.sizes.length === task.sizes.length;
      now.place = same ? now.place.map((at, axis) => Math.min(Math.round((at / before.sizes[axis]) * task.sizes[axis]), task.sizes[axis] - 1)) : middle;
      if (!same) now.axes = [0, 1];
    }
    run.sparse ??= run.trained.values.some((is, point) => !is && !run.heldout.values[point]);
    showTask();
    root.hidden = false;
    turn();
    part("inside").hidden = !run.layers.length;
    if (run.layers.length) {
      control("layer").max = run.layers.length - 1;
      const same = run.layers.findIndex((one) => layer && one.name === layer.name);
      showLayer(same >= 0 ? same : run.layers.length - 1, now.unit);
    }
    if (before === null) hole();
    refresh();
  }

  // Axes, labels and canvases for the run's task.
  function showTask() {
    const { run, task } = now;
    const [height, width] = task.image;
    for (const image of Object.values(images)) image.sheet = pictures.buffer(width, height, image.canvas);
    const [x, y] = task.factors;
    part("choice").hidden = task.factors.length < 3;
    showControls = task.factors.length < 3 ? () => {} : pictures.planeControls(part("choice"), task.factors, now, turn);
    part("y-slider").hidden = !y;
    part("position").hidden = !run.position_error;
    part("match").hidden = !run.match;
    part("trained-key").hidden = !run.sparse;
    const guess = run.prediction ? run.prediction.name : "Superposition";
    say("match-name", `Match with ${guess.toLowerCase()}`);
    images.prediction.title.textContent = guess;
    images.prediction.about.textContent = y ? task.factors.map(({ name }) => `${name} alone`).join(" + ") : "of the seen images beside the gap";
    scales[run.task].forEach((end, i) => say(i ? "error-high" : "error-low", exponent(end)));
    say("about", [run.about, ...run.notes].join("; "));
  }

  // Names and ends of the two axes.
  function nameAxes() {
    ["x", "y"].forEach((letter, i) => {
      const factor = now.task.factors[now.axes[i]];
      say(`${letter}-name`, factor ? factor.name : "");
      say(`${letter}-label`, factor ? factor.name : "");
      say(`${letter}-low`, factor ? short(factor.values[0]) : "");
      say(`${letter}-high`, factor ? short(factor.values.at(-1)) : "");
    });
    spots["y-name"].classList.toggle("long", spots["y-name"].textContent.length > 2);
    root.querySelectorAll("[data-axis]").forEach((slider, i) => { slider.max = plane()[i] - 1; });
  }

  data.runs.forEach((run, index) => {
    const label = document.createElement("label");
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "explorer-run", value: index, checked: index === 0 });
    const title = Object.assign(document.createElement("span"), { className: "run-title", textContent: run.title });
    const { heldout_mse: error, accuracy } = run.numbers;
    const lines = [error === null ? "nothing held out" : `held-out error ${exponent(error)}`];
    if (accuracy !== null && accuracy !== undefined) lines.push(`${Math.round(100 * accuracy)} % within 1 pixel`);
    const facts = Object.assign(document.createElement("span"), { className: "run-facts muted small" });
    facts.append(...lines.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
    label.append(radio, title, facts);
    radio.addEventListener("change", () => showRun(index));
    root.querySelector(".runs").append(label);
  });
  root.querySelector(".plane .bar").style.background = pictures.gradient("viridis");
  part("volume").querySelector(".bar").style.background = pictures.gradient("prgn");
  part("tuning").querySelector(".bar").style.background = pictures.gradient("cividis");
  showRun(0);
})();
