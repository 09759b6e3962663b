"""One core for each test process: helpers and threads of two tests would only hold each other up."""

import os


def pytest_configure() -> None:
    """Keep this process, and all that it starts, to one of the cores."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})
