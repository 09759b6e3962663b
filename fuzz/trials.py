"""Tests run again and again on kernels with a mistake in them, each time in a forked process.

Pytest collects all tests once, in a process without threads. From then on this plugin has the
floor: a child for each test finds out which lines of kernels it runs and how long that takes,
and a child for each mutant makes the mistake and runs the tests that come by its line until one
fails. Nothing is imported, collected or compiled again, and whatever a child breaks ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from fuzz.mutations import Mutant, code_with

SURVIVED, KILLED, OUT_OF_TIME, NOT_RUN = "survived", "killed", "out of time", "not run"
MEMORY = 4 << 30
#: Of the processor time that a test takes without a mistake, traced.
PATIENCE = 5.0
LEAST_SECONDS = 2.0
#: After so many lines without a new one a function is no longer watched.
DULL = 2000
_FAILED, _BROKEN = 1, 70


@dataclass
class Test:
    """What a test does without any mistake."""

    seconds: float
    #: By module: the lines of its kernels that the test runs.
    lines: dict[str, set[int]]


@dataclass
class Trial:
    """What came of one mutant."""

    outcome: str
    seconds: float
    #: The test that noticed it.
    by: str = ""


@dataclass(eq=False)
class Floor:
    """The plugin: hands the collected tests to ``act`` in place of running them."""

    act: Callable[[Floor], None]
    #: Tests that take longer, traced, are not used.
    longest: float
    modules: dict[str, ModuleType]
    items: dict[str, pytest.Item] = field(default_factory=dict)
    tests: dict[str, Test] = field(default_factory=dict)
    #: By function: how often a test was tried and how often it failed.
    luck: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _pipe: int = -1
    _copies: dict[CodeType, list[FunctionType]] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Called once, after all tests were collected."""
        for item in session.items:
            left_out = any(mark.name in ("long", "xfail") for mark in item.iter_markers())
            if not left_out:
                self.items[item.nodeid] = item
        if threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1:
            raise RuntimeError("a process with threads must not fork")
        for one in gc.get_objects():
            if isinstance(one, FunctionType):
                self._copies.setdefault(one.__code__, []).append(one)
        gc.freeze()
        self.act(self)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> None:
        """In a child: the first failure ends it."""
        wrong = call.excinfo
        if self._pipe >= 0 and wrong is not None and not wrong.errisinstance(pytest.skip.Exception):
            os._exit(_FAILED)

    # Without mistakes ----------------------------------------------------------------------------

    def look_at(self, name: str) -> Test | None:
        """Run one test: its time and lines, or None if it fails or takes too long."""

        def run() -> None:
            signal.setitimer(signal.ITIMER_PROF, self.longest)
            places = {str(module.__file__): name for name, module in self.modules.items()}
            lines: dict[str, set[int]] = {}
            with _watched(places, lines):
                self._run(name, None)
            self._tell(lines)

        code, seconds, said = self._child(run)
        if code == _BROKEN:
            raise RuntimeError(f"{name} could not be run")
        return Test(seconds, said) if code == 0 else None

    # With one ------------------------------------------------------------------------------------

    def order(self, mutant: Mutant, budget: float) -> list[str]:
        """The tests that come by a mutant: those first that promise most for their time."""
        first, last = mutant.lines
        short = mutant.module.removeprefix("dfcrp.")
        place = f"{mutant.module}.{mutant.function}"
        found = []
        for name, test in self.tests.items():
            if any(first <= line <= last for line in test.lines.get(short, ())):
                tried, failed = self.luck.get((place, name), (0, 0))
                # A test of few modules is the more likely to be about this one.
                cost = test.seconds * len(test.lines)
                found.append((cost * (tried + 2) / (failed + 1), name))
        found.sort()
        spent = 0.0
        chosen: list[str] = []
        for _, name in found:
            spent += self.tests[name].seconds
            if chosen and spent > budget:
                break
            chosen.append(name)
        return chosen

    def attempt(self, mutant: Mutant, budget: float) -> Trial:
        """Make one mistake and run tests until one fails."""
        names = self.order(mutant, budget)
        if not names:
            return Trial(SURVIVED, 0.0)
        module = self.modules[mutant.module.removeprefix("dfcrp.")]
        whole = getattr(module, mutant.function)
        old = getattr(whole, "py_func", whole).__code__
        code = code_with(module, mutant)

        def run() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            for function in self._copies[old]:
                function.__code__ = code
            for name, after in zip(names, [*names[1:], None], strict=True):
                os.write(self._pipe, f"{name}\n".encode())
                limit = max(PATIENCE * self.tests[name].seconds, LEAST_SECONDS)
                signal.setitimer(signal.ITIMER_PROF, limit)
                self._run(name, after)

        status, seconds, begun = self._child(run, plain=True)
        outcome = {0: SURVIVED, _FAILED: KILLED, -signal.SIGPROF: OUT_OF_TIME}.get(status, NOT_RUN)
        self._learn(f"{mutant.module}.{mutant.function}", begun, outcome != SURVIVED)
        last = begun[-1] if begun and outcome != SURVIVED else ""
        return Trial(outcome, seconds, last)

    def _learn(self, place: str, begun: list[str], noticed: bool) -> None:
        for name in begun:
            self.luck.setdefault((place, name), [0, 0])[0] += 1
        if noticed and begun:
            self.luck[(place, begun[-1])][1] += 1

    # Children ------------------------------------------------------------------------------------

    def _run(self, name: str, after: str | None) -> None:
        item = self.items[name]
        following = None if after is None else self.items[after]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _tell(self, said: object) -> None:
        with os.fdopen(self._pipe, "wb", closefd=False) as file:
            pickle.dump(said, file)

    def _child(self, run: Callable[[], None], *, plain: bool = False) -> tuple[int, float, Any]:
        """How a process ended that did this, its processor time, and what it said."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            status = _BROKEN
            try:
                os.close(reader)
                self._pipe = writer
                nowhere = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nowhere, stream)
                run()
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            content = file.read()
        _, status, used = os.wait4(child, 0)
        code = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        if plain:
            return code, seconds, content.decode().splitlines()
        return code, seconds, pickle.loads(content) if code == 0 else None


@contextlib.contextmanager
def _watched(places: dict[str, str], lines: dict[str, set[int]]) -> Iterator[None]:
    """Note the lines of these files that are run, but for those that come up late and rarely."""

    dull: dict[CodeType, int] = {}

    def watch(frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        name = places.get(code.co_filename)
        if name is None or dull.get(code, 0) > DULL:
            return None
        seen = lines.setdefault(name, set())

        def line(frame: FrameType, event: str, _: object) -> Any:
            number = frame.f_lineno
            if number not in seen:
                seen.add(number)
                dull[code] = 0
                return line
            dull[code] = dull.get(code, 0) + 1
            return line if dull[code] <= DULL else None

        return line

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(None)
