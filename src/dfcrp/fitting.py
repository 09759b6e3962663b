"""``dfcrp.fit``: from markings and settings to a Posterior."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from dfcrp.errors import DfcrpError, InputError, SettingsError
from dfcrp.items.making import described, make_items
from dfcrp.items.markings import Items, Markings
from dfcrp.items.measurements import Measurements
from dfcrp.items.persons import groups_by_person
from dfcrp.items.records import Records
from dfcrp.likelihoods.circle.limits import refuse_beyond_reason
from dfcrp.posterior.images import ImagesPosterior
from dfcrp.posterior.posterior import Posterior
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
from dfcrp.settings.config import (
    Config,
    default_thresholds,
    fewest_for_consensus,
    load_config,
    make_config,
)

#: Keyword settings that do not belong to the run: their section and name.
SETTINGS_ELSEWHERE = {
    "min_experts": ("summary", "min_experts"),
    "side_by_side": ("summary", "side_by_side"),
    "likelihood": ("model", "likelihood"),
    "expert_bias": ("model", "expert_bias"),
    "image_file": ("image", "file"),
    "image_y": ("image", "y"),
    "image_offset": ("image", "offset"),
    "image_scale": ("image", "scale"),
}


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

    Instead of Markings there may be a matrix or data frame with one row per item and any numeric
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


def fit_one(markings: Markings, **arguments: Any) -> Posterior:
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
        asked = settle(config, settings)
        data = make_items(data, asked, families, likelihood or asked.model.likelihood, candidates)
        if families is None:
            settings = {"prior": "crp", **settings}
    elif families is not None or candidates is not None:
        raise InputError("families and candidates are for a matrix; these items have their own")
    named = data.likelihood if isinstance(data, Measurements | Records) else "circles"
    settled = settle(config, {"likelihood": likelihood or named, **settings}, most_experts(data))
    if settled.model.likelihood != named:
        raise SettingsError(
            f'model.likelihood is "{settled.model.likelihood}", but these items are {named}'
        )
    if isinstance(data, Records):
        settled = replace(settled, records=described(data, settled.records))
    if isinstance(data, Markings):
        settled = with_persons(settled, data)
        check_fittable(data, settled)
    elif settled.run.sampler != "exact":
        raise SettingsError(f'run.sampler = "{settled.run.sampler}" is for circles; use "exact"')
    elif settled.run.prior == "detection":
        raise SettingsError('run.prior = "detection" is for circles; use "dfcrp"')
    elif settled.model.attraction != 0.0:
        raise SettingsError("model.attraction is for circles; leave it out")
    return data, settled


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
                assert isinstance(markings, Markings)
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


def is_imagewise(markings: Items, config: Config) -> TypeGuard[Markings]:
    """Whether there are several images, each to be fitted by itself."""
    several = isinstance(markings, Markings) and len(markings.images) > 1
    return several and config.run.images == "independent"


def as_images(posterior: Posterior | ImagesPosterior) -> Posterior | ImagesPosterior:
    """A posterior of several images that were one problem, image by image; others as they are."""
    if isinstance(posterior, Posterior) and len(posterior.markings.images) > 1:
        return over_images(posterior)
    return posterior


def settle(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None,
    settings: dict[str, Any],
    n_experts: int | None = None,
) -> Config:
    """All settings, from a config of any kind and keyword settings; unknown names are errors.

    What makes a consensus, if nobody has said it, follows from the number of experts.
    """
    overrides: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        section, key = SETTINGS_ELSEWHERE.get(name, ("run", name))
        unbounded = name == "radius" and value is None
        overrides.setdefault(section, {})[key] = "none" if unbounded else value
    if isinstance(config, Config):
        if "preset" in settings:
            raise SettingsError("a preset cannot be laid over a finished Config; put it inside")
        tables: Any = _as_tables(config)
    elif config is None or isinstance(config, Mapping):
        tables = config
    else:
        tables = load_config(config)
    if n_experts is not None:
        tables = _with_consensus(tables or {}, n_experts)
    return make_config(tables, overrides)


def _with_consensus(tables: Mapping[str, Any], n_experts: int) -> Mapping[str, Any]:
    summary = tables.get("summary", {})
    if not isinstance(summary, Mapping):
        return tables  # make_config says what is wrong with it
    defaults = {
        "min_experts": fewest_for_consensus(n_experts),
        "thresholds": default_thresholds(n_experts),
    }
    return {**tables, "summary": {**defaults, **summary}}


def _as_tables(config: Config) -> dict[str, Any]:
    import dataclasses

    tables = dataclasses.asdict(config)
    if tables["run"]["radius"] is None:
        tables["run"]["radius"] = "none"
    return tables


def with_persons(config: Config, markings: Markings) -> Config:
    """Settings that know from the markings which lists are one person's, unless they say it."""
    if config.detection.persons or markings.person is None:
        return config
    groups = groups_by_person(markings)
    return replace(config, detection=replace(config.detection, persons=groups))


def check_fittable(markings: Markings, config: Config) -> None:
    """Refuse, or tell of, what would be fitted wrongly in silence."""
    if config.model.attraction != 0.0 and (config.run.prior, config.run.sampler) != (
        "dfcrp",
        "exact",
    ):
        raise SettingsError(
            'model.attraction belongs to the prior "dfcrp" and the sampler "exact"; the prior '
            '"detection" takes lists of one person into account by itself'
        )
    if config.run.prior == "detection" and len(markings.images) > 1:
        raise InputError(
            f'the prior "detection" is for one image, on which everyone looked; these markings are '
            f"of {len(markings.images)}: choose one with image= (--image)"
        )
    if config.model.expert_bias != "none" and is_imagewise(markings, config):
        raise SettingsError(
            "how experts differ (expert_bias) is learned from all images together: add "
            'images="shared" (--images shared), or choose one image with image= (--image)'
        )
    shared = config.run.images == "shared" and len(markings.images) > 1
    if shared and config.run.radius is None:
        raise SettingsError(
            'several images that share their hyperparameters need a radius: "auto" or a number'
        )
    refuse_beyond_reason(markings)
    refuse_degrees_without_body(markings)


def refuse_several_images(markings: Markings) -> None:
    """For work that is done on one image."""
    if len(markings.images) > 1:
        names = ", ".join(markings.images[:5])
        raise InputError(
            f"the markings are on {len(markings.images)} images ({names}...), and this is done on "
            "one; choose it with image= (--image)"
        )


def refuse_degrees_without_body(markings: Markings) -> None:
    """Distances in longitude and latitude need the size of the sphere."""
    if markings.site.on_sphere:
        _ = markings.site.sphere_radius_km
