"""``dfcrp explain``: why one item is where it is."""

from __future__ import annotations

from pathlib import Path

import click

from dfcrp.cli.ground import likelihood_option


@click.command(
    name="explain",
    options_metavar="[OPTIONS]",
    short_help="Explain why an item is in its cluster.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("item", metavar="ITEM")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the neighbourhood into this file (.png, .svg or .pdf), if items have a position.",
)
@likelihood_option
def command(run: Path, item: str, figure: Path | None, likelihood: str | None) -> None:
    """Explain why ITEM (an id of members.csv) is in its cluster, in the run folder RUN.

    Shows the clusters it may belong to with their probabilities, its distance from each in units
    of the fitted spread, which of them already have another item of the same expert,
    and how often it shares a cluster with which items.
    """
    from dfcrp.posterior.saving import load

    posterior = load(run, likelihood=likelihood).image_with(item)
    found = posterior.explain(item)
    click.echo(found.text())
    if figure is not None:
        from dfcrp import plots
        from dfcrp.plots.style import save_as

        _, axes = plots.FIGURES["neighbourhood"].plot(posterior, found)
        save_as(axes.figure, figure)
        click.echo(f"\nfigure: {figure}")
