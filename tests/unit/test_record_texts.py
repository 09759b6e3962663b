"""Free text in records: which fields are, words by rarity, codes, and two shops' products."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp.items.items import Items
from dfcrp.likelihoods.record import texts
from dfcrp.likelihoods.record.fields import encode_fields, kind_of
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.record.likelihood import RECORDS
from studies.made_up_records import shop

PRODUCTS = Path(__file__).parents[2] / ".." / "shared" / "data" / "products"
TITLES = [
    "sony turntable pslx350h",
    "sony pslx350h turntable belt drive",
    "bose acoustimass 5 speaker system am53bk",
    "bose acoustimass 5 speakers - am-53 bk",
    "sony bravia kdl-46xbr9 lcd tv",
    "sony bravia kdl46xbr9/b 46 inch lcd tv",
    "lg range",
]


def field_of(values, **kinds):
    return encode_fields({"title": np.array(values)}, kinds or {"title": "text"}).fields[0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([f"the story of number {word} and others" for word in "abcdefgh"], "text"),
        ([f"Sony player MX{n}50B" for n in range(20)], "text"),
        (["the same five words here"] * 8, "string"),
        ([f"{n} Long Street" for n in range(20)], "string"),
        ([f"anna{n}; berta{n}; carla{n}; dora{n}; emma{n}" for n in range(9)], "string"),
    ],
)
def test_free_text_is_told_by_its_values(values, kind):
    assert kind_of(values) == kind


def test_codes_count_by_their_parts_and_beginnings():
    one, other = texts.words_in("tv kdl-46xbr9 black"), texts.words_in("kdl46xbr9/b tv")
    assert {"kdl46xbr9", "^kdl46xbr9", "^kdl46xbr", "~46", "~xbr", "tv"} <= one & other
    assert "^kdl46xbr9" in texts.words_in("tv kdl 46xbr9")
    assert not any(word[0] in "^~" for word in texts.words_in("plain words without a digit"))


def slow_similarity(values, one, other):
    """Cosine of words by rarity, in plain loops."""
    words = [texts.words_in(value) for value in values]

    def weight(word):
        having = sum(word in of for of in words)
        made = word[0] in "~^"
        return 0.0 if made and having < 2 else math.log((len(values) + 1) / having)

    both = sum(weight(word) ** 2 for word in words[one] & words[other])
    length = [math.sqrt(sum(weight(word) ** 2 for word in words[at])) for at in (one, other)]
    return both / (length[0] * length[1])


def test_similarity_is_the_cosine_of_words_by_rarity():
    field = field_of(TITLES)
    values = list(field.values)
    comparison = texts.TextComparison(field)
    pairs = np.array([(i, j) for i in range(len(values)) for j in range(i)])
    exact = [slow_similarity(values, *pair) for pair in pairs.tolist()]
    assert comparison.similarity(pairs) == pytest.approx(exact, abs=1e-12)
    level = comparison.levels(pairs)
    assert np.all(level[np.array(exact) == 0] == 0)
    assert level.max() <= texts.BINS


def test_chances_and_nearest_texts_against_all_pairs():
    rng = np.random.default_rng(3)
    words = [f"w{n}" for n in range(60)]
    values = [" ".join(rng.choice(words, 6)) for _ in range(60)]
    field, source = field_of(values), np.repeat([0, 1], 30)
    comparison = texts.TextComparison(field)
    every = np.array([(i, j) for i in range(60) for j in range(60) if i != j])
    similarity = comparison.similarity(field.codes[every])
    own = source[every[:, 0]] == source[every[:, 1]]
    hits = np.bincount(texts.classes_of(similarity[own]), minlength=texts.BINS + 1)
    found = texts.chance_of_similarity(comparison, field, source)
    assert found == pytest.approx((hits + 0.5) / (own.sum() + 1.0))
    near = {tuple(pair) for pair in texts.nearest_texts(comparison, field, source).tolist()}
    for i in range(60):
        mine = (every[:, 0] == i) & ~own & (similarity > 0)
        best = every[mine][np.argsort(-similarity[mine], kind="stable")][: texts.NEAREST]
        least = np.sort(similarity[mine])[::-1][: texts.NEAREST].min()
        there = {pair for pair in near if pair[0] == i and source[pair[1]] != source[i]}
        assert len(there) == len(best)
        codes = field.codes[np.array(sorted(there))]
        assert comparison.similarity(codes).min() == pytest.approx(least)


def test_where_each_record_is_a_list_the_most_similar_text_is_left_out():
    field = field_of(TITLES)
    comparison = texts.TextComparison(field)
    alone = texts.chance_of_similarity(comparison, field, np.arange(len(TITLES)))
    one_list = texts.chance_of_similarity(comparison, field, np.zeros(len(TITLES), int))
    assert alone[1:].sum() < one_list[1:].sum()


def test_more_similar_texts_are_never_less_likely_matches():
    rng = np.random.default_rng(4)
    matches, chance = rng.dirichlet(np.ones(12)), rng.dirichlet(np.linspace(3, 0.2, 12))
    found = texts.rising(matches, chance)
    assert np.all(np.diff(found) >= 0)
    # The same as the best of all rising functions by weighted least squares.
    from scipy.optimize import isotonic_regression

    best = isotonic_regression(matches / chance, weights=chance).x
    assert np.exp(found) == pytest.approx(best)
    steps = texts.log_ratios(np.linspace(0.01, 1, 50), *(rng.dirichlet(np.ones(41)) for _ in "ab"))
    assert np.all(np.diff(steps) >= -1e-12)


def f1_of(posterior, truth):
    """Of links that are more probable than not, and the share right of those above 0.95."""
    pairs, p = posterior.pairs, posterior.pairs.probability
    right = truth[pairs.first] == truth[pairs.second]
    count = np.unique(truth, return_counts=True)[1]
    likely, sure = p > 0.5, p > 0.95
    f1 = 2.0 * right[likely].sum() / (likely.sum() + (count * (count - 1) / 2).sum())
    return f1, right[sure].mean()


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.filterwarnings("ignore:.*of another by the same expert")
def test_products_of_two_simulated_shops():
    made = shop(np.random.default_rng(3), products=400)
    items = Items.from_columns(made.columns, made.source, kind="records")
    posterior = dfcrp.fit(items, chains=2, scans=60, workers=1)
    assert posterior.config.likelihood.texts == ("title",)
    assert any("free text" in words for words in RECORDS.reach_words(items, posterior.config))
    f1, sure = f1_of(posterior, np.array(made.truth))
    assert f1 > 0.82
    assert sure > 0.92


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.skipif(not PRODUCTS.is_dir(), reason="the shared data are not here")
def test_products_of_two_real_shops():
    """Issue 30: 8 links of 1,076 before, F1 .015; by TF-IDF and matching one to one .954."""

    def rows(name):
        with (PRODUCTS / name).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream, delimiter="|"))

    first, second = rows("abt.csv"), rows("buy.csv")
    both = [*first, *second]
    columns = {name: [row[name] for row in both] for name in ("name", "description", "price")}
    items = Items.from_columns(
        columns, ["abt"] * len(first) + ["buy"] * len(second), kind="records"
    )
    truth = np.arange(len(both))
    with (PRODUCTS / "gt.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="|"):
            truth[len(first) + int(row["D2"])] = int(row["D1"])
    f1, sure = f1_of(dfcrp.fit(items, chains=2, scans=60, workers=1), truth)
    assert f1 > 0.93
    assert sure > 0.95


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_a_new_text_finds_its_object():
    made = shop(np.random.default_rng(5), products=150)
    items = Items.from_columns(made.columns, made.source, kind="records")
    posterior = dfcrp.fit(items, chains=2, scans=40, workers=1)
    new = {name: [values[0]] for name, values in made.columns.items()}
    found = posterior.predict(new)
    assert found["cluster"][0] == posterior.point_partition().labels[0]


def test_settings_name_free_text():
    assert RecordSettings(texts=("title",)).kinds == {"title": "text"}
