"""Experts who differ: each update leaves the joint distribution unchanged, for every kind of item.

The work is done by ``reference/unlike_experts.py`` in a process of its own, where the kernels'
source runs as plain Python. Each comparison has the false-alarm rate 1e-5 (Bonferroni over its
statistics), 1e-4 for this file; seeds are fixed. Every kind is also run with three planted bugs,
which must be caught. Circles in a plane have the same in ``test_one_step``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "reference" / "unlike_experts.py"
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


def test_an_update_leaves_the_joint_unchanged():
    """On the sphere, of which no other test compares whole draws of how experts differ."""
    found = outcome("--short")
    assert found["experts"] > FALSE_ALARM_RATE, found
    assert found["north_for_south"] < FALSE_ALARM_RATE, found


@pytest.mark.long
@pytest.mark.parametrize("kind", ["features", "vectors", "globe"])
def test_updates_leave_the_joint_unchanged(kind):
    found = outcome(kind)[kind]
    assert min(found["updates"].values()) > FALSE_ALARM_RATE, found
    assert len(found["bugs"]) == 3
    assert max(found["bugs"].values()) < FALSE_ALARM_RATE, found
