// Numbers in words, and small pieces of the page. Text from data only ever becomes text nodes.

const SVG = "http://www.w3.org/2000/svg";

/** The element of the explorer with this id (without its prefix). */
/** @template {string} Id @param {Id} id @returns {Id extends keyof Controls ? Controls[Id] : HTMLElement} */
function byId(id) {
  const found = document.getElementById("explorer-" + id);
  if (!found) throw new Error(`the page has no explorer-${id}`);
  return /** @type {any} */ (found);
}

/** What draws on a canvas. */
/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2DSettings} [options] */
function penOf(canvas, options) {
  const pen = canvas.getContext("2d", options);
  if (!pen) throw new Error("this browser draws nothing");
  return pen;
}

/** An element with attributes; strings among the children become text, whatever they hold. */
/** @template {keyof HTMLElementTagNameMap} Name @param {Name} name @param {Attributes} [attributes] @param {...Child} children @returns {HTMLElementTagNameMap[Name]} */
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** @param {string} name @param {Attributes} [attributes] @param {...Child} children @returns {SVGElement} */
function drawing(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** @template {Element} Made @param {Made} made @param {Attributes} attributes @param {Child[]} children @returns {Made} */
function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, String(value));
  }
  for (const child of children) if (child !== null) made.append(child);
  return made;
}

/** "1,234.5"; a dash for what does not exist. */
/** @param {number | null} value @param {number} [digits] */
function number(value, digits = 0) {
  if (value === null || !Number.isFinite(value)) return "–";
  const [whole, part] = fixed(value, digits).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return part ? `${grouped}.${part}` : grouped;
}

/** Rounded as Python rounds, so that the page says what the report says: what lies exactly between
 *  two numbers, which only a multiple of 2^-(digits + 1) can, goes to the even one. */
/** @param {number} value @param {number} digits */
function fixed(value, digits) {
  const scaled = value * 10 ** digits;
  const between = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
  return (between ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
}

/** @param {number} count @param {string} noun @param {string} [nouns] */
function counted(count, noun, nouns = `${noun}s`) {
  return `${number(count)} ${count === 1 ? noun : nouns}`;
}

/** A mean and its interval as they are shown, by the rule of dfcrp.rounding: counts end at whole
 *  numbers, the mean has one decimal, and none where all draws agree; else all have these digits. */
/** @param {Interval} given0 @param {number | null} [digits] */
function estimate({ mean, lo, hi }, digits = null) {
  const known = [mean, lo, hi].every((value) => value !== null && Number.isFinite(value));
  if (!known) return { mean: number(mean, digits ?? 0), interval: "–" };
  const inside = Math.min(Math.max(mean, lo), hi);
  if (digits === null && Number.isInteger(lo) && Number.isInteger(hi)) {
    return { mean: number(inside, lo === hi ? 0 : 1), interval: `${number(lo)} to ${number(hi)}` };
  }
  let places = digits ?? 1;
  const most = places + 3;
  while (lo < hi && number(lo, places) === number(hi, places) && places < most) places++;
  return { mean: number(inside, places), interval: `${number(lo, places)} to ${number(hi, places)}` };
}

/** "3 to 5"; whole numbers stay whole unless digits are given. */
/** @param {number} lo @param {number} hi @param {number | null} [digits] */
function interval(lo, hi, digits = null) {
  return estimate({ mean: lo, lo, hi }, digits).interval;
}

/** Two digits, and never 0 or 1 for what is not quite that. */
/** @param {number} value */
function probability(value) {
  if (value > 0 && value < 0.005) return "< 0.01";
  if (value > 0.995 && value < 1) return "> 0.99";
  return number(value, 2);
}

/** @param {number} share */
function percent(share) {
  if (share > 0 && share < 0.005) return "less than 1 %";
  if (share < 1 && share > 0.995) return "more than 99 %";
  return `${number(100 * Number(fixed(share, 2)))} %`;
}

/** Of counts: the interval ends at whole numbers, rounded outwards, unless objects are weighted. */
/** @param {Float64Array} samples @returns {Summary} */
function summariseCounts(samples) {
  const found = summarise(samples);
  if (!found.samples.every(Number.isInteger)) return found;
  const { mean } = found;
  return { ...found, lo: Math.min(Math.floor(found.lo), Math.floor(mean)), hi: Math.max(Math.ceil(found.hi), Math.ceil(mean)) };
}

/** Mean and equal-tailed 95 % interval, which always holds the mean; values that are NaN are left out. */
/** @param {Float64Array | number[]} samples @returns {Summary} */
function summarise(samples) {
  const values = Float64Array.from(samples.filter((value) => !Number.isNaN(value))).sort();
  if (!values.length) return { mean: NaN, lo: NaN, hi: NaN, samples: values };
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  return { mean, lo: Math.min(quantile(values, 0.025), mean), hi: Math.max(quantile(values, 0.975), mean), samples: values };
}

/** Of ascending values, linear between neighbours. */
/** @param {Numbers} sorted @param {number} share */
function quantile(sorted, share) {
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}
