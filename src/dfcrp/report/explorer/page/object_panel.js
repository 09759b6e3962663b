// One object: what describes it, who marked it and who did not, how sure that is, and what else could be.

/** Alternatives below this share of draws are not worth a sentence. */
const WORTH_SAYING = 0.01;

/** @param {State} state @param {Overlay} overlay */
function makeObjectPanel(state, overlay) {
  return {
    update() {
      const panel = byId("object");
      const k = state.selected;
      panel.replaceChildren(...(k < 0 ? [stepButtons(state), noObject(state)] : [stepButtons(state), ...objectParts(state, overlay, k)]));
    },
  };
}

/** @param {State} state */
function noObject(state) {
  const many = state.data.undecided.length;
  return element("p", { class: "quiet" }, `Click an object on the map. ${counted(many, "object")} ${many === 1 ? "is" : "are"} undecided: n and p lead through them, least sure first.`);
}

/** @param {State} state */
function stepButtons(state) {
  /** @param {string} words @param {string} key @param {number} by */
  const button = (words, key, by) =>
    element("button", { type: "button", title: `Key ${key}`, "data-step": by, onclick: () => stepUndecided(state, by) }, words);
  const many = element("span", {}, `${number(state.data.undecided.length)} undecided`);
  return element("div", { class: "explorer-step" }, button("‹ Previous", "p", -1), many, button("Next ›", "n", 1));
}

/** @param {State} state @param {number} by */
function stepUndecided(state, by) {
  const { undecided } = state.data;
  if (!undecided.length) return;
  const at = undecided.indexOf(state.selected);
  const next = at < 0 ? (by > 0 ? 0 : undecided.length - 1) : (at + by + undecided.length) % undecided.length;
  state.set({ selected: undecided[next], goTo: undecided[next] });
}

/** @param {State} state @param {Overlay} overlay @param {number} k */
function objectParts(state, overlay, k) {
  const { data } = state;
  const members = [...data.clusterMembers.of(k)].sort((a, b) => data.itemProbability[a] - data.itemProbability[b]);
  const present = new Set(members.map((i) => data.itemExpert[i]));
  const absent = data.experts.filter((_, f) => !present.has(f));
  const sentences = alternatives(data, k, members);
  const verb = data.verb[0].toUpperCase() + data.verb.slice(1);
  return [
    element("h3", {}, `Object ${data.clusterName[k]}`),
    ...description(data, k),
    facts(state, k, present.size),
    element("h4", {}, "Other possibilities"),
    sentences.length ? element("ul", { id: "explorer-alternatives" }, ...sentences) : element("p", {}, "Nothing: the draws agree."),
    element("h4", {}, `${verb} by ${present.size}`),
    memberTable(state, overlay, k, members),
    element("h4", {}, `Not ${data.verb} by ${absent.length}`),
    element("p", {}, absent.length ? absent.join(", ") : `Everybody ${data.verb} it.`),
    ...(data.ghostDraws ? [ghostBox(state)] : []),
  ];
}

/** Every quantity of the catalogue with its uncertainty, and every field. */
/** @param {Data} data @param {number} k */
function description(data, k) {
  const numbers = data.quantities.filter((quantity) => !quantity.text);
  const fields = data.quantities.filter((quantity) => quantity.text);
  /** @param {Quantity} quantity */
  const row = ({ label, unit, values, sd, lo, hi, digits }) => {
    const middle = values[k];
    /** @param {number} value */
    const shown = (value) => value.toFixed(digits);
    return element("tr", {}, element("th", { scope: "row" }, label),
      element("td", { class: "number" }, `${shown(middle)} ± ${shown(sd[k])}${unit}`),
      element("td", { class: "number" }, `${shown(middle + lo[k])} to ${shown(middle + hi[k])}`));
  };
  const heads = ["", "mean ± sd", "95 % interval"].map((name) => (name ? element("th", { scope: "col", class: "number" }, name) : element("td", {})));
  const table = element("table", { class: "explorer-quantities" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...numbers.map(row)));
  const rows = fields.flatMap((field) => [element("dt", {}, field.label), element("dd", {}, valueInWords(data, field, k) || "–")]);
  return [...(numbers.length ? [table] : []), ...(fields.length ? [element("dl", { class: "explorer-fields" }, ...rows)] : [])];
}

/** @param {State} state @param {number} k @param {number} present */
function facts(state, k, present) {
  const { data } = state;
  const rows = [["experts", `${present} of ${data.experts.length}`]];
  if (data.clusterReal) rows.push(["P(real)", probability(data.clusterReal[k])]);
  for (const least of new Set([data.minExperts, state.minExperts])) {
    if (least <= data.experts.length) rows.push([least === 1 ? "P(separate object)" : `P(≥ ${counted(least, "expert")})`, probability(consensusProbability(data, k, least))]);
  }
  return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

/** The members; a single number of theirs has a column, several columns are said beneath. */
/** @param {State} state @param {Overlay} overlay @param {number} k @param {number[]} members */
function memberTable(state, overlay, k, members) {
  const { data } = state;
  const single = data.columns.length === 1 && !data.columns[0].text ? data.columns[0] : null;
  /** @param {number} i */
  const point = (i) => {
    overlay.hovered = i;
    overlay.draw();
  };
  /** @param {number} i */
  const row = (i) => {
    const p = data.itemProbability[i];
    const pointing = { class: p < data.undecidedBelow ? "doubtful" : "", onmouseenter: () => point(i), onmouseleave: () => point(-1) };
    /** @param {string} text */
    const number = (text) => element("td", { class: "number" }, text);
    const cells = [element("td", {}, data.experts[data.itemExpert[i]]), element("td", {}, itemName(data, i))];
    if (single) cells.push(number(valueInWords(data, single, i)));
    const made = [element("tr", pointing, ...cells, number(probability(p)))];
    if (!single && data.columns.length) {
      made.push(element("tr", { ...pointing, class: "explorer-values" }, element("td", { colspan: cells.length + 1 }, ...memberValues(data, k, i))));
    }
    return made;
  };
  const names = ["expert", data.noun, ...(single ? [single.name] : []), "belongs"];
  const heads = names.map((name, at) => element("th", { scope: "col", class: at > 1 ? "number" : "" }, name));
  return element("table", { class: "explorer-members" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...members.flatMap(row)));
}

/** What describes an item; where a field says something else than the object's, it stands out. */
/** @param {Data} data @param {number} k @param {number} i */
function memberValues(data, k, i) {
  return data.columns.map((column, at) => {
    const said = valueInWords(data, column, i);
    const field = column.text ? data.quantities.find(({ name, text }) => text && name === column.name) : null;
    const other = field && said !== valueInWords(data, field, k);
    return element("span", {}, at ? " · " : "", element("span", { class: "quiet" }, `${column.name} `), element(other ? "b" : "span", {}, said || "–"));
  });
}

/** In which share of all draws an item sat where other than listed, as in members.csv; -1 is alone,
 *  -2 a cluster that stands for no listed object. */
/** @param {Data} data @param {number} i */
function seatsOf(data, i) {
  const seats = new Map();
  for (let p = data.seatOffsets[i]; p < data.seatOffsets[i + 1]; p++) {
    seats.set(data.seatPlace[p] - 2, data.seatDraws[p] / data.draws);
  }
  return seats;
}

/** @param {Data} data @param {number} k @param {number[]} members */
function alternatives(data, k, members) {
  const found = [];
  for (const i of members) {
    for (const [seat, share] of seatsOf(data, i)) {
      if (share >= WORTH_SAYING) found.push({ share, i, seat, text: whereInstead(data, i, seat, share, k) });
    }
  }
  found.push(...visitors(data, k, new Set(members)));
  found.sort((a, b) => b.share - a.share || a.i - b.i);
  return found.slice(0, 12).map(({ text, share, i }) => element("li", { "data-item": i, "data-share": share }, text));
}

/** @param {Data} data @param {number} i @param {number} seat @param {number} share @param {number} k */
function whereInstead(data, i, seat, share, k) {
  const whose = ownerOf(data, i);
  if (seat === -1) return `In ${percent(share)} of draws ${whose} is an object of its own.`;
  if (seat === -2) return `In ${percent(share)} of draws ${whose} is in a cluster that is not in the catalogue.`;
  return `In ${percent(share)} of draws ${whose} belongs to ${data.hasPlaces ? "the neighbour, " : ""}object ${data.clusterName[seat]}${away(data, k, seat)}.`;
}

/** @param {Data} data @param {number} i */
function ownerOf(data, i) {
  return `${data.experts[data.itemExpert[i]]}’s ${data.noun} ${itemName(data, i)}`;
}

/** Items listed with other objects that belong here in some draws. */
/** @param {Data} data @param {number} k @param {Set<number>} members @returns {Alternative[]} */
function visitors(data, k, members) {
  const near = new Set();
  for (const i of members) {
    for (const g of data.groupsOfItem(i)) {
      for (let p = data.groupOffsets[g]; p < data.groupOffsets[g + 1]; p++) near.add(data.groupMembers[p]);
    }
  }
  const found = [];
  for (const i of near) {
    const share = members.has(i) ? 0 : seatsOf(data, i).get(k) ?? 0;
    if (share < WORTH_SAYING) continue;
    const from = data.itemCluster[i];
    found.push({ share, i, text: `In ${percent(share)} of draws ${ownerOf(data, i)}, listed with object ${data.clusterName[from]}, belongs here.` });
  }
  return found;
}

/** How far apart two objects are, where distances mean something. */
/** @param {Data} data @param {number} k @param {number} other */
function away(data, k, other) {
  if (!data.hasPlaces || !data.equalScales) return "";
  const distance = data.ground.apart(data.clusterX[k], data.clusterY[k], data.clusterX[other], data.clusterY[other]);
  return ` (${distance.toFixed(data.size ? data.size.digits : data.placeDigits)}${data.ground.unit} away)`;
}

/** @param {State} state */
function ghostBox(state) {
  const { data } = state;
  const box = element("input", { type: "checkbox", id: "explorer-ghosts", onchange: () => state.set({ ghosts: box.checked }) });
  box.checked = state.ghosts;
  const words = ` the object in ${number(data.ghostDraws?.length ?? 0)} draws, faint`;
  return element("div", {}, element("label", {}, box, words),
    element("p", { class: "quiet" }, `${data.objectShape === "point" ? "" : "Band: 95 % interval of the outline. "}${data.lanes ? "" : "Ellipse: 95 % of the centre."}`));
}
