// What can be taken away: the filtered catalogue as CSV, the view as PNG and SVG.

/** The rows of catalogue.csv that pass the filters, with the same columns. */
/** @param {State} state @param {ExplorerMap} map */
function catalogueCsv(state, map) {
  const { data } = state;
  const ends = ["", "_sd", "_lo", "_hi"];
  const described = data.quantities.flatMap(({ name, text }) => (text ? [name] : ends.map((end) => name + end)));
  const head = ["cluster", ...described.map((name) => quoted(name, ",")), "n_experts", "p_consensus", "experts", "stability"];
  if (data.clusterReal) head.push("p_real");
  const lines = [head.join(",")];
  for (let k = 0; k < data.clusters; k++) {
    if (map.passing[k] !== 2) continue;
    const names = [...new Set(Array.from(data.clusterMembers.of(k), (i) => data.itemExpert[i]))].sort((a, b) => a - b);
    const joined = names.map((f) => quoted(data.experts[f], ";")).join(";");
    const cells = data.quantities.flatMap((quantity) => catalogueCells(data, quantity, k));
    const agreed = data.minExperts <= data.experts.length ? consensusProbability(data, k, data.minExperts) : 0;
    const row = [data.clusterName[k], ...cells, names.length, Number(agreed.toPrecision(10)), quoted(joined, ","), short(data.clusterStability[k])];
    if (data.clusterReal) row.push(short(data.clusterReal[k]));
    lines.push(row.join(","));
  }
  return lines.join("\n") + "\n";
}

/** Mean, standard deviation and ends of the interval, or the text. */
/** @param {Data} data @param {Quantity} quantity @param {number} k @returns {(string | number)[]} */
function catalogueCells(data, quantity, k) {
  if (quantity.text) return [quoted(valueInWords(data, quantity, k), ",")];
  const mean = quantity.values[k];
  /** @param {number} value */
  const whole = (value) => Number(value.toPrecision(10));
  return [whole(mean), short(quantity.sd[k]), whole(mean + quantity.lo[k]), whole(mean + quantity.hi[k])];
}

/** What single precision holds. */
/** @param {number} value */
function short(value) {
  return Number(value.toPrecision(7));
}

/** @param {string} text @param {string} delimiter */
function quoted(text, delimiter) {
  return /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** @param {State} state @param {View} view @param {ExplorerMap} map @param {Overlay} overlay */
function bindExports(state, view, map, overlay) {
  byId("csv").addEventListener("click", () => download(new Blob([catalogueCsv(state, map)], { type: "text/csv" }), "catalogue-filtered.csv"));
  byId("png").addEventListener("click", () => mapPicture(state, view, map, overlay).toBlob((blob) => blob && download(blob, "map.png"), "image/png"));
  byId("svg").addEventListener("click", () => download(new Blob([mapSvg(state, view, map, overlay)], { type: "image/svg+xml" }), "map.svg"));
}

/** What is seen, drawn again with twice the pixels each way. */
/** @param {State} state @param {View} view @param {ExplorerMap} map @param {Overlay} overlay */
function mapPicture(state, view, map, overlay) {
  const [below, above] = [byId("outlines"), byId("overlay")];
  view.ratio = 2 * screenRatio();
  try {
    map.draw();
    overlay.draw();
    const picture = element("canvas", { width: below.width, height: below.height });
    const context = penOf(picture);
    context.drawImage(below, 0, 0);
    context.drawImage(above, 0, 0);
    context.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
    drawLegend(context, state, map.colours);
    return picture;
  } finally {
    view.ratio = null;
    map.draw();
    overlay.draw();
  }
}

/** What is seen as SVG: outlines stay outlines, and text stays text. */
/** @param {State} state @param {View} view @param {ExplorerMap} map @param {Overlay} overlay */
function mapSvg(state, view, map, overlay) {
  const { data } = state;
  const ink = isDark(state) ? "#FFFFFF" : "#1D2329";
  const root = drawing("svg", { xmlns: SVG, width: view.width, height: view.height, viewBox: `0 0 ${view.width} ${view.height}`, "font-family": "sans-serif", "font-size": 12 },
    drawing("rect", { width: "100%", height: "100%", fill: groundColour(state) }));
  if (data.image && state.showImage) root.append(svgImage(view, data.image, data.origin));
  for (const layer of map.layers()) root.append(...svgLayer(view, ...layer));
  if (state.selected >= 0) {
    const members = drawing("g", { fill: "none", stroke: ink, "stroke-width": 2 });
    for (const i of data.clusterMembers.of(state.selected)) if (!state.off.has(data.itemExpert[i])) members.append(svgOutline(view, data.items, i, 5));
    root.append(members);
  }
  if (overlay.bar) root.append(svgScaleBar(view, overlay.bar, ink));
  root.append(svgLegend(state, map.colours, ink));
  return new XMLSerializer().serializeToString(root);
}

/** @param {View} view @param {NonNullable<About["image"]>} image @param {Place} origin */
function svgImage(view, image, origin) {
  const [left, right, bottom, top] = image.extent;
  const [x, y] = view.toScreen(left - origin[0], top - origin[1]);
  const [x1, y1] = view.toScreen(right - origin[0], bottom - origin[1]);
  return drawing("image", { href: image.uri, x, y, width: x1 - x, height: y1 - y, preserveAspectRatio: "none" });
}

/** A group for each colour and level. */
/** @param {View} view @param {Outlines} outlines @param {LevelOf} level @param {LevelOf} colourOf @param {Pick<Colours, "colours" | "dashes">} given4 @param {LayerLook} given5 */
function svgLayer(view, outlines, level, colourOf, { colours, dashes }, { asDots = false, weight = 1, hollow = false }) {
  const { buckets, total } = inView(view, outlines, level, colourOf, colours.length);
  const isDot = (asDots || outlines.shape === "point") && !hollow;
  /** @type {SVGElement[]} */
  const groups = [];
  for (const kind of [0, 1]) {
    buckets.forEach((bucket, k) => {
      if (!bucket[kind].length) return;
      /** @type {Attributes} */
      const look = isDot ? { fill: colours[k] } : { fill: "none", stroke: colours[k], "stroke-width": thickness(total, weight).toFixed(2), "stroke-dasharray": dashes[k].join(" ") || null };
      const shapes = bucket[kind].map((i) => svgOutline(view, asDots ? { ...outlines, shape: "point" } : outlines, i, asDots ? 0.5 : dotRadius(total)));
      groups.push(drawing("g", { ...look, opacity: kind ? 0.9 : 0.22 }, ...shapes));
    });
  }
  return groups;
}

/** @param {View} view @param {Outlines} outlines @param {number} i @param {number} dot */
function svgOutline(view, { shape, x, y, wide, high, turn }, i, dot) {
  /** @param {number} value */
  const short = (value) => Number(value.toFixed(2));
  const [cx, cy] = view.toScreen(x[i], y[i]).map(short);
  if (shape === "point") return drawing("circle", { cx, cy, r: short(dot) });
  const [a, b] = [short((wide[i] / 2) * view.scaleX), short((high[i] / 2) * view.scaleY)];
  const transform = turn?.[i] ? `rotate(${short((turn[i] * 180) / Math.PI)} ${cx} ${cy})` : null;
  if (shape === "box") return drawing("rect", { x: short(cx - a), y: short(cy - b), width: 2 * a, height: 2 * b, transform });
  return drawing("ellipse", { cx, cy, rx: a, ry: b, transform });
}

/** @param {View} view @param {Bar} bar @param {string} ink */
function svgScaleBar(view, bar, ink) {
  const [x, y] = [14, view.height - 16];
  return drawing("g", {}, drawing("path", { d: `M${x} ${y - 5}V${y}H${x + bar.width}V${y - 5}`, fill: "none", stroke: ink, "stroke-width": 2 }),
    drawing("text", { x: x + 6, y: y - 6, fill: ink }, bar.text));
}

/** @param {State} state @param {Colours} look @param {string} ink */
function svgLegend(state, { title, names, colours, dashes }, ink) {
  const rows = names.flatMap((name, k) => [
    drawing("line", { x1: 14, x2: 34, y1: 36 + 16 * k, y2: 36 + 16 * k, stroke: colours[k], "stroke-width": 2.5, "stroke-dasharray": dashes[k].join(" ") || null }),
    drawing("text", { x: 40, y: 40 + 16 * k }, name)]);
  const longest = Math.max(...[title, ...names].map((text) => text.length));
  return drawing("g", { fill: ink }, drawing("rect", { x: 8, y: 8, width: 48 + 7 * longest, height: 22 + 16 * names.length, fill: groundColour(state), opacity: 0.88 }),
    drawing("text", { x: 14, y: 24, "font-weight": "bold" }, title), ...rows);
}

/** The legend on a picture, as it stands beside the map on the page. */
/** @param {CanvasRenderingContext2D} context @param {State} state @param {Colours} look */
function drawLegend(context, state, { title, names, colours, dashes }) {
  const ground = groundColour(state);
  context.font = "12px system-ui, sans-serif";
  const width = Math.max(...[title, ...names].map((text) => context.measureText(text).width)) + 40;
  context.fillStyle = ground;
  context.globalAlpha = 0.88;
  context.fillRect(8, 8, width, 22 + 16 * names.length);
  context.globalAlpha = 1;
  context.fillStyle = isDark(state) ? "#FFFFFF" : "#1D2329";
  context.fillText(title, 14, 24);
  names.forEach((name, k) => {
    const y = 40 + 16 * k;
    context.fillText(name, 40, y);
    context.strokeStyle = colours[k];
    context.lineWidth = 2.5;
    context.setLineDash(dashes[k]);
    context.beginPath();
    context.moveTo(14, y - 4);
    context.lineTo(34, y - 4);
    context.stroke();
  });
}
