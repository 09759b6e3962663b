// The review: shows one case after the other, sends what is decided, and says where things stand.

/** Milliseconds between two questions to the server how things stand. */
const PAUSE = 2000;
/** So many cases at hand, and others are asked for. */
const FEW = 5;

class ReviewPage {
  /** @param {Keeper} keeper @param {boolean} blind @param {boolean} server */
  constructor(keeper, blind, server) {
    this.keeper = keeper;
    this.server = server;
    /** @type {Review | null} */
    this.review = null;
    /** @type {ReviewCase | null} */
    this.shown = null;
    /** Cases that were skipped come last, the first skipped first. */
    /** @type {string[]} */
    this.skipped = [];
    /** @type {Decided[]} */
    this.own = [];
    this.busy = false;
    /** What was last said of how things stand. */
    this.told = "";
    this.by = byId("by");
    this.note = byId("note");
    this.blind = byId("blind");
    this.by.value = recall("dfcrp-review-by");
    this.blind.checked = blind || recall("dfcrp-review-blind") === "yes";
    this.blind.disabled = blind;
    this.listen();
  }

  get name() {
    return this.by.value.trim();
  }

  listen() {
    this.by.addEventListener("change", () => {
      remember("dfcrp-review-by", this.name);
      this.refresh();
    });
    this.blind.addEventListener("change", () => {
      remember("dfcrp-review-blind", this.blind.checked ? "yes" : "no");
      this.show();
    });
    byId("skip").addEventListener("click", () => this.skip());
    byId("undo").addEventListener("click", () => this.undo());
    byId("save").addEventListener("click", () => this.attempt(() => this.save()));
    document.addEventListener("keydown", (event) => this.press(event));
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const field = document.activeElement instanceof HTMLInputElement && document.activeElement.type === "text";
    if (field && (event.key === "Escape" || event.key === "Enter")) byId("question").focus();
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const option = this.shown?.options[Number(event.key) - 1];
    if (option) this.decide(option);
    else if (event.key === "s") this.skip();
    else if (event.key === "u") this.undo();
    else if (event.key === "n") this.note.focus();
    else return;
    event.preventDefault();
  }

  /** Ask for cases and for how things stand. */
  async refresh() {
    await this.attempt(async () => {
      const by = this.name;
      const [review, state] = await Promise.all([this.keeper.cases(by), this.keeper.state(by)]);
      if (by !== this.name) return;
      this.review = review;
      this.show();
      this.tell(state);
    });
  }

  async poll() {
    if (!this.busy) {
      await this.attempt(async () => {
        const state = await this.keeper.state(this.name);
        if (state.version === this.review?.version) this.tell(state);
        else await this.refresh();
      });
    }
    setTimeout(() => this.poll(), PAUSE);
  }

  /** Do something; say why it cannot be done. */
  /** @param {() => Promise<void>} work */
  async attempt(work) {
    const trouble = byId("trouble");
    try {
      await work();
      trouble.hidden = true;
    } catch (error) {
      const lost = error instanceof TypeError;
      trouble.textContent = lost ? "The server does not answer. What you decide now is not kept." : String(error instanceof Error ? error.message : error);
      trouble.hidden = false;
    }
  }

  /** The case that comes next; the one that is shown stays as long as it is to be decided. */
  next() {
    const cases = this.review?.cases ?? [];
    const same = cases.find((one) => one.id === this.shown?.id && !this.skipped.includes(one.id));
    const fresh = cases.find((one) => !this.skipped.includes(one.id));
    const later = this.skipped.flatMap((id) => cases.filter((one) => one.id === id));
    return same ?? fresh ?? later[0] ?? null;
  }

  show() {
    const { review } = this;
    if (!review) return;
    const before = this.shown;
    this.shown = this.next();
    const { shown } = this;
    const question = byId("question");
    byId("skip").disabled = !shown;
    byId("why").textContent = shown ? this.why(shown) : "";
    byId("views").replaceChildren(...(shown ? caseViews(review, shown, this.blind.checked, (option) => this.decide(option)) : []));
    byId("views").dataset.case = shown?.id ?? "";
    byId("views").style.setProperty("--columns", String(shown && !shown.fields ? shown.options.length + 1 : shown?.options.length ?? 1));
    question.textContent = shown ? questionOf(shown) : "Nothing is left to decide.";
    if (before && before.id !== shown?.id && !(document.activeElement instanceof HTMLInputElement)) question.focus({ preventScroll: true });
  }

  /** @param {ReviewCase} shown */
  why(shown) {
    const reason = this.blind.checked ? "" : shown.why;
    return reason || "This is one of the cases that are least certain.";
  }

  /** @param {ReviewState} state */
  tell(state) {
    this.own = state.own;
    const mine = state.people[this.name] ?? 0;
    const all = Object.values(state.people).reduce((sum, count) => sum + count, 0);
    const left = this.review?.cases.length ?? 0;
    byId("progress").textContent = `${counted(mine, "decision")} by you, ${number(all)} by all; ${number(left)} at hand`;
    byId("undo").disabled = !this.own.length;
    byId("review").dataset.ready = "yes";
    byId("review").dataset.version = String(state.version);
    // What is as it was stays, so that nobody loses the button that they are about to press.
    const text = JSON.stringify(state);
    if (text === this.told) return;
    this.told = text;
    byId("numbers").replaceChildren(...state.numbers.map(numberShown));
    byId("posterior").textContent = this.follows(state);
    byId("conflicts").replaceChildren(...state.conflicts.map(conflictShown));
    const rows = [...this.own].reverse().map((row) =>
      element("li", {}, `${row.decision.replace("_", " ")}: ${row.items.join(", ")}${row.note ? ` (${row.note})` : ""} `,
        element("button", { type: "button", "aria-label": `Withdraw: ${row.decision.replace("_", " ")} ${row.items.join(", ")}`, onclick: () => this.withdraw(row) }, "Withdraw")),
    );
    byId("own").replaceChildren(...rows);
  }

  /** @param {ReviewState} state */
  follows(state) {
    if (state.inPosterior === null) return "These numbers stay as they are until the decisions are used: dfcrp fit FILE --decisions decisions.csv.";
    const waiting = state.kept - state.inPosterior;
    const words = `The numbers are given ${counted(state.inPosterior, "decision")}`;
    if (state.trouble) return `${words}. The last update failed: ${state.trouble}`;
    if (state.updating) return `${words}; being updated with ${number(waiting)} more.`;
    return waiting ? `${words}; ${number(waiting)} more wait for the next update.` : `${words}.`;
  }

  /** @param {Option} option */
  async decide(option) {
    const { shown } = this;
    if (!shown || this.busy) return;
    if (!this.name) {
      byId("status").textContent = "Say first who you are.";
      this.by.focus();
      return;
    }
    this.busy = true;
    await this.attempt(async () => {
      await this.keeper.decide({ decision: option.decision, items: option.items, by: this.name, note: this.note.value, value: "" });
      this.note.value = "";
      byId("status").textContent = `Kept: ${option.decision.replace("_", " ")}, ${option.items.join(", ")}.`;
      this.forget(shown);
      await this.after();
    });
    this.busy = false;
  }

  /** @param {ReviewCase} shown */
  forget(shown) {
    if (this.review) this.review = { ...this.review, cases: this.review.cases.filter((one) => one.id !== shown.id) };
    this.skipped = this.skipped.filter((id) => id !== shown.id);
  }

  async after() {
    if ((this.review?.cases.length ?? 0) < FEW) this.review = await this.keeper.cases(this.name);
    this.show();
    this.tell(await this.keeper.state(this.name));
  }

  skip() {
    if (!this.shown) return;
    const { id } = this.shown;
    this.skipped = [...this.skipped.filter((one) => one !== id), id];
    byId("status").textContent = "Skipped.";
    this.show();
  }

  async undo() {
    const last = this.own[this.own.length - 1];
    if (last) await this.withdraw(last);
  }

  /** @param {Decided} row */
  async withdraw(row) {
    if (this.busy) return;
    this.busy = true;
    await this.attempt(async () => {
      await this.keeper.decide({ decision: WITHDRAW, items: row.items, by: this.name, note: "", value: row.decision });
      byId("status").textContent = `Withdrawn: ${row.decision.replace("_", " ")}, ${row.items.join(", ")}.`;
      this.review = await this.keeper.cases(this.name);
      const key = answered(row);
      this.shown = this.review.cases.find((one) => key.includes(keyOf(one.about, one.items))) ?? this.shown;
      await this.after();
    });
    this.busy = false;
  }

  async save() {
    const text = await this.keeper.save();
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    element("a", { href: address, download: "decisions.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}

/** @param {ReviewNumber} found */
function numberShown(found) {
  const { mean, interval: range } = estimate(found);
  return element("div", {}, element("dt", {}, found.name), element("dd", {}, found.lo === found.hi ? mean : `${mean} (${range})`));
}

/** @param {Conflict} conflict */
function conflictShown(conflict) {
  const rows = conflict.decisions.map((row) =>
    element("li", {}, `${row.by || "the run"}: ${row.decision.replace("_", " ")} ${row.items.join(", ")}${row.note ? ` (${row.note})` : ""}`),
  );
  return element("div", { class: "review-conflict" }, element("strong", {}, "Conflict: "), `${conflict.reason}. None of these counts until one is withdrawn.`, element("ul", {}, ...rows));
}

function startReview() {
  // The token is in a cookie by now.
  if (location.search) history.replaceState(null, "", location.pathname);
  const found = JSON.parse(byId("content").textContent ?? "");
  const keeper = found.server ? serverKeeper() : pageKeeper(found.review, found.key);
  const page = new ReviewPage(keeper, found.blind, found.server);
  if (!page.name) page.by.focus();
  page.refresh().then(() => {
    if (found.server) page.poll();
  });
}

startReview();
