"""Prepared tables against plain loops on small draws; every figure drawn and saved once."""

import math
import sys
from dataclasses import replace
from subprocess import run

import numpy as np
import pytest
from PIL import Image

from dfcrp import plots
from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.markup import plural
from dfcrp.plots import style
from dfcrp.plots.maps import AGREED, IN_DOUBT, NOT_AGREED
from dfcrp.plots.neighbourhood import OTHER
from dfcrp.plots.sizes import plain_ticks, tick_words
from dfcrp.plots.traces import MAX_FAILED, MAX_LEARNED, rank_shares
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.config import Config, SummarySettings
from dfcrp.summaries.convergence import Limits, good
from reference import summary_reference as twin
from reference.kind_posteriors import KINDS, kind_posterior
from reference.small_posteriors import (
    posterior_of,
    random_markings,
    random_posterior,
    under_detection,
)

#: Names that matplotlib would take for mathematics, skip in a legend, or have no glyphs for.
AWKWARD = ("$x^$ & _", "_hidden", "<b>\n", "名前", "A" * 80)


@pytest.fixture(scope="module")
def posterior():
    return random_posterior(1)


def lone_posterior():
    """One expert, one marking, one chain, nothing agreed on."""
    markings = Items.circles(x=[5.0], y=[7.0], diameter=[3.0], expert=["Ann"])
    return posterior_of([[[0]] * 3], markings)


def options_for(figure):
    """What it takes besides a posterior."""
    truth = Items.circles(x=[5.0, 90.0], y=[7.0, 9.0], diameter=[3.0, 4.0], expert=["a", "b"])
    return {"neighbourhood": {"item": 0}, "evaluation": {"truth": truth}}.get(figure, {})


def suited(figure, posterior):
    """The posterior under the prior that the figure is about."""
    about = ("cluster_sizes", "corrected_sizes", "reality", "scores", "sensitivity", "skills")
    if figure == "scores":
        score = np.arange(len(posterior.items)) / 10
        items = replace(posterior.items, score=score)
        posterior = Posterior(posterior.draws, items, posterior.config, posterior.record)
    return under_detection(posterior) if figure in about else posterior


def figure_of(axes):
    return (axes[0] if isinstance(axes, list) else axes).get_figure(root=True)


@pytest.mark.parametrize("figure", plots.FIGURES)
@pytest.mark.parametrize("make", [random_posterior, lone_posterior])
def test_every_figure_is_drawn_and_saved(figure, make, tmp_path):
    posterior = suited(figure, make())
    _, axes = getattr(plots, f"plot_{figure}")(posterior, **options_for(figure))
    png, svg = plots.save_figure(figure_of(axes), tmp_path / "figures", figure)
    with Image.open(png) as image:
        assert min(image.size) > 200
    assert svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")


@pytest.mark.parametrize("figure", plots.FIGURES)
def test_awkward_names_are_drawn_as_they_are(figure, tmp_path):
    made = suited(figure, random_posterior(2, n=15, n_families=5, names=AWKWARD))
    _, axes = getattr(plots, f"plot_{figure}")(made, **options_for(figure))
    plots.save_figure(figure_of(axes), tmp_path, figure)


@pytest.mark.parametrize("figure", plots.FIGURES)
def test_axes_of_the_caller_are_used(figure, posterior):
    table = getattr(plots, f"prepare_{figure}")(suited(figure, posterior), **options_for(figure))
    drawn = getattr(plots, f"draw_{figure}")(table)
    count = len(drawn) if isinstance(drawn, list) else 1
    own = style.new_axes(6.0, 6.0, 1, count)
    again = getattr(plots, f"draw_{figure}")(table, own if isinstance(drawn, list) else own[0, 0])
    assert figure_of(again) is own[0, 0].figure
    if count > 1:
        with pytest.raises(ValueError, match=f"this figure has {count} panels"):
            getattr(plots, f"draw_{figure}")(table, own[:, :-1])


def test_figures_leave_no_trace(posterior):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.plot_jaccard(posterior)
    assert dict(matplotlib.rcParams) == before


def test_neither_matplotlib_nor_pyplot_is_imported_before_it_is_needed(tmp_path):
    code = """
import sys
from dfcrp import plots
from dfcrp.plots import style
assert "matplotlib" not in sys.modules
plots.save_figure(style.single_axes(3.0, 2.0).figure, sys.argv[1], "figure")
assert "matplotlib.pyplot" not in sys.modules
"""
    run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_saved_files_are_reproducible(posterior, tmp_path):
    files = []
    for name in ("one", "two"):
        figure = plots.plot_jaccard(posterior)[1].figure
        files.append([path.read_bytes() for path in plots.save_figure(figure, tmp_path, name)])
    assert files[0] == files[1]


def test_other_formats(posterior, tmp_path):
    figure = plots.plot_jaccard(posterior)[1].figure
    paths = [tmp_path / name for name in ("figure.pdf", "figure.JPG", "figure.eps")]
    style.save_as(figure, *paths)
    assert all(path.stat().st_size > 1000 for path in paths)


def test_unknown_name():
    with pytest.raises(AttributeError, match="plot_nothing"):
        _ = plots.plot_nothing


# --- tables -------------------------------------------------------------------------------------


def every_draw(posterior):
    return posterior.labels.reshape(-1, len(posterior.items))


@pytest.mark.parametrize("min_experts", [2, 3])
def test_counts_by_size(min_experts):
    summary = SummarySettings(
        min_experts=2, thresholds=(2,), class_edges=(60.0,), class_names=("s", "l")
    )
    posterior = random_posterior(4, config=Config(summary=summary))
    markings = posterior.items
    dbscan = np.arange(len(markings)) // 3 - 1
    table = plots.prepare_counts_by_size(
        posterior, min_experts=min_experts, dbscan={min_experts: dbscan}
    )
    assert table.bounds == ("below 60", "60 and more")
    assert table.by_expert.sum(axis=0).tolist() == sorted(table.by_expert.sum(axis=0))
    for k, (low, high) in enumerate(((0, 60), (60, math.inf))):
        inside = (markings.diameter >= low) & (markings.diameter < high)
        for f, name in enumerate(table.experts):
            assert table.by_expert[k, f] == sum(inside & (markings.expert == name))
        expected = []
        for chain, draw in np.ndindex(posterior.labels.shape[:2]):
            rows = twin.parameters_of(posterior.draws, chain, draw)
            of = {name: math.exp(float(row[2])) for name, row in rows.items()}
            expected.append(
                twin.consensus_count(
                    posterior.labels[chain, draw], of, markings.families, min_experts, low, high
                )
            )
        assert table.posterior[k].tolist() == expected
        means = [markings.diameter[dbscan == c].mean() for c in range(dbscan.max() + 1)]
        assert table.dbscan[k] == sum(low <= mean < high for mean in means)


def test_dbscan_of_one_threshold_is_not_used_for_another(posterior):
    labels = np.zeros(len(posterior.items), int)
    prepare = plots.prepare_counts_by_size
    assert prepare(posterior, dbscan=labels).dbscan.sum() == 1
    assert prepare(posterior, dbscan=labels, min_experts=3).dbscan is None
    with pytest.raises(InputError, match="one for each of the 12 items"):
        prepare(posterior, dbscan=labels[:-1])


def test_counts_taken_from_elsewhere_are_the_same(posterior):
    counts = posterior.consensus_counts((3, 2))
    one = plots.prepare_counts_by_size(posterior)
    two = plots.prepare_counts_by_size(posterior, counts=counts)
    assert (one.posterior == two.posterior).all()
    one, two = plots.prepare_traces(posterior), plots.prepare_traces(posterior, counts=counts)
    assert (one.series == two.series).all()


def test_everyone_agrees_with_themselves(posterior):
    table = plots.prepare_jaccard(posterior)
    ax = plots.draw_jaccard(table)
    shown = ax.images[0].get_array()
    assert np.array_equal(np.diag(shown), np.ones(len(table.experts)))
    apart = ~np.eye(len(table.experts), dtype=bool)
    assert np.array_equal(shown[apart], table.mean[apart])
    assert ax.images[0].origin == "upper"  # the diagonal runs as in any matrix
    assert ax.images[0].norm.vmax == 1.0
    assert [text.get_text() for text in ax.texts].count("1") == len(table.experts)


@pytest.mark.parametrize(
    ("value", "near", "words"),
    [
        (0.05, True, "0.05"),
        (20_000.0, True, "20000"),
        (2e5, False, "2×10⁵"),
        (1e6, False, "10⁶"),
        (5e-7, False, "5×10⁻⁷"),
        (1.0, False, "10⁰"),
    ],
)
def test_ticks_are_all_of_one_form(value, near, words):
    assert tick_words(value, near) == words


def test_a_wide_axis_has_powers_of_ten():
    ax = style.single_axes(3.0, 2.0)
    for top, powers in ((900.0, False), (3e6, True)):
        ax.set(xscale="log", xlim=(1.0, top))
        plain_ticks(ax.xaxis)
        ax.figure.draw_without_rendering()
        shown = [label.get_text() for label in ax.get_xticklabels() if label.get_text()]
        assert len(shown) > 2
        assert all(any(mark in words for mark in "⁰¹²³⁴⁵⁶⁷⁸⁹") == powers for words in shown)


def test_jaccard(posterior):
    table = plots.prepare_jaccard(posterior)
    markings = posterior.items
    assert table.count.tolist() == sorted(table.count)
    for a, name in enumerate(table.experts):
        for b, other in enumerate(table.experts):
            if a == b:
                continue
            f, g = markings.experts.index(name), markings.experts.index(other)
            values = [twin.jaccard(d, markings.families, f, g) for d in every_draw(posterior)]
            found = (table.mean[a, b], table.lo[a, b], table.hi[a, b])
            assert found == pytest.approx(twin.mean_and_interval(values), abs=1e-6)
    (a, b), (c, d) = table.extreme_pairs()
    pairs = {(i, j): table.mean[i, j] for i in range(4) for j in range(4) if i < j}
    place = table.experts.index
    assert pairs[place(a), place(b)] == max(pairs.values())
    assert pairs[place(c), place(d)] == min(pairs.values())
    assert plots.prepare_jaccard(lone_posterior()).extreme_pairs() is None


def test_singletons(posterior):
    table = plots.prepare_singletons(posterior, threshold=0.2)
    families = posterior.items.families
    shares = {}
    for f, name in enumerate(posterior.items.experts):
        values = [twin.size_1_share(d, families, f) for d in every_draw(posterior)]
        shares[name] = twin.mean_and_interval(values)[0]
    assert list(table.experts) == sorted(shares, key=lambda name: -shares[name])[:2]
    assert table.shares == pytest.approx([shares[name] for name in table.experts])
    expected = [
        (x, twin.alone_probability(posterior.labels, i))
        for i, x in enumerate(posterior.items.x)
        if posterior.items.expert[i] in table.experts
        and twin.alone_probability(posterior.labels, i) >= 0.2
    ]
    found = np.column_stack((table.outlines.x, table.p_alone))
    assert found == pytest.approx(np.array(expected))
    assert [table.experts[k] for k in table.expert] == [
        posterior.items.expert[posterior.items.x.tolist().index(x)] for x in table.outlines.x
    ]
    with pytest.raises(InputError, match="did you mean 'expert A'"):
        plots.prepare_singletons(posterior, experts=["expert AA"])


def test_traces(posterior):
    table = plots.prepare_traces(posterior, bins=2)
    counts = [[len(set(draw)) for draw in chain] for chain in posterior.labels.tolist()]
    assert table.names[:2] == ("number of clusters", "clusters of at least 2 experts")
    assert table.series[0].tolist() == counts
    assert (table.series[2] == posterior.alpha).all()
    assert table.ranks.shape == (3, 2, 2)
    # over all chains the ranks are flat
    assert table.ranks.mean(axis=1) == pytest.approx(np.ones((3, 2)))


def test_ranks_of_chains_apart():
    series = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    assert rank_shares(series, 2).tolist() == [[2, 0], [0, 2]]


def test_alpha_may_be_missing(posterior):
    lone = lone_posterior()
    lone.alpha = np.full((1, 3), np.nan)
    assert len(plots.prepare_traces(lone).names) == 2


def test_radius(posterior):
    markings = posterior.items
    radii = [0.0, 2.0, 5.0, 200.0]
    table = plots.prepare_radius(posterior, radii=radii, timed=[5, 2], seconds=[9, 4], chosen=5.0)
    for rho, share in zip(radii, table.violating, strict=True):
        shares = []
        for draw in every_draw(posterior):
            clusters = twin.clusters_of(draw).values()
            wide = [
                max(
                    math.hypot(markings.x[i] - markings.x[j], markings.y[i] - markings.y[j])
                    for i in members
                    for j in members
                )
                for members in clusters
            ]
            shares.append(sum(w > rho for w in wide) / len(wide))
        assert share == pytest.approx(np.mean(shares))
    plots.draw_radius(table)
    with pytest.raises(InputError, match="1 timed radii, but 0 times"):
        plots.prepare_radius(posterior, timed=[3.0])


def test_coclustering(posterior):
    table = plots.prepare_coclustering(posterior, "m3", size=6)
    assert len(table.items) >= 6
    assert table.ids[table.centre] == "m3"
    point = posterior.point_partition().labels
    assert table.clusters.tolist() == point[table.items].tolist()
    # whole clusters, each in one piece, the marking's own first
    assert table.clusters[0] == point[3]
    assert len(np.flatnonzero(np.diff(table.clusters))) == len(set(table.clusters.tolist())) - 1
    for name in set(table.clusters.tolist()):
        assert set(np.flatnonzero(point == name)) <= set(table.items.tolist())
    for a, i in enumerate(table.items):
        for b, j in enumerate(table.items):
            expected = twin.pair_probability(posterior.labels, i, j)
            assert table.probability[a, b] == pytest.approx(expected)


def test_neighbourhood(posterior):
    table = plots.prepare_neighbourhood(posterior, "m3")
    point = posterior.point_partition().labels
    assert 3 not in table.items
    for i, k in zip(table.items, table.candidate, strict=True):
        assert (k == OTHER) == (point[i] not in table.clusters)
        assert k == OTHER or table.clusters[k] == point[i]
    own = posterior.items.families[3]
    assert (table.relative == (posterior.items.families[table.items] == own)).all()
    assert sum(table.probabilities) + table.p_alone == pytest.approx(1.0)


def test_certainty_and_catalogue_map(posterior):
    table = plots.prepare_certainty(posterior, bins=5)
    p_member = posterior.members()["p_member"]
    catalogue = posterior.catalogue()
    for k in range(5):
        low, high = k / 5, (k + 1) / 5 if k < 4 else 1.1
        assert table.members[k] == ((p_member >= low) & (p_member < high)).sum()
        p = catalogue["p_consensus"]
        assert table.clusters[k] == ((p >= low) & (p < high)).sum()
    shown = plots.prepare_catalogue_map(posterior, catalogue=catalogue)
    for state, p in zip(shown.state, catalogue["p_consensus"], strict=True):
        assert state == (AGREED if p >= 0.95 else IN_DOUBT if p > 0.05 else NOT_AGREED)


def test_expert_panels(posterior):
    markings = posterior.items
    region = (100.0, 300.0, 50.0, 350.0)
    table = plots.prepare_expert_panels(posterior, region=region)
    inside = (markings.x >= 100) & (markings.x <= 300) & (markings.y >= 50) & (markings.y <= 350)
    assert table.experts == markings.experts
    assert table.counts == tuple(sum(inside & (markings.expert == e)) for e in table.experts)
    assert len(table.outlines) >= inside.sum()
    everything = plots.prepare_items_map(posterior)
    assert len(everything.outlines) == len(markings)
    assert len(plots.prepare_items_map(posterior, region=region).outlines) == len(table.outlines)


def test_no_more_panels_than_fit():
    families = np.arange(30)
    markings = random_markings(np.random.default_rng(0), families, [f"{f:02}" for f in families])
    posterior = posterior_of([[list(range(30))] * 3], markings)
    table, axes = plots.plot_expert_panels(posterior, region=(0.0, 500.0, 0.0, 500.0))
    assert len(axes) == len(table.experts) == 24
    assert (table.panel == -1).sum() == 6


# --- other kinds of items -----------------------------------------------------------------------

ANY_KIND = ("traces", "counts_by_size", "certainty", "coclustering", "jaccard")


@pytest.mark.parametrize("kind", KINDS)
def test_figures_of_every_kind_speak_of_it(kind):
    posterior = kind_posterior(kind, n_draws=12)
    nouns = plural(posterior.likelihood.noun)
    for figure in ANY_KIND:
        table, axes = getattr(plots, f"plot_{figure}")(posterior)
        assert getattr(table, "nouns", nouns) == nouns
        figure_of(axes).canvas.draw()
    assert plots.prepare_counts_by_size(posterior).size_classes == ("all",)


@pytest.mark.parametrize(
    ("figure", "kind"),
    [
        *((figure, "boxes") for figure in plots.NEED_DIAMETERS),
        *((figure, "points") for figure in plots.NEED_SIZES),
    ],
)
def test_figures_about_sizes_say_that_there_are_none(figure, kind):
    posterior = suited(figure, kind_posterior(kind, n_draws=4))
    with pytest.raises(InputError, match=rf"{kind} (do not )?have"):
        getattr(plots, f"prepare_{figure}")(posterior)


@pytest.mark.parametrize("kind", ["boxes", "ellipses"])
def test_what_is_found_by_size_of_boxes_and_ellipses(kind):
    posterior = suited("sensitivity", kind_posterior(kind, n_draws=4))
    table, axes = plots.plot_sensitivity(posterior)
    assert "√" in table.size
    assert len(table.diameter) > 1
    figure_of(axes[0]).canvas.draw()
    assert plots.prepare_corrected_sizes(posterior).size == table.size


def test_counts_without_sizes():
    posterior = kind_posterior("points", n_draws=6)
    table = plots.prepare_counts_by_size(posterior, dbscan=np.zeros(len(posterior.items), int))
    assert table.by_expert.sum() == len(posterior.items)
    assert table.dbscan.tolist() == [1]
    assert table.bounds == ("",)


def test_traces_of_what_was_learned():
    posterior = kind_posterior("records")
    table = plots.prepare_traces(posterior)
    rhat = {found.name: found.rhat for found in posterior.verdict.parameters}
    words = [posterior.quantity_words[name] for name in posterior.draws.columns.names]
    assert "share of typos in surname" in words
    learned = [name for name in words if name in table.names]
    assert len(learned) == MAX_LEARNED == len(table.names) - 3
    others = set(words) - {*learned}
    assert min(rhat[name] for name in learned) >= max(rhat[name] for name in others)
    at = words.index(learned[0])
    shown = table.series[table.names.index(learned[0])]
    assert (shown == posterior.draws.shared()[:, :, at]).all()


def test_traces_under_detection_have_its_tallies(posterior):
    names = plots.prepare_traces(under_detection(posterior)).names
    assert names[2:] == ("real objects seen", "real objects missed by everyone", "false marks")
    assert not any("α" in name for name in names)


def test_figures_of_detection_need_it(posterior):
    with pytest.raises(InputError, match='the run had the prior "dfcrp"'):
        plots.prepare_cluster_sizes(posterior)


# --- the image beneath --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "I;16", "F"])
def test_images_of_any_kind(mode, tmp_path, posterior):
    kind = {"I;16": np.uint16, "F": np.float32}.get(mode)
    pixels = np.arange(400 * 400).reshape(400, 400)
    image = Image.fromarray(pixels.astype(kind) if kind else (pixels % 256).astype(np.uint8))
    image = image if kind else image.convert(mode)
    path = tmp_path / ("image.tif" if kind else "image.png")
    image.save(path)
    for figure in ("items_map", "singletons", "catalogue_map", "expert_panels"):
        _, axes = getattr(plots, f"plot_{figure}")(posterior, image=path)
        first = axes[0] if isinstance(axes, list) else axes
        low, high = first.get_ylim()
        assert low > high  # y of these markings is positive: rows from the top
    plots.save_figure(figure_of(axes), tmp_path, "figure")


def test_traces_show_what_failed(posterior):
    """Too few draws: everything fails, and the figure says so beside each number."""
    few = plots.prepare_traces(posterior)
    table = plots.prepare_traces(posterior, failed=True)
    added = table.names[len(few.names) :]
    assert 0 < len(added) <= MAX_FAILED
    failed = {d.name for d in posterior.verdict.diagnostics if not good(d, Limits())}
    assert set(added) <= failed
    axes = plots.draw_traces(table)
    words = [ax.get_title(loc="right") for ax in axes[::2]]
    for found, said in zip(table.diagnostics, words, strict=True):
        assert said.endswith("not yet good") == (not good(found, Limits()))
