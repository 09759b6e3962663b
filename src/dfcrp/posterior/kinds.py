"""The posterior of whatever was clustered."""

from __future__ import annotations

from dfcrp.draws import Draws
from dfcrp.items.markings import Items, Markings
from dfcrp.items.measurements import Measurements
from dfcrp.items.records import Records
from dfcrp.posterior.features import FeaturePosterior
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.posterior.records import RecordPosterior
from dfcrp.settings.config import Config


def posterior_of(draws: Draws, items: Items, config: Config, record: RunRecord) -> Posterior:
    """A posterior that answers in the items' own terms."""
    if isinstance(items, Measurements):
        return FeaturePosterior(draws, items, config, record)
    if isinstance(items, Records):
        return RecordPosterior(draws, items, config, record)
    assert isinstance(items, Markings)
    return Posterior(draws, items, config, record)
