"""Moments from a release: NumPy's on the clamped rows where there is no noise, and never an impossible one."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import moments, principal_components
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import small_schema, small_table
from tests.releases import NOISES, SILENT, seen_through, true_gram, with_gram

TABLE = small_table(rows=3000)


def rows():
    x, y = (np.clip(TABLE[n].to_numpy(), low, high) for n, low, high in (("x", -5, 5), ("y", -10, 30)))
    c, b = TABLE["c"].to_numpy(), TABLE["b"].to_numpy().astype(float)
    return np.column_stack([x, y, (c == "b") * 1.0, (c == "z") * 1.0, b])


def silent(noise):
    schema = small_schema()
    gram = true_gram(TABLE, schema)
    return with_gram(noise, gram + noise.shift * np.eye(len(gram)), TABLE, schema)


@pytest.mark.parametrize("noise", SILENT.values(), ids=SILENT)
def test_without_noise_they_are_those_of_the_rows(noise):
    found, table = moments(Evidence.of(silent(noise))), rows()
    covariance = np.cov(table.T, bias=True)
    assert found.names == ("x", "y", "c[b]", "c[other]", "b")
    assert found.rows == pytest.approx(3000)
    assert found.mean == pytest.approx(table.mean(axis=0), abs=1e-5)
    assert found.covariance == pytest.approx(covariance, rel=1e-4, abs=1e-5)
    assert found.sd == pytest.approx(table.std(axis=0), rel=1e-4)
    assert found.correlation == pytest.approx(np.corrcoef(table.T), rel=1e-4, abs=1e-5)
    assert found.precision == pytest.approx(np.linalg.inv(covariance), rel=1e-3, abs=1e-4)


def test_partial_correlations_are_those_of_residuals():
    table = rows()
    found = moments(Evidence.of(silent(SILENT["gaussian"]))).partial_correlation
    others = np.column_stack([np.ones(3000), table[:, 2:]])
    left = table[:, :2] - others @ np.linalg.lstsq(others, table[:, :2], rcond=None)[0]
    assert found[0, 1] == pytest.approx(np.corrcoef(left.T)[0, 1], abs=1e-5)
    assert np.diag(found).tolist() == [1.0] * 5
    assert found == pytest.approx(found.T)


@pytest.mark.parametrize("standardise", [False, True])
def test_components_are_those_of_the_rows(standardise):
    table = rows()
    centred = table - table.mean(axis=0)
    if standardise:
        centred = centred / table.std(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    found = principal_components(moments(Evidence.of(silent(SILENT["gaussian"]))), standardise=standardise)
    assert found.variances == pytest.approx(sizes**2 / 3000, rel=1e-4)
    assert np.abs(np.sum(found.loadings * axes, axis=1)) == pytest.approx(np.ones(5), abs=1e-5)
    assert (np.take_along_axis(found.loadings, np.abs(found.loadings).argmax(axis=1)[:, None], axis=1) > 0).all()
    assert found.shares.sum() == pytest.approx(1.0)


def test_some_columns_are_those_of_all():
    release = seen_through(NOISES["gaussian"], TABLE, small_schema())
    whole, some = moments(Evidence.of(release)), moments(Evidence.of(release), ["b", "x"])
    assert some.names == ("b", "x")
    assert some.covariance[0, 1] == pytest.approx(whole.covariance[4, 0])


@pytest.mark.parametrize("noise", [*NOISES.values(), *(SymmetricGaussian.orthogonal(s) for s in (1e-12, 1e4, 1e12))], ids=str)
@pytest.mark.parametrize("count", [3, 3000])
def test_moments_are_possible_however_large_the_noise(noise, count):
    of = moments(Evidence.of(seen_through(noise, small_table(count), small_schema())))
    assert np.linalg.eigvalsh(of.correlation)[0] > -1e-9
    assert (np.abs(of.correlation) <= 1).all()
    assert (np.abs(of.partial_correlation) <= 1).all()
    assert (of.sd > 0).all()
    for standardise in (False, True):
        found = principal_components(of, standardise=standardise)
        assert np.isfinite(found.loadings).all()
        assert (found.variances >= 0).all()


def test_constant_and_duplicate_columns():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, -3, 3) for n in ("a", "twin", "constant")])
    a = np.random.default_rng(0).normal(size=2000)
    release = seen_through(SymmetricGaussian.orthogonal(1.0), {"a": a, "twin": a, "constant": np.ones(2000)}, schema)
    of = moments(Evidence.of(release))
    assert of.correlation[0, 1] == pytest.approx(1.0, abs=0.02)
    assert of.sd[2] < 0.15
    assert np.isfinite(of.partial_correlation).all()


def test_no_intercept_no_moments():
    release = seen_through(NOISES["gaussian"], TABLE, small_schema(intercept=False))
    with pytest.raises(ModelError, match="need the intercept column"):
        moments(Evidence.of(release))
    with pytest.raises(ModelError, match="the list of columns is empty"):
        moments(Evidence.of(seen_through(NOISES["gaussian"], TABLE, small_schema())), [])


RELEASE = seen_through(NOISES["gaussian"], TABLE, small_schema())


@given(factor=st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_correlations_do_not_depend_on_units(factor):
    """The same matrix under other bounds of x: another covariance, the same correlations."""
    columns = [dpgram.Numeric("x", -5 * factor, 5 * factor), *small_schema().columns[1:]]
    one, other = (
        moments(Evidence.of(RELEASE)),
        moments(Evidence.of(dataclasses.replace(RELEASE, schema=small_schema(columns=columns)))),
    )
    assert other.correlation == pytest.approx(one.correlation, abs=1e-9)
    assert other.partial_correlation == pytest.approx(one.partial_correlation, abs=1e-9)
    assert other.sd[0] == pytest.approx(factor * one.sd[0])
