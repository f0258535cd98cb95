"""Both arithmetics under the same tests: floats in every run, exact draws of the same number in `make test-slow`."""

import numpy as np
import pytest

from dpgram.sampling import variates
from dpgram.sampling.base import EXACT, known
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource

SOURCES = {"float": SeededSource, "exact": ExactSource}
both = pytest.mark.parametrize("rng", ["float", pytest.param("exact", marks=pytest.mark.slow)], indirect=True)

FINE = 2.0**-200  # a grid on which no test can see the rounding


def numbers(draw, count, rng):
    """``count`` numbers drawn by ``draw(rng)``."""
    return np.array([rng.publish_below(draw(rng), FINE) for _ in range(count)])


def chi_squares(degrees, count, rng):
    if rng.arithmetic == EXACT:
        return numbers(lambda source: source.chi_square(degrees), count, rng)
    return variates.chi_square(np.full(count, degrees), rng)


def matrices(draw, count, rng):
    """``count`` symmetric matrices drawn by ``draw(rng)``."""
    return np.array([rng.publish(draw(rng), FINE) for _ in range(count)])


def given(array, rng):
    """``array`` in the arithmetic of ``rng``."""
    return known(array, rng)
