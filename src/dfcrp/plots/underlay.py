"""The image beneath the maps: read, reduced, and placed in the coordinates of the items."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.settings.config import ImageSettings

#: Left, right, lower and upper end of a part of the map.
Region = tuple[float, float, float, float]

#: Longest side, in pixels, that an image is reduced to: more than a printed page can show.
MAX_PIXELS = 3_000


@dataclass(frozen=True)
class Underlay:
    """An image and where its edges lie in the coordinates of the items."""

    #: (rows, columns) or (rows, columns, 3), the first row on top.
    pixels: NDArray[Any]
    #: Left, right, bottom, top; a bottom above the top means that y runs downwards.
    extent: Region


def read_underlay(
    image: Any, y: NDArray[np.float64], extent: Region | None = None
) -> Underlay | None:
    """An image file, an array or an Underlay, placed beneath items with these y.

    Without an ``extent`` one pixel is one unit and the upper left corner is (0, 0): with y running
    upwards from the negative height to zero if most y are negative, downwards if not.
    """
    if image is None or isinstance(image, Underlay):
        return image
    if isinstance(image, str | os.PathLike):
        pixels, size = read_image(image)
    else:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3):
            raise InputError(f"an image has rows, columns and perhaps colours, not {pixels.shape}")
        size = pixels.shape[1], pixels.shape[0]
    return Underlay(pixels, extent or extent_of(size, y, ImageSettings()))


def configured_underlay(settings: ImageSettings, y: NDArray[np.float64]) -> Underlay | None:
    """The image that a run's settings name; a warning if it is gone."""
    if settings.file is None:
        return None
    if not os.path.isfile(settings.file):
        warnings.warn(
            f"{settings.file}: the image is no longer there, so the maps are drawn without it; "
            "say where it is with `dfcrp report RUN --image-file FILE`",
            DfcrpWarning,
            stacklevel=2,
        )
        return None
    pixels, size = read_image(settings.file)
    return Underlay(pixels, extent_of(size, y, settings))


def extent_of(size: tuple[int, int], y: NDArray[np.float64], settings: ImageSettings) -> Region:
    """Where the edges of an image of this width and height lie."""
    upwards = settings.y == "up" or (settings.y == "auto" and float(np.median(y)) < 0)
    left, top = settings.offset
    width, height = settings.scale * size[0], settings.scale * size[1]
    return left, left + width, top - height if upwards else top + height, top


def check_image(path: str | os.PathLike[str]) -> None:
    """Refuse what is no image, before any work is done for it."""
    with _opened(path):
        pass


def read_image(path: str | os.PathLike[str]) -> tuple[NDArray[Any], tuple[int, int]]:
    """Pixels reduced to what a figure can show, and the full width and height."""
    with _opened(path) as image:
        size = image.size
        # A JPEG is decoded no finer than needed.
        image.draft(None, (MAX_PIXELS, MAX_PIXELS))
        return _reduced(image), size


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
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


def _reduced(image: Any) -> NDArray[Any]:
    step = -(-max(image.size) // MAX_PIXELS)
    if image.mode.startswith("I") or image.mode == "F":
        # One channel of more than eight bits, which Pillow cannot reduce in all its forms.
        return _block_means(np.asarray(image), step)
    # Palettes and alpha become colours.
    shown = image if image.mode == "L" else image.convert("RGB")
    return np.asarray(shown.reduce(step) if step > 1 else shown)


def _block_means(pixels: NDArray[Any], step: int) -> NDArray[Any]:
    """Means of squares of ``step`` pixels; those at the edge may hold fewer."""
    if step == 1:
        return pixels
    for axis in (0, 1):
        starts = np.arange(0, pixels.shape[axis], step)
        lengths = np.diff([*starts, pixels.shape[axis]])
        sums = np.add.reduceat(pixels, starts, axis=axis, dtype=np.float64)
        pixels = sums / (lengths[:, np.newaxis] if axis == 0 else lengths)
    return pixels.astype(np.float32)


def grey_levels(pixels: NDArray[Any]) -> NDArray[Any]:
    """Eight-bit images as they are; others between their 1st and 99th percentile."""
    if pixels.dtype == np.uint8:
        return pixels
    low, high = np.nanpercentile(pixels, [1.0, 99.0])
    scaled = (np.asarray(pixels, np.float64) - low) / max(float(high - low), 1e-300)
    return np.clip(np.nan_to_num(scaled), 0.0, 1.0)
