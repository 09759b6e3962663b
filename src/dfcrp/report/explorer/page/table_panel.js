// The objects that pass the filters as a table: for records the way in, and for everybody who does not use
// the map. Every row leads to its object.

/** Rows shown at once. */
const TABLE_ROWS = 50;

/** @param {State} state @param {ExplorerMap} map @returns {{ update(): void, show(): void }} */
function makeTablePanel(state, map) {
  const { data } = state;
  const box = byId("table");
  let first = 0;
  box.open = !data.hasPlaces;
  const panel = {
    update() {
      first = 0;
      panel.show();
    },
    show() {
      const rows = [];
      for (let k = 0; k < data.clusters; k++) if (map.passing[k] === 2) rows.push(k);
      byId("table-count").textContent = `(${number(rows.length)})`;
      if (!box.open) return;
      rows.sort((a, b) => data.clusterExperts[b] - data.clusterExperts[a] || a - b);
      const shown = rows.slice(first, first + TABLE_ROWS);
      /** @param {string} words @param {number} by */
      const step = (words, by) => element("button", { type: "button", disabled: by < 0 ? first === 0 : first + TABLE_ROWS >= rows.length, onclick: () => { first += by * TABLE_ROWS; panel.show(); } }, words);
      const pages = rows.length > TABLE_ROWS ? [element("p", { class: "explorer-pages" }, step("‹ Previous", -1), ` ${number(first + 1)} to ${number(first + shown.length)} `, step("Next ›", 1))] : [];
      byId("table-rows").replaceChildren(objectTable(state, shown), ...pages);
    },
  };
  box.addEventListener("toggle", panel.show);
  return panel;
}

/** @param {State} state @param {number[]} rows */
function objectTable(state, rows) {
  const { data } = state;
  const likely = data.clusterReal ? "P(real)" : `P(≥ ${data.minExperts} experts)`;
  const heads = ["object", ...data.quantities.map(({ label }) => label), "experts", likely];
  /** @param {number} at */
  const isNumber = (at) => at > 0 && !data.quantities[at - 1]?.text;
  const head = element("tr", {}, ...heads.map((name, at) => element("th", { scope: "col", class: isNumber(at) ? "number" : "" }, name)));
  /** @param {number} k */
  const open = (k) => (/** @type {Event} */ event) => {
    event.preventDefault();
    state.set({ selected: k, goTo: k });
    byId("map").scrollIntoView({ block: "nearest" });
  };
  /** @param {number} k */
  const line = (k) => {
    const p = data.clusterReal ? data.clusterReal[k] : consensusProbability(data, k, Math.min(data.minExperts, data.experts.length));
    const cells = [...data.quantities.map((quantity) => valueInWords(data, quantity, k)), `${data.clusterExperts[k]} of ${data.experts.length}`, probability(p)];
    const link = element("a", { href: `${PREFIX}object=${data.clusterName[k]}`, onclick: open(k) }, `c${data.clusterName[k]}`);
    return element("tr", {}, element("td", {}, link), ...cells.map((text, at) => element("td", { class: isNumber(at + 1) ? "number" : "" }, text)));
  };
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows.map(line)));
}
