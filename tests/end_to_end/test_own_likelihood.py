"""The worked example of docs/own-likelihood.md, run as plain Python: nothing has to be compiled."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np

from dfcrp.likelihoods.own import fingerprint

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own-likelihood.md"
PROGRAM = """
import numpy as np
from dfcrp.kernels import integrated, likelihood

rng = np.random.default_rng(1)
truth = np.tile(np.arange(6), 3)
source = np.repeat(["p", "q", "r"], 6)
y = rng.poisson(rng.gamma(1.0, 60.0, (6, 3))[truth]).astype(float)
channels = ["red", "green", "blue"]
source_codes = np.repeat([0, 1, 2], 6)
import functools, dfcrp.likelihoods.own as own
own.sample_own = functools.partial(own.sample_own, scans=60, burn_in=20, chains=1)
%s
hyper = make_counts(y)
theta = np.zeros((1, SUMS + 3))
integrated.empty_row(hyper, theta, 0)
total = 0.0
for i in range(4):
    total += likelihood.log_density(hyper, theta, 0, y, i)
    likelihood.add_member(hyper, theta, 0, y, i)
assert abs(total - integrated.log_marginal(hyper, theta, 0)) < 1e-9
before = theta.copy()
likelihood.add_member(hyper, theta, 0, y, 5)
likelihood.remove_member(hyper, theta, 0, y, 5)
assert np.allclose(theta, before)
from sklearn.metrics import adjusted_rand_score
assert adjusted_rand_score(truth, partition.labels) > 0.8, partition.labels
print("fine")
"""


def examples() -> tuple[str, str]:
    module, use = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return module, use


def test_the_example_works(tmp_path):
    module, use = examples()
    assert 55 <= len(module.splitlines()) <= 100
    (tmp_path / "counts.py").write_text(module)
    (tmp_path / "program.py").write_text(PROGRAM % use)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "fine\n", done.stderr[-2000:]


def load(path: Path) -> object:
    spec = importlib.util.spec_from_file_location("counts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["counts"] = module
    spec.loader.exec_module(module)
    return module


def test_a_changed_source_is_another_type(tmp_path, monkeypatch):
    """Compiled samplers are found by type; one of another source must not be."""
    monkeypatch.setitem(sys.modules, "counts", None)
    kinds = []
    for version, extra in enumerate(["", "", "\nCHANGED = 1\n"]):
        path = tmp_path / f"counts{version}.py"
        path.write_text(examples()[0] + extra)
        kinds.append(numba.typeof(fingerprint(load(path))))  # type: ignore[arg-type]
    assert kinds[0] == kinds[1]
    assert kinds[0] != kinds[2]
    hyper = sys.modules["counts"].make_counts(np.ones((3, 2)))
    assert numba.typeof(hyper.source) == kinds[2]
