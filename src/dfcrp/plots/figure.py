"""What a figure is: what it needs, how its numbers are prepared, and how they are drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from dfcrp.errors import InputError
from dfcrp.likelihoods.base import Likelihood
from dfcrp.markup import plural
from dfcrp.plots.flat import FlatMap, flat_map_or_none
from dfcrp.summaries.streaming import Interval
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    import pandas

    from dfcrp.craterstats import Isochrons
    from dfcrp.plots.underlay import Underlay
    from dfcrp.posterior.explain import Explanation
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.summaries.consensus import ConsensusCounts

T = TypeVar("T")
#: One axes, or a list of them.
A = TypeVar("A")
#: Columns of equal length, by name.
Columns = Mapping[str, Any]
#: What a figure is prepared with, by the names of its options.
Options = dict[str, object]


class Shared(Protocol):
    """What a report has computed already, and figures need not compute again."""

    posterior: Posterior

    @property
    def dbscan(self) -> Any:
        """DBSCAN's labels, or {min_experts: labels}."""

    @property
    def evaluation(self) -> Mapping[str, object] | None:
        """As in evaluation.json."""

    @property
    def counts(self) -> ConsensusCounts:
        """Consensus clusters of every draw."""

    @property
    def catalogue(self) -> pandas.DataFrame:
        """As in catalogue.csv."""

    @property
    def underlay(self) -> Underlay | None:
        """The image beneath the maps."""

    @property
    def isochrons(self) -> Isochrons | None:
        """Curves of CraterStats."""

    @property
    def example(self) -> Explanation | None:
        """The least certain item, explained."""

    @property
    def n_singletons(self) -> int:
        """Items that are more likely alone than not."""


@dataclass(frozen=True)
class Need:
    """Something that data may lack: whether a posterior has it, and what to say where not."""

    #: What is needed, for the gallery.
    what: str
    met: Callable[[Posterior], bool]
    refusal: Callable[[Posterior], str]


def _needs() -> tuple[Need, ...]:
    return (
        Need(
            "items with a place",
            lambda posterior: flat_map_or_none(posterior.items) is not None,
            lambda posterior: f"a map needs items with a place; {posterior.items.kind} have none",
        ),
        Need(
            "items with a diameter",
            lambda posterior: posterior.diameters is not None,
            lambda posterior: (
                "size-frequency distributions are of diameters, which "
                f"{posterior.config.run.likelihood} do not have"
            ),
        ),
        Need(
            "items with a size",
            lambda posterior: posterior.has_sizes,
            lambda posterior: (
                f"this figure is by size, which {plural(posterior.likelihood.noun)} do not have"
            ),
        ),
        Need(
            "the prior `detection`",
            lambda posterior: posterior.detection is not None,
            lambda posterior: (
                'this figure is about the answers of the prior "detection"; the run had the prior '
                f'"{posterior.config.run.prior}"'
            ),
        ),
        Need(
            "records",
            lambda posterior: type(posterior.likelihood).compare is not Likelihood.compare,
            lambda posterior: (
                "match weights are of items that are compared field by field; "
                f"{plural(posterior.likelihood.noun)} are not"
            ),
        ),
        Need(
            "items with scores",
            lambda posterior: posterior.items.score is not None and not posterior.independent,
            lambda _: (
                'this figure is about scores, which the prior "detection" learns from; these items '
                "have none, or images were drawn each by itself"
            ),
        ),
        Need(
            "a single image",
            lambda posterior: posterior.many is None,
            lambda _: (
                "this figure is of one image: ask the posterior of one, as in posterior[NAME]"
            ),
        ),
    )


PLACES, DIAMETERS, SIZES, DETECTION, COMPARED, SCORES, ONE_IMAGE = _needs()


def always(_: Shared) -> Options:
    """A figure of every report whose data have what it needs."""
    return {}


def never(_: Shared) -> None:
    """A figure that only those who ask for it get."""


@dataclass(frozen=True)
class Figure(Generic[T, A]):
    """One figure; ``plots.FIGURES`` holds all of them by name."""

    name: str
    #: What it shows, for the gallery.
    shows: str
    #: From a posterior and options to a frozen table of numbers.
    preparing: Callable[..., T]
    #: The table into axes, given or new ones.
    drawing: Callable[[T, A | None], A]
    needs: tuple[Need, ...] = ()
    #: What a report prepares it with; None where it is left out.
    in_report: Callable[[Shared], Options | None] = always
    #: Whether the overview of many images has it.
    of_many: bool = False
    #: Its table as columns, for a CSV file.
    listing: Callable[[T], Columns] | None = None

    def lacking(self, posterior: Posterior) -> str:
        """What the data lack for it, in words; empty if nothing."""
        missing = (need for need in self.needs if not need.met(posterior))
        return next((need.refusal(posterior) for need in missing), "")

    def prepare(self, posterior: Posterior, *args: object, **options: object) -> T:
        """The table behind the figure."""
        refusal = self.lacking(posterior)
        if refusal:
            raise InputError(refusal)
        return self.preparing(posterior, *args, **options)

    def draw(self, table: T, ax: A | None = None) -> A:
        """Draw a table, into the caller's axes if there are some."""
        return self.drawing(table, ax)

    def plot(
        self, posterior: Posterior, *args: object, ax: A | None = None, **options: object
    ) -> tuple[T, A]:
        """Prepare with ``options`` and draw."""
        table = self.prepare(posterior, *args, **options)
        return table, self.drawing(table, ax)

    def numbers(self, table: T) -> str:
        """The table as CSV."""
        columns = (self.listing or columns_of)(table)
        values = [np.asarray(column).tolist() for column in columns.values()]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(v) for v in row] for row in zip(*values, strict=True))
        return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return int(value) if isinstance(value, bool) else value


def columns_of(table: object) -> Columns:
    """The fields of a table that have a value for each of the same things, as columns.

    An interval becomes three, outlines on a map five. The first field with several values says how
    many there are; edges of bins, one more, become where each bin begins and ends.
    """
    found: Json = {}
    for field in fields(table):  # type: ignore[arg-type]
        value = getattr(table, field.name)
        if isinstance(value, Interval):
            found |= {
                field.name: value.mean,
                f"{field.name}_lo": value.lo,
                f"{field.name}_hi": value.hi,
            }
        elif isinstance(value, FlatMap):
            found |= {name: getattr(value, name) for name in ("x", "y", "width", "height", "angle")}
        elif field.name == "edges":
            found |= {"from": value[:-1], "to": value[1:]}
        elif isinstance(value, np.ndarray):
            found[field.name] = value
        elif isinstance(value, tuple) and field.name != "region":
            found[field.name.removesuffix("s")] = value
    rows = len(next(iter(found.values()), ()))
    return {name: values for name, values in found.items() if np.shape(values) == (rows,)}


def matrix_columns(names: Mapping[str, Iterable[object]], **values: Array) -> Columns:
    """Arrays over several axes as columns: the names along each axis, then the values."""
    grid = np.meshgrid(*(np.asarray(list(n), dtype=object) for n in names.values()), indexing="ij")
    flat = {name: along.ravel() for name, along in zip(names, grid, strict=True)}
    return flat | {name: np.asarray(v).ravel() for name, v in values.items()}
