"""The explorer: each control changes what it names, and its numbers are those of the tables."""

import csv
import io
import math
import re

import numpy as np
import pytest

from browser.conftest import EVIL, made_up_posterior, posterior_astride_180
from dfcrp.markup import interval, number, probability
from dfcrp.posterior.explain import explain, percent
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_report
from dfcrp.rounding import estimate_of
from dfcrp.summaries.streaming import summarise


def text(page, name):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    return page.locator(f"#explorer-{name}").inner_text()


def slide(page, name, value):
    """Move a slider as a reader does: focus and keys end in an input event."""
    page.locator(f"#explorer-{name}").fill(str(value))


def state(page, expression):
    return page.evaluate(f"explorer.{expression}")


def wait_until(page, expression):
    """Ask again until it is true; playwright's own way needs an eval, which the page forbids."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {expression}")


def middle(page):
    box = page.locator("#explorer-overlay").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def on_screen(page, cluster_row):
    """Where an object's first marking's rim is on the screen."""
    x, y = page.evaluate(
        """(k) => { const { data, view } = explorer; const i = data.clusterMembers.of(k)[0];
        return view.toScreen(data.itemX[i] + data.itemWidth[i] / 2, data.itemY[i]); }""",
        cluster_row,
    )
    box = page.locator("#explorer-overlay").bounding_box()
    return box["x"] + x, box["y"] + y


def pixels(page):
    return page.evaluate("document.getElementById('explorer-outlines').toDataURL().length")


# --- numbers ------------------------------------------------------------------------------------


def test_counts_are_those_of_the_summary(page, run):
    for row in run.summary["consensus"]:
        slide(page, "least", row["min_experts"])
        page.locator(f"#explorer-classes [data-class='{row['size_class']}']").click()
        assert text(page, "count") == estimate_of(row).mean, row
        assert text(page, "count-interval") == f"95 % interval: {interval(row['lo'], row['hi'])}"
    assert "all 120 draws" in text(page, "count-draws")


def test_counts_from_the_draws_in_the_page_are_those_of_the_summary(page, run):
    """What the page computes itself, as it must in a region, not what it was given."""
    for least in (1, 4, 5):
        page.evaluate(
            "(m) => explorer.state.set({ region: [-1e9, -1e9, 1e9, 1e9], minExperts: m })", least
        )
        expected = run.posterior.consensus(least).iloc[0]
        assert text(page, "count") == estimate_of(expected).mean
        assert text(page, "count-interval") == (
            f"95 % interval: {interval(expected['lo'], expected['hi'])}"
        )
    for row in run.summary["experts"]:
        cells = expert_cells(page, row["expert"])
        assert cells[1:3] == [number(row["count"]), number(row["jaccard"], 3)]
        assert cells[3:] == [
            number(row["size_1"]["mean"], 2),
            number(row["all_but_one"]["mean"], 2),
        ]


def expert_cells(page, name):
    rows = page.locator("#explorer-expert-table tbody tr").all()
    found = [row.locator("td").all_inner_texts() for row in rows]
    return next(cells for cells in found if cells[0] == name)


def test_expert_table_is_that_of_the_summary(page, run):
    for row in run.summary["experts"]:
        cells = expert_cells(page, row["expert"])
        assert cells[1:3] == [number(row["count"]), number(row["jaccard"], 3)]
    matrix = run.posterior.expert_summary.jaccard_matrix
    cell = page.locator("#explorer-heatmap [data-pair='1,2']")
    assert f"{number(matrix.mean[1, 2], 3)} (95 %" in cell.get_attribute("aria-label")


def test_a_region_counts_what_lies_in_it(page, run):
    box = page.locator("#explorer-overlay").bounding_box()
    x0, y0 = box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"]
    x1, y1 = box["x"] + 0.6 * box["width"], box["y"] + 0.7 * box["height"]
    before = text(page, "count"), text(page, "expert-table"), text(page, "sizes-note")
    page.locator("#explorer-region").click()
    page.mouse.move(x0, y0)
    page.mouse.down()
    page.mouse.move(x1, y1, steps=4)
    page.mouse.up()
    assert text(page, "count") != before[0]
    assert text(page, "expert-table") != before[1]
    region = np.array(state(page, "state.region")).reshape(2, 2) + state(page, "data.origin")
    markings = run.posterior.items
    counts = []
    for draw in run.posterior.labels.reshape(-1, len(markings)):
        code = np.unique(draw, return_inverse=True)[1]
        centre = [np.bincount(code, v) / np.bincount(code) for v in (markings.x, markings.y)]
        inside = [(c >= low) & (c <= high) for c, low, high in zip(centre, *region, strict=True)]
        counts.append(np.sum(inside[0] & inside[1]))
    assert text(page, "count") == number(np.mean(counts), 1)
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("Escape")
    assert text(page, "count") == before[0]


def test_histogram_is_that_of_the_draws(page, run):
    for least in (1, 4):
        slide(page, "least", least)
        assert text(page, "histogram-note") == f"≥ {least} expert{'s' * (least > 1)}"
        bars = page.locator("#explorer-histogram .bar title").all_text_contents()
        counts = run.posterior.consensus_counts((least,)).counts[:, :, 0, 0].ravel()
        for bar in bars:
            value, share = re.fullmatch(r"([\d,]+): (.*) % of draws", bar).groups()
            found = float(np.mean(counts == int(value.replace(",", ""))))
            assert f"{share} %" == percent(found)


def test_size_frequency_curve_is_that_of_the_draws(page, run):
    """Diameters are stored in 255 steps for each cluster, so a few may change sides."""
    slide(page, "least", 4)
    text(page, "count")
    points = state(page, "panels.counts.sizes")
    used = np.array(state(page, "data.sampledDraws && Array.from(explorer.data.sampledDraws)"))
    draws, families = run.posterior.draws, run.posterior.items.families
    counts = []
    for draw in used:
        chain, row = divmod(int(draw), draws.n_draws)
        labels = draws.labels(chain, row, row + 1)[0]
        block = draws.clusters(chain, row, row + 1)
        experts = [len(set(families[labels == name].tolist())) for name in block.labels]
        diameter = np.exp(block.parameters[:, 2])[np.array(experts) >= 4]
        counts.append([(diameter >= point["size"]).sum() for point in points])
    mean = np.mean(counts, axis=0)
    shown = [point["mean"] for point in points]
    np.testing.assert_allclose(shown, mean, atol=0.1)
    assert page.locator("#explorer-sizes path.curve").count() == 1
    page.evaluate("explorer.state.set({ region: [-1, -1, 1, 1] })")
    text(page, "count")
    assert state(page, "panels.counts.sizes[0].mean") < shown[0]


def test_the_scale_bar_has_the_length_it_says(page):
    for zoom in (1, 2.7, 11):
        page.evaluate("(z) => explorer.view.zoom(z)", zoom)
        text(page, "count")
        bar = state(page, "overlay.bar")
        assert float(f"{bar['length']:.0e}".split("e")[0]) in (1, 2, 5)
        ends = page.evaluate(
            "(d) => { const { view } = explorer; return view.toScreen(view.x + d, view.y)[0]"
            " - view.toScreen(view.x, view.y)[0]; }",
            bar["length"],
        )
        assert ends == pytest.approx(bar["width"])
        ink = page.evaluate(
            """() => { const canvas = document.getElementById('explorer-overlay');
            const row = canvas.height - Math.round(16 * canvas.height / canvas.clientHeight);
            const copy = new OffscreenCanvas(canvas.width, 1);
            const pen = copy.getContext('2d', { willReadFrequently: true });
            pen.drawImage(canvas, 0, -row);
            const line = pen.getImageData(0, 0, canvas.width, 1).data;
            let count = 0;
            for (let k = 3; k < line.length; k += 4) count += line[k] > 200;
            return (count * canvas.clientWidth) / canvas.width; }"""
        )
        assert ink == pytest.approx(bar["width"], abs=8)


def test_probability_of_consensus_is_that_of_the_catalogue(page, run):
    catalogue = run.posterior.catalogue()
    slide(page, "least", 4)
    slide(page, "p-min", 0.5)
    agreed = (catalogue.p_consensus >= 0.5) & (catalogue.n_experts >= 4)
    assert text(page, "listed").startswith(number(agreed.sum()) + " object")
    slide(page, "p-max", 0.9)
    agreed &= catalogue.p_consensus <= 0.9
    assert text(page, "listed").startswith(number(agreed.sum()) + " object")


# --- filters ------------------------------------------------------------------------------------


def test_diameters(page, run):
    page.locator("#explorer-d-min").fill("40")
    page.locator("#explorer-d-max").fill("70")
    diameter = run.posterior.catalogue().diameter
    listed = ((diameter >= 40) & (diameter < 70)).sum()
    assert text(page, "listed").startswith(number(listed) + " object")
    page.locator("#explorer-clear").click()
    assert page.locator("#explorer-d-min").input_value() == ""


def test_only_singletons_and_only_undecided(page, run):
    members = run.posterior.members()
    sizes = members.groupby("cluster").size()
    page.locator("#explorer-singletons").check()
    assert text(page, "listed").startswith(f"{(sizes == 1).sum()} object")
    page.locator("#explorer-singletons").uncheck()
    page.locator("#explorer-undecided").check()
    least = members.groupby("cluster").p_member.min()
    assert text(page, "listed").startswith(f"{(least < 0.9).sum()} object")
    assert text(page, "undecided-count") == str((least < 0.9).sum())


def test_experts_off_and_on(page, run):
    before, drawn = text(page, "count"), pixels(page)
    page.locator("#explorer-experts [data-expert='1']").uncheck()
    labels = run.posterior.labels.reshape(-1, len(run.posterior.items))
    kept = run.posterior.items.families != 1
    expected = summarise(np.array([len(np.unique(draw[kept])) for draw in labels]))
    assert text(page, "count") == estimate_of(expected.as_dict()).mean
    assert pixels(page) != drawn
    page.locator("#explorer-none").click()
    assert text(page, "count") == "0"
    page.locator("#explorer-all").click()
    assert text(page, "count") == before


# --- map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", ["cluster", "expert", "probability", "size"])
def test_colours_and_their_legend(page, colour):
    before, legend = pixels(page), text(page, "legend")
    page.locator("#explorer-colour").select_option(colour)
    assert text(page, "legend") != legend
    assert pixels(page) != before


def test_show_objects(page):
    before = pixels(page)
    page.locator("#explorer-show").select_option("objects")
    text(page, "count")
    assert pixels(page) != before


def test_moving_by_mouse_wheel_keys_and_buttons(page):
    def now():
        return [state(page, f"view.{name}") for name in ("x", "y", "scale")]

    x, y = middle(page)
    start = now()
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    assert now() == start  # the page scrolls until the map is clicked
    page.evaluate("document.getElementById('explore').scrollIntoView()")
    x, y = middle(page)
    page.locator("#explorer-overlay").focus()
    page.mouse.move(x + 50, y)
    page.mouse.wheel(0, -300)
    wait_until(page, f"explorer.view.scale > {1.5 * start[2]}")
    under = state(page, "view.x")
    page.mouse.down()
    page.mouse.move(x - 60, y + 30, steps=5)
    page.mouse.up()
    assert state(page, "view.x") > under
    scale = state(page, "view.scale")
    page.keyboard.press("-")
    assert state(page, "view.scale") < scale
    at = state(page, "view.x")
    page.keyboard.press("ArrowRight")
    assert state(page, "view.x") > at
    page.keyboard.press("0")
    assert now() == start
    page.locator("#explorer-in").click()
    assert state(page, "view.scale") > start[2]
    page.locator("#explorer-out").click()
    page.locator("#explorer-fit").click()
    assert now() == start


def test_place_under_the_pointer(page):
    x, y = middle(page)
    page.mouse.move(x, y)
    shown = [float(v) for v in re.findall(r"-?[\d.]+", text(page, "place"))]
    origin = state(page, "data.origin")
    assert shown == pytest.approx(
        [state(page, "view.x") + origin[0], state(page, "view.y") + origin[1]], abs=2
    )


def test_click_shows_the_object_and_its_markings(page, run):
    slide(page, "least", 5)
    catalogue = run.posterior.catalogue()
    row = int(np.flatnonzero(catalogue.n_experts >= 5)[0])
    page.mouse.click(*on_screen(page, row))
    shown = text(page, "object")
    chosen = catalogue.iloc[state(page, "state.selected")]
    assert f"Object {chosen.cluster}" in shown
    for name, digits in state(page, "data.quantities.map((q) => [q.name, q.digits])"):
        mean, sd, lo, hi = (f"{chosen[name + end]:.{digits}f}" for end in ("", "_sd", "_lo", "_hi"))
        assert f"{name}\t{mean} ± {sd}\t{lo} to {hi}" in shown
    assert f"P(≥ 4 experts)\n{probability(chosen.p_consensus)}" in shown
    members = run.posterior.members()
    own = members[members.cluster == chosen.cluster]
    rows = page.locator(".explorer-members tbody tr").all()
    cells = {tuple(r.locator("td").all_inner_texts()) for r in rows}
    assert {(c[0], c[1], c[3]) for c in cells} == {
        (m.expert, m.marking, probability(m.p_member)) for m in own.itertuples()
    }
    assert f"Not marked by {6 - chosen.n_experts}" in shown


def test_alternatives_are_those_of_explain(page, run):
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("n")
    assert text(page, "object")
    found = page.locator("#explorer-alternatives li").first
    marking, share = (
        int(found.get_attribute("data-item")),
        float(found.get_attribute("data-share")),
    )
    candidates = explain(run.posterior, marking).candidates
    assert share in [pytest.approx(c.probability) for c in candidates]
    assert re.match(r"In \d+ % of draws .*’s marking m\d+", found.inner_text())


def test_next_and_previous_undecided(page, run):
    least = run.posterior.members().groupby("cluster").p_member.min()
    expected = least[least < 0.9].sort_values(kind="stable").index.tolist()
    page.locator("#explorer-overlay").focus()
    seen = []
    for _ in expected:
        page.keyboard.press("n")
        seen.append(page.evaluate("explorer.data.clusterName[explorer.state.selected]"))
    assert set(seen) == set(expected)
    assert least[seen].is_monotonic_increasing
    page.keyboard.press("p")
    assert page.evaluate("explorer.data.clusterName[explorer.state.selected]") == seen[-2]
    page.locator("[data-step='1']").click()
    assert page.evaluate("explorer.data.clusterName[explorer.state.selected]") == seen[-1]


def test_ghosts_can_be_switched_off(page):
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("n")
    text(page, "object")
    size = "document.getElementById('explorer-overlay').toDataURL().length"
    before = page.evaluate(size)
    page.locator("#explorer-ghosts").uncheck()
    text(page, "object")
    assert page.evaluate(size) < before


# --- experts ------------------------------------------------------------------------------------


def test_two_experts_side_by_side(page, run):
    before = pixels(page)
    page.locator("#explorer-expert-table [data-compare='1']").click()
    page.locator("#explorer-expert-table [data-compare='2']").click()
    labels = run.posterior.labels.reshape(-1, len(run.posterior.items))
    of = [run.posterior.items.families == f for f in (1, 2)]
    found = [[set(draw[own]) for own in of] for draw in labels]
    shown = text(page, "compare")
    assert f"expert B, not expert C: {number(np.mean([len(a - b) for a, b in found]), 1)}" in shown
    assert f"both: {number(np.mean([len(a & b) for a, b in found]), 1)}" in shown
    assert pixels(page) != before
    assert "expert B, not expert C" in text(page, "legend")
    page.locator("#explorer-compare-end").click()
    page.locator("#explorer-heatmap [data-pair='3,4']").click()
    assert "expert D, not expert E" in text(page, "compare")


def test_a_hostile_name_is_text(page):
    assert page.locator("img[src='x']").count() == 0
    assert EVIL in text(page, "expert-table")
    assert EVIL in text(page, "experts")
    page.locator("#explorer-colour").select_option("expert")
    assert EVIL in text(page, "legend")
    page.locator("#explorer-heatmap [data-pair='0,1']").click()
    assert EVIL in text(page, "compare")
    page.locator("#explorer-query").fill("m0")
    page.keyboard.press("Enter")
    assert EVIL in text(page, "object")
    assert page.title() != "1"


# --- search, link, export -----------------------------------------------------------------------


def test_search(page, run):
    page.locator("#explorer-query").fill("m7")
    page.keyboard.press("Enter")
    label = run.posterior.point_partition().labels[7]
    assert f"Object {label}" in text(page, "object")
    page.locator("#explorer-query").fill("c0")
    page.keyboard.press("Enter")
    assert "Object 0" in text(page, "object")
    page.locator("#explorer-query").fill("400, -250.5")
    page.keyboard.press("Enter")
    origin = state(page, "data.origin")
    assert state(page, "view.x") + origin[0] == pytest.approx(400)
    assert state(page, "view.y") + origin[1] == pytest.approx(-250.5)
    page.locator("#explorer-query").fill("nobody")
    page.keyboard.press("Enter")
    assert text(page, "said") == "Nothing is called “nobody”"


def test_a_link_brings_the_view_back(page, open_page):
    slide(page, "least", 3)
    page.locator("#explorer-colour").select_option("size")
    page.locator("#explorer-experts [data-expert='2']").uncheck()
    page.locator("#explorer-undecided").check()
    page.locator("#explorer-in").click()
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("n")
    text(page, "object")
    fragment = page.evaluate("location.hash")
    assert fragment.startswith("#explore;")
    again = open_page(fragment)
    for name in ("minExperts", "colour", "undecided", "selected"):
        assert state(again, f"state.{name}") == state(page, f"state.{name}")
    assert again.evaluate("[...explorer.state.off]") == [2]
    count = "document.getElementById('explorer-count').textContent"
    assert again.evaluate(count) == page.evaluate(count)
    for name in ("x", "y", "scale"):
        assert state(again, f"view.{name}") == pytest.approx(
            state(page, f"view.{name}"), rel=1e-3, abs=0.1
        )


def test_a_broken_link_does_no_harm(open_page):
    page = open_page(
        "#explore;x=a;zoom=;colour=__proto__;off=99,x;minExperts=1e9;compare=1;object=-5"
    )
    assert state(page, "state.colour") == "count"
    assert state(page, "state.minExperts") == 6


def test_export_of_the_filtered_catalogue(page, run):
    slide(page, "least", 4)
    with page.expect_download() as download:
        page.locator("#explorer-csv").click()
    text_ = download.value.path().read_text()
    rows = list(csv.DictReader(io.StringIO(text_)))
    with open(run.folder / "catalogue.csv", newline="") as stream:
        expected = [row for row in csv.DictReader(stream) if int(row["n_experts"]) >= 4]
    assert list(rows[0]) == list(expected[0])
    for mine, theirs in zip(rows, expected, strict=True):
        assert mine["experts"] == theirs["experts"]
        for name in set(mine) - {"experts"}:
            assert float(mine[name]) == pytest.approx(float(theirs[name]), rel=2e-6, abs=1e-4)


def test_export_of_the_view(page):
    with page.expect_download() as download:
        page.locator("#explorer-png").click()
    assert download.value.path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


# --- screens ------------------------------------------------------------------------------------


def test_two_fingers_zoom(open_page):
    page = open_page(viewport={"width": 390, "height": 800}, has_touch=True)
    before = state(page, "view.scale")
    x, y = middle(page)
    session = page.context.new_cdp_session(page)
    for kind, apart in (
        ("touchStart", 30),
        ("touchMove", 60),
        ("touchMove", 90),
        ("touchEnd", None),
    ):
        points = [] if apart is None else [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert state(page, "view.scale") == pytest.approx(3 * before, rel=0.05)


def test_the_image_lies_beneath(show, run, tmp_path):
    pixels = np.full((600, 1000), 20, np.uint8)
    pixels[:, 500:] = 230
    page = show(write_report(run.posterior, tmp_path, image=pixels))
    look = """([x, y]) => { const { view, data } = explorer;
        const [sx, sy] = view.toScreen(x - data.origin[0], y - data.origin[1]);
        const canvas = document.getElementById("explorer-outlines");
        const pen = new OffscreenCanvas(7, 7).getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, 3 - Math.trunc(sx), 3 - Math.trunc(sy));
        const found = pen.getImageData(0, 0, 7, 7).data;
        return [...found].filter((_, k) => k % 4 === 0).sort((a, b) => a - b)[24]; }"""
    wait_until(page, f"({look})([990, -10]) > 200")
    assert page.evaluate(look, [10, -10]) < 60
    page.locator("#explorer-image").uncheck()
    wait_until(page, f"({look})([10, -10]) > 200")


def test_degrees_across_180(show, tmp_path):
    """Round circles, kilometres on the bar, longitudes as the data count them, nothing torn."""
    posterior = posterior_astride_180()
    write_results(posterior, tmp_path)
    page = show(write_report(posterior, tmp_path))
    x = page.evaluate("[...explorer.data.itemX]")
    assert max(x) - min(x) < 5
    ratio = page.evaluate(
        """() => { const { map, view } = explorer; return [...map.items.wide].map(
        (wide, i) => (wide * view.scaleX) / (map.items.high[i] * view.scale)); }"""
    )
    assert ratio == pytest.approx([1.0] * len(ratio), rel=0.08)
    for zoom in (1, 7):
        page.evaluate("(z) => explorer.view.zoom(z)", zoom)
        text(page, "count")
        bar, (x, y) = state(page, "overlay.bar"), state(page, "data.origin")
        assert bar["text"] == f"{bar['length']:g} km"
        west, east = page.evaluate(
            """(w) => { const { view } = explorer; const at = (s) => view.toData(
            view.width / 2 + s, view.height / 2)[0]; return [at(-w / 2), at(w / 2)]; }""",
            bar["width"],
        )
        circle = 1737.4 * math.cos(math.radians(y + state(page, "view.y")))
        assert math.radians(east - west) * circle == pytest.approx(bar["length"], rel=1e-6)
    for place in ("-179.5, 60.25", "180.5, 60.25"):
        page.locator("#explorer-query").fill(place)
        page.keyboard.press("Enter")
        page.evaluate("document.getElementById('explore').scrollIntoView()")
        page.mouse.move(*middle(page))
        shown = [float(v) for v in re.findall(r"-?[\d.]+", text(page, "place"))]
        assert shown == pytest.approx([-179.5, 60.25], abs=0.01)
    page.locator("#explorer-query").fill("c0")
    page.keyboard.press("Enter")
    said = text(page, "object")
    assert re.search(r"longitude\t-?[\d.]+ ± [\d.]+°\t-?[\d.]+ to -?[\d.]+", said)
    assert re.search(r"diameter\t[\d.]+ ± [\d.]+ km\t", said)
    with page.expect_download() as download:
        page.locator("#explorer-csv").click()
    with open(tmp_path / "catalogue.csv", newline="") as stream:
        expected = list(csv.DictReader(stream))
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    for mine, theirs in zip(rows, expected, strict=True):
        for name in set(mine) - {"experts"}:
            assert float(mine[name]) == pytest.approx(float(theirs[name]), rel=2e-6, abs=1e-4)


def test_light_and_dark(page, open_page):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.locator("#explorer-theme").click()
    assert page.evaluate(ground) == "rgb(20, 24, 28)"
    assert open_page(color_scheme="dark").evaluate(ground) == "rgb(20, 24, 28)"


def test_full_window(page):
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("f")
    box = page.locator("#explorer-root").bounding_box()
    assert (box["x"], box["y"], box["width"]) == (0, 0, 1366)
    page.keyboard.press("Escape")
    assert page.locator("#explorer-root").bounding_box()["width"] < 1366


def test_phone(open_page):
    page = open_page(viewport={"width": 390, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.touchscreen.tap(*on_screen(page, 0))
    assert "Object" in text(page, "object")


def test_every_control_has_a_name(page):
    unnamed = page.evaluate(
        """() => {
        const isNamed = (e) => e.ariaLabel || e.textContent.trim() || e.labels?.length;
        const controls = document.querySelectorAll("#explorer-root :is(button, input, select)");
        return [...controls].filter((e) => !isNamed(e)).map((e) => e.outerHTML); }"""
    )
    assert unnamed == []


def test_without_scripts_the_report_is_still_there(browser, run):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(run.address)
    assert page.locator("#explorer-root").is_hidden()
    assert page.locator("#how-many").is_visible()
    context.close()


def test_a_link_leads_to_the_map(browser, run):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(run.address + "#explore;zoom=2;draw=3")
    page.wait_for_selector("#explorer-root[data-ready=yes]")
    top = page.locator("#explore").bounding_box()["y"]
    assert abs(top) < 5
    assert state(page, "state.draw") == 3
    # Nothing beside the map is cut, and the legend hides nothing of it.
    side = page.locator(".explorer-side")
    assert side.evaluate("(box) => box.scrollWidth - box.clientWidth") == 0
    legend, shown = (page.locator(f"#explorer-{k}").bounding_box() for k in ("legend", "map"))
    assert legend["y"] + legend["height"] <= shown["y"]
    context.close()


def test_the_pointer_says_what_an_object_is(page):
    k = page.evaluate("explorer.data.undecided[0]")
    page.evaluate("(k) => explorer.view.goTo(k)", k)
    at = page.evaluate(
        "(k) => explorer.view.toScreen(explorer.data.clusterX[k], explorer.data.clusterY[k])", k
    )
    box = page.locator("#explorer-overlay").bounding_box()
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    name, experts = page.evaluate(
        "(k) => [explorer.data.clusterName[k], explorer.data.clusterExperts[k]]", k
    )
    said = text(page, "tip")
    assert said.startswith(f"Object {name}: marked by {experts} of 6 experts, diameter ")
    assert said.endswith("undecided")


def test_one_draw_at_a_time(page, run):
    """Items have the colour of the cluster that they are in, in that draw."""
    slide(page, "draw", 8)
    labels = run.posterior.labels.reshape(-1, len(run.posterior.items))[7]
    families = run.posterior.items.families
    experts = [len(set(families[labels == label])) for label in labels]
    shown = page.evaluate(
        "Array.from(explorer.data.itemX.keys(), (i) => explorer.map.colours.ofItem(i) + 1)"
    )
    assert shown == experts
    words = f"draw 8 of 120: {len(set(labels.tolist()))} objects"
    assert text(page, "draw-value") == words
    page.locator("#explorer-overlay").press("]")
    assert state(page, "state.draw") == 8
    page.evaluate("explorer.state.set({ draw: -1 })")
    assert text(page, "draw-value") == "the catalogue"


def test_the_table_leads_to_objects(page):
    page.locator("#explorer-table summary").click()
    page.locator("#explorer-table-rows a").first.click()
    name = page.locator("#explorer-table-rows a").first.inner_text()
    chosen = page.evaluate("explorer.data.clusterName[explorer.state.selected]")
    assert name == f"c{chosen}"


def test_pictures_to_take_away(page, tmp_path):
    """PNG with twice the pixels each way; SVG with an outline for each item and text as text."""
    from xml.etree import ElementTree

    from PIL import Image

    for kind in ("png", "svg"):
        with page.expect_download() as download:
            page.locator(f"#explorer-{kind}").click()
        download.value.save_as(tmp_path / f"map.{kind}")
    width = page.evaluate("explorer.view.width")
    with Image.open(tmp_path / "map.png") as picture:
        assert picture.width == 2 * width
    assert page.evaluate("document.getElementById('explorer-outlines').width") == width
    root = ElementTree.parse(tmp_path / "map.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{name}ellipse")) == page.evaluate("explorer.data.count")
    assert "Experts who share it" in [node.text for node in root.iter(f"{name}text")]


def test_a_notebook_shows_it_without_an_error(browser):
    """In a frame without an address ``replaceState`` is refused, at every change of the view."""
    errors = []
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(made_up_posterior().explore(height=700)._repr_html_())
    inner = page.frame_locator("iframe").locator("#explorer-overlay")
    inner.wait_for()
    inner.focus()
    for key in ("+", "ArrowLeft", "-"):
        page.keyboard.press(key)
    page.wait_for_timeout(700)
    page.close()
    assert errors == []
