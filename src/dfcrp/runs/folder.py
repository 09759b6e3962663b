"""The run folder: what is written next to the draws, and how a run is read back."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import platform
import shutil
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp import __version__
from dfcrp.errors import DfcrpWarning, InputError, RunFolderError, SettingsError
from dfcrp.files import PART, why, write_text
from dfcrp.items.items import ABOUT, Items
from dfcrp.items.site import Site, Source
from dfcrp.runs.lock import LOCK
from dfcrp.runs.record import RunRecord
from dfcrp.runs.store import STORE
from dfcrp.settings.config import Config, load_config, make_config, settings_of_draws, to_toml

if TYPE_CHECKING:
    import pandas


PROVENANCE = "provenance.json"
MARKINGS = "markings.csv"
CONFIG = "config.toml"
CANDIDATES = "candidates.csv"


def refuse_used(folder: Path) -> None:
    """A new run goes to a new or empty folder, never over something else.

    What is left of a run that was killed before it had begun counts as empty.
    """
    if not folder.exists() or (folder.is_dir() and _never_begun(folder)):
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise RunFolderError(
            f"{folder}: already exists and is not an empty folder; choose another --out, "
            "or delete it"
        )


def _never_begun(folder: Path) -> bool:
    """Whether a killed process left its lock and at most a part of what comes first."""
    names = {path.name for path in folder.iterdir()}
    first = {LOCK, MARKINGS, CANDIDATES, CONFIG, STORE}
    return LOCK in names and names <= first | {name + PART for name in (*first, PROVENANCE)}


def prepare_folder(folder: Path, markings: Items, config: Config) -> None:
    """Write everything that is needed to read the run later, or to resume it.

    provenance.json comes last: with it the run has begun.
    """
    write_markings(folder / MARKINGS, markings)
    if markings.candidates is not None:
        write_pairs(folder / CANDIDATES, markings.candidates)
    write_settings(folder, config)
    write_provenance(folder, markings, config, None)


def make_folder(folder: Path) -> None:
    """Create an empty run folder, parents included."""
    refuse_used(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"{folder}: cannot be written: {why(error)}") from None


def write_settings(folder: Path, config: Config) -> None:
    """Replace config.toml, after settings of the summaries were changed."""
    write_text(folder / CONFIG, to_toml(config))


def discard_folder(folder: Path) -> None:
    """Remove a run folder that ``prepare_folder`` made and that holds no draws."""
    shutil.rmtree(folder, ignore_errors=True)


def write_pairs(path: Path, pairs: NDArray[np.int64]) -> None:
    """Pairs of items that may share a cluster, as row numbers from 0."""
    lines = [f"{first},{second}" for first, second in pairs.tolist()]
    write_text(path, "\n".join(["first,second", *lines, ""]))


def write_markings(path: Path, markings: Items) -> None:
    """Markings as CSV in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    extra = [n for n in ("person", "image", "truth") if getattr(markings, n) is not None]
    writer.writerow(["id", "expert", *markings.cells, *extra])
    columns: list[Iterable[Any]] = [markings.id, markings.expert, *markings.cells.values()]
    columns += [getattr(markings, n) for n in extra]
    writer.writerows(zip(*columns, strict=True))
    write_text(path, text.getvalue())


def read_markings_back(folder: Path, config: Config) -> Items:
    """The markings of a run folder, with the sources they first came from."""
    markings = _read_items(folder, config.run.likelihood)
    provenance = read_provenance(folder)
    try:
        return dataclasses.replace(
            markings,
            sources=tuple(Source(**item) for item in provenance.get("sources", ())),
            filters=dict(provenance.get("filters", {})),
            site=Site.from_fields(provenance.get("site", {})),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {error}") from None


def _read_items(folder: Path, kind: str) -> Items:
    """The items as they were written, whatever their kind."""
    path = folder / MARKINGS
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            header, *rows = csv.reader(stream)
        columns: dict[str, Any] = dict(zip(header, zip(*rows, strict=True), strict=True))
        about = {name: columns.pop(name) for name in ABOUT if name in columns}
        if (folder / CANDIDATES).exists():
            pairs = np.loadtxt(folder / CANDIDATES, np.int64, delimiter=",", skiprows=1, ndmin=2)
            about["candidates"] = pairs.reshape(-1, 2)
        with warnings.catch_warnings():
            # Repeated rows were reported when the data came in.
            warnings.simplefilter("ignore", DfcrpWarning)
            return Items.from_columns(columns, kind=kind, **about)
    except SettingsError:
        raise
    except (OSError, ValueError, TypeError, csv.Error, InputError) as error:
        raise RunFolderError(f"{path}: cannot be read ({error}); the run is incomplete") from None


def write_provenance(
    folder: Path,
    items: Items,
    config: Config,
    record: RunRecord | None,
    parts: Sequence[RunRecord | None] = (),
) -> None:
    """Who made this, from what, with which settings.

    ``record`` once there are results; ``parts`` has one for each image that was drawn by itself,
    None for those that the run did not come to.
    """
    content = {
        **versions(),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "markings_sha256": items.digest,
        "sources": [dataclasses.asdict(source) for source in items.sources],
        "filters": dict(items.filters),
        "site": dataclasses.asdict(items.site),
        "seed": config.run.seed,
        "settings_of_draws": settings_of_draws(config),
    }
    if record is not None:
        content["run"] = dataclasses.asdict(record)
    if parts:
        content["images"] = [None if one is None else _short(one) for one in parts]
    write_text(folder / PROVENANCE, json.dumps(content, indent=1) + "\n")


def _short(record: RunRecord) -> list[Any]:
    return [record.scans, record.burn_in, round(record.seconds, 3), record.stopped_early]


def records_of_parts(
    folder: Path, provenance: dict[str, Any], n_parts: int
) -> list[RunRecord | None]:
    """What ``write_provenance`` noted of each part."""
    try:
        thin, listed = provenance["run"]["thin"], provenance["images"]
        if len(listed) != n_parts:
            raise ValueError(f"{len(listed)} records for {n_parts} images")
        return [
            None if one is None else RunRecord(one[0], one[1], thin, one[2], one[3])
            for one in listed
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {error!r}") from None


def write_site(folder: Path, site: Site) -> None:
    """Note what became known of the ground after the run; the rest of the record stays."""
    content = {**read_provenance(folder), "site": dataclasses.asdict(site)}
    write_text(folder / PROVENANCE, json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """What the draws of a seed may depend on besides the settings."""
    import numba

    from dfcrp.compiled import jit

    return {
        "dfcrp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "kernels": Path(jit.CACHE).name,
    }


def read_provenance(folder: Path) -> dict[str, Any]:
    """What provenance.json says; nothing if there is none."""
    try:
        content = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object")
        return content
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: cannot be read: {error}") from None


def record_of(folder: Path, provenance: dict[str, Any]) -> RunRecord:
    """How the draws behind the results came about."""
    try:
        return RunRecord(**provenance["run"])
    except TypeError:
        raise RunFolderError(
            f"{folder / PROVENANCE}: damaged, its part `run` is not ours"
        ) from None


def read_beginning(folder: Path) -> tuple[Items, Config]:
    """Markings and settings of a run, finished or not, that are what it was begun with."""
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: there is no such run folder")
    if _never_begun(folder):
        raise RunFolderError(f"{folder}: the run was stopped before it began; fit again")
    for name in (CONFIG, MARKINGS):
        if not (folder / name).exists():
            raise RunFolderError(f"{folder}: is not a run folder of dfcrp: {name} is missing")
    config = make_config(load_config(folder / CONFIG))
    markings = read_markings_back(folder, config)
    if read_provenance(folder).get("markings_sha256", markings.digest) != markings.digest:
        raise RunFolderError(
            f"{folder}: {MARKINGS} is not what the run was made from; it was changed afterwards. "
            "Put it back, or start a new run from it with `dfcrp fit`"
        )
    return markings, config


def write_table(path: Path, frame: pandas.DataFrame) -> None:
    """A table as CSV."""
    write_text(path, frame.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def plain(value: Any) -> Any:
    """JSON has no NaN or infinity: what is undefined becomes null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
