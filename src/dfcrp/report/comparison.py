"""What ``dfcrp compare`` writes: a table, a figure, and the paper's table of methods."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dfcrp.baselines.comparison import Comparison
from dfcrp.plots.style import COLOURS, INK, WIDE, new_axes, plain, save_figure, styled
from dfcrp.report.tables import (
    columns_of,
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from dfcrp.values import Json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's table of methods (tbl:method_summary): what each of them offers.
PUBLISHED: dict[str, dict[str, bool]] = {
    "Unspecified k": {
        "kmeans": False, "dbscan": True, "constrained": True,
        "crp": True, "ddcrp": True, "dfcrp": True,
    },
    "Scales w.r.t. features": {
        "kmeans": True, "dbscan": False, "constrained": True,
        "crp": True, "ddcrp": True, "dfcrp": True,
    },
    "UQ on assignment": {
        "kmeans": False, "dbscan": False, "constrained": False,
        "crp": True, "ddcrp": True, "dfcrp": True,
    },
    "Incorporates expert structure": {
        "kmeans": False, "dbscan": False, "constrained": True,
        "crp": False, "ddcrp": False, "dfcrp": True,
    },
}  # fmt: skip


def criteria_rows(comparison: Comparison) -> list[Json]:
    """The paper's table of methods; where the paper says otherwise the cell tells."""
    names = {outcome.title: outcome.name for outcome in comparison.outcomes}
    rows = []
    for row in comparison.features():
        published = PUBLISHED.get(row["criterion"], {})
        shown: Json = {"criterion": row["criterion"]}
        for title, name in names.items():
            held = row[title]
            mark = "✓" if held else "–"
            differs = name in published and published[name] != held
            shown[title] = f"{mark} (paper: {'✓' if published[name] else '–'})" if differs else mark
        rows.append(shown)
    return rows


def split_tables(comparison: Comparison) -> dict[str, list[Json]]:
    """The wide table in parts that fit a page."""
    rows = comparison.rows()
    wanted = {
        "Counts": ("method", "clusters", "breaking_rule", "at_least_"),
        "Agreement with the truth": ("method", "ari_truth", "vi_truth"),
        "Adjusted Rand index between methods": ("method", *_columns(comparison, "ari")),
        "Variation of information between methods (bits)": ("method", *_columns(comparison, "vi")),
        "Time": ("method", "seconds"),
    }
    tables = {}
    for title, prefixes in wanted.items():
        names = [name for name in columns_of(rows) if name.startswith(prefixes)]
        if "between" in title:
            names = [name for name in names if "truth" not in name]
        if len(names) > 1:
            tables[title] = [{name: row.get(name) for name in names} for row in rows]
    return tables


def _columns(comparison: Comparison, score: str) -> list[str]:
    return [f"{score}_{outcome.name}" for outcome in comparison.outcomes]


def draw_comparison(comparison: Comparison) -> Figure:
    """Counts by threshold and class on the left, agreement between methods on the right."""
    titles = [plain(outcome.title) for outcome in comparison.outcomes]
    with styled():
        left, right = new_axes(WIDE, 1.6 + 0.28 * len(titles), 1, 2)[0]
        keys = [key for key in comparison.outcomes[0].counts if key[1] == "all"]
        for number, key in enumerate(keys):
            values = [outcome.counts[key] for outcome in comparison.outcomes]
            place = np.arange(len(titles)) + 0.18 * (number - (len(keys) - 1) / 2)
            colour = COLOURS[number % len(COLOURS)]
            left.plot(values, place, "o", color=colour, markersize=4, label=f"≥ {key[0]}")
        left.set_yticks(range(len(titles)), titles)
        left.set_ylim(len(titles) - 0.5, -0.5)
        left.set_xlabel("clusters with at least this many experts")
        left.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4)
        low = min(float(comparison.ari.min()), 0.99)
        image = right.imshow(comparison.ari, cmap="Blues", vmin=low, vmax=1.0)
        for (row, other), value in np.ndenumerate(comparison.ari):
            dark = value > (1.0 + low) / 2
            right.text(
                other, row, f"{value:.3f}", ha="center", va="center", fontsize=6.5,
                color="white" if dark else INK,
            )  # fmt: skip
        names = [plain(outcome.name) for outcome in comparison.outcomes]
        right.set_xticks(range(len(titles)), names, rotation=90)
        right.set_yticks([])
        right.set_title("adjusted Rand index")
        right.figure.colorbar(image, ax=right, shrink=0.8)
    return left.figure


def write_comparison(
    comparison: Comparison, out: Path, settings: Mapping[str, object]
) -> dict[str, list[Json]]:
    """Write compare.csv, compare.json, compare.md and the figure; returns the page's tables."""
    prepare_out(out)
    tables = split_tables(comparison)
    parts = []
    for title, rows in tables.items():
        parts += [f"## {title}", markdown_table(rows)]
    broken = comparison.broken_claims()
    parts += [
        "## What each method offers",
        "As each method declares it, unless its result here shows otherwise"
        + (f" ({'; '.join(broken)})." if broken else " (none does)."),
        markdown_table(criteria_rows(comparison)),
        "![counts and agreement](compare.png)",
        "A cluster is counted if this many different experts share it; DBSCAN's threshold is its "
        "own minimum number of points, as in R14. Items that DBSCAN calls noise are alone. "
        "Agreement is between point partitions; with the truth it is the mean over draws "
        "(`_point`: of the point partition).",
    ]
    write_page(out / "compare.md", "Methods side by side", parts)
    write_csv(out / "compare.csv", comparison.rows())
    content = {**comparison.as_dict(), "provenance": provenance(**settings)}
    write_json(out / "compare.json", content)
    save_figure(draw_comparison(comparison), out, "compare")
    return tables
