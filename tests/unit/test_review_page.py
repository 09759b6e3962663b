"""The review of a run: what is asked, what is kept, and whom the server lets in."""

from __future__ import annotations

import io
import json
import sqlite3
import sys
import threading
import warnings

import numpy as np
import pytest
from PIL import Image

import dfcrp
from dfcrp.errors import InputError, RunFolderError
from dfcrp.io.decisions import read_decisions
from dfcrp.items.items import Items
from dfcrp.posterior.saving import load
from dfcrp.review.cases import SIDE, make_cases
from dfcrp.review.job import Job
from dfcrp.review.page import offline_page
from dfcrp.review.photos import Photos
from dfcrp.review.queue import questions
from dfcrp.review.serve import checked_token, serve
from dfcrp.review.store import DATABASE, FOLDER, TABLE, Store
from dfcrp.settings.config import ImageSettings, resolve
from reference.small_posteriors import posterior_of

pytest.importorskip("starlette", reason="the extra `review` is not installed")
pytest.importorskip("httpx", reason="the server's tests need httpx")
with warnings.catch_warnings():
    # Starlette would rather have httpx2.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from dfcrp.review.server import LARGEST_BODY, make_app
from dfcrp.review.session import Review

EVIL = '<img src=x onerror="document.title=1">'
TOKEN, PORT = "t0ken-of-tests", 8123
HERE = f"http://127.0.0.1:{PORT}"
KNOWN = {"authorization": f"Bearer {TOKEN}"}


def doubtful_posterior(n_objects=6, image=None, shares=(0.5,)):
    """Objects that two experts marked; whether a pair is one object is sure in no draw."""
    centre = 100.0 * np.arange(n_objects)
    x = np.concatenate((centre, centre + 3.0))
    items = Items.circles(
        x=x,
        y=50.0 + 0.1 * x,
        diameter=np.full(2 * n_objects, 20.0),
        expert=["ann"] * n_objects + [EVIL] * n_objects,
        id=[f"m{i}" for i in range(2 * n_objects)],
        image=None if image is None else [image] * (2 * n_objects),
    )
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(40):
        together = rng.random(n_objects) < np.resize(shares, n_objects)
        own = np.arange(n_objects)
        draws.append(np.concatenate((own, np.where(together, own, own + n_objects))))
    return posterior_of([draws[:20], draws[20:]], items)


@pytest.fixture
def run(tmp_path):
    doubtful_posterior().save(tmp_path / "run")
    return tmp_path / "run"


def session_of(run, images=None):
    job = Job(run, images)
    return Review(job, job.posterior(), Store(run), every=0)


@pytest.fixture
def session(run):
    return session_of(run)


@pytest.fixture
def client(session):
    with TestClient(make_app(session, TOKEN, PORT), base_url=HERE) as found:
        yield found


def row(items=("m0", "m6"), decision="together", by="ann", **more):
    return {"decision": decision, "items": list(items), "by": by, **more}


def post(client, sent, **headers):
    return client.post("/decisions", json=sent, headers={**KNOWN, **headers})


# What is asked


def test_questions_are_those_of_the_queue():
    posterior = doubtful_posterior(4, shares=(0.95, 0.5, 0.8, 1.0))
    asked, queue = questions(posterior, 10), posterior.review_queue(10)
    ids = posterior.items.id
    assert [" ".join(ids[list(one.rows)]) for one in asked] == queue["items"].tolist()
    assert {one.rows for one in asked} <= {(0, 4), (1, 5), (2, 6)}
    assert len(asked) >= 2
    assert all("known to within" in one.why for one in asked)


def test_a_case_has_what_the_draws_have():
    posterior = doubtful_posterior(3)
    case = make_cases(posterior, 1).about["cases"][0]
    together, apart = case["options"]
    a, b = (posterior.items.id.tolist().index(name) for name in case["items"])
    share = float((posterior.labels[..., a] == posterior.labels[..., b]).mean())
    assert together["share"] == pytest.approx(share, abs=1e-3)
    assert apart["share"] == pytest.approx(1.0 - share, abs=1e-3)
    assert [one["members"] for one in together["objects"]] == [[0, 1]]
    assert [one["members"] for one in apart["objects"]] == [[0], [1]]
    marks = case["shown"][:2]
    assert all(mark["asked"] and 0 < mark["x"] < SIDE and 0 < mark["y"] < SIDE for mark in marks)
    # 3 to the right and 0.3 upwards, as far as a diameter of 20 is wide
    assert marks[1]["x"] - marks[0]["x"] == pytest.approx(marks[0]["w"] * 3 / 20, abs=0.1)
    assert marks[1]["y"] - marks[0]["y"] == pytest.approx(-marks[0]["w"] * 0.3 / 20, abs=0.1)


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_records_are_side_by_side():
    names = ["anna", "bert", "carla", "dora", "emil", "fritz"]
    items = Items.from_columns(
        {"name": [*names, "ana", "bert", "karla", "dora", "emilia", "franz"]},
        ["a"] * 6 + ["b"] * 6,
        kind="records",
    )
    posterior = dfcrp.fit(items, chains=2, scans=60, burn_in=20, seed=1, likelihood="records")
    cases = make_cases(posterior, 5).about["cases"]
    assert cases
    for case in cases:
        assert case["shape"] is None
        (field,) = case["fields"]
        asked = [posterior.items.id.tolist().index(name) for name in case["items"]]
        assert field["cells"][:2] == posterior.items.columns["name"][asked].tolist()


def test_items_on_a_line_have_lanes():
    pytest.importorskip("dfcrp.likelihoods.interval", reason="there is no such kind of item")
    start = np.array([10.0, 50.0, 11.0, 52.0])
    items = Items.from_columns(
        {"start": start, "end": start + 8.0}, ["a", "a", "b", "b"], kind="intervals"
    )
    draws = [[0, 1, 0, 1], [0, 1, 2, 3]] * 10
    config = resolve(None, {"likelihood": "intervals"})
    case = make_cases(posterior_of([draws, draws], items, config=config), 1).about["cases"][0]
    assert case["lanes"] == [0, 1]
    above, below = case["shown"][:2]
    assert (above["y"], below["y"]) == (SIDE / 4, 3 * SIDE / 4)
    assert above["w"] == pytest.approx(below["w"])
    assert below["x"] > above["x"]


# What is kept


def test_a_decision_is_kept_before_it_is_acknowledged(client, run):
    answer = post(client, row(note="no rim between them"))
    assert answer.status_code == 201
    # Another reader of the file has it now, though the server still runs.
    with sqlite3.connect(run / FOLDER / DATABASE) as base:
        assert base.execute("SELECT decision, items, by, note FROM decisions").fetchall() == [
            ("together", "m0 m6", "ann", "no rim between them")
        ]


def test_an_undo_is_another_decision(client, run):
    before = client.get("/cases?by=ann", headers=KNOWN).json()["cases"]
    sent = row(before[0]["items"])
    post(client, sent)
    after = client.get("/cases?by=ann", headers=KNOWN).json()["cases"]
    assert [case["id"] for case in after] == [case["id"] for case in before[1:]]
    assert post(client, {**sent, "decision": "withdraw", "value": "together"}).status_code == 201
    assert client.get("/cases?by=ann", headers=KNOWN).json()["cases"] == before
    kept = client.get("/decisions.csv", headers=KNOWN).text.splitlines()
    assert [line.split(",")[0] for line in kept] == ["decision", "together", "withdraw"]
    assert post(client, {**sent, "decision": "withdraw"}).status_code == 422


def test_the_table_is_what_fit_reads_and_grows_at_its_end(session, run):
    first = session.decide(row(note='a "quoted" note, with a comma'))
    session.store.write_table()
    text = (run / FOLDER / TABLE).read_text()
    session.decide(row(["m1", "m7"], "apart", "bob"))
    session.close()
    assert (run / FOLDER / TABLE).read_text().startswith(text)
    found = read_decisions(run / FOLDER / TABLE)
    assert [one.cells for one in found] == [one.cells for one in Store(run).decisions]
    assert found[0].note == first.note
    assert found[0].when < found[1].when


def test_what_a_killed_server_left_is_removed(run):
    for name in ("1", "12"):
        (run / FOLDER / name).mkdir(parents=True)
    (run / FOLDER / "12.csv").write_text("decision,items\n")
    (run / FOLDER / "notes").write_text("mine")
    session_of(run).close()
    left = {path.name for path in (run / FOLDER).iterdir()}
    assert left == {"notes", DATABASE, TABLE}


def test_rows_cannot_be_changed(session, run):
    session.decide(row())
    base = sqlite3.connect(run / FOLDER / DATABASE)
    for change in ("DELETE FROM decisions", "UPDATE decisions SET decision = 'apart'"):
        with pytest.raises(sqlite3.IntegrityError):
            base.execute(change)
    base.close()


def test_a_database_of_others_is_refused(run):
    (run / FOLDER).mkdir()
    with sqlite3.connect(run / FOLDER / DATABASE) as base:
        base.execute("CREATE TABLE decisions (number)")
    with pytest.raises(RunFolderError, match="was not written by dfcrp"):
        Store(run)


def test_a_link_in_its_place_is_refused(run, tmp_path):
    (run / FOLDER).mkdir()
    (run / FOLDER / DATABASE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="is not a file"):
        Store(run)


def test_reviewers_do_not_overwrite_each_other_and_conflicts_are_named(client, session):
    post(client, row(decision="together", by="ann"))
    post(client, row(decision="apart", by="bob"))
    post(client, row(["m1", "m7"], decision="apart", by="bob"))
    state = client.get("/state?by=bob", headers=KNOWN).json()
    assert state["people"] == {"ann": 1, "bob": 2}
    (conflict,) = state["conflicts"]
    assert "one object and two" in conflict["reason"]
    assert sorted(one["by"] for one in conflict["decisions"]) == ["ann", "bob"]
    agreed, _ = session.settled()
    assert [one.items for one in agreed] == [("m1", "m7")]
    post(client, row(decision="withdraw", by="ann"))
    assert client.get("/state?by=bob", headers=KNOWN).json()["conflicts"] == []


def test_cases_that_another_decided_come_last(client):
    before = client.get("/cases?by=bob", headers=KNOWN).json()["cases"]
    post(client, row(before[0]["items"], by="ann"))
    after = client.get("/cases?by=bob", headers=KNOWN).json()["cases"]
    assert [case["id"] for case in after] == [case["id"] for case in (*before[1:], before[0])]


def test_many_reviewers_at_once(session):
    def decide(k):
        for item in range(6):
            session.decide(row([f"m{item}", f"m{item + 6}"], "apart", f"reviewer {k}"))

    threads = [threading.Thread(target=decide, args=(k,)) for k in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    kept = session.store.decisions
    assert len({(one.by, one.items) for one in kept}) == 48
    assert [one.when for one in kept] == sorted({one.when for one in kept})


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (row(decision="togehter"), "did you mean"),
        (row(["m0"]), "two items"),
        (row(["m0", "m99"]), "no item has the id"),
        (row(decision="real"), "every cluster is an object"),
        (row(["m0", "m1"]), "by one expert"),
        (row(by=" "), "who you are"),
        (row(by="=HYPERLINK(1)"), "formula"),
        (row(by="a" * 101), "characters"),
        (row(note="a\u202eb"), "printed"),
        (row(when="2026-11-20"), "has decision, items and by"),
        ({"decision": "together"}, "has decision, items and by"),
        ([1], "has decision, items and by"),
        (row([{"a": 1}, "m6"]), "list of ids"),
    ],
)
def test_what_cannot_be_is_refused(client, session, sent, message):
    answer = post(client, sent)
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert session.store.decisions == ()


# Whom the server lets in


def test_without_the_token_nobody_gets_in(client):
    for path in ("/", "/state", "/cases", "/decisions.csv", "/photo/x.jpg", "/nothing"):
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "dfcrp-review-8123=x"}):
            assert client.get(path, headers=headers).status_code == 403, path
    assert client.get("/?token=wrong").status_code == 403
    assert client.post("/decisions", json=row()).status_code == 403
    # In the address the token is for the page alone.
    assert client.get(f"/state?token={TOKEN}").status_code == 403


def test_the_address_gives_a_cookie_that_no_script_sees(client):
    answer = client.get(f"/?token={TOKEN}")
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in answer.text
    assert client.get("/state?by=ann").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": f"evil.example:{PORT}"},
        {"host": "127.0.0.1:1"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_hosts_and_origins_are_refused(client, session, headers):
    assert client.get("/state", headers={**KNOWN, **headers}).status_code == 403
    assert post(client, row(), **headers).status_code == 403
    assert session.store.decisions == ()


def test_forms_and_large_requests_are_refused(client, session):
    form = {**KNOWN, "content-type": "text/plain"}
    assert client.post("/decisions", content=json.dumps(row()), headers=form).status_code == 415
    assert post(client, row(note="a" * LARGEST_BODY)).status_code == 413
    assert client.get("/state?by=" + "a" * 3000, headers=KNOWN).status_code == 414
    for body in (b"{", b"[" * 20_000, b"\xff"):
        headers = {**KNOWN, "content-type": "application/json"}
        assert client.post("/decisions", content=body, headers=headers).status_code == 422
    assert session.store.decisions == ()


def test_every_answer_has_the_headers(client):
    for path in ("/", "/state", "/nothing"):
        for known in ({}, KNOWN):
            headers = client.get(path, headers=known).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in headers


def test_blind_probabilities_do_not_leave_the_server(session):
    with TestClient(make_app(session, TOKEN, PORT, blind=True), base_url=HERE) as client:
        cases = client.get("/cases?by=ann", headers=KNOWN).json()["cases"]
    assert cases
    for case in cases:
        assert (case["p"], case["why"]) == (None, "")
        assert [one["share"] for one in case["options"]] == [None, None]


def test_what_is_not_installed_is_said(monkeypatch, run):
    monkeypatch.delitem(sys.modules, "dfcrp.review.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match=r"needs uvicorn: pip install 'dfcrp\[review\]'"):
        serve(Job(run))
    assert not (run / FOLDER).exists()


def test_tokens():
    assert len(checked_token(None)) >= 32
    assert checked_token("abc") == "abc"
    for bad in ("", "with space", "ü" * 10, "a;b=c" * 3):
        with pytest.raises(InputError, match="--token"):
            checked_token(bad)


# Photographs


def photographs(folder):
    folder.mkdir()
    pixels = np.zeros((200, 700), np.uint8)
    pixels[:, 350:] = 255
    Image.fromarray(pixels).save(folder / "left.png")
    return folder


def test_the_photograph_lies_where_the_items_are(tmp_path):
    posterior = doubtful_posterior(6, image="left")
    photos = Photos(photographs(tmp_path / "photos"), posterior.items, ImageSettings())
    found = make_cases(posterior, 6, photos)
    for case in found.about["cases"]:
        parts, view = found.pieces[case["id"]]
        piece = np.asarray(Image.open(io.BytesIO(photos.piece(parts, view))))
        x = posterior.items.x[posterior.items.id.tolist().index(case["items"][0])]
        assert piece[piece.shape[0] // 2, piece.shape[1] // 2] == pytest.approx(
            255 if x > 350 else 0, abs=3
        )
        # y runs downwards, as in the image
        marks = case["shown"]
        assert marks[1]["y"] > marks[0]["y"]


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "..", "a/../../secret", "link", "through/secret", "\0"]
)
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    folder = photographs(tmp_path / "photos")
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(tmp_path / "secret.png")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "through").symlink_to(tmp_path)
    photos = Photos(folder, doubtful_posterior(2, image="left").items, ImageSettings())
    assert photos.find(name) is None
    assert photos.find("left") == ("left.png",)


def test_photographs_are_sent_for_cases_alone(tmp_path):
    doubtful_posterior(image="left").save(tmp_path / "run")
    session = session_of(tmp_path / "run", photographs(tmp_path / "photos"))
    with TestClient(make_app(session, TOKEN, PORT), base_url=HERE) as client:
        case = client.get("/cases?by=a", headers=KNOWN).json()["cases"][0]
        answer = client.get(f"/{case['photo']}", headers=KNOWN)
        assert answer.headers["content-type"] == "image/jpeg"
        for path in ("/photo/left.jpg", "/photo/..%2fleft.png", "/photo/%2e%2e/x.jpg"):
            assert client.get(path, headers=KNOWN).status_code == 404


# The page without a server


def test_hostile_names_stay_text(run):
    posterior = load(run)
    page = offline_page(make_cases(posterior, 5), None, "key", blind=False)
    assert EVIL not in page
    assert "\\u003cimg" in page
