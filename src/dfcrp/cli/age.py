"""``dfcrp age``: the posterior of the model age of a surface, by CraterStats."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.cli.ground import likelihood_option, site_options

if TYPE_CHECKING:
    from dfcrp.items.site import Site
    from dfcrp.posterior.sizes import ModelAges
    from dfcrp.values import Json

TABLE, FIGURE = "ages.csv", "ages"


@click.command(
    name="age",
    options_metavar="--fit-range LO HI [OPTIONS]",
    short_help="Estimate the model age of the surface, with CraterStats.",
)
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--fit-range",
    required=True,
    type=float,
    nargs=2,
    metavar="LO HI",
    help="Range of diameters to use, in km: where the count is complete.",
)
@click.option(
    "--draws", default=200, show_default=True, help="How many evenly spaced draws to use."
)
@click.option(
    "--min-experts",
    type=int,
    help="How many experts must share an object.  [default: as in the run]",
)
@click.option(
    "--chronology",
    metavar="NAME",
    help="Chronology system, as CraterStats names it.  [default: for the Moon "
    "'Moon, Neukum et al. (2001)']",
)
@click.option(
    "--method",
    type=click.Choice(["poisson", "d-fit", "c-fit"]),
    default="poisson",
    show_default=True,
    help="How CraterStats derives an age.",
)
@click.option(
    "--binning",
    type=click.Choice(["pseudo-log", "root-2", "10/decade", "20/decade"]),
    default="pseudo-log",
    show_default=True,
    help="Bins of the fits; poisson has none.",
)
@site_options
@click.option(
    "--craterstats",
    metavar="PROGRAM",
    help="The CraterStats program, if it is not on the path.",
)
@click.option(
    "--equilibrium",
    metavar="NAME",
    help="Equilibrium function for the figures, as CraterStats names it, or none.  [default: for "
    "the Moon Trask (1966)]",
)
@likelihood_option
@click.option("--no-report", is_flag=True, help="Leave report.html as it is.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the files made for CraterStats (.diam, .cs) and its tables in this folder.",
)
def command(
    run: Path, draws: int, min_experts: int | None, keep: Path | None, **options: Any
) -> None:
    """Estimate a model age from every draw of the run folder RUN, and from each expert's list.

    CraterStats does it: pip install 'dfcrp[age]'. Writes ages.csv and figures/ages into RUN, and
    the report again, with the age and with isochrons.
    """
    from dfcrp.cli.ground import FIGURE_FORMATS, told_site
    from dfcrp.cli.job import make_report
    from dfcrp.craterstats import Dating, check_chronology, find_command
    from dfcrp.errors import InputError, SettingsError
    from dfcrp.files import write_text
    from dfcrp.plots.sizes import draw_model_ages
    from dfcrp.plots.style import save_figure
    from dfcrp.posterior.saving import load
    from dfcrp.posterior.sizes import posterior_ages
    from dfcrp.report.sections.ages import write_ages
    from dfcrp.runs.folder import write_site

    program = find_command(options["craterstats"])
    posterior = load(run, likelihood=options["likelihood"])
    if posterior.many is not None:
        raise InputError(f"{run}: is a run over many images; fit the one to be dated with --image")
    site = told_site(posterior.markings.site, options)
    if site.area_km2 is None:
        raise SettingsError("ages need the area that was searched; give --area-km2")
    posterior.items = dataclasses.replace(posterior.items, site=site)
    dating = Dating(
        site.area_km2,
        tuple(options["fit_range"]),
        _chronology(options["chronology"], site),
        options["method"],
        options["binning"],
    )
    dating = dataclasses.replace(dating, chronology=check_chronology(program, dating.chronology))
    found = posterior_ages(
        posterior, program, dating, draws=draws, min_experts=min_experts, keep=keep
    )
    write_text(run, TABLE, _csv(found))
    figure = draw_model_ages(found).get_figure(root=True)
    png, *_ = save_figure(figure, run, f"figures/{FIGURE}", ("png", "svg", "pdf"))
    write_ages(run, posterior, found, _isochrons(program, found, options["equilibrium"]))
    click.echo(describe(found))
    click.echo(f"\n{run / TABLE}: one row per draw and expert\n{png}: the figure")
    if options["no_report"]:
        return
    if site != load(run, likelihood=options["likelihood"]).items.site:
        write_site(run, site)
    formats = [k for k in FIGURE_FORMATS if (run / "figures" / f"size_relative.{k}").exists()]
    make_report(posterior, run, quiet=False, figures=formats or ("svg",))
    click.echo(f"{run / 'report.html'}: with the age, and isochrons on the figures of sizes")


def _isochrons(program: str, found: ModelAges, given: str | None) -> Json | None:
    """Curves for the figures; a note if CraterStats cannot give them."""
    import numpy as np

    from dfcrp.craterstats import LUNAR_EQUILIBRIUM, isochron_curves
    from dfcrp.errors import DfcrpError

    chronology = found.dating.chronology
    level = given or (LUNAR_EQUILIBRIUM if chronology.startswith("Moon") else None)
    age = float(f"{found.matching.mean:.3g}") if np.isfinite(found.draws.age).any() else None
    try:
        return isochron_curves(
            program, chronology, age, None if level == "none" else level
        ).to_json()
    except DfcrpError as error:
        click.echo(f"dfcrp: note: the figures have no isochrons: {error}", err=True)
        return None


def _chronology(given: str | None, site: Site) -> str:
    from dfcrp.craterstats import MOON
    from dfcrp.errors import SettingsError
    from dfcrp.items.site import BODIES

    if given is not None:
        return given
    if site.body_radius_km not in (None, BODIES["moon"]):
        raise SettingsError(
            "the body is not the Moon; choose its chronology with --chronology "
            "(`craterstats -lcs` lists them)"
        )
    return MOON


def describe(found: ModelAges) -> str:
    """The posterior and the experts in a few lines."""
    import numpy as np

    from dfcrp.craterstats import METHODS
    from dfcrp.markup import estimate
    from dfcrp.settings.consensus import or_more

    low, high = found.dating.fit_range
    dated = np.isfinite(found.draws.age)
    lines = [
        f"{found.dating.chronology}; {METHODS[found.dating.method]}, {low:g} to {high:g} km, "
        f"{found.dating.area_km2:,g} km²",
        "",
        f"{'Model age in Ga':<34}{'craters':>9}{'mean':>8}   95 % interval",
    ]
    if dated.any():
        who = f"posterior, {or_more(found.min_experts)}"
        craters = f"{found.draws.craters.mean():.1f}"
        for name, value in ((who, found.matching), ("  with counting error", found.total)):
            mean, interval = estimate(value.mean, value.lo, value.hi).cells
            lines.append(f"{name:<34}{craters:>9}{mean:>8}   {interval}")
    lines += ["", f"{'Each expert alone':<34}{'craters':>9}{'age':>8}   one standard error"]
    for k, name in enumerate(found.experts):
        ages = found.by_expert
        age, error = estimate(ages.age[k], ages.low[k], ages.high[k]).cells
        error = "" if np.isnan(ages.age[k]) else f"   {error}"
        lines.append(f"{name:<34}{ages.craters[k]:>9}{age:>8}{error}")
    undated = len(dated) - int(dated.sum())
    if undated:
        lines.append(f"\n{undated} of {len(dated)} draws have no crater in the fit range.")
    return "\n".join(lines)


def _csv(found: ModelAges) -> str:
    import csv
    import io

    rows = list(found.rows())
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
