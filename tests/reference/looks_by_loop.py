"""Who looked where, laid out look by look in plain Python: slow, and easy to check."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np

from dfcrp.priors.base import Zones
from dfcrp.priors.detection.kernel import LookTables


def make_looks(
    images,
    families,
    persons,
    looks,
    zones=None,
):
    """Lay out who looked where; whoever has a marking on an image looked at it in any case.

    Lists of one person cover the same zones of an image: all that one of them covers.
    """
    own = np.column_stack([images, families])
    pairs = np.unique(own if looks is None else np.concatenate([own, looks]), axis=0)
    by_viewer = sorted((int(v), int(persons[f]), int(f)) for v, f in pairs)
    seen = {
        (v, p): (p, tuple(f for _, _, f in group))
        for (v, p), group in groupby(by_viewer, key=lambda look: look[:2])
    }
    viewers = sorted(set(seen.values()))
    number = {viewer: at for at, viewer in enumerate(viewers)}
    held = [len(lists) for _, lists in viewers]
    viewer_row = np.concatenate([[0], np.cumsum(held)]).astype(np.int64)
    viewer_person = np.array([p for p, _ in viewers], np.int32)
    row_of = {
        (v, f): viewer_row[number[viewer]] + at
        for (v, _), viewer in seen.items()
        for at, f in enumerate(viewer[1])
    }
    n_images = int(pairs[:, 0].max()) + 1
    if zones is None:
        zones = Zones(images, np.arange(n_images), np.ones(n_images), pairs)
    there = sorted({(int(z), int(persons[f])) for z, f in zones.pairs})
    at_zone = [(z, seen[int(zones.image[z]), p]) for z, p in there]
    covered = np.zeros(len(persons))
    for z, (_, lists) in at_zone:
        covered[list(lists)] += zones.share[z]
    shares = _shares_covered(at_zone, zones)
    return LookTables(
        image=images.astype(np.int32),
        zone=zones.zone.astype(np.int32),
        row=np.array(
            [row_of[at] for at in zip(images.tolist(), families.tolist(), strict=True)], np.int32
        ),
        row_list=np.array([f for _, lists in viewers for f in lists], np.int32),
        row_viewer=np.repeat(np.arange(len(viewers)), held).astype(np.int32),
        viewer_row=viewer_row,
        viewer_person=viewer_person,
        person_viewer=np.searchsorted(viewer_person, np.arange(int(persons.max()) + 2)),
        zones=np.searchsorted(zones.image, np.arange(n_images + 1)),
        share=np.ascontiguousarray(zones.share, np.float64),
        start=np.searchsorted([z for z, _ in at_zone], np.arange(len(zones.share) + 1)),
        viewer=np.array([number[viewer] for _, viewer in at_zone], np.int32),
        silent=np.zeros(len(zones.share)),
        covered=covered,
        **_looks_by_list(images, families, shares, len(persons)),
    )


def _shares_covered(at_zone, zones):
    """By list and image: the share of the image that the list covers."""
    shares = {}
    for z, (_, lists) in at_zone:
        for f in lists:
            at = (f, int(zones.image[z]))
            shares[at] = shares.get(at, 0.0) + float(zones.share[z])
    return shares


def _looks_by_list(images, families, shares, lists):
    """Looks with markings one by one, those without by how much they cover; both by list."""
    made, look = np.unique(np.column_stack([families, images]), axis=0, return_inverse=True)
    marked = [(int(f), int(v)) for f, v in made]
    blank = Counter((f, share) for (f, v), share in shares.items())
    blank.subtract((at[0], shares[at]) for at in marked)
    kinds = sorted((f, share, count) for (f, share), count in blank.items() if count > 0)
    ends = np.arange(lists + 1)
    return {
        "look": look.ravel().astype(np.int32),
        "look_list": made[:, 0].astype(np.int32),
        "look_share": np.array([shares[at] for at in marked]),
        "list_look": np.searchsorted(made[:, 0], ends),
        "blank_share": np.array([share for _, share, _ in kinds], np.float64),
        "blank_count": np.array([count for _, _, count in kinds], np.float64),
        "list_blank": np.searchsorted(np.array([f for f, _, _ in kinds], np.int64), ends),
    }
