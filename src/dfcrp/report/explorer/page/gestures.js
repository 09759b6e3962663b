// Mouse, touch pad, touch and keys.

/** Movement in pixels below which a press is a click. */
const CLICK = 5;

/** @param {State} state @param {View} view @param {ExplorerMap} map @param {Overlay} overlay @param {Actions} actions */
function bindGestures(state, view, map, overlay, actions) {
  const canvas = byId("overlay");
  /** @type {Map<number, Place>} */
  const pointers = new Map();
  /** @type {{ at: Place, moved: boolean, region: boolean } | null} */
  let pressed = null;
  /** @param {MouseEvent} event @returns {Place} */
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    const at = place(event);
    pointers.set(event.pointerId, at);
    pressed = { at, moved: false, region: (event.shiftKey && state.data.hasPlaces) || actions.drawingRegion() };
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    showPlace(state, view, at);
    showTip(state, view, map, pointers.size ? null : at);
    const before = pointers.get(event.pointerId);
    if (!before || !pressed) return;
    if (Math.hypot(at[0] - pressed.at[0], at[1] - pressed.at[1]) > CLICK) pressed.moved = true;
    if (pointers.size > 1) pinch(view, pointers, event.pointerId, at);
    else if (pressed.region) {
      overlay.dragged = box(view, pressed.at, at);
      overlay.draw();
    } else if (pressed.moved) {
      canvas.classList.add("moving");
      view.pan(at[0] - before[0], at[1] - before[1]);
    }
    pointers.set(event.pointerId, at);
  });
  /** @param {PointerEvent} event */
  const release = (event) => {
    const at = place(event);
    pointers.delete(event.pointerId);
    canvas.classList.remove("moving");
    if (!pressed || pointers.size) return;
    const { at: from, moved, region } = pressed;
    pressed = null;
    overlay.dragged = null;
    if (event.type === "pointercancel") return overlay.draw();
    if (region && moved) actions.setRegion(box(view, from, at));
    else if (!moved) state.set({ selected: clusterAt(state, view, map, at[0], at[1]) });
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => {
    byId("place").textContent = "";
    showTip(state, view, map, null);
  });
  canvas.addEventListener("dblclick", (event) => view.zoom(2, ...place(event)));
  bindWheel(canvas, view, place, actions);
  byId("root").addEventListener("keydown", (event) => onKey(event, state, view, actions));
}

/** @param {View} view @param {Place} from @param {Place} to @returns {Box} */
function box(view, from, to) {
  const [x0, y0] = view.toData(...from);
  const [x1, y1] = view.toData(...to);
  return [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
}

/** @param {State} state @param {View} view @param {Place} at */
function showPlace(state, view, at) {
  const { origin, placeDigits, ground, hasPlaces } = state.data;
  if (!hasPlaces) return;
  const [x, y] = view.toData(...at);
  const digits = Math.max(placeDigits - 1, 0);
  const words = [ground.shownX(x), y + origin[1]].map((value, k) => `${ground.axes[k]} ${value.toFixed(digits)}${ground.degree}`).filter((_, k) => ground.axes[k]);
  // A map of degrees may be wider than the sphere.
  byId("place").textContent = ground.degree && Math.abs(y + origin[1]) > 90 ? "" : words.join(", ");
}

/** What lies under the pointer, in words, beside it; nothing for null. */
/** @param {State} state @param {View} view @param {ExplorerMap} map @param {Place | null} at */
function showTip(state, view, map, at) {
  const tip = byId("tip");
  const k = at ? clusterAt(state, view, map, ...at) : -1;
  tip.hidden = k < 0;
  if (!at || k < 0) return;
  tip.textContent = objectInWords(state, k);
  const right = at[0] > view.width / 2;
  Object.assign(tip.style, {
    left: right ? "" : `${at[0] + 14}px`, right: right ? `${view.width - at[0] + 14}px` : "",
    top: `${Math.min(at[1] + 12, view.height - 40)}px`,
  });
}

/** "Object 12: marked by 5 of 6 experts, 34.2 wide; click for more". */
/** @param {State} state @param {number} k */
function objectInWords(state, k) {
  const { data } = state;
  const fields = data.quantities.filter(({ text }) => text).map((field) => valueInWords(data, field, k)).filter(Boolean);
  const size = data.size ? data.quantities[data.size.quantity] : null;
  const said = [`${data.verb} by ${data.clusterExperts[k]} of ${counted(data.experts.length, "expert")}`];
  if (fields.length) said.unshift(fields.join(" "));
  if (size) said.push(`${size.label} ${valueInWords(data, size, k)}${size.unit}`);
  said.push(data.clusterReal ? `real with probability ${probability(data.clusterReal[k])}` : `P(≥ ${data.minExperts} experts) ${probability(consensusProbability(data, k, Math.min(data.minExperts, data.experts.length)))}`);
  if (data.clusterLeast[k] < data.undecidedBelow) said.push("undecided");
  return `Object ${data.clusterName[k]}: ${said.join(", ")}`;
}

/** Two fingers move and zoom at once. */
/** @param {View} view @param {Map<number, Place>} pointers @param {number} moving @param {Place} at */
function pinch(view, pointers, moving, at) {
  const [other] = [...pointers].filter(([id]) => id !== moving).map(([, place]) => place);
  const before = pointers.get(moving) ?? at;
  /** @param {Place} a */
  const apart = (a) => Math.max(Math.hypot(a[0] - other[0], a[1] - other[1]), 1);
  /** @param {Place} a @returns {Place} */
  const middle = (a) => [(a[0] + other[0]) / 2, (a[1] + other[1]) / 2];
  const [from, to] = [middle(before), middle(at)];
  view.pan(to[0] - from[0], to[1] - from[1]);
  view.zoom(apart(at) / apart(before), ...to);
}

/** The wheel zooms once the map has the focus: until then the page scrolls, as readers expect. */
/** @param {HTMLCanvasElement} canvas @param {View} view @param {(event: MouseEvent) => Place} place @param {Actions} actions */
function bindWheel(canvas, view, place, actions) {
  let hiding = 0;
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !actions.isFull() && !event.ctrlKey) {
      byId("hint").hidden = false;
      clearTimeout(hiding);
      hiding = setTimeout(() => (byId("hint").hidden = true), 1200);
      return;
    }
    event.preventDefault();
    // A touch pad's pinch comes as a wheel with Ctrl and small steps.
    const lines = event.deltaMode === 1 ? 16 : 1;
    view.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), ...place(event));
  }, { passive: false });
}

/** @param {KeyboardEvent} event @param {State} state @param {View} view @param {Actions} actions */
function onKey(event, state, view, actions) {
  if (event.key === "Escape") return actions.letGo();
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof Element && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const step = 0.15 * Math.min(view.width, view.height);
  /** @type {{ [key: string]: () => void }} */
  const keys = {
    "+": () => view.zoom(1.4), "=": () => view.zoom(1.4), "-": () => view.zoom(1 / 1.4),
    0: () => view.fit(), Home: () => view.fit(),
    n: () => stepUndecided(state, 1), p: () => stepUndecided(state, -1),
    "[": () => stepDraw(state, -1), "]": () => stepDraw(state, 1),
    r: actions.startRegion, f: actions.toggleFull, "/": () => byId("query").focus(),
  };
  /** @type {{ [key: string]: Place }} */
  const arrows = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  const onMap = event.target === byId("overlay");
  if (arrows[event.key] && onMap) view.pan(...arrows[event.key]);
  else if (keys[event.key]) keys[event.key]();
  else return;
  event.preventDefault();
}
