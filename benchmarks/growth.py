"""Benchmarks of growth: more markings, more experts, more threads, and draws to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import (
    WARM_UP,
    peak_bytes,
    problem_for,
    ratio_of,
    resident_bytes,
    timed,
)
from dfcrp.items.items import Items
from dfcrp.runs.store import DrawStore
from dfcrp.sampling.chain import Chain
from dfcrp.simulate import highlands_like

#: Scans before the clock starts, where the first scans of a large field take minutes.
FEW_SCANS = 12
#: Some updates come in every second or fourth scan only: as many are timed at once, and so often.
SCANS_AT_ONCE, TIMES = 4, 4


def bench_growth(sizes: Sequence[float] = (1.0, 4.0, 16.0, 105.0)) -> dict[str, Any]:
    """Time per marking and scan, and memory per marking, as the image grows at one density.

    ``sizes`` are multiples of the highlands' area (9,517 markings), in increasing order. Of each
    the same scans are timed: those of a young chain take longer.
    """
    counts, times, resident, peak, per_size = [], [], [], [], []
    for size in sizes:
        markings = highlands_like(1, scale=size)
        before = resident_bytes()
        chain = Chain(problem_for(markings), np.random.SeedSequence(1), "exact")
        chain.run(1, FEW_SCANS)
        [found] = timed([lambda chain=chain: chain.run(1, SCANS_AT_ONCE)], TIMES)  # type: ignore[misc]
        n = len(markings) * SCANS_AT_ONCE
        counts.append(len(markings))
        per_size.append((found[0] / n, (found[1][0] / n, found[1][1] / n)))
        times.append(found[0] / n)
        resident.append(_per_marking(resident_bytes(), before, len(markings)))
        peak.append(_per_marking(peak_bytes(), before, len(markings)))
        del chain
    return {
        "n": counts,
        "seconds_per_marking": times,
        "bytes_per_marking": resident,
        "peak_bytes_per_marking": peak,
        "ratio": times[-1] / times[0],
        "ratios": {"largest over smallest n": ratio_of(per_size[-1], per_size[0], "lower")},
    }


def _per_marking(after: int | None, before: int | None, n: int) -> float | None:
    return None if after is None or before is None else (after - before) / n


def split_experts(markings: Items, families: int, seed: int = 1) -> Items:
    """The same markings by more experts: each expert's are dealt to several.

    No object gets two markings of one expert by this, so that the partitions stay valid.
    """
    each = -(-families // len(markings.experts))
    part = np.random.default_rng(seed).integers(0, each, len(markings))
    code = np.minimum(markings.families * each + part, families - 1)
    names = np.char.add("e", code.astype(np.str_))
    return Items.circles(markings.x, markings.y, markings.diameter, names)


def bench_families(
    families: Sequence[int] = (11, 100, 1000, 10_000), scale: float = 10.5
) -> dict[str, Any]:
    """Time of a scan and memory of the same 100,000 markings by more and more experts."""
    markings = highlands_like(1, scale=scale)
    chains, memory = [], []
    for count in families:
        before = resident_bytes()
        problem = problem_for(split_experts(markings, count) if count > 11 else markings)
        chain = Chain(problem, np.random.SeedSequence(1), "exact")
        chain.run(1, FEW_SCANS)
        chains.append(chain)
        memory.append(_per_marking(resident_bytes(), before, 1))
    found = timed([lambda chain=chain: chain.run(1, 1) for chain in chains], 5)  # type: ignore[misc]
    return {
        "n": len(markings),
        "families": list(families),
        "scan_seconds": [seconds for seconds, _ in found],
        "bytes": memory,
        "ratio": found[-1][0] / found[0][0],
        "ratios": {
            f"{count:,} experts over {families[0]}": ratio_of(seconds, found[0], "lower")
            for count, seconds in zip(families[1:], found[1:], strict=True)
        },
    }


def bench_threads(threads: Sequence[int] = (1, 2), scale: float = 10.5) -> dict[str, Any]:
    """Speed of one chain of 100,000 markings with more threads, whose draws must be the same."""
    markings = highlands_like(1, scale=scale)
    problem = problem_for(markings)
    seeds = [np.random.SeedSequence(1) for _ in threads]
    chains = [Chain(problem, s, "exact", t) for s, t in zip(seeds, threads, strict=True)]
    labels = [chain.run(1, WARM_UP).labels for chain in chains]
    found = timed([lambda chain=chain: chain.run(1, 8) for chain in chains], 20)  # type: ignore[misc]
    return {
        "n": len(markings),
        "parts": len(problem.data.block_start) - 1,
        "threads": list(threads),
        "seconds": [seconds / 8 for seconds, _ in found],
        "same_draws": all(np.array_equal(labels[0], other) for other in labels[1:]),
        "ratio": found[0][0] / found[-1][0],
        "ratios": {
            f"{count} threads against {threads[0]}": ratio_of(found[0], seconds, "higher")
            for count, seconds in zip(threads[1:], found[1:], strict=True)
        },
    }


def bench_storage(markings: Items, draws: int = 250) -> dict[str, Any]:
    """What it costs to keep draws and make them safe with a checkpoint, against drawing them.

    Every saving rewrites the unfinished blocks of the files; the medians are over eight savings
    in a row, as many draws as fill two blocks.
    """
    repeats = 8
    problem = problem_for(markings)
    chain = Chain(problem, np.random.SeedSequence(1), "exact")
    chain.run(1, WARM_UP)
    block = chain.run(draws, 1)
    with tempfile.TemporaryDirectory() as folder:
        store = DrawStore.create(folder)
        files = store.writer(0, 0, len(markings), problem.columns)

        def keep() -> None:
            files.append(block)
            files.save(chain, 0.0)

        scan, kept = timed([lambda: chain.run(draws, 1), keep], repeats)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    raw = block.labels.nbytes + block.cluster_labels.nbytes + block.parameters.nbytes
    return {
        "n": len(markings),
        "draws": draws,
        "scan_seconds": scan[0] / draws,
        "save_seconds": kept[0],
        "megabytes_per_second": raw / kept[0] / 1e6,
        "bytes_per_draw_on_disk": size / (repeats * draws),
        "ratio": kept[0] / scan[0],
        "ratios": {"saving draws over drawing them": ratio_of(kept, scan, "lower")},
    }
