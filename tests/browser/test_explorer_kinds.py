"""The explorer of points, boxes, ellipses, numbers and records: drawn right, and as useful."""

import csv
import io
import json

import numpy as np
import pytest

from browser.conftest import EVIL, Run
from browser.test_explorer import expert_cells, state, text
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.markup import interval, number, probability
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_report
from dfcrp.rounding import estimate_of
from reference.kind_posteriors import kind_posterior

PLACED = ("points", "boxes", "ellipses", "diagonal", "line")
KINDS = (*PLACED, "intervals", "records")
NOUNS = {kind: kind for kind in ("points", "boxes", "ellipses", "intervals", "records")}


def of(*kinds):
    """The test is about pages of these kinds."""
    return pytest.mark.parametrize("run", kinds, indirect=True, scope="module")


@pytest.fixture(scope="module")
def run(request, tmp_path_factory):
    """A small run of each kind, with a hostile name among the experts."""
    folder = tmp_path_factory.mktemp(request.param)
    names = [EVIL, "B", "C", "D", "E"]
    posterior = kind_posterior(request.param, names=names)
    write_results(posterior, folder)
    write_report(posterior, folder)
    made = Run(folder, posterior, json.loads((folder / "summary.json").read_text()))
    made.kind = request.param
    return made


def catalogue_rows(run):
    with open(run.folder / "catalogue.csv", newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def quantities(run):
    """Columns of the catalogue that have an uncertainty."""
    names = list(run.posterior.catalogue())
    return [name for name in names if f"{name}_sd" in names]


def screen_of(page, expression):
    """A point given as [x, y] in the page's data, on the screen."""
    x, y = page.evaluate(
        f"(() => {{ const {{ data, view, map }} = explorer; "
        f"return view.toScreen(...{expression}); }})()"
    )
    box = page.locator("#explorer-overlay").bounding_box()
    return box["x"] + x, box["y"] + y


def lonely_item(run):
    """The row of an item far from those of other objects, and its object's row."""
    items = run.posterior.items
    labels = run.posterior.point_partition().labels
    place = np.column_stack([*items.columns.values()][:2])
    place = place / np.ptp(place, axis=0)
    other = labels[:, None] != labels
    apart = np.linalg.norm(place[:, None] - place, axis=2)
    nearest = np.where(other, apart, np.inf).min(axis=1)
    best = int(nearest.argmax())
    return best, int(np.flatnonzero(np.unique(labels) == labels[best])[0])


@of(*KINDS)
def test_the_page_speaks_of_the_kind(page, run):
    nouns = NOUNS.get(run.kind, "items")
    assert page.locator("#explorer-show option").all_inner_texts() == [nouns, "objects", "both"]
    assert page.locator("#explorer-expert-table th").all_inner_texts()[1] == nouns
    shown = page.locator("#explorer-root").inner_text()
    assert "marking" not in shown
    assert "iameter" not in shown
    for hidden in ("size-filter", "sizes-figure"):
        assert page.locator(f"#explorer-{hidden}").is_hidden()
    assert page.locator("#explorer-colour [value=size]").count() == 0
    # Where x and y have no unit in common there is no scale bar, but their names.
    bare = run.kind in ("diagonal", "normal", "line", "records")
    assert page.locator("#explorer-note").is_visible() == bare
    # Lanes have an axis instead.
    assert (state(page, "overlay.bar") is None) == (bare or run.kind == "intervals")
    assert page.locator("#explorer-region").is_visible() == (run.kind != "records")


@of(*KINDS)
def test_numbers_are_those_of_the_summary(page, run):
    found = run.summary["n_clusters"]
    assert text(page, "count") == estimate_of(found).mean
    assert text(page, "count-interval") == f"95 % interval: {interval(found['lo'], found['hi'])}"
    for row in run.summary["experts"]:
        cells = expert_cells(page, row["expert"])
        assert cells[1:3] == [number(row["count"]), number(row["jaccard"], 3)]
    page.locator("#explorer-least").fill("3")
    agreed = next(r for r in run.summary["consensus"] if r["min_experts"] == 3)
    assert text(page, "count") == estimate_of(agreed).mean


@of(*KINDS)
def test_the_object_panel_says_everything(page, run):
    page.locator("#explorer-query").fill("i0")
    page.keyboard.press("Enter")
    shown = text(page, "object")
    catalogue, members = run.posterior.catalogue(), run.posterior.members()
    label = members["cluster"][0]
    chosen = catalogue[catalogue["cluster"] == label].iloc[0]
    assert f"Object {label}" in shown
    for name, is_text, digits in state(
        page, "data.quantities.map((q) => [q.name, q.text, q.digits])"
    ):
        if is_text:
            assert f"{name}\n{chosen[name] or '–'}" in shown
            continue
        ends = ("", "_sd", "_lo", "_hi")
        mean, sd, lo, hi = (f"{chosen[name + end]:.{digits}f}" for end in ends)
        assert f"{name}\t{mean} ± {sd}\t{lo} to {hi}" in shown
    own = members[members["cluster"] == label]
    rows = page.locator(".explorer-members tbody tr:not(.explorer-values)").all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    assert {(c[0], c[1], c[-1]) for c in cells} == {
        (m.expert, m.marking, probability(m.p_member)) for m in own.itertuples()
    }
    words = page.locator(".explorer-members").inner_text()
    for name in state(page, "data.columns.map((c) => c.name)"):
        assert name in words


@of(*KINDS)
def test_alternatives_and_ghosts(page, run):
    page.locator("#explorer-overlay").focus()
    page.keyboard.press("n")
    assert "% of draws" in text(page, "object")
    least = run.posterior.members().groupby("cluster")["p_member"].min()
    chosen = page.evaluate("explorer.data.clusterName[explorer.state.selected]")
    assert least[chosen] == least.min()
    if run.kind == "records":
        assert page.locator("#explorer-ghosts").count() == 0
        return
    size = "document.getElementById('explorer-overlay').toDataURL().length"
    before = page.evaluate(size)
    page.locator("#explorer-ghosts").uncheck()
    text(page, "object")
    assert page.evaluate(size) < before


@of(*PLACED)
def test_ghosts_lie_where_the_draws_are(page, run):
    """The described clusters of the draws, to a 255th of the range of their group."""
    found = page.evaluate(
        """(() => { const { data } = explorer; const x = [], y = [];
        for (let g = 0; g < data.groups; g++) {
          for (let at = data.ghostOffsets[g]; at < data.ghostOffsets[g + 1]; at++) {
            const of = (n) => data[`ghost${n}Low`][g]
              + (data[`ghost${n}High`][g] - data[`ghost${n}Low`][g]) * data[`ghost${n}`][at] / 255;
            x.push(of("X") + data.origin[0]); y.push(of("Y") + data.origin[1]);
          }
        } return [x, y]; })()"""
    )
    draws, items = run.posterior.draws, run.posterior.items
    likelihood = run.posterior.likelihood
    middle = likelihood.raw_features(items).mean(axis=0)
    for axis, name in enumerate([*items.columns][:2]):
        at = draws.columns.parameters.index(likelihood.shape(items).features[axis])
        stored = np.concatenate(
            [draws.clusters(c, 0, draws.n_draws).parameters[:, at] for c in range(draws.n_chains)]
        )
        stored = stored + middle[axis]
        spread = np.ptp(items.columns[name])
        assert np.mean(found[axis]) == pytest.approx(stored.mean(), abs=0.02 * spread)
        assert len(found[axis]) <= len(stored)
        assert np.ptp(found[axis]) == pytest.approx(np.ptp(stored), rel=0.1)


@of(*PLACED)
def test_a_click_finds_the_object(page, run):
    i, k = lonely_item(run)
    turn = f"((data.itemAngle?.[{i}] ?? 0) * Math.PI / 180)"
    rim = (
        f"[data.itemX[{i}] - Math.sin({turn}) * map.items.high[{i}] / 2, "
        f"data.itemY[{i}] + Math.cos({turn}) * map.items.high[{i}] / 2]"
    )
    page.mouse.click(*screen_of(page, rim))
    assert state(page, "state.selected") == k
    page.locator("#explorer-show").select_option("objects")
    page.keyboard.press("Escape")
    page.mouse.click(*screen_of(page, f"[data.clusterX[{k}], data.clusterY[{k}]]"))
    assert state(page, "state.selected") == k


@of("boxes", "ellipses")
def test_outlines_are_drawn_where_they_are(page, run):
    """Ink on the rim, at the ends of both axes, however the item is turned; none in between."""
    i, _ = lonely_item(run)
    page.evaluate(f"explorer.view.goTo(explorer.data.itemCluster[{i}])")
    text(page, "count")
    inked = page.evaluate(
        """(i) => { const { data, view, map } = explorer;
        const canvas = document.getElementById("explorer-outlines");
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const pen = copy.getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, 0, 0);
        const ratio = canvas.width / canvas.clientWidth;
        const turn = ((data.itemAngle?.[i] ?? 0) * Math.PI) / 180;
        const look = ([u, v]) => {
          const x = u * Math.cos(turn) - v * Math.sin(turn);
          const y = u * Math.sin(turn) + v * Math.cos(turn);
          const [sx, sy] = view.toScreen(data.itemX[i] + x, data.itemY[i] + y);
          const found = pen.getImageData(sx * ratio - 2, sy * ratio - 2, 5, 5).data;
          return found.some((value, k) => k % 4 === 0 && value < 220);
        };
        const [a, b] = [map.items.wide[i] / 2, map.items.high[i] / 2];
        return [[a, 0], [-a, 0], [0, b], [0, -b], [1.6 * a, 0], [0, 1.6 * b]].map(look); }""",
        i,
    )
    assert inked[:4] == [True] * 4
    if run.kind == "ellipses":
        assert inked[4:] == [False, False]


@of("intervals")
def test_every_list_has_a_lane(page, run):
    """Objects in the first, experts below; zooming stretches the axis alone, and all stay seen."""

    def asked(expression):
        return page.evaluate(
            f"(() => {{ const {{ data, view, map }} = explorer; return {expression}; }})()"
        )

    items = run.posterior.items
    assert asked("data.lanes") == ["objects", *items.experts]
    y = np.array(asked("Array.from(data.itemY, (y) => y + data.origin[1])"))
    assert y == pytest.approx(-1.0 - items.families)
    assert set(asked("Array.from(data.clusterY, (y) => y + data.origin[1])")) == {0.0}
    scales = "[view.scaleX, view.scaleY]"
    (wide, high), bounds = asked(scales), asked("view.bounds()")
    page.evaluate("explorer.view.zoom(8)")
    assert asked(scales) == pytest.approx([8.0 * wide, high])
    assert asked("view.bounds()")[1::2] == pytest.approx(bounds[1::2])
    page.evaluate("explorer.view.goTo(3)")
    left, _, right, _ = asked("view.bounds()")
    middle, length = asked("[data.clusterX[3], map.objects.wide[3]]")
    assert (left + right) / 2 == pytest.approx(middle, abs=1e-3 * (right - left))
    assert 2.0 * length < right - left


@of("ellipses", "line", "intervals", "records")
def test_export_is_the_catalogue(page, run):
    with page.expect_download() as download:
        page.locator("#explorer-csv").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8"))))
    expected = catalogue_rows(run)
    assert list(rows[0]) == list(expected[0])
    for mine, theirs in zip(rows, expected, strict=True):
        for name in mine:
            if name.rsplit("_", 1)[0] in quantities(run) or name in quantities(run):
                assert float(mine[name]) == pytest.approx(float(theirs[name]), rel=2e-6, abs=1e-4)
            elif name not in ("p_consensus", "stability"):
                assert mine[name] == theirs[name]


@of("records")
def test_what_has_no_place_is_on_a_grid(page, run):
    note = page.locator("#explorer-note")
    assert "the layout is arbitrary" in note.inner_text()
    assert state(page, "overlay.bar") is None
    assert page.locator("#explorer-region").is_hidden()
    sizes = run.posterior.members().groupby("cluster").size()
    x, y = (np.array(page.evaluate(f"[...explorer.data.cluster{a}]")) for a in "XY")
    order = np.lexsort((x, -y))
    assert (np.diff(sizes.to_numpy()[order]) <= 0).all()
    assert len(set(zip(x, y, strict=True))) == len(x)
    # Members lie in the cell of their object, each at a place of its own.
    inside = page.evaluate(
        """(() => { const { data } = explorer; const seen = new Set();
        for (let i = 0; i < data.count; i++) {
          const k = data.itemCluster[i];
          const away = [data.itemX[i] - data.clusterX[k], data.itemY[i] - data.clusterY[k]];
          if (away.some((d) => Math.abs(d) > data.clusterWidth[k] / 2)) return -1;
          seen.add(`${data.itemX[i]} ${data.itemY[i]}`);
        } return seen.size; })()"""
    )
    assert inside == len(run.posterior.items)
    for k in (0, 7):
        corner = f"[data.clusterX[{k}] + 0.4, data.clusterY[{k}] + 0.4]"
        page.mouse.click(*screen_of(page, corner))
        assert state(page, "state.selected") == k


@of("records")
def test_records_are_found_by_what_they_say(page, run):
    cells = run.posterior.items.columns
    wanted = [i for i, name in enumerate(cells["surname"]) if "tayl" in name]
    query = page.locator("#explorer-query")
    query.fill("TAYL")
    labels = run.posterior.point_partition().labels
    for i in wanted[:3]:
        query.press("Enter")
        assert text(page, "said") == f"Record i{i}, in object {labels[i]}"
    query.fill("nobody")
    query.press("Enter")
    assert text(page, "said") == "Nothing is called “nobody”"


@of("boxes", "records")
def test_filters_and_link(page, open_page, run):
    page.locator("#explorer-least").fill("3")
    page.locator("#explorer-undecided").check()
    page.locator("#explorer-experts [data-expert='1']").uncheck()
    page.evaluate("explorer.state.set({ selected: 3 })")
    text(page, "count")
    again = open_page(page.evaluate("location.hash"))
    for name in ("minExperts", "undecided", "selected", "show"):
        assert state(again, f"state.{name}") == state(page, f"state.{name}")
    count = "document.getElementById('explorer-count').textContent"
    assert again.evaluate(count) == page.evaluate(count)


@of("points", "boxes", "records")
def test_colours_differ(page, run):
    picture = "document.getElementById('explorer-outlines').toDataURL()"
    seen = {page.evaluate(picture)}
    for colour in ("cluster", "expert", "probability"):
        page.locator("#explorer-colour").select_option(colour)
        text(page, "legend")
        seen.add(page.evaluate(picture))
    assert len(seen) == 4


@of("ellipses", "diagonal", "records")
def test_phone(open_page, run):
    page = open_page(viewport={"width": 390, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.evaluate("explorer.state.set({ selected: 0 })")
    text(page, "object")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_numbers_without_a_place(show, tmp_path, monkeypatch):
    """A likelihood that says nothing of places has a grid, and all its numbers are told."""
    monkeypatch.setattr(likelihood_named("diagonal"), "outlines", lambda columns: None)
    posterior = kind_posterior("diagonal", n_objects=9, n_experts=3, n_draws=6)
    page = show(write_report(posterior, tmp_path))
    assert "the layout is arbitrary" in page.locator("#explorer-note").inner_text()
    assert page.locator("#explorer-query").get_attribute("placeholder") == "Find: id or c12"
    page.evaluate("explorer.state.set({ selected: 2 })")
    shown = text(page, "object")
    row = posterior.catalogue().iloc[2]
    for name, digits in state(page, "data.quantities.map((q) => [q.name, q.digits])"):
        assert f"{name}\t{row[name]:.{digits}f} ± " in shown
    values = page.locator(".explorer-values").first.inner_text()
    assert all(name in values for name in posterior.items.columns)
