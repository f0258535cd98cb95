"""A mechanism's own options on the command line: the named ones, and any other as NAME=VALUE."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpgram.errors import MechanismError


def given_options(others: Sequence[str], **named: float | str | None) -> dict[str, Any]:
    """The options that were given, by name. Which of them a mechanism has is for the registry to say."""
    found: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    for text in others:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise MechanismError(f"--option is {text!r} and must be NAME=VALUE, such as sketch_rows=44.")
        found[name.replace("-", "_")] = _number_or_word(value)
    return found


def check_free(options: Mapping[str, Any], call: Callable) -> None:
    """Raise where an option has the name of a parameter of ``call``, to which all of them are passed by name."""
    for name in options:
        if name in inspect.signature(call).parameters:
            raise MechanismError(f"--option {name} is not an option of a mechanism: see --help for how it is given.")


def _number_or_word(text: str) -> float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
