"""The review in a real browser, with its server in a process of its own."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

import dfcrp
from browser.conftest import SIZE, Watch, violations
from dfcrp.processes import python
from dfcrp.review.job import Job
from dfcrp.review.page import write_page
from dfcrp.review.store import FOLDER, TABLE, Store
from dfcrp.settings.config import Config, resolve
from reference.small_posteriors import posterior_of

pytest.importorskip("uvicorn", reason="the extra `review` is not installed")

TOKEN = "t0ken-of-tests"
READY = "#explorer-review[data-ready=yes]"
CASE = "document.getElementById('explorer-views').dataset.case"
STATUS = "#explorer-status"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Thirty pairs of circles, each of which is one object in half of the draws."""
    n = 30
    x, y = 80.0 * np.stack(np.divmod(np.arange(n), 6)).astype(float)
    items = dfcrp.Items.circles(
        np.concatenate((x, x + 3.0)),
        np.concatenate((y, y + 2.0)),
        np.full(2 * n, 30.0),
        ["expert A"] * n + ["expert B"] * n,
    )
    rng, own = np.random.default_rng(5), np.arange(n)
    draws = [np.concatenate((own, np.where(rng.random(n) < 0.5, own, own + n))) for _ in range(40)]
    config = resolve(Config(), {"chains": 2, "scans": 60, "burn_in": 20, "workers": 1})
    folder = tmp_path_factory.mktemp("review") / "run"
    posterior_of([draws[:20], draws[20:]], items, config=config).save(folder)
    return folder


@pytest.fixture
def run(fitted, tmp_path):
    """A copy without a review."""
    shutil.copytree(fitted, tmp_path / "run")
    return tmp_path / "run"


@contextlib.contextmanager
def served(run, *options):
    """The server's process and its address, once it answers."""
    command, environment = python(
        *("-m", "dfcrp.cli", "review", str(run), "--port", "0", "--no-browser"),
        *("--token", TOKEN, *options),
    )
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert select.select([process.stdout], [], [], 120)[0], "the server does not start"
        line = process.stdout.readline()
        yield process, re.search(r"http://\S+", line)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


@contextlib.contextmanager
def reviewing(browser, address, name, **options):
    """A window of a reviewer."""
    watch = Watch()
    context = browser.new_context(**{"viewport": SIZE} | options)
    page = context.new_page()
    try:
        with watch.over(page):
            page.goto(address)
            page.wait_for_selector(READY)
            page.fill("#explorer-by", name)
            page.keyboard.press("Enter")
            until(page, f"!!{CASE}")
            yield page
        assert watch.wrong == []
        home = address.partition("?")[0]
        assert [url for url in watch.requests if not url.startswith((home, "blob:"))] == []
    finally:
        context.close()


def until(page, expression, seconds=30):
    """Wait until this holds; playwright's own way is what the page's policy forbids."""
    limit = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < limit, expression
        page.wait_for_timeout(50)


def press(page, key):
    """Press a key and wait until another case is there."""
    before = page.evaluate(CASE)
    page.keyboard.press(key)
    until(page, f"{CASE} !== {json.dumps(before)}", seconds=20)
    return before


def numbers(page):
    return page.inner_text("#explorer-numbers")


def decided(run):
    with (run / FOLDER / TABLE).open() as file:
        return list(csv.DictReader(file))


def test_twenty_cases_by_keyboard_and_the_numbers_follow(browser, run):
    with (
        served(run, "--update-every", "20") as (_, address),
        reviewing(browser, address, "ann") as page,
    ):
        assert page.evaluate("location.search") == ""
        begun = numbers(page)
        page.keyboard.press("n")
        page.keyboard.type("no rim")
        page.keyboard.press("Escape")
        for k in range(20):
            press(page, "1" if k % 4 else "2")
            until(page, f"document.querySelectorAll('#explorer-own li').length === {k + 1}")
        skipped = press(page, "s")
        # The posterior follows in a process of its own.
        until(
            page,
            "document.getElementById('explorer-review').dataset.version === '1'",
            seconds=180,
        )
        assert numbers(page) != begun
        assert "given 20 decisions" in page.inner_text("#explorer-posterior")
        assert page.evaluate(CASE) != skipped
        page.keyboard.press("u")
        until(page, "document.querySelectorAll('#explorer-own li').length === 19")
        assert page.inner_text(STATUS).startswith("Withdrawn")
        page.wait_for_timeout(1500)
    rows = decided(run)
    assert [row["decision"] for row in rows[:5]] == [
        "apart",
        "together",
        "together",
        "together",
        "apart",
    ]
    assert len(rows) == 21
    assert rows[0]["note"] == "no rim"
    assert rows[-1]["decision"] == "withdraw"
    assert rows[-1]["items"] == rows[-2]["items"]
    # The run itself is as it was.
    assert dfcrp.load(run).items.decisions == ()


def test_two_reviewers_at_once(browser, run):
    with (
        served(run, "--update-every", "0") as (_, address),
        reviewing(browser, address, "ann") as ann,
        reviewing(browser, address, "bob") as bob,
    ):
        assert ann.evaluate(CASE) == bob.evaluate(CASE)
        for _ in range(3):
            press(ann, "1")
            press(bob, "2")
        for page in (ann, bob):
            until(page, "document.querySelectorAll('.review-conflict').length === 3")
            assert "3 decisions by you, 6 by all" in page.inner_text("#explorer-progress")
        bob.click("#explorer-own li >> nth=0 >> text=Withdraw")
        until(ann, "document.querySelectorAll('.review-conflict').length === 2")
    assert {row["by"] for row in decided(run)} == {"ann", "bob"}


def test_a_killed_server_loses_nothing_that_it_acknowledged(run):
    acknowledged, refused = [], threading.Event()
    with served(run, "--update-every", "0") as (process, address):
        home = address.partition("?")[0]

        def decide(k):
            for step in range(10_000):
                row = {"decision": "apart", "items": [str(1 + step % 30), str(31 + k)]}
                sent = json.dumps(row | {"by": f"reviewer {k}", "note": str(step)}).encode()
                headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
                request = urllib.request.Request(f"{home}decisions", sent, headers)
                try:
                    with urllib.request.urlopen(request) as answer:
                        assert answer.status == 201
                except (OSError, urllib.error.URLError):
                    refused.set()
                    return
                acknowledged.append((f"reviewer {k}", str(step)))

        threads = [threading.Thread(target=decide, args=(k,)) for k in range(4)]
        for one in threads:
            one.start()
        limit = time.monotonic() + 60
        while len(acknowledged) < 60 and time.monotonic() < limit:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        for one in threads:
            one.join(30)
    assert refused.is_set()
    assert len(acknowledged) >= 60
    store = Store(run)
    kept = {(one.by, one.note) for one in store.decisions}
    store.close()
    assert set(acknowledged) <= kept
    # What a kill left undone is one row of each reviewer at most.
    assert len(kept) <= len(acknowledged) + 4
    assert len(decided(run)) == len(kept)


def test_a_second_server_of_the_same_run_is_refused(run):
    with served(run, "--update-every", "0"):
        command, environment = python(
            "-m", "dfcrp.cli", "review", str(run), "--port", "0", "--no-browser"
        )
        found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 2
    assert "is working on this run" in found.stderr


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessible_pages(browser, run, scheme):
    before = """async () => {
      const field = document.getElementById("explorer-by");
      field.value = "ann";
      field.dispatchEvent(new Event("change"));
      await new Promise((then) => setTimeout(then, 500));
      document.querySelector("[data-decision]").click();
      await new Promise((then) => setTimeout(then, 1500));
    }"""
    with served(run, "--update-every", "0") as (_, address):
        assert violations(browser, address, scheme, READY, before) == []


def test_a_phone_shows_it_all(browser, run):
    with (
        served(run, "--update-every", "0") as (_, address),
        reviewing(browser, address, "ann", viewport={"width": 375, "height": 700}) as page,
    ):
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        for button in page.locator("[data-decision]").all():
            box = button.bounding_box()
            assert box["height"] >= 40
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 375
        before = page.evaluate(CASE)
        page.locator("[data-decision]").first.click()
        until(page, f"{CASE} !== {json.dumps(before)}")


def test_the_same_page_from_a_file(browser, run, tmp_path):
    file = tmp_path / "review.html"
    write_page(Job(run), file, blind=True)
    assert '"share":0' not in file.read_text()
    context = browser.new_context(viewport=SIZE, accept_downloads=True)
    watch = Watch()
    try:
        page = context.new_page()
        with watch.over(page):
            page.goto(file.as_uri())
            page.wait_for_selector(READY)
            assert page.is_disabled("#explorer-blind")
            page.fill("#explorer-by", 'ann "the first"')
            page.keyboard.press("Enter")
            for key in "12":
                press(page, key)
            # What was decided outlives the page.
            page.reload()
            until(page, "document.querySelectorAll('#explorer-own li').length === 2")
            page.keyboard.press("Escape")
            page.keyboard.press("u")
            until(page, "document.querySelectorAll('#explorer-own li').length === 1")
            with page.expect_download() as download:
                page.click("#explorer-save")
            download.value.save_as(tmp_path / "decisions.csv")
    finally:
        context.close()
    assert watch.wrong == []
    assert [url for url in watch.requests if not url.startswith((file.as_uri(), "blob:"))] == []
    from dfcrp.io.decisions import read_decisions

    found = read_decisions(tmp_path / "decisions.csv")
    assert [one.decision for one in found] == ["together", "apart", "withdraw"]
    assert {one.by for one in found} == {'ann "the first"'}
    updated = dfcrp.load(run).update(decisions=tmp_path / "decisions.csv", scans=40, burn_in=10)
    a, b = (updated.items.id.tolist().index(name) for name in found[0].items)
    assert (updated.labels[..., a] == updated.labels[..., b]).all()
