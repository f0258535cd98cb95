"""The published numbers, computed a second time: by mpmath with 150 digits, from the same bits, and rounded at the end.

Nothing of the sampling room is used but the order in which its numbers are drawn, so this checks the formulas, the balls and the
roundings together: an exact release is the correctly rounded value of the mechanism's own random matrix."""

from __future__ import annotations

import hashlib
from itertools import count

import mpmath
import numpy as np
import pytest

from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.mechanisms.first_stage import EIGENVALUE_SLACK
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.base import grid_step
from dpgram.sampling.certified import smallest_from_below
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.reals import RealMatrix
from dpgram.terms.budget import Budget, Neighbours

DIGITS, BYTES = 150, 80
GRAM = np.array([[300.5, -20.25, 7.0], [-20.25, 41.0, 3.125], [7.0, 3.125, 12.0]])


class Stream:
    """Uniform numbers from a seed, in order, and what is made of them."""

    def __init__(self, seed):
        self._bytes = (hashlib.shake_256(f"{seed}:{place}".encode()).digest(BYTES) for place in count())

    def uniform(self):
        return mpmath.mpf(int.from_bytes(next(self._bytes), "big")) / mpmath.mpf(2) ** (8 * BYTES)

    def normals(self, many):
        out = []
        while len(out) < many:
            u, turn = self.uniform(), self.uniform()
            radius = mpmath.sqrt(-2 * mpmath.log(u))
            out += [radius * mpmath.cospi(2 * turn), radius * mpmath.sinpi(2 * turn)]
        return out[:many]

    def square(self, dim):
        drawn = self.normals(dim * dim)
        return mpmath.matrix(dim, dim) + mpmath.matrix([drawn[i * dim : (i + 1) * dim] for i in range(dim)])

    def chi_square(self, degrees):
        """Marsaglia and Tsang's, by the other form of its condition: ln u < x^2/2 + d - d v + d ln v."""
        shape = mpmath.mpf(degrees) / 2
        d = (shape if shape >= 1 else shape + 1) - mpmath.mpf(1) / 3
        while True:
            x, u = self.normals(1)[0], self.uniform()
            v = (1 + x / (3 * mpmath.sqrt(d))) ** 3
            if v > 0 and mpmath.log(u) < x * x / 2 + d - d * v + d * mpmath.log(v):
                break
        return 2 * d * v if shape >= 1 else 2 * d * v * self.uniform() ** (1 / shape)

    def bartlett(self, dim, degrees):
        drawn = self.square(dim)
        factor = mpmath.matrix(dim, dim)
        for i in range(dim):
            for j in range(i):
                factor[i, j] = drawn[i, j]
        for i in range(dim):
            factor[i, i] = mpmath.sqrt(self.chi_square(mpmath.mpf(degrees) - i))
        return factor


def gaussian_noise(true, stream, found):
    draw, out = stream.square(3), true.copy()
    for i in range(3):
        out[i, i] += mpmath.mpf(found["sd_diagonal"]) * draw[i, i]
        for j in range(i + 1, 3):
            out[i, j] += mpmath.mpf(found["sd_off_diagonal"]) * draw[i, j]
    return out


def wishart_noise(true, stream, found):
    factor = stream.bartlett(3, found["degrees_of_freedom"])
    return true + mpmath.mpf(found["scale"]) * factor * factor.T


def gaussian_sketch(true, stream, found):
    root = mpmath.cholesky(true + mpmath.mpf(found["w_squared"]) * mpmath.eye(3)) * stream.bartlett(3, found["sketch_rows"])
    return root * root.T / mpmath.mpf(found["sketch_rows"])


def inverse_wishart(true, stream, found):
    nu = mpmath.mpf(found["degrees_of_freedom"])
    factor = stream.bartlett(3, nu)
    scale = mpmath.cholesky(true + mpmath.mpf(found["psi"]) * mpmath.eye(3))
    draw = scale * mpmath.inverse(factor * factor.T) * scale.T  # T^-T T^-1 in the middle: the inverse of T T'
    return (nu - 4) * draw if nu > 4 else nu * draw


CASES = [
    (gaussian_noise, {}),
    (wishart_noise, {"repair": "none"}),
    (gaussian_sketch, {}),
    (gaussian_sketch, {"sketch_rows": 2.3}),  # the last chi-square number has 0.3 degrees of freedom
    (gaussian_sketch, {"sketch_rows": 1e9 + 0.125}),
    (inverse_wishart, {"degrees_of_freedom": 9.5}),
    (inverse_wishart, {"degrees_of_freedom": 3.5}),
]


@pytest.mark.parametrize(("formula", "options"), CASES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_release_is_the_correctly_rounded_matrix_of_the_theorem(formula, options, seed):
    mechanism = MECHANISMS[formula.__name__.replace("_", "-")]
    asked = registry.task(mechanism, Budget(1.0, 1e-6), Neighbours.REPLACE, 3, 1.5, "exact", options)
    outcome = hold(mechanism.start(asked, ExactSource(seed)), lambda question: GramAnswer(GRAM, None))
    with mpmath.workdps(DIGITS):
        expected = formula(mpmath.matrix(GRAM.tolist()), Stream(seed), outcome.parameters)
        step = mpmath.mpf(outcome.grid)
        for i in range(3):
            for j in range(i, 3):
                assert outcome.gram[i, j] == float(mpmath.floor(expected[i, j] / step + mpmath.mpf(0.5)) * step)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["laplace", "gauss"])
def test_the_first_stage_is_the_certified_eigenvalue_with_noise_of_the_theorem_rounded_down(seed, kind):
    asked = registry.task(
        MECHANISMS["gaussian-sketch-adaptive"], Budget(1.0, 1e-6), Neighbours.REPLACE, 3, 1.5, "exact", {"first_stage": kind}
    )
    gram = GRAM + 500 * np.eye(3)
    outcome = hold(
        MECHANISMS["gaussian-sketch-adaptive"].start(asked, ExactSource(seed)), lambda question: GramAnswer(gram, None)
    )
    found, stream = outcome.parameters, Stream(seed)
    lower = smallest_from_below(RealMatrix.of_floats(gram), EIGENVALUE_SLACK * 1.5**2)
    with mpmath.workdps(DIGITS):
        scale, upper = mpmath.mpf(found["first_stage_scale"]), mpmath.mpf(found["first_stage_offset"])
        if kind == "laplace":
            side, v = stream.uniform(), stream.uniform()
            least = mpmath.exp(-upper / scale)
            negative = side < mpmath.mpf(0.5) / (1 - least / 2)  # the mass below zero over all that is left
            noise = scale * mpmath.log(v) if negative else -scale * mpmath.log(least + v * (1 - least))
        else:
            noise = scale * stream.normals(1)[0]
            while noise > upper:
                noise = scale * stream.normals(1)[0]
        step = mpmath.mpf(grid_step(found["first_stage_scale"]))
        value = mpmath.mpf(lower.numerator) / lower.denominator - upper + noise
        assert found["first_stage_value"] == float(mpmath.floor(value / step) * step) > 0
