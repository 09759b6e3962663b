"""A crowd of any size as files: circles or points by volunteers who looked at some images each.

    ./run python -m benchmarks.large_crowd --marks 1000000 --out crowd

About a hundred markings on every image, a thousand by every volunteer. The files are written
some images at a time, so that 10^8 markings take no more memory than 10^5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Images that are made and written at a time.
AT_ONCE = 1_000
SIDE = 1000.0
#: Names of the files in a folder.
MARKINGS, LOOKS, SKILLS = "markings.csv", "looks.csv", "skills.csv"
CATEGORIES = ("crater", "boulder", "ridge")


@dataclass(frozen=True)
class LargeCrowd:
    """How large the crowd is and what it is like."""

    images: int = 1_000
    volunteers: int = 100
    #: Volunteers who look at an image, objects on it, and false markings of a look, on average.
    looks: int = 10
    objects: float = 14.0
    false: float = 0.3
    #: Log odds to find an object: mean over volunteers, and spread.
    skill: float = 0.8
    skill_sd: float = 0.7
    #: Error of a position, and of a log diameter.
    error: float = 3.0
    size_error: float = 0.08
    kind: str = "circles"
    #: How many categories markings name, at most three; 0: none.
    categories: int = 0

    @classmethod
    def of_size(cls, marks: float, kind: str = "circles", categories: int = 0) -> LargeCrowd:
        """About so many markings."""
        volunteers = max(round(marks / 1_000), 20)
        return cls(max(round(marks / 100), 1), volunteers, kind=kind, categories=categories)

    def skills(self, seed: int) -> NDArray[np.float64]:
        """The chance of every volunteer to find an object."""
        rng = np.random.default_rng([seed, 0])
        logit = rng.normal(self.skill, self.skill_sd, self.volunteers)
        return 1.0 / (1.0 + np.exp(-logit))

    def pieces(self, seed: int) -> Iterator[Piece]:
        """The crowd, some images after the other."""
        skills = self.skills(seed)
        for first in range(0, self.images, AT_ONCE):
            rng = np.random.default_rng([seed, 1, first])
            yield self._piece(first, min(self.images - first, AT_ONCE), skills, rng)

    def _piece(
        self, first: int, images: int, skills: NDArray[np.float64], rng: np.random.Generator
    ) -> Piece:
        seats = min(self.looks, self.volunteers)
        # A run of volunteers that begins anywhere, with one stride for the image.
        stride = 1 + rng.integers(0, max((self.volunteers - 1) // seats, 1), (images, 1))
        begin = rng.integers(0, self.volunteers, (images, 1))
        who = (begin + stride * np.arange(seats)) % self.volunteers
        looks = np.column_stack([np.repeat(np.arange(images), seats), who.ravel()])
        counts = rng.poisson(self.objects, images)
        place = self._places(int(counts.sum()), rng)
        image_of = np.repeat(np.arange(images), counts)
        found = rng.random((len(place), seats)) < skills[who[image_of]]
        thing, seat = np.nonzero(found)
        n_false = rng.poisson(self.false, len(looks))
        blunder = np.repeat(np.arange(len(looks)), n_false)
        sd = np.array([self.error, self.error, self.size_error])
        values = place[thing] + rng.standard_normal((len(thing), 3)) * sd
        image = np.concatenate([image_of[thing], looks[blunder, 0]])
        expert = np.concatenate([who[image_of[thing], seat], looks[blunder, 1]])
        values = np.concatenate([values, self._places(len(blunder), rng)])
        order = np.lexsort((expert, image))
        right = np.concatenate([thing % 3, rng.integers(0, 3, len(blunder))])
        confused = rng.random(len(right)) < 0.2
        said = np.where(confused, rng.integers(0, 3, len(right)), right) % max(self.categories, 1)
        looks[:, 0] += first
        return Piece(image[order] + first, expert[order], values[order], said[order], looks)

    def _places(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """x, y and log diameter."""
        return np.column_stack(
            [rng.uniform(0, SIDE, (count, 2)), rng.normal(np.log(40.0), 0.4, count)]
        )

    def write(self, folder: Path, seed: int = 1) -> int:
        """Write the markings, who looked, and the true skills; returns how many markings."""
        folder.mkdir(parents=True, exist_ok=True)
        names = ["image", "expert", "x", "y"]
        names += ["diameter"] * (self.kind == "circles") + ["category"] * bool(self.categories)
        count = 0
        with (
            (folder / MARKINGS).open("w", encoding="utf-8") as markings,
            (folder / LOOKS).open("w", encoding="utf-8") as looks,
        ):
            markings.write(",".join(names) + "\n")
            looks.write("image,expert\n")
            for piece in self.pieces(seed):
                markings.writelines(self._lines(piece))
                looks.writelines(f"image{i:07},user{e:06}\n" for i, e in piece.looks.tolist())
                count += len(piece.image)
        skills = enumerate(self.skills(seed).tolist())
        text = "".join(f"user{at:06},{skill:.6f}\n" for at, skill in skills)
        (folder / SKILLS).write_text("expert,skill\n" + text, encoding="utf-8")
        return count

    def _lines(self, piece: Piece) -> Iterator[str]:
        said = [f",{CATEGORIES[at]}" if self.categories else "" for at in piece.said.tolist()]
        about = zip(piece.image.tolist(), piece.expert.tolist(), said, strict=True)
        for (image, expert, word), (x, y, size) in zip(about, piece.values.tolist(), strict=True):
            diameter = f",{np.exp(size):.4f}" if self.kind == "circles" else ""
            yield f"image{image:07},user{expert:06},{x:.4f},{y:.4f}{diameter}{word}\n"


class Piece(NamedTuple):
    """Some images: where the markings are, whose, what they name, and who looked."""

    image: NDArray[np.int64]
    expert: NDArray[np.int64]
    values: NDArray[np.float64]
    said: NDArray[np.int64]
    looks: NDArray[np.int64]


def main() -> int:
    """Write a crowd."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--marks", type=float, default=1e5)
    parser.add_argument("--kind", choices=("circles", "points"), default="circles")
    parser.add_argument("--categories", type=int, choices=(0, 2, 3), default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    crowd = LargeCrowd.of_size(options.marks, options.kind, options.categories)
    count = crowd.write(options.out, options.seed)
    print(f"{count:,} markings on {crowd.images:,} images by {crowd.volunteers:,} volunteers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
