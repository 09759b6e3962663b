"""A run goes on with more items and decisions: its chains begin where those of the run ended.

The target is that of a new run with all items: what is worked out from the data before the chains
start, such as reach and scales, is worked out anew, and the settings are those of the run. Only
where chains begin is of the run: its last partition, as far as it is allowed now, with every new
item alone, and what it had learned. So an open-ended run is looked at sooner. Burn-in is left out
as of any run. The old run is read only, so it is whole whatever happens.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.fitting.api import begin_run, decision_rows, items_given
from dfcrp.fitting.progress import watched
from dfcrp.items.decisions import with_decisions
from dfcrp.items.items import Items
from dfcrp.items.joining import with_more
from dfcrp.items.learned import Learned
from dfcrp.posterior.posterior import Posterior
from dfcrp.sampling.learned import learned_of
from dfcrp.settings.config import Config, read_settings, resolve
from dfcrp.values import Json

#: Settings of a run that an update may change; the others belong to the model.
CHANGES = ("scans", "burn_in", "thin", "max_scans", "max_minutes", "workers", "seed")


def update(
    posterior: Posterior,
    items: object = None,
    *,
    decisions: object = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Any], None] | None = None,
    **changes: object,
) -> Posterior:
    """Go on with more items, corrected ones and decisions; ``Posterior.update`` is the same.

    Parameters
    ----------
    posterior : Posterior
        Of all images of a run.
    items : Items, matrix or data frame, optional
        New items of the same kind. One with the id of an earlier item takes its place.
    decisions : path, table or rows, optional
        As in ``dfcrp.fit``, besides those of before. A *slip* removes an item.
    out : path, optional
        A new run folder.
    progress : bool or callable, optional
        As in ``dfcrp.fit``.
    **changes
        scans, burn_in, thin, max_scans, max_minutes, workers and seed,
        as in ``dfcrp.fit``; all other settings are those of the run.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> dfcrp.update(dfcrp.load("run"), items, out="run-2")  # doctest: +SKIP
    """
    together, config = prepare_update(posterior, items, decisions, changes)
    with watched(progress, None, None, together, config) as watch:
        return begin_run(together, config, watch, out)


def prepare_update(
    posterior: Posterior, items: object, decisions: object, changes: Json
) -> tuple[Items, Config]:
    """All items, with where chains begin and what the update adds, and the settings."""
    if posterior.whole is not None:
        raise InputError("this is one image of a run; update the run as a whole")
    for name in changes:
        if name not in CHANGES:
            raise SettingsError(
                f"an update keeps the settings of the run; it takes {', '.join(CHANGES)}, "
                f"not {name}"
            )
    before = posterior.items
    if items is None and decisions is None:
        raise InputError("nothing to update: give more items, or decisions")
    joined, new, corrected = before.given or before, 0, 0
    if items is not None:
        asked = read_settings(None, {"likelihood": before.kind})
        joined, new, corrected = with_more(before, items_given(items, asked)[0])
    added = () if decisions is None else decision_rows(decisions)
    joined = replace(joined, given=None, decisions=(), decided=None, start=None, learned={})
    found = with_decisions(joined, (*before.decisions, *added))
    note = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "markings_sha256": before.digest,
        "items_before": len(before),
        "items": len(found),
        "new": new,
        "corrected": corrected,
        "decisions": len(added),
        "n_clusters_before": float(np.mean(posterior.n_clusters)),
    }
    found = replace(
        found,
        start=last_partitions(posterior, found),
        learned=last_parameters(posterior),
        updates=(*before.updates, note),
    )
    return found, resolve(posterior.config, changes)


def last_partitions(posterior: Posterior, items: Items) -> NDArray[np.int64]:
    """(chains, n): the clusters of each chain's last draw, by row of ``items``; −1 where none."""
    before = posterior.items
    place = {name: row for row, name in enumerate(items.id.tolist())}
    rows = np.array([place.get(name, -1) for name in before.id.tolist()])
    there = rows >= 0
    chains = posterior.config.run.chains
    found = np.full((chains, len(items)), -1, np.int64)
    for part, inside in _parts(posterior):
        draws = part.draws
        for chain in range(chains):
            number = chain % draws.n_chains
            last = draws.labels(number, draws.n_draws - 1, draws.n_draws)[0]
            label = np.full(len(before), -1, np.int64)
            label[inside] = inside[last]
            mine = there & (label >= 0)
            found[chain, rows[mine]] = label[mine]
    return found


def last_parameters(posterior: Posterior) -> dict[str, Learned]:
    """What each chain had learned at its last draw, by image if each was drawn by itself."""
    chains = posterior.config.run.chains
    if not posterior.independent:
        return {"": learned_of(posterior.draws, chains)}
    names = [posterior.image_set.parts.names[number] for number in posterior.image_set.done]
    found = [part.draws for part, _ in _parts(posterior)]
    return {name: learned_of(draws, chains) for name, draws in zip(names, found, strict=True)}


def _parts(posterior: Posterior) -> list[tuple[Posterior, NDArray[np.int64]]]:
    """What was drawn by itself, and its rows."""
    if not posterior.independent:
        return [(posterior, np.arange(len(posterior.items)))]
    each = [posterior.image(number) for number in posterior.image_set.done]
    return [(one, np.asarray(one.rows)) for one in each]
