"""A report in a real browser: Debian's Chromium, headless, driven through playwright."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from dataclasses import dataclass, field

import numpy as np
import pytest

from dfcrp.draws import MemoryDraws
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.circle.scatter import REST
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_report
from reference.small_posteriors import posterior_of

EVIL = '<img src=x onerror="document.title=1">'
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = {"width": 1366, "height": 860}


@pytest.fixture(scope="session")
def browser():
    """One browser for all tests of a process."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: `apt-get install chromium` brings one")
    # Root may not use the sandbox; the page is our own.
    root = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=path, args=["--disable-gpu", "--disable-dev-shm-usage", *root]
        )
        yield opened
        opened.close()


@dataclass
class Run:
    """A run folder with its report, and what its tables say."""

    folder: object
    posterior: object
    summary: dict = field(default_factory=dict)

    @property
    def address(self):
        return (self.folder / "report.html").as_uri()


def made_up_posterior(n_objects=60, n_experts=6, n_draws=60, seed=3):
    """Objects on a plane of 1,000 by 600; some markings move between neighbours, or stay alone."""
    rng = np.random.default_rng(seed)
    names = [EVIL, *(f"expert {chr(65 + f)}" for f in range(1, n_experts))]
    centre = rng.uniform((0, -600), (1000, 0), (n_objects, 2))
    size = rng.lognormal(3.8, 0.6, n_objects)
    sees = rng.random((n_objects, n_experts)) < rng.beta(1.5, 1, n_objects)[:, None]
    sees[np.arange(n_objects), rng.integers(0, n_experts, n_objects)] = True
    truth, family = np.nonzero(sees)
    spread = 0.05 * size[truth]
    markings = Items.circles(
        x=centre[truth, 0] + rng.normal(0, spread),
        y=centre[truth, 1] + rng.normal(0, spread),
        diameter=size[truth] * rng.uniform(0.9, 1.1, len(truth)),
        expert=[names[f] for f in family],
        id=[f"m{i}" for i in range(len(truth))],
    )
    restless = rng.random(len(truth)) < 0.06
    alone = np.arange(len(truth)) + n_objects
    labels = [
        [np.where(restless & (rng.random(len(truth)) < 0.35), alone, truth) for _ in range(n_draws)]
        for _ in range(2)
    ]
    return posterior_of(labels, markings, min_experts=4, rng=rng)


def posterior_astride_180():
    """The same objects on the Moon, 4° wide and high around 180° and 60° north."""
    found = made_up_posterior(n_objects=30, n_experts=3, n_draws=20)
    flat, draws = found.items, found.draws
    x, y = 178.0 + 0.004 * flat.x, 62.0 + flat.y / 150.0
    blocks = []
    for chain in range(draws.n_chains):
        block = draws.clusters(chain, 0, draws.n_draws)
        rows = np.pad(block.parameters, ((0, 0), (0, 2)))  # with what is to be added to x and y
        rows[:, 0] = 178.0 + 0.004 * rows[:, 0]
        rows[:, 1] = 62.0 + rows[:, 1] / 150.0
        rows[:, 2] += np.log(0.1)
        blocks.append(dataclasses.replace(block, parameters=rows))
    columns = draws.columns._replace(parameters=(*draws.columns.parameters, *REST))
    renewed = MemoryDraws(found.labels, draws.alpha(), blocks, columns)
    place = {"x": np.where(x > 180.0, x - 360.0, x), "y": y}
    site = Site("deg", body_radius_km=1737.4, metres_per_pixel=100.0)
    items = dataclasses.replace(
        flat, columns={**place, "diameter": np.round(0.1 * flat.diameter, 6)}, site=site
    )
    return Posterior(renewed, items, found.config, found.record)


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A small run with everything in it: several experts, undecided objects, a hostile name."""
    folder = tmp_path_factory.mktemp("explorer")
    posterior = made_up_posterior()
    write_results(posterior, folder)
    write_report(posterior, folder)
    return Run(folder, posterior, json.loads((folder / "summary.json").read_text()))


@pytest.fixture(scope="session")
def tab(browser):
    """A tab that tests take in turns: to open another takes longer than most tests."""
    context = browser.new_context(viewport=SIZE, accept_downloads=True)
    yield context.new_page()
    context.close()


class Watch:
    """What goes wrong in pages, and what they ask for."""

    def __init__(self):
        self.wrong, self.requests = [], []

    def notice(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    @contextlib.contextmanager
    def over(self, page):
        listeners = {
            "console": self.notice,
            "pageerror": lambda error: self.wrong.append(str(error)),
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in listeners.items():
            page.on(event, listener)
        yield
        for event, listener in listeners.items():
            page.remove_listener(event, listener)


EXPLORER = "#explorer-root[data-ready=yes]"


@pytest.fixture
def show(tab):
    """Show a page in the tab; at the end nothing went wrong in it, and nothing left its folder."""
    watch, homes = Watch(), []

    def start(path, fragment="", ready=EXPLORER):
        tab.mouse.move(0, 0)
        homes.append(path.parent.as_uri())
        # A fragment alone would not load the page anew.
        tab.goto("about:blank")
        tab.goto(path.as_uri() + fragment)
        tab.wait_for_selector(ready)
        return tab

    with watch.over(tab):
        yield start
        tab.goto("about:blank")
    assert watch.wrong == []
    ours = ("data:", "blob:", "about:blank", *homes)
    assert [url for url in watch.requests if not url.startswith(ours)] == []


@pytest.fixture
def open_page(browser, run, show):
    """Open the report; at the end nothing went wrong in it, and nothing left it.

    With options it is opened in a window of its own, and so is a second one.
    """
    watch = Watch()
    with contextlib.ExitStack() as stack:
        shown = []

        def start(fragment="", **options):
            if options or shown:
                context = browser.new_context(**{"viewport": SIZE} | options)
                stack.callback(context.close)
                page = context.new_page()
                stack.enter_context(watch.over(page))
                page.goto(run.address + fragment)
                page.wait_for_selector(EXPLORER)
            else:
                page = show(run.folder / "report.html", fragment)
                shown.append(page)
            page.evaluate("document.getElementById('explore').scrollIntoView()")
            return page

        yield start
    assert watch.wrong == []
    ours = ("data:", "blob:", run.address)
    assert [url for url in watch.requests if not url.startswith(ours)] == []


@pytest.fixture
def page(open_page):
    """The report as it opens."""
    return open_page()


def violations(browser, address, scheme, ready, before=None):
    """What axe-core finds wrong on a page in light or dark, after a script if one is given."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, bypass_csp=True)
    try:
        page = context.new_page()
        page.goto(address)
        page.wait_for_selector(ready)
        if before:
            page.evaluate(before)
        found = axe.Axe().run(page).response["violations"]
        return [f"{rule['id']}: {node['html'][:120]}" for rule in found for node in rule["nodes"]]
    finally:
        context.close()
