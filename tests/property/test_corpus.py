"""Files that are, or once were, hard to read: each is read or refused as the fuzzer demands."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from dfcrp import memory
from dfcrp.errors import InputError, SettingsError
from dfcrp.io import read_items, read_table
from dfcrp.io.format import GivenFile
from dfcrp.io.georeference import read_georeference
from dfcrp.io.registry import formats
from dfcrp.settings.config import load_config, make_config, to_toml
from fuzz.fuzz import Judge
from fuzz.targets import AREAS, KINDS, PAIRS, TARGETS, Target

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(path.relative_to(CORPUS) for path in CORPUS.glob("*/*"))


@pytest.mark.parametrize("file", FILES, ids=str)
def test_read_or_refused(file: Path, tmp_path: Path) -> None:
    """The length decides what a file is read as, so each is also tried with some bytes more."""
    judge = Judge(file.parts[0], tmp_path, tmp_path / "findings")
    content = (CORPUS / file).read_bytes()
    for more in range(1 + len(KINDS)):
        judge(content + b"\n" * more)
        found = sorted(tmp_path.glob("findings/*/*.txt"))
        assert not found, found[0].read_text(encoding="utf-8")


def test_every_format_is_a_target() -> None:
    assert {target.format for target in TARGETS.values() if target.format} == {
        form.name for form in formats() if form.name != "other JSON"
    }


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_a_file_that_is_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    if name == "settings":
        assert make_config(load_config(CORPUS / name / "all.toml"))
        return
    ending = Path(target.files[0]).suffix
    file = "attributes.parts" if name == "shapefile" else f"valid{ending}"
    path = target.write(tmp_path, (CORPUS / name / file).read_bytes())
    if name == "candidates":
        pairs = path.with_name(PAIRS)
        assert len(read_items(path, "records", candidates=pairs).candidates) == 2
    elif name in ("looked", "footprints"):
        beside = path.with_name(PAIRS if name == "looked" else AREAS)
        assert read_items(path, "circles", looked=beside).experts == ("a", "b", "c")
    elif name == "world-file":
        assert read_georeference(path).a == 0.5
    else:
        drawn = ("star", "sliderunner", "qupath", "yolo", "box", "cbox")
        on_line = ("audacity", "textgrid", "elan", "doccano", "conll", "label-studio-spans")
        kind = "points" if name in drawn else "intervals" if name in on_line else None
        assert len(read_table(path, kind))
        form = next(
            form for form in formats() if form.recognises(GivenFile(name, path, path.read_bytes()))
        )
        assert form.name == target.format


def test_the_judge_sees_what_goes_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted crash, and a planted write, are kept with their inputs; each once."""

    def broken(path: Path) -> None:
        if b"crash" in path.read_bytes():
            raise ZeroDivisionError("planted")
        (tmp_path / "stray").touch()
        open(tmp_path / "stray", "w").close()

    monkeypatch.setitem(TARGETS, "delimited", Target(("input.csv",), broken))
    judge = Judge("delimited", tmp_path, tmp_path / "findings")
    for data in (b"crash", b"crash again", b"write"):
        judge(data)
    kept = {path.name.split("-")[0]: path for path in tmp_path.glob("findings/*/*.input")}
    assert set(kept) == {"ZeroDivisionError", "AssertionError"}
    assert kept["ZeroDivisionError"].read_bytes() == b"crash"


def test_settings_come_back_from_toml() -> None:
    import tomllib

    names = ('tab\t, quote ", backslash \\', "newline\n and delete \x7f")
    config = make_config({"summary": {"class_edges": [1.0], "class_names": list(names)}})
    assert make_config(tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize("name", ["digits", "long", "nest", "kinds", "chains"])
def test_absurd_settings_are_refused(name: str) -> None:
    with pytest.raises(SettingsError):
        make_config(load_config(CORPUS / "settings" / f"{name}.toml"))


def test_a_table_of_more_rows_than_reason_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(memory.VARIABLE, "500000")
    buffer = io.BytesIO()
    columns = {name: [1.0] * 2000 for name in ("x", "y", "diameter")}
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    (tmp_path / "a.parquet").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="2,000 rows"):
        read_table(tmp_path / "a.parquet")
