"""Coefficients in the shapes of statsmodels: labelled series and frames where pandas is installed, dicts where it is not."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import dpgram
from dpgram.errors import ModelError
from dpgram.report import summary
from tests.analysis.test_fit import noiseless
from tests.conftest import small_schema
from tests.needs import package
from tests.regression.test_regress import columns_in_own_units

SERIES = ("params", "estimates", "shrunk", "bse", "bse_privacy", "bse_sampling", "bse_clipping", "tvalues", "pvalues")


@pytest.mark.parametrize("name", SERIES)
def test_numbers_by_name_are_series(small_release, name):
    fit = dpgram.regress(small_release, "y")
    found = getattr(fit, name)
    assert isinstance(found, pd.Series)
    assert found.index.tolist() == list(fit.names)
    assert found.dtype == float
    found.iloc[:] = 0.0  # a copy: the fit keeps its own
    assert (getattr(fit, name) != 0).any() or name == "bse_clipping"


def test_intervals_are_a_frame_with_columns_0_and_1(small_release):
    fit = dpgram.regress(small_release, "y", confidence=0.9)
    ends = fit.conf_int()
    assert ends.index.tolist() == list(fit.names)
    assert ends.columns.tolist() == [0, 1]
    assert ends.equals(fit.conf_int(0.1)) or ends.to_numpy() == pytest.approx(fit.conf_int(0.1).to_numpy(), rel=1e-9)
    assert fit.conf_int(alpha=0.01).equals(fit.conf_int(confidence=0.99))
    assert ((fit.conf_int(0.01)[0] < ends[0]) & (ends[1] < fit.conf_int(0.01)[1])).all()
    lower, upper = fit.ends()
    assert ends[0].tolist() == lower.tolist()
    assert ends[1].tolist() == upper.tolist()


@pytest.mark.parametrize("alpha", [0, 0.95, 0.51, 1, -0.1, "0.05", True, float("nan")])
def test_an_alpha_that_looks_like_a_confidence_level_is_refused(small_release, alpha):
    """What was conf_int(0.95) once would be an interval of 5 %."""
    with pytest.raises(ModelError, match="alpha is .* To give the confidence level itself, write confidence=0.95"):
        dpgram.regress(small_release, "y").conf_int(alpha)


def test_alpha_and_confidence_together_are_refused(small_release):
    with pytest.raises(ModelError, match="alpha and confidence are both given, and say the same thing. Leave one"):
        dpgram.regress(small_release, "y").conf_int(0.05, confidence=0.95)


def test_without_pandas_they_are_dicts(small_release, monkeypatch):
    fit = dpgram.regress(small_release, "y", ["x"])
    frame, series = fit.conf_int(), fit.params
    monkeypatch.setattr(summary, "installed_pandas", lambda: None)
    assert fit.params == series.to_dict()
    assert fit.conf_int() == {name: tuple(ends) for name, ends in zip(frame.index, frame.to_numpy().tolist(), strict=True)}
    assert all(type(value) is float for value in fit.pvalues.values())


def test_a_fit_that_is_not_asked_for_labels_does_not_import_pandas(small_release, tmp_path):
    small_release.save(tmp_path / "r.json")
    code = (
        "import sys, dpgram\nfit = dpgram.regress(dpgram.load('r.json'), 'y')\n"
        "fit.summary(), fit.to_dict(), fit.to_latex(), fit.to_markdown(), fit.ends(), fit.coefficients\n"
        "assert 'pandas' not in sys.modules\nfit.params\nassert 'pandas' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.package("statsmodels")
def test_they_are_those_of_statsmodels_when_noise_is_nil():
    sm = package("statsmodels.api")
    fit, own = dpgram.regress(noiseless(small_schema()), "y"), columns_in_own_units()
    theirs = sm.OLS(pd.Series(own["y"], name="y"), pd.DataFrame({name: own[name] for name in fit.names})).fit(use_t=False)
    for name in ("params", "bse", "tvalues"):
        pd.testing.assert_series_equal(getattr(fit, name), getattr(theirs, name), rtol=1e-3, check_index_type=False)
    assert fit.params.to_numpy() == pytest.approx(theirs.params.to_numpy(), rel=1e-4)
    for alpha in (0.05, 0.2):
        pd.testing.assert_frame_equal(
            fit.conf_int(alpha=alpha), theirs.conf_int(alpha=alpha), rtol=1e-3, check_index_type=False
        )
    assert np.all(fit.pvalues.index == theirs.pvalues.index)
