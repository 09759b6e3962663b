"""Categories: from columns and exports to items, a run folder and the answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dfcrp
import format_samples
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.converting import read_table, write_table
from dfcrp.posterior.categories import category_summary
from dfcrp.priors.detection.layout import MOST_CATEGORIES, check_categories
from dfcrp.priors.opinions import opinions
from dfcrp.runs.folder import read_markings_back, write_markings
from dfcrp.settings.config import make_config

ODD = ("pit, a", 'böulder; "x"', "crater")


def crowd(seed: int = 3, images: int = 2, objects: int = 6) -> dfcrp.Items:
    """Circles by five experts, of whom the last names categories by chance."""
    rng, rows = np.random.default_rng(seed), []
    for v in range(images):
        for _ in range(objects):
            x, y, d, c = *rng.uniform(0, 900, 2), rng.uniform(20, 60), rng.integers(3)
            for f in range(5):
                said = c if f < 4 and rng.random() < 0.9 else rng.integers(3)
                name = "" if f == 0 and c == 2 else ODD[said]
                place = (x + rng.normal(), y + rng.normal(), d * 1.01**f)
                rows.append((*place, f"e{f}", f"im{v}", name, c))
    x, y, d, expert, image, category, truth = zip(*rows, strict=True)
    items = dfcrp.Items.circles(x, y, d, expert, image=image, category=category, truth=truth)
    assert items.category is not None
    return items


def test_items_carry_them() -> None:
    items = crowd()
    assert items.categories == tuple(sorted(ODD))
    codes = items.category_codes
    assert codes is not None
    assert codes.min() == -1
    said = [items.categories[c] if c >= 0 else "" for c in codes]
    assert said == items.category.tolist()
    some = items.select(items.expert == "e1")
    assert some.category.tolist() == [
        c for c, e in zip(said, items.expert, strict=True) if e == "e1"
    ]
    without = dfcrp.Items.circles(items.x, items.y, items.diameter, items.expert, items.image)
    assert without.digest != items.digest
    assert without.category_codes is None


def test_bad_ones_are_refused() -> None:
    with pytest.raises(InputError, match=r"2 items but category has 1"):
        dfcrp.Items.circles([1, 2], [1, 2], [1, 2], ["a", "b"], category=["x"])
    with pytest.raises(InputError, match=r"line break.*--columns category="):
        dfcrp.Items.circles([1, 2], [1, 2], [1, 2], ["a", "b"], category=["x", "a\nb"])
    with pytest.raises(InputError, match="Join rare"):
        check_categories(MOST_CATEGORIES + 1, 1)
    check_categories(3, 5_000)
    check_categories(3, 10_000)
    with pytest.raises(InputError, match="10,000 persons"):
        check_categories(8, 10_000)


def test_only_missing_ones_are_none() -> None:
    items = dfcrp.Items.circles([1, 2], [1, 2], [1, 2], ["a", "b"], category=["", None])
    assert items.category is None


def test_columns_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('x,y,diameter,user,Category\n1,2,3,a,"p, q"\n4,5,6,b,\n')
    assert dfcrp.read_markings(path).category.tolist() == ["p, q", ""]
    assert dfcrp.read_markings(path, columns={"category": ""}).category is None
    other = tmp_path / "b.csv"
    other.write_text("x,y,diameter,user\n1,2,3,c\n")
    assert dfcrp.read_markings([path, other]).category.tolist() == ["p, q", "", ""]


def test_a_record_may_have_a_field_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("expert,name,category,kind\na,ann,x,u\nb,anne,y,\n")
    plain = dfcrp.read_items(path, "records")
    assert set(plain.columns) == {"name", "category", "kind"}
    assert plain.category is None
    with pytest.raises(InputError, match="category is another column"):
        dfcrp.read_items(path, "records", columns="category=kind")
    chosen = dfcrp.read_items(path, "records", columns="category=category")
    assert set(chosen.columns) == {"name", "kind"}
    assert chosen.category.tolist() == ["x", "y"]
    config = make_config({"run": {"likelihood": "records"}})
    for number, items in enumerate((plain, chosen)):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_markings(folder / "markings.csv", items)
        (folder / "provenance.json").write_text("{}")
        back = read_markings_back(folder, config)
        assert back.digest == items.digest
        assert (back.category is None) == (items.category is None)


@pytest.mark.parametrize("ending", ["csv", "tsv", "geojson", "parquet"])
def test_they_are_written_and_read(tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path, out = tmp_path / "a.csv", tmp_path / f"b.{ending}"
    path.write_text('x,y,diameter,user,category\n1,2,3,a,"p ""q"""\n4,5,6,b,\n')
    write_table(read_table(path), out)
    assert dfcrp.read_markings(out).category.tolist() == ['p "q"', ""]


@pytest.mark.filterwarnings("ignore:.*categories that are not in the file go by their numbers")
def test_coco_names_them(tmp_path: Path) -> None:
    box = {"image_id": 1, "bbox": [1, 2, 3, 4]}
    content = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 5, "name": "seal"}],
        "annotations": [{**box, "id": 1, "category_id": 5}, {**box, "id": 2, "category_id": 7}],
    }
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    with pytest.warns(DfcrpWarning, match="another by the same expert"):
        items = dfcrp.read_items([tmp_path / "ann.json", tmp_path / "bob.json"], "boxes")
    assert items.category.tolist() == ["seal", "7"] * 2


def test_a_cluster_is_what_the_reliable_say() -> None:
    """Three experts, of whom two are always right and one says anything."""
    rng = np.random.default_rng(1)
    true = np.repeat(np.arange(40) % 2, 3)
    said = np.where(np.tile([True, True, False], 40), true, rng.integers(2, size=120))
    labels = np.tile(np.repeat(np.arange(40) * 3, 3), (60, 1)).astype(np.int32)
    families = np.tile(np.arange(3), 40)
    share, confusion = opinions(labels, said, 2, families, np.arange(3))
    assert share.shape == (60, 2)
    assert confusion.sum(axis=2) == pytest.approx(1.0)
    right = confusion[20:].mean(axis=0)
    assert right[[0, 1], [0, 1]][:, :2].min() > 0.85
    assert right[[0, 1], [0, 1], 2].max() < 0.75
    again = opinions(labels, said, 2, families, np.arange(3))
    assert np.array_equal(again[1], confusion)


@pytest.mark.parametrize("prior", ["dfcrp", "detection"])
def test_answers(prior: str, tmp_path: Path) -> None:
    items = crowd()
    out = tmp_path / "run"
    posterior = dfcrp.fit(items, prior=prior, images="shared", scans=120, chains=1, seed=2, out=out)
    found = posterior.categories
    assert found is not None
    assert found.in_clusters == (prior == "detection")
    table = posterior.catalogue()
    chances = posterior.category_probabilities()
    assert chances[list(items.categories)].sum(axis=1).to_numpy() == pytest.approx(1.0)
    best = chances[list(items.categories)].to_numpy().max(axis=1)
    assert table["p_category"].to_numpy() == pytest.approx(best)
    agreed = table[table["n_experts"] == 5]
    true = [ODD[items.truth[row]] for row in agreed["cluster"]]
    assert np.mean(agreed["category"] == true) > 0.8
    confusions = posterior.confusions()
    assert len(confusions) == 5 * 9
    sums = confusions.groupby(["expert", "category"])["p"].sum().to_numpy()
    assert sums == pytest.approx(1.0)
    right = found.accuracy.mean(axis=0)
    assert right[:4].min() > right[4]
    one = posterior["im1"].catalogue()
    whole = table[table["image"] == "im1"]
    assert one["p_category"].to_numpy() == pytest.approx(whole["p_category"].to_numpy())
    assert (out / "confusions.csv").is_file()
    again = dfcrp.load(out).catalogue()
    assert again["p_category"].to_numpy() == pytest.approx(table["p_category"].to_numpy())


def test_the_clusters_of_other_priors_stay_as_they_were() -> None:
    items = crowd(images=1)
    bare = dfcrp.Items.circles(items.x, items.y, items.diameter, items.expert)
    with_them, without = (dfcrp.fit(x, scans=40, chains=1, seed=5) for x in (items, bare))
    assert np.array_equal(with_them.labels, without.labels)
    assert category_summary(without) is None


def test_images_by_themselves() -> None:
    posterior = dfcrp.fit(crowd(), images="independent", scans=40, chains=1, seed=5)
    table = posterior.confusions()
    assert set(table["image"]) == {"im0", "im1"}
    catalogue = posterior.catalogue()
    assert catalogue["p_category"].between(0.0, 1.0).all()
    one = posterior["im0"].catalogue()
    whole = catalogue[catalogue["image"] == "im0"]
    assert one["category"].tolist() == whole["category"].tolist()


def zooniverse_with_answers() -> bytes:
    """Marks with answers to questions about them, in the old form and in the new one."""
    old = {"x": 1, "y": 2, "tool_label": "Bird", "details": [{"value": 0}, {"value": [1, 2]}]}
    menu = {"value": [{"value": "a1b2", "option": True, "label": "asleep"}]}
    old_two = {"x": 9, "y": 9, "tool_label": "Bird", "details": [{"value": None}, menu]}
    new = {"toolIndex": 0, "toolType": "point", "frame": 0, "x": 3, "y": 4}
    return format_samples.zooniverse(
        [
            {"annotations": [
                format_samples.drawing(old, old_two),
                {"task": "T1", "task_label": "Is it dark?", "value": "Yes"},
            ]},
            {"user_name": "bob", "annotations": [
                {"task": "T0", "taskType": "drawing", "value": [
                    {**new, "details": [{"task": "T0.0.0"}]},
                    {**new, "x": 30, "details": [{"task": "T0.0.0"}]},
                ]},
                {"task": "T0.0.0", "taskType": "single", "markIndex": 0, "value": 1},
                {"task": "T0.0.0", "taskType": "single", "markIndex": 1, "value": 0},
            ]},
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, ["Bird", "Bird", "", ""]),
        ("category=detail 1", ["0", "", "1", "0"]),
        ("category=detail 2", ["1+2", "asleep", "", ""]),
        ("category=tool and details", ["Bird: 0, 1+2", "Bird: asleep", "tool 0: 1", "tool 0: 0"]),
        ("category=T1", ["Yes", "Yes", "", ""]),
    ],
)
def test_answers_of_zooniverse_are_categories_if_asked_for(tmp_path, columns, expected):
    path = tmp_path / "export.csv"
    path.write_bytes(zooniverse_with_answers())
    items = dfcrp.read_items(path, "points", columns=columns)
    assert items.category.tolist() == expected
    unused = set(items.sources[0].unused)
    assert {"detail 1", "detail 2", "T1"} - unused == {str(columns).removeprefix("category=")} & {
        "detail 1", "detail 2", "T1"
    }  # fmt: skip
