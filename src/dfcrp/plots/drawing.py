"""Figures from their tables to files and to the page, several at a time in processes of their own.

A helper is a new Python that calls ``help_out``: it reads orders from its input and answers on its
output, each a pickle with its length in front. It is no fork of this process, whose threads it
would inherit half, and does not run the caller's script again, as ``multiprocessing`` would.
"""

from __future__ import annotations

import base64
import contextlib
import io
import pickle
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

from dfcrp import plots
from dfcrp.files import write_bytes
from dfcrp.plots.style import column_width, figure_of, render
from dfcrp.processes import WORKPLACE, python
from dfcrp.sampling.runner import cores

#: More helpers than this do not finish earlier: the slowest figure takes a third of the time.
MAX_HELPERS = 3
#: What figures can be saved as; csv are the numbers behind one.
FORMATS = ("svg", "pdf", "png", "csv")
JPEG_QUALITY = 88
#: Layers of pixels within an SVG file, and the colours that are enough for them.
PIXELS = re.compile(rb"(data:image/png;base64,\s*)([A-Za-z0-9+/=\s]+)")
COLOURS_OF_PIXELS = 64
HELPER = "from dfcrp.plots.drawing import help_out; help_out()"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Order:
    """One figure that is to be drawn."""

    name: str
    #: As its ``prepare`` function gives it.
    table: object
    folder: Path
    formats: tuple[str, ...]
    #: Whether an image lies beneath.
    photo: bool = False
    #: Where its files are in the folder, with a slash at the end.
    below: str = ""


@dataclass(frozen=True)
class DrawnFigure:
    """One figure for the page; its files are written."""

    name: str
    #: Media type and content.
    kind: str
    content: bytes
    #: Width on paper.
    inches: float


def draw_one(order: Order) -> DrawnFigure:
    """Draw a figure, save it in every format, and give it as the page needs it.

    That is SVG, sharp at any zoom; over an image JPEG, which is a tenth of the size.
    """
    drawn = plots.FIGURES[order.name]
    figure = figure_of(drawn.draw(order.table))
    inches = column_width(figure.get_figwidth())
    needed = "png" if order.photo else "svg"
    pictures = [kind for kind in order.formats if kind != "csv"]
    made = render(figure, list(dict.fromkeys((*pictures, needed))))
    if "csv" in order.formats:
        made["csv"] = drawn.numbers(order.table).encode()
    if "svg" in made and not order.photo:
        made["svg"] = with_few_colours(made["svg"])
    order.folder.mkdir(parents=True, exist_ok=True)
    for kind in order.formats:
        name = f"{order.below}{order.name}.{kind}"
        write_bytes(order.folder, name, made[kind], durable=False)
    if order.photo:
        return DrawnFigure(order.name, "image/jpeg", _as_jpeg(made["png"]), inches)
    return DrawnFigure(order.name, "image/svg+xml", made["svg"], inches)


def with_few_colours(svg: bytes) -> bytes:
    """The same with its layers of pixels in a palette; outlines need few, and take a quarter."""
    from PIL import Image

    def small(found: re.Match[bytes]) -> bytes:
        out = io.BytesIO()
        with Image.open(io.BytesIO(base64.b64decode(found[2]))) as image:
            few = image.convert("RGBA").quantize(
                COLOURS_OF_PIXELS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
            )
            few.save(out, "PNG", optimize=True)
        return found[1] + base64.b64encode(out.getvalue())

    return PIXELS.sub(small, svg)


def _as_jpeg(png: bytes) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(out, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return out.getvalue()


def draw_all(orders: Iterable[Order], helpers: int | None = None) -> dict[str, DrawnFigure]:
    """Draw the figures here and in so many helpers, by default one less than there are cores.

    The orders are prepared one after the other, by the caller's thread; while that goes on the
    helpers begin. What a helper fails to draw is drawn here, so that an error is raised here.
    """
    count = min(cores() - 1, MAX_HELPERS) if helpers is None else helpers
    with _Helpers(count) as team:
        for order in orders:
            team.give(order)
        return team.finish()


class _Helpers:
    """A queue of orders, and a thread with a helper process of its own for each helper."""

    def __init__(self, count: int) -> None:
        # Not a SimpleQueue: that of Python 3.11 waits for ever where another takes what a thread
        # was woken for after its patience had ended.
        self._queue: Queue[Order] = Queue()
        self._all_given = threading.Event()
        self._drawn: dict[str, DrawnFigure] = {}
        self._failed: list[Order] = []
        self._names: list[str] = []
        self._processes = [process for _ in range(count) if (process := _start()) is not None]
        self._threads = [
            threading.Thread(target=self._serve, args=(process,), daemon=True)
            for process in self._processes
        ]

    def __enter__(self) -> _Helpers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with contextlib.suppress(OSError):
                    pipe.close()

    def give(self, order: Order) -> None:
        """Add an order."""
        self._names.append(order.name)
        # A helper works elsewhere.
        self._queue.put(replace(order, folder=order.folder.absolute()))

    def finish(self) -> dict[str, DrawnFigure]:
        """Draw along until everything is drawn; in the order in which it was given."""
        self._all_given.set()
        while (order := self._next(0.0)) is not None:
            self._drawn[order.name] = draw_one(order)
        for thread in self._threads:
            thread.join()
        for order in self._failed:
            self._drawn[order.name] = draw_one(order)
        return {name: self._drawn[name] for name in self._names}

    def _next(self, patience: float) -> Order | None:
        try:
            return self._queue.get(timeout=patience) if patience else self._queue.get_nowait()
        except Empty:
            return None

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            ended = self._all_given.is_set()
            order = self._next(0.05)
            if order is None and ended:
                return
            if order is None:
                continue
            try:
                _send(process.stdin, order)
                answer = _receive(process.stdout)
            except Exception:
                # A table that cannot be sent, or a helper that is gone: the caller draws it.
                answer = None
            if not isinstance(answer, DrawnFigure):
                self._failed.append(order)
                return
            self._drawn[order.name] = answer


def _start() -> subprocess.Popen[bytes] | None:
    """A helper; None where none can be started."""
    command, environment = python("-c", HELPER)
    try:
        return subprocess.Popen(
            command,
            cwd=WORKPLACE,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def _send(pipe: IO[bytes], message: object) -> None:
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    """The next message; None at the end."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    return pickle.loads(pipe.read(_LENGTH.unpack(head)[0]))


def help_out() -> None:
    """Be a helper."""
    answers = sys.stdout.buffer
    # Whatever is printed must not get between the answers.
    sys.stdout = sys.stderr
    serve(sys.stdin.buffer, answers)


def serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """What a helper does until its input ends; an error is answered in words."""
    while (order := _receive(orders)) is not None:
        try:
            answer: DrawnFigure | str = draw_one(order)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        _send(answers, answer)


def check_formats(given: Sequence[str]) -> tuple[str, ...]:
    """Formats without repetition, in the order of ``FORMATS``."""
    from dfcrp.errors import SettingsError

    for kind in given:
        if kind not in FORMATS:
            known = ", ".join(FORMATS)
            raise SettingsError(f"figures cannot be saved as {kind!r}; there are {known}")
    return tuple(kind for kind in FORMATS if kind in given)
