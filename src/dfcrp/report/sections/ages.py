"""The age of the surface, where ``dfcrp age`` has asked CraterStats for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from dfcrp.craterstats import METHODS, Isochrons
from dfcrp.errors import RunFolderError
from dfcrp.files import opened, write_text
from dfcrp.markup import Column, Section, estimate, join, paragraph, table
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.sizes import ModelAges
from dfcrp.report.contents import Contents
from dfcrp.report.pictures import FOLDER, Picture
from dfcrp.settings.consensus import or_more
from dfcrp.values import Json

FILE, FIGURE = "ages.json", "ages"
#: Bytes that are read of either.
_LARGEST = 64 << 20
#: Width of the figure in CSS pixels.
_WIDTH = 830


def write_ages(
    folder: Path, posterior: Posterior, found: ModelAges, isochrons: Mapping[str, object] | None
) -> None:
    """Keep what the report shows, with what it was made of."""
    content = {"made_of": made_of(posterior), **found.to_json(), "isochrons": isochrons}
    write_text(folder, FILE, json.dumps(content) + "\n")


def read_ages(folder: Path, posterior: Posterior) -> Json:
    """What was kept; empty if there is nothing, or if it is of other draws than these.

    RunFolderError if it is not what ``write_ages`` wrote.
    """
    try:
        with opened(folder) as place:
            content: Json = json.loads(place.read(FILE, _LARGEST))
        if content["made_of"] != made_of(posterior):
            return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    try:
        if content["posterior"] is not None:
            _words(content)
            _rows(content)
        if content["isochrons"] is not None:
            Isochrons.from_json(content["isochrons"])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise RunFolderError(
            f"{folder / FILE}: damaged ({error!r}); delete it, or make it again with `dfcrp age`"
        ) from None
    return content


def made_of(posterior: Posterior) -> Json:
    """What ages depend on: the items and how many draws there are."""
    draws = posterior.draws
    return {"items": posterior.items.digest, "chains": draws.n_chains, "draws": draws.n_draws}


def how_old(contents: Contents) -> Section | None:
    """Mean and interval over the draws, with the error of the count, and each expert alone."""
    found = contents.ages
    if not found or found["posterior"] is None:
        return None
    columns = [
        Column("count", number=False),
        Column("craters", note="in the range of diameters"),
        Column("age, Ga"),
        Column("interval", note="95 % of the draws; of an expert one standard error"),
    ]
    figure = contents.figure(
        FIGURE,
        "Model ages of the draws and of each expert",
        "Histograms: ages of the draws, and with the error of the count; points: each expert "
        "alone, with one standard error.",
    )
    body = join([paragraph(_words(found)), table(columns, _rows(found)), figure])
    return Section("how-old", "How old is the surface?", body)


def _rows(found: Json) -> list[list[object]]:
    rows: list[list[object]] = [
        [words, f"{found['craters']:.1f}", *_age(found[name], "mean", "lo", "hi")]
        for words, name in (
            (f"posterior, {or_more(found['min_experts'])}", "posterior"),
            ("the same, with the error of the count", "with_counting_error"),
        )
    ]
    rows += [
        [f"{expert['name']} alone", f"{expert['craters']}", *_age(expert, "age", "low", "high")]
        for expert in found["experts"]
    ]
    return rows


def _words(found: Json) -> str:
    dating = found["dating"]
    low, high = dating["fit_range"]
    undated = found["undated"]
    left = f" {undated} of {found['draws']} draws have no crater in the range." if undated else ""
    return (
        f"By CraterStats: {dating['chronology']}; {METHODS[dating['method']]}, diameters from "
        f"{low:g} to {high:g} km on {dating['area_km2']:,g} km². One age for each of "
        f"{found['draws']} draws: their spread is what the experts' disagreement means for the "
        f"age.{left}"
    )


def _age(found: Json, middle: str, low: str, high: str) -> tuple[str, str]:
    if found[middle] is None:
        return "–", "–"
    return estimate(found[middle], found[low], found[high]).cells


def age_picture(folder: Path) -> dict[str, Picture]:
    """The figure that ``dfcrp age`` drew, if it is there."""
    kinds = tuple(k for k in ("svg", "pdf", "png") if (folder / FOLDER / f"{FIGURE}.{k}").exists())
    try:
        # What a link leads to is not for the page, which may be shown to others.
        with opened(folder, FOLDER) as place:
            svg = place.read(f"{FIGURE}.svg", _LARGEST)
    except OSError:
        return {}
    content = base64.b64encode(svg).decode("ascii")
    return {FIGURE: Picture(FIGURE, f"data:image/svg+xml;base64,{content}", _WIDTH, kinds)}
