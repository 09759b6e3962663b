// The data of the page, as typed arrays, and what follows from them once and for all.

/** @returns {Promise<Data>} */
async function readData() {
  const about = JSON.parse(byId("about").textContent);
  const data = { ...about, ...(await arraysOf(byId("arrays").textContent, about.arrays, about.compressed)) };
  data.count = data.itemX.length;
  data.clusters = data.clusterName.length;
  data.groups = data.groupOffsets.length - 1;
  data.ground = makeGround(data);
  data.yDown = Boolean(data.frame) && data.frame[2] > data.frame[3];
  data.items = outlinesOf(data, "item", data.itemShape);
  data.objects = outlinesOf(data, "cluster", data.objectShape);
  addDescriptions(data);
  addMembers(data);
  addGroupFacts(data);
  addReality(data);
  data.undecided = undecidedClusters(data);
  return data;
}

/** The arrays of what describes objects and items, beside their names. */
/** @param {Data} data */
function addDescriptions(data) {
  data.quantities.forEach((quantity, k) => {
    quantity.values = data[`quantity${k}`];
    for (const end of ["Sd", "Lo", "Hi"]) quantity[end.toLowerCase()] = data[`quantity${k}${end}`];
    quantity.label = quantity.axis === null ? quantity.name : data.ground.axes[quantity.axis];
    quantity.unit = quantity.axis !== null ? data.ground.degree : quantity.length ? data.ground.unit : "";
  });
  for (const [k, column] of data.columns.entries()) column.values = data[`column${k}`];
  data.clusterSize = data.size ? data.quantities[data.size.quantity].values : null;
  /** Standard deviation of x or y of an object; nothing where that is no quantity of its own. */
  data.placeSd = (axis, k) => data.quantities.find((quantity) => quantity.axis === axis)?.sd[k] ?? 0;
}

/** A value of a column of items or of the catalogue, in words. */
/** @param {Data} data @param {Column} column @param {number} row */
function valueInWords(data, column, row) {
  return column.text ? data.texts[column.name][column.values[row]] : column.values[row].toFixed(column.digits);
}

/** Rows of `owner` by owner: those of k are order[offsets[k]] to order[offsets[k + 1] - 1]. */
/** @param {Numbers} owner @param {number} count @returns {Lists} */
function listsOf(owner, count) {
  const offsets = new Uint32Array(count + 1);
  for (const k of owner) offsets[k + 1]++;
  for (let k = 0; k < count; k++) offsets[k + 1] += offsets[k];
  const next = offsets.slice();
  const order = new Uint32Array(owner.length);
  for (let row = 0; row < owner.length; row++) order[next[owner[row]]++] = row;
  return { offsets, order, of: (k) => order.subarray(offsets[k], offsets[k + 1]) };
}

/** @param {Data} data */
function addMembers(data) {
  data.clusterMembers = listsOf(data.itemCluster, data.clusters);
  data.clusterExperts = new Uint16Array(data.clusters);
  data.clusterLeast = new Float32Array(data.clusters).fill(1);
  for (let k = 0; k < data.clusters; k++) {
    const members = data.clusterMembers.of(k);
    data.clusterExperts[k] = new Set(Array.from(members, (i) => data.itemExpert[i])).size;
    for (const i of members) {
      data.clusterLeast[k] = Math.min(data.clusterLeast[k], data.itemProbability[i]);
    }
  }
}

/** Where a group lies, its mean size, in how many draws it was a cluster, and its home. */
/** @param {Data} data */
function addGroupFacts(data) {
  const { groupOffsets, groupMembers } = data;
  data.groupX = new Float32Array(data.groups);
  data.groupY = new Float32Array(data.groups);
  data.groupSize = new Float64Array(data.groups);
  data.groupDraws = new Uint32Array(data.groups);
  data.groupHome = new Uint32Array(data.groups);
  const owner = new Uint32Array(groupMembers.length);
  for (let g = 0; g < data.groups; g++) {
    const size = groupOffsets[g + 1] - groupOffsets[g];
    const first = data.itemX[groupMembers[groupOffsets[g]]];
    for (let p = groupOffsets[g]; p < groupOffsets[g + 1]; p++) {
      const i = groupMembers[p];
      owner[p] = g;
      data.groupX[g] += data.ground.beside(data.itemX[i], first) / size;
      data.groupY[g] += data.itemY[i] / size;
      if (data.itemSize) data.groupSize[g] += data.itemSize[i] / size;
    }
    data.groupHome[g] = homeOf(data, g);
    for (let r = data.runOffsets[g]; r < data.runOffsets[g + 1]; r++) {
      data.groupDraws[g] += data.runStop[r] - data.runStart[r];
    }
  }
  const shared = new Uint16Array(data.groups);
  /** Experts with an item in a group, counted when first asked for. */
  data.groupExperts = (g) => (shared[g] ||= new Set(Array.from(groupMembers.subarray(groupOffsets[g], groupOffsets[g + 1]), (i) => data.itemExpert[i])).size);
  const lists = listsOf(groupMembers, data.count);
  data.groupsOfItem = (i) => lists.of(i).map((p) => owner[p]);
}

/** How likely a group is real. Only a single item may be false, and how likely it is real where it
 *  is alone follows from how likely it is real at all: elsewhere it is certain. */
/** @param {Data} data */
function addReality(data) {
  const { itemReal } = data;
  if (!itemReal) return;
  data.groupReal = new Float32Array(data.groups).fill(1);
  for (let g = 0; g < data.groups; g++) {
    if (data.groupOffsets[g + 1] - data.groupOffsets[g] > 1 || !data.groupDraws[g]) continue;
    const alone = data.groupDraws[g] / data.drawsUsed;
    const real = itemReal[data.groupMembers[data.groupOffsets[g]]] - (1 - alone);
    data.groupReal[g] = Math.min(Math.max(real / alone, 0), 1);
  }
}

/** What a group counts for: one object, or where the model knows false marks, its probability. */
/** @param {Data} data @param {number} group */
function worthOf(data, group) {
  return data.groupReal ? data.groupReal[group] : 1;
}

/** The object of the catalogue that most members of a group belong to, one item left out; the
 *  first among equals; -1 if nobody is left. */
/** @param {Data} data @param {number} group */
function homeOf(data, group) {
  const times = new Map();
  for (let p = data.groupOffsets[group]; p < data.groupOffsets[group + 1]; p++) {
    const i = data.groupMembers[p];
    times.set(data.itemCluster[i], (times.get(data.itemCluster[i]) ?? 0) + 1);
  }
  let best = -1;
  for (const [cluster, count] of times) {
    const most = times.get(best) ?? 0;
    if (count > most || (count === most && cluster < best)) best = cluster;
  }
  return best;
}

/** Objects with an item that is not sure of its place, least sure first. */
/** @param {Data} data */
function undecidedClusters(data) {
  const found = [];
  for (let k = 0; k < data.clusters; k++) {
    if (data.clusterLeast[k] < data.undecidedBelow) found.push(k);
  }
  return found.sort((a, b) => data.clusterLeast[a] - data.clusterLeast[b] || a - b);
}

/** In which share of all draws at least so many experts share an object: as in catalogue.csv. */
/** @param {Data} data @param {number} cluster @param {number} least */
function consensusProbability(data, cluster, least) {
  return data.clusterConsensus[(least - 1) * data.clusters + cluster] / data.draws;
}

/** @param {Data} data @param {number} i */
function itemName(data, i) {
  return data.ids ? data.ids[i] : String(i + 1);
}
