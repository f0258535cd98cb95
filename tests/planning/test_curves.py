"""Forecasts along epsilon and rows."""

from dpgram.planning.curves import curve
from dpgram.terms.budget import Budget
from tests.planning.test_forecast import GROUND

ONE = {"mechanisms": ["gaussian-noise"], "copies": 12}


def test_curves_fall_towards_the_floor():
    for quantity in ("epsilon", "rows"):
        found = curve(GROUND, quantity, Budget(1.0, 1e-6), 50_000, points=5, **ONE)
        (errors,) = found.errors.values()
        assert len(found.at) == len(errors) == len(found.sampling) == 5
        assert list(errors) == sorted(errors, reverse=True)
        assert all(e >= 0.99 * s for e, s in zip(errors, found.sampling, strict=True))
        assert found.to_dict()["errors"]["gaussian-noise"] == list(errors)


def test_curves_from_the_smallest_budgets_and_tables_are_made():
    assert curve(GROUND, "rows", Budget(1.0, 1e-6), 1, points=3, **ONE).at[0] >= 7
    assert curve(GROUND, "epsilon", Budget(1e-6, 1e-6), 50, points=3, **ONE).at[0] >= 1e-3
