"""The kernels' source as plain Python: every likelihood with every prior and sampler.

``NUMBA_DISABLE_JIT=1`` lets small data be fitted without a compiler, and other tests rely on it.
Plain numbers overflow, underflow and divide otherwise than compiled ones, so the combinations are
run, until after the scan in which extra visits begin, and the draws of one are compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reference import every_kernel

SCRIPT = Path(every_kernel.__file__)


def run_interpreted(*options: str) -> dict:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, str(SCRIPT), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def interpreted() -> dict:
    return run_interpreted()


def test_every_part_runs(interpreted):
    assert interpreted["errors"] == {}


def test_the_parts_are_all_there():
    every, some = every_kernel.combinations(), every_kernel.some_combinations()
    assert set(some) <= set(every)
    assert {kind for kind, _, _ in some} == {kind for kind, _, _ in every}
    assert {(prior, sampler) for _, prior, sampler in some} == {
        (prior, sampler) for _, prior, sampler in every
    }


@pytest.mark.long
def test_every_combination_runs():
    assert run_interpreted("--all")["errors"] == {}


def test_draws_are_those_of_the_compiled_code(interpreted):
    compiled = every_kernel.draws_of("circles", "dfcrp", "exact")
    assert compiled.keys() == interpreted["draws"].keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(interpreted["draws"][name], values, rtol=1e-5, err_msg=name)
