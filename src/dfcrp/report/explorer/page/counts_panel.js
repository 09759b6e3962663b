// The answer to the filters: how many objects, in numbers, by size class, and as two charts.

/** @param {Data} data @param {number} used */
function drawsInWords(data, used) {
  return used === data.draws ? `from all ${number(used)} draws` : `from ${number(used)} of ${number(data.draws)} draws, evenly spaced`;
}

/** @param {State} state @param {ExplorerMap} map @returns {{ sizes: SizePoint[], update(): void }} */
function makeCountsPanel(state, map) {
  const { data } = state;
  const classes = classButtons(state);
  /** @type {{ sizes: SizePoint[], update(): void }} */
  const panel = {
    /** N(≥ D) as it is drawn. */
    sizes: [],
    update() {
      const passing = passingGroups(state);
      const found = posteriorCount(state, passing, state.minExperts, state.dMin, state.dMax);
      const listed = map.passing.reduce((sum, level) => sum + (level === 2 ? 1 : 0), 0);
      const count = estimate(found);
      byId("count").textContent = count.mean;
      byId("count-interval").textContent = `95 % interval: ${count.interval}`;
      byId("count-draws").textContent = drawsInWords(data, found.draws);
      byId("listed").textContent = `${counted(listed, "object")} of the catalogue ${listed === 1 ? "passes" : "pass"} the filters${state.region ? " in the region" : ""}.`;
      for (const { from, to, cells } of classes) {
        const known = isWhole(state) ? reportedCount(data, state.minExperts, from, to) : null;
        const inClass = known ?? posteriorCount(state, passing, state.minExperts, from, to);
        const shown = estimate(inClass);
        cells[0].textContent = shown.mean;
        cells[1].textContent = shown.interval;
      }
      /** @param {number} g */
      const single = (g) => inRegion(state.region, data.groupX[g], data.groupY[g]) && data.groupActiveItems[g] === 1;
      const singles = estimate(summariseCounts(countByDraw(data, single, () => 1)));
      byId("singletons-count").textContent = `${singles.mean} (${singles.interval})`;
      const doubtful = data.undecided.filter((k) => inRegion(state.region, data.clusterX[k], data.clusterY[k]));
      byId("undecided-count").textContent = number(doubtful.length);
      byId("histogram").replaceChildren(histogram(found, "How often each number of objects was drawn"));
      const agreed = `≥ ${counted(state.minExperts, "expert")}`;
      byId("histogram-note").textContent = data.clusterReal && state.minExperts === 1 ? `real, ${data.verb} by anybody` : agreed;
      if (!data.size) return;
      panel.sizes = sizeFrequency(state, passing);
      byId("sizes").replaceChildren(sizeCurve(panel.sizes, state));
      byId("sizes-note").textContent = `N(≥ D), ${number(data.sampledDraws.length)} draws`;
    },
  };
  return panel;
}

/** @param {number | null} from @param {number | null} to */
function classInWords(from, to) {
  if (from === null) return to === null ? "any size" : `below ${ofSize(to)}`;
  return to === null ? `${ofSize(from)} and more` : `${ofSize(from)} to ${ofSize(to)}`;
}

/** A row for each size class: its button, and its count for the threshold that is set. */
/** @param {State} state */
function classButtons(state) {
  const { classEdges, classNames } = state.data;
  const ends = [null, ...classEdges, null];
  /** @type {[string, number | null, number | null][]} */
  const rows = [["all", null, null]];
  for (const [k, name] of classNames.entries()) rows.push([name, ends[k], ends[k + 1]]);
  return rows.map(([name, from, to]) => {
    const button = element("button", { type: "button", "data-class": name, title: classInWords(from, to), onclick: () => state.set({ dMin: from, dMax: to }) }, name);
    const cells = [element("td", { class: "number" }), element("td", { class: "number quiet" })];
    byId("classes").append(element("tr", {}, element("th", { scope: "row" }, button), ...cells));
    const mark = () => button.setAttribute("aria-pressed", String(state.dMin === from && state.dMax === to));
    state.onChange(mark);
    mark();
    return { from, to, cells };
  });
}
