"""Geweke's joint test of the detection prior: classes, sizes, persons, false marks and words.

A chain that alternates scans with fresh data y | c, θ, and with fresh categories and scores where
markings have them, has the joint distribution of (parameters, c,
θ, y), given each expert's number of markings, as its stationary one. Moments along it must equal
those of independent draws, which ``detection_story`` makes by the story that the model tells.

Run it by ``./run python -m studies.calibration_detection --out FILE.json`` (a few minutes).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dfcrp.draws import Columns
from dfcrp.likelihoods.circle.kernel import BETA, VAR_POSITION, WIDTH
from dfcrp.likelihoods.circle.plane import CircleHyper
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.moves.assignment import refresh_spares
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.priors.base import Zones
from dfcrp.priors.detection.kernel import Detection
from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from studies.calibration import (
    HYPER,
    Draw,
    Mistake,
    compare_moments,
    draw_features,
    everyone_in_touch,
    variance_means,
)
from studies.detection_story import (
    Base,
    Story,
    level_of,
    parts,
    say,
    score,
    tell_stories,
    with_base,
)

Floats = NDArray[np.float64]
#: Items say little of their object's size, so that the prior's word on it counts.
WIDE = HYPER._replace(kappa_d=0.15)
#: Sizes under the base measure.
BASE = Base(WIDE.mu0_l, math.sqrt(WIDE.var0_l))
#: Range of log sizes that the levels divide; the base measure's sizes spread over it.
SIZES = (1.8, 4.2)


#: Beliefs under which everything stays in doubt.
SETTINGS = DetectionSettings(
    classes=2,
    class_weight=0.7,
    ease_mean=0.3,
    ease_sd=1.0,
    ease_least=-0.8,
    image_ease_sd=1.0,
    image_ease_sd_shape=4.0,
    skill_sd=0.7,
    interaction_sd=0.5,
    slope_sd=1.2,
    size_slope_sd=1.2,
    listing_a=2.0,
    listing_b=1.5,
    objects_shape=2.0,
    objects_shape_sd=0.5,
    objects_mean_sd=0.5,
    size_weight=12.0,
    false_shape=1.2,
    false_shape_sd=0.5,
    look_shape=1.5,
    look_shape_sd=0.5,
    false_share=0.3,
    share_shape=4.0,
)


@dataclass(frozen=True)
class DetectionCase:
    """A small problem: whose markings, whose lists, and what is believed."""

    families: tuple[int, ...] = (0, 0, 1, 1, 2)
    persons: tuple[int, ...] = (0, 0, 1)
    settings: DetectionSettings = SETTINGS
    #: Images of the markings, one after the other, and who looked and marked nothing: the last list
    #: on the first. The first list does not cover the second image, though its person looked.
    images: tuple[int, ...] = (0, 0, 0, 1, 1)
    looks: tuple[tuple[int, int], ...] = ((0, 2),)
    #: Unless it is known who looked, there are silent looks.
    looks_known: bool = True
    #: Of cases with footprints: the zones of the markings, and of each zone its image, its share
    #: and the lists that cover it. Only markings in one zone may share a cluster.
    zones: tuple[tuple[int, ...], tuple[tuple[int, float, tuple[int, ...]], ...]] | None = None
    #: Which markings have a category (the number of categories is one more than the largest) or a
    #: score; None without.
    said: tuple[int, ...] | None = None
    scores: tuple[float, ...] | None = None
    #: So many objects are expected that the asked-for numbers of markings come up often.
    objects_mean: float = 1.5

    def prior(self) -> Detection:
        """The prior, with the parameters it starts from."""
        sizes = np.linspace(*SIZES, len(self.families))
        families = np.array(self.families, np.int64)
        prior = make_detection(
            self.settings,
            sizes,
            families,
            np.array(self.persons, np.int64),
            np.array(self.images, np.int64),
            np.array(self.looks, np.int64).reshape(-1, 2),
            None if self.said is None else np.array(self.said, np.int64),
            None if self.scores is None else np.array(self.scores),
            self._zones(),
            looks_known=self.looks_known,
        )
        prior = prior._replace(beliefs=prior.beliefs._replace(objects_mean=self.objects_mean))
        return with_base(prior, *BASE)

    def _zones(self) -> Zones | None:
        if self.zones is None:
            return None
        places, each = self.zones
        return Zones(
            np.array(places, np.int64),
            np.array([image for image, _, _ in each], np.int64),
            np.array([share for _, share, _ in each]),
            np.array([(z, f) for z, (_, _, lists) in enumerate(each) for f in lists], np.int64),
        )


#: Two images, the first in two zones of which the first person covers one; categories and scores.
WORDS = DetectionCase(
    families=(0, 2, 1, 2, 1),
    settings=replace(
        SETTINGS,
        accuracy=0.6,
        accuracy_weight=4.0,
        confusion_strength=5.0,
        score_slope=2.0,
        score_slope_sd=0.5,
        usual_slope_sd=0.5,
        score_offset=0.5,
        score_offset_sd=0.8,
    ),
    images=(0, 0, 0, 0, 1),
    looks=((1, 2),),
    zones=((0, 0, 0, 1, 2), ((0, 0.6, (0, 1, 2)), (0, 0.4, (2,)), (1, 1.0, (1, 2)))),
    said=(0, 1, 0, 1, -1),
    scores=(math.nan, 0.1, 0.9, 0.3, 5.0),
)

#: Decoys, and images at which more looked than marked something. Λ counts both kinds.
DECOYS = DetectionCase(
    families=(0, 1, 2, 0, 1),
    persons=(0, 1, 2),
    settings=replace(
        SETTINGS,
        classes=1,
        by_size=False,
        decoys=True,
        assumed_looks=3.5,
        decoy_ease_sd=0.7,
        decoy_least=0.2,
        decoy_most=0.5,
    ),
    looks=(),
    looks_known=False,
)


class DetectionDraw(NamedTuple):
    """One draw; parameters of clusters (μx, μy, μl, a, d, cov) by marking."""

    own: Floats
    labels: NDArray[Any]
    rows: Floats
    #: What markings say, and the levels of their scores; None if they have none.
    said: NDArray[np.int64] | None = None
    scored: NDArray[np.int64] | None = None

    def features(self, rng: np.random.Generator) -> Floats:
        """y | θ, one for each marking."""
        return draw_features(rng, Draw(math.nan, self.labels, self.rows, WIDE.law), WIDE)


def complete(rng: np.random.Generator, story: Story, hyper: CircleHyper = WIDE) -> DetectionDraw:
    """Add the clusters' other parameters to a story."""
    n = len(story.labels)
    places = rng.normal([hyper.mu0_x, hyper.mu0_y], np.sqrt([hyper.var0_x, hyper.var0_y]), (n, 2))
    # Labels are numbered from 0, and a cluster has its row at its number.
    first = np.unique(story.labels, return_index=True)[1]
    size = story.sizes[first]
    mean_a, mean_d = variance_means(hyper, hyper.law, size)
    a = rng.standard_gamma(hyper.tau_x * mean_a) / hyper.tau_x
    d = rng.standard_gamma(hyper.tau_d * mean_d) / hyper.tau_d
    lam = 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b, len(first)) - 1.0
    rows = np.column_stack([places[: len(first)], size, a, d, lam * np.sqrt(a * d / 2.0)])
    return DetectionDraw(story.own, story.labels, rows[story.labels], story.said, story.scored)


def quantities(state: DetectionDraw, where: dict[str, slice]) -> dict[str, float]:
    """Functions of a draw: every kind of parameter, the partition, and what ties them."""
    own = {name: state.own[place] for name, place in where.items()}
    sizes = np.unique(state.labels, return_counts=True)[1]
    first = state.rows[0]
    alone = float((state.labels == state.labels[0]).sum() == 1)
    together = float(state.labels[0] == state.labels[2])
    return {
        "weight": float(own["class_weight"][0]),
        "ease": float(own["ease"][0]),
        "ease of the hard": float(own["ease"][-1]),
        "notice": float(own["notice"][0]),
        "notice of the other": float(own["notice"][-1]),
        "skill": float(own["skill"][0]),
        "interaction": float(own["notice"][0] - own["ease"][0] - own["skill"][0]),
        "interaction, squared": float(own["notice"][0] - own["ease"][0] - own["skill"][0]) ** 2,
        "listing": float(own["listing"][0]),
        "log false marks": math.log(own["false_marks"][0]),
        "log false share": math.log(own["false_share"][0]),
        "log shape of false marks": math.log(own["false_shape"][0]),
        "log objects": math.log(own["expected_objects"][0]),
        "log objects, last image": math.log(own["expected_objects"][-1]),
        "log mean of objects": math.log(own["objects_law"][1]),
        "log spread of skills": math.log(own["skill_sd"][0]),
        "clusters": float(len(sizes)),
        "pairs together": float((sizes * (sizes - 1) / 2).sum()),
        "one person's together": together,
        "notice if together": together * float(own["notice"][0]),
        "listing if together": together * float(own["listing"][0]),
        "false if alone": alone * math.log(own["false_marks"][0]),
        "false on the image": float(own["false_marks_on"][0] ** 0.25),
        "false on the image if alone": alone * float(own["false_marks_on"][0] ** 0.25),
        "log size": float(first[2]),
        "size if alone": alone * (float(first[2]) - WIDE.mu0_l),
        "log variance": math.log(first[3]),
        **_of_sizes(state, own),
        **_of_clumps(own),
        **_of_images(own, together),
        **_of_words(state, own, together),
    }


def _of_sizes(state: DetectionDraw, own: dict[str, Floats]) -> dict[str, float]:
    """Laws of sizes, and how finding depends on them, if it does."""
    if len(own["size_share"]) == 1:
        return {}
    return {
        "slope": float(own["slope"][0]),
        "slopes together": float(own["slope"][0] * own["slope"][-1]),
        "slope by log size": float(own["slope"][0]) * (float(state.rows[0][2]) - WIDE.mu0_l),
        "sizes of objects": float(own["size_share"][:16].sum()),
        "sizes of false marks": float(own["false_size"][:16].sum()),
        # The base measure is symmetric about the middle of the levels: only these know its shape.
        "middle sizes of objects": float(own["size_share"][8:24].sum()),
        "middle sizes of false marks": float(own["false_size"][8:24].sum()),
    }


def _of_clumps(own: dict[str, Floats]) -> dict[str, float]:
    """How unlike a list's false marks on different images are, where that is learned."""
    shape = own["look_shape"][0]
    if math.isinf(shape):
        return {}
    again = (own["false_marks_on"][0] / own["false_marks"][0]) ** 0.25
    return {"log clumps": math.log(shape), "clumps": math.log(shape) * again}


def _of_images(own: dict[str, Floats], together: float) -> dict[str, float]:
    """How images differ in their shares of easy objects, if they do."""
    if not own["image_ease_sd"][0]:
        return {}
    first, last = float(own["image_ease"][0]), float(own["image_ease"][-1])
    return {
        "ease of an image": first,
        "ease of an image, squared": last**2,
        "ease of an image if together": together * first,
        "ease of images by weight": (first + last) * float(own["class_weight"][0]),
        "log how images differ": math.log(own["image_ease_sd"][0]),
    }


def _of_words(state: DetectionDraw, own: dict[str, Floats], together: float) -> dict[str, float]:
    """Functions of what is said and of its parameters; the first two markings may be together."""
    found: dict[str, float] = {}
    if state.said is not None:
        n = len(own["category_share"])
        theta = own["confusion"].reshape(n, n, -1)
        both = float(state.labels[0] == state.labels[1])
        same = float(state.said[0] == state.said[1])
        last = float((state.labels == state.labels[3]).sum() == 1)
        found |= {
            "share of a category": float(own["category_share"][0]),
            "false share of a category": float(own["false_category"][0]),
            "right": float(theta[0, 0, 0]),
            "usually right": float(own["usual_confusion"][0]),
            "log how alike": math.log(own["confusion_strength"][0]),
            "said": float(state.said[3]),
            "said and false share": last * float(own["false_category"][state.said[3]]),
            "agree if together": both * same,
            "right if they agree": both * same * float(theta[0, 0, 0] + theta[1, 1, 0]),
        }
    if state.scored is not None:
        alone = float((state.labels == state.labels[1]).sum() == 1)
        slope, high = math.log(own["score_slope"][2]), float(state.scored[1] > 0)
        found |= {
            "log slope of scores": slope,
            "log usual slope": float(own["usual_slope"][0]),
            "offset of scores": float(own["score_offset"][2]),
            "high": high,
            "high if alone": alone * high,
            "slope if high": (1.0 - alone) * high * slope,
            "offset if alone": alone * float(own["score_offset"][2]),
            "false if high and alone": alone * high * math.log(own["false_marks"][2]),
        }
    return found


class Independent(NamedTuple):
    """Quantities of independent draws, and the data of another one to start from."""

    rows: list[dict[str, float]]
    start: Floats


@lru_cache(maxsize=1)
def independent_draws(case: DetectionCase, count: int, seed: int) -> Independent:
    """So many draws by the story; the last that were asked for are kept."""
    rng, prior = np.random.default_rng([seed, 5]), case.prior()
    stories = tell_stories(rng, prior, case.families, BASE)
    where = parts(prior)
    rows = [quantities(complete(rng, story), where) for story in islice(stories, count)]
    return Independent(rows, complete(rng, next(stories)).features(rng))


def geweke(
    case: DetectionCase,
    steps: int,
    seed: int,
    *,
    scans: int = 2,
    mistake: Mistake | None = None,
    draws: int | None = None,
) -> dict[str, Any]:
    """Compare ``steps`` of the chain with independent draws, as many unless told otherwise."""
    independent = independent_draws(case, draws or steps, seed)
    prior, rng = case.prior(), np.random.default_rng([seed, 7])
    chain = _chain(case, prior, independent.start, seed, mistake)
    data, where, successive = chain.problem.data, parts(prior), []
    burn_in = max(200, steps // 50)
    for step in range(burn_in + steps):
        chain.run(1, scans)
        now = _current(chain)
        data.features[:] = now.features(rng)
        now = _with_words(rng, chain.prior, now)
        # Spares are drawn given y, so new data need new ones.
        refresh_spares(chain.rng, data, chain.hyper, chain.state, 0, len(data.family), 1)
        if step >= burn_in:
            successive.append(quantities(now, where))
    return compare_moments(independent.rows, successive)


def _with_words(rng: np.random.Generator, prior: Detection, now: DetectionDraw) -> DetectionDraw:
    """Fresh categories and scores given all else, for the chain as well."""
    looks, lists = prior.looks, prior.looks.row_list[prior.looks.row].astype(np.int64)
    real = np.ones(len(lists), bool)
    for i in range(len(lists)):
        if (now.labels == now.labels[i]).sum() == 1:
            level = level_of(prior, float(now.rows[i, 2]))
            listed = (
                prior.tables.empty[looks.zone[i], level] + prior.tables.found[looks.row[i], level]
            )
            false = prior.tables.look_false[looks.look[i]] + prior.tables.false[level]
            odds = np.logaddexp.reduce(listed) - false
            real[i] = rng.random() < expit(odds)
    number = np.unique(now.labels, return_inverse=True)[1]
    if len(prior.categories.said):
        prior.categories.said[:] = say(rng, prior, now.own, lists, number, real)
        now = now._replace(said=prior.categories.said.astype(np.int64))
    if len(prior.scores.level):
        prior.scores.level[:] = score(rng, prior, now.own, lists, real)
        now = now._replace(scored=prior.scores.level.astype(np.int64))
    return now


def _chain(
    case: DetectionCase, prior: Detection, features: Floats, seed: int, mistake: Mistake | None
) -> Chain:
    data = build_data(features, np.array(case.families, np.int64), _within_images(case))
    names = Columns.plain(shared=tuple(map(str, range(len(prior.own)))))
    columns = circle_columns(WIDE).joined(names)
    problem = Problem(data, WIDE, prior, math.nan, WIDTH, columns)
    problem = mistake(problem) if mistake else problem
    return Chain(problem, np.random.SeedSequence([seed, 6]), "exact")


def _within_images(case: DetectionCase) -> Neighbourhood:
    """Everyone in touch with everyone in the same zone."""
    whole, images = everyone_in_touch(case.families), case.prior().looks.zone.astype(np.int64)
    n = len(images)
    pairs = np.array(list(combinations(range(n), 2)), np.int64)

    def inside(listed: NDArray[np.int64]) -> NDArray[np.int64]:
        return listed[images[listed[:, 0]] == images[listed[:, 1]]]

    return replace(
        whole,
        bounded=True,
        pairs=inside(pairs),
        rivals=inside(whole.rivals),
        contacts=inside(whole.contacts),
        component=images,
    )


def _current(chain: Chain) -> DetectionDraw:
    """The chain's state; internal and input numbers agree here."""
    state = chain.state
    rows = state.theta[state.label]
    covariance = rows[:, BETA] * rows[:, VAR_POSITION]
    return DetectionDraw(
        state.own.copy(), state.label.copy(), np.column_stack([rows[:, :5], covariance])
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the test and write its outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON file")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    begun, case = time.perf_counter(), DetectionCase()
    outcome = {
        "families": list(case.families),
        "persons": list(case.persons),
        "images": list(case.images),
        "seed": options.seed,
        "steps": options.steps,
        "geweke": geweke(case, options.steps, options.seed),
        "geweke with zones, categories and scores": geweke(WORDS, options.steps, options.seed),
        "geweke with decoys and silent looks": geweke(DECOYS, options.steps, options.seed),
    }
    outcome["seconds"] = round(time.perf_counter() - begun, 1)
    for name in [name for name in outcome if name.startswith("geweke")]:
        found: Any = outcome[name]
        print(f"detection prior, {name}: smallest p {found['smallest_p']:.2g} of {found['tests']}")
    options.out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
