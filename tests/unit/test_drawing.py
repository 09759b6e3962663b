"""Figures drawn by helpers are those drawn here; large layers are pixels; text stays text."""

import base64
import io
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dfcrp import plots
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from dfcrp.plots import drawing, style
from dfcrp.plots.drawing import Order, check_formats, draw_all, draw_one
from dfcrp.report import write_report
from reference.small_posteriors import posterior_of, random_posterior


@pytest.fixture(scope="module")
def posterior():
    return random_posterior(3, n=15, n_families=4)


def orders_of(posterior, folder, formats=("svg",)):
    names = ("traces", "items_map", "jaccard", "size_frequency")
    tables = {name: getattr(plots, f"prepare_{name}")(posterior) for name in names}
    return [Order(name, table, folder, formats) for name, table in tables.items()]


@pytest.mark.figures
def test_helpers_draw_what_is_drawn_here(posterior, tmp_path):
    here = draw_all(orders_of(posterior, tmp_path / "here"), 0)
    there = draw_all(orders_of(posterior, tmp_path / "there"), 2)
    assert list(here) == list(there)
    assert here == there
    for name, found in there.items():
        assert (tmp_path / "there" / f"{name}.svg").read_bytes() == found.content


def test_a_helper_does_draw(posterior, tmp_path, monkeypatch):
    def refuse(order):
        raise AssertionError("drawn here")

    monkeypatch.setattr(drawing, "draw_one", refuse)
    # All orders are with the helper before this process would begin to draw.
    team = drawing._Helpers(1)
    with team:
        for order in orders_of(posterior, tmp_path):
            team.give(order)
        while team._queue.qsize():
            time.sleep(0.05)
        assert len(team.finish()) == 4


@pytest.mark.drawn
@pytest.mark.parametrize("helper", ["raise SystemExit(1)", "no Python at all", None])
def test_without_a_working_helper_figures_are_drawn_here(helper, posterior, tmp_path, monkeypatch):
    if helper is None:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "no such program"))
    else:
        monkeypatch.setattr(drawing, "HELPER", helper)
    assert len(draw_all(orders_of(posterior, tmp_path), 2)) == 4


@pytest.mark.drawn
def test_an_error_of_a_figure_is_raised_here(posterior, tmp_path):
    wrong = [Order("jaccard", "not a table", tmp_path, ("svg",))]
    with pytest.raises(AttributeError, match="experts"):
        draw_all(wrong, 1)


@pytest.mark.figures
def test_text_is_text_in_every_format(posterior, tmp_path):
    order = orders_of(posterior, tmp_path, ("svg", "pdf", "png"))[2]
    text = draw_one(order).content.decode()
    assert ">Jaccard coefficient</text>" in text
    assert "sans-serif" in text
    pdf = (tmp_path / "jaccard.pdf").read_bytes()
    assert b"/Type42" in pdf or b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    assert (tmp_path / "jaccard.png").exists()


def many_circles(n):
    rng = np.random.default_rng(1)
    return Items.circles(
        rng.random(n) * 1000.0,
        rng.random(n) * 1000.0,
        1.0 + rng.random(n),
        [f"e{i % 4}" for i in range(n)],
    )


@pytest.mark.parametrize("figure", ["items_map", "catalogue_map", "singletons"])
@pytest.mark.figures
def test_very_many_outlines_are_pixels(figure, tmp_path):
    n = 5 * style.MOST_PATHS
    posterior = posterior_of(np.tile(np.arange(n, dtype=np.int32), (2, 4, 1)), many_circles(n))
    table = getattr(plots, f"prepare_{figure}")(posterior)
    content = draw_one(Order(figure, table, tmp_path, ("svg",))).content
    assert len(re.findall(rb"<image ", content)) >= 1
    assert len(content) < 3_000_000


def test_few_colours_look_the_same():
    from PIL import Image

    rng = np.random.default_rng(2)
    pixels = np.zeros((60, 80, 4), np.uint8)
    pixels[..., :3] = (0, 114, 178)
    pixels[..., 3] = rng.choice([0, 0, 40, 128, 255], (60, 80))
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    head = b'<image xlink:href="data:image/png;base64,\n'
    svg = head + base64.b64encode(out.getvalue()) + b'" x="3"/><text>data</text>'
    found = drawing.with_few_colours(svg)
    assert found.startswith(head)
    assert found.endswith(b'" x="3"/><text>data</text>')
    with Image.open(io.BytesIO(base64.b64decode(drawing.PIXELS.search(found)[2]))) as image:
        assert image.mode == "P"
        shown = np.asarray(image.convert("RGBA")).astype(int)
    seen = shown[..., 3] > 0
    assert np.abs(shown[..., 3] - pixels[..., 3]).max() <= 8
    assert np.abs(shown[..., :3] - pixels[..., :3])[seen].max() <= 16


@pytest.mark.figures
def test_few_outlines_are_paths(posterior, tmp_path):
    assert b"<image " not in draw_one(orders_of(posterior, tmp_path)[1]).content


def test_formats_are_checked():
    assert check_formats(["png", "svg", "png"]) == ("svg", "png")
    with pytest.raises(SettingsError, match="cannot be saved as 'gif'; there are svg, pdf, png"):
        check_formats(["gif"])


@pytest.mark.drawn
def test_files_of_other_formats_and_figures_are_removed(posterior, tmp_path):
    for name in ("jaccard.png", "reality.svg", "mine.png"):
        (tmp_path / "figures").mkdir(exist_ok=True)
        (tmp_path / "figures" / name).write_text("old")
    page = write_report(posterior, tmp_path, figures=("pdf",)).read_text(encoding="utf-8")
    found = {path.name for path in (tmp_path / "figures").iterdir()}
    assert "mine.png" in found
    assert not {"jaccard.png", "reality.svg"} & found
    assert {name for name in found if not name.endswith(".pdf")} == {"mine.png"}
    assert 'href="figures/jaccard.pdf">PDF</a>' in page
    assert ">SVG</a>" not in page


@pytest.mark.parametrize(("drawn", "saved"), [(3.4, 3.5), (4.4, 7.2), (7.2, 7.2), (9.0, 9.0)])
def test_files_are_as_wide_as_columns_of_a_journal(drawn, saved):
    """Unless the axes are on a figure of the user's."""
    from matplotlib.figure import Figure

    for figure, ours in (
        (style.single_axes(drawn, 2.0).figure, True),
        (Figure(figsize=(drawn, 2.0), layout="constrained"), False),
    ):
        axes = figure.axes[0] if ours else figure.subplots()
        axes.set_xlabel("x")
        page = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+)", style.render(figure, ("pdf",))["pdf"])
        width = float(page[1]) / 72.0
        assert width == pytest.approx(
            saved if ours else drawn, abs=1e-3 if ours and saved <= 7.2 else 0.11
        )


def test_a_helper_that_comes_too_late_waits_no_longer_than_it_should():
    """Another takes the order that it was woken for, as on a machine with too much to do."""
    team = drawing._Helpers(0)
    order = Order("jaccard", None, Path("here"), ())

    def ask():
        while not team._all_given.is_set():
            team._next(1e-4)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            team.give(order)
            team._next(0.0)
    finally:
        sys.setswitchinterval(usual)
    team._all_given.set()
    thread.join(10.0)
    assert not thread.is_alive()
