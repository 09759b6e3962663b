"""The overview of many images: found, sorted, sifted and opened in a real browser."""

import dataclasses
import io

import numpy as np
import pytest
from PIL import Image

import dfcrp
from browser.conftest import EVIL, violations
from dfcrp.markup import number
from dfcrp.plots.flat import FlatMap
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_overview
from dfcrp.report.overview import _frame, _roomy
from dfcrp.rounding import estimate_of
from dfcrp.settings.config import ImageSettings
from reference.kind_posteriors import kind_posterior

COUNT = 70


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More images than are shown at a time, one of them with a hostile name; pages of five."""
    rng = np.random.default_rng(2)
    columns = {role: [] for role in ("x", "y", "diameter", "expert", "image")}
    for k in range(COUNT):
        name = EVIL if k == 0 else f"image {k:02d}"
        for place in rng.uniform(0, 300, (2 + k % 5, 2)):
            seen = [e for e in "ABC" if rng.random() < 0.8] or ["A"]
            size = rng.lognormal(3, 0.4)
            columns["x"] += list(place[0] + rng.normal(0, 2, len(seen)))
            columns["y"] += list(place[1] + rng.normal(0, 2, len(seen)))
            columns["diameter"] += [size] * len(seen)
            columns["expert"] += seen
            columns["image"] += [name] * len(seen)
    posterior = dfcrp.fit(dfcrp.Items.circles(**columns), chains=2, scans=40, seed=1)
    folder = tmp_path_factory.mktemp("overview")
    write_results(posterior, folder)
    write_overview(posterior, folder, pages=5)
    return folder, posterior


@pytest.fixture
def overview(show, many):
    """The page; at the end nothing went wrong in it, and it asked for nothing but our pages."""
    return show(many[0] / "report.html", ready="#explorer-overview[data-ready=yes]")


def shown(page):
    return page.locator("#explorer-tiles b").all_inner_texts()


def test_every_image_is_shown_with_its_numbers(overview, many):
    _, posterior = many
    table = posterior.image_table().set_index("image")
    names = shown(overview)
    assert names == list(posterior.images[:60])
    words = overview.locator("#explorer-tiles li").all_inner_texts()
    for name, text in zip(names, words, strict=True):
        row = table.loc[name]
        objects, agreed = number(row["n_clusters"], 1), number(row["consensus"], 1)
        # Not everybody marked something on every image, so that the consensus is a share.
        assert f"{objects} objects, {agreed} by ≥ 60 % of experts" in text
        assert ("run too short" in text) == (not row["ok"])
    assert overview.locator("#explorer-range").inner_text() == f"1 to 60 of {COUNT} images"
    overview.locator("#explorer-on").click()
    assert shown(overview) == list(posterior.images[60:])
    assert overview.locator("#explorer-on").is_disabled()
    overview.locator("#explorer-back").click()
    assert shown(overview) == names


def test_pictures_are_drawn(overview):
    blank = "(c) => { const e = document.createElement('canvas'); e.width = c.width;" + (
        " e.height = c.height; return c.toDataURL() === e.toDataURL(); }"
    )
    for canvas in overview.locator("#explorer-tiles canvas").all()[:6]:
        assert not canvas.evaluate(blank)


def test_sorting(overview, many):
    _, posterior = many
    table = posterior.image_table().set_index("image")
    for order, column in (("objects", "n_clusters"), ("agreed", "consensus")):
        overview.locator("#explorer-order").select_option(order)
        values = [round(float(table.loc[name, column]), 3) for name in shown(overview)]
        assert values == sorted(values, reverse=True)
    overview.locator("#explorer-order").select_option("verdict")
    assert shown(overview)[:5] == list(posterior.verdict.not_good[:5])


def test_sifting(overview, many):
    _, posterior = many
    table = posterior.image_table()
    overview.locator("#explorer-name").fill("IMAGE 1")
    assert shown(overview) == [f"image {k}" for k in range(10, 20)]
    overview.locator("#explorer-name").fill("nothing like it")
    assert shown(overview) == []
    assert overview.locator("#explorer-range").inner_text() == "no such image"
    overview.locator("#explorer-name").fill("")
    overview.locator("#explorer-doubt").check()
    doubtful = table[table["undecided"] > 0]["image"].tolist()
    assert shown(overview) == doubtful[:60]
    overview.locator("#explorer-doubt").uncheck()
    overview.locator("#explorer-bad").check()
    assert shown(overview) == table[~table["ok"]]["image"].tolist()[:60]


def test_a_picture_leads_to_the_page_and_back(overview, many):
    folder, posterior = many
    made = sorted(path.name for path in (folder / "pages").iterdir())
    assert len(made) == 5
    overview.locator("#explorer-on").click()
    links = overview.locator("a.overview-tile").count()
    overview.locator("#explorer-back").click()
    assert links + overview.locator("a.overview-tile").count() == 5
    assert "--image NAME" in overview.locator("div.overview-tile").first.get_attribute("title")
    link = overview.locator("a.overview-tile").first
    name = link.locator("b").inner_text()
    link.click()
    overview.wait_for_selector("#explorer-root[data-ready=yes]")
    assert overview.locator("h1").inner_text() == name
    expected = posterior[name].summary()
    shown_count = overview.locator("#explorer-count").inner_text()
    assert shown_count == estimate_of(expected["n_clusters"]).mean
    overview.get_by_text("All images").click()
    overview.wait_for_selector("#explorer-overview[data-ready=yes]")


def test_a_hostile_name_is_text(overview, many):
    folder, posterior = many
    overview.locator("#explorer-name").fill("onerror")
    assert shown(overview) == [EVIL]
    assert overview.title().startswith("Report")
    assert overview.locator("main img").count() == 0
    write_overview(posterior, folder, pages=COUNT)
    overview.reload()
    overview.wait_for_selector("#explorer-overview[data-ready=yes]")
    overview.locator("#explorer-name").fill("onerror")
    overview.locator("a.overview-tile").click()
    overview.wait_for_selector("#explorer-root[data-ready=yes]")
    assert overview.locator("h1").inner_text() == EVIL
    assert overview.title() == EVIL


def test_totals_are_those_of_the_summary(overview, many):
    _, posterior = many
    summary = posterior.summary()
    facts = overview.locator(".facts b").all_inner_texts()
    assert facts[0] == str(COUNT)
    assert facts[3] == number(summary["n_clusters"]["mean"], 1)


def test_every_control_has_a_name(overview):
    for control in overview.locator("#images input, #images select, #images button").all():
        named = control.evaluate(
            "(c) => c.labels?.length > 0 || Boolean(c.ariaLabel) || c.textContent.trim() !== ''"
        )
        assert named


def test_phone(browser, many):
    folder, _ = many
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    page.wait_for_selector("#explorer-overview[data-ready=yes]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_overview_is_accessible(browser, many, scheme):
    address = (many[0] / "report.html").as_uri()
    assert violations(browser, address, scheme, "#explorer-overview[data-ready=yes]") == []


def test_a_picture_shows_the_whole_of_a_single_object():
    """Its frame was half as wide as the circle, whose rim was then out of sight."""
    one, none = np.array([5.0]), np.zeros(1)
    placed = FlatMap(none, none, one, one, none, "ellipse")
    left, right, low, high = _frame(placed)
    assert left <= -2.5
    assert right >= 2.5
    assert low <= -2.5
    assert high >= 2.5


def test_a_single_object_is_not_drawn_as_large_as_the_picture():
    large, small = (-300.0, 100.0, -150.0, 150.0), (-2.0, 2.0, -3.0, 3.0)
    found = _roomy([large, large, small])
    assert found[:2].tolist() == [[*large], [*large]]
    assert found[2].tolist() == [-199.0, 199.0, -200.0, 200.0]
    assert _roomy([small]).tolist() == [[*small]]


@pytest.mark.parametrize("prior", ["detection", "dfcrp"])
def test_images_without_a_marking_have_a_tile(show, tmp_path, prior):
    """It says that somebody looked, and stands where its name belongs."""
    rng = np.random.default_rng(4)
    image = np.repeat(["a", "c"], 12)
    place = np.tile(np.repeat([50.0, 150.0, 250.0, 350.0], 3), 2)
    items = dfcrp.Items.circles(
        place + rng.normal(0, 2, 24), place, np.full(24, 20.0), ["A", "B", "C"] * 8, image=image
    )
    looked = [(name, expert) for name in "abc" for expert in "ABC"]
    posterior = dfcrp.fit(items, prior=prior, looked=looked, chains=2, scans=40, seed=1)
    page = show(
        write_overview(posterior, tmp_path, pages=1), ready="#explorer-overview[data-ready=yes]"
    )
    assert shown(page) == ["a", "b", "c"]
    words = page.locator("#explorer-tiles li").all_inner_texts()
    assert [("looked at, no markings" in text) for text in words] == [False, True, False]
    if prior == "detection":
        table = posterior.image_table().set_index("image")
        assert f"{number(table.loc['b', 'n_total'], 1)} real objects in all" in words[1]
        p = posterior["a"].catalogue()["p_real"]
        assert f"{((p > 0.05) & (p < 0.95)).sum()} in doubt" in words[0]
        assert not [name for name in table if name.startswith("alpha")]
        page.locator("#explorer-order").select_option("need")
        assert shown(page) == list(table.sort_values("look_value", ascending=False).index)
    else:
        assert "0.0 objects" in words[1]
    assert page.locator("#explorer-range").inner_text() == "1 to 3 of 3 images"


def test_photographs_lie_behind_the_outlines(show, tmp_path):
    """Red at the top, and the frame around it; outlines are drawn over it."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    pixels = np.full((300, 400, 3), 90, np.uint8)
    pixels[:90] = (250, 0, 0)
    Image.fromarray(pixels).save(folder / "a.png")
    posterior = kind_posterior("boxes", images=("a", "b"), n_draws=6)
    beneath = ImageSettings(folder=str(folder), scale=2.5)
    posterior.config = dataclasses.replace(posterior.config, image=beneath)
    write_results(posterior, tmp_path)
    write_overview(posterior, tmp_path, pages=0)
    page = show(tmp_path / "report.html", ready="#explorer-overview[data-ready=yes]")
    canvas = page.locator("#explorer-tiles canvas").first
    wait = "document.querySelector('#explorer-tiles canvas').toDataURL().length > 3000"
    for _ in range(100):
        if page.evaluate(wait):
            break
        page.wait_for_timeout(20)
    drawn = np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert("RGB"), int)
    red = (drawn[..., 0] > 200) & (drawn[..., 1] < 80)
    rows = np.flatnonzero(red.any(axis=1))
    assert red.mean() > 0.1
    assert rows.max() < len(drawn) / 2
