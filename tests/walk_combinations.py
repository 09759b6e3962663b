"""Try every cell of ``combinations.CELLS`` for one kind of item, on a handful of items."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp
from dfcrp.errors import InputError
from dfcrp.items.site import Site

SHORT: dict[str, Any] = {"chains": 1, "scans": 3, "burn_in": 1, "seed": 1}
EXPERTS = ("A", "B", "C")
#: A and B are one person.
PERSON = {"A": "P", "B": "P", "C": "C"}


class Walk:
    """One kind of item, and a way to try each feature."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.one = self.items(images=False)
        self.two = self.items(images=True)
        self._number = 0

    def items(self, images: bool) -> dfcrp.Items:
        """Three objects on each image, listed by most experts, and one that only A has."""
        rng = np.random.default_rng(3)
        rows: list[tuple[Any, ...]] = []
        for image in ("i", "j") if images else ("i",):
            for k in range(3):
                x, y, size = *rng.uniform(0.0, 60.0, 2), rng.uniform(5.0, 9.0)
                for expert in EXPERTS:
                    if expert != EXPERTS[k] or k == 0:
                        moved = rng.normal(0.0, 0.4, 2)
                        grown = size * np.exp(rng.normal(0.0, 0.04))
                        rows.append((x + moved[0], y + moved[1], grown, expert, image, k))
            rows.append((*rng.uniform(0.0, 60.0, 2), 6.0, "A", image, 3))
        x, y, size = (np.array([row[at] for row in rows], float) for at in range(3))
        expert = [row[3] for row in rows]
        columns, site = self._columns(x, y, size, [row[5] for row in rows])
        return dfcrp.Items.from_columns(
            columns,
            expert,
            kind={"sphere": "circles", "own": "counts:COUNTS"}.get(self.kind, self.kind),
            image=[row[4] for row in rows] if images else None,
            person=[PERSON[name] for name in expert],
            site=site,
        )

    def _columns(self, x: Any, y: Any, size: Any, k: list[int]) -> tuple[dict[str, Any], Any]:
        if self.kind == "sphere":
            degrees = {"x": x / 10.0, "y": y / 10.0, "diameter": size / 3.0}
            return degrees, Site("deg", body_radius_km=1737.4, metres_per_pixel=60.0)
        whole = np.round(size * 3.0)
        found = {
            "circles": {"x": x, "y": y, "diameter": size},
            "points": {"x": x, "y": y},
            "boxes": {"x": x, "y": y, "width": size, "height": 0.8 * size},
            "ellipses": {"x": x, "y": y, "major": size, "minor": 0.8 * size, "angle": 9.0 * size},
            "diagonal": {"u": x, "v": y, "w": size},
            "normal": {"u": x, "v": y},
            "records": {
                "name": [f"name {at}" for at in k],
                "year": [str(1950 + at) for at in k],
            },
            "own": {"low": whole, "high": np.round(x)},
            "intervals": {"start": x, "end": x + size},
        }
        return found[self.kind], None

    def run(self, items: dfcrp.Items | None = None, **settings: Any) -> dfcrp.Posterior:
        """Fit, continue, read back: the draws must be those that were drawn."""
        self._number += 1
        out = self.folder / f"run-{self._number}"
        chosen = self.one if items is None else items
        dfcrp.fit(chosen, out=out, **{**SHORT, **settings})
        named = {"likelihood": "counts:COUNTS"} if self.kind == "own" else {}
        longer = dfcrp.resume(out, scans=5, **named)
        found = dfcrp.load(out, **named)
        assert np.array_equal(found.labels, longer.labels), "the draws are not those on disk"
        assert len(found.catalogue()) > 0
        assert len(found.members()) == len(chosen)
        assert {row["expert"] for row in found.summary()["experts"]} == set(EXPERTS)
        return found

    @cached_property
    def plain(self) -> dfcrp.Posterior:
        """A run by default, of which several features are asked."""
        return self.run(chains=2)

    def features(self) -> dict[str, Callable[[], Any]]:
        """How each feature is tried; those about files and clusters have tests of their own."""
        return {
            "dfcrp": lambda: self.plain,
            **{name: (lambda name=name: self.run(prior=name)) for name in OTHER_PRIORS},
            "exact": lambda: self.plain,
            "paper": lambda: self.run(sampler="paper"),
            "unmodified": lambda: self.run(sampler="unmodified"),
            "independent": self._independent,
            "shared": self._shared,
            "expert_bias": self._expert_bias,
            "radius": lambda: self.run(radius=50.0),
            "nearest": lambda: self.run(nearest=4),
            "candidates": self._candidates,
            "tables": self._tables,
            "posterior": lambda: self.plain.to_arviz(),
            "explain": lambda: self.plain.explain(1).text(),
            "evaluate": self._evaluate,
            "doubles": lambda: self.plain.suspected_doubles(),
            "report": lambda: self._report(self.plain),
            "overview": lambda: self._report(self.independent),
            "disk": lambda: self.plain,
            "resume": lambda: self.plain,
            "estimator": self._estimator,
            "preset": lambda: self.run(preset="simulation"),
            "sizes": lambda: self.plain.size_frequency(),
        }

    @cached_property
    def independent(self) -> dfcrp.Posterior:
        """A run of two images that have nothing in common."""
        return self.run(self.two)

    def _independent(self) -> None:
        found = self.independent
        assert found.images == ("i", "j")
        assert len(found["i"].items) + len(found["j"].items) == len(self.two)
        for prior in ("attraction", "detection"):
            self.run(self.two, prior=prior)

    def _shared(self) -> None:
        found = self.run(self.two, images="shared")
        code = np.unique(self.two.image, return_inverse=True)[1]
        assert (code[found.labels] == code).all(), "a cluster spans two images"

    def _expert_bias(self) -> None:
        assert self.run(expert_bias="both").expert_bias is not None
        self.run(self.two, expert_bias="offset")
        self.run(self.two, expert_bias="precision", images="shared")

    def _candidates(self) -> None:
        items = dfcrp.Items.from_columns(
            self.one.columns,
            self.one.expert,
            kind=self.one.kind,
            candidates=[[0, 1]],
            site=self.one.site,
        )
        labels = self.run(items).labels
        assert (labels[:, :, 2:] == np.arange(2, len(items))).all(), "a pair that was not given"

    def _tables(self) -> None:
        path = self.folder / "items.csv"
        names = {"x": "lon", "y": "lat", "diameter": "diameter_km"} if self.kind == "sphere" else {}
        header = ["expert", *(names.get(name, name) for name in self.one.columns)]
        rows = zip(self.one.expert, *self.one.cells.values(), strict=True)
        lines = [",".join(map(str, row)) for row in (header, *rows)]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        found = dfcrp.read_items(path, self.one.kind)
        assert len(found) == len(self.one)
        assert list(found.columns) == list(self.one.columns)

    def _evaluate(self) -> None:
        """Beside its own catalogue, and beside its own clusters."""
        labels = self.plain.point_partition().labels
        clusters = {"id": self.plain.items.id.tolist(), "entity": [str(k) for k in labels]}
        assert self.plain.evaluate(clusters).bcubed["f1"] == 1.0
        if self.kind == "records":
            return
        table = self.plain.catalogue()
        truth = {name: table[name].to_numpy() for name in self.plain.items.columns}
        placed = self.kind in ("circles", "sphere", "boxes", "ellipses", "intervals")
        rule = {"iou": 0.9} if placed else {"distance": 1e-6}
        found = self.plain.evaluate(truth, min_experts=1, **rule)
        assert (found.precision, found.recall) == (1.0, 1.0)

    def _report(self, posterior: dfcrp.Posterior) -> None:
        from dfcrp.report import write_overview, write_report

        write = write_report if posterior.many is None else write_overview
        page = write(posterior, self.folder / f"page-{self._number}").read_text(encoding="utf-8")
        assert "<h2>" in page
        assert 'id="explorer' in page

    def _estimator(self) -> None:
        if self.kind == "sphere":
            raise InputError("a bare matrix cannot say that it is in degrees, nor on which body")
        model = dfcrp.DFCRP(likelihood=self.one.kind, chains=1, scans=3, random_state=1)
        model.fit(self.one.values, groups=self.one.expert)
        assert len(model.labels_) == len(self.one)


OTHER_PRIORS = ("constrained", "crp", "attraction", "detection")


def outcome(try_it: Callable[[], Any]) -> str:
    """What came of it."""
    try:
        try_it()
    except InputError as error:
        return f"refused: {error}"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"FAILED: {type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"
    return "ok"
