"""Where a georeferenced image lies beneath a map: by its own word, or that of a world file.

An image whose offset and scale are told lies there. Otherwise a GeoTIFF, or an image with a world
file beside it, is placed by its georeference if the items are in degrees or lengths on the ground.
Items without a known unit may be in pixels of the image or on its map: where they lie tells.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpError, DfcrpWarning
from dfcrp.geometry import counted_from
from dfcrp.io.georeference import WORLD_FILES, Georeference, library, read_georeference
from dfcrp.items.site import Site

#: Left, right, lower and upper end.
Region = tuple[float, float, float, float]
Floats = NDArray[np.float64]

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


class GroundImage(NamedTuple):
    """An image as it is drawn, and where its edges lie."""

    pixels: NDArray[Any]
    extent: Region


def lying(
    file: str, pixels: NDArray[Any], size: tuple[int, int], places: ItemPlaces, usual: Region
) -> GroundImage | None:
    """The image where it lies; None, with a warning, if that is not known.

    ``usual`` is where it lies by its pixels, which holds for items in pixels, unless they are on
    the map of its georeference instead.
    """
    site = places.site
    in_pixels = site.units == "px"
    by_pixels = GroundImage(pixels, usual)
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
    return GroundImage(pixels, extent)


def _placeless(file: str, site: Site) -> GroundImage | None:
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


def _not_used(file: str, why: str) -> GroundImage | None:
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
    pixels: NDArray[Any],
    where: Georeference,
    size: tuple[int, int],
    places: ItemPlaces,
) -> GroundImage | None:
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
    return GroundImage(found, extent)


def _warped(
    pixels: NDArray[Any], where: Georeference, size: tuple[int, int]
) -> tuple[NDArray[Any], Region]:
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
