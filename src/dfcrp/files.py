"""Files that are there as a whole or not at all, in folders that no link leads out of.

A file is written beside its place, put on the disk and renamed into its place. So whoever looks,
at whatever moment and after whatever kill, finds all of the old content or all of the new.

What lies in a folder of ours may have been put there by others. So everything is opened relative
to the folder's descriptor, and links are never followed: a link where a file is to be written is
replaced, one where a folder or a file to be read should be is refused. The path of the folder
itself is the user's word, and may lead through links.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dfcrp.errors import DfcrpError, RunFolderError
from dfcrp.values import Json

#: What a file or folder is called until it is whole.
PART = ".part"
#: Windows can do none of this relative to a descriptor; there every step is checked by its path.
RELATIVE = {os.open, os.mkdir, os.unlink, os.rename, os.stat} <= os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)  # a pipe where a file should be must not make us wait
_BINARY = getattr(os, "O_BINARY", 0)
_LONGEST_NAME = 255


class Folder:
    """A folder that is open; made by ``opened``, and closed with its block."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path = path
        self._descriptor = descriptor

    def _at(self, name: str) -> tuple[Any, Json]:
        """A name in this folder, as the functions of ``os`` take it."""
        if name in ("", ".", "..") or "/" in name or os.sep in name or "\0" in name:
            raise ValueError(f"{name!r} is no name in a folder")
        if self._descriptor is None:
            return self.path / name, {}
        return name, {"dir_fd": self._descriptor}

    @contextmanager
    def below(self, *names: str, make: bool = False) -> Iterator[Folder]:
        """A folder in this one, or in that; OSError if there is none, or a link in its place."""
        if not names:
            yield self
            return
        place, how = self._at(names[0])
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(place, **how)
        path = self.path / names[0]
        self._refuse_link(names[0])
        if self._descriptor is None:
            if not path.is_dir():
                raise NotADirectoryError(errno.ENOENT, "there is no such folder", str(path))
            with Folder(path, None).below(*names[1:], make=make) as found:
                yield found
            return
        descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW, **how)
        try:
            with Folder(path, descriptor).below(*names[1:], make=make) as found:
                yield found
        finally:
            os.close(descriptor)

    def status(self, name: str) -> os.stat_result | None:
        """What a name stands for, itself and not what it links to; None if there is none."""
        place, how = self._at(name)
        try:
            return os.stat(place, follow_symlinks=False, **how)
        except FileNotFoundError:
            return None

    def _refuse_link(self, name: str) -> None:
        found = self.status(name)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise LinkError(self.path / name)

    def names(self) -> list[str]:
        """The names in this folder, in order."""
        return sorted(os.listdir(self.path if self._descriptor is None else self._descriptor))

    def make(self, name: str) -> None:
        """A new folder in this one; FileExistsError if the name is taken."""
        place, how = self._at(name)
        os.mkdir(place, **how)

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Open a new file; what had its name is removed."""
        place, how = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            self.remove(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY
        with os.fdopen(os.open(place, flags, 0o666, **how), "wb") as file:
            yield file

    @contextmanager
    def replacing(self, name: str, *, durable: bool = True) -> Iterator[BinaryIO]:
        """Open a file that takes the place of ``name`` when the block ends.

        ``durable``: it is on the disk, not just in the system's memory, before it is given its
        name. One process at a time may do this for a name.
        """
        part = name + PART
        if len(os.fsencode(part)) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, "the name is too long", str(self.path / name))
        try:
            with self.writing(part) as file:
                yield file
                if durable:
                    put_on_disk(file)
            self.move(part, self, name)
        except BaseException:
            with contextlib.suppress(OSError):
                self.remove(part)
            raise

    def move(self, name: str, to: Folder, new: str) -> None:
        """Rename a file or folder, also into another folder, in the place of what is there."""
        place, how = self._at(name)
        target, there = to._at(new)
        if self._descriptor is None or to._descriptor is None:
            os.replace(place, target)
        else:
            os.rename(place, target, src_dir_fd=how["dir_fd"], dst_dir_fd=there["dir_fd"])

    def read(self, name: str, most: int) -> bytes:
        """The content of a file of at most so many bytes; of a link or a pipe it is none.

        Raises ``TooLargeError`` or ``LinkError``, which are OSErrors.
        """
        with self.reading(name) as file:
            size = os.fstat(file.fileno()).st_size
            # One more, so that a file that grows meanwhile is noticed.
            content = file.read(size + 1) if size <= most else b""
        if size > most or len(content) > size:
            raise TooLargeError(self.path / name, most)
        return content

    @contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """Open a file for reading."""
        self._refuse_link(name)
        place, how = self._at(name)
        descriptor = os.open(place, os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY, **how)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is not a file", str(self.path / name))
            yield file

    def open_shared(self, name: str) -> int:
        """A descriptor of a file that several processes open, which is made if need be."""
        self._refuse_link(name)
        place, how = self._at(name)
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | _NOFOLLOW | _NONBLOCK, 0o644, **how)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is not a file", str(self.path / name))
        return descriptor

    def remove(self, name: str) -> None:
        """Remove a file, a link (never what it leads to), or a folder with all that is in it."""
        place, how = self._at(name)
        found = os.stat(place, follow_symlinks=False, **how)
        if stat.S_ISDIR(found.st_mode):
            # It follows no links, and works relative to descriptors where these can be had.
            shutil.rmtree(place, **how)
        else:
            os.unlink(place, **how)

    def remove_empty(self, name: str) -> None:
        """Remove a folder with nothing in it; OSError if there is something."""
        place, how = self._at(name)
        os.rmdir(place, **how)

    def sync(self) -> None:
        """Put the names in this folder on the disk.

        File systems with a journal keep the order of renames: those made earlier, in whatever
        folder, are on the disk then too.
        """
        if self._descriptor is not None:
            os.fsync(self._descriptor)


class LinkError(OSError):
    """A link lies where a file or a folder of ours should be."""

    def __init__(self, path: Path) -> None:
        words = "it is a link, and links in a folder of dfcrp are not followed; put there what it"
        super().__init__(errno.ELOOP, f"{words} leads to", str(path))


class TooLargeError(OSError):
    """A file is larger than anything that is written under its name."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"it has more than {most:,} bytes", str(path))


@contextmanager
def opened(path: Path, *below: str, make: bool = False) -> Iterator[Folder]:
    """Open a folder by its path, and one below it by names that are never links.

    With ``make`` those below are made where they are missing; the folder itself never is.
    """
    if not RELATIVE:
        if not path.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        with Folder(path, None).below(*below, make=make) as found:
            yield found
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | getattr(os, "O_CLOEXEC", 0))
    try:
        with Folder(path, descriptor).below(*below, make=make) as found:
            yield found
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Give a file this content, as ``Folder.replacing`` does."""
    with opened(path.parent) as folder, folder.replacing(path.name, durable=durable) as file:
        file.write(content)


def write_bytes(root: Path, name: str, content: bytes, *, durable: bool = True) -> None:
    """Give a file below a folder this content; ``name`` may have folders in it, with slashes.

    They are made where they are missing. DfcrpError says why it cannot be done.
    """
    *folders, last = name.split("/")
    with (
        write_errors(root / name),
        opened(root, *folders, make=True) as folder,
        folder.replacing(last, durable=durable) as file,
    ):
        file.write(content)


def write_text(root: Path, name: str, text: str) -> None:
    """Give a file below a folder this text, as ``write_bytes`` does."""
    write_bytes(root, name, text.encode())


def remove_file(root: Path, name: str) -> None:
    """Remove a file or a folder below a folder, if it is there; ``name`` as in ``write_bytes``."""
    *folders, last = name.split("/")
    with (
        write_errors(root / name),
        contextlib.suppress(FileNotFoundError),
        opened(root, *folders) as folder,
    ):
        folder.remove(last)


def put_on_disk(file: BinaryIO) -> None:
    """Bring what was written to an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def write_errors(path: Path, safe: str = "") -> Iterator[None]:
    """Say in words why ``path`` cannot be written, and with ``safe`` what is not lost."""
    try:
        yield
    except LinkError as error:
        raise RunFolderError(f"{error.filename}: {error.strerror}") from error
    except OSError as error:
        message = f"{path}: cannot be written: {why(error)}"
        raise DfcrpError(f"{message}. {safe}" if safe else message) from error


def why(error: OSError) -> str:
    """The reason in plain words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    if error.errno == errno.ENAMETOOLONG:
        return "the name is too long for this disk; choose a shorter one"
    return error.strerror or str(error)
