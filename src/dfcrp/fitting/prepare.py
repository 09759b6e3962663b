"""Items and settings, checked and in agreement with each other, before anything is drawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.items.matrix import items_of
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.persons import check_groups, groups_by_person, persons_of
from dfcrp.priors.registry import prior_named
from dfcrp.runs.parts import most_experts
from dfcrp.settings.config import Config, load_config, resolve, with_run

AnyConfig = Config | Mapping[str, Any] | str | os.PathLike[str] | None


def prepare(
    data: Items | Any,
    config: AnyConfig,
    settings: dict[str, Any],
    *,
    families: Any = None,
    likelihood: str | None = None,
    candidates: Any = None,
) -> tuple[Items, Config]:
    """Items and all settings, checked and in agreement with each other."""
    if not isinstance(data, Items):
        asked = resolve(config, {**settings, **({"likelihood": likelihood} if likelihood else {})})
        kind = asked.run.likelihood if likelihood or "likelihood" in _run(config) else "diagonal"
        data = items_of(data, families, kind, candidates)
        if families is None:
            settings = {"prior": "crp", **settings}
    elif families is not None or candidates is not None:
        raise InputError("families and candidates are for a matrix; these items have their own")
    named = {"likelihood": likelihood or _run(config).get("likelihood", data.kind), **settings}
    settled = resolve(config, named, most_experts(data))
    if settled.run.likelihood != data.kind:
        raise SettingsError(
            f'run.likelihood is "{settled.run.likelihood}", but these items are {data.kind}'
        )
    part = likelihood_named(data.kind)
    settled = replace(settled, likelihood=part.adapt(data, settled.likelihood))
    settled = with_persons(settled, data)
    check_fittable(data, settled)
    return data, settled


def _run(config: Any) -> Mapping[str, Any]:
    """The section [run] of a config of any form, for whether it names something."""
    if config is None or isinstance(config, Config):
        return {} if config is None else {"likelihood": config.run.likelihood}
    tables = config if isinstance(config, Mapping) else load_config(config)
    found = tables.get("run", {})
    return found if isinstance(found, Mapping) else {}


def with_persons(config: Config, items: Items) -> Config:
    """Settings that know from the items which lists are one person's, unless they say it."""
    if config.run.persons or items.person is None:
        return config
    groups = groups_by_person(items.id.tolist(), items.expert.tolist(), items.person.tolist())
    return with_run(config, persons=groups)


def check_fittable(items: Items, config: Config) -> None:
    """Refuse what would be fitted wrongly in silence."""
    check_groups(items.experts, config.run.persons)
    prior_named(config.run.prior).check(persons_of(items.experts, config.run.persons))
    likelihood_named(config.run.likelihood).check(items, config)


def refuse_several_images(markings: Items) -> None:
    """For work that is done on one image."""
    if len(markings.images) > 1:
        names = ", ".join(markings.images[:5])
        raise InputError(
            f"the markings are on {len(markings.images)} images ({names}...), and this is done on "
            "one; choose it with image= (--image)"
        )
