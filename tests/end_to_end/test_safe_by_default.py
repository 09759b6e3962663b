"""Names from data stay text, files stay in the output folder, and reading a run runs no code."""

from __future__ import annotations

import csv
import json
import shutil
import xml.etree.ElementTree as ElementTree
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dfcrp.runs.draw_files import META_NAME

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import InputError, RunFolderError

HOSTILE = (
    "../../outside",
    "a/b",
    "C:\\temp\\x",
    "CON",
    "~",
    "$(touch outside)",
    "$\\undefined{$",
    "$x^2$",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "&amp;\"'`{{7*7}}%s{0}",
    "=1+1",
    "n" * 200,
    "\u202eright to left",
)
QUICK = ("--chains", "2", "--scans", "24", "--quiet", "--min-experts", "3")


def marked(names: tuple[str, ...], objects: int = 3) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    return [
        {"x": x, "y": y, "diameter": 20.0 + rng.normal(), "expert": name}
        for name in names
        for x, y in 100.0 * np.arange(objects)[:, np.newaxis] + rng.normal(size=(objects, 2))
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of hostile names, in a place where two steps up are still ours."""
    folder = tmp_path_factory.mktemp("safe") / "one" / "two"
    folder.mkdir(parents=True)
    source = write(folder / "<b>markings & 'co'.csv", marked(HOSTILE))
    assert main(["fit", str(source), "--out", str(folder / "run"), *QUICK]) == 0
    return folder / "run"


class Elements(HTMLParser):
    """Gathers what a browser would make elements of."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_nothing_is_written_outside(run: Path) -> None:
    top = run.parents[2]
    outside = [path for path in top.rglob("*") if path.is_file() and run not in path.parents]
    assert [path.suffix for path in outside] == [".csv"]


def test_no_file_is_named_after_the_data(run: Path) -> None:
    for path in run.rglob("*"):
        assert path.name.replace("-", "").replace("_", "").replace(".", "").isascii()
        assert not any(name in path.name for name in HOSTILE)


def test_the_page_holds_names_as_text(run: Path) -> None:
    elements = Elements()
    page = (run / "report.html").read_text(encoding="utf-8")
    elements.feed(page)
    for tag, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("src", "").startswith("data:") or "src" not in attributes
    assert "<script>alert" not in page
    assert "&lt;img src=x onerror" in page


def test_figures_hold_names_as_text(run: Path) -> None:
    pictures = list((run / "figures").glob("*.svg"))
    assert pictures
    for path in pictures:
        for element in ElementTree.parse(path).iter():
            assert element.tag.rsplit("}", 1)[-1] not in ("script", "img", "foreignObject")
            assert not any(name.startswith("on") for name in element.attrib)


def test_tables_give_the_names_back(run: Path) -> None:
    with open(run / "members.csv", encoding="utf-8", newline="") as stream:
        assert {row["expert"] for row in csv.DictReader(stream)} == set(HOSTILE)
    assert dfcrp.load(run).markings.experts == tuple(sorted(HOSTILE))


@pytest.mark.parametrize("name", ["n" * 300, "a\0b", "two\nlines", "\ud800", "", "\x1b[31m"])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="expert"):
        dfcrp.Items.circles([1.0], [2.0], [3.0], [name])


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def copied(run: Path, tmp_path: Path) -> Path:
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def test_a_pickle_in_a_checkpoint_is_not_opened(copied: Path, tmp_path: Path) -> None:
    path = copied / "checkpoints" / "chain-0.npz"
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["trap"] = np.array([Trap(tmp_path / "sprung")], dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(RunFolderError, match="damaged"):
        dfcrp.resume(copied, scans=30)
    np.load(path, allow_pickle=True)["trap"]
    assert (tmp_path / "sprung").exists(), "the trap itself must work"


def test_codecs_named_in_a_run_folder_are_not_used(copied: Path) -> None:
    """How the arrays are unpacked is decided by our code: what the files ask for is not done."""
    before = dfcrp.load(copied).labels
    array = copied / "draws.zarr" / "chain-0" / "alpha"
    meta = json.loads((array / META_NAME).read_text(encoding="utf-8"))
    meta["codecs"] = [{"name": "numcodecs.pickle"}]
    meta["data_type"] = "object"
    (array / META_NAME).write_text(json.dumps(meta), encoding="utf-8")
    (array / ".zarray").write_text('{"dtype": "|O", "filters": [{"id": "pickle"}]}')
    assert np.array_equal(dfcrp.load(copied).labels, before)


@pytest.mark.parametrize(
    "change",
    [
        {"n_markings": 10**15},
        {"n_markings": -1},
        {"draws": "many"},
        {"draw_block": 0},
        {"row_block": 1},
        {"marking_chunk": 2.5},
        {"parameter_names": 7},
        {"surplus": 1},
    ],
)
def test_a_forged_record_is_refused(copied: Path, change: dict[str, Any]) -> None:
    path = copied / "draws.zarr" / "chain-0" / META_NAME
    meta = json.loads(path.read_text(encoding="utf-8"))
    fields = meta["attributes"]["dfcrp_draws"]
    fields.update(change)
    text = json.dumps(fields, sort_keys=True).encode()
    meta["attributes"]["checksum"] = zlib.crc32(text)
    path.write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(RunFolderError):
        dfcrp.load(copied)
