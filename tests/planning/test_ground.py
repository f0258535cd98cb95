"""The ground of a forecast: least squares and its errors on assumed rows, and what shrinking them does."""

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError, PlanError
from dpgram.planning.ground import ground_of

SCHEMA = dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", 0, 20), dpgram.Numeric("a", -3, 3), dpgram.Numeric("b", 0, 1)])


def rows(count=50_000, seed=0, bend=0.0):
    """(1, y, a, b), scaled, with a linear law unless it is bent."""
    rng = np.random.default_rng(seed)
    a, b = np.clip(rng.normal(0, 0.3, (2, count)), -1, 1)
    y = 0.1 + 0.4 * a - 0.2 * b + bend * a**2 + rng.uniform(-0.3, 0.3, count)
    return np.column_stack([np.ones(count), y, a, b])


def test_coefficients_and_standard_errors_are_those_of_least_squares_in_own_units():
    z = rows()
    found = ground_of(SCHEMA, z, "y")
    y, x = 10 + 10 * z[:, 1], np.column_stack([np.ones(len(z)), 3 * z[:, 2], 0.5 + 0.5 * z[:, 3]])
    b, squares, *_ = np.linalg.lstsq(x, y, rcond=None)
    assert found.design.names == ("(intercept)", "a", "b")
    assert found.truth == pytest.approx(b, rel=1e-3)  # what chance explains of them is a hundredth of a per cent here
    assert found.sampling_sd(len(z)) == pytest.approx(np.sqrt(squares / len(z) * np.diag(np.linalg.inv(x.T @ x))))
    assert found.size[1:] == pytest.approx([x[:, 1].std() / y.std(), x[:, 2].std() / y.std()], rel=1e-6)


def test_fewer_rows_than_coefficients_have_no_standard_errors():
    assert np.isinf(ground_of(SCHEMA, rows(), "y").sampling_sd(3)).all()
    assert np.isfinite(ground_of(SCHEMA, rows(), "y").sampling_sd(4)).all()


def test_a_typical_number_is_a_median_told_in_one_columns_units():
    found = ground_of(SCHEMA, rows(), "y")
    same = 0.01 / found.size  # every coefficient has the standardised error 0.01
    assert found.in_typical_units(same) == pytest.approx(0.01 / found.size[found.typical])
    assert found.design.names[found.typical] in ("a", "b")


def test_what_chance_makes_of_coefficients_along_weak_directions_is_taken_off():
    """Two features that are nearly the same, neither of which explains anything: samples show large coefficients of both signs."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in ("y", "a", "b")])
    kept, plain = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        a = rng.uniform(-0.5, 0.5, 200)
        z = np.column_stack([np.ones(200), rng.uniform(-0.5, 0.5, 200), a, a + rng.normal(0, 0.01, 200)])
        kept.append(ground_of(schema, z, "y").truth[1] ** 2)
        plain.append(np.linalg.lstsq(z[:, [0, 2, 3]], z[:, 1], rcond=None)[0][1] ** 2)
    assert np.mean(kept) < 0.5 * np.mean(plain)
    assert np.median(kept) < 0.2 * np.median(plain)


def test_shrinking_rows_does_nothing_to_a_linear_law_and_something_to_a_bent_one():
    """Whatever a sample shows of it by chance is taken off; what is there stays."""
    bound = 1.05
    straight, bent = (ground_of(SCHEMA, rows(bend=bend), "y", ["a"]) for bend in (0.0, 1.0))
    lost = straight.shrinking(np.inf)
    assert not lost.bias.any()
    assert not lost.per_row.any()
    assert straight.shrinking(bound).per_row[1] > 0
    seen = bent.shrinking(bound)
    exact = ground_of(SCHEMA, rows(2_000_000, seed=1, bend=1.0), "y", ["a"]).shrinking(bound)
    assert seen.bias[1] == pytest.approx(exact.bias[1], rel=0.25)
    assert abs(straight.shrinking(bound).bias[1]) < abs(seen.bias[1])


def test_the_spread_of_shrinking_is_that_between_tables():
    bound, count = 1.05, 400
    found = ground_of(SCHEMA, rows(), "y")
    moved = []
    for seed in range(400):
        z = rows(count, seed=seed + 10)
        w = np.minimum(1, bound / np.linalg.norm(z, axis=1))
        x, y = z[:, [0, 2, 3]], z[:, 1]
        shrunk = np.linalg.lstsq(x * w[:, None], y * w, rcond=None)[0]
        moved.append((shrunk - np.linalg.lstsq(x, y, rcond=None)[0])[1] * 10 / 3)
    assert found.shrinking(bound).per_row[1] / np.sqrt(count) == pytest.approx(np.std(moved), rel=0.2)


def test_features_that_are_constant_in_a_sample_are_left_out_and_named():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", -1, 1), dpgram.Categorical("c", ["u", "v", "w"])])
    z = np.zeros((100, 4))
    z[:, 0], z[:, 1], z[50:, 2] = 1, np.linspace(-1, 1, 100) ** 3, 1
    found = ground_of(schema, z, "y")
    assert found.left_out == ("c[w]",)
    assert found.design.names == ("(intercept)", "c[v]")


def test_samples_that_carry_no_regression_are_refused():
    z = rows(100)
    with pytest.raises(PlanError, match="at least two rows"):
        ground_of(SCHEMA, z[:1], "y")
    with pytest.raises(PlanError, match="dependent in the sample"):
        ground_of(SCHEMA, np.column_stack([z[:, :3], z[:, 2]]), "y")
    with pytest.raises(PlanError, match="'y' is constant"):
        ground_of(SCHEMA, np.column_stack([z[:, 0], 0 * z[:, 1], z[:, 2:]]), "y")
    with pytest.raises(ModelError, match="no feature and no intercept"):
        ground_of(dpgram.Schema(unit="p", columns=[dpgram.Numeric("y", -1, 1)], intercept=False), z[:, :1], "y")


def test_without_numbers_all_slopes_count_and_without_slopes_the_intercept():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Boolean("u"), dpgram.Boolean("v"), dpgram.Boolean("w")])
    z = np.column_stack([np.ones(200), np.random.default_rng(0).random((200, 3)) < 0.5]).astype(float)
    assert list(ground_of(schema, z, "u").places) == [1, 2]
    assert list(ground_of(schema, z, "u", []).places) == [0]
