"""Consensus as a share of those who looked: how many that is, image by image, and what is said."""

from dataclasses import replace

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.job import _consensus_note, describe
from dfcrp.errors import SettingsError
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.tables import possible_counts
from dfcrp.report import write_overview
from dfcrp.runs.parts import experts_by_place
from dfcrp.settings.config import SummarySettings, make_config, resolve, to_toml
from dfcrp.settings.consensus import checked, in_words, needed, usual, usual_thresholds
from reference.small_posteriors import posterior_of, random_markings


@pytest.mark.parametrize(
    ("given", "meant"),
    [(5, 5), ("5", 5), ("60%", "60%"), (" 60 % ", "60%"), ("33.3%", "33.3%"), ("100%", "100%")],
)
def test_spellings(given, meant):
    assert checked(given, "it") == meant
    assert make_config({"summary": {"min_experts": given}}).summary.min_experts == meant


@pytest.mark.parametrize("wrong", [0, "0", "0%", "101%", "-5%", "half", "", "%", "6 0%"])
def test_what_is_neither_number_nor_share(wrong):
    with pytest.raises(SettingsError, match=r"summary\.min_experts is"):
        make_config({"summary": {"min_experts": wrong}})


@pytest.mark.parametrize(
    ("least", "looked", "experts"),
    [
        *((4, looked, 4) for looked in (1, 4, 40)),
        *(("60%", looked, m) for looked, m in ((1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (10, 6))),
        ("10%", 5, 2),  # one expert agrees with nobody
        ("10%", 1, 1),
        ("100%", 7, 7),
        ("70%", 10, 7),  # and not 8, which 0.7 * 10 in floating point might give
    ],
)
def test_how_many_that_is(least, looked, experts):
    assert needed(least, looked) == experts


def test_the_default_follows_from_who_looked():
    assert [usual([n]) for n in (1, 2, 3, 4, 5, 12)] == [1, 2, 2, 3, 5, 5]
    assert usual([7, 7, 7]) == 5
    assert usual([4, 10]) == "60%"
    assert usual_thresholds(3) == (2, 3)
    assert resolve(None, {}, [4, 10]).summary == SummarySettings("60%", (4, 5, 6))
    assert resolve(None, {"min_experts": 3}, [4, 10]).summary.min_experts == 3
    assert 'min_experts = "60%"' in to_toml(resolve(None, {}, [4, 10]))


def test_words():
    assert in_words(5) == "at least 5 experts"
    assert in_words("60%") == "at least 60 % of the experts who looked"
    assert in_words("60%", 5) == "at least 3 experts (60 % of the 5 who looked)"
    assert "at least 60 % of the experts who looked at its image" in _consensus_note("60%", 9, 3)
    assert "p_consensus will be 0" in _consensus_note(5, 4, 3)


@pytest.fixture(scope="module")
def posterior():
    """Two images with four objects each: five experts mark the first, two the second."""
    rng = np.random.default_rng(0)
    families = np.concatenate((np.tile(np.arange(5), 4), np.tile([0, 1], 4)))
    objects = np.concatenate((np.repeat(np.arange(4), 5), np.repeat(np.arange(4, 8), 2)))
    markings = random_markings(
        rng, families, base=np.unique(objects, return_index=True)[1][objects]
    )
    image = np.repeat(["one", "two"], [20, 8])
    markings = dfcrp.Items.circles(
        x=markings.x, y=markings.y, diameter=markings.diameter, expert=markings.expert, image=image
    )
    draws = np.tile(objects, (2, 12, 1))
    leaving = rng.random(draws.shape) < 0.25
    draws = np.where(leaving, 8 + np.arange(28), draws)
    config = make_config(
        {"run": {"images": "shared", "scans": 16}, "summary": {"min_experts": "60%"}}
    )
    return posterior_of(draws, markings, config=config)


def agreed_in(posterior, labels):
    """Clusters of one draw that 60 % of the experts of their image share, by hand."""
    found = []
    for name in np.unique(labels):
        members = np.flatnonzero(labels == name)
        experts = {posterior.items.expert[i] for i in members}
        if len(experts) >= (3 if posterior.items.image[members[0]] == "one" else 2):
            found.append(int(name))
    return found


def test_counts_over_images(posterior):
    assert experts_by_place(posterior.items) == [5, 2]
    by_hand = [[len(agreed_in(posterior, d)) for d in chain] for chain in posterior.labels]
    counts = posterior.consensus_counts(("60%",)).counts[:, :, 0, 0]
    assert counts.tolist() == by_hand
    assert (posterior["one"].min_experts, posterior["two"].min_experts) == (3, 2)
    rows = [row for row in posterior.summary()["consensus"] if row["size_class"] == "all"]
    assert [row["min_experts"] for row in rows] == [4, 5, 6, "60%"]
    assert rows[-1]["mean"] == pytest.approx(np.mean(by_hand))
    # Nobody can share an object with more experts than looked at its image.
    for part, shown in ((posterior, {4, 5, "60%"}), (posterior["two"], {"60%"})):
        assert {row["min_experts"] for row in possible_counts(part)} == shown
    assert "by 6 or more experts" not in describe(posterior)
    assert "by 5 or more experts" in describe(posterior)
    parts = [posterior[name].summary()["consensus"][-4]["mean"] for name in posterior]
    assert sum(parts) == pytest.approx(rows[-1]["mean"])
    (frame,) = posterior.consensus().query("size_class == 'all'")["mean"]
    assert frame == pytest.approx(rows[-1]["mean"])


def test_diameters_are_of_the_same_objects(posterior):
    found = posterior.consensus_diameters()
    assert [len(d) for d in found] == [
        len(agreed_in(posterior, d)) for chain in posterior.labels for d in chain
    ]


def test_tables_say_what_was_used(posterior, tmp_path):
    assert posterior.image_table()["min_experts"].tolist() == [3, 2]
    point = posterior.point_partition().labels
    listed = posterior.summary()["catalogue"]
    assert listed["consensus"] == len(agreed_in(posterior, point))
    told = " ".join(describe(posterior).split())
    assert "by 60 % or more of experts" in told
    assert f"{listed['consensus']} of them by 60 % or more of those who looked" in told
    page = write_overview(posterior, tmp_path, pages=0).read_text(encoding="utf-8")
    assert "of them by ≥ 60 % of experts" in page
    assert "at least 60 % of the 2 to 5 experts who looked" in page
    assert ">5 experts</td>" in page
    assert ">6 experts</td>" not in page


def test_consensus_in_the_catalogue_is_by_image(posterior):
    table = posterior.catalogue()
    for name in posterior:
        part = posterior[name]
        number = replace(part.config, summary=SummarySettings(part.min_experts))
        same = Posterior(part.draws, part.items, number, part.record)
        expected = same.catalogue()["p_consensus"].to_numpy()
        assert (table[table["image"] == name]["p_consensus"].to_numpy() == expected).all()
        assert "who looked)" in part.consensus_words


def test_a_number_still_works(posterior):
    fixed = replace(posterior.config, summary=SummarySettings(4, (4,)))
    whole = Posterior(posterior.draws, posterior.items, fixed, posterior.record)
    assert "min_experts" not in whole.image_table()
    assert {row["min_experts"] for row in whole.summary()["consensus"]} == {4}
    assert "at least 4 experts" in whole.consensus_words
