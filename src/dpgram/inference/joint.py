"""Tests of several coefficients at once: that all levels of a category, or all features, have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc

from dpgram.errors import ModelError
from dpgram.inference.intervals import error_variance
from dpgram.inference.pivot import profile
from dpgram.regression.channel import Channel

Array = np.ndarray


@dataclass(frozen=True)
class JointTest:
    """Whether some coefficients may all be zero at once."""

    name: str
    coefficients: tuple[str, ...]
    statistic: float  # chi-square; divided by its degrees of freedom and compared with F where the noise has few
    degrees: int
    p_value: float


def joint_test(seen: Channel, names: Sequence[str], places: Sequence[int], *, name: str = "") -> JointTest:
    """The test that the coefficients at ``places`` are all zero in own units. Holds however weakly they are identified."""
    if not places:
        raise ModelError("a joint test needs at least one coefficient: name one.")
    chosen = np.array(places)
    sampling = error_variance(seen) * seen.per_row
    found = float(profile(seen, seen.to_own[chosen][None], -seen.base[chosen][None], sampling)[0])
    return JointTest(name, tuple(names[j] for j in places), found, len(chosen), p_value(found, len(chosen), seen.degrees))


def single_p_values(seen: Channel) -> Array:
    """The same test of each coefficient alone, all at once."""
    sampling = error_variance(seen) * seen.per_row
    found = profile(seen, seen.to_own[:, None, :], -seen.base[:, None], sampling)
    return np.array([p_value(statistic, 1, seen.degrees) for statistic in found])


def p_value(statistic: float, count: int, degrees: float) -> float:
    if np.isinf(degrees):
        return float(chdtrc(count, max(statistic, 0.0)))
    return float(fdtrc(count, degrees, max(statistic, 0.0) / count))
