"""Many images: each as if fitted alone, one catalogue, totals, and nothing lost in between."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dfcrp
from dfcrp.errors import InputError, RunFolderError, SettingsError
from dfcrp.fitting import run as run_module
from dfcrp.fitting.run import ImageDone, Turn
from dfcrp.posterior.findings import Totals, spaced
from dfcrp.posterior.saving import write_results
from dfcrp.runs import store as store_module
from dfcrp.runs.chain_writer import MemoryWriter
from dfcrp.runs.parts import experts_by_place, image_seed
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.runner import Runner, TimeLimit
from dfcrp.settings.config import make_config

SETTINGS: dict[str, Any] = {"chains": 2, "scans": 40, "seed": 7}
#: Names that would do harm in a path, a page or a table.
NAMES = ["../a", "<b>'x'</b>", "c,d"]


def several(n_objects: int = 5) -> dfcrp.Items:
    """Three images of three experts each, of four in all, and one with a single marking."""
    parts = []
    for number, (name, experts) in enumerate(zip(NAMES, ("ABC", "ABC", "ABD"), strict=True)):
        one = dfcrp.simulate.paper_design(
            number, n_objects=n_objects, detection=(1, 0.9, 0.8), false_rate=(0.2,) * 3
        )
        letters = [experts["ABC".index(letter)] for letter in one.expert]
        parts.append((one.x, one.y, one.diameter, letters, [name] * len(one)))
    parts.append((np.array([3.0]), np.array([4.0]), np.array([20.0]), ["A"], ["one"]))
    columns = [np.concatenate([part[column] for part in parts]) for column in range(5)]
    # Not sorted by image, as a file may be.
    order = np.random.default_rng(0).permutation(len(columns[0]))
    return dfcrp.Items.circles(*(column[order] for column in columns))


@pytest.fixture(scope="module")
def markings() -> dfcrp.Items:
    return several()


@pytest.fixture(scope="module")
def in_memory(markings: dfcrp.Items) -> dfcrp.Posterior:
    return fitted(markings, **SETTINGS)


@pytest.fixture(scope="module")
def finished(markings: dfcrp.Items, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    fitted(markings, out=out, **SETTINGS)
    return out


def fitted(markings: dfcrp.Items, **settings: Any) -> dfcrp.Posterior:
    return dfcrp.fit(markings, **settings)


def loaded(path: Path) -> dfcrp.Posterior:
    return dfcrp.load(path)


def same_draws(first: dfcrp.Posterior, second: dfcrp.Posterior) -> None:
    assert first.images == second.images
    for name in first:
        same(first[name], second[name])


def same(one: dfcrp.Posterior, two: dfcrp.Posterior) -> None:
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.draws.shared(), two.draws.shared())
    for chain in range(one.draws.n_chains):
        a, b = (p.draws.clusters(chain, 0, p.draws.n_draws) for p in (one, two))
        for part in ("offsets", "labels", "parameters"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


def without_time(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name != "seconds"}


# Each image as if alone


def test_each_image_is_drawn_as_if_alone(markings, in_memory, finished):
    on_disk = loaded(finished)
    assert on_disk.images == (*sorted(NAMES), "one")
    for name in on_disk:
        alone = markings.select(markings.image == name)
        seed = image_seed(SETTINGS["seed"], name)
        expected = dfcrp.fit(alone, **{**SETTINGS, "seed": seed})
        same(expected, on_disk[name])
        same(expected, in_memory[name])
        assert expected.point_partition().labels.tolist() == (
            on_disk[name].point_partition().labels.tolist()
        )


def test_seeds_differ_between_images_and_runs():
    assert len({image_seed(seed, name) for seed in range(50) for name in NAMES}) == 150


def test_draws_depend_on_neither_workers_nor_other_images(markings, in_memory):
    fewer = markings.select(np.isin(markings.image, NAMES[1:]))
    found = fitted(fewer, **SETTINGS, workers=2)
    same_draws(found, ImagesSubset(in_memory, found.images))


class ImagesSubset(dict):
    """The posteriors of some images."""

    def __init__(self, posterior: dfcrp.Posterior, names: tuple[str, ...]) -> None:
        super().__init__({name: posterior[name] for name in names})
        self.images = names


def test_large_images_are_drawn_the_same(markings, in_memory, tmp_path, monkeypatch):
    """One after the other with all workers, and with shards of their own."""
    monkeypatch.setattr(run_module, "LARGE", 12)
    found = fitted(markings, out=tmp_path / "run", **SETTINGS)
    same_draws(found, in_memory)
    assert without_time(found.summary()) == without_time(in_memory.summary())
    # A shard for each chain of the three large images, and one that the chains of "one" share.
    assert len(list((tmp_path / "run" / "draws.zarr").glob("shard-*"))) == 7
    again = dfcrp.resume(tmp_path / "run", scans=60)
    same_draws(again, fitted(markings, **{**SETTINGS, "scans": 60}))


# Tables


def test_tables(markings, finished):
    catalogue = pandas.read_csv(finished / "catalogue.csv")
    members = pandas.read_csv(finished / "members.csv")
    images = pandas.read_csv(finished / "images.csv")
    assert members["marking"].astype(str).tolist() == markings.id.tolist()
    assert members["image"].tolist() == markings.image.tolist()
    assert catalogue["cluster"].is_unique
    assert set(members["cluster"]) == set(catalogue["cluster"])
    # Clusters are named after the row of their first marking, so they are of its image.
    assert (markings.image[catalogue["cluster"]] == catalogue["image"]).all()
    for name, rows in members.groupby("cluster"):
        assert rows.index.min() == name
        assert rows["image"].nunique() == 1
    assert images["image"].tolist() == [*sorted(NAMES), "one"]
    assert images["n_markings"].sum() == len(markings)
    assert images.set_index("image").loc["one", "n_experts"] == 1
    assert images.loc[0, "seed"] == image_seed(SETTINGS["seed"], images.loc[0, "image"])


def test_a_posterior_of_an_image_names_clusters_as_the_catalogue_does(finished):
    posterior = loaded(finished)
    whole = posterior.catalogue()
    for name in posterior:
        mine = posterior[name].catalogue()
        assert mine["cluster"].tolist() == whole[whole["image"] == name]["cluster"].tolist()
    row = int(whole["cluster"].iloc[3])
    explained = posterior.explain(row)
    assert explained.id == posterior.items.id[row]
    assert explained.cluster == posterior.members()["cluster"][row]


def test_totals_are_sums_over_images_draw_by_draw(in_memory):
    summary = in_memory.summary()
    parts = [in_memory[name] for name in in_memory]
    clusters = sum(part.n_clusters for part in parts)
    assert summary["n_clusters"]["mean"] == pytest.approx(clusters.mean())
    assert summary["n_clusters"]["hi"] == np.ceil(np.quantile(clusters, 0.975))
    for row in summary["consensus"]:
        if row["size_class"] == "all":
            counts = sum(
                part.consensus_counts((row["min_experts"],)).counts[:, :, 0, 0] for part in parts
            )
            assert row["mean"] == pytest.approx(counts.mean())
            assert row["lo"] == np.floor(np.quantile(counts, 0.025))
    alpha = np.mean([part.alpha for part in parts], axis=0)
    assert summary["alpha"]["lo"] == pytest.approx(np.quantile(alpha, 0.025))


def test_experts_are_compared_on_the_images_that_both_marked(markings, in_memory):
    """By sets, draw by draw; C and D never marked the same image."""
    found = in_memory.expert_summary
    experts = markings.experts
    names = list(in_memory)
    n_draws = in_memory[names[0]].draws.n_draws
    jaccard = np.full((2 * n_draws, 4, 4), np.nan)
    alone, there = np.zeros((2 * n_draws, 4)), np.zeros((2 * n_draws, 4))
    for draw in range(2 * n_draws):
        held: dict[str, list[frozenset[str]]] = {}
        for name in names:
            part = in_memory[name]
            labels = part.labels.reshape(-1, len(part.markings))[draw]
            held[name] = [
                frozenset(part.markings.expert[labels == k].tolist()) for k in set(labels.tolist())
            ]
            for k in set(labels.tolist()):
                if (labels == k).sum() == 1:
                    alone[draw, experts.index(part.markings.expert[labels == k][0])] += 1
                    for one in set(part.markings.expert.tolist()):
                        there[draw, experts.index(one)] += 1
        for i, a in enumerate(experts):
            for j, b in enumerate(experts):
                shared = [c for n in names if {a, b} <= set().union(*held[n]) for c in held[n]]
                either = sum(bool({a, b} & c) for c in shared)
                if either:
                    jaccard[draw, i, j] = sum({a, b} <= c for c in shared) / either
    assert np.isnan(found.jaccard_matrix.mean[2, 3])
    np.testing.assert_allclose(found.jaccard_matrix.mean, jaccard.mean(axis=0), rtol=1e-6)
    size_1 = 100.0 * alone / there
    np.testing.assert_allclose(found.size_1.mean, size_1.mean(axis=0), rtol=1e-6)
    others = ~np.eye(4, dtype=bool)
    expected = [np.nanmean(found.jaccard_matrix.mean[f][others[f]]) for f in range(4)]
    np.testing.assert_allclose(found.jaccard.mean, expected, rtol=1e-6)


def test_draws_for_totals():
    assert spaced(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert spaced(10, 5).tolist() == [1, 3, 5, 7, 9]
    assert spaced(3, 6).tolist() == [0, 0, 1, 1, 2, 2]
    config = make_config({"run": {"scans": 100, "chains": 4}})
    assert Totals.plan(config, 6) == Totals(75, 75)
    assert Totals.plan(config, 1000) == Totals(75, 4)
    assert Totals.plan(make_config(), 6).draws == 250


def test_what_makes_a_consensus_follows_from_who_looked(markings, in_memory):
    assert len(markings.experts) == 4
    looked = experts_by_place(markings)
    assert max(looked) == 3
    assert min(looked) < 3
    assert in_memory.config.summary.min_experts == "60%"
    assert in_memory.config.summary.thresholds == (2, 3)
    for name, n in zip(in_memory, looked, strict=True):
        assert in_memory[name].min_experts == min(n, 2)


def test_the_verdict_is_good_only_if_every_image_is(in_memory):
    verdict = in_memory.verdict
    assert not verdict.ok
    bad = [name for name in in_memory if not in_memory[name].verdict.ok]
    assert set(verdict.not_good) == set(bad)
    assert verdict.max_rhat == max(in_memory[name].verdict.max_rhat for name in in_memory)
    assert f"not long enough for {len(bad)} of 4 images. Worst: " in verdict.advice[0]
    assert verdict.not_good[0] in verdict.advice[0]
    saved = in_memory.summary()["convergence"]
    assert saved["worst_images"] == list(verdict.not_good)


# Run folders


def test_read_back(finished, in_memory):
    posterior = loaded(finished)
    same_draws(posterior, in_memory)
    on_disk = json.loads((finished / "summary.json").read_text())
    assert without_time(on_disk) == json.loads(json.dumps(without_time(in_memory.summary())))


def test_saved_from_memory(in_memory, tmp_path):
    in_memory.save(tmp_path / "run")
    same_draws(loaded(tmp_path / "run"), in_memory)
    with pytest.raises(RunFolderError, match="holds no checkpoints"):
        dfcrp.resume(tmp_path / "run")


def stopping_after(images: int) -> tuple[dict[str, Any], Any]:
    """A progress function that fails, as a kill would, when so many images are done."""

    def progress(seen: ImageDone) -> None:
        if seen.done == images:
            raise OSError("killed")

    return {"progress": progress}, pytest.raises(OSError, match="killed")


@pytest.mark.parametrize("large", [12, 10**9])
def test_a_killed_run_is_resumed_to_the_same_draws(
    markings, in_memory, tmp_path, monkeypatch, large
):
    monkeypatch.setattr(run_module, "LARGE", large)
    monkeypatch.setattr(store_module, "SHARD_BYTES", 1)
    watch, failure = stopping_after(2)
    with failure:
        dfcrp.fit(markings, out=tmp_path / "run", **SETTINGS, **watch, workers=1)
    with pytest.raises(RunFolderError, match="was not finished"):
        dfcrp.load(tmp_path / "run")
    posterior = dfcrp.resume(tmp_path / "run")
    same_draws(posterior, in_memory)
    assert without_time(posterior.summary()) == without_time(in_memory.summary())


def test_a_finished_run_is_extended(markings, finished, tmp_path):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    with pytest.raises(SettingsError, match="has 40 scans already"):
        dfcrp.resume(run, scans=30)
    longer = fitted(markings, **{**SETTINGS, "scans": 70})
    same_draws(dfcrp.resume(run, scans=70), longer)
    same_draws(loaded(run), longer)
    # Nothing is left to draw: nothing is written.
    before = sorted(path.name for path in (run / "draws.zarr").iterdir())
    same_draws(dfcrp.resume(run), longer)
    assert sorted(path.name for path in (run / "draws.zarr").iterdir()) == before


def test_a_lost_shard_is_drawn_again(finished, in_memory, tmp_path):
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    dfcrp.resume(run, scans=50)
    first = min((run / "draws.zarr").glob("shard-*"))
    first.write_bytes(first.read_bytes()[:-7])
    with pytest.raises(RunFolderError, match=first.name):
        loaded(run).summary()
    # The second part of each image is of no use without the first.
    first.unlink()
    dfcrp.resume(run, scans=50)
    same_draws(loaded(run), dfcrp.resume(run, scans=50))
    settings = {**SETTINGS, "scans": 50}
    same_draws(loaded(run), fitted(in_memory.items, **settings))


def test_a_run_that_is_stopped_early_has_tables_of_what_it_came_to(markings, tmp_path):
    """Ctrl-C after the first image: the others have not been begun."""
    out = tmp_path / "run"

    def stop(_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    settings = {**SETTINGS, "scans": 50_000}
    found = dfcrp.fit(markings, out=out, **settings, workers=1, progress=stop)
    assert found.record.stopped_early
    assert len(found.images) < 4
    write_results(found, out)
    members = pandas.read_csv(out / "members.csv")
    reached = np.isin(markings.image, found.images)
    assert len(members) == len(markings)
    assert (members["cluster"].notna() == reached).all()
    missing = 4 - len(found.images)
    assert f"did not reach {missing} of 4 images" in found.verdict.advice[0]
    assert not found.verdict.ok
    same_draws(loaded(out), found)


@pytest.mark.parametrize("kept", ["memory", "folder"])
@pytest.mark.parametrize("minutes", [1e-9, 0.02])
def test_a_limit_leaves_no_image_out(markings, tmp_path, kept, minutes):
    """Each has its share of the time, and at least one draw of each chain."""
    out = tmp_path / "run" if kept == "folder" else None
    settings = {**SETTINGS, "scans": 10**6, "burn_in": 0}
    said = pytest.warns(dfcrp.errors.DfcrpWarning, match="a single draw .* for 4 of 4 images")
    with said if minutes < 1e-6 else contextlib.nullcontext():
        found = fitted(markings, out=out, **settings, max_minutes=minutes)
    assert set(found.images) == {*NAMES, "one"}
    assert found.record.stopped_early
    drawn = {name: found[name].record.scans for name in found}
    if minutes < 1e-6:
        assert set(drawn.values()) == {1}
    assert found.catalogue()["image"].nunique() == 4
    # What is drawn does not depend on when time is up.
    whole = fitted(markings, **{**SETTINGS, "burn_in": 0, "scans": min(max(drawn.values()), 300)})
    for name in found.images:
        few = min(drawn[name], whole[name].record.scans)
        assert np.array_equal(found[name].labels[:, :few], whole[name].labels[:, :few])


def test_a_limit_of_an_open_ended_run_leaves_one_draw(markings):
    """Of a single draw none is burn-in."""
    with pytest.warns(dfcrp.errors.DfcrpWarning, match="a single draw"):
        found = fitted(markings, chains=2, max_minutes=1e-9)
    assert {found[name].record.scans for name in found} == {1}


def test_blocks_are_short_where_time_is(markings):
    """Or the first chains would have all the time that is left, and the last a single draw."""
    one = markings.of_image(NAMES[0], markings.rows_by_image()[NAMES[0]])
    problem = problem_of(one, make_config())
    writers = [MemoryWriter(0, chain, problem.n, problem.columns) for chain in range(4)]
    runner = Runner(problem, list(writers), seed=1, workers=2)
    limit = TimeLimit(1.0 / 60.0)
    runner._run_block(0, 100, limit)
    runner._seconds_per_draw[0] = 1e-3
    # Four turns for each of four chains in a second of one worker; without a limit half a second.
    assert runner._block_length(0) <= 63
    other = Runner(problem, list(writers), seed=1, workers=2)
    other._run_block(0, 100, None)
    other._seconds_per_draw[0] = 1e-3
    assert other._block_length(0) >= 500


@pytest.mark.parametrize("kept", ["memory", "folder"])
def test_rounds_change_no_draw(markings, tmp_path, monkeypatch, kept):
    """Chains that are left after a draw, and once more, end as those that were never left."""
    rounds = []

    def seconds(self: Turn, part: int, *, alone: bool) -> float | None:
        rounds.append((part, self.last))
        return 1e6 if self.last else 0.0

    monkeypatch.setattr(Turn, "seconds", seconds)
    monkeypatch.setattr(run_module, "LARGE", 15)  # two of the images are drawn one at a time
    out = tmp_path / "run" if kept == "folder" else None
    found = fitted(markings, out=out, **SETTINGS, max_minutes=1000.0)
    assert sorted(rounds) == [(part, last) for part in range(4) for last in (False, False, True)]
    same_draws(found, fitted(markings, **SETTINGS))
    assert not found.record.stopped_early
    if out is not None:
        same_draws(loaded(out), found)


@pytest.mark.filterwarnings("ignore:--max-minutes")
def test_a_run_whose_time_was_up_is_resumed(markings, tmp_path):
    out = tmp_path / "run"
    fitted(markings, out=out, **SETTINGS, max_minutes=1e-9)
    dfcrp.resume(out, max_minutes=1e-9)
    assert {loaded(out)[name].record.scans for name in loaded(out)} == {1}
    same_draws(dfcrp.resume(out, max_minutes=1000.0), fitted(markings, **SETTINGS))


def test_shares_of_the_time_are_by_size_and_fill_it():
    sizes = {0: 950, 1: 450, 2: 450, 3: 0, 4: 0}
    limit = TimeLimit(1.0)
    for slots, side_by_side in ((1, 1.0), (2, 5 / 3), (5, 5.0), (8, 5.0)):
        turn = Turn(limit, sizes, slots, last=False)
        shares = [turn.seconds(part, alone=False) for part in sizes]
        wanted = [60.0 * side_by_side * w / 2100 for w in (1000, 500, 500, 50, 50)]
        assert shares == pytest.approx([min(share, 60.0) for share in wanted], abs=0.1)
    assert turn.seconds(0, alone=True) == pytest.approx(60.0 * 1000 / 2100, abs=0.1)
    turn = Turn(limit, sizes, 1, last=False)
    turn.done(0)  # what it left, or took beyond its share, is divided among the others
    assert turn.seconds(1, alone=False) == pytest.approx(60.0 * 500 / 1100, abs=0.1)
    assert Turn(TimeLimit(None), sizes, 2, last=True).limit(0, alone=False) is None


def test_without_a_number_of_scans_each_image_ends_when_it_is_good(markings, tmp_path):
    found = fitted(markings, out=tmp_path / "run", chains=2, seed=1, max_scans=1000)
    lengths = {name: found[name].record.scans for name in found}
    assert set(lengths.values()) <= {500, 1000}
    for name in found:
        assert found[name].verdict.ok or lengths[name] == 1000
    back = loaded(tmp_path / "run")
    same_draws(back, found)
    assert without_time(back.summary()) == without_time(found.summary())


def test_an_unknown_image_gets_the_nearest_name(in_memory):
    with pytest.raises(InputError, match="did you mean 'one'"):
        in_memory["onee"]


def test_every_question_has_an_answer_for_many_images(markings, in_memory):
    """README's example and the rest: what one image is asked, many are asked as well."""
    parts = [in_memory[name] for name in in_memory.images]
    asked = in_memory.consensus(min_experts=3)
    counts = sum(part.consensus_counts((3,)).counts[:, :, 0, 0] for part in parts)
    assert asked.loc[0, "mean"] == pytest.approx(counts.mean())
    assert in_memory.labels.shape == (2, 30, len(markings))
    together = in_memory.coclustering()
    for name, part in zip(in_memory.images, parts, strict=True):
        rows = np.flatnonzero(markings.image == name)
        np.testing.assert_array_equal(rows[part.labels], in_memory.labels[:, :, rows])
        expected = part.coclustering().toarray()
        np.testing.assert_allclose(together[rows][:, rows].toarray(), expected)
    assert in_memory.n_clusters.shape == in_memory.alpha.shape == (2, 30)
    assert len(in_memory.point_partition("binder").labels) == len(markings)
    assert "4 images" in repr(in_memory)
    assert "<table" in in_memory._repr_html_()
    assert in_memory.to_arviz()["posterior"]["n_clusters"].shape == (2, 30)
    assert len(in_memory.consensus_diameters(2, limit=10)) > 0
