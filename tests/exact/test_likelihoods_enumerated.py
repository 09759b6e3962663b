"""Every likelihood with parameters integrated out: enumerated posterior, and Geweke's test.

The work is done by ``reference/interpreted.py`` in a process of its own, where the kernels' source
runs as plain Python. Updates must have the enumerated posterior as a fixed point; a density that is
wrong by 5 % must show, and so must arrival slots that are traded without their weights. Geweke
makes eight comparisons by 30 batches for each likelihood; 5.6 standard errors are exceeded once in
1e5. The normal likelihoods by groups of features are compiled for other tests, which give them the
same treatment (``statistical/test_feature_posterior``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "reference" / "interpreted.py"
TOLERANCE = 1e-10
LARGEST_Z = 5.6


@pytest.fixture(scope="module")
def found() -> dict:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


PLAIN = ["points", "boxes", "ellipses", "intervals", "diagonal", "normal", "records"]
UNLIKE = ["points, experts", "boxes, experts", "normal, experts"]


@pytest.mark.parametrize("kind", [*PLAIN, *UNLIKE])
def test_updates_leave_the_enumerated_posterior(found, kind):
    changes = found["exactness"][kind]
    assert changes["one"] < TOLERANCE
    assert changes["two"] < TOLERANCE
    assert changes["planted"] > 1e-4
    assert changes["blind"] > 1e-4


@pytest.mark.parametrize("kind", ["normal", "records"])
def test_geweke(found, kind):
    assert found["geweke"][kind]["z"] < LARGEST_Z
    assert found["geweke"][kind]["planted"] > LARGEST_Z
