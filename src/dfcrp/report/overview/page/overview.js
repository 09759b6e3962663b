// Small multiples: a picture of every image, to be sorted, filtered and clicked.

const TILES_SHOWN = 60;
/** Agreed on, possibly so, and not: told apart by shade and by the width of the line. */
const SHADES = {
  light: ["#0072B2", "#D55E00", "#A9B2BA"],
  dark: ["#56B4E9", "#F0803C", "#59646D"],
};
const WIDTHS = [1.6, 1.6, 0.8];
const SURE = [0.95, 0.05];

function readImages() {
  const about = JSON.parse(byId("about").textContent);
  const bytes = fromBase64(byId("arrays").textContent);
  for (const [name, [kind, start, length]] of Object.entries(about.arrays)) {
    about[name] = new globalThis[kind + "Array"](bytes.buffer, start, length);
  }
  return about;
}

/** 0: agreed on, 1: possibly, 2: not. */
function shadeOf(p) {
  return p >= SURE[0] ? 0 : p > SURE[1] ? 1 : 2;
}

function shades() {
  return SHADES[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
}

const ORDERS = {
  name: (data, a, b) => a - b,
  objects: (data, a, b) => data.objects[b] - data.objects[a] || a - b,
  agreed: (data, a, b) => data.agreed[b] - data.agreed[a] || a - b,
  undecided: (data, a, b) => data.undecided[b] - data.undecided[a] || a - b,
  verdict: (data, a, b) => data.place[a] - data.place[b] || a - b,
};

/** The images that are asked for, in the order asked for. */
function chosenImages(data, asked) {
  const text = asked.name.trim().toLowerCase();
  const found = [];
  for (let k = 0; k < data.names.length; k++) {
    if (text && !data.names[k].toLowerCase().includes(text)) continue;
    if (asked.bad && data.good[k]) continue;
    if (asked.doubt && !data.undecided[k]) continue;
    found.push(k);
  }
  return found.sort((a, b) => ORDERS[asked.order](data, a, b));
}

function tile(data, k) {
  const canvas = element("canvas", { "aria-hidden": "true" });
  const words = [
    element("b", { title: data.names[k] }, data.names[k]),
    element("span", { class: "quiet" }, `${number(data.objects[k], 1)} objects, ${number(data.agreed[k], 1)} by ${data.minExperts}+`),
    element("span", { class: "quiet" }, data.undecided[k] ? `${number(data.undecided[k])} undecided` : "none undecided"),
    data.good[k] ? null : element("span", { class: "short" }, "run too short"),
  ];
  // Only images whose page was made are links.
  const made = data.pages[k]
    ? element("a", { class: "overview-tile", href: data.pages[k] }, canvas, ...words)
    : element("div", { class: "overview-tile", title: data.howToMake }, canvas, ...words);
  return { item: element("li", {}, made), canvas, image: k };
}

function drawTile(data, { canvas, image }) {
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const pen = canvas.getContext("2d");
  const colours = shades();
  const [left, low, right, high] = data.frames.subarray(4 * image, 4 * image + 4);
  const scale = 0.94 * Math.min(canvas.width / (right - left), canvas.height / (high - low));
  const [x0, y0] = [canvas.width / 2 - (scale * (left + right)) / 2, canvas.height / 2 + (scale * (low + high)) / 2];
  // Those that nobody agrees on lie beneath.
  for (const shade of [2, 1, 0]) {
    pen.strokeStyle = colours[shade];
    pen.lineWidth = WIDTHS[shade] * ratio;
    for (let c = data.circleStart[image]; c < data.circleStart[image + 1]; c++) {
      if (shadeOf(data.circleP[c]) !== shade) continue;
      pen.beginPath();
      pen.arc(x0 + scale * data.circleX[c], y0 - scale * data.circleY[c], Math.max((scale * data.circleD[c]) / 2, 0.7 * ratio), 0, 7);
      pen.stroke();
    }
  }
}

function legend(data) {
  const names = [`at least ${counted(data.minExperts, "expert")}`, "possibly as many", "fewer"];
  byId("key").replaceChildren(
    ...names.map((name, shade) =>
      element("li", {}, drawing("svg", { viewBox: "0 0 16 12", "aria-hidden": "true" },
        drawing("circle", { cx: 8, cy: 6, r: 5, fill: "none", stroke: shades()[shade], "stroke-width": WIDTHS[shade] })), ` ${name}`)),
  );
}

function startOverview() {
  const data = readImages();
  const asked = { name: "", order: "name", bad: false, doubt: false, first: 0 };
  let shown = [];
  const draw = () => shown.forEach((one) => drawTile(data, one));
  const show = (changes) => {
    Object.assign(asked, { first: 0 }, changes);
    const images = chosenImages(data, asked);
    shown = images.slice(asked.first, asked.first + TILES_SHOWN).map((k) => tile(data, k));
    byId("tiles").replaceChildren(...shown.map((one) => one.item));
    const last = asked.first + shown.length;
    byId("range").textContent = images.length
      ? `${number(asked.first + 1)} to ${number(last)} of ${counted(images.length, "image")}`
      : "no such image";
    byId("back").disabled = asked.first === 0;
    byId("on").disabled = last >= images.length;
    draw();
  };
  byId("overview").hidden = false;
  byId("name").addEventListener("input", (event) => show({ name: event.target.value }));
  byId("order").addEventListener("change", (event) => show({ order: event.target.value }));
  byId("bad").addEventListener("change", (event) => show({ bad: event.target.checked }));
  byId("doubt").addEventListener("change", (event) => show({ doubt: event.target.checked }));
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
