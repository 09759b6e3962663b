"""The documentation says what there is: every command, option and setting."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path

import click
import pytest

import combinations
from benchmarks import command as bench
from dfcrp.cli.main import COMMANDS, dfcrp
from dfcrp.errors import SettingsError
from dfcrp.likelihoods.registry import HOMES as LIKELIHOODS
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.priors.registry import HOMES as PRIORS
from dfcrp.priors.registry import prior_named
from dfcrp.settings.config import (
    SECTIONS,
    Config,
    ImageSettings,
    RunSettings,
    SummarySettings,
    make_config,
)
from dfcrp.settings.values import IMAGES, PRESETS, SAMPLERS
from studies import reproduce

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "dfcrp"
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


def tables_by_section() -> dict[str, dict[str, str]]:
    """The settings in each section of the page, each with its default as it is written there."""
    found: dict[str, dict[str, str]] = {}
    rows: dict[str, str] = {}
    for line in (DOCS / "settings.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            rows = found.setdefault(line.removeprefix("## "), {})
        elif setting := re.match(r"\| `(\w+)` \| ([^|]+) \|", line):
            rows.setdefault(setting[1], setting[2])
    return found


def as_written(default: object) -> str:
    """A default as the page has it."""
    if default is None or default == ():
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, str):
        return f'`"{default}"`'
    if isinstance(default, tuple):
        return ", ".join(map(str, default) if isinstance(default[0], str) else map(number, default))
    assert isinstance(default, int | float)
    return number(default)


def number(value: float) -> str:
    return f"{value:,g}".replace("-", "−") if value < 1000 else f"{value:,}"


#: Headings of the page and the schemas of the parts that they are about.
PARTS = {
    "`[run]`: how long, how many, which model": RunSettings,
    "`[likelihood]` of circles": likelihood_named("circles").Settings,
    "`[likelihood]` of points, boxes, ellipses, intervals, numbers": likelihood_named(
        "points"
    ).Settings,
    "`[likelihood]` of records": likelihood_named("records").Settings,
    "`[prior]` of `dfcrp`, `constrained` and `crp`": prior_named("dfcrp").Settings,
    "`[prior]` of `attraction`": prior_named("attraction").Settings,
    "`[prior]` of `detection`": prior_named("detection").Settings,
    "`[summary]`: what is counted": SummarySettings,
    "`[image]`: the image beneath the maps": ImageSettings,
}


def test_every_part_has_its_settings_in_the_page() -> None:
    used = {likelihood_named(name).Settings for name in LIKELIHOODS}
    used |= {prior_named(name).Settings for name in PRIORS}
    assert used <= set(PARTS.values())
    assert set(SECTIONS) == {item.name for item in dataclasses.fields(Config)}
    with_settings = {name for name, rows in tables_by_section().items() if rows}
    assert with_settings == set(PARTS)


@pytest.mark.parametrize("section", PARTS)
def test_every_setting_is_documented_with_its_default(section: str) -> None:
    documented = tables_by_section()[section]
    for preset in PRESETS:
        documented.pop(preset, None)
    known = {item.name: as_written(item.default) for item in dataclasses.fields(PARTS[section])}
    assert documented == known


def test_every_preset_is_documented() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    for preset in PRESETS:
        assert f"\n| `{preset}` |" in text


PAGES_OF_TEXT = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("tutorials/*.md")),
    *sorted(DOCS.glob("reference/*.md")),
]


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by, as GitHub makes it."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES_OF_TEXT, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", text):
        if target.startswith(("http", "mailto")):
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(there), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page.name


def test_the_page_of_combinations_is_that_of_the_list() -> None:
    assert combinations.PAGE.read_text(encoding="utf-8") == combinations.render()


def test_the_list_of_combinations_has_every_part() -> None:
    kinds = {kind.likelihood for kind in combinations.KINDS}
    assert {*LIKELIHOODS} == {kind for kind in kinds if ":" not in kind}
    by_group = {
        group: [feature.name for feature in combinations.FEATURES if feature.group == group]
        for group in ("prior", "sampler", "images")
    }
    assert by_group["prior"] == list(PRIORS)
    assert by_group["sampler"] == list(SAMPLERS)
    assert ["auto", *by_group["images"]] == list(IMAGES)


@pytest.mark.parametrize(
    "cell", combinations.SAMPLERS, ids=lambda cell: f"{cell.kind}-{cell.feature}"
)
def test_samplers_that_a_prior_refuses(cell: combinations.Cell) -> None:
    settings = {"run": {"prior": cell.kind, "sampler": cell.feature}}
    if cell.supported:
        assert make_config(settings).run.sampler == cell.feature
    else:
        with pytest.raises(SettingsError, match="sampler"):
            make_config(settings)


@pytest.mark.parametrize("page", PAGES_OF_TEXT, ids=lambda page: page.name)
def test_modules_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    homes = "|".join(
        folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()
    )
    named = re.findall(rf"`((?:{homes}|tests|studies|benchmarks|fuzz)/[\w/]+)(?:\.py)?[`:]", text)
    missing = [name for name in named if not exists(ROOT / name) and not exists(PACKAGE / name)]
    assert missing == []


def exists(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").exists()


#: Words that had a meaning of their own here, and what is said instead (docs/glossary.md).
WORDS = {
    r"\banew\b": "again",
    r"g(o|oes|one|oing) on\b": "continue, resume",
    r"(?i)\bsittings?\b": "run",
    r"\bpacks?\b": "shard",
    r"\belsewhere\b": "in other places, on other machines",
    r"(?i)\bunsettled\b|\bsettles?\b": "undecided, revisit",
    r"(?<!`)\bslips?\b|\bslip_": "typo",
    r"\bno circles?\b": "the kind of item",
    r"least so many|in so many|\bso many (experts|nearest)": "this many, N",
    r"\bmade.up\b|\bmakes? up\b": "simulated",
    r"ImagesPosterior|\bMarkings\.from|`Markings`": "Posterior, Items",
    r"(?m)^\[(model|records|detection)\]$|`\[(model|records|detection)\]`": "likelihood, prior",
    r"dfcrp (reproduce|bench)": "./run reproduce, ./run bench",
    r"can be told|is told by|of which nothing is known|passed over": "say who does what",
}


@pytest.mark.parametrize("page", PAGES_OF_TEXT, ids=lambda page: page.name)
def test_words_are_those_of_the_glossary(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"\]\([^)]*\)|(?m:^ {4}.*$)", "", text)  # neither targets of links nor commands
    found = {
        match.group(): better for word, better in WORDS.items() for match in re.finditer(word, text)
    }
    assert found == {}


def architecture() -> str:
    return (DOCS / "architecture.md").read_text(encoding="utf-8")


def test_the_layers_are_those_that_are_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    assert "".join(f"    {layer}\n" for layer in contract["layers"]) in architecture()


def test_the_way_of_a_marking_is_counted() -> None:
    """The list of modules, whose number the text says; each of them exists."""
    section = architecture().split("## From a marking to the report")[1].split("\n## ")[0]
    rows = re.findall(r"(?m)^\| [^|]+ \| (.*) \|$", section)[1:]
    named = [name for row in rows for name in re.findall(r"`([\w/]+)`", row)]
    assert len(named) == len(set(named))
    assert [name for name in named if not (PACKAGE / f"{name}.py").exists()] == []
    assert f"{len(named)} modules" in section
