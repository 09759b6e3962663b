// The experts: a table, a heatmap of how much each pair agrees, and two of them side by side.

const MAX_HEATMAP = 24;

/** @param {State} state */
function makeExpertsPanel(state) {
  let picked = -1;
  /** The first click remembers an expert, the second compares. */
  /** @param {number} f */
  const pick = (f) => {
    if (state.compare) {
      picked = state.compare.includes(f) ? -1 : f;
      state.set({ compare: null });
    } else if (picked < 0 || picked === f) {
      picked = picked === f ? -1 : f;
      panel.update();
    } else {
      /** @type {[number, number]} */
      const pair = [picked, f];
      picked = -1;
      state.set({ compare: pair });
    }
  };
  const panel = {
    update() {
      const found = compareExperts(state);
      const order = [...found.on].sort((a, b) => found.count[a] - found.count[b] || a - b);
      byId("experts-note").textContent = `${state.region ? "in the region, " : ""}${drawsInWords(state.data, found.draws)}; click two to compare`;
      byId("expert-table").replaceChildren(expertTable(state, found, order, picked, pick));
      const shown = order.slice(-MAX_HEATMAP);
      byId("heatmap").replaceChildren(...(shown.length > 1 ? [heatmap(state, found, shown)] : []));
      showComparison(state);
    },
  };
  return panel;
}

/** @param {State} state @param {Comparison} found @param {number[]} order @param {number} picked @param {(f: number) => void} pick */
function expertTable(state, found, order, picked, pick) {
  const { nouns, verb } = state.data;
  const heads = [["expert", ""], [nouns, ""], ["Jaccard", "Mean agreement with the other experts"],
    ["alone, %", `Of the objects that one expert alone ${verb}, the share that is this expert’s`],
    ["missed, %", `Of the objects that all experts but one ${verb}, the share that only this expert did not`]];
  const head = element("tr", {}, ...heads.map(([name, note], k) => element("th", { scope: "col", title: note, class: k ? "number" : "" }, name)));
  /** @param {Interval} value @param {number} digits */
  const cell = (value, digits) => {
    const shown = estimate(value, digits);
    return element("td", { class: "number", title: `95 %: ${shown.interval}` }, shown.mean);
  };
  const rows = order.map((f) => {
    const chosen = f === picked || Boolean(state.compare?.includes(f));
    const name = element("button", { type: "button", "aria-pressed": String(chosen), "data-compare": f, title: "Compare with another", onclick: () => pick(f) }, state.data.experts[f]);
    return element("tr", { "data-row": f }, element("td", {}, name), element("td", { class: "number" }, number(found.count[f])),
      cell(found.jaccard[f], 3), cell(found.alone[f], 2), cell(found.missed[f], 2));
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** @param {State} state @param {Comparison} found @param {number[]} order */
function heatmap(state, found, order) {
  const { experts } = state.data;
  const pairs = new Map();
  let [low, high] = [1, 0];
  for (const f of order) {
    for (const g of order) {
      if (g <= f) continue;
      const value = found.pair(f, g);
      pairs.set(`${f},${g}`, value);
      low = Math.min(low, value.mean);
      high = Math.max(high, value.mean);
    }
  }
  const shade = isDark({ ...state, showImage: false }) ? "dark" : "light";
  /** @param {number} f */
  const row = (f) => element("tr", {}, element("th", { scope: "row", title: experts[f] }, experts[f]), ...order.map((g) => {
    if (f === g) return element("td", {});
    const value = pairs.get(f < g ? `${f},${g}` : `${g},${f}`);
    return element("td", {}, heatCell(state, f, g, value, (value.mean - low) / (high - low || 1), shade));
  }));
  return element("table", { "aria-label": "Jaccard coefficients of pairs of experts" }, element("tbody", {}, ...order.map(row)));
}

/** @param {State} state @param {number} f @param {number} g @param {Interval} value @param {number} share @param {Shade} shade */
function heatCell(state, f, g, value, share, shade) {
  const { experts } = state.data;
  const chosen = state.compare && state.compare[0] === f && state.compare[1] === g;
  const shown = estimate(value, 3);
  const words = `${experts[f]} and ${experts[g]}: ${shown.mean} (95 %: ${shown.interval})`;
  const known = Number.isFinite(share);
  const button = element("button", { type: "button", title: words, "aria-label": words, "aria-pressed": String(Boolean(chosen)), "data-pair": `${f},${g}`,
    onclick: () => state.set({ compare: chosen ? null : [f, g] }) }, known ? number(value.mean, 2).replace("0.", ".") : "–");
  if (known) {
    // Strong agreement is strong colour: dark on white, bright on black.
    const colour = mix(RAMP[shade], share);
    button.style.background = colour;
    button.style.color = legibleOn(colour);
  }
  return button;
}

/** @param {State} state */
function showComparison(state) {
  const box = byId("compare");
  box.hidden = !state.compare;
  if (!state.compare) return;
  const [a, b] = state.compare;
  const [one, other] = [state.data.experts[a], state.data.experts[b]];
  const counts = compareTwo(state, a, b);
  /** @param {string} words @param {Interval} value */
  const part = (words, value) => {
    const shown = estimate(value);
    return element("li", {}, `${words}: `, element("b", {}, shown.mean), ` (95 %: ${shown.interval})`);
  };
  box.replaceChildren(
    element("ul", {}, part(`${one}, not ${other}`, counts.first), part(`${other}, not ${one}`, counts.second), part("both", counts.both)),
    element("button", { type: "button", id: "explorer-compare-end", onclick: () => state.set({ compare: null }) }, "End comparison"));
}
