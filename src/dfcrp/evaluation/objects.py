"""Objects of an answer or of a truth: the same columns, wherever they come from."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.geometry import unit_vectors
from dfcrp.io.converting import read_table
from dfcrp.io.drawings import what_to_say
from dfcrp.io.registry import PathLike, read_file
from dfcrp.io.tables import NothingToReadError, ReadOptions, ReadTable
from dfcrp.items.checks import to_names, to_numbers
from dfcrp.items.columns import (
    ABOUT,
    ColumnChoice,
    frame_columns,
    plain,
    quoted_names,
    units_by_name,
)
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.base import Likelihood
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.values import Array

if TYPE_CHECKING:
    pass

Floats = NDArray[np.float64]
#: Columns of a catalogue, besides those that describe objects, that an evaluation uses.
NUMBERS = ("p_real", "p_consensus", "n_experts")


@dataclass(frozen=True)
class Objects:
    """Objects, one per row."""

    #: What messages call them: a file, or "the run".
    name: str
    kind: str
    columns: Mapping[str, Floats]
    #: The image of each; None where none is named.
    image: NDArray[np.str_] | None = None
    category: NDArray[np.str_] | None = None
    score: Floats | None = None
    #: Those of NUMBERS that there are, and intervals of columns, as in a catalogue.
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    site: Site = field(default_factory=Site)
    #: Images that are known without an object on them.
    empty_images: tuple[str, ...] = ()
    #: Where each row is in its file, as messages say it.
    places: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def likelihood(self) -> Likelihood:
        """What the objects are."""
        return likelihood_named(self.kind)

    @property
    def images(self) -> tuple[str, ...]:
        """Every image that is known, sorted."""
        named = set() if self.image is None else set(self.image.tolist())
        return tuple(sorted(named | set(self.empty_images)))

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.name}, row {row + 1}" if self.places is None else self.places[row]

    def select(self, keep: Array) -> Objects:
        """The rows that a mask, or numbers of rows, choose."""
        rows = np.flatnonzero(keep) if keep.dtype == np.bool_ else keep

        def some(values: Array | None) -> Array | None:
            return None if values is None else values[rows]

        return replace(
            self,
            columns={name: values[rows] for name, values in self.columns.items()},
            image=some(self.image),
            category=some(self.category),
            score=some(self.score),
            numbers={name: values[rows] for name, values in self.numbers.items()},
            places=None if self.places is None else [self.places[row] for row in rows.tolist()],
        )

    def in_order(self) -> Objects:
        """Sorted by what they are, so that no result depends on the order of rows."""
        keys: list[Array] = [*self.numbers.values(), *self.columns.values()]
        keys += [one for one in (self.score, self.category, self.image) if one is not None]
        return self.select(np.lexsort(keys))

    @property
    def centres(self) -> Floats:
        """Where they lie, (n, 2); on a sphere (n, 3), in km."""
        outlines = self.likelihood.outlines(self.columns)
        assert outlines is not None
        if not self.site.on_sphere:
            return np.column_stack([outlines.x, outlines.y])
        return self.site.sphere_radius_km * unit_vectors(outlines.x, outlines.y)

    @property
    def sizes(self) -> Floats | None:
        """The root of width times height, or the length; None where objects have no size."""
        if self.likelihood.columns is None or not len(self):
            return None
        outlines = self.likelihood.outlines(self.columns)
        if outlines is None or outlines.shape == "point":
            return None
        if outlines.on_line:
            return outlines.width
        return np.asarray(np.sqrt(outlines.width * outlines.height))


def objects_of(source: object, kind: str, name: str, columns: ColumnChoice = None) -> Objects:
    """Objects from whatever holds them: a path, items, a data frame or a dict of columns."""
    if isinstance(source, Objects):
        found = source
    elif isinstance(source, Items):
        found = _of_items(source, name)
    elif isinstance(source, (str, os.PathLike)):
        found = _of_path(source, kind, columns)
    elif isinstance(source, (list, tuple)) and all(
        isinstance(one, (str, os.PathLike)) for one in source
    ):
        found = _of_table(read_table(source, kind, columns=columns), name)
    else:
        found = _of_frame(source, kind, name, columns)
    if found.kind != kind:
        raise InputError(
            f"{found.name} has {found.kind}, but the answer has {kind}; give a truth of {kind}"
        )
    return found


def in_one_unit(answer: Objects, truth: Objects, body: float | None) -> tuple[Objects, Objects]:
    """Both in the unit that one of them names; ``body`` is the radius in km, if it is given.

    One that is in pixels, or does not say, takes the unit of the other.
    """
    sites = [one.site for one in (answer, truth) if one.site.units != "px"] or [answer.site]
    if len({site.units for site in sites}) > 1:
        raise InputError(
            f"{answer.name} is in {answer.site.units}, {truth.name} in {truth.site.units}; convert "
            "one of them (dfcrp convert)"
        )
    radii = [body, *(site.body_radius_km for site in sites)]
    radius = next((one for one in radii if one is not None), None)
    site = replace(sites[0], body_radius_km=radius)
    return replace(answer, site=site), replace(truth, site=site)


def _of_path(path: PathLike, kind: str, columns: ColumnChoice) -> Objects:
    file = Path(path)
    try:
        if file.is_dir():
            table = read_table(file, kind, columns=columns)
            _refuse_lists(table.about.get("expert", ()), file.name)
            return _of_table(table, file.name)
        raw, _ = read_file(file.name, file, ReadOptions(kind=kind))
    except NothingToReadError as error:
        if not error.looked or error.left_out:
            raise
        # A truth without any object is a truth.
        nothing = {name: np.zeros(0) for name in likelihood_named(kind).columns or ("x",)}
        images = tuple(sorted({image for image, _ in error.looked}))
        return Objects(file.name, kind, nothing, np.zeros(0, np.str_), empty_images=images)
    if said := what_to_say(raw, kind):
        warnings.warn(f"{file.name}: {said}", DfcrpWarning, stacklevel=4)
    table = raw.checked(kind, columns)
    _refuse_lists(table.about.get("expert", ()), file.name)
    found = _of_table(table, file.name)
    return replace(found, places=[raw.where(row) for row in range(len(table))])


def _of_table(table: ReadTable, name: str) -> Objects:
    about = table.about
    numbers = {}
    for title, cells in table.extra.items():
        if title in NUMBERS or title.endswith(("_lo", "_hi")):
            numbers[title] = to_numbers(cells)
    score = about.get("score")
    return Objects(
        name,
        table.kind,
        {role: np.asarray(values) for role, values in table.columns.items()},
        None if "image" not in about else np.array(about["image"], dtype=np.str_),
        _names(about.get("category")),
        None if score is None else np.array([np.nan if s is None else s for s in score], float),
        numbers,
        table.site,
        tuple(sorted({image for image, _ in table.looked})),
    )


def _of_items(items: Items, name: str) -> Objects:
    looked = () if items.looked is None else tuple(sorted(set(items.looked[:, 0].tolist())))
    return Objects(
        name,
        items.kind,
        dict(items.columns),
        items.image,
        items.category,
        items.score,
        site=items.site,
        empty_images=looked,
    )


def _of_frame(frame: Any, kind: str, name: str, columns: ColumnChoice) -> Objects:
    likelihood = likelihood_named(kind)
    described, about, titles = frame_columns(frame, likelihood, columns)
    _refuse_lists(to_names(np.asarray(about.pop("expert", ()))), name)

    def place(role: str, row: int) -> str:
        return f"{name}, index {row}" + (f", column {titles[role]!r}" if role in titles else "")

    names = list(titles.values())
    units = units_by_name(names, {role: names.index(titles[role]) for role in described})
    items = Items.from_columns(described, kind=kind, place=place, site=Site(units), **about)
    there = [title for title in NUMBERS if title in frame]
    numbers = {title: np.asarray(frame[title], np.float64) for title in there}
    return replace(_of_items(items, name), numbers=numbers)


def _refuse_lists(experts: Sequence[str], name: str) -> None:
    """Lists of several experts are no objects: each of these is there once."""
    count = len(set(experts))
    if count > 1:
        raise InputError(
            f"{name}: the column expert names {count} experts, so its rows are what each of them "
            "listed, and not objects; give a table with one row for each object, or leave the "
            "column aside with --columns expert="
        )


def _names(cells: Sequence[object] | None) -> NDArray[np.str_] | None:
    return None if cells is None else np.array([cell or "" for cell in cells], dtype=np.str_)


def column_of_file(path: Path, role: str) -> list[str]:
    """One column of names of a table."""
    raw, _ = read_file(path.name, path, ReadOptions(kind="records"))
    wanted = [at for at, title in enumerate(raw.header) if plain(title) in ABOUT[role]]
    if len(raw.header) == 1:
        wanted = [0]
    if len(wanted) != 1:
        raise InputError(
            f"{path.name}: it must have one column {role}; the columns are "
            f"{quoted_names(raw.header)}"
        )
    return [name for name in to_names(raw.columns[wanted[0]]) if name]
