"""What lies in the current folder is data: no process that dfcrp starts runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dfcrp import plots, processes
from dfcrp.compiled import build
from dfcrp.craterstats import check_chronology, isochron_curves
from dfcrp.plots import style
from dfcrp.plots.drawing import Order, draw_all
from reference.small_posteriors import random_posterior

#: Modules that every process of ours needs, directly or not.
NAMES = ("numpy", "matplotlib", "json", "io", "dfcrp", "sitecustomize", "llvmlite", "numba")


@pytest.fixture
def trap(tmp_path, monkeypatch):
    """A current folder full of code; the file that it would leave."""
    left = tmp_path / "was run"
    folder = tmp_path / "run of a stranger"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"import os\nos.mkdir({str(left)!r})\nraise SystemExit(3)\n"
        )
    monkeypatch.chdir(folder)
    return left


@pytest.mark.figures
def test_helpers_run_nothing_from_the_current_folder(trap):
    posterior = random_posterior(3, n=15, n_families=4)
    order = Order("jaccard", plots.prepare_jaccard(posterior), Path("here"), ("svg",))
    assert draw_all([order], 1)["jaccard"].content.startswith(b"<?xml")
    assert not trap.exists()
    # A helper works elsewhere, and still writes here.
    assert Path("here", "jaccard.svg").exists()


def test_a_helper_does_start_there(trap):
    """Or the figures above would have been drawn by this process."""
    command, environment = processes.python("-c", "import numpy, dfcrp; print(dfcrp.__file__)")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).parent == processes.WORKPLACE
    assert not trap.exists()


def test_kernels_are_compiled_by_processes_that_run_nothing_from_there(trap, tmp_path):
    [(name, _)] = build.build(["entries:dfcrp.priors.tail"], tmp_path / "units", jobs=1)
    assert name == "entries:dfcrp.priors.tail"
    assert not trap.exists()


def test_craterstats_runs_nothing_from_there(trap, tmp_path):
    """Its Python, which may be another one, and the program itself."""
    place = tmp_path / "env"
    place.mkdir()
    (place / "python").symlink_to(sys.executable)
    program = place / "craterstats"
    program.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -c 'import json\n"
        'print("Chronology systems:\\nMoon\\n")\'\n'
    )
    program.chmod(0o755)
    assert check_chronology(str(program), "moon") == "Moon"
    with pytest.raises(Exception, match="craterstats"):  # there is none to compute them
        isochron_curves(str(program), "Moon", 1.0)
    assert not trap.exists()


@pytest.mark.figures
def test_a_matplotlibrc_in_the_current_folder_draws_nothing_else(tmp_path):
    """Its settings could have LaTeX run, with macros of a stranger's."""
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 7\n")
    program = (
        "import json, matplotlib\n"
        "before = dict(matplotlib.rcParams)\n"
        "from dfcrp.plots.style import styled\n"
        "with styled():\n"
        "    inside = matplotlib.rcParams['text.usetex'], matplotlib.rcParams['lines.linewidth']\n"
        "assert dict(matplotlib.rcParams) == before\n"
        "print(json.dumps([before['text.usetex'], *inside]))\n"
    )
    command, environment = processes.python("-c", program)
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [True, False, style.STYLE["lines.linewidth"]]


def test_the_search_path_has_no_place_that_depends_on_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", "lib", str(tmp_path), "/opt/lib"])
    assert processes.search_path() == ["/opt/lib", str(processes.WORKPLACE.parent)]
