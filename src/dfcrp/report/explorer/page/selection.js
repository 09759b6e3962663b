// Which objects, markings and groups pass the filters.

/** Experts who count, and markings by them, for each row of a list of markings. */
function activeExperts(state, members) {
  const { data, off } = state;
  const experts = new Set();
  let markings = 0;
  for (const i of members) {
    if (off.has(data.markingExpert[i])) continue;
    experts.add(data.markingExpert[i]);
    markings++;
  }
  return { experts: experts.size, markings };
}

/** Number of active experts and markings of every group; remembered while nobody is switched. */
function groupSizes(state) {
  const { data } = state;
  const key = [...state.off].sort().join(",");
  if (data.sizesKey !== key) {
    data.sizesKey = key;
    data.groupActive = new Uint16Array(data.groups);
    data.groupActiveMarkings = new Uint32Array(data.groups);
    for (let g = 0; g < data.groups; g++) {
      const members = data.groupMembers.subarray(data.groupOffsets[g], data.groupOffsets[g + 1]);
      const found = activeExperts(state, members);
      data.groupActive[g] = found.experts;
      data.groupActiveMarkings[g] = found.markings;
    }
  }
  return data;
}

function inRegion(region, x, y) {
  return !region || (x >= region[0] && x <= region[2] && y >= region[1] && y <= region[3]);
}

/** What is asked of an object as it stands in the catalogue, whatever a draw says of it. */
function isListed(state, k) {
  if (state.undecided && !(state.data.clusterLeast[k] < state.data.undecidedBelow)) return false;
  if (state.realMin > 0 && state.data.clusterReal[k] < state.realMin) return false;
  if (state.pMin <= 0 && state.pMax >= 1) return true;
  const p = consensusProbability(state.data, k, state.minExperts);
  return p >= state.pMin && p <= state.pMax;
}

function inDiameters(state, diameter) {
  return (state.dMin === null || diameter >= state.dMin) && (state.dMax === null || diameter < state.dMax);
}

/** 0 for objects that are filtered out, 1 outside of the region, 2 for what is left. */
function passingClusters(state) {
  const { data } = state;
  const passing = new Uint8Array(data.clusters);
  for (let k = 0; k < data.clusters; k++) {
    const found = state.off.size
      ? activeExperts(state, data.clusterMembers.of(k))
      : { experts: data.clusterExperts[k], markings: data.clusterMembers.of(k).length };
    const passes =
      found.experts >= state.minExperts &&
      (!state.singletons || found.markings === 1) &&
      inDiameters(state, data.clusterDiameter[k]) &&
      isListed(state, k);
    if (passes) passing[k] = inRegion(state.region, data.clusterX[k], data.clusterY[k]) ? 2 : 1;
  }
  return passing;
}

/** Groups that pass everything but the threshold and the diameter, which differ by question. */
function passingGroups(state) {
  const data = groupSizes(state);
  const asksCatalogue = state.undecided || state.realMin > 0 || state.pMin > 0 || state.pMax < 1;
  const passing = new Uint8Array(data.groups);
  for (let g = 0; g < data.groups; g++) {
    const passes =
      data.groupActive[g] > 0 &&
      (!state.singletons || data.groupActiveMarkings[g] === 1) &&
      inRegion(state.region, data.groupX[g], data.groupY[g]) &&
      (!asksCatalogue || isListed(state, data.groupHome[g]));
    passing[g] = passes ? 1 : 0;
  }
  return passing;
}

/** Whether the whole image is asked about, so that the report's own numbers are the answer. */
function isWhole(state) {
  return !state.off.size && !state.singletons && !state.undecided && !state.region && state.realMin <= 0 && state.pMin <= 0 && state.pMax >= 1;
}
