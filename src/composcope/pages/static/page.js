"use strict";

// The theme: as the system has it, light or dark; the button cycles through them and the choice is remembered where that is allowed.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const order = ["auto", "light", "dark"];
  const show = () => {
    button.textContent = `Theme: ${root.dataset.theme}`;
    document.dispatchEvent(new Event("themechange")); // for what is drawn on canvases
  };
  root.dataset.theme = order.includes(root.dataset.theme) ? root.dataset.theme : "auto";
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = order[(order.indexOf(root.dataset.theme) + 1) % order.length];
    try { localStorage.setItem("composcope-theme", root.dataset.theme); } catch { /* not remembered */ }
    show();
  });
  show();
})();

// Tables: a click on a column's head sorts by it. A row that opens stays with what it opens, being in one tbody.
(() => {
  const collator = new Intl.Collator("en", { numeric: true });
  const key = (cell) => cell?.dataset.value ?? cell?.textContent.trim() ?? "";
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return collator.compare(a, b);
  };

  function sort(table, head, column) {
    const falling = head.getAttribute("aria-sort") === "ascending";
    const groups = table.tBodies.length > 1 || table.classList.contains("opens");
    const items = groups ? [...table.tBodies] : [...table.tBodies[0].rows];
    const keys = new Map(items.map((item) => [item, key((groups ? item.rows[0] : item).cells[column])]));
    const empty = (item) => ["", "-"].includes(keys.get(item));
    items.sort((a, b) => empty(a) - empty(b) || (falling ? -1 : 1) * compare(keys.get(a), keys.get(b)));
    (groups ? table : table.tBodies[0]).append(...items);
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sorts";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(table, head, column));
      head.append(button);
    });
  }
})();

// The filter over runs: every word must be somewhere in the row, and the verdict must be the chosen one.
(() => {
  const form = document.getElementById("filter");
  if (form === null) return;
  const bodies = [...document.querySelectorAll("#runs-table > tbody")];
  const texts = new Map(bodies.map((body) => [body, `${body.rows[0].textContent} ${body.dataset.words}`.toLowerCase()]));
  const shown = document.getElementById("filter-count");
  const apply = () => {
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = form.elements.verdict.value;
    let count = 0;
    for (const body of bodies) {
      body.hidden = !words.every((word) => texts.get(body).includes(word)) || (verdict !== "" && body.dataset.verdict !== verdict);
      count += body.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${bodies.length} runs`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  for (const link of document.querySelectorAll("a[data-filter]")) {
    link.addEventListener("click", () => {
      form.reset();
      form.elements.words.value = link.dataset.filter;
      apply();
    });
  }
})();

// Rows that open: a run's diagnosis is inserted and drawn when it is first opened.
(() => {
  for (const button of document.querySelectorAll("button[aria-controls][aria-expanded]")) {
    button.addEventListener("click", () => {
      const row = document.getElementById(button.getAttribute("aria-controls"));
      const open = button.getAttribute("aria-expanded") !== "true";
      const content = document.getElementById(row.dataset.content ?? "");
      if (open && content !== null) {
        row.cells[0].append(content.content.cloneNode(true));
        content.remove();
        for (const part of row.querySelectorAll(".diagnosis")) drawDiagnosis(part);
      }
      row.hidden = !open;
      button.setAttribute("aria-expanded", String(open));
    });
  }
  for (const part of document.querySelectorAll(".diagnosis")) drawDiagnosis(part);
})();

// On paper nothing can be opened, so what is folded is shown; it is folded again afterwards.
(() => {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
})();

// One diagnosis: its maps are unpacked and drawn; the slider goes through its layers.
async function drawDiagnosis(part) {
  const NOTHING = 255;
  const SIDE = 240; // pixels, at least, so that blocks stay sharp on paper
  const KINDS = ["#009e73", "#e69f00", "#56b4e9", "#d55e00", "#9a9a9a", "#cc79a7", "#0072b2", "#b8a000"];
  const data = JSON.parse(document.getElementById(part.dataset.maps).textContent);
  const names = ["error", "classes", "samples", "volumes", "tuning", "kernel"].filter((name) => data[name]);
  const arrays = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await pictures.unpack(data[name])])));

  const pixel = (colour) => {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
  };
  const palettes = { classes: Uint32Array.from(KINDS, pixel) };
  const palette = (name) => palettes[name] ?? (palettes[name] = stretched(pictures.tables[name]));
  // The maps have 255 levels, the tables 256 colours.
  const stretched = (table) => Uint32Array.from({ length: NOTHING }, (_, level) => table[Math.round((level * 255) / 254)]);

  function paint(canvas, values, width, height, colours, channels) {
    const small = pictures.buffer(width, height);
    for (let i = 0; i < width * height; i += 1) {
      const value = values[i * channels];
      if (channels === 3) {
        small.pixels[i] = ((255 << 24) | (values[i * 3 + 2] << 16) | (values[i * 3 + 1] << 8) | value) >>> 0;
      } else small.pixels[i] = value === NOTHING ? 0 : colours[value];
    }
    small.done();
    const times = Math.ceil(SIDE / Math.max(width, height));
    canvas.width = width * times;
    canvas.height = height === 1 ? 28 : height * times;
    pictures.show(canvas, small.canvas);
  }

  // With three or more factors, maps are over the whole grid and are cut along the plane that is chosen.
  const grid = data.grid ? pictures.grid(data.grid.factors.map(({ values }) => values.length)) : null;
  const chosen = { axes: [0, 1], place: data.grid?.factors.map(({ values }) => Math.floor(values.length / 2)) };
  const plane = () => chosen.axes.map((axis) => data.grid.factors[axis].values.length);
  const CUT = ["error", "classes", "volumes", "tuning"];
  function cut(canvas, name, index, map) {
    const [width, height] = plane();
    const [row, { shape, values }] = [grid.cell(chosen.axes, chosen.place), arrays[name]];
    const start = index * shape.slice(-data.grid.factors.length).reduce((product, size) => product * size, 1);
    const levels = new Uint8Array(width * height);
    for (let x = 0; x < width; x += 1) {
      for (let y = 0; y < height; y += 1) levels[(height - 1 - y) * width + x] = values[start + row(x, y)];
    }
    paint(canvas, levels, width, height, palette(map), 1);
  }

  // Picture number `index` of an array whose last axes are height and width (and channels, for images).
  function draw(canvas, name, index, map) {
    if (grid !== null && CUT.includes(name)) return cut(canvas, name, index, map);
    const { shape, values } = arrays[name];
    const [height, width, channels] = name === "samples" ? shape.slice(-3) : [...shape.slice(-2), 1];
    const size = height * width * channels;
    paint(canvas, values.subarray(index * size, (index + 1) * size), width, height, palette(map), channels);
  }

  const canvases = (name) => [...part.querySelectorAll(`canvas[data-draw="${name}"]`)];
  const held = data.grid?.heldout ? (await pictures.unpack(data.grid.heldout)).values : null;
  function drawMaps() {
    for (const svg of part.querySelectorAll("svg.outline")) {
      const [width, height] = grid === null ? [...arrays.error.shape].reverse() : plane();
      const row = grid?.cell(chosen.axes, chosen.place);
      const border = grid === null ? data.outline : held && pictures.outline(width, height, (x, y) => held[row(x, y)] === 1);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.firstElementChild.setAttribute("d", border ?? "");
    }
    for (const canvas of canvases("error")) draw(canvas, "error", 0, "viridis");
    for (const canvas of canvases("classes")) draw(canvas, "classes", 0, "classes");
  }
  drawMaps();
  for (const canvas of canvases("kernel")) draw(canvas, "kernel", 0, "cividis");
  canvases("samples").forEach((canvas, index) => draw(canvas, "samples", index, "grey"));
  const short = (value) => (value !== 0 && Math.abs(value) < 0.01 ? value.toExponential(1) : String(Number(value.toPrecision(2))));
  for (const scale of part.querySelectorAll(".scale")) {
    const { low, high, log } = data[scale.dataset.of];
    const told = (value) => short(log ? 10 ** value : value);
    scale.querySelector(".bar").style.background = pictures.gradient(scale.dataset.map);
    scale.querySelector(".low").textContent = told(low);
    scale.querySelector(".high").textContent = told(high);
    const tick = scale.querySelector(".tick");
    if (tick === null) continue;
    const value = log ? Math.log10(Number(tick.dataset.value)) : Number(tick.dataset.value);
    tick.style.left = `${Math.min(100, Math.max(0, (100 * (value - low)) / (high - low || 1)))}%`;
  }
  for (const canvas of canvases("kernel")) markHeldout(canvas, data.kernel.heldout);

  const slider = part.querySelector("input.layer");
  const choice = part.querySelector(".choice");
  if (choice !== null && grid !== null) {
    pictures.planeControls(choice, data.grid.factors, chosen, () => {
      drawMaps();
      slider?.dispatchEvent(new Event("input"));
    });
  }
  if (slider === null) return;
  const show = () => {
    const layer = Number(slider.value);
    const reading = data.layers[layer];
    slider.setAttribute("aria-valuetext", reading.name);
    part.querySelector(".layer-name").textContent = reading.text;
    for (const canvas of canvases("volumes")) draw(canvas, "volumes", layer, "prgn");
    const units = data.tuning?.units[layer] ?? [];
    canvases("tuning").forEach((canvas, unit) => {
      const figure = canvas.closest("figure");
      figure.hidden = unit >= units.length;
      figure.querySelector("figcaption").textContent = `unit ${units[unit]}`;
      if (!figure.hidden) draw(canvas, "tuning", layer * arrays.tuning.shape[1] + unit, "cividis");
    });
    for (const cursor of part.querySelectorAll(".by-layer .cursor")) {
      const x = Number(cursor.dataset.left) + Number(cursor.dataset.step) * layer;
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
    part.querySelectorAll(".layers tbody tr").forEach((row, index) => row.classList.toggle("now", index === layer));
  };
  slider.addEventListener("input", show);
  show();
}

// Bars along the left and lower edge of the kernel tell which combinations are held out.
function markHeldout(canvas, heldout) {
  const context = canvas.getContext("2d");
  const step = canvas.width / (heldout.length || 1);
  context.fillStyle = "#d55e00";
  heldout.forEach((held, index) => {
    if (!held) return;
    context.fillRect(0, index * step, 5, step);
    context.fillRect(index * step, canvas.height - 5, step, 5);
  });
}
