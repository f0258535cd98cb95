"""From a Gram without noise every solver gives what scikit-learn computes from the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.linear_model import ElasticNet, Ridge

import dpgram
from dpgram.estimators import solvers
from dpgram.terms.noise import SymmetricGaussian
from tests.estimators.conftest import BOUNDS, TARGET_BOUNDS

NAMES = ("x0", "x1", "x2", "y")


@pytest.fixture(scope="module")
def exact(clamped) -> dpgram.GramRelease:
    """A release of the clamped rows whose noise was taken out."""
    X, y = clamped
    columns = [dpgram.Numeric(n, lo, up) for n, lo, up in zip(NAMES[:3], *BOUNDS, strict=True)]
    schema = dpgram.Schema(unit="row", columns=[*columns, dpgram.Numeric("y", *TARGET_BOUNDS)])
    table = dict(zip(NAMES, [*X.T, y], strict=True))
    release = dpgram.release(table, schema, epsilon=1, delta=1e-6, insecure_seed=1)
    scaled = np.array([(table[e.name] - e.centre) / e.half for e in schema.encoded[1:]])
    z = np.vstack([np.ones(len(y)), scaled])
    return replace(release, gram=z @ z.T, noise=SymmetricGaussian.orthogonal(1e-9))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.1, 500.0])
def test_ridge(exact, clamped, intercept, alpha):
    found = solvers.moments(exact, NAMES, centred=intercept)
    coef = solvers.ridge(found, 1, alpha)
    theirs = Ridge(alpha=alpha, fit_intercept=intercept).fit(*clamped)
    np.testing.assert_allclose(coef[0], theirs.coef_, rtol=1e-8)
    np.testing.assert_allclose(solvers.intercepts(found, coef)[0], theirs.intercept_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.1, 1.0), (2.0, 1.0), (0.5, 0.3)])
def test_lasso_and_elastic_net(exact, clamped, intercept, alpha, l1_ratio):
    found = solvers.moments(exact, NAMES, centred=intercept)
    coef, iterations = solvers.elastic_net(found, 1, alpha, l1_ratio, max_iter=100_000, tol=1e-12)
    theirs = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, fit_intercept=intercept, max_iter=100_000, tol=1e-12).fit(*clamped)
    np.testing.assert_allclose(coef[0], theirs.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(solvers.intercepts(found, coef)[0], theirs.intercept_, rtol=1e-5, atol=1e-8)
    assert iterations >= 1


def test_several_targets_are_solved_one_by_one(exact):
    both = solvers.moments(exact, ("x0", "x1", "x2", "y"))
    found = solvers.ridge(both, 2, 3.0)
    for place, target in enumerate(("x2", "y")):
        alone = solvers.ridge(solvers.moments(exact, ("x0", "x1", target)), 1, 3.0)
        np.testing.assert_allclose(found[place], alone[0], rtol=1e-10)


def test_pseudo_rows_have_the_same_products(exact):
    found = solvers.moments(exact, NAMES)
    rows = solvers.pseudo_rows(found)
    np.testing.assert_allclose(rows.T @ rows, found.scatter, rtol=1e-9)


def test_components(exact, clamped):
    found = solvers.moments(exact, NAMES[:3])
    variances, components = solvers.principal_components(found)
    theirs = PCA().fit(clamped[0])
    np.testing.assert_allclose(variances, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(components @ theirs.components_.T), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(found.mean, theirs.mean_, rtol=1e-10)
    assert (components.max(axis=1) == np.abs(components).max(axis=1)).all()


def test_covariance(exact, clamped):
    found = solvers.moments(exact, NAMES[:3])
    theirs = EmpiricalCovariance().fit(clamped[0])
    matrix = solvers.covariance(found)
    np.testing.assert_allclose(matrix, theirs.covariance_, rtol=1e-8)
    np.testing.assert_allclose(solvers.inverse(found, matrix), theirs.precision_, rtol=1e-7)
    np.testing.assert_allclose(solvers.correlation(matrix), np.corrcoef(clamped[0].T), rtol=1e-8)


def test_the_number_of_rows_is_the_public_one_unless_rows_were_shrunk_or_it_is_protected(exact):
    noisy = replace(exact, gram=exact.gram + np.diag([100.0, 0, 0, 0, 0]))
    assert solvers.moments(noisy, NAMES).count == exact.rows
    assert solvers.moments(replace(noisy, rows=None), NAMES).count == pytest.approx(exact.rows + 100)
    assert solvers.moments(replace(noisy, row_bound=1.0), NAMES).count == pytest.approx(exact.rows + 100)


@pytest.mark.parametrize("sd", [1e3, 1e6])
def test_noise_that_drowns_the_matrix_still_gives_finite_answers(exact, sd):
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = np.triu(rng.normal(scale=sd, size=exact.gram.shape))
        drowned = replace(exact, gram=exact.gram + noise + np.triu(noise, 1).T, noise=SymmetricGaussian.orthogonal(sd))
        found = solvers.moments(drowned, NAMES)
        matrix = solvers.covariance(found)
        assert found.count > 0
        assert np.isfinite(solvers.ridge(found, 1, None)).all()
        assert np.isfinite(solvers.elastic_net(found, 1, 1.0, 1.0, max_iter=100_000, tol=1e-4)[0]).all()
        assert (np.linalg.eigvalsh(matrix / found.half[:, None] / found.half) > 0).all()
        assert np.isfinite(solvers.inverse(found, matrix)).all()
        assert (solvers.principal_components(found)[0] >= 0).all()
