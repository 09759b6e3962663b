"""Posterior predictive draws: the same lists again, as the fitted model would make them.

For a draw from the posterior, every item is made again about its object: the partition, the
objects and what experts do differently are those of the draw, the scatter of items is new. Which
objects an expert lists is not made again. The checks of the fit compare the same draws with the
data (``summaries.tails``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import shared_rows
from dfcrp.errors import InputError
from dfcrp.summaries.fit import labels_of

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictive:
    """Items made again; ``predictive["x"]`` has a row for each draw and a column for each item.

    Attributes
    ----------
    columns : dict of arrays (draws, items)
        What describes an item, by column.
    observed : dict of arrays (items,)
        The same of the data.
    labels : array (draws, items)
        The cluster of each item in each draw.
    id : array (items,)
    """

    columns: Mapping[str, Floats]
    observed: Mapping[str, Floats]
    labels: NDArray[np.int32]
    id: NDArray[np.str_]

    def __getitem__(self, name: str) -> Floats:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return (
            f"<Predictive: {len(self):,} draws of {len(self.id):,} items; "
            f"columns {', '.join(self.columns)}>"
        )

    def frame(self, draw: int) -> pandas.DataFrame:
        """One draw as a table: a row for each item."""
        import pandas

        cells = {name: values[draw] for name, values in self.columns.items()}
        return pandas.DataFrame({"id": self.id, "cluster": self.labels[draw], **cells})

    def to_arviz(self) -> Any:
        """For ArviZ: the groups ``posterior_predictive`` and ``observed_data``."""
        from dfcrp.posterior.for_arviz import for_arviz

        dims = {name: ["item"] for name in self.columns}
        groups = {
            "posterior_predictive": {name: v[np.newaxis] for name, v in self.columns.items()},
            "observed_data": dict(self.observed),
        }
        return for_arviz(groups, coords={"item": list(self.id)}, dims=dims)


def predictive(posterior: Posterior, draws: int, seed: int) -> Predictive:
    """Make the items again for evenly spaced draws."""
    if draws < 1:
        raise InputError(f"draws is {draws!r}; it must be 1 or more")
    _refuse_what_has_no_scatter(posterior)
    items, rng = posterior.items, np.random.default_rng(seed)
    observed = {name: values.astype(np.float64) for name, values in items.columns.items()}
    parts = [(part, _rows(part, len(items))) for part in _parts(posterior)]
    chosen = [_spaced(part, draws) for part, _ in parts]
    count = min(map(len, chosen))
    columns = {name: np.tile(values, (count, 1)) for name, values in observed.items()}
    labels = np.tile(np.arange(len(items), dtype=np.int32), (count, 1))
    for (part, rows), own in zip(parts, chosen, strict=True):
        for at, (names, made) in enumerate(_made(part, own[:count], rng)):
            labels[at, rows] = rows[names]
            for name, values in zip(columns, made.T, strict=True):
                columns[name][at, rows] = values
    return Predictive(columns, observed, labels, items.id)


def _refuse_what_has_no_scatter(posterior: Posterior) -> None:
    likelihood, site = posterior.likelihood, posterior.items.site
    if likelihood.text or site.on_sphere or likelihood.centre(posterior.items) is None:
        what = "circles on a sphere" if site.on_sphere else posterior.items.kind
        raise InputError(
            f"predictive is for items that scatter in a plane, not for {what}; posterior.model_fit "
            "has the checks of the fit"
        )


def _parts(posterior: Posterior) -> list[Posterior]:
    """What was drawn together: all items, or each image."""
    if not posterior.independent:
        return [posterior]
    return [posterior.image(number) for number in posterior.image_set.done]


def _rows(part: Posterior, n: int) -> NDArray[np.int64]:
    return np.arange(n) if part.rows is None else part.rows


def _spaced(part: Posterior, wanted: int) -> list[tuple[int, int]]:
    """Evenly spaced draws over all chains, as (chain, draw)."""
    n_draws, total = part.draws.n_draws, part.draws.n_chains * part.draws.n_draws
    count = min(wanted, total)
    at = (2 * np.arange(count) + 1) * total // (2 * count)
    return [(int(k) // n_draws, int(k) % n_draws) for k in at]


def _made(
    part: Posterior, chosen: list[tuple[int, int]], rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int32], Floats]]:
    """Of each draw the labels of the items and their columns, made again."""
    likelihood, items = part.likelihood, part.items
    scatter_of = likelihood.scatter(part)
    if scatter_of is None:
        raise InputError("these draws do not tell how items scatter; fit them with dfcrp")
    everything = np.arange(len(items))
    for (chain, draw), shared in zip(chosen, shared_rows(part.draws, chosen), strict=True):
        labels = labels_of(part.draws, [(chain, draw)])[0]
        names, code = np.unique(labels, return_inverse=True)
        objects = _objects(part, chain, draw, names)[code]
        scatter = scatter_of(shared)
        away = scatter.new(rng, code.astype(np.int64), everything) * scatter.spread
        yield labels, likelihood.redrawn(items, objects, away, scatter.values)


def _objects(part: Posterior, chain: int, draw: int, names: NDArray[np.int32]) -> Floats:
    """The objects of the clusters of one draw, (clusters, columns)."""
    centre = part.likelihood.centre(part.items)
    assert centre is not None
    block = part.draws.clusters(chain, draw, draw + 1)
    stored = list(part.draws.columns.parameters)
    rows = np.searchsorted(block.labels, names)
    own = [stored.index(name) for name in centre.parameters]
    parameters = block.parameters[rows][:, own].astype(np.float64)
    for at, name in enumerate(centre.rest_in(part.draws)):
        parameters[:, at] += block.parameters[rows, stored.index(name)]
    return np.asarray(centre.describe(parameters.T)).T
