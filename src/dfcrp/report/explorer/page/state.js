// What the reader has chosen. Everything shown follows from the data and from this.

/** @type {Choices} */
const CHOICES = {
  colour: "count",
  show: "items",
  minExperts: 1,
  realMin: 0,
  pMin: 0,
  pMax: 1,
  dMin: null,
  dMax: null,
  singletons: false,
  undecided: false,
  region: null,
  selected: -1,
  compare: null,
  /** One draw in place of the catalogue; -1 is none. */
  draw: -1,
  ghosts: true,
  showImage: true,
  theme: null,
};

/** Where everything begins; what is real comes first where the model knows, and items without a place
 *  are shown in the cells of their objects. */
/** @param {Data} data */
function choicesFor(data) {
  return { ...CHOICES, colour: data.clusterReal ? "real" : CHOICES.colour, show: data.hasPlaces && !data.lanes ? CHOICES.show : "both" };
}

/** @param {Data} data @returns {State} */
function makeState(data) {
  /** @type {((changed: Set<string>) => void)[]} */
  const listeners = [];
  /** @type {State} */
  const state = {
    data,
    ...choicesFor(data),
    off: new Set(),
    /** Change some choices, then tell everybody which. */
    set(changes) {
      Object.assign(state, changes);
      const names = new Set(Object.keys(changes));
      for (const listener of listeners) listener(names);
    },
    onChange(listener) {
      listeners.push(listener);
    },
  };
  return state;
}

/** Back to where everything is shown; the view, the colours and the theme stay. */
/** @param {State} state */
function clearFilters(state) {
  const { minExperts, realMin, pMin, pMax, dMin, dMax, singletons, undecided } = CHOICES;
  state.set({ minExperts, realMin, pMin, pMax, dMin, dMax, singletons, undecided, off: new Set(), region: null });
}

const FILTERS = ["minExperts", "realMin", "pMin", "pMax", "dMin", "dMax", "singletons", "undecided", "off", "region"];
