"""The detection prior: what is real, who is good, what was missed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dfcrp.markup import SectionMaker
from dfcrp.priors.base import Facts, Prior, PriorLayout
from dfcrp.priors.detection.layout import make_detection, parameter_columns
from dfcrp.priors.detection.settings import DetectionSettings


class _Detection(Prior):
    """Experts find or miss objects, and make false marks."""

    name = "detection"
    Settings = DetectionSettings
    has_alpha = False
    knows_reality = True
    figures = ("sensitivity", "corrected_sizes", "cluster_sizes")
    sentence = (
        "Two {items} by one expert never share a cluster; experts find or miss objects, and make "
        "false marks (detection prior)."
    )

    def lay_out(self, facts: Facts, settings: DetectionSettings) -> PriorLayout:
        """There is no α."""
        prior = make_detection(settings, facts.log_sizes, facts.codes, facts.persons.codes)
        columns = parameter_columns(prior, facts.experts, facts.persons.names)
        return PriorLayout(prior, math.nan, columns)

    def summarise(self, posterior: Any) -> Any:
        """Objects seen and missed, sensitivities and false marks."""
        from dfcrp.priors.detection.answers import detection_summary

        return detection_summary(posterior)

    def summarise_images(self, each: Sequence[Any], images: Any, n_experts: int) -> Any:
        """Sums over the images, draw by draw."""
        from dfcrp.priors.detection.answers import over_images

        return over_images(each, images, n_experts)

    def numbers(self, posterior: Any) -> dict[str, Any]:
        """Objects seen and missed, and false marks."""
        found: dict[str, Any] = posterior.detection.numbers()
        return found

    def sections(self) -> tuple[SectionMaker, ...]:
        """What is real, and how many were missed."""
        from dfcrp.priors.detection.report import detection

        return (detection,)


DETECTION: Any = _Detection()
