"""The run folder of many images: its tables, and how it is read back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.draws import DrawBlock, Draws
from dfcrp.errors import RunFolderError
from dfcrp.items.items import Items
from dfcrp.posterior.images import ImagesPosterior
from dfcrp.posterior.images_shared import SharedDraws
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.runs.folder import (
    PROVENANCE,
    make_folder,
    prepare_folder,
    read_provenance,
    record_of,
    save_posterior,
    write_provenance,
    write_results,
    write_table,
)
from dfcrp.runs.image_draws import ChainState, ImageDraws
from dfcrp.runs.image_store import ImageStore
from dfcrp.runs.packs import PackWriter
from dfcrp.runs.parts import ImageParts
from dfcrp.settings.config import Config

IMAGES = "images.csv"


class StoredImages:
    """The draws of images in a run folder."""

    def __init__(self, folder: Path, config: Config) -> None:
        self._store = ImageStore(folder, config)

    def draws(self, image: int, record: RunRecord) -> Draws:
        """One image's draws after burn-in."""
        thin = record.thin
        return self._store.draws(image, record.burn_in // thin, record.scans // thin)


def load_images(folder: Path, markings: Items, config: Config) -> ImagesPosterior:
    """Read a run over independent images back; the draws stay on disk."""
    provenance = read_provenance(folder)
    parts = ImageParts(markings, config)
    records = _records(folder, provenance, len(parts.names))
    source = StoredImages(folder, config)
    return ImagesPosterior(parts, records, source, record=record_of(folder, provenance))


def over_images(posterior: Posterior) -> ImagesPosterior:
    """Images that were fitted as one problem, image by image."""
    parts = ImageParts(posterior.markings, posterior.config)
    source = SharedDraws(posterior.draws, parts.rows)
    records = [posterior.record] * len(parts.names)
    return ImagesPosterior(parts, records, source, record=posterior.record, whole=posterior)


def write_images(posterior: ImagesPosterior, folder: Path) -> None:
    """Tables and summary from the draws; written anew whenever asked for."""
    write_table(folder / IMAGES, posterior.image_table())
    write_results(posterior, folder)


def record_images(posterior: ImagesPosterior, folder: Path) -> None:
    """Write down that the results are those of the draws, image by image."""
    shared = posterior.whole is not None
    records = None if shared else posterior.records
    _record(folder, posterior.markings, posterior.config, posterior.record, records)


def _record(
    folder: Path,
    markings: Items,
    config: Config,
    record: RunRecord,
    records: Sequence[RunRecord | None] | None,
) -> None:
    extra = {}
    if records is not None:
        extra["images"] = [None if one is None else _short(one) for one in records]
    write_provenance(folder, markings, config, record, **extra)


def _short(record: RunRecord) -> list[Any]:
    return [record.scans, record.burn_in, round(record.seconds, 3), record.stopped_early]


def _records(folder: Path, provenance: dict[str, Any], n_images: int) -> list[RunRecord | None]:
    try:
        thin, listed = provenance["run"]["thin"], provenance["images"]
        if len(listed) != n_images:
            raise ValueError(f"{len(listed)} records for {n_images} images")
        return [
            None if one is None else RunRecord(one[0], one[1], thin, one[2], one[3])
            for one in listed
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {error!r}") from None


def save_images(posterior: ImagesPosterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior held in memory as a run folder.

    It holds the draws after burn-in only, so the burn-in recorded with them is zero, and it
    cannot be gone on with.
    """
    folder = Path(path)
    if posterior.whole is not None:
        save_posterior(posterior.whole, folder)
        write_images(posterior, folder)
        return
    make_folder(folder)
    prepare_folder(folder, posterior.markings, posterior.config)
    packs = PackWriter(folder, np.inf)
    nowhere = ChainState(np.zeros(0, np.int32), [], 0)
    records: list[RunRecord | None] = [None] * len(posterior.records)
    for image in posterior.done:
        one = posterior.posterior_of(image)
        chains = [_block(one.draws, chain) for chain in range(one.draws.n_chains)]
        n_chains, seconds = len(chains), one.record.seconds
        states, before = [nowhere] * n_chains, [0] * n_chains
        packs.add(ImageDraws(image, one.draws.columns, chains, states, seconds, before))
        kept = one.draws.n_draws * one.record.thin
        records[image] = dataclasses.replace(one.record, scans=kept, burn_in=0)
    packs.flush()
    longest = max(record.scans for record in records if record is not None)
    record = dataclasses.replace(posterior.record, scans=longest, burn_in=0)
    _record(folder, posterior.markings, posterior.config, record, records)
    write_images(posterior, folder)


def _block(draws: Draws, chain: int) -> DrawBlock:
    """All draws of a chain."""
    clusters = draws.clusters(chain, 0, draws.n_draws)
    return DrawBlock(
        draws.labels(chain, 0, draws.n_draws),
        draws.alpha()[chain],
        clusters.offsets,
        clusters.labels,
        clusters.parameters,
        draws.shared()[chain],
    )
