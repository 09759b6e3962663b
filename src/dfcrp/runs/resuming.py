"""``dfcrp.resume``: go on with a run that was stopped or killed, or extend a finished one.

The draws are those of a run that was never stopped: each chain goes on from its checkpoint.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfcrp.errors import DfcrpWarning, RunFolderError, SettingsError
from dfcrp.fitting import as_images, finish, is_imagewise
from dfcrp.items.items import Items
from dfcrp.posterior.images import ImagesPosterior
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.checkpoints import FOLDER, ChainFolder, scans_at
from dfcrp.runs.dask import ClusterRunner, connected
from dfcrp.runs.folder import (
    CONFIG,
    read_beginning,
    read_provenance,
    record_of,
    versions,
    write_provenance,
    write_settings,
)
from dfcrp.runs.image_store import ImageStore
from dfcrp.runs.lock import locked
from dfcrp.runs.running import FolderStore, Sitting, Watch
from dfcrp.runs.running_images import ImagesSitting
from dfcrp.sampling.setup import problem_of
from dfcrp.settings.config import Config, resolve, settings_of_draws


def resume(
    path: str | os.PathLike[str],
    *,
    scans: int | None = None,
    max_scans: int | None = None,
    max_minutes: float | None = None,
    workers: int | None = None,
    progress: Callable[[Any], None] | None = None,
    on_look: Callable[[Posterior], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    dask: str | os.PathLike[str] | None = None,
) -> Posterior | ImagesPosterior:
    """Go on with the run in a folder and return its posterior.

    Without settings it goes on to where it was meant to end. ``scans``, the scans of each chain
    in all, or ``max_scans``, for a run that ends when its verdict is good, take it further than
    that. ``max_minutes`` counts from now. The rest is as in ``dfcrp.fit``.
    """
    found = find_run(
        path, scans=scans, max_scans=max_scans, max_minutes=max_minutes, workers=workers
    )
    return go_on(found, Watch(progress, on_look, on_stop), dask)


@dataclass(frozen=True)
class FoundRun:
    """A run that can be gone on with."""

    folder: Path
    markings: Items
    #: With the settings that were changed for what is to come.
    config: Config
    #: Scans that each chain had done at its checkpoint; of many images, the fewest of each.
    scans: list[int]


def find_run(path: str | os.PathLike[str], **changes: Any) -> FoundRun:
    """Read a run folder, and refuse it unless it is as the run left it.

    ``changes`` are settings of how long to go on; None leaves one as it is.
    """
    folder = Path(path)
    markings, config = read_beginning(folder)
    if not (folder / FOLDER).is_dir():
        raise RunFolderError(
            f"{folder}: holds no checkpoints, so it cannot be gone on with: it was saved from "
            "memory, or by an earlier version; fit again, with the folder as out="
        )
    _refuse_other_settings(folder, config)
    if is_imagewise(markings, config):
        scans = ImageStore(folder, config).scans(len(markings.images))
        reached = max(scans)
    else:
        scans = scans_at(folder, config.run.chains)
        reached = min(scans)
    config = _changed(config, {k: v for k, v in changes.items() if v is not None}, reached)
    return FoundRun(folder, markings, config, scans)


def go_on(
    found: FoundRun, watch: Watch, dask: str | os.PathLike[str] | None = None
) -> Posterior | ImagesPosterior:
    """Draw what is missing, then write tables and record anew."""
    folder, config, markings = found.folder, found.config, found.markings
    if is_imagewise(markings, config):
        return _go_on_with_images(found, watch, dask)
    problem = problem_of(markings, config)
    with connected(dask) as client, locked(folder):
        _warn_of_other_versions(folder)
        chains = [
            ChainFolder.open(folder, number, len(markings), problem.columns)
            for number in range(config.run.chains)
        ]
        elsewhere = None if client is None else ClusterRunner(client, folder, config)
        store = FolderStore(folder, chains)
        sitting = Sitting(problem, store, markings, config, watch, elsewhere=elsewhere)
        sitting.runner.restore()
        _forget_lost_results(sitting, found)
        write_settings(folder, config)
        posterior = as_images(sitting.run())
        finish(folder, posterior)
    return posterior


def _go_on_with_images(
    found: FoundRun, watch: Watch, dask: str | os.PathLike[str] | None
) -> ImagesPosterior:
    folder = found.folder
    with connected(dask) as client, locked(folder):
        _warn_of_other_versions(folder)
        sitting = ImagesSitting(found.markings, found.config, watch, folder, client)
        before = read_provenance(folder).get("run", {})
        sitting.seconds_before = float(before.get("seconds", 0.0))
        write_settings(folder, found.config)
        posterior = sitting.run()
        finish(folder, posterior)
    return posterior


def _forget_lost_results(sitting: Sitting, found: FoundRun) -> None:
    """Take back the record of results of which the draws are no longer there."""
    runner, provenance = sitting.runner, read_provenance(found.folder)
    if "run" in provenance and runner.scans < record_of(found.folder, provenance).scans:
        # Checkpoints were deleted.
        write_provenance(found.folder, found.markings, found.config, None)


def _changed(config: Config, changes: dict[str, Any], scans: int) -> Config:
    """The settings for what is to come; fewer scans than there are would be none of that."""
    run = config.run
    if "scans" in changes and "max_scans" in changes:
        raise SettingsError("give --scans or --max-scans, not both")
    if "max_scans" in changes and run.scans is not None:
        raise SettingsError(
            f"--max-scans is for runs that end when their verdict is good; this one is of "
            f"{run.scans:,} scans: extend it with --scans"
        )
    for name in ("scans", "max_scans"):
        if name in changes and changes[name] < scans:
            raise SettingsError(
                f"--{name.replace('_', '-')} is {changes[name]:,}, but the run has {scans:,} scans "
                "already; it counts from the start of the run, so give a larger number"
            )
    return resolve(config, changes)


def _refuse_other_settings(folder: Path, config: Config) -> None:
    """Draws with other settings would be draws of something else."""
    begun = read_provenance(folder).get("settings_of_draws")
    if not isinstance(begun, dict):
        raise RunFolderError(f"{folder}: provenance.json does not say with which settings it began")
    # Through JSON's eyes, in which a tuple is a list.
    now = json.loads(json.dumps(settings_of_draws(config)))
    differing = [
        f"{name} is {now.get(name)!r}, it was {begun.get(name)!r}"
        for name in sorted({*now, *begun})
        if now.get(name) != begun.get(name)
    ]
    if differing:
        raise RunFolderError(
            f"{folder / CONFIG}: was changed since the run began: {'; '.join(differing)}. "
            "Put it back to go on, or start a new run with `dfcrp fit`"
        )


def _warn_of_other_versions(folder: Path) -> None:
    begun, now = read_provenance(folder), versions()
    differing = [name for name in now if begun.get(name) != now[name]]
    if differing:
        warnings.warn(
            f"{folder}: the run was begun with another version of {', '.join(differing)}; what is "
            "drawn from here on is as valid, but may not be what that version would have drawn",
            DfcrpWarning,
            stacklevel=3,
        )
