"""How arguments are read: those of several commands, options of mechanisms, by a flag for each that is declared or as NAME=VALUE, and
lists of columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Group, Parameter

from dpgram.errors import MechanismError
from dpgram.mechanisms.options import Option
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.schema import Schema

C = TypeVar("C", bound=Callable[..., object])
OWN = Group("Options of mechanisms", sort_key=1)  # shown below all others

# Parameters of several commands, with their help.
ReleaseFile = Annotated[Path, Parameter(help="The release file.")]
LedgerFile = Annotated[Path, Parameter(help="The ledger file.")]
Flag = Annotated[bool, Parameter(show_default=False)]
IgnoreSignature = Annotated[
    bool,
    Parameter(help="Go on if the release was changed after it was signed. Without it that is an error.", show_default=False),
]
Several = Annotated[tuple[str, ...], Parameter(show_default=False)]
Json = Annotated[bool, Parameter(help="Print JSON instead of tables.", show_default=False)]
TableFormat = Annotated[
    str, Parameter(help="How tables are printed: text, latex (for the package booktabs) or markdown. Names are escaped.")
]
Columns = Annotated[str | None, Parameter(help="The columns to use, separated by commas. By default all.")]
Relation = Annotated[
    str, Parameter(help="Which tables count as neighbours. replace: one row differs. add-remove: one row is added or removed.")
]
Calibration = Annotated[
    str,
    Parameter(help="How noise is calibrated. exact uses proven privacy curves, paper the printed formulas of Sheffet 2015."),
]
Delta = Annotated[float, Parameter(help="Delta of the privacy budget. Choose it well below 1/(number of rows).")]
OptionTexts = Annotated[
    tuple[str, ...],
    Parameter(help="An option of the mechanism as NAME=VALUE, instead of its own flag. May be repeated.", show_default=False),
]
Repeated = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]


def with_flags(command: C) -> C:
    """The command, with a flag for every option that a mechanism declares in the place of its ``**options``.

    An option whose name the command has already, as that of a parameter, is that parameter."""
    own = inspect.signature(command, eval_str=True)
    kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    flags = [_flag(name, options) for name, options in declared_options().items() if name not in own.parameters]
    command.__signature__ = own.replace(parameters=[*kept, *flags])  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in (*kept, *flags)}
    return command


def declared_options() -> dict[str, dict[str, Option]]:
    """Every option by its name, and then by the name of the mechanism that declares it."""
    declared: dict[str, dict[str, Option]] = {}
    for mechanism in MECHANISMS.values():
        for option in mechanism.options.values():
            declared.setdefault(option.name, {})[mechanism.name] = option
    return declared


def _flag(name: str, declared: Mapping[str, Option]) -> inspect.Parameter:
    sharing: dict[Option, list[str]] = {}
    for mechanism, option in declared.items():
        sharing.setdefault(option, []).append(mechanism)
    defaults = {option: "" if option.default is None else f" [default: {option.default}]" for option in sharing}
    words = [f"{', '.join(mechanisms)}: {option.words}{defaults[option]}." for option, mechanisms in sharing.items()]
    (kind,) = {option.type for option in sharing}
    annotation = Annotated[kind | None, Parameter(help=" ".join(words), group=OWN)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def given_options(others: Sequence[str], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, by name. Whether a mechanism has them is for the registry to say; some mechanism must."""
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    declared = declared_options()
    for text in others:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not (name and equals and value):
            raise MechanismError(f"--option is {text!r} and must be NAME=VALUE, such as sketch_rows=44.")
        if name not in declared:
            raise MechanismError(f"--option {name} is not an option of any mechanism. The options are {', '.join(declared)}.")
        given[name] = _number_or_word(value)
    return given


def _number_or_word(text: str) -> float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def listed_names(schema: Schema, names: str | None) -> list[str] | None:
    """The names in a comma-separated list, None when there is none. A known name that itself holds commas is found whole."""
    if names is None:
        return None
    return split_by_commas(names, {*schema.encoded_names, *schema.all_names})


def split_by_commas(text: str, known: Collection[str]) -> list[str]:
    """What stands between commas. What is ``known`` is found whole, where it holds commas itself."""
    listed: list[str] = []
    parts = text.split(",") if text else []
    while parts:
        joined = [",".join(parts[:k]) for k in range(len(parts), 0, -1)]
        first = next((name for name in joined if name in known or name.strip() in known), parts[0])
        listed.append(first if first in known else first.strip())
        parts = parts[first.count(",") + 1 :]
    return listed
