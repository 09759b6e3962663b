// The view in the address: what is seen can be sent as a link.

const PREFIX = "#explore;";
/** @type {NumberChoice[]} */
const NUMBERS = ["minExperts", "realMin", "pMin", "pMax", "dMin", "dMax", "draw"];
/** @type {("singletons" | "undecided")[]} */
const FLAGS = ["singletons", "undecided"];
/** @type {("colour" | "show")[]} */
const NAMES = ["colour", "show"];

/** @param {State} state @param {View} view @param {boolean} full */
function writeFragment(state, view, full) {
  const { data } = state;
  /** @type {{ [key: string]: string | number }} */
  const parts = { x: (view.x + data.origin[0]).toPrecision(8), y: (view.y + data.origin[1]).toPrecision(8), zoom: (view.scale / view.fitScale()).toPrecision(4) };
  const usual = choicesFor(data);
  for (const key of [...NUMBERS, ...NAMES]) if (state[key] !== usual[key]) parts[key] = String(state[key]);
  for (const key of FLAGS) if (state[key]) parts[key] = 1;
  if (state.off.size) parts.off = [...state.off].join(",");
  if (state.compare) parts.compare = state.compare.join(",");
  if (state.region) parts.region = state.region.map((end, k) => (end + data.origin[k % 2]).toPrecision(8)).join(",");
  if (state.selected >= 0) parts.object = data.clusterName[state.selected];
  if (full) parts.full = 1;
  const text = Object.entries(parts).map(([key, value]) => `${key}=${value}`).join(";");
  try {
    history.replaceState(null, "", PREFIX + text);
  } catch {
    // A page within another, as in a notebook, has no address to keep it in.
  }
}

/** Choices and view of a link; whatever in it makes no sense is left out. */
/** @param {Data} data @param {string} fragment @returns {{ choices: Changes, place: [number, number, number] | null, full: boolean } | null} */
function readFragment(data, fragment) {
  if (!fragment.startsWith(PREFIX)) return null;
  /** @type {{ [key: string]: string }} */
  const parts = Object.fromEntries(fragment.slice(PREFIX.length).split(";").map((part) => part.split("=")));
  /** @param {string | undefined} text */
  const numbers = (text) => (text ? text.split(",").map(Number) : []);
  /** @param {number} f */
  const isExpert = (f) => Number.isInteger(f) && f >= 0 && f < data.experts.length;
  /** @type {Changes} */
  const choices = {};
  for (const key of NUMBERS) if (parts[key] && Number.isFinite(Number(parts[key]))) choices[key] = Number(parts[key]);
  if (choices.minExperts) choices.minExperts = Math.min(Math.max(Math.round(choices.minExperts), 1), data.experts.length);
  if (choices.draw !== undefined) choices.draw = Math.min(Math.max(Math.round(choices.draw), -1), data.drawsUsed - 1);
  if (!data.clusterReal) delete choices.realMin;
  if (!data.size) for (const key of /** @type {const} */ (["dMin", "dMax"])) delete choices[key];
  for (const key of FLAGS) if (parts[key]) choices[key] = true;
  if (Object.hasOwn(COLOURINGS, parts.colour) && (parts.colour !== "real" || data.clusterReal) && (parts.colour !== "size" || data.size)) choices.colour = /** @type {Colouring} */ (parts.colour);
  if (["items", "objects", "both"].includes(parts.show)) choices.show = /** @type {Choices["show"]} */ (parts.show);
  choices.off = new Set(numbers(parts.off).filter(isExpert));
  const compare = numbers(parts.compare);
  if (compare.length === 2 && compare.every(isExpert)) choices.compare = [compare[0], compare[1]];
  const region = numbers(parts.region);
  if (data.hasPlaces && region.length === 4 && region.every(Number.isFinite)) choices.region = /** @type {Box} */ (region.map((end, k) => end - data.origin[k % 2]));
  choices.selected = parts.object ? data.clusterName.indexOf(Number(parts.object)) : -1;
  /** @type {[number, number, number]} */
  const place = [Number(parts.x) - data.origin[0], Number(parts.y) - data.origin[1], Number(parts.zoom)];
  return { choices, place: place.every(Number.isFinite) ? place : null, full: Boolean(parts.full) };
}
