"""Gaussian noise for a symmetric Gram sum.

Statement: if every row has ||z||_2 <= row_bound, the Gram plus symmetric noise that is N(0, t^2) off the diagonal and
N(0, 2 t^2) on it is a Gaussian mechanism of shift mu = ``gram_sensitivity`` / (sqrt(2) t), so it has the exact curve
``gaussian_delta``. Neighbours: REPLACE and ADD_REMOVE.
Proof: proofs/gaussian_noise.md, in real arithmetic; proofs/floating_point.md says what that leaves open."""

from __future__ import annotations

import math

import numpy as np

from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.errors import CalibrationError
from dpgram.mechanisms.conversation import Conversation, GramQuestion, Mechanism, Outcome, Task
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import NormalSource
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import SymmetricGaussian

Array = np.ndarray


@proven("gaussian_noise.md#theorem-1")
def gram_sensitivity(row_bound: float, neighbours: Neighbours) -> float:
    """Largest Frobenius change of the Gram sum between two neighbouring tables."""
    rows_apart = {Neighbours.ADD_REMOVE: 1.0, Neighbours.REPLACE: math.sqrt(2)}  # orthogonal rows reach sqrt(2)
    return rows_apart[neighbours] * row_bound**2


@proven("gaussian_noise.md#theorem-2")
def shift(sd_off_diagonal: float, row_bound: float, neighbours: Neighbours) -> float:
    """mu: how many standard deviations apart two neighbouring tables can lie."""
    return gram_sensitivity(row_bound, neighbours) / (math.sqrt(2) * sd_off_diagonal)


@proven("gaussian_noise.md#theorem-3")
def calibrate(task: Task) -> float:
    """Smallest off-diagonal noise sd that meets the task's budget, from the private side.

    That is row_bound^2 / mu for REPLACE and row_bound^2 / (sqrt(2) mu) for ADD_REMOVE."""
    sd = gram_sensitivity(task.row_bound, task.neighbours) / (math.sqrt(2) * calibrate_mu(task.budget))
    sd = math.nextafter(sd, math.inf)
    delta = gaussian_delta(task.budget.epsilon, shift(sd, task.row_bound, task.neighbours))
    if not delta <= task.budget.delta:  # asked back, with the very scale that will be used
        raise CalibrationError(mechanism=MECHANISM.name, delta=delta, needed=task.budget.delta)
    return sd


@proven("gaussian_noise.md#theorem-2")
def add_symmetric_noise(gram: Array, sd_off_diagonal: float, rng: NormalSource) -> Array:
    """``gram`` plus one draw of noise; ``rng`` is passed in: the secure source in use, a seeded one in tests."""
    draw = rng.normal(scale=sd_off_diagonal, size=gram.shape)
    upper = np.triu(draw, 1)
    return gram + (upper + upper.T + math.sqrt(2) * np.diag(np.diag(draw)))


def start(task: Task, rng: NormalSource) -> Conversation:
    sd = calibrate(task)
    mu = shift(sd, task.row_bound, task.neighbours)
    gram = yield GramQuestion(task.row_bound)
    return Outcome(
        gram=add_symmetric_noise(gram, sd, rng),
        noise=SymmetricGaussian(sd_off_diagonal=sd),
        parameters={
            "mu": mu,
            "frobenius_sensitivity": gram_sensitivity(task.row_bound, task.neighbours),
            "delta_at_epsilon": gaussian_delta(task.budget.epsilon, mu),
        },
    )


MECHANISM = Mechanism(
    name="gaussian-noise",
    summary="the Gram plus symmetric Gaussian noise (Analyze Gauss, with the exact privacy curve)",
    proof="gaussian_noise.md",
    start=start,
)
