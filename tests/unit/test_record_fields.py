"""Fields of records: kinds told from values, levels of similarity, frequencies by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.errors import InputError, SettingsError
from dfcrp.likelihoods.record.fields import EARTH, encode_fields, kind_of, number_of, plain, step_of
from dfcrp.likelihoods.record.hyper import RecordSettings, twice, usual_levels
from dfcrp.likelihoods.record.levels import (
    COMMON,
    ERRORS,
    NEAR,
    NEXT,
    ORDER,
    PARTS,
    SHORT,
    LevelComparison,
    density_of,
    levels_of_words,
    random_pairs,
    words_of,
)
from reference.record_reference import abbreviates, level_of_parts, one_error


def columns(**given):
    return {name: np.array(values) for name, values in given.items()}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1980-01-02", "3.4.1999", ""], "date"),
        (["1.5", "2", ""], "number"),
        (["1", "2", "3"], "string"),
        (["f", "m"] * 20, "category"),
        (["f", "m"] * 20 + ["x"], "string"),
        (["anna", "bob"], "string"),
        (["", ""], "string"),
    ],
)
def test_kinds_are_told_by_values(values, kind):
    assert kind_of(values) == kind


def test_latitude_and_longitude_are_one_field():
    found = encode_fields(
        columns(name=["a", "b", "c"], Lat=["48.1", "-3", ""], LNG=["11.5", "170.25", "1"]), {}
    )
    assert found.names == ("name", "Lat+LNG")
    assert found.kinds == ("string", "place")
    assert found.codes[:, 1].tolist() == [1, 0, -1]
    place = found.fields[1]
    assert np.linalg.norm(place.places, axis=1) == pytest.approx(EARTH)
    # The coarser of 0.1 and 0.01 degrees, in km.
    assert place.step == pytest.approx(math.radians(0.1) * EARTH)


def test_a_degree_is_111_km():
    found = encode_fields(columns(lat=["0", "1", "0.0"], lon=["0", "0", "1"]), {}).fields[0]
    at = dict(zip(found.values, found.places, strict=True))
    for other in ("1 0", "0.0 1"):
        assert np.linalg.norm(at["0 0"] - at[other]) == pytest.approx(111.2, abs=0.1)


@pytest.mark.parametrize(
    ("lat", "lon"), [(["91", "2"], ["3", "4"]), (["x", "2"], ["3", "4"]), (["", ""], ["3", "4"])]
)
def test_other_columns_by_these_names_are_no_place(lat, lon):
    assert "place" not in encode_fields(columns(lat=lat, lon=lon), {}).kinds


def test_wrong_places_are_refused():
    with pytest.raises(SettingsError, match="no field 'lng'; did you mean 'long'"):
        encode_fields(columns(lat=["1"], long=["2"]), {"lat+lng": "place"})
    with pytest.raises(InputError, match="index 1, field 'lat': 'inf' is not a number"):
        encode_fields(columns(lat=["1", "inf"], lon=["1", "2"]), {"lat+lon": "place"})
    with pytest.raises(SettingsError, match="latitude\\+longitude"):
        RecordSettings(places=("lat",))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["14 March 1984", "Mar 14, 1984", "14-Mar-84", "1984-03-14T00:00:00Z"], "date"),
        (["3/14/84", "12/1/99", "1/30/50"], "date"),
        (["1984-03-14", "19840314", "1984-03-14"], "date"),
        (["19840314", "19850314"], "string"),
        (["1984-03-14"] * 30 + ["unknown"], "date"),
        (["$1,299.00", "$12", "$7.5"], "number"),
        (["1.299,00 €", "12 €"], "number"),
        (["$12", "12 €"], "string"),
        (["12a", "12"], "string"),
        (["1.2.3", "1.4.5"], "string"),
    ],
)
def test_dates_and_prices_in_other_spellings(values, kind):
    assert kind_of(values) == kind


def test_one_day_in_six_spellings_is_one_value():
    """3 April, told by other dates with the same sign between their numbers."""
    written = ["1984-04-03", "3 April 1984", "Apr 3, 1984", "4/3/1984", "3.4.84", "03.04.1984"]
    found = encode_fields(columns(born=[*written, "4/13/1990", "13.4.1990"]), {}).fields[0]
    assert found.kind == "date"
    assert found.values == ("19840403", "19900413")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,299.00", "1299.00"),
        ("1.299,00", "1299.00"),
        ("$ -5", None),
        ("-$5", "-5"),
        ("12'500", "12500"),
        ("12,50 EUR", "12.50"),
        ("1,23,456", None),
        ("12 kg", None),
        ("1e3", "1e3"),
        ("$5 EUR", None),
    ],
)
def test_numbers_in_other_spellings(text, number):
    found = number_of(text)
    assert (found and found[0]) == number


def test_several_values_are_similar_if_they_have_one_in_common():
    """In any order and with any signs in telephone numbers; one value may be among several."""
    given = [
        "b@x.org; a@x.org",
        "A@X.org|b@x.org",
        "a@x.org",
        "c@x.org",
        "+49 (30) 12 34-56; c@x.org",
    ]
    field = encode_fields(columns(contact=given), {}).fields[0]
    assert field.several
    assert field.values == (
        "493 0123456".replace(" ", "") + "; c@x.org",
        "a@x.org",
        "a@x.org; b@x.org",
        "c@x.org",
    )
    pairs = np.array([[1, 2], [0, 3], [0, 1]])
    assert LevelComparison(field).levels(pairs)[:2].tolist() == [PARTS, PARTS]
    assert LevelComparison(field).levels(pairs)[2] != PARTS


def test_case_accents_and_blanks_make_no_difference():
    assert plain("  José  MÜLLER ") == "jose muller"
    assert plain("北京") == "北京"


@pytest.mark.parametrize(
    ("values", "step"),
    [(["1.25", "3"], 0.01), (["10", "20"], 1.0), (["1e-3", "3e-3"], 2e-3), (["5"], 1.0)],
)
def test_steps_of_numbers(values, step):
    assert step_of(values) == pytest.approx(step)


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("john smith", "smith john", ORDER),
        ("john smith", "smith, john", ORDER),
        ("j smith", "john smith", SHORT),
        ("st natona", "saint natona", SHORT),
        ("hotel berlin", "berlin", PARTS),
        ("natona st", "saint natomna", SHORT),
        ("little mameneno", "madmeneno", PARTS),
        ("john smith", "peter jones", 0),
        ("a", "", 0),
        ("hotel", "old castle", 0),
        ("acme garden hose 20 m", "garden hose 20 m green", COMMON),
        ("garden hose", "acme garden hose for large lawns", 0),
        ("red garden hose", "acme garden hose red with tap", COMMON),
        ("a b c", "a b d", 0),
        ("old town hall", "new town hall", COMMON),
    ],
)
def test_parts_in_another_order_short_or_left_out(one, other, level):
    given = [text.replace(",", "").split() for text in (one, other)]
    assert level_of_parts(*given) == level_of_parts(*given[::-1]) == level
    assert levels_of([one, other], [[0, 1], [1, 0]]) == [level, level]


def levels_of(texts, pairs):
    first, second = np.array(pairs).T.copy()
    found = np.full(len(pairs), -1, np.int64)
    levels_of_words(words_of(texts), first, second, found)
    return found.tolist()


def test_levels_of_words_are_those_of_their_slow_twin():
    """Words from few letters, some of them altered, so that all levels occur."""
    rng = np.random.default_rng(4)

    def word(least):
        return "".join(rng.choice(list("abs"), rng.integers(least, 8)))

    texts = []
    for _ in range(60):
        words = [word(1) for _ in range(rng.integers(0, 4))] + [word(5)]
        texts.append(" ".join(words))
        for _ in range(3):
            kept = [w[: rng.integers(1, 9)] if rng.random() < 0.3 else w for w in words]
            kept = [w[:2] + w[3:] if rng.random() < 0.2 else w for w in kept]
            kept += [word(4) for _ in range(rng.integers(0, 3))] if rng.random() < 0.3 else []
            texts.append(" ".join(rng.permutation(kept)[rng.integers(0, 2) :]))
    pairs = rng.integers(len(texts), size=(3000, 2))
    pairs[:2500, 1] = pairs[:2500, 0] // 4 * 4 + rng.integers(4, size=2500)
    slow = [level_of_parts(texts[one].split(), texts[other].split()) for one, other in pairs]
    assert levels_of(texts, pairs) == slow
    assert min(np.bincount(slow, minlength=11)[[0, ORDER, SHORT, PARTS, COMMON]]) > 20


def test_what_abbreviates():
    assert abbreviates("st", "saint")
    assert abbreviates("j", "john")
    assert not abbreviates("at", "saint")
    assert not abbreviates("saint", "saint")


def test_one_error_in_a_word():
    for other in ("saeta", "sarenta", "sarexa", "sraeta", "saerta"):
        assert one_error("sareta", other), other
    for other in ("sareta", "sa", "satera", "xarety"):
        assert not one_error("sareta", other) or other == "sareta"


def test_levels_of_text_and_numbers():
    field = encode_fields(columns(name=["anna", "ann", "bnna", "zoe", "annabellas"]), {}).fields[0]
    code = {value: at for at, value in enumerate(field.values)}
    pairs = np.array([[code["anna"], code[x]] for x in ("ann", "bnna", "zoe", "annabellas")])
    assert LevelComparison(field).levels(pairs).tolist() == [1, 1, 0, SHORT]
    field = encode_fields(columns(age=["34", "35", "38", "43", "80"]), {}).fields[0]
    pairs = np.array([[0, 1], [0, 2], [0, 3], [0, 4]])
    assert LevelComparison(field).levels(pairs).tolist() == [NEXT, 1, 1, 0]
    assert NEAR not in LevelComparison(field).levels(pairs).tolist()


def test_probabilities_of_levels():
    once = usual_levels()
    assert once.sum() == pytest.approx(1.0)
    both = twice(once)
    assert both[1] == 0.0  # two values with an error each have two errors between them
    assert both[2] == pytest.approx(once[1] ** 2)
    assert both[ERRORS] == pytest.approx(2 * once[1] * once[3] + once[2] ** 2)
    # Words in another order, with an error in one of them or not; and one of these left out.
    assert both[ORDER] == pytest.approx(once[ORDER] ** 2 + 2 * once[ORDER] * once[1])
    word = once[[1, ORDER, SHORT]].sum()
    assert both[PARTS] == pytest.approx(once[PARTS] ** 2 + 2 * once[PARTS] * word)
    assert both[NEAR] == pytest.approx((once[NEXT] + once[NEAR]) ** 2)
    assert 0.5 < both.sum() < 1.0  # the rest is not similar, or the same


def test_density_of_a_measure():
    """Uniform over 0 to 100 with two decimals: g is 0.01, and f that of a step."""
    rng = np.random.default_rng(3)
    values = [f"{x:.2f}" for x in rng.uniform(0, 100, 4000)]
    field = encode_fields(columns(x=values), {}).fields[0]
    share, log_density = density_of(field, np.repeat([0, 1], 2000))
    assert np.median(np.exp(log_density)) == pytest.approx(0.01, rel=0.15)
    assert np.median(share) == pytest.approx(1e-4, rel=0.35)


def test_a_repeated_value_is_frequent():
    """A third of a source's values are 50, as a form has it already."""
    rng = np.random.default_rng(4)
    values = [f"{x:.2f}" for x in rng.uniform(0, 100, 2000)] + ["50.00"] * 1000
    field = encode_fields(columns(x=values), {}).fields[0]
    share, _ = density_of(field, np.zeros(3000, np.int64))
    assert share[field.values.index("50.00")] == pytest.approx(1 / 3, rel=0.05)


def test_unrelated_pairs_are_of_one_source():
    source = np.repeat([0, 1, 2], [5, 1, 30])
    pairs = random_pairs(source, 1)
    assert len(pairs) > 100
    assert (source[pairs[:, 0]] == source[pairs[:, 1]]).all()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    alone = random_pairs(np.arange(20), 1)
    assert len(alone) > 100
