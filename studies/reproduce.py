"""``./run reproduce``: the paper's tables and figures beside the paper's own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.cli.main import run_safely

if TYPE_CHECKING:
    from dfcrp.sampling.runner import Progress

#: A short study: enough to see every table, in a minute or two.
QUICK_SIMULATION = {"datasets": 20, "scans": 1000, "burn_in": 250}


def _out(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--out", required=True, type=click.Path(path_type=Path), help="Folder for the results."
    )(function)


def _quick(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--quick", is_flag=True, help="A short version.")(function)


def _seed(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--seed", default=1, show_default=True, help="Seed.")(function)


def _data(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data",
        type=click.Path(path_type=Path),
        help="The R14 highlands markings; a generated stand-in without.",
    )(function)


@click.group(short_help="The paper's tables and figures, beside the paper's.")
def command() -> None:
    """Reproduce the paper's studies, each figure beside the paper's."""


class _Lines:
    """Progress: a line that is rewritten on a terminal, otherwise a line now and then."""

    def __init__(self, every_seconds: float = 30.0) -> None:
        self._terminal = sys.stderr.isatty()
        self._every = every_seconds
        self._last = 0.0

    def __call__(self, text: str, final: bool = False) -> None:
        now = time.monotonic()
        if self._terminal:
            click.echo(f"\r{text:<76}", err=True, nl=final)
        elif final or now - self._last >= self._every:
            self._last = now
            click.echo(text, err=True)


@command.command("simulation-study")
@_out
@_quick
@click.option("--datasets", type=int, help="Data sets of each design.  [default: 500]")
@click.option("--scans", type=int, help="Scans of each model.  [default: 10000]")
@click.option("--burn-in", type=int, help="Scans dropped at the start.  [default: 2000]")
@click.option(
    "--design",
    "designs",
    multiple=True,
    default=("paper",),
    show_default=True,
    help='One of the designs of dfcrp.simulate (repeatable), or "all".',
)
@click.option("--workers", type=int, help="Threads.  [default: all cores]")
@click.option(
    "--dask", metavar="ADDRESS|FILE", help="Do the data sets on this Dask cluster instead."
)
@_seed
def simulation_study(
    out: Path,
    quick: bool,
    datasets: int | None,
    scans: int | None,
    burn_in: int | None,
    designs: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    seed: int,
) -> None:
    """DFCRP, DFCRP with a radius and CRP on simulated data (section 7).

    Can be stopped at any time; the same command resumes it.
    """
    from dfcrp.simulate import DESIGNS
    from studies.simulation import Plan
    from studies.simulation_report import reproduce_simulation

    chosen: dict[str, Any] = dict(QUICK_SIMULATION) if quick else {}
    given = {"datasets": datasets, "scans": scans, "burn_in": burn_in}
    chosen |= {name: value for name, value in given.items() if value is not None}
    if scans is not None and burn_in is None:
        chosen["burn_in"] = scans // 5
    names = list(DESIGNS) if "all" in designs else list(dict.fromkeys(designs))
    plans = [Plan(design=name, seed=seed, **chosen) for name in names]
    show = _Lines()
    try:
        page = reproduce_simulation(out, plans, workers=workers, dask=dask, progress=show)
    except KeyboardInterrupt:
        click.echo("\nStopped; the same command resumes here.", err=True)
        raise
    click.echo(page.read_text(encoding="utf-8"))
    click.echo(f"Written to {out}")


@command.command("prior-table")
@_out
@_quick
@_seed
def prior_table(out: Path, quick: bool, seed: int) -> None:
    """The 21 partitions of two experts' items (supplement B.3), for each sampler."""
    from studies.prior_table import reproduce_prior_table

    shorter: dict[str, Any] = {"scans": 10_000, "thin": 5} if quick else {}
    reproduce_prior_table(out, seed=seed, **shorter)
    _show(out / "prior-table.md")


@command.command("radius")
@_out
@_data
@_quick
@_seed
def radius(out: Path, data: Path | None, quick: bool, seed: int) -> None:
    """Which clusters a radius would forbid, and the time it saves (section 6.1)."""
    from studies.highlands_data import load_highlands
    from studies.radius import RadiusLength, reproduce_radius

    length = (
        RadiusLength(2, 600, 200, timed_scans=100, whole_scans=60, seed=seed)
        if quick
        else RadiusLength(seed=seed)
    )
    show = _Lines(every_seconds=0.0)
    reproduce_radius(out, load_highlands(data, seed=seed), length, progress=show)
    show("radius: done", final=True)
    _show(out / "radius.md")


@command.command("highlands")
@_out
@_data
@_quick
@click.option("--chains", type=int, help="Chains.  [default: 4]")
@click.option("--scans", type=int, help="Scans of each chain.  [default: 3000]")
@click.option("--burn-in", type=int, help="Scans dropped at the start.  [default: a third]")
@click.option(
    "--run", type=click.Path(path_type=Path), help="Use this finished run instead of a new one."
)
@_seed
def highlands(
    out: Path,
    data: Path | None,
    quick: bool,
    chains: int | None,
    scans: int | None,
    burn_in: int | None,
    run: Path | None,
    seed: int,
) -> None:
    """Both tables and the figures of the lunar highlands image (section 8)."""
    from dfcrp.errors import InputError
    from dfcrp.posterior.saving import load
    from studies.highlands import HighlandsLength, fit_highlands, write_highlands
    from studies.highlands_data import load_highlands

    found = load_highlands(data, seed=seed)
    long = scans or (300 if quick else 3000)
    length = HighlandsLength(
        chains=chains or (2 if quick else 4),
        scans=long,
        burn_in=long // 3 if burn_in is None else burn_in,
        thin=1 if quick else 2,
        seed=seed,
    )
    show = _Lines()

    def watch(seen: Progress) -> None:
        show(f"chain {seen.chain + 1}: {seen.scans} of {seen.target} scans")

    posterior = fit_highlands(found, length, watch) if run is None else load(run)
    show("highlands: sampled", final=True)
    if posterior.markings.digest != found.markings.digest:
        raise InputError(f"{run}: is a run of other markings than --data (18 px and more)")
    write_highlands(out, posterior, found)
    _show(out / "highlands.md")


@command.command("mixing")
@_out
@_data
@_quick
@click.option("--seconds", type=float, help="Time of each chain.  [default: 60]")
@click.option("--chains", type=int, help="Chains of each sampler.  [default: 3]")
@_seed
def mixing(
    out: Path,
    data: Path | None,
    quick: bool,
    seconds: float | None,
    chains: int | None,
    seed: int,
) -> None:
    """Time to a given effective sample size, for each sampler (supplement B.3)."""
    from studies.highlands_data import load_highlands
    from studies.mixing import MixingLength, reproduce_mixing

    span = seconds or (5.0 if quick else 60.0)
    length = MixingLength(
        chains=chains or (1 if quick else 3), seconds=span, warm_up_seconds=span / 6, seed=seed
    )
    show = _Lines(every_seconds=0.0)
    reproduce_mixing(out, load_highlands(data, seed=seed), length, progress=show)
    show("mixing: done", final=True)
    _show(out / "mixing.md")


@command.command("crowds")
@_out
@_quick
@click.option(
    "--kind",
    type=click.Choice(["points", "circles", "boxes"]),
    default="points",
    show_default=True,
    help="What volunteers mark.",
)
@click.option(
    "--varied",
    is_flag=True,
    help="Small crowds of other kinds instead: few looks, clumped objects, poor volunteers, ...",
)
@_seed
def crowds(out: Path, quick: bool, kind: str, varied: bool, seed: int) -> None:
    """The detection prior on crowds of known skill: who is good, what is real.

    Can be stopped at any time; the same command resumes it.
    """
    from studies.crowds import plans_for, reproduce_crowds

    show = _Lines()
    page = reproduce_crowds(out, plans_for(quick, kind, seed, varied), progress=show)
    show("crowds: done", final=True)
    _show(page)


def _show(page: Path) -> None:
    click.echo(page.read_text(encoding="utf-8"))
    click.echo(f"Written to {page.parent}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a study and return the exit code, as ``dfcrp`` does."""
    return run_safely(command, arguments, "./run reproduce")


if __name__ == "__main__":
    sys.exit(main())
