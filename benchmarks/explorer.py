"""How quick the explorer is: ready, redrawn at full view and zoomed in, without a GPU.

    ./run python -m benchmarks.explorer RUN            a run folder whose report is written
    ./run python -m benchmarks.explorer --simulated 100000 [--kind points|boxes|ellipses]

Times are those of the page's own clock in headless Chromium. A redraw ends when a pixel of the map
was read back, so that it counts what the browser would otherwise draw later. Ready counts from the
start of navigation until every panel is drawn. Medians of several; ``cpu`` beside them is the time
that the page's thread had a processor for itself, whatever else the machine was busy with.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.scatter import CIRCLE_COLUMNS
from dfcrp.likelihoods.normal.likelihood import columns_of
from dfcrp.likelihoods.normal.shapes import SHAPES
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.parts import RunRecord
from dfcrp.settings.config import make_config
from dfcrp.summaries.streaming import canonical

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
REDRAW = """(zoom) => {
  const { view, map } = explorer;
  const canvas = document.getElementById("explorer-outlines");
  view.fit();
  if (zoom > 1) view.go(view.x, view.y, zoom * view.fitScale());
  const times = [];
  for (let k = 0; k < 15; k++) {
    view.x += 1e-3 / view.scale;
    const began = performance.now();
    map.draw();
    canvas.getContext("2d").getImageData(0, 0, 1, 1);
    times.push(performance.now() - began);
  }
  return { times, detail: map.detail };
}"""
#: Once a canvas is read back often, Chromium moves it to the processor for good; these arguments
#: have it there from the start, as on a machine without a GPU.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-accelerated-2d-canvas"]


def simulated(folder: Path, n: int, kind: str, draws: int = 200) -> None:
    """A page with the explorer alone, of about n items by 11 experts; 2 % come and go."""
    from dfcrp.report.contents import Contents
    from dfcrp.report.explorer.embed import SCRIPT_HASH, explorer, style
    from dfcrp.report.sections.run import headline
    from dfcrp.report.write import PAGE, make_page

    rng = np.random.default_rng(1)
    objects = n // 6
    truth, family = np.nonzero(rng.random((objects, 11)) < rng.beta(1.2, 1.0, objects)[:, None])
    expert = [f"expert {f}" for f in family]
    items = Items.from_columns(columns_near(rng, kind, objects, truth), expert, kind=kind)
    restless = rng.random(len(truth)) < 0.02
    alone = np.arange(len(truth)) + objects
    labels = [
        np.where(restless & (rng.random(len(truth)) < 0.3), alone, truth) for _ in range(draws)
    ]
    contents = Contents(posterior_of(canonical(np.array(labels))[np.newaxis], items, rng))
    text = make_page(
        "Simulated",
        headline(contents, link=None),
        [explorer(contents)],
        style=style(),
        script_hash=SCRIPT_HASH,
    )
    (folder / PAGE).write_text(text, encoding="utf-8")


def columns_near(
    rng: np.random.Generator, kind: str, objects: int, truth: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Items of each object, as many to the area whatever their number."""
    side = 400.0 * np.sqrt(objects / 100)
    place = rng.uniform(0, side, (objects, 2))[truth]
    size = rng.lognormal(3.4, 0.6, (objects, 2))[truth]
    x, y = (place + 0.06 * size[:, :1] * rng.normal(size=place.shape)).T
    width, height = (size * rng.uniform(0.9, 1.1, size.shape)).T
    if kind == "circles":
        return {"x": x, "y": y, "diameter": width}
    if kind == "points":
        return {"x": x, "y": y}
    if kind == "boxes":
        return {"x": x, "y": y, "width": width, "height": height}
    angle = (rng.uniform(0, 180, objects)[truth] + rng.normal(0, 4, len(truth))) % 180
    long, short = np.maximum(width, height), np.minimum(width, height)
    return {"x": x, "y": y, "major": long, "minor": short, "angle": angle}


def posterior_of(labels: NDArray[np.int32], items: Items, rng: np.random.Generator) -> Posterior:
    """Clusters near their members' means, as a sampler would draw them."""
    if items.kind == "circles":
        columns = Columns(CIRCLE_COLUMNS.parameters)
    else:
        columns = Columns(columns_of(SHAPES[items.kind]).parameters)
    rest = len(columns.parameters) - items.features.shape[1]
    error = 0.02 * items.features.std(axis=0, keepdims=True).T / np.sqrt(len(items))
    rows, names, offsets = [], [], [0]
    for draw in labels[0]:
        size = np.bincount(draw)
        held = np.flatnonzero(size)
        mean = np.stack([np.bincount(draw, f)[held] for f in items.features.T]) / size[held]
        noise = rng.normal(size=mean.shape) * error / np.sqrt(size[held])
        rows.append(np.vstack([mean + noise, np.full((rest, len(held)), 0.01)]).T)
        names.append(held)
        offsets.append(offsets[-1] + len(held))
    block = ClusterBlock(
        np.array(offsets), np.concatenate(names).astype(np.int32), np.vstack(rows).astype("f4")
    )
    draws = MemoryDraws(labels, rng.gamma(2.0, size=labels.shape[:2]), [block], columns)
    config = make_config({"run": {"likelihood": items.kind}})
    return Posterior(draws, items, config, RunRecord(labels.shape[1], 0, 1, 1.0))


def measure(page_file: Path) -> dict[str, Any]:
    """Open the page several times and redraw it."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)))
    found: dict[str, Any] = {"megabytes": round(page_file.stat().st_size / 1e6, 2)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        ready, ready_cpu = [], []
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1366, "height": 860})
            used = processor_clock(page)
            page.goto(page_file.as_uri())
            page.wait_for_selector("#explorer-root[data-ready=yes]", timeout=120_000)
            ready_cpu.append(used())
            ready.append(page.evaluate("explorer.readyAt"))
        found["markings"] = page.evaluate("explorer.data.count")
        found["ready_ms"] = round(median(ready))
        found["ready_cpu_ms"] = round(median(ready_cpu))
        for name, zoom in (("full", 1), ("zoomed_8", 8), ("zoomed_30", 30)):
            page.evaluate(REDRAW, zoom)
            before = used()
            answer = page.evaluate(REDRAW, zoom)
            found[f"{name}_cpu_ms"] = round((used() - before) / len(answer["times"]), 1)
            found[f"{name}_ms"] = round(median(answer["times"]), 1)
            found[f"{name}_detail"] = answer["detail"]
        browser.close()
    return found


def processor_clock(page: Any) -> Callable[[], float]:
    """Milliseconds that the page's thread has spent on a processor so far."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1e3 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    return used


def in_words(found: dict[str, Any]) -> str:
    """A line for each number, with what is wanted of a run like the highlands'."""
    lines = [f"{found['markings']:,} items, page of {found['megabytes']} MB"]
    for name, key, limit in (
        ("ready", "ready", 2_000),
        ("redraw, full view", "full", 100),
        ("redraw, zoomed 8 times", "zoomed_8", 20),
        ("redraw, zoomed 30 times", "zoomed_30", 20),
    ):
        taken, used = found[f"{key}_ms"], found[f"{key}_cpu_ms"]
        good = "ok" if taken < limit else "TOO SLOW"
        lines.append(
            f"{name:<24}{taken:>8,.0f} ms   (processor {used:,.0f} ms)   "
            f"wanted: under {limit:,} ms: {good}"
        )
    return "\n".join(lines)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", type=Path)
    parser.add_argument("--simulated", type=int, metavar="N", help="items, about")
    parser.add_argument("--kind", choices=("circles", *SHAPES), default="circles", help="of these")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there, too")
    chosen = parser.parse_args()
    if (chosen.run is None) == (chosen.simulated is None):
        parser.error("give a run folder or --simulated N")
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.run or Path(scratch)
        if chosen.simulated:
            simulated(folder, chosen.simulated, chosen.kind)
        found = measure((folder / "report.html").resolve())
    print(in_words(found))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
