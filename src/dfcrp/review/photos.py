"""Pieces of photographs, from one folder and from nowhere else.

Images have names that a run folder says, and a run folder may come from anybody. So a name is
looked up inside the folder, part by part, and no link in it is followed; what is sent is a piece,
drawn anew as a JPEG.
"""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.errors import InputError
from dfcrp.files import opened
from dfcrp.items.items import Items
from dfcrp.memory import refuse_more_than_memory
from dfcrp.plots.flat import Region
from dfcrp.plots.underlay import extent_of, grey_levels
from dfcrp.settings.config import ImageSettings

ENDINGS = ("", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP")
#: Longest side of a piece, in pixels, and its quality.
MAX_PIXELS, QUALITY = 900, 85


class Photos:
    """The images of a run that lie in a folder."""

    def __init__(self, folder: Path, items: Items, settings: ImageSettings) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder of images")
        self.folder = folder.resolve()
        self._settings = settings
        self._y = np.asarray(items.columns.get("y", np.zeros(1)), np.float64)
        self._alone = items.image is None

    def find(self, image: str) -> tuple[str, ...] | None:
        """The file of an image, as names below the folder; None if there is none."""
        names = [image + ending for ending in ENDINGS] if image else []
        if self._alone and self._settings.file is not None:
            names.append(Path(self._settings.file).name)
        for name in names:
            parts = tuple(re.split(r"[/\\]", name))
            if self._is_file(parts):
                return parts
        return self._only() if self._alone else None

    def _is_file(self, parts: tuple[str, ...]) -> bool:
        try:
            with opened(self.folder, *parts[:-1]) as place, place.reading(parts[-1]):
                return True
        except (OSError, ValueError):
            return False

    def _only(self) -> tuple[str, ...] | None:
        """The one image of the folder, for a run of one image without a name."""
        with opened(self.folder) as place:
            names = [n for n in place.names() if Path(n).suffix.lower() in ENDINGS[1:]]
        return (names[0],) if len(names) == 1 and self._is_file((names[0],)) else None

    def extent(self, parts: tuple[str, ...]) -> Region:
        """Left, right, bottom and top of an image in the items' coordinates."""
        return extent_of(self._read(parts).size, self._y, self._settings)

    @functools.lru_cache(maxsize=2)  # noqa: B019 - one object for as long as the server runs
    def _read(self, parts: tuple[str, ...]) -> Any:
        """An image in full, in eight bits."""
        from PIL import Image as Pillow

        where, limit = "/".join(parts), Pillow.MAX_IMAGE_PIXELS
        try:
            # Orbital images are larger than what Pillow takes for an attack.
            Pillow.MAX_IMAGE_PIXELS = None
            with (
                opened(self.folder, *parts[:-1]) as place,
                place.reading(parts[-1]) as file,
                Pillow.open(file, formats=FORMATS) as image,
            ):
                refuse_more_than_memory(8.0 * image.width * image.height, where, "make it smaller")
                if image.mode.startswith("I") or image.mode == "F":
                    shown = 255.0 * grey_levels(np.asarray(image))
                    return Pillow.fromarray(np.rint(shown).astype(np.uint8))
                return image.convert("L" if image.mode == "L" else "RGB")
        except (OSError, ValueError, SyntaxError, MemoryError) as error:
            raise InputError(f"{where}: cannot be read as an image: {error}") from None
        finally:
            Pillow.MAX_IMAGE_PIXELS = limit

    def piece(self, parts: tuple[str, ...], view: Region) -> bytes:
        """What lies in a view (left, right, bottom, top, as on the page), as JPEG.

        What lies outside of the image is grey.
        """
        from PIL import Image as Pillow

        image = self._read(parts)
        left, right, bottom, top = self.extent(parts)
        x = [image.width * (at - left) / (right - left) for at in view[:2]]
        y = [image.height * (at - top) / (bottom - top) for at in view[2:]]
        scale = MAX_PIXELS / max(x[1] - x[0], y[0] - y[1])
        size = max(round(scale * (x[1] - x[0])), 1), max(round(scale * (y[0] - y[1])), 1)
        # Brightness and colours as they are; grey images stay grey.
        piece = image.transform(
            size,
            Pillow.Transform.EXTENT,
            (x[0], y[1], x[1], y[0]),
            Pillow.Resampling.BICUBIC,
            fillcolor=128 if image.mode == "L" else (128, 128, 128),
        )
        content = io.BytesIO()
        piece.save(content, "JPEG", quality=QUALITY)
        return content.getvalue()
