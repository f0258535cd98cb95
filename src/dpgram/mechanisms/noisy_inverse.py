"""Gaussian noise on the inverse of the Gram, where the custodian claims publicly that its eigenvalues are large.

Statement: if the smallest eigenvalue of the Gram is at least (1 + rho) B^2 on every table in question, the inverse moves by at most
``inverse_sensitivity`` in Frobenius norm, and noise on it is a Gaussian mechanism. **Conditional**: the claim is the custodian's and is
never checked against the data; where it is false, the guarantee is void. Neighbours: REPLACE and ADD_REMOVE.
Proof: proofs/noisy_inverse.md, in real arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import PAPER, Conversation, Mechanism, Outcome, Parameters, Task, one_sum, publish, require
from dpgram.mechanisms.gaussian_noise import add_symmetric_noise, gaussian_cost, gaussian_parameters
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import Matrix, RandomSource, exactly, known
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import NoisyInverse, SymmetricGaussian
from dpgram.terms.words import SCALED, Point, Words


@proven("noisy_inverse.md#theorem-1")
def inverse_sensitivity(row_bound: float, rho: float, neighbours: Neighbours, rows_per_unit: int, dim: int = 2) -> float:
    """Largest Frobenius change of the inverse Gram between neighbours whose eigenvalues are all at least (1 + rho) B^2.

    ``dim`` columns are one, or two or more."""
    one_unit = rows_per_unit / (row_bound**2 * (1 + rho) * (1 + rows_per_unit + rho))
    if dim == 1:
        return one_unit  # two numbers that are not negative lie no further apart than the larger one is from zero
    if rows_per_unit > 1 + rho:  # a unit in several directions then moves the inverse further than one along a single one
        one_unit = math.sqrt(rows_per_unit / (1 + rho)) / (2 * row_bound**2 * (1 + rho))
    return one_unit * (math.sqrt(2) if neighbours is Neighbours.REPLACE else 1.0)


def calibrate(task: Task) -> Parameters:
    rho = task.number("rho")
    if rho is None:
        raise MechanismError(
            "rho is not given. With it you claim, from public knowledge, that every eigenvalue of the Gram matrix is at least "
            "(1 + rho) row_bound^2."
        )
    if not rho > 0:
        raise MechanismError(f"rho is {rho:g} and must be positive.")
    sensitivity = inverse_sensitivity(task.row_bound, rho, task.neighbours, task.rows_per_unit, task.dim)
    if task.calibration == PAPER:
        require(task.budget.epsilon < 1, "epsilon < 1")
        require(task.budget.delta < 1 / math.e, "delta < 1/e")
    noise = gaussian_parameters(task, sensitivity, printed=2 / rho)
    return {"rho": rho, "claimed_floor": (1 + rho) * task.row_bound**2, **noise}


@proven("noisy_inverse.md#theorem-2")
def bounded_inverse(gram: Matrix, floor: float) -> Matrix:
    """The inverse of ``gram`` with eigenvalues below ``floor`` counted as ``floor``: just the inverse where the claim is true.

    So nothing fails, and nothing is said, where it is false."""
    if not isinstance(gram, np.ndarray):
        from dpgram.sampling.certified import is_above, middles

        if is_above(gram, Fraction(floor) / 2):  # certain where the claim is true; otherwise any bounded matrix will do
            return gram.inverse()
        return exactly(bounded_inverse(middles(gram), floor))
    values, vectors = np.linalg.eigh(gram)
    inverse = (vectors / np.maximum(values, floor)) @ vectors.T
    return (inverse + inverse.T) / 2


def inverse_or_zero(published: np.ndarray) -> np.ndarray:
    """The inverse; where there is none, on a grid once in 2^25 for a single column, zero along what has none."""
    try:
        return np.linalg.inv(published)
    except np.linalg.LinAlgError:
        return np.linalg.pinv(published, hermitian=True)


def start(task: Task, rng: RandomSource) -> Conversation:
    parameters = calibrate(task)
    answer = yield from one_sum(task, MECHANISM.name, parameters)
    off, on, floor = parameters["sd_off_diagonal"], parameters["sd_diagonal"], parameters["claimed_floor"]
    noisy_inverse = add_symmetric_noise(bounded_inverse(known(answer.gram, rng), floor), off, on, rng)
    published, grid = publish(noisy_inverse, SymmetricGaussian(off, on), rng)
    gram = inverse_or_zero(published)  # a map of what could be published: nothing is gained
    condition = f"the guarantee holds only if every eigenvalue of the Gram is at least {floor:.6g}, as the custodian claimed"
    if grid is not None:
        parameters = {**parameters, "grid_of_inverse": grid}
    return Outcome((gram + gram.mT) / 2, NoisyInverse(off, on, floor), parameters, condition=condition)


MECHANISM = Mechanism(
    name="noisy-inverse",
    summary="adds Gaussian noise to the inverse of the Gram matrix; private only if a public claim is true (appendix)",
    proof="noisy_inverse.md",
    words={
        "rho": Words("rho, the public claim"),
        "claimed_floor": Words("smallest eigenvalue, as claimed", SCALED, early=True),
        "sd_off_diagonal": Words("noise sd of the inverse off the diagonal", early=True),
        "sd_diagonal": Words("noise sd of the inverse on the diagonal", early=True),
        "frobenius_sensitivity": Words("sensitivity of the inverse", "in Frobenius norm", point=Point.BOUNDS),
        "grid_of_inverse": Words("grid of the inverse", point=Point.IMPLEMENTATION),
    },
    calibrate=calibrate,
    start=start,
    cost=gaussian_cost,
    takes_units=True,
    batched=True,
    options=by_name(
        Option("rho", float, "your public claim that every eigenvalue of the Gram matrix is at least (1 + rho) row_bound^2")
    ),
)
