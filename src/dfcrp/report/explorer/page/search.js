// Finding an item by its id or by what its fields say, an object by its number, or a place by its
// coordinates.

/** {cluster} or {x, y} (relative to the origin), with words to say; null if nothing is meant. */
/** @param {Data} data @param {string} query @param {number} [after] @returns {Found | null} */
function find(data, query, after = -1) {
  const text = query.trim();
  const byName = findItem(data, text);
  const noun = data.noun[0].toUpperCase() + data.noun.slice(1);
  if (byName >= 0) return foundObject(data, data.itemCluster[byName], `${noun} ${text}, in`);
  const asObject = /^(?:c|object|cluster)\s*(\d+)$/i.exec(text);
  if (asObject) {
    const k = data.clusterName.indexOf(Number(asObject[1]));
    return k < 0 ? null : foundObject(data, k, "Found");
  }
  const place = /^(-?\d+(?:\.\d+)?)\s*[,; ]\s*(-?\d+(?:\.\d+)?)$/.exec(text);
  if (place && data.hasPlaces) {
    return { x: data.ground.mapX(Number(place[1])), y: Number(place[2]) - data.origin[1], said: `Moved to ${text}` };
  }
  const row = text ? findText(data, text, after) : -1;
  return row < 0 ? null : { row, ...foundObject(data, data.itemCluster[row], `${noun} ${itemName(data, row)}, in`) };
}

/** @param {Data} data @param {string} text */
function findItem(data, text) {
  if (data.ids) return data.ids.indexOf(text);
  const row = /^\d+$/.test(text) ? Number(text) - 1 : -1;
  return row < data.count ? row : -1;
}

/** The next item after a row, around the end, one of whose fields holds the text; -1 if there is none. */
/** @param {Data} data @param {string} text @param {number} after */
function findText(data, text, after) {
  const wanted = text.toLowerCase();
  const fields = data.columns.filter((column) => column.text);
  const holds = fields.map((column) => data.texts[column.name].map((value) => value.toLowerCase().includes(wanted)));
  for (let step = 1; step <= data.count; step++) {
    const i = (after + step) % data.count;
    if (fields.some((column, c) => holds[c][column.values[i]])) return i;
  }
  return -1;
}

/** @param {Data} data @param {number} cluster @param {string} words @returns {Found} */
function foundObject(data, cluster, words) {
  return { cluster, said: `${words} object ${data.clusterName[cluster]}` };
}

/** @param {State} state @param {View} view @param {(words: string, isWrong?: boolean) => void} say */
function bindSearch(state, view, say) {
  let [last, row] = ["", -1];
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const query = byId("query").value;
    // The same words once more lead to the next item.
    const found = find(state.data, query, query === last ? row : -1);
    [last, row] = [query, found?.row ?? -1];
    if (!found) return say(`Nothing is called “${query}”`, true);
    say(found.said);
    if (found.cluster === undefined) view.go(found.x ?? view.x, found.y ?? view.y, Math.max(view.scale, 6 * view.fitScale()));
    else state.set({ selected: found.cluster, goTo: found.cluster });
  });
}
