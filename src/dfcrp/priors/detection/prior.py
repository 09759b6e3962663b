"""The detection prior: what is real, who is good, what was missed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dfcrp.markup import SectionMaker
from dfcrp.priors.base import Facts, Prior, PriorLayout
from dfcrp.priors.detection.layout import detection_of, parameter_columns
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.summaries.fit import Check

WORDS = {
    "n_objects": "real objects seen",
    "n_missed": "real objects missed by everyone",
    "n_false_marks": "false marks",
}


class _Detection(Prior):
    """Experts find or miss objects, and make false marks."""

    name = "detection"
    Settings = DetectionSettings
    has_alpha = False
    knows_reality = True
    takes_reality = True
    words = WORDS
    shares_images = True
    start = "constrained"
    figures = ("skills", "sensitivity", "corrected_sizes", "cluster_sizes", "scores")
    figures_of_many = ("skills", "cluster_sizes", "scores")
    sentence = (
        "Two {items} by one expert never share a cluster; experts find or miss objects, and make "
        "false marks (detection prior)."
    )

    def lay_out(self, facts: Facts, settings: DetectionSettings) -> PriorLayout:
        """There is no α."""
        prior = detection_of(facts, settings)
        columns = parameter_columns(
            prior, facts.experts, facts.persons.names, facts.image_names, facts.category_names
        )
        decoys = len(prior.parameters.class_weight) > prior.real
        return PriorLayout(prior, math.nan, columns, unreal_alone=not decoys)

    def laid_out(self, posterior: Any) -> Any:
        """The prior as the run had it, with its parameters in every draw."""
        from dfcrp.priors.detection.answers import prior_of

        return prior_of(posterior)

    def summarise(self, posterior: Any) -> Any:
        """Objects seen and missed, sensitivities and false marks."""
        from dfcrp.priors.detection.answers import detection_summary

        return detection_summary(posterior)

    def of_image(self, found: Any) -> Any:
        """What an image's own rows of the tables say."""
        from dfcrp.priors.detection.image_sums import ImageAnswers

        return ImageAnswers.of(found)

    def begin_sums(self, first: Any, n_experts: int, *, apart: bool) -> Any:
        """Sums, draw by draw."""
        from dfcrp.priors.detection.image_sums import ImageSums

        return ImageSums.begin(first, n_experts, apart=apart)

    def summarise_images(self, each: Sequence[Any], sums: Any, posterior: Any) -> Any:
        """Sums over the images, draw by draw."""
        from dfcrp.priors.detection.answers import over_images

        return over_images(each, sums, posterior)

    def image_rows(self, posterior: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Looks, objects, missed ones; images without items have a row as well."""
        from dfcrp.priors.detection.answers import image_rows

        return image_rows(posterior, rows)

    def numbers(self, posterior: Any) -> dict[str, Any]:
        """Objects seen and missed, and false marks."""
        from dfcrp.priors.detection.answers import assumed_looks, finds_nothing, mostly_false

        found: dict[str, Any] = posterior.detection.numbers()
        return found | {
            "looks_assumed": posterior.items.looked is None,
            "assumed_looks": assumed_looks(posterior),
            "mostly_false": list(mostly_false(posterior)),
            "finds_nothing": list(finds_nothing(posterior)),
        }

    def last_words(self, numbers: Mapping[str, Any]) -> list[str]:
        """What was assumed of who looked, and whose marks are not worth much."""
        from dfcrp.priors.detection.answers import careless_words, looks_words

        return [
            *looks_words(numbers["assumed_looks"], assumed=numbers["looks_assumed"]),
            *careless_words(numbers["mostly_false"], numbers["finds_nothing"]),
        ]

    def fit_checks(self, posterior: Any) -> Sequence[Check]:
        """Numbers of finders, and marks over looks."""
        from dfcrp.priors.detection.fit import detection_checks

        return detection_checks(posterior)

    def sections(self) -> tuple[SectionMaker, ...]:
        """What is real, and how many were missed."""
        from dfcrp.priors.detection.report import detection

        return (detection,)


DETECTION: Any = _Detection()
