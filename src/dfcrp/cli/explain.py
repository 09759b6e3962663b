"""``dfcrp explain``: why one item is where it is."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    name="explain",
    options_metavar="[OPTIONS]",
    short_help="Say why an item is where it is.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("item", metavar="ITEM")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the neighbourhood into this file (.png, .svg or .pdf), where items have a place.",
)
def command(run: Path, item: str, figure: Path | None) -> None:
    """Say why ITEM (an id of members.csv) is where it is in the run folder RUN.

    Its candidate clusters with their probabilities, how far it lies from each in units of the
    fitted spread, which of them another item of the same expert keeps it out of, and with
    whom it sat how often.
    """
    from dfcrp.posterior.saving import load

    posterior = load(run).image_with(item)
    found = posterior.explain(item)
    click.echo(found.text())
    if figure is not None:
        from dfcrp.plots.neighbourhood import plot_neighbourhood
        from dfcrp.plots.style import save_as

        _, axes = plot_neighbourhood(posterior, found)
        save_as(axes.figure, figure)
        click.echo(f"\nfigure: {figure}")
