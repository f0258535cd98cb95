"""Everything that reads a release in whitened rounds: the same as additive noise under identity maps, exact without noise, and no
digits lost to a map that is badly conditioned."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.errors import IndefiniteGramError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.bootstrap import bootstrap
from dpgram.inference.goodness import goodness
from dpgram.inference.intervals import automatic, uncertainty
from dpgram.inference.moments import moment_errors
from dpgram.inference.selection import risks, select
from dpgram.linalg.rounds import share_shrunk, unshrunk
from dpgram.regression.channel import channel
from dpgram.regression.design import design
from dpgram.regression.fit import fit_linear
from dpgram.regression.moments import moments
from dpgram.regression.penalised import noise_penalty, normal_equations
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import Round, SymmetricGaussian, WhitenedGaussian
from tests.conftest import filled_schema, small_schema, small_table
from tests.releases import in_rounds, matrix_release, pass_through, true_gram, whitened_release, with_gram

TABLE = small_table(rows=3000)
ESTIMATORS = ("shrunk", "debiased", "log-det", "plain", "ridge", "lasso", "elastic-net")


def identity_round(gram, sd):
    return WhitenedGaussian((Round(np.eye(len(gram)), gram, sd, 1.0),))


def random_gram(seed, dim, rows, sd):
    """A noisy Gram of rows in [-1, 1] whose first column is one."""
    rng = np.random.default_rng(seed)
    z = np.column_stack([np.ones(rows), rng.uniform(-1, 1, (rows, dim - 1))])
    draw = np.triu(rng.normal(scale=sd, size=(dim, dim)))
    return z.T @ z + draw + np.triu(draw, 1).T


def answers(release):
    """All that readers say of one release, as one list of numbers."""
    plan = design(release.schema, "y", None, None)
    seen = channel(Evidence.of(release), plan)
    found = [seen.to_own.ravel() @ seen.to_own.ravel(), seen.rows, seen.scale, *Evidence.of(release).counted]
    for estimator in ESTIMATORS:
        try:
            found += fit_linear(Evidence.of(release), plan, estimator).tolist()
        except IndefiniteGramError:
            found.append(-1.0)
    found += uncertainty(seen).covariance.ravel().tolist()
    intervals, fit = automatic(seen, 0.9), goodness(Evidence.of(release), plan, 0.9)
    found += [*intervals.lower, *intervals.upper, fit.residual_variance, *fit.residual_variance_interval]
    found += [fit.r_squared if fit.r_squared is not None else -1.0, *fit.r_squared_interval]
    small = bootstrap(Evidence.of(release), plan, 0.9, draws=3)
    found += [*small.lower, *small.upper]
    found += [step.criterion for step in select(release, "y").steps]
    of = moments(Evidence.of(release))
    errors = moment_errors(Evidence.of(release), of)
    for part in (of.mean, of.covariance, of.partial_correlation, errors.mean, errors.covariance, errors.correlation):
        found += np.ravel(part).tolist()
    return np.array([*found, noise_penalty(Evidence.of(release), normal_equations(Evidence.of(release), plan))])


@given(seed=st.integers(0, 2**32 - 1), features=st.integers(1, 5), rows=st.integers(50, 5000), sd=st.floats(1e-3, 100.0))
@settings(deadline=None, max_examples=40)
def test_identity_maps_that_keep_everything_are_additive_noise(seed, features, rows, sd):
    gram = random_gram(seed, features + 2, rows, sd)
    plain = answers(matrix_release(gram, SymmetricGaussian.orthogonal(sd), rows=rows))
    rounds = answers(matrix_release(gram, identity_round(gram, sd), rows=rows))
    assert np.array_equal(np.isfinite(plain), np.isfinite(rounds))
    finite = np.isfinite(plain)
    assert rounds[finite] == pytest.approx(plain[finite], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_protected_number_of_rows_is_read_like_that_of_additive_noise(intercept):
    gram = random_gram(5, 4, 400, 2.0)
    changes = {"intercept": intercept, "rows": None, "neighbours": "add-remove"}
    plain = matrix_release(gram, SymmetricGaussian.orthogonal(2.0), **changes)
    rounds = matrix_release(gram, identity_round(gram, 2.0), **changes)
    if intercept:
        assert Evidence.of(rounds).counted == pytest.approx(Evidence.of(plain).counted)
        assert Evidence.of(rounds).weighed_rows == pytest.approx(Evidence.of(plain).counted)
    else:  # mapped rows have norm one at most, whatever the bound on their own
        assert Evidence.of(rounds).counted == pytest.approx((np.trace(gram), 0.0))


SILENT_MUS = (1e8, 1e8, 1e8)


@pytest.mark.parametrize("estimator", ["shrunk", "debiased", "log-det", "plain"])
@pytest.mark.parametrize(("column", "kept"), [(True, True), (True, False), (False, False)])
def test_without_noise_every_estimator_is_least_squares(estimator, column, kept):
    """Rows long enough to hold: nothing is shrunk, and all rounds say the same."""
    schema = filled_schema(intercept=column)
    release = whitened_release(TABLE, schema, mus=SILENT_MUS, room=60.0, first=1.0)
    assert release.noise.last.kept == pytest.approx(1.0, abs=1e-6)
    exact = with_gram(SymmetricGaussian(0.0, 0.0), true_gram(TABLE, schema), TABLE, schema)
    for target in ("y", {"y": 0.5, "b": 2}):
        plan = design(release.schema, target, ["x", "c"], kept)
        wanted = fit_linear(Evidence.of(exact), plan, "plain")
        assert fit_linear(Evidence.of(release), plan, estimator) == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    plan = design(release.schema, "y", None, None)
    ours, theirs = (goodness(Evidence.of(r), plan, 0.9) for r in (release, exact))
    assert ours.residual_variance == pytest.approx(theirs.residual_variance, rel=1e-4)
    assert ours.r_squared == pytest.approx(theirs.r_squared, rel=1e-4)
    if column:
        assert moments(Evidence.of(release)).covariance == pytest.approx(
            moments(Evidence.of(exact)).covariance, rel=1e-4, abs=1e-6
        )


def test_a_badly_conditioned_map_costs_no_digits():
    """Two features that differ by 1e-8 of their size, whitened: the released matrix cannot tell them apart, the last round can."""
    rng = np.random.default_rng(2)
    white = rng.normal(size=(4000, 4)) / 8
    white[:, 0] = 1 / 8
    root = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1e-8, 0], [0, 0.5, 2e-8, 0.3]])  # rows a = root z
    through = np.linalg.inv(root)
    beta = np.array([0.0, -1.5, 2.0])  # y = .5 x + 2 (x' - x): exactly this, as 2e-8 / 1e-8 = 2
    gram, sd = white.T @ white, 1e-6
    released = root @ gram @ root.T
    release = matrix_release((released + released.T) / 2, WhitenedGaussian((Round(through, gram, sd, 1.0),)), rows=4000)
    plan = design(release.schema, "y", None, None)
    for estimator in ("debiased", "log-det", "plain", "shrunk"):
        # What the label adds of its own is orthogonal only in the sum: its share is known.
        extra = np.linalg.lstsq(white[:, :3], 0.3 * white[:, 3], rcond=None)[0]
        wanted = beta + np.linalg.solve(root[:3, :3].T, extra)
        assert fit_linear(Evidence.of(release), plan, estimator) == pytest.approx(wanted, rel=1e-5)
    good = goodness(Evidence.of(release), plan, 0.95)
    left = white @ root[3] - (white[:, :3] @ root[:3, :3].T) @ wanted
    assert good.residual_variance == pytest.approx(left @ left / 3997, rel=1e-3)


def test_stacked_submodels_are_the_single_ones():
    release = whitened_release(TABLE, small_schema(), seed=4)
    plan = design(release.schema, "y", None, None)
    places = np.array([[0, 1, 2]])
    found = risks(Evidence.of(release), plan, places)
    alone = dataclasses.replace(
        plan,
        names=plan.names[:3],
        columns=(*plan.columns[:3], plan.columns[-1]),
        to_own_units=plan.to_own_units[:3, :3],
        offset=plan.offset[:3],
    )
    seen = channel(Evidence.of(release), alone)
    assert found.error_squares[0] == pytest.approx(seen.error_squares() * seen.label_scale**2, rel=1e-9)


def test_quadratic_forms_vary_as_said():
    """Two thousand draws of the last round; the false alarm of a ratio of variances outside 0.8 to 1.25 is below 1e-10."""
    release = whitened_release(TABLE, small_schema(), seed=5, room=50.0)
    rng, draws = SeededSource(1), []
    a = np.array([0.3, -1.0, 0.7, 0.2, 0.0, 0.1])
    truth = true_gram(TABLE, release.schema)
    for _ in range(2000):
        draws.append(a @ pass_through(release.noise, truth, rng) @ a)
    assert np.var(draws) == pytest.approx(Evidence.of(release).quadratic_covariance(a, a), rel=0.2)
    assert np.mean(draws) == pytest.approx(a @ truth @ a, abs=6 * np.std(draws) / np.sqrt(2000))


@given(
    seed=st.integers(0, 2**32 - 1),
    mus=st.lists(st.floats(0.01, 100.0), min_size=1, max_size=4),
    room=st.floats(0.2, 20.0),
    rows=st.integers(3, 500),
)
@settings(deadline=None, max_examples=30)
def test_every_release_has_an_answer(seed, mus, room, rows):
    """However noisy or hard shrunk: finite estimates, intervals that hold them, moments that can be."""
    rng = np.random.default_rng(seed)
    z = np.column_stack([np.ones(rows), rng.uniform(-1, 1, (rows, 3))])
    gram, noise = in_rounds(z, seed, mus=tuple(mus), room=room)
    release = matrix_release(gram, noise, rows=rows)
    fit = dpgram.regress(release, "y")
    assert np.isfinite([*fit.coefficients, *fit.params]).all()
    for estimator in ("log-det", "ridge", "lasso"):
        assert np.isfinite(fit_linear(Evidence.of(release), fit.design, estimator)).all()
    of = moments(Evidence.of(release))
    assert (of.sd > 0).all()
    assert np.linalg.eigvalsh(Evidence.of(release).repaired)[0] > -1e-9 * np.linalg.norm(Evidence.of(release).repaired)
    assert fit.summary()


def test_the_bootstrap_is_close_to_wald_where_the_noise_is_small():
    """Two hundred draws: their quantile is known to 10 %, and rounds that are pooled must come back in the coordinates of the last."""
    release = whitened_release(TABLE, small_schema(), seed=8, mus=(5.0, 5.0, 5.0), room=40.0)
    plan = design(release.schema, "y", None, None)
    first, second = automatic(channel(Evidence.of(release), plan), 0.9), bootstrap(Evidence.of(release), plan, 0.9, draws=200)
    assert second.upper - second.lower == pytest.approx(first.upper - first.lower, rel=0.35)
    assert second.lower + second.upper == pytest.approx(first.lower + first.upper, rel=1e-6, abs=1e-6)


def test_estimates_come_from_all_rounds_and_intervals_from_the_last():
    """Sixty releases of equal rounds: the pooled estimate has less error than the debiased one, by far more than chance."""
    exact = with_gram(SymmetricGaussian(0.0, 0.0), true_gram(TABLE, small_schema()), TABLE, small_schema())
    errors = []
    for seed in range(60):
        release = whitened_release(TABLE, small_schema(), seed=seed, mus=(0.3,) * 6, room=3.0)
        plan = design(release.schema, "y", None, None)
        truth = fit_linear(Evidence.of(exact), plan, "plain")
        errors.append(
            [np.linalg.norm(fit_linear(Evidence.of(release), plan, name) - truth) for name in ("log-det", "shrunk", "debiased")]
        )
        seen = channel(Evidence.of(release), plan)
        assert automatic(seen, 0.9).lower == pytest.approx(dpgram.regress(release, "y", confidence=0.9)._intervals().lower)
    together, shrunk, alone = np.mean(errors, axis=0)
    assert together < 0.9 * alone
    assert shrunk < 0.9 * alone


@pytest.mark.parametrize("law", ["normal", "heavy"])
@pytest.mark.parametrize("dim", [3, 5, 20])
def test_what_shrinking_hides_is_put_back(law, dim):
    """Elliptical rows that are not quite white, half of them shrunk: the shrunk sum falls short of its deviation, the corrected does not.

    40 000 rows make the deviation of 0.2 known to about 0.01; the seed is fixed."""
    rng = np.random.default_rng(dim)
    z = rng.normal(size=(40_000, dim))
    if law == "heavy":
        z /= np.sqrt(rng.chisquare(4, (len(z), 1)) / 2)
    z[:, 0], z[:, 1] = z[:, 0] + 0.1 * z[:, 1], z[:, 1] + 0.1 * z[:, 0]
    z /= np.sqrt(np.mean(np.sum(z**2, axis=1)))
    length = np.maximum(np.linalg.norm(z, axis=1), 1.0)
    gram = (z / length[:, None]).T @ (z / length[:, None])
    kept = float(np.mean(length**-2.0))
    deviation = lambda matrix: matrix[0, 1] / np.trace(matrix) * dim  # noqa: E731
    found, factor = unshrunk(gram, kept, len(z))
    true = 0.2 * dim / (dim + 0.02)
    assert factor > 1 / kept
    assert abs(deviation(found) - true) < 0.35 * abs(deviation(gram) - true) + 0.01
    assert np.trace(found) == pytest.approx(np.trace(gram) / kept)


def test_a_column_that_is_far_from_white_is_left_alone():
    """A column that its map could not stretch has its own entry kept, which putting back the others' deviation could make vanish."""
    gram = np.diag([100.0, 110.0, 90.0, 2.0])
    gram[0, 1] = gram[1, 0] = 10.0
    found, _ = unshrunk(gram, 0.8, 350.0)
    assert found[3, 3] == pytest.approx(2.0 / 0.8)
    assert found[0, 1] > 1.05 * 10.0 / 0.8


@given(dim=st.integers(1, 200), kept=st.floats(1e-3, 1.0), ratio=st.floats(-1.0, 1e3))
@settings(deadline=None)
def test_a_share_is_a_share(dim, kept, ratio):
    assert 0 <= share_shrunk(dim, kept, ratio) <= 1 + 1e-9
    assert 0 <= share_shrunk(dim, kept) <= 1 + 1e-9


def test_every_whitened_fit_speaks_of_rows_that_count_for_less():
    """How much is kept on average says nothing of tails: a few long rows can be most of a variance. So it is always said."""
    for room in (0.8, 40.0):
        assert any(
            "count for less" in note for note in dpgram.regress(whitened_release(TABLE, small_schema(), room=room), "y").notes
        )


def test_what_intervals_start_from_is_symmetric_and_of_the_last_round():
    release = whitened_release(TABLE, small_schema(), room=50.0)
    alone = Evidence.of(release).alone
    gram, noise, turn = alone.matrix, alone.law, alone.turn
    last = release.noise.last
    assert np.array_equal(gram, gram.T)
    assert turn.T @ last.through == pytest.approx(np.eye(len(gram)), abs=1e-9)
    assert noise.sd_off_diagonal >= last.sd_off_diagonal
    assert turn.T @ (last.gram / last.kept) @ turn == pytest.approx(release.gram, rel=1e-6, abs=1e-6)
