"""The commands in Markdown, written from their own help: what `dpgram COMMAND --help` prints, as a page of the site."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from cyclopts import App
from rich.console import Console

from dpgram.cli.app import app as program

SPECIAL = re.compile(r"([\\*_\[\]<>|~#$])")
PAGE = re.compile(r"\bdocs/([\w-]+\.md)\b")


def commands(app: App = program, before: str = "dpgram") -> Iterator[tuple[str, App]]:
    """Every command that does something, by its full name: "dpgram ledger show", not "dpgram ledger"."""
    for name in app:
        if name.startswith("-"):
            continue  # --help and --version
        inner = list(commands(app[name], f"{before} {name}"))
        yield from inner or [(f"{before} {name}", app[name])]


def markdown() -> str:
    """One section for each command: what it does, how it is called, and every parameter."""
    return "\n".join(f"## {name}\n\n{of_command(name, app)}" for name, app in commands())


def of_command(name: str, app: App) -> str:
    lines = [*paragraphs(app.help), "```text", usage(name), "```", ""]
    group = ""
    for argument in app.assemble_argument_collection(parse_docstring=True):
        if argument.parameter.group[0].name != group:
            group = argument.parameter.group[0].name
            lines += [f"**{group}**", ""]
        flag = f"`{argument.name}{value_of(argument)}`"
        lines += [f"{flag} (required)" if argument.required else flag]
        lines += [f": {inline(' '.join((argument.parameter.help or '').split()))}{default_of(argument)}", ""]
    return "\n".join(lines)


def usage(name: str) -> str:
    """The first line of the help, unwrapped."""
    console = Console(file=io.StringIO(), width=1000)
    program.help_print(name.split()[1:], console=console)
    return console.file.getvalue().splitlines()[0].strip()  # type: ignore[attr-defined]


def value_of(argument) -> str:
    """What follows the flag, such as " FLOAT". Arguments have no flag, and switches no value."""
    if not argument.name.startswith("-") or argument.hint is bool:
        return ""
    kinds = re.findall(r"\b(str|int|float|Path)\b", getattr(argument.hint, "__name__", "") or str(argument.hint)) or re.findall(
        r"\b(str|int|float|Path)\b", str(argument.hint)
    )
    return f" {kinds[0].upper()}" if kinds else ""


def default_of(argument) -> str:
    default = argument.field_info.default
    shown = not argument.required and default not in (None, False, ())
    return f" Default: `{default}`." if shown else ""


def paragraphs(text: str) -> list[str]:
    """The words of a help text, with a blank line after each paragraph."""
    return [line for part in text.split("\n\n") for line in (inline(" ".join(part.split())), "")]


def inline(text: str) -> str:
    """Markdown that shows this text as it is; code in backticks stays code, and names of pages become links."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece if piece.startswith("`") else PAGE.sub(r"[\1](../\1)", SPECIAL.sub(r"\\\1", piece)) for piece in pieces
    )
