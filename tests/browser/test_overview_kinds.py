"""The overview of many images of points, boxes, ellipses and records."""

import numpy as np
import pytest

from browser.conftest import EVIL
from dfcrp.markup import number
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_overview
from reference.kind_posteriors import kind_posterior

IMAGES = (EVIL, "b", "c", "d")
INK = """(canvas) => { const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let k = 3; k < data.length; k += 4) count += data[k] > 128;
  return count; }"""


@pytest.fixture(scope="module")
def many(request, tmp_path_factory):
    """Four images, one with a hostile name, and pages of two."""
    posterior = kind_posterior(request.param, n_objects=40, n_draws=12, images=IMAGES)
    folder = tmp_path_factory.mktemp(request.param)
    write_results(posterior, folder)
    return write_overview(posterior, folder, pages=2), posterior


@pytest.fixture
def overview(show, many):
    """The page; at the end nothing went wrong in it."""
    return show(many[0], ready="#explorer-overview[data-ready=yes]")


@pytest.mark.parametrize(
    "many", ["points", "boxes", "ellipses", "diagonal", "records"], indirect=True, scope="module"
)
def test_tiles_of_every_kind(overview, many):
    _, posterior = many
    names = overview.locator("#explorer-tiles b").all_inner_texts()
    assert names == list(posterior.images)
    words = overview.locator("#explorer-tiles li").all_inner_texts()
    for name, text in zip(names, words, strict=True):
        found = posterior[name].summary()["n_clusters"]
        assert f"{number(found['mean'], 1)} objects" in text
    for canvas in overview.locator("#explorer-tiles canvas").all():
        assert canvas.evaluate(INK) > 50
    legend = overview.locator("#explorer-key li").all_inner_texts()
    assert [entry.strip() for entry in legend[:3]] == ["at least 3 experts", "in doubt", "fewer"]
    noun = {"points": "points", "boxes": "boxes", "ellipses": "ellipses", "records": "records"}
    label = overview.locator("label", has=overview.locator("#explorer-doubt")).inner_text()
    assert label.strip() == f"only with undecided {noun.get(posterior.items.kind, 'items')}"
    assert overview.locator("a.overview-tile").count() == 2
    link = overview.locator("a.overview-tile").first
    name = link.locator("b").inner_text()
    link.click()
    overview.wait_for_selector("#explorer-root[data-ready=yes]")
    assert overview.locator("h1").inner_text() == name
    assert overview.evaluate("explorer.data.count") == len(posterior[name].items)


@pytest.mark.parametrize("many", ["records"], indirect=True, scope="module")
def test_bars_are_objects_by_number_of_experts(overview, many):
    """The ink of the bars, in proportion to the numbers of objects."""
    _, posterior = many
    canvas = overview.locator("#explorer-tiles canvas").nth(1)
    by_column = np.array(
        canvas.evaluate(
            """(canvas) => { const copy = new OffscreenCanvas(canvas.width, canvas.height);
            const pen = copy.getContext("2d", { willReadFrequently: true });
            pen.drawImage(canvas, 0, 0);
            const { data } = pen.getImageData(0, 0, canvas.width, canvas.height - 14);
            return Array.from({ length: 5 }, (_, bar) => {
              const x = Math.round(((bar + 0.5) * canvas.width) / 5);
              let tall = 0;
              for (let y = 0; y < canvas.height - 14; y++) {
                tall += data[4 * (y * canvas.width + x) + 3] > 128;
              }
              return tall;
            }); }"""
        )
    )
    catalogue = posterior[posterior.images[1]].catalogue()
    counts = np.bincount(catalogue["n_experts"], minlength=6)[1:]
    assert by_column / by_column.max() == pytest.approx(counts / counts.max(), abs=0.03)
