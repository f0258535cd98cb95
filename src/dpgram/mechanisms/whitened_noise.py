"""Gaussian noise in several rounds, each on rows whitened by what the rounds before it published.

Statement: if round i adds symmetric Gaussian noise of off-diagonal sd t_i to the Gram of rows z = T_i a, shrunk to ||z||_2 <= 1 after
the map, and T_i is made of what rounds 1 to i - 1 published, then all that is published together is a Gaussian mechanism of shift
mu = sqrt(sum mu_i^2), mu_i = ``gram_sensitivity`` / (sqrt(2) t_i), and has the exact curve ``gaussian_delta``. The last round may share
long rows between sums at several scales, each with noise of that sd in its own units: its mu_i is the same. The mu_i are fixed before
the first noise of a round is drawn; looks at columns (looks.py) may come first, and their squares count in the sum. A unit of
``rows_per_unit`` rows moves each sum by as many times as much. Neighbours: REPLACE and ADD_REMOVE. Nothing is assumed of the data.
Proof: proofs/whitened_noise.md, on top of proofs/gaussian_noise.md; proofs/exact_release.md and proofs/floating_point.md carry it to what
is published."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpgram.accounting.compose import GaussianCost
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.errors import MechanismError
from dpgram.mechanisms import whitening
from dpgram.mechanisms.conversation import (
    PAPER,
    Conversation,
    Drawing,
    GramQuestion,
    Mechanism,
    Outcome,
    Parameters,
    Task,
    ask_back,
    publish,
)
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise, diagonal_sd, gaussian_cost, gram_sensitivity, shift
from dpgram.mechanisms.looks import LOOKS, Looked, learn, noted_shift, planned, shift_left
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.mechanisms.ranges import MOST_LOOKS
from dpgram.sampling.base import RandomSource, known
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import Round, SymmetricGaussian
from dpgram.terms.public_map import MOST_COLUMNS, PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.words import Point, Words, percent

NextMap = Callable[[Sequence[Round], whitening.Rules, float | None, Task], PublicMap]
"""(what was published, the rules, the public number of rows or a guess of it, the task) -> the next round's map."""
ScalesOf = Callable[[PublicMap, Task], Scales]
"""(the last round's map, the task) -> the scales of that round."""
Finished = Callable[[Sequence[Round], float | None, Task], Outcome]
"""(all that was published, the number of rows, the task) -> what is made of it."""

MAPPED_BOUND = 1.0  # the clip of every round is folded into its map


@proven("whitened_noise.md#theorem-1")
def round_sds(mu: float, shares: tuple[float, ...], neighbours: Neighbours, rows_per_unit: int) -> tuple[float, ...]:
    """The off-diagonal noise sd of each round, where round i has the share ``shares[i]`` of mu^2; rounded up."""
    sensitivity = gram_sensitivity(MAPPED_BOUND, neighbours, rows_per_unit)
    return tuple(math.nextafter(sensitivity / (math.sqrt(2) * mu * math.sqrt(share)), math.inf) for share in shares)


@proven("whitened_noise.md#theorem-1")
def total_shift(sds: tuple[float, ...], neighbours: Neighbours, rows_per_unit: int, looks: tuple[float, ...] = ()) -> float:
    """mu of all rounds together, and of ``looks`` of these shifts before them."""
    sensitivity = gram_sensitivity(MAPPED_BOUND, neighbours, rows_per_unit)
    return math.hypot(*looks, *(shift(off, diagonal_sd(off), sensitivity) for off in sds))


@proven("units.md#theorem-5")
def hinted_rows(task: Task) -> float | None:
    """The number of rows as far as it is public before any row is read."""
    hint = task.number("table_rows")
    if hint is not None and not hint >= 1:
        raise MechanismError(f"table_rows is {hint:g} and must be a number of rows, 1 or more.")
    if task.rows is not None:
        return float(task.rows)
    return float(task.units * task.rows_per_unit) if hint is None and task.units is not None else hint


@proven("units.md#theorem-5")
def rules_for(task: Task, rows: float | None, mu: float) -> whitening.Rules:
    """The rules for about so many rows. Noise hides a whole unit, so of ``mu`` one row has its part: rules weigh noise against rows."""
    return whitening.rules(task.dim, rows, mu / task.rows_per_unit)


def calibrate(task: Task) -> Parameters:
    """The shift of all rounds together; what each round has of it too, where the number of rows is known or a hint is given."""
    check(task)
    mu = calibrate_mu(task.budget)
    rows = hinted_rows(task)
    if rows is None and task.neighbours is Neighbours.REPLACE:  # the first pass counts the rows or units, which are public
        return {"mu": mu, "delta_at_epsilon": gaussian_delta(task.budget.epsilon, mu)}
    sample = whitening.sampled(rules_for(task, rows, mu), rows, task)
    looked = planned(task, mu, rows if rows is None else rows * (sample or 1.0))
    left = shift_left(mu, looked.shifts)
    sds = round_sds(left, rules_for(task, rows, left).shares, task.neighbours, task.rows_per_unit)
    return with_rounds(task, sds, looked, sample)


def check(task: Task) -> None:
    if task.calibration == PAPER:
        raise MechanismError("whitened-noise is not in the paper. Use calibration='exact'.")
    if task.dim > MOST_COLUMNS:
        raise MechanismError(
            f"whitened-noise takes at most {MOST_COLUMNS} encoded columns, but there are {task.dim}. Use gaussian-noise."
        )
    hidden = task.neighbours is Neighbours.ADD_REMOVE or task.by_unit
    if hidden and not task.intercept and hinted_rows(task) is None:
        why = "With a unit_id" if task.by_unit else 'Under neighbours = "add-remove"'
        raise MechanismError(
            f"whitened-noise needs to know roughly how many rows there are. {why} this number is protected, and "
            "without an intercept the release does not show it. Give a public guess (table_rows), or set intercept = true in the schema."
        )


def with_rounds(task: Task, sds: tuple[float, ...], looked: Looked | None = None, sample: float | None = None) -> Parameters:
    """The parameters of all looks and rounds, with their true curve."""
    looked = looked or Looked(task)
    mu = total_shift(sds, task.neighbours, task.rows_per_unit, looked.shifts)
    sensitivity = gram_sensitivity(MAPPED_BOUND, task.neighbours, task.rows_per_unit)
    parameters = {
        "mu": mu,
        "delta_at_epsilon": gaussian_delta(task.budget.epsilon, mu),
        "frobenius_sensitivity": sensitivity,
        "rounds": float(len(sds)),
    }
    for place, off in enumerate(sds, 1):
        parameters[f"round_{place}_sd_off_diagonal"] = off
        parameters[f"round_{place}_mu"] = shift(off, diagonal_sd(off), sensitivity)
    if looked.sds:
        parameters["looks"], parameters["looks_mu"] = float(len(looked.sds)), math.hypot(*looked.shifts)
        parameters |= {f"look_{place}_sd": sd for place, sd in enumerate(looked.sds, 1)}
    if sample is not None and sample < 1.0:
        parameters["sample"] = sample
    hint = task.number("table_rows")
    if hint is not None and (
        task.by_unit or task.neighbours is Neighbours.ADD_REMOVE
    ):  # else the rules follow the table's own number
        parameters["table_rows"] = hint
    return parameters


@proven("whitened_noise.md#theorem-2")
def start(
    task: Task,
    rng: RandomSource,
    next_map: NextMap = whitening.next_map,
    finished: Finished = whitening.finished,
    scales_of: ScalesOf = whitening.scales,
) -> Conversation:
    """Whatever ``next_map``, ``scales_of`` and ``finished`` do, the release is private: they look at nothing but what they are given."""
    expected = calibrate(task)
    ask_back(task, MECHANISM.name, expected["delta_at_epsilon"])
    mu = calibrate_mu(task.budget)  # not that of rounds, rounded twice: what is released would not be what was calibrated
    rows = hinted_rows(task)
    sample = whitening.sampled(rules_for(task, rows, mu), rows, task)
    looked = yield from learn(task, rng, mu, rows, sample)
    task, before = looked.task, len(looked.shifts)
    left = shift_left(mu, looked.shifts)
    through = whitening.first_map(task.dim, task.row_bound, task.stretches)
    asked = scales_of(through, task) if expected.get("rounds") == 1 else ONE_CLIP, sample
    answer = yield GramQuestion(MAPPED_BOUND, through, None, asked[0], task.learnt, sample)
    rows = rows if answer.rows is None else float(answer.rows)
    rules = rules_for(task, rows, left)  # public: the number of rows is, or stands in for, a public one
    sds = round_sds(left, rules.shares, task.neighbours, task.rows_per_unit)
    parameters = with_rounds(task, sds, looked, sample)
    ask_back(task, MECHANISM.name, parameters["delta_at_epsilon"])
    task = replace(task, rows=answer.rows)
    seen: list[Round] = []
    for place, off in enumerate(sds, 1):
        if seen:
            through = next_map(seen, rules, rows, task)
        scales = scales_of(through, task) if place == len(sds) else ONE_CLIP
        if place == len(sds) and sample != 1.0:
            sample = None  # the last round is over all rows
        if (
            seen or (scales, sample) != asked
        ):  # the first sum is asked for again where it turns out to be the last, or not to be
            answer = yield GramQuestion(MAPPED_BOUND, through, before + len(sds), scales, task.learnt, sample)
        on = diagonal_sd(off)
        spent = total_shift(sds[:place], task.neighbours, task.rows_per_unit)
        if before:
            spent = noted_shift(before + place, looked.shifts[0], mu, task, rows)
        yield Drawing(before + place, before + len(sds), GaussianCost(spent))
        published = []
        for _, matrix in zip(scales, (answer.gram, *answer.outer), strict=True):
            noisy = add_symmetric_noise(known(matrix, rng), off, on, rng)
            published.append(publish(noisy, SymmetricGaussian(off, on), rng)[0])
        seen.append(
            Round(through.matrix, published[0], off, kept=1.0, outer=tuple(published[1:]), scales=scales, sampled=sample or 1.0)
        )
    made = finished(seen, rows, task)
    return replace(made, parameters={**parameters, **made.parameters}, learnt=task.learnt)


MECHANISM = Mechanism(
    name="whitened-noise",
    summary="Gaussian noise in several rounds, on rows whitened by earlier rounds: for correlated columns and wide bounds",
    proof="whitened_noise.md",
    words={
        "table_rows": Words("public guess of the number of rows"),
        "sample": Words(
            "rows in the sample", "for looks and for all rounds except the last; a secret coin decides for each row", percent
        ),
        "scales": Words(
            "scales of the last round", "each with a noisy matrix; rows longer than the clip are shared between them"
        ),
        "round_mu": Words("share of the budget", show=lambda mu, parameters: percent((mu / parameters["mu"]) ** 2)),
        "round_sd_off_diagonal": Words("noise sd", "off the diagonal, for whitened rows"),
        "round_kept": Words(
            "left after clipping", "average share of a row's squared length, estimated from the release", percent
        ),
        "round_stretch": Words(""),
        "looks": Words("looks at columns", "before the first round, to find their scale"),
        "looks_mu": Words("share of the budget for looks", show=lambda mu, parameters: percent((mu / parameters["mu"]) ** 2)),
        **{f"look_{place}_sd": Words("") for place in range(1, MOST_LOOKS + 1)},
        "row_bound": Words("row bound", "for whitened rows", show=lambda *_: "1", point=Point.BOUNDS),
    },
    calibrate=calibrate,
    start=start,
    cost=gaussian_cost,
    takes_units=True,
    several=True,
    options=by_name(
        LOOKS,
        whitening.MEMORY,
        Option(
            "table_rows",
            float,
            "a public guess of the number of rows where it is protected, by default what the first round or the number of units says",
        ),
    ),
)
