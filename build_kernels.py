"""Puts compiled kernels into a wheel, as a step of hatchling's.

An installation in place (``pip install --editable``) goes without: its kernels change, and are
compiled into a cache when they are first used.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: A symbol that a library takes from glibc names the version it came with.
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
#: The oldest glibc that a wheel may name as "manylinux_2_..".
_OLDEST = (2, 17)


def platform_tag(folder: str) -> str:
    """The machines that the libraries in a folder run on, as wheels name them.

    On Linux these are all with the glibc that the libraries ask for, or a later one (PEP 600). PyPI
    takes wheels of that name only. The libraries use nothing but glibc.
    """
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if machine.startswith("macosx_"):
        return _on_macos(machine)
    if not machine.startswith("linux_") or platform.libc_ver()[0] != "glibc":
        return machine
    asked = [
        (int(major), int(minor))
        for library in Path(folder).rglob("*.so")
        for major, minor in _GLIBC.findall(library.read_bytes())
    ]
    major, minor = max([_OLDEST, *asked])
    return machine.replace("linux", f"manylinux_{major}_{minor}", 1)


def _on_macos(machine: str) -> str:
    """A Python for two architectures compiles kernels for the one that it runs on."""
    _, major, minor, *_ = machine.split("_")
    architecture = platform.machine()
    # The first one on Apple's own processors.
    oldest = (11, 0) if architecture == "arm64" else (10, 9)
    asked = os.environ.get("MACOSX_DEPLOYMENT_TARGET", f"{major}.{minor}").split(".")
    major, minor = max(oldest, (int(asked[0]), int((*asked, "0")[1])))
    return f"macosx_{major}_{minor}_{architecture}"


def needed_to_load(folder: str, project: dict[str, Any]) -> list[str]:
    """What a wheel asks for besides: llvmlite, if nothing here could link its code."""
    if not any(Path(folder).glob("*.o")):
        return []
    sys.stderr.write(
        "Nothing here links object code (a C compiler does), so the wheel will ask for llvmlite.\n"
    )
    return [one for one in project["optional-dependencies"]["own"] if one.startswith("llvmlite")]


class CompileKernels(BuildHookInterface):
    """Compiles everything built in, and names the machine that it is for."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        if version == "editable":
            return
        self._folder = tempfile.mkdtemp(prefix="dfcrp-kernels-")
        source = os.path.join(self.root, "src")
        subprocess.run(
            [sys.executable, "-P", "-m", "dfcrp.compiled.build", "--package", self._folder],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([source, *filter(None, sys.path)])},
        )
        build_data["force_include"][self._folder] = "dfcrp/_kernels"
        build_data["pure_python"] = False
        build_data["dependencies"] += needed_to_load(self._folder, self.metadata.config["project"])
        build_data["tag"] = f"py3-none-{platform_tag(self._folder)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called when the wheel is written."""
        if version != "editable":
            shutil.rmtree(self._folder)
