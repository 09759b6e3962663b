"""The server of the review page: for this machine alone, and for those who have the token.

It listens on 127.0.0.1. A request must name this machine as its host (so that no other name can be
bound to this address), come from this page or from no page at all, and bring the token: in the
address that is printed, then in a cookie, or as ``Authorization: Bearer``. What is sent to it is
small, and is checked; nothing of the run folder is run.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dfcrp.errors import DfcrpError, InputError
from dfcrp.items.decisions import Decision
from dfcrp.review.cases import without_probabilities
from dfcrp.review.page import POLICY, online_page
from dfcrp.review.session import Review
from dfcrp.runs.folder import decisions_text

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import MutableHeaders
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:  # pragma: no cover - the tests have it
    raise InputError(f"the review page needs {error.name}: pip install 'dfcrp[review]'") from None

#: Bytes of a request's body, and of its address.
LARGEST_BODY, LONGEST_ADDRESS = 64_000, 2_000
#: Seconds between two looks at what is to be done besides requests.
PAUSE = 0.5
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def make_app(session: Review, token: str, port: int, blind: bool = False) -> Starlette:
    """The application; ``blind``: no probabilities leave the server."""
    served = _Served(session, token, port, blind)
    routes = [
        Route("/", served.page, methods=["GET"]),
        Route("/state", served.state, methods=["GET"]),
        Route("/cases", served.cases, methods=["GET"]),
        Route("/decisions", served.decide, methods=["POST"]),
        Route("/decisions.csv", served.table, methods=["GET"]),
        Route("/photo/{name}.jpg", served.photo, methods=["GET"]),
    ]
    guard = Middleware(_Guard, served=served)
    return Starlette(routes=routes, middleware=[guard], lifespan=served.lifespan)


class _Guard:
    """Lets requests in, or not, and adds the headers to whatever is answered."""

    def __init__(self, app: ASGIApp, served: _Served) -> None:
        self._app, self._served = app, served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._served.refusal(Request(scope))
        await (refused or self._app)(scope, receive, send_with_headers)


class _Served:
    """What the routes answer."""

    def __init__(self, session: Review, token: str, port: int, blind: bool) -> None:
        self._session, self._token, self._blind = session, token.encode(), blind
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie = f"dfcrp-review-{port}"
        self._last = time.monotonic()
        self._written = len(session.store.decisions)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Tend to updates for as long as the server runs."""
        tending = asyncio.create_task(self._tend())
        try:
            yield
        finally:
            tending.cancel()
            await run_in_threadpool(self._session.close)

    async def _tend(self) -> None:
        while True:
            await asyncio.sleep(PAUSE)
            await run_in_threadpool(self._tend_once)

    def _tend_once(self) -> None:
        kept = len(self._session.store.decisions)
        try:
            if kept != self._written:
                self._session.store.write_table()
                self._written = kept
            self._session.tend(time.monotonic() - self._last)
        except (DfcrpError, OSError) as error:
            self._session.trouble = str(error)

    def refusal(self, request: Request) -> Response | None:
        """The answer to a request that is not let in."""
        if request.headers.get("host", "") not in self._hosts:
            return PlainTextResponse("this server answers to 127.0.0.1 alone", 403)
        origin = request.headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            return PlainTextResponse("pages of other origins may not ask", 403)
        # A link may lead to the page, if it has the token; nothing else is asked from elsewhere.
        led = request.method == "GET" and request.url.path == "/"
        site = request.headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not led:
            return PlainTextResponse("pages of other origins may not ask", 403)
        if len(str(request.url)) > LONGEST_ADDRESS:
            return PlainTextResponse("the address is too long", 414)
        if not self._known(request):
            return PlainTextResponse("the token is missing or wrong: open the address printed", 403)
        return None

    def _known(self, request: Request) -> bool:
        """Whether the request has the token; only the page itself takes it from the address."""
        kind, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = [request.cookies.get(self._cookie, "")]
        if kind.lower() == "bearer":
            given.append(bearer.strip())
        if request.url.path == "/":
            given.append(request.query_params.get("token", ""))
        known = [hmac.compare_digest(one.encode(), self._token) for one in given]
        return any(known)

    async def page(self, _: Request) -> Response:
        """The page, and the cookie that its requests bring."""
        response = Response(online_page(self._blind), media_type="text/html")
        response.set_cookie(
            self._cookie, self._token.decode(), httponly=True, samesite="strict", path="/"
        )
        return response

    async def state(self, request: Request) -> Response:
        """Numbers, conflicts, own decisions."""
        return JSONResponse(await run_in_threadpool(self._session.state, _reviewer(request)))

    async def cases(self, request: Request) -> Response:
        """What is to be decided."""
        found = await run_in_threadpool(self._session.cases, _reviewer(request))
        return JSONResponse(without_probabilities(found) if self._blind else found)

    async def decide(self, request: Request) -> Response:
        """Keep a decision; the answer comes when it is on the disk."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            return PlainTextResponse("a decision is sent as application/json", 415)
        body = await _small_body(request)
        if body is None:
            return PlainTextResponse("the request is too large", 413)
        self._last = time.monotonic()
        try:
            made: Decision = await run_in_threadpool(self._session.decide, _parsed(body))
        except InputError as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse({"place": made.place, "when": made.when}, 201)

    async def table(self, _: Request) -> Response:
        """All decisions as CSV."""
        text = decisions_text(self._session.store.decisions)
        headers = {"Content-Disposition": 'attachment; filename="decisions.csv"'}
        return Response(text, media_type="text/csv", headers=headers)

    async def photo(self, request: Request) -> Response:
        """The piece of the photograph beneath a case."""
        try:
            found = await run_in_threadpool(self._session.piece, request.path_params["name"])
        except DfcrpError as error:
            return PlainTextResponse(str(error), 404)
        if found is None:
            return PlainTextResponse("there is no such photograph", 404)
        return Response(found, media_type="image/jpeg")


def _reviewer(request: Request) -> str:
    return request.query_params.get("by", "")


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the decision is no JSON: {error}") from None


async def _small_body(request: Request) -> bytes | None:
    """The body; None as soon as it is too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            return None
    return bytes(content)


def quiet_server(app: Starlette) -> uvicorn.Server:
    """The server without a log: addresses have the token in them."""
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=100,
        h11_max_incomplete_event_size=16_384,
        timeout_graceful_shutdown=2,
        http="h11",
        ws="none",
    )
    return uvicorn.Server(config)
