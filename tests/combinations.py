"""What works with what: kinds of items × all that a run can do, and why exceptions are refused.

``CELLS`` is the one list: the documentation's table is rendered from it, and a test fits every
cell.

    ./run python tests/combinations.py      # writes docs/combinations.md
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "combinations.md"


@dataclass(frozen=True)
class Kind:
    """A kind of item: ``name`` is unique here, ``likelihood`` what ``run.likelihood`` says."""

    name: str
    title: str
    likelihood: str


@dataclass(frozen=True)
class Feature:
    """Something that a run can do or be asked for; ``group`` puts like with like."""

    name: str
    title: str
    group: str


@dataclass(frozen=True)
class Cell:
    """One cell of the table; if it is not supported, it is refused for this reason."""

    kind: str
    feature: str
    supported: bool
    reason: str = ""


KINDS = (
    Kind("circles", "circles, plane", "circles"),
    Kind("sphere", "circles, sphere", "circles"),
    Kind("points", "points", "points"),
    Kind("boxes", "boxes", "boxes"),
    Kind("ellipses", "ellipses", "ellipses"),
    Kind("diagonal", "numbers: `diagonal`", "diagonal"),
    Kind("normal", "numbers: `normal`", "normal"),
    Kind("records", "records", "records"),
    Kind("own", "your own", "counts:COUNTS"),
)

FEATURES = (
    Feature("dfcrp", "`dfcrp`", "prior"),
    Feature("constrained", "`constrained`", "prior"),
    Feature("crp", "`crp`", "prior"),
    Feature("attraction", "`attraction`", "prior"),
    Feature("detection", "`detection`", "prior"),
    Feature("exact", "`exact`", "sampler"),
    Feature("paper", "`paper`", "sampler"),
    Feature("unmodified", "`unmodified`", "sampler"),
    Feature("independent", "independent", "images"),
    Feature("shared", "shared", "images"),
    Feature("expert_bias", "experts who differ", "model"),
    Feature("radius", "a radius", "who may share a cluster"),
    Feature("nearest", "the nearest", "who may share a cluster"),
    Feature("candidates", "pairs of your own", "who may share a cluster"),
    Feature("tables", "CSV and other text, Parquet, data frames", "input, `convert`"),
    Feature(
        "drawing_tools",
        "COCO, CVAT, LabelMe, Label Studio, VIA, Zooniverse",
        "input, `convert`",
    ),
    Feature("geojson", "GeoJSON", "input, `convert`"),
    Feature("crater_files", "shapefiles, CraterStats", "input, `convert`"),
    Feature("posterior", "catalogue, members, experts, summary", "answers"),
    Feature("explain", "explain", "answers"),
    Feature("evaluate", "`evaluate`", "answers"),
    Feature("doubles", "possible duplicates", "answers"),
    Feature("report", "report", "answers"),
    Feature("explorer", "explorer", "answers"),
    Feature("overview", "overview of many images", "answers"),
    Feature("disk", "run folder, `load`", "runs"),
    Feature("resume", "resume", "runs"),
    Feature("dask", "Dask", "runs"),
    Feature("estimator", "scikit-learn estimator", "runs"),
    Feature("preset", "the paper's presets", "about circles"),
    Feature("sizes", "size-frequency distributions, ages", "about circles"),
    Feature("compare", "`dfcrp compare`", "about circles"),
)

_SHAPES_ONLY = "the files hold shapes, and a row of numbers or a record is not one; give a table"
_NO_DIAMETER = "the distributions and ages are of diameters, which only circles have"
_OTHER_METHODS = "the other methods that it runs know circles only"

#: Every cell that is refused, by kind and feature.
REFUSED = {
    ("records", "expert_bias"): "values are text, in which nothing can be offset or scaled",
    ("own", "expert_bias"): "experts differ in a way that only the likelihood itself can say",
    **{
        (kind.name, "preset"): "the presets are the paper's hyperparameters of circles"
        for kind in KINDS
        if kind.likelihood != "circles"
    },
    ("records", "radius"): "text has no distances; use `keys`, or pairs of your own",
    ("records", "nearest"): "text has no distances; use `keys`, or pairs of your own",
    ("sphere", "drawing_tools"): "drawing tools store pixels of an image, not degrees",
    **{
        (kind, files): _SHAPES_ONLY
        for kind in ("diagonal", "normal", "records", "own")
        for files in ("drawing_tools", "geojson", "crater_files")
    },
    **{
        (kind, "crater_files"): "these files hold circles and points only; use GeoJSON or a table"
        for kind in ("boxes", "ellipses")
    },
    ("sphere", "estimator"): "a bare matrix cannot say that it is in degrees, nor on which body",
    **{
        (kind.name, feature): reason
        for kind in KINDS
        if kind.likelihood != "circles"
        for feature, reason in (("sizes", _NO_DIAMETER), ("compare", _OTHER_METHODS))
    },
}

CELLS = tuple(
    Cell(
        kind.name,
        feature.name,
        (kind.name, feature.name) not in REFUSED,
        REFUSED.get((kind.name, feature.name), ""),
    )
    for kind in KINDS
    for feature in FEATURES
)

_ARRIVALS = "the paper's samplers move the customers of `dfcrp`, `constrained` and `crp`"
_ORDER = "it differs from `paper` only in the order of arrival, which this prior does not have"

#: Samplers that a prior refuses, whatever the kind: ``kind`` is the prior here.
SAMPLERS = tuple(
    Cell(prior, sampler, not reason, reason)
    for prior, paper, unmodified in (
        ("dfcrp", "", ""),
        ("constrained", "", _ORDER),
        ("crp", "", _ORDER),
        ("attraction", _ARRIVALS, _ARRIVALS),
        ("detection", _ARRIVALS, _ARRIVALS),
    )
    for sampler, reason in (("exact", ""), ("paper", paper), ("unmodified", unmodified))
)

_HEAD = """\
# What works with what

A model is a [likelihood](features.md), which says what an item is, and a
[prior](settings.md#run-how-long-how-many-which-model); a run may have several images. Nearly
everything works with everything. What does not is refused, with a message that says why; the
numbers lead to the reasons below. The page is made from the list in `tests/combinations.py`, and a
test walks through the same list: it fits, resumes, reads back and asks a handful of items in every
cell. Cells about files of drawing tools and crater counters, Dask, the explorer in a browser and
`dfcrp compare` have tests of their own, not for every kind.
"""


class _Notes:
    """Reasons, each with a number in the order of the page."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def of(self, cell: Cell) -> str:
        """What stands in a cell."""
        if cell.supported:
            return "yes"
        number = self.numbers.setdefault(cell.reason, len(self.numbers) + 1)
        return f"no ({number})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def render() -> str:
    """The page of the documentation."""
    notes, by_place = _Notes(), {(cell.kind, cell.feature): cell for cell in CELLS}
    lines = [_row("", *(kind.title for kind in KINDS)), "|" + "---|" * (len(KINDS) + 1)]
    group = ""
    for feature in FEATURES:
        if feature.group != group:
            group = feature.group
            lines.append(_row(f"**{group}**", *("" for _ in KINDS)))
        cells = (notes.of(by_place[kind.name, feature.name]) for kind in KINDS)
        lines.append(_row(feature.title, *cells))
    by_pair = {(cell.kind, cell.feature): cell for cell in SAMPLERS}
    priors = dict.fromkeys(cell.kind for cell in SAMPLERS)
    samplers = dict.fromkeys(cell.feature for cell in SAMPLERS)
    pairs = [
        _row("sampler", *(f"`{prior}`" for prior in priors)),
        "|" + "---|" * (len(priors) + 1),
        *(
            _row(f"`{sampler}`", *(notes.of(by_pair[prior, sampler]) for prior in priors))
            for sampler in samplers
        ),
    ]
    reasons = [
        f"{number}. {reason[0].upper()}{reason[1:]}." for reason, number in notes.numbers.items()
    ]
    return "\n".join(
        [
            _HEAD,
            *lines,
            "",
            "## Samplers and priors",
            "",
            *pairs,
            "",
            "## Reasons",
            "",
            *reasons,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
