"""The laws behind the Wishart mechanisms: chi-square numbers, Bartlett's factor, sketches, posteriors, truncated noise."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from dpgram.accounting.wishart import sampling_delta
from dpgram.mechanisms.first_stage import plan_stages, release_smallest_eigenvalue, second_stage
from dpgram.mechanisms.gaussian_sketch import draw_sketch
from dpgram.mechanisms.inverse_wishart import draw_posterior
from dpgram.mechanisms.wishart_noise import draw_noise
from dpgram.sampling.secure import SecureSource
from dpgram.sampling.variates import bartlett_factor, chi_square, laplace, truncated_laplace, truncated_normal
from dpgram.terms.budget import Neighbours
from tests.mechanisms.test_contract import task
from tests.statistical.arithmetics import both, chi_squares, given, matrices, numbers

FALSE_ALARM = 1e-9  # per case, when the code is right; the suite's README adds these up


def scatter(dim, seed):
    a = np.random.default_rng(seed).normal(size=(3 * dim, dim))
    return a.T @ a


@both
@pytest.mark.parametrize("degrees", [0.3, 1.0, 2.0, 3.7, 40.0, 1e4])
@pytest.mark.parametrize(("scale", "accepted"), [(1.0, True), (1.04, False)])
def test_chi_square_numbers(rng, degrees, scale, accepted):
    """Kolmogorov-Smirnov at 200 000 draws; degrees that are 4 % off are seen."""
    draws = chi_squares(degrees * scale, 200_000, rng)
    assert (kstest(draws, chi2(degrees).cdf).pvalue > FALSE_ALARM) == accepted


@both
@pytest.mark.parametrize("degrees", [1e8, 1e12])
def test_chi_square_numbers_with_huge_degrees_are_normal(rng, degrees):
    draws = chi_squares(degrees, 200_000, rng)
    z = (np.cbrt(draws / degrees) - (1 - 2 / (9 * degrees))) / math.sqrt(2 / (9 * degrees))
    assert kstest(z, "norm").pvalue > FALSE_ALARM
    assert kstest(1.05 * z, "norm").pvalue < FALSE_ALARM


def test_the_secure_source_gives_the_same_chi_square():
    assert kstest(chi_square(np.full(100_000, 3.7), SecureSource()), chi2(3.7).cdf).pvalue > FALSE_ALARM


@both
@pytest.mark.parametrize("degrees", [2, 4, 5, 9, 6.5])
def test_bartlett_factors_have_the_moments_of_a_wishart_matrix(rng, degrees):
    """Mean r I; variances 2 r on the diagonal, r off it; tested over 15 000 draws in 5 dimensions."""
    draws = matrices(lambda source: (f := bartlett_factor(5, degrees, source)) @ f.mT, 15_000, rng)
    z = norm.isf(FALSE_ALARM / 50)
    assert np.abs(draws.mean(axis=0) - degrees * np.eye(5)).max() < z * math.sqrt(2 * degrees / 15_000)
    traces = np.trace(draws, axis1=1, axis2=2)
    assert kstest(traces, chi2(5 * degrees).cdf).pvalue > FALSE_ALARM
    assert kstest(traces, chi2(5 * degrees * 1.06).cdf).pvalue < FALSE_ALARM


@both
def test_the_sketch_has_the_law_of_the_literal_projection(rng):
    """Quadratic forms and entries of W(S, r)/r against R A' with a literal r by (n + d) matrix, 20 000 draws each."""
    dim, rows, r, ridge = 4, 7, 6, 2.5
    a = np.random.default_rng(1).normal(size=(rows, dim))
    augmented = np.vstack([a, math.sqrt(ridge) * np.eye(dim)])
    plain = np.random.default_rng(2)
    literal = np.array([(m := plain.normal(size=(r, rows + dim)) @ augmented).T @ m / r for _ in range(20_000)])
    gram = given(a.T @ a, rng)
    ours = matrices(lambda source: draw_sketch(gram, ridge, r, source), 20_000, rng)
    for i in range(dim):
        for j in range(i, dim):
            assert kstest(ours[:, i, j], literal[:, i, j]).pvalue > FALSE_ALARM
    assert kstest(np.linalg.slogdet(ours)[1], np.linalg.slogdet(literal)[1]).pvalue > FALSE_ALARM
    wrong = matrices(lambda source: draw_sketch(gram, ridge, r + 1, source), 20_000, rng)
    assert kstest(np.linalg.slogdet(wrong)[1], np.linalg.slogdet(literal)[1]).pvalue < FALSE_ALARM


@both
@pytest.mark.parametrize("nu", [6.0, 9.5, 40.0])
def test_the_posterior_has_the_inverse_wishart_law(rng, nu):
    """x' V^-1 x / x' S^-1 x is chi-square with nu degrees of freedom, and x' S x / x' V x with nu - d + 1."""
    s, x = scatter(4, 3), np.array([1.0, -2.0, 0.5, 3.0])
    gram = given(s - 0.5 * np.eye(4), rng)
    draws = matrices(lambda source: draw_posterior(gram, 0.5, nu, source), 15_000, rng)
    forms = np.einsum("i,nij,j->n", x, np.linalg.inv(draws), x) / (x @ np.linalg.inv(s) @ x)
    assert kstest(forms, chi2(nu).cdf).pvalue > FALSE_ALARM
    assert kstest(forms, chi2(nu * 1.15).cdf).pvalue < FALSE_ALARM
    marginal = (x @ s @ x) / np.einsum("i,nij,j->n", x, draws, x)
    assert kstest(marginal, chi2(nu - 3).cdf).pvalue > FALSE_ALARM


@both
def test_the_posterior_mean_is_the_scale_over_its_degrees(rng):
    s, nu = scatter(4, 4), 30.0
    gram = given(s, rng)
    draws = matrices(lambda source: draw_posterior(gram, 0.0, nu, source), 15_000, rng)
    relative = draws.mean(axis=0) * (nu - 5) / s - 1
    assert np.abs(np.diag(relative)).max() < norm.isf(FALSE_ALARM / 8) * math.sqrt(2 / (nu - 7) / 15_000)


@both
def test_additive_noise_has_its_trace_law(rng):
    traces = np.trace(matrices(lambda source: draw_noise(5, 2.0, 11, source), 30_000, rng), axis1=1, axis2=2) / 2.0
    assert kstest(traces, chi2(55).cdf).pvalue > FALSE_ALARM
    assert kstest(traces * 1.03, chi2(55).cdf).pvalue < FALSE_ALARM


@both
@pytest.mark.parametrize("upper", [-1.0, 0.5, 4.0])
def test_truncated_laplace_numbers(rng, upper):
    scale = 1.5

    def cdf(z):
        plain = np.where(z < 0, np.exp(np.minimum(z, 0) / scale) / 2, 1 - np.exp(-np.maximum(z, 0) / scale) / 2)
        top = math.exp(upper / scale) / 2 if upper < 0 else 1 - math.exp(-upper / scale) / 2
        return np.minimum(plain / top, 1.0)

    draws = numbers(lambda source: truncated_laplace(scale, upper, source), 100_000, rng)
    assert draws.max() <= upper
    assert kstest(draws, cdf).pvalue > FALSE_ALARM
    assert kstest(draws * 1.07, cdf).pvalue < FALSE_ALARM


@both
def test_plain_laplace_numbers(rng):
    draws = numbers(lambda source: laplace(1.5, source), 50_000, rng)
    assert kstest(draws, "laplace", args=(0.0, 1.5)).pvalue > FALSE_ALARM
    assert kstest(draws * 1.1, "laplace", args=(0.0, 1.5)).pvalue < FALSE_ALARM


@both
def test_truncated_normal_numbers(rng):
    draws = numbers(lambda source: truncated_normal(2.0, 1.0, source), 50_000, rng)
    assert draws.max() <= 1.0
    assert kstest(draws, lambda z: np.minimum(norm.cdf(z / 2) / norm.cdf(0.5), 1.0)).pvalue > FALSE_ALARM


@both
@pytest.mark.parametrize("kind", ["laplace", "gauss"])
def test_the_first_stage_stays_below_the_eigenvalue_and_its_gap_has_the_stated_mass(rng, kind):
    """At delta = 0.02 the value lands within B^2 of the true one with the probability that was charged for it."""
    asked = task("gaussian-sketch-adaptive", epsilon=1.0, delta=0.02, first_stage=kind)
    stages = plan_stages(asked, 10.0)
    smallest, n = 500.0, 30_000
    gram = given(smallest * np.eye(5), rng)
    values = np.array([release_smallest_eigenvalue(gram, stages, rng) for _ in range(n)])
    assert values.max() <= smallest
    gap, charged = np.mean(values > smallest - asked.row_bound**2), stages.parameters["first_stage_delta"]
    sd = math.sqrt(charged * (1 - charged) / n)
    assert abs(gap - charged) < norm.isf(FALSE_ALARM / 2) * sd
    assert 0.001 < charged < 0.01


DEGREES, FLOOR = 9.0, 6.0
LOSSES: dict[
    tuple[str, str], np.ndarray
] = {}  # of the draws below, by mechanism and arithmetic: several curves are held against the same


def losses_of_real_draws(name, rng):
    """Of 25 000 draws on worst neighbours in four dimensions."""
    kept = (name, rng.arithmetic)
    if kept in LOSSES:
        return LOSSES[kept]
    one, two = (np.diag([FLOOR + 1, FLOOR, FLOOR, FLOOR]), np.diag([FLOOR, FLOOR + 1, FLOOR, FLOOR]))
    gram = given(one - FLOOR * np.eye(4), rng)
    if name == "sketch":
        draws = DEGREES * matrices(lambda source: draw_sketch(gram, FLOOR, DEGREES, source), 25_000, rng)
        change = np.linalg.inv(one) - np.linalg.inv(two)
        loss = -np.einsum("ij,nji->n", change, draws) / 2
    else:
        draws = matrices(lambda source: draw_posterior(gram, FLOOR, DEGREES, source), 25_000, rng)
        loss = -np.einsum("ij,nji->n", one - two, np.linalg.inv(draws)) / 2
    LOSSES[kept] = loss
    return loss


@both
@pytest.mark.parametrize("name", ["sketch", "posterior"])
@pytest.mark.parametrize(
    ("epsilon", "floor_off", "accepted"), [(0.5, 1.0, True), (1.0, 1.0, True), (1.0, 1.1, False), (1.0, 0.9, False)]
)
def test_the_privacy_loss_of_real_draws_has_the_promised_curve(rng, name, epsilon, floor_off, accepted):
    """Worst neighbours (orthogonal rows, all else zero), real draws, exact density ratio: its hockey stick is the curve. Power: a
    curve for a floor 10 % off is rejected."""
    loss = losses_of_real_draws(name, rng)
    excess = np.maximum(0.0, -np.expm1(epsilon - loss))
    promised = sampling_delta(epsilon, DEGREES, FLOOR * floor_off, Neighbours.REPLACE, 4)
    z = abs(excess.mean() - promised) / (excess.std() / math.sqrt(len(loss)))
    assert (z < norm.isf(FALSE_ALARM / 2)) == accepted


@both
@pytest.mark.parametrize("kind", ["laplace", "gauss"])
def test_both_stages_together_keep_the_promise(rng, kind):
    """Neighbours whose smallest eigenvalues differ by all of B^2, real draws of both stages, exact densities of both: the hockey stick
    of the total loss stays below delta, and above a fifth of it, so the test could see a charge that is five times too small."""
    dim, bound, epsilon, delta, r, n = 2, 1.0, 1.0, 0.01, 10.0, 20_000
    asked = task(
        "gaussian-sketch-adaptive", epsilon=epsilon, delta=delta, dim=dim, bound=bound, sketch_rows=r, first_stage=kind
    )
    stages = plan_stages(asked, r)
    low = stages.offset + 2.0  # the first stage is seldom clipped, and the ridge seldom vanishes
    one, two = np.diag([low + 1, low + 1]), np.diag([low, low + 2])  # a row e1 was replaced by e2, beside other rows
    gram, excess = given(one, rng), np.empty(n)
    for i in range(n):
        s = release_smallest_eigenvalue(gram, stages, rng)
        ridge, degrees = second_stage(asked, stages, s) if s < stages.base_floor else (0.0, r)
        (draw,) = degrees * matrices(
            lambda source, ridge=ridge, degrees=degrees: draw_sketch(gram, ridge, degrees, source), 1, rng
        )
        if s > low:
            excess[i] = 1.0  # impossible under the other table
            continue
        x1, x2 = s - (low + 1) + stages.offset, s - low + stages.offset
        laplace, gauss = (abs(x2) - abs(x1)) / stages.scale, (x2**2 - x1**2) / (2 * stages.scale**2)
        first = (laplace if kind == "laplace" else gauss) if s > 0 else 0.0  # clipped values are rare here
        a, b = one + ridge * np.eye(dim), two + ridge * np.eye(dim)
        second = -np.trace((np.linalg.inv(a) - np.linalg.inv(b)) @ draw) / 2 - degrees / 2 * np.log(
            np.linalg.det(a) / np.linalg.det(b)
        )
        excess[i] = max(0.0, -math.expm1(epsilon - first - second))
    error = norm.isf(FALSE_ALARM) * excess.std() / math.sqrt(n)
    assert excess.mean() - error < delta
    assert excess.mean() + error > delta / 5
