"""The Items table: what several experts listed, as validated, read-only arrays."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.geometry import unit_vectors
from dfcrp.items.categories import Joins, join_names
from dfcrp.items.checks import Place, check_columns, checked_pairs, checked_words, to_texts
from dfcrp.items.columns import ColumnChoice, frame_columns, quoted_names, titles_of
from dfcrp.items.decisions import Decided, Decision
from dfcrp.items.footprints import Footprint, Look, as_text, cut_into_zones
from dfcrp.items.image_names import Mention, checked_mode, composed, in_one_spelling, name_images
from dfcrp.items.learned import Learned
from dfcrp.items.looks import Looks, looks_of, with_looks
from dfcrp.items.site import DOUBTFUL, Site, Source
from dfcrp.items.source_tables import SourceTables
from dfcrp.likelihoods.base import Likelihood
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.priors.base import Zones
from dfcrp.summaries.looked import Coverage
from dfcrp.values import Array, Json

#: What is known of an item besides the columns that describe it.
ABOUT = ("expert", "image", "id", "truth", "person")
#: The arrays with a value for each item, besides its columns and its expert.
PER_ITEM = ("id", "image", "truth", "person", "category", "score")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Items:
    """Items that several experts listed, one per row and in input order.

    Make one with ``dfcrp.read_markings``, ``dfcrp.read_items``, `from_columns` or `circles`, which
    check the data; the bare constructor does not.

    Attributes
    ----------
    kind : str
        What an item is: the name of a likelihood ("circles", "points", "boxes", "ellipses",
        "intervals", "diagonal", "normal", "records").
    columns : dict of arrays
        What describes an item, by column: numbers, or text for records ("" where missing).
    expert, experts, families : arrays
        Who listed each item, all experts (sorted), and each item's position among them; always
        ``expert == np.array(experts)[families]``.
    id : array of str
        A name for each item.
    image, person, truth : arrays or None
        The image an item is on, the person who made the expert's list, the true cluster.
    category : array of str or None
        What an item's expert takes its object for; "" where nothing is said.
    score : array or None
        How sure the expert, a detector, is of each item; NaN where nothing is said.
    candidates : array (m, 2) or None
        Pairs of rows that may share a cluster, where only these may.
    looked : array (m, 2) or None
        Images and the experts who looked at them, also those who listed nothing; None if that is
        not known.
    footprints : dict or None
        Of looks (image, expert) at a part of an image, the part, as coordinates of a GeoJSON
        MultiPolygon; None if all looks are at whole images.
    sources, filters, site
        The files, the filters applied on reading, and where the items lie.
    origin : array or None
        The mean of all features where these items are one image of several that were drawn
        together; None: their own.
    notes : tuple of str
        What was joined, renamed or repaired in reading.
    source_tables : SourceTables
        What the files say of images and categories besides their names: ids, sizes and the like.
    decisions : tuple of Decision
        What people decided about the items, in the order in which they did.
    decided : Decided or None
        The decisions that stand, for the model.
    given : Items or None
        The items before slips were left out and experts corrected, where there are decisions.
    start : array (chains, n) or None
        Clusters of an earlier run, with which chains begin; −1 for items that it did not have.
    learned : dict of Learned
        What the chains of that run had learned, by image if each was drawn by itself; else by "".
    updates : tuple of dict
        What was added since the first run, update by update.

    Examples
    --------
    >>> import dfcrp
    >>> items = dfcrp.Items.circles([10.0, 10.2], [5.0, 5.1], [4.0, 4.1], ["ann", "bob"])
    >>> items.experts
    ('ann', 'bob')
    """

    kind: str
    columns: Mapping[str, Array]
    expert: NDArray[np.str_]
    experts: tuple[str, ...]
    families: NDArray[np.int64]
    id: NDArray[np.str_]
    image: NDArray[np.str_] | None = None
    truth: NDArray[np.int64] | None = None
    person: NDArray[np.str_] | None = None
    category: NDArray[np.str_] | None = None
    score: NDArray[np.float64] | None = None
    candidates: NDArray[np.int64] | None = None
    looked: NDArray[np.str_] | None = None
    footprints: Mapping[Look, Footprint] | None = None
    sources: tuple[Source, ...] = ()
    filters: Mapping[str, object] = field(default_factory=dict)
    site: Site = field(default_factory=Site)
    origin: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    source_tables: SourceTables = field(default_factory=SourceTables)
    decisions: tuple[Decision, ...] = ()
    decided: Decided | None = None
    given: Items | None = None
    start: NDArray[np.int64] | None = None
    learned: Mapping[str, Learned] = field(default_factory=dict)
    updates: tuple[Mapping[str, object], ...] = ()

    def __post_init__(self) -> None:
        arrays = [getattr(self, item.name) for item in fields(self)]
        for value in (*arrays, *self.columns.values()):
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        expert: ArrayLike | None = None,
        *,
        kind: str = "circles",
        image: ArrayLike | None = None,
        id: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        person: ArrayLike | None = None,
        category: ArrayLike | None = None,
        score: ArrayLike | None = None,
        candidates: ArrayLike | None = None,
        looked: Any = None,
        site: Site | None = None,
        place: Place | None = None,
    ) -> Items:
        """Check and copy one value of each column per item.

        Parameters
        ----------
        columns : mapping
            The columns that describe an item; of circles x, y and diameter (or radius). Spellings
            that are known of files, such as x_min, are known here as well.
        expert : sequence, optional
            Who listed each item; left out, every item is by an expert of its own, and any two may
            share a cluster.
        kind : str
            What the items are.
        image, id, truth, person : sequences, optional
            As in `Items`; ids default to 1, 2, 3, ...
        category : sequence, optional
            What each item's expert takes its object for; empty where nothing is said.
        score : sequence, optional
            How sure the expert, a detector, is of each item: any numbers, NaN where missing.
        candidates : (m, 2) integers, optional
            Pairs of row numbers from 0: only these items may share a cluster.
        looked : table or sequence of pairs, optional
            Who looked at which image, with the columns image and expert; of one image, the names
            of the experts. It also tells of those who looked and listed nothing. Looks at a part of
            an image have it in a column footprint, or in x_min, y_min, x_max and y_max.
        site : Site, optional
            Units, body and area.
        place : callable, optional
            Says where a cell is, for messages.

        Returns
        -------
        Items
        """
        likelihood = likelihood_named(kind)
        titles = titles_of(columns, likelihood)
        columns = {role: columns[title] for role, title in titles.items()}
        where = place or (lambda role, row: f"index {row}, {titles.get(role, role)}")
        about = {"expert": expert, "image": image, "id": id, "truth": truth, "person": person}
        cells = {**columns, **{role: raw for role, raw in about.items() if raw is not None}}
        _refuse_other_columns(likelihood, columns)
        checked = check_columns(
            cells,
            where,
            positive=likelihood.positive,
            texts=tuple(columns) if likelihood.text else (),
        )
        said = checked_words({"category": category, "score": score}, _length(checked), where)
        roles = ("expert", "image", "person")
        spelled: Json = {role: checked[role] for role in roles if role in checked}
        if said.get("category") is not None:
            spelled["category"] = said["category"].tolist()
        names, notes = in_one_spelling(spelled)
        said |= {"category": names.pop("category", None)}
        described = likelihood.standard({**checked, **names}, where)
        items = replace(cls.build(described, kind, said, where), notes=tuple(notes))
        count = len(items)
        pairs = None if candidates is None else checked_pairs(candidates, count)
        items = replace(items, candidates=pairs, site=site or Site())
        items.warn_of_repeats()
        return items if looked is None else with_looks(items, looked)

    @classmethod
    def circles(  # noqa: PLR0917 - the first four have a natural order, the rest a name
        cls,
        x: ArrayLike,
        y: ArrayLike,
        diameter: ArrayLike,
        expert: ArrayLike,
        image: ArrayLike | None = None,
        id: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        person: ArrayLike | None = None,
        site: Site | None = None,
        looked: Any = None,
        category: ArrayLike | None = None,
        score: ArrayLike | None = None,
    ) -> Items:
        """Circles by their centres and diameters; the rest is as in `from_columns`."""
        columns = {"x": x, "y": y, "diameter": diameter}
        about: Json = {"image": image, "id": id, "truth": truth, "person": person}
        about |= {"category": category, "score": score}
        return cls.from_columns(columns, expert, **about, looked=looked, site=site)

    @classmethod
    def intervals(
        cls, start: ArrayLike, end: ArrayLike, expert: ArrayLike | None = None, **about: Any
    ) -> Items:
        """Intervals on a line by their starts and ends; ``about`` is as in `from_columns`.

        Examples
        --------
        >>> import dfcrp
        >>> dfcrp.Items.intervals([0.5, 0.6], [2.0, 2.1], ["ann", "bob"])
        <Items: 2 intervals by 2 experts; columns start, end>
        """
        return cls.from_columns({"start": start, "end": end}, expert, kind="intervals", **about)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        kind: str = "circles",
        *,
        columns: ColumnChoice = None,
        image_names: str = "auto",
        join_categories: Joins = None,
    ) -> Items:
        """Take a data frame, or a dict of columns, with columns named as in files.

        Parameters
        ----------
        frame : data frame or mapping
            Of pandas, polars or their like; messages count its rows from 0.
        kind : str
            What the items are.
        columns : dict or str, optional
            Which column plays which role where the names do not tell, as in ``read_items``.
        image_names, join_categories
            What makes two names the same image, and which categories are one, as there.

        Returns
        -------
        Items

        Examples
        --------
        >>> import dfcrp
        >>> frame = {"X": [1.0, 4.0], "Y": [2.0, 5.0], "Radius": [3.0, 6.0], "Observer": ["a", "b"]}
        >>> dfcrp.Items.from_frame(frame).diameter.tolist()
        [6.0, 12.0]
        """
        described, about, titles = frame_columns(frame, likelihood_named(kind), columns)
        if "expert" not in about:
            there = quoted_names(list(titles.values()))
            raise InputError(
                f"the table: no column for expert; the columns are {there}; "
                "say which with columns={'expert': 'NAME'}"
            )

        def place(role: str, row: int) -> str:
            return f"index {row}" + (f", column {titles[role]!r}" if role in titles else "")

        notes: list[str] = []
        if "category" in about or join_categories:
            told = list(map(composed, to_texts(about.get("category", ()))))
            about["category"], notes, doubts = join_names(told, join_categories)
            notes += _warned(doubts)
        items = cls.from_columns(described, kind=kind, place=place, **about)
        return _with_named_images(replace(items, notes=(*items.notes, *notes)), image_names)

    @classmethod
    def build(
        cls,
        columns: Mapping[str, Any],
        kind: str,
        said: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ) -> Items:
        """Items of columns that have been checked, those about an item among them.

        ``said`` is what items say of their objects, by role; it is checked here.
        """
        described = {name: values for name, values in columns.items() if name not in ABOUT}
        count = len(next(iter(described.values())))
        names = columns.get("expert")
        if names is None:
            names = [f"{i + 1:0{len(str(count))}d}" for i in range(count)]
        experts, families = encode(list(names))
        image, truth, person = (columns.get(name) for name in ("image", "truth", "person"))
        return cls(
            kind=kind,
            columns={name: np.asarray(values) for name, values in described.items()},
            expert=np.array(experts)[families],
            experts=experts,
            families=families,
            id=np.array(columns["id"] if "id" in columns else range(1, count + 1), dtype=np.str_),
            image=None if image is None else np.array(image),
            truth=None if truth is None else np.asarray(truth, dtype=np.int64),
            person=None if person is None else np.array(person),
            **checked_words(said or {}, count, place or (lambda role, row: f"row {row}, {role}")),
        )

    def __len__(self) -> int:
        return len(self.families)

    def __repr__(self) -> str:
        images = f" on {len(self.images)} images" if len(self.images) > 1 else ""
        return (
            f"<Items: {self.counted} by {len(self.experts):,} experts{images}; "
            f"columns {', '.join(self.columns)}>"
        )

    @property
    def counted(self) -> str:
        """How many there are of what: "8 circles", "8 items (diagonal)"."""
        plain = likelihood_named(self.kind).noun == "item"
        return f"{len(self):,} {f'items ({self.kind})' if plain else self.kind}"

    def _repr_html_(self) -> str:
        from dfcrp.markup import first_rows

        return first_rows(repr(self), {"id": self.id, "expert": self.expert, **self.columns})

    def _column(self, name: str) -> NDArray[np.float64]:
        if name not in self.columns:
            raise AttributeError(
                f"these items are {self.kind} with {', '.join(self.columns)}; they have no {name}"
            )
        return self.columns[name]

    @property
    def x(self) -> NDArray[np.float64]:
        """x, or the longitude."""
        return self._column("x")

    @property
    def y(self) -> NDArray[np.float64]:
        """y, or the latitude."""
        return self._column("y")

    @property
    def diameter(self) -> NDArray[np.float64]:
        """Diameters of circles."""
        return self._column("diameter")

    @property
    def values(self) -> Array:
        """All columns as one array, (n, columns)."""
        return np.column_stack(list(self.columns.values()))

    @property
    def features(self) -> NDArray[np.float64]:
        """What the model sees of the items, (n, p)."""
        return likelihood_named(self.kind).features(self)

    @property
    def cells(self) -> dict[str, list[str]]:
        """The columns as text, numbers in full precision."""
        return {
            name: values.tolist() if values.dtype.kind == "U" else list(map(repr, values.tolist()))
            for name, values in self.columns.items()
        }

    @property
    def places(self) -> NDArray[np.float64]:
        """Where centres lie, in the unit of lengths, so that distances are right.

        (n, 2), x and y; in degrees (n, 3), in space, where straight lines cut the ground short.
        """
        if not self.site.on_sphere:
            return np.column_stack([self.x, self.y])
        return self.site.sphere_radius_km * unit_vectors(self.x, self.y)

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The distinct image names, sorted; none if the input names no images."""
        return () if self.image is None else tuple(sorted(set(self.image.tolist())))

    @property
    def image_codes(self) -> NDArray[np.int64] | None:
        """The position of each item's image among `images`; None if there are not several."""
        if self.image is None or len(self.images) < 2:
            return None
        return encode(self.image.tolist())[1]

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The distinct categories, sorted; none if items have none."""
        return () if self.category is None else tuple(sorted(set(self.category.tolist()) - {""}))

    @property
    def category_codes(self) -> NDArray[np.int64] | None:
        """The position of each item's category among `categories`, −1 where nothing is said.

        None if items have no categories.
        """
        if self.category is None:
            return None
        code = {"": -1, **{name: at for at, name in enumerate(self.categories)}}
        return np.array([code[name] for name in self.category.tolist()], np.int64)

    @property
    def rows_read(self) -> int:
        """Data rows in all source files, before filters."""
        return sum(source.rows for source in self.sources)

    @property
    def rows_filtered_out(self) -> int:
        """Data rows of the source files that filters removed on reading."""
        return sum(source.rows - source.kept for source in self.sources)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the model sees: columns, experts, images, candidates, in this order.

        Names of files, ids and true labels are left out, so that a renamed file is the same data.
        """
        hasher = hashlib.sha256()
        for values in self.columns.values():
            if values.dtype.kind == "U":
                _add_names(hasher, values.tolist())
            else:
                hasher.update(values.astype("<f8").tobytes())
        for names in (self.expert, self.image):
            _add_names(hasher, None if names is None else names.tolist())
        if self.candidates is not None:
            hasher.update(self.candidates.astype("<i8").tobytes())
        if self.looked is not None:
            _add_names(hasher, self.looked.ravel().tolist())
        if self.footprints:
            parts = [[*look, as_text(part)] for look, part in sorted(self.footprints.items())]
            _add_names(hasher, [text for row in parts for text in row])
        if self.category is not None:
            _add_names(hasher, ["category", *self.category.tolist()])
        if self.score is not None:
            hasher.update(b"score" + self.score.astype("<f8").tobytes())
        if self.decided is not None:
            _add_names(hasher, ["decided", *self.decided.key()])
        return hasher.hexdigest()

    def select(self, mask: ArrayLike) -> Items:
        """Keep the items where the boolean mask is true; ids and sources stay as they were."""
        chosen = np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != (len(self),):
            raise InputError(f"a selection needs {len(self)} truth values, one per item")
        if not chosen.any():
            raise InputError("the selection leaves no items")
        return self.take(np.flatnonzero(chosen))

    def take(self, rows: NDArray[np.int64]) -> Items:
        """Keep the items in these rows; ids, sources and who looked stay as they were."""
        return self._with_rows(rows, self.looked)

    def of_image(self, name: str, rows: NDArray[np.int64]) -> Items:
        """The items of one image, in these rows; its experts are those who looked at it."""
        looked = self.looked
        if looked is not None:
            looked = looked[self._looks_by_image.get(name, np.zeros(0, np.int64))]
        learned = {"": self.learned[name]} if name in self.learned else {}
        return replace(self._with_rows(rows, looked), learned=learned)

    @cached_property
    def _looks_by_image(self) -> dict[str, NDArray[np.int64]]:
        """The rows of ``looked`` of each image: sought once, not for every image."""
        return {} if self.looked is None else rows_by_name(self.looked[:, 0].tolist())

    @cached_property
    def _expert_numbers(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.experts)}

    def _with_rows(self, rows: NDArray[np.int64], looked: NDArray[np.str_] | None) -> Items:
        """These rows and looks; experts are those who looked, or else who have an item."""

        def kept(values: Array | None) -> Any:
            return None if values is None else values[rows]

        families = self.families[rows]
        present = families
        footprints: Mapping[Look, Footprint] = {}
        if looked is not None:
            # Whoever has an item on an image looked at it (``with_looks``).
            numbers = self._expert_numbers
            there = [numbers[name] for name in looked[:, 1].tolist() if name in numbers]
            present = np.append(families, np.array(there, np.int64))
            given, pairs = self.footprints or {}, map(tuple, looked.tolist())
            footprints = {look: given[look] for look in pairs if look in given}
        present = np.unique(present)
        experts = tuple(self.experts[at] for at in present)
        families = np.searchsorted(present, families)
        return replace(
            self,
            columns={name: values[rows] for name, values in self.columns.items()},
            expert=np.array(experts)[families],
            experts=experts,
            families=families,
            **{role: kept(getattr(self, role)) for role in PER_ITEM},
            candidates=self._candidates_among(rows),
            looked=looked,
            footprints=footprints or None,
            origin=None,
            start=None if self.start is None else self.start[:, rows],
            **self._decided_of(rows),
        )

    def _decided_of(self, rows: NDArray[np.int64]) -> Json:
        """Decisions about these rows; corrected experts and slips are not given back."""
        if self.decided is None:
            return {}
        there = set(self.id[rows].tolist())
        about = tuple(one for one in self.decisions if there.issuperset(one.items))
        return {"decisions": about, "decided": self.decided.take(rows), "given": None}

    def look_facts(self) -> Json:
        """Who looked where and what items say, as a prior over partitions is told."""
        looks = self.looks
        return {
            "image_names": looks.images,
            "images": looks.image,
            "looks": looks.pairs,
            "looks_known": self.looked is not None,
            "zones": self.zones,
            "category_names": self.categories,
            "categories": self.category_codes,
            "scores": self.score,
            "decided": self.decided,
        }

    @cached_property
    def looks(self) -> Looks:
        """Who looked at which image; if nothing says it, whoever has an item on it."""
        return looks_of(self)

    @cached_property
    def zones(self) -> Zones | None:
        """What footprints cut images into; None where all looks are at whole images."""
        return None if self.footprints is None else cut_into_zones(self)

    @cached_property
    def coverage(self) -> Coverage:
        """Who looked at the place of each item: at its image or, with footprints, its zone."""
        looks, zones, experts = self.looks, self.zones, len(self.experts)
        if zones is None:
            return Coverage(looks.image, looks.pairs, len(looks.images), experts, False)
        return Coverage(zones.zone, zones.pairs, len(zones.share), experts, True)

    def _candidates_among(self, rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if self.candidates is None:
            return None
        position = np.full(len(self), -1, np.int64)
        position[rows] = np.arange(len(rows))
        pairs = np.sort(position[self.candidates], axis=1)
        return pairs[pairs[:, 0] >= 0]

    def rows_by_image(self) -> dict[str, NDArray[np.int64]]:
        """The rows of each image, in input order; images sorted by name."""
        if self.image is None:
            return {}
        return rows_by_name(self.image.tolist())

    def warn_of_repeats(self) -> None:
        """Warn of items that repeat one by the same expert exactly.

        Both would enter the catalogue, since one expert's items never share a cluster.
        """
        named = dict(self.columns) | ({} if self.image is None else {"image": self.image})
        keys = [_codes(values) for values in reversed(named.values())] + [self.families]
        order = np.lexsort(keys)  # stable: the earlier of two equal items comes first
        same = np.logical_and.reduce([key[order[1:]] == key[order[:-1]] for key in keys])
        later, earlier = order[1:][same], order[:-1][same]
        if not later.size:
            return
        noun = likelihood_named(self.kind).noun
        examples = ", ".join(
            f"{self.id[second]} repeats {self.id[first]} ({self.expert[second]})"
            for second, first in sorted(zip(later.tolist(), earlier.tolist(), strict=True))[:3]
        )
        warnings.warn(
            f"{later.size} {noun}{'s' if later.size > 1 else ''} with the "
            f"{', '.join(self.columns)}{' and image' if self.image is not None else ''} of "
            "another by the same expert: "
            f"{examples}{', ...' if later.size > 3 else ''}; if the list holds them twice by "
            "mistake, remove the copies, since each will be an object of its own",
            DfcrpWarning,
            stacklevel=3,
        )


def _length(columns: Mapping[str, Sized]) -> int:
    return len(next(iter(columns.values())))


def _with_named_images(items: Items, mode: str) -> Items:
    """The items with one name for each image; doubtful ones are named in a warning."""
    checked_mode(mode)
    if items.image is None:
        return items
    pictures = {name: Mention(name) for name in items.images}
    rows = list(zip(items.expert.tolist(), items.image.tolist(), strict=True))
    found = name_images({(expert, pictures[name]) for expert, name in rows}, mode)
    image = np.array([found.names[expert, pictures[name]] for expert, name in rows])
    notes = (*items.notes, *found.notes, *_warned(found.warnings))
    return replace(items, image=image, notes=notes)


def _warned(doubts: Sequence[str]) -> list[str]:
    """Warn of what is doubtful, and note it."""
    for text in doubts:
        warnings.warn(text, DfcrpWarning, stacklevel=4)
    return [DOUBTFUL + text for text in doubts]


def _refuse_other_columns(likelihood: Likelihood, columns: Mapping[str, object]) -> None:
    wanted = likelihood.columns
    if not columns:
        raise InputError(f"{likelihood.name} need at least one column that describes them")
    clash = [name for name in columns if name in ABOUT]
    if clash:
        raise InputError(f"a column that describes items cannot be called {clash[0]!r}; rename it")
    if wanted is not None and set(columns) != set(wanted):
        ways = (wanted, *likelihood.alternatives)
        if not any(set(columns) == set(way) for way in ways):
            listed = " or ".join(", ".join(way) for way in ways)
            given = ", ".join(columns)
            raise InputError(f"{likelihood.name} have the columns {listed}, not {given}")


def rows_by_name(names: list[str]) -> dict[str, NDArray[np.int64]]:
    """The rows of each name, in input order; names sorted."""
    if not names:
        return {}
    each, codes = encode(names)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(each)))
    return dict(zip(each, np.split(order, ends[:-1]), strict=True))


def encode(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Give the distinct names, sorted, and each name's position among them."""
    distinct = tuple(sorted(set(names)))
    code = {name: position for position, name in enumerate(distinct)}
    return distinct, np.fromiter(map(code.__getitem__, names), np.int64, len(names))


def _codes(values: Array) -> Array:
    return encode(values.tolist())[1] if values.dtype.kind == "U" else values


def _add_names(hasher: hashlib._Hash, names: list[str] | None) -> None:
    distinct, codes = ((), None) if names is None else encode(names)
    # Lengths keep ("ab", "c") apart from ("a", "bc").
    hasher.update(repr([len(name) for name in distinct]).encode())
    hasher.update("".join(distinct).encode())
    if codes is not None:
        hasher.update(codes.astype("<i8").tobytes())
