// Posterior counts: how many objects pass in each draw, with mean and interval over the draws.

/** For each draw, the number of objects among these groups: those that were a cluster in it. */
/** @param {Data} data @param {(g: number) => boolean | number} wanted @param {(g: number) => number} [worthOfGroup] */
function countByDraw(data, wanted, worthOfGroup = (g) => worthOf(data, g)) {
  const counts = new Float64Array(data.drawsUsed);
  const change = new Float64Array(data.drawsUsed + 1);
  for (let g = 0; g < data.groups; g++) {
    if (!wanted(g)) continue;
    const worth = worthOfGroup(g);
    for (let r = data.runOffsets[g]; r < data.runOffsets[g + 1]; r++) {
      change[data.runStart[r]] += worth;
      change[data.runStop[r]] -= worth;
    }
  }
  let sum = 0;
  for (let d = 0; d < counts.length; d++) counts[d] = sum += change[d];
  return counts;
}

/** Call visit(sampled draw, log size) for every draw with parameters in which the group was. */
/** @param {Data} data @param {number} group @param {(draw: number, logSize: number) => void} visit */
function visitLogSizes(data, group, visit) {
  if (data.sizeFrom === "members") {
    const constant = Math.log(data.groupSize[group]);
    visitDraws(data, group, data.sampledBefore, (draw) => visit(draw, constant));
    return;
  }
  const low = data.sampledLogSizeLow[group];
  const step = (data.sampledLogSizeHigh[group] - low) / 255;
  let at = data.sampledOffsets[group];
  visitDraws(data, group, data.sampledBefore, (draw) => visit(draw, low + step * data.sampledLogSize[at++]));
}

/** Call visit(index) for every draw of a subset in which the group was a cluster, ascending. */
/** @param {Data} data @param {number} group @param {Uint32Array} before @param {(draw: number) => void} visit */
function visitDraws(data, group, before, visit) {
  for (let r = data.runOffsets[group]; r < data.runOffsets[group + 1]; r++) {
    for (let k = before[data.runStart[r]]; k < before[data.runStop[r]]; k++) visit(k);
  }
}

/** before[d]: how many draws of a subset come before draw d. */
/** @param {Numbers} subset @param {number} draws */
function numberBefore(subset, draws) {
  const before = new Uint32Array(draws + 1);
  for (const draw of subset) before[draw + 1]++;
  for (let d = 0; d < draws; d++) before[d + 1] += before[d];
  return before;
}

/** @param {Data} data */
function prepareDraws(data) {
  for (const name of /** @type {const} */ (["sampled", "ghost"])) {
    const drawn = data[`${name}Draws`];
    if (drawn) data[`${name}Before`] = numberBefore(drawn, data.drawsUsed);
  }
}

/** The group that each item was in, in one draw. */
/** @param {Data} data @param {number} draw */
function clustersInDraw(data, draw) {
  const found = new Uint32Array(data.count);
  for (let g = 0; g < data.groups; g++) {
    for (let r = data.runOffsets[g]; r < data.runOffsets[g + 1]; r++) {
      if (draw < data.runStart[r] || draw >= data.runStop[r]) continue;
      for (let p = data.groupOffsets[g]; p < data.groupOffsets[g + 1]; p++) found[data.groupMembers[p]] = g;
    }
  }
  return found;
}

/** For each draw with parameters, the groups whose size lies in [from, to). */
/** @param {Data} data @param {(g: number) => boolean | number} wanted @param {number} from @param {number} to */
function countBySize(data, wanted, from, to) {
  const counts = new Float64Array(data.sampledDraws.length);
  const [low, high] = [Math.log(from), Math.log(to)];
  for (let g = 0; g < data.groups; g++) {
    if (!wanted(g)) continue;
    const worth = worthOf(data, g);
    visitLogSizes(data, g, (draw, logSize) => {
      if (logSize >= low && logSize < high) counts[draw] += worth;
    });
  }
  return counts;
}

/** The posterior number of objects with at least `least` experts and a size in [from, to). */
/** @param {State} state @param {Uint8Array} passing @param {number} least @param {number | null} [from] @param {number | null} [to] @returns {Summary & { draws: number }} */
function posteriorCount(state, passing, least, from = null, to = null) {
  const known = isWhole(state) ? reportedCount(state.data, least, from, to) : null;
  const { counts, draws } = countsOfDraws(state, passing, least, from, to);
  return { ...summariseCounts(counts), draws, ...known };
}

/** The number in each draw, of as many draws as can answer. */
/** @param {State} state @param {Uint8Array} passing @param {number} least @param {number | null} from @param {number | null} to @returns {{ counts: Float64Array, draws: number }} */
function countsOfDraws(state, passing, least, from, to) {
  const { data } = state;
  /** @param {number} g */
  const wanted = (g) => passing[g] && data.groupActive[g] >= least;
  if (from === null && to === null) return { counts: countByDraw(data, wanted), draws: data.drawsUsed };
  const [low, high] = [from ?? 0, to ?? Infinity];
  if (data.sizeFrom === "members") {
    /** @param {number} g */
    const fits = (g) => data.groupSize[g] >= low && data.groupSize[g] < high;
    return { counts: countByDraw(data, (g) => wanted(g) && fits(g)), draws: data.drawsUsed };
  }
  return { counts: countBySize(data, wanted, low, high), draws: data.sampledDraws.length };
}

/** The report's own number, from all draws, if the question is one of its own; null otherwise. */
/** @param {Data} data @param {number} least @param {number | null} from @param {number | null} to @returns {(Interval & { draws: number }) | null} */
function reportedCount(data, least, from, to) {
  const ends = [null, ...data.classEdges, null];
  let column = from === null && to === null ? 0 : -1;
  for (let k = 0; k < data.classNames.length; k++) if (ends[k] === from && ends[k + 1] === to) column = k + 1;
  if (data.realObjects && least === 1) {
    const { mean, lo, hi } = data.realObjects.seen;
    return column < 0 || column >= mean.length ? null : { mean: mean[column], lo: lo[column], hi: hi[column], draws: data.draws };
  }
  const row = least - 1;
  if (column < 0 || row >= data.counts.mean.length || column >= data.counts.mean[row].length) return null;
  return { mean: data.counts.mean[row][column], lo: data.counts.lo[row][column], hi: data.counts.hi[row][column], draws: data.draws };
}

/** N(≥ D) with its band, on a logarithmic grid of sizes. */
/** @param {State} state @param {Uint8Array} passing @param {number} [points] @returns {SizePoint[]} */
function sizeFrequency(state, passing, points = 48) {
  const { data } = state;
  /** @param {number} g */
  const wanted = (g) => passing[g] && data.groupActive[g] >= state.minExperts;
  let [least, most] = [Infinity, 0];
  for (const d of data.itemSize) {
    least = Math.min(least, d);
    most = Math.max(most, d);
  }
  const step = Math.log(Math.max(most / least, 1.01)) / (points - 1);
  const start = Math.log(least);
  const draws = data.sampledDraws.length;
  const found = new Float64Array(points * draws);
  for (let g = 0; g < data.groups; g++) {
    if (!wanted(g)) continue;
    const worth = worthOf(data, g);
    visitLogSizes(data, g, (draw, logSize) => {
      const bin = Math.min(Math.floor((logSize - start) / step + 1e-9), points - 1);
      if (bin >= 0) found[bin * draws + draw] += worth;
    });
  }
  for (let at = (points - 1) * draws - 1; at >= 0; at--) found[at] += found[at + draws];
  return Array.from({ length: points }, (_, k) => {
    const { mean, lo, hi } = summarise(found.subarray(k * draws, (k + 1) * draws));
    return { size: least * Math.exp(k * step), mean, lo, hi };
  });
}
