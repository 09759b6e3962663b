"""What a prior over partitions is outside the kernels: its settings, its layout, its answers.

Its folder holds all that is its own; the rest of the package asks the object in
``dfcrp.priors.registry`` and never which prior it is. What the compiled moves ask is in
``dfcrp.priors.contract``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.errors import SettingsError
from dfcrp.markup import SectionMaker
from dfcrp.summaries.fit import Check
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.persons import Persons
    from dfcrp.posterior.posterior import Posterior


class Zones(NamedTuple):
    """Images cut into zones, in each of which all places were seen by the same experts.

    The zones of an image follow one another, and those of the first image come first.
    """

    #: The zone of each item's place.
    zone: NDArray[np.int64]
    #: Of every zone its image, as a number, and the share of the image's area that it has.
    image: NDArray[np.int64]
    share: NDArray[np.float64]
    #: (m, 2): a zone and an expert who saw it, ascending.
    pairs: NDArray[np.int64]


@dataclass(frozen=True)
class Facts:
    """What a prior may need to know of the items."""

    #: The expert of each item, as codes, and their names.
    codes: NDArray[np.int64]
    experts: tuple[str, ...]
    #: Which experts are one person.
    persons: Persons
    #: Log sizes of the items; None if they have none.
    log_sizes: NDArray[np.float64] | None
    #: Whether clusters have a log size of their own; if not, that of their members counts.
    sizes_drawn: bool = True
    #: The rate of α's Gamma law that suits the kind of item.
    usual_alpha_rate: float = 0.01
    #: Names of all images that were looked at, the image of each item, and pairs (m, 2) of an
    #: image and an expert who looked at it; all as numbers. One image on which all looked: None.
    image_names: tuple[str, ...] = ("",)
    images: NDArray[np.int64] | None = None
    looks: NDArray[np.int64] | None = None
    #: Whether somebody said who looked; if not, the pairs are of those who marked something.
    looks_known: bool = True
    #: Where looks cover parts of images only, the zones that images are cut into by them.
    zones: Zones | None = None
    #: Names of the categories, and the category of each item as a number, −1 where it has none.
    category_names: tuple[str, ...] = ()
    categories: NDArray[np.int64] | None = None
    #: The score that the expert, a detector, gave each item, NaN where there is none.
    scores: NDArray[np.float64] | None = None
    #: What people decided about the items: ``items.decisions.Decided``, or None.
    decided: Any = None

    @property
    def n(self) -> int:
        """Number of items."""
        return len(self.codes)


@dataclass(frozen=True)
class PriorLayout:
    """A prior laid out for the kernels."""

    prior: Any
    #: Where α starts; NaN if the prior has none.
    alpha_start: float
    #: Its own parameters, as stored with every draw.
    columns: Columns = field(default_factory=Columns)
    #: Whether what is not real is in a cluster of its own.
    unreal_alone: bool = True


class Prior:
    """A prior over partitions; the answers here are those of a prior without any of its own."""

    #: As in ``run.prior``.
    name: str = ""
    #: Its settings: a frozen dataclass, the section [prior] of a settings file.
    Settings: type[Any]
    #: What it assumes, for the report.
    sentence: str = ""
    #: Whether two items of one expert may never share a cluster.
    one_per_expert: bool = True
    #: Whether it has a concentration α.
    has_alpha: bool = True
    #: Whether it says what is real.
    knows_reality: bool = False
    #: Its own parameters and answers in plain words, by their names in the draws.
    words: Mapping[str, str] = {}
    #: Whether it can take people's word that something is real, or not, or of a category.
    takes_reality: bool = False
    #: Whether several images are one problem unless the settings say otherwise.
    shares_images: bool = False
    #: The prior of a short run that chains take their first partition from; None: everyone alone.
    start: str | None = None
    #: Figures of the report that only this prior has, by their names in ``dfcrp.plots``.
    figures: tuple[str, ...] = ()
    #: Those that the overview of many images shows.
    figures_of_many: tuple[str, ...] = ()

    def check_sampler(self, sampler: str) -> None:
        """Refuse a sampler that makes no sense with this prior."""
        if sampler != "exact":
            raise SettingsError(
                f'run.sampler = "{sampler}" is the paper\'s, for the priors dfcrp, constrained and '
                f'crp; with the prior "{self.name}" use sampler "exact"'
            )

    def check(self, persons: Persons) -> None:
        """Refuse items that this prior has nothing to say of."""

    def experts(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Who counts as one expert for the rule."""
        return codes

    def lay_out(self, facts: Facts, settings: Any) -> PriorLayout:
        """The prior for the kernels."""
        raise NotImplementedError

    def laid_out(self, posterior: Posterior) -> Any:
        """What ``summarise`` needs of the layout that the run had; None if nothing."""
        return None

    def summarise(self, posterior: Posterior) -> Any:
        """Answers that only this prior gives; None if there are none."""
        return None

    def of_image(self, found: object) -> Any:
        """Of the answers of one image of several, what is kept besides sums; not None."""
        return found

    def begin_sums(self, first: object, n_experts: int, *, apart: bool) -> Any:
        """Sums over images, none yet; ``add`` takes answers and the codes of their experts.

        ``apart`` if each image was drawn by itself.
        """
        return None

    def summarise_images(self, each: Sequence[object], sums: object, posterior: Posterior) -> Any:
        """The same of several images, from what was kept of each, and sums."""
        return None

    def image_rows(self, posterior: Posterior, rows: list[Json]) -> list[Json]:
        """The rows of images.csv, with what this prior adds to them."""
        return rows

    def numbers(self, posterior: Posterior) -> Json:
        """What summary.json says besides; of priors with a concentration, α."""
        from dfcrp.summaries.streaming import summarise

        return {"alpha": summarise(posterior.alpha.ravel()).as_dict()}

    def learned_words(self, numbers: Mapping[str, object], nouns: str) -> list[str]:
        """What was learned of its own, in sentences.

        ``numbers`` are those of summary.json, ``nouns`` is what items are called.
        """
        return []

    def last_words(self, numbers: Mapping[str, object]) -> list[str]:
        """What the end of a run says besides, in sentences; ``numbers`` are as above."""
        return []

    def fit_checks(self, posterior: Posterior) -> Sequence[Check]:
        """Whether the model fits, in what only this prior predicts."""
        return ()

    def sections(self) -> tuple[SectionMaker, ...]:
        """Sections of the report that only this prior has."""
        return ()
