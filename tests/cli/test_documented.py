"""Every command is in the reference with all it takes, every exit code too, and every parameter has words of its own."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from cyclopts import App

from dpgram.cli import app as program

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "custodian.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """What writes the commands of the site, docs/_ext/commands.py; it needs no Sphinx."""
    spec = importlib.util.spec_from_file_location("site_commands", ROOT / "docs" / "_ext" / "commands.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(app: App, before: str = "dpgram") -> Iterator[tuple[str, App]]:
    """Every command that does something, by its full name: "dpgram ledger show", not "dpgram ledger"."""
    for name in app:
        if name.startswith("-"):
            continue  # --help and --version
        inner = list(commands(app[name], f"{before} {name}"))
        yield from inner or [(f"{before} {name}", app[name])]


def wordless(app: App) -> list[str]:
    """Parameters whose help is missing, or only points to another one's."""
    helped = {each.name: each.parameter.help or "" for each in app.assemble_argument_collection(parse_docstring=True)}
    return [name for name, words in helped.items() if len(words.split()) < 2 or words.startswith("The same")]


COMMANDS = dict(commands(program.app))


def test_the_walk_finds_the_commands():
    assert {"dpgram release", "dpgram ledger settle", "dpgram schema draft"} <= COMMANDS.keys()
    assert "dpgram ledger" not in COMMANDS


def test_every_command_is_in_the_reference(reference):
    assert "<!-- commands -->" in PAGE
    assert re.findall(r"^## (dpgram [a-z -]+)$", reference.markdown(), flags=re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reference_has_all_of_a_command(name, reference):
    """Its first words, its usage, and every parameter with its words."""
    written = reference.of_command(name, COMMANDS[name])
    assert reference.inline(COMMANDS[name].help.splitlines()[0]) in written
    assert f"Usage: {name}" in written
    for each in COMMANDS[name].assemble_argument_collection(parse_docstring=True):
        assert re.search(rf"^`{re.escape(each.name)}\b.*\n: \S+", written, flags=re.MULTILINE), each.name


def test_help_is_shown_as_it_is(reference):
    assert reference.inline("as *NAME* in `a_b`, see docs/plan.md") == r"as \*NAME\* in `a_b`, see [plan.md](../plan.md)"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_words_for_every_parameter(name, capsys):
    assert len(COMMANDS[name].help.split()) >= 3
    assert not wordless(COMMANDS[name]), f"{name} --help says nothing about these"
    assert program.run([*name.split()[1:], "--help"]) == 0
    assert COMMANDS[name].help.splitlines()[0] in capsys.readouterr().out


def test_a_parameter_without_words_is_noticed():
    toy = App()

    @toy.default
    def command(data: str, *, epsilon: float, delta: float) -> None:
        """Do something.

        Parameters
        ----------
        epsilon
            Of the privacy budget.
        delta
            The same.
        """

    assert wordless(toy) == ["--data", "--delta"]


def test_every_exit_code_is_documented():
    codes = {"0", "1", str(program.BAD_INPUT), str(program.INTERRUPTED), str(program.BROKEN_PIPE)}
    assert set(re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE)) == codes
    (listed,) = re.findall(r"Exit codes: (.*?)\.", GUIDE, flags=re.DOTALL)
    assert set(re.findall(r"\b\d+\b", listed)) == codes
