"""Which files of a folder are read, and what is to be said of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dfcrp.io.format import GivenFile
from dfcrp.io.registry import FOLDER_ENDINGS
from dfcrp.items.columns import quoted_names

KNOWN_TEXTS = ("classes.txt", "obj.names", "train.txt", "val.txt", "test.txt", "notes.txt")
"""Text beside YOLO's files that is no list of boxes."""


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder that are read."""

    root: Path
    files: Sequence[Path]
    yolo: frozenset[Path] = frozenset()
    aside: Sequence[str] = ()
    """What is to be said of those that are not."""


def files_in(path: Path) -> FolderFiles:
    """The files of a folder that are read, or else those of its folder ``labels``, as of YOLO's.

    If there are none, those of the folders in it. Beside YOLO's files an empty one is of an image
    on which nothing was found, and rows of numbers are YOLO's, whatever they are.
    """
    below = [file for file in path.rglob("*") if file.is_file()]
    direct = [file for file in below if file.parent == path]
    labels = [file for file in below if path / "labels" in file.parents]
    for root, there in ((path, direct), (path, labels), (path, below)):
        found = _readable(root, there)
        if found.files:
            rest = set(below) - set(there)
            others = _readable(root, sorted(rest)).files
            if not others:
                return found
            count = "1 file" if len(others) == 1 else f"{len(others)} files"
            aside = (
                f"{count} in folders inside it, such as {others[0].relative_to(path).as_posix()}, "
                "not read; give these folders by themselves"
            )
            return replace(found, aside=(*found.aside, aside))
    return FolderFiles(path, [])


def _readable(root: Path, there: Sequence[Path]) -> FolderFiles:
    """Which of these files are read."""
    from dfcrp.io.formats.audacity import looks_like_audacity
    from dfcrp.io.formats.yolo import has_row_of_yolo, is_text_of_yolo, looks_like_yolo

    labels = [file for file in there if _is_text(file, looks_like_audacity)]
    yolo = [file for file in there if _is_text(file, looks_like_yolo)]
    if not yolo and not labels:
        yolo = [file for file in there if has_row_of_yolo(file)]
    aside = []
    if not yolo and not labels:
        yolo = _all_empty(there)
    if yolo:
        texts = [file for file in there if file.suffix.lower() == ".txt" and file not in yolo]
        more = [file for file in texts if not file.stat().st_size or is_text_of_yolo(file)]
        yolo += more
        strange = sorted(file.name for file in set(texts) - set(more) if not _known_text(file))
        if strange:
            aside.append(f"text that is not YOLO's is not read: {quoted_names(strange)}")
    files = [file for file in there if file.suffix.lower() in FOLDER_ENDINGS]
    files = [file for file in files if not file.stem.upper().endswith("_AREA")]
    return FolderFiles(root, sorted({*yolo, *labels, *files}), frozenset(yolo), aside)


def _all_empty(there: Sequence[Path]) -> list[Path]:
    """Texts of which each is empty, as where YOLO's annotators or a detector found nothing."""
    texts = [file for file in there if file.suffix.lower() == ".txt" and not _known_text(file)]
    return texts if all(not file.stat().st_size for file in texts) else []


def _known_text(file: Path) -> bool:
    """Whether a text file beside YOLO's is known to hold no boxes."""
    return file.name.lower() in KNOWN_TEXTS or file.name.lower().startswith("readme")


def _is_text(file: Path, looks_like: Callable[[GivenFile], bool]) -> bool:
    """Whether it is a text of this format: other text in a folder is left alone."""
    if file.suffix.lower() != ".txt":
        return False
    try:
        return looks_like(GivenFile(file.name, file, file.read_bytes()))
    except OSError:
        return False
