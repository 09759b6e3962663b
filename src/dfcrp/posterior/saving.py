"""A posterior on disk: its tables, a run folder of it, and how it is read back."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from dfcrp.draws import DrawBlock, Draws
from dfcrp.errors import RunFolderError
from dfcrp.files import remove_file, write_text
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.folder import (
    MARKINGS,
    make_folder,
    prepare_folder,
    read_beginning,
    read_provenance,
    record_of,
    records_of_parts,
    refuse_other_settings,
    write_provenance,
    write_table,
)
from dfcrp.runs.lock import Claim, taken_over
from dfcrp.runs.parts import Parts, RunRecord
from dfcrp.runs.store import DrawStore
from dfcrp.values import as_json


def load(path: str | os.PathLike[str], *, likelihood: str | None = None) -> Posterior:
    """Read a run folder back; the draws stay on disk.

    No code is run that the folder names, so it may come from anybody.

    Parameters
    ----------
    path : path
        A run folder, as ``dfcrp fit --out`` or ``dfcrp.fit(out=...)`` wrote it.
    likelihood : str, optional
        Needed for a run of a likelihood of your own: its name, ``module:NAME``.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> dfcrp.load("run").summary()["n_clusters"]  # doctest: +SKIP
    """
    folder = Path(path)
    items, config = read_beginning(folder, likelihood)
    provenance = read_provenance(folder)
    if "run" not in provenance:
        raise RunFolderError(
            f"{folder}: the run was not finished; `dfcrp resume {folder}` continues it"
        )
    # What is shown is what the draws were made with.
    refuse_other_settings(folder, config, provenance, known_only=True)
    record = record_of(folder, provenance)
    parts = Parts.of_run(items, config)
    store = DrawStore.open(folder, bounds=parts.bounds())
    if len(parts) > 1:
        records = records_of_parts(folder, provenance, len(parts))
        return Posterior.of_images(parts, records, store, record)
    # A run that was stopped while it was being extended holds more draws than its results say.
    last = record.scans // record.thin
    draws = store.draws(0, record.burn_in // record.thin, last)
    if draws.n_markings != len(items):
        raise RunFolderError(
            f"{folder}: the draws are of {draws.n_markings} items, {MARKINGS} has {len(items)}; "
            "they do not belong together"
        )
    return Posterior(draws, items, config, record)


def write_results(posterior: Posterior, folder: Path) -> None:
    """Tables and summary from the draws; written again whenever asked for."""
    if posterior.many is not None:
        write_table(folder, "images.csv", posterior.image_table())
    write_table(folder, "catalogue.csv", posterior.catalogue())
    write_table(folder, "members.csv", posterior.members())
    write_table(folder, "experts.csv", posterior.experts())
    if posterior.likelihood.text:
        write_table(folder, "links.csv", posterior.links(rows=True))
    if posterior.category_sets:
        write_table(folder, "confusions.csv", posterior.confusions())
    write_text(folder, "summary.json", json.dumps(as_json(posterior.summary()), indent=1) + "\n")


#: What is made of the draws, by a run or by later commands.
RESULTS = (
    *("images.csv", "catalogue.csv", "members.csv", "links.csv", "experts.csv", "confusions.csv"),
    *("summary.json", "evaluation.json"),
    *("report.html", "size_frequency.csv", "ages.csv", "figures", "pages"),
)


def finish(posterior: Posterior, folder: Path, *, tables: bool = True) -> None:
    """Write the results of a run, and that they are those of its draws.

    Those of earlier draws go first: whatever happens meanwhile, no table is of other draws than
    the record says. Without ``tables`` there are none until they are asked for.
    """
    for name in RESULTS:
        remove_file(folder, name)
    parts = posterior.many.records if posterior.many is not None and posterior.independent else ()
    write_provenance(folder, posterior.items, posterior.config, posterior.record, parts)
    if tables:
        write_results(posterior, folder)


def save_posterior(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior held in memory as a run folder.

    It holds the draws after burn-in only, so the burn-in recorded with them is zero, and it
    cannot be resumed.
    """
    folder = Path(path)
    make_folder(folder)
    prepare_folder(folder, posterior.items, posterior.config)
    with taken_over(folder) as claim:
        record, records = _save_all_draws(posterior, folder, claim)
    write_provenance(folder, posterior.items, posterior.config, record, records)
    write_results(posterior, folder)


def _save_all_draws(
    posterior: Posterior, folder: Path, claim: Claim
) -> tuple[RunRecord, list[RunRecord | None]]:
    """Fill the store of a new run folder; the record of the whole, and of each part of many."""
    images = posterior.many
    alone = images is None or not posterior.independent
    first = posterior.draws if alone or images is None else images.draws_of(images.done[0])
    store = DrawStore.create(folder, resumable=False, claim=claim, chains=first.n_chains)
    if alone or images is None:
        _save_draws(store, 0, first, share=False)
        store.flush()
        return _after_burn_in(posterior.record, first), []
    records: list[RunRecord | None] = [None] * len(images.records)
    for number in images.done:
        draws = images.draws_of(number)
        _save_draws(store, number, draws, share=True)
        records[number] = _after_burn_in(images.record_of(number), draws)
    store.flush()
    longest = max(one.scans for one in records if one is not None)
    return dataclasses.replace(posterior.record, scans=longest, burn_in=0), records


def _after_burn_in(record: RunRecord, draws: Draws) -> RunRecord:
    return dataclasses.replace(record, scans=draws.n_draws * record.thin, burn_in=0)


def _save_draws(store: DrawStore, part: int, draws: Draws, *, share: bool) -> None:
    for chain in range(draws.n_chains):
        writer = store.writer(part, chain, draws.n_markings, draws.columns, share=share)
        clusters = draws.clusters(chain, 0, draws.n_draws)
        writer.append(
            DrawBlock(
                draws.labels(chain, 0, draws.n_draws),
                draws.alpha()[chain],
                clusters.offsets,
                clusters.labels,
                clusters.parameters,
                draws.shared()[chain],
            )
        )
        writer.finish()
