"""Which arithmetic a release is made in: exact unless it would take long, floats only where they are named or warned of."""

import warnings

import pytest

from dpgram.errors import BudgetError, FloatArithmeticWarning, MechanismError
from dpgram.sampling.choose import PATIENCE, chosen, exact_seconds, source_for
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.sampling.seeded import SeededSource


@pytest.mark.parametrize("dim", [1, 22, 200, 1000])
def test_a_real_release_is_exact(dim):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = source_for(None, dim, None)
    assert isinstance(source, ExactSource)
    assert source.private


def test_floats_are_taken_for_very_wide_tables_with_a_warning():
    assert exact_seconds(4000) > PATIENCE
    with pytest.warns(
        FloatArithmeticWarning, match=r"4000 columns would take about \d+ s in exact arithmetic.*arithmetic='exact' to wait"
    ):
        assert isinstance(source_for(None, 4000, None), SecureSource)
    assert isinstance(source_for("exact", 4000, None), ExactSource)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(source_for("float", 4000, None), SecureSource)


def test_noise_from_a_seed_is_never_private():
    assert isinstance(source_for(None, 22, 3), SeededSource)
    exact = source_for("exact", 22, 3)
    assert isinstance(exact, ExactSource)
    assert not exact.private
    assert "not private" in exact.description
    with pytest.raises(BudgetError, match="must be a whole number"):
        source_for("exact", 22, -1)


def test_another_arithmetic_is_refused():
    with pytest.raises(MechanismError, match="arithmetic is 'exactly' and must be 'exact' or 'float'"):
        chosen("exactly", 3, private=True)
