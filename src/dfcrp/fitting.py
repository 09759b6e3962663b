"""``dfcrp.fit``: from markings and settings to a Posterior."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from dfcrp.config import Config, load_config, make_config
from dfcrp.errors import DfcrpError, InputError, SettingsError
from dfcrp.markings import Markings
from dfcrp.posterior.convergence import choose_burn_in, scalar_series
from dfcrp.posterior.folder import (
    discard_folder,
    prepare_folder,
    write_provenance,
    write_results,
)
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.sampling.draws import Draws
from dfcrp.sampling.problem import PARAMETER_NAMES
from dfcrp.sampling.runner import MemoryWriter, Progress, Runner, Writer, memory_draws
from dfcrp.sampling.setup import make_problem
from dfcrp.sampling.storage import DrawWriter, StoredDraws

#: Without a number of scans the run is looked at after so many, then after each doubling.
FIRST_LOOK = 500
#: The chains wait for each other about this often, so that a stop finds them level.
SECONDS_PER_ROUND = 5.0


def fit(
    markings: Markings,
    *,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    on_look: Callable[[Posterior], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    **settings: Any,
) -> Posterior:
    """Cluster the markings and return the posterior.

    ``settings`` are those of the run: chains, scans, burn_in, thin, max_scans, max_minutes,
    radius (a number, "auto" or None), seed, workers, sampler, prior, preset; and min_experts.
    ``config`` is a Config, a dict of its tables or a TOML file; ``settings`` win over it. Without
    ``scans`` the run goes on until the convergence verdict is good, or max_scans or max_minutes
    is reached. With ``out`` the draws go to that run folder as they come, and tables follow.

    Ctrl-C ends the run early and returns what there is; a second one interrupts as usual.
    ``progress`` is called from the chains' threads, ``on_look`` with the posterior as it stands
    before it is decided whether to go on, ``on_stop`` at Ctrl-C.
    """
    settled = settle(config, settings)
    check_fittable(markings)
    problem = make_problem(markings.features, markings.families, settled)
    run = settled.run
    store: _Store
    if out is None:
        store = _MemoryStore(run.chains)
    else:
        prepare_folder(Path(out), markings, settled)
        store = _FolderStore(Path(out), run.chains, len(markings))
    goal = _Goal(progress)
    runner = Runner(
        problem,
        store.writers,
        seed=run.seed,
        sampler=run.sampler,
        thin=run.thin,
        workers=run.workers,
        observer=goal.observe,
    )
    try:
        with _stopped_by_interrupt(runner, on_stop):
            posterior = _run_to_the_end(
                runner, store, markings, settled, goal=goal, on_look=on_look
            )
    except NothingDrawnError:
        if out is not None:
            discard_folder(Path(out))
        raise
    if out is not None:
        write_provenance(Path(out), markings, settled, posterior.record)
        write_results(posterior, Path(out))
    return posterior


def settle(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None, settings: dict[str, Any]
) -> Config:
    """All settings, from a config of any kind and keyword settings; unknown names are errors."""
    overrides: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        section = "summary" if name == "min_experts" else "run"
        unbounded = name == "radius" and value is None
        overrides.setdefault(section, {})[name] = "none" if unbounded else value
    if isinstance(config, Config):
        if "preset" in settings:
            raise SettingsError("a preset cannot be laid over a finished Config; put it inside")
        tables: Any = _as_tables(config)
    elif config is None or isinstance(config, Mapping):
        tables = config
    else:
        tables = load_config(config)
    return make_config(tables, overrides)


def _as_tables(config: Config) -> dict[str, Any]:
    import dataclasses

    tables = dataclasses.asdict(config)
    if tables["run"]["radius"] is None:
        tables["run"]["radius"] = "none"
    return tables


def check_fittable(markings: Markings) -> None:
    """Refuse what would be fitted wrongly in silence."""
    if len(markings.images) > 1:
        names = ", ".join(markings.images[:5])
        raise InputError(
            f"the markings are on {len(markings.images)} images ({names}...), whose coordinates "
            "overlap; choose one with image= (--image)"
        )


class NothingDrawnError(DfcrpError):
    """The run was stopped, or its time was over, before every chain had its first draw."""


class _Goal:
    """Tells whoever watches how far the chains are on their way to the next look."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self.scans = 0
        self._progress = progress

    def observe(self, seen: Progress) -> None:
        if self._progress is not None:
            self._progress(replace(seen, target=self.scans))


class _MemoryStore:
    def __init__(self, chains: int) -> None:
        self._memory = [MemoryWriter() for _ in range(chains)]
        self.writers: list[Writer] = list(self._memory)

    def draws(self, burn_in: int) -> Draws:
        return memory_draws(self._memory, burn_in)


class _FolderStore:
    def __init__(self, folder: Path, chains: int, n_markings: int) -> None:
        self._folder = folder
        self.writers: list[Writer] = [
            DrawWriter.create(folder, chain, n_markings, PARAMETER_NAMES) for chain in range(chains)
        ]

    def draws(self, burn_in: int) -> Draws:
        return StoredDraws(self._folder, burn_in=burn_in)


_Store = _MemoryStore | _FolderStore


@contextmanager
def _stopped_by_interrupt(runner: Runner, on_stop: Callable[[], None] | None) -> Iterator[None]:
    """Let Ctrl-C ask the chains to stop instead of raising wherever it happens to hit.

    Only the main thread may change what a signal does, and a handler of someone else is kept.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runner.stop()
        if on_stop is not None:
            on_stop()

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run_to_the_end(
    runner: Runner,
    store: _Store,
    markings: Markings,
    config: Config,
    *,
    goal: _Goal,
    on_look: Callable[[Posterior], None] | None,
) -> Posterior:
    """Advance to the asked-for scans, or in doubling spans until the verdict is good."""
    run = config.run
    deadline = None if run.max_minutes is None else time.monotonic() + 60.0 * run.max_minutes
    goal.scans = run.scans or min(FIRST_LOOK * run.thin, run.max_scans)
    while True:
        _advance_in_rounds(runner, goal.scans, run.thin, deadline)
        posterior = _look(runner, store, markings, config)
        if on_look is not None:
            on_look(posterior)
        if run.scans is not None or goal.scans >= run.max_scans or posterior.verdict.ok:
            return posterior
        if runner.stopped:
            # The stop may have come after the record was made.
            return _look(runner, store, markings, config)
        goal.scans = min(2 * goal.scans, run.max_scans)


def _advance_in_rounds(runner: Runner, scans: int, thin: int, deadline: float | None) -> None:
    """Bring all chains to so many scans, none of them far ahead of another.

    With more chains than workers the later chains would otherwise wait until the first are
    through, and a stop would find them empty. The first rounds are short: they compile.
    """
    step = thin
    while runner.scans + thin <= scans and not runner.stopped:
        before, seconds = runner.scans, runner.seconds
        runner.advance(min(before + step, scans), deadline)
        pace = (runner.seconds - seconds) / max(runner.scans - before, 1)
        draws = int(SECONDS_PER_ROUND / max(pace, 1e-9)) // thin
        step = thin * max(1, min(draws, 4 * step // thin))


def _look(runner: Runner, store: _Store, markings: Markings, config: Config) -> Posterior:
    """The posterior as it stands."""
    run = config.run
    scans = runner.scans
    if scans < run.thin:
        raise NothingDrawnError("stopped before the first draw: there is nothing to keep")
    if run.burn_in is not None:
        burn_in = min(run.burn_in, scans - run.thin)
    elif run.scans is not None:
        burn_in = scans // 4
    else:
        burn_in = choose_burn_in(scalar_series(store.draws(0))) * run.thin
    record = RunRecord(
        scans=scans,
        burn_in=burn_in,
        thin=run.thin,
        seconds=runner.seconds,
        stopped_early=runner.stopped,
        tallies=[chain.tally for chain in runner.chains],
    )
    return Posterior(store.draws(burn_in // run.thin), markings, config, record)
