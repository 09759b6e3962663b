"""The posterior of records: which are of one object, and how often each field goes wrong."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dfcrp.config import Config
from dfcrp.errors import InputError
from dfcrp.posterior.catalogue import consensus_draws, join_names
from dfcrp.posterior.features import PlainPosterior
from dfcrp.posterior.intervals import summarise
from dfcrp.posterior.losses import members_by_cluster
from dfcrp.posterior.posterior import RunRecord
from dfcrp.records import Records
from dfcrp.sampling.draws import Draws

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
        """Records have no distances to judge by."""
        raise InputError("suspected_doubles is for items with numbers; records have no distances")

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
