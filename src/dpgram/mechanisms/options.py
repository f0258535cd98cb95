"""What a mechanism can be told besides its task. Declared once: checked by it, and made into flags by the commands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from dpgram.errors import MechanismError


@dataclass(frozen=True)
class Option:
    """One option of a mechanism: a number, or a word.

    ``default`` is what is taken when it is left out; None where that follows the task, which ``words`` then say."""

    name: str
    type: type[float] | type[str]
    words: str  # what it means
    default: float | str | None = None
    choices: tuple[str, ...] = ()  # of a word

    def of(self, options: Mapping[str, Any]) -> Any:
        """The value among ``options``, checked, or the default."""
        value = options.get(self.name)
        return self.default if value is None else self.checked(value)

    def checked(self, value: object) -> object:
        """``value``, if the option can have it."""
        if self.type is str:
            self._check(value, isinstance(value, str), "a word")
            listed = " or ".join(map(repr, self.choices)) if len(self.choices) < 3 else f"one of {', '.join(self.choices)}"
            self._check(value, not self.choices or value in self.choices, listed)
        else:
            self._check(value, isinstance(value, Real) and not isinstance(value, bool), "a number")
            self._check(value, _is_finite(value), "a finite number")
        return value

    def _check(self, value: object, holds: bool, needed: str) -> None:
        if not holds:
            raise MechanismError(f"{self.name} is {value!r:.40} and must be {needed}.")


def by_name(*options: Option) -> dict[str, Option]:
    return {option.name: option for option in options}


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number that no float holds
        return False
