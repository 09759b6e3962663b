"""Puts compiled kernels into a wheel, as a step of hatchling's.

An installation in place (``pip install --editable``) goes without: its kernels change, and are
compiled into a cache when they are first used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileKernels(BuildHookInterface):
    """Compiles everything built in, and names the machine that it is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        if version == "editable":
            return
        self._folder = tempfile.mkdtemp(prefix="dfcrp-kernels-")
        source = os.path.join(self.root, "src")
        subprocess.run(
            [sys.executable, "-m", "dfcrp.compiled.build", "--package", self._folder],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)])},
        )
        build_data["force_include"][self._folder] = "dfcrp/_kernels"
        build_data["pure_python"] = False
        machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{machine}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if version != "editable":
            shutil.rmtree(self._folder)
