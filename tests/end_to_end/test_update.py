"""An update gives what a new run with all items gives, and leaves the old run as it is."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.joining import with_more
from dfcrp.items.learned import Learned
from dfcrp.runs.folder import read_beginning
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.seats import seats_of

SETTINGS = {"chains": 2, "scans": 60, "burn_in": 20, "seed": 3, "workers": 1, "progress": False}


def rows(n_objects=14, experts="abcd", seed=1):
    """Circles that most experts list."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(n_objects):
        place, size = rng.uniform(0, 60, 2), rng.uniform(3, 6)
        for expert in experts:
            if rng.random() < 0.8:
                x, y = place + rng.normal(0, 0.3, 2)
                found.append((x, y, size * np.exp(rng.normal(0, 0.05)), expert, f"{expert}{k}"))
    return found


def circles(some):
    x, y, d, expert, ids = zip(*some, strict=True)
    return dfcrp.Items.circles(x, y, d, expert, id=ids)


def write(path, some):
    lines = [",".join(map(str, row)) for row in some]
    path.write_text("\n".join(["x,y,diameter,expert,id", *lines, ""]))


def files_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_command(tmp_path, capsys):
    whole = rows()
    old, new = [row for row in whole if row[3] != "d"], [row for row in whole if row[3] == "d"]
    corrected = (*old[0][:2], 9.5, *old[0][3:])
    write(tmp_path / "old.csv", old)
    write(tmp_path / "new.csv", [*new, corrected])
    run = tmp_path / "run"
    given = ["--scans", "40", "--chains", "2", "--no-report", "--quiet"]
    assert main(["fit", str(tmp_path / "old.csv"), "--out", str(run), *given]) == 0
    before = files_of(run)
    (tmp_path / "said.csv").write_text(
        f"decision,items,by\nslip,{old[1][4]},ann\napart,{old[2][4]} {old[3][4]},bob\n"
    )
    command = ["update", str(run), str(tmp_path / "new.csv"), "--decisions"]
    assert main([*command, str(tmp_path / "said.csv"), "--no-report", "--scans", "40"]) == 0
    assert f"{len(new):,} new items, 1 corrected, 2 decisions" in capsys.readouterr().err
    assert files_of(run) == before
    made = dfcrp.load(tmp_path / "run-2")
    assert len(made.items) == len(whole) - 1
    assert made.items.diameter[0] == 9.5
    assert [one.by for one in made.items.decisions] == ["ann", "bob"]
    [note] = made.items.updates
    assert (note["new"], note["corrected"], note["decisions"]) == (len(new), 1, 2)
    provenance = json.loads((tmp_path / "run-2" / "provenance.json").read_text())
    assert provenance["updates"] == [dict(note)]
    # Again, and what was decided is taken back.
    (tmp_path / "back.csv").write_text(f"decision,items,by\nwithdraw,{old[1][4]},ann\n")
    command = ["update", str(tmp_path / "run-2"), "--decisions", str(tmp_path / "back.csv")]
    assert main([*command, "--out", str(tmp_path / "third"), "--no-report", "--quiet"]) == 0
    third = dfcrp.load(tmp_path / "third")
    assert len(third.items) == len(whole)
    assert len(third.items.updates) == 2
    assert main(["update", str(run), "--quiet"]) == 2
    assert "nothing to update" in capsys.readouterr().err


def test_chains_begin_with_the_last_clusters():
    whole = rows()
    posterior = dfcrp.fit(circles(whole[:-4]), **SETTINGS)
    more = posterior.update(circles(whole[-4:]), scans=60)
    start = more.items.start
    assert start.shape == (2, len(whole))
    assert (start[:, -4:] == -1).all()
    assert (start[:, :-4] == posterior.labels[:, -1]).all()
    lead = seats_of((made := problem_of(more.items, more.config)).data, start[1])
    last = posterior.labels[1, -1]
    again = lead[made.data.internal]
    same = last[:, None] == last
    assert (same == (again[:-4, None] == again[:-4])).all()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_update_leaves_the_run_whole_and_goes_on(tmp_path):
    whole, run, out = rows(), tmp_path / "run", tmp_path / "next"
    write(tmp_path / "old.csv", whole[:-4])
    write(tmp_path / "new.csv", whole[-4:])
    settings = tmp_path / "settings.toml"
    settings.write_text("[run]\ncheckpoint_seconds = 0\nchains = 2\nscans = 40\nworkers = 1\n")
    given = ["--config", str(settings), "--no-report", "--quiet"]
    assert main(["fit", str(tmp_path / "old.csv"), "--out", str(run), *given]) == 0
    before, labels = files_of(run), dfcrp.load(run).labels
    command = ["update", str(run), str(tmp_path / "new.csv"), "--out", str(out), "--scans", "20000"]
    program = [sys.executable, "-m", "dfcrp.cli", *command, "--no-report", "--quiet"]
    with subprocess.Popen(program) as process:
        while process.poll() is None and not list(out.glob("draws.zarr/shard-*.zip")):
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -9, "it was done before the first shard was seen"
    assert not (out / "catalogue.csv").exists()
    assert files_of(run) == before
    assert (dfcrp.load(run).labels == labels).all()
    assert main(["resume", str(out), "--no-report"]) == 0
    assert files_of(run) == before
    never = dfcrp.load(run).update(circles(whole[-4:]), scans=20000)
    assert (dfcrp.load(out).labels == never.labels).all()


def beginning(posterior, number=0):
    """What a chain begins with by name, and α."""
    problem = problem_of(posterior.items, posterior.config)
    seed = np.random.SeedSequence(1).spawn(number + 1)[number]
    state = Chain(problem, seed, "exact").state
    shared = np.concatenate([state.law, state.own])
    return dict(zip(problem.columns.names, shared.tolist(), strict=True)), float(state.alpha[0])


def last(posterior, number=0):
    """The last draw of a chain, likewise."""
    shared = posterior.draws.shared()[number, -1]
    names = posterior.draws.columns.names
    return dict(zip(names, shared.tolist(), strict=True)), posterior.draws.alpha()[number, -1]


def written(learned):
    return {image: one.as_json() for image, one in learned.items()}


@pytest.mark.parametrize("prior", ["dfcrp", "detection"])
def test_chains_begin_with_what_was_learned(tmp_path, prior):
    whole = rows()
    old = dfcrp.fit(circles(whole[:-4]), **SETTINGS, prior=prior, out=tmp_path / "run")
    more = old.update(circles(whole[-4:]), out=tmp_path / "next")
    assert written(read_beginning(tmp_path / "next")[0].learned) == written(more.items.learned)
    usual, _ = beginning(dfcrp.fit(circles(whole), **SETTINGS, prior=prior))
    for chain in (0, 1):
        (found, alpha), (there, alpha_there) = beginning(more, chain), last(old, chain)
        assert alpha == alpha_there or (np.isnan(alpha) and prior == "detection")
        taken = {name for name in found if found[name] == there.get(name)}
        left = {name for name in found if np.array_equal(found[name], usual[name], equal_nan=True)}
        assert taken | left == set(found)
        assert len(taken - left) > len(found) // 2


def test_what_is_held_is_that_of_the_new_run():
    """Whatever of a quantity differs and is held, all of it begins as usual."""
    whole = circles(rows())
    more = dfcrp.fit(whole, **SETTINGS, prior="detection").update(whole)
    before = more.items.learned[""]
    one = before.quantities["false_marks"]
    learned = one.learned.copy()
    learned[1] = False
    quantities = {**before.quantities, "false_marks": one._replace(learned=learned)}
    items = replace(more.items, learned={"": replace(before, quantities=quantities)})
    problem = problem_of(items, more.config)
    state = Chain(problem, np.random.SeedSequence(1).spawn(1)[0], "exact").state
    place = problem.columns.slices["false_marks"]
    found = np.concatenate([state.law, state.own])[place]
    usual = np.concatenate([problem.hyper.law, problem.prior.own])[place]
    assert (found == usual).all()
    assert (found != one.values[0]).any()


def test_a_new_expert_begins_as_usual_and_all_do_where_one_has_gone():
    whole = rows()
    some = [row for row in whole if row[3] != "d"]
    old = dfcrp.fit(circles(some), **SETTINGS, prior="detection")
    more = old.update(circles([row for row in whole if row[3] == "d"]))
    fresh = dfcrp.fit(circles(whole), **SETTINGS, prior="detection")
    (found, _), (there, _), (usual, _) = beginning(more), last(old), beginning(fresh)
    assert found["false_marks[a]"] == there["false_marks[a]"] != usual["false_marks[a]"]
    assert found["false_marks[d]"] == usual["false_marks[d]"]
    slips = [{"decision": "slip", "items": row[4]} for row in some if row[3] == "c"]
    without = beginning(old.update(decisions=slips))[0]
    left = dfcrp.fit(circles([row for row in some if row[3] != "c"]), **SETTINGS, prior="detection")
    assert without == beginning(left)[0]


def test_what_was_learned_is_checked_when_it_is_read():
    whole = circles(rows())
    found = dfcrp.fit(whole, **SETTINGS).update(whole).items.learned[""].as_json()
    assert Learned.from_json(found).as_json() == found
    for damage in ({"alpha": [-1.0, 1.0]}, {"alpha": [1.0]}):
        with pytest.raises(ValueError, match=r"alpha is not positive|not of the shape"):
            Learned.from_json({**found, **damage})
    first = next(iter(found["quantities"].values()))
    first["values"][0] = float("nan")
    with pytest.raises(ValueError, match="no numbers"):
        Learned.from_json(found)


def test_without_a_number_of_scans_it_is_looked_at_sooner():
    whole = rows()
    settings = {name: value for name, value in SETTINGS.items() if name not in ("scans", "burn_in")}
    old = dfcrp.fit(circles(whole[:-2]), **settings)
    more = old.update(circles(whole[-2:]))
    assert more.convergence.ok
    assert more.record.scans < 500 <= old.record.scans


def test_clusters_that_are_not_allowed_any_more_are_taken_apart():
    whole = circles(rows())
    posterior = dfcrp.fit(whole, **SETTINGS)
    labels = posterior.labels[0, -1]
    first = int(np.flatnonzero(np.bincount(labels) > 2)[0])
    a, b, c, *_ = np.flatnonzero(labels == first)
    ids = whole.id
    said = [
        {"decision": "apart", "items": f"{ids[a]} {ids[b]}"},
        {"decision": "expert", "items": ids[c], "value": str(whole.expert[a])},
    ]
    found = posterior.update(decisions=said)
    drawn = found.labels
    assert (drawn[..., a] != drawn[..., b]).all()
    assert (drawn[..., a] != drawn[..., c]).all()
    data = problem_of(found.items, found.config).data
    lead = seats_of(data, found.items.start[0])[data.internal]
    assert len({int(lead[a]), int(lead[b])}) == 2
    assert lead[a] != lead[c]


@pytest.mark.parametrize("prior", ["dfcrp", "detection"])
def test_the_target_is_that_of_a_new_run(prior):
    """Means of the number of clusters and of every pair, by batches; 5 standard errors."""
    whole = rows(8, seed=4)
    settings = {**SETTINGS, "scans": 3000, "burn_in": 500, "thin": 5, "prior": prior}
    old = dfcrp.fit(circles(whole[:-3]), **{**settings, "scans": 300, "burn_in": 100})
    updated = old.update(circles(whole[-3:]), scans=3000, burn_in=500)
    fresh = dfcrp.fit(circles(whole), **{**settings, "seed": 8})
    sums = []
    for posterior in (updated, fresh):
        labels = posterior.labels
        pairs = labels[..., :, None] == labels[..., None, :]
        values = np.concatenate(
            [pairs.reshape(*labels.shape[:2], -1), posterior.n_clusters[..., None]], axis=2
        ).astype(float)
        batches = values.reshape(2, 10, -1, values.shape[2]).mean(axis=2).reshape(20, -1)
        sums.append((batches.mean(axis=0), batches.var(axis=0, ddof=1) / 20))
    (one, var_one), (two, var_two) = sums
    error = np.sqrt(var_one + var_two)
    assert (np.abs(one - two) <= 6.0 * error + 1e-2).all()


def test_ids_that_nobody_gave_go_on_counting():
    before = dfcrp.Items.circles([0.0, 1.0], [0.0, 1.0], [2.0, 2.0], ["a", "b"])
    more = dfcrp.Items.circles([5.0], [5.0], [3.0], ["c"])
    joined = with_more(before, more)
    assert joined.items.id.tolist() == ["1", "2", "3"]
    assert (joined.new, joined.corrected) == (1, 0)


def test_what_cannot_be_joined_is_refused():
    before = dfcrp.Items.circles([0.0, 1.0], [0.0, 1.0], [2.0, 2.0], ["a", "b"])
    points = dfcrp.Items.from_columns({"x": [1.0], "y": [1.0]}, ["c"], kind="points")
    with pytest.raises(InputError, match="the run is of circles"):
        with_more(before, points)
    looked = dfcrp.Items.circles([5.0], [5.0], [3.0], ["c"], looked=["c", "d"])
    with pytest.raises(InputError, match="does not know who looked"):
        with_more(before, looked)
    named = dfcrp.Items.circles([5.0], [5.0], [3.0], ["c"], image=["i"])
    with pytest.raises(InputError, match="the new items name their images"):
        with_more(before, named)
    posterior = dfcrp.fit(before, **{**SETTINGS, "scans": 8, "burn_in": 2})
    with pytest.raises(SettingsError, match="keeps the settings of the run"):
        posterior.update(before, prior="crp")


def test_images_each_by_itself():
    whole = rows(6)
    image = ["i" if k % 2 else "j" for k in range(len(whole))]
    x, y, d, expert, ids = zip(*whole, strict=True)
    items = dfcrp.Items.circles(x, y, d, expert, id=ids, image=image)
    posterior = dfcrp.fit(items, **{**SETTINGS, "images": "independent"})
    more = dfcrp.Items.circles([1.0], [1.0], [4.0], ["a"], id=["new"], image=["i"])
    found = posterior.update(more)
    assert len(found.items) == len(items) + 1
    assert found.items.start[0, -1] == -1
    assert (found.items.start[:, :-1] >= 0).all()
    for name in ("i", "j"):
        assert beginning(found[name])[1] == last(posterior[name])[1]
