"""A click command whose many options are listed under headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

#: Options that no heading names.
OTHERS = "Other options"


class GroupedCommand(click.Command):
    """Lists its options under headings, the most used first.

    ``headings`` has the names of parameters by heading; ``example`` is shown where a file or an
    option is missing.
    """

    def __init__(
        self,
        *arguments: Any,
        headings: Mapping[str, Sequence[str]],
        example: str,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.headings, self.example = headings, example

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Called by click for --help."""
        records = {
            str(option.name): record
            for option in self.get_params(ctx)
            if (record := option.get_help_record(ctx)) is not None
        }
        for head, names in self.headings.items():
            with formatter.section(head):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section(OTHERS):
            formatter.write_dl(list(records.values()))
