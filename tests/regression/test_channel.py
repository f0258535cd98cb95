"""The channel and the estimators on it: exact without noise, unbiased with it, and an answer or a clear refusal for any release."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.errors import IndefiniteGramError, ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.goodness import goodness
from dpgram.inference.hypotheses import jointly
from dpgram.inference.intervals import automatic, uncertainty, wald
from dpgram.regression.channel import channel
from dpgram.regression.design import design
from dpgram.regression.fit import ESTIMATORS, fit_linear
from dpgram.regression.formula import designs
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import NoisyInverse, SymmetricGaussian, WishartSample
from tests.conftest import small_schema, small_table
from tests.releases import NOISES, ROOT, SILENT, matrix_release, pass_through, seen_through, true_gram, with_gram

TABLE = small_table(rows=3000)
EXACT = ("shrunk", "debiased", "log-det")


def own_columns():
    x, y, b = (TABLE[name].to_numpy().astype(float) for name in ("x", "y", "b"))
    c = TABLE["c"].to_numpy()
    levels = {f"c[{name}]": (c == cell) * 1.0 for name, cell in (("a", "a"), ("b", "b"), ("other", "z"))}
    return {"(intercept)": np.ones(len(x)), "x": x, "y": y, "b": b, **levels}


def least_squares(names, label):
    own = own_columns()
    return np.linalg.lstsq(np.column_stack([own[name] for name in names]), label, rcond=None)[0]


@pytest.mark.parametrize("estimator", EXACT)
@pytest.mark.parametrize("noise", SILENT.values(), ids=SILENT)
@pytest.mark.parametrize(("column", "kept"), [(True, True), (True, False), (False, False)])
def test_without_noise_every_estimator_is_least_squares(estimator, noise, column, kept):
    schema = small_schema(intercept=column)
    gram = true_gram(TABLE, schema)
    release = with_gram(noise, gram + noise.shift * np.eye(len(gram)), TABLE, schema)
    own = own_columns()
    for target, label in (("y", own["y"]), ({"y": 0.5, "b": 2}, 0.5 * own["y"] + 2 * own["b"])):
        plan = design(release.schema, target, ["x", "c"], kept)
        coefficients = fit_linear(Evidence.of(release), plan, estimator)
        assert coefficients == pytest.approx(least_squares(plan.names, label), rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("estimator", EXACT)
@pytest.mark.parametrize("formula", ['y ~ x + C(c, contr.treatment("b"))', "y ~ x + c - 1", 'y ~ C(c, Treatment("other")) + b'])
def test_without_noise_formulas_are_least_squares(estimator, formula):
    schema = small_schema()
    release = with_gram(SymmetricGaussian.orthogonal(1e-7), true_gram(TABLE, schema), TABLE, schema)
    (plan,) = designs(release.schema, formula)
    expected = least_squares(plan.names, own_columns()["y"])
    assert fit_linear(Evidence.of(release), plan, estimator) == pytest.approx(expected, rel=2e-4, abs=2e-5)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_error_squares_and_coefficients_are_right_on_average(noise):
    """1500 draws of the noise on one table, with the noise's own part of the true model's squares, which has mean zero, taken off.

    Five standard errors, at most 7 numbers: one false alarm in 250 000. Power is shown below for the estimate without debiasing."""
    schema, draws = small_schema(), 1500
    true = true_gram(TABLE, schema)
    release = with_gram(noise, true, TABLE, schema)
    plan = design(release.schema, "y", None, None)
    exact = least_squares(plan.names, own_columns()["y"])
    scaled = np.linalg.solve(plan.to_own_units, exact - plan.offset)
    u = plan.label - plan.regressors @ scaled
    left, found = np.empty(draws), np.empty((draws, len(exact)))
    for k in range(draws):
        gram = pass_through(noise, true, SeededSource(k))
        additive = not isinstance(noise, NoisyInverse)  # there a bias of second order is left, far below the noise itself
        moved = additive * (gram - true - noise.shift * np.eye(len(true)))
        seen = channel(Evidence.of(dataclasses.replace(release, gram=gram)), plan)
        left[k] = seen.error_squares() * seen.label_scale**2 - u @ moved @ u
        found[k] = seen.to_own @ seen.estimate + seen.base
    reach = 5 / np.sqrt(draws)
    assert abs(left.mean() - u @ true @ u) < reach * left.std()
    assert (np.abs(found.mean(axis=0) - exact) < reach * found.std(axis=0)).all()


def test_dividing_by_the_gain_itself_is_biased():
    """The power of the test above: without debiasing, coefficients of a matrix with noise of a fifth its size are 5 % too large."""
    true, noise = np.diag([1000.0, 100.0, 100.0, 60.0]), SymmetricGaussian.orthogonal(12.0)
    true[1, 3] = true[3, 1] = 50.0
    plain, better = [], []
    release = matrix_release(true, noise)
    plan = design(release.schema, "y", None, None)
    for k in range(2000):
        seen = channel(Evidence.of(dataclasses.replace(release, gram=pass_through(noise, true, SeededSource(k)))), plan)
        better.append(seen.to_own @ seen.estimate)
        plain.append(seen.to_own @ (seen.observed / seen.gain))
    reach = 5 * np.std(better, axis=0)[1] / np.sqrt(2000)
    assert abs(np.mean(better, axis=0)[1] - 0.5) < reach
    assert np.mean(plain, axis=0)[1] - 0.5 > reach


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_wald_covariance_is_that_of_the_draws(noise):
    """4000 draws: a standard deviation's own error is 1.1 %, five of them 5.6 %; the bound of 6 % sees one of 12 % nearly always.

    The covariance is averaged over draws, because each comes from an estimate; the noise is a fiftieth of what would bend it."""
    schema, draws = small_schema(), 4000
    true = 10 * true_gram(TABLE, schema)
    noise = NoisyInverse(1e-7, 1e-7 * ROOT, 1.0) if isinstance(noise, NoisyInverse) else noise
    release = with_gram(noise, true, TABLE, schema, rows=30_000)
    plan = design(release.schema, "y", ["x", "b", "c"], None)
    found, claimed = [], []
    for k in range(draws):
        seen = channel(Evidence.of(dataclasses.replace(release, gram=pass_through(noise, true, SeededSource(k)))), plan)
        found.append(seen.to_own @ seen.estimate + seen.base)
        if k % 10 == 0:
            claimed.append(uncertainty(seen).noise)
    spread, expected = np.cov(np.array(found).T), np.mean(claimed, axis=0)
    assert np.sqrt(np.diag(spread)) == pytest.approx(np.sqrt(np.diag(expected)), rel=0.06)
    size = np.sqrt(np.diag(expected))
    assert (np.abs(spread - expected) / size[:, None] / size).max() < 0.12


def everything(release, target="y", features=None, intercept=None):
    """All that is computed from a channel; NaN nowhere, and pytest makes warnings errors."""
    plan = design(release.schema, target, features, intercept)
    seen = channel(Evidence.of(release), plan)
    for estimator in ESTIMATORS:
        try:
            assert np.isfinite(fit_linear(Evidence.of(release), plan, estimator)).all(), estimator
        except IndefiniteGramError:
            assert estimator == "plain"
    known = uncertainty(seen)
    assert np.isfinite(known.covariance).all()
    for intervals in (wald(seen, 0.95), automatic(seen, 0.95)):
        assert not np.isnan([intervals.lower, intervals.upper]).any()
        assert (intervals.lower <= intervals.upper).all()
    places = list(range(len(plan.names)))
    assert 0 <= jointly(seen, np.zeros(len(places)), np.eye(len(seen.gain))[list(places)]).p_value <= 1
    of = goodness(Evidence.of(release), plan, 0.95)
    assert not np.isnan([of.residual_variance, *of.residual_variance_interval, *of.r_squared_interval]).any()
    return seen


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
@pytest.mark.parametrize("intercept", [True, False])
def test_one_coefficient_alone(noise, intercept):
    everything(seen_through(noise, TABLE, small_schema(intercept=intercept)), "y", [] if intercept else ["x"])


@pytest.mark.parametrize("intercept", [True, False])
def test_a_table_of_one_or_two_columns(intercept):
    names = ["x"] if intercept else ["x", "z"]
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in names], intercept=intercept)
    table = {name: np.linspace(-1, 1, 500) for name in names}
    everything(seen_through(SymmetricGaussian.orthogonal(1.0), table, schema), "x")


@pytest.mark.parametrize("noise", [SymmetricGaussian.orthogonal(s) for s in (1e-12, 1e-3, 1.0, 1e4, 1e12)], ids=str)
def test_additive_noise_of_any_size(noise):
    everything(seen_through(noise, TABLE, small_schema()))


@pytest.mark.parametrize("noise", list(NOISES.values()), ids=NOISES)
@pytest.mark.parametrize("rows", [3, 40])
def test_fewer_rows_than_columns(noise, rows):
    """Also far from what the noise can show."""
    everything(seen_through(noise, small_table(rows), small_schema()))


@pytest.mark.parametrize("noise", [*NOISES.values(), SymmetricGaussian.orthogonal(1e-7)], ids=[*NOISES, "silent"])
def test_constant_and_duplicate_columns(noise):
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, -3, 3) for n in ("a", "twin", "constant", "zero", "y")])
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    table = {"a": a, "twin": a, "constant": np.ones(2000), "zero": np.zeros(2000), "y": a / 2 + rng.normal(size=2000) / 2}
    everything(seen_through(noise, table, schema))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-6), (20.0, 1e-6), (1.0, 1e-15)])
@pytest.mark.parametrize("mechanism", ["gaussian-noise", "wishart-noise", "gaussian-sketch", "inverse-wishart"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_budgets_at_both_ends(epsilon, delta, mechanism, neighbours):
    schema = small_schema(neighbours=neighbours)
    options = {"degrees_of_freedom": 400.0} if mechanism == "inverse-wishart" else {}
    release = dpgram.release(TABLE, schema, epsilon=epsilon, delta=delta, mechanism=mechanism, insecure_seed=1, **options)
    assert (release.rows is None) == (neighbours == "add-remove")
    everything(release)
    assert Evidence.of(release).rows >= 1


@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_are_protected(intercept):
    noise = SymmetricGaussian.orthogonal(5.0)
    release = seen_through(noise, TABLE, small_schema(intercept=intercept, neighbours="add-remove"), rows=None)
    everything(release)
    assert Evidence.of(release).rows == pytest.approx(3000, rel=0.05) if intercept else 1 <= Evidence.of(release).rows <= 3000


@pytest.mark.parametrize("noise", [NoisyInverse(s, s * ROOT, 1.0) for s in (1e-12, 1e-6, 1e-3, 1.0)], ids=str)
def test_noise_on_the_inverse_of_any_size(noise):
    everything(seen_through(noise, TABLE, small_schema()))


def test_a_sketch_with_too_few_rows_says_so():
    release = seen_through(WishartSample(8.0, 10.0, 10.0), TABLE, small_schema())
    with pytest.raises(
        ModelError, match="sketch of 8 rows, but a regression with 5 coefficients needs at least 9. Use fewer features"
    ):
        channel(Evidence.of(release), design(release.schema, "y", None, None))
    everything(release, "y", ["x", "b"])


def by_name(release, features, estimator):
    plan = design(release.schema, "y", features, None)
    return dict(zip(plan.names, fit_linear(Evidence.of(release), plan, estimator).tolist(), strict=True))


@given(order=st.permutations(["x", "c", "b"]), noise=st.sampled_from(sorted(NOISES)))
@settings(deadline=None)
def test_permuting_features_permutes_results(order, noise):
    release = RELEASES[noise]
    for estimator in (*EXACT, "ridge"):
        one = by_name(release, ["x", "c", "b"], estimator)
        other = by_name(release, order, estimator)
        assert other == pytest.approx(one, rel=1e-6, abs=1e-9)


RELEASES = {name: seen_through(noise, TABLE, small_schema()) for name, noise in NOISES.items()}


@given(factor=st.floats(1e-3, 1e3), centre=st.floats(-50, 50), noise=st.sampled_from(sorted(NOISES)))
@settings(deadline=None)
def test_units_of_a_column_carry_over(factor, centre, noise):
    """The same matrix under other declared bounds of x: the slope is divided, the intercept moves along, the rest stays."""
    release = RELEASES[noise]
    columns = [dpgram.Numeric("x", centre - 5 * factor, centre + 5 * factor), *small_schema().columns[1:]]
    moved = dataclasses.replace(release, schema=small_schema(columns=columns))
    for estimator in EXACT:
        one = by_name(release, None, estimator)
        other = by_name(moved, None, estimator)
        slope = one["x"] / factor
        expected = {**one, "x": slope, "(intercept)": one["(intercept)"] - slope * centre}
        assert other == pytest.approx(expected, rel=1e-6, abs=1e-6 * (1 + abs(slope * centre)))


def test_effective_rows_are_the_public_number_unless_rows_were_shrunk():
    schema = small_schema()
    release = seen_through(SymmetricGaussian.orthogonal(500.0), TABLE, schema)
    assert Evidence.of(release).rows == 3000
    shrunk = dataclasses.replace(release, row_bound=schema.largest_norm / 2)
    assert Evidence.of(shrunk).rows == min(max(release.gram[0, 0], 150), 3000)
    assert Evidence.of(dataclasses.replace(release, rows=None)).rows == max(release.gram[0, 0], 1.0)


@pytest.mark.parametrize("half", [1e300, 1e-300])
def test_a_target_whose_squares_leave_double_precision_is_refused(half):
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -half, half) for name in "xy"])
    table = {name: half * np.linspace(-1, 1, 50) for name in "xy"}
    release = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    with pytest.raises(ModelError, match="the bounds of 'y' are so large or so small"):
        dpgram.regress(release, "y")


def test_plausible_coefficients_follow_from_what_columns_have_for_themselves():
    """What a number has beside the others may explain all of the target, a 0/1 column two standard deviations. What noise hides counts with
    the noise: a number with far too wide bounds, and one of two that are nearly the same."""
    rows, sd = 10_000, 20.0

    def seen(gram, indicators=None):
        release = matrix_release(rows * gram, SymmetricGaussian.orthogonal(sd), rows=rows)
        of = channel(Evidence.of(release), design(release.schema, "y", None, None))
        if indicators is None:
            return of
        return dataclasses.replace(of, design=dataclasses.replace(of.design, indicators=np.array(indicators)))

    wide = np.diag([1.0, 0.25**2, 1e-4**2, 0.1**2])  # the intercept, a number, one with far too wide bounds, and the label
    wide[0, 1] = wide[1, 0] = 0.3  # about the mean, whose square does not count
    wide[1, 1] += 0.3**2
    of = seen(wide)
    assert of._own_sds[1:] == pytest.approx([0.25, math.sqrt(sd / rows)])
    hidden = int(np.argmax(np.abs(of.axes[2])))
    assert of.plausible[hidden] == pytest.approx(0.1**2 * rows / sd)
    assert seen(wide, [False, True, True]).plausible[hidden] == pytest.approx(0.2**2)

    alike = np.diag([1.0, 0.25**2, 0.25**2, 0.1**2])
    alike[1, 2] = alike[2, 1] = 0.25**2 - 1e-6
    of = seen(alike)
    apart = int(np.argmax(np.abs(of.axes[1] - of.axes[2])))
    assert of.hidden.tolist() == [place == apart for place in range(3)]
    assert of.plausible[apart] == pytest.approx(0.1**2 * rows / (2 * sd), rel=0.02)  # half of the direction is each one's own
