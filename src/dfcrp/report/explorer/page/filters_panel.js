// The controls of the filters: each shows the state and changes it.

/** @param {State} state */
function bindFilters(state) {
  const { data } = state;
  byId("least").max = String(data.experts.length);
  bindRange(state, "least", "minExperts", (value) => `${counted(value, "expert")} of ${data.experts.length}`);
  if (data.clusterReal) bindReality(state);
  bindRange(state, "p-min", "pMin", (value) => number(value, 2), (value) => ({ pMax: Math.max(value, state.pMax) }));
  bindRange(state, "p-max", "pMax", (value) => number(value, 2), (value) => ({ pMin: Math.min(value, state.pMin) }));
  showWhatThereIs(data);
  for (const [id, key] of /** @type {const} */ ([["d-min", "dMin"], ["d-max", "dMax"]])) {
    bind(state, byId(id), "input", (input) => ({ [key]: input.value === "" ? null : Number(input.value) }), (input) => {
      const shown = state[key] === null ? "" : String(state[key]);
      if (document.activeElement !== input) input.value = shown;
    });
  }
  for (const key of /** @type {const} */ (["singletons", "undecided"])) bindChecked(state, key, key);
  bindChecked(state, "image", "showImage");
  byId("image-label").hidden = !data.image;
  const colours = byId("colour"), shown = byId("show");
  bind(state, colours, "change", () => ({ colour: /** @type {Colouring} */ (colours.value), compare: null }), () => { colours.value = state.colour; });
  bind(state, shown, "change", () => ({ show: /** @type {Choices["show"]} */ (shown.value) }), () => { shown.value = state.show; });
  bindExperts(state);
  bindDraw(state);
  byId("clear").addEventListener("click", () => clearFilters(state));
}

/** Sizes are asked for, and places shown, only where there are any. */
/** @param {Data} data */
function showWhatThereIs({ size, hasPlaces, equalScales, lanes }) {
  for (const id of ["size-filter", "sizes-figure"]) byId(id).hidden = !size;
  if (!size) byId("colour").querySelector("[value=size]")?.remove();
  byId("region").hidden = !hasPlaces;
  byId("note").hidden = hasPlaces && (equalScales || lanes !== null);
}

/** What is real takes the place of how many experts agree; both stand side by side on request. */
/** @param {State} state */
function bindReality(state) {
  byId("reality").hidden = false;
  byId("colour").prepend(element("option", { value: "real" }, "probability of being real"));
  bindRange(state, "real", "realMin", (value) => number(value, 2));
  const box = byId("by-experts");
  const show = () => { byId("agreement").hidden = !box.checked; };
  box.checked = state.data.sideBySide || state.minExperts > 1 || state.pMin > 0 || state.pMax < 1;
  box.addEventListener("change", () => {
    show();
    if (!box.checked) state.set({ minExperts: CHOICES.minExperts, pMin: CHOICES.pMin, pMax: CHOICES.pMax });
  });
  show();
  if (!state.data.realObjects) return;
  const { mean, lo, hi } = state.data.realObjects.missed;
  const more = mean[0] < 0.5 ? "Probably none were" : `About ${number(mean[0])} more ${mean[0] < 1.5 ? "was" : "were"}`;
  byId("missed").textContent = `${more} missed by everybody (95 %: ${interval(lo[0], hi[0])}).`;
  byId("missed").hidden = false;
  byId("count-noun").textContent = "real objects";
}

/** One draw after the other, in place of the catalogue. */
/** @param {State} state */
function bindDraw(state) {
  const { data } = state;
  byId("draw").max = String(data.drawsUsed);
  /** @param {number} value */
  const words = (value) => (value > 0 ? `draw ${number(value)} of ${number(data.drawsUsed)}: ${counted(clustersOfDraw(data, value - 1), "object")}` : "the catalogue");
  bind(state, byId("draw"), "input", (input) => ({ draw: Number(input.value) - 1 }), (input) => {
    input.value = String(state.draw + 1);
    byId("draw-value").textContent = words(state.draw + 1);
    input.setAttribute("aria-valuetext", words(state.draw + 1));
  });
}

/** How many clusters a draw has, false marks among them. */
/** @param {Data} data @param {number} draw */
function clustersOfDraw(data, draw) {
  data.clustersByDraw ??= countByDraw(data, () => true, () => 1);
  return data.clustersByDraw[draw];
}

/** @param {State} state @param {number} by */
function stepDraw(state, by) {
  state.set({ draw: Math.min(Math.max(state.draw + by, -1), state.data.drawsUsed - 1) });
}

/** A control whose event changes the state, and that shows it whenever it changes. */
/** @template {HTMLElement} Control @param {State} state @param {Control} control @param {string} event @param {(control: Control) => Changes} read @param {(control: Control) => void} show */
function bind(state, control, event, read, show) {
  control.addEventListener(event, () => state.set(read(control)));
  state.onChange(() => show(control));
  show(control);
}

/** @param {State} state @param {keyof Controls & ("least" | "real" | "p-min" | "p-max")} id @param {"minExperts" | "realMin" | "pMin" | "pMax"} key @param {(value: number) => string} words @param {(value: number) => Changes} [others] */
function bindRange(state, id, key, words, others = (_) => ({})) {
  bind(state, byId(id), "input", (input) => ({ [key]: Number(input.value), ...others(Number(input.value)) }), (input) => {
    input.value = String(state[key]);
    byId(`${id}-value`).textContent = words(state[key]);
    input.setAttribute("aria-valuetext", words(state[key]));
  });
}

/** @param {State} state @param {"singletons" | "undecided" | "image"} id @param {FlagChoice} key */
function bindChecked(state, id, key) {
  bind(state, byId(id), "change", (box) => ({ [key]: box.checked }), (box) => { box.checked = state[key]; });
}

/** @param {State} state */
function bindExperts(state) {
  const { experts } = state.data;
  const everybody = new Set(experts.keys());
  experts.forEach((name, f) => {
    const box = element("input", { type: "checkbox", "data-expert": f });
    byId("experts").append(element("label", { title: name }, box, element("span", {}, name)));
    const read = () => {
      const off = new Set(state.off);
      if (box.checked) off.delete(f);
      else off.add(f);
      return { off };
    };
    bind(state, box, "change", read, () => { box.checked = !state.off.has(f); });
  });
  byId("all").addEventListener("click", () => state.set({ off: new Set() }));
  byId("none").addEventListener("click", () => state.set({ off: everybody }));
}
