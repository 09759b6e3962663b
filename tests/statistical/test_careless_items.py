"""Careless items: each update leaves the joint distribution unchanged, for every kind of item.

The work is done by ``reference/careless_items.py`` in a process of its own, where the kernels'
source runs as plain Python. Each comparison has the false-alarm rate 1e-5 (Bonferroni over its
statistics); seeds are fixed. Planted bugs must be caught.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "reference" / "careless_items.py"
FALSE_ALARM_RATE = 1e-5


def outcome(argument: str) -> dict:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), argument],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_updates_of_circles_leave_the_joint_unchanged():
    found = outcome("--short")
    assert min(found["shared"], found["scan"]) > FALSE_ALARM_RATE, found
    assert found["blind"] < FALSE_ALARM_RATE, found


@pytest.mark.long
@pytest.mark.parametrize("kind", ["features", "vectors", "plane", "discs", "globe"])
def test_updates_leave_the_joint_unchanged(kind):
    found = outcome(kind)[kind]
    assert min(found["updates"].values()) > FALSE_ALARM_RATE, found
    assert found["bugs"]
    assert max(found["bugs"].values()) < FALSE_ALARM_RATE, found
