"""The tables of a posterior: its catalogue, members, experts, images, summary, and ArviZ's tree."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.differences import rows_with_bias
from dfcrp.posterior.findings import Findings
from dfcrp.runs.parts import least_by_cluster
from dfcrp.settings.consensus import needed
from dfcrp.summaries.catalogue import catalogue
from dfcrp.summaries.membership import UNDECIDED
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import summarise
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    import pandas
    from xarray import DataTree

    from dfcrp.items.items import Items
    from dfcrp.posterior.posterior import Posterior


#: The column of how many experts looked at an object's place, where looks have footprints.
LOOKED = "n_looked"


def expert_rows(posterior: Posterior) -> list[Json]:
    """One row per expert, the one who finds most first where that is known."""
    rows = posterior.expert_summary.rows(posterior.items.experts)
    if posterior.detection is not None:
        said = dict(zip(posterior.items.experts, posterior.detection.experts(), strict=True))
        rows = [{**row, **said[row["expert"]]} for row in rows]
        rows.sort(key=lambda row: -np.nan_to_num(row["sensitivity"]["mean"], nan=-1.0))
    return rows_with_bias(rows, posterior.expert_bias, posterior.items.experts)


def catalogue_frame(posterior: Posterior, columns: dict[str, Array]) -> pandas.DataFrame:
    """One row per cluster of the point partition, with uncertainty."""
    import pandas

    if not posterior.category_sets:
        return pandas.DataFrame(columns)
    from dfcrp.posterior.categories import category_columns

    return pandas.DataFrame(columns | category_columns(posterior, columns["cluster"]))


def catalogue_columns(posterior: Posterior) -> dict[str, Array]:
    """The catalogue with clusters named after their first item here."""
    labels, items = posterior.point_partition().labels, posterior.items
    _, order, offsets = members_by_cluster(labels)
    members = [order[a:b] for a, b in pairwise(offsets)]
    asked = posterior.config.summary.min_experts
    table = catalogue(
        posterior.draws,
        labels,
        posterior.membership,
        families=items.families,
        expert_names=items.experts,
        min_experts=least_by_cluster(items, labels, asked)[np.unique(labels)],
        centre=posterior.likelihood.centre(items),
        described=posterior.likelihood.describe_members(items, members),
        ground=posterior.ground,
    )
    if items.coverage.in_parts:
        looked = items.coverage.looked_at(labels, items.families)[table["cluster"]]
        at = list(table).index("n_experts") + 1
        entries = [*table.items()]
        table = dict([*entries[:at], (LOOKED, looked), *entries[at:]])
    if posterior.detection is not None:
        table["p_real"] = posterior.detection.p_real_cluster
    return table


def members_frame(posterior: Posterior) -> pandas.DataFrame:
    """One row per marking, in input order, with its cluster and how sure that is."""
    import pandas

    found, labels = posterior.membership, posterior.point_partition().labels
    table: Json = {"marking": posterior.items.id}
    if posterior.many is not None:
        table["image"] = posterior.items.image
    table |= {
        "expert": posterior.items.expert,
        "cluster": _known(posterior, posterior.names(labels)),
        "p_member": found.p_member,
        "second_cluster": _known(posterior, posterior.names(found.second)),
        "p_second": found.p_second,
        "p_elsewhere": found.p_elsewhere,
    }
    if posterior.detection is not None:
        table["p_real"] = posterior.detection.p_real_marking
    return pandas.DataFrame(table)


def _known(posterior: Posterior, values: Array) -> Any:
    """Whole numbers as a column, empty where the run did not come to the image."""
    import pandas

    lost = np.isnan(posterior.membership.p_member)
    return pandas.arrays.IntegerArray(values.astype(np.int64), lost) if lost.any() else values


def image_frame(posterior: Posterior) -> pandas.DataFrame:
    """One row per image: how many items, experts and objects, and how the run went."""
    import pandas

    images = posterior.image_set
    looked = posterior.items.coverage.counts
    rows = [
        _image_row(posterior, i, f, looked)
        for i, f in zip(images.done, posterior.findings, strict=True)
    ]
    return pandas.DataFrame(posterior.prior.image_rows(posterior, rows))


def _image_row(
    posterior: Posterior, image: int, found: Findings, looked: NDArray[np.int64]
) -> Json:
    """A row; ``looked`` is how many looked at each zone."""
    parts = posterior.image_set.parts
    row: Json = {
        "image": parts.names[image],
        "n_markings": len(parts.rows[image]),
        "n_experts": len(parts.expert_codes[image]),
    }
    for name in ("n_clusters", "consensus", "alpha"):
        interval = getattr(found, name)
        if name == "alpha" and np.isnan(interval.mean):
            # Not every prior has an α.
            continue
        row |= {name: interval.mean, f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}
    if isinstance(posterior.config.summary.min_experts, str):
        most = looked[posterior.items.coverage.zone[parts.rows[image]]].max()
        row["min_experts"] = needed(posterior.config.summary.min_experts, int(most))
    verdict = found.verdict
    return row | {
        "undecided": int(np.count_nonzero(found.membership.p_member < UNDECIDED)),
        "scans": found.record.scans,
        "burn_in": found.record.burn_in,
        "seed": parts.config_of(image).run.seed,
        "max_rhat": verdict.max_rhat,
        "min_ess": verdict.min_ess,
        "pairs_disagreeing": verdict.pairs_disagreeing,
        "ok": verdict.ok,
    }


def doubles_columns(posterior: Posterior) -> dict[str, Array]:
    """Markings that may be a second one of an object their expert has marked already.

    They are alone in the point partition, and as close to that object as its own members are. The
    rows of markings are those of the posterior's own items.
    """
    labels = posterior.point_partition().labels
    found = posterior.likelihood.doubles(posterior.items, labels, posterior.draws, posterior.config)
    rows = {name: found[name].astype(np.int64) for name in ("marking", "other")}
    return {**found, **rows, "cluster": posterior.names(found["cluster"])}


def doubles_frame(items: Items, found: dict[str, Array]) -> pandas.DataFrame:
    """A table of them; ``items`` are those that rows are of."""
    import pandas

    marking, other = found["marking"], found["other"]
    *_, measure = found
    return pandas.DataFrame(
        {
            "expert": items.expert[marking],
            "marking": items.id[marking],
            "other": items.id[other],
            "cluster": found["cluster"],
            measure: found[measure],
        }
    )


def summary(posterior: Posterior) -> Json:
    """The content of summary.json."""
    verdict = posterior.convergence
    return {
        "n_markings": len(posterior.items),
        "n_experts": len(posterior.items.experts),
        **({} if posterior.many is None else {"n_images": len(posterior.images)}),
        "chains": posterior.draws.n_chains,
        "scans": posterior.record.scans,
        "burn_in": posterior.record.burn_in,
        "draws": posterior.draws.n_chains * posterior.draws.n_draws,
        "seconds": round(posterior.record.seconds, 3),
        "n_clusters": summarise(posterior.n_clusters.ravel()).as_dict(),
        "catalogue": _listed(posterior),
        **posterior.prior.numbers(posterior),
        **({"tolerances": posterior.tolerances} if posterior.tolerances else {}),
        **({} if posterior.independent else {"suspected_doubles": posterior.n_doubles}),
        "consensus": posterior.table_counts.rows(),
        "experts": expert_rows(posterior),
        "convergence": verdict.as_dict(),
        "first_look": [finding.as_dict() for finding in posterior.first_look],
        "model_fit": posterior.model_fit.as_dict(),
    }


def possible_counts(posterior: Posterior) -> list[Json]:
    """Consensus counts, without numbers of experts that looked together at no image.

    If none is left, those of every number that did.
    """
    most = posterior.items.looks.most_experts
    rows = [
        row
        for row in posterior.table_counts.rows()
        if isinstance(row["min_experts"], str) or row["min_experts"] <= most
    ]
    if rows or most < 2:
        return rows
    return posterior.consensus_counts(tuple(range(2, most + 1))).rows()


def _listed(posterior: Posterior) -> dict[str, int]:
    """Objects of the catalogue, and how many of them enough experts share, or are real."""
    labels, families = posterior.point_partition().labels, posterior.items.families
    known = ~np.isnan(posterior.membership.p_member)
    pairs = np.unique(np.column_stack((labels, families))[known], axis=0)
    names, experts = np.unique(pairs[:, 0], return_counts=True)
    asked = posterior.config.summary.min_experts
    least = least_by_cluster(posterior.items, labels, asked)[names]
    agreed = int(np.count_nonzero(experts >= least))
    counts = {"n_clusters": len(experts), "consensus": agreed}
    if posterior.detection is not None:
        counts["real"] = int(np.count_nonzero(posterior.detection.p_real_cluster > 0.5))
    return counts


def to_arviz(posterior: Posterior) -> DataTree:
    """α, numbers of clusters, consensus counts and what clusters share, for ArviZ.

    What clusters share is read from the draws when it is used.
    """
    from dfcrp.posterior.for_arviz import for_arviz
    from dfcrp.posterior.lazy import lazily

    counts = posterior.table_counts
    variables: dict[str, Array] = {"n_clusters": posterior.n_clusters}
    if np.isfinite(posterior.alpha).all():
        variables["alpha"] = posterior.alpha
    columns = posterior.draws.columns
    dims: dict[str, list[str]] = {}
    coords: dict[str, list[str]] = {dim: list(at) for dim, at in columns.coords.items()}
    for variable in columns.shared:
        variables[variable.name] = lazily(posterior.draws, variable)
        dims[variable.name] = list(variable.dims)
    for m, threshold in enumerate(counts.min_experts):
        name = f"n_at_least_{threshold}"
        variables[name], dims[name] = counts.counts[:, :, m, :], ["size_class"]
    coords["size_class"] = list(counts.size_classes)
    tree: DataTree = for_arviz({"posterior": variables}, coords=coords, dims=dims)
    return tree
