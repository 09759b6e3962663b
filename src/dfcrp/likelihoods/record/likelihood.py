"""Records of several fields, such as names, dates and codes, from several lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import SettingsError
from dfcrp.likelihoods.base import Evidence, Layout, Likelihood
from dfcrp.likelihoods.record import kernel, report
from dfcrp.likelihoods.record.fields import Fields, encode_fields
from dfcrp.likelihoods.record.hyper import field_factors, log_bayes_factors, records_hyper
from dfcrp.likelihoods.record.settings import RecordSettings
from dfcrp.markup import SectionMaker
from dfcrp.neighbours.neighbourhood import Neighbourhood, components_of

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.settings.config import Config

#: Candidates that are this much less likely (log scale) to be one object than two are left out.
HOPELESS = -10.0
#: Two records of one expert compete if they are more likely one object than two; two of different
#: experts are in contact if it is not quite sure either way.
CONTACT = 15.0
#: Members of a cluster where no rule bounds them.
MOST_MEMBERS = 64


class _Records(Likelihood):
    """Fields that are right, have a typo, or are wrong."""

    name = "records"
    noun = "record"
    Settings = RecordSettings
    text = True

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Text cannot be offset or scaled."""
        kept = dict(values)
        if kept.pop("expert_bias", "none") != "none":
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
                f"run.{name} (--{name}) is a matter of distances, which text does not have: say "
                "with likelihood.keys in which fields records of one object agree, or give pairs "
                "of your own (--candidates)"
            )

    def usual_alpha_rate(self, n: int) -> float:
        """Most records are of objects that few lists have, so α goes with their number."""
        return 1.0 / n

    def adapt(self, items: Items, settings: RecordSettings) -> RecordSettings:
        """With the kind of every field."""
        found = self.fields(items, settings)
        kinds = dict(zip(found.names, found.kinds, strict=True))
        named = {
            kind: tuple(name for name, own in kinds.items() if own == kind)
            for kind in ("string", "date", "number", "category")
        }
        return replace(
            settings,
            strings=named["string"],
            dates=named["date"],
            numbers=named["number"],
            categories=named["category"],
        )

    def fields(self, items: Items, settings: RecordSettings) -> Fields:
        """The records as codes, and the pairs that may be of one object."""
        return encode_fields(
            items.columns,
            kinds=settings.kinds,
            keys=settings.split_keys,
            candidates=items.candidates,
            images=items.image_codes,
        )

    def lay_out(self, items: Items, experts: NDArray[np.int64], config: Config) -> Layout:
        """Candidates come from keys, not from distances."""
        records = self.fields(items, config.likelihood)
        hyper = records_hyper(config.likelihood, records)
        factors = log_bayes_factors(hyper, records, records.candidates)
        kept = factors > HOPELESS
        pairs, factors = records.candidates[kept], factors[kept]
        same = experts[pairs[:, 0]] == experts[pairs[:, 1]]
        component = components_of(pairs, len(items), True)
        neighbourhood = Neighbourhood(
            bounded=True,
            pairs=pairs,
            rivals=pairs[same & (factors > 0.0)],
            contacts=pairs[~same & (np.abs(factors) < CONTACT)],
            component=component,
            numbering=_number_by_component(component),
        )
        most = min(len(np.unique(experts)), MOST_MEMBERS, len(items))
        # Codes, then the record's own number, by which a cluster knows its members.
        features = np.column_stack([records.codes, np.arange(len(items))]).astype(np.float64)
        learned = [f"{what}_{name}" for what in ("miss", "typo") for name in records.names]
        columns = Columns.plain(("members",), learned)
        return Layout(features, hyper, kernel.FIRST + most, columns, neighbourhood)

    def describe_members(
        self, items: Items, members: Sequence[NDArray[np.int64]]
    ) -> dict[str, list[str]]:
        """The value that most members have, by field."""
        return {
            name: [_usual(values[rows]) for rows in members]
            for name, values in items.columns.items()
        }

    def learned_samples(self, draws: Draws) -> dict[str, NDArray[np.float64]]:
        """Percentage of misses and typos in each field."""
        shared = np.moveaxis(draws.shared(), 2, 0)
        return {
            name: 100.0 / (1.0 + np.exp(-odds))
            for name, odds in zip(draws.columns.names, shared, strict=True)
            if name.startswith(("miss_", "typo_"))
        }

    def learned_words(self, found: Mapping[str, Any]) -> list[str]:
        """The worst fields."""
        return report.learned_words(found)

    def reach_words(self, items: Items, config: Config) -> list[str]:
        """Candidates come from keys."""
        return report.reach_words(config.likelihood.split_keys, len(items.columns))

    def law_words(self, posterior: Any) -> list[str]:
        """It is always learned."""
        return ["How often a field has a typo or is wrong was learned from the data."]

    def sections(self) -> tuple[SectionMaker, ...]:
        """The rates of faults."""
        return (report.faults,)

    def doubles(
        self, items: Items, labels: NDArray[np.int32], draws: Draws, config: Config
    ) -> dict[str, NDArray[Any]]:
        """Pairs of records on one list that are more likely of one object than of two.

        At the learned rates of faults; ``log_bayes_factor`` says how much more likely.
        """
        records = self.fields(items, config.likelihood)
        hyper = records_hyper(config.likelihood, records)
        learned = self._learned_law(draws, hyper)
        pairs = records.candidates
        pairs = pairs[items.families[pairs[:, 0]] == items.families[pairs[:, 1]]]
        factor = log_bayes_factors(hyper._replace(law_mean=learned), records, pairs)
        found = np.flatnonzero(factor > 0.0)
        found = found[np.argsort(-factor[found], kind="stable")]
        other, marking = pairs[found].T
        return {
            "marking": marking,
            "other": other,
            "cluster": labels[other].astype(np.int64),
            "log_bayes_factor": factor[found],
        }

    def apart(self, items: Items, row: int) -> NDArray[np.float64]:
        """The number of fields in which another record differs."""
        return np.asarray(
            sum((values != values[row]).astype(np.float64) for values in items.columns.values())
        )

    def compare(self, posterior: Any, row: int, members: NDArray[np.int64]) -> tuple[Evidence, ...]:
        """The log Bayes factor of each field with each member, at the learned rates of faults."""
        items, settings = posterior.items, posterior.config.likelihood
        pairs = np.column_stack([np.full_like(members, row), members])
        fields = encode_fields(items.columns, kinds=settings.kinds, keys=None, candidates=pairs)
        hyper = records_hyper(settings, fields)
        hyper = hyper._replace(law_mean=self._learned_law(posterior.draws, hyper))
        return tuple(
            Evidence(name, str(values[row]), _usual(values[members]), float(factors.mean()))
            for (name, values), factors in zip(
                items.columns.items(), field_factors(hyper, fields, pairs), strict=True
            )
        )

    def _learned_law(self, draws: Draws, hyper: Any) -> NDArray[np.float64]:
        """The mean of what was learned of the law."""
        shared = draws.shared().reshape(-1, draws.columns.width)
        return np.asarray(shared.mean(axis=0)[: len(hyper.law)])

    def outlines(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Records have no place."""


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
