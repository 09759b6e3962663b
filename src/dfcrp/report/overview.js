// Small multiples: a picture of every image, to be sorted, filtered and clicked.

const TILES_SHOWN = 60;
/** Agreed on, in doubt, and not: told apart by shade and by the width of the line. */
const SHADES = {
  light: ["#0072B2", "#D55E00", "#7F8A94"],
  dark: ["#56B4E9", "#F0803C", "#7B8792"],
};
const WIDTHS = [1.6, 1.6, 1];
const RIM = "rgba(255, 255, 255, 0.75)";
const SURE = [0.95, 0.05];
const GAIN = "How much one more look is expected to reduce the variance of the number of objects";

/** @returns {Promise<OverviewData>} */
async function readImages() {
  const about = JSON.parse(byId("about").textContent);
  return { ...about, ...(await arraysOf(byId("arrays").textContent, about.arrays, about.compressed)) };
}

/** 0: agreed on, 1: in doubt, 2: not. */
/** @param {number} p @returns {0 | 1 | 2} */
function shadeOf(p) {
  return p >= SURE[0] ? 0 : p > SURE[1] ? 1 : 2;
}

function shades() {
  return SHADES[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
}

/** @type {Record<Order, (data: OverviewData, a: number, b: number) => number>} */
const ORDERS = {
  name: (data, a, b) => data.byName[a] - data.byName[b],
  objects: (data, a, b) => data.objects[b] - data.objects[a] || a - b,
  agreed: (data, a, b) => data.agreed[b] - data.agreed[a] || a - b,
  undecided: (data, a, b) => data.undecided[b] - data.undecided[a] || a - b,
  verdict: (data, a, b) => data.place[a] - data.place[b] || a - b,
  need: (data, a, b) => data.lookValue[b] - data.lookValue[a] || a - b,
};

/** The images that are asked for, in the order asked for. */
/** @param {OverviewData} data @param {Asked} asked @returns {number[]} */
function chosenImages(data, asked) {
  const text = asked.name.trim().toLowerCase();
  const found = [];
  for (let k = 0; k < data.names.length; k++) {
    if (text && !data.names[k].toLowerCase().includes(text)) continue;
    if (asked.bad && data.good[k]) continue;
    if (asked.doubt && !data.undecided[k]) continue;
    if (asked.open && data.retired[k]) continue;
    found.push(k);
  }
  return found.sort((a, b) => ORDERS[asked.order](data, a, b));
}

/** What is in doubt; of images without a marking, that they have none. */
/** @param {OverviewData} data @param {number} k */
function doubtOf(data, k) {
  if (k >= data.names.length - data.empty) return `looked at, no ${data.nouns}`;
  const undecided = `${number(data.undecided[k])} undecided ${data.undecided[k] === 1 ? data.noun : data.nouns}`;
  // Whether an object is real is one question, which object an item belongs to another.
  if (data.byNeed) return `${number(data.inDoubt[k])} in doubt` + (data.undecided[k] ? `, ${undecided}` : "");
  return data.undecided[k] ? undecided : `no undecided ${data.nouns}`;
}

/** @param {OverviewData} data @param {number} k */
function tile(data, k) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const words = [
    element("b", { title: data.names[k] }, data.names[k]),
    data.byNeed
      ? element("span", { class: "quiet" }, `${number(data.objects[k], 1)} real objects in all`)
      : element("span", { class: "quiet" }, `${number(data.objects[k], 1)} objects, `, element("span", { class: "whole" }, `${number(data.agreed[k], 1)} by ${data.agreedBy}`)),
    element("span", { class: "quiet" }, doubtOf(data, k)),
    data.byNeed ? element("span", { class: "quiet", title: GAIN }, data.retired[k] ? "needs no more looks" : `one more look reduces the variance by ${number(data.lookValue[k], 2)}`) : null,
    data.good[k] ? null : element("span", { class: "short" }, "run too short"),
  ];
  // Only images whose page was made are links.
  const made = data.pages[k]
    ? element("a", { class: "overview-tile", href: data.pages[k] }, canvas, ...words)
    : element("div", { class: "overview-tile", title: k < data.names.length - data.empty ? data.howToMake : "" }, canvas, ...words);
  return { item: element("li", {}, made), canvas, image: k };
}

/** @param {OverviewData} data @param {{ canvas: HTMLCanvasElement, image: number }} given1 */
function drawTile(data, { canvas, image }) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = penOf(canvas);
  const address = data.photographs[image];
  if (address && !PHOTOGRAPHS.has(image)) {
    const photograph = new Image();
    PHOTOGRAPHS.set(image, photograph);
    photograph.addEventListener("load", () => drawTile(data, { canvas, image }));
    photograph.src = address;
  }
  if (data.shape) drawOutlines(data, data.shape, image, pen, ratio);
  else drawBars(data, image, pen, ratio);
}

/** Photographs by the number of their image; those that are not loaded yet are drawn when they are. */
/** @type {Map<number, HTMLImageElement>} */
const PHOTOGRAPHS = new Map();

/** @param {number} image @returns {HTMLImageElement | null} */
function photographOf(image) {
  const found = PHOTOGRAPHS.get(image);
  return found?.complete && found.naturalWidth > 0 ? found : null;
}

/** The catalogue as a map. */
/** @param {OverviewData} data @param {Shape} shape @param {number} image @param {CanvasRenderingContext2D} pen @param {number} ratio */
function drawOutlines(data, shape, image, pen, ratio) {
  const { width, height } = pen.canvas;
  const colours = shades();
  const [left, right, low, high] = data.frames.subarray(4 * image, 4 * image + 4);
  const scale = 0.94 * Math.min(width / (right - left), height / (high - low));
  const [x0, y0] = [width / 2 - (scale * (left + right)) / 2, height / 2 + (scale * (low + high)) / 2];
  const photograph = photographOf(image);
  /** @type {[number, number, number, number]} */
  const frame = [x0 + scale * left, y0 - scale * high, scale * (right - left), scale * (high - low)];
  if (photograph) pen.drawImage(photograph, ...frame);
  if (data.framed[image]) {
    pen.strokeStyle = getComputedStyle(pen.canvas).color;
    pen.lineWidth = ratio / 2;
    pen.strokeRect(...frame);
  }
  // Those that nobody agrees on lie beneath.
  for (const shade of [2, 1, 0]) {
    for (let c = data.outlineStart[image]; c < data.outlineStart[image + 1]; c++) {
      if (shadeOf(data.outlineP[c]) !== shade) continue;
      /** @param {number} length */
      const half = (length) => Math.max((scale * length) / 2, 0.7 * ratio);
      const dot = (shade < 2 ? 2 : 1.5) * ratio;
      const [a, b] = shape === "point" ? [dot, dot] : [half(data.outlineW[c]), half(data.outlineH[c])];
      pen.beginPath();
      trace(pen, shape, x0 + scale * data.outlineX[c], y0 - scale * data.outlineY[c], a, b, (-data.outlineA[c] * Math.PI) / 180);
      // On a photograph a pale rim keeps colours apart from what is beneath.
      const rims = photograph ? [[RIM, 1.5], [colours[shade], 0]] : [[colours[shade], 0]];
      for (const [colour, wider] of rims) {
        pen.strokeStyle = pen.fillStyle = String(colour);
        pen.lineWidth = (WIDTHS[shade] + Number(wider)) * ratio;
        if (shape === "point" && !wider) pen.fill();
        else pen.stroke();
      }
    }
  }
}

/** How many objects so many experts share, where objects have no place. */
/** @param {OverviewData} data @param {number} image @param {CanvasRenderingContext2D} pen @param {number} ratio */
function drawBars(data, image, pen, ratio) {
  const { width, height } = pen.canvas;
  const count = data.barsOfImage;
  const parts = data.bars.subarray(3 * count * image, 3 * count * (image + 1));
  /** @param {number} bar */
  const total = (bar) => parts[3 * bar] + parts[3 * bar + 1] + parts[3 * bar + 2];
  const most = Math.max(1, ...Array.from({ length: count }, (_, bar) => total(bar)));
  const colours = shades();
  const [base, step] = [height - 14 * ratio, width / count];
  pen.font = `${10 * ratio}px system-ui, sans-serif`;
  pen.textAlign = "center";
  for (let bar = 0; bar < count; bar++) {
    let top = base;
    for (const shade of [0, 1, 2]) {
      const tall = ((base - 4 * ratio) * parts[3 * bar + shade]) / most;
      pen.fillStyle = colours[shade];
      pen.fillRect((bar + 0.12) * step, top - tall, 0.76 * step, tall);
      top -= tall;
    }
    pen.fillStyle = getComputedStyle(pen.canvas).color;
    pen.fillText(String(bar + 1), (bar + 0.5) * step, height - 3 * ratio);
  }
}

/** @param {OverviewData} data */
function legend(data) {
  /** @param {number} shade */
  const sample = (shade) => {
    const [fill, stroke] = data.shape && data.shape !== "point" ? ["none", shades()[shade]] : [shades()[shade], "none"];
    const look = { fill, stroke, "stroke-width": WIDTHS[shade] };
    if (data.shape === "ellipse" || data.shape === "point") return drawing("circle", { cx: 8, cy: 6, r: data.shape === "point" ? 3.5 : 5, ...look });
    return drawing("rect", { x: 3, y: 1, width: 10, height: 10, ...look });
  };
  const names = data.legend.map((name, shade) => element("li", {}, drawing("svg", { viewBox: "0 0 16 12", "aria-hidden": "true" }, sample(shade)), ` ${name}`));
  const bars = element("li", {}, "bars: objects by number of experts");
  byId("key").replaceChildren(...names, ...(data.shape ? [] : [bars]));
}

async function startOverview() {
  const data = await readImages();
  /** @type {Asked} */
  const asked = { name: "", order: "name", bad: false, doubt: false, open: false, first: 0 };
  /** @type {ReturnType<typeof tile>[]} */
  let shown = [];
  const draw = () => {
    for (const one of shown) drawTile(data, one);
  };
  /** @param {Partial<Asked>} changes */
  const show = (changes) => {
    Object.assign(asked, { first: 0 }, changes);
    const images = chosenImages(data, asked);
    shown = images.slice(asked.first, asked.first + TILES_SHOWN).map((k) => tile(data, k));
    byId("tiles").replaceChildren(...shown.map((one) => one.item));
    const last = asked.first + shown.length;
    byId("range").textContent = images.length
      ? `${number(asked.first + 1)} to ${number(last)} of ${counted(images.length, data.image)}`
      : `no such ${data.image}`;
    byId("back").disabled = asked.first === 0;
    byId("on").disabled = last >= images.length;
    draw();
  };
  byId("overview").hidden = false;
  for (const part of document.querySelectorAll(".overview-need")) {
    if (!data.byNeed) part.remove();
  }
  const [name, order] = [byId("name"), byId("order")];
  name.addEventListener("input", () => show({ name: name.value }));
  order.addEventListener("change", () => show({ order: /** @type {Order} */ (order.value) }));
  for (const key of /** @type {const} */ (["bad", "doubt", "open"])) {
    // Not every page has all of them.
    const box = document.getElementById(`explorer-${key}`);
    if (box instanceof HTMLInputElement) box.addEventListener("change", () => show({ [key]: box.checked }));
  }
  byId("back").addEventListener("click", () => show({ first: Math.max(asked.first - TILES_SHOWN, 0) }));
  byId("on").addEventListener("click", () => show({ first: asked.first + TILES_SHOWN }));
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    legend(data);
    draw();
  });
  legend(data);
  show({});
  byId("overview").dataset.ready = "yes";
}

startOverview();
