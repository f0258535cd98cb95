"""The Gaussian sketch: one draw of W_d(G + w^2 I, r) / r, the Johnson-Lindenstrauss transform of ridge-augmented rows.

Statement: with rows of norm at most B the draw has the exact curve ``sampling_delta`` with floor w^2/B^2 and r degrees of
freedom. Neighbours: REPLACE and ADD_REMOVE. Always positive definite when r >= d.
Proof: proofs/gaussian_sketch.md, in real arithmetic."""

from __future__ import annotations

import math
from typing import Any

from dpgram.accounting.compose import Cost, SamplingCost
from dpgram.accounting.wishart import calibrate_floor, sampling_delta
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import (
    PAPER,
    Conversation,
    Mechanism,
    Outcome,
    Parameters,
    Task,
    one_sum,
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
    r = sketch_rows(task)
    return draw_parameters(task, r, "w_squared", "sketch_rows", r > task.dim, "a whole number of sketch rows above d")


def draw_parameters(task: Task, degrees: float, ridge_name: str, degrees_name: str, enough: bool, needed: str) -> Parameters:
    """The parameters of a draw with so many degrees of freedom: the smallest ridge that meets the budget.

    The printed theorem needs a whole number of degrees that is ``enough``; ``needed`` says so."""
    epsilon, delta = task.budget.epsilon, task.budget.delta
    if task.calibration == PAPER:
        require(delta < 1 / math.e, "delta < 1/e")
        require(degrees.is_integer() and enough, needed)
        floor = printed_floor(degrees, epsilon, delta)
    else:
        floor = calibrate_floor(task.budget, degrees, task.neighbours, task.dim)
    return {
        ridge_name: math.nextafter(floor * task.row_bound**2, math.inf),
        degrees_name: degrees,
        "floor": floor,
        "delta_at_epsilon": sampling_delta(epsilon, degrees, floor, task.neighbours, task.dim),
    }


def sampling_cost(task: Task, parameters: Parameters) -> Cost:
    """A draw's curve composes where it is symmetric: under REPLACE, with two columns or more."""
    if task.neighbours is not Neighbours.REPLACE or task.dim < 2:
        return plain_cost(task, parameters)
    return SamplingCost(parameters.get("sketch_rows") or parameters["degrees_of_freedom"], parameters["floor"])


@proven("gaussian_sketch.md#theorem-2")
def draw_sketch(gram: Matrix, ridge: float, r: float, rng: RandomSource) -> Matrix:
    """One draw of W_d(gram + ridge I, r) / r, in O(d^3), whatever r."""
    root = square_root(gram, ridge) @ bartlett_factor(len(gram), r, rng)
    return root @ root.mT / per_copy(r)


def drawn(gram: Matrix, ridge: Any, r: Any, rng: RandomSource, parameters: Parameters, least: Any = 0.0) -> Outcome:
    """One draw as it is published; ``least`` is what the eigenvalues of ``gram`` are known to have."""
    noise = WishartSample(degrees_of_freedom=r, shift=ridge, floor=ridge + least)
    sketch, grid = publish(draw_sketch(gram, ridge, r, rng), noise, rng)
    return Outcome(sketch, noise, {**parameters, "w_squared": ridge, "sketch_rows": r}, grid)


def start(task: Task, rng: RandomSource) -> Conversation:
    parameters = calibrate(task)
    answer = yield from one_sum(task, MECHANISM.name, parameters)
    return drawn(known(answer.gram, rng), parameters["w_squared"], parameters["sketch_rows"], rng, parameters)


WORDS = {"w_squared": Words("ridge added to the matrix", SCALED), "sketch_rows": Words("rows of the sketch")}
MECHANISM = Mechanism(
    name="gaussian-sketch",
    summary="one Wishart draw around the Gram matrix plus a ridge (Algorithm 1: ridge regression by random projection)",
    proof="gaussian_sketch.md",
    words=WORDS,
    calibrate=calibrate,
    start=start,
    cost=sampling_cost,
    batched=True,
    options=by_name(Option("sketch_rows", float, "number of rows of the sketch, by default twice the number of columns")),
)
