"""``dfcrp review``: go through the doubtful cases in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from dfcrp.cli.ground import likelihood_option


@click.command(
    name="review",
    options_metavar="[OPTIONS]",
    short_help="Decide doubtful cases in a browser.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, help="0: any.  [default: 8765]"
)
@click.option(
    "--token",
    metavar="TEXT",
    help="What a browser must know to get in.  [default: a random one]",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@click.option(
    "--images-from",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Show the images in this folder beneath the cases; files are named as the images are.",
)
@click.option("--blind", is_flag=True, help="Show no probabilities.")
@click.option(
    "--update-every",
    type=click.IntRange(min=0),
    default=5,
    metavar="N",
    help="Update the posterior after so many decisions; 0: never.  [default: 5]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PAGE.html",
    help="Write the page into a file that needs no server, and stop.",
)
@likelihood_option
def command(
    run: Path,
    port: int,
    token: str | None,
    no_browser: bool,
    images_from: Path | None,
    blind: bool,
    update_every: int,
    out: Path | None,
    likelihood: str | None,
) -> None:
    """Show the cases of the run folder RUN that are least certain, one by one, and keep decisions.

    The page is at http://127.0.0.1:PORT/, for this machine alone. Decisions are kept in
    RUN/review/decisions.csv, for `dfcrp fit --decisions`; the run itself stays as it is.
    """
    from dfcrp.review.job import Job

    job = Job(run, images_from, likelihood)
    if out is not None:
        from dfcrp.review.page import write_page

        write_page(job, out, blind=blind)
        click.echo(f"Open {out} in a browser; it needs no server.")
        return
    from dfcrp.review.serve import serve

    serve(
        job,
        port=port,
        token=token,
        blind=blind,
        every=update_every,
        browser=not no_browser,
        tell=click.echo,
    )
