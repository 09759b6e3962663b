"""A user's script: not run, but read by mypy --strict, with expressions of type Any forbidden."""

from typing import assert_type

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dfcrp
from dfcrp.evaluation.result import Evaluation


def merge_one_image() -> pd.DataFrame:
    """One image: fit, look, catalogue."""
    markings = dfcrp.read_markings("markings.csv", image="NAC", min_diameter=18)
    assert_type(markings, dfcrp.Items)
    assert_type(markings.x, NDArray[np.float64])
    assert_type(len(markings), int)
    posterior = dfcrp.fit(
        markings,
        chains=4,
        scans=2000,
        burn_in=500,
        thin=2,
        radius=75,
        seed=1,
        workers=2,
        sampler="exact",
        prior="dfcrp",
        preset="highlands",
        progress=False,
    )
    assert_type(posterior, dfcrp.Posterior)
    catalogue = posterior.catalogue()
    assert_type(catalogue, pd.DataFrame)
    agreed = posterior.consensus(min_experts=5)
    assert_type(agreed, pd.DataFrame)
    print(len(catalogue), len(agreed), posterior.labels.shape, posterior.alpha.shape)
    assert_type(posterior.evaluate("truth.csv", iou=0.3), Evaluation)
    assert_type(dfcrp.evaluate("rival.csv", "truth.csv", "boxes"), Evaluation)
    return posterior.experts()


def merge_many_images() -> list[pd.DataFrame]:
    """Many images: the same class, and the same again for each image."""
    posterior = dfcrp.fit(dfcrp.read_markings(["ann.csv", "bob.csv"]), radius="auto", out="run")
    assert_type(posterior, dfcrp.Posterior)
    assert_type(posterior.images, tuple[str, ...])
    print(len(posterior.catalogue()), len(posterior.consensus(min_experts=5)))
    nac = posterior["NAC"]
    assert_type(nac, dfcrp.Posterior)
    return [posterior[name].catalogue() for name in posterior.images]


def cluster_anything(values: NDArray[np.float64], lists: list[str]) -> NDArray[np.int64]:
    """Any numbers, a run that was saved, and a partition."""
    posterior = dfcrp.fit(values, families=lists, likelihood="points", scans=500)
    posterior.save("points")
    again = dfcrp.resume("points", scans=1000)
    assert_type(again, dfcrp.Posterior)
    loaded = dfcrp.load("points")
    assert_type(loaded, dfcrp.Posterior)
    return np.asarray(loaded.point_partition(loss="vi").labels, dtype=np.int64)


if __name__ == "__main__":
    print(merge_one_image().to_string())
    print([len(catalogue) for catalogue in merge_many_images()])
