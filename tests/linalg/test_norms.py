"""The tabulated norms are those of the simulation they were taken from."""

import math

import pytest

from dpgram.linalg.norms import EQUAL, ORTHOGONAL, expected_norm, simulated_norm


@pytest.mark.parametrize("dim", [1, 4, 13, 30])
@pytest.mark.parametrize(("ratio", "table"), [(math.sqrt(2), ORTHOGONAL), (1.0, EQUAL)])
def test_the_table_is_the_simulation(dim, ratio, table):
    assert expected_norm(dim, 2.5, 2.5 * ratio) == 2.5 * table[dim - 1]
    assert expected_norm(dim, 2.5, 2.5 * ratio) == pytest.approx(simulated_norm(dim, 2.5, 2.5 * ratio), rel=1e-6)
    assert table[dim - 1] < table[dim]


def test_the_table_goes_over_into_the_formula_and_other_ratios_are_simulated():
    assert len(ORTHOGONAL) == len(EQUAL) == 64
    for table, ratio in ((ORTHOGONAL, math.sqrt(2)), (EQUAL, 1.0)):
        assert expected_norm(65, 1.0, ratio) == pytest.approx(table[-1], rel=0.02)
    assert EQUAL[9] < expected_norm(10, 1.0, 1.2) < ORTHOGONAL[9]
