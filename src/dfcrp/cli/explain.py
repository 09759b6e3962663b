"""``dfcrp explain``: why one marking is where it is."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    name="explain",
    options_metavar="[OPTIONS]",
    short_help="Say why a marking is where it is.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("marking", metavar="MARKING")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw the neighbourhood into this file (.png, .svg or .pdf).",
)
def command(run: Path, marking: str, figure: Path | None) -> None:
    """Say why MARKING (an id of members.csv) is where it is in the run folder RUN.

    Its candidate clusters with their probabilities, how far it lies from each in units of the
    fitted spread, which of them another marking of the same expert keeps it out of, and with
    whom it sat how often.
    """
    from dfcrp.posterior.saving import load

    posterior = load(run)
    posterior = posterior.image_with(marking)
    found = posterior.explain(marking)
    click.echo(found.text())
    if figure is not None:
        from dfcrp.plots.neighbourhood import plot_neighbourhood
        from dfcrp.plots.style import save_as

        _, axes = plot_neighbourhood(posterior, found)
        save_as(axes.figure, figure)
        click.echo(f"\nfigure: {figure}")
