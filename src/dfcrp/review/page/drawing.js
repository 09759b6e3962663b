// A case in pictures: what was marked, and each answer as the draws have it.

const SIDE = 1000;
const HUES = 7;
/** What answers are called. */
const ANSWERS = {
  together: "One object",
  apart: "Two objects",
  real: "Real",
  not_real: "Not real",
  slip: "A slip",
};

/** @param {number} k @returns {string} */
function letter(k) {
  return k < 26 ? String.fromCharCode(65 + k) : `${letter(Math.floor(k / 26) - 1)}${letter(k % 26)}`;
}

/** @param {ReviewCase} shown @param {Option} option */
function answerOf(shown, option) {
  if (shown.about === "one object" && option.decision === "not_real") return "Neither is real";
  return ANSWERS[/** @type {keyof typeof ANSWERS} */ (option.decision)] ?? option.decision;
}

/** Two questions: are these one object, is this real? */
/** @param {ReviewCase} shown */
function questionOf(shown) {
  const asked = shown.shown.filter((mark) => mark.asked).map((_, k) => letter(k));
  const which = asked.length > 4 ? `${asked.length} marks` : asked.join(" and ");
  const where = shown.image ? `, on ${shown.image}` : "";
  if (shown.about === "one object") return `Are ${which} one object or two${where}?`;
  return `Is ${which} real${where}?`;
}

/** Everything of a case: what was marked, then a picture and a button for each answer. */
/** @param {Review} review @param {ReviewCase} shown @param {boolean} blind @param {(option: Option) => void} choose */
function caseViews(review, shown, blind, choose) {
  const cards = shown.options.map((option, k) => optionView(shown, option, k, blind, choose));
  return [shown.fields ? recordView(review, shown) : markView(review, shown), ...cards];
}

/** @param {Review} review @param {ReviewCase} shown */
function markView(review, shown) {
  const marks = shown.shown.flatMap((mark) => {
    const look = mark.asked ? `mark asked ${hue(mark.expert)}` : `mark ${hue(mark.expert)}`;
    return [...(shown.photo ? [outline(shown, mark, "halo")] : []), outline(shown, mark, look)];
  });
  const letters = shown.shown.flatMap((mark, k) => (mark.asked ? [letterOf(shown, k)] : []));
  const picture = paper(shown, `What was marked: ${shown.items.join(", ")} and what is around`, ...lanes(shown), ...marks, ...letters);
  return element("figure", { class: "review-view whole" }, picture, element("figcaption", {}, key(review, shown)));
}

/** @param {ReviewCase} shown @param {Option} option @param {number} k @param {boolean} blind @param {(option: Option) => void} choose */
function optionView(shown, option, k, blind, choose) {
  const words = answerOf(shown, option);
  const share = blind || option.share === null ? null : element("span", { class: "share" }, percent(option.share));
  const button = element(
    "button",
    { type: "button", "data-decision": option.decision, onclick: () => choose(option) },
    element("kbd", {}, String(k + 1)),
    ` ${words} `,
    share,
  );
  if (shown.fields) {
    const groups = option.objects.map((one) => one.members.map(letter).join(" = "));
    return element("figure", { class: "review-view" }, button, element("figcaption", {}, groups.join("; ")));
  }
  return element("figure", { class: "review-view" }, answerPicture(shown, option, words), button);
}

/** @param {ReviewCase} shown @param {Option} option @param {string} words */
function answerPicture(shown, option, words) {
  /** @type {Map<number, number>} */
  const objectOf = new Map();
  option.objects.forEach((one, k) => {
    for (const member of one.members) objectOf.set(member, k);
  });
  const marks = shown.shown.map((mark, k) => {
    const object = objectOf.get(k);
    const look = mark.asked ? "mark asked" : "mark";
    if (object !== undefined) return outline(shown, mark, `${look} ${hue(object)}`);
    return outline(shown, mark, mark.asked ? "gone" : "around");
  });
  const objects = option.objects.flatMap((one, k) => [
    ...(shown.photo ? [outline(shown, one, "halo object")] : []),
    outline(shown, one, `object ${hue(k)} ${k ? "dash1" : ""}`),
    ...(shown.shape === "point" ? spokes(shown, one, k) : []),
  ]);
  return paper(shown, words, ...lanes(shown), ...objects, ...marks);
}

/** Of points, lines from the object to its members. */
/** @param {ReviewCase} shown @param {ObjectShown} one @param {number} k */
function spokes(shown, one, k) {
  return one.members.map((member) => {
    const mark = shown.shown[member];
    return drawing("line", { x1: one.x, y1: one.y, x2: mark.x, y2: mark.y, class: `mark ${hue(k)}` });
  });
}

/** @param {ReviewCase} shown @param {string} words @param {...SVGElement} parts */
function paper(shown, words, ...parts) {
  const look = { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": words, class: shown.photo ? "photo" : "plain" };
  const photo = shown.photo
    ? drawing("image", { href: shown.photo, width: SIDE, height: SIDE, preserveAspectRatio: "none" })
    : null;
  return drawing("svg", look, photo, ...parts);
}

/** @param {ReviewCase} shown */
function lanes(shown) {
  const room = SIDE / Math.max(shown.lanes.length, 1);
  return shown.lanes.slice(1).map((_, k) => drawing("line", { x1: 0, x2: SIDE, y1: (k + 1) * room, y2: (k + 1) * room, class: "lane" }));
}

/** @param {ReviewCase} shown @param {Placed} mark @param {string} look */
function outline(shown, mark, look) {
  const { x, y, w, h, a } = mark;
  const turn = a ? `rotate(${a} ${x} ${y})` : null;
  if (shown.shape === "box") return drawing("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, transform: turn, class: look });
  const dot = look.includes("object") ? 26 : 14;
  const [rx, ry] = shown.shape === "point" ? [dot, dot] : [w / 2, h / 2];
  return drawing("ellipse", { cx: x, cy: y, rx, ry, transform: turn, class: look });
}

/** The letter of a mark, outside of it and away from the others that are asked about. */
/** @param {ReviewCase} shown @param {number} k */
function letterOf(shown, k) {
  const mark = shown.shown[k];
  const others = shown.shown.filter((one) => one.asked && one !== mark);
  /** @param {"x" | "y"} side */
  const away = (side) => mark[side] - others.reduce((sum, one) => sum + one[side], 0) / Math.max(others.length, 1);
  const [right, down] = [[1, -1], [-1, 1], [-1, -1], [1, 1]][k % 4];
  const apart = others.length > 0 && Math.hypot(away("x"), away("y")) > SIDE / 50;
  const angle = apart ? Math.atan2(away("y"), away("x")) : Math.atan2(down, right);
  /** @param {number} at */
  const inside = (at) => Math.min(Math.max(at, 30), SIDE - 30);
  const x = inside(mark.x + (mark.w / 2 + 28) * Math.cos(angle));
  const y = inside(mark.y + (mark.h / 2 + 28) * Math.sin(angle));
  return drawing("text", { x, y, class: "letter", "text-anchor": "middle", "dominant-baseline": "central" }, letter(k));
}

/** @param {number} code */
function hue(code) {
  const dash = Math.floor(code / HUES) % 3;
  return `e${code % HUES}${dash ? ` dash${dash}` : ""}`;
}

/** Who marked what is asked. */
/** @param {Review} review @param {ReviewCase} shown */
function key(review, shown) {
  const asked = shown.shown.flatMap((mark, k) => {
    if (!mark.asked) return [];
    const line = drawing("line", { x1: 0, y1: 8, x2: 28, y2: 8, class: `mark asked ${hue(mark.expert)}` });
    const sample = drawing("svg", { viewBox: "0 0 28 16", "aria-hidden": "true", class: shown.photo ? "photo" : "plain" }, line);
    return [element("li", {}, sample, ` ${letter(k)}: ${wordsOf(review, mark)}`)];
  });
  return element("ul", { class: "review-key" }, ...asked);
}

/** @param {Review} review @param {MarkShown} mark */
function wordsOf(review, mark) {
  return [review.experts[mark.expert], mark.id, mark.says].filter(Boolean).join(" · ");
}

/** Records side by side; what differs between those that are asked about stands out. */
/** @param {Review} review @param {ReviewCase} shown */
function recordView(review, shown) {
  const { shown: marks, fields } = shown;
  const heads = marks.map((mark, k) => element("th", { scope: "col", class: mark.asked ? "asked" : "" }, `${letter(k)}: ${wordsOf(review, mark)}`));
  const asked = marks.flatMap((mark, k) => (mark.asked ? [k] : []));
  const rows = (fields ?? []).map(({ name, cells }) => {
    const differs = new Set(asked.map((k) => cells[k].trim().toLowerCase())).size > 1;
    const line = cells.map((cell, k) => element("td", { class: marks[k].asked ? `asked ${differs ? "differs" : ""}` : "" }, cell || "–"));
    return element("tr", {}, element("th", { scope: "row" }, name), ...line);
  });
  const table = element("table", {}, element("thead", {}, element("tr", {}, element("td", {}), ...heads)), element("tbody", {}, ...rows));
  return element("div", { class: "review-records", tabindex: "0", role: "region", "aria-label": "Records side by side" }, table);
}
