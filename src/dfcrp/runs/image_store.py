"""Where the draws of each of many images lie: in a pack with others, or in a folder of its own.

An image whose draws are many is written as it is drawn, with checkpoints, like a run of its own,
under ``images/``. The others are drawn in memory and packed when they are done: what a kill costs
them is the time of the images that were being drawn, and those since the last pack.
"""

from __future__ import annotations

from pathlib import Path

from dfcrp.draws import Columns, Draws
from dfcrp.runs.checkpoints import ChainFolder, make_checkpoint_folder, scans_at
from dfcrp.runs.packs import PackReader
from dfcrp.runs.storage import DrawWriter, StoredDraws, write_errors
from dfcrp.sampling.runner import MemoryWriter, memory_draws
from dfcrp.settings.config import Config

FOLDER = "images"
#: Labels of all draws up to which an image is drawn in memory: well below 1 GB, and a few minutes.
MAX_LABELS = 1 << 26


class ImageStore:
    """The draws in a run folder, image by image."""

    def __init__(self, run_folder: Path, config: Config) -> None:
        self._run_folder = run_folder
        self._config = config
        self.packs = PackReader(run_folder)

    def folder(self, image: int) -> Path:
        """The folder of an image that has one; named by number, as names may be anything."""
        return self._run_folder / FOLDER / f"{image:06d}"

    def is_apart(self, image: int, n_markings: int) -> bool:
        """Whether an image has, or is to have, a folder of its own."""
        if image in self.packs:
            return False
        run = self._config.run
        longest = run.max_scans if run.scans is None else run.scans
        many = n_markings * run.chains * (longest // run.thin) > MAX_LABELS
        return many or self.folder(image).is_dir()

    def chains(self, image: int, n_markings: int, columns: Columns) -> list[ChainFolder]:
        """The chains of an image with a folder of its own, begun or to begin."""
        folder = self.folder(image)
        with write_errors(folder, 0):
            folder.mkdir(parents=True, exist_ok=True)
        make_checkpoint_folder(folder)
        return [
            ChainFolder.open(folder, number, n_markings, columns)
            for number in range(self._config.run.chains)
        ]

    def scans(self, n_images: int) -> list[int]:
        """Scans that every chain of each image has done at its checkpoint."""
        counts = []
        for image in range(n_images):
            if image in self.packs:
                counts.append(min(self.packs.scans(image)))
            elif self.begun(image):
                counts.append(min(scans_at(self.folder(image), self._config.run.chains)))
            else:
                counts.append(0)
        return counts

    def begun(self, image: int) -> bool:
        """Whether there is anything of an image."""
        return image in self.packs or DrawWriter.exists(self.folder(image), 0)

    def draws(self, image: int, burn_in: int, stop: int) -> Draws:
        """Draws ``burn_in:stop`` of every chain of an image."""
        if image not in self.packs:
            return StoredDraws(self.folder(image), burn_in=burn_in, stop=stop)
        found = self.packs.read(image)
        writers = []
        for chain in found.chains:
            writers.append(MemoryWriter())
            writers[-1].append(chain)
        return memory_draws(writers, burn_in, found.columns, stop)
