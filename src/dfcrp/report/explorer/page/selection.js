// Which objects, items and groups pass the filters.

/** Experts who count, and how many items are by them, of a list of items. */
/** @param {State} state @param {Iterable<number>} members */
function activeExperts(state, members) {
  const { data, off } = state;
  const experts = new Set();
  let items = 0;
  for (const i of members) {
    if (off.has(data.itemExpert[i])) continue;
    experts.add(data.itemExpert[i]);
    items++;
  }
  return { experts: experts.size, items };
}

/** Number of active experts and items of every group; remembered while nobody is switched. */
/** @param {State} state @returns {Data} */
function groupSizes(state) {
  const { data } = state;
  const key = [...state.off].sort().join(",");
  if (data.sizesKey !== key) {
    data.sizesKey = key;
    data.groupActive = new Uint16Array(data.groups);
    data.groupActiveItems = new Uint32Array(data.groups);
    for (let g = 0; g < data.groups; g++) {
      const members = data.groupMembers.subarray(data.groupOffsets[g], data.groupOffsets[g + 1]);
      const found = activeExperts(state, members);
      data.groupActive[g] = found.experts;
      data.groupActiveItems[g] = found.items;
    }
  }
  return data;
}

/** @param {Box | null} region @param {number} x @param {number} y */
function inRegion(region, x, y) {
  return !region || (x >= region[0] && x <= region[2] && y >= region[1] && y <= region[3]);
}

/** What is asked of an object as it stands in the catalogue, whatever a draw says of it. */
/** @param {State} state @param {number} k */
function isListed(state, k) {
  if (state.undecided && !(state.data.clusterLeast[k] < state.data.undecidedBelow)) return false;
  if (state.realMin > 0 && state.data.clusterReal && state.data.clusterReal[k] < state.realMin) return false;
  if (state.pMin <= 0 && state.pMax >= 1) return true;
  const p = consensusProbability(state.data, k, state.minExperts);
  return p >= state.pMin && p <= state.pMax;
}

/** Whether an object has a size that is asked for; where there are no sizes none is. */
/** @param {State} state @param {number} k */
function inSizes(state, k) {
  if (!state.data.clusterSize) return true;
  const size = state.data.clusterSize[k];
  return (state.dMin === null || size >= state.dMin) && (state.dMax === null || size < state.dMax);
}

/** 0 for objects that are filtered out, 1 outside of the region, 2 for what is left. */
/** @param {State} state */
function passingClusters(state) {
  const { data } = state;
  const passing = new Uint8Array(data.clusters);
  for (let k = 0; k < data.clusters; k++) {
    const found = state.off.size
      ? activeExperts(state, data.clusterMembers.of(k))
      : { experts: data.clusterExperts[k], items: data.clusterMembers.of(k).length };
    const passes =
      found.experts >= state.minExperts &&
      (!state.singletons || found.items === 1) &&
      inSizes(state, k) &&
      isListed(state, k);
    if (passes) passing[k] = inRegion(state.region, data.clusterX[k], data.clusterY[k]) ? 2 : 1;
  }
  return passing;
}

/** Groups that pass everything but the threshold and the size, which differ by question. */
/** @param {State} state @returns {Uint8Array} */
function passingGroups(state) {
  const data = groupSizes(state);
  const asksCatalogue = state.undecided || state.realMin > 0 || state.pMin > 0 || state.pMax < 1;
  const passing = new Uint8Array(data.groups);
  for (let g = 0; g < data.groups; g++) {
    const passes =
      data.groupActive[g] > 0 &&
      (!state.singletons || data.groupActiveItems[g] === 1) &&
      inRegion(state.region, data.groupX[g], data.groupY[g]) &&
      (!asksCatalogue || isListed(state, data.groupHome[g]));
    passing[g] = passes ? 1 : 0;
  }
  return passing;
}

/** Whether the whole image is asked about, so that the report's own numbers are the answer. */
/** @param {State} state */
function isWhole(state) {
  return !state.off.size && !state.singletons && !state.undecided && !state.region && state.realMin <= 0 && state.pMin <= 0 && state.pMax >= 1;
}
