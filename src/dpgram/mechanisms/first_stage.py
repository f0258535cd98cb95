"""The first stage of the adaptive mechanisms: the smallest eigenvalue of the Gram, released from below.

What it returns, s, never exceeds the true value (under "exact"), so the second stage may count on scale matrices of at least s
and needs a smaller ridge, or can take more degrees of freedom. Proof: proofs/adaptive.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpgram.accounting.gaussian import MARGIN, calibrate_mu, gaussian_delta, steepness
from dpgram.accounting.laplace import truncated_laplace_delta, truncation
from dpgram.accounting.roots import largest
from dpgram.accounting.wishart import calibrate_degrees, calibrate_floor, sampling_delta
from dpgram.errors import MechanismError
from dpgram.linalg.special import gammainccinv, ndtr
from dpgram.mechanisms.conversation import PAPER, Conversation, Outcome, Parameters, Task, one_sum, require
from dpgram.mechanisms.gaussian_sketch import printed_floor
from dpgram.mechanisms.options import Option
from dpgram.mechanisms.proven import proven
from dpgram.sampling.base import FLOAT, Matrix, RandomSource, grid_step, known
from dpgram.sampling.variates import laplace, plain, truncated_laplace, truncated_normal
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.words import SCALED, Words

FIRST_STAGE = Option(
    "first_stage",
    str,
    "noise of the first stage, laplace (truncated Laplace) or gauss (truncated Gaussian, for replace only)",
    default="laplace",
    choices=("laplace", "gauss"),
)
MOST_DEGREES = 1e12
WORDS = {
    "base_degrees_of_freedom": Words("degrees of freedom, at least"),
    "base_w_squared": Words("ridge, at most", SCALED),
    "first_stage_scale": Words("noise scale of the first stage", SCALED),
    "first_stage_offset": Words("offset of the first stage", SCALED),
    "first_stage_epsilon": Words("epsilon of the first stage"),
    "first_stage_delta": Words("delta of the first stage"),
    "first_stage_mu": Words("mu of the first stage"),
    "second_stage_mu": Words("mu of the second stage"),
    "first_stage_value": Words("smallest eigenvalue in the first stage", SCALED, protected=True),
}
EIGENVALUE_SLACK = 2.0**-20  # by how much, over B^2, the certified eigenvalue may lie below the true one


@dataclass(frozen=True)
class TwoStages:
    """Public numbers of both stages, in units where B enters as given."""

    kind: str  # "laplace", "gauss" or "printed"
    base_degrees: float  # r0
    base_floor: float  # what scale matrices must have, over B^2, with r0 degrees of freedom
    row_bound: float
    scale: float  # of the first stage's noise
    offset: float  # c: what is subtracted from the smallest eigenvalue
    costs: Parameters  # what of the budget each stage has, and what the whole costs
    second: Budget  # what the second stage may cost (laplace, printed)
    mixture: tuple[float, float] = (math.nan, math.nan)  # (mu2, beta) of the second stage (gauss)

    @property
    def base_ridge(self) -> float:
        """What the second stage's scale matrices must have with r0 degrees of freedom, rounded up."""
        return math.nextafter(self.base_floor * self.row_bound**2, math.inf)

    @property
    def parameters(self) -> Parameters:
        return {
            "base_degrees_of_freedom": self.base_degrees,
            "base_w_squared": self.base_ridge,
            "first_stage_scale": self.scale,
            "first_stage_offset": self.offset,
            **self.costs,
        }


def plan_stages(task: Task, base_degrees: float) -> TwoStages:
    """The split of the budget and the calibration of both stages."""
    kind = FIRST_STAGE.of(task.options)
    if task.calibration == PAPER:
        return _printed(task, base_degrees)
    return _laplace(task, base_degrees) if kind == "laplace" else _gauss(task, base_degrees)


def both_stages(
    task: Task, rng: RandomSource, mechanism: str, base_degrees: Callable[[Task], float], drawn: Callable[..., Outcome]
) -> Conversation:
    """The smallest eigenvalue from below, then one draw, whose ridge and degrees of freedom follow from it."""
    stages = plan_stages(task, base_degrees(task))
    answer = yield from one_sum(task, mechanism, stages.parameters)
    gram = known(answer.gram, rng)
    s = release_smallest_eigenvalue(gram, stages, rng)
    ridge, degrees = second_stage(task, stages, s)
    return drawn(gram, ridge, degrees, rng, {**stages.parameters, "first_stage_value": s}, least=s)


@proven("adaptive.md#theorem-1")
def eigenvalue_sensitivity(row_bound: float) -> float:
    """By how much the certified smallest eigenvalue moves between neighbours, at most: as much as the true one, and its slack."""
    return row_bound**2 * (1 + EIGENVALUE_SLACK)


@proven("adaptive.md#theorem-1")
def _laplace(task: Task, r0: float) -> TwoStages:
    epsilon, delta, sensitivity = task.budget.epsilon, task.budget.delta, eigenvalue_sensitivity(task.row_bound)
    share, delta1 = 0.3, 0.3 * delta
    for _ in range(4):  # the split that makes offset + ridge smallest solves share = sqrt(l)/(sqrt(l) + sqrt(K))
        first, second = Budget(share * epsilon, delta1), Budget((1 - share) * epsilon, delta - delta1)
        offset = truncation(first, sensitivity)
        base = calibrate_floor(second, r0, task.neighbours, task.dim)
        log, k = max(first.epsilon * offset / sensitivity, 1e-3), second.epsilon * base
        share = min(max(math.sqrt(log) / (math.sqrt(log) + math.sqrt(k)), 0.02), 0.6)
    scale = math.nextafter(sensitivity / first.epsilon, math.inf)
    spent = truncated_laplace_delta(first.epsilon, scale, offset, sensitivity)
    total = spent + sampling_delta(second.epsilon, r0, base, task.neighbours, task.dim)
    costs = {"first_stage_epsilon": first.epsilon, "first_stage_delta": first.delta, "delta_at_epsilon": total}
    return TwoStages("laplace", r0, base, task.row_bound, scale, offset, costs, second)


@proven("adaptive.md#theorem-2")
def _gauss(task: Task, r0: float) -> TwoStages:
    if task.neighbours is not Neighbours.REPLACE or task.dim < 2:
        raise MechanismError("first_stage='gauss' is proven for REPLACE and two columns or more: use 'laplace'.")
    epsilon, delta = task.budget.epsilon, task.budget.delta * (1 - MARGIN)
    delta1, beta = 0.2 * delta, 0.1 * delta
    mu, mu1 = calibrate_mu(task.budget), 0.3 * calibrate_mu(task.budget)
    for _ in range(6):
        z = _cut(mu1, delta1)
        q = (z / math.sqrt(r0)) ** (2 / 3)
        mu1 = mu * math.sqrt(q / (1 + q))
    z = _cut(mu1, delta1)
    inside = float(ndtr(z))
    room = (delta - delta1) * inside - beta
    mu2 = largest(lambda m: gaussian_delta(epsilon, math.hypot(mu1, m)), room, mu / 2, slope=steepness(task.budget))
    if mu2 == 0.0:
        raise MechanismError("the first stage leaves nothing for the second at this budget: use first_stage='laplace'.")
    base = _floor_of(mu2**2 / _quantile(r0, beta))
    spent = _gap(z, mu1)
    total = spent + (beta + gaussian_delta(epsilon, math.hypot(mu1, mu2))) / inside
    scale = math.nextafter(eigenvalue_sensitivity(task.row_bound) / mu1, math.inf)
    costs = {"first_stage_mu": mu1, "second_stage_mu": mu2, "first_stage_delta": spent, "delta_at_epsilon": total}
    offset = math.nextafter(z * scale, math.inf)
    return TwoStages("gauss", r0, base, task.row_bound, scale, offset, costs, task.budget, (mu2, beta))


def _printed(task: Task, r0: float) -> TwoStages:
    """Half of the budget for each stage, and plain Laplace noise, as printed."""
    epsilon, delta, sensitivity = task.budget.epsilon, task.budget.delta, task.row_bound**2
    require(delta < 1 / math.e, "delta < 1/e")
    require(r0.is_integer(), "a whole number of degrees of freedom")
    second = Budget(epsilon / 2, delta / 2)
    base = printed_floor(r0, second.epsilon, second.delta)
    scale = 2 * sensitivity / epsilon
    offset = scale * math.log(2 / delta)
    # s may exceed the smaller of the two true values, but not both, except with probability delta/4: then one B^2 less counts.
    # The certified eigenvalue moves by a little more than B^2, which the second stage makes up for.
    left, floor = second.epsilon * (1 - EIGENVALUE_SLACK), base - 1 - EIGENVALUE_SLACK
    total = delta / 4 + sampling_delta(left, r0, floor, task.neighbours, task.dim)
    costs = {"first_stage_epsilon": epsilon / 2, "first_stage_delta": delta / 4, "delta_at_epsilon": total}
    return TwoStages("printed", r0, base, task.row_bound, scale, offset, costs, second)


@proven("adaptive.md#theorem-1")
def release_smallest_eigenvalue(gram: Matrix, stages: TwoStages, rng: RandomSource) -> Any:
    """s: the smallest eigenvalue from below, with noise; zero where that is negative."""
    if stages.kind == "printed":
        noise = laplace(stages.scale, rng)
    elif stages.kind == "laplace":
        noise = truncated_laplace(stages.scale, stages.offset, rng)
    else:
        noise = truncated_normal(stages.scale, stages.offset, rng)
    if rng.arithmetic == FLOAT:
        values = np.linalg.eigvalsh(gram)
        # rounding may not lift it above the true one
        smallest = max(0.0, float(values[0] - 1e-14 * len(gram) * abs(values[-1])))
        return plain(np.maximum(0.0, rng.publish_below(smallest - stages.offset + noise, grid_step(stages.scale))))
    from dpgram.sampling.certified import smallest_from_below
    from dpgram.sampling.reals import lifted

    lowered = smallest_from_below(gram, EIGENVALUE_SLACK * stages.row_bound**2) - Fraction(stages.offset)
    return max(0.0, rng.publish_below(lifted(noise, lowered), grid_step(stages.scale)))


@proven("adaptive.md#theorem-1")
def second_stage(task: Task, stages: TwoStages, s: Any) -> tuple[Any, Any]:
    """(ridge, degrees of freedom) for the released ``s``: a smaller ridge, or none and as many degrees as s allows."""
    base = stages.base_ridge
    if np.ndim(s) == 0:
        if s < base:
            return math.nextafter(base - s, math.inf), stages.base_degrees
        return 0.0, allowed_degrees(task, stages, s)
    ridge = np.where(s < base, np.nextafter(base - s, np.inf), 0.0)  # many releases at once
    degrees = np.full(len(s), stages.base_degrees)
    degrees[s >= base] = _of_each(s[s >= base], lambda each: allowed_degrees(task, stages, each))
    return ridge, degrees


@proven("adaptive.md#theorem-1")
def allowed_degrees(task: Task, stages: TwoStages, s: float) -> float:
    """The degrees of freedom that scale matrices of at least ``s`` allow without a ridge: a whole number, growing with s."""
    floor = s / task.row_bound**2
    if stages.kind == "laplace":
        r = calibrate_degrees(stages.second, floor, task.neighbours, task.dim, most=MOST_DEGREES)
    elif stages.kind == "gauss":
        mu2, beta = stages.mixture
        allowed = mu2**2 * floor * (floor + 1)
        r = largest(
            lambda r: _quantile(r, beta), allowed, stages.base_degrees, slope=1.0, ceiling=MOST_DEGREES, height=math.log
        )
    else:
        r = largest(
            lambda r: printed_floor(r, stages.second.epsilon, stages.second.delta),
            floor,
            stages.base_degrees,
            slope=0.5,
            ceiling=MOST_DEGREES,
            height=math.log,
        )
    return max(stages.base_degrees, float(math.floor(min(r, MOST_DEGREES))))


def _of_each(values: np.ndarray, steps: Callable[[float], float]) -> np.ndarray:
    """``steps`` of each value, for a function that grows in steps: where two values have the same, so have those between them."""
    order, out = np.argsort(values), np.empty(len(values))
    open_parts = [(0, len(values) - 1)] if len(values) else []
    for first, last in open_parts:
        out[order[first]], out[order[last]] = steps(float(values[order[first]])), steps(float(values[order[last]]))
        middle = (first + last) // 2
        if out[order[first]] == out[order[last]]:
            out[order[first : last + 1]] = out[order[first]]
        elif last - first > 1:
            open_parts += [(first, middle), (middle, last)]
    return out


def _cut(mu1: float, delta1: float) -> float:
    """z with [Phi(z) - Phi(z - mu1)] / Phi(z) <= delta1, from above."""
    low, high = 0.0, 1.0
    while _gap(high, mu1) > delta1:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _gap(middle, mu1) <= delta1 else (middle, high)
    return high


def _gap(z: float, mu1: float) -> float:
    """[Phi(z) - Phi(z - mu1)] / Phi(z), from the small ends."""
    return (float(ndtr(mu1 - z)) - float(ndtr(-z))) / float(ndtr(z))


def _quantile(r: float, beta: float) -> float:
    """The (1 - beta) quantile of chi-square with ``r`` degrees of freedom, rounded up."""
    return 2 * float(gammainccinv(r / 2, beta)) * (1 + 1e-9)


def _floor_of(g: float) -> float:
    """The floor whose spread is ``g``."""
    return (2 / g) / (1 + math.sqrt(1 + 4 / g))
