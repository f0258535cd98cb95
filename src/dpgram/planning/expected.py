"""What a release would give, from public facts alone: a made-up Gram goes through the real mechanism, and is read as an analyst would.

The made-up Gram is n times the moments of assumed rows, shrunk to the row bound. Each mechanism releases it some dozens of times, with
noise from fixed seeds; the default estimator and the intervals are those that `regress` uses. Errors are medians of absolute
values: half of all releases do better. They are counted from least squares on rows that were not shrunk, so that what shrinking does is
in them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np
from scipy.special import ndtri

from dpgram.errors import BudgetError, MechanismError, ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import quantile, uncertainty, weakly_identified
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import (
    EXACT_CURVE,
    CountsQuestion,
    GramAnswer,
    GramQuestion,
    Mechanism,
    Question,
    Task,
    hold,
)
from dpgram.mechanisms.registry import TABLE_ROWS
from dpgram.planning.ground import NORMAL_MEDIAN, Ground
from dpgram.regression.channel import channel
from dpgram.regression.fit import fit_linear, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import NoiseModel
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

Array = np.ndarray

CONFIDENCE, POWER = 0.95, 0.80
FEWEST, MOST, ENOUGH = 48, 200, 1200  # releases of each mechanism, and errors of coefficients to take a median over
WIDE = 100  # columns, beyond which there are fewer releases
FEW, SLOWER = 8, 6  # releases of a mechanism that is drawn one at a time: so many fewer, and no fewer than a few,
NARROW, FEWEST_WIDE = 50, 3  # but fewer still beyond so many columns, where each has many coefficients to take a median over
SEED = 0  # of the first release
STEPS = 16  # in which what a first stage publishes varies between releases
BATCHES = 8  # of a mechanism's releases, whose own errors say how sure a forecast is
NORMALS = ndtri((np.arange(40) + 0.5) / 40)


@dataclass(frozen=True)
class Coefficient:
    """What to expect of one coefficient, in own units. Infinite widths and effects: not identified at this budget."""

    name: str
    size: float  # the coefficient itself, as assumed
    sampling_error: float  # of least squares on the rows themselves, not private
    noise_error: float  # of the private estimate, from least squares on the shrunk rows, or on what it knows of them
    shrinking_error: float  # what shrinking rows does to least squares, but for what estimates put back
    privacy_error: float  # both together: of the private estimate, from least squares on the rows themselves
    error: float  # of the private estimate, from the law that made the rows
    width: float  # of the 95 % interval
    detectable: float  # the smallest effect that a 95 % test finds in 80 % of releases


@dataclass(frozen=True)
class Expected:
    """What to expect of one mechanism; the ``typical`` coefficient is the median one, in the units of the one that it names."""

    mechanism: str
    noise_sd: float = math.nan  # off the diagonal, in scaled units, along the weakest directions; the median draw's
    degrees: float = math.inf  # of freedom, where noise multiplies
    passes: int = 1  # over the table: how often it is read; the median draw's
    rounds: int = 1  # likewise
    typical: Coefficient | None = None  # None where the mechanism is refused
    wobble: float = 0.0  # the relative standard error of the typical error, from the number of releases that were drawn
    coefficients: tuple[Coefficient, ...] = ()
    refused: str = ""  # why there is no forecast, in words

    @property
    def error(self) -> float:
        """Of the typical coefficient; infinite where the mechanism is refused."""
        return math.inf if self.typical is None else self.typical.error

    @property
    def identified(self) -> bool:
        """Whether the interval of the typical coefficient has ends."""
        return self.typical is not None and math.isfinite(self.typical.width) and math.isfinite(self.typical.error)


class How(TypedDict, total=False):
    """What else ``expect`` can be told, for those who pass it on. Each of ``options`` goes to the mechanisms that have it."""

    calibration: str
    options: Mapping[str, float | str] | None
    copies: int | None


def expect(
    ground: Ground,
    mechanism: Mechanism,
    budget: Budget,
    rows: int,
    *,
    calibration: str = EXACT_CURVE,
    options: Mapping[str, float | str] | None = None,
    copies: int | None = None,
) -> Expected:
    """What one mechanism would give; where it cannot be used like this, why not."""
    schema = ground.schema
    own = {name: value for name, value in (options or {}).items() if name in mechanism.options}
    try:
        task = registry.schema_task(mechanism, budget, schema, calibration, own)
        if TABLE_ROWS in mechanism.options and _public(task, rows) is None:
            task = replace(task, options={**task.options, TABLE_ROWS: rows})
        task = replace(task, rows=_public(task, rows))
        drawn = draw(ground, mechanism, task, rows, copies or default_copies(ground))
    except (MechanismError, ModelError, BudgetError) as error:  # a part of a tiny budget can be too small
        return Expected(mechanism.name, refused=str(error))
    except (np.linalg.LinAlgError, OverflowError):  # the latter where epsilon is in the hundreds
        return Expected(mechanism.name, refused="its numbers leave double precision here.")
    sampling = ground.sampling_sd(rows)
    known = np.isfinite(sampling)
    moved = ground.shrinking(*drawn.shrunk_by)
    errors = drawn.errors + moved.bias
    put_back = np.clip(-np.median(drawn.errors, axis=0), np.minimum(moved.bias, 0.0), np.maximum(moved.bias, 0.0))
    between = moved.per_row / math.sqrt(ground.effective(rows))
    whole = np.hypot(between, np.where(known, sampling, 0.0))
    columns = {
        "size": np.abs(ground.truth),
        "sampling_error": NORMAL_MEDIAN * sampling,
        "noise_error": np.median(np.abs(drawn.errors + put_back), axis=0),
        "shrinking_error": median_size((moved.bias - put_back)[None], between),
        "privacy_error": median_size(errors, between),
        "error": np.where(known, median_size(errors, whole), np.inf),
        "width": np.median(drawn.widths, axis=0),
        "detectable": np.median(drawn.detectable, axis=0),
    }
    return Expected(
        mechanism.name,
        noise_sd=float(np.median(drawn.noise_sd)),
        degrees=float(np.median(drawn.degrees)),
        passes=round(float(np.median(drawn.passes))),
        rounds=round(float(np.median(drawn.rounds))),
        typical=Coefficient(
            ground.design.names[ground.typical], **{name: ground.in_typical_units(values) for name, values in columns.items()}
        ),
        wobble=_wobble(
            [ground.in_typical_units(median_size(part, whole)) for part in np.array_split(errors, BATCHES) if len(part)]
        ),
        coefficients=tuple(
            Coefficient(name, **{key: float(values[place]) for key, values in columns.items()})
            for place, name in enumerate(ground.design.names)
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
class DrawnErrors:
    """Releases of a made-up table, as an analyst reads them: (copies, p) in own units."""

    shrunk_by: tuple[float, Array | None]  # what rows were shrunk to, after which map; of the first copy
    errors: Array  # from least squares on the same shrunk rows
    widths: Array
    detectable: Array
    noise_sd: Array
    degrees: Array
    passes: Array
    rounds: Array


def draw(ground: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int) -> DrawnErrors:
    """``copies`` releases of the table that ``ground`` stands for.

    The same underlying normal numbers stand behind every budget and number of rows, so that curves are smooth."""
    made = _all_at_once if mechanism.batched else _one_by_one
    out: list[tuple[Array, ...]] = []
    first: _Shrunk | None = None
    for grams, noise, by in made(ground, mechanism, task, rows, copies):
        first = first or by
        most = rows if task.neighbours is Neighbours.REPLACE else None  # also of units: their number is public, and bounds it
        evidence = Evidence.made(ground.schema, grams, noise, most)
        evidence.design_effect = ground.design_effect  # also for tables with fewer rows than it takes
        seen = channel(evidence, ground.design)
        se = np.where(weakly_identified(seen), np.inf, uncertainty(seen).se)
        reach = quantile(CONFIDENCE, seen.degrees)
        errors = fit_linear(evidence, ground.design, "shrunk") - solve(by.moments, ground.design)
        effect = (reach + float(ndtri(POWER))) * se
        numbers = (noise.sd_off_diagonal, noise.degrees_of_freedom, by.passes, by.rounds)
        many = 1 if grams.ndim == 2 else len(grams)
        out.append((*(np.atleast_2d(each) for each in (errors, 2 * reach * se, effect)), *(np.full(many, x) for x in numbers)))
    assert first is not None
    return DrawnErrors((first.row_bound, first.through), *(np.concatenate(column) for column in zip(*out, strict=True)))


class _Shrunk(NamedTuple):
    """What rows were shrunk to, after which map, and their moments then; how often the table was read by then, and for how many rounds."""

    row_bound: float
    through: Array | None
    moments: Array
    passes: int = 1
    rounds: int = 1


MadeUpReleases = Iterator[tuple[Array, NoiseModel, _Shrunk]]
"""Some releases with the same noise, (any number, d, d), or one of them, (d, d)."""


def _all_at_once(ground: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int) -> MadeUpReleases:
    """Releases of a mechanism that asks for one sum, those with the same noise together."""
    by = _Shrunk(task.row_bound, None, ground.moments(task.row_bound))
    answer = GramAnswer(rows * ground.counted * by.moments, _public(task, rows))
    outcome = hold(mechanism.start(task, _ManyAtOnce(copies)), lambda question: answer)
    alike: dict[NoiseModel, list[int]] = {}
    for place in range(copies):
        alike.setdefault(_of_copy(outcome.noise, place), []).append(place)
    for noise, places in alike.items():
        yield outcome.gram[places], noise, by


class _ManyAtOnce(SeededSource):
    """Many copies from the first seed. What a first stage publishes takes a few values only, each the mean of some copies that are close
    together: every one of them is calibrated for by itself, which costs more than all else."""

    def __init__(self, copies: int):
        super().__init__(SEED)
        self.copies = (copies,)

    def publish_below(self, number: Array, step: float) -> Array:
        alike = np.array_split(np.argsort(number), min(STEPS, len(number)))
        out = np.empty_like(number)
        for places in alike:
            out[places] = number[places].mean()
        return out


def _one_by_one(ground: Ground, mechanism: Mechanism, task: Task, rows: int, copies: int) -> MadeUpReleases:
    """Releases of a mechanism whose later questions follow from its noise; fewer, because each is made by itself."""
    asked: list[_Shrunk] = []
    read: list[float | None] = []  # for what the table was read: rows to keep, or a sum over all of them
    first: dict[tuple[float, bytes, Scales], list[Array]] = {}  # the first question, which is the same for all
    maps: set[bytes] = set()

    def answer(question: Question) -> GramAnswer:
        if question.sample is None or question.sample not in read:
            read.append(question.sample)
        if isinstance(question, CountsQuestion):
            counts = _fitting_counts(question.bins, ground.schema, rows * ground.counted)
            return GramAnswer(counts * (question.sample or 1.0), _public(task, rows))
        through = None if question.through is None else question.through.matrix
        key = (question.row_bound, b"" if through is None else through.tobytes(), question.scales)
        each = first.get(key) or _moments(ground, question, through)
        if not asked:
            first[key] = each
        maps.add(key[1])  # a sum at other scales is the same round's
        asked.append(_Shrunk(question.row_bound, through, each[0], len(read), len(maps)))
        summed = rows * ground.counted * (question.sample or 1.0)
        gram, *outer = (summed * (moments if through is None else through @ moments @ through.T) for moments in each)
        return GramAnswer(gram, _public(task, rows), tuple(outer))

    few = max(FEW, copies // SLOWER)
    for place in range(max(FEWEST_WIDE, round(few * min(1.0, NARROW / len(ground.schema.encoded))))):
        asked.clear()
        read.clear()
        maps.clear()
        outcome = hold(mechanism.start(task, SeededSource(SEED + place)), answer)
        yield outcome.gram, outcome.noise, asked[-1]


def _moments(ground: Ground, question: GramQuestion, through: Array | None) -> list[Array]:
    """The mean of z z' at each of the scales that are asked for."""
    if through is None or question.scales == ONE_CLIP:
        return [ground.moments(question.row_bound, through)]
    return ground.moments_at(through, question.scales)


def _fitting_counts(bins: Bins, schema: Schema, rows: float) -> Array:
    """Rows spread evenly over the declared bounds: a plan takes them to fit, and knows what it costs to find that out."""
    declared = schema.looked_at
    widths = [np.diff([declared[name][0], *inner, declared[name][1]]) for name, inner in bins.inner.items()]
    return bins.packed(np.concatenate([rows * width / width.sum() for width in widths]))


def _public(task: Task, rows: int) -> int | None:
    return rows if task.neighbours is Neighbours.REPLACE and not task.by_unit else None


def default_copies(ground: Ground) -> int:
    """As many as a median over few coefficients needs; fewer for wide tables, where each takes long."""
    copies = min(max(FEWEST, math.ceil(ENOUGH / len(ground.places))), MOST)
    return max(4, round(copies * min(1.0, WIDE / len(ground.schema.encoded))))


def _of_copy(noise: Any, place: int) -> NoiseModel:
    """The noise of one of many releases that were made at once."""
    fields = {f.name: getattr(noise, f.name) for f in dataclasses.fields(noise)}
    numbers = {name: float(value[place]) if np.ndim(value) else float(value) for name, value in fields.items()}
    return type(noise)(**numbers)
