"""Records that were not part of a run, beside those that were.

Values that the run has not seen get codes of their own. How frequent values are, and how similar by
chance, is told from all records together; how often fields go wrong is what the run has learned. A
list that the run does not know has the rates that the lists share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.integrated import Newcomers
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.fields import Fields, encode_fields
from dfcrp.likelihoods.record.hyper import (
    compare_fields,
    records_hyper,
    with_clumps,
    with_relations,
)
from dfcrp.likelihoods.record.prepare import Prepared

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Ints = NDArray[np.int64]


def new_records(
    found: Prepared,
    items: Items,
    law: NDArray[np.float64],
    texts: NDArray[np.str_],
    sources: Ints,
    most: int,
) -> Newcomers:
    """For clusters of up to ``most`` with the new one.

    ``texts`` is (m, columns); ``sources`` are codes of the lists, -1 for one not known.
    """
    names, n = list(items.columns), len(items)
    new = {name: texts[:, at] for at, name in enumerate(names)}
    encode_fields(new, found.settings.kinds)  # refuses what is no number, by its row
    both = {name: np.concatenate([items.columns[name], new[name]]) for name in names}
    records = encode_fields(both, found.settings.kinds)
    unknown = int(found.source.max(initial=-1)) + 1
    source = np.concatenate([found.source, np.where(sources < 0, unknown, sources)])
    pairs = np.concatenate([found.candidates.pairs, _every_pair(n, len(texts))])
    compared = compare_fields(records, source)
    hyper = records_hyper(found.settings, compared, pairs, source, most, found.guess.levels)
    hyper.law[:] = found.guess.law
    hyper = with_relations(hyper, compared, found.guess.relations, pairs)
    hyper = with_clumps(hyper, found.guess.clumped)
    hyper = _with_law(hyper, found, law, sources)
    features = _features(records)
    measures = bool((hyper.kind == kernel.MEASURE).any())
    return Newcomers(hyper, features[:n], features[n:], kernel.row_width(most, measures))


def _every_pair(n: int, m: int) -> Ints:
    """Each new record with each of the run."""
    return np.column_stack([np.tile(np.arange(n), m), n + np.repeat(np.arange(m), n)])


def _with_law(
    hyper: kernel.RecordHyper, found: Prepared, law: NDArray[np.float64], sources: Ints
) -> kernel.RecordHyper:
    """The run's own law, with one more group of lists that adds nothing to it."""
    known = found.law
    shared = np.full((*known.own.shape[:2], 1), -1, np.int64)
    group = np.full(int(found.source.max(initial=-1)) + 2, known.own.shape[2])
    group[found.source] = known.source
    own = np.concatenate([known.own, shared], axis=2)
    longer = hyper._replace(
        source=np.concatenate([known.source, group[sources]]).astype(np.int32),
        entry=known.entry,
        own=np.ascontiguousarray(own),
        about=known.about,
        law=np.array(law),
        law_mean=known.mean,
        law_sd=known.sd,
    )
    return kernel.with_room(longer)


def _features(records: Fields) -> NDArray[np.float64]:
    """Codes, then the record's own number."""
    codes = records.codes
    return np.column_stack([codes, np.arange(len(codes))]).astype(np.float64)
