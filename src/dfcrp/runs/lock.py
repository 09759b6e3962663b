"""Who may write to a run folder: one process at a time, and one task at a time to each chain.

**The lock** keeps two commands from working on one folder. The operating system holds it and drops
it with the process, however that ends; the file only says who has it. So what a killed process
leaves is no obstacle, and no process number that was given away again can be mistaken for the old
owner.

**A claim** keeps those out who were taken for dead: tasks on a cluster outlive the command that
sent them, and a worker may come back. A claim is a folder, ``RUN/writing/...``, with a name of its
own. What is written to the store is made in it and renamed out of it; what is removed is renamed
into it first. Who takes over removes the folder, and looks at the store only then. So the old owner
cannot add or remove a byte from that moment on: every way leads through a folder that is not there.
This needs no clock and no lock, only that a rename happens or does not, as on local disks and on
file systems shared by machines::

    RUN/writing/START/own/            of the command; START is new at each start
    RUN/writing/START/stop            asks its tasks to stop
    RUN/writing/START/chain-0/TASK/   of the task that has chain 0; TASK is new at each try
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dfcrp import filelocks
from dfcrp.errors import DfcrpError, DfcrpWarning, RunFolderError
from dfcrp.files import Folder, LinkError, opened, why, write_errors
from dfcrp.values import Json

LOCK = "run.lock"
WRITING, OWN, STOP = "writing", "own", "stop"
#: What was taken from another, until it is removed.
GONE = "gone-"
#: Bytes of a lock file, and how often to try to remove a folder that somebody still fills.
_LARGEST_LOCK, _ATTEMPTS = 10_000, 200
_GONE = (errno.ENOENT, errno.ENOTDIR, getattr(errno, "ESTALE", errno.ENOENT))


class LostClaimError(DfcrpError):
    """Another has taken over what this process was writing."""


class Claim:
    """The right to write to the store of a run folder; see the module's text."""

    def __init__(self, folder: Path, *below: str) -> None:
        """Without names below it: a claim that fences nobody off, for a store of one's own."""
        self.folder = folder
        self._below = below

    @property
    def start(self) -> str:
        """The start of the command that this claim belongs to."""
        return self._below[1]

    @contextmanager
    def desk(self) -> Iterator[Folder]:
        """The claim's folder; LostClaimError if another has taken over, also in the middle."""
        if not self._below:
            with _free_desk(self.folder) as desk:
                yield desk
            return
        try:
            with opened(self.folder, *self._below) as desk:
                yield desk
        except OSError as error:
            if error.errno in _GONE and not self.held():
                raise self._lost() from None
            raise

    def held(self) -> bool:
        """Whether nobody has taken over."""
        try:
            with opened(self.folder, *self._below):
                return True
        except OSError:
            return False

    def check(self) -> None:
        """LostClaimError if another has taken over."""
        if not self.held():
            raise self._lost()

    def _lost(self) -> DfcrpError:
        if not self.folder.is_dir():
            return DfcrpError(
                f"{self.folder}: the run folder was deleted or moved while the run was at work; "
                "what was not written elsewhere is lost"
            )
        return LostClaimError(
            f"{self.folder.joinpath(*self._below)}: another process has taken over; this one "
            "stops writing"
        )

    def must_stop(self) -> bool:
        """For a task: whether a stop is asked for; LostClaimError if another has taken over."""
        self.check()
        with contextlib.suppress(OSError), opened(self.folder, *self._below[:2]) as place:
            return place.status(STOP) is not None
        return True

    def release(self) -> None:
        """Give the claim back, if it is still held."""
        with contextlib.suppress(OSError), opened(self.folder, *self._below[:-1]) as place:
            place.remove(self._below[-1])


@contextmanager
def taken_over(folder: Path) -> Iterator[Claim]:
    """Claim a whole run folder: whoever wrote to its store before writes no more.

    For who holds the lock. Read the store after this, not before.
    """
    start = uuid.uuid4().hex[:12]
    with write_errors(folder), opened(folder, WRITING, make=True) as place:
        place.make(start)
        with place.below(start) as own:
            own.make(OWN)
        for name in place.names():
            if name != start:
                _fence_off(place, name)
    claim = Claim(folder, WRITING, start, OWN)
    try:
        yield claim
    finally:
        with contextlib.suppress(OSError), opened(folder, WRITING) as place:
            _fence_off(place, start)
        with contextlib.suppress(OSError):  # it may not be empty, or be gone
            os.rmdir(folder / WRITING)


@contextmanager
def task_claim(folder: Path, start: str, name: str) -> Iterator[Claim]:
    """A task's claim on a chain or a part; whoever had it before, in this start, writes no more."""
    token = uuid.uuid4().hex[:12]
    claim = Claim(folder, WRITING, start, name, token)
    try:
        with opened(folder, WRITING, start) as place:
            new = f"new-{token}"
            place.make(new)
            with place.below(new) as inside:
                inside.make(token)
            _put_in_place(place, new, name)
    except OSError as error:
        if error.errno in _GONE:
            raise claim._lost() from None
        raise DfcrpError(f"{folder / WRITING}: cannot be written: {why(error)}") from error
    try:
        yield claim
    finally:
        claim.release()


def ask_to_stop(folder: Path, start: str) -> None:
    """Let every task of a start stop."""
    with (
        contextlib.suppress(OSError),
        opened(folder, WRITING, start) as place,
        place.writing(STOP),
    ):
        pass


def _put_in_place(place: Folder, new: str, name: str) -> None:
    for _ in range(_ATTEMPTS):
        try:
            # Onto a folder that is not empty, a rename fails.
            place.move(new, place, name)
            return
        except OSError as error:
            if error.errno in _GONE:
                raise
        _fence_off(place, name)
    raise OSError(errno.EBUSY, "others keep claiming it", str(place.path / name))


def _fence_off(place: Folder, name: str) -> None:
    """Remove a claim, and all claims in it."""
    away = f"{GONE}{uuid.uuid4().hex[:12]}"
    try:
        place.move(name, place, away)
    except FileNotFoundError:
        return
    for attempt in range(_ATTEMPTS):
        # Who is in the middle of writing may still add to it, until it is removed.
        with contextlib.suppress(OSError):
            _take_apart(place, away)
        if place.status(away) is None:
            return
        time.sleep(min(0.01 * attempt, 0.2))
    raise OSError(errno.EBUSY, "a process that was stopped still writes to it", str(place.path))


def _take_apart(place: Folder, name: str) -> None:
    """Remove a claim so that nothing gets out of it in part.

    Who has the folder open can rename a shard out of it until the folder is gone. So each thing in
    it is renamed away first, as a whole, and only then emptied: the other has all of it or none.
    """
    found = place.status(name)
    if found is None or not stat.S_ISDIR(found.st_mode):
        place.remove(name)
        return
    with place.below(name) as inside:
        for entry in inside.names():
            away = f"{GONE}{uuid.uuid4().hex[:12]}"
            with contextlib.suppress(FileNotFoundError):  # the other was quicker
                inside.move(entry, place, away)
                _take_apart(place, away)
    place.remove_empty(name)


@contextmanager
def _free_desk(folder: Path) -> Iterator[Folder]:
    name = f"free-{uuid.uuid4().hex[:12]}"
    for attempt in range(_ATTEMPTS):
        with opened(folder, WRITING, make=True) as place:
            try:
                place.make(name)
            except FileNotFoundError:
                # Another thread has just removed the empty folder, as below.
                if attempt + 1 == _ATTEMPTS:
                    raise
                continue
            try:
                with place.below(name) as desk:
                    yield desk
            finally:
                with contextlib.suppress(OSError):
                    place.remove(name)
        break
    with contextlib.suppress(OSError):  # others may be at work
        os.rmdir(folder / WRITING)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; RunFolderError names the process that has it already."""
    path = folder / LOCK
    descriptor = _acquire(path)
    try:
        _refuse_other_machine(path)
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())
        try:
            yield
        finally:
            # While it is still locked, so that it is ours.
            with contextlib.suppress(OSError):
                path.unlink()
    finally:
        os.close(descriptor)
        if os.name == "nt":
            # Windows removes no file that is open; nor does it one that another has opened since.
            with contextlib.suppress(OSError):
                path.unlink()


def _acquire(path: Path) -> int:
    while True:
        try:
            with opened(path.parent) as folder:
                descriptor = folder.open_shared(path.name)
        except LinkError as error:
            raise RunFolderError(f"{error.filename}: {error.strerror}") from None
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {why(error)}") from None
        if not _locked_now(path, descriptor):
            owner = _owner(path)
            os.close(descriptor)
            who = f"process {owner['pid']} on {owner['host']}" if owner else "another process"
            raise RunFolderError(
                f"{path.parent}: {who} is working on this run; wait until it is done, or stop it"
            )
        # Its last owner may have removed the file between opening and locking.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                if os.fstat(descriptor).st_nlink == 1:
                    return descriptor
                _give_up_name(path, descriptor)
        os.close(descriptor)


def _give_up_name(path: Path, descriptor: int) -> None:
    """Remove a lock file that has a second name: what is written to it would be written there."""
    try:
        _refuse_other_machine(path)
        with write_errors(path), opened(path.parent) as folder:
            folder.remove(path.name)
    except BaseException:
        os.close(descriptor)
        raise


def _locked_now(path: Path, descriptor: int) -> bool:
    """Whether the lock is ours now; RunFolderError where the disk has none."""
    if not filelocks.there_are():
        warnings.warn(
            "this system has no file locks: two commands at work on one run folder are not told of "
            "each other, and the later one takes it over",
            DfcrpWarning,
            stacklevel=2,
        )
    try:
        return filelocks.try_lock(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise RunFolderError(f"{path}: cannot be locked: {why(error)}") from None


def _refuse_other_machine(path: Path) -> None:
    """Not every network file system shows one machine what another has locked."""
    owner = _owner(path)
    if owner and owner["host"] != socket.gethostname():
        raise RunFolderError(
            f"{path.parent}: process {owner['pid']} on {owner['host']} has been working on this "
            f"run since {owner['since']} or was killed there; if it no longer runs, delete {path}"
        )


def _owner(path: Path) -> Json | None:
    """Who wrote the lock file; None if that cannot be read."""
    try:
        with opened(path.parent) as folder:
            owner = json.loads(folder.read(path.name, _LARGEST_LOCK))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(owner, dict) or not {"pid", "host", "since"} <= set(owner):
        return None
    return {name: str(owner[name])[:100] for name in ("pid", "host", "since")}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
