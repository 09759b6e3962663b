"""``dfcrp.fit``: every prior and sampler, the family rule, looks, stops, and runs read back."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import InputError, SettingsError
from dfcrp.runs.parts import NothingDrawnError, StoppedAtALook
from dfcrp.sampling.problem import Problem, problem_of
from dfcrp.settings.config import Config


@pytest.fixture(scope="module")
def markings() -> dfcrp.Items:
    """Thirty-odd markings by three experts, some of them close together."""
    found = dfcrp.simulate.paper_design(
        2, n_objects=10, width=120, height=90, detection=(1, 0.9, 0.8), false_rate=(0.2, 0.1, 0.1)
    )
    assert 20 <= len(found) <= 40
    return found


def breaks_the_family_rule(posterior: dfcrp.Posterior) -> bool:
    """Whether some draw has a cluster with two markings of one expert."""
    families = posterior.items.families
    keys = posterior.labels.astype(np.int64) * (families.max() + 1) + families
    ordered = np.sort(keys.reshape(-1, keys.shape[-1]), axis=1)
    return bool((ordered[:, 1:] == ordered[:, :-1]).any())


@pytest.mark.parametrize("radius", ["auto", 40, None])
@pytest.mark.parametrize(
    ("prior", "sampler"),
    [
        ("dfcrp", "exact"),
        ("dfcrp", "paper"),
        ("dfcrp", "unmodified"),
        ("constrained", "exact"),
        ("constrained", "paper"),
    ],
)
def test_families_stay_apart(markings: dfcrp.Items, prior: str, sampler: str, radius: Any) -> None:
    posterior = dfcrp.fit(
        markings, prior=prior, sampler=sampler, radius=radius, chains=2, scans=40, burn_in=10
    )
    assert posterior.labels.shape == (2, 30, len(markings))
    assert posterior.alpha.shape == (2, 30)
    assert (posterior.alpha > 0).all()
    assert not breaks_the_family_rule(posterior)
    # Canonical labels: a cluster is named after its smallest member.
    assert (posterior.labels <= np.arange(len(markings))).all()
    named = np.take_along_axis(posterior.labels, posterior.labels.astype(np.int64), axis=2)
    assert (named == posterior.labels).all()


@pytest.mark.parametrize("sampler", ["exact", "paper"])
def test_the_crp_knows_no_families(sampler: str) -> None:
    """Two markings of one expert in nearly one place: one object to the CRP, two to the rest."""
    x = np.array([10.0, 10.5, 200.0, 201.0])
    twins = dfcrp.Items.circles(x, x, [30.0, 30.5, 40.0, 41.0], ["Ann", "Ann", "Ann", "Bob"])
    together = {}
    for prior in ("crp", "dfcrp"):
        posterior = dfcrp.fit(twins, prior=prior, sampler=sampler, chains=2, scans=300)
        together[prior] = float((posterior.labels[:, :, 1] == 0).mean())
    assert together["dfcrp"] == 0
    assert together["crp"] > 0.5


def test_same_seed_same_draws_whatever_the_workers(markings: dfcrp.Items) -> None:
    runs = [dfcrp.fit(markings, chains=3, scans=20, seed=5, workers=w) for w in (1, 2, 3)]
    for other in runs[1:]:
        np.testing.assert_array_equal(runs[0].labels, other.labels)
        np.testing.assert_array_equal(runs[0].alpha, other.alpha)
    assert (dfcrp.fit(markings, chains=3, scans=20, seed=6).alpha != runs[0].alpha).any()


def test_thinning_keeps_some_of_the_same_draws(markings: dfcrp.Items) -> None:
    every = dfcrp.fit(markings, chains=2, scans=30, burn_in=0)
    third = dfcrp.fit(markings, chains=2, scans=30, burn_in=0, thin=3)
    np.testing.assert_array_equal(every.labels[:, 2::3], third.labels)


# How long a run goes on


def test_an_open_ended_run_stops_when_the_verdict_is_good(markings: dfcrp.Items) -> None:
    looks: list[int] = []

    def look(posterior: dfcrp.Posterior) -> None:
        looks.append(posterior.record.scans)

    posterior = dfcrp.fit(markings, max_scans=8000, on_look=look)
    assert posterior.verdict.ok
    assert looks == [500, 750, 1000, 1500, 2000, 3000, 4000, 6000, 8000][: len(looks)]
    assert posterior.record.scans == looks[-1]
    assert 0 < posterior.record.burn_in < posterior.record.scans


def test_an_open_ended_run_stops_at_the_largest_number_of_scans(markings: dfcrp.Items) -> None:
    posterior = dfcrp.fit(markings, chains=2, max_scans=20)
    assert posterior.record.scans == 20
    assert not posterior.record.stopped_early
    assert not posterior.verdict.ok
    assert posterior.verdict.advice


@pytest.fixture
def usual_interrupt() -> Iterator[None]:
    """Ctrl-C as on a terminal; under a shell's "&" it is ignored from birth."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_interrupt")
def test_an_interrupt_during_a_look_keeps_the_draws(markings: dfcrp.Items) -> None:
    stops: list[str] = []

    def interrupted(_: dfcrp.Posterior) -> None:
        signal.raise_signal(signal.SIGINT)

    posterior = dfcrp.fit(
        markings, chains=1, on_look=interrupted, on_stop=lambda: stops.append("asked")
    )
    assert stops == ["asked"]
    assert posterior.record.stopped_early
    assert posterior.record.scans == 500


@pytest.mark.usefixtures("usual_interrupt")
def test_a_second_interrupt_interrupts(markings: dfcrp.Items) -> None:
    def impatient(_: dfcrp.Posterior) -> None:
        with contextlib.suppress(StoppedAtALook):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        dfcrp.fit(markings, chains=1, scans=10, on_look=impatient)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_passed_deadline_leaves_nothing(markings: dfcrp.Items, tmp_path: Path) -> None:
    with pytest.raises(NothingDrawnError, match=r"setting up and beginning took \d+ s.*give more"):
        dfcrp.fit(markings, max_minutes=1e-9, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_is_set_up_once(markings: dfcrp.Items, tmp_path: Path, monkeypatch: Any) -> None:
    """What takes the longest with thousands of copies, and counts against the limit."""
    made = []

    def counted(items: dfcrp.Items, config: Config) -> Problem:
        made.append(items)
        return problem_of(items, config)

    monkeypatch.setattr("dfcrp.fitting.api.problem_of", counted)
    monkeypatch.setattr("dfcrp.fitting.run.problem_of", counted)
    dfcrp.fit(markings, chains=2, scans=4, out=tmp_path / "run")
    assert len(made) == 1


def test_progress_reports_every_chain_up_to_the_target(markings: dfcrp.Items) -> None:
    last: dict[int, int] = {}

    def watch(seen: Any) -> None:
        assert seen.target == 50
        assert seen.scans > last.get(seen.chain, 0)
        assert seen.last.labels.shape[1] == len(markings)
        last[seen.chain] = seen.scans

    dfcrp.fit(markings, chains=3, scans=50, progress=watch)
    assert last == {0: 50, 1: 50, 2: 50}


# There and back


def same(first: dfcrp.Posterior, second: dfcrp.Posterior) -> None:
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.alpha, second.alpha)
    assert first.markings.digest == second.markings.digest
    np.testing.assert_array_equal(first.markings.truth, second.markings.truth)
    np.testing.assert_array_equal(first.markings.id, second.markings.id)
    assert first.config == second.config
    for chain in range(first.draws.n_chains):
        one = first.draws.clusters(chain, 0, first.draws.n_draws)
        two = second.draws.clusters(chain, 0, second.draws.n_draws)
        for part in ("offsets", "labels", "parameters"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))
    for table in ("catalogue", "members", "experts"):
        assert getattr(first, table)().equals(getattr(second, table)())


def test_load_gives_back_what_save_took(markings: dfcrp.Items, tmp_path: Path) -> None:
    posterior = dfcrp.fit(markings, chains=2, scans=30, burn_in=7, min_experts=2)
    posterior.save(tmp_path / "run")
    back = dfcrp.load(tmp_path / "run")
    same(posterior, back)
    # The draws before the burn-in are not held in memory's posterior, so they are not saved.
    assert (back.record.scans, back.record.burn_in) == (23, 0)
    lengths = ("scans", "burn_in")
    one, two = posterior.summary(), back.summary()
    assert {k: v for k, v in one.items() if k not in lengths} == {
        k: v for k, v in two.items() if k not in lengths
    }


def test_a_run_on_disk_is_the_run_in_memory(markings: dfcrp.Items, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"chains": 2, "scans": 30, "thin": 2, "radius": None, "seed": 4}
    in_memory = dfcrp.fit(markings, **settings)
    on_disk = dfcrp.fit(markings, out=tmp_path / "run", **settings)
    same(in_memory, on_disk)
    back = dfcrp.load(tmp_path / "run")
    same(on_disk, back)
    assert back.record == on_disk.record
    assert back.summary() == on_disk.summary()


# What is refused


def test_a_wrong_setting_is_refused_before_anything_is_written(
    markings: dfcrp.Items, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match="did you mean 'scans'"):
        dfcrp.fit(markings, out=tmp_path / "run", scan=5)
    assert not (tmp_path / "run").exists()


def test_a_used_folder_is_refused(markings: dfcrp.Items, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InputError, match="not an empty folder"):
        dfcrp.fit(markings, out=tmp_path, scans=5)
