"""The Markings table: every expert's marked objects as validated, read-only arrays."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.sphere import unit_vectors


@dataclass(frozen=True)
class Source:
    """A file that markings came from."""

    file: str
    sha256: str
    rows: int
    """Data rows in the file."""
    kept: int
    """Rows left after the filters of ``read_markings``."""
    left_out: int = 0
    """Entries of the file that are no circles, of which a warning told."""


@dataclass(frozen=True)
class Ring:
    """A closed line around ground that was searched, or around a hole in it."""

    points: tuple[tuple[float, float], ...]
    hole: bool = False


UNITS = ("px", "m", "km", "deg")


@dataclass(frozen=True)
class Site:
    """Where markings lie: what they are measured in, on which body, and the ground searched."""

    units: str = "px"
    """"px", "m" or "km" in a plane, for diameters too; also "px" where nothing is known. With
    "deg" x is the longitude, y the latitude, and diameters are in km."""
    body_radius_km: float | None = None
    area_km2: float | None = None
    boundary: tuple[Ring, ...] = ()
    metres_per_pixel: float | None = None
    """How much ground a pixel covers of the image that was marked."""

    @property
    def on_sphere(self) -> bool:
        """Whether x and y are longitude and latitude."""
        return self.units == "deg"

    @property
    def sphere_radius_km(self) -> float:
        """The radius of the sphere that longitude and latitude are on."""
        if self.body_radius_km is None:
            raise InputError(
                "the coordinates are longitude and latitude; distances need the radius of the "
                "body: give it with --body, as in --body moon"
            )
        return self.body_radius_km

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Site:
        """What ``dataclasses.asdict`` made of a site, also after a journey through JSON."""
        rings = [
            Ring(tuple((x, y) for x, y in ring["points"]), ring["hole"])
            for ring in fields.get("boundary", ())
        ]
        return cls(**{**fields, "boundary": tuple(rings)})

    @property
    def km_per_diameter(self) -> float | None:
        """What one unit of diameter is in km, if that is known."""
        if self.units == "px":
            return None if self.metres_per_pixel is None else self.metres_per_pixel / 1000.0
        return 1e-3 if self.units == "m" else 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Items:
    """What several sources list, one item per row and in input order, whatever describes it.

    The invariant is ``expert == np.array(experts)[families]``, with ``experts`` sorted and each of
    them present. A kind of items adds the numbers that describe one.
    """

    expert: NDArray[np.str_]
    experts: tuple[str, ...]
    families: NDArray[np.int64]
    id: NDArray[np.str_]
    image: NDArray[np.str_] | None = None
    truth: NDArray[np.int64] | None = None
    #: Who made the expert's list, where experts are not all persons of their own.
    person: NDArray[np.str_] | None = None
    sources: tuple[Source, ...] = ()
    #: The filters that these are the rest of, as in ``read_markings``.
    filters: Mapping[str, Any] = field(default_factory=dict)
    site: Site = Site()

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.families)

    @property
    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """What describes the items, by column."""
        raise NotImplementedError

    @property
    def cells(self) -> dict[str, list[str]]:
        """The same as text, in full precision."""
        return {name: list(map(repr, values.tolist())) for name, values in self.numbers.items()}

    @property
    def features(self) -> NDArray[np.float64]:
        """What the model sees of that, (n, p)."""
        raise NotImplementedError

    @property
    def images(self) -> tuple[str, ...]:
        """The distinct image names, sorted; none if the input names no images."""
        return () if self.image is None else tuple(sorted(set(self.image.tolist())))

    @property
    def rows_read(self) -> int:
        """Data rows in all source files, before filters."""
        return sum(source.rows for source in self.sources)

    @property
    def rows_filtered_out(self) -> int:
        """Data rows of the source files that the filters of ``read_markings`` removed."""
        return sum(source.rows - source.kept for source in self.sources)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the model sees: numbers, experts, images, in this order.

        Names of files, ids and true labels are left out, so that a renamed file is the same data.
        """
        hasher = hashlib.sha256()
        for values in self.numbers.values():
            hasher.update(values.astype("<f8").tobytes())
        for names in (self.expert, self.image):
            distinct, codes = ((), None) if names is None else encode(names.tolist())
            # Lengths keep ("ab", "c") apart from ("a", "bc").
            hasher.update(repr([len(name) for name in distinct]).encode())
            hasher.update("".join(distinct).encode())
            if codes is not None:
                hasher.update(codes.astype("<i8").tobytes())
        return hasher.hexdigest()


@dataclass(frozen=True, eq=False, kw_only=True)
class Markings(Items):
    """All markings: circles by x, y and diameter.

    Make one with ``dfcrp.read_markings``, `from_arrays` or `from_frame`, which check the data; the
    bare constructor does not.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    diameter: NDArray[np.float64]

    @classmethod
    def from_arrays(  # noqa: PLR0917 - the first four have a natural order, the rest a name
        cls,
        x: ArrayLike,
        y: ArrayLike,
        diameter: ArrayLike,
        expert: ArrayLike,
        image: ArrayLike | None = None,
        id: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        person: ArrayLike | None = None,
    ) -> Markings:
        """Check and copy one value of each per marking; ids default to 1, 2, 3, ..."""
        # Here and below: dfcrp.io stands on this module, so it cannot be imported before it.
        from dfcrp.io.checks import check_columns

        given = {
            "x": x,
            "y": y,
            "diameter": diameter,
            "expert": expert,
            "image": image,
            "id": id,
            "truth": truth,
            "person": person,
        }
        cells: dict[str, Any] = {role: raw for role, raw in given.items() if raw is not None}
        columns = check_columns(cells, lambda role, row: f"index {row}, {role}")
        markings = build(columns)
        warn_of_repeats(markings)
        return markings

    @classmethod
    def from_frame(
        cls, frame: Any, *, columns: Mapping[str, str | None] | str | None = None
    ) -> Markings:
        """Take a data frame, or a dict of columns, with columns named as in files."""
        from dfcrp.io.frames import columns_of_frame

        markings = build(columns_of_frame(frame, columns))
        warn_of_repeats(markings)
        return markings

    @property
    def numbers(self) -> dict[str, NDArray[np.float64]]:
        """x, y and diameter."""
        return {"x": self.x, "y": self.y, "diameter": self.diameter}

    @property
    def features(self) -> NDArray[np.float64]:
        """The (n, 3) array of x, y and log diameter."""
        return np.column_stack([self.x, self.y, np.log(self.diameter)])

    @property
    def places(self) -> NDArray[np.float64]:
        """Where the centres lie, in the unit of the diameters, so that distances are right.

        (n, 2), x and y; in degrees (n, 3), in space, where straight lines cut the ground short.
        """
        if not self.site.on_sphere:
            return np.column_stack([self.x, self.y])
        return self.site.sphere_radius_km * unit_vectors(self.x, self.y)

    def select(self, mask: ArrayLike) -> Markings:
        """Keep the markings where the boolean mask is true; ids and sources stay as they were."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise InputError(f"a selection needs {len(self)} truth values, one per marking")
        if not chosen.any():
            raise InputError("the selection leaves no markings")
        return self.take(np.flatnonzero(chosen))

    def take(self, rows: NDArray[np.int64]) -> Markings:
        """Keep the markings in these rows; ids and sources stay as they were."""
        columns = {
            role: values[rows]
            for role in ("x", "y", "diameter", "image", "id", "truth", "person")
            if (values := getattr(self, role)) is not None
        }
        columns["expert"] = self.expert[rows].tolist()
        return replace(build(columns), sources=self.sources, filters=self.filters, site=self.site)

    def rows_by_image(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each image, in input order; images sorted by name."""
        if self.image is None:
            return {}
        names, codes = encode(self.image.tolist())
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))
        return dict(zip(names, np.split(order, ends[:-1]), strict=True))


def encode(names: list[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Give the distinct names, sorted, and each name's position among them."""
    distinct = tuple(sorted(set(names)))
    code = {name: position for position, name in enumerate(distinct)}
    return distinct, np.fromiter(map(code.__getitem__, names), np.int64, len(names))


def build(columns: Mapping[str, Any]) -> Markings:
    """Make Markings of columns that have passed ``dfcrp.io.checks.check_columns``."""
    experts, families = encode(columns["expert"])
    count = len(families)
    image = columns.get("image")
    truth, person = columns.get("truth"), columns.get("person")
    return Markings(
        x=columns["x"],
        y=columns["y"],
        diameter=columns["diameter"],
        expert=np.array(experts)[families],
        experts=experts,
        families=families,
        id=np.array(columns["id"] if "id" in columns else range(1, count + 1), dtype=np.str_),
        image=None if image is None else np.array(image),
        truth=None if truth is None else np.asarray(truth, dtype=np.int64),
        person=None if person is None else np.array(person),
    )


def warn_of_repeats(markings: Markings) -> None:
    """Warn of markings that repeat one by the same expert exactly.

    Both would enter the catalogue, since one expert's markings never share a cluster.
    """
    image = () if markings.image is None else (encode(markings.image.tolist())[1],)
    keys = (markings.diameter, markings.y, markings.x, markings.families, *image)
    order = np.lexsort(keys)  # stable: the earlier of two equal markings comes first
    same = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
    later, earlier = order[1:][same], order[:-1][same]
    if not later.size:
        return
    examples = ", ".join(
        f"{markings.id[second]} repeats {markings.id[first]} ({markings.expert[second]})"
        for second, first in sorted(zip(later.tolist(), earlier.tolist(), strict=True))[:3]
    )
    warnings.warn(
        f"{later.size} marking{'s' if later.size > 1 else ''} with the x, y, diameter"
        f"{' and image' if image else ''} of another by the same expert: "
        f"{examples}{', ...' if later.size > 3 else ''}; if the list holds them twice by mistake, "
        "remove the copies, since each will be a crater of its own",
        DfcrpWarning,
        stacklevel=3,
    )
