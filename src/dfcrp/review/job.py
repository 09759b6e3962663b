"""What is to be reviewed, and with which images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.saving import load
from dfcrp.review.cases import Cases, make_cases
from dfcrp.review.photos import Photos

#: Cases that are at hand.
CASES = 40


@dataclass(frozen=True)
class Job:
    """A run folder, and what is needed to show its cases."""

    run: Path
    images: Path | None = None
    likelihood: str | None = None

    def posterior(self) -> Posterior:
        """The run as it was fitted."""
        return load(self.run, likelihood=self.likelihood)

    def photos(self, posterior: Posterior) -> Photos | None:
        """The folder of images, if there is one."""
        if self.images is None:
            return None
        return Photos(self.images, posterior.items, posterior.config.image)

    def cases(self, posterior: Posterior) -> Cases:
        """The cases of a posterior of this run."""
        return make_cases(posterior, CASES, self.photos(posterior))
