"""A review that is under way: cases, decisions, conflicts, and the posterior that follows them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dfcrp.errors import InputError
from dfcrp.items.decisions import QUESTIONS, Decision, decision_in, standing
from dfcrp.items.items import Items
from dfcrp.review.cases import Cases
from dfcrp.review.conflicts import Conflict, check, settle
from dfcrp.review.job import Job
from dfcrp.review.photos import Photos
from dfcrp.review.store import Store
from dfcrp.review.update import Updater
from dfcrp.settings.config import Config
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: What a browser sends of a decision; the time is the server's.
SENT = ("decision", "items", "by", "note", "value")
#: The posterior follows after so many decisions, or when nobody has decided for so many seconds.
EVERY, QUIET_SECONDS = 5, 20.0


class Review:
    """What the server's requests share."""

    def __init__(self, job: Job, posterior: Posterior, store: Store, every: int = EVERY) -> None:
        self.items: Items = posterior.items
        self.config: Config = posterior.config
        self.store = store
        self.photos: Photos | None = job.photos(posterior)
        self._cases: Cases = job.cases(posterior)
        self._updater, self._every = Updater(job), every
        self._lock = threading.Lock()
        self._settled: tuple[int, tuple[Decision, ...], list[Conflict]] | None = None
        self._counted = self._begun = self._version = 0
        self._stands = self._standing()
        self.trouble = ""

    def _standing(self) -> list[Decision]:
        return [one.decision for one in standing(self.items, self.store.decisions)]

    def decide(self, sent: Json) -> Decision:
        """Check a decision and keep it; InputError says what is wrong with it."""
        row = _row(sent)
        with self._lock:
            check(self.items, self.config, decision_in(row, "the decision"), self.store.decisions)
            made = self.store.add(row)
            self._stands = self._standing()
        return made

    def settled(self) -> tuple[tuple[Decision, ...], list[Conflict]]:
        """Decisions that can all be, and the conflicts of the others."""
        with self._lock:
            every = self.store.decisions
            if self._settled is None or self._settled[0] != len(every):
                self._settled = len(every), *settle(self.items, self.config, every)
            return self._settled[1:]

    def state(self, by: str) -> Json:
        """Where the review stands, for one reviewer."""
        _, conflicts = self.settled()
        people: dict[str, int] = {}
        for one in self._stands:
            people[one.by] = people.get(one.by, 0) + 1
        return {
            "version": self._version,
            "updating": self._updater.busy,
            "trouble": self.trouble,
            "kept": len(self.store.decisions),
            "inPosterior": self._counted,
            "people": people,
            "numbers": self._cases.about["numbers"],
            "conflicts": [_in_words(one) for one in conflicts],
            "own": [_shown(one) for one in self._stands if one.by == by],
        }

    def cases(self, by: str) -> Json:
        """The cases that this reviewer has not decided; last those that others have."""
        own = {key for one in self._stands if one.by == by for key in answered(one)}
        others = {key for one in self._stands if one.by != by for key in answered(one)}
        about = self._cases.about
        left = [case for case in about["cases"] if _key(case) not in own]
        left.sort(key=lambda case: _key(case) in others)  # stable
        return {**about, "cases": left, "version": self._version}

    def piece(self, name: str) -> bytes | None:
        """The photograph beneath a case."""
        found = self._cases.pieces.get(name)
        if found is None or self.photos is None:
            return None
        return self.photos.piece(*found)

    def tend(self, idle_seconds: float) -> None:
        """Take over an update that is done; begin another where it is time."""
        found = self._updater.finished()
        if isinstance(found, Cases):
            self._cases, self.trouble = found, ""
            self._counted, self._version = self._begun, self._version + 1
        elif found is not None:
            self.trouble, self._counted = found, self._begun
        kept = len(self.store.decisions)
        waiting = kept - self._counted
        due = waiting >= self._every or (waiting > 0 and idle_seconds > QUIET_SECONDS)
        if self._every > 0 and due and not self._updater.busy:
            agreed, _ = self.settled()
            self._begun = kept
            self._updater.start(agreed)

    def close(self) -> None:
        """Stop the update, and leave the table as it should be."""
        self._updater.stop()
        self.store.close()


def answered(one: Decision) -> list[tuple[str, frozenset[str]]]:
    """The questions that a decision answers; what is not real is no object, be it one or two."""
    about = [QUESTIONS[one.decision]]
    if one.decision in ("not_real", "slip"):
        about.append(QUESTIONS["together"])
    return [(each, frozenset(one.items)) for each in about]


def _key(case: Json) -> tuple[str, frozenset[str]]:
    return case["about"], frozenset(case["items"])


def _row(sent: Json) -> Json:
    """What was sent, of the right types; anything else is refused."""
    if not isinstance(sent, Mapping) or not {"decision", "items", "by"} <= {*sent} <= {*SENT}:
        raise InputError("a decision has decision, items and by, and perhaps note and value")
    items = sent["items"]
    if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
        raise InputError("items is a list of ids")
    texts = {name: sent.get(name, "") for name in SENT if name != "items"}
    if not all(isinstance(text, str) for text in texts.values()):
        raise InputError("decision, by, note and value are text")
    if not texts["by"].strip():
        raise InputError("by: say who you are")
    return {**{name: text.strip() for name, text in texts.items()}, "items": tuple(items)}


def _shown(one: Decision) -> Json:
    return {**dataclasses.asdict(one), "items": list(one.items)}


def _in_words(one: Conflict) -> Json:
    return {"reason": one.reason, "decisions": [_shown(each) for each in one.decisions]}
