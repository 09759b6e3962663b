// One object: who marked it and who did not, how sure that is, and what else could be.

/** Alternatives below this share of draws are not worth a sentence. */
const WORTH_SAYING = 0.01;

function makeObjectPanel(state, overlay) {
  return {
    update() {
      const panel = byId("object");
      const k = state.selected;
      panel.replaceChildren(...(k < 0 ? [stepButtons(state), noObject(state)] : [stepButtons(state), ...objectParts(state, overlay, k)]));
    },
  };
}

function noObject(state) {
  const many = state.data.undecided.length;
  return element("p", { class: "quiet" }, `Click an object on the map. ${counted(many, "object")} ${many === 1 ? "is" : "are"} undecided: n and p lead through them, least sure first.`);
}

function stepButtons(state) {
  const button = (words, key, by) =>
    element("button", { type: "button", title: `Key ${key}`, "data-step": by, onclick: () => stepUndecided(state, by) }, words);
  const many = element("span", {}, `${number(state.data.undecided.length)} undecided`);
  return element("div", { class: "explorer-step" }, button("‹ Previous", "p", -1), many, button("Next ›", "n", 1));
}

function stepUndecided(state, by) {
  const { undecided } = state.data;
  if (!undecided.length) return;
  const at = undecided.indexOf(state.selected);
  const next = at < 0 ? (by > 0 ? 0 : undecided.length - 1) : (at + by + undecided.length) % undecided.length;
  state.set({ selected: undecided[next], goTo: undecided[next] });
}

function objectParts(state, overlay, k) {
  const { data } = state;
  const members = [...data.clusterMembers.of(k)].sort((a, b) => data.markingProbability[a] - data.markingProbability[b]);
  const present = new Set(members.map((i) => data.markingExpert[i]));
  const absent = data.experts.filter((_, f) => !present.has(f));
  const sentences = alternatives(data, k, members);
  return [
    element("h3", {}, `Object ${data.clusterName[k]}`),
    facts(state, k, present.size),
    element("h4", {}, "What else could be"),
    sentences.length ? element("ul", { id: "explorer-alternatives" }, ...sentences) : element("p", {}, "Nothing: the draws agree."),
    element("h4", {}, `Marked by ${present.size}`),
    memberTable(state, overlay, members),
    element("h4", {}, `Not marked by ${absent.length}`),
    element("p", {}, absent.length ? absent.join(", ") : "Everybody marked it."),
    ghostBox(state),
  ];
}

function facts(state, k, present) {
  const { data } = state;
  const { axes, degree, unit } = data.ground;
  const place = (value, sd) => `${value.toFixed(data.placeDigits)} ± ${sd.toFixed(data.placeDigits)}${degree}`;
  const size = [data.clusterDiameter[k], data.clusterDiameterLo[k], data.clusterDiameterHi[k]].map((d) => d.toFixed(data.sizeDigits));
  const rows = [
    [`${axes[0]} ± sd`, place(data.ground.shownX(data.clusterX[k]), data.clusterXSd[k])],
    [`${axes[1]} ± sd`, place(data.clusterY[k] + data.origin[1], data.clusterYSd[k])],
    ["diameter", `${size[0]}${unit} (95 %: ${size[1]} to ${size[2]})`],
    ["experts", `${present} of ${data.experts.length}`],
  ];
  if (data.clusterReal) rows.push(["P(real)", probability(data.clusterReal[k])]);
  for (const least of new Set([data.minExperts, state.minExperts])) {
    if (least <= data.experts.length) rows.push([`P(≥ ${counted(least, "expert")})`, probability(consensusProbability(data, k, least))]);
  }
  return element("dl", {}, ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function memberTable(state, overlay, members) {
  const { data } = state;
  const point = (i) => {
    overlay.hovered = i;
    overlay.draw();
  };
  const row = (i) => {
    const p = data.markingProbability[i];
    return element("tr", { class: p < data.undecidedBelow ? "doubtful" : "", onmouseenter: () => point(i), onmouseleave: () => point(-1) },
      element("td", {}, data.experts[data.markingExpert[i]]),
      element("td", {}, markingName(data, i)),
      element("td", { class: "number" }, data.markingDiameter[i].toFixed(data.sizeDigits)),
      element("td", { class: "number" }, probability(p)));
  };
  const heads = ["expert", "marking", "diameter", "belongs"].map((name, k) => element("th", { scope: "col", class: k > 1 ? "number" : "" }, name));
  return element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...members.map(row)));
}

/** In which share of draws a marking sat with most members of which object; -1 is alone. */
function seatsOf(data, i) {
  const seats = new Map();
  for (const g of data.groupsOfMarking(i)) {
    const seat = homeOf(data, g, i);
    seats.set(seat, (seats.get(seat) ?? 0) + data.groupDraws[g] / data.drawsUsed);
  }
  return seats;
}

function alternatives(data, k, members) {
  const found = [];
  for (const i of members) {
    for (const [seat, share] of seatsOf(data, i)) {
      const asListed = members.length === 1 ? seat === -1 : seat === k;
      if (!asListed && share >= WORTH_SAYING) found.push({ share, i, seat, text: whereInstead(data, i, seat, share, k) });
    }
  }
  found.push(...visitors(data, k, new Set(members)));
  found.sort((a, b) => b.share - a.share || a.i - b.i);
  return found.slice(0, 12).map(({ text, share, i }) => element("li", { "data-marking": i, "data-share": share }, text));
}

function whereInstead(data, i, seat, share, k) {
  const whose = `${data.experts[data.markingExpert[i]]}’s marking ${markingName(data, i)}`;
  if (seat === -1) return `In ${percent(share)} of draws ${whose} is an object of its own.`;
  return `In ${percent(share)} of draws ${whose} belongs to the neighbour, object ${data.clusterName[seat]}${away(data, k, seat)}.`;
}

/** Markings listed elsewhere that sit here in some draws. */
function visitors(data, k, members) {
  const near = new Set();
  for (const i of members) {
    for (const g of data.groupsOfMarking(i)) {
      for (let p = data.groupOffsets[g]; p < data.groupOffsets[g + 1]; p++) near.add(data.groupMembers[p]);
    }
  }
  const found = [];
  for (const i of near) {
    const share = members.has(i) ? 0 : seatsOf(data, i).get(k) ?? 0;
    if (share < WORTH_SAYING) continue;
    const whose = `${data.experts[data.markingExpert[i]]}’s marking ${markingName(data, i)}`;
    const from = data.markingCluster[i];
    found.push({ share, i, text: `In ${percent(share)} of draws ${whose}, listed with object ${data.clusterName[from]}, belongs here.` });
  }
  return found;
}

function away(data, k, other) {
  const distance = data.ground.apart(data.clusterX[k], data.clusterY[k], data.clusterX[other], data.clusterY[other]);
  return ` (${distance.toFixed(data.sizeDigits)}${data.ground.unit} away)`;
}

function ghostBox(state) {
  const box = element("input", { type: "checkbox", id: "explorer-ghosts", onchange: () => state.set({ ghosts: box.checked }) });
  box.checked = state.ghosts;
  const words = ` the object in ${number(state.data.ghostDraws.length)} draws, faint`;
  return element("div", {}, element("label", {}, box, words),
    element("p", { class: "quiet" }, "Band: 95 % interval of the rim. Ellipse: 95 % of the centre."));
}
