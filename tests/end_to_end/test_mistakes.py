"""The page of common mistakes shows what the command prints."""

from __future__ import annotations

import html
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from dfcrp.cli.main import main
from docs_site.mistakes import MISTAKES, PAGE, Mistake, make, section

WRONG_INPUT = 2
LEAST = 20


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_the_page_says_what_dfcrp_says(mistake: Mistake) -> None:
    """``./run python -m docs_site.mistakes`` renews the page after a message was changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, said = make(mistake)
    assert code == (WRONG_INPUT if mistake.refused else 0)
    assert said, "dfcrp says nothing of this mistake"
    assert section(mistake, said) in PAGE.read_text(encoding="utf-8")


@pytest.mark.drawn
def test_what_was_found_stands_in_the_run_and_on_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What reading left out and joined, and what the first look found, also after the run."""
    rng, files = np.random.default_rng(1), []
    places = rng.uniform(50.0, 400.0, (24, 2))
    for name, image in (("ann", "im1.jpg"), ("bob", "/home/bob/im1.JPG"), ("cleo", "im1.jpg")):
        here = places + rng.normal(0.0, 1.0, places.shape)
        points = here[:, ::-1] if name == "cleo" else here
        shapes = [
            {"shape_type": "circle", "points": [at, [at[0], at[1] + 9.0]], "label": "a"}
            for at in points.tolist()
        ]
        shapes.append({"shape_type": "line", "points": [[40, 9], [1, 1]], "label": "a"})
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps({"shapes": shapes, "imagePath": image}))
    run = tmp_path / "run"
    words = ("--chains", "1", "--scans", "20", "--no-report", "--quiet")
    assert main(["fit", *map(str, files), "--out", str(run), *words]) == 0
    record = json.loads((run / "provenance.json").read_text())
    assert [(found["check"], found["experts"]) for found in record["first_look"]] == [
        ("axes", ["cleo"])
    ]
    said = [record["first_look"][0]["text"], *record["notes"]]
    said += [note for source in record["sources"] for note in source["notes"]]
    assert any("are taken as one image" in note for note in said)
    assert sum("left out: 1 line (shape 25)" in note for note in said) == 3
    capsys.readouterr()
    assert main(["report", str(run)]) == 0
    page = html.unescape((run / "report.html").read_text())
    for note in said:
        assert note in page
    assert said[0] in json.loads((run / "summary.json").read_text())["first_look"][0]["text"]


def test_the_page_has_nothing_else() -> None:
    """Each of the mistakes once."""
    titles = [mistake.title for mistake in MISTAKES]
    page = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line[3:] for line in page if line.startswith("## ")] == titles
    assert len(set(titles)) == len(titles) >= LEAST


def test_options_that_are_advised_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Of fit, or of another command that is named before them."""
    known = {}
    for name in ("fit", "convert", "report", "resume"):
        main([name, "--help"])
        known[name] = set(re.findall(r"--[a-z][a-z0-9-]+", capsys.readouterr().out))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    advised = re.findall(r"dfcrp (convert|report|resume)\b([^)`.]*)", page)
    rest = re.sub(r"dfcrp (?:convert|report|resume)\b[^)`.]*", "", page)
    for name, words in (*advised, ("fit", rest)):
        assert {*re.findall(r"--[a-z][a-z0-9-]+", words)} <= known[name], name
