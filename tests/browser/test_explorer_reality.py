"""The explorer where the prior says what is real: that, instead of a number of experts."""

import csv
import json

import pytest

from browser.conftest import Run, made_up_posterior
from browser.test_explorer import slide, state, text, wait_until
from dfcrp.markup import interval, number, probability
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_report
from reference.kind_posteriors import kind_posterior
from reference.small_posteriors import under_detection


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """As the other tests' run, as if it had been made under the detection prior."""
    folder = tmp_path_factory.mktemp("reality")
    posterior = under_detection(made_up_posterior())
    write_results(posterior, folder)
    write_report(posterior, folder)
    return Run(folder, posterior, json.loads((folder / "summary.json").read_text()))


def test_the_number_is_that_of_real_objects(page, run):
    for row in run.summary["objects"]:
        page.locator(f"#explorer-classes [data-class='{row['size_class']}']").click()
        seen = row["seen"]
        assert text(page, "count") == number(seen["mean"], 1)
        assert text(page, "count-interval") == (
            f"95 % interval: {interval(seen['lo'], seen['hi'])}"
        )
    assert text(page, "count-noun") == "real objects"
    assert number(run.summary["n_missed"]["mean"]) in text(page, "missed")
    # What the page adds up itself, as it must in a region, is the same on average.
    page.evaluate("explorer.state.set({ region: [-1e9, -1e9, 1e9, 1e9], dMin: null, dMax: null })")
    assert float(text(page, "count")) == pytest.approx(run.summary["n_objects"]["mean"], rel=0.05)


def test_the_slider_leaves_what_is_real_enough(page, run):
    p = run.posterior.catalogue()["p_real"].to_numpy()
    assert (p < 0.9).any()
    for least in (0.5, 0.9):
        slide(page, "real", least)
        assert text(page, "real-value") == number(least, 2)
        assert f"{(p >= least).sum()} object" in text(page, "listed")
    with page.expect_download() as download:
        page.locator("#explorer-csv").click()
    with open(download.value.path(), newline="", encoding="utf-8") as stream:
        found = [float(row["p_real"]) for row in csv.DictReader(stream)]
    assert found == pytest.approx(p[p >= 0.9], abs=1e-6)


def test_experts_are_counted_on_request(page):
    agreement = page.locator("#explorer-agreement")
    assert not agreement.is_visible()
    page.locator("#explorer-by-experts").check()
    assert agreement.is_visible()
    slide(page, "least", 4)
    assert state(page, "state.minExperts") == 4
    page.locator("#explorer-by-experts").uncheck()
    assert not agreement.is_visible()
    assert state(page, "state.minExperts") == 1


def test_colours_and_facts(page):
    assert page.locator("#explorer-colour").input_value() == "real"
    assert "Probability of being real" in text(page, "legend")
    page.evaluate("explorer.state.set({ selected: 0 })")
    assert "P(real)" in text(page, "object")


def test_a_link_keeps_the_choice(page, open_page):
    slide(page, "real", 0.75)
    wait_until(page, "location.hash.includes('realMin=0.75')")
    again = open_page(page.evaluate("location.hash"))
    assert state(again, "state.realMin") == 0.75


@pytest.mark.parametrize("kind", ["boxes", "records"])
def test_items_without_a_size(show, tmp_path, kind):
    """Real objects are counted without size classes, and every object says how real it is."""
    posterior = under_detection(kind_posterior(kind, n_objects=15, n_experts=3, n_draws=8))
    page = show(write_report(posterior, tmp_path))
    seen = posterior.summary()["n_objects"]
    assert text(page, "count") == number(seen["mean"], 1)
    assert text(page, "count-noun") == "real objects"
    assert page.locator("#explorer-colour").input_value() == "real"
    slide(page, "real", 0.9)
    listed = (posterior.catalogue()["p_real"] >= 0.9).sum()
    assert text(page, "listed").startswith(f"{listed} object")
    page.evaluate("explorer.state.set({ selected: 0 })")
    p = posterior.catalogue()["p_real"][0]
    assert f"P(real)\n{probability(p)}" in text(page, "object")
