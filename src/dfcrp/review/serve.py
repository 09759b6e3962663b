"""Runs the server of a review until it is stopped."""

from __future__ import annotations

import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Callable

from dfcrp.errors import InputError
from dfcrp.files import opened, why
from dfcrp.review.job import Job
from dfcrp.review.session import EVERY, Review
from dfcrp.review.store import FOLDER, TABLE, Store
from dfcrp.runs.lock import locked

HOST = "127.0.0.1"
#: A shorter token is told to be weak.
SHORT_TOKEN = 8


def serve(
    job: Job,
    *,
    port: int = 0,
    token: str | None = None,
    blind: bool = False,
    every: int = EVERY,
    browser: bool = False,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve the review of a run; returns when the server is stopped."""
    token = checked_token(token)
    # Missing programs, a wrong run and a port that is taken are told before anything is written.
    from dfcrp.review.server import make_app, quiet_server

    posterior = job.posterior()
    with listening(port) as listener, opened(job.run, FOLDER, make=True), locked(job.run / FOLDER):
        session = Review(job, posterior, Store(job.run), every)
        port = listener.getsockname()[1]
        server = quiet_server(make_app(session, token, port, blind))
        address = f"http://{HOST}:{port}/?token={token}"
        tell(f"Review at {address}")
        if len(token) < SHORT_TOKEN:
            tell(
                "Warning: other users of this machine could guess so short a token; leave out "
                "--token for a random one"
            )
        tell(f"Decisions are kept in {job.run / FOLDER / TABLE}; Ctrl-C stops.")
        if browser:
            webbrowser.open(address)
        # uvicorn stops in good order and passes Ctrl-C on; that is how a review ends.
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def checked_token(token: str | None) -> str:
    """The token, or a random one."""
    if token is None:
        return secrets.token_urlsafe(24)
    if not token or not token.isascii() or not all(c.isalnum() or c in "-_.~" for c in token):
        raise InputError(
            "--token: letters of ASCII, digits, -, _, . or ~; without it, it is random"
        )
    return token


def listening(port: int) -> socket.socket:
    """A socket that only this machine reaches."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise InputError(f"--port {port}: {why(error)}; choose another, or 0 for any") from None
    listener.listen()
    return listener
