// Puts the pieces together: a change of the state redraws what depends on it, once a frame.

async function startExplorer() {
  const data = await readData();
  prepareDraws(data);
  const root = byId("root");
  root.hidden = false;
  const state = makeState(data);
  const linked = readFragment(data, location.hash);
  if (linked) Object.assign(state, linked.choices);
  const view = makeView(data, byId("overlay"));
  const map = makeMap(state, view, byId("outlines"));
  const overlay = makeOverlay(state, view, byId("overlay"));
  const panels = { counts: makeCountsPanel(state, map), object: makeObjectPanel(state, overlay), experts: makeExpertsPanel(state), table: makeTablePanel(state, map) };
  const later = makeScheduler({
    outlines: () => drawTimed(state, map, explorer),
    overlay: () => overlay.draw(),
    legend: () => showLegend(map.colours),
    counts: () => panels.counts.update(),
    object: () => panels.object.update(),
    experts: () => panels.experts.update(),
    table: () => panels.table.update(),
    fragment: () => writeFragment(state, view, root.classList.contains("full")),
  });
  /** @type {{ [part: string]: any, drawn: number[] }} */
  const explorer = { state, view, map, overlay, panels, data, drawn: [], later };
  window.explorer = explorer;
  const actions = makeActions(state, later);
  view.onMove = () => later("outlines", "overlay", "fragment");
  state.onChange((changed) => react(changed, state, view, map, later));
  bindFilters(state);
  bindButtons(state, view, actions);
  bindSearch(state, view, actions.say);
  bindExports(state, view, map, overlay);
  bindGestures(state, view, map, overlay, actions);
  bindTabs();
  if (linked?.full) actions.toggleFull();
  // The legend takes some of the map's height, and the view is relative to what is left.
  showLegend(map.colours);
  view.resize();
  if (linked?.place) view.go(linked.place[0], linked.place[1], linked.place[2] * view.fitScale());
  if (state.selected >= 0) openTab("object");
  later.now("outlines", "overlay", "legend", "counts", "object", "experts", "table");
  // The address names no element of the page, so the browser stays at its top.
  if (linked && !linked.full) document.getElementById("explore")?.scrollIntoView();
  new ResizeObserver(() => view.resize()).observe(byId("map"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.set({ theme: state.theme }));
  explorer.readyAt = performance.now();
  root.dataset.ready = "yes";
}

/** What a change of some choices makes necessary. */
/** @param {Set<string>} changed @param {State} state @param {View} view @param {ExplorerMap} map @param {Later} later */
function react(changed, state, view, map, later) {
  const any = (/** @type {string[]} */ ...names) => names.some((name) => changed.has(name));
  if (any(...FILTERS)) {
    map.refilter();
    later("outlines", "overlay", "counts");
  }
  if (any("off", "region", "compare")) later("experts");
  if (any("colour", "compare", "theme", "showImage", "draw")) {
    map.recolour();
    later("outlines", "overlay", "legend");
  }
  if (any("theme")) {
    document.documentElement.dataset.theme = state.theme ?? "";
    byId("theme").textContent = isDark({ ...state, showImage: false }) ? "Light" : "Dark";
    later("experts");
  }
  if (any("show")) later("outlines");
  if (any(...FILTERS)) later("table");
  if (any("selected", "ghosts")) later("overlay");
  if (any("selected", "minExperts")) later("object");
  if (any("selected")) openTab(state.selected >= 0 ? "object" : "filters");
  if (any("goTo") && state.goTo !== undefined) view.goTo(state.goTo);
  later("fragment");
}

/** Collects jobs and does each once in the next frame; `now` does them at once. */
/** @param {{ [name: string]: () => void }} jobs @returns {Later} */
function makeScheduler(jobs) {
  const waiting = new Set();
  let asked = false;
  const work = () => {
    asked = false;
    const names = Object.keys(jobs).filter((name) => waiting.has(name));
    waiting.clear();
    for (const name of names) jobs[name]();
  };
  const later = /** @type {Later} */ ((...names) => {
    for (const name of names) waiting.add(name);
    if (!asked) requestAnimationFrame(work);
    asked = true;
  });
  later.now = (...names) => {
    for (const name of names) waiting.add(name);
    work();
  };
  return later;
}

/** Draw the map, note how long it took, and say what the eye does not see. */
/** @param {State} state @param {ExplorerMap} map @param {{ drawn: number[] }} explorer */
function drawTimed(state, map, explorer) {
  const began = performance.now();
  map.draw();
  explorer.drawn.push(performance.now() - began);
  if (explorer.drawn.length > 200) explorer.drawn.shift();
  const { noun, nouns } = state.data;
  const words = { outlines: "", objects: `one outline for each object; zoom in for ${nouns} ·`, dots: `a dot for each ${noun}; zoom in for outlines ·` };
  byId("detail").textContent = words[map.detail];
}

/** @param {Colours} look */
function showLegend({ title, names, colours, dashes }) {
  /** @param {number} k */
  const sample = (k) => drawing("svg", { viewBox: "0 0 26 14", "aria-hidden": "true" },
    drawing("line", { x1: 1, x2: 25, y1: 9, y2: 9, stroke: colours[k], "stroke-width": 3, "stroke-dasharray": dashes[k].join(" ") || null }));
  byId("legend").replaceChildren(element("b", {}, title), element("ul", {}, ...names.map((name, k) => element("li", {}, sample(k), " ", name))));
}

/** What buttons and keys share. */
/** @param {State} state @param {Later} later @returns {Actions} */
function makeActions(state, later) {
  const root = byId("root");
  let drawing = false;
  /** @param {boolean} on */
  const setDrawing = (on) => {
    drawing = on;
    byId("region").setAttribute("aria-pressed", String(on || Boolean(state.region)));
  };
  /** @type {Actions} */
  const actions = {
    drawingRegion: () => drawing,
    startRegion() {
      if (!state.data.hasPlaces) return;
      if (state.region) state.set({ region: null });
      else setDrawing(!drawing);
      setDrawing(drawing && !state.region);
    },
    setRegion(region) {
      state.set({ region });
      setDrawing(false);
    },
    isFull: () => root.classList.contains("full"),
    toggleFull() {
      const full = root.classList.toggle("full");
      byId("full").setAttribute("aria-pressed", String(full));
      document.body.style.overflow = full ? "hidden" : "";
      later("fragment");
    },
    /** Esc lets go of one thing after the other. */
    letGo() {
      if (drawing) setDrawing(false);
      else if (state.selected >= 0) state.set({ selected: -1 });
      else if (state.compare) state.set({ compare: null });
      else if (state.region) actions.setRegion(null);
      else if (actions.isFull()) actions.toggleFull();
    },
    say(words, isWrong = false) {
      byId("said").textContent = words;
      byId("query").setAttribute("aria-invalid", String(isWrong));
      byId("query").setCustomValidity(isWrong ? words : "");
      if (isWrong) byId("query").reportValidity();
    },
  };
  state.onChange((changed) => changed.has("region") && setDrawing(false));
  return actions;
}

/** @param {State} state @param {View} view @param {Actions} actions */
function bindButtons(state, view, actions) {
  const does = { in: () => view.zoom(1.6), out: () => view.zoom(1 / 1.6), fit: () => view.fit(), region: actions.startRegion, full: actions.toggleFull,
    theme: () => state.set({ theme: isDark({ ...state, showImage: false }) ? "light" : "dark" }) };
  for (const [id, action] of Object.entries(does)) byId(id).addEventListener("click", action);
  byId("query").addEventListener("input", () => actions.say(""));
  byId("theme").textContent = isDark({ ...state, showImage: false }) ? "Light" : "Dark";
}

/** @param {string} chosen */
function openTab(chosen) {
  for (const name of ["filters", "object"]) {
    byId(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
    byId(name).hidden = name !== chosen;
  }
}

function bindTabs() {
  for (const name of ["filters", "object"]) byId(`tab-${name}`).addEventListener("click", () => openTab(name));
}

startExplorer();
