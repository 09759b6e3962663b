"""Who looked at an object's place, and that every table about experts counts by it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import dfcrp
from dfcrp.fitting.progress import make_tracker
from dfcrp.items.looks import with_looks
from dfcrp.runs.parts import experts_by_place
from dfcrp.settings.config import Config, RunSettings, SummarySettings, resolve
from dfcrp.settings.consensus import needed
from dfcrp.summaries import experts
from dfcrp.summaries.looked import Coverage, everyone
from reference.small_posteriors import posterior_of

EXPERTS = ("ann", "bob", "cho", "dee")
#: The right half of the picture, which is 100 wide: dee saw it only, and eve the left half.
RIGHT, LEFT = (50, 0, 100, 100), (0, 0, 50, 100)


def make_items(image: str | None = None):
    """Objects at x of 10, 30, 45, 70 and 90; markings jump the line between the halves."""
    rng = np.random.default_rng(3)
    rows = []
    for at, x in enumerate((10.0, 30.0, 48.0, 52.0, 70.0, 90.0)):
        for f, expert in enumerate(EXPERTS):
            if (at + f) % 4 and (expert != "dee" or x > 47.0):
                rows.append((x + rng.normal(0.0, 2.0), 20.0 + 10.0 * at, 5.0 + at, expert))
    x, y, diameter, expert = zip(*rows, strict=True)
    images = None if image is None else [image] * len(rows)
    items = dfcrp.Items.circles(x, y, diameter, expert, image=images)
    name = image or ""
    whole = [(name, expert, "") for expert in EXPERTS[:3]]
    parts = [(name, "dee", RIGHT), (name, "eve", LEFT)]
    images, names, footprints = zip(*whole, *parts, strict=True)
    return with_looks(items, {"image": images, "expert": names, "footprint": footprints})


def random_draws(items, draws=12, seed=5):
    """Partitions in which two markings of one object are often together."""
    rng = np.random.default_rng(seed)
    y = np.round((items.y - 20.0) / 10.0).astype(int)
    return np.where(rng.random((2, draws, len(items))) < 0.75, y, 10 + np.arange(len(items)))


@pytest.fixture(scope="module")
def posterior():
    config = Config(
        run=RunSettings(likelihood="circles"),
        summary=SummarySettings(min_experts="60%", thresholds=(2, 3), class_edges=(7.0,),
                                class_names=("small", "large")),
    )  # fmt: skip
    items = make_items()
    return posterior_of(random_draws(items), items, config=config)


def lookers(items, members) -> set[str]:
    """By hand: whoever saw the half in which most of the members are, and the members."""
    coverage = items.coverage
    zones = Counter(sorted(coverage.zone[members].tolist()))
    zone = min(zones, key=lambda z: (-zones[z], z))
    seen = coverage.pairs[coverage.pairs[:, 0] == zone, 1]
    return {items.experts[f] for f in seen} | {str(name) for name in items.expert[members]}


def clusters_of(items, labels):
    """(name, its experts, who looked at it, its diameter) of one draw."""
    for name in np.unique(labels):
        members = np.flatnonzero(labels == name)
        held = {str(name) for name in items.expert[members]}
        yield int(name), held, lookers(items, members), float(items.diameter[members].mean())


def all_draws(posterior):
    return posterior.labels.reshape(-1, posterior.labels.shape[-1])


def test_zones_say_who_looked(posterior):
    items = posterior.items
    by_x = [set(EXPERTS[:3]) | {"dee" if x > 50.0 else "eve"} for x in items.x]
    for i, name in enumerate(items.expert):
        assert lookers(items, [i]) == by_x[i] | {name}
    assert experts_by_place(items)[:2] == [5, 4]
    assert resolve(None, {}, experts_by_place(items)).summary.min_experts == "60%"


def test_consensus_is_a_share_of_those_who_looked_at_the_place(posterior):
    found = posterior.consensus_counts(("60%", "75%", 3)).counts
    rows = found.reshape(-1, *found.shape[2:])
    alike = []
    for d, labels in enumerate(all_draws(posterior)):
        for m, least in enumerate(("60%", "75%", 3)):
            sizes = [
                diameter
                for _, held, looked, diameter in clusters_of(posterior.items, labels)
                if len(held) >= needed(least, len(looked))
            ]
            assert rows[d, m, 0] == len(sizes)
            alike.append(rows[d, m, 1:].sum() == len(sizes))
    assert all(alike)
    # It does make a difference.
    whole = [len(posterior.items.experts)] * 3
    plain = [
        sum(
            len(held) >= needed("75%", whole[0])
            for _, held, _, _ in clusters_of(posterior.items, d)
        )
        for d in all_draws(posterior)
    ]
    assert rows[:, 1, 0].sum() > sum(plain)


def test_diameters_listed_objects_and_progress_are_of_the_same_clusters(posterior):
    items = posterior.items
    counts = posterior.consensus_counts(("60%",)).counts[:, :, 0, 0]
    assert [len(d) for d in posterior.consensus_diameters()] == counts.ravel().tolist()
    point = posterior.point_partition().labels
    agreed = {
        name: len(held) >= needed("60%", len(looked))
        for name, held, looked, _ in clusters_of(items, point)
    }
    assert posterior.summary()["catalogue"]["consensus"] == sum(agreed.values())
    tracker = make_tracker(items, posterior.config)
    for labels in all_draws(posterior)[:5]:
        expected = [
            len(held) >= needed("60%", len(looked))
            for _, held, looked, _ in clusters_of(items, labels)
        ]
        assert tracker._count(labels) == (len(expected), sum(expected))


def test_the_catalogue_says_how_many_looked(posterior):
    table, point = posterior.catalogue(), posterior.point_partition().labels
    looked = [len(looked) for _, _, looked, _ in clusters_of(posterior.items, point)]
    assert table["n_looked"].tolist() == looked
    assert (table["n_experts"] <= table["n_looked"]).all()
    # One that four of four marked is agreed on though it is not by 75 % of all five, and so on.
    least = np.array([needed("60%", n) for n in looked])
    sure = np.array([len(set(d[point == name])) == 1 for name in table["cluster"] for d in [point]])
    assert sure.all()
    never = table["n_experts"] < least
    assert (table["p_consensus"][never] < 0.6).all()
    assert posterior.consensus_words == "at least 60 % of the 4 to 5 experts who looked"


def tallies_by_hand(items, labels):
    """Jaccard's two numbers, and shares of what is alone and lacks one, of one draw."""
    names, found = items.experts, list(clusters_of(items, labels))
    n = len(names)
    both, either = np.zeros((n, n), int), np.zeros((n, n), int)
    rows = {key: np.zeros(n, int) for key in ("alone", "lacking", "alone_there", "lacking_there")}
    sizes = Counter(labels.tolist())
    for name, held, looked, _ in found:
        for f, one in enumerate(names):
            for g, other in enumerate(names):
                both[f, g] += {one, other} <= held
                either[f, g] += {one, other} <= looked and bool({one, other} & held)
            rows["alone"][f] += sizes[name] == 1 and one in held
            rows["alone_there"][f] += sizes[name] == 1 and one in looked
            rows["lacking"][f] += looked - held == {one}
            rows["lacking_there"][f] += len(looked - held) == 1 and one in looked
    return both, either, rows


def test_experts_are_compared_where_they_looked(posterior):
    items, labels = posterior.items, all_draws(posterior)
    found = experts.tally_experts(labels, items.families, items.coverage)
    lacking = 0
    for d, draw in enumerate(labels):
        both, either, rows = tallies_by_hand(items, draw)
        assert found.both[d].tolist() == both.tolist()
        assert found.either[d].tolist() == either.tolist()
        for name, expected in rows.items():
            assert getattr(found, name)[d].tolist() == expected.tolist(), name
        lacking += rows["lacking"][items.experts.index("dee")]
    assert lacking > 0
    eve, dee = items.experts.index("eve"), items.experts.index("dee")
    summary = posterior.expert_summary
    # They never looked at one place, but for what dee marked across the line.
    assert np.nan_to_num(summary.jaccard_matrix.mean[eve, dee]) == 0.0
    missed = [
        100.0 * rows["lacking"][dee] / rows["lacking_there"][dee]
        for _, _, rows in (tallies_by_hand(items, d) for d in labels)
        if rows["lacking_there"][dee]
    ]
    assert summary.all_but_one.mean[dee] == pytest.approx(np.mean(missed))


def test_a_block_may_have_no_draws_to_compare(posterior):
    items, none = posterior.items, all_draws(posterior)[:0]
    compared = np.arange(len(items.experts))
    for count in (experts.count_densely, experts.count_sparsely):
        found = count(none, items.families, compared, items.coverage)
        assert [len(values) for values in found] == [0] * len(found)


def test_very_many_experts_are_compared_in_the_same_way(posterior, monkeypatch):
    items = posterior.items
    dense = experts.expert_summary(posterior.draws, items.families, items.coverage)
    monkeypatch.setattr(experts, "MAX_COMPARED", 4)
    sparse = experts.expert_summary(posterior.draws, items.families, items.coverage)
    for name in ("jaccard", "size_1", "all_but_one"):
        one, two = getattr(dense, name), getattr(sparse, name)
        assert np.allclose(one.mean, two.mean, equal_nan=True), name
    kept = np.ix_(sparse.compared, sparse.compared)
    assert np.allclose(
        dense.jaccard_matrix.mean[kept], sparse.jaccard_matrix.mean, atol=1e-6, equal_nan=True
    )


def test_looks_at_whole_images_are_footprints_that_cover_all(posterior):
    """The two ways of counting agree where both apply."""
    items, labels = posterior.items, all_draws(posterior)
    plain = everyone(items.families, len(items.experts))
    parts = Coverage(*plain[:4], in_parts=True)
    one, two = (experts.tally_experts(labels, items.families, each) for each in (plain, parts))
    for name in experts.ExpertTallies._fields:
        assert (getattr(one, name) == getattr(two, name)).all(), name
    for draw in labels:
        names = np.unique(draw)
        counts = [each.looked_at(draw, items.families)[names] for each in (plain, parts)]
        assert counts[0].tolist() == counts[1].tolist()


def test_many_images_add_up_what_each_says(posterior):
    """A second image at which all looked as a whole."""
    first, rng = make_items("one"), np.random.default_rng(8)
    families = np.tile(np.arange(3), 3)
    where = np.repeat([20.0, 50.0, 80.0], 3)
    second = dfcrp.Items.circles(
        where + rng.normal(0, 1, 9), where, np.full(9, 6.0), np.array(EXPERTS)[families],
        image=["two"] * 9,
    )  # fmt: skip
    both = dfcrp.Items.circles(
        *(np.concatenate([getattr(first, name), getattr(second, name)])
          for name in ("x", "y", "diameter", "expert")),
        image=np.concatenate([first.image, second.image]),
    )  # fmt: skip
    looked = [(image, expert, first.footprints.get((image, expert), "")) for image, expert in
              first.looked.tolist()] + [("two", name, "") for name in EXPERTS[:3]]  # fmt: skip
    images, names, parts = zip(*looked, strict=True)
    shapes = [p and {"type": "MultiPolygon", "coordinates": p} for p in parts]
    both = with_looks(both, {"image": images, "expert": names, "footprint": shapes})
    one = random_draws(first)
    two = 100 + np.where(
        rng.random((2, 12, 9)) < 0.8, np.repeat(np.arange(3), 3), 10 + np.arange(9)
    )
    config = Config(
        run=RunSettings(likelihood="circles", images="shared", scans=16),
        summary=SummarySettings(min_experts="60%", thresholds=(2, 3)),
    )
    whole = posterior_of(np.concatenate([one, two], axis=2), both, config=config)
    parts = [whole[name] for name in ("one", "two")]
    counts = whole.consensus_counts(("60%",)).counts[:, :, 0, 0]
    assert (counts == sum(p.consensus_counts(("60%",)).counts[:, :, 0, 0] for p in parts)).all()
    alone = posterior_of(one, make_items(), config=posterior.config)
    assert (
        parts[0].consensus_counts(("60%",)).counts[:, :, 0, 0]
        == alone.consensus_counts(("60%",)).counts[:, :, 0, 0]
    ).all()
    tallies = [
        experts.tally_experts(
            p.labels.reshape(-1, p.labels.shape[-1]), p.items.families, p.items.coverage
        )
        for p in parts
    ]
    dee, eve = both.experts.index("dee"), both.experts.index("eve")
    codes = parts[0].items.experts.index("dee")
    share = experts.shares(tallies[0].lacking, tallies[0].lacking_there)[:, codes]
    assert whole.expert_summary.all_but_one.mean[dee] == pytest.approx(np.nanmean(share))
    assert np.isfinite(whole.expert_summary.all_but_one.mean[eve])
    assert whole.image_table()["min_experts"].tolist() == [3, 2]
