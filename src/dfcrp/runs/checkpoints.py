"""Checkpoints: where each chain stands, so that a stopped run goes on as if it never was.

A chain's file holds its state, its random generator and the scans behind it. It is replaced as a
whole, after the draws up to it are committed; so there are always at least the draws that the
checkpoint counts, and those beyond it are drawn again, the same as before. The file is NumPy's
npz without pickle: reading one runs no code.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, DrawBlock
from dfcrp.errors import RunFolderError
from dfcrp.runs.draw_files import replacing, sync_folder
from dfcrp.runs.storage import DrawWriter, write_errors
from dfcrp.sampling.chain import Chain

FOLDER = "checkpoints"
#: To be raised when older code could not read what newer code writes.
FORMAT = 2
#: Entry of the file that is no state array: generator, format, seconds, as JSON.
_ABOUT = "about"


class ChainFolder:
    """One chain's draws and checkpoint in a run folder; what the runner writes to."""

    def __init__(self, run_folder: Path, number: int, draws: DrawWriter) -> None:
        self.path = run_folder / FOLDER / f"chain-{number}.npz"
        self._draws = draws

    @classmethod
    def create(
        cls, run_folder: Path, number: int, n_markings: int, columns: Columns
    ) -> ChainFolder:
        """Start an empty chain."""
        draws = DrawWriter.create(run_folder, number, n_markings, columns)
        return cls(run_folder, number, draws)

    @classmethod
    def open(cls, run_folder: Path, number: int, n_markings: int, columns: Columns) -> ChainFolder:
        """Go on with a chain, or start it if the run was stopped before it had begun."""
        if not DrawWriter.exists(run_folder, number):
            return cls.create(run_folder, number, n_markings, columns)
        return cls(run_folder, number, DrawWriter.open(run_folder, number))

    def append(self, block: DrawBlock) -> None:
        """Add a block of draws."""
        self._draws.append(block)

    def save(self, chain: Chain, seconds: float) -> None:
        """Commit the draws, then the chain's state after the last of them."""
        self._draws.flush()
        with write_errors(self.path, self._draws.n_committed):
            _write(self.path, chain, seconds)

    def restore(self, chain: Chain, thin: int) -> float:
        """Bring chain and draws to the checkpoint; the seconds that the run had taken by then.

        Without a checkpoint the chain stays at its start and all its draws are dropped.
        """
        found = _read(self.path)
        seconds = 0.0
        if found is not None:
            arrays, about = found
            try:
                chain.restore(arrays, about["generator"])
                seconds = float(about["seconds"])
            except (KeyError, ValueError, TypeError) as error:
                raise RunFolderError(
                    f"{self.path}: does not fit this run ({error}); {_ALTERNATIVE}"
                ) from None
        self._draws.truncate(chain.scans // thin)
        return seconds


_ALTERNATIVE = "delete it to let this chain begin again at its first scan"


def make_checkpoint_folder(run_folder: Path) -> None:
    """Make room for checkpoints; a run folder without it cannot be gone on with."""
    with write_errors(run_folder / FOLDER, 0):
        (run_folder / FOLDER).mkdir(exist_ok=True)


def scans_at(run_folder: Path, chains: int) -> list[int]:
    """Scans that each chain had done at its checkpoint."""
    counts = []
    for number in range(chains):
        found = _read(run_folder / FOLDER / f"chain-{number}.npz")
        counts.append(0 if found is None else int(found[0]["scans"][0]))
    return counts


def _write(path: Path, chain: Chain, seconds: float) -> None:
    arrays, generator = chain.snapshot()
    about = {"format": FORMAT, "generator": generator, "seconds": seconds}
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **{**arrays, _ABOUT: text})
    sync_folder(path.parent)


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """State arrays and what else is known; None if there is no checkpoint."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop(_ABOUT).tobytes())
        written = about["format"]
        if written == FORMAT:
            arrays["scans"][0]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile):
        raise RunFolderError(f"{path}: damaged; {_ALTERNATIVE}") from None
    if written != FORMAT:
        raise RunFolderError(
            f"{path}: a checkpoint of format {written!r}, this version of dfcrp reads format "
            f"{FORMAT}; use the version that wrote it (see provenance.json)"
        )
    return arrays, about
