"""Is it real, who is good, do we need more looks? The detection prior on made-up crowds.

Every data set is a crowd of known skills (``studies.made_up_crowds``). The study says how close the
estimated skills are, how often 95 % intervals of skills, of the objects on each image and of their
total hold the truth, whether spammers are found, and how well ``p_real`` tells real objects from
false marks, beside other ways to do so. These take the clusters of the DFCRP or their own, and the
threshold that the truth says is best.

Run it by ``./run reproduce crowds --out DIR``; it can be stopped, and the same command resumes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp import __version__
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import mostly_false
from dfcrp.report.tables import markdown_table, write_json
from studies.crowd_rivals import judge_categories, judge_rivals, scores, skipped
from studies.made_up_crowds import Crowd, CrowdDesign, make_crowd
from studies.numbers import describe
from studies.store import ResultStore

Floats = NDArray[np.float64]
#: Bins of the probability of being real.
EDGES = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])


@dataclass(frozen=True)
class CrowdPlan:
    """Which crowds, and how long a run on each is."""

    design: CrowdDesign = field(default_factory=CrowdDesign)
    datasets: int = 1
    scans: int = 1500
    burn_in: int = 500
    chains: int = 2
    seed: int = 1
    rivals: bool = True

    def identity(self) -> dict[str, Any]:
        """What a result depends on besides its number."""
        chosen = asdict(self)
        del chosen["datasets"]
        return {**chosen, "dfcrp": __version__}


#: One crowd as large as a small project's, and many small ones for the coverage of totals.
LARGE = CrowdPlan()
SMALL = CrowdPlan(
    design=CrowdDesign(images=60, volunteers=20, spammers=2), datasets=20, scans=900, burn_in=300
)
#: Small crowds of other kinds: what each differs in.
VARIED: dict[str, dict[str, Any]] = {
    "clumped": {"clumped": 0.3},
    "uneven images": {"spread": 0.5},
    "three looks": {"looks": 3},
    "four looks": {"looks": 4},
    "found by size": {"by_size": 1.5, "kind": "circles"},
    "newcomers": {"newcomers": 30},
    "mostly poor": {"poor": 3.0},
    "scores": {"scores": True, "kind": "boxes"},
    "no categories": {"categories": 0},
}


def run_crowd(plan: CrowdPlan, index: int) -> dict[str, Any]:
    """The detection prior and its rivals on one crowd."""
    crowd = make_crowd(plan.design, [plan.seed, index])
    start = time.process_time()
    posterior = _fit(plan, crowd, "detection", index)
    seconds = time.process_time() - start
    found = judge(crowd, posterior)
    found |= {"markings": len(crowd.items), "seconds": seconds}
    if plan.rivals:
        start = time.process_time()
        plain = _fit(plan, crowd, "dfcrp", index)
        found["seconds, dfcrp"] = time.process_time() - start
        found["methods"] |= judge_rivals(crowd, plain)
        found["categories"] = judge_categories(crowd, posterior)
    return found


def _fit(plan: CrowdPlan, crowd: Crowd, prior: str, index: int) -> Posterior:
    return dfcrp.fit(
        crowd.items,
        prior=prior,
        # Each prior as it is by default: the DFCRP knows nothing of who looked, and over images
        # that share their experts it takes those who did not look for ones who missed all.
        images="auto",
        chains=plan.chains,
        scans=plan.scans,
        burn_in=plan.burn_in,
        seed=1000 * plan.seed + index,
        progress=False,
    )


def judge(crowd: Crowd, posterior: Posterior) -> dict[str, Any]:
    """What the detection prior says, beside the truth."""
    found = posterior.detection
    assert found is not None
    assert found.seen_on is not None
    assert found.missed_on is not None
    rows = {row["expert"]: row for row in posterior.summary()["experts"]}
    said = [rows[name] for name in crowd.experts]
    chains = posterior.draws.n_chains
    there = (found.seen_on + found.missed_on).reshape(chains, -1, len(found.image_names))
    counts = [
        describe(there[:, :, at], crowd.objects[name]) for at, name in enumerate(found.image_names)
    ]
    total = (found.seen + found.missed)[:, 0].reshape(chains, -1)
    named = set(mostly_false(posterior))
    spammers = {name for name, spam in zip(crowd.experts, crowd.spammer, strict=True) if spam}
    labels = posterior.point_partition().labels
    skills = _intervals([row["sensitivity"] for row in said], crowd.skill)
    return {
        "skills": skills,
        "false marks": _intervals([row["false_marks_per_image"] for row in said], crowd.false_rate),
        "images": {
            "held": [count["equal"]["covers"] for count in counts],
            "exact": [count["exact"] for count in counts],
            "error": [count["mean"] - count["truth"] for count in counts],
        },
        "total": describe(total, sum(crowd.objects.values())),
        "spammers": len(spammers),
        "spammers found": len(spammers & named),
        "honest named": len(named - spammers),
        "skills of spammers": _of(skills, crowd.spammer),
        "binned": _binned(found.p_real_marking, crowd.real),
        "methods": {"detection": scores(crowd, labels, found.p_real_marking)},
    }


def _intervals(said: Sequence[dict[str, float]], truth: Floats) -> dict[str, Any]:
    mean, lo, hi = (np.array([one[name] for one in said]) for name in ("mean", "lo", "hi"))
    return {
        "truth": truth.tolist(),
        "mean": mean.tolist(),
        "held": ((lo <= truth) & (truth <= hi)).tolist(),
        "width": (hi - lo).tolist(),
    }


def _of(intervals: dict[str, Any], chosen: NDArray[np.bool_]) -> dict[str, Any]:
    return {name: np.array(values)[chosen].tolist() for name, values in intervals.items()}


def _binned(p_real: Floats, real: NDArray[np.bool_]) -> dict[str, list[float]]:
    bins = len(EDGES) - 1
    place = np.clip(np.searchsorted(EDGES, p_real, side="right") - 1, 0, bins - 1)
    return {
        "count": np.bincount(place, minlength=bins).tolist(),
        "said": np.bincount(place, p_real, minlength=bins).tolist(),
        "real": np.bincount(place, real.astype(np.float64), minlength=bins).tolist(),
    }


def reproduce_crowds(
    out: Path, plans: dict[str, CrowdPlan], progress: Callable[[str], None] | None = None
) -> Path:
    """Run the plans, resume what is there, and write ``crowds.md`` and ``crowds.json``."""
    tables: dict[str, Any] = {}
    for name, plan in plans.items():
        store = ResultStore(out / name, plan.identity())
        results = []
        for index in range(plan.datasets):
            if progress:
                progress(f"crowds: {name}, {index + 1} of {plan.datasets}")
            if (found := store.load(index)) is None:
                store.save(index, run_crowd(plan, index))
                found = store.load(index)
            assert found is not None
            results.append(found)
        tables[name] = together(results)
    write_json(out / "crowds.json", tables)
    page = out / "crowds.md"
    page.write_text(_page(plans, tables), encoding="utf-8")
    return page


def together(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all data sets of a plan."""

    def pooled(part: str, name: str) -> Floats:
        return np.concatenate([np.array(one[part][name], float) for one in results])

    skills = [np.corrcoef(r["skills"]["truth"], r["skills"]["mean"])[0, 1] for r in results]
    binned = {
        name: np.sum([one["binned"][name] for one in results], axis=0)
        for name in ("count", "said", "real")
    }
    many = np.maximum(binned["count"], 1)
    return {
        "data sets": len(results),
        "markings": float(np.mean([one["markings"] for one in results])),
        "correlation of skills": float(np.mean(skills)),
        "coverage, skills": float(pooled("skills", "held").mean()),
        "coverage, skills of spammers": float(pooled("skills of spammers", "held").mean()),
        "coverage, false marks": float(pooled("false marks", "held").mean()),
        "coverage, objects on an image": float(pooled("images", "held").mean()),
        "coverage, objects on an image, exact": float(pooled("images", "exact").mean()),
        "error of objects on an image": float(pooled("images", "error").mean()),
        "coverage, total": float(np.mean([one["total"]["equal"]["covers"] for one in results])),
        "coverage, total, exact": float(np.mean([one["total"]["exact"] for one in results])),
        "error of the total": float(
            np.mean([one["total"]["mean"] - one["total"]["truth"] for one in results])
        ),
        "spammers": int(np.sum([one["spammers"] for one in results])),
        "spammers found": int(np.sum([one["spammers found"] for one in results])),
        "honest named": int(np.sum([one["honest named"] for one in results])),
        "seconds": float(np.mean([one["seconds"] for one in results])),
        "p_real": [
            {"from": a, "to": b, "markings": int(n), "said": s / m, "real": r / m}
            for a, b, n, s, r, m in zip(
                EDGES[:-1], EDGES[1:], binned["count"], binned["said"], binned["real"], many,
                strict=True,
            )
        ],
        "methods": {
            name: {
                score: float(np.mean([one["methods"][name][score] for one in results]))
                for score in ("brier", "f1")
            }
            for name in results[0]["methods"]
        },
        "categories": {
            name: {
                score: float(np.mean([one["categories"][name][score] for one in results]))
                for score in ("right", "brier")
            }
            for name in results[0].get("categories", {})
        },
    }  # fmt: skip


def _page(plans: dict[str, CrowdPlan], tables: dict[str, Any]) -> str:
    parts = ["# Made-up crowds\n"]
    for name, plan in plans.items():
        found, design = tables[name], plan.design
        parts.append(
            f"## {name}: {design.images} images, {design.volunteers} volunteers of whom "
            f"{design.spammers} are spammers, {design.looks} looks each, {design.kind}\n\n"
            f"{found['data sets']} data sets of about {found['markings']:.0f} markings; "
            f"{plan.chains} chains of {plan.scans} scans.\n"
        )
        rows = [
            {"what": what, "value": value if isinstance(value, int) else f"{value:.3f}"}
            for what, value in found.items()
            if isinstance(value, int | float)
        ]
        parts.append(markdown_table(rows))
        parts.append(
            markdown_table(
                [
                    {"method": method, "Brier": f"{s['brier']:.4f}", "F1": f"{s['f1']:.3f}"}
                    for method, s in found["methods"].items()
                ]
            )
        )
        if found["categories"]:
            parts.append(
                markdown_table(
                    [
                        {
                            "category by": method,
                            "right": f"{s['right']:.3f}",
                            "Brier": f"{s['brier']:.4f}",
                        }
                        for method, s in found["categories"].items()
                    ]
                )
            )
        parts.append(
            markdown_table(
                [
                    {
                        "p_real": f"{row['from']:g} to {row['to']:g}",
                        "markings": row["markings"],
                        "said": f"{row['said']:.3f}",
                        "real": f"{row['real']:.3f}",
                    }
                    for row in found["p_real"]
                ]
            )
        )
    parts.extend(f"Left out, {reason}.\n" for reason in skipped())
    return "\n\n".join(part.strip() for part in parts) + "\n"


def plans_for(quick: bool, kind: str, seed: int, varied: bool = False) -> dict[str, CrowdPlan]:
    """The plans of the study, or short ones; ``varied``: those of crowds of other kinds."""
    plans = {"small": SMALL, "large": LARGE}
    if quick:
        plans = {"small": replace(SMALL, datasets=2, scans=450, burn_in=150)}
    if varied:
        few = replace(SMALL, datasets=2 if quick else 10, scans=600, burn_in=200)
        plans = {
            name: replace(few, design=replace(few.design, **differs))
            for name, differs in VARIED.items()
        }
    return {
        name: replace(
            plan,
            seed=seed,
            design=replace(
                plan.design, kind=kind if plan.design.kind == "points" else plan.design.kind
            ),
        )
        for name, plan in plans.items()
    }
