"""Data at the edge of sense: a fit gives finite answers, or one clear message."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dfcrp.cli.main import main
from dfcrp.errors import InputError
from dfcrp.likelihoods.circle.hyper import APART, set_apart
from dfcrp.neighbours import neighbourhood as neighbours
from dfcrp.settings.config import make_config
from studies.problems import make_problem

Row = tuple[float, float, float, str]
FEW = ("--chains", "2", "--scans", "24", "--quiet")


def scattered(n: int, experts: int, low: float, high: float, sizes: tuple[float, float]):
    rng = np.random.default_rng(n)
    place, size = rng.uniform(low, high, (n, 2)), np.exp(rng.uniform(*np.log(sizes), n))
    return [(x, y, d, f"e{i % experts}") for i, ((x, y), d) in enumerate(zip(place, size))]  # noqa: B905


def on_objects(size: float, noise: float, experts: int = 5) -> list[Row]:
    """Four objects, ten diameters apart, marked by everyone with some noise in diameters."""
    rng = np.random.default_rng(4)
    rows = []
    for e in range(experts):
        for k in range(4):
            dx, dy, dl = noise * rng.standard_normal(3)
            x, y = 10 * size * (k % 2), 10 * size * (k // 2)
            rows.append((x + dx * size, y + dy * size, size * math.exp(dl), f"e{e}"))
    return rows


FITTED: dict[str, list[Row]] = {
    "one marking": [(10.0, 20.0, 5.0, "a")],
    "one expert": scattered(30, 1, 0.0, 100.0, (5.0, 9.0)),
    # Beyond five markings by as many experts the density of the variance has no bound.
    "one point, an expert each": [(10.0, 20.0, 5.0, f"e{i}") for i in range(40)],
    "one point, few experts": [(10.0, 20.0, 5.0, f"e{i % 5}") for i in range(60)],
    "copies by one expert": [(10.0, 20.0, 5.0, "a")] * 200,
    "identical lists": on_objects(20.0, 0.0, experts=12),
    "one size": [(x, y, 20.0, who) for x, y, _, who in on_objects(20.0, 0.1, experts=12)],
    "on a line": [(float(i % 10), 0.0, 5.0, f"e{i // 10}") for i in range(50)],
    "half-pixel diameters": on_objects(0.5, 0.1),
    "diameters of 2e-15": on_objects(2e-15, 0.1),
    "diameters of 1e13": on_objects(1e13, 0.1),
    "an expert for each marking": scattered(120, 120, 0.0, 50.0, (5.0, 5.1)),
    "sizes from 0.001 to 1000": scattered(40, 4, 0.0, 100.0, (1e-3, 1e3)),
}
REFUSED: dict[str, tuple[list[Row], str]] = {
    "far away": (scattered(20, 4, 1e12, 1e12 + 100.0, (5.0, 9.0)), "Subtract a constant from x"),
    "all magnitudes": (scattered(20, 4, 0.0, 100.0, (1e-15, 1e15)), "--min-diameter"),
}


def write(path: Path, rows: list[Row]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["x", "y", "diameter", "expert"])
        writer.writerows(rows)
    return path


def check_tables(folder: Path, rows: list[Row]) -> int:
    """Every number of the catalogue is finite, every marking has a cluster; the cluster count."""
    with open(folder / "catalogue.csv", encoding="utf-8", newline="") as stream:
        catalogue = list(csv.DictReader(stream))
    with open(folder / "members.csv", encoding="utf-8", newline="") as stream:
        members = list(csv.DictReader(stream))
    for row in catalogue:
        for name in ("x", "y", "diameter"):
            low, mean, high = (float(row[f"{name}{end}"]) for end in ("_lo", "", "_hi"))
            assert math.isfinite(low)
            assert math.isfinite(high)
            assert low - 1e-6 * abs(low) <= mean <= high + 1e-6 * abs(high)
        assert 0.0 <= float(row["p_consensus"]) <= 1.0
    assert len(members) == len(rows)
    assert {row["cluster"] for row in members} == {row["cluster"] for row in catalogue}
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    assert summary["n_clusters"]["mean"] >= 1
    assert math.isfinite(summary["alpha"]["mean"])
    return len(catalogue)


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_fits(tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "markings.csv", FITTED[name])
    out = tmp_path / "run"
    assert main(["fit", str(source), "--out", str(out), *FEW, "--no-report"]) == 0
    check_tables(out, FITTED[name])


@pytest.mark.parametrize("name", ["identical lists", "one size", "half-pixel diameters"])
def test_four_objects_are_found(tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "markings.csv", FITTED[name])
    out = tmp_path / "run"
    assert main(["fit", str(source), "--out", str(out), *FEW, "--no-report"]) == 0
    assert check_tables(out, FITTED[name]) == 4


def test_the_papers_law_at_half_a_pixel(tmp_path: Path) -> None:
    """Its powers of a negative log diameter do not exist: the law is held at its floor."""
    rows = on_objects(0.5, 0.1)
    source = write(tmp_path / "markings.csv", rows)
    settings = tmp_path / "fixed.toml"
    settings.write_text('[likelihood]\ntolerances = "fixed"\n', encoding="utf-8")
    out = tmp_path / "run"
    arguments = ["fit", str(source), "--out", str(out), "--config", str(settings)]
    assert main([*arguments, *FEW, "--no-report"]) == 0
    check_tables(out, rows)


@pytest.mark.figures
@pytest.mark.parametrize("name", ["one marking", "one point, an expert each"])
def test_the_report_is_drawn(tmp_path: Path, name: str) -> None:
    source = write(tmp_path / "markings.csv", FITTED[name])
    out = tmp_path / "run"
    assert main(["fit", str(source), "--out", str(out), *FEW, "--no-report"]) == 0
    assert main(["report", str(out), "--quiet"]) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert ">nan<" not in page.lower()
    assert list((out / "figures").glob("*.svg"))


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows, advice = REFUSED[name]
    source = write(tmp_path / "markings.csv", rows)
    out = tmp_path / "run"
    assert main(["fit", str(source), "--out", str(out), *FEW]) == 2
    assert advice in capsys.readouterr().err
    assert not out.exists()


def test_more_neighbours_than_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MOST_PAIRS", 1000)
    features = np.tile([10.0, 20.0, 2.0], (60, 1))
    families = np.arange(60)
    with pytest.raises(InputError, match=r"up to 60 at one place"):
        make_problem(features, families, make_config({}))
    make_problem(features[:40], families[:40], make_config({}))


def test_only_what_many_experts_agree_on_is_set_apart() -> None:
    features = np.array([[1.0, 2.0, 3.0]] * 3 + [[5.0, 6.0, 3.0]] * 2 + [[9.0, 9.0, 4.0]])
    three, same = np.array([0, 1, 2, 0, 1, 0]), np.zeros(6, dtype=np.int64)
    moved = set_apart(features, three)
    assert np.all(moved[:3, :2] != features[:3, :2])
    assert np.array_equal(moved[3:], features[3:])
    assert np.array_equal(moved[:, 2], features[:, 2])
    assert np.abs(moved - features).max() < 5 * APART * math.exp(3.0)
    assert set_apart(features, same) is features
    sizes = np.column_stack([np.arange(12.0).reshape(6, 2), np.full(6, 3.0)])
    assert np.all(set_apart(sizes, np.arange(6))[:, 2] != 3.0)
    assert np.array_equal(set_apart(sizes, np.arange(6) % 5), sizes)
