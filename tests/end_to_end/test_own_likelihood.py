"""The worked example of docs/own-likelihood.md, sampled as plain Python."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dfcrp.cli.main import main
from dfcrp.compiled.library import table_unit
from dfcrp.likelihoods.contract import LIKELIHOOD

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "own-likelihood.md"
EXAMPLE = ROOT / "tests" / "own" / "counts.py"
CHECKS = """
import numpy as np

import counts
from dfcrp import Items
from dfcrp.likelihoods import contract, integrated

y = np.random.default_rng(1).poisson(20.0, (6, 2)).astype(float)
items = Items.from_columns({"red": y[:, 0], "blue": y[:, 1]}, kind="counts:COUNTS")
hyper = counts.COUNTS.hyper(items, counts.CountSettings())
theta = np.zeros((1, counts.COUNTS.row_width(items)))
integrated.empty_row(hyper, theta, 0)
total = 0.0
for i in range(4):
    total += contract.log_density(hyper, theta, 0, y, i)
    contract.add_member(hyper, theta, 0, y, i)
assert abs(total - integrated.log_marginal(hyper, theta, 0)) < 1e-9
before = theta.copy()
contract.add_member(hyper, theta, 0, y, 5)
contract.remove_member(hyper, theta, 0, y, 5)
assert np.allclose(theta, before)
"""
#: Two images; a run that is stopped and resumed has the draws of one that was not.
WHOLE_WAY = """
import numpy as np

import dfcrp

items = dfcrp.read_items("counts.csv", "counts:COUNTS")
settings = {"chains": 2, "workers": 1, "config": {"likelihood": {"shape": 3.0}}}
first = dfcrp.fit(items, out="run", scans=8, **settings)
assert first.images == ("left", "right")
posterior = dfcrp.resume("run", scans=40, likelihood="counts:COUNTS")
whole = dfcrp.fit(items, scans=40, **settings)
for name in posterior.images:
    assert np.array_equal(posterior[name].labels, whole[name].labels), name
again = dfcrp.load("run", likelihood="counts:COUNTS")
assert again.config.likelihood.shape == 3.0
catalogue = again.catalogue()
assert {"image", "red", "green", "blue_lo", "p_consensus"} <= {*catalogue}
assert set(again["left"].tolerances) == {"log_a"}
print(again.explain("a2"))
print(again.summary()["n_images"])
"""


def frame() -> pd.DataFrame:
    """Three lists of the same five objects on either of two images."""
    rng = np.random.default_rng(1)
    truth = np.tile(np.arange(10), 3)
    y = rng.poisson(rng.gamma(1.0, 200.0, (10, 3))[truth])
    return pd.DataFrame({
        "id": [f"{letter}{number}" for letter in "abc" for number in range(10)],
        "expert": np.repeat(["ann", "bob", "cleo"], 10),
        "image": np.where(truth < 5, "left", "right"),
        "red": y[:, 0],
        "green": y[:, 1],
        "blue": y[:, 2],
    })  # fmt: skip


def run(*command: str, folder: Path) -> str:
    """Run Python without a compiler, where the example can be imported."""
    path = os.pathsep.join([str(EXAMPLE.parent), str(ROOT / "src")])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_page_shows_the_file():
    [module, _] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert module == EXAMPLE.read_text(encoding="utf-8")


def test_the_checks_that_the_page_asks_for(tmp_path):
    run("-c", CHECKS, folder=tmp_path)


def test_the_whole_way_from_file_to_report(tmp_path, monkeypatch):
    table = frame()
    table.to_csv(tmp_path / "counts.csv", index=False)
    said = run("-c", WHOLE_WAY, folder=tmp_path)
    assert said.splitlines()[-1] == "2"
    members = pd.read_csv(tmp_path / "run" / "members.csv")
    assert members.groupby("cluster").size().tolist() == [3] * 10
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    named = ("--likelihood", "counts:COUNTS", "--quiet")
    assert main(["report", str(tmp_path / "run"), *named]) == 0
    assert "left" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    pages = sorted((tmp_path / "run" / "pages").glob("*/*.html"))
    assert len(pages) == 2
    assert "explorer" in pages[0].read_text(encoding="utf-8")


def test_negative_counts_are_refused(tmp_path):
    table = frame()
    table.loc[3, "red"] = -1
    table.to_csv(tmp_path / "counts.csv", index=False)
    program = """
import dfcrp
try:
    dfcrp.fit(dfcrp.read_items("counts.csv", "counts:COUNTS"), scans=10)
except dfcrp.errors.InputError as error:
    print(error)
"""
    assert "negative" in run("-c", program, folder=tmp_path)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("counts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["counts"] = module
    spec.loader.exec_module(module)
    return module


def test_a_changed_source_is_compiled_again(tmp_path, monkeypatch):
    """Compiled code is found by what it was made from, comments and docstrings left out."""
    monkeypatch.setitem(sys.modules, "counts", None)
    source, found = EXAMPLE.read_text(encoding="utf-8"), []
    changed = source.replace("theta[k, MEMBERS] += 1.0", "theta[k, MEMBERS] += 2.0")
    assert changed != source
    for version, text in enumerate([source, source + "\n# a remark\n", changed]):
        path = tmp_path / f"counts{version}.py"
        path.write_text(text)
        found.append(table_unit(LIKELIHOOD, load(path).CountHyper).digest)
    assert found[0] == found[1]
    assert found[0] != found[2]
