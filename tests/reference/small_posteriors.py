"""Posteriors of a few markings, put together by hand: for figures, report and explanations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dfcrp.draws import ClusterBlock, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.items.site import Source
from dfcrp.persons import persons_of
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.base import Facts, PriorLayout
from dfcrp.priors.detection.prior import DETECTION
from dfcrp.priors.detection.settings import DetectionSettings
from dfcrp.runs.parts import RunRecord
from dfcrp.settings.config import Config, SummarySettings
from reference.detection_reference import draw_parameters
from reference.summary_reference import COLUMNS, canonical, random_valid_labels


def posterior_of(labels, markings, *, min_experts=2, config=None, rng=None) -> Posterior:
    """A posterior whose clusters sit at their members' means, with plausible covariances."""
    labels = np.array([[canonical(draw) for draw in chain] for chain in labels], np.int32)
    rng = np.random.default_rng(0) if rng is None else rng
    blocks = []
    for chain in labels:
        rows, names, offsets = [], [], [0]
        for draw in chain:
            for name in np.unique(draw):
                mean = markings.features[draw == name].mean(axis=0)
                a, d = rng.uniform(2.0, 6.0), rng.uniform(0.02, 0.05)
                rows.append([*mean, a, d, 0.3 * np.sqrt(a * d / 2.0)])
                names.append(name)
            offsets.append(len(names))
        blocks.append(
            ClusterBlock(np.array(offsets), np.array(names, np.int32), np.array(rows, np.float32))
        )
    alpha = rng.gamma(2.0, size=labels.shape[:2])
    draws = MemoryDraws(labels, alpha, blocks, COLUMNS)
    if config is None:
        thresholds = (min_experts, min_experts + 1)
        config = Config(summary=SummarySettings(min_experts=min_experts, thresholds=thresholds))
    record = RunRecord(
        scans=2 * labels.shape[1],
        burn_in=labels.shape[1],
        thin=1,
        seconds=1.5,
        tallies=[{"order_proposed": 10, "order_accepted": 4}] * len(labels),
    )
    return Posterior(draws, markings, config, record)


def random_markings(rng, families, names=None, base=None) -> Items:
    """Circles near the centres of the base partition's clusters, with a source."""
    n = len(families)
    base = np.arange(n) if base is None else np.asarray(base)
    centre = rng.uniform(0.0, 400.0, (n, 2))[base]
    size = rng.uniform(20.0, 150.0, n)[base]
    names = [f"expert {chr(65 + f)}" for f in range(max(families) + 1)] if names is None else names
    markings = Items.circles(
        x=centre[:, 0] + rng.normal(0.0, 3.0, n),
        y=centre[:, 1] + rng.normal(0.0, 3.0, n),
        diameter=size * rng.uniform(0.9, 1.1, n),
        expert=[names[f] for f in families],
        id=[f"m{i}" for i in range(n)],
    )
    source = Source("markings.csv", "ab" * 32, n + 3, n)
    return Items(**{**vars(markings), "sources": (source,)})


def random_posterior(seed=0, n=12, n_families=4, n_chains=2, n_draws=14, **options) -> Posterior:
    """Draws that resemble each other, over markings that lie near them."""
    rng = np.random.default_rng(seed)
    families = np.concatenate((np.arange(n_families), rng.integers(0, n_families, n - n_families)))
    base = random_valid_labels(rng, families)
    markings = random_markings(rng, families, options.pop("names", None), base)
    labels = [
        [random_valid_labels(rng, families, base) for _ in range(n_draws)] for _ in range(n_chains)
    ]
    return posterior_of(labels, markings, rng=rng, **options)


def under_detection(posterior: Posterior, seed: int = 0, persons=(), **settings) -> Posterior:
    """The same draws as if they were made under the detection prior, with random parameters."""
    rng = np.random.default_rng(seed)
    run = replace(posterior.config.run, prior="detection", persons=persons, images="shared")
    config = replace(posterior.config, run=run, prior=DetectionSettings(**settings))
    draws = posterior.draws
    layout = detection_layout(Posterior(draws, posterior.items, config, posterior.record))
    count = draws.n_chains * draws.n_draws
    renewed = MemoryDraws(
        posterior.labels,
        np.full(posterior.draws.alpha().shape, np.nan),
        [draws.clusters(chain, 0, draws.n_draws) for chain in range(draws.n_chains)],
        draws.columns._replace(shared=()).joined(layout.columns),
        draw_parameters(rng, layout.prior, count),
    )
    return Posterior(renewed, posterior.items, config, posterior.record)


def detection_layout(posterior: Posterior) -> PriorLayout:
    """The detection prior of the posterior's items and settings."""
    items, config = posterior.items, posterior.config
    persons = persons_of(items.experts, config.run.persons)
    log_sizes = posterior.likelihood.log_sizes(items)
    drawn = posterior.likelihood.size_parameter() is not None
    facts = Facts(items.families, items.experts, persons, log_sizes, drawn, **items.look_facts())
    return DETECTION.lay_out(facts, config.prior)
