"""What the report says of records: which may be of one object, and how often fields are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def reach_words(settings: Any) -> list[str]:
    """Which records could be of one object."""
    keys = settings.split_keys
    if keys is None:
        return ["Records were compared if they agree in two fields, or in one of fewer than four."]
    return [f"Records were compared if they agree in {listed([' and '.join(k) for k in keys])}."]


def learned_words(found: Mapping[str, Any]) -> list[str]:
    """The most frequent faults."""
    worst = sorted(found, key=lambda name: -found[name]["mean"])[:WORST]
    rates = ", ".join(
        f"{name.removeprefix(MISS).removeprefix(TYPO)} "
        f"{'wrong' if name.startswith(MISS) else 'a typo'} in {found[name]['mean']:.2g} %"
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
