"""Smallest epsilon at a delta, along the curve of a single mechanism: what the tests ask ``epsilon_for`` to invert."""

import math

from dpgram.accounting import additive_wishart
from dpgram.accounting.additive_wishart import additive_delta
from dpgram.accounting.gaussian import MARGIN, gaussian_delta
from dpgram.accounting.roots import epsilon_for
from dpgram.accounting.wishart import sampling_delta
from dpgram.terms.budget import Neighbours


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Smallest epsilon that holds at ``delta`` for a mu-GDP mechanism, from above."""
    return epsilon_for(lambda epsilon: gaussian_delta(epsilon, mu), delta * (1 - MARGIN))


def sampling_epsilon(delta: float, r: float, floor: float, neighbours: Neighbours, dim: int) -> float:
    """Smallest epsilon that holds at ``delta``, from above."""
    return epsilon_for(lambda epsilon: sampling_delta(epsilon, r, floor, neighbours, dim), delta * (1 - MARGIN))


def additive_epsilon(delta: float, k: int, dim: int, b: float, neighbours: Neighbours) -> float:
    """Smallest epsilon that holds at ``delta``, from above; infinite when none does."""
    aim = delta * (1 - additive_wishart.MARGIN)
    if additive_delta(1e4, k, dim, b, neighbours) > aim:
        return math.inf  # the chance of too small a noise alone exceeds delta
    return epsilon_for(lambda epsilon: additive_delta(epsilon, k, dim, b, neighbours), aim)
