"""What the report says of records: which may be of one object, and how often fields are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dfcrp.likelihoods.record.fields import AGREEMENTS, MANY_FIELDS
from dfcrp.markup import (
    Column,
    Section,
    interval,
    join,
    listed,
    paragraph,
    significant,
    table,
)

#: What is learned of a field, as the names of the numbers begin.
MISS, TYPO = "miss_", "typo_"
#: Fields that are named in a sentence.
WORST = 4


def reach_words(keys: list[list[str]] | None, n_fields: int) -> list[str]:
    """Which records could share a cluster."""
    if keys is None:
        where = f"any {AGREEMENTS} fields" if n_fields >= MANY_FIELDS else "any field"
    else:
        where = listed([" and ".join(key) for key in keys])
    return [f"Two records could only share a cluster if they agree in {where}."]


def learned_words(found: Mapping[str, Any]) -> list[str]:
    """The most frequent faults."""
    worst = sorted(found, key=lambda name: -found[name]["mean"])[:WORST]
    rates = ", ".join(
        f"{'wrong values' if name.startswith(MISS) else 'typos'} in "
        f"{name.removeprefix(MISS).removeprefix(TYPO)} ({found[name]['mean']:.2g} %)"
        for name in worst
    )
    return [f"Learned from the data, the most frequent faults: {rates}."]


def faults(contents: Any) -> Section | None:
    """The learned rates, field by field."""
    posterior = contents.posterior
    found = posterior.tolerances
    if not found:
        return None
    rows = []
    for field in posterior.items.columns:
        cells: list[object] = [field]
        for fault in (TYPO, MISS):
            rate = found[fault + field]
            cells += [significant(rate["mean"], 2), interval(rate["lo"], rate["hi"], 2)]
        rows.append(cells)
    columns = [
        Column("field", number=False),
        Column("typo, %"),
        Column("95 %"),
        Column("wrong, %"),
        Column("95 %"),
    ]
    caption = (
        "Faults in percent of the values of a field. A typo is a typing error, or of a number a "
        "value nearby; wrong is any other value than that of the object."
    )
    words = [paragraph(words) for words in posterior.likelihood.learned_words(found)]
    body = join([*words, table(columns, rows, caption)])
    return Section("learned", "How often are fields wrong?", body)
