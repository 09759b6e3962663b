"""What holds for all tests.

A test that fails now and then on a busy machine says nothing: Hypothesis tries the same examples
each time, however long one of them takes. ``fuzz/`` is where other examples are looked for.

A report has a dozen figures; to lay them out and turn them into files takes five seconds, and well
over a hundred tests write reports for something else. Their figures are drawn onto axes, from
their own tables, and an empty figure is saved in their place. Tests that are about figures are
marked ``figures`` and save them as they are; ``./run test --all`` does so in all tests.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dfcrp.plots import drawing

settings.register_profile(
    "dfcrp", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dfcrp")

ALL = "DFCRP_ALL_TESTS" in os.environ


class QuickFigures:
    """In place of ``render``, which turns a drawn figure into files."""

    def __init__(self) -> None:
        self.render = drawing.render
        self.real = True
        self.empty: dict[str, bytes] = {}

    def __call__(self, figure: Any, kinds: Sequence[str]) -> dict[str, bytes]:
        """The files of the figure, or of an empty one."""
        if self.real:
            return self.render(figure, kinds)
        from matplotlib.figure import Figure

        for kind in set(kinds) - self.empty.keys():
            self.empty.update(self.render(Figure((1.0, 1.0)), [kind]))
        return {kind: self.empty[kind] for kind in kinds}


QUICK_FIGURES = QuickFigures()


def pytest_configure() -> None:
    """One core for each test process: helpers and threads of two would hold each other up."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})
    drawing.MAX_HELPERS = 0
    drawing.render = QUICK_FIGURES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is marked ``long`` to ``./run test --all``."""
    if not ALL:
        leave = pytest.mark.skip(reason="long; ./run test --all runs it")
        for item in items:
            if item.get_closest_marker("long") is not None:
                item.add_marker(leave)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before fixtures, which may write reports for several tests."""
    QUICK_FIGURES.real = ALL or item.get_closest_marker("figures") is not None
