"""Nothing is written, changed or removed outside of a run folder, whatever links lie in it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpError
from dfcrp.simulate import paper_design

if os.name == "nt":
    pytest.skip("making links needs rights on Windows", allow_module_level=True)

#: Names in a run folder that something writes, makes or removes; as a file or as a folder.
FILES = (
    "catalogue.csv",
    "catalogue.csv.part",
    "config.toml.part",
    "experts.csv.part",
    "members.csv",
    "members.csv.part",
    "provenance.json.part",
    "report.html",
    "report.html.part",
    "run.lock",
    "size_frequency.csv.part",
    "summary.json.part",
    "figures/certainty.svg",
    "figures/certainty.svg.part",
    "draws.zarr/left.part",
)
FOLDERS = (
    "catalogue.csv.part",
    "draws.zarr",
    "draws.zarr/left.part",
    "draws.zarr/shard-000099-0000.zip",
    "figures",
    "run.lock",
    "writing",
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few scans, with its report."""
    run = tmp_path_factory.mktemp("links") / "run"
    dfcrp.fit(paper_design(5, n_objects=4), out=run, scans=6, chains=2, workers=1, progress=False)
    return run


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def work_on(run: Path, name: str = "") -> None:
    """Extend a run, or make its report; links may be refused, with a message."""
    extend = ["resume", str(run), "--scans", "8", "--no-report", "--quiet"]
    reported = any(word in name for word in ("figures", "report", "size_frequency"))
    command = ["report", str(run), "--quiet"] if reported else extend
    assert main(command) in (0, 2)


def linked(run: Path, name: str, target: Path) -> None:
    place = run / name
    place.parent.mkdir(exist_ok=True)
    if place.is_dir() and target.is_dir() and not place.is_symlink():
        shutil.copytree(place, target, dirs_exist_ok=True)
        shutil.rmtree(place)
    elif place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


@pytest.mark.parametrize("name", FILES)
def test_a_link_to_a_file_is_not_followed(begun: Path, tmp_path: Path, name: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(begun, run)
    outside.mkdir()
    (outside / "dear").write_text("dear to me")
    (outside / "dangling").mkdir()
    linked(run, name, outside / "dear")
    before = snapshot(outside)
    work_on(run, name)
    assert snapshot(outside) == before


@pytest.mark.parametrize("name", FILES)
def test_a_link_to_nothing_makes_no_file(begun: Path, tmp_path: Path, name: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(begun, run)
    outside.mkdir()
    linked(run, name, outside / "not-there")
    work_on(run, name)
    assert snapshot(outside) == {}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_a_folder_is_not_followed(begun: Path, tmp_path: Path, name: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(begun, run)
    outside.mkdir()
    (outside / "dear").write_text("dear to me")
    linked(run, name, outside)
    before = snapshot(outside)
    work_on(run, name)
    assert snapshot(outside) == before


def test_links_in_the_place_of_shards_are_refused(begun: Path, tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(begun, run)
    shard = next((run / "draws.zarr").glob("shard-*"))
    outside.mkdir()
    shutil.move(shard, outside)
    shard.symlink_to(outside / shard.name)
    before = snapshot(outside)
    with pytest.raises(DfcrpError, match=r"shard-.*link"):
        dfcrp.load(run).alpha  # noqa: B018
    work_on(run)
    assert snapshot(outside) == before


def test_pages_of_images_stay_in_the_folder(tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    table = tmp_path / "markings.csv"
    rows = [f"{x},5,3,{expert},{image}" for image in "ab" for expert in "pq" for x in (1, 30)]
    table.write_text("\n".join(["x,y,diameter,expert,image", *rows, ""]))
    short = ["--scans", "6", "--chains", "2", "--workers", "1", "--quiet"]
    assert main(["fit", str(table), "--out", str(run), *short]) == 0
    for name in ("pages", "pages/000000"):
        outside.mkdir()
        (outside / "dear").write_text("dear to me")
        shutil.rmtree(run / name)
        (run / name).symlink_to(outside)
        assert main(["report", str(run), "--quiet"]) in (0, 2)
        assert snapshot(outside) == {"dear": b"dear to me"}
        shutil.rmtree(outside)
        if (run / name).is_symlink():
            (run / name).unlink()
        assert main(["report", str(run), "--quiet"]) == 0


def test_the_run_folder_itself_may_be_a_link(begun: Path, tmp_path: Path) -> None:
    """What the user names is the user's choice."""
    shutil.copytree(begun, tmp_path / "far")
    (tmp_path / "run").symlink_to(tmp_path / "far")
    assert main(["resume", str(tmp_path / "run"), "--scans", "8", "--no-report", "--quiet"]) == 0
