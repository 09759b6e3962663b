"""Records of several fields, such as names, dates and codes, from several lists."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import DfcrpWarning, SettingsError
from dfcrp.likelihoods.base import Evidence, Layout, Likelihood, NewItems
from dfcrp.likelihoods.integrated import Newcomers, weigh_beside
from dfcrp.likelihoods.record import kernel, report
from dfcrp.likelihoods.record.candidates import unique_pairs
from dfcrp.likelihoods.record.fields import KINDS, Fields, encode_fields
from dfcrp.likelihoods.record.hyper import RecordSettings, excess_of_pairs, log_bayes_factors
from dfcrp.likelihoods.record.prepare import Prepared, new_records, prepare
from dfcrp.likelihoods.record.report import dependent_fields
from dfcrp.markup import SectionMaker
from dfcrp.neighbours.neighbourhood import Neighbourhood, components_of
from dfcrp.summaries.fit import Check
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.likelihoods.record.kernel import RecordHyper
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.settings.config import Config

#: Candidates that are this much less likely (log scale) to be one object than two are left out.
HOPELESS = -10.0
#: Two records of one expert compete if they are more likely one object than two; two of different
#: experts are in contact if it is not quite sure either way.
CONTACT = 15.0
#: Partners of a record on one list that may compete for it, the best first, and pairs of
#: competitors for each record that are moved together.
BEST_PARTNERS, RIVALS_PER_RECORD = 3, 0.25
#: What stands beside the fields: different objects are alike in several fields at once.
RELATED = "alike as different objects are"
#: Members of a cluster where no rule bounds them.
MOST_MEMBERS = 64


class _Records(Likelihood):
    """Fields that are right, have a typo, or are wrong."""

    name = "records"
    noun = "record"
    Settings = RecordSettings
    text = True

    def complete(self, values: Mapping[str, object]) -> Json:
        """Text cannot be offset or scaled."""
        kept = dict(values)
        if kept.pop("expert_bias", "none") not in ("auto", "none"):
            raise SettingsError(
                "expert_bias (--expert-bias) is not for records: values are text, in which "
                "nothing can be offset or scaled; leave it out"
            )
        return kept

    def check(self, items: Items, config: Config) -> None:
        """Text has no distances."""
        if config.run.nearest is not None or isinstance(config.run.radius, float):
            name = "radius" if config.run.nearest is None else "nearest"
            raise SettingsError(
                f"run.{name} (--{name}) is about distances, which text does not have: say "
                "with likelihood.keys in which fields records of one object agree, or give pairs "
                "of your own (--candidates)"
            )

    def usual_alpha_rate(self, n: int) -> float:
        """Most records are of objects that few lists have, so α goes with their number."""
        return 1.0 / n

    def adapt(self, items: Items, settings: RecordSettings, one_per_expert: bool) -> RecordSettings:
        """With the kind of every field, and whether a list may repeat an object."""
        if settings.repeats and one_per_expert:
            raise SettingsError(
                "likelihood.repeats: by this prior no list has an object twice; say run.prior = "
                '"crp" (--prior crp) instead, and leave this out'
            )
        found = self.fields(items, settings)
        named = {
            kind: tuple(n for n, own in zip(found.names, found.kinds, strict=True) if own == kind)
            for kind in KINDS
        }
        return replace(
            settings,
            strings=named["string"],
            texts=named["text"],
            dates=named["date"],
            numbers=named["number"],
            places=named["place"],
            categories=named["category"],
            identifiers=named["identifier"],
            repeats=settings.repeats or not one_per_expert,
        )

    def fields(self, items: Items, settings: RecordSettings) -> Fields:
        """The records as codes."""
        return encode_fields(items.columns, settings.kinds)

    def prepared(self, items: Items, settings: RecordSettings) -> Prepared:
        """Candidates and a first guess of the law, worked out once for each items."""
        return prepare(items, settings)

    def lay_out(self, items: Items, experts: NDArray[np.int64], config: Config) -> Layout:
        """Candidates come from keys, not from distances."""
        found = self.prepared(items, config.likelihood)
        for words in report.aside_words(found.records.aside, items.id.tolist()):
            warnings.warn(words[0].lower() + words[1:].rstrip("."), DfcrpWarning, stacklevel=2)
        for words in _doubts(found, items):
            warnings.warn(words, DfcrpWarning, stacklevel=2)
        most = min(len(np.unique(experts)), MOST_MEMBERS, len(items))
        hyper = found.hyper(most)
        factors = log_bayes_factors(hyper, found.candidates.pairs)
        kept = factors > HOPELESS
        pairs, factors = found.candidates.pairs[kept], factors[kept]
        same = experts[pairs[:, 0]] == experts[pairs[:, 1]]
        component = components_of(pairs, len(items), True)
        neighbourhood = Neighbourhood(
            bounded=True,
            pairs=pairs,
            rivals=rivals_of(pairs, factors, experts),
            contacts=pairs[~same & (np.abs(factors) < CONTACT)],
            component=component,
            numbering=_number_by_component(component),
        )
        # Codes, then the record's own number, by which a cluster knows its members.
        features = np.column_stack([found.records.codes, np.arange(len(items))]).astype(np.float64)
        columns = Columns.plain(("members",), found.law.names)
        width = kernel.row_width(most, bool((hyper.kind == kernel.MEASURE).any()))
        return Layout(features, hyper, width, columns, neighbourhood)

    def describe_members(
        self, items: Items, members: Sequence[NDArray[np.int64]]
    ) -> dict[str, list[str]]:
        """The value that most members have, by field."""
        return {
            name: [_usual(values[rows]) for rows in members]
            for name, values in items.columns.items()
        }

    def learned_samples(self, draws: Draws) -> dict[str, NDArray[np.float64]]:
        """Percentage of misses and typos in each field, and the scale of a measure.

        Where sources have their own, the mean over sources, and then each of them.
        """
        at = draws.columns.slices
        names = [variable.name for variable in draws.columns.shared if not variable.dims]
        shared = np.moveaxis(draws.shared([at[name].start for name in names]), 2, 0)
        return learned_rates(dict(zip(names, shared, strict=True)))

    def quantity_words(self, names: Sequence[str]) -> dict[str, str]:
        """Faults by field."""
        faults = {"miss": "wrong values", "typo": "typos"}
        parts = {name: name.partition("_") for name in names}
        return {
            name: f"share of {faults[what]} in {column}"
            for name, (what, _, column) in parts.items()
            if what in faults
        }

    def learned_words(self, found: Json) -> list[str]:
        """The worst fields."""
        return report.learned_words(found)

    def reach_words(self, items: Items, config: Config) -> list[str]:
        """Candidates come from keys."""
        found = self.prepared(items, config.likelihood)
        repeated = report.Repeated.of(found.records, found.source, items.id.tolist())
        return [
            *report.kinds_words(found.records),
            *report.aside_words(found.records.aside, items.id.tolist()),
            *report.reach_words(found.candidates, len(items)),
            *report.relation_words(found.records.names, found.guess),
            *report.repeated_words(repeated, len(items)),
            *(f"{words[0].upper()}{words[1:]}." for words in _doubts(found, items)),
        ]

    def law_words(self, posterior: Posterior) -> list[str]:
        """It is always learned."""
        return ["How often a field has a typo or is wrong was learned from the data."]

    def sections(self) -> tuple[SectionMaker, ...]:
        """The rates of faults."""
        return (report.faults,)

    def doubles(
        self, items: Items, labels: NDArray[np.int32], draws: Draws, config: Config
    ) -> dict[str, Array]:
        """Pairs of records on one list that are more likely of one object than of two.

        At the learned error rates, and with the share of matches among the pairs of different
        lists as the odds before any field is seen: of many records with few fields some agree by
        chance. The column ``log_bayes_factor`` says how much more likely the fields make it.
        """
        found = self.prepared(items, config.likelihood)
        hyper = found.hyper(2)
        pairs = found.candidates.pairs
        pairs = pairs[items.families[pairs[:, 0]] == items.families[pairs[:, 1]]]
        factor = log_bayes_factors(hyper._replace(law=self._learned_law(draws, hyper)), pairs)
        sizes = np.bincount(items.families).astype(np.float64)
        across = max((sizes.sum() ** 2 - float((sizes**2).sum())) / 2.0, 1.0)
        odds = np.log(max(found.guess.matches, 1.0) / across)
        likely = np.flatnonzero(factor + min(odds, 0.0) > 0.0)
        likely = likely[np.argsort(-factor[likely], kind="stable")]
        other, marking = pairs[likely].T
        return {
            "marking": marking,
            "other": other,
            "cluster": labels[other].astype(np.int64),
            "log_bayes_factor": factor[likely],
        }

    def fit_checks(self, posterior: Posterior) -> Sequence[Check]:
        """Whether fields differ independently of each other."""
        return dependent_fields(posterior)

    def apart(self, items: Items, row: int) -> NDArray[np.float64]:
        """The number of fields in which another record differs."""
        return np.asarray(
            sum((values != values[row]).astype(np.float64) for values in items.columns.values())
        )

    def compare(
        self, posterior: Posterior, row: int, members: NDArray[np.int64]
    ) -> tuple[Evidence, ...]:
        """What each field adds to the log odds, at the learned error rates.

        That is the change of the field's log R as the record joins the members.
        """
        items = posterior.items
        found = self.prepared(items, posterior.config.likelihood)
        together = np.append(members, row)
        pairs = np.array(list(combinations(np.sort(together).tolist(), 2))).reshape(-1, 2)
        hyper = found.hyper(len(together), pairs)
        hyper = hyper._replace(law=self._learned_law(posterior.draws, hyper))
        plain = without_relations(hyper)
        fields = [
            Evidence(
                field.name,
                _together(items, field.columns, np.array([row])),
                _together(items, field.columns, members),
                _added(plain, at, row, members),
            )
            for at, field in enumerate(found.records.fields)
        ]
        excess = _mean_excess(hyper, together) - _mean_excess(hyper, members)
        # Shown beside the fields, it needs words in place of values.
        related = Evidence(RELATED, "all fields", "all fields", -excess)
        return (*fields, related) if excess else tuple(fields)

    def newcomers(self, asked: NewItems) -> Newcomers:
        """With codes for values that the run has not seen."""
        found = self.prepared(asked.items, asked.config.likelihood)
        if found.settings.repeats:  # then no list has rates of its own
            asked = replace(asked, sources=np.full(len(asked.sources), -1))
        return new_records(found, asked)

    def _learned_law(self, draws: Draws, hyper: RecordHyper) -> NDArray[np.float64]:
        """The mean of what was learned of the law."""
        laws = len(hyper.law)
        return np.asarray(draws.shared(slice(laws)).reshape(-1, laws).mean(axis=0))

    def outlines(self, columns: Mapping[str, Array]) -> None:
        """Records have no place."""


def rivals_of(
    pairs: NDArray[np.int64], factors: NDArray[np.float64], experts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Pairs of one expert that compete, to be moved together.

    They are more likely one object than two, or are both candidates for a third record, so that one
    of the two keeps the other out. Of each record's best partners on a list, and of all such pairs
    those that are nearest to a tie: any choice leaves the posterior unchanged.
    """
    n = len(experts)
    same = experts[pairs[:, 0]] == experts[pairs[:, 1]]
    third, one = np.concatenate([pairs[~same], pairs[~same][:, ::-1]]).T
    weight = np.tile(factors[~same], 2)
    group = third * (int(experts.max(initial=0)) + 1) + experts[one]
    order = np.lexsort((-weight, group))
    group, one, weight = group[order], one[order], weight[order]
    found, apart = [np.empty((0, 2), np.int64)], [np.empty(0)]
    for gap in range(1, BEST_PARTNERS):
        first = np.flatnonzero(group[:-gap] == group[gap:])
        found.append(np.column_stack([one[first], one[first + gap]]))
        # What the lesser one lacks to be as likely as the other, and as likely as being alone.
        lesser = weight[first + gap]
        apart.append(weight[first] - lesser + np.maximum(-lesser, 0.0))
    competing, lacking = np.concatenate(found), np.concatenate(apart)
    near = np.flatnonzero(lacking < CONTACT)
    near = near[np.argsort(lacking[near], kind="stable")][: int(n * RIVALS_PER_RECORD)]
    return unique_pairs(np.concatenate([pairs[same & (factors > 0.0)], competing[near]]), n)


def _doubts(found: Prepared, items: Items) -> list[str]:
    """What to warn of."""
    alike = report.alike_elsewhere(found.records, found.candidates.pairs, found.source)
    return report.doubts(found.candidates, found.guess, len(items), alike)


def without_relations(hyper: RecordHyper) -> RecordHyper:
    """The same with no pair of records that is alike for other reasons."""
    return hyper._replace(alike_start=np.zeros_like(hyper.alike_start), alike=np.empty(0, np.int32))


def _mean_excess(hyper: RecordHyper, members: NDArray[np.int64]) -> float:
    """(2 / n) Σ D of n records."""
    pairs = np.array(list(combinations(members.tolist(), 2)), np.int64).reshape(-1, 2)
    return 2.0 * float(excess_of_pairs(hyper, pairs).sum()) / len(members)


def _added(hyper: RecordHyper, field: int, row: int, members: NDArray[np.int64]) -> float:
    """The change of one field's log R as a record joins the members: others count as missing."""
    rows = np.append(members, row)
    values = np.full_like(hyper.values, -1)
    values[rows, field] = hyper.values[rows, field]
    features = np.column_stack([values[rows], rows]).astype(np.float64)
    measures = bool((hyper.kind == kernel.MEASURE).any())
    masked, width = hyper._replace(values=values), kernel.row_width(len(rows), measures)
    beside = Newcomers(masked, features[:-1], features[-1:], width)
    return float(weigh_beside(beside, np.zeros(len(members), np.int64))[0, 0])


def learned_rates(law: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Percentages and scales from log odds and log scales, by name."""

    def unit(name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(value) if name.startswith("scale_") else 100.0 / (1.0 + np.exp(-value))

    found: dict[str, NDArray[np.float64]] = {}
    each: dict[str, NDArray[np.float64]] = {}
    for name, value in law.items():
        if name.startswith(("miss_", "typo_", "scale_")):
            own = {n: v for n, v in law.items() if n.startswith(f"own_{name} (")}
            rates = {n.removeprefix("own_"): unit(name, value + v) for n, v in own.items()}
            found[name] = np.mean(list(rates.values()), axis=0) if own else unit(name, value)
            each |= rates
    return {**found, **each}


def _together(items: Items, columns: Sequence[str], rows: NDArray[np.int64]) -> str:
    """The usual value of a field made of several columns."""
    return " ".join(_usual(items.columns[name][rows]) for name in columns).strip()


def _usual(values: NDArray[np.str_]) -> str:
    """The most frequent known value; of equally frequent ones the first of the members'."""
    known = values[values != ""]
    if not known.size:
        return ""
    found, first, count = np.unique(known, return_index=True, return_counts=True)
    return str(found[np.lexsort((first, -count))[0]])


def _number_by_component(component: NDArray[np.int64]) -> NDArray[np.int64]:
    """Internal numbers: components one after the other."""
    order = np.argsort(component, kind="stable")
    numbering = np.empty(len(order), dtype=np.int64)
    numbering[order] = np.arange(len(order))
    return numbering


RECORDS = _Records()
