"""The documentation says what there is: every command, option and setting."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import pytest

from benchmarks import command as bench
from dfcrp.cli.main import COMMANDS, dfcrp
from dfcrp.settings.choices import PRESETS
from dfcrp.settings.config import Config
from studies import reproduce

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: ``dfcrp``, ``./run reproduce`` and ``./run bench`` are documented in these.
PAGES = ("commands.md", "studies.md", "speed.md")
#: Every command has these; the page explains them once.
COMMON = {"--debug", "--help"}


def all_commands() -> list[tuple[str, click.Command]]:
    """Commands and the commands below them, each under its full name."""
    context = click.Context(dfcrp)
    waiting = [(f"dfcrp {name}", dfcrp.get_command(context, name)) for name in COMMANDS]
    waiting += [("./run reproduce", reproduce.command), ("./run bench", bench.command)]
    found = []
    while waiting:
        name, command = waiting.pop(0)
        assert command is not None
        found.append((name, command))
        below = getattr(command, "commands", {})
        waiting += [(f"{name} {key}", value) for key, value in below.items()]
    return found


def long_options(command: click.Command) -> set[str]:
    return {
        option for parameter in command.params for option in parameter.opts if option[:2] == "--"
    }


def sections() -> dict[str, str]:
    """The parts of the pages about commands, by the command in their heading."""
    names = sorted((name for name, _ in all_commands()), key=len, reverse=True)
    found: dict[str, str] = {}
    for page in PAGES:
        current = None
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                heading = re.search(r"`((?:dfcrp|\./run) [^`]+)`", line)
                words = "" if heading is None else heading[1]
                current = next((name for name in names if f"{words} ".startswith(f"{name} ")), None)
            elif current is not None:
                found[current] = found.get(current, "") + line + "\n"
    return found


@pytest.mark.parametrize(("name", "command"), all_commands())
def test_every_command_and_option_is_documented(name: str, command: click.Command) -> None:
    assert name in sections(), f"there is no section for `{name}` in {', '.join(PAGES)}"
    text = sections()[name]
    known = long_options(command)
    named = set(re.findall(r"`(--[a-z0-9-]+)", text))
    assert known - named - COMMON == set(), "in the command, not in its section"
    assert named - known - COMMON == set(), "in the section, not in the command"


@pytest.mark.parametrize(("name", "command"), all_commands())
def test_every_command_and_option_has_a_help_text(name: str, command: click.Command) -> None:
    assert command.help, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts}"


def test_every_setting_is_documented() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    for part in dataclasses.fields(Config):
        kind = type(getattr(Config(), part.name))
        for item in dataclasses.fields(kind):
            assert re.search(rf"(?m)^\| `{item.name}` \|", text), f"{part.name}.{item.name}"
    for preset in PRESETS:
        assert f"`{preset}`" in text


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))],
    ids=lambda page: page.name,
)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith(("http", "mailto")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
