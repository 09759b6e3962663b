"""Experts who differ: found on known data, in the tables, and wherever a run may go."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.job import describe
from dfcrp.cli.main import main
from dfcrp.draws import Columns, Variable, shared_variable
from dfcrp.errors import SettingsError
from dfcrp.report.contents import Contents
from dfcrp.report.sections.experts import bias_table
from dfcrp.sampling import problem as problem_module
from dfcrp.sampling.chain import Chain
from dfcrp.settings.config import make_config
from studies import expert_bias, scaling
from studies.problems import make_problem

SETTINGS = {"chains": 2, "scans": 400, "burn_in": 100, "seed": 5}
COLUMNS = ["offset_x", "offset_y", "size_factor", "noise_factor"]


@pytest.fixture(scope="module")
def markings():
    """C draws 5 % larger, E errs twice as much; four images' worth of objects side by side."""
    parts = [expert_bias.draw("unlike", seed)[0] for seed in range(4)]
    return dfcrp.Items.circles(
        np.concatenate([part.x + 2000.0 * k for k, part in enumerate(parts)]),
        *(
            np.concatenate([getattr(p, role) for p in parts])
            for role in ("y", "diameter", "expert")
        ),
    )


@pytest.fixture(scope="module")
def posterior(markings):
    return dfcrp.fit(markings, expert_bias="both", **SETTINGS)


def test_what_was_planted_is_found(posterior, markings):
    """120 objects; a 95 % interval each for 24 numbers: 20 or fewer hold with probability 0.02."""
    truth = expert_bias.truth_of("unlike", markings)
    found = posterior.expert_bias.found
    assert found["size_factor"].lo[2] > 1.0
    assert found["noise_factor"].lo[4] > 1.5
    held = [(found[name].lo <= truth[name]) & (truth[name] <= found[name].hi) for name in COLUMNS]
    assert np.sum(held) > 20


def test_the_mean_marking_is_the_measure(posterior, markings):
    share = np.bincount(markings.families) / len(markings)
    offset, noise = (shared_variable(posterior.draws, name) for name in ("offset", "log_noise"))
    assert offset.shape == (*posterior.alpha.shape, len(markings.experts), 3)
    for values in (*np.moveaxis(offset, 3, 0), noise):
        assert np.abs(values @ share).max() < 1e-9


def test_tables_and_diagnostics(posterior, markings):
    row = posterior.summary()["experts"][0]
    assert set(row["noise_factor"]) == {"mean", "lo", "hi"}
    frame = posterior.experts()
    assert {f"{name}{end}" for name in COLUMNS for end in ("", "_lo", "_hi")} <= set(frame)
    judged = {diagnostic.name for diagnostic in posterior.verdict.diagnostics}
    assert {f"offset of {expert} in diameter" for expert in markings.experts} <= judged
    behind = {diagnostic.name for diagnostic in posterior.verdict.parameters}
    assert "how the scatter of diameters grows with diameter" in behind
    assert {f"scatter of {expert} relative to others" for expert in markings.experts} <= behind
    found = posterior.to_arviz().posterior
    assert found["offset"].dims == ("chain", "draw", "expert", "axis")
    assert found["offset"].sel(expert="C", axis="x").shape == posterior.alpha.shape
    words = posterior.expert_bias.in_words(markings.experts)
    assert "C draws largest" in words
    assert "E scatters most" in words
    assert words in describe(posterior).replace("\n", " ")
    page = str(bias_table(Contents(posterior), posterior.expert_bias))
    assert page.count("<tr>") == 1 + len(markings.experts)
    assert "noise" in page
    # A noisy expert's marking is not far off by the expert's own measure.
    assert "standard deviations" in posterior.explain(0).text()


def test_one_kind_of_difference_at_a_time(markings):
    for option, columns in (("offset", COLUMNS[:3]), ("precision", COLUMNS[3:]), ("none", [])):
        found = dfcrp.fit(markings, expert_bias=option, chains=1, scans=20, seed=1)
        assert [name for name in COLUMNS if name in found.experts()] == columns


def test_more_experts_than_can_be_judged():
    shared = (Variable("scale_x"), Variable("log_noise", ("expert",)))
    columns = Columns(shared=shared, coords={"expert": tuple(map(str, range(40)))})
    judged = [columns.names[at] for at in columns.judged]
    assert judged == ["scale_x", *(f"log_noise[{f}]" for f in range(25))]


def test_under_the_detection_prior(markings):
    """Learned by all samplers' common kernels; the prior's own parameters come after."""
    found = dfcrp.fit(markings, expert_bias="both", prior="detection", **SETTINGS)
    assert found.expert_bias.found["noise_factor"].lo[4] > 1.5
    assert found.expert_bias.found["size_factor"].lo[2] > 1.0
    assert abs(found.detection.numbers()["n_total"]["mean"] - 120) < 5


def test_by_the_papers_sampler_and_law(markings):
    settings = {"chains": 1, "scans": 60, "seed": 2, "preset": "simulation"}
    found = dfcrp.fit(markings, expert_bias="both", sampler="paper", **settings)
    assert np.isfinite(found.expert_bias.found["noise_factor"].mean).all()


def test_threads_change_nothing(markings, monkeypatch):
    monkeypatch.setattr(problem_module, "BLOCK_MARKINGS", 100)
    config = make_config({"likelihood": {"expert_bias": "both"}})
    problem = make_problem(markings.features, markings.families, config)
    assert len(problem.data.block_start) > 3
    one, two = (
        Chain(problem, np.random.SeedSequence(3), "exact", threads).run(20, 1) for threads in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_resumed_run_goes_on_where_it_was(markings, tmp_path):
    settings = {"chains": 2, "seed": 4, "expert_bias": "both"}
    dfcrp.fit(markings, out=tmp_path / "run", scans=30, **settings)
    longer = dfcrp.resume(tmp_path / "run", scans=60)
    whole = dfcrp.fit(markings, scans=60, **settings)
    np.testing.assert_array_equal(longer.labels, whole.labels)
    np.testing.assert_array_equal(longer.draws.shared(), whole.draws.shared())
    table = json.loads((tmp_path / "run" / "summary.json").read_text())["experts"]
    assert "size_factor" in table[0]


def test_the_unit_of_length_enters_the_offsets_alone(markings):
    config = make_config({"likelihood": {"expert_bias": "both"}})
    for factor in (1e-3, 50.0):
        other = scaling.in_unit(markings, factor)
        here, there = (
            make_problem(m.features, m.families, config).hyper.bias for m in (markings, other)
        )
        ratio = np.array(there.offset_sd) / here.offset_sd
        assert ratio == pytest.approx([factor, factor, 1.0])


def test_images_share_their_experts(markings):
    image = np.where(markings.x < 3000.0, "left", "right")
    both = dfcrp.Items.circles(
        markings.x, markings.y, markings.diameter, markings.expert, image=image
    )
    found = dfcrp.fit(both, expert_bias="both", images="shared", chains=2, scans=40)
    assert "noise_factor_lo" in found.experts()
    assert "noise_factor" in found.summary()["experts"][0]
    assert found["left"].expert_bias is not None


def test_on_independent_images_experts_differ_image_by_image(markings):
    """What they have in common needs shared images; an expert need not be on every image."""
    image = np.where(markings.x < 3000.0, "left", "right")
    kept = (image == "left") | (markings.expert != "A")
    columns = (markings.x, markings.y, markings.diameter, markings.expert)
    both = dfcrp.Items.circles(*(values[kept] for values in columns), image=image[kept])
    found = dfcrp.fit(both, expert_bias="both", chains=2, scans=40)
    assert found.expert_bias is None
    assert "noise_factor" not in found.experts()
    left, right = (found[name] for name in ("left", "right"))
    assert len(left.expert_bias.found["noise_factor"].mean) == len(markings.experts)
    assert len(right.expert_bias.found["noise_factor"].mean) == len(markings.experts) - 1
    assert "noise_factor_lo" in right.experts()


def test_not_for_records():
    with pytest.raises(SettingsError, match="not for records: values are text"):
        make_config({"run": {"likelihood": "records"}, "likelihood": {"expert_bias": "both"}})
    with pytest.raises(SettingsError, match="expert_bias"):
        make_config({"likelihood": {"expert_bias": "noise"}})


def test_the_command(markings, tmp_path):
    lists = tmp_path / "lists.csv"
    rows = zip(markings.x, markings.y, markings.diameter, markings.expert, strict=True)
    lists.write_text("x,y,diameter,expert\n" + "\n".join(",".join(map(str, r)) for r in rows))
    out = tmp_path / "run"
    options = ["--expert-bias", "both", "--scans", "30", "--chains", "1", "--no-report", "--quiet"]
    assert main(["fit", str(lists), "--out", str(out), *options]) == 0
    assert "size_factor_lo" in (out / "experts.csv").read_text().splitlines()[0]


def test_the_studies_run(tmp_path, capsys):
    expert_bias.main(["--out", str(tmp_path), "--datasets", "2", "--scans", "60"])
    scaling.main(["--out", str(tmp_path), "--scans", "20", "--chains", "1", "--size", "0.02"])
    assert "noise of E" in capsys.readouterr().out
    table = json.loads((tmp_path / "scaling.json").read_text())["table"]
    assert [row["run"] for row in table][-2:] == ["preset, in pixels", "the paper"]
