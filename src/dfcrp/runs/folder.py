"""The run folder: what is written next to the draws, and how a run is read back."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import platform
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dfcrp import __version__
from dfcrp.errors import DfcrpWarning, InputError, RunFolderError, SettingsError, shown
from dfcrp.files import PART, Folder, LinkError, opened, why, write_text
from dfcrp.first_look import first_look
from dfcrp.items.columns import SAID
from dfcrp.items.decisions import COLUMNS as DECISION_COLUMNS
from dfcrp.items.decisions import Decision, decision_in, with_decisions
from dfcrp.items.footprints import Footprint, Look
from dfcrp.items.items import ABOUT, Items
from dfcrp.items.learned import Learned
from dfcrp.items.site import Site, Source
from dfcrp.items.source_tables import LARGEST_TABLES, SOURCE_TABLES, SourceTables
from dfcrp.memory import in_words, refuse_more_than_memory
from dfcrp.runs.lock import LOCK, WRITING
from dfcrp.runs.parts import RunRecord
from dfcrp.runs.store import STORE
from dfcrp.settings.config import (
    LARGEST_CONFIG,
    Config,
    lengths_asked,
    made_from_file,
    parse_config,
    settings_of_draws,
    to_toml,
)
from dfcrp.settings.values import build
from dfcrp.values import Array, Json, as_json

if TYPE_CHECKING:
    import pandas


PROVENANCE = "provenance.json"
MARKINGS = "markings.csv"
CONFIG = "config.toml"
CANDIDATES = "candidates.csv"
LOOKED = "looked.csv"
FOOTPRINTS = "footprints.json"
DECISIONS = "decisions.csv"
START = "start.csv"
START_LEARNED = "start.json"
#: Bytes that are read of the files that say what a run is; beyond them they are not ours.
_LARGEST_PROVENANCE = 256 << 20
#: Bytes of memory for each of a table: a short field is an object of Python.
_MEMORY_PER_BYTE = 8


def refuse_used(folder: Path) -> None:
    """A new run goes to a new or empty folder, never over something else.

    What is left of a run that was killed before it had begun counts as empty.
    """
    try:
        free = not folder.exists() or (folder.is_dir() and _never_begun(folder))
        used = not free and (not folder.is_dir() or any(folder.iterdir()))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise RunFolderError(f"{str(folder)[:200]}: cannot be a run folder: {reason}") from None
    if used:
        raise RunFolderError(
            f"{folder}: already exists and is not an empty folder; choose another --out, "
            "or delete it"
        )


def _never_begun(folder: Path) -> bool:
    """Whether a killed process left its lock and at most a part of what comes first."""
    names = {path.name for path in folder.iterdir()}
    first = {
        LOCK,
        WRITING,
        MARKINGS,
        CANDIDATES,
        LOOKED,
        FOOTPRINTS,
        SOURCE_TABLES,
        DECISIONS,
        START,
        START_LEARNED,
        CONFIG,
        STORE,
    }
    return names & {LOCK, WRITING} != set() and names <= first | {
        name + PART for name in (*first, PROVENANCE)
    }


def prepare_folder(folder: Path, markings: Items, config: Config) -> None:
    """Write everything that is needed to read the run later, or to resume it.

    provenance.json comes last: with it the run has begun.
    """
    given = markings.given or markings
    write_markings(folder / MARKINGS, given)
    if given.candidates is not None:
        write_pairs(folder / CANDIDATES, given.candidates)
    if given.looked is not None:
        write_looked(folder / LOOKED, given.looked)
    if given.footprints is not None:
        write_footprints(folder / FOOTPRINTS, given.footprints)
    if markings.start is not None:
        write_start(folder / START, markings.start)
    if markings.learned:
        write_learned(folder / START_LEARNED, markings.learned)
    if markings.decisions:
        write_decisions(folder / DECISIONS, markings.decisions)
    if markings.source_tables:
        write_text(folder, SOURCE_TABLES, markings.source_tables.text())
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
    write_text(folder, CONFIG, to_toml(config))


def discard_folder(folder: Path) -> None:
    """Remove a run folder that ``prepare_folder`` made and that holds no draws."""
    shutil.rmtree(folder, ignore_errors=True)


def write_pairs(path: Path, pairs: NDArray[np.int64]) -> None:
    """Pairs of items that may share a cluster, as row numbers from 0."""
    lines = [f"{first},{second}" for first, second in pairs.tolist()]
    write_text(path.parent, path.name, "\n".join(["first,second", *lines, ""]))


def write_looked(path: Path, looked: NDArray[np.str_]) -> None:
    """Who looked at which image."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image", "expert"])
    writer.writerows(looked.tolist())
    write_text(path.parent, path.name, text.getvalue())


def write_footprints(path: Path, footprints: Mapping[Look, Footprint]) -> None:
    """Of looks at a part of an image, the part."""
    rows = [[*look, part] for look, part in sorted(footprints.items())]
    write_text(path.parent, path.name, json.dumps(rows) + "\n")


def write_start(path: Path, start: NDArray[np.int64]) -> None:
    """The clusters that chains begin with: a row for each item, a column for each chain."""
    lines = [",".join(map(str, row)) for row in start.T.tolist()]
    head = ",".join(f"chain_{number + 1}" for number in range(len(start)))
    write_text(path.parent, path.name, "\n".join([head, *lines, ""]))


def write_learned(path: Path, learned: Mapping[str, Learned]) -> None:
    """What chains begin with besides clusters."""
    found = {image: one.as_json() for image, one in learned.items()}
    write_text(path.parent, path.name, json.dumps(found) + "\n")


def write_decisions(path: Path, decisions: Sequence[Decision]) -> None:
    """All decisions, one row each, in the order in which they were made."""
    write_text(path.parent, path.name, decisions_text(decisions))


def decisions_text(decisions: Sequence[Decision]) -> str:
    """All decisions as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(DECISION_COLUMNS)
    writer.writerows(one.cells for one in decisions)
    return text.getvalue()


def write_markings(path: Path, markings: Items) -> None:
    """Markings as CSV in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    extra = [n for n in ("person", "image", "truth") if getattr(markings, n) is not None]
    # What items say comes before the id: a record may have a column of the same name.
    said = [n for n in SAID if getattr(markings, n) is not None]
    writer.writerow([*said, "id", "expert", *markings.cells, *extra])
    columns: list[Iterable[Any]] = [_words(getattr(markings, n)) for n in said]
    columns += [markings.id, markings.expert, *markings.cells.values()]
    columns += [getattr(markings, n) for n in extra]
    writer.writerows(zip(*columns, strict=True))
    write_text(path.parent, path.name, text.getvalue())


def _words(values: Array) -> list[str]:
    """What items say, as text; empty where they say nothing."""
    if values.dtype.kind == "U":
        return [str(value) for value in values]
    return ["" if np.isnan(value) else repr(value) for value in values.tolist()]


def read_markings_back(folder: Path, config: Config) -> Items:
    """The markings of a run folder, with the sources they first came from."""
    markings = _read_items(folder, config.run.likelihood)
    provenance = read_provenance(folder)
    try:
        return dataclasses.replace(
            markings,
            sources=tuple(build(Source, "sources", one) for one in provenance.get("sources", ())),
            filters=dict(provenance.get("filters", {})),
            notes=tuple(map(str, provenance.get("notes", ()))),
            updates=tuple(map(dict, provenance.get("updates", ()))),
            site=_site(provenance.get("site", {})),
            source_tables=_read_source_tables(folder),
        )
    except (TypeError, KeyError, ValueError, AttributeError, SettingsError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {error}") from None


def _read_source_tables(folder: Path) -> SourceTables:
    """What the files said of images and categories, if the run has it."""
    with opened(folder) as place:
        if place.status(SOURCE_TABLES) is None:
            return SourceTables()
        try:
            return SourceTables.read(place.read(SOURCE_TABLES, LARGEST_TABLES))
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{folder / SOURCE_TABLES}: damaged: {error}") from None


def _site(fields: Json) -> Site:
    """Where the items lie, as it was written; a value of another type is an error."""
    boundary = Site.from_fields({"boundary": fields.get("boundary", ())}).boundary
    if not all(np.isfinite(ring.points).all() for ring in boundary):
        raise ValueError("a boundary is not of finite numbers")
    others = {name: value for name, value in fields.items() if name != "boundary"}
    return dataclasses.replace(build(Site, "site", others), boundary=boundary)


def _read_items(folder: Path, kind: str) -> Items:
    """The items as they were written, whatever their kind."""
    path = folder / MARKINGS
    try:
        with (
            opened(folder) as place,
            _table_of(place, MARKINGS) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as stream,
        ):
            header, *rows = csv.reader(stream)
        cells = list(zip(*rows, strict=True))
        before = header.index("id")
        columns: Json = dict(zip(header[before:], cells[before:], strict=True))
        about = {name: columns.pop(name) for name in ABOUT if name in columns}
        about |= dict(zip(header[:before], cells[:before], strict=True))
        pairs = _read_pairs(folder)
        if pairs is not None:
            about["candidates"] = pairs
        looked = _read_looked(folder)
        if looked is not None:
            about["looked"] = _with_footprints(folder, looked)
        with warnings.catch_warnings():
            # Repeated rows were reported when the data came in.
            warnings.simplefilter("ignore", DfcrpWarning)
            found = Items.from_columns(columns, kind=kind, **about)
            found = with_decisions(found, _read_decisions(folder))
            start, learned = _read_start(folder, len(found)), _read_learned(folder)
            return dataclasses.replace(found, start=start, learned=learned)
    except (SettingsError, RunFolderError):
        raise
    except RecursionError:
        reason = "brackets are nested too deeply"
        raise RunFolderError(f"{folder / FOOTPRINTS}: damaged: {reason}") from None
    except LinkError as error:
        raise RunFolderError(f"{error.filename}: {error.strerror}") from None
    except (OSError, ValueError, TypeError, csv.Error, InputError) as error:
        raise RunFolderError(f"{path}: cannot be read ({error}); the run is incomplete") from None


@contextmanager
def _table_of(place: Folder, name: str) -> Iterator[BinaryIO]:
    """A file of a run, which anybody may have written; InputError if it is too large to read."""
    with place.reading(name) as file:
        size = os.fstat(file.fileno()).st_size
        refuse_more_than_memory(
            _MEMORY_PER_BYTE * size,
            f"{place.path / name}: reading a file of {in_words(size)}",
            "read the run on a larger machine",
        )
        yield file


def _read_looked(folder: Path) -> list[list[str]] | None:
    """Who looked at which image, if the run knows it."""
    with opened(folder) as place:
        if place.status(LOOKED) is None:
            return None
        with (
            _table_of(place, LOOKED) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as stream,
        ):
            _, *looked = csv.reader(stream)
    return looked


def _read_start(folder: Path, n: int) -> NDArray[np.int64] | None:
    """The clusters that chains begin with, if they are those of an earlier run."""
    with opened(folder) as place:
        if place.status(START) is None:
            return None
        with (
            _table_of(place, START) as file,
            io.TextIOWrapper(file, encoding="utf-8") as stream,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore", UserWarning)  # of a file without rows
            start = np.loadtxt(stream, np.int64, delimiter=",", skiprows=1, ndmin=2).T
    if start.shape[1] != n or not start.size:
        raise ValueError(f"{START} is of {start.shape[1]} items, not of {n}")
    return np.ascontiguousarray(start)


def _read_learned(folder: Path) -> dict[str, Learned]:
    """What chains begin with besides clusters, if an earlier run had learned it."""
    with opened(folder) as place:
        if place.status(START_LEARNED) is None:
            return {}
        with _table_of(place, START_LEARNED) as file:
            text = file.read()
    try:
        return {image: Learned.from_json(one) for image, one in json.loads(text).items()}
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise RunFolderError(f"{folder / START_LEARNED}: damaged: {error!r}") from None
    except RecursionError:
        raise RunFolderError(
            f"{folder / START_LEARNED}: damaged: brackets are nested too deeply"
        ) from None


def _read_decisions(folder: Path) -> list[Decision]:
    """What people decided; nothing if the run has no such file."""
    with opened(folder) as place:
        if place.status(DECISIONS) is None:
            return []
        with (
            _table_of(place, DECISIONS) as file,
            io.TextIOWrapper(file, encoding="utf-8", newline="") as stream,
        ):
            header, *rows = csv.reader(stream)
    return [
        decision_in(dict(zip(header, row, strict=True)), f"{DECISIONS}, row {at}")
        for at, row in enumerate(rows, 2)
    ]


def _with_footprints(folder: Path, looked: list[list[str]]) -> Any:
    """The looks, with the parts of images that some of them cover."""
    with opened(folder) as place:
        if place.status(FOOTPRINTS) is None:
            return looked
        with _table_of(place, FOOTPRINTS) as file:
            rows = json.loads(file.read().decode("utf-8"))
    found = {
        (image, expert): {"type": "MultiPolygon", "coordinates": part}
        for image, expert, part in rows
    }
    return {
        "image": [image for image, _ in looked],
        "expert": [expert for _, expert in looked],
        "footprint": [found.get((image, expert)) for image, expert in looked],
    }


def _read_pairs(folder: Path) -> NDArray[np.int64] | None:
    """The pairs that may share a cluster, if the run has such."""
    path = folder / CANDIDATES
    with opened(folder) as place:
        if place.status(CANDIDATES) is None:
            return None
        try:
            with (
                _table_of(place, CANDIDATES) as file,
                io.TextIOWrapper(file, encoding="utf-8") as stream,
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore", UserWarning)  # of a file without pairs
                pairs = np.loadtxt(stream, np.int64, delimiter=",", skiprows=1, ndmin=2)
            return pairs.reshape(-1, 2)
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path}: damaged: {error}") from None


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
        "notes": list(items.notes),
        "first_look": [as_json(found.as_dict()) for found in first_look(items, config.run.radius)],
        "site": dataclasses.asdict(items.site),
        **({"decisions": decisions_in_short(items)} if items.decisions else {}),
        **({"updates": list(items.updates)} if items.updates else {}),
        "seed": config.run.seed,
        "settings_of_draws": settings_of_draws(config),
        "lengths": lengths_asked(config),
    }
    if record is not None:
        content["run"] = dataclasses.asdict(record)
    if parts:
        content["images"] = [None if one is None else _short(one) for one in parts]
    write_text(folder, PROVENANCE, json.dumps(content, indent=1) + "\n")


def decisions_in_short(items: Items) -> dict[str, Any]:
    """How many decisions there are, who made those that stand, and which they are."""
    stands = () if items.decided is None else items.decided.standing
    return {
        "rows": len(items.decisions),
        "standing": len(stands),
        "by": {
            person: dict(Counter(one.decision for one in stands if one.by == person))
            for person in sorted({one.by for one in stands})
        },
    }


def _short(record: RunRecord) -> list[Any]:
    return [record.scans, record.burn_in, round(record.seconds, 3), record.stopped_early]


def records_of_parts(folder: Path, provenance: Json, n_parts: int) -> list[RunRecord | None]:
    """What ``write_provenance`` noted of each part."""
    try:
        thin, listed = record_of(folder, provenance).thin, provenance["images"]
        if len(listed) != n_parts:
            raise ValueError(f"{len(listed)} records for {n_parts} images")
        names = ("scans", "burn_in", "seconds", "stopped_early")
        return [
            None if one is None else _record({"thin": thin, **dict(zip(names, one, strict=True))})
            for one in listed
        ]
    except (KeyError, TypeError, ValueError, IndexError, SettingsError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {error!r}") from None


def write_site(folder: Path, site: Site) -> None:
    """Note what became known of the ground after the run; the rest of the record stays."""
    content = {**read_provenance(folder), "site": dataclasses.asdict(site)}
    write_text(folder, PROVENANCE, json.dumps(content, indent=1) + "\n")


def versions() -> dict[str, str]:
    """What the draws of a seed may depend on besides the settings."""
    from dfcrp.compiled.library import sources_digest

    return {
        "dfcrp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernels": sources_digest(),
    }


def read_provenance(folder: Path) -> Json:
    """What provenance.json says; nothing if there is none."""
    try:
        with opened(folder) as place:
            if place.status(PROVENANCE) is None:
                return {}
            content = json.loads(place.read(PROVENANCE, _LARGEST_PROVENANCE))
        if not isinstance(content, dict):
            raise ValueError("it holds no JSON object")
        return content
    except RecursionError:
        reason = "brackets are nested too deeply"
        raise RunFolderError(f"{folder / PROVENANCE}: damaged: {reason}") from None
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder / PROVENANCE}: cannot be read: {error}") from None


def record_of(folder: Path, provenance: Json) -> RunRecord:
    """How the draws behind the results came about."""
    try:
        return _record(provenance["run"])
    except (TypeError, ValueError, KeyError, AttributeError, SettingsError) as error:
        raise RunFolderError(
            f"{folder / PROVENANCE}: damaged, its section `run` was not written by dfcrp: {error}"
        ) from None


def _record(fields: Json) -> RunRecord:
    """A record as it was written; an error if it cannot be one."""
    tallies = fields.get("tallies", [])
    counts = [count for one in tallies for count in dict(one).values()]
    if not isinstance(tallies, list) or not all(type(count) is int for count in counts):
        raise ValueError("tallies are not counts")
    plain_fields = {name: value for name, value in fields.items() if name != "tallies"}
    record: RunRecord = build(RunRecord, "run", plain_fields)
    if not (0 <= record.burn_in < record.scans and 1 <= record.thin <= record.scans):
        raise ValueError(f"{record.burn_in} of {record.scans} scans left out, thin {record.thin}")
    if record.seconds < 0:
        raise ValueError("its duration is negative")
    return dataclasses.replace(record, tallies=tallies)


def read_beginning(folder: Path, likelihood: str | None = None) -> tuple[Items, Config]:
    """Markings and settings of a run, finished or not, that are what it was begun with.

    ``likelihood`` is what the caller says that the run is of; one of the caller's own is run only
    if it is named here.
    """
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: there is no such run folder")
    if _never_begun(folder):
        raise RunFolderError(f"{folder}: the run was stopped before it began; fit again")
    for name in (CONFIG, MARKINGS):
        if not (folder / name).exists():
            raise RunFolderError(f"{folder}: is not a run folder of dfcrp: {name} is missing")
    try:
        with opened(folder) as place:
            text = place.read(CONFIG, LARGEST_CONFIG)
    except OSError as error:
        raise RunFolderError(f"{folder / CONFIG}: cannot be read: {error.strerror}") from None
    config = _config_of_run(str(folder / CONFIG), text, likelihood)
    markings = read_markings_back(folder, config)
    if read_provenance(folder).get("markings_sha256", markings.digest) != markings.digest:
        raise RunFolderError(
            f"{folder}: {MARKINGS} is not what the run was made from; it was changed afterwards. "
            "Put it back, or start a new run from it with `dfcrp fit`"
        )
    return markings, config


def _config_of_run(where: str, text: bytes, likelihood: str | None) -> Config:
    """The settings in a run's config.toml."""
    tables = parse_config(text, where)
    if likelihood is None:
        return made_from_file(tables, None, where)
    run = tables.get("run", {})
    named = run.get("likelihood", "circles") if isinstance(run, Mapping) else None
    if named != likelihood:
        raise SettingsError(
            f"{where}: the run is of {shown(named)}, not of {shown(likelihood)}; leave "
            "likelihood= (--likelihood) out, or give what it is of"
        )
    return made_from_file(tables, {"run": {"likelihood": likelihood}}, where)


def refuse_other_settings(
    folder: Path, config: Config, provenance: Mapping[str, object], *, known_only: bool = False
) -> None:
    """Draws with other settings would be draws of something else.

    With ``known_only`` a setting counts if both sides have it: another version of dfcrp may have
    drawn with settings of which this one knows nothing, and the other way round.
    """
    begun = provenance.get("settings_of_draws")
    if not isinstance(begun, dict):
        raise RunFolderError(f"{folder}: {PROVENANCE} does not say with which settings it began")
    # As JSON has it, in which a tuple is a list.
    now = json.loads(json.dumps(settings_of_draws(config)))
    names = {*now} & {*begun} if known_only else {*now, *begun}
    differing = [
        f"{name} is {shown(now.get(name))}, it was {shown(begun.get(name))}"
        for name in sorted(names)
        if now.get(name) != begun.get(name)
    ]
    if differing:
        raise RunFolderError(
            f"{folder / CONFIG}: was changed since the run began: {'; '.join(differing)}. "
            "Put it back to continue, or start a new run with `dfcrp fit`"
        )


def write_table(folder: Path, name: str, frame: pandas.DataFrame) -> None:
    """A table as CSV, in which no name can act as a formula."""
    texts = [title for title in frame.columns if frame[title].dtype.kind not in "iufb"]
    harmless = frame.assign(**{title: frame[title].map(without_formula) for title in texts})
    write_text(
        folder, name, harmless.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    )


def without_formula(cell: object) -> Any:
    """A name that a spreadsheet would take for a formula gets an apostrophe in front.

    What begins with + - or @ is one only if it calls something; other names stay as they are.
    """
    if not isinstance(cell, str) or cell.lstrip(" \t\r\n")[:1] not in tuple("=+-@"):
        return cell
    calls = cell.lstrip()[0] == "=" or any(mark in cell for mark in "(|!")
    return f"'{cell}" if calls else cell
