"""What holds for all tests.

A test that fails now and then on a busy machine says nothing: Hypothesis tries the same examples
each time, however long one of them takes. ``fuzz/`` is where other examples are looked for.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "dfcrp", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dfcrp")


def pytest_configure() -> None:
    """One core for each test process: helpers and threads of two would hold each other up."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is marked ``long`` to ``./run test --all``."""
    if "DFCRP_ALL_TESTS" not in os.environ:
        leave = pytest.mark.skip(reason="long; ./run test --all runs it")
        for item in items:
            if item.get_closest_marker("long") is not None:
                item.add_marker(leave)
