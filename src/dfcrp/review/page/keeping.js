// Where decisions go: to the server, or in a page without one to the browser, until they are downloaded.

const COLUMNS = ["decision", "items", "by", "when", "note", "value"];
const WITHDRAW = "withdraw";
/** The question that a decision answers. */
const QUESTION = /** @type {{ [decision: string]: string }} */ ({ together: "one object", apart: "one object", real: "real", not_real: "real", slip: "real" });

/** @returns {Keeper} */
function serverKeeper() {
  /** @param {string} path @param {RequestInit} [options] */
  const ask = async (path, options) => {
    const response = await fetch(path, { credentials: "same-origin", ...options });
    if (!response.ok) throw new Error(await reasonOf(response));
    return response.json();
  };
  const asked = (/** @type {string} */ by) => new URLSearchParams({ by });
  return {
    cases: (by) => ask(`cases?${asked(by)}`),
    state: (by) => ask(`state?${asked(by)}`),
    decide: (row) => ask("decisions", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(row) }),
    async save() {
      const response = await fetch("decisions.csv", { credentials: "same-origin" });
      if (!response.ok) throw new Error(await reasonOf(response));
      return response.text();
    },
  };
}

/** @param {Response} response */
async function reasonOf(response) {
  const text = await response.text();
  try {
    return String(JSON.parse(text).error);
  } catch {
    return text || `the server answers ${response.status}`;
  }
}

/** @param {Review} review @param {string} key @returns {Keeper} */
function pageKeeper(review, key) {
  const place = `dfcrp-review-${key}`;
  /** @type {Decided[]} */
  const rows = JSON.parse(recall(place) || "[]");
  return {
    async cases(by) {
      const own = new Set(standingRows(rows).filter((row) => row.by === by).flatMap(answered));
      return { ...review, version: 0, cases: review.cases.filter((one) => !own.has(keyOf(one.about, one.items))) };
    },
    async state(by) {
      const stands = standingRows(rows);
      /** @type {{ [name: string]: number }} */
      const people = {};
      for (const row of stands) people[row.by] = (people[row.by] ?? 0) + 1;
      const own = stands.filter((row) => row.by === by);
      return { version: 0, updating: false, trouble: "", kept: rows.length, inPosterior: null, people, numbers: review.numbers, conflicts: [], own };
    },
    async decide(row) {
      const last = rows.length ? Date.parse(rows[rows.length - 1].when) : 0;
      const when = new Date(Math.max(Date.now(), last + 1)).toISOString().replace("Z", "+00:00");
      rows.push({ ...row, when });
      remember(place, JSON.stringify(rows));
    },
    async save() {
      return [COLUMNS, ...rows.map(cellsOf)].map((cells) => cells.map(quoted).join(",")).join("\n") + "\n";
    },
  };
}

/** As dfcrp.items.decisions.standing: later ones take the place of earlier ones, or take them back. */
/** @param {Decided[]} rows */
function standingRows(rows) {
  /** @type {Map<string, Decided>} */
  const found = new Map();
  for (const row of rows) {
    const about = row.decision === WITHDRAW ? QUESTION[row.value] : QUESTION[row.decision];
    const place = `${row.by}\n${keyOf(about, row.items)}`;
    found.delete(place);
    if (row.decision !== WITHDRAW) found.set(place, row);
  }
  return [...found.values()];
}

/** What is not real is no object, be it one or two. */
/** @param {Decided} row */
function answered(row) {
  const keys = [keyOf(QUESTION[row.decision], row.items)];
  return row.decision === "not_real" || row.decision === "slip" ? [...keys, keyOf("one object", row.items)] : keys;
}

/** @param {string} about @param {string[]} items */
function keyOf(about, items) {
  return JSON.stringify([about, [...items].sort()]);
}

/** @param {Decided} row */
function cellsOf(row) {
  const ids = row.items.map((id) => (/\s/.test(id) ? `"${id}"` : id)).join(" ");
  return [row.decision, ids, row.by, row.when, row.note, row.value];
}

/** @param {string} cell */
function quoted(cell) {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Not every browser keeps anything for a file. */
/** @param {string} place */
function recall(place) {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} place @param {string} text */
function remember(place, text) {
  try {
    localStorage.setItem(place, text);
  } catch {
    // The decisions are still on the page, to be downloaded.
  }
}
