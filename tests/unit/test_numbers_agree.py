"""One run, many places: every number that the report, the tables and the terminal share is one.

The report of each kind of posterior is walked: its headline, its tables, the explanation and the
data of its explorer, beside catalogue.csv, members.csv, experts.csv and summary.json.
"""

import base64
import json
import re
from itertools import pairwise

import numpy as np
import pandas
import pytest

from dfcrp.cli.job import describe
from dfcrp.markup import estimate_of, number, probability
from dfcrp.posterior.explain import percent
from dfcrp.posterior.saving import write_results
from dfcrp.report import write_report
from dfcrp.summaries.membership import ALONE, NOWHERE
from reference.kind_posteriors import KINDS, kind_posterior
from reference.page import Page
from reference.small_posteriors import random_posterior, under_detection

ARRAYS = {"Uint8": "u1", "Uint16": "<u2", "Uint32": "<u4", "Float32": "<f4", "Float64": "<f8"}
MADE = {
    "circles": lambda: random_posterior(1, n=20, n_draws=40),
    "detection": lambda: under_detection(random_posterior(2, n=20, n_draws=40)),
    **{kind: lambda kind=kind: kind_posterior(kind, n_objects=12, n_draws=20) for kind in KINDS},
}


class Run:
    """A finished folder: its page, its tables, its summary."""

    def __init__(self, posterior, folder):
        write_results(posterior, folder)
        text = write_report(posterior, folder).read_text(encoding="utf-8")
        self.posterior, self.page = posterior, Page(text)
        self.catalogue = pandas.read_csv(folder / "catalogue.csv")
        self.members = pandas.read_csv(folder / "members.csv", dtype={"marking": str})
        self.experts = pandas.read_csv(folder / "experts.csv", dtype={"expert": str})
        self.summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        self.about, self.arrays = explorer_data(text)
        self.words = " ".join(self.page.text.split())

    def tables(self, *heads):
        """The rows below every table head that begins like this."""
        rows = self.page.rows
        starts = [*sorted(self.page.heads), len(rows)]
        for start, stop in pairwise(starts):
            head = rows[start]
            if tuple(cell.split(" (")[0] for cell in head[: len(heads)]) == heads:
                yield head, [row for row in rows[start + 1 : stop] if len(row) == len(head)]


def explorer_data(text):
    about = json.loads(
        re.search(r'<script[^>]*id="explorer-about"[^>]*>(.*?)</script>', text, re.S)[1]
    )
    content = base64.b64decode(
        re.search(r'<script[^>]*id="explorer-arrays"[^>]*>(.*?)</script>', text)[1]
    )
    return about, {
        name: np.frombuffer(content, ARRAYS[kind], length, start)
        for name, (kind, start, length) in about["arrays"].items()
    }


@pytest.fixture(scope="module", params=MADE)
def run(request, tmp_path_factory):
    return Run(MADE[request.param](), tmp_path_factory.mktemp(request.param))


def test_the_list_and_the_posterior_stand_side_by_side(run):
    listed, least = run.summary["catalogue"], run.posterior.config.summary.min_experts
    assert listed["n_clusters"] == len(run.catalogue) == run.members["cluster"].nunique()
    assert listed["consensus"] == (run.catalogue["n_experts"] >= least).sum()
    what, which = "objects", f"{listed['consensus']:,} of them by {least} or more experts"
    if run.posterior.prior.knows_reality:
        assert listed["real"] == (run.catalogue["p_real"] > 0.5).sum()
        what, which = "clusters", f"{listed['real']:,} of them more likely real than not"
    sentence = f"The catalogue lists {len(run.catalogue):,} {what}, {which}."
    assert sentence in run.words
    assert sentence in " ".join(describe(run.posterior).split())
    assert f"The catalogue has {len(run.catalogue):,} clusters" in run.words


def test_headline_and_terminal_are_the_summary(run):
    told = " ".join(describe(run.posterior).split())
    names = ["n_clusters"]
    if run.posterior.prior.knows_reality:
        names = ["n_objects", "n_missed"]
    for name in names:
        found = run.summary[name]
        shown = estimate_of(found)
        assert shown.mean in run.words
        assert f"(95 %: {shown.interval})" in run.words
        assert f"{shown.mean} {shown.interval}" in told


def test_counts_are_the_same_everywhere(run):
    rows = {(row["min_experts"], row["size_class"]): row for row in run.summary["consensus"]}
    n_experts = len(run.about["experts"])
    for (least, size_class), row in rows.items():
        if least > n_experts:
            continue
        column = run.posterior.size_classes.columns.index(size_class)
        for end in ("mean", "lo", "hi"):
            assert run.about["counts"][end][least - 1][column] == pytest.approx(row[end])


def test_an_item_belongs_with_one_probability(run):
    members = run.members
    total = members["p_member"] + members["p_second"] + members["p_elsewhere"]
    assert total.to_numpy() == pytest.approx(np.ones(len(members)))
    assert run.arrays["itemProbability"] == pytest.approx(members["p_member"], rel=1e-6)
    offsets, draws = run.arrays["seatOffsets"].astype(int), run.about["draws"]
    names = run.catalogue["cluster"].to_numpy()
    for i, row in members.iterrows():
        seats = slice(offsets[i], offsets[i + 1])
        shares = run.arrays["seatDraws"][seats] / draws
        assert row.p_member + shares.sum() == pytest.approx(1.0)
        named = {1: ALONE, **{k + 2: int(name) for k, name in enumerate(names)}}
        places = [named.get(int(seat)) for seat in run.arrays["seatPlace"][seats]]
        found = dict(zip(places, shares, strict=True))
        second = {} if row.second_cluster == NOWHERE else {row.second_cluster: row.p_second}
        for name, p in second.items():
            assert found[name] == pytest.approx(p)
            assert p == pytest.approx(max(v for k, v in found.items() if k is not None))
    stability = members.groupby("cluster")["p_member"].mean()
    assert stability.to_numpy() == pytest.approx(run.catalogue["stability"].to_numpy())


def test_undecided_items_are_those_of_the_table(run):
    noun = run.posterior.likelihood.noun
    listed = run.members.set_index("marking")
    assert (run.members["p_member"] < 0.9).any()
    (_, rows), *_ = run.tables(noun, "expert")
    assert len(rows) == (run.members["p_member"] < 0.9).sum()
    for row in rows:
        own = listed.loc[row[0]]
        second = {ALONE: "alone", NOWHERE: "–"}.get(own.second_cluster, str(own.second_cluster))
        assert row[-5:] == [
            str(own.cluster),
            probability(own.p_member),
            second,
            probability(own.p_second),
            probability(own.p_elsewhere),
        ]


def test_the_explanation_says_what_the_table_says(run):
    least = run.members.loc[run.members["p_member"].argmin()]
    found = run.posterior.explain(str(least.marking))
    assert " ".join(found.text().split()) in run.words
    assert f"(membership probability {least.p_member:.2f})" in found.text()
    members = run.posterior.point_partition().labels
    single = (members == members[found.index]).sum() == 1
    own = "alone" if single else f"cluster {least.cluster}"
    assert f"  {own}: {percent(least.p_member)}" in found.text()
    second = "alone" if least.second_cluster == ALONE else f"cluster {least.second_cluster}"
    if least.second_cluster != NOWHERE:
        assert f"  {second}: {percent(least.p_second)}" in found.text()
    assert sum(c.probability for c in found.candidates) == pytest.approx(1.0)
    assert probability(least.p_member) == f"{int(percent(least.p_member)[:-2]) / 100:.2f}"


def test_objects_are_those_of_the_catalogue(run):
    sure = "p_real" if run.posterior.prior.knows_reality else "p_consensus"
    by_name = run.catalogue.set_index("cluster")
    tables = list(run.tables("cluster"))
    assert tables
    for heads, rows in tables:
        assert heads[-1].startswith(sure)
        for row in rows:
            own = by_name.loc[int(row[0])]
            assert row[-2:] == [str(own.n_experts), probability(own[sure])]


def test_the_explorers_consensus_is_the_catalogues(run):
    least, draws = run.about["minExperts"], run.about["draws"]
    agreed = run.arrays["clusterConsensus"].reshape(-1, len(run.catalogue))
    assert agreed[least - 1] / draws == pytest.approx(run.catalogue["p_consensus"].to_numpy())
    assert run.arrays["clusterStability"] == pytest.approx(run.catalogue["stability"], rel=1e-6)
    # nothing belongs to an object more often than there is one
    own = agreed[0] / draws
    assert (run.members.groupby("cluster")["p_member"].max().to_numpy() <= own + 1e-12).all()


def test_experts_are_those_of_the_table(run):
    by_name = run.experts.set_index("expert")
    for row in run.summary["experts"]:
        own = by_name.loc[row["expert"]]
        assert own["count"] == row["count"]
        assert own["jaccard"] == pytest.approx(row["jaccard"], nan_ok=True)
        shown = [
            r for r in run.page.rows if r[0] == row["expert"] and r[1:2] == [str(row["count"])]
        ]
        assert shown or run.posterior.prior.knows_reality


def test_the_verdict_is_that_of_the_summary(run):
    found = run.summary["convergence"]
    (_, rows), *_ = run.tables("quantity", "R-hat")
    assert number(found["max_rhat"], 3) in {row[1] for row in rows}
    ess = {cell for row in rows for cell in row[2:4]}
    assert number(found["min_ess"]) in ess
