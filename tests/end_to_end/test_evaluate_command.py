"""``dfcrp evaluate`` as a user meets it: a run, catalogues, the report, and messages."""

from __future__ import annotations

import json

import pytest

from dfcrp.cli.main import main
from reference.kind_posteriors import kind_posterior
from reference.small_posteriors import random_posterior


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Boxes on three images, and their catalogue for a truth, with one more row."""
    folder = tmp_path_factory.mktemp("evaluate")
    posterior = kind_posterior("boxes", images=("a", "b", "c"))
    posterior.save(folder / "run")
    table = posterior.catalogue()[["image", "x", "y", "width", "height"]]
    table.to_csv(folder / "truth.csv", index=False)
    return folder


def test_a_run_keeps_the_result_and_the_report_shows_it(run, capsys):
    out = run / "found.json"
    truth = run / "truth.csv"
    assert main(["evaluate", str(run / "run"), "--truth", str(truth), "--json", str(out)]) == 0
    said = capsys.readouterr().out
    assert "precision" in said
    assert "p_consensus > 0.5" in said
    found = json.loads(out.read_text())
    assert found["precision"] == 1.0
    assert 0.0 < found["recall"] < 1.0
    kept = json.loads((run / "run" / "evaluation.json").read_text())
    assert {name: kept[name] for name in found} == found
    assert main(["report", str(run / "run"), "--pages", "0", "--quiet"]) == 0
    page = (run / "run" / "report.html").read_text()
    assert "How right is it?" in page
    assert "truth.csv" in page
    assert (run / "run" / "figures" / "evaluation.svg").is_file()
    kept["made_of"]["draws"] += 1
    (run / "run" / "evaluation.json").write_text(json.dumps(kept))
    assert main(["report", str(run / "run"), "--pages", "0", "--quiet"]) == 0
    assert "How right is it?" not in (run / "run" / "report.html").read_text()
    assert not (run / "run" / "figures" / "evaluation.svg").exists()


def test_one_image(tmp_path):
    posterior = random_posterior(3)
    posterior.save(tmp_path / "run")
    posterior.catalogue()[["x", "y", "diameter"]].to_csv(tmp_path / "truth.csv", index=False)
    arguments = ["evaluate", str(tmp_path / "run"), "--truth", str(tmp_path / "truth.csv")]
    assert main([*arguments, "--min-experts", "1", "--quiet"]) == 0
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text())["f1"] == 1.0
    assert main(["report", str(tmp_path / "run"), "--quiet"]) == 0
    assert "How right is it?" in (tmp_path / "run" / "report.html").read_text()


def test_a_catalogue_and_the_images_of_a_table(run, capsys):
    catalogue, truth = run / "run" / "catalogue.csv", run / "truth.csv"
    arguments = ["evaluate", str(catalogue), "--likelihood", "boxes", "--truth", str(truth)]
    out = run / "of_catalogue.json"
    assert main([*arguments, "--json", str(out)]) == 0
    of_run = run / "of_run.json"
    assert main(["evaluate", str(run / "run"), "--truth", str(truth), "--json", str(of_run)]) == 0
    found, same = (json.loads(path.read_text()) for path in (out, of_run))
    for name in ("precision", "recall", "f1", "average_precision", "n_listed", "by_size"):
        assert found[name] == same[name]
    (run / "images.csv").write_text("image\na\nb\n")
    assert main([*arguments, "--on", str(run / "images.csv"), "--json", str(out)]) == 0
    assert json.loads(out.read_text())["n_images"] == 2
    capsys.readouterr()
    assert main([*arguments, "--distance", "x=3,y=4"]) == 0
    assert "(x 3, y 4)" in capsys.readouterr().out


def test_records_by_command(tmp_path, capsys):
    (tmp_path / "ours.csv").write_text("id_l,id_r,p\n1,2,.9\n3,4,.8\n")
    (tmp_path / "truth.csv").write_text("D1|D2\n1|2\n5|6\n")
    arguments = ["evaluate", str(tmp_path / "ours.csv"), "--truth", str(tmp_path / "truth.csv")]
    assert main([*arguments, "--likelihood", "records"]) == 0
    assert "pairwise precision  0.500" in capsys.readouterr().out


@pytest.mark.drawn
def test_a_run_of_records_and_its_report(tmp_path):
    posterior = kind_posterior("records")
    posterior.save(tmp_path / "run")
    labels = posterior.point_partition().labels
    rows = [f"{name},e{label}" for name, label in zip(posterior.items.id, labels, strict=True)]
    (tmp_path / "truth.csv").write_text("\n".join(["id,entity", *rows, ""]))
    arguments = ["evaluate", str(tmp_path / "run"), "--truth", str(tmp_path / "truth.csv")]
    assert main([*arguments, "--quiet"]) == 0
    kept = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert kept["bcubed"]["f1"] == kept["pairwise"]["f1"] == 1.0
    assert main(["report", str(tmp_path / "run"), "--quiet"]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "B-cubed: recall" in page
    assert "Calibration and precision against recall" in page


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("image,x,y\na,1,2\n", [], "no column for width"),
        ("image,x,y\na,1,2\n", [], "say which with --truth-columns width=NAME"),
        (
            "image,expert,x,y,width,height\na,ann,1,2,3,4\na,bob,1,2,3,4\n",
            [],
            "names 2 experts, so its rows are what each of them listed",
        ),
        ("image,x,y,width,height\na,1,2,3,0\n", [], "truth.csv, row 2, column 'height'"),
        (
            "image,x,y,width,height\na,1,2,3,4\nx,1,2,3,4\n",
            [],
            "truth.csv, row 3: the image 'x' is not in the run",
        ),
        (None, ["--likelihood", "points"], "is a run of boxes"),
        (None, ["--columns", "x=X"], "--truth-columns"),
        (None, ["--two-lists"], "a run knows its lists"),
        (None, ["--on", "trut"], "did you mean 'truth'"),
        (None, ["--p-real", "0.5"], "fit with --prior detection"),
        (None, ["--distance", "far"], "neither a number nor"),
    ],
)
def test_messages(run, tmp_path, capsys, content, options, message):
    truth = run / "truth.csv"
    if content is not None:
        truth = tmp_path / "truth.csv"
        truth.write_text(content)
    assert main(["evaluate", str(run / "run"), "--truth", str(truth), *options]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_missing_file(run, capsys):
    assert main(["evaluate", str(run / "run"), "--truth", str(run / "none.csv")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert main(["evaluate", str(run / "none"), "--truth", str(run / "truth.csv")]) == 2
