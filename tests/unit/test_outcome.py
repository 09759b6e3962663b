"""The plain-words summary at the end of a run, for every kind of item."""

import dataclasses
import re

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.job import LINE, describe
from dfcrp.draws import Columns, MemoryDraws, Variable
from dfcrp.items.items import Items
from dfcrp.items.source_tables import SourceFile, SourceTables
from dfcrp.markup import plural
from dfcrp.posterior.posterior import Posterior
from dfcrp.report import write_overview
from dfcrp.settings.config import Config, RunSettings
from dfcrp.summaries.catalogue import listed_words
from reference.kind_posteriors import KINDS, kind_posterior
from reference.small_posteriors import posterior_of, random_posterior, under_detection


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_its_own_words(kind):
    posterior = kind_posterior(kind, n_draws=12)
    text = describe(posterior)
    likelihood = posterior.likelihood
    assert text.startswith(f"128 {plural(likelihood.noun)} by 5 experts; ")
    assert f"Objects {likelihood.verb} " in text
    assert "marking" not in text
    assert "Learned from the data" in text
    assert max(map(len, text.splitlines()[1:])) <= LINE


def test_numbers_are_those_of_the_summary():
    posterior = random_posterior(1)
    text, summary = describe(posterior), posterior.summary()
    clusters = summary["n_clusters"]
    assert f"{clusters['mean']:,.1f}   {clusters['lo']:,.0f} to {clusters['hi']:,.0f}" in text
    assert "by 2 or more experts" in text
    assert "Learned from the data" not in text
    assert "missed by everyone (estimate)" not in text


def test_detection_says_what_is_real():
    text = describe(under_detection(random_posterior(1)))
    assert "missed by everyone (estimate)" in text
    assert "Objects and false marks " in text
    assert re.search(r"The catalogue lists \d+ clusters, \d+ of them more likely real", text)


def test_thresholds_beyond_the_experts_are_replaced():
    posterior = random_posterior(1)
    few = posterior_of(posterior.labels, posterior.items, min_experts=9)
    assert "by 4 or more experts" in describe(few)
    assert "by 9 or more experts" not in describe(few)


def test_attraction_says_how_strong_it_is():
    made = random_posterior(1)
    draws = made.draws
    strength = np.full((draws.n_chains, draws.n_draws, 1), np.log(3.0))
    columns = draws.columns.joined(Columns(shared=(Variable("attraction"),)))
    blocks = [draws.clusters(chain, 0, draws.n_draws) for chain in range(draws.n_chains)]
    learned = MemoryDraws(made.labels, made.alpha, blocks, columns, strength)
    config = Config(run=RunSettings(prior="attraction"), summary=made.config.summary)
    text = describe(Posterior(learned, made.items, config, made.record))
    assert "by the same person attract 3.000 times as much" in " ".join(text.split())


def summary_of(listed, count, lo, hi, *, agreed=None):
    consensus = {"min_experts": 2, "size_class": "all", "mean": 30.0, "lo": 28.0, "hi": 33.0}
    return {
        "catalogue": {"n_clusters": listed, "consensus": agreed or 30},
        "n_clusters": {"mean": count, "lo": lo, "hi": hi},
        "consensus": [consensus],
        "n_experts": 5,
    }


def test_a_list_near_the_counts():
    for listed in (41, 53, 42):
        words = listed_words(summary_of(listed, 40.2, 34.0, 53.0), 2, "marking")
        assert "may differ a little" in words


def test_a_list_far_from_the_counts_says_so_in_numbers():
    words = listed_words(summary_of(75, 40.2, 34.0, 53.0), 2, "marking")
    assert "75 objects are listed, the draws have 40.2 (34 to 53), 46 % fewer" in words
    assert "a little" not in words
    words = listed_words(summary_of(40, 40.2, 34.0, 53.0, agreed=20), 2, "record")
    assert "20 objects with enough experts are listed, the draws have 30.0 (28 to 33)" in words
    assert "50 % more" in words


@pytest.mark.parametrize(("tool", "word"), [("Audacity", "recording"), ("doccano", "document")])
def test_images_of_intervals_have_their_own_word(tool, word, tmp_path):
    start = np.tile([1.0, 5.0, 9.0, 14.0], 4) + np.linspace(0.0, 0.3, 16)
    items = Items.intervals(
        start,
        start + 1.5,
        np.repeat(["ann", "bob", "ann", "bob"], 4),
        image=np.repeat(["one", "two"], 8),
    )
    said = SourceTables(files=(SourceFile("a.jsonl", tool),))
    items = dataclasses.replace(items, source_tables=said)
    posterior = dfcrp.fit(items, chains=2, scans=20, burn_in=5, seed=1, workers=1)
    assert f" on 2 {word}s; " in describe(posterior)
    page = write_overview(posterior, tmp_path, pages=1).read_text(encoding="utf-8")
    assert f"The {word}s</h2>" in page
    assert f">{word}s<" in page
    assert f'"image": "{word}"' in page or f'"image":"{word}"' in page
    assert f"← All {word}s" in next(tmp_path.glob("pages/*/report.html")).read_text("utf-8")
