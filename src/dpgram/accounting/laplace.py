"""One-sided truncated Laplace noise: a number that is released from below, never above its true value.

s = max(0, value - c + Z) with Z Laplace of scale sensitivity/epsilon, conditioned on Z <= c. Between neighbours the density
ratio is at most e^epsilon wherever s lies below both true values, and s exceeds the smaller one with probability at most
delta. So whatever is done with s afterwards may rely on s <= value, on both tables. Proof:
mechanisms/proofs/adaptive.md."""

from __future__ import annotations

import math

from dpgram.terms.budget import Budget

LARGE = 500.0  # an epsilon whose exponential, over any delta, may be no number any more


def truncation(budget: Budget, sensitivity: float) -> float:
    """c: the truncation point that makes the one-sided truncated Laplace mechanism meet ``budget``, rounded up.

    >>> round(truncation(Budget(0.5, 1e-6), sensitivity=1.0), 4)
    25.3792
    """
    if budget.epsilon > LARGE:  # the ratio below is at most exp(epsilon) / 2 delta, because delta is at most 1
        logarithm = budget.epsilon - math.log(2 * budget.delta)
    else:
        logarithm = math.log(0.5 + math.expm1(budget.epsilon) / (2 * budget.delta))
    c = sensitivity / budget.epsilon * logarithm
    return c + 1e-14 * (abs(c) + sensitivity / budget.epsilon)  # more than the operations above can round down


def truncated_laplace_delta(epsilon: float, scale: float, c: float, sensitivity: float) -> float:
    """Delta of the truncated mechanism at ``epsilon`` >= sensitivity/scale: the chance to land in the upper gap.

    P(Z > c - sensitivity | Z <= c), from the two exponential pieces of the Laplace law."""
    if epsilon < sensitivity / scale * (1 - 1e-12):
        raise ValueError("below sensitivity/scale the density ratio itself exceeds e^epsilon")
    if c < 0:
        return -math.expm1(-sensitivity / scale)
    below = 1 - math.exp(-c / scale) / 2
    if c >= sensitivity:
        if sensitivity / scale > LARGE:
            return -math.exp((sensitivity - c) / scale) * math.expm1(-sensitivity / scale) / 2 / below
        return math.exp(-c / scale) * math.expm1(sensitivity / scale) / 2 / below
    return (below - math.exp((c - sensitivity) / scale) / 2) / below
