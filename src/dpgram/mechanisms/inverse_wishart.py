"""One draw of the posterior: V from the inverse-Wishart law of scale G + psi I with nu degrees of freedom.

Statement: the curve is that of the Gaussian sketch with r = nu and floor psi/B^2, because V -> V^-1 is a bijection. Neighbours:
REPLACE and ADD_REMOVE; nu must not depend on the number of rows where that is protected. Always positive definite.
Proof: proofs/inverse_wishart.md, in real arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Conversation, GramQuestion, Mechanism, Outcome, Parameters, Task, ask_back, publish
from dpgram.mechanisms.gaussian_sketch import draw_parameters, sampling_cost
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import Matrix, RandomSource, known
from dpgram.sampling.variates import bartlett_factor, divided_by_lower, per_copy, plain, square_root
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import InverseWishartSample
from dpgram.terms.words import SCALED, Words


def degrees_of_freedom(task: Task) -> float:
    """nu: as given, or the number of rows plus the number of columns, where the former is public."""
    nu = task.number("degrees_of_freedom")
    if nu is None:
        if task.neighbours is Neighbours.ADD_REMOVE:
            raise MechanismError(
                "the printed nu = n + d would reveal the number of rows, which is protected. Give degrees_of_freedom, a public "
                "constant."
            )
        if task.rows is None:
            raise MechanismError("nu = n + d is not known before the rows are read. Give degrees_of_freedom, or table_rows.")
        nu = float(task.rows + task.dim)
    if not task.dim <= nu <= 1e12:  # the law exists above d - 1, but there a draw may be larger than any float
        raise MechanismError(f"degrees_of_freedom is {nu:g} and must lie between d = {task.dim} and 1e12.")
    return nu


def calibrate(task: Task) -> Parameters:
    nu = degrees_of_freedom(task)
    enough = "a whole number of degrees of freedom of at least d"  # the printed psi is the printed w^2 with r = nu
    return draw_parameters(task, nu, "psi", "degrees_of_freedom", nu >= task.dim, enough)


@proven("inverse_wishart.md#theorem-1")
def draw_posterior(gram: Matrix, psi: float, nu: float, rng: RandomSource) -> Matrix:
    """One draw of the inverse-Wishart law of scale gram + psi I with ``nu`` degrees of freedom."""
    factor = bartlett_factor(len(gram), nu, rng)  # T T' is Wishart of identity scale: V = R T^-T T^-1 R' with R R' the scale
    root = divided_by_lower(square_root(gram, psi), factor)
    return root @ root.mT


def multiple_of(nu: Any, dim: int) -> Any:
    """What a draw is multiplied by to estimate the scale matrix: nu - d - 1, its mean's denominator, where there is a mean."""
    return plain(np.where(nu > dim + 1, nu - dim - 1, nu))


def drawn(gram: Matrix, psi: Any, nu: Any, rng: RandomSource, parameters: Parameters, least: Any = 0.0) -> Outcome:
    """One draw as it is published; ``least`` is what the eigenvalues of ``gram`` are known to have."""
    multiple = multiple_of(nu, len(gram))
    noise = InverseWishartSample(nu, shift=psi, floor=psi + least, multiple=multiple)
    draw, grid = publish(per_copy(multiple) * draw_posterior(gram, psi, nu, rng), noise, rng)
    return Outcome(draw, noise, {**parameters, "psi": psi, "degrees_of_freedom": nu}, grid)


def start(task: Task, rng: RandomSource) -> Conversation:
    early = "degrees_of_freedom" in task.options or task.neighbours is Neighbours.ADD_REMOVE
    parameters = calibrate(task) if early else {}
    if early:
        ask_back(task, MECHANISM.name, parameters["delta_at_epsilon"])
    answer = yield GramQuestion(task.row_bound)
    if not early:
        parameters = calibrate(replace(task, rows=answer.rows))
        ask_back(task, MECHANISM.name, parameters["delta_at_epsilon"])
    return drawn(known(answer.gram, rng), parameters["psi"], parameters["degrees_of_freedom"], rng, parameters)


WORDS = {"psi": Words("ridge of the prior", SCALED), "degrees_of_freedom": Words("degrees of freedom", early=True)}
MECHANISM = Mechanism(
    name="inverse-wishart",
    summary="one draw from the inverse-Wishart posterior (Algorithm 4)",
    proof="inverse_wishart.md",
    words=WORDS,
    calibrate=calibrate,
    start=start,
    cost=sampling_cost,
    batched=True,
    options=by_name(
        Option(
            "degrees_of_freedom",
            float,
            "degrees of freedom nu, by default the number of rows plus columns if the number of rows is public",
        )
    ),
)
