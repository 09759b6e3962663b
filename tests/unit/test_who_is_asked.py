"""No code outside the registries asks which kind of item or which prior it works for."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dfcrp
from dfcrp.likelihoods import registry as likelihoods
from dfcrp.priors import registry as priors

ROOT = Path(dfcrp.__file__).parent
#: The rooms in which any kind and any prior must do.
ROOMS = (
    "sampling",
    "moves",
    "posterior",
    "report",
    "summaries",
    "plots",
    "evaluation",
    "first_look",
)
#: One likelihood or prior each.
PARTS = tuple(
    sorted(
        {home.rpartition(".")[0] for one in (likelihoods, priors) for home in one.HOMES.values()}
    )
)
#: What belongs to one of them though it lies elsewhere, as the page on architecture says.
BELONGS = {
    ("moves.paper", "dfcrp.priors.arrivals"),
    ("plots.detection", "dfcrp.priors.detection"),
    ("posterior.categories", "dfcrp.priors.detection"),
}
#: Modules that find others by name: what is loaded when first used, and a package of choice.
BY_NAME = {
    *("__init__", "baselines.__init__", "plots.__init__", "cli.main"),
    *("likelihoods.registry", "priors.registry", "compiled.abi", "compiled.build"),
    *("compiled.library", "io.georeference"),
}


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders or (".",):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    """What is imported when the module runs, not for types alone."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def compared(tree: ast.Module) -> Iterator[str]:
    """Names of kinds and priors that something is compared with."""
    names = {*likelihoods.HOMES, *priors.HOMES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                for part in ast.walk(side):
                    if isinstance(part, ast.Constant) and part.value in names:
                        yield str(part.value)


def test_no_kind_and_no_prior_is_imported():
    found = {
        (name, part)
        for name, tree in modules(*ROOMS)
        for one in imported(tree)
        for part in PARTS
        if f"{one}.".startswith(f"{part}.")
    }
    assert found == BELONGS


def test_no_kind_and_no_prior_is_asked_for_by_name():
    assert not {(name, one) for name, tree in modules(*ROOMS) for one in compared(tree)}


@pytest.mark.parametrize("text", ['kind == "circles"', 'prior in ("crp", "dfcrp")'])
def test_a_question_would_be_seen(text):
    assert set(compared(ast.parse(text)))


def test_few_modules_find_others_by_name():
    found = {name for name, tree in modules() if "import_module" in ast.unparse(tree)}
    assert found == BY_NAME


#: A run of circles under the DFCRP, and what it has loaded by the end.
RUN = """
import sys, dfcrp
settings = {"likelihood": "circles", "scans": 4, "chains": 2, "progress": False}
posterior = dfcrp.fit([[0, 0, 9], [1, 1, 9]], families=["a", "b"], **settings)
posterior.summary(), posterior.catalogue()
print(*(name for name in sys.modules if name.startswith("dfcrp.")))
"""
#: What such a run has no use for.
BESIDE = (
    *("priors.detection", "priors.attraction", "likelihoods.record", "moves.paper", "report"),
    *("craterstats", "posterior.sizes"),
    # Nothing is read from a file, nor written to one.
    *("io.formats", "io.spans", "io.outgoing"),
)
BESIDE_MODULES = tuple(f"dfcrp.{name}" for name in BESIDE)


def test_a_run_loads_no_part_that_it_does_not_use():
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN], capture_output=True, text=True, check=True
    )
    loaded = told.stdout.split()
    assert "dfcrp.priors.arrivals.prior" in loaded
    assert [name for name in loaded if f"{name}.".startswith(BESIDE_MODULES)] == []
