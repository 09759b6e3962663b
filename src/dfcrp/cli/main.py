"""``dfcrp``: finds the command, loads it, and turns errors into one line and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TextIO

import click

from dfcrp import __version__
from dfcrp.errors import DfcrpError, DfcrpWarning, InputError

#: Each module holds its click command under the name ``command`` and imports the library inside
#: it, so that ``dfcrp --help`` stays quick.
COMMANDS = {
    "demo": "dfcrp.cli.demo",
    "fit": "dfcrp.cli.fit",
    "resume": "dfcrp.cli.resume",
    "update": "dfcrp.cli.update",
    "status": "dfcrp.cli.status",
    "report": "dfcrp.cli.report",
    "explain": "dfcrp.cli.explain",
    "review": "dfcrp.cli.review",
    "age": "dfcrp.cli.age",
    "evaluate": "dfcrp.cli.evaluate",
    "convert": "dfcrp.cli.convert",
    "simulate": "dfcrp.cli.simulate",
    "example": "dfcrp.cli.example",
    "compare": "dfcrp.cli.compare",
}

DONE, TROUBLE, WRONG_INPUT = 0, 1, 2


@dataclass
class Session:
    """What one call of a command remembers."""

    program: str
    debug: bool = False

    def say(self, line: str) -> None:
        """Print a line about an error, with --debug its traceback first."""
        if self.debug:
            click.echo(traceback.format_exc(), err=True, nl=False)
        click.echo(f"{self.program}: {line}", err=True)


def _remember_debug(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given and isinstance(session := context.find_root().obj, Session):
        session.debug = True


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_remember_debug,
        help="Show the traceback after an error.",
    )


def _accept_debug(command: click.Command) -> None:
    """Let a command, and those below it, take --debug, as a user would append it."""
    if all(option.name != "debug" for option in command.params):
        command.params.append(_debug_option())
    for below in getattr(command, "commands", {}).values():
        _accept_debug(below)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; all of them take --debug."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        _accept_debug(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but an unknown command gets the nearest known one for an answer."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"there is no command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup)
@click.version_option(__version__, prog_name="dfcrp")
def dfcrp() -> None:
    """Merge several experts' lists of the same objects into one catalogue, with uncertainty.

    \b
      dfcrp demo                        try it on the example data
      dfcrp fit markings.csv --out run  merge your own lists
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0 done, 2 wrong input or settings, 1 the rest."""
    return run_safely(dfcrp, arguments)


def run_safely(
    command: click.Command, arguments: Sequence[str] | None = None, program: str = "dfcrp"
) -> int:
    """Run a click command; an error becomes one line, and an exit code as `main` gives it.

    ``program`` is what the user typed to get here; usage and messages begin with it.
    """
    session = Session(program)
    _accept_debug(command)
    with _plain_warnings(program):
        try:
            answer = command.main(
                args=None if arguments is None else list(arguments),
                prog_name=program,
                standalone_mode=False,
                obj=session,
                help_option_names=["-h", "--help"],
            )
        except click.Abort:
            click.echo(f"{program}: stopped", err=True)
            return TROUBLE
        except click.ClickException as error:
            error.show()
            if isinstance(error, click.MissingParameter):
                _show_example(error)
            return error.exit_code
        except InputError as error:
            session.say(f"error: {error}")
            return WRONG_INPUT
        except DfcrpError as error:
            session.say(f"error: {error}")
            return TROUBLE
        except BrokenPipeError:
            # Whoever read the output has seen enough (`dfcrp ... | head`).
            sys.stderr.close()
            return TROUBLE
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return _say_unexpected(error, session)
            where = f"{error.filename}: " if error.filename else ""
            session.say(f"error: {where}the disk is full; make room, then run the command again")
            return TROUBLE
        except MemoryError as error:
            reason = f" ({error})" if str(error) else ""
            session.say(
                f"error: there is not enough memory for this{reason}; give the process more "
                "(`ulimit -v` limits it), or fewer items, images at a time, draws (--thin) or "
                "workers"
            )
            return TROUBLE
        except Exception as error:
            return _say_unexpected(error, session)
    # Outside standalone mode click hands back the exit code of --help and the like.
    return answer if isinstance(answer, int) else DONE


def _show_example(error: click.MissingParameter) -> None:
    """How the command is used, where it knows an example."""
    example = getattr(error.ctx and error.ctx.command, "example", None)
    if example:
        click.echo(f"Example: {example}", err=True)


def _say_unexpected(error: Exception, session: Session) -> int:
    session.say(f"unexpected error: {type(error).__name__}: {error}")
    if not session.debug:
        session.say("this is not your fault; --debug shows the traceback for a bug report")
    return TROUBLE


@contextmanager
def _plain_warnings(program: str) -> Iterator[None]:
    """Print our own warnings as plain lines, each once; leave those of other libraries alone."""
    said: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", DfcrpWarning)
        show = warnings.showwarning

        def show_plainly(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> Any:
            if not issubclass(category, DfcrpWarning):
                show(message, category, filename, lineno, file, line)
            elif str(message) not in said:
                said.add(str(message))
                click.echo(f"{program}: warning: {message}", err=True)

        warnings.showwarning = show_plainly
        yield
