"""Moments and penalised fits when noise drowns the matrix, and which number of rows they divide by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import design
from dpgram.regression.moments import moments, principal_components
from dpgram.regression.penalised import elastic_net, ridge
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import filled_schema, small_schema


def test_the_number_of_rows_is_the_public_one_unless_rows_were_shrunk_or_it_is_protected(small_release):
    gram = small_release.gram.copy()
    gram[0, 0] = 4100.0
    noisy = replace(small_release, gram=gram, schema=filled_schema())
    assert moments(Evidence.of(noisy)).rows == small_release.rows == 4000
    holes = replace(noisy, schema=small_schema())  # rows with a missing number do not count
    assert moments(Evidence.of(holes)).rows == 4000  # at most
    assert moments(Evidence.of(replace(holes, rows=9000))).rows == 4100
    assert moments(Evidence.of(replace(noisy, rows=None))).rows == pytest.approx(4100, rel=1e-2)
    assert moments(Evidence.of(replace(noisy, row_bound=1.0))).rows == pytest.approx(4100, rel=1e-2)


@pytest.mark.parametrize("sd", [1e3, 1e6])
def test_noise_that_drowns_the_matrix_still_gives_finite_answers(small_release, sd):
    rng = np.random.default_rng(1)
    for _ in range(20):
        noise = np.triu(rng.normal(scale=sd, size=small_release.gram.shape))
        gram = small_release.gram + noise + np.triu(noise, 1).T
        drowned = replace(small_release, gram=gram, noise=SymmetricGaussian.orthogonal(sd))
        found, plan = moments(Evidence.of(drowned)), design(drowned.schema, "y", None, None)
        assert found.rows > 0
        for estimate in (
            ridge(Evidence.of(drowned), plan),
            ridge(Evidence.of(drowned), plan, 3.0),
            elastic_net(Evidence.of(drowned), plan, tol=1e-4, max_iter=100_000)[0],
        ):
            assert np.isfinite(estimate).all()
        assert (np.linalg.eigvalsh(found.covariance / found.half[:, None] / found.half) > 0).all()
        assert np.isfinite(found.precision).all()
        assert (principal_components(found).variances >= 0).all()
        assert np.isfinite(dpgram.covariance(drowned).errors.correlation).all()
