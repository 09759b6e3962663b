"""Ratios of a benchmark against those of a baseline, and a picture of them.

Seconds differ from machine to machine; ratios of times taken in turns in one run differ far less.
A ratio has regressed if it is worse than the baseline's by more than the tolerance, and the two
spreads do not meet.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError

#: How much worse a ratio may be: a quarter, as noise on a shared machine makes it.
TOLERANCE = 0.25


@dataclass(frozen=True)
class RatioVerdict:
    """One ratio against its baseline."""

    bench: str
    ratio: str
    value: float
    baseline: float
    regressed: bool

    def line(self) -> str:
        """In words."""
        sign = "REGRESSED" if self.regressed else "ok"
        return f"{sign:9} {self.bench}: {self.ratio}: {self.value:.3g}, was {self.baseline:.3g}"


def read_results(path: Path) -> dict[str, Any]:
    """Results by the name of the benchmark, from a file of ``./run bench --json``."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = {"": content} if "bench" in content else content
        return {result["bench"]: result for result in found.values()}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path}: is not what `./run bench --json` writes") from None


def compare(
    results: dict[str, Any], baseline: dict[str, Any], tolerance: float = TOLERANCE
) -> list[RatioVerdict]:
    """Each ratio that both have."""
    verdicts = []
    for bench, result in results.items():
        known = baseline.get(bench, {}).get("ratios", {})
        for name, now in result.get("ratios", {}).items():
            if name in known:
                worse = _is_worse(now, known[name], tolerance)
                verdicts.append(
                    RatioVerdict(bench, name, now["value"], known[name]["value"], worse)
                )
    return verdicts


def _is_worse(now: dict[str, Any], then: dict[str, Any], tolerance: float) -> bool:
    if now["better"] == "higher":
        beyond = now["value"] < then["value"] * (1.0 - tolerance)
        return beyond and now["spread"][1] < then["spread"][0]
    beyond = now["value"] > then["value"] * (1.0 + tolerance)
    return beyond and now["spread"][0] > then["spread"][1]


def draw_ratios(results: dict[str, Any]) -> Any:
    """A row for each ratio: a dot, its spread as a line, on a logarithmic axis."""
    from dfcrp.plots.style import INK, WIDE, single_axes, styled

    rows = [
        (f"{name}\n({bench}; {entry['better']} is better)", entry)
        for bench, result in results.items()
        for name, entry in result.get("ratios", {}).items()
    ][::-1]
    with styled():
        ax = single_axes(WIDE, 0.8 + 0.42 * len(rows))
        for place, (_, entry) in enumerate(rows):
            ax.plot(entry["spread"], [place, place], color=INK, lw=1.0)
            ax.plot([entry["value"]], [place], "o", color=INK, ms=4)
            ax.annotate(
                f"{entry['value']:.3g}", (entry["value"], place), (0, 5), "data",
                textcoords="offset points", ha="center", fontsize=6.5,
            )  # fmt: skip
        ax.axvline(1.0, color="0.7", lw=0.8, zorder=0)
        ax.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=6.5)
        ax.set(xscale="log", xlabel="ratio of times (middle half)", ylim=(-0.6, len(rows) - 0.4))
    return ax
