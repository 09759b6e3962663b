"""What a likelihood is outside the kernels: its items, its settings, its answers, its words.

A likelihood is one kind of item. Its folder holds all that is its own; the rest of the package asks
the object in ``dfcrp.likelihoods.registry`` and never what kind it is. ``Likelihood`` below has
an answer to every question that suits items described by any numbers, so that a likelihood states
only what is different. What the compiled moves ask is in ``dfcrp.likelihoods.contract``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws
from dfcrp.errors import InputError
from dfcrp.likelihoods import report
from dfcrp.likelihoods.integrated import Newcomers
from dfcrp.markup import SectionMaker
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.summaries.catalogue import Centre
from dfcrp.summaries.fit import Check
from dfcrp.summaries.streaming import summarise
from dfcrp.summaries.tails import Scatter
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items
    from dfcrp.likelihoods.differences import ExpertBias
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.settings.config import Config

Floats = NDArray[np.float64]
Place = Callable[[str, int], str]

#: Log sizes that differ by no more than this say nothing of how scatter grows with size.
NARROW = 0.1
#: Of more columns a first look makes no map.
MOST_COORDINATES = 3
#: Standard deviation of that growth then: it stays as believed, and is no part of the model.
HELD = 1e-3


@dataclass(frozen=True)
class Layout:
    """Items laid out for the kernels, in input order."""

    features: Floats
    #: Hyperparameters: a named tuple with a ``law``, as ``likelihoods.contract`` says.
    hyper: Any
    #: Numbers that a cluster's row of parameters takes in the kernels.
    row_width: int
    #: What is stored with every draw.
    columns: Columns
    neighbourhood: Neighbourhood
    #: Log sizes of the items, for priors that depend on them; None if they have none.
    log_sizes: Floats | None = None
    #: Which rows of parameters a cluster can have; a checkpoint with another is refused.
    possible: Callable[[Floats], NDArray[np.bool_]] | None = None


@dataclass(frozen=True)
class Outlines:
    """Where to draw items or objects on a map.

    ``shape`` is "ellipse", "box" or "point"; angles are in degrees, counterclockwise, from x to the
    first axis. What lies ``on_line`` has a place along x alone: each list then has a lane.
    """

    x: Floats
    y: Floats
    width: Floats
    height: Floats
    angle: Floats
    shape: str
    on_line: bool = False


@dataclass(frozen=True)
class Part:
    """One part of the distance from an item to a cluster, and what its sign means.

    Without words for more and less it has no sign.
    """

    name: str
    more: str = ""
    less: str = ""


@dataclass(frozen=True)
class Offsets:
    """How an item's distance from a cluster is measured, in standard deviations.

    ``measure`` takes the cluster's stored ``parameters`` (draws, parameters) and what the draws'
    clusters share (draws, width), and gives the whole distance and its parts, (1 + parts, draws).
    """

    parameters: tuple[str, ...]
    parts: tuple[Part, ...]
    #: Numbers that describe an item: of a cluster's own items the squared distances are χ² with so
    #: many degrees of freedom.
    features: int
    measure: Callable[[Floats, Floats], Floats]


@dataclass(frozen=True)
class Evidence:
    """What one column says on whether an item and the members of a cluster are one object."""

    name: str
    #: The item's value, and the most frequent one of the members; "" where it is missing.
    own: str
    theirs: str
    #: What the column adds to the logarithm of the odds that the item is of the members' object.
    log_odds: float


@dataclass(frozen=True)
class NewItems:
    """New items that are to be weighed against the clusters of a run."""

    #: Those of the run, and its settings.
    items: Items
    config: Config
    #: Hyperparameters with the learned law.
    hyper: Any
    #: (m, columns): the new items.
    values: Array
    #: Codes of who listed them, -1 if not known.
    sources: NDArray[np.int64]
    #: Members that a cluster has at most, with a new one.
    most: int
    #: Numbers that a cluster's row takes in the run.
    width: int


@dataclass(frozen=True)
class Sight:
    """How a first look at the data compares items: where they are, and how large.

    ``places`` takes coordinates as the files have them, (n, p), to where distances are right;
    ``turn`` is the length of a full turn of the first coordinate, if it comes back to itself.
    """

    coordinates: Floats
    #: What the coordinates are called.
    names: tuple[str, ...]
    places: Callable[[Floats], Floats]
    #: Lengths in the unit of places; None if items have no size.
    sizes: Floats | None = None
    turn: float | None = None
    #: Whether the coordinates are a place: then items of one object lie closer together than
    #: those of two, or nothing can be merged.
    placed: bool = True
    #: Whether they are counts, such as of characters, in which experts often agree exactly.
    counted: bool = False


class Likelihood:
    """One kind of item; the answers here are for items described by any numbers."""

    #: As in ``run.likelihood``.
    name: str = ""
    #: What one item is called in sentences.
    noun: str = "item"
    #: Its settings: a frozen dataclass, the section [likelihood] of a settings file.
    Settings: type[Any]
    #: The columns that describe an item; None: any columns.
    columns: tuple[str, ...] | None = None
    #: Other sets of columns that say the same; ``standard`` turns them into ``columns``.
    alternatives: tuple[tuple[str, ...], ...] = ()
    #: Columns that must be above zero.
    positive: tuple[str, ...] = ()
    #: Whether columns are text.
    text: bool = False
    #: Whether items in degrees are taken for places on a sphere, not in a plane.
    sphere: bool = False
    #: Names by which columns are recognised in files, besides their own; also of image, expert and
    #: the like, where no column has one of their usual names.
    spellings: Mapping[str, frozenset[str]] = {}
    #: Paper presets: settings of this likelihood and of the prior, by name.
    presets: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}
    #: Settings that the paper's samplers go with.
    as_in_the_paper: Mapping[str, Any] = {}
    #: Whether cluster parameters are integrated out, so that new items can be weighed.
    weighs_new: bool = True
    #: What experts did with items, in sentences.
    verb: str = "listed"
    #: What their size is called, where they have one, and how it follows from the columns.
    size_word: str = "diameter"
    size_formula: str = ""

    @property
    def size_label(self) -> str:
        """The size with its formula, for axes."""
        return f"{self.size_word} {self.size_formula}".rstrip()

    def image_word(self, items: Items) -> str:
        """What an image of these items is called in sentences."""
        return "image"

    def standard(self, columns: dict[str, Array], place: Place) -> dict[str, Array]:
        """The columns of ``columns`` from checked ones that may say it in another way."""
        return columns

    def complete(self, values: Mapping[str, object]) -> Json:
        """The given settings with what follows from them."""
        return dict(values)

    def usual_alpha_rate(self, n: int) -> float:
        """The rate of α's law that suits so many items."""
        return 0.01

    def check(self, items: Items, config: Config) -> None:
        """Refuse what would be fitted wrongly, with the way out."""

    def adapt(self, items: Items, settings: Any, one_per_expert: bool) -> Any:
        """The settings with what only the items tell, so that a run can be read back.

        ``one_per_expert``: whether the prior has no two items of one expert in a cluster.
        """
        return settings

    def decide(self, items: Items, settings: Any, independent: bool) -> Any:
        """The settings with what the items decide unless it is said.

        ``independent``: whether each image is fitted by itself.
        """
        return settings

    def features(self, items: Items) -> Floats:
        """What the model sees of the items, (n, p)."""
        return items.values.astype(np.float64)

    def origin(self, items: Items) -> Floats | None:
        """What features are measured from, if it depends on the items; None: it does not."""
        return None

    def features_of_new(self, items: Items, values: Floats) -> Floats:
        """The same of new items, (m, columns), as they would be among ``items``."""
        return values

    def newcomers(self, asked: NewItems) -> Newcomers:
        """New items as they are weighed against clusters of the run's."""
        new = np.ascontiguousarray(self.features_of_new(asked.items, asked.values))
        return Newcomers(asked.hyper, asked.items.features, new, asked.width)

    def lay_out(self, items: Items, experts: NDArray[np.int64], config: Config) -> Layout:
        """Items and settings for the kernels.

        ``experts`` are codes of who listed each item, for the rule that two items of one expert
        never share a cluster. Items of different images must not be neighbours.
        """
        raise NotImplementedError

    def centre(self, items: Items) -> Centre | None:
        """How a cluster is described in the catalogue; None if it has no centre."""
        return None

    def describe_members(self, items: Items, members: Sequence[NDArray[np.int64]]) -> Json:
        """Columns of the catalogue that follow from the members of each cluster alone."""
        return {}

    def sizes(self, items: Items) -> Floats | None:
        """Diameters, for size classes; None if items have no size."""
        return None

    def log_sizes(self, items: Items) -> Floats | None:
        """Log sizes of items, for priors that depend on them; None if items have no size."""
        sizes = self.sizes(items)
        return None if sizes is None else np.log(sizes)

    def size_parameter(self) -> str | None:
        """The cluster parameter that holds the log size of its object, if there is one."""
        return None

    def learned_samples(self, draws: Draws) -> dict[str, Floats]:
        """What was learned of the scatter of items about their object, by name; (chains, draws)."""
        return {}

    def quantity_words(self, names: Sequence[str]) -> dict[str, str]:
        """What is stored with the draws in plain words, as ``Columns.in_words`` takes them."""
        return {}

    def unheard(self, items: Items) -> frozenset[str]:
        """Of what is learned, that which these items cannot speak of: it stays as believed."""
        return frozenset()

    def learned_about(self, items: Items) -> Json:
        """What it takes to understand these numbers."""
        return {}

    def learned(self, samples: Mapping[str, Floats], items: Items) -> Json | None:
        """The same summarised; None if nothing was learned."""
        if not samples:
            return None
        found = {name: summarise(values.ravel()).as_dict() for name, values in samples.items()}
        return {**self.learned_about(items), **found}

    def learned_words(self, found: Json) -> list[str]:
        """The same in sentences."""
        return []

    def data_words(self, items: Items) -> list[str]:
        """What the report says of the data."""
        return report.data_words(items, self.noun)

    def reach_words(self, items: Items, config: Config) -> list[str]:
        """Which items could share a cluster at all, for the report."""
        return report.reach_words(config.run.radius, config.run.nearest, self.noun)

    def law_words(self, posterior: Posterior) -> list[str]:
        """Where the scatter of items about their object came from, for the report."""
        return []

    def sections(self) -> tuple[SectionMaker, ...]:
        """Sections of the report that only this kind has; by default, what was learned."""
        return (report.learned,)

    def expert_bias(self, draws: Draws, items: Items) -> ExpertBias | None:
        """How experts differ, if that was learned."""
        return None

    def distances(self, items: Items) -> tuple[Floats, int | None]:
        """Features in which distances are right, and which of them is a log size, after places."""
        return items.values.astype(np.float64), None

    def sight(self, items: Items) -> Sight | None:
        """How a first look compares items; None if they have no distances, or too many columns.

        Of any numbers: each column relative to how much it varies.
        """
        values = items.values
        if self.text or not 2 <= values.shape[1] <= MOST_COORDINATES:
            return None
        values = values.astype(np.float64)
        low, high = np.quantile(values, (0.25, 0.75), axis=0)
        spread = np.where(high > low, high - low, 1.0)
        return Sight(values, tuple(items.columns), lambda found: found / spread, placed=False)

    def apart(self, items: Items, row: int) -> Floats:
        """A distance of every item from one of them, to tell which are near."""
        features, _ = self.distances(items)
        spread = features.std(axis=0)
        away = (features - features[row]) / np.where(spread > 0.0, spread, 1.0)
        return np.asarray(np.linalg.norm(away, axis=1))

    def offsets(self, posterior: Posterior, row: int) -> Offsets | None:
        """How to measure the distance of one item from a cluster; None if there is no measure."""
        return None

    def scatter(self, posterior: Posterior) -> Callable[[Floats], Scatter] | None:
        """From what the clusters of a draw share to how items scatter about their objects.

        None where items do not scatter.
        """
        return None

    def redrawn(self, items: Items, objects: Floats, away: Floats, values: Floats) -> Floats:
        """Columns of items that lie so far from these objects, (n, columns).

        ``away`` is in features, as ``scatter`` has them; its ``values`` are without the offsets of
        experts, which are added again.
        """
        raise InputError(f"new {items.kind} cannot be drawn; their likelihood does not say how")

    def fit_checks(self, posterior: Posterior) -> Sequence[Check]:
        """Whether the model fits, in what only this kind of item has."""
        return ()

    def compare(
        self, posterior: Posterior, row: int, members: NDArray[np.int64]
    ) -> tuple[Evidence, ...]:
        """What each column says on whether an item is of one object with the members of a cluster.

        Empty where distances say it better.
        """
        return ()

    def doubles(self, items: Items, labels: NDArray[np.int32], draws: Draws, config: Config) -> Any:
        """Items that may be a second one of an object their expert has listed already."""
        from dfcrp.summaries.membership import suspected_doubles

        features, size = self.distances(items)
        return suspected_doubles(features, items.families, labels, size)

    def band(
        self, low: Mapping[str, Array], high: Mapping[str, Array]
    ) -> tuple[Outlines | None, Outlines | None]:
        """The least and the largest outlines of objects by the ends of their columns' intervals."""
        return self.outlines(low), self.outlines(high)

    def outlines(self, columns: Mapping[str, Array]) -> Outlines | None:
        """Where to draw items, or rows of the catalogue; None if they have no place."""
        names = list(self.columns or columns)[:2]
        x = np.asarray(columns[names[0]], np.float64)
        y = np.asarray(columns[names[1]], np.float64) if len(names) > 1 else np.zeros_like(x)
        nothing = np.zeros_like(x)
        return Outlines(x, y, nothing, nothing, nothing, "point")
