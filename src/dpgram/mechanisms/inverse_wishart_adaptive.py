"""The inverse-Wishart draw after a private look at the smallest eigenvalue (Algorithm 5).

Statement: (epsilon, delta) for REPLACE and ADD_REMOVE, both stages counted; the released value of the first stage is part of the
release. Proof: proofs/inverse_wishart_adaptive.md and proofs/adaptive.md, on top of proofs/inverse_wishart.md."""

from __future__ import annotations

from dpgram.errors import MechanismError
from dpgram.mechanisms import first_stage, inverse_wishart
from dpgram.mechanisms.conversation import Conversation, Mechanism, Parameters, Task
from dpgram.mechanisms.first_stage import FIRST_STAGE, both_stages, plan_stages
from dpgram.mechanisms.inverse_wishart import drawn
from dpgram.mechanisms.options import Option, by_name
from dpgram.sampling.base import RandomSource


def base_degrees(task: Task) -> float:
    """k0: as given, or twice the number of columns."""
    k0 = task.number("degrees_of_freedom") or 2.0 * task.dim
    if not task.dim <= k0 <= 1e12:
        raise MechanismError(f"degrees_of_freedom is {k0:g} and must lie between d = {task.dim} and 1e12.")
    return k0


def calibrate(task: Task) -> Parameters:
    """What is known before the data: the prior that is needed when the smallest eigenvalue turns out to be zero."""
    stages = plan_stages(task, base_degrees(task))
    return {**stages.parameters, "psi": stages.base_ridge, "degrees_of_freedom": stages.base_degrees}


def start(task: Task, rng: RandomSource) -> Conversation:
    return both_stages(task, rng, MECHANISM.name, base_degrees, drawn)


MECHANISM = Mechanism(
    name="inverse-wishart-adaptive",
    summary="the inverse-Wishart draw with a prior chosen from a noisy smallest eigenvalue (Algorithm 5)",
    proof="inverse_wishart_adaptive.md",
    words={**first_stage.WORDS, **inverse_wishart.WORDS},
    calibrate=calibrate,
    start=start,
    batched=True,
    options=by_name(
        Option("degrees_of_freedom", float, "smallest degrees of freedom, by default twice the number of columns"),
        FIRST_STAGE,
    ),
)
