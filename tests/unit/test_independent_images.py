"""Images that were drawn each by itself: what they have in common, and what only one can be asked.

They share no parameters. What is asked of all together either adds up over the images or is refused
in words.
"""

import contextlib
import warnings

import numpy as np
import pytest

import dfcrp
from dfcrp import plots
from dfcrp.errors import InputError
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import priors_laid_out
from walk_combinations import SHORT, Walk


@pytest.fixture(scope="module", params=["circles", "sphere", "records"])
def posterior(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Two images under the detection prior, which has most parameters of its own."""
    items = Walk(request.param, tmp_path_factory.mktemp("walk")).two
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield dfcrp.fit(items, prior="detection", images="independent", **{**SHORT, "scans": 8})


@pytest.mark.parametrize("figure", [name for name in plots.FIGURES if name != "neighbourhood"])
def test_every_figure_is_prepared_or_refused(posterior: Posterior, figure: str) -> None:
    """The sensitivity by size, for one, is of an image's own experts: an IndexError once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(InputError):
            getattr(plots, f"prepare_{figure}")(posterior)


def test_one_image_is_pointed_to(posterior: Posterior) -> None:
    """The way out of the refusals works."""
    if posterior.has_sizes:
        with pytest.raises(InputError, match=r"posterior\[NAME\]"):
            plots.prepare_sensitivity(posterior)
        assert len(plots.prepare_sensitivity(posterior["i"]).experts) == len(
            posterior.items.experts
        )
    assert [prior.looks.zones.size for prior in priors_laid_out(posterior)] == [2]


def test_a_share_that_no_table_has(posterior: Posterior) -> None:
    """Counts by a share of experts are sums over images for any share."""
    found = posterior.consensus("99%")
    each = [posterior[name].consensus("99%") for name in posterior.images]
    assert found["mean"].iloc[0] == pytest.approx(sum(one["mean"].iloc[0] for one in each))
    assert np.isfinite(found["mean"]).all()
