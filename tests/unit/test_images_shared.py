"""Images that share their hyperparameters: one problem in which no cluster spans two images."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.likelihoods.circle.scatter import SPREADS
from dfcrp.settings.config import make_config
from dfcrp.summaries.consensus import consensus_counts
from studies.problems import make_problem

SETTINGS = {"chains": 2, "scans": 40, "seed": 3, "images": "shared"}


@pytest.fixture(scope="module")
def markings() -> dfcrp.Items:
    """The same markings on two images, and others on a third."""
    one, other = (dfcrp.simulate.paper_design(seed, n_objects=5) for seed in (1, 2))
    parts = [(one, "p"), (one, "q"), (other, "r")]
    return dfcrp.Items.circles(
        *(
            np.concatenate([getattr(m, role) for m, _ in parts])
            for role in ("x", "y", "diameter", "expert")
        ),
        image=np.concatenate([[name] * len(m) for m, name in parts]),
    )


@pytest.fixture(scope="module")
def posterior(markings) -> dfcrp.Posterior:
    return dfcrp.fit(markings, **SETTINGS)


def test_no_cluster_spans_two_images(markings, posterior):
    """Although every marking of p has its equal on q, by the same expert."""
    code = np.unique(markings.image, return_inverse=True)[1]
    labels = posterior.labels
    assert (code[labels] == code).all()


def test_hyperparameters_are_the_same_on_all_images(posterior):
    for name in posterior:
        np.testing.assert_array_equal(posterior[name].alpha, posterior.alpha)
        np.testing.assert_array_equal(posterior[name].draws.shared(), posterior.draws.shared())


def test_images_are_cut_out_of_the_draws(markings, posterior):
    whole = posterior
    for name in posterior:
        rows = np.flatnonzero(markings.image == name)
        part = posterior[name]
        np.testing.assert_array_equal(rows[part.labels], whole.labels[:, :, rows])
        for chain in range(2):
            mine = part.draws.clusters(chain, 0, part.draws.n_draws)
            all_ = whole.draws.clusters(chain, 0, part.draws.n_draws)
            for draw in range(part.draws.n_draws):
                own = slice(mine.offsets[draw], mine.offsets[draw + 1])
                theirs = slice(all_.offsets[draw], all_.offsets[draw + 1])
                held = np.isin(all_.labels[theirs], rows)
                np.testing.assert_array_equal(rows[mine.labels[own]], all_.labels[theirs][held])
                np.testing.assert_array_equal(mine.parameters[own], all_.parameters[theirs][held])


def test_totals_are_those_of_the_whole(posterior):
    """The sums over images, image by image, are what the draws of all say."""
    summary = posterior.summary()
    assert summary["n_clusters"]["mean"] == pytest.approx(posterior.n_clusters.mean())
    whole = consensus_counts(
        posterior.draws,
        posterior.table_counts.min_experts,
        posterior.size_classes,
        families=posterior.items.families,
    )
    assert summary["consensus"] == whole.rows()
    assert set(SPREADS) <= set(summary["tolerances"])
    assert sum(row["count"] for row in summary["experts"]) == len(posterior.items)


@pytest.mark.parametrize("radius", ["auto", 30.0])
def test_neighbours_are_those_of_each_image(markings, radius):
    config = make_config({"run": {"radius": radius, "preset": "simulation"}})
    code = np.unique(markings.image, return_inverse=True)[1]
    together = make_problem(markings.features, markings.families, config, code).data
    for image in range(3):
        rows = np.flatnonzero(code == image)
        alone = make_problem(markings.features[rows], markings.families[rows], config).data
        for i, row in enumerate(rows):
            found = neighbours(together, together.internal[row])
            assert found == {rows[j] for j in neighbours(alone, alone.internal[i])}


def neighbours(data, i):
    held = data.neighbours[data.neighbour_start[i] : data.neighbour_start[i + 1]]
    return {int(data.original[~j if j < 0 else j]) for j in held}


def test_read_back_and_resumed(markings, posterior, tmp_path):
    run = tmp_path / "run"
    dfcrp.fit(markings, out=run, **{**SETTINGS, "scans": 20})
    longer = dfcrp.resume(run, scans=40)
    back = dfcrp.load(run)
    for name in posterior:
        np.testing.assert_array_equal(longer[name].labels, posterior[name].labels)
        np.testing.assert_array_equal(back[name].labels, posterior[name].labels)
    assert (run / "images.csv").exists()
    posterior.save(tmp_path / "saved")
    saved = dfcrp.load(tmp_path / "saved")
    np.testing.assert_array_equal(saved["p"].labels, posterior["p"].labels)


def test_more_is_learned_about_what_is_shared(markings):
    """The law of the tolerances is known better from all images than from one."""
    settings = {"chains": 2, "scans": 300, "seed": 1}
    shared = dfcrp.fit(markings, images="shared", **settings).tolerances["position"]
    alone = dfcrp.fit(markings, **settings)["p"].tolerances["position"]
    assert shared["hi"] - shared["lo"] < 0.8 * (alone["hi"] - alone["lo"])


def test_without_a_radius_every_two_of_an_image_may_share_a_cluster(markings):
    found = dfcrp.fit(markings, radius=None, **{**SETTINGS, "scans": 4})
    code = np.unique(markings.image, return_inverse=True)[1]
    assert (code[found.labels] == code).all()


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses", "diagonal", "normal"])
def test_objects_of_every_kind_lie_where_their_items_do(kind):
    """Two images whose items lie in quite different places and have quite different sizes."""
    rng = np.random.default_rng(5)
    x, size = np.tile([100.0, 5000.0], 12), np.tile([10.0, 80.0], 12)
    columns = {
        "x": x + rng.normal(0.0, 0.2, 24), "y": -2.0 * x + rng.normal(0.0, 0.2, 24),
        "width": size * np.exp(rng.normal(0.0, 0.02, 24)), "height": size,
        "major": 1.5 * size * np.exp(rng.normal(0.0, 0.02, 24)), "minor": size,
        "angle": rng.normal(40.0, 1.0, 24),
    }  # fmt: skip
    wanted = {
        "boxes": ("x", "y", "width", "height"),
        "ellipses": ("x", "y", "major", "minor", "angle"),
    }
    chosen = {name: columns[name] for name in wanted.get(kind, ("x", "y"))}
    experts = np.repeat([f"e{j}" for j in range(12)], 2)
    items = dfcrp.Items.from_columns(chosen, experts, kind=kind, image=np.tile(["a", "b"], 12))
    found = dfcrp.fit(items, **{**SETTINGS, "scans": 20})
    catalogue = found.catalogue()
    for name in ("a", "b"):
        of_image = items.select(items.image == name)
        for column, values in of_image.columns.items():
            objects = catalogue.loc[catalogue["image"] == name, column]
            assert objects.to_numpy() == pytest.approx(values.mean(), rel=0.05), (name, column)
    assert found.explain(0).candidates[0].distance < 6.0
