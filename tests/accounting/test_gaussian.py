"""The Gaussian privacy curve: against a table, against 300 digits, against an independent integral, from the private side."""

import math

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from dpgram import Budget
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta

E9 = math.exp(-9)

# 1/mu to the digits of independent computations: the off-diagonal noise sd for a row bound of one, under REPLACE.
NOISE_SD = [
    (0.1, E9, "23.90"), (0.1, 1e-6, "36.30"), (0.1, 1e-9, "50.21"),
    (0.5, E9, "5.783"), (0.5, 1e-6, "8.058"), (0.5, 1e-9, "10.67"),
    (1.0, E9, "3.133"), (1.0, 1e-6, "4.225"), (1.0, 1e-9, "5.495"),
    (4.0, E9, "0.947"), (4.0, 1e-6, "1.194"), (4.0, 1e-9, "1.488"),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta", "expected"), NOISE_SD)
def test_noise_scale_has_the_tabulated_digits(epsilon, delta, expected):
    digits = len(expected.partition(".")[2])
    assert f"{1 / calibrate_mu(Budget(epsilon, delta)):.{digits}f}" == expected


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(300):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 0.01, 0.05, 0.1, 0.5, 1, 2, 4, 8, 20, 100, 1000])
@pytest.mark.parametrize("delta", [1e-30, 1e-15, 1e-12, 1e-9, 1e-6, E9, 0.01, 0.3, 0.9, 0.999])
def test_calibration_meets_the_budget_at_three_hundred_digits(epsilon, delta):
    mu = calibrate_mu(Budget(epsilon, delta))
    exact = exact_delta(epsilon, mu)
    assert gaussian_delta(epsilon, mu) == pytest.approx(float(exact), rel=1e-12)
    assert exact <= mpmath.mpf(delta)  # the private side
    assert exact >= mpmath.mpf(delta) * (1 - 2e-9)  # and not further than promised


@pytest.mark.parametrize(("epsilon", "mu"), [(0.5, 0.3), (1, 1), (2, 3), (0, 1), (4, 1)])
def test_curve_is_the_hockey_stick_integral(epsilon, mu):
    def excess(x: float) -> float:
        return max(0.0, norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x))

    crossing = epsilon / mu + mu / 2
    integral = quad(excess, crossing, crossing + 40, limit=200, epsabs=0, epsrel=1e-11)[0]
    assert gaussian_delta(epsilon, mu) == pytest.approx(integral, rel=1e-9)


@given(
    epsilon=st.floats(0.01, 20),
    delta=st.floats(-15, -0.01).map(lambda e: 10**e),
    more=st.floats(1.001, 2),
)
def test_more_budget_never_means_more_noise(epsilon, delta, more):
    mu = calibrate_mu(Budget(epsilon, delta))
    assert calibrate_mu(Budget(epsilon * more, delta)) >= mu
    assert calibrate_mu(Budget(epsilon, min(delta * more, 0.999))) >= mu
    assert gaussian_delta(epsilon, mu) <= delta
