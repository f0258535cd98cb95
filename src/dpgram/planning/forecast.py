"""The forecasts of all mechanisms side by side: which is expected to be best, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from dpgram.errors import MechanismError, PlanError
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.mechanisms import registry
from dpgram.planning.expected import Coefficient, Expected, How, expect
from dpgram.planning.ground import Ground
from dpgram.terms.budget import Budget
from dpgram.terms.schema import INTERCEPT, Schema

CONDITIONAL = "noisy-inverse"  # promises nothing unless a claim is true: forecast only with the claim, and never chosen
ABOUT_EQUAL = 1.05  # mechanisms whose errors differ by less are not told apart
HIDDEN = 0.9  # an error of this share of what is to be estimated tells little about it
EQUALLY_HIDDEN = 1.3  # then errors that differ by less are not told apart either
FORECAST_ROWS = 10**12
TIMES = {1: "once", 2: "twice"}


@dataclass(frozen=True, eq=False)
class Forecast:
    """The mechanisms, best first, then those that were refused."""

    budget: Budget
    rows: int
    target: str
    row_bound: float
    mechanisms: tuple[Expected, ...]
    best: str
    verdict: str  # which is the best, and by how much
    reason: str  # why

    @property
    def why(self) -> str:
        return f"{self.verdict} {self.reason}"

    def of(self, mechanism: str) -> Expected:
        return next(expected for expected in self.mechanisms if expected.mechanism == mechanism)


def forecast(
    ground: Ground, budget: Budget, rows: int, *, mechanisms: Sequence[str] | None = None, **how: Unpack[How]
) -> Forecast:
    """What each mechanism would give for a table of ``rows`` rows like those that ``ground`` stands for.

    ``rows`` is a public number: the table's own under REPLACE, somebody's guess under ADD_REMOVE. ``mechanisms`` are all
    unconditional ones by default, and the conditional one where its claim is given."""
    check_rows(rows)
    names = listed(mechanisms, how.get("options"), ground.schema)
    everything = [expect(ground, registry.find(name), budget, int(rows), **how) for name in names]
    usable = sorted((e for e in everything if e.typical is not None), key=lambda expected: expected.error)
    fair = [expected for expected in usable if expected.mechanism != CONDITIONAL] or usable
    best = min((e.mechanism for e in fair if _about_equal(e, fair[0])), key=list(registry.MECHANISMS).index, default="")
    usable.sort(key=lambda expected: (expected.mechanism != best, expected.error))
    return Forecast(
        budget,
        int(rows),
        ground.design.target,
        ground.schema.effective_row_bound,
        (*usable, *(expected for expected in everything if expected.typical is None)),
        best,
        *_why(usable, ground, int(rows)),
    )


def check_rows(rows: object) -> None:
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or not 1 <= rows <= FORECAST_ROWS:
        raise PlanError(f"table_rows is {rows!r} and must be a whole number from 1 to {FORECAST_ROWS:.0e}.")


def _about_equal(one: Expected, best: Expected) -> bool:
    """Whether the two errors differ by no more than chance, or by so little that it is no reason for the less simple mechanism."""
    assert best.typical is not None
    hidden = best.typical.privacy_error >= HIDDEN * best.typical.size
    margin = max(ABOUT_EQUAL, 1 + 3 * math.hypot(one.wobble, best.wobble), EQUALLY_HIDDEN if hidden else 1.0)
    return not one.error > margin * best.error


def listed(
    mechanisms: Sequence[str] | None, options: Mapping[str, float | str] | None = None, schema: Schema | None = None
) -> list[str]:
    """The mechanisms to forecast; raises where one is unknown, or an option that none of them has.

    Where nobody names them they are all, but for those that cannot protect a unit's rows together where the ``schema`` has ids."""
    options = options or {}
    claimed = options.get("rho") is not None
    by_unit = schema is not None and schema.unit_id is not None
    able = [name for name, each in registry.MECHANISMS.items() if each.takes_units or not by_unit]
    names = list(mechanisms or [name for name in able if name != CONDITIONAL or claimed])
    known = {option for name in names for option in registry.find(name).options}
    for option in options:
        if option not in known:
            have = f"Their options are {', '.join(sorted(known))}." if known else "They have no options."
            raise MechanismError(f"none of {', '.join(names)} has an option {option!r}. {have}")
    return list(dict.fromkeys(names))


def _why(usable: Sequence[Expected], ground: Ground, rows: int) -> tuple[str, str]:
    """Which is the best, in a sentence, and why, in another."""
    if not usable:
        return "No mechanism can be used with these settings.", "The reasons are given above."
    best = usable[0]
    typical = best.typical
    assert typical is not None
    others = [expected for expected in usable[1:] if expected.mechanism != CONDITIONAL]
    level = [e.mechanism for e in others if _about_equal(e, best)]
    behind = [f"{e.mechanism} {e.error / best.error:.3g} times" for e in others if not _about_equal(e, best)]
    told = f"{best.mechanism} is expected to be best" if others else f"{best.mechanism} is the only mechanism in this forecast"
    if level:
        told += f" ({', '.join(level)}: as good, but less simple)"
    if behind:
        told += f". The errors of the others are larger: {', '.join(behind)}"
    return f"{told}.", _reason(best, typical, ground, rows)


def _reason(best: Expected, typical: Coefficient, ground: Ground, rows: int) -> str:
    if not math.isfinite(typical.error):
        return "But there are no more rows than coefficients, so nothing can be learned, with or without noise."
    if typical.privacy_error >= HIDDEN * typical.size and typical.name != INTERCEPT:
        return "But the noise hides the coefficients at this budget. The error is about as large as the coefficient itself."
    if typical.privacy_error < typical.sampling_error / 3:
        return "The noise adds little to the sampling error, which is there without privacy too."
    if registry.find(best.mechanism).several and best.rounds == 1:
        return "Its one round clips rows to less than their bound, which costs less accuracy than the smaller noise gains."
    if registry.find(best.mechanism).several:
        return (
            f"It works in {best.rounds} rounds, and whitens the rows by what earlier rounds published. So its noise is about equally "
            f"small in every direction, compared with the data. It reads the table {TIMES.get(best.passes, f'{best.passes} times')}."
        )
    if math.isfinite(best.degrees):
        return (
            f"Its noise is multiplicative, with {best.degrees:.4g} degrees of freedom. It is smallest in the weak directions, which "
            f"decide the coefficients."
        )
    moments = ground.moments(ground.schema.effective_row_bound)
    weakest = rows * smallest_eigenvalue(ground.design.regressors.T @ moments @ ground.design.regressors)
    return (
        f"Its noise has the same standard deviation, {best.noise_sd:.4g}, in all directions. The weakest direction of the features is "
        f"expected to have size {weakest:.4g}. The noise of the other mechanisms grows with the size of a direction."
    )
