"""The name of a wheel says on which machines its compiled code runs."""

import platform
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="hatchling builds wheels")

from build_kernels import needed_to_load, platform_tag


@pytest.fixture
def glibc(monkeypatch):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))


def library(folder, name, *versions):
    folder.mkdir(exist_ok=True)
    symbols = b"\0".join(f"GLIBC_{version}".encode() for version in versions)
    (folder / name).write_bytes(b"\x7fELF\0" + symbols + b"\0free\0")


def test_a_wheel_asks_for_the_newest_glibc_of_any_library(glibc, tmp_path):
    library(tmp_path / "a", "one.so", "2.2.5", "2.29", "2.9")
    library(tmp_path / "a", "two.so", "2.14")
    assert platform_tag(str(tmp_path)) == "manylinux_2_29_x86_64"


def test_a_wheel_that_asks_for_little_names_the_oldest_that_is_known(glibc, tmp_path):
    library(tmp_path, "one.so", "2.2.5")
    assert platform_tag(str(tmp_path)) == "manylinux_2_17_x86_64"


@pytest.mark.parametrize(
    ("machine", "tag"),
    [("win-amd64", "win_amd64"), ("linux-x86_64", "linux_x86_64")],
)
def test_other_machines_keep_their_names(monkeypatch, tmp_path, machine, tag):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    library(tmp_path, "one.so", "2.29")
    assert platform_tag(str(tmp_path)) == tag


@pytest.mark.parametrize(
    ("python", "processor", "asked", "tag"),
    [
        ("macosx-11.0-arm64", "arm64", None, "macosx_11_0_arm64"),
        ("macosx-10.9-universal2", "arm64", None, "macosx_11_0_arm64"),
        ("macosx-10.9-universal2", "x86_64", None, "macosx_10_9_x86_64"),
        ("macosx-10.13-x86_64", "x86_64", "12", "macosx_12_0_x86_64"),
    ],
)
def test_a_wheel_for_macos_is_for_one_processor(
    monkeypatch, tmp_path, python, processor, asked, tag
):
    """A Python for two has kernels for that which it runs on."""
    monkeypatch.setattr(sysconfig, "get_platform", lambda: python)
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.delenv("MACOSX_DEPLOYMENT_TARGET", raising=False)
    if asked is not None:
        monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", asked)
    assert platform_tag(str(tmp_path)) == tag


def test_a_wheel_with_object_code_asks_for_llvmlite(tmp_path, capsys):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    (tmp_path / "unit.so").write_bytes(b"")
    assert needed_to_load(str(tmp_path), project["project"]) == []
    assert capsys.readouterr().err == ""
    (tmp_path / "unit.o").write_bytes(b"")
    [needed] = needed_to_load(str(tmp_path), project["project"])
    assert needed.startswith("llvmlite>=")
    assert "the wheel will ask for llvmlite" in capsys.readouterr().err


#: Refuses what dfcrp needs to run, then looks up all that a wheel carries.
LIGHT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"{{name}} is not there when a wheel is built", name=name)

sys.meta_path.insert(0, Refuse())
from dfcrp.compiled.build import everything
from dfcrp.compiled.library import unit_named

print(len([unit_named(name).stem for name in everything()]))
"""
#: Distributions whose module has another name.
MODULES = {"pillow": "PIL", "arviz-base": "arviz_base", "pyshp": "shapefile", "tomli-w": "tomli_w"}


def test_kernels_are_compiled_with_what_the_build_asks_for_alone():
    """``pip install .`` compiles in an environment that holds the build's requirements only."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))

    def names(requirements):
        return {re.split(r"[<>=!~;\[ ]", one)[0] for one in requirements}

    absent = names(project["project"]["dependencies"]) - names(project["build-system"]["requires"])
    assert {"click", "pandas"} <= absent
    absent = {MODULES.get(name, name) for name in absent}
    done = subprocess.run(
        [sys.executable, "-c", LIGHT.format(absent=absent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
