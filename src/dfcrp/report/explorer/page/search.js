// Finding a marking by its id, an object by its number, or a place by its coordinates.

/** {cluster} or {x, y} (relative to the origin), with words to say; null if nothing is meant. */
function find(data, query) {
  const text = query.trim();
  const byName = findMarking(data, text);
  if (byName >= 0) return foundObject(data, data.markingCluster[byName], `Marking ${text}, in`);
  const asObject = /^(?:c|object|cluster)\s*(\d+)$/i.exec(text);
  if (asObject) {
    const k = data.clusterName.indexOf(Number(asObject[1]));
    return k < 0 ? null : foundObject(data, k, "Found");
  }
  const place = /^(-?\d+(?:\.\d+)?)\s*[,; ]\s*(-?\d+(?:\.\d+)?)$/.exec(text);
  if (!place) return null;
  return { x: data.ground.mapX(Number(place[1])), y: Number(place[2]) - data.origin[1], said: `Moved to ${text}` };
}

function findMarking(data, text) {
  if (data.ids) return data.ids.indexOf(text);
  const row = /^\d+$/.test(text) ? Number(text) - 1 : -1;
  return row < data.markings ? row : -1;
}

function foundObject(data, cluster, words) {
  return { cluster, said: `${words} object ${data.clusterName[cluster]}` };
}

function bindSearch(state, view, say) {
  byId("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const query = byId("query").value;
    const found = find(state.data, query);
    if (!found) return say(`Nothing is called “${query}”`, true);
    say(found.said);
    if (found.cluster === undefined) view.go(found.x, found.y, Math.max(view.scale, 6 * view.fitScale()));
    else state.set({ selected: found.cluster, goTo: found.cluster });
  });
}
