"""The image beneath a map: read, reduced, and put where it lies.

An image whose offset and scale are told lies there. Otherwise a GeoTIFF, or an image with a world
file beside it, is placed by its georeference if the items are in degrees or lengths on the ground.
Items without a known unit may be in pixels of the image or on its map: where they lie tells.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dfcrp.errors import DfcrpError, DfcrpWarning, InputError
from dfcrp.geometry import counted_from
from dfcrp.io.georeference import WORLD_FILES, Georeference, library, read_georeference
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.memory import refuse_more_than_memory
from dfcrp.plots.flat import Floats, Region, flat_map_or_none
from dfcrp.settings.config import ImageSettings
from dfcrp.values import Array

if TYPE_CHECKING:
    from PIL.Image import Image

#: Grey levels (rows, columns), or colours (rows, columns, 3).
Pixels = Array
#: Longest side, in pixels, that an image is reduced to: more than a printed page can show.
MAX_PIXELS = 3_000


#: Tags of a TIFF with the size of a pixel, or with all six numbers.
_SCALE, _MATRIX = 33550, 34264
#: A pixel may be turned by this share of its side.
TURNED = 1e-3
#: Of the items this share must lie on the image, so that it is theirs.
ON_IMAGE = 0.5


class ItemPlaces(NamedTuple):
    """Items on their map, with what is known of the map."""

    x: Floats
    y: Floats
    site: Site
    #: Where longitudes begin to count.
    cut: float = 0.0


@dataclass(frozen=True)
class Underlay:
    """An image and where its edges lie in the coordinates of the items."""

    #: The first row on top; None if only the size of the image is known.
    pixels: Pixels | None
    #: Left, right, bottom, top; a bottom above the top means that y runs downwards.
    extent: Region


def has_pixels(underlay: Underlay | None) -> bool:
    """Whether there is an image to be seen, so that lines must stand out from it."""
    return underlay is not None and underlay.pixels is not None


#: What may lie beneath a map: a file, an array of pixels, an image that has its place, or nothing.
Beneath = str | os.PathLike[str] | Pixels | Underlay | None


def read_underlay(
    image: Beneath,
    y: Floats,
    extent: Region | None = None,
    places: ItemPlaces | None = None,
) -> Underlay | None:
    """An image file, an array or an Underlay, placed beneath items with these y.

    Without an ``extent`` one pixel is one unit and the upper left corner is (0, 0): with y running
    upwards from the negative height to zero if most y are negative, downwards if not. An image
    file with a georeference lies there, if ``places`` tell that the items are on its map.
    """
    if image is None or isinstance(image, Underlay):
        return image
    if isinstance(image, str | os.PathLike):
        if extent is None and places is not None:
            return configured_underlay(ImageSettings(file=os.fspath(image)), y, places)
        pixels, size = read_image(image)
    else:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3):
            raise InputError(f"an image has rows, columns and perhaps colours, not {pixels.shape}")
        size = pixels.shape[1], pixels.shape[0]
    return Underlay(pixels, extent or extent_of(size, y, ImageSettings()))


#: What the name of a photograph ends in.
ENDINGS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp", ".webp")


#: The photograph of an image, if there is one, and where the edges of the image lie.
Framed = tuple[Path | None, Region]


class Photographs:
    """The photographs in a folder, by the names of images."""

    def __init__(self, folder: str) -> None:
        self._named: dict[str, list[Path]] = {}
        root = Path(folder)
        there = sorted(path for path in root.rglob("*") if path.suffix.lower() in ENDINGS)
        for path in there:
            whole = path.relative_to(root)
            for name in {str(p) for p in (whole, whole.with_suffix(""), path.name, path.stem)}:
                self._named.setdefault(name, []).append(path)
        #: What one of them is called, for a message.
        self.example = there[0].name if there else "is none"

    def find(self, image: str) -> Path | None:
        """The photograph of an image: of its whole name, or of the last part of it.

        None if there is none, or several that it may be.
        """
        name = Path(image)
        for key in (image, str(name.with_suffix("")), name.name, name.stem):
            found = self._named.get(key, ())
            if found:
                return found[0] if len(found) == 1 else None
        return None


@cache
def photographs(folder: str) -> Photographs:
    """Those of a folder, looked for once."""
    return Photographs(folder)


def frame_of(settings: ImageSettings, items: Items, name: str) -> Framed | None:
    """The frame of an image of several: that of its photograph, or of the size in its file.

    None if neither is known, or if most items lie beyond.
    """
    path = None if settings.folder is None else photographs(settings.folder).find(name)
    if path is not None:
        with _opened(path) as image:
            size = image.size
    else:
        known = items.source_tables
        told = known.sizes.get(name)
        if told is None or known.shares or items.site.on_sphere or items.site.units != "px":
            return None
        size = told
    if not {"x", "y"} <= set(items.columns):
        return None
    own = np.ones(len(items), bool) if items.image is None else items.image == name
    x, y = items.columns["x"][own], items.columns["y"][own]
    extent = extent_of(size, y if own.any() else items.columns["y"], settings)
    there = _share_on(ItemPlaces(x, y, items.site), extent) if own.any() else 1.0
    return (path, extent) if path is not None or there >= ON_IMAGE else None


def thumbnail(path: Path, longest: int, quality: int) -> bytes:
    """A photograph as a JPEG whose longer side has so many pixels at most."""
    with _opened(path) as image:
        image.draft("RGB", (longest, longest))
        return as_jpeg(_reduced(image), longest, quality)


def as_jpeg(pixels: Pixels, longest: int, quality: int) -> bytes:
    """Pixels as a JPEG whose longer side has so many at most."""
    from PIL import Image as Pillow

    levels = grey_levels(pixels)
    if levels.dtype != np.uint8:
        levels = np.rint(255.0 * levels).astype(np.uint8)
    image = Pillow.fromarray(levels).convert("L" if levels.ndim == 2 else "RGB")
    image.thumbnail((longest, longest))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def configured_underlay(
    settings: ImageSettings,
    y: Floats,
    places: ItemPlaces | None = None,
    framed: Framed | None = None,
) -> Underlay | None:
    """The image that a run's settings name, or else what ``frame_of`` found.

    A warning if the image is gone.

    Without an offset and a scale it lies where its georeference says, if the items, whose
    ``places`` these are, are on its map. Beneath degrees an image without one has no place.
    """
    if settings.file is None:
        if framed is None:
            return None
        path, extent = framed
        return Underlay(None if path is None else read_image(path)[0], extent)
    if not os.path.isfile(settings.file):
        warnings.warn(
            f"{settings.file}: the image is no longer there, so the maps are drawn without it; "
            "say where it is with `dfcrp report RUN --image-file FILE`",
            DfcrpWarning,
            stacklevel=2,
        )
        return None
    pixels, size = read_image(settings.file)
    usual = extent_of(size, y, settings)
    told = replace(ImageSettings(), file=settings.file, y=settings.y) != settings
    if places is None or told:
        return Underlay(pixels, usual)
    return lying(settings.file, pixels, size, places, usual)


def places_of(items: Items) -> ItemPlaces | None:
    """Where items lie on their map, and what is known of it; None if they have no place."""
    found = flat_map_or_none(items)
    return None if found is None else ItemPlaces(found.x, found.y, items.site, found.cut)


def extent_of(size: tuple[int, int], y: Floats, settings: ImageSettings) -> Region:
    """Where the edges of an image of this width and height lie."""
    upwards = settings.y == "up" or (settings.y == "auto" and float(np.median(y)) < 0)
    left, top = settings.offset
    width, height = settings.scale * size[0], settings.scale * size[1]
    return left, left + width, top - height if upwards else top + height, top


def check_image(path: str | os.PathLike[str]) -> None:
    """Refuse what is no image, before any work is done for it."""
    with _opened(path):
        pass


def read_image(path: str | os.PathLike[str]) -> tuple[Pixels, tuple[int, int]]:
    """Pixels reduced to what a figure can show, and the full width and height."""
    with _opened(path) as image:
        size = image.size
        # A JPEG is decoded no finer than needed.
        image.draft(None, (MAX_PIXELS, MAX_PIXELS))
        refuse_more_than_memory(
            # A byte for a grey pixel; four for one in colours, as it is and converted.
            float(image.size[0]) * image.size[1] * (1 if image.mode == "L" else 8),
            f"{os.fspath(path)}: an image of {size[0]:,} by {size[1]:,} pixels",
            "give a smaller version of it, with --image-scale",
        )
        return _reduced(image), size


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Image]:
    from PIL import Image as Pillow

    limit = Pillow.MAX_IMAGE_PIXELS
    try:
        # Orbital images are larger than what Pillow takes for an attack.
        Pillow.MAX_IMAGE_PIXELS = None
        with Pillow.open(path) as image:
            yield image
    except (OSError, ValueError, SyntaxError, MemoryError) as error:
        raise InputError(f"{os.fspath(path)}: cannot be read as an image: {error}") from None
    finally:
        Pillow.MAX_IMAGE_PIXELS = limit


def _reduced(image: Image) -> Pixels:
    step = -(-max(image.size) // MAX_PIXELS)
    if image.mode.startswith("I") or image.mode == "F":
        # One channel of more than eight bits, which Pillow cannot reduce in all its forms.
        return _block_means(np.asarray(image), step)
    # Palettes and alpha become colours.
    shown = image if image.mode == "L" else image.convert("RGB")
    return np.asarray(shown.reduce(step) if step > 1 else shown)


def _block_means(pixels: Pixels, step: int) -> Pixels:
    """Means of squares of ``step`` pixels; those at the edge may hold fewer."""
    if step == 1:
        return pixels
    for axis in (0, 1):
        starts = np.arange(0, pixels.shape[axis], step)
        lengths = np.diff([*starts, pixels.shape[axis]])
        sums = np.add.reduceat(pixels, starts, axis=axis, dtype=np.float64)
        pixels = sums / (lengths[:, np.newaxis] if axis == 0 else lengths)
    return pixels.astype(np.float32)


def grey_levels(pixels: Pixels) -> Pixels:
    """Eight-bit images as they are; others between their 1st and 99th percentile."""
    if pixels.dtype == np.uint8:
        return pixels
    low, high = np.nanpercentile(pixels, [1.0, 99.0])
    scaled = (np.asarray(pixels, np.float64) - low) / max(float(high - low), 1e-300)
    return np.clip(np.nan_to_num(scaled), 0.0, 1.0)


def lying(
    file: str, pixels: Pixels, size: tuple[int, int], places: ItemPlaces, usual: Region
) -> Underlay | None:
    """The image where it lies; None, with a warning, if that is not known.

    ``usual`` is where it lies by its pixels, which holds for items in pixels, unless they are on
    the map of its georeference instead.
    """
    site = places.site
    in_pixels = site.units == "px"
    by_pixels = Underlay(pixels, usual)
    if in_pixels and _share_on(places, usual) >= ON_IMAGE:
        return by_pixels
    try:
        where = _georeference(Path(file))
    except DfcrpError as error:
        return by_pixels if in_pixels else _not_used(file, f"it cannot be read: {error}")
    if where is None:
        # One pixel may be one metre or kilometre, but hardly one degree.
        in_lengths = site.units != "deg" and _share_on(places, usual) >= ON_IMAGE
        return by_pixels if in_pixels or in_lengths else _placeless(file, site)
    if max(abs(where.b), abs(where.d)) > TURNED * abs(where.a):
        return by_pixels if in_pixels else _not_used(file, "its pixels are turned")
    width, height = size
    (left, right), (top, bottom) = where.at(np.array([0.0, width]), np.array([0.0, height]))
    extent = (float(left), float(right), float(bottom), float(top))
    geographic = _is_geographic(where)
    if site.units == "deg" and geographic is False:
        return _on_degrees(file, pixels, where, size, places)
    if site.units in ("m", "km") and geographic:
        return _not_used(file, f"it is in degrees, and the items are in {site.units}")
    if site.units == "km":
        extent = (extent[0] / 1e3, extent[1] / 1e3, extent[2] / 1e3, extent[3] / 1e3)
    if site.units == "deg":
        extent = _from_cut(extent, places)
    if _share_on(places, extent) < ON_IMAGE:
        return by_pixels if in_pixels else _not_used(file, "most items lie beyond it")
    return Underlay(pixels, extent)


def _placeless(file: str, site: Site) -> Underlay | None:
    """Beneath degrees or kilometres pixels are nowhere."""
    warnings.warn(
        f"{file}: the items are in {site.units}, and the image does not say where it lies; the "
        "maps are drawn without it. Give a GeoTIFF, put a world file (.tfw, .pgw, .wld) beside it, "
        "or say where it lies with --image-offset and --image-scale",
        DfcrpWarning,
        stacklevel=4,
    )
    return None


def _share_on(places: ItemPlaces, extent: Region) -> float:
    """The share of items that lie on an image."""
    left, right, low, high = extent
    across = (places.x >= min(left, right)) & (places.x <= max(left, right))
    return float(np.mean(across & (places.y >= min(low, high)) & (places.y <= max(low, high))))


def _from_cut(extent: Region, places: ItemPlaces) -> Region:
    """Longitudes of the edges as the map counts them."""
    left, right, low, high = extent
    start = float(counted_from(np.array([(left + right) / 2.0]), places.cut)[0])
    half = (right - left) / 2.0
    return start - half, start + half, low, high


def _not_used(file: str, why: str) -> Underlay | None:
    warnings.warn(
        f"{file}: the georeference of the image is not used, since {why}; the maps are drawn "
        "without the image. Say where it lies with --image-offset and --image-scale",
        DfcrpWarning,
        stacklevel=4,
    )
    return None


def _georeference(file: Path) -> Georeference | None:
    """What the image, or a world file beside it, says of its place."""
    beside = [file.with_suffix(ending) for ending in WORLD_FILES]
    beside += [file.with_suffix(file.suffix + "w")]
    world = next((one for one in beside if one.is_file()), None)
    if world is None and not _says_place(file):
        return None
    return read_georeference(file if world is None else world)


def _says_place(file: Path) -> bool:
    """Whether a TIFF has the tags of a GeoTIFF, which need no library to be seen."""
    from PIL import Image as Pillow

    try:
        with Pillow.open(file) as image:
            tags = getattr(image, "tag_v2", {})
            return _SCALE in tags or _MATRIX in tags
    except (OSError, ValueError, SyntaxError):
        return False


def _is_geographic(where: Georeference) -> bool | None:
    """Whether the image is in degrees; None if nothing says it."""
    if where.crs is None:
        return None
    head = where.crs.lstrip().upper()
    return head.startswith(("GEOGCS", "GEOGCRS", "GEODCRS"))


def _on_degrees(
    file: str,
    pixels: Pixels,
    where: Georeference,
    size: tuple[int, int],
    places: ItemPlaces,
) -> Underlay | None:
    """An image on a map in metres, brought to longitude and latitude on the same body."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries, about each other
            found, extent = _warped(pixels, where, size)
    except Exception as error:  # libraries of others, and systems of any kind
        return _not_used(file, f"it cannot be brought to degrees: {error}")
    extent = _from_cut(extent, places)
    if _share_on(places, extent) < ON_IMAGE:
        return _not_used(file, "most items lie beyond it")
    return Underlay(found, extent)


def _warped(pixels: Pixels, where: Georeference, size: tuple[int, int]) -> tuple[Pixels, Region]:
    """Pixels in longitude and latitude, and where their edges lie."""
    what = "an image on a map, beneath degrees,"
    rasterio, warp, pyproj = (library(one, what) for one in ("rasterio", "rasterio.warp", "pyproj"))
    degrees = pyproj.CRS.from_wkt(where.crs).geodetic_crs.to_wkt("WKT1_GDAL")
    source, target = (rasterio.crs.CRS.from_wkt(text) for text in (where.crs, degrees))
    rows, columns = pixels.shape[:2]
    across, down = where.a * size[0] / columns, where.e * size[1] / rows
    placed = rasterio.transform.Affine(across, 0.0, where.c, 0.0, down, where.f)
    ends = [where.c, where.c + across * columns], [where.f, where.f + down * rows]
    bounds = min(ends[0]), min(ends[1]), max(ends[0]), max(ends[1])
    new, width, height = warp.calculate_default_transform(source, target, columns, rows, *bounds)
    bands = pixels[..., np.newaxis] if pixels.ndim == 2 else pixels
    found = np.zeros((height, width, bands.shape[2]), bands.dtype)
    for band in range(bands.shape[2]):
        given, taken = (
            np.ascontiguousarray(bands[..., band]),
            np.zeros((height, width), bands.dtype),
        )
        warp.reproject(
            given,
            taken,
            src_transform=placed,
            src_crs=source,
            dst_transform=new,
            dst_crs=target,
        )
        found[..., band] = taken
    extent = (new.c, new.c + new.a * width, new.f + new.e * height, new.f)
    return found[..., 0] if pixels.ndim == 2 else found, extent
