"""t_test, lincom and wald_test: without noise those of statsmodels and of textbooks, with noise those of the table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

import dpgram
from dpgram.errors import ModelError
from tests.analysis.test_fit import noiseless, ordinary
from tests.conftest import small_schema

RULES = ["auto", "wald", "fieller", "bootstrap"]


@pytest.fixture(scope="module")
def clear():
    return dpgram.regress(noiseless(small_schema()), "y")


def test_contrasts_are_those_of_least_squares_when_noise_is_nil(clear):
    b, covariance, *_ = ordinary(clear.names)
    row = np.array([0.0, 1.0, 0.0, -2.0, 0.5])
    tested = clear.t_test(["x - 2*c[other] + 0.5*b = 0.3", "c[b] = c[other]"])
    wanted = row @ b, np.sqrt(row @ covariance @ row)
    assert tested.effect.iloc[0] == pytest.approx(wanted[0], rel=1e-3)
    assert tested.sd.iloc[0] == pytest.approx(wanted[1], rel=1e-4)
    z = (wanted[0] - 0.3) / wanted[1]
    assert tested.tvalue.iloc[0] == pytest.approx(z, rel=1e-3)
    assert tested.pvalue.iloc[0] == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-2, abs=1e-300)
    low, high = tested.conf_int(alpha=0.1).iloc[0]
    assert (tested.conf_int(alpha=np.float32(0.25)) == tested.conf_int(alpha=0.25)).all(axis=None)
    reach = stats.norm.isf(0.05) * wanted[1]
    assert (low, high) == pytest.approx((wanted[0] - reach, wanted[0] + reach), rel=1e-3)
    assert tested.names == ("x - 2*c[other] + 0.5*b = 0.3", "c[b] = c[other]")


def test_several_together_are_wald_s_test_of_least_squares_when_noise_is_nil(clear):
    b, covariance, *_ = ordinary(clear.names)
    rows = np.array([[0.0, 1.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, -1.0, 0.0]])
    away = rows @ b - [0.1, 0.0]
    wanted = away @ np.linalg.solve(rows @ covariance @ rows.T, away)
    found = clear.wald_test("x + b/2 = 0.1, c[b] = c[other]")
    assert (found.degrees, found.df_num, found.restrictions) == (2, 2, 2)
    assert found.statistic == pytest.approx(wanted, rel=1e-3)
    assert found.pvalue == found.p_value
    assert found.coefficients == ("x", "c[b]", "c[other]", "b")
    assert clear.wald_test((rows, [0.1, 0.0])).statistic == pytest.approx(found.statistic)


def test_lincom_is_one_combination(clear):
    by_text, by_dict = clear.lincom("x + 10*b"), clear.lincom({"x": 1, "b": 10})
    assert by_text.effect.tolist() == by_dict.effect.tolist()
    assert by_dict.names == ("x + 10*b",)
    for wrong in ("x = 1", "x = b", "x - b = 0", ["x = b"], "x, b", "c"):
        with pytest.raises(ModelError, match="lincom takes one combination without '='"):
            clear.lincom(wrong)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-49, 1e-20, 1e20, 1e49])
@pytest.mark.parametrize("intervals", RULES)
@pytest.mark.parametrize("epsilon", [0.05, 5.0])
def test_the_size_of_weights_changes_nothing_but_the_unit(table, schema, epsilon, intervals, size):
    """Far beyond, squares of weights leave double precision: 1e-160 made z larger by a tenth, and 1e-170 infinite."""
    release = dpgram.release(table, schema, epsilon=epsilon, delta=1e-6, mechanism="gaussian-noise", insecure_seed=3)
    fit = dpgram.regress(release, "y", intervals=intervals)
    one, other = (fit.t_test([{"x": of}, {"x": of, "b": -2 * of}]) for of in (1.0, size))
    for name in ("effect", "sd"):
        assert getattr(other, name).to_numpy() / size == pytest.approx(getattr(one, name).to_numpy(), rel=1e-6)
    assert other.tvalue.to_numpy() == pytest.approx(one.tvalue.to_numpy(), rel=1e-6)
    assert other.pvalue.to_numpy() == pytest.approx(one.pvalue.to_numpy(), rel=1e-6, abs=1e-300)
    assert other.conf_int().to_numpy() / size == pytest.approx(one.conf_int().to_numpy(), rel=1e-6)
    one, other = (fit.wald_test([{"x": of}, {"b": -2 * of}]) for of in (1.0, size))
    assert (other.degrees, other.statistic) == (one.degrees, pytest.approx(one.statistic, rel=1e-6))
    for far in (1e160, 1e-170, 1e-160):
        with pytest.raises(ModelError, match="numbers of a size that cannot be computed with"):
            fit.t_test({"x": far})


@pytest.mark.parametrize("intervals", RULES)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 5.0])
def test_one_hypothesis_has_one_p_value_and_one_interval(table, schema, epsilon, intervals):
    release = dpgram.release(table, schema, epsilon=epsilon, delta=1e-6, mechanism="gaussian-noise", insecure_seed=3)
    fit = dpgram.regress(release, "y", intervals=intervals)
    tested = fit.t_test(list(fit.names))
    assert tested.pvalue.to_numpy() == pytest.approx(fit.pvalues.to_numpy(), rel=1e-6, abs=1e-300)
    assert np.array_equal(tested.conf_int().to_numpy(), fit.conf_int().to_numpy())
    assert tested.sd.to_numpy() == pytest.approx(fit.bse.to_numpy())
    for name in fit.names:
        one = fit.pvalues[name]
        assert fit.joint_test(name).p_value == pytest.approx(one, rel=1e-6, abs=1e-300)
        assert fit.wald_test({name: -3.0}).p_value == pytest.approx(one, rel=1e-4, abs=1e-300)
        low, high = fit.conf_int().loc[name]
        assert (low <= 0 <= high) == (one >= 0.05)


def test_the_weights_of_a_dict_count(clear):
    sums, differences = clear.joint_test({"x": 1, "b": 1}), clear.joint_test({"x": 1, "b": -1})
    assert (sums.degrees, differences.degrees) == (1, 1)
    assert sums.statistic != pytest.approx(differences.statistic, rel=0.1)
    assert sums.statistic == pytest.approx(float(clear.t_test("x + b").tvalue.iloc[0]) ** 2)
    assert sums.name == "x + b"


def test_what_the_release_says_too_little_about_is_left_out_of_a_joint_test_and_told(table, schema):
    """A level with a handful of rows."""
    columns = [*schema.columns[:2], dpgram.Categorical("c", ["a", "b", "rare"], other=True), schema.columns[3]]
    cells = table["c"].to_pylist()
    cells[:3] = ["rare"] * 3
    changed = table.set_column(2, "c", [cells])
    release = dpgram.release(
        changed, small_schema(columns=columns), epsilon=5.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1
    )
    fit = dpgram.regress(release, "y", ["x", "c"])
    assert fit.not_identified == ("c[rare]",)
    found = fit.joint_test("c")
    assert (found.degrees, found.restrictions) == (2, 3)
    assert found.p_value < 1e-6
    assert any("The joint test of c is about 2 of 3 combinations" in note for note in fit.notes)
    assert fit.to_dict()["joint_tests"][0]["restrictions"] == 3


def test_results_have_the_shapes_of_statsmodels(clear):
    tested = clear.t_test("x = b, c[b] = 1")
    frame = tested.summary_frame(alpha=0.2)
    assert list(frame.columns) == ["coef", "std err", "z", "P>|z|", "Conf. Int. Low", "Conf. Int. Upp."]
    assert list(frame.index) == ["x = b", "c[b] = 1"]
    assert tested.conf_int().columns.tolist() == [0, 1]
    text = str(tested)
    assert "tested" in text
    assert str(tested.summary()) == text == repr(tested)
    assert "<table>" in tested._repr_html_()
    assert "toprule" in tested.summary().to_latex()
    data = json.loads(json.dumps(tested.to_dict(), allow_nan=False))
    assert [one["name"] for one in data["contrasts"]] == ["x = b", "c[b] = 1"]
    assert data["contrasts"][1]["tested_value"] == 1.0
    assert "tested" not in str(clear.lincom("x - b"))


def test_what_is_not_identified_is_said(table, schema):
    release = dpgram.release(table, schema, epsilon=0.01, delta=1e-6, mechanism="gaussian-noise", insecure_seed=3)
    tested = dpgram.regress(release, "y").lincom("x - b")
    assert np.isinf(tested.conf_int().to_numpy()).all()
    assert tested.pvalue.iloc[0] >= 0.05
    assert "Not identified at this budget: x - b." in str(tested)
    assert tested.to_dict()["contrasts"][0]["lower"] is None


@pytest.mark.package("statsmodels")
def test_they_are_those_of_statsmodels():
    import pandas as pd
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=5000), "b": rng.normal(size=5000)})
    frame["y"] = 1 + 0.5 * frame["a"] + 0.45 * frame["b"] + rng.normal(size=5000)
    schema = dpgram.Schema(unit="row", columns=[dpgram.Numeric(name, -10, 10) for name in frame])
    release = dpgram.release(frame, schema, epsilon=1e12, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    ours = dpgram.regress(release, "y", ["a", "b"])
    theirs = sm.OLS(frame["y"], sm.add_constant(frame[["a", "b"]])).fit(use_t=False)
    one, other = ours.t_test("a = b, a = 0.4"), theirs.t_test("a = b, a = 0.4")
    assert one.effect.to_numpy() - [0, 0] == pytest.approx(other.effect, rel=1e-5)
    assert one.sd.to_numpy() == pytest.approx(other.sd.ravel(), rel=1e-5)
    assert one.tvalue.to_numpy() == pytest.approx(other.tvalue.ravel(), rel=1e-4)
    assert one.pvalue.to_numpy() == pytest.approx(other.pvalue, rel=1e-3)
    assert one.conf_int().to_numpy() == pytest.approx(other.conf_int(), rel=1e-4)
    joint, wanted = ours.wald_test("a = 0.5, b = 0.5"), theirs.wald_test("a = 0.5, b = 0.5", scalar=True, use_f=False)
    assert joint.statistic == pytest.approx(wanted.statistic, rel=1e-4)
    assert joint.pvalue == pytest.approx(wanted.pvalue, rel=1e-3)
