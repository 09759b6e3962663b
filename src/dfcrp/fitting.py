"""``dfcrp.fit``: from items and settings to a Posterior."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dfcrp.errors import DfcrpError, InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.items.matrix import items_of
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.persons import check_groups, groups_by_person, persons_of
from dfcrp.posterior.images import ImagesPosterior
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.registry import prior_named
from dfcrp.runs.checkpoints import ChainFolder, make_checkpoint_folder
from dfcrp.runs.dask import ClusterRunner, connected
from dfcrp.runs.folder import (
    discard_folder,
    make_folder,
    prepare_folder,
    write_provenance,
    write_results,
)
from dfcrp.runs.images_folder import over_images, record_images, write_images
from dfcrp.runs.lock import locked
from dfcrp.runs.parts import most_experts
from dfcrp.runs.running import FolderStore, MemoryStore, NothingDrawnError, Sitting, Watch
from dfcrp.runs.running_images import ImagesSitting
from dfcrp.sampling.setup import problem_of
from dfcrp.settings.config import Config, load_config, resolve, with_run


def fit(
    markings: Items | Any,
    *,
    families: Any = None,
    likelihood: str | None = None,
    candidates: Any = None,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[Any], None] | None = None,
    on_look: Callable[[Posterior], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    dask: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> Posterior | ImagesPosterior:
    """Cluster the markings and return the posterior: of several images, an ImagesPosterior.

    Instead of Items there may be a matrix or data frame with one row per item and any numeric
    columns: then ``families`` says whose list an item is on (left out: every item may share a
    cluster with every other), ``likelihood`` what the columns are ("diagonal", the default, or
    "normal" for any features; "points", "boxes", "ellipses"), and ``candidates``, pairs of row
    numbers, which items may share a cluster at all. See docs/features.md.

    ``settings`` are those of the run: chains, scans, burn_in, thin, max_scans, max_minutes,
    radius (a number, "auto" or None), seed, workers, checkpoint_seconds, sampler, prior, preset;
    expert_bias; min_experts; and image_file, image_y, image_offset, image_scale. ``config`` is a
    Config, a dict of its tables or a TOML file; ``settings`` win over it. Without ``scans`` the run
    goes on until the convergence verdict is good, or max_scans or max_minutes is reached. With
    ``out`` the draws go to that run folder as they come, and tables follow; ``dfcrp.resume`` goes
    on with such a run.

    Ctrl-C ends the run early and returns what there is; a second one interrupts as usual.
    ``progress``, ``on_look`` and ``on_stop`` are as in ``dfcrp.runs.running.Watch``. ``dask`` is
    the address or the scheduler file of a Dask cluster on which the chains are run; all its
    machines must see the folder ``out``.
    """
    markings, settled = prepare(
        markings, config, settings, families=families, likelihood=likelihood, candidates=candidates
    )
    watch = Watch(progress, on_look, on_stop)
    if dask is not None and out is None:
        raise SettingsError("on Dask a run needs a folder that all machines share; give out=")
    if out is not None:
        with connected(dask) as client:
            return _fit_in_folder(Path(out), markings, settled, watch, client)
    if is_imagewise(markings, settled):
        return ImagesSitting(markings, settled, watch).run()
    problem = problem_of(markings, settled)
    store = MemoryStore(settled.run.chains, problem.columns)
    return as_images(Sitting(problem, store, markings, settled, watch).run())


def fit_one(markings: Items, **arguments: Any) -> Posterior:
    """``fit`` for markings of one image only."""
    refuse_several_images(markings)
    posterior = fit(markings, **arguments)
    assert isinstance(posterior, Posterior)
    return posterior


def prepare(
    data: Items | Any,
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
    settings: dict[str, Any],
    *,
    families: Any = None,
    likelihood: str | None = None,
    candidates: Any = None,
) -> tuple[Items, Config]:
    """Items and all settings, checked and in agreement with each other."""
    if not isinstance(data, Items):
        asked = resolve(config, {**settings, **({"likelihood": likelihood} if likelihood else {})})
        kind = asked.run.likelihood if likelihood or "likelihood" in _run(config) else "diagonal"
        data = items_of(data, families, kind, candidates)
        if families is None:
            settings = {"prior": "crp", **settings}
    elif families is not None or candidates is not None:
        raise InputError("families and candidates are for a matrix; these items have their own")
    named = {"likelihood": likelihood or data.kind, **settings}
    settled = resolve(config, named, most_experts(data))
    if settled.run.likelihood != data.kind:
        raise SettingsError(
            f'run.likelihood is "{settled.run.likelihood}", but these items are {data.kind}'
        )
    part = likelihood_named(data.kind)
    settled = replace(settled, likelihood=part.adapt(data, settled.likelihood))
    settled = with_persons(settled, data)
    check_fittable(data, settled)
    return data, settled


def _run(config: Any) -> Mapping[str, Any]:
    """The section [run] of a config of any form, for whether it names something."""
    if config is None or isinstance(config, Config):
        return {} if config is None else {"likelihood": config.run.likelihood}
    tables = config if isinstance(config, Mapping) else load_config(config)
    found = tables.get("run", {})
    return found if isinstance(found, Mapping) else {}


def _fit_in_folder(
    folder: Path, markings: Items, config: Config, watch: Watch, client: Any
) -> Posterior | ImagesPosterior:
    imagewise = is_imagewise(markings, config)
    problem = None if imagewise else problem_of(markings, config)
    make_folder(folder)
    with locked(folder):
        try:
            make_checkpoint_folder(folder)
            prepare_folder(folder, markings, config)
            sitting: Sitting | ImagesSitting
            if problem is None:
                sitting = ImagesSitting(markings, config, watch, folder, client)
            else:
                chains = [
                    ChainFolder.create(folder, number, len(markings), problem.columns)
                    for number in range(config.run.chains)
                ]
                elsewhere = None if client is None else ClusterRunner(client, folder, config)
                store = FolderStore(folder, chains)
                sitting = Sitting(problem, store, markings, config, watch, elsewhere=elsewhere)
        except DfcrpError:
            discard_folder(folder)
            raise
        try:
            posterior = as_images(sitting.run())
        except NothingDrawnError:
            discard_folder(folder)
            raise
        finish(folder, posterior)
    return posterior


def finish(folder: Path, posterior: Posterior | ImagesPosterior) -> None:
    """Write the results of a run, and that they are those of its draws."""
    if isinstance(posterior, ImagesPosterior):
        record_images(posterior, folder)
    else:
        write_provenance(folder, posterior.markings, posterior.config, posterior.record)
    write_tables(posterior, folder)


def write_tables(posterior: Posterior | ImagesPosterior, folder: Path) -> None:
    """Tables and summary from the draws; written anew whenever asked for."""
    if isinstance(posterior, ImagesPosterior):
        write_images(posterior, folder)
    else:
        write_results(posterior, folder)


def is_imagewise(markings: Items, config: Config) -> bool:
    """Whether there are several images, each to be fitted by itself."""
    return len(markings.images) > 1 and config.run.images == "independent"


def as_images(posterior: Posterior | ImagesPosterior) -> Posterior | ImagesPosterior:
    """A posterior of several images that were one problem, image by image; others as they are."""
    if isinstance(posterior, Posterior) and len(posterior.markings.images) > 1:
        return over_images(posterior)
    return posterior


def with_persons(config: Config, items: Items) -> Config:
    """Settings that know from the items which lists are one person's, unless they say it."""
    if config.run.persons or items.person is None:
        return config
    groups = groups_by_person(items.id.tolist(), items.expert.tolist(), items.person.tolist())
    return with_run(config, persons=groups)


def check_fittable(items: Items, config: Config) -> None:
    """Refuse what would be fitted wrongly in silence."""
    check_groups(items.experts, config.run.persons)
    prior_named(config.run.prior).check(persons_of(items.experts, config.run.persons))
    likelihood_named(config.run.likelihood).check(items, config)


def refuse_several_images(markings: Items) -> None:
    """For work that is done on one image."""
    if len(markings.images) > 1:
        names = ", ".join(markings.images[:5])
        raise InputError(
            f"the markings are on {len(markings.images)} images ({names}...), and this is done on "
            "one; choose it with image= (--image)"
        )
