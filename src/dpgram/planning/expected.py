"""What a release would give, from public facts alone: a made-up Gram goes through the real mechanism, and is read as an analyst would.

The made-up Gram is n times the moments of assumed rows, shrunk to the row bound. Each mechanism releases it some dozens of times, with
noise from fixed seeds; the default estimator and the intervals are those that `regress` uses. Errors are medians of absolute
values: half of all releases do better. They are counted from least squares on rows that were not shrunk, so that what shrinking does is
in them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpgram.errors import BudgetError, MechanismError, ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import quantile, uncertainty, weakly_identified
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT, GramAnswer, GramQuestion, Mechanism, Task, hold
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.regression.channel import channel
from dpgram.regression.fit import fit_linear, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import NoiseModel

Array = np.ndarray

CONFIDENCE, POWER = 0.95, 0.80
FEWEST, MOST, ENOUGH = 48, 200, 1200  # releases of each mechanism, and errors of coefficients to take a median over
WIDE = 100  # columns, beyond which there are fewer releases
FEW, SLOWER = 8, 6  # releases of a mechanism that is drawn one at a time: so many fewer, and no fewer than a few,
NARROW, FEWEST_WIDE = 50, 3  # but fewer still beyond so many columns, where each has many coefficients to take a median over
BATCHES = 8  # of a mechanism's releases, whose own errors say how sure a forecast is
NORMALS = ndtri((np.arange(40) + 0.5) / 40)


@dataclass(frozen=True)
class Coefficient:
    """What to expect of one coefficient, in own units. Infinite widths and effects: not identified at this budget."""

    name: str
    size: float  # the coefficient itself, as assumed
    sampling_error: float  # of least squares on the rows themselves, not private
    noise_error: float  # of the private estimate, from least squares on the shrunk rows
    shrinking_error: float  # what shrinking rows to the row bound does to least squares
    privacy_error: float  # both together: of the private estimate, from least squares on the rows themselves
    error: float  # of the private estimate, from the law that made the rows
    width: float  # of the 95 % interval
    detectable: float  # the smallest effect that a 95 % test finds in 80 % of releases


@dataclass(frozen=True)
class Expected:
    """What to expect of one mechanism; the ``typical`` coefficient is the median one, in the units of the one that it names."""

    mechanism: str
    summary: str
    noise_sd: float = math.nan  # off the diagonal, in scaled units, along the weakest directions; the median draw's
    degrees: float = math.inf  # of freedom, where noise multiplies
    passes: int = 1  # over the table; the median draw's
    typical: Coefficient | None = None  # None where the mechanism is refused
    wobble: float = 0.0  # the relative standard error of the typical error, from the number of releases that were drawn
    coefficients: tuple[Coefficient, ...] = ()
    refused: str = ""  # why there is no forecast, in words


def expect(
    found: Ground,
    mechanism: Mechanism,
    budget: Budget,
    rows: int,
    calibration: str = EXACT,
    options: Mapping[str, float | str] | None = None,
    copies: int | None = None,
    seed: int = 0,
) -> Expected:
    """What one mechanism would give; where it cannot be used like this, why not."""
    schema = found.schema
    own = {name: value for name, value in (options or {}).items() if name in mechanism.options}
    try:
        if "table_rows" in mechanism.options and schema.neighbours is Neighbours.ADD_REMOVE:
            own["table_rows"] = rows
        task = registry.schema_task(mechanism, budget, schema, calibration, own)
        drawn = draw(found, mechanism, task, rows, copies or default_copies(found), seed)
    except (MechanismError, ModelError, BudgetError) as error:  # a part of a tiny budget can be too small
        return Expected(mechanism.name, mechanism.summary, refused=str(error))
    except np.linalg.LinAlgError:
        return Expected(mechanism.name, mechanism.summary, refused="its matrices leave double precision here.")
    sampling, moved = found.sampling_sd(rows), found.shrinking(*drawn.shrunk_by)
    errors, known = drawn.errors + moved.bias, np.isfinite(sampling)
    between = moved.per_row / math.sqrt(rows)
    whole = np.hypot(between, np.where(known, sampling, 0.0))
    columns = {
        "size": np.abs(found.truth),
        "sampling_error": NORMAL_MEDIAN * sampling,
        "noise_error": np.median(np.abs(drawn.errors), axis=0),
        "shrinking_error": median_size(moved.bias[None], between),
        "privacy_error": median_size(errors, between),
        "error": np.where(known, median_size(errors, whole), np.inf),
        "width": np.median(drawn.widths, axis=0),
        "detectable": np.median(drawn.detectable, axis=0),
    }
    return Expected(
        mechanism.name,
        mechanism.summary,
        noise_sd=float(np.median(drawn.noise_sd)),
        degrees=float(np.median(drawn.degrees)),
        passes=round(float(np.median(drawn.passes))),
        typical=Coefficient(
            found.plan.names[found.typical], **{name: found.in_typical_units(values) for name, values in columns.items()}
        ),
        wobble=_wobble(
            [found.in_typical_units(median_size(part, whole)) for part in np.array_split(errors, BATCHES) if len(part)]
        ),
        coefficients=tuple(
            Coefficient(name, **{key: float(values[place]) for key, values in columns.items()})
            for place, name in enumerate(found.plan.names)
        ),
    )


def median_size(errors: Array, sd: Array) -> Array:
    """The median size of (copies, p) errors, each of them with normal ones of standard deviation ``sd`` added."""
    return (
        np.median(np.abs(errors[:, None, :] + NORMALS[:, None] * sd), axis=(0, 1)) if sd.any() else np.median(np.abs(errors), 0)
    )


def _wobble(parts: Sequence[float]) -> float:
    """The relative standard error of a number, from those of its parts."""
    mean = float(np.mean(parts))
    return float(np.std(parts, ddof=1)) / math.sqrt(len(parts)) / mean if len(parts) > 1 and mean > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """Releases of a made-up table, as an analyst reads them: (copies, p) in own units."""

    errors: Array  # from least squares on the same shrunk rows
    widths: Array
    detectable: Array
    noise_sd: Array
    degrees: Array
    passes: Array
    shrunk_by: tuple[float, Array | None]  # what rows were shrunk to, after which map; of the first copy


def draw(found: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int, seed: int = 0) -> Drawn:
    """``copies`` releases of the table that ``found`` stands for, with noise from ``seed``.

    The same seed gives the same underlying normal numbers for every budget and number of rows, so that curves are smooth."""
    made = _all_at_once if mechanism.batched else _one_by_one
    out: list[tuple[Array, Array, Array, float, float, int]] = []
    first, moments, truth = None, np.empty(0), np.empty(0)
    for gram, noise, by in made(found, mechanism, task, rows, copies, seed):
        if by.moments is not moments:
            moments, truth = by.moments, solve(by.moments, found.plan)
        first = first or by
        evidence = Evidence.made(found.schema, gram, noise, _public(task, rows))
        seen = channel(evidence, found.plan)
        se, reach = uncertainty(seen).se, quantile(CONFIDENCE, seen.degrees)
        unknown = weakly_identified(seen)
        width, effect = 2 * reach * se, (reach + float(ndtri(POWER))) * se
        out.append(
            (
                fit_linear(evidence, found.plan, "shrunk") - truth,
                np.where(unknown, np.inf, width),
                np.where(unknown, np.inf, effect),
                noise.sd_off_diagonal,
                noise.degrees_of_freedom,
                by.passes,
            )
        )
    assert first is not None
    errors, widths, detectable, noise_sd, degrees, passes = (np.array(column) for column in zip(*out, strict=True))
    return Drawn(errors, widths, detectable, noise_sd, degrees, passes, (first.row_bound, first.through))


class _Shrunk(NamedTuple):
    """What rows were shrunk to, after which map, and their moments then; in which pass."""

    row_bound: float
    through: Array | None
    moments: Array
    passes: int = 1


Made = Iterator[tuple[Array, NoiseModel, _Shrunk]]


def _all_at_once(found: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int, seed: int) -> Made:
    """Releases of a mechanism that asks for one sum: most of the cost is in the calibration."""
    rng = SeededSource(seed)
    rng.copies = (copies,)
    by = _Shrunk(task.row_bound, None, found.moments(task.row_bound))
    answer = GramAnswer(rows * by.moments, _public(task, rows))
    outcome = hold(mechanism.start(task, rng), lambda question: answer)
    for place in range(copies):
        yield outcome.gram[place], _of_copy(outcome.noise, place), by


def _one_by_one(found: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int, seed: int) -> Made:
    """Releases of a mechanism whose later questions follow from its noise."""
    asked: list[_Shrunk] = []

    def answer(question: GramQuestion) -> GramAnswer:
        through = None if question.through is None else question.through.matrix
        moments = found.moments(question.row_bound, through)
        asked.append(_Shrunk(question.row_bound, through, moments, len(asked) + 1))
        return GramAnswer(rows * (moments if through is None else through @ moments @ through.T), _public(task, rows))

    for place in range(_few(found, copies)):
        asked.clear()
        outcome = hold(mechanism.start(task, SeededSource(seed + place)), answer)
        yield outcome.gram, outcome.noise, asked[-1]


def _few(found: Ground, copies: int) -> int:
    """How many releases stand in for ``copies`` where each is made by itself."""
    few = max(FEW, copies // SLOWER)
    return max(FEWEST_WIDE, round(few * min(1.0, NARROW / len(found.schema.encoded))))


def _public(task: Task, rows: int) -> int | None:
    return rows if task.neighbours is Neighbours.REPLACE else None


def default_copies(found: Ground) -> int:
    """As many as a median over few coefficients needs; fewer for wide tables, where each takes long."""
    copies = min(max(FEWEST, math.ceil(ENOUGH / len(found.places))), MOST)
    return max(4, round(copies * min(1.0, WIDE / len(found.schema.encoded))))


def _of_copy(noise: Any, place: int) -> NoiseModel:
    """The noise of one of many releases that were made at once."""
    fields = {f.name: getattr(noise, f.name) for f in dataclasses.fields(noise)}
    numbers = {name: float(value[place]) if np.ndim(value) else float(value) for name, value in fields.items()}
    return type(noise)(**numbers)
