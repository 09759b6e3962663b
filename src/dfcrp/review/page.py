"""The review page, as the server sends it, and as one file that works without a server."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from pathlib import Path
from string import Template

from dfcrp import __version__
from dfcrp.files import write_text
from dfcrp.report.explorer.data import script_json
from dfcrp.report.explorer.embed import script_of
from dfcrp.review.cases import Cases, without_probabilities
from dfcrp.review.job import Job
from dfcrp.review.photos import Photos
from dfcrp.values import Json

_PARTS = ("drawing.js", "keeping.js", "main.js")


def _resource(name: str, package: str = "dfcrp.review") -> str:
    return resources.files(package).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


SCRIPT = script_of(("words",), "\n".join(_resource(f"page/{name}") for name in _PARTS))
STYLE = f"\n{_resource('page.css', 'dfcrp.report')}\n{_resource('page/review.css')}"
#: What a page may do: run its own script, look as its own style says, ask its own server.
_RULES = f"script-src 'sha256-{_hash(SCRIPT)}'; style-src 'sha256-{_hash(STYLE)}'; base-uri 'none'"
POLICY = (
    f"default-src 'none'; {_RULES}; img-src 'self' data:; connect-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'"
)
POLICY_OFFLINE = f"default-src 'none'; {_RULES}; img-src data:; form-action 'none'"


def online_page(blind: bool) -> str:
    """The page of the server, which asks it for everything."""
    # A page knows its policy from the server, which may say more than a page itself.
    return _page({"server": True, "blind": blind}, POLICY.rpartition("; ")[0])


def offline_page(cases: Cases, photos: Photos | None, key: str, blind: bool) -> str:
    """One file with everything in it; ``key`` tells apart the decisions of several such pages."""
    shown = without_probabilities(cases.about) if blind else cases.about
    about: Json = {**shown, "cases": list(map(dict, shown["cases"]))}
    for case in about["cases"]:
        if case["photo"] is not None and photos is not None:
            piece = base64.b64encode(photos.piece(*cases.pieces[case["id"]])).decode("ascii")
            case["photo"] = f"data:image/jpeg;base64,{piece}"
    content = {"server": False, "blind": blind, "key": key, "review": about}
    return _page(content, POLICY_OFFLINE)


def write_page(job: Job, path: Path, *, blind: bool = False) -> None:
    """Write the page that needs no server."""
    posterior = job.posterior()
    text = offline_page(job.cases(posterior), job.photos(posterior), posterior.items.digest, blind)
    write_text(path.parent, path.name, text)


def _page(content: Json, policy: str) -> str:
    return Template(_resource("page/review.html")).substitute(
        version=__version__,
        policy=policy,
        style=STYLE,
        content=script_json(content),
        script=SCRIPT,
    )
