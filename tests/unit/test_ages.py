"""Model ages: the table that CraterStats writes, what is refused, and the real program."""

import dataclasses
import re
import shutil
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

from dfcrp import craterstats
from dfcrp.cli.age import describe
from dfcrp.cli.main import main
from dfcrp.craterstats import Ages, Dating, check_chronology, find_command, model_ages
from dfcrp.errors import DfcrpError, SettingsError
from dfcrp.items.site import Site
from dfcrp.plots.sizes import draw_model_ages
from dfcrp.posterior.sizes import ModelAges, posterior_ages
from dfcrp.report.contents import Contents
from dfcrp.report.sections.ages import how_old, read_ages, write_ages
from reference.small_posteriors import random_posterior

REAL = shutil.which("craterstats", path=str(Path(sys.executable).parent)) or shutil.which(
    "craterstats"
)
needs_craterstats = pytest.mark.skipif(
    REAL is None, reason="the program craterstats is not installed (dfcrp[age], Python >= 3.12)"
)
#: Stands in for the program: N craters of at least LO are N / 10 Ga old.
PRETENDER = r"""#!{python}
import re, sys
from pathlib import Path
if sys.argv[1] == "-lcs":
    print("\nChronology systems:\nMoon, One (2001)\nMars, Two (2016)\n\nEpochs:\nThree")
    sys.exit()
lines = Path(sys.argv[2]).read_text().splitlines()
rows = [",,,words", "Name,Area,Age,Age-,Age+,N(1)"]
for line in lines:
    found = re.match(r"-p source=(\S+?),name=(\S+?),type=poisson,range=\[(\S+?),(\S+?)\]", line)
    if found:
        low, high = float(found[3]), float(found[4])
        cells = Path(found[1]).read_text().split("{{diameter")[1].split("}}")[0].split()
        n = sum(low <= float(d) < high for d in cells)
        rows.append(f"{{found[2]}},1,{{n / 10}},{{n / 20}},{{n / 5}},{{n / 100:.2e}}")
Path(sys.argv[2]).with_suffix(".csv").write_text("\n".join(rows), encoding="utf-8-sig")
"""
NEUKUM = "Moon, Neukum et al. (2001)"
DATING = Dating(area_km2=4.0, fit_range=(10.0, 60.0), chronology="Moon, One (2001)")


@pytest.fixture
def pretender(tmp_path):
    program = tmp_path / "craterstats"
    program.write_text(PRETENDER.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def in_km(posterior):
    site = Site("px", area_km2=4.0, metres_per_pixel=500.0)
    posterior.items = dataclasses.replace(posterior.items, site=site)
    return posterior


def test_every_draw_and_every_expert_is_dated(pretender, monkeypatch, tmp_path):
    monkeypatch.setattr(craterstats, "PER_CALL", 5)
    posterior = in_km(random_posterior(3))
    found = posterior_ages(posterior, pretender, DATING, draws=14, keep=tmp_path / "files")
    samples = posterior.consensus_diameters(2, 14)
    inside = [int(((d / 2 >= 10.0) & (d / 2 < 60.0)).sum()) for d in samples]
    assert found.draws.craters.tolist() == inside
    assert found.draws.age == pytest.approx([n / 10 if n else np.nan for n in inside], nan_ok=True)
    for name, craters, age in zip(
        found.experts, found.by_expert.craters, found.by_expert.age, strict=True
    ):
        own = posterior.items.diameter[posterior.items.expert == name] / 2
        assert craters == ((own >= 10.0) & (own < 60.0)).sum()
        assert age == pytest.approx(craters / 10 if craters else np.nan, nan_ok=True)
    rows = list(found.rows())
    assert len(rows) == 14 + 4
    assert (tmp_path / "files" / "ages2.csv").exists()  # 18 counts, five in a call


def test_the_counting_error_widens_the_posterior():
    """A normal law of each draw's age: the mixture's variance is the sum of both."""
    rng = np.random.default_rng(1)
    age = rng.normal(3.0, 0.2, 4000)
    draws = Ages(np.full(4000, 50), age, age - 0.1, age + 0.1, age)
    found = ModelAges(DATING, 2, draws, (), draws)
    total = found.with_counting_error()
    assert total.mean() == pytest.approx(age.mean(), abs=1e-3)
    # a hundred quantiles hold all but 2 % of a normal law's variance
    assert total.var() == pytest.approx(age.var() + 0.01, rel=0.01)
    uneven = dataclasses.replace(draws, high=age + 0.4)
    wider = ModelAges(DATING, 2, uneven, (), draws).total
    assert wider.lo == pytest.approx(found.total.lo, abs=0.02)
    assert wider.hi > found.total.hi + 0.2


def test_the_command(pretender, tmp_path, capsys):
    run = tmp_path / "run"
    in_km(random_posterior(3)).save(run)
    asked = ["age", str(run), "--fit-range", "10", "60", "--craterstats", pretender]
    assert main([*asked, "--chronology", "moon, one (2001)", "--draws", "7"]) == 0
    said = capsys.readouterr().out
    assert "Moon, One (2001); Poisson estimate, 10 to 60 km, 4 km²" in said
    assert "posterior, 2 or more experts" in said
    assert len((run / "ages.csv").read_text().splitlines()) == 1 + 2 * 3 + 4
    assert (run / "figures" / "ages.svg").exists()
    known = ["--chronology", "Moon, One (2001)"]
    for wrong, words in (
        (["--chronology", "Moon, On (2001)"], "did you mean 'Moon, One (2001)'"),
        ([*known, "--fit-range", "3", "2"], "the smaller one first"),
        ([*known, "--draws", "0"], "at least 1"),
        (["--body", "mars"], "choose its chronology"),
        ([*known, "--craterstats", str(tmp_path / "no")], "there is no such program"),
    ):
        assert main([*asked, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_what_is_missing_is_asked_for(pretender, tmp_path, capsys, monkeypatch):
    run = tmp_path / "run"
    random_posterior(3).save(run)
    asked = ["age", str(run), "--fit-range", "10", "60", "--craterstats", pretender]
    assert main(asked) == 2
    assert "give --area-km2" in capsys.readouterr().err
    assert main([*asked, "--area-km2", "4", "--chronology", "Moon, One (2001)"]) == 2
    assert "give --metres-per-pixel" in capsys.readouterr().err
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert main(asked[:5]) == 2
    assert "pip install 'dfcrp[age]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('Cannot fit to empty range')", "failed: Cannot fit to empty range"),
        ("pass", "gave no ages"),
        ("open(sys.argv[2][:-2] + 'csv', 'w').write('Name,Age\\n')", "cannot be read"),
    ],
)
def test_a_program_that_fails_is_told(body, words, tmp_path):
    program = tmp_path / "craterstats"
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    program.chmod(0o755)
    with pytest.raises(DfcrpError, match=words):
        model_ages(str(program), [np.array([20.0])], DATING)


def test_nothing_in_the_range_needs_no_program(tmp_path):
    found = model_ages(str(tmp_path / "none"), [np.array([5.0]), np.array([])], DATING)
    assert found.craters.tolist() == [0, 0]
    assert np.isnan(found.age).all()
    ages = Ages(*(np.array([v]) for v in (3, 1.0, 0.9, 1.1, 0.5)))
    table = ModelAges(DATING, 2, ages, ("Ann", "Bob"), found)
    assert describe(table).endswith("–")
    draw_model_ages(table)


@needs_craterstats
@pytest.mark.parametrize("method", craterstats.METHODS)
def test_the_real_program(method):
    """Counts drawn from the chronology's own curve: twice the craters, and an older surface."""
    rng = np.random.default_rng(2)
    few = 0.1 * rng.pareto(3.0, 300) + 0.1
    many = np.concatenate([few, 0.1 * rng.pareto(3.0, 300) + 0.1])
    dating = Dating(100.0, (0.1, 1.0), chronology=NEUKUM, method=method)
    found = model_ages(find_command(), [few, np.array([50.0]), many], dating)
    assert found.craters[0] == ((few >= 0.1) & (few < 1.0)).sum()
    assert np.isnan(found.age[1])
    assert found.low[0] < found.age[0] < found.high[0]
    assert 0.1 < found.age[0] < found.age[2] < 4.0
    assert found.density[2] == pytest.approx(2 * found.density[0], rel=0.3)


@needs_craterstats
def test_chronologies_of_the_real_program():
    with pytest.raises(SettingsError, match=rf"did you mean .*{re.escape(NEUKUM)}"):
        check_chronology(find_command(), "Moon, Neukum et (2001)")


@needs_craterstats
def test_isochrons_of_the_real_program():
    """At 1 km the cumulative one is the chronology function; R is D³ times the differential."""
    assert REAL is not None
    found = craterstats.isochron_curves(REAL, craterstats.MOON, 0.65, craterstats.LUNAR_EQUILIBRIUM)
    for age, (at, values) in found.isochrons["cumulative"]:
        n1 = 5.44e-14 * (np.exp(6.93 * age) - 1.0) + 8.38e-4 * age
        near = np.exp(np.interp(0.0, np.log(at), np.log(values)))
        assert near == pytest.approx(n1, rel=0.01)
    assert 0.65 in [age for age, _ in found.isochrons["relative"]]
    (at, per_km), (_, relative) = (
        found.isochrons[kind][0][1] for kind in ("differential", "relative")
    )
    np.testing.assert_allclose(relative, per_km * at**3, rtol=1e-5)
    assert found.levels["relative"] is not None


def test_the_report_shows_the_age_of_these_draws(tmp_path):
    """And not that of others: the run may have continued since."""
    posterior = random_posterior(3)
    ages = Ages(*(np.array(v) for v in ([4, 5], [0.4, 0.5], [0.3, 0.4], [0.5, 0.6], [0.1, 0.1])))
    experts = Ages(*(np.array([v]) for v in (0, np.nan, np.nan, np.nan, np.nan)))
    found = ModelAges(Dating(2.0, (0.1, 1.0)), 2, ages, ("<b>Ann</b>",), experts)
    write_ages(tmp_path, posterior, found, None)
    section = how_old(Contents(posterior, ages=read_ages(tmp_path, posterior)))
    assert section is not None
    text = str(section.html())
    assert "0.45" in text
    assert "&lt;b&gt;Ann&lt;/b&gt; alone" in text
    assert "0.1 to 1 km on 2 km²" in text
    # Intervals of 95 % and single standard errors have columns of their own.
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", text)
    assert heads == ["count", "craters", "age, Ga", "95 % interval", "one standard error"]
    (posterior_row, _, expert_row) = re.findall(r"<tr>(<td.*?)</tr>", text)
    assert posterior_row.endswith('<td class="number"></td>')
    assert expert_row.count("<td") == 5
    assert read_ages(tmp_path, random_posterior(4)) == {}
    assert how_old(Contents(posterior)) is None
