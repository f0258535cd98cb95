"""Additive Wishart noise: G + W with W from W_d(C I, k), as if k random rows had been added (Algorithm 3).

Statement: the curve is bounded by ``additive_delta`` with b = B^2/C. Neighbours: REPLACE and ADD_REMOVE. The mean of the noise,
k C I, is public; it is taken off as far as positive definiteness allows: all of it, or what the noise's smallest eigenvalue
exceeds with high probability. With d + 1 degrees of freedom, as peers shipped it, no budget of small delta is ever met.
Proof: proofs/wishart_noise.md, in real arithmetic."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Any

import numpy as np

from dpgram.accounting.additive_wishart import additive_delta, calibrate_b, calibrate_degrees, meets_budget
from dpgram.accounting.gaussian import calibrate_mu
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import PAPER, Conversation, Mechanism, Outcome, Parameters, Task, one_sum, publish, require
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import Matrix, RandomSource, known
from dpgram.sampling.variates import bartlett_factor, per_copy, plain
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import SymmetricGaussian
from dpgram.terms.words import SCALED, Words

REPAIR = Option("repair", str, "none leaves the mean of the noise in the matrix, as Algorithm 3 is printed", choices=("none",))
WITHIN = 1.05  # the default scale keeps the noise within 5 % of its Gaussian limit


def calibrate(task: Task) -> Parameters:
    squared_bound = task.row_bound**2
    scale, k = task.number("scale"), task.number("degrees_of_freedom")
    if k is not None and (not k.is_integer() or not task.dim + 1 <= k <= 1e12):
        raise MechanismError(f"degrees_of_freedom is {k:g} and must be whole, from d + 1 = {task.dim + 1} to 1e12.")
    if scale is not None and not scale > 0:
        raise MechanismError(f"scale is {scale:g} and must be positive.")
    if task.calibration == PAPER:
        require(task.budget.epsilon < 1, "epsilon < 1")
        require(task.budget.delta < 1 / math.e, "delta < 1/e")
        scale = squared_bound
        k = math.floor(task.dim + 28 / task.budget.epsilon**2 * math.log(4 / task.budget.delta))
    elif scale is not None and k is None:
        try:
            k = calibrate_degrees(task.budget, task.dim, squared_bound / scale, task.neighbours)
        except ValueError as error:
            raise MechanismError(f"{error}.") from None
    elif k is not None and scale is None:
        scale = math.nextafter(squared_bound / _b(task, int(k)), math.inf)
    elif k is None or scale is None:
        k, scale = _near_the_gaussian_limit(task)
    return {
        "scale": scale,
        "degrees_of_freedom": float(k),
        "sd_off_diagonal": scale * math.sqrt(k),
        "mean_shift": scale * k,
        "delta_at_epsilon": additive_delta(task.budget.epsilon, int(k), task.dim, squared_bound / scale, task.neighbours),
    }


def _b(task: Task, k: int) -> float:
    b = calibrate_b(task.budget, k, task.dim, task.neighbours)
    if b == 0.0:
        raise MechanismError(f"no scale meets the budget with {k} degrees of freedom. Use more degrees of freedom.")
    return b


def _near_the_gaussian_limit(task: Task) -> tuple[int, float]:
    """Few degrees of freedom whose calibrated noise is within 5 % of what Gaussian noise would be, where that can be had."""
    squared_bound = task.row_bound**2
    mu = calibrate_mu(task.budget)
    limit = squared_bound / mu if task.neighbours is Neighbours.REPLACE else squared_bound / (math.sqrt(2) * mu)
    excess = 1.3 * (task.budget.epsilon / mu) ** 2 + (task.dim - 2) / 2  # the noise exceeds its limit by about this over kappa
    tries = [task.dim - 2 + max(3, math.ceil(1.1 * excess / (WITHIN - 1)))]
    for _ in range(12):
        tries.append(task.dim + math.ceil(1.5 * (tries[-1] - task.dim)))

    def near(k: int) -> bool:  # whether 5 % more than the limit is enough: what is calibrated below is then no more
        return meets_budget(task.budget, k, task.dim, squared_bound * math.sqrt(k) / (WITHIN * limit), task.neighbours)

    k = tries[0] if near(tries[0]) else tries[bisect_left(tries, True, lo=1, hi=12, key=near)]  # the last where none is near
    return k, math.nextafter(squared_bound / _b(task, k), math.inf)


@proven("wishart_noise.md#theorem-3")
def draw_noise(dim: int, scale: float, k: float, rng: RandomSource) -> Matrix:
    """One draw of W_d(scale I, k)."""
    factor = bartlett_factor(dim, k, rng)
    return scale * (factor @ factor.mT)


def removable(dim: int, scale: float, k: float, delta: float) -> float:
    """What the smallest eigenvalue of the noise exceeds except with probability about delta; zero where that is nothing."""
    return scale * max(0.0, math.sqrt(k) - math.sqrt(dim) - math.sqrt(2 * math.log(4 / delta))) ** 2


def start(task: Task, rng: RandomSource) -> Conversation:
    parameters = calibrate(task)
    answer = yield from one_sum(task, MECHANISM.name, parameters)
    scale, k = parameters["scale"], parameters["degrees_of_freedom"]
    eye = np.eye(task.dim)
    sd = scale * math.sqrt(k)
    noisy, grid = publish(draw_noise(task.dim, scale, k, rng) + known(answer.gram, rng), SymmetricGaussian.orthogonal(sd), rng)
    removed: Any = 0.0
    if REPAIR.of(task.options) != "none":  # a function of what is published already
        whole, part = _on_grid(scale * k, grid), _on_grid(removable(task.dim, scale, k, task.budget.delta), grid)
        definite = np.linalg.eigvalsh(noisy - whole * eye)[..., 0] > 0
        removed = plain(np.where(definite, whole, part))
    noise = SymmetricGaussian.orthogonal(sd, shift=scale * k - removed)
    return Outcome(noisy - per_copy(removed) * eye, noise, {**parameters, "shift_removed": removed}, grid)


def _on_grid(number: float, grid: float | None) -> float:
    """The largest multiple of the grid that is at most ``number``, so that what it is taken from stays on the grid."""
    return number if grid is None else grid * math.floor(number / grid)


MECHANISM = Mechanism(
    name="wishart-noise",
    summary="adds Wishart noise to the Gram matrix, and subtracts its mean as far as possible (Algorithm 3)",
    proof="wishart_noise.md",
    words={
        "scale": Words("scale of the noise", SCALED),
        "mean_shift": Words("mean of the noise on the diagonal", SCALED),
        "shift_removed": Words("subtracted from the diagonal again", SCALED),
    },
    calibrate=calibrate,
    start=start,
    batched=True,
    options=by_name(
        Option(
            "scale",
            float,
            "scale C of the noise in squared scaled units, by default so that the noise is within 5 % of the Gaussian limit",
        ),
        Option(
            "degrees_of_freedom", float, "degrees of freedom k, a whole number, by default the smallest that meets the budget"
        ),
        REPAIR,
    ),
)
