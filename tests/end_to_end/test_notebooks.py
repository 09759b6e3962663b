"""A real notebook: what cells show of items, posteriors, figures, the explorer and progress."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from docs_site import tutorial

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("jupyter_client", reason="there is no Jupyter kernel")

ROOT = Path(__file__).resolve().parents[2]
CELLS = (
    "import dfcrp\n"
    "items = dfcrp.simulate.paper_design(seed=1, n_objects=8)\n"
    "posterior = dfcrp.fit(items, chains=2, scans=60, seed=1)",
    "items",
    "posterior",
    "posterior.explore()",
    "from dfcrp import plots\ntable, axes = plots.plot_jaccard(posterior)\naxes.figure",
)


def run(book, folder: Path):
    """Run a notebook in a kernel of its own, and return its code cells with their outputs."""
    client = nbclient.NotebookClient(
        book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return [cell.outputs for cell in book.cells if cell.cell_type == "code"]


@pytest.fixture(autouse=True)
def found_by_kernels(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_every_object_shows_itself(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS])
    fitted, items, posterior, explorer, figure = run(book, tmp_path)
    # The bar is gone at the end, and nothing else was printed.
    assert [(one.output_type, one.data["text/html"]) for one in fitted] == [("display_data", "")]
    for [shown], words in ((items, "49 circles"), (posterior, "2 chains")):
        assert "<table" in shown.data["text/html"]
        assert words in shown.data["text/plain"]
    assert "<iframe" in explorer[0].data["text/html"]
    assert len(figure[0].data["image/png"]) > 5_000


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_of_a_tutorial_runs(tmp_path):
    text = (tutorial.TUTORIALS / "python.md").read_text(encoding="utf-8")
    book = nbformat.reads(json.dumps(json.loads(tutorial.notebook(text))), as_version=4)
    code = [block for block in tutorial.blocks(text) if block.kind == "python"]
    assert len(run(book, tmp_path)) == len(code)
