"""Run folders that dfcrp would not have written: refused in words, with little memory."""

from __future__ import annotations

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import RunFolderError
from dfcrp.likelihoods.circle import kernel
from dfcrp.runs.blocks import draws_of, layout_of
from dfcrp.runs.lock import Claim
from dfcrp.runs.shards import Unpacked, write_shard
from dfcrp.runs.store import DrawStore, MemoryBlock
from dfcrp.simulate import paper_design
from fuzz.zipped import change_index, place_of_member

Change = Callable[[dict[str, Any]], None]
Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("tampering") / "run"
    dfcrp.fit(paper_design(5, n_objects=4), out=run, scans=8, chains=3, seed=2, workers=1)
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def shards_of(run: Path) -> list[Path]:
    return sorted((run / "draws.zarr").glob("shard-*"))


def set_block(name: str, value: Any) -> Change:
    def change(fields: dict[str, Any]) -> None:
        fields["blocks"][name][0] = value

    return change


FORGED: dict[str, Change] = {
    "draws": set_block("draws", 10**9),
    "few draws": set_block("draws", 60_000),
    "rows": set_block("rows", 10**12),
    "items": set_block("n", 2**31 - 8),
    "other items": set_block("n", 3),
    "chain": set_block("chain", 3),
    "far chain": set_block("chain", 2**61),
    "part": set_block("part", 1),
    "first": set_block("first", 2**61),
    "state": lambda fields: fields["state"]["theta"].update(row=[10**9]),
    "groups": lambda fields: fields.update(groups=2**30),
    "codes of the state": lambda fields: fields["state"]["theta"].update(dtype="|O"),
    "text": set_block("draws", "many"),
    "nothing": set_block("turn", None),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_indices_are_refused(run: Path, name: str) -> None:
    change_index(shards_of(run)[0], FORGED[name])
    tracemalloc.start()
    try:
        if name != "state":  # which is for resuming
            with pytest.raises(RunFolderError):
                dfcrp.load(run)
        with pytest.raises(RunFolderError):
            dfcrp.resume(run, scans=12)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert main(["resume", str(run), "--scans", "12", "--quiet"]) == 2


def test_a_chain_that_is_missing_is_noticed(run: Path) -> None:
    shards_of(run)[-1].unlink()
    with pytest.raises(RunFolderError, match=r"2 chains have draws, 3 were expected"):
        dfcrp.load(run)
    whole = dfcrp.resume(run)
    assert whole.draws.n_chains == 3


def test_a_chain_that_was_copied_is_refused(run: Path) -> None:
    shard = shards_of(run)[-1]
    copied = Path(shutil.copy(shard, shard.with_name("shard-000077-copied.zip")))
    change_index(copied, set_block("chain", 3))
    with pytest.raises(RunFolderError, match=r"draws of chain 3, the run has 3 chains"):
        dfcrp.load(run)
    with pytest.raises(RunFolderError, match=r"draws of chain 3, the run has 3 chains"):
        dfcrp.resume(run)


def test_a_copied_shard_counts_once(run: Path) -> None:
    before = dfcrp.load(run).labels
    shard = shards_of(run)[-1]
    shutil.copy(shard, shard.with_name("shard-000077-copied.zip"))
    np.testing.assert_array_equal(dfcrp.load(run).labels, before)


def test_a_chain_of_an_image_that_is_missing_is_noticed(tmp_path: Path) -> None:
    one = paper_design(5, n_objects=3)
    several = dfcrp.Items.circles(
        *(np.tile(getattr(one, name), 2) for name in ("x", "y", "diameter", "expert")),
        image=np.repeat(["a", "b"], len(one)),
    )
    run = tmp_path / "run"
    dfcrp.fit(several, out=run, scans=6, chains=2, workers=1)
    for shard in shards_of(run):
        change_index(shard, lambda fields: fields["blocks"].update(
            chain=[0 if part else chain for part, chain in zip(
                fields["blocks"]["part"], fields["blocks"]["chain"], strict=True
            )]
        ))  # fmt: skip
    with pytest.raises(RunFolderError, match=r"part 1: 1 chains have draws, 2 were expected"):
        dfcrp.load(run).summary()


def test_a_posterior_saved_from_memory_has_the_chains_it_has(tmp_path: Path) -> None:
    run = tmp_path / "run"
    dfcrp.fit(paper_design(5, n_objects=3), scans=6, chains=2, workers=1).save(run)
    assert dfcrp.load(run).draws.n_chains == 2
    shards_of(run)[0].unlink()
    with pytest.raises(RunFolderError, match=r"1 chains have draws, 2 were expected"):
        dfcrp.load(run)


# Checkpoints


def tamper(run: Path, change: Callable[[Arrays, dict[str, Any]], Any]) -> None:
    """Write the last block of chain 0 again, with another state."""
    block: Any = DrawStore.open(run).spans(0, 0)[-1].block
    arrays = {name: array.copy() for name, array in block.state().items()}
    about = json.loads(json.dumps(block.entry.about))
    change(arrays, about)
    entry = block.entry._replace(state=layout_of(arrays), about=about)
    again = MemoryBlock(entry, draws_of(block), arrays)
    write_shard(run / "draws.zarr", 0, [[again]], Unpacked(1 << 20), Claim(run))
    block.shard.path.unlink()


def fill(name: str, value: Any) -> Callable[[Arrays, dict[str, Any]], None]:
    def change(arrays: Arrays, _: dict[str, Any]) -> None:
        arrays[name][...] = value

    return change


def circle(arrays: Arrays, _: dict[str, Any]) -> None:
    """Two members of one cluster that lead to each other, beside its list."""
    arrays["after"][:2], arrays["before"][:2] = [1, 0], [1, 0]


def put(rows: np.ndarray, column: int, value: float) -> None:
    rows[:, column] = value


STATES: dict[str, Callable[[Arrays, dict[str, Any]], Any]] = {
    "not a number": fill("theta", np.nan),
    "infinite parameters": fill("theta", np.inf),
    "a law that no prior allows": fill("law", 30_000.0),
    "spares of such a law": fill("reference", 30_000.0),
    "variances below zero": lambda arrays, _: put(arrays["theta"], kernel.VAR_SIZE, -1.0),
    "a slope that is not that of the covariance": lambda arrays, _: put(
        arrays["theta"], kernel.BETA, 50.0
    ),
    "alpha": fill("alpha", -1.0),
    "labels beyond the items": fill("label", 2**30),
    "negative labels": fill("label", -5),
    "one cluster of all": fill("label", 0),
    "sizes": fill("size", 1),
    "heads": fill("head", 0),
    "order": fill("order", 0),
    "ranks": fill("rank", 2**30),
    "seats": fill("seated", -1),
    "free slots": fill("free_after", 0),
    "free heads": fill("free_head", 0),
    "a circle": circle,
    "scans": fill("scans", -4),
    "an extra array": lambda arrays, _: arrays.update(more=np.zeros(10**6)),
    "an array less": lambda arrays, _: arrays.__delitem__("u"),
    "generators": lambda arrays, about: about.update(generators=[{"state": "x"}] * 9),
    "no generators": lambda arrays, about: about.update(generators=[]),
    "no time": lambda arrays, about: about.update(seconds=-1.0),
    "words": lambda arrays, about: about.update(seconds="long", generators="x"),
    "shapes": lambda arrays, about: arrays.update(label=arrays["label"][:-1]),
    "axes": lambda arrays, about: arrays.update(label=arrays["label"][:, None]),
    "another type": lambda arrays, about: arrays.update(label=arrays["label"].astype(np.int64)),
}


@pytest.mark.parametrize("name", STATES)
def test_forged_checkpoints_are_refused(run: Path, name: str) -> None:
    tamper(run, STATES[name])
    with pytest.raises(RunFolderError, match=r"does not fit this run|damaged"):
        dfcrp.resume(run, scans=12)


def test_a_checkpoint_that_is_written_again_is_taken(run: Path, finished: Path, tmp_path: Path):
    tamper(run, lambda arrays, about: None)
    again = dfcrp.resume(run, scans=12)
    whole = dfcrp.resume(shutil.copytree(finished, tmp_path / "other"), scans=12)
    np.testing.assert_array_equal(again.labels, whole.labels)


# Records


PROVENANCE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "scans": lambda found: found["run"].update(scans="many"),
    "no scans": lambda found: found["run"].update(scans=0),
    "endless scans": lambda found: found["run"].update(scans=10**30),
    "thin": lambda found: found["run"].update(thin=0),
    "burn-in": lambda found: found["run"].update(burn_in=-1),
    "seconds": lambda found: found["run"].update(seconds="long"),
    "tallies": lambda found: found["run"].update(tallies="x"),
    "tally": lambda found: found["run"].update(tallies=[{"pair_moved": "x"}]),
    "unknown": lambda found: found["run"].update(more=1),
    "list": lambda found: found.update(run=[]),
    "sources": lambda found: found.update(sources=[{"file": 3}]),
    "rows": lambda found: found.update(
        sources=[{"file": "a", "sha256": "b", "rows": "c", "kept": 1}]
    ),
    "site": lambda found: found.update(site={"units": 4}),
    "radius": lambda found: found.update(site={"units": "deg", "body_radius_km": "wide"}),
    "boundary": lambda found: found.update(site={"boundary": [{"points": [1], "hole": 0}]}),
    "settings": lambda found: found.update(settings_of_draws=3),
    "digest": lambda found: found.update(markings_sha256=[1]),
}


@pytest.mark.parametrize("name", PROVENANCE)
def test_damaged_records_are_said(run: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / "provenance.json"
    content = json.loads(path.read_text())
    PROVENANCE[name](content)
    path.write_text(json.dumps(content))
    if name != "settings":  # which are for resuming
        assert main(["report", str(run), "--quiet"]) == 2
    if name != "endless scans":  # what is missing is drawn
        assert main(["resume", str(run), "--scans", "12", "--no-report", "--quiet"]) == 2
    said = capsys.readouterr().err
    words = ("provenance.json", "run folder", "changed afterwards", "were expected")
    assert any(word in said for word in words)
    assert "unexpected" not in said


@pytest.mark.parametrize("name", ["provenance.json", "config.toml", "markings.csv", "run.lock"])
@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b"\xff\xfe\x00", b"a = " + b"[" * 9000])
def test_damaged_files_are_said(
    run: Path, name: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).write_bytes(content)
    code = main(["resume", str(run), "--scans", "12", "--no-report", "--quiet"])
    assert code == (0 if name == "run.lock" else 2)
    assert "unexpected" not in capsys.readouterr().err


def test_damaged_bytes_of_a_checkpoint_are_said(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in shards_of(run):
        content, place = bytearray(path.read_bytes()), place_of_member(path, "state/theta/c/0/0")
        content[(place.start + place.stop) // 2] ^= 255
        path.write_bytes(content)
    assert main(["resume", str(run), "--scans", "12", "--quiet"]) == 2
    said = capsys.readouterr().err
    assert "damaged" in said
    assert "drawn again" in said


def test_an_output_name_that_is_too_long(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    for name in ("x" * 300, "x" * 253):
        out = run.parent / name
        code = main(["fit", str(run / "markings.csv"), "--out", str(out), "--scans", "4"])
        said = capsys.readouterr().err
        assert (code, "unexpected" in said) in ((2, False), (0, False))
    assert "too long" in said or code == 0
