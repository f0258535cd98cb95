"""Residual variance and R^2: the rows' own where there is no noise, intervals that hold where there is, nothing impossible ever."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.evidence.evidence import Evidence
from dpgram.inference.goodness import goodness
from dpgram.regression.design import design
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import small_schema, small_table
from tests.releases import NOISES, SILENT, matrix_release, pass_through, seen_through, true_gram, with_gram

TABLE = small_table(rows=3000)


def of(release, confidence=0.95, **options):
    plan = design(release.schema, "y", options.get("features"), options.get("intercept"))
    return goodness(Evidence.of(release), plan, confidence)


def rows():
    x, y, b = (TABLE[name].to_numpy().astype(float) for name in ("x", "y", "b"))
    c = TABLE["c"].to_numpy()
    return np.column_stack([np.ones(3000), x, c == "b", c == "z", b]), y


@pytest.mark.parametrize("noise", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize("intercept", [True, False])
def test_without_noise_they_are_those_of_the_rows(noise, intercept):
    schema = small_schema()
    gram = true_gram(TABLE, schema)
    release = with_gram(noise, gram + noise.shift * np.eye(len(gram)), TABLE, schema)
    x, y = rows()
    x = x if intercept else x[:, 1:]
    left = float(np.linalg.lstsq(x, y, rcond=None)[1][0])
    whole = np.sum((y - y.mean()) ** 2) if intercept else np.sum(y**2)
    found = of(release, intercept=intercept)
    assert found.residual_variance == pytest.approx(left / (3000 - x.shape[1]), rel=1e-3)
    assert found.r_squared == pytest.approx(1 - left / whole, abs=1e-4)


@pytest.mark.parametrize("name", NOISES)
def test_their_intervals_hold(name):
    """300 draws of the noise on one table at 95 %: both truths lie within in 89 % or more, five sd below; sampling makes them cautious."""
    schema, noise = small_schema(), NOISES[name]
    true = true_gram(TABLE, schema)
    release = with_gram(noise, true, TABLE, schema)
    x, y = rows()
    left = float(np.linalg.lstsq(x, y, rcond=None)[1][0])
    variance, share = left / (3000 - 5), 1 - left / np.sum((y - y.mean()) ** 2)
    held = np.zeros(2)
    for k in range(300):
        found = of(dataclasses.replace(release, gram=pass_through(noise, true, SeededSource(k))))
        held[0] += found.residual_variance_interval[0] <= variance <= found.residual_variance_interval[1]
        held[1] += found.r_squared_interval[0] <= share <= found.r_squared_interval[1]
    assert (held / 300 > 0.95 - 5 * np.sqrt(0.95 * 0.05 / 300)).all()


@pytest.mark.parametrize("name", NOISES)
def test_quadratic_forms_vary_as_said(name):
    """3000 draws: the variance's own relative error is 2.6 %, and 13 % are five of them. Twice the variance would be 38 of them."""
    schema, noise = small_schema(), NOISES[name]
    true = true_gram(TABLE, schema)
    true = true + 300 * np.eye(len(true))  # so that the first order is all there is
    release = with_gram(noise, true + noise.shift * np.eye(len(true)), TABLE, schema)
    a = np.array([0.2, -0.5, 1.0, 0.1, 0.0, 0.3])
    moved = []
    for k in range(3000):
        moved.append(a @ pass_through(noise, true, SeededSource(k)) @ a)
    assert np.var(moved) == pytest.approx(Evidence.of(release).quadratic_covariance(a, a), rel=0.13)


@given(seed=st.integers(0, 10_000), sd=st.sampled_from([1e-12, 0.1, 5.0, 1e3, 1e12]), rows=st.sampled_from([1, 5, 1000]))
@settings(max_examples=60, deadline=None)
def test_nothing_impossible_is_said(seed, sd, rows):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, 5))
    noise = SymmetricGaussian.orthogonal(sd)
    release = matrix_release(pass_through(noise, root @ root.T, SeededSource(seed)), noise, rows=rows)
    plan = design(release.schema, "y", None, None)
    widths = []
    for confidence in (0.5, 0.95):
        found = goodness(Evidence.of(release), plan, confidence)
        low, high = found.residual_variance_interval
        assert 0 <= low <= found.residual_variance <= high < np.inf
        assert 0 <= found.r_squared_interval[0] <= found.r_squared_interval[1] <= 1
        if found.r_squared is not None:
            assert found.r_squared_interval[0] <= found.r_squared <= found.r_squared_interval[1]
        widths.append(found.r_squared_interval[1] - found.r_squared_interval[0])
    assert widths[0] <= widths[1] + 1e-12


def test_a_target_without_variance_of_its_own():
    release = seen_through(SymmetricGaussian.orthogonal(1e5), TABLE, small_schema())
    found = of(release)
    assert found.r_squared is None or 0 <= found.r_squared <= 1
    assert found.r_squared_interval == (0.0, 1.0) or found.r_squared is not None
