// Small drawings beside the map, as SVG: they stay sharp and follow the page's colours.

const CHART = { width: 210, height: 130, left: 42, right: 14, top: 8, bottom: 20 };

/** @param {string} label */
function chart(label) {
  return drawing("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": label });
}

/** A function from values to pixels. */
/** @param {number} from @param {number} to @param {number} low @param {number} high */
function scale(from, to, low, high) {
  return (/** @type {number} */ value) => low + ((value - from) / (to - from || 1)) * (high - low);
}

/** @param {Element} svg */
function axes(svg) {
  const [bottom, right] = [CHART.height - CHART.bottom, CHART.width - CHART.right];
  svg.append(drawing("path", { class: "axis", d: `M${CHART.left} ${CHART.top}V${bottom}H${right}` }));
}

/** @param {Element} svg @param {number} x @param {number} y @param {string} text @param {string} [anchor] */
function label(svg, x, y, text, anchor = "middle") {
  svg.append(drawing("text", { x, y, "text-anchor": anchor }, text));
}

/** How often each number of objects was drawn. */
/** @param {Summary} found @param {string} words */
function histogram(found, words) {
  const values = found.samples;
  const svg = chart(words);
  if (!values.length) return svg;
  const [low, high] = [values[0], values[values.length - 1]];
  const width = Math.max(1, Math.ceil((high - low + 1) / 30));
  const bins = new Float64Array(Math.max(Math.ceil((high - low + 1) / width), 1));
  for (const value of values) bins[Math.floor((value - low) / width)]++;
  const spare = Math.max(0, 5 - bins.length) / 2;
  const x = scale(low - 0.5 - spare * width, low - 0.5 + (bins.length + spare) * width, CHART.left, CHART.width - CHART.right);
  const base = CHART.height - CHART.bottom;
  const y = scale(0, Math.max(...bins) / values.length, base, CHART.top);
  svg.append(drawing("rect", { class: "band", x: x(found.lo - 0.5), y: CHART.top, width: x(found.hi + 0.5) - x(found.lo - 0.5), height: base - CHART.top }));
  bins.forEach((count, k) => {
    const [left, right] = [x(low - 0.5 + k * width), x(low - 0.5 + (k + 1) * width)];
    const top = y(count / values.length);
    svg.append(drawing("rect", { class: "bar", x: left + 0.5, y: top, width: Math.max(right - left - 1, 0.5), height: base - top },
      drawing("title", {}, `${number(low + k * width)}: ${percent(count / values.length)} of draws`)));
  });
  axes(svg);
  const step = Math.max(Math.ceil((high - low) / 4), 1);
  for (let value = low; value <= high; value += step) label(svg, x(value), base + 14, number(value));
  label(svg, CHART.left - 4, CHART.top + 8, `${number((100 * Math.max(...bins)) / values.length)} %`, "end");
  return svg;
}

/** N(≥ D) with its 95 % band, on logarithmic scales. */
/** @param {SizePoint[]} points @param {State} state */
function sizeCurve(points, state) {
  const svg = chart("Number of objects of at least a size, with its 95 % band");
  const shown = points.filter((point) => point.hi >= 1);
  if (!shown.length) return svg;
  const [first, last] = [points[0].size, points[points.length - 1].size];
  const logX = scale(Math.log(first), Math.log(last), CHART.left, CHART.width - CHART.right);
  const base = CHART.height - CHART.bottom;
  const logY = scale(Math.log(0.8), Math.log(Math.max(shown[0].hi * 1.2, 2)), base, CHART.top);
  const x = (/** @type {number} */ d) => logX(Math.log(d));
  const y = (/** @type {number} */ n) => logY(Math.log(Math.max(n, 0.8)));
  if (state.dMin !== null || state.dMax !== null) {
    const [from, to] = [state.dMin ?? first, state.dMax ?? last].map((d) => x(Math.min(Math.max(d, first), last)));
    svg.append(drawing("rect", { class: "range", x: from, y: CHART.top, width: Math.max(to - from, 0), height: base - CHART.top }));
  }
  /** @param {"mean" | "lo" | "hi"} key @param {SizePoint[]} list */
  const line = (key, list) => list.map((point) => `${x(point.size).toFixed(1)} ${y(point[key]).toFixed(1)}`).join("L");
  svg.append(drawing("path", { class: "band", d: `M${line("hi", shown)}L${line("lo", [...shown].reverse())}Z` }));
  svg.append(drawing("path", { class: "curve", d: `M${line("mean", shown.filter((point) => point.mean >= 0.5))}` }));
  axes(svg);
  for (const d of logTicks(first, last)) label(svg, x(d), base + 14, ofSize(d));
  for (const n of logTicks(1, shown[0].hi, [1])) label(svg, CHART.left - 4, y(n) + 4, number(n), "end");
  return svg;
}

/** 0.5 and 20 rather than 0.50 and 20.0. */
/** @param {number} value */
function ofSize(value) {
  return Number(value.toPrecision(2)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** @param {number} low @param {number} high @param {number[]} [steps] */
function logTicks(low, high, steps = [1, 2, 5]) {
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const step of steps) if (step * power >= low && step * power <= high) found.push(step * power);
  }
  return found;
}
