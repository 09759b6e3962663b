"""Are intervals right if crowds are as the detection prior says? Ranks over simulated crowds.

Crowds are drawn from the prior with its default beliefs: skills, rates of false marks, numbers of
objects and all that they are drawn from. Then the rank of each true number among draws of its
posterior is uniform, whatever the data, and a 95 % interval holds it in 95 of 100 crowds. Where
this holds and intervals fail on some other crowd, that crowd is not as the prior says.

By default the prior takes the sizes of two rates from the data, which is no belief from which one
could draw: the number of objects from all markings, and an expert's false marks from theirs. Here
both are given (``objects_mean``, ``marks_per_look``). Crowds with very few or very many markings
are thrown away. This says nothing about the truth that the data do not say, so that ranks stay
uniform.

Run it by ``./run python -m studies.calibration_crowds --out FILE.json`` (a few minutes).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.likelihoods.circle.kernel import WIDTH
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.priors.detection.kernel import Beliefs, Detection
from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.priors.detection.skills import expert_rates, parameters_by_name
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from studies.calibration import HYPER, Draw, Mistake, draw_features, rank_among, uniformity, verdict
from studies.calibration_detection import BASE, complete
from studies.detection_story import Story, draw_parameters, find_objects, parts, rates_of_looks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Objects lie a hundred times as far apart as their markings scatter.
PLACES = HYPER._replace(var0_x=1.2e4, var0_y=0.8e4)
#: Markings of one object are not farther apart, in the coordinates of the places.
REACH = 15.0
#: Fewest and most markings of a crowd.
MARKINGS = (8, 240)


@dataclass(frozen=True)
class CrowdCase:
    """How large the crowds are, and what is believed of them."""

    images: int = 12
    experts: int = 8
    looks: int = 4
    objects_mean: float = 3.0
    marks_per_look: float = 2.0
    settings: DetectionSettings = field(default_factory=lambda: DetectionSettings(by_size=False))

    def viewers(self) -> Ints:
        """(m, 2): an image and an expert who looked at it; everyone looks equally often, about."""
        rng = np.random.default_rng(self.images)
        order = np.concatenate([rng.permutation(self.experts) for _ in range(self.looks * 4)])
        pairs, at = [], 0
        for image in range(self.images):
            chosen: list[int] = []
            while len(chosen) < self.looks:
                expert = int(order[at % len(order)])
                at += 1
                if expert not in chosen:
                    chosen.append(expert)
            pairs += [(image, expert) for expert in chosen]
        return np.array(pairs, np.int64)

    def prior(self, families: Ints | None = None, images: Ints | None = None) -> Detection:
        """The prior for these markings; without them for one of every expert."""
        looks = self.viewers()
        if families is None:
            families, first = np.unique(looks[:, 1], return_index=True)
            images = looks[first, 0]
        persons = np.arange(self.experts)
        prior = make_detection(self.settings, None, families, persons, images, looks)
        return prior._replace(beliefs=self._beliefs(prior))

    def _beliefs(self, prior: Detection) -> Beliefs:
        markings = self.marks_per_look * prior.looks.covered
        return prior.beliefs._replace(
            markings=markings,
            objects_mean=self.objects_mean,
            usual_false=self.settings.false_share * self.marks_per_look,
        )


class TrueCrowd(NamedTuple):
    """A crowd drawn from the prior: its markings, and what is true of it."""

    own: Floats
    families: Ints
    images: Ints
    features: Floats
    #: Objects on each image, seen or not; decoys are none.
    objects: Ints


def draw_crowds(rng: np.random.Generator, case: CrowdCase) -> Iterator[TrueCrowd]:
    """One after the other.

    Which looks have markings is not known before: rates of false marks on images are drawn here.
    """
    prior = case.prior()
    where, looks = parts(prior), case.viewers()
    while True:
        own = draw_parameters(rng, prior, 1)
        objects = rng.poisson(np.minimum(own[0, where["expected_objects"]], 1e6))
        usual = own[:, where["false_marks"]][:, looks[:, 1]]
        rates = rates_of_looks(rng, usual, own[:, where["look_shape"]])
        false = rng.poisson(np.minimum(rates[0], 1e6))
        if objects.sum() > 20 * MARKINGS[1] or false.sum() > MARKINGS[1]:
            # Almost surely too many markings; objects that nobody finds are not so rare.
            continue
        seen = find_objects(rng, prior, own, objects[np.newaxis], BASE)
        held = [(int(seen.zone[k]), f, k) for k, f in zip(*np.nonzero(seen.listed), strict=True)]
        wrong = np.repeat(looks, false, axis=0).tolist()
        held += [(v, f, len(seen.row) + at) for at, (v, f) in enumerate(wrong)]
        if not MARKINGS[0] <= len(held) <= MARKINGS[1]:
            continue
        images, families, labels = np.array(sorted(held), np.int64).T
        labels = np.unique(labels, return_inverse=True)[1]
        sizes = rng.normal(BASE.mean, BASE.sd, labels.max() + 1)[labels]
        draw = complete(rng, Story(own[0], labels, sizes), PLACES)
        features = draw_features(rng, Draw(math.nan, labels, draw.rows, PLACES.law), PLACES)
        decoys = np.bincount(seen.zone[seen.decoy], minlength=case.images)
        yield TrueCrowd(own[0], families, images, features, objects - decoys)


def neighbours_on_images(families: Ints, images: Ints, features: Floats) -> Neighbourhood:
    """Markings on one image that lie near each other."""
    first, second = np.triu_indices(len(families), 1)
    near = (images[first] == images[second]) & (
        np.abs(features[first, :2] - features[second, :2]) < REACH
    ).all(axis=1)
    pairs = np.column_stack([first[near], second[near]])
    same = families[pairs[:, 0]] == families[pairs[:, 1]]
    return Neighbourhood(
        bounded=True,
        pairs=pairs,
        rivals=pairs[same],
        contacts=pairs[~same],
        component=images,
        numbering=np.arange(len(families)),
    )


def numbers_of(prior: Detection, own: Floats, objects: Ints) -> dict[str, float]:
    """What is ranked, of a draw or of the truth: three experts, two images, what all share."""
    where = parts(prior)
    by_name = parameters_by_name(prior, own[np.newaxis])
    rates = expert_rates(prior, by_name, np.empty(0))
    found = {
        "all objects": float(objects.sum()),
        "spread of skills": float(own[where["skill_sd"]][0]),
        "share of false marks": float(own[where["false_share"]][0]),
        "shape of false marks": float(own[where["false_shape"]][0]),
        "mean of objects": float(own[where["objects_law"]][1]),
        "shape of objects": float(own[where["objects_law"]][0]),
        "clumps of false marks": float(own[where["look_shape"]][0]),
        "how images differ": float(own[where["image_ease_sd"]][0]),
        "ease of the first image": float(own[where["image_ease"]][0]),
    }
    for f in range(3):
        found[f"skill {f}"] = float(rates.sensitivity[0, 0, f])
        found[f"false marks {f}"] = float(rates.false[0, f])
    return found | {f"objects on {v}": float(objects[v]) for v in range(2)}


def posterior_of(
    case: CrowdCase,
    crowd: TrueCrowd,
    seed: list[int],
    draws: int,
    thin: int,
    burn_in: int,
    mistake: Mistake | None = None,
) -> list[dict[str, float]]:
    """The same numbers in draws of the posterior."""
    prior = case.prior(crowd.families, crowd.images)
    near = neighbours_on_images(crowd.families, crowd.images, crowd.features)
    data = build_data(crowd.features, crowd.families, near)
    names = Columns.plain(shared=tuple(map(str, range(len(prior.own)))))
    columns = circle_columns(PLACES).joined(names)
    problem = Problem(data, PLACES, prior, math.nan, WIDTH, columns)
    problem = mistake(problem) if mistake else problem
    chain = Chain(problem, np.random.SeedSequence(seed), "exact")
    chain.run(1, burn_in)
    found = []
    for _ in range(draws):
        chain.run(1, thin)
        # Without footprints an image is one zone.
        objects = chain.prior.counts.objects[:, :, : prior.real].sum(axis=(1, 2))
        found.append(numbers_of(prior, chain.state.own, objects))
    return found


def calibrate_crowds(
    case: CrowdCase,
    crowds: int,
    seed: int,
    *,
    draws: int = 63,
    thin: int = 6,
    burn_in: int = 300,
    mistake: Mistake | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Ranks of the truth, whether they are uniform, and how often 95 % intervals hold it."""
    ranks: dict[str, list[int]] = {}
    errors: list[float] = []
    for number in range(crowds):
        rng = np.random.default_rng([seed, 11, number])
        crowd = next(draw_crowds(rng, case))
        given = [seed, 12, number]
        posterior = posterior_of(case, crowd, given, draws, thin, burn_in, mistake)
        for name, value in numbers_of(case.prior(), crowd.own, crowd.objects).items():
            others = np.array([row[name] for row in posterior])
            ranks.setdefault(name, []).append(rank_among(rng, others, value))
        errors.append(float(np.mean([p["all objects"] for p in posterior]) - crowd.objects.sum()))
        if progress:
            progress(number)
    found = verdict({name: uniformity(np.array(r), draws) for name, r in ranks.items()})
    found["held"] = {
        kind: float(np.mean([_held(r, draws) for name, r in ranks.items() if kind in name]))
        for kind in ("skill ", "false marks ", "objects on", "all objects")
    }
    found["error of all objects"] = float(np.mean(errors))
    return found


def _held(ranks: list[int], draws: int) -> float:
    """How often the truth lies in the interval that leaves one of 40 at either end.

    Of 64 places the outermost and six tenths of the next are outside, at both ends.
    """
    outside = (draws + 1) / 40.0
    end = np.minimum(np.array(ranks), draws - np.array(ranks))
    return float(np.mean(np.clip(end + 1.0 - outside, 0.0, 1.0)))


#: What the study is run with; three looks are too few to learn much of objects that differ.
CASES = {"four looks": CrowdCase(), "three looks": CrowdCase(looks=3, images=20)}


def main(arguments: list[str] | None = None) -> None:
    """Run the study and write its outcome."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="where to write the JSON file")
    parser.add_argument("--crowds", type=int, default=400, help="simulated crowds of each case")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    outcome: dict[str, Any] = {"seed": options.seed, "crowds": options.crowds}
    for name, case in CASES.items():
        begun = time.process_time()
        outcome[name] = calibrate_crowds(case, options.crowds, options.seed)
        outcome[name]["seconds"] = round(time.process_time() - begun, 1)
        held = ", ".join(
            f"{what.strip()} {share:.3f}" for what, share in outcome[name]["held"].items()
        )
        print(f"{name}: smallest p {outcome[name]['smallest_p']:.2g} of {outcome[name]['tests']}; "
              f"held: {held}")  # fmt: skip
    options.out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
