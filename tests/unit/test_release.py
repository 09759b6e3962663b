"""What a release says of itself in several files is the same everywhere."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dfcrp

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
#: Packages whose name differs between PyPI and conda-forge.
CONDA = {"matplotlib": "matplotlib-base"}


def requirements(lines: list[str]) -> dict[str, str]:
    """Bounds by name."""
    found = (re.fullmatch(r"([\w-]+)\s*>=([\d.,<]+)", line) for line in lines)
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


def test_the_version_agrees_with_the_changelog():
    """One in the making is newer than all that are described; another is the newest of them."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    [newest, *rest] = re.findall(r"(?m)^## \[(.+?)\]", changes)
    number, _, made = dfcrp.__version__.partition(".dev")
    if made:
        assert newest == "Unreleased"
        assert [int(part) for part in number.split(".")] > [int(k) for k in rest[0].split(".")]
    else:
        assert newest == number


def test_classifiers_say_what_the_tests_run_on():
    import versions

    listed = PROJECT["project"]["classifiers"]
    assert "Operating System :: OS Independent" not in listed
    assert "Typing :: Typed" in listed
    assert (ROOT / "src" / "dfcrp" / "py.typed").is_file()
    pythons = {one.rpartition(" ")[2] for one in listed if re.search(r":: 3\.\d+$", one)}
    least = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert pythons == {least, versions.NEWEST_PYTHON}


def rendered() -> dict[str, Any]:
    """The recipe as conda-build reads it: a Jinja template of YAML."""
    jinja2 = pytest.importorskip("jinja2", reason="Jinja is not installed")
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    names = {"PYTHON": "python", "compiler": lambda language: f"{language}-compiler"}
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(RECIPE)
    found: dict[str, Any] = yaml.safe_load(template.render(names))
    return found


def test_the_recipe_needs_what_the_package_needs():
    needs = rendered()["requirements"]
    wanted = requirements(PROJECT["project"]["dependencies"])
    assert requirements(needs["run"]) == {
        "python": "3.11",
        **{CONDA.get(k, k): v for k, v in wanted.items()},
    }
    assert requirements(needs["host"]) == {
        "python": "3.11",
        **requirements(PROJECT["build-system"]["requires"]),
    }
    assert needs["build"] == ["c-compiler"]


def test_the_recipe_is_whole():
    recipe = rendered()
    assert set(recipe) == {"package", "source", "build", "requirements", "test", "about"}
    assert recipe["package"] == {"name": "dfcrp", "version": dfcrp.__version__}
    assert (ROOT / "recipe" / recipe["source"]["path"]).resolve() == ROOT
    scripts = [f"{name} = {where}" for name, where in PROJECT["project"]["scripts"].items()]
    assert recipe["build"]["entry_points"] == scripts
    assert recipe["about"]["license"] == PROJECT["project"]["license"]
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def test_what_zenodo_asks_for_is_there():
    zenodo = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert zenodo["upload_type"] == "software"
    assert zenodo["access_right"] == "open"
    assert all(zenodo[name] for name in ("title", "description", "keywords"))
    assert all(set(one) <= {"name", "orcid", "affiliation"} for one in zenodo["creators"])
    assert all(one["name"] for one in zenodo["creators"])
