"""TukeyEM: least squares on m disjoint parts, then a draw near the deepest point of the m models (Amin et al. 2022).

Depth is the smallest rank from outside over the coordinates, so the region of depth >= s is a box with volume V_s. A propose-test-release
step asks whether the draw is stable; then a point is drawn with density proportional to exp(a depth) among depths >= t = m/4.

Guarantee: (epsilon_1 + epsilon_2, delta), a = epsilon_2 / 2. Neighbours: one row replaced; it stays in its part, so one model changes and
every depth by at most one. Proof, under this relation. Let Z be the integral of exp(a depth) over depth >= t, and call a table good when
eta = exp(a t) V_{t-1} / Z is at most delta / (1 + e^a). For neighbours D, D': points within both regions have a density ratio of at
most e^a Z'/Z; points of D' that D leaves out have depth t - 1 there and t in D', so Z' <= e^a Z + exp(a t) V_{t-1}, and Z'/Z <= e^a + eta;
points of D that D' leaves out have depth t, and mass at most eta. If D is good, its draw is (2a, (1 + e^a) eta)-close to that of any
neighbour. As Z >= exp(a (t + g)) V_{t+g} for every g, and as k changed models turn V_s into at most V_{s-k} and at least V_{s+k},

    V_{t-1-k} <= V_{t+g+k} exp(a g) delta / (1 + e^a)   for some g >= 0

shows that every table within k models is good. The largest such k (or -1) moves by at most one between neighbours; the test adds Laplace
noise of scale 1/epsilon_1 and passes above ln(1/(2 delta))/epsilon_1 - 1, so one that is not good passes with probability delta at most.
Either D is good, or it does not pass: in both cases one delta is spent. When the test fails the answer is zero: predict the middle."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.questions import Answers, Array, Method, Questions, Regression
from benchmarks.peers.shares import approximate_share

LEAST_MODELS, ROWS_PER_COEFFICIENT = 500, 2
TEST_SHARE = 0.5  # of epsilon, as in the paper
JITTER = (
    1e-3  # sd of noise on every model, from no data: parts that never see a category agree exactly, and boxes need a volume
)


def number_of_models(rows: int, size: int, epsilon: float, delta: float) -> int:
    """m, from public numbers: what the test needs to pass, which grows with the number of coefficients and with 1/epsilon.

    The paper's 1000 is for its own budgets; these constants were chosen in hindsight, in the method's favour."""
    wanted = max(LEAST_MODELS, (25 * math.log(1 / delta) + 50 * size) / epsilon)
    rounded = 2.0 ** (math.ceil(2 * math.log2(wanted)) / 2)  # few different numbers, so that models are fitted seldom
    return int(min(rounded, rows // (ROWS_PER_COEFFICIENT * size)))


def models(regression: Regression, m: int) -> Array:
    """(p, m): least squares on m parts of consecutive rows (the table is shuffled); of least norm where a part leaves them open."""
    each = regression.rows // m
    x = regression.x[:, : m * each].reshape(regression.size, m, each)
    y = regression.y[: m * each].reshape(m, each)
    grams, moments = np.einsum("imr,jmr->mij", x, x, optimize=True), np.einsum("imr,mr->mi", x, y)
    inverses = np.linalg.pinv(grams, rcond=1e-9, hermitian=True)
    return np.einsum("mij,mj->im", inverses, moments) + np.random.default_rng(0).normal(scale=JITTER, size=(regression.size, m))


def log_volumes(ordered: Array) -> Array:
    """ln V_s for s = 1 .. m//2, at s - 1; ``ordered`` (p, m) is sorted along its rows."""
    half = ordered.shape[1] // 2
    sides = ordered[:, ::-1][:, :half] - ordered[:, :half]
    with np.errstate(divide="ignore"):
        return np.sum(np.log(sides), axis=0)


def steps_to_danger(volumes: Array, t: int, a: float, delta: float) -> int:
    """The largest k that the test of this module's proof allows, or -1."""
    limit = math.log(delta) - math.log1p(math.exp(a))

    def shown(k: int) -> bool:
        inner = volumes[t + k - 1 :]  # ln V_{t+k+g} for g = 0, 1, ...
        inner = inner[np.isfinite(inner)]
        return len(inner) > 0 and bool(np.any(volumes[t - 2 - k] <= inner + a * np.arange(len(inner)) + limit))

    low, high = -1, t - 2  # V_1 is the last that is finite, so k <= t - 2
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if shown(middle) else (low, middle - 1)
    return low


def draw(ordered: Array, volumes: Array, t: int, a: float, rng: np.random.Generator) -> Array:
    """A point of density proportional to exp(a depth) where depth >= t.

    With w_s = exp(a s) - exp(a (s-1)), and w_t = exp(a t), the density is a mixture of uniform laws on the boxes of depth >= s."""
    depth = np.arange(t, len(volumes) + 1)
    log_weight = a * depth + np.where(depth > t, math.log(-math.expm1(-a)), 0.0) + volumes[t - 1 :]
    chosen = int(depth[np.argmax(log_weight + rng.gumbel(size=len(depth)))])
    return rng.uniform(ordered[:, chosen - 1], ordered[:, -chosen])


def fit(regression: Regression, epsilon: float, delta: float, rng: np.random.Generator) -> Array | None:
    """Coefficients, or None when the test fails."""
    m = number_of_models(regression.rows, regression.size, epsilon, delta)
    if m < 12:
        return None
    key = ("models", m)
    if key not in regression.kept:
        ordered = np.sort(models(regression, m), axis=1)
        regression.kept[key] = (ordered, log_volumes(ordered))
    ordered, volumes = regression.kept[key]
    t, first, a = m // 4, TEST_SHARE * epsilon, (1 - TEST_SHARE) * epsilon / 2
    if steps_to_danger(volumes, t, a, delta) + rng.laplace(scale=1 / first) <= math.log(1 / (2 * delta)) / first - 1:
        return None
    return draw(ordered, volumes, t, a, rng)


def answer(questions: Questions, rng: np.random.Generator) -> Answers:
    epsilon, delta = approximate_share(questions.budget, questions.k)
    fitted = [fit(regression, epsilon, delta, rng) for regression in questions.asked]
    return [np.zeros(r.size) if one is None else one for r, one in zip(questions.asked, fitted, strict=True)]


METHOD = Method(
    name="TukeyEM",
    paper="Amin et al. 2022",
    cost="(epsilon, delta) per regression, composed by Kairouz, Oh and Viswanath's theorem",
    setting="models by epsilon, delta and p, chosen in hindsight; two rows per coefficient at least; half of epsilon for the test",
    answer=answer,
)
