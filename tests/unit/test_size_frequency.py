"""Size-frequency distributions against plain loops, and the bins against their definition."""

import csv
import dataclasses
import io
import math

import numpy as np
import pytest

from dfcrp import plots
from dfcrp.craterstats import Isochrons
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.site import Site
from dfcrp.posterior.sizes import BINNINGS, KINDS, bin_edges
from dfcrp.report.contents import Contents
from dfcrp.report.sections.objects import size_table
from dfcrp.settings.config import Config, SummarySettings
from dfcrp.settings.consensus import REAL
from reference import summary_reference as twin
from reference.small_posteriors import random_posterior, under_detection

#: 0.5 km and 4 km² make the numbers differ from those in pixels.
KNOWN = Site("px", area_km2=4.0, metres_per_pixel=500.0)


def posterior_with(diameter="mu", site=KNOWN):
    summary = SummarySettings(min_experts=2, thresholds=(2,), diameter=diameter)
    posterior = random_posterior(5, config=Config(summary=summary))
    posterior.items = dataclasses.replace(posterior.items, site=site)
    return posterior


def diameters_of_draws(posterior, diameter):
    """Label, diameter in pixels and experts of every cluster, draw by draw."""
    markings = posterior.items
    for chain, draw in np.ndindex(posterior.labels.shape[:2]):
        labels = posterior.labels[chain, draw]
        of = {n: markings.diameter[m].mean() for n, m in twin.clusters_of(labels).items()}
        if diameter == "mu":
            rows = twin.parameters_of(posterior.draws, chain, draw)
            of = {name: math.exp(float(row[2])) for name, row in rows.items()}
        yield labels, of


@pytest.mark.parametrize("diameter", ["mu", "members"])
@pytest.mark.parametrize("kind", KINDS)
def test_band_and_curves(kind, diameter):
    posterior = posterior_with(diameter)
    markings = posterior.items
    dbscan = np.arange(len(markings)) // 3 - 1
    table = posterior.size_frequency(kind, binning="root-2", dbscan=dbscan)
    assert table.unit == "km"
    means = [markings.diameter[dbscan == c].mean() for c in range(dbscan.max() + 1)]
    for k, (low, high) in enumerate(zip(table.d_min, table.d_max, strict=True)):
        assert high / low == pytest.approx(math.sqrt(2.0))
        middle = math.sqrt(low * high)
        weigh = {
            "cumulative": 1.0 / 4.0,
            "differential": 1.0 / ((high - low) * 4.0),
            "relative": middle**3 / ((high - low) * 4.0),
        }[kind]
        bounds = (2.0 * low, math.inf if kind == "cumulative" else 2.0 * high)
        counts = [
            twin.consensus_count(labels, of, markings.families, 2, *bounds)
            for labels, of in diameters_of_draws(posterior, diameter)
        ]
        found = (table.mean[k], table.lo[k], table.hi[k])
        assert found == pytest.approx(twin.mean_and_interval([weigh * n for n in counts]))
        assert table.counting[k] == pytest.approx(weigh * math.sqrt(np.mean(counts)))
        assert table.dbscan[k] == pytest.approx(
            weigh * sum(bounds[0] <= d < bounds[1] for d in means)
        )
        for name, values in zip(table.experts, table.by_expert, strict=True):
            own = markings.diameter[markings.expert == name]
            assert values[k] == pytest.approx(weigh * sum((own >= bounds[0]) & (own < bounds[1])))
        assert table.diameter[k] == pytest.approx(low if kind == "cumulative" else middle)


def test_without_scale_and_area_the_numbers_are_counts():
    posterior = posterior_with(site=Site())
    table = plots.prepare_size_frequency(posterior, points=9)
    assert (table.unit, table.area_km2, table.binning) == ("px", None, "none")
    assert table.diameter[0] == pytest.approx(posterior.items.diameter.min())
    assert table.by_expert[:, 0].tolist() == sorted(np.bincount(posterior.items.families))
    assert (np.diff(table.by_expert, axis=1) <= 0).all()


def test_dbscan_is_taken_for_its_own_threshold():
    posterior = posterior_with()
    labels = np.zeros(len(posterior.items), int)
    assert plots.prepare_size_relative(posterior, dbscan={2: labels}).dbscan is not None
    assert plots.prepare_size_relative(posterior, dbscan={3: labels}).dbscan is None
    assert plots.prepare_size_relative(posterior, dbscan=labels, min_experts=3).dbscan is None


@pytest.mark.parametrize("binning", BINNINGS)
def test_every_diameter_has_a_bin(binning):
    for smallest, largest in ((0.011, 0.3), (1.0, 1.0), (9.5, 10.0), (1.5, 1000.0), (0.02, 0.02)):
        edges = bin_edges(binning, smallest, largest)
        assert edges[0] <= smallest * (1 + 1e-9)
        assert edges[1] > smallest
        assert edges[-2] <= largest * (1 + 1e-9)
        assert largest < edges[-1]
        assert (np.diff(edges) > 0).all()
    decade = bin_edges(binning, 1.0, 9.99)
    assert decade[0] == pytest.approx(1.0)
    count = {"pseudo-log": 18, "root-2": 7, "10/decade": 10, "20/decade": 20}[binning]
    assert len(decade) - 1 == count


def test_bins_between_two_diameters():
    posterior = posterior_with()
    whole = posterior.size_frequency("relative")
    low, high = whole.d_min[1], whole.d_max[-2]
    part = posterior.size_frequency("relative", diameters=(low, high))
    assert part.d_min.tolist() == whole.d_min[1:-1].tolist()
    assert part.mean.tolist() == whole.mean[1:-1].tolist()
    with pytest.raises(SettingsError, match="no bin lies between the diameters 1 and 2"):
        posterior.size_frequency("relative", diameters=(1.0, 2.0))


def test_a_figure_begins_with_a_bin_that_was_counted_in_full():
    """With a smallest diameter the bin that holds it has only a part of its objects."""
    posterior = posterior_with()
    whole = posterior.size_frequency("differential")
    assert whole.d_min[0] < whole.smallest < whole.d_max[0]
    assert plots.prepare_size_differential(posterior).d_min[0] == whole.d_max[0]
    asked = plots.prepare_size_differential(posterior, diameters=(0.0, math.inf))
    assert asked.d_min[0] == whole.d_min[0]


def test_where_reality_is_known_real_objects_are_counted():
    """On average as many as p_real says, whatever the number of experts."""
    posterior = under_detection(posterior_with())
    usual = posterior.consensus_diameters()
    assert posterior.size_frequency("cumulative").min_experts == REAL
    p, labels = posterior.detection.p_real_marking, posterior.labels
    each = [
        sum(p[own == name].mean() for name in np.unique(own))
        for own in labels.reshape(-1, labels.shape[2])
    ]
    error = math.sqrt(max(each) / 4 / len(each))
    assert np.mean([len(draw) for draw in usual]) == pytest.approx(np.mean(each), abs=4 * error)
    again = under_detection(posterior_with()).consensus_diameters()
    assert all((a == b).all() for a, b in zip(usual, again, strict=True))
    _, ax = plots.plot_size_relative(posterior)
    assert "posterior, real objects" in [t.get_text() for t in ax.get_legend().get_texts()]
    with pytest.raises(InputError, match="which clusters are real"):
        posterior_with().consensus_diameters(REAL)


def test_wrong_choices_are_named():
    posterior = posterior_with()
    with pytest.raises(SettingsError, match='did you mean "root-2"'):
        posterior.size_frequency("relative", binning="root2")
    with pytest.raises(SettingsError, match="needs bins"):
        posterior.size_frequency("relative", binning="none")
    with pytest.raises(SettingsError, match="cumulative, differential, relative"):
        posterior.size_frequency("cumulativ")


def test_the_table_holds_what_the_figures_show():
    posterior = posterior_with()
    labels = np.zeros(len(posterior.items), int)
    rows = list(csv.DictReader(io.StringIO(size_table(Contents(posterior, dbscan=labels)))))
    assert {row["kind"] for row in rows} == set(KINDS)
    table = posterior.size_frequency("relative", binning="root-2")
    found = [
        float(row["hi"])
        for row in rows
        if (row["kind"], row["binning"], row["curve"]) == ("relative", "root-2", "posterior")
    ]
    assert found == pytest.approx(table.hi, rel=1e-5)
    assert {row["min_experts"] for row in rows if row["curve"] != "expert"} == {"2"}
    experts = {row["expert"] for row in rows if row["curve"] == "expert"}
    assert experts == set(posterior.items.experts)


def made_up_isochrons():
    """Lines of slope -1 at three heights, the second of the model age; equilibrium is flat."""
    at = np.geomspace(1e-3, 1e3, 200)
    lines = [(age, (at, 5.0 * age / at)) for age in (1.0, 2.0, 1e12)]
    return Isochrons(
        "Moon, One (2001)",
        "Level (1966)",
        2.0,
        dict.fromkeys(KINDS, lines),
        dict.fromkeys(KINDS, (at, np.ones(200))),
    )


def test_isochrons_are_drawn_where_lengths_and_area_are_known():
    """What lies beyond the figure is left out, and the data's own limits stay."""
    posterior = posterior_with()
    table, axes = plots.plot_size_frequency(posterior, isochrons=made_up_isochrons())
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "isochron of 2 Ga, the model age" in words
    assert "isochrons, Moon, One (2001)" in words
    assert "Level (1966)" in words
    assert [text.get_text() for text in axes.texts] == ["1 Ga"]
    _, without = plots.plot_size_frequency(posterior)
    assert axes.get_ylim() == without.get_ylim()
    assert table.isochrons is not None
    for site in (Site("px"), Site("px", metres_per_pixel=500.0), Site("px", area_km2=4.0)):
        table = plots.prepare_size_relative(
            posterior_with(site=site), isochrons=made_up_isochrons()
        )
        assert table.isochrons is None
    assert Isochrons.from_json(made_up_isochrons().to_json()).levels["relative"] is not None
