// Colours that all kinds of colour vision tell apart, on light and on dark ground.

/** Chosen so that any two differ by 19 or more (CIEDE2000) in full colour vision and where red, green or
 *  blue is not seen, and each stands out from the ground by 3 to 1. A test computes these numbers. */
const DISTINCT = {
  light: ["#2288FF", "#552200", "#227755", "#AA8899", "#4400EE", "#889900", "#333344"],
  dark: ["#66AAFF", "#DD9900", "#DDFFBB", "#AA4400", "#8844BB", "#FFEEFF", "#778877"],
};
/** From few to many: cividis, without its palest end on white and its darkest on black. */
const RAMP = {
  light: ["#9A8420", "#827E5C", "#6F7480", "#4A5A86", "#1F3F80", "#00224E"],
  dark: ["#4F6FA8", "#7D8FA6", "#A39F8C", "#C4B56C", "#E2CB4B", "#FDE737"],
};
/** From doubtful to certain. */
const DOUBT = {
  light: ["#B03A00", "#D97400", "#3A8CC4", "#1F6FA8", "#7A868F"],
  dark: ["#FF8A4C", "#FFC04D", "#7CC4F5", "#4A98D3", "#6F7B85"],
};
const DOUBT_ENDS = [0.5, 0.75, 0.9, 0.99];
const DOUBT_NAMES = ["below 0.5", "0.5 to 0.75", "0.75 to 0.9", "0.9 to 0.99", "0.99 and above"];
const REAL_ENDS = [0.1, 0.5, 0.9, 0.99];
const REAL_NAMES = ["below 0.1", "0.1 to 0.5", "0.5 to 0.9", "0.9 to 0.99", "0.99 and above"];
/** Dashes tell apart the experts who share a colour. */
const DASHES = [[], [5, 3], [1.5, 3]];

/** @param {Pick<State, "data" | "showImage" | "theme">} state */
function isDark(state) {
  if (state.showImage && state.data.image) return true;
  return state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** @param {string[]} ramp @param {number} share */
function mix(ramp, share) {
  const at = share * (ramp.length - 1);
  const below = Math.min(Math.floor(at), ramp.length - 2);
  /** @param {string} colour @param {number} k */
  const channel = (colour, k) => parseInt(colour.slice(1 + 2 * k, 3 + 2 * k), 16);
  const parts = [0, 1, 2].map((k) =>
    Math.round(channel(ramp[below], k) + (at - below) * (channel(ramp[below + 1], k) - channel(ramp[below], k))),
  );
  return `rgb(${parts.join(",")})`;
}

/** Black or white, whichever has more contrast to a colour "rgb(r,g,b)": always 4.5 to 1. */
/** @param {string} colour */
function legibleOn(colour) {
  const linear = channels(colour).map((value) => (value <= 10 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000000" : "#FFFFFF";
}

/** How to colour: {colours, dashes, names, ofItem, ofCluster}; the last two give an index, and
 *  ofCluster is null where an object has no colour of its own. */
/** @param {State} state @returns {Colours} */
function colouring(state) {
  const shade = isDark(state) ? "dark" : "light";
  /** @type {(state: State, shade: Shade) => Colourings} */
  const wanted = state.draw >= 0 ? drawColours : state.compare ? comparisonColours : COLOURINGS[state.colour];
  const made = wanted(state, shade);
  const { ofCluster } = made;
  const byCluster = (/** @type {number} */ i) => (ofCluster ? ofCluster(state.data.itemCluster[i]) : 0);
  return { ...made, dashes: made.dashes ?? made.colours.map(() => DASHES[0]), ofItem: made.ofItem ?? byCluster };
}

/** @type {Record<Colouring, (state: State, shade: Shade) => Colourings>} */
const COLOURINGS = {
  count(state, shade) {
    const most = state.data.experts.length;
    const shown = Math.min(most, 12);
    /** @param {number} n */
    const of = (n) => Math.round(((n - 1) / Math.max(most - 1, 1)) * (shown - 1));
    const colours = Array.from({ length: shown }, (_, k) => mix(RAMP[shade], shown > 1 ? k / (shown - 1) : 1));
    const names = colours.map((_, k) => number(1 + (k / Math.max(shown - 1, 1)) * (most - 1)));
    return { colours, names, title: "Experts who share it", ofCluster: (k) => of(state.data.clusterExperts[k]) };
  },
  cluster(state, shade) {
    const assigned = neighbourColours(state.data, DISTINCT[shade].length);
    return { colours: DISTINCT[shade], names: [], title: "Neighbouring objects differ in colour",
      ofCluster: (k) => assigned[k] };
  },
  expert(state, shade) {
    const base = DISTINCT[shade];
    const experts = state.data.experts;
    return {
      colours: experts.map((_, f) => base[f % base.length]),
      dashes: experts.map((_, f) => DASHES[Math.floor(f / base.length) % DASHES.length]),
      names: experts, title: "Expert", ofItem: (i) => state.data.itemExpert[i], ofCluster: null,
    };
  },
  probability(state, shade) {
    /** @param {number} p */
    const bin = (p) => DOUBT_ENDS.filter((end) => p >= end).length;
    return { colours: DOUBT[shade], names: DOUBT_NAMES, title: "Membership probability",
      ofItem: (i) => bin(state.data.itemProbability[i]), ofCluster: (k) => bin(state.data.clusterLeast[k]) };
  },
  real(state, shade) {
    /** @param {number} p */
    const of = (p) => REAL_ENDS.filter((end) => p >= end).length;
    const colours = REAL_NAMES.map((_, k) => mix(RAMP[shade], k / (REAL_NAMES.length - 1)));
    return { colours, names: REAL_NAMES, title: "Probability of being real", ofCluster: (k) => of(state.data.clusterReal?.[k] ?? 1) };
  },
  size(state, shade) {
    const { classEdges, classNames } = state.data;
    /** @param {number} d */
    const of = (d) => classEdges.filter((edge) => d >= edge).length;
    const names = classNames.length ? classNames : ["all"];
    return { colours: names.map((_, k) => DISTINCT[shade][k % 7]), names, title: "Size class",
      ofCluster: (k) => of(state.data.clusterSize?.[k] ?? 0) };
  },
};

/** One draw: items by the number of experts who share the cluster that they are in there. */
/** @param {State} state @param {Shade} shade @returns {Colourings} */
function drawColours(state, shade) {
  const of = clustersInDraw(state.data, state.draw);
  const { colours, names } = COLOURINGS.count(state, shade);
  const most = Math.max(state.data.experts.length - 1, 1);
  /** @param {number} g */
  const bin = (g) => Math.round(((state.data.groupExperts(g) - 1) / most) * (colours.length - 1));
  return { colours, names, title: `Draw ${state.draw + 1}: experts who share it`, ofItem: (i) => bin(of[i]), ofCluster: null };
}

/** What one expert found and the other did not. */
/** @param {State} state @param {Shade} shade @returns {Colourings} */
function comparisonColours(state, shade) {
  const [a, b] = state.compare ?? [0, 0];
  const { data } = state;
  /** @param {number} k @param {number} f */
  const has = (k, f) => data.clusterMembers.of(k).some((i) => data.itemExpert[i] === f);
  const kinds = Array.from({ length: data.clusters }, (_, k) => {
    const [first, second] = [has(k, a), has(k, b)];
    return first && second ? 2 : first ? 0 : second ? 1 : 3;
  });
  const grey = shade === "dark" ? ["#9AA6B0", "#3A444D"] : ["#7A868F", "#D3D9DE"];
  const [one, other] = [data.experts[a], data.experts[b]];
  return {
    colours: [DISTINCT[shade][0], DISTINCT[shade][1], ...grey],
    dashes: [[], [5, 3], [], []],
    names: [`${one}, not ${other}`, `${other}, not ${one}`, "both", "neither"],
    title: "Comparison", ofCluster: (k) => kinds[k],
  };
}

/** One of so many colours for each object, not one that a near neighbour has. */
/** @param {Data} data @param {number} count */
function neighbourColours(data, count) {
  data.neighbourColours ??= new Map();
  const known = data.neighbourColours.get(count);
  if (known) return known;
  const assigned = new Uint8Array(data.clusters).fill(255);
  const { x, y, reach, grid } = data.objects;
  // Points and cells have neighbours at the distance that they would have if they lay evenly.
  /** @param {Numbers} values */
  const ends = (values) => Array.from(values).reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
  const [[left, right], [low, high]] = [ends(x), ends(y)];
  const even = data.objectShape === "point" || !data.hasPlaces ? Math.sqrt(((right - left) * (high - low)) / data.clusters) : 0;
  const used = new Float64Array(count);
  for (let k = 0; k < data.clusters; k++) {
    used.fill(0);
    const near = 1.5 * Math.max(reach[k], even);
    grid.visit(x[k] - near, y[k] - near, x[k] + near, y[k] + near, (j) => {
      if (assigned[j] < count) used[assigned[j]] += 1;
    });
    let best = k % count;
    for (let c = 0; c < count; c++) if (used[c] < used[best]) best = c;
    assigned[k] = best;
  }
  data.neighbourColours.set(count, assigned);
  return assigned;
}
