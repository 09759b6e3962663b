"""Many images in one command against a command for each, side by side.

    ./run python -m benchmarks.many_images --images 1000 --scans 1000 --out many

Images are those of the paper's simulation design: six experts, about 180 markings. Commands for
single images are timed several times, before and after the one for all, and their median is
multiplied by the number of images. Every command is a process of its own, with its report.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from dfcrp.posterior.saving import load
from dfcrp.report.tables import prepare_out, provenance, write_json
from dfcrp.simulate import paper_design

_DFCRP = [sys.executable, "-m", "dfcrp.cli"]


def write_images(path: Path, n_images: int) -> int:
    """Markings of so many images of the paper's design; returns their number."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["image", "expert", "x", "y", "diameter"])
        for number in range(n_images):
            one = paper_design(number)
            columns = (one.expert, one.x, one.y, one.diameter)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            writer.writerows([image_name(number), *row] for row in rows)
            count += len(one)
    return count


def image_name(number: int) -> str:
    """What an image is called."""
    return f"image {number:05d}"


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds by the clock on the wall, and of processor time, that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, used


def time_single(folder: Path, data: Path, scans: int, numbers: range) -> list[tuple[float, float]]:
    """Time a command for each of these images; their results are removed."""
    found = []
    for number in numbers:
        one = [str(data), "--image", image_name(number), "--out", str(folder / "single")]
        found.append(timed([*_DFCRP, "fit", *one, "--scans", str(scans), "--quiet"]))
        shutil.rmtree(folder / "single")
    return found


def run(folder: Path, n_images: int, scans: int, repeats: int) -> dict[str, Any]:
    """Time everything."""
    prepare_out(folder)
    data, out = folder / "markings.csv", folder / "run"
    markings = write_images(data, n_images)
    # Its own file for each single command: reading all images would count against it.
    few = folder / "few.csv"
    write_images(few, 2 * repeats)
    time_single(folder, few, scans, range(1))  # compiles, and fills the file cache
    single = time_single(folder, few, scans, range(repeats))
    command = [*_DFCRP, "fit", str(data), "--out", str(out), "--scans", str(scans)]
    wall, used = timed(command)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    single += time_single(folder, few, scans, range(repeats, 2 * repeats))
    each = median(seconds for seconds, _ in single)
    each_used = median(seconds for _, seconds in single)
    found = load(out)
    files = [path for path in out.rglob("*") if path.is_file()]
    return {
        "images": n_images,
        "markings": markings,
        "scans": scans,
        "chains": found.config.run.chains,
        "seconds": wall,
        "processor_seconds": used,
        "drawing_seconds": found.record.seconds,
        "single_seconds": [seconds for seconds, _ in single],
        "single_processor_seconds": [seconds for _, seconds in single],
        "all_single_seconds": n_images * each,
        "ratio": n_images * each / wall,
        "ratio_of_processor_seconds": n_images * each_used / used,
        "peak_gigabytes": peak / 2**20,
        "run_folder_gigabytes": sum(path.stat().st_size for path in files) / 1e9,
        "run_folder_files": len(files),
        "load_average": os.getloadavg()[0],
    }


def main() -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--scans", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3, help="before and after, each")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = run(options.out, options.images, options.scans, options.repeats)
    write_json(options.out / "many_images.json", {**provenance(), **found})
    print(
        f"{found['images']:,} images of {found['markings'] / found['images']:.0f} markings, "
        f"{found['scans']:,} scans of {found['chains']} chains: {found['seconds']:.0f} s in one "
        f"command, {found['all_single_seconds']:,.0f} s in one for each: "
        f"{found['ratio']:.1f} times as fast ({found['ratio_of_processor_seconds']:.1f} times less "
        f"processor time). Peak memory {found['peak_gigabytes']:.2f} GB; "
        f"{found['run_folder_gigabytes']:.2f} GB in {found['run_folder_files']:,} files."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
