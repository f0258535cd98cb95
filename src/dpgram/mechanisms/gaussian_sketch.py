"""The Gaussian sketch: one draw of W_d(G + w^2 I, r) / r, the Johnson-Lindenstrauss transform of ridge-augmented rows.

Statement: with rows of norm at most B the draw has the exact curve ``sampling_delta`` with floor w^2/B^2 and r degrees of
freedom. Neighbours: REPLACE and ADD_REMOVE. Always positive definite when r >= d.
Proof: proofs/gaussian_sketch.md, in real arithmetic."""

from __future__ import annotations

import math

from dpgram.accounting.compose import Cost, SamplingCost
from dpgram.accounting.wishart import calibrate_floor, sampling_delta
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import (
    PAPER,
    Conversation,
    GramQuestion,
    Mechanism,
    Outcome,
    Parameters,
    Task,
    ask_back,
    plain_cost,
    publish,
    require,
)
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import Matrix, RandomSource, known
from dpgram.sampling.variates import bartlett_factor, per_copy, square_root
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import WishartSample
from dpgram.terms.words import SCALED, Words


def sketch_rows(task: Task) -> float:
    """The number of rows of the sketch: as given, or twice the number of columns."""
    r = task.number("sketch_rows") or 2.0 * task.dim
    if not (1 <= r <= 1e12) or (r <= task.dim - 1 and not r.is_integer()):
        raise MechanismError(
            f"sketch_rows is {r:g} and must lie between 1 and 1e12, and be whole unless it is above d - 1 = {task.dim - 1}."
        )
    return r


def printed_floor(r: float, epsilon: float, delta: float) -> float:
    """w^2/B^2 of the printed theorem, at the budget it is given."""
    log = math.log(4 / delta)
    return 4 * (math.sqrt(2 * r * log) + log) / epsilon


def calibrate(task: Task) -> Parameters:
    r, budget = sketch_rows(task), task.budget
    if task.calibration == PAPER:
        require(budget.delta < 1 / math.e, "delta < 1/e")
        require(r.is_integer() and r > task.dim, "a whole number of sketch rows above d")
        floor = printed_floor(r, budget.epsilon, budget.delta)
    else:
        floor = calibrate_floor(budget, r, task.neighbours, task.dim)
    return {
        "w_squared": math.nextafter(floor * task.row_bound**2, math.inf),
        "sketch_rows": r,
        "floor": floor,
        "delta_at_epsilon": sampling_delta(budget.epsilon, r, floor, task.neighbours, task.dim),
    }


def sampling_cost(task: Task, found: Parameters) -> Cost:
    """A draw's curve composes where it is symmetric: under REPLACE, with two columns or more."""
    if task.neighbours is not Neighbours.REPLACE or task.dim < 2:
        return plain_cost(task, found)
    return SamplingCost(found.get("sketch_rows") or found["degrees_of_freedom"], found["floor"])


@proven("gaussian_sketch.md#theorem-2")
def draw_sketch(gram: Matrix, ridge: float, r: float, rng: RandomSource) -> Matrix:
    """One draw of W_d(gram + ridge I, r) / r, in O(d^3), whatever r."""
    root = square_root(gram, ridge) @ bartlett_factor(len(gram), r, rng)
    return root @ root.mT / per_copy(r)


def start(task: Task, rng: RandomSource) -> Conversation:
    found = calibrate(task)
    ask_back(task, MECHANISM.name, found["delta_at_epsilon"])
    answer = yield GramQuestion(task.row_bound)
    w_squared, r = found["w_squared"], found["sketch_rows"]
    noise = WishartSample(degrees_of_freedom=r, shift=w_squared, floor=w_squared)
    gram, grid = publish(draw_sketch(known(answer.gram, rng), w_squared, r, rng), noise, rng)
    return Outcome(gram, noise, found, grid)


WORDS = {"w_squared": Words("ridge added to the matrix", SCALED), "sketch_rows": Words("rows of the sketch")}
MECHANISM = Mechanism(
    name="gaussian-sketch",
    summary="a Wishart draw around the Gram plus a ridge (Algorithm 1: ridge regression by random projection)",
    proof="gaussian_sketch.md",
    words=WORDS,
    calibrate=calibrate,
    start=start,
    cost=sampling_cost,
    batched=True,
    options=by_name(Option("sketch_rows", float, "rows r of the sketch; twice the number of columns when left out")),
)
