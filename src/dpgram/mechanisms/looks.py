"""Looks at columns before the first round: noisy counts of rows in public bins tell the scale of columns whose bounds are wide.

Statement: a unit adds at most ``rows_per_unit`` to the bins of each of c columns, all together, so the counts of two neighbouring tables
differ by at most ``counts_sensitivity`` in Euclidean norm, and a look with noise of standard deviation s is a Gaussian mechanism of shift
``look_shift``. Looks and rounds whose shifts are chosen from what was published before, and whose squares surely add up to mu^2
at most, are together a Gaussian mechanism of shift mu.
Proof: proofs/learnt_scales.md."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dpgram.accounting.compose import GaussianCost
from dpgram.errors import MechanismError
from dpgram.mechanisms import ranges, whitening
from dpgram.mechanisms.conversation import CountsQuestion, Drawing, GramAnswer, Task, publish
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise
from dpgram.mechanisms.options import Option
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import RandomSource, known
from dpgram.terms.bins import Bins
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import SymmetricGaussian

LOOKS = Option(
    "looks",
    str,
    "auto spends a few per cent of the budget to find the scale of columns with wide bounds, none uses the bounds as they are",
    default="auto",
    choices=("auto", "none"),
)
MOST_SPENT = 0.1  # of mu^2, by all looks: more than the rules ever ask for


@dataclass(frozen=True)
class Looked:
    """What came of all looks."""

    task: Task  # with what was learnt
    shifts: tuple[float, ...] = ()  # of each look
    sds: tuple[float, ...] = field(default=())  # of the noise in its counts


class LookRules(Protocol):
    """What decides about looks: those of ``ranges``, or others."""

    def next_bins(self, seen: Sequence[ranges.Look], declared: ranges.Intervals, /) -> Bins | None: ...

    def intervals(self, seen: Sequence[ranges.Look], declared: ranges.Intervals, rows: float | None, /) -> ranges.Intervals: ...


@proven("learnt_scales.md#lemma-1")
def counts_sensitivity(columns: int, neighbours: Neighbours, rows_per_unit: int) -> float:
    """Largest Euclidean change of the counts in bins of so many columns between two neighbouring tables; rounded up."""
    bins_moved = {Neighbours.ADD_REMOVE: 1, Neighbours.REPLACE: 2}[neighbours]  # of each column, by all rows of a unit
    return math.nextafter(math.sqrt(bins_moved * columns * rows_per_unit**2), math.inf)


@proven("learnt_scales.md#lemma-1")
def look_shift(sd: float, columns: int, neighbours: Neighbours, rows_per_unit: int) -> float:
    """mu of a look at so many columns whose counts get noise of ``sd``; rounded up."""
    return math.nextafter(counts_sensitivity(columns, neighbours, rows_per_unit) / sd, math.inf)


@proven("learnt_scales.md#theorem-1")
def shift_left(mu: float, shifts: Sequence[float]) -> float:
    """What looks of these ``shifts`` leave of ``mu`` to the rounds; rounded down."""
    spent = math.fsum(each**2 for each in shifts)
    if spent > MOST_SPENT * mu**2:
        raise MechanismError("looks at columns would take more of the budget than they may: this is a bug, report it.")
    return mu if not shifts else math.sqrt(mu**2 - spent) * (1 - 2.0**-50)


@proven("learnt_scales.md#theorem-3")
def noted_shift(place: int, first: float, mu: float, task: Task, rows: float | None) -> float:
    """What is noted with drawing number ``place`` of a release that looks at columns: at least the shift of all that was drawn by then.

    It depends on public numbers alone, and not on what was drawn: ``first`` is the shift of the first look. No early round has more than
    one over their number of what is left, and none can be the last before all that there are at least."""
    if place == 1:
        return first
    lefts = (mu, mu * math.sqrt(1 - MOST_SPENT))
    fewest = min(len(whitening.rules(task.dim, rows, left / task.rows_per_unit).shares) for left in lefts)
    if place > fewest:
        return mu
    return min(mu, mu * math.sqrt(MOST_SPENT + (place - 1) / fewest) * (1 + 2.0**-50))


@proven("learnt_scales.md#theorem-2")
def learn(
    task: Task, rng: RandomSource, mu: float, rows: float | None, sample: float | None = None, rules: LookRules = ranges
) -> Generator[CountsQuestion | Drawing, GramAnswer, Looked]:
    """The task with the scales of its columns, learnt in a few looks; ``rows`` is their number as far as it is public.
    Looks are at a ``sample`` of them, where there is one.

    Whatever the ``rules`` do, what comes back is private: they see what is declared, public numbers and noisy counts."""
    seen: list[ranges.Look] = []
    shifts: tuple[float, ...] = ()
    summed = rows  # by a look, as far as it is public
    declared = wide_columns(task)
    while (bins := rules.next_bins(seen, declared)) is not None:
        answer = yield CountsQuestion(bins, sample=sample)
        rows = rows if answer.rows is None else float(answer.rows)
        summed = None if rows is None else rows * (sample or 1.0)
        sd = counts_sd(len(bins.inner), summed, mu, task, place=len(seen))
        if sd is None:
            break
        shifts = (*shifts, look_shift(sd, len(bins.inner), task.neighbours, task.rows_per_unit))
        shift_left(mu, shifts)  # or an error, before anything is drawn
        spent = noted_shift(len(shifts), shifts[0], mu, task, rows)
        yield Drawing(len(seen) + 1, len(seen) + 2, GaussianCost(spent))
        noisy = add_symmetric_noise(known(answer.gram, rng), sd, sd, rng)
        matrix, _ = publish(noisy, SymmetricGaussian(sd, sd), rng)
        seen.append(ranges.Look(bins, bins.unpacked(matrix), sd))
    found = rules.intervals(seen, declared, None if task.counts_partly else summed)
    return Looked(task.having_learnt(found), shifts, tuple(look.sd for look in seen))


def counts_sd(columns: int, rows: float | None, mu: float, task: Task, *, place: int) -> float | None:
    """The noise of look number ``place``, from 0, at so many columns; None where it would tell nothing."""
    sensitivity = counts_sensitivity(columns, task.neighbours, task.rows_per_unit)
    share = ranges.share(columns, rows, mu, moved=sensitivity**2 / columns, place=place)
    return sensitivity / (mu * math.sqrt(share)) if share > 0 else None


def wide_columns(task: Task) -> ranges.Intervals:
    """The declared bounds of the columns to look at: none where the rows are not those of a table, or where looks were declined."""
    return {} if task.schema is None or LOOKS.of(task.options) == "none" else task.schema.looked_at


def planned(task: Task, mu: float, rows: float | None) -> Looked:
    """What looks are expected to spend where bounds fit: that of the first look."""
    columns = len(wide_columns(task))
    sd = counts_sd(columns, rows, mu, task, place=0) if columns else None
    return Looked(task) if sd is None else Looked(task, (look_shift(sd, columns, task.neighbours, task.rows_per_unit),), (sd,))
