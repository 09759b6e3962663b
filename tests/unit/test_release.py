"""What a release says of itself in several files is the same everywhere."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import dfcrp

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
#: Packages whose name differs between PyPI and conda-forge.
CONDA = {"matplotlib": "matplotlib-base"}


def requirements(lines: list[str]) -> dict[str, str]:
    """Lower bounds by name."""
    found = (re.fullmatch(r"([\w-]+)\s*>=([\d.]+)", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_the_version_is_in_one_place():
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/dfcrp/__init__.py"


def test_other_files_have_the_same_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"(?m)^version: (.+)$", citation)[1] == dfcrp.__version__
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert zenodo["version"] == dfcrp.__version__
    assert zenodo["license"] == PROJECT["project"]["license"]
    assert f'set version = "{dfcrp.__version__}"' in RECIPE


def test_the_recipe_needs_what_the_package_needs():
    run = re.search(r"(?s)\n  run:\n(.*?)\n\n", RECIPE)[1]
    listed = requirements([line.strip(" -") for line in run.splitlines()])
    wanted = requirements(PROJECT["project"]["dependencies"])
    assert listed == {"python": "3.11", **{CONDA.get(k, k): v for k, v in wanted.items()}}
