"""The posterior of records: which are of one object, and how often each field goes wrong."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.draws import Draws
from dfcrp.items.records import Records
from dfcrp.likelihoods.record.hyper import log_bayes_factors, records_hyper
from dfcrp.posterior.catalogue import consensus_draws, join_names
from dfcrp.posterior.features import PlainPosterior
from dfcrp.posterior.intervals import summarise
from dfcrp.posterior.losses import members_by_cluster
from dfcrp.posterior.posterior import RunRecord
from dfcrp.settings.config import Config

if TYPE_CHECKING:
    import pandas


class RecordPosterior(PlainPosterior):
    """Posterior draws of a partition of records."""

    def __init__(self, draws: Draws, items: Records, config: Config, record: RunRecord) -> None:
        super().__init__(draws, items, config, record)
        self.items = items

    @cached_property
    def tolerances(self) -> dict[str, Any]:
        """Percentage of misses and slips in each field."""
        names = self.draws.columns.shared
        odds = self.draws.shared().reshape(-1, len(names)).T
        return {
            name: summarise(100.0 / (1.0 + np.exp(-values))).as_dict()
            for name, values in zip(names, odds, strict=True)
        }

    def suspected_doubles(self) -> pandas.DataFrame:
        """Pairs of records on one list that are more likely of one object than of two.

        At the learned rates of faults; ``log_bayes_factor`` says how much more likely.
        """
        import pandas

        items = self.items
        hyper = records_hyper(self.config.model, items)
        learned = self.draws.shared().reshape(-1, len(self.draws.columns.shared)).mean(axis=0)
        pairs = items.candidates
        pairs = pairs[items.families[pairs[:, 0]] == items.families[pairs[:, 1]]]
        factor = log_bayes_factors(hyper._replace(law_mean=learned), items, pairs)
        found = np.flatnonzero(factor > 0.0)
        found = found[np.argsort(-factor[found], kind="stable")]
        other, marking = pairs[found].T
        return pandas.DataFrame(
            {
                "expert": items.expert[marking],
                "marking": items.id[marking],
                "other": items.id[other],
                "cluster": self.point_partition().labels[other],
                "log_bayes_factor": factor[found],
            }
        )

    def catalogue(self) -> pandas.DataFrame:
        """One row per cluster of the point partition: the value most members have, by field."""
        import pandas

        items, labels = self.items, self.point_partition().labels
        names, order, offsets = members_by_cluster(labels)
        spans = [order[a:b] for a, b in pairwise(offsets)]
        table: dict[str, Any] = {"cluster": names}
        for at, (field, values) in enumerate(zip(items.fields, items.values, strict=True)):
            codes = items.codes[:, at]
            table[field] = [_usual(codes[members], values) for members in spans]
        least = self.config.summary.min_experts
        agreed = consensus_draws(self.draws, labels, items.families, (least,))[0]
        held = [np.unique(items.families[members]) for members in spans]
        table["n_experts"] = [len(found) for found in held]
        table["p_consensus"] = agreed / (self.draws.n_chains * self.draws.n_draws)
        table["experts"] = [join_names([items.experts[f] for f in found]) for found in held]
        table["stability"] = self.membership.stability
        return pandas.DataFrame(table)


def _usual(codes: Any, values: tuple[str, ...]) -> str:
    """The most frequent known value; of equally frequent ones the first of the members'."""
    known = codes[codes >= 0]
    if not known.size:
        return ""
    found, first, count = np.unique(known, return_index=True, return_counts=True)
    return values[found[np.lexsort((first, -count))[0]]]
