"""Runs ``tests/interpreted``, where kernels are plain Python, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_kernels_in_parts():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, str(TESTS / "interpreted")]
    done = subprocess.run(
        command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
