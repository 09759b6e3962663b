"""Draws review.png from the output of `dfcrp demo`: python docs/images/review.py demo-run."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright
from scipy.ndimage import gaussian_filter

import dfcrp
from dfcrp.review.job import Job
from dfcrp.review.page import write_page

SIZE = {"width": 1200, "height": 640}


def main(run: str) -> None:
    """Photograph the page as it opens, with a name in its field."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "review.html"
        draw_ground(run, Path(folder) / "ground.png")
        write_page(Job(Path(run), Path(folder)), page)
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page.as_uri())
        tab.fill("#explorer-by", "ann")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("[data-decision]")
        tab.screenshot(path=Path(__file__).with_name("review.png"))
        browser.close()


def draw_ground(run: str, path: Path) -> None:
    """A made-up photograph: a bowl in the light of the left for every object, and noise."""
    found = dfcrp.load(run).catalogue()
    y, x = np.mgrid[:620, :920].astype(float)
    grey = 120 + 12 * np.random.default_rng(0).normal(size=x.shape)
    for cx, cy, d in found.loc[found["n_experts"] > 2, ["x", "y", "diameter"]].to_numpy():
        across, down = 2 * (x - cx) / d, 2 * (y - cy) / d
        away = np.hypot(across, down)
        grey += np.where(away < 1, 55 * across * away, 0)
    Image.fromarray(np.clip(gaussian_filter(grey, 1), 0, 255).astype(np.uint8)).save(path)


if __name__ == "__main__":
    main(sys.argv[1])
