"""Symmetric matrices: whether all eigenvalues lie within an edge."""

import numpy as np
import pytest

from dpgram.linalg.symmetric import eigenvalues_within


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_the_edge_is_that_of_the_largest_eigenvalue(sign, scale):
    rng = np.random.default_rng(0)
    for dim in (1, 2, 40):
        basis = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        matrix = sign * scale * (basis * np.linspace(-0.5, 1, dim)) @ basis.T
        matrix, largest = (matrix + matrix.T) / 2, np.max(np.abs(np.linalg.eigvalsh(matrix)))
        before = matrix.copy()
        assert eigenvalues_within(matrix, 1.000001 * largest)
        assert not eigenvalues_within(matrix, 0.999999 * largest)
        assert np.array_equal(matrix, before)


def test_what_is_no_number_lies_nowhere():
    assert not eigenvalues_within(np.full((3, 3), np.nan), 1.0)
    assert not eigenvalues_within(np.diag([1.0, np.nan]), 2.0)
