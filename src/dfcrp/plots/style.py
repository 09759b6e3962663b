"""The look that all figures share: colours, fonts, sizes, and how a figure is saved."""

from __future__ import annotations

import contextlib
import io
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dfcrp.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.container import Container
    from matplotlib.figure import Figure, FigureBase
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox

    #: What stands for something in a legend.
    Handle = Artist | Container | tuple[Artist, ...]
    #: Axes in rows and columns, or one after the other.
    Panels = NDArray[np.object_] | Sequence[Axes]

#: Widths in inches of two columns of a journal (183 mm) and of one (89 mm).
WIDE = 7.2
NARROW = 3.5
#: Inches around the content of a file.
PADDING = 0.05
#: Pixels per inch of PNG files and of what is drawn in pixels within PDF files; within SVG files,
#: which the report holds, fewer.
PRINT_DPI = 300
DPI = 200
#: A layer of more outlines than this is drawn in pixels: a file with all of them as paths would
#: have a kilobyte for each.
MOST_PATHS = 1_500

#: How something is drawn, by matplotlib's names.
Look = dict[str, Any]

INK = "#1b1b1b"
GREY = "#8a8a8a"
PALE = "#d9d9d9"
#: What stands for the posterior, and what stands out, in every figure.
BLUE = "#0072B2"
VERMILION = "#D55E00"
#: Okabe and Ito's colours, told apart by all kinds of colour vision; yellow is left out, as it
#: is too pale for lines.
COLOURS = (BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", VERMILION, INK)
LINE_STYLES = ("-", "--", ":", "-.")
#: Fonts to fall back on for scripts that DejaVu lacks, if they are installed.
FALLBACK_FONTS = ("Noto Sans CJK SC", "Noto Sans", "Arial Unicode MS", "Segoe UI", "PingFang SC")

#: Metadata that would make two files of one figure differ, by format.
UNDATED: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}

STYLE: Look = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.linewidth": 1.0,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    # Text stays text: it can be searched, edited and set in another font.
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    # Figures have their own layout, whatever the user's settings are.
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    # Same figure, same file: matplotlib's ids and dates would differ from run to run.
    "svg.hashsalt": "dfcrp",
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in the shared style, and leave the user's settings as they were.

    They take no part in it: matplotlib also reads a ``matplotlibrc`` in the current folder, which
    may be a run of somebody else's, and could have LaTeX run.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, "font.family": fonts()})
        yield


@cache
def fonts() -> list[str]:
    """DejaVu Sans, which matplotlib brings along, then what else is there.

    The last one is for SVG files, whose text is set by whoever shows them.
    """
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in installed), "sans-serif"]


@cache
def shown_figure() -> type[Figure]:
    """Matplotlib's figure, which a notebook shows when it is the last line of a cell.

    Figures here do not touch pyplot, which is what otherwise tells a notebook how to show them.
    """
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    return ShownFigure


def new_axes(
    width: float, height: float, rows: int = 1, columns: int = 1, **keywords: Any
) -> NDArray[np.object_]:
    """Axes (rows, columns) on a figure of their own, without touching pyplot's state."""
    figure = shown_figure()(figsize=(width, height), layout="constrained")
    return cast("NDArray[np.object_]", figure.subplots(rows, columns, squeeze=False, **keywords))


def single_axes(width: float, height: float) -> Axes:
    """One axes on a figure of its own."""
    return given_axes(new_axes(width, height), 1)[0]


def figure_of(axes: Axes | Sequence[Axes]) -> Figure:
    """The whole figure of what a figure was drawn into."""
    first = axes[0] if isinstance(axes, Sequence) else axes
    return cast("Figure", first.get_figure(root=True))


def whole_numbers(axis: Axis, most: int | None = None) -> None:
    """Ticks at whole numbers only, at most so many and one."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(
        MaxNLocator("auto" if most is None else most, steps=[1, 2, 2.5, 5, 10], integer=True)
    )


def given_axes(axes: Panels, count: int) -> list[Axes]:
    """The axes that a caller passed for a figure of ``count`` panels, as a list."""
    found = list(np.asarray(axes, dtype=object).ravel())
    if len(found) < count:
        raise ValueError(f"{len(found)} axes given; this figure has {count} panels")
    return found


def plain(name: object, longest: int = 24) -> str:
    """A name as matplotlib may print it: no mathematics, no control characters, not too long."""
    text = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in str(name))
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    return text.replace("$", r"\$")


def line_styles(count: int, colours: Sequence[str] = COLOURS) -> list[Look]:
    """Colour and dashes for so many lines, four times as many as colours before any repeats."""
    return [
        {
            "color": colours[k % len(colours)],
            "linestyle": LINE_STYLES[k // len(colours) % len(LINE_STYLES)],
        }
        for k in range(count)
    ]


def legend_above(
    ax: Axes, handles: Sequence[Handle], names: Sequence[str], columns: int = 3
) -> Legend:
    """A legend over the axes, where nothing lies beneath it; in rows of so many."""
    return legend_of(ax, handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)


def legend_of(
    target: Axes, handles: Sequence[Handle], names: Sequence[str], **keywords: object
) -> Legend:
    """A legend whose names may begin with "_", which matplotlib would leave out."""
    legend = target.legend(list(handles), [str(k) for k in range(len(handles))], **keywords)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)
    return legend


@contextlib.contextmanager
def laid_out(fig: Figure) -> Iterator[Bbox]:
    """Lay a figure out once for all formats; gives the box, in inches, that holds its content.

    Left to itself, matplotlib would lay it out and draw it once more for each file, and for our
    figures that takes longer than the drawing.
    """
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.execute(fig)
    fig.set_layout_engine(None)
    try:
        yield _column_wide(fig, fig.get_tightbbox().padded(PADDING))
    finally:
        fig.set_layout_engine(engine)


def column_width(width: float) -> float:
    """One or two columns, whichever has room; where content fills a column, the padding goes."""
    return next((w for w in (NARROW, WIDE) if width <= w + 2.0 * PADDING), float(width))


def _column_wide(fig: Figure, box: Bbox) -> Bbox:
    """The box of a figure of ours as wide as one or two columns of a journal, its content centred.

    A figure of the user's, into whose axes something was drawn, stays as it is, and so does one
    whose names need more than two columns.
    """
    from matplotlib.transforms import Bbox

    if not isinstance(fig, shown_figure()):
        return box
    width = column_width(box.width)
    left = (box.x0 + box.x1 - width) / 2.0
    return Bbox.from_bounds(left, box.y0, width, box.height)


def save_figure(
    fig: FigureBase, folder: str | Path, name: str, formats: Sequence[str] = ("png", "svg")
) -> tuple[Path, ...]:
    """Save as ``folder/name.png`` and ``folder/name.svg``; the same figure gives the same files.

    ``name`` may have folders in it, with slashes.
    """
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    for kind, content in render(fig, formats).items():
        write_bytes(directory, f"{name}.{kind}", content)
    return tuple(directory / f"{name}.{kind}" for kind in formats)


def save_as(fig: FigureBase, *paths: str | Path) -> None:
    """Save under these names; what follows the dot (png, svg, pdf, ...) says in which format."""
    with _ready(fig) as (whole, box):
        for path in map(Path, paths):
            _save(whole, path, path.suffix.lower().removeprefix("."), box)


def render(fig: FigureBase, kinds: Sequence[str]) -> dict[str, bytes]:
    """What files of these formats would hold."""
    found = {}
    with _ready(fig) as (whole, box):
        for kind in kinds:
            out = io.BytesIO()
            _save(whole, out, kind, box)
            found[kind] = out.getvalue()
    return found


def _save(fig: Figure, target: Path | io.BytesIO, kind: str, box: Bbox) -> None:
    metadata = UNDATED.get(f".{kind}")
    dpi = DPI if kind == "svg" else PRINT_DPI
    fig.savefig(target, format=kind or None, dpi=dpi, metadata=metadata, bbox_inches=box)


@contextlib.contextmanager
def _ready(fig: FigureBase) -> Iterator[tuple[Figure, Bbox]]:
    """In the shared style, without warnings that nobody can heed, and laid out."""
    with styled(), warnings.catch_warnings():
        # A name in a script that no installed font has is drawn as boxes; that is no reason to
        # warn once per letter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        # Names too long for their figure: it is drawn all the same.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        whole = fig.get_figure(root=True)
        assert whole is not None  # or else it was taken out of its figure
        with laid_out(whole) as box:
            yield whole, box
