"""The posterior of whatever was clustered."""

from __future__ import annotations

from dfcrp.config import Config
from dfcrp.markings import Items, Markings
from dfcrp.measurements import Measurements
from dfcrp.posterior.features import FeaturePosterior
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.posterior.records import RecordPosterior
from dfcrp.records import Records
from dfcrp.sampling.draws import Draws


def posterior_of(draws: Draws, items: Items, config: Config, record: RunRecord) -> Posterior:
    """A posterior that answers in the items' own terms."""
    if isinstance(items, Measurements):
        return FeaturePosterior(draws, items, config, record)
    if isinstance(items, Records):
        return RecordPosterior(draws, items, config, record)
    assert isinstance(items, Markings)
    return Posterior(draws, items, config, record)
