"""Names from data stay text, files stay in the output folder, and reading a run runs no code."""

from __future__ import annotations

import contextlib
import csv
import json
import pickle
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import InputError, RunFolderError
from fuzz.zipped import change_index, members, put_together

#: Of names that matplotlib might take for something else.
pytestmark = pytest.mark.figures
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
    """But for an apostrophe before what a spreadsheet would take for a formula."""
    with open(run / "members.csv", encoding="utf-8", newline="") as stream:
        found = {row["expert"] for row in csv.DictReader(stream)}
    assert found == {f"'{name}" if name[0] in "=+-@" else name for name in HOSTILE}
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


def first_shard(run: Path) -> Path:
    return min((run / "draws.zarr").glob("shard-*"))


def test_a_pickle_in_the_place_of_a_state_is_not_opened(copied: Path, tmp_path: Path) -> None:
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    path = first_shard(copied)
    content = members(path)
    put_together(path, content | {name: trap for name in content if name.startswith("state/")})
    with pytest.raises(RunFolderError, match="damaged"):
        dfcrp.resume(copied, scans=30)
    assert not (tmp_path / "sprung").exists()
    pickle.loads(trap)
    assert (tmp_path / "sprung").exists(), "the trap itself must work"


def test_codecs_named_in_a_run_folder_are_not_used(copied: Path, tmp_path: Path) -> None:
    """What the files ask for beyond our own codecs is not done: refused or passed over."""
    before = dfcrp.load(copied).labels
    path = first_shard(copied)
    content = members(path)
    meta = json.loads(content["alpha/zarr.json"])
    meta["codecs"] = [{"name": "numcodecs.pickle"}]
    meta["data_type"] = "object"
    content["alpha/zarr.json"] = json.dumps(meta).encode()
    content["alpha/.zarray"] = b'{"dtype": "|O", "filters": [{"id": "pickle"}]}'
    put_together(path, content)
    with contextlib.suppress(RunFolderError):
        assert np.array_equal(dfcrp.load(copied).labels, before)


def forge_blocks(name: str, value: Any) -> Any:
    def forge(index: dict[str, Any]) -> None:
        index["blocks"][name][0] = value

    return forge


FORGED = {
    "items": forge_blocks("n", 10**15),
    "no items": forge_blocks("n", -1),
    "draws in words": forge_blocks("draws", "many"),
    "draws": forge_blocks("draws", 10**12),
    "rows": forge_blocks("rows", 10**15),
    "groups": lambda index: index.update(groups=2**40),
    "half a group": lambda index: index.update(groups=2.5),
    "columns": lambda index: index.update(columns=7),
    "a surplus": lambda index: index["blocks"].update(surplus=[1]),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_index_is_refused(copied: Path, forge: Any) -> None:
    change_index(first_shard(copied), forge)
    with pytest.raises(RunFolderError):
        _ = dfcrp.load(copied).labels
