"""Kernels as plain Python, so that their parts can be replaced and random numbers handed to them.

``exact/test_kernels_in_parts.py`` runs this folder with NUMBA_DISABLE_JIT=1; as a part of other
tests, where kernels are compiled, it is left out.
"""

from __future__ import annotations

from dfcrp.compiled.jit import INTERPRETED

collect_ignore_glob = [] if INTERPRETED else ["test_*.py"]
