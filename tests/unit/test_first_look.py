"""The first look: it names each mistake and what mends it, and is silent on lists that agree."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dfcrp
from dfcrp import examples, simulate
from dfcrp.cli.job import describe
from dfcrp.errors import DfcrpWarning
from dfcrp.first_look import Finding, first_look
from dfcrp.first_look.nearness import Nearness
from dfcrp.first_look.transformations import Move, find_move
from dfcrp.io import read_items
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.registry import likelihood_named
from docs_site.mistakes import in_folder
from shared_data import SHARED, highlands_path
from studies.detection_designs import DetectionDesign
from studies.made_up_crowds import CrowdDesign, make_crowd

Floats = NDArray[np.float64]
#: (n, 3): x, y and size of some items, to what a mistake makes of them.
Change = Callable[[Floats], Floats]
W, H = 800.0, 480.0


def field(
    experts: tuple[str, ...] = ("ann", "bob", "cleo"),
    objects: int = 40,
    seed: int = 1,
    scatter: float = 2.0,
) -> tuple[Floats, list[str]]:
    """Numbers (x, y, size) and whose they are: most experts find each object."""
    rng = np.random.default_rng(seed)
    rows, whose = [], []
    for _ in range(objects):
        x, y, size = rng.uniform(0.0, W), rng.uniform(0.0, H), np.exp(rng.normal(3.2, 0.5))
        for name in experts:
            if rng.random() < 0.85:
                near = rng.normal(0.0, scatter, 2)
                rows.append((x + near[0], y + near[1], size * np.exp(rng.normal(0.0, 0.05))))
                whose.append(name)
    return np.array(rows), whose


def items_of(numbers: Floats, whose: list[str], kind: str = "circles", **about: object) -> Items:
    """As items of a kind."""
    x, y, size = numbers.T
    columns = {
        "circles": {"x": x, "y": y, "diameter": size},
        "points": {"x": x, "y": y},
        "boxes": {"x": x, "y": y, "width": size, "height": 0.8 * size},
        "ellipses": {"x": x, "y": y, "major": size, "minor": 0.8 * size, "angle": 0.0 * size},
        "diagonal": {"u": x, "v": 3.0 * y},
    }
    return Items.from_columns(columns[kind], whose, kind=kind, **about)  # type: ignore[arg-type]


def spoil(numbers: Floats, whose: list[str], change: Change, names: tuple[str, ...]) -> Floats:
    """With a mistake in the lists of some."""
    some, found = np.isin(whose, names), numbers.copy()
    found[some] = change(found[some])
    return found


def moved(scale: float = 1.0, flip: float | None = None, swap: bool = False, shift: float = 0.0):
    """Places exchanged, turned round at a height, shifted and scaled, with their sizes."""

    def change(numbers: Floats) -> Floats:
        x, y, size = numbers.T
        x, y = (y, x) if swap else (x, y)
        y = y if flip is None else flip - y
        return np.column_stack([scale * x + shift, scale * y + shift, scale * size])

    return change


MOVES = {
    "x = y and y = x": moved(swap=True),
    "y = 480 - y": moved(flip=H),
    "y = -y": moved(flip=0.0),
    "x = x - 300 and y = y - 300": moved(shift=300.0),
    "x = 1000 x and y = 1000 y": moved(scale=0.001),
    "x = 2 x and y = 2 y": moved(scale=0.5),
}


def checks(items: Items) -> list[str]:
    """What was found, in short."""
    return [finding.check for finding in first_look(items)]


def only(items: Items) -> Finding:
    """The one thing that was found."""
    found = first_look(items)
    assert len(found) == 1, [finding.text for finding in found]
    return found[0]


@pytest.mark.parametrize("kind", ["circles", "points", "boxes", "ellipses"])
@pytest.mark.parametrize("mended", MOVES)
def test_what_would_bring_a_list_to_the_others(kind: str, mended: str) -> None:
    """The transformation is named, for every kind that has places."""
    numbers, whose = field()
    found = only(items_of(spoil(numbers, whose, MOVES[mended], ("cleo",)), whose, kind))
    assert (found.check, found.experts) == ("axes", ("cleo",))
    assert found.numbers["mended_by"] == mended
    assert found.numbers["share_near"] < 0.35
    assert found.numbers["share_near_if_mended"] > 0.9
    assert first_look(items_of(numbers, whose, kind)) == ()


@pytest.mark.parametrize("mended", MOVES)
def test_of_two_lists_either_may_be_wrong(mended: str) -> None:
    """One of the two is named first, the other as well."""
    numbers, whose = field(("bob", "cleo"))
    found = only(items_of(spoil(numbers, whose, MOVES[mended], ("cleo",)), whose, "points"))
    assert found.check == "axes"
    assert "bob" in found.text
    assert "cleo" in found.text


def test_several_lists_with_the_same_mistake() -> None:
    """They agree with each other, and not with the rest."""
    names = ("ann", "bob", "cleo", "dan", "eve")
    numbers, whose = field(names)
    found = only(items_of(spoil(numbers, whose, moved(swap=True), ("cleo", "dan")), whose))
    assert found.experts == ("cleo", "dan")
    assert "--columns x=y,y=x" in found.text


def test_in_a_crowd() -> None:
    """Of forty volunteers on many images two have y running the other way."""
    rng = np.random.default_rng(2)
    parts, whose, images = [], [], []
    for image in range(30):
        objects = rng.uniform(0.0, 1.0, (20, 2)) * [W, H]
        for name in rng.choice(40, 10, replace=False):
            some = objects[rng.random(20) < 0.85]
            places = some + rng.normal(0.0, 2.0, some.shape)
            places[:, 1] = H - places[:, 1] if name in (3, 5) else places[:, 1]
            parts.append(places)
            whose += [f"w{name}"] * len(places)
            images += [f"i{image:02d}"] * len(places)
    columns = dict(zip("xy", np.concatenate(parts).T, strict=True))
    found = first_look(Items.from_columns(columns, whose, kind="points", image=images))
    assert sorted(finding.experts for finding in found) == [("w3",), ("w5",)]
    assert {finding.numbers["mended_by"] for finding in found} == {"y = 480 - y"}


def test_images_of_different_heights() -> None:
    """y runs the other way about another line on each image."""
    parts, whose, images = [], [], []
    for image, height in (("a", 480.0), ("b", 600.0), ("c", 350.0)):
        numbers, names = field(objects=20, seed=int(height))
        parts.append(spoil(numbers, names, moved(flip=height), ("cleo",)))
        whose += names
        images += [image] * len(names)
    found = only(items_of(np.concatenate(parts), whose, image=images))
    assert found.check == "axes"
    assert "y runs the other way" in found.text
    assert "on image" in found.text


def test_the_best_of_many_shifts_is_no_finding() -> None:
    """A dozen random places among many more: some shift brings most near, and says nothing."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        places = rng.uniform(0.0, 1.0, (12 + 8 * 25, 2)) * [W, H]
        whose = ["ann"] * 12 + [f"e{k % 8}" for k in range(8 * 25)]
        items = Items.from_columns(dict(zip("xy", places.T, strict=True)), whose, kind="points")
        sight = likelihood_named("points").sight(items)
        assert sight is not None
        nearness = Nearness(sight, items.families, items.looks.image, items.coverage)
        found.append(find_move(nearness, np.arange(12), np.arange(12, len(items))))
    assert found == [None] * 20


@pytest.mark.parametrize(
    ("change", "formula"),
    [
        (lambda lon, lat: (lat, lon), "longitude = latitude and latitude = longitude"),
        (lambda lon, lat: (-lon, lat), "longitude = -longitude"),
        (lambda lon, lat: (lon, -lat), "latitude = -latitude"),
        (lambda lon, lat: (lon + 180.0, lat), "longitude = longitude - 180"),
        (lambda lon, lat: (lon + 360.0, lat), ""),
    ],
)
def test_on_a_sphere(
    change: Callable[[Floats, Floats], tuple[Floats, Floats]], formula: str
) -> None:
    """Longitude and latitude; a full turn changes nothing."""
    numbers, whose = field()
    lon, lat, size = 30.0 + numbers[:, 0] / 800.0, 10.0 + numbers[:, 1] / 800.0, numbers[:, 2] / 50
    cleo = np.array(whose) == "cleo"
    other = change(lon, lat)
    lon, lat = np.where(cleo, other[0], lon), np.where(cleo, other[1], lat)
    found = first_look(Items.circles(lon, lat, size, whose, site=Site("deg", 1737.4)))
    if not formula:
        assert found == ()
        return
    assert [finding.check for finding in found] == ["axes"]
    said = found[0].numbers["mended_by"]
    assert said == formula or (formula.endswith("180") and said.startswith(formula[:22]))


def test_numbers() -> None:
    """Columns exchanged in rows of numbers, relative to how much each varies."""
    numbers, whose = field()
    values = spoil(numbers, whose, lambda n: n[:, [1, 0, 2]], ("cleo",))
    found = only(items_of(values * [1.0, 1.0 / 3.0, 1.0], whose, "diagonal"))
    assert found.numbers["mended_by"] == "u = v and v = u"


def test_sizes_in_another_unit() -> None:
    """Diameters in km with places in pixels, and places in degrees with diameters in pixels."""
    numbers, whose = field()
    small = only(items_of(numbers * [1.0, 1.0, 0.0005], whose))
    assert small.check == "sizes"
    assert "times their diameter apart" in small.text
    large = only(items_of(numbers * [0.0025, 0.0025, 1.0], whose))
    assert large.check == "sizes"
    assert "--units deg" in large.text
    boxes = only(items_of(numbers * [1.0, 1.0, 0.0005], whose, "boxes"))
    assert boxes.check == "sizes"


@pytest.mark.parametrize("kind", ["circles", "boxes"])
@pytest.mark.parametrize("experts", [("bob", "cleo"), ("ann", "bob", "cleo")])
def test_corners_for_centres(kind: str, experts: tuple[str, ...]) -> None:
    """One list has the upper left corner where the others have the centre."""
    numbers, whose = field(experts)

    def change(some: Floats) -> Floats:
        half = some[:, 2:] / 2.0
        return np.column_stack([some[:, :2] - half, some[:, 2:]])

    found = only(items_of(spoil(numbers, whose, change, ("cleo",)), whose, kind))
    assert found.check == "corners"
    assert "cleo" in found.text


def test_a_radius_in_another_unit() -> None:
    """A number within which nothing lies; one that suits, and "auto", are fine."""
    items = items_of(*field(), kind="points")
    assert [finding.check for finding in first_look(items, 0.002)] == ["radius"]
    assert first_look(items, 12.0) == first_look(items, "auto") == ()


@pytest.mark.parametrize("experts", [("bob", "cleo"), ("ann", "bob", "cleo")])
@pytest.mark.parametrize("factor", [0.5, 0.001])
def test_sizes_of_one_list(experts: tuple[str, ...], factor: float) -> None:
    """Radii for diameters, or metres for kilometres."""
    numbers, whose = field(experts)
    found = only(
        items_of(spoil(numbers, whose, lambda n: n * [1.0, 1.0, factor], ("cleo",)), whose)
    )
    assert (found.check, found.experts) == ("size of one list", ("cleo",))
    assert ("radii" in found.text) == (factor == 0.5)
    assert found.numbers["times_the_others"] == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize("digits", [12, 2])
@pytest.mark.parametrize("kind", ["circles", "points", "boxes"])
def test_a_list_given_twice(kind: str, digits: int) -> None:
    """Also if its numbers were rounded on the way."""
    numbers, whose = field()
    own = np.array(whose) == "ann"
    again = np.concatenate([numbers, np.round(numbers[own], digits)])
    found = only(items_of(again, [*whose, *["dora"] * int(own.sum())], kind))
    assert (found.check, found.experts) == ("same list", ("ann", "dora"))


def test_a_list_submitted_twice() -> None:
    """The same expert went over the image again."""
    numbers, whose = field()
    own = np.array(whose) == "ann"
    again = numbers[own] + np.random.default_rng(3).normal(0.0, 2.0, (int(own.sum()), 3))
    found = only(items_of(np.concatenate([numbers, again]), whose + ["ann"] * len(again)))
    assert (found.check, found.experts) == ("marked twice", ("ann",))


def test_a_list_of_another_image() -> None:
    """No transformation helps; of two lists it is said of both."""
    numbers, whose = field()
    other, others = field(seed=77)
    cleo, not_cleo = np.array(others) == "cleo", np.array(whose) != "cleo"
    mixed = np.concatenate([numbers[not_cleo], other[cleo]])
    names = [name for name in whose if name != "cleo"] + ["cleo"] * int(cleo.sum())
    assert only(items_of(mixed, names)).check == "one list apart"
    some = np.isin(names, ("bob", "cleo"))
    two = items_of(mixed[some], [name for name in names if name != "ann"])
    assert only(two).check == "no agreement"


def test_images_named_in_two_ways() -> None:
    """And images of one expert each that have nothing in common."""
    numbers, whose = field(("ann", "bob"))
    path = {"ann": "Img_1.PNG", "bob": "c:\\marks\\img 1.jpg"}
    found = only(items_of(numbers, whose, image=[path[name] for name in whose]))
    assert found.check == "images"
    assert "one image under several names" in found.text
    other = only(items_of(numbers, whose, image=[f"of {name}" for name in whose]))
    assert other.check == "images"
    assert "one image under" not in other.text


def test_images_that_others_saw_and_left_empty() -> None:
    """Two looked at every image, and each is marked by one of them."""
    numbers, whose = field(("ann", "bob"), objects=60)
    half = np.array(["ab".index(name[0]) for name in whose])
    images = [f"i{10 * half[k] + k % 8}" for k in range(len(whose))]
    images[0], images[1] = "both", "both"
    looked = {"image": [*dict.fromkeys(images)] * 2, "expert": []}
    count = len(looked["image"]) // 2
    looked["expert"] = ["ann"] * count + ["bob"] * count
    found = [f.text for f in first_look(items_of(numbers, whose, image=images, looked=looked))]
    assert any("of one expert only" in text for text in found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: {**row, "name": row["name"].upper()}, "in other case"),
        (
            lambda row: {**row, "born": ".".join(reversed(row["born"].split("-")))},
            "numbers in another order",
        ),
        (
            lambda row: {**row, "name": ", ".join(reversed(row["name"].split()))},
            "words in another order",
        ),
        (lambda row: {**row, "name": row["town"], "town": row["name"]}, "in their field town"),
        (lambda row: row, ""),
    ],
)
def test_records(change: Callable[[dict[str, str]], dict[str, str]], words: str) -> None:
    """A field of one register written in another way, or two fields exchanged."""
    rng = np.random.default_rng(6)
    towns = [f"{a}{b}" for a in ("Aston", "Brook", "Denby", "Garth") for b in ("", " Hill", " End")]
    rows, whose = [], []
    for source in ("clinic", "pharmacy", "survey"):
        for k in range(50):
            if rng.random() < 0.8:
                row = {
                    "name": f"{'abcdefghij'[k % 10]}nna {'abcde'[k // 10]}berg",
                    "born": f"{1950 + k}-{1 + k % 12:02d}-{1 + k % 28:02d}",
                    "town": towns[k % 12],
                }
                rows.append(change(row) if source == "survey" else row)
                whose.append(source)
    columns = {name: [row[name] for row in rows] for name in ("name", "born", "town")}
    found = first_look(Items.from_columns(columns, whose, kind="records"))
    if not words:
        assert found == ()
        return
    assert {finding.check for finding in found} == {"fields"}
    assert {finding.experts for finding in found} == {("survey",)}
    assert words in found[0].text


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_silent_on_real_data() -> None:
    """Craters of the highlands."""
    highlands = highlands_path()
    assert first_look(dfcrp.read_markings(highlands)) == ()
    assert first_look(dfcrp.read_markings(highlands, min_diameter=18)) == ()


def test_silent_on_a_real_crowd() -> None:
    """Boxes by volunteers, some of whom drew heads where others drew whole people."""
    boxes, looked = (SHARED / "crowd_boxes" / name for name in ("boxes.csv", "looked.csv"))
    if not boxes.is_file():
        pytest.skip("the crowd's boxes are not in ../shared/data")
    assert first_look(read_items([boxes], "boxes", looked=looked)) == ()
    assert first_look(read_items([boxes], "boxes")) == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("craters", "circles"), ("crowd", "points"), ("boxes", "boxes"), ("registers", "records")],
)
def test_silent_on_the_tutorials(name: str, kind: str) -> None:
    """The data that people begin with."""
    with in_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = examples.EXAMPLES[name](folder, 1)
        assert first_look(read_items(files, kind)) == ()
    demo = Path(dfcrp.__file__).parent / "data" / "demo.csv"
    assert first_look(dfcrp.read_markings(demo)) == ()


def test_silent_on_simulated_data() -> None:
    """Designs of the studies, harder ones among them."""
    for design in simulate.DESIGNS.values():
        for seed in range(15):
            assert first_look(design.draw(seed)) == ()
    for seed in range(3):
        assert first_look(make_crowd(CrowdDesign(), seed).items) == ()
        assert first_look(DetectionDesign().draw(np.random.default_rng(seed))) == ()
    assert first_look(simulate.highlands_like(1, 0.2)) == ()


def test_hardly_ever_wrong() -> None:
    """Of 400 random fields, some with scatter as wide as spaces, no list is said to be turned."""
    rng = np.random.default_rng(8)
    said = []
    for k in range(400):
        experts = tuple(f"e{f}" for f in range(int(rng.integers(2, 9))))
        objects = int(np.exp(rng.uniform(np.log(3.0), np.log(100.0))))
        wide = 0.5 * np.sqrt(W * H / objects) * np.exp(rng.uniform(np.log(0.005), np.log(0.5)))
        numbers, whose = field(experts, objects, k, wide)
        false = rng.uniform(0.0, 1.0, (len(whose) // 5, 3)) * [W, H, 30.0] + [0.0, 0.0, 1.0]
        names = [*whose, *rng.choice(experts, len(false)).tolist()]
        kind = ("circles", "points", "boxes")[k % 3]
        said += checks(items_of(np.concatenate([numbers, false]), names, kind))
    assert "axes" not in said
    assert len(said) <= 4


#: Ways in which places may lie that have nothing to do with each other.
LIE: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "anywhere": lambda rng, n: rng.uniform(0.0, 1000.0, (n, 2)),
    "far from the origin": lambda rng, n: rng.uniform(0.0, 1000.0, (n, 2)) + np.array([5e5, 4e6]),
    "in a unit and about an origin of its own": lambda rng, n: (
        rng.uniform(0.0, 1000.0, (n, 2)) * 10.0 ** rng.uniform(-3.0, 3.0)
        + rng.normal(0.0, 1000.0) * 10.0 ** rng.uniform(-2.0, 2.0)
    ),
    "round a middle": lambda rng, n: rng.normal(0.0, 100.0, (n, 2)),
    "dense at a corner": lambda rng, n: np.exp(rng.normal(3.0, 1.5, (n, 2))),
    "in clumps": lambda rng, n: (
        rng.uniform(0.0, 1000.0, (max(n // 6, 1), 2))[rng.integers(0, max(n // 6, 1), n)]
        + rng.normal(0.0, 15.0, (n, 2))
    ),
    "in a grid": lambda rng, n: np.floor(rng.uniform(0.0, 40.0, (n, 2))) * 25.0,
    "along a line": lambda rng, n: (
        rng.uniform(0.0, 1000.0, (n, 1)) * [1.0, 0.3] + rng.normal(0.0, 5.0, (n, 2))
    ),
}


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.parametrize("way", LIE)
def test_random_lists_are_not_brought_together(way: str) -> None:
    """Of 25 random pairs of lists in each way no transformation is said; of 1,650, none was."""
    for seed in range(30, 55):
        rng = np.random.default_rng([seed, len(way)])
        lengths = np.exp(rng.uniform(np.log(8.0), np.log(200.0), 2)).astype(int).tolist()
        places = np.concatenate([LIE[way](rng, n) for n in lengths])
        sizes = np.exp(rng.normal(2.0, 0.5, len(places)))
        whose = [name for name, n in zip(("ann", "bob"), lengths, strict=True) for _ in range(n)]
        kind = ("circles", "points", "boxes", "ellipses", "diagonal")[seed % 5]
        found = first_look(items_of(np.column_stack([places, sizes]), whose, kind))
        assert "axes" not in [finding.check for finding in found], (seed, found)


ODD = {
    "one item": lambda: items_of(np.array([[1.0, 2.0, 3.0]]), ["ann"]),
    "one place": lambda: items_of(np.ones((40, 3)), ["ann", "bob"] * 20, "points"),
    "a line": lambda: items_of(
        np.column_stack([np.arange(40.0) // 2, np.zeros(40), np.ones(40)]), ["a", "b"] * 20
    ),
    "lists of one item": lambda: items_of(
        np.random.default_rng(1).normal(50.0, 5.0, (30, 3)), [f"e{k}" for k in range(30)]
    ),
    "one column": lambda: Items.from_columns(
        {"u": np.arange(60.0)}, ["a", "b", "c"] * 20, kind="diagonal"
    ),
    "thousands at one place": lambda: items_of(
        np.ones((4_000, 3)), [f"e{k % 400}" for k in range(4_000)], "points"
    ),
}


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_left_alone(name: str) -> None:
    """There is nothing to compare."""
    assert not set(checks(ODD[name]())) & {"axes", "marked twice", "no agreement"}


def test_nearness_is_what_plain_loops_say() -> None:
    """Each list looked up in each other, where both looked at the image."""
    numbers, whose = field(objects=12)
    images = ["ij"[k % 2] for k in range(len(whose))]
    looked = {"image": ["i", "i", "i", "j", "j"], "expert": ["ann", "bob", "cleo", "ann", "bob"]}
    keep = [not (n == "cleo" and i == "j") for n, i in zip(whose, images, strict=True)]
    numbers = numbers[keep]
    whose = [name for name, kept in zip(whose, keep, strict=True) if kept]
    images = [image for image, kept in zip(images, keep, strict=True) if kept]
    items = items_of(numbers, whose, "points", image=images, looked=looked)
    sight = likelihood_named("points").sight(items)
    assert sight is not None
    nearness = Nearness(sight, items.families, items.looks.image, items.coverage)
    near = {name: nearness.near[k] * nearness.unit for k, name in enumerate(items.looks.images)}
    pairs = {(i, e) for i, e in zip(looked["image"], looked["expert"], strict=True)}
    places = np.column_stack([items.x, items.y])
    for a, one in enumerate(items.experts):
        for b, other in enumerate(items.experts):
            if a == b:
                continue
            asked = found = 0
            for row in range(len(items)):
                if whose[row] != one or (images[row], other) not in pairs:
                    continue
                asked += 1
                found += any(
                    whose[k] == other
                    and images[k] == images[row]
                    and np.linalg.norm(places[k] - places[row]) <= near[images[row]]
                    for k in range(len(items))
                )
            shares = nearness.pairs.shares
            assert (shares.looked_up[a, b], shares.near[a, b]) == (asked, found)


def test_a_move_is_what_its_words_say() -> None:
    """new = scale · sign · old[order] + shift."""
    move = Move((1, 0), (1.0, -1.0), (0.0, 480.0), 2.0)
    assert move(np.array([[3.0, 5.0]])).tolist() == [[10.0, 474.0]]


def test_it_is_said_before_the_run_and_kept(tmp_path: Path) -> None:
    """A warning, a property, summary.json, the words on the terminal and the page."""
    from dfcrp.report import write_report

    numbers, whose = field(objects=15)
    items = items_of(spoil(numbers, whose, moved(swap=True), ("cleo",)), whose)
    with pytest.warns(DfcrpWarning, match="look exchanged"):
        posterior = dfcrp.fit(items, chains=2, scans=20, out=tmp_path / "run")
    text = posterior.first_look[0].text
    kept = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    assert [found["text"] for found in kept["first_look"]] == [text]
    assert dfcrp.load(tmp_path / "run").first_look == posterior.first_look
    assert "look exchanged" in describe(posterior)
    page = write_report(posterior, tmp_path / "run").read_text(encoding="utf-8")
    assert "x and y look exchanged" in page


def test_it_is_silent_in_a_good_run(tmp_path: Path) -> None:
    """Warnings are errors in tests."""
    numbers, whose = field(objects=15)
    posterior = dfcrp.fit(items_of(numbers, whose), chains=2, scans=20)
    assert posterior.first_look == ()
    assert posterior.summary()["first_look"] == []
    assert "first look" not in describe(posterior)


@pytest.mark.long
def test_a_million_items() -> None:
    """As many look-ups for any number of items beyond a hundred thousand."""
    rng = np.random.default_rng(1)
    objects = rng.uniform(0.0, 1.0, (100_000, 2)) * [80_000.0, 48_000.0]
    parts, whose = [], []
    for name in range(10):
        places = objects + rng.normal(0.0, 2.0, objects.shape)
        parts.append(places[:, ::-1] if name == 4 else places)
        whose += [f"e{name}"] * len(places)
    columns = dict(zip("xy", np.concatenate(parts).T, strict=True))
    found = only(Items.from_columns(columns, whose, kind="points"))
    assert found.numbers["mended_by"] == "x = y and y = x"
