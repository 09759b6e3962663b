// How the experts compare in each draw: the report's table, for any region and any set of experts.

/** Experts up to whom every pair is followed through the draws. */
const MAX_PAIRED = 24;

/** For every expert {count, jaccard, alone, missed} and matrix[f][g], as {mean, lo, hi}. */
/** @param {State} state @returns {Comparison} */
function compareExperts(state) {
  const { data } = state;
  const on = data.experts.map((_, f) => f).filter((f) => !state.off.has(f));
  const count = itemsInRegion(state);
  const whole = !state.off.size && !state.region;
  if (whole) return { on, count, draws: data.draws, ...reportedExperts(data) };
  return { on, count, draws: data.drawsUsed, ...expertsByDraw(state, on) };
}

/** @param {State} state */
function itemsInRegion(state) {
  const { data } = state;
  const count = new Uint32Array(data.experts.length);
  for (let i = 0; i < data.count; i++) {
    if (inRegion(state.region, data.itemX[i], data.itemY[i])) count[data.itemExpert[i]]++;
  }
  return count;
}

/** @param {Data} data @returns {Pick<Comparison, "jaccard" | "alone" | "missed" | "pair">} */
function reportedExperts(data) {
  const numbers = data.expertNumbers;
  /** @param {any} table @param {...number} path */
  const at = (table, ...path) => {
    const [mean, lo, hi] = ["mean", "lo", "hi"].map((end) => path.reduce((rows, k) => rows[k], table[end]) ?? NaN);
    return { mean, lo, hi };
  };
  const rows = data.experts.map((_, f) => f);
  const place = new Map(numbers.compared.map((f, k) => [f, k]));
  return {
    jaccard: rows.map((f) => at(numbers.jaccard, f)),
    alone: rows.map((f) => at(numbers.alone, f)),
    missed: rows.map((f) => at(numbers.missed, f)),
    pair(f, g) {
      const [first, second] = [place.get(f), place.get(g)];
      return first === undefined || second === undefined ? summarise([]) : at(numbers.matrix, first, second);
    },
  };
}

/** A count for each of several questions and each draw, built from runs of draws. */
/** @param {number} questions @param {number} draws @returns {Tally} */
function makeTally(questions, draws) {
  const width = draws + 1;
  const cells = new Int32Array(questions * width);
  return {
    add(question, start, stop) {
      cells[question * width + start]++;
      cells[question * width + stop]--;
    },
    finish() {
      for (let q = 0; q < questions; q++) {
        for (let d = 1; d < draws; d++) cells[q * width + d] += cells[q * width + d - 1];
      }
    },
    row: (question) => cells.subarray(question * width, question * width + draws),
  };
}

/** @param {State} state @param {number[]} on @returns {Pick<Comparison, "jaccard" | "alone" | "missed" | "pair">} */
function expertsByDraw(state, on) {
  const data = groupSizes(state);
  const n = data.experts.length, draws = data.drawsUsed;
  const pairs = on.length <= MAX_PAIRED ? on : [];
  /** Which of the pairs' experts somebody is, or -1. */
  const place = new Int32Array(n).fill(-1);
  for (const [k, f] of pairs.entries()) place[f] = k;
  const both = makeTally(pairs.length ** 2, draws);
  const alone = makeTally(n, draws);
  const lacking = makeTally(n, draws);
  for (let g = 0; g < data.groups; g++) {
    if (!data.groupActive[g] || !inRegion(state.region, data.groupX[g], data.groupY[g])) continue;
    const present = activeOf(state, g);
    const missing = present.length === on.length - 1 ? on.find((f) => !present.includes(f)) ?? -1 : -1;
    for (let r = data.runOffsets[g]; r < data.runOffsets[g + 1]; r++) {
      const [start, stop] = [data.runStart[r], data.runStop[r]];
      if (data.groupActiveItems[g] === 1) alone.add(present[0], start, stop);
      if (missing >= 0) lacking.add(missing, start, stop);
      if (!pairs.length) continue;
      for (const f of present) {
        for (const h of present) both.add(place[f] * pairs.length + place[h], start, stop);
      }
    }
  }
  for (const tally of [both, alone, lacking]) tally.finish();
  /** @param {number} f @param {number} h */
  const pairSamples = (f, h) => jaccardByDraw(both, place[f], place[h], pairs.length);
  return {
    jaccard: data.experts.map((_, f) => meanWithOthers(f, pairs, pairSamples, draws)),
    alone: shares(alone, on, n, draws),
    missed: shares(lacking, on, n, draws),
    pair: (f, h) => summarise(place[f] >= 0 && place[h] >= 0 ? pairSamples(f, h) : []),
  };
}

/** @param {State} state @param {number} group */
function activeOf(state, group) {
  const { data } = state;
  const found = new Set();
  for (let p = data.groupOffsets[group]; p < data.groupOffsets[group + 1]; p++) {
    const f = data.itemExpert[data.groupMembers[p]];
    if (!state.off.has(f)) found.add(f);
  }
  return [...found];
}

/** Objects with both over objects with either, in each draw; NaN where there are none. */
/** @param {Tally} both @param {number} f @param {number} h @param {number} n */
function jaccardByDraw(both, f, h, n) {
  const [shared, first, second] = [both.row(f * n + h), both.row(f * n + f), both.row(h * n + h)];
  return Float64Array.from(shared, (count, d) => count / (first[d] + second[d] - count));
}

/** @param {number} f @param {number[]} pairs @param {(f: number, h: number) => Float64Array} pairSamples @param {number} draws */
function meanWithOthers(f, pairs, pairSamples, draws) {
  const others = pairs.filter((h) => h !== f);
  if (!pairs.includes(f) || !others.length) return summarise([]);
  const mean = new Float64Array(draws);
  for (const h of others) {
    for (const [d, value] of pairSamples(f, h).entries()) mean[d] += value / others.length;
  }
  return summarise(mean);
}

/** Percentages of each draw's total; NaN where the total is zero. */
/** @param {Tally} tally @param {number[]} on @param {number} n @param {number} draws */
function shares(tally, on, n, draws) {
  const total = new Float64Array(draws);
  for (const f of on) {
    for (const [d, count] of tally.row(f).entries()) total[d] += count;
  }
  return Array.from({ length: n }, (_, f) =>
    on.includes(f) ? summarise(Float64Array.from(tally.row(f), (count, d) => (100 * count) / total[d])) : summarise([]),
  );
}

/** Objects that one expert found and the other did not, the other way round, and both. */
/** @param {State} state @param {number} a @param {number} b */
function compareTwo(state, a, b) {
  const data = groupSizes(state);
  /** @param {number} g @param {number} f */
  const has = (g, f) => {
    for (let p = data.groupOffsets[g]; p < data.groupOffsets[g + 1]; p++) {
      if (data.itemExpert[data.groupMembers[p]] === f) return true;
    }
    return false;
  };
  /** @param {number} g */
  const here = (g) => inRegion(state.region, data.groupX[g], data.groupY[g]);
  return {
    first: summariseCounts(countByDraw(data, (g) => here(g) && has(g, a) && !has(g, b))),
    second: summariseCounts(countByDraw(data, (g) => here(g) && has(g, b) && !has(g, a))),
    both: summariseCounts(countByDraw(data, (g) => here(g) && has(g, a) && has(g, b))),
  };
}
