"""Gaussian noise for a symmetric Gram sum (Analyze Gauss).

Statement: if every row has ||z||_2 <= row_bound, and the rows of a unit count as ``rows_per_unit`` of them at most, the Gram plus
symmetric noise that is N(0, t^2) off the diagonal and N(0, 2 t^2) on it is a Gaussian mechanism of shift
mu = ``gram_sensitivity`` / (sqrt(2) t), so it has the exact curve ``gaussian_delta``.
Neighbours: REPLACE and ADD_REMOVE. The printed version has the same sd everywhere and a sensitivity that
is too small for REPLACE; its true curve is computed and put on the label.
Proof: proofs/gaussian_noise.md, in real arithmetic; proofs/exact_release.md and proofs/floating_point.md carry it to what is published."""

from __future__ import annotations

import math

import numpy as np

from dpgram.accounting.compose import Cost, GaussianCost
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.linalg.norms import expected_norm
from dpgram.linalg.symmetric import positive_part, smallest_eigenvalues
from dpgram.mechanisms.conversation import PAPER, Conversation, Mechanism, Outcome, Parameters, Task, one_sum, publish
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import Matrix, RandomSource, known
from dpgram.sampling.variates import plain, symmetric_normal
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import SymmetricGaussian

Array = np.ndarray

REPAIR = Option(
    "repair",
    str,
    "repair of the noisy matrix: none, psd (set negative eigenvalues to zero) or shift (add E||N|| if not positive definite)",
    default="none",
    choices=("none", "psd", "shift"),
)


@proven("gaussian_noise.md#theorem-1")
def gram_sensitivity(row_bound: float, neighbours: Neighbours, rows_per_unit: int, dim: int = 2) -> float:
    """Largest Frobenius change of the Gram sum between two neighbouring tables, of ``dim`` columns: one, or two or more."""
    one_unit = row_bound**2 * rows_per_unit  # all rows of a unit can be the same
    if neighbours is Neighbours.REPLACE and dim > 1:
        return math.sqrt(2) * one_unit  # reached by rows at right angles, which a single column does not have
    return one_unit


@proven("gaussian_noise.md#theorem-2")
def shift(sd_off_diagonal: float, sd_diagonal: float, sensitivity: float) -> float:
    """mu: how many standard deviations apart two symmetric matrices ``sensitivity`` apart in Frobenius norm can lie."""
    return sensitivity / min(math.sqrt(2) * sd_off_diagonal, sd_diagonal)


@proven("gaussian_noise.md#theorem-3")
def smallest_sd(task: Task, sensitivity: float) -> float:
    """Smallest off-diagonal noise sd that meets the task's budget, from the private side: sensitivity / (sqrt(2) mu)."""
    return math.nextafter(sensitivity / (math.sqrt(2) * calibrate_mu(task.budget)), math.inf)


@proven("gaussian_noise.md#theorem-3")
def diagonal_sd(off: float) -> float:
    """The smallest float that is at least sqrt(2) times ``off``, or the next one."""
    return math.nextafter(math.sqrt(2) * off, math.inf)


def calibrate(task: Task) -> Parameters:
    sensitivity = gram_sensitivity(task.row_bound, task.neighbours, task.rows_per_unit, task.dim)
    return gaussian_parameters(task, sensitivity, printed=task.row_bound**2)


def gaussian_cost(task: Task, parameters: Parameters) -> Cost:
    return GaussianCost(parameters["mu"])


def gaussian_parameters(task: Task, sensitivity: float, printed: float) -> Parameters:
    """The parameters of a Gaussian mechanism on symmetric matrices, with their true curve.

    ``printed`` is the sensitivity of the paper, whose noise has the same sd on and off the diagonal."""
    if task.calibration == PAPER:
        off = on = printed * math.sqrt(2 * math.log(2 / task.budget.delta)) / task.budget.epsilon
    else:
        off = smallest_sd(task, sensitivity)
        on = diagonal_sd(off)
    mu = shift(off, on, sensitivity)
    return {
        "sd_off_diagonal": off,
        "sd_diagonal": on,
        "mu": mu,
        "frobenius_sensitivity": sensitivity,
        "delta_at_epsilon": gaussian_delta(task.budget.epsilon, mu),
    }


@proven("gaussian_noise.md#theorem-2")
def add_symmetric_noise(matrix: Matrix, sd_off_diagonal: float, sd_diagonal: float, rng: RandomSource) -> Matrix:
    """``matrix`` plus one draw of noise; ``rng`` is passed in: an exact or the secure source in use, a seeded one in tests."""
    dim = matrix.shape[-1]  # many matrices at once stand one behind the other
    return matrix + symmetric_normal(dim, sd_off_diagonal, sd_diagonal, rng)


def start(task: Task, rng: RandomSource) -> Conversation:
    repair = REPAIR.of(task.options)
    parameters = calibrate(task)
    off, on = parameters["sd_off_diagonal"], parameters["sd_diagonal"]
    answer = yield from one_sum(task, MECHANISM.name, parameters)
    noisy = add_symmetric_noise(known(answer.gram, rng), off, on, rng)
    gram, grid = publish(noisy, SymmetricGaussian(off, on), rng)
    lift = 0.0
    if repair == "psd":
        gram = positive_part(gram)
    if repair == "shift":
        lift = plain(np.where(smallest_eigenvalues(gram) <= 0, expected_norm(task.dim, off, on), 0.0))
        gram = gram + np.multiply.outer(lift, np.eye(task.dim))
    return Outcome(gram, SymmetricGaussian(off, on, lift), parameters, grid if repair == "none" else None)


MECHANISM = Mechanism(
    name="gaussian-noise",
    summary="adds symmetric Gaussian noise to the Gram matrix (Analyze Gauss)",
    proof="gaussian_noise.md",
    calibrate=calibrate,
    start=start,
    cost=gaussian_cost,
    takes_units=True,
    batched=True,
    options=by_name(REPAIR),
)
