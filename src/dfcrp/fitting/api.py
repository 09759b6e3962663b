"""``dfcrp.fit`` and ``dfcrp.resume``: one road, from the first scan or from the last checkpoint."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from numpy.typing import ArrayLike

from dfcrp import __version__
from dfcrp.errors import (
    DfcrpError,
    DfcrpWarning,
    InputError,
    RunFolderError,
    SettingsError,
)
from dfcrp.files import remove_file
from dfcrp.first_look import first_look
from dfcrp.fitting.progress import watched
from dfcrp.fitting.run import Run
from dfcrp.io.decisions import read_decisions
from dfcrp.items.decisions import (
    Decision,
    decisions_given,
    refuse_shared_experts,
    with_decisions,
)
from dfcrp.items.given import items_of, items_of_tables
from dfcrp.items.items import Items
from dfcrp.items.looks import with_looks
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.persons import check_groups, groups_by_person, persons_of
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.saving import finish
from dfcrp.priors.registry import prior_named
from dfcrp.runs.dask import connected
from dfcrp.runs.folder import (
    PROVENANCE,
    discard_folder,
    make_folder,
    prepare_folder,
    read_beginning,
    read_provenance,
    record_of,
    refuse_other_settings,
    versions,
    write_provenance,
    write_settings,
)
from dfcrp.runs.lock import LostClaimError, locked, taken_over
from dfcrp.runs.parts import Listener, NothingDrawnError, Parts, Watch, experts_by_place
from dfcrp.runs.store import STORE, DrawStore, MemoryStore, anything_drawn
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.runner import TimeLimit
from dfcrp.settings.config import AnyConfig, Config, Requested, read_settings, resolve, with_run
from dfcrp.settings.keywords import FitSettings, expanded, refuse_unknown
from dfcrp.summaries.consensus import PAPER_EDGES, choose_edges
from dfcrp.values import Json

#: The prior of records of one list, unless somebody names one: any two may be of one object.
FOR_ONE_LIST = "crp"
#: What a run says of its stages besides the scans, where there are many items.
LOOKING = "Looking for what may be mistakes in the data"
SETTING_UP = "Setting up: which items may share an object"
TABLES = "Making the tables"


def items_given(
    data: object,
    asked: Requested,
    *,
    families: ArrayLike | None = None,
    candidates: object = None,
    looked: object = None,
    decisions: object = None,
) -> tuple[Items, Requested]:
    """The items in whatever was given, with what that says of the settings."""
    if isinstance(data, Items):
        if families is not None or candidates is not None:
            raise InputError("families and candidates are for a matrix; these items have their own")
        items = data
    else:
        kind = asked.kind("diagonal")
        listed = items_of_tables(data, kind, candidates) if families is None else None
        items = listed or items_of(data, families, kind, candidates)
        if families is None and listed is None:
            asked = asked.unless_a_keyword_says(prior="crp")
    items = items if looked is None else with_looks(items, looked)
    return items if decisions is None else decided(items, decisions), asked


def decided(items: Items, decisions: object) -> Items:
    """The items with what was decided of them, from a file or a table."""
    return with_decisions(items, decision_rows(decisions))


def decision_rows(decisions: object) -> tuple[Decision, ...]:
    """All rows of a file or a table of decisions."""
    if isinstance(decisions, (str, os.PathLike)):
        return read_decisions(Path(decisions))
    return decisions_given(decisions)


def resolve_for(items: Items, asked: Requested, resolved: Config | None = None) -> Config:
    """All settings for these items, ``resolved`` if they were before the items were there."""
    if _is_one_list(items) and asked.said("run", "prior") is None:
        # In any other prior no two records of a list are of one object, and nothing is left to do.
        asked, resolved = asked.unless_a_keyword_says(prior=FOR_ONE_LIST), None
    config = resolved or asked.resolve(items.kind)
    return asked.for_looks(config, experts_by_place(items))


def _is_one_list(items: Items) -> bool:
    """Whether these are records of one list, as for deduplication."""
    return len(items.experts) == 1 and likelihood_named(items.kind).text


def complete_config(items: Items, config: Config) -> Config:
    """The settings with what the items decide where nobody has said it, checked with the items."""
    if config.run.likelihood != items.kind:
        raise SettingsError(
            f'run.likelihood is "{config.run.likelihood}", but these items are {items.kind}'
        )
    part = likelihood_named(items.kind)
    one_per_expert = prior_named(config.run.prior).one_per_expert
    adapted = part.adapt(items, config.likelihood, one_per_expert)
    independent = config.run.images == "independent"
    config = replace(config, likelihood=part.decide(items, adapted, independent))
    config = with_size_classes(with_persons(config, items), items)
    check_fittable(items, config)
    return config


def with_persons(config: Config, items: Items) -> Config:
    """Settings that know from the items which lists are one person's, unless they say it."""
    if config.run.persons or items.person is None:
        return config
    groups = groups_by_person(items.id.tolist(), items.expert.tolist(), items.person.tolist())
    return with_run(config, persons=groups)


def with_size_classes(config: Config, items: Items) -> Config:
    """Settings whose size classes suit the items, unless they say which; a preset has the paper's.

    All images of a run have the same.
    """
    asked, sizes = config.summary, likelihood_named(config.run.likelihood).sizes(items)
    if asked.class_edges is not None or sizes is None:
        return config
    named, paper = len(asked.class_names), len(PAPER_EDGES) + 1
    edges = choose_edges(sizes, named)
    if config.run.preset is not None and named == paper:
        edges = PAPER_EDGES
    return replace(config, summary=replace(asked, class_edges=edges))


def check_fittable(items: Items, config: Config) -> None:
    """Refuse what would be fitted wrongly in silence."""
    check_groups(items.experts, config.run.persons)
    prior_named(config.run.prior).check(persons_of(items.experts, config.run.persons))
    likelihood_named(config.run.likelihood).check(items, config)
    check_decisions(items, config)


def check_decisions(items: Items, config: Config) -> None:
    """Refuse decisions that the prior or the sampler cannot take."""
    if items.decided is None:
        return
    prior, sampler = prior_named(config.run.prior), config.run.sampler
    if prior.one_per_expert:
        refuse_shared_experts(items)
    for one in items.decided.standing:
        if one.decision in ("real", "not_real", "category") and not prior.takes_reality:
            raise InputError(
                f"{one.words}: with the prior {prior.name!r} every cluster is an object; use "
                'prior="detection" (--prior detection)'
            )
        if one.decision == "together" and sampler != "exact":
            raise InputError(
                f'{one.words}: the sampler "{sampler}" is of the paper, and moves one item at a '
                'time; use sampler "exact"'
            )


def tell_first_look(items: Items, config: Config) -> None:
    """Warn of what looks like a mistake in the data, before anything is drawn."""
    rule = prior_named(config.run.prior).one_per_expert
    for finding in first_look(items, config.run.radius, rule):
        warnings.warn(finding.text, DfcrpWarning, stacklevel=3)


def refuse_several_images(items: Items) -> None:
    """For work that is done on one image."""
    if len(items.images) > 1:
        names = ", ".join(items.images[:5])
        raise InputError(
            f"the markings are on {len(items.images)} images ({names}...), but this needs a "
            "single image; choose it with image= (--image)"
        )


@expanded
def fit(
    items: object,
    *,
    families: ArrayLike | None = None,
    candidates: ArrayLike | None = None,
    looked: object = None,
    decisions: object = None,
    config: AnyConfig = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Listener | None = None,
    on_look: Callable[[Posterior], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    dask: str | os.PathLike[str] | None = None,
    **settings: Unpack[FitSettings],
) -> Posterior:
    """Merge what several experts listed, and say how sure that is.

    Parameters
    ----------
    items : Items, or a matrix, data frame or dict of columns
        What is clustered. Anything but ``Items`` has one row per item: then ``families`` says
        whose list it is on, and ``likelihood`` what the columns are.
    families : sequence, optional
        The expert behind each row. Left out, any two rows may share a cluster.
    likelihood : str, optional
        "circles", "points", "boxes", "ellipses", "intervals", "diagonal" (the default for a
        matrix), "normal", "records", or ``module:NAME`` of one of your own.
    prior : str
        "dfcrp", "constrained", "crp", "attraction" or "detection".
    candidates : (m, 2) integers, optional
        Pairs of rows from 0; only these may share a cluster.
    looked : table or sequence of pairs, optional
        Who looked at which image, with the columns image and expert, also of those who listed
        nothing there; of one image, the experts' names. Left out, it is what the items know, or
        whoever has an item on an image.
    decisions : path, table or rows, optional
        What people decided about items, with the columns decision, items, by, when, note, value;
        the posterior is conditioned on it.
    chains, scans, burn_in, thin : int
        Independent chains, and scans of each. Without ``scans`` the run continues until the
        convergence verdict is good, or ``max_scans`` or ``max_minutes`` is reached.
    max_scans, max_minutes
        The longest run.
    radius : float, "auto" or None
        Items farther apart never share an object.
    nearest : int, optional
        Instead of a radius: each item may share an object only with this many nearest ones.
    seed, workers, checkpoint_seconds
        Same seed, same draws, whatever the number of threads.
    sampler : str
        "exact", or the paper's "paper" and "unmodified".
    preset : str, optional
        The paper's hyperparameters for "highlands", "reduced" or "simulation".
    images : str
        Several images: "independent", or "shared" hyperparameters; "auto" shares them under the
        prior "detection" only.
    persons : sequence of sequences of names
        Lists by one person.
    expert_bias : str
        Learn how experts differ: "offset", "precision", "both" or "none", the default; "auto" is
        "precision" where at least three experts have enough items, except with a preset.
    min_experts : int or str, optional
        Experts that make a consensus, or a share of those who looked at the image, as in "60%". If
        left out: five, or a majority of fewer; 60 % where images differ in how many looked.
    retire_complete, retire_settled : float
        Under the prior "detection": an image needs no more looks where p_complete and p_settled
        are at least these.
    side_by_side, image_file, image_y, image_offset, image_scale
        For the report: count by number of experts, too; the image beneath the maps.
    config : Config, dict, or path of a TOML file, optional
        All other settings; the keywords above win over it.
    out : path, optional
        A run folder for draws, tables and checkpoints; ``dfcrp.resume`` continues such a run.
    progress : bool or callable, optional
        Show a bar on terminals and in notebooks, elsewhere a line on stderr every ten seconds;
        False: nothing.
    on_look, on_stop : callable, optional
        Called with the posterior at each look, and at Ctrl-C.
    dask : str, optional
        Address or scheduler file of a Dask cluster whose machines all see ``out``.

    Returns
    -------
    Posterior
        Ctrl-C ends the run early and returns what there is; with ``out`` the draws are in the
        folder then, and ``dfcrp report`` makes its tables.

    Examples
    --------
    >>> import dfcrp
    >>> markings = dfcrp.read_markings("markings.csv")  # doctest: +SKIP
    >>> posterior = dfcrp.fit(markings, chains=4, seed=1)  # doctest: +SKIP
    >>> posterior.catalogue()  # doctest: +SKIP
    """
    refuse_unknown(settings, fit)
    asked = read_settings(config, settings)
    more = {"candidates": candidates, "looked": looked, "decisions": decisions}
    data, asked = items_given(items, asked, families=families, **more)
    complete = complete_config(data, resolve_for(data, asked))
    if dask is not None and out is None:
        raise SettingsError("on Dask a run needs a folder that all machines share; give out=")
    with watched(progress, on_look, on_stop, data, complete) as watch:
        watch.stage(LOOKING, len(data))
        tell_first_look(data, complete)
        return _fit_settled(data, complete, watch, out, dask)


def begin_run(
    items: Items,
    resolved: Config,
    watch: Watch,
    out: str | os.PathLike[str] | None,
    dask: str | os.PathLike[str] | None = None,
) -> Posterior:
    """Fit items with settings that are resolved, as ``fit`` does; ``watch`` is told how it goes."""
    complete = complete_config(items, resolved)
    watch.stage(LOOKING, len(items))
    tell_first_look(items, complete)
    return _fit_settled(items, complete, watch, out, dask)


def _fit_settled(
    items: Items,
    config: Config,
    watch: Watch,
    out: str | os.PathLike[str] | None,
    dask: str | os.PathLike[str] | None,
) -> Posterior:
    watch.stage(SETTING_UP, len(items))
    if out is None:
        return Run(items, config, MemoryStore(), watch).run()
    with connected(dask) as client:
        return _fit_in_folder(Path(out), items, config, watch, client)


def _fit_in_folder(
    folder: Path, items: Items, config: Config, watch: Watch, client: object
) -> Posterior:
    limit, problem = TimeLimit(config.run.max_minutes), None
    if len(Parts.of_run(items, config)) == 1:
        # Refuses what cannot be fitted, before anything is written.
        problem = problem_of(items, config)
    make_folder(folder)
    with locked(folder), taken_over(folder) as claim:
        try:
            # provenance.json comes last: with it the run has begun. A start that was killed before
            # leaves an empty store.
            if not (folder / PROVENANCE).exists() and not anything_drawn(folder):
                remove_file(folder, STORE)
            seconds = config.run.checkpoint_seconds
            store = DrawStore.create(folder, seconds=seconds, claim=claim)
            prepare_folder(folder, items, config)
            run = Run(items, config, store, watch, client, limit=limit, problem=problem)
            posterior = run.run()
        except NothingDrawnError:
            discard_folder(folder)
            raise
        except LostClaimError:
            raise
        except DfcrpError:
            if not anything_drawn(folder):
                discard_folder(folder)
            raise
        claim.check()
        if not run.interrupted:
            watch.stage(TABLES, len(items))
        finish(posterior, folder, tables=not run.interrupted)
    return posterior


def resume(
    path: str | os.PathLike[str],
    *,
    scans: int | None = None,
    max_scans: int | None = None,
    max_minutes: float | None = None,
    workers: int | None = None,
    progress: bool | Listener | None = None,
    on_look: Callable[[Posterior], None] | None = None,
    on_stop: Callable[[], None] | None = None,
    dask: str | os.PathLike[str] | None = None,
    likelihood: str | None = None,
) -> Posterior:
    """Continue the run in a folder, or extend it.

    The draws are those of a run that was never stopped: each chain continues from its checkpoint.

    Parameters
    ----------
    path : path
        The run folder.
    scans : int, optional
        Scans of each chain in all; left out, the run ends where it was meant to.
    max_scans : int, optional
        For a run that ends when its verdict is good.
    max_minutes : float, optional
        Counted from now.
    workers, progress, on_look, on_stop, dask
        As in ``dfcrp.fit``.
    likelihood : str, optional
        Needed for a run of a likelihood of your own: its name, ``module:NAME``.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> posterior = dfcrp.resume("run", scans=4000)  # doctest: +SKIP
    """
    found = find_run(
        path,
        likelihood,
        scans=scans,
        max_scans=max_scans,
        max_minutes=max_minutes,
        workers=workers,
    )
    with watched(progress, on_look, on_stop, found.items, found.config) as watch:
        return continue_run(found, watch, dask)


@dataclass(frozen=True)
class FoundRun:
    """A run that can be continued."""

    folder: Path
    items: Items
    #: With the settings that were changed for what is to come.
    config: Config
    #: Scans that each chain had done when it was saved; of many images, the fewest of each.
    scans: list[int]


def find_run(
    path: str | os.PathLike[str], likelihood: str | None = None, **changes: object
) -> FoundRun:
    """Read a run folder, and refuse it unless it is as the run left it.

    ``likelihood`` is one of the caller's own, if the run is of that. ``changes`` are settings of
    how long to continue; None leaves one as it is.
    """
    folder = Path(path)
    items, config = read_beginning(folder, likelihood)
    parts = Parts.of_run(items, config)
    store = DrawStore.open(folder, bounds=parts.bounds())
    if not store.resumable:
        raise RunFolderError(
            f"{folder}: holds no checkpoints, so it cannot be resumed: it was saved from memory; "
            "fit again, with the folder as out="
        )
    provenance = read_provenance(folder)
    other = provenance.get("dfcrp") != __version__
    refuse_other_settings(folder, config, provenance, known_only=other)
    if len(parts) > 1:
        scans = [min(store.scans(part, config.run.chains)) for part in range(len(parts))]
        reached = max(scans)
    else:
        scans = store.scans(0, config.run.chains)
        reached = min(scans)
    config = _changed(config, {k: v for k, v in changes.items() if v is not None}, reached)
    return FoundRun(folder, items, config, scans)


def continue_run(
    found: FoundRun, watch: Watch, dask: str | os.PathLike[str] | None = None
) -> Posterior:
    """Draw what is missing, then write tables and record again."""
    folder, config, items = found.folder, found.config, found.items
    with connected(dask) as client, locked(folder), taken_over(folder) as claim:
        _warn_of_other_versions(folder)
        store = DrawStore.open(
            folder,
            seconds=config.run.checkpoint_seconds,
            claim=claim,
            bounds=Parts.of_run(items, config).bounds(),
        )
        run = Run(items, config, store, watch, client)
        before = read_provenance(folder)
        if "run" in before:
            record = record_of(folder, before)
            run.seconds_before = record.seconds
            if min(found.scans) < record.scans:
                # Draws behind the results are no longer there: the results are taken back.
                write_provenance(folder, items, config, None)
        write_settings(folder, config)
        posterior = run.run()
        claim.check()
        finish(posterior, folder, tables=not run.interrupted)
    return posterior


def _changed(config: Config, changes: Json, scans: int) -> Config:
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
