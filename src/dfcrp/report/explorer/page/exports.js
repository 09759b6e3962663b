// What can be taken away: the filtered catalogue as CSV, the view as PNG.

/** The rows of catalogue.csv that pass the filters, with the same columns. */
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
function catalogueCells(data, quantity, k) {
  if (quantity.text) return [quoted(valueOf(data, quantity, k), ",")];
  const mean = quantity.values[k];
  const whole = (value) => Number(value.toPrecision(10));
  return [whole(mean), short(quantity.sd[k]), whole(mean + quantity.lo[k]), whole(mean + quantity.hi[k])];
}

/** What single precision holds. */
function short(value) {
  return Number(value.toPrecision(7));
}

function quoted(text, delimiter) {
  return /["\r\n]/.test(text) || text.includes(delimiter) ? `"${text.replaceAll('"', '""')}"` : text;
}

function download(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function bindExports(state, view, map) {
  byId("csv").addEventListener("click", () => download(new Blob([catalogueCsv(state, map)], { type: "text/csv" }), "catalogue-filtered.csv"));
  byId("png").addEventListener("click", () => {
    const [below, above] = [byId("outlines"), byId("overlay")];
    const picture = element("canvas", { width: below.width, height: below.height });
    const context = picture.getContext("2d");
    context.drawImage(below, 0, 0);
    context.drawImage(above, 0, 0);
    const ratio = below.width / view.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLegend(context, state, map.colours);
    picture.toBlob((blob) => download(blob, "map.png"), "image/png");
  });
}

/** The legend on a picture, as it stands beside the map on the page. */
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
