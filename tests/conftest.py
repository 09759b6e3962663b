"""What holds for all tests.

A test that fails now and then on a busy machine says nothing: Hypothesis tries the same examples
each time, however long one of them takes. ``fuzz/`` is where other examples are looked for.

A report has a dozen figures; to draw them takes a second, to lay them out and turn them into files
another five, and well over a hundred tests write reports for something else. There the figures'
tables are prepared, and an empty figure is saved for each. Tests of data that might be hard to draw
are marked ``drawn``: figures are drawn, and an empty one is saved. Tests that are about figures are
marked ``figures`` and save them as they are; ``./run test --all`` does so in all tests.

Nothing has to come to a real disk: to wait for it takes longer than all else in a small run.
``./run test --all`` does wait; tests of what is on disk when a process ends do not depend on it.
"""

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from dfcrp.files import write_bytes
from dfcrp.plots import drawing

settings.register_profile(
    "dfcrp", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dfcrp")

ALL = "DFCRP_ALL_TESTS" in os.environ


class QuickFigures:
    """In place of ``draw_one`` and ``render``, by which a figure becomes files."""

    def __init__(self) -> None:
        self.really_draw, self.really_render = drawing.draw_one, drawing.render
        self.drawn = self.rendered = True
        self.empty: dict[str, bytes] = {}

    def render(self, figure: Any, kinds: Sequence[str]) -> dict[str, bytes]:
        """The files of the figure, or of an empty one."""
        if self.rendered:
            return self.really_render(figure, kinds)
        from matplotlib.figure import Figure

        for kind in set(kinds) - self.empty.keys():
            self.empty.update(self.really_render(Figure((1.0, 1.0)), [kind]))
        return {kind: self.empty[kind] for kind in kinds}

    def draw(self, order: drawing.Order) -> drawing.DrawnFigure:
        """The figure, or an empty one with its files."""
        if self.drawn or self.rendered:
            return self.really_draw(order)
        order.folder.mkdir(parents=True, exist_ok=True)
        for kind, content in self.render(None, order.formats).items():
            write_bytes(order.folder, f"{order.below}{order.name}.{kind}", content, durable=False)
        kind = "image/jpeg" if order.photo else "image/svg+xml"
        content = self.render(None, ["png" if order.photo else "svg"]).popitem()[1]
        return drawing.DrawnFigure(order.name, kind, content, 1.0)


QUICK_FIGURES = QuickFigures()


def pytest_configure() -> None:
    """One core for each test process: helpers and threads of two would hold each other up."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})
    if not ALL:
        os.fsync = lambda _: None
    drawing.MAX_HELPERS = 0
    drawing.draw_one, drawing.render = QUICK_FIGURES.draw, QUICK_FIGURES.render


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
    QUICK_FIGURES.rendered = ALL or item.get_closest_marker("figures") is not None
    QUICK_FIGURES.drawn = item.get_closest_marker("drawn") is not None
