"""The report page: its numbers, its safety, and that any data give one."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from dfcrp.draws import Columns, MemoryDraws, Variable
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Likelihood
from dfcrp.likelihoods.circle.scatter import LAW
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.markup import (
    Column,
    Markup,
    estimate_of,
    interval,
    listed,
    number,
    plural,
    probability,
    significant,
    table,
    tag,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.report import LEAST_FALSE, weighted_median
from dfcrp.report import write_report
from dfcrp.report.explorer.embed import SCRIPT_HASH
from dfcrp.report.sections.run import verdict_words
from dfcrp.settings.config import Config, RunSettings, SummarySettings
from reference.kind_posteriors import KINDS, kind_posterior
from reference.page import Page
from reference.small_posteriors import posterior_of, random_posterior, under_detection

EVIL = "<img src=x onerror=1>\"'&$title</script>"


def page_of(posterior, folder, **options):
    path = write_report(posterior, folder, **options)
    assert path == folder / "report.html"
    page = Page(path.read_text(encoding="utf-8"))
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    posterior = random_posterior(1, n=20, n_draws=40)
    labels = np.arange(20) // 4
    return posterior, folder, page_of(posterior, folder, dbscan={2: labels, 3: labels})


@pytest.mark.figures
def test_numbers_of_the_summary_are_there(finished):
    posterior, _, page = finished
    summary = posterior.summary()
    for row in summary["consensus"]:
        cells = [f"{row['min_experts']} experts", number(row["mean"], 1)]
        cells.append(interval(row["lo"], row["hi"]))
        matching = [r for r in page.rows if r[0].split(" (")[0] == row["size_class"]]
        assert any(set(cells) <= set(r) for r in matching), cells
    for row in summary["experts"]:
        (found,) = [r for r in page.rows if r[0] == row["expert"] and len(r) == 8]
        assert found[1:3] == [number(row["count"]), number(row["jaccard"], 3)]
        assert found[4:6] == [
            number(row["size_1"]["mean"], 2),
            interval(row["size_1"]["lo"], row["size_1"]["hi"], 2),
        ]
        assert found[6] == number(row["all_but_one"]["mean"], 2)
    clusters = summary["n_clusters"]
    assert number(clusters["mean"], 1) in page.text
    assert interval(clusters["lo"], clusters["hi"]) in page.text
    for found in posterior.verdict.diagnostics:
        assert [found.name, number(found.rhat, 3)] in [r[:2] for r in page.rows]
    for sentence in posterior.verdict.advice:
        assert sentence in page.text


@pytest.mark.figures
def test_dbscan_is_beside_the_posterior(finished):
    _, _, page = finished
    column = page.rows[[r[0] for r in page.rows].index("size class")].index("DBSCAN")
    assert {r[column] for r in page.rows if r[0] == "all"} == {"5"}


@pytest.mark.figures
def test_provenance_is_there(finished):
    posterior, _, page = finished
    assert posterior.items.digest in page.text
    assert posterior.items.sources[0].sha256 in page.text
    assert 'prior = "dfcrp"' in page.text
    assert ["seed", "1"] in page.rows
    assert "the filters left out 3 of them" in page.text


@pytest.mark.figures
def test_undecided_markings_are_listed_least_certain_first(finished):
    posterior, _, page = finished
    p_member = posterior.membership.p_member
    expected = [i for i in np.argsort(p_member, kind="stable") if p_member[i] < 0.9]
    heads = [k for k, r in enumerate(page.rows) if r[0] == "marking"]
    found = page.rows[heads[0] + 1 : heads[0] + 1 + len(expected)]
    assert [r[0] for r in found] == [f"m{i}" for i in expected]
    assert [r[6] for r in found] == [probability(p_member[i]) for i in expected]


@pytest.mark.figures
def test_page_needs_nothing_from_elsewhere(finished):
    _, folder, page = finished
    text = (folder / "report.html").read_text(encoding="utf-8")
    # besides comments, "//" is only in the name of SVG, which is no address
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"(https?:)?//[a-z]", outside)
    assert set(re.findall(r"https?://[^\s\"]+", text)) == {"http://www.w3.org/2000/svg"}
    assert page.kinds_of_script == ["application/json", "text/plain", None]
    assert f"script-src 'sha256-{SCRIPT_HASH}'" in text
    for name, attributes in page.tags:
        assert not [key for key in attributes if key.startswith("on")]
        if "src" in attributes:
            assert attributes["src"].startswith(("data:image/png;", "data:image/svg+xml;"))
        if name == "a" and not attributes["href"].startswith("#"):
            assert (folder / attributes["href"]).exists()
    anchors = {a["href"] for n, a in page.tags if n == "a" and a["href"].startswith("#")}
    assert anchors <= {"#" + a["id"] for n, a in page.tags if "id" in a}
    assert "color-scheme: dark" in text
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in (
        page.tags
    )


@pytest.mark.figures
def test_every_picture_is_a_file_too_and_described(finished):
    _, folder, page = finished
    names = {path.stem for path in (folder / "figures").iterdir()}
    images = [a for n, a in page.tags if n == "img"]
    assert len(images) == len(names) == 13
    assert all(a["alt"] for a in images)
    for name in names:
        assert [path.suffix for path in (folder / "figures").glob(f"{name}.*")] == [".svg"]


def test_links_to_what_lies_beside_the_page(tmp_path):
    (tmp_path / "catalogue.csv").write_text("cluster\n")
    page = page_of(random_posterior(2), tmp_path)
    links = [a["href"] for n, a in page.tags if n == "a"]
    assert "catalogue.csv" in links
    assert "members.csv" not in links


def test_versions_of_the_run_are_taken_from_its_folder(tmp_path):
    (tmp_path / "provenance.json").write_text('{"dfcrp": "0.0.7", "python": "3.99"}')
    page = page_of(random_posterior(2), tmp_path)
    assert ["dfcrp (the draws)", "0.0.7"] in page.rows
    (tmp_path / "provenance.json").write_text("{broken")
    assert ["Python", "3.99"] not in page_of(random_posterior(2), tmp_path).rows


@pytest.mark.drawn
def test_names_are_escaped(tmp_path):
    names = [EVIL, EVIL + "2", "_x", "$a$"]
    posterior = random_posterior(3, names=names)
    markings = posterior.items
    object.__setattr__(markings, "id", np.array([f"{EVIL}{i}" for i in range(len(markings))]))
    page = page_of(posterior, tmp_path)
    assert not [a for n, a in page.tags if n == "img" and not a["src"].startswith("data:")]
    assert page.kinds_of_script == ["application/json", "text/plain", None]
    assert EVIL in {r[0] for r in page.rows}
    assert EVIL in page.text


# --- small and odd data -------------------------------------------------------------------------


def few(x, experts, labels, **options):
    markings = Items.circles(
        x=x, y=[-5.0 * k for k in range(len(x))], diameter=[10.0 + k for k in range(len(x))],
        expert=experts,
    )  # fmt: skip
    return posterior_of(labels, markings, **options)


CASES = {
    "one marking": lambda: few([1.0], ["Ann"], [[[0]] * 3]),
    "one draw": lambda: few([1.0, 2.0], ["Ann", "Bob"], [[[0, 0]]]),
    "one expert": lambda: few([1.0, 9.0], ["Ann", "Ann"], [[[0, 1]] * 20] * 2),
    "no consensus": lambda: few(
        [1.0, 90.0, 200.0], ["Ann", "Bob", "Cat"], [[[0, 1, 2]] * 20], min_experts=3
    ),
    "all together": lambda: few([1.0, 1.0], ["Ann", "Bob"], [[[0, 0]] * 20] * 2),
    "chains apart": lambda: few([1.0, 2.0], ["Ann", "Bob"], [[[0, 0]] * 20, [[0, 1]] * 20]),
    "no rule, no classes": lambda: few(
        [1.0, 1.0, 2.0],
        ["Ann", "Ann", "Bob"],
        [[[0, 0, 0]] * 10 + [[0, 0, 2]] * 10],
        config=Config(
            run=RunSettings(prior="crp", radius=None, preset="highlands"),
            summary=SummarySettings(1, (1,), (), (), "members"),
        ),
    ),
}


@pytest.mark.drawn
@pytest.mark.parametrize("case", CASES)
def test_small_data(case, tmp_path):
    page = page_of(CASES[case](), tmp_path)
    for cell in (cell for row in page.rows for cell in row):
        assert not re.search(r"\bnan\b|\binf\b|None", cell)
    for title in ("Data and settings", "How many objects?", "How do the experts compare?"):
        assert title in page.words


@pytest.mark.figures
def test_smallest_data_rendered(tmp_path):
    page_of(CASES["one marking"](), tmp_path)
    assert (tmp_path / "figures" / "size_frequency.svg").exists()


def test_words_for_small_data(tmp_path):
    page = page_of(CASES["one marking"](), tmp_path / "a")
    assert "1 marking by 1 expert" in page.text
    assert "Unknown: there are too few draws" in page.text
    page = page_of(CASES["chains apart"](), tmp_path / "b")
    assert "Not yet" in page.text
    assert "Undecided between chains (2 markings): 1, 2." in page.text
    page = page_of(CASES["all together"](), tmp_path / "c")
    assert "None: every marking belongs" in page.text
    assert "No marking is more likely alone than not." in page.text


def test_verdict_in_words():
    posterior = few([1.0, 1.0], ["Ann", "Bob"], [[[0, 0]] * 300] * 2)
    rng = np.random.default_rng(0)
    object.__setattr__(posterior.draws, "_alpha", rng.normal(size=(2, 300)))
    assert verdict_words(posterior.verdict)[0] == "good"


@pytest.mark.figures
def test_an_image_beneath_the_maps(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (60, 400), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "image.png")
    page = page_of(random_posterior(2), tmp_path / "run", image=tmp_path / "image.png")
    kinds = [a["src"].split(";")[0] for n, a in page.tags if n == "img"]
    assert "data:image/jpeg" in kinds


def test_writing_twice_replaces_and_is_the_same(tmp_path):
    page_of(random_posterior(2), tmp_path)
    first = (tmp_path / "report.html").read_bytes()
    page_of(random_posterior(2), tmp_path)
    assert (tmp_path / "report.html").read_bytes() == first
    assert not list(tmp_path.glob("*.part"))


# --- markup -------------------------------------------------------------------------------------


def test_everything_but_markup_is_escaped():
    assert tag("p", "<b>", Markup("<i>")) == "<p>&lt;b&gt;<i></p>"
    assert tag("a", "x", href='"<') == '<a href="&quot;&lt;">x</a>'
    assert tag("img", src="s") == '<img src="s">'
    made = table([Column("<h>", note="<n>")], [["<c>"]], "<t>")
    assert not re.search(r"<[hnct]>", made)


@pytest.mark.parametrize("kind", ["circles", "boxes", "records"])
def test_every_column_has_a_head_of_its_own(kind, tmp_path):
    """Also intervals, which were once headed "95 %" three times in a table."""
    made = random_posterior(1) if kind == "circles" else kind_posterior(kind, n_draws=10)
    for posterior in (made, under_detection(made)):
        text = write_report(posterior, tmp_path).read_text(encoding="utf-8")
        for one in re.findall(r"<table>.*?</table>", text, re.DOTALL):
            heads = re.findall(r"<th\b([^>]*)>([^<]*)</th>", one)
            names = [name for _, name in heads]
            assert "95 %" not in names
            if "probability" not in names:  # of two clusters in turn
                assert len(set(names)) == len(names)
            spans = [int((re.findall(r'colspan="(\d)"', about) or [1])[0]) for about, _ in heads]
            widths = {row.count("<td") for row in re.findall(r"<tr>.*?</tr>", one) if "<td" in row}
            assert widths <= {sum(spans)}


def test_numbers():
    assert [number(v, 1) for v in (1234.56, np.nan, None, np.inf)] == ["1,234.6", "–", "–", "∞"]
    assert [significant(v) for v in (0, 1234.56, 18.0, 1e-12, np.nan)] == [
        "0",
        "1,235",
        "18.00",
        "1.000e-12",
        "–",
    ]
    assert interval(3.0, 5.0) == "3 to 5"
    assert interval(3.0, 5.5) == "3.0 to 5.5"
    assert interval(np.nan, 5.5) == "–"
    assert [probability(p) for p in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0.00",
        "< 0.01",
        "0.50",
        "> 0.99",
        "1.00",
    ]
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"


@pytest.mark.drawn
def test_many_experts(tmp_path):
    names = [f"volunteer {k}" for k in range(110)]
    labels = [[0] * 110] * 4
    page = page_of(few([float(k) for k in range(110)], names, [labels]), tmp_path)
    assert sum(row[0].startswith("volunteer") for row in page.rows if len(row) == 8) == 100
    assert "Shown are the 100 with most markings of 110 experts." in page.text


# --- every kind of item and every prior ---------------------------------------------------------

#: Titles that every page has, and those that only some kinds have.
ALWAYS = (
    "Explore",
    "Data and settings",
    "Was the run long enough?",
    "How sure is it?",
    "How do the experts compare?",
    "Settings and provenance",
)
OWN = {
    "boxes": "How far do boxes scatter?",
    "points": "How far do points scatter?",
    "ellipses": "How far do ellipses scatter?",
    "intervals": "How far do intervals scatter?",
    "diagonal": "How far do items scatter?",
    "normal": "How far do items scatter?",
    "line": "How far do items scatter?",
    "records": "How often are fields wrong?",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_same_page_in_its_own_words(kind, tmp_path):
    posterior = kind_posterior(kind)
    page = page_of(posterior, tmp_path)
    placed = kind != "records"
    where = "Where are they?" if placed else "What are they?"
    for title in (*ALWAYS, "How many objects?", where, OWN[kind]):
        assert title in page.words
    noun = posterior.likelihood.noun
    assert f"128 {plural(noun)} by 5 experts" in page.text
    assert f"Two {plural(noun)} by one expert never share a cluster (DFCRP)." in page.text
    assert f"The least certain {noun}, explained" in page.text
    visible = page.text.split("Explore", 2)[-1]
    assert "marking" not in re.sub(r"n_markings|marking\b.*members", "", visible)
    assert "diameter" not in visible.split("[summary]")[0]
    assert not (tmp_path / "size_frequency.csv").exists()
    assert not [row for row in page.rows if row[0] == "size class"]
    for cell in (cell for row in page.rows for cell in row):
        assert not re.search(r"\bnan\b|\binf\b|None", cell)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_are_listed_in_the_columns_of_the_catalogue(kind, tmp_path):
    posterior = kind_posterior(kind)
    page = page_of(posterior, tmp_path)
    catalogue = posterior.catalogue().sort_values("n_experts", ascending=False, kind="stable")
    (head, *rows) = page.rows[[r[0] for r in page.rows].index("cluster") :][: len(catalogue) + 1]
    names = list(posterior.items.columns)
    assert [cell.split(" ")[0] for cell in head] == ["cluster", *names, "experts", "p_consensus"]
    assert [int(row[0]) for row in rows] == catalogue["cluster"].tolist()
    for k, name in enumerate(names, start=1):
        for row, value in zip(rows, catalogue[name], strict=True):
            shown = row[k].split(" ")[0] if kind != "records" else row[k]
            assert (
                shown == value if kind == "records" else float(shown) == pytest.approx(value, 0.1)
            )


def test_figures_of_items_without_a_place(tmp_path):
    page_of(kind_posterior("records", n_draws=10), tmp_path)
    names = {path.stem for path in (tmp_path / "figures").iterdir()}
    of_all = {"traces", "counts_by_size", "certainty", "coclustering", "jaccard"}
    assert names == of_all | {"match_weights"}


def test_learned_rates_of_records(tmp_path):
    posterior = kind_posterior("records")
    page = page_of(posterior, tmp_path)
    for name in posterior.items.columns:
        (row,) = [r for r in page.rows if r[0] == name and len(r) == 7]
        assert row[1] == estimate_of(posterior.tolerances[f"typo_{name}"], 2).mean
        assert row[3] == estimate_of(posterior.tolerances[f"miss_{name}"], 2).mean


def test_learned_scatter_of_circles(tmp_path):
    posterior = random_posterior(1)
    draws = posterior.draws
    columns = draws.columns.joined(Columns.plain((), LAW))
    law = np.random.default_rng(0).normal([2.0, 1.0, -4.0, 0.5], 0.1, (2, draws.n_draws, 4))
    blocks = [draws.clusters(chain, 0, draws.n_draws) for chain in range(2)]
    learned = MemoryDraws(posterior.labels, posterior.alpha, blocks, columns, law)
    posterior = Posterior(learned, posterior.items, posterior.config, posterior.record)
    page = page_of(posterior, tmp_path)
    assert "How far do markings scatter?" in page.words
    assert ["diameter, %", *shown_interval(posterior.tolerances["diameter_percent"])] in page.rows
    assert "was learned from the data" in page.text


def shown_interval(found):
    return [significant(found[key], 3) for key in ("mean", "lo", "hi")]


@pytest.mark.drawn
@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("kind", ["circles", "boxes", "records"])
def test_detection_with_and_without_sizes(kind, side_by_side, tmp_path):
    made = random_posterior(1, n=20) if kind == "circles" else kind_posterior(kind, n_draws=10)
    summary = replace(made.config.summary, side_by_side=side_by_side)
    posterior = Posterior(
        made.draws, made.items, replace(made.config, summary=summary), made.record
    )
    page = page_of(under_detection(posterior), tmp_path)
    assert "What is real, and how many were missed?" in page.words
    assert ("How many objects?" in page.words) == side_by_side
    alts = [a["alt"] for n, a in page.tags if n == "img"]
    assert any("observed and predicted" in alt for alt in alts)
    assert any("by size, for each expert" in alt for alt in alts) == (kind != "records")
    assert any("size class" in row for row in page.rows) == (kind == "circles")
    assert "p_real" in page.text
    assert ("separate size distributions, which were learned" in page.text) == (kind != "records")


@pytest.mark.parametrize(
    ("assumed", "words"),
    [
        ("held", "Objects and false marks were taken to have diameters like those of all"),
        ("auto", "have separate size distributions, which were learned"),
    ],
)
def test_what_was_assumed_of_sizes_is_told(assumed, words, tmp_path):
    found = under_detection(random_posterior(1, n=20), size_weight=assumed)
    page = page_of(found, tmp_path)
    assert words in page.text
    log_diameters, p_real = found.items.features[:, 2], found.detection.p_real_marking
    of_false = significant(np.exp(weighted_median(log_diameters, 1.0 - p_real)), 3)
    of_all = significant(np.exp(np.median(log_diameters)), 3)
    false = found.detection.false[:, 0].sum(axis=1).mean()
    told = f"{of_false} among false marks and {of_all} among all"
    assert (told in page.text) == (false >= LEAST_FALSE)


def test_weighted_median():
    values = np.array([3.0, 1.0, 2.0])
    assert weighted_median(values, np.ones(3)) == 2.0
    assert weighted_median(values, np.array([5.0, 1.0, 1.0])) == 3.0
    assert weighted_median(values, np.array([0.0, 1.0, 0.0])) == 1.0


def test_which_records_could_share_a_cluster(tmp_path):
    posterior = kind_posterior("records", n_draws=6)
    found = RECORDS.prepared(posterior.items, posterior.config.likelihood).candidates
    page = page_of(posterior, tmp_path / "a")
    assert f"{len(found.pairs):,} pairs of records were compared: those that agree" in page.text
    assert f"{found.keys[0][0]} ({found.keys[0][1]:,} pairs)" in page.text
    assert f"an estimated {100 * found.missed:.2g} % of the matches" in page.text
    settings = replace(posterior.config.likelihood, keys=("surname", "given_name+postcode"))
    config = replace(posterior.config, likelihood=settings)
    again = Posterior(posterior.draws, posterior.items, config, posterior.record)
    page = page_of(again, tmp_path / "b")
    found = RECORDS.prepared(posterior.items, settings).candidates
    (first, one), (second, other) = found.keys
    assert (first, second) == ("surname", "given_name + postcode")
    assert f"agree in {first} ({one:,} pairs), {second} ({other:,} pairs)" in page.text
    assert "an estimated" not in page.text
    items = replace(posterior.items, candidates=np.array([[0, 1], [2, 3]]))
    again = Posterior(posterior.draws, items, config, posterior.record)
    assert "Only records of the 2 pairs that were given" in page_of(again, tmp_path / "c").text


def with_bias(posterior):
    """The same draws with made-up offsets and noise of each expert."""
    draws, rng = posterior.draws, np.random.default_rng(0)
    axes = posterior.likelihood.shape(posterior.items).features
    extra = Columns(
        shared=(Variable("offset", ("expert", "axis")), Variable("log_noise", ("expert",))),
        coords={"expert": posterior.items.experts, "axis": axes},
    )
    columns = draws.columns.joined(extra)
    shared = np.concatenate(
        [draws.shared(), rng.normal(0.0, 0.1, (*posterior.alpha.shape, extra.width))], axis=2
    )
    blocks = [draws.clusters(chain, 0, draws.n_draws) for chain in range(draws.n_chains)]
    learned = MemoryDraws(posterior.labels, posterior.alpha, blocks, columns, shared)
    return Posterior(learned, posterior.items, posterior.config, posterior.record)


def test_how_experts_differ_by_the_columns_of_their_items(tmp_path):
    posterior = with_bias(kind_posterior("boxes", n_draws=10))
    page = page_of(posterior, tmp_path)
    heads = ["x offset", "y offset", "width", "height", "noise"]
    (head,) = [row for row in page.rows if "x offset (95 %)" in row]
    assert head == ["expert", "boxes", *(f"{name} (95 %)" for name in heads)]
    bias = posterior.expert_bias
    for f, name in enumerate(posterior.items.experts):
        (row,) = [r for r in page.rows if r[0] == name and len(r) == 2 + 2 * len(heads)]
        assert row[6] == number(bias.found["width_factor"].mean[f], 3)
    assert "Width and height: 1.05 is 5 % larger than the others." in page.text


def test_what_an_own_likelihood_learned(tmp_path, monkeypatch):
    posterior = kind_posterior("diagonal", n_draws=10)
    monkeypatch.setattr(type(posterior.likelihood), "sections", Likelihood.sections)
    page = page_of(posterior, tmp_path)
    assert "What was learned?" in page.words
    for name, found in posterior.tolerances.items():
        assert [name, *shown_interval(found)] in page.rows
