"""Figures: maps of items and of the catalogue; what all maps share: outlines, frame, scales."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.plots.figure import PLACES, Figure
from dfcrp.plots.flat import (
    FlatMap,
    Floats,
    Region,
    flat_catalogue,
    flat_map,
    middle_stretch,
    stretch,
)
from dfcrp.plots.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    MOST_PATHS,
    NARROW,
    VERMILION,
    WIDE,
    Look,
    figure_of,
    legend_above,
    plain,
    single_axes,
    styled,
)
from dfcrp.plots.underlay import Beneath, Underlay, grey_levels, has_pixels, read_underlay
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.consensus import in_short

if TYPE_CHECKING:
    import pandas
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

#: Half the width and half the height of each outline.
Reach = tuple[float | Floats, float | Floats]
#: Share of the range that is left free around everything.
MARGIN = 0.03
#: Inches that a map may be high.
MAX_HEIGHT = 5.5
#: Height over width of a map whose scales are free.
FREE_SHAPE = 0.7
#: Of the commonest categories.
OF_CATEGORIES = COLOURS[:6]
#: Lanes that are named, and inches for each.
MOST_LANES, LANE = 30, 0.22


def frame(placed: FlatMap, underlay: Underlay | None = None) -> Region:
    """The part of the plane that shows everything; the whole image if there is one.

    Of circles all centres are shown, of other outlines the whole of each.
    """
    if underlay is not None:
        left, right, bottom, top = underlay.extent
        return left, right, min(bottom, top), max(bottom, top)
    half: Reach = (0.0, 0.0) if placed.round else placed.half
    ends = []
    for values, reach in zip((placed.x, placed.y), half, strict=True):
        low, high = float((values - reach).min()), float((values + reach).max())
        around = 0.6 * float(np.median(placed.size)) if placed.round else 0.0
        space = max(MARGIN * (high - low), around)
        ends.append((low, high, space))
    # What lies on a line, or in one place, has some room around it all the same.
    room = MARGIN * max(high - low for low, high, _ in ends) or 1.0
    (left, right, x), (low, high, y) = ((*e[:2], e[2] or room) for e in ends)
    return left - x, right + x, low - y, high + y


def touching(placed: FlatMap, region: Region, *, centres: bool = False) -> NDArray[np.bool_]:
    """Which outlines, or which centres, lie in the region or reach into it."""
    left, right, low, high = region
    half: Reach = (0.0, 0.0) if centres else placed.half
    across, up = half
    x, y = placed.x, placed.y
    inside: NDArray[np.bool_] = (
        (x >= left - across) & (x <= right + across) & (y >= low - up) & (y <= high + up)
    )
    return inside


def map_axes(region: Region, placed: FlatMap) -> Axes:
    """An axes whose figure has the shape of the region, and fits on a page."""
    left, right, low, high = region
    shape = FREE_SHAPE
    if placed.equal:
        shape = (high - low) / (right - left) * middle_stretch(region, placed.degrees)
    if placed.on_line:
        return single_axes(WIDE, float(np.clip(LANE * (high - low) + 0.5, 1.0, MAX_HEIGHT)))
    width = max(min(WIDE, MAX_HEIGHT / shape), NARROW)
    return single_axes(width, float(np.clip(width * shape + 0.4, 2.2, MAX_HEIGHT + 0.4)))


def set_map(ax: Axes, region: Region, placed: FlatMap, underlay: Underlay | None = None) -> None:
    """Equal scales (on the ground, in the middle of the map), y as given, the image beneath.

    Where x and y have units of their own, so have their scales.
    """
    left, right, low, high = region
    downwards = False
    if underlay is not None:
        downwards = underlay.extent[2] > underlay.extent[3]
        if underlay.pixels is not None:
            ax.imshow(
                grey_levels(underlay.pixels),
                extent=underlay.extent,
                cmap="gray",
                interpolation="antialiased",
                aspect="equal",
                zorder=0,
            )
    if placed.equal:
        ax.set_aspect(middle_stretch(region, placed.degrees), adjustable="box")
    ax.set_xlim(left, right)
    ax.set_ylim(*((high, low) if downwards else (low, high)))
    names = ("longitude (°)", "latitude (°)") if placed.degrees else placed.axes
    if placed.unit:
        across, up = (name and f"{name} ({placed.unit})" for name in names)
        names = across, up
    ax.set_xlabel(plain(names[0]))
    ax.set_ylabel(plain(names[1]))
    if not names[1]:
        ax.set_yticks([])
    if 0 < len(placed.lanes) <= MOST_LANES:
        ax.set_yticks(-np.arange(len(placed.lanes)), [plain(lane) for lane in placed.lanes])
        ax.tick_params(axis="y", length=0.0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)


def bar_length(region: Region, placed: FlatMap) -> tuple[float, str]:
    """How long a scale bar is on the x axis, and what it says: at most a quarter of the map."""
    assert placed.ground is not None
    left, right, low, high = region
    one, unit = placed.ground
    one *= float(stretch((low + high) / 2.0, placed.degrees))
    most = 0.25 * (right - left) / one
    length = max(k * 10.0 ** np.floor(np.log10(most / k)) for k in (1.0, 2.0, 5.0))
    shown, name = length, unit
    if unit == "m" and length >= 1000.0:
        shown, name = length / 1000.0, "km"
    if unit == "km" and length < 1.0:
        shown, name = 1000.0 * length, "m"
    return one * length, f"{shown:g} {name}"


def add_scale_bar(ax: Axes, region: Region, placed: FlatMap, below: float = 19.0) -> None:
    """So many points below the right end of the map, where lengths on the ground are known."""
    from matplotlib.transforms import ScaledTranslation

    if placed.ground is None:
        return
    length, words = bar_length(region, placed)
    inches = figure_of(ax).dpi_scale_trans
    place = ax.get_xaxis_transform() + ScaledTranslation(0.0, -below / 72.0, inches)
    right = region[1]
    ax.plot(
        [right - length, right],
        [0.0, 0.0],
        transform=place,
        color=INK,
        linewidth=2.0,
        solid_capstyle="butt",
        clip_on=False,
    )
    beside = place + ScaledTranslation(-4.0 / 72.0, 0.0, inches)
    ax.text(right - length, 0.0, words, transform=beside, ha="right", va="center", fontsize=7.0)


def add_outlines(ax: Axes, placed: FlatMap, **keywords: object) -> Collection:
    """Outlines to scale, points as dots; ``keywords`` go to matplotlib's collection.

    Very many are drawn in pixels, in files of any format.
    """
    from matplotlib.collections import EllipseCollection, PolyCollection

    options: Look = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.6}
    options |= {"rasterized": len(placed) > MOST_PATHS} | keywords
    centres = np.column_stack((placed.x, placed.y))
    made: Collection
    if placed.shape == "box":
        made = PolyCollection(list(_corners(placed)), **options)
    elif placed.shape == "ellipse":
        made = EllipseCollection(
            placed.width * stretch(placed.y, placed.degrees),
            placed.height,
            placed.angle,
            units="xy",
            offsets=centres,
            offset_transform=ax.transData,
            **options,
        )
    else:
        made = _dots(ax, centres, options)
    ax.add_collection(made, autolim=False)
    return made


def _corners(placed: FlatMap) -> NDArray[np.float64]:
    """Of boxes, (n, 4, 2)."""
    cos, sin = np.cos(np.radians(placed.angle)), np.sin(np.radians(placed.angle))
    a, b = placed.width / 2.0, placed.height / 2.0
    across = np.stack([-a, a, a, -a], axis=1)
    up = np.stack([-b, -b, b, b], axis=1)
    x = placed.x[:, np.newaxis] + across * cos[:, np.newaxis] - up * sin[:, np.newaxis]
    y = placed.y[:, np.newaxis] + across * sin[:, np.newaxis] + up * cos[:, np.newaxis]
    return np.stack([x, y], axis=2)


def _dots(ax: Axes, centres: NDArray[np.float64], options: Look) -> Collection:
    """Round dots, the larger the thicker a line would be; hollow instead of dashed."""
    from matplotlib.collections import EllipseCollection

    width = np.full(len(centres), 2.0 + 2.0 * options["linewidths"])
    hollow = options.pop("linestyles", "-") != "-"
    colour = options["edgecolors"]
    look = {"facecolors": "none" if hollow else colour, "linewidths": 0.8 if hollow else 0.0}
    return EllipseCollection(
        width,
        width,
        np.zeros(len(centres)),
        units="points",
        offsets=centres,
        offset_transform=ax.transData,
        **(options | look),
    )


def marker_of(shape: str, width: float = 1.0) -> Look:
    """How an outline of this line width looks in a legend."""
    if shape == "point":
        return {"linestyle": "none", "marker": "o", "markersize": 2.0 + 2.0 * width, "mew": 0.0}
    marker = "s" if shape == "box" else "o"
    return {"linestyle": "none", "marker": marker, "fillstyle": "none", "mew": width}


def map_legend(ax: Axes, handles: Sequence[Artist], names: Sequence[str]) -> None:
    """A legend over the map, in a row if the figure is wide."""
    wide = figure_of(ax).get_figwidth() > 0.8 * WIDE
    legend_above(ax, handles, names, 3 if wide else 1)


def line_width(count: int) -> float:
    """Thinner lines for more outlines."""
    return float(np.clip(9.0 / np.sqrt(max(count, 1)), 0.3, 0.9))


@dataclass(frozen=True)
class ItemsMap:
    """Every item that touches the region."""

    outlines: FlatMap
    #: Left, right, low, high.
    region: Region
    underlay: Underlay | None = None
    #: Of each item a number, if the map is coloured: its category's place in ``names``, or -1.
    group: NDArray[np.int64] | None = None
    #: Categories that have a colour, the commonest first.
    names: tuple[str, ...] = ()


def prepare_items_map(
    posterior: Posterior,
    *,
    image: Beneath = None,
    extent: Region | None = None,
    region: Region | None = None,
    colour: str | None = None,
) -> ItemsMap:
    """The items, and the image (a file or an array) placed as in ``underlay.read_underlay``.

    With ``colour="category"`` the commonest categories of all items have colours.
    """
    placed = flat_map(posterior.items)
    underlay = read_underlay(image, placed.y, extent)
    if region is None:
        region = frame(placed, underlay)
    shown = touching(placed, region)
    if colour is None:
        return ItemsMap(placed.take(shown), region, underlay)
    group, names = _by_category(posterior, colour)
    return ItemsMap(placed.take(shown), region, underlay, group[shown], names)


def _by_category(posterior: Posterior, colour: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Of each item the place of its category among the commonest, or -1; and these."""
    if colour != "category":
        raise SettingsError(f'colour is {colour!r}; it must be "category", or be left out')
    told = posterior.items.category
    if told is None:
        raise SettingsError("the items have no category to colour them by; leave out colour")
    counts = Counter(name for name in told.tolist() if name)
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    names = tuple(ordered[: len(OF_CATEGORIES)])
    place = {name: k for k, name in enumerate(names)}
    return np.array([place.get(name, -1) for name in told.tolist()], np.int64), names


def _draw_categories(ax: Axes, table: ItemsMap, group: NDArray[np.int64]) -> None:
    """Rare categories and items without one are grey, and beneath the others."""
    from matplotlib.lines import Line2D

    width, keys = line_width(len(table.outlines)), []
    for k, name in ((-1, "other, or none"), *enumerate(table.names)):
        chosen = group == k
        if chosen.any():
            colour = GREY if k < 0 else OF_CATEGORIES[k]
            outlines = table.outlines.take(chosen)
            add_outlines(ax, outlines, edgecolors=colour, linewidths=width, alpha=0.8)
            keys.append((Line2D([], [], color=colour, **marker_of(outlines.shape)), plain(name)))
    if (group < 0).any():
        keys.append(keys.pop(0))
    map_legend(ax, [handle for handle, _ in keys], [name for _, name in keys])


def draw_items_map(table: ItemsMap, ax: Axes | None = None) -> Axes:
    """Outlines in one colour, which darken where many experts agree; or by category."""
    with styled():
        ax = map_axes(table.region, table.outlines) if ax is None else ax
        set_map(ax, table.region, table.outlines, table.underlay)
        add_scale_bar(ax, table.region, table.outlines)
        if table.group is not None:
            _draw_categories(ax, table, table.group)
            return ax
        add_outlines(
            ax,
            table.outlines,
            edgecolors="#ffd166" if has_pixels(table.underlay) else INK,
            linewidths=line_width(len(table.outlines)),
            alpha=0.55,
        )
    return ax


#: Probabilities between which an object is called doubtful.
DOUBTFUL = (0.05, 0.95)
NOT_AGREED, IN_DOUBT, AGREED = 0, 1, 2
#: Outlines that make a map full.
FULL = 5_000


@dataclass(frozen=True)
class CatalogueMap:
    """One outline for each cluster of the point partition."""

    outlines: FlatMap
    probability: NDArray[np.float64]
    #: ``AGREED``, ``IN_DOUBT`` or ``NOT_AGREED``.
    state: NDArray[np.int64]
    #: Of what the probability is.
    of: str
    region: Region
    underlay: Underlay | None = None


def prepare_catalogue_map(
    posterior: Posterior,
    *,
    catalogue: pandas.DataFrame | None = None,
    image: Beneath = None,
    extent: Region | None = None,
) -> CatalogueMap:
    """``catalogue`` saves making it a second time."""
    table = posterior.catalogue() if catalogue is None else catalogue
    found = flat_map(posterior.items)
    underlay = read_underlay(image, found.y, extent)
    real = "p_real" in table
    p = table["p_real" if real else "p_consensus"].to_numpy()
    return CatalogueMap(
        outlines=flat_catalogue(posterior, table),
        probability=p,
        state=state_of(p),
        of="real" if real else in_short(posterior.config.summary.min_experts),
        region=frame(found, underlay),
        underlay=underlay,
    )


def state_of(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """``AGREED``, ``IN_DOUBT`` or ``NOT_AGREED``."""
    low, high = DOUBTFUL
    return np.select([p >= high, p > low], [AGREED, IN_DOUBT], NOT_AGREED)


def looks(of: str, agreed: str, rest: str) -> tuple[tuple[int, str, float, str], ...]:
    """(state, colour, line width, words), in the order of drawing."""
    low, high = DOUBTFUL
    return (
        (NOT_AGREED, rest, 0.7, f"probability ≤ {low:g}"),
        (AGREED, agreed, 0.9, f"{of}: probability ≥ {high:g}"),
        (IN_DOUBT, VERMILION, 1.4, "in between"),
    )


def add_legend(ax: Axes, entries: dict[int, tuple[Line2D, str]]) -> None:
    """What the colours mean, from agreed to not agreed."""
    handles, names = zip(*(entries[s] for s in (AGREED, IN_DOUBT, NOT_AGREED)), strict=True)
    map_legend(ax, handles, names)


def draw_catalogue_map(table: CatalogueMap, ax: Axes | None = None) -> Axes:
    """Blue: real, or enough experts agree; vermilion: doubtful; grey: false, or too few experts."""
    from matplotlib.lines import Line2D

    agreed, rest = ("#9fd3ff", "#c8c8c8") if has_pixels(table.underlay) else (BLUE, GREY)
    with styled():
        ax = map_axes(table.region, table.outlines) if ax is None else ax
        set_map(ax, table.region, table.outlines, table.underlay)
        add_scale_bar(ax, table.region, table.outlines)
        entries = {}
        # On a full map lines of the usual width would cover everything.
        finer = float(np.clip(np.sqrt(FULL / max(len(table.outlines), 1)), 0.3, 1.0))
        for state, colour, width, name in looks(table.of, agreed, rest):
            own = table.state == state
            add_outlines(
                ax,
                table.outlines.take(own),
                edgecolors=colour,
                linewidths=finer * width,
                zorder=2 + width,
            )
            handle = Line2D([], [], color=colour, **marker_of(table.outlines.shape, width))
            entries[state] = (handle, f"{name} ({int(own.sum()):,})")
        add_legend(ax, entries)
    return ax


FIGURES = (
    Figure(
        "items_map",
        "the items of all experts, to scale (points as dots); lines darken where experts agree",
        prepare_items_map,
        draw_items_map,
        needs=(PLACES,),
        in_report=lambda shared: {"image": shared.underlay},
    ),
    Figure(
        "catalogue_map",
        "every object of the catalogue: agreed on, doubtful (probability between 0.05 and 0.95), "
        "or not agreed on",
        prepare_catalogue_map,
        draw_catalogue_map,
        needs=(PLACES,),
        in_report=lambda shared: {"catalogue": shared.catalogue, "image": shared.underlay},
    ),
)
