"""Linear discriminants from the evidence of a release, with intervals of the distances between classes.

Let Z hold the intercept and the indicators of all classes but the first, and X the features. With the repaired Gram G, B = G_zz^-1 G_zx
gives the means of the classes, S = (G_xx - G_xz B) / n the covariance within them. A contrast c of class means is d = B'c, its squared
distance D = d'S^-1 d. Noise E moves it, to first order, by

    2 h'E w - w'E w / n + D e'E e / n,    h = Z G_zz^-1 c,  w = X b - Z B b,  b = S^-1 d,  e the intercept:

bilinear forms, whose covariance every kind of noise knows. Normal rows give it the sampling variance 4 D c'N c + 2 D^2 / n, with
N = diag(1 / n_k). Error rates are those of normal classes with one covariance, classified by the discriminant itself (apparent)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import check_confidence, quantile

Array = np.ndarray

DRAWS = 50_000  # of a row of each class, where there are more than two


@dataclass(frozen=True, eq=False)
class Classes:
    """Shares and means of k classes and their covariance, and what follows from them."""

    priors: Array  # (k,)
    means: Array  # (k, q)
    covariance: Array  # (q, q), within classes
    distance: Array  # (k, k) Mahalanobis' distances of their means
    distance_lower: Array
    distance_upper: Array
    error_rate: float  # of the discriminant, for normal classes
    error_interval: tuple[float, float]

    @property
    def coef(self) -> Array:
        """(k, q) slopes of the score of each class."""
        return np.linalg.solve(self.covariance, self.means.T).T

    @property
    def intercept(self) -> Array:
        """(k,) intercepts of the scores."""
        return np.log(self.priors) - np.sum(self.means * self.coef, axis=1) / 2

    @property
    def pair_errors(self) -> Array:
        """(k, k) error rate for each pair of classes, were there no others."""
        return np.array([[pair_error(d, a, b) if d or a != b else 0.0 for b, d in zip(self.priors, row, strict=True)]
                         for a, row in zip(self.priors, self.distance, strict=True)])  # fmt: skip


def classes(
    evidence: Evidence, indicators: list[int], features: list[int], names: tuple[str, ...], confidence: float
) -> Classes:
    """The classes whose ``indicators``, for all but the first, stand at these places of the Gram, by the ``features`` at theirs."""
    check_confidence(confidence)
    encoded, gram = evidence.schema.encoded, evidence.whole
    z, x = [0, *indicators], features
    count = float(gram[0, 0])
    rest = gram[0, indicators] / count
    priors = np.concatenate([[1 - rest.sum()], rest])
    if (priors <= 0).any():
        hidden = [name for name, share in zip(names, priors, strict=True) if share <= 0]
        raise ModelError(
            f"the noise of the release hides how many rows are in {', '.join(hidden)}, so there is no discriminant. Use a release with "
            f"a larger budget."
        )
    of_classes = np.eye(len(z))
    of_classes[:, 0] = 1.0  # (k, z) a row of Z for each class
    regression = np.linalg.solve(gram[np.ix_(z, z)], gram[np.ix_(z, x)])
    inner = gram[np.ix_(x, x)] - gram[np.ix_(x, z)] @ regression
    scaled = (inner + inner.T) / 2 / count
    means = of_classes @ regression
    form = _Distances(evidence, z, x, of_classes, regression, scaled, means, priors, count)
    pairs = [(a, b) for a in range(len(z)) for b in range(a + 1, len(z))]
    reach, degrees = quantile(confidence, np.inf), len(z)
    distance, lower, upper = (np.zeros((degrees, degrees)) for _ in range(3))
    for a, b in pairs:
        value, se = form.squared((np.eye(degrees)[a] - np.eye(degrees)[b])[None])
        found = np.sqrt([value, max(value - reach * se, 0.0), value + reach * se])
        distance[a, b], lower[a, b], upper[a, b] = distance[b, a], lower[b, a], upper[b, a] = found
    spread, vectors = np.linalg.eigh(np.diag(priors) - np.outer(priors, priors))
    contrasts = (np.sqrt(np.maximum(spread, 0.0)) * vectors).T[spread > 1e-12]
    whole, whole_se = form.squared(contrasts)
    ends = [max(whole - reach * whole_se, 0.0), whole + reach * whole_se]
    rates = [error_rate(distance * (end / whole) ** 0.5 if whole > 0 else distance, priors) for end in (whole, *ends)]
    half, centre = (np.array([getattr(encoded[j], side) for j in x]) for side in ("half", "centre"))
    return Classes(
        priors,
        centre + half * means,
        half[:, None] * scaled * half,
        distance,
        lower,
        upper,
        rates[0],
        (rates[2], rates[1]),
    )


@dataclass(frozen=True, eq=False)
class _Distances:
    """Squared distances of contrasts of class means, in scaled units."""

    evidence: Evidence
    z: list[int]
    x: list[int]
    of_classes: Array
    regression: Array
    covariance: Array
    means: Array
    priors: Array
    count: float

    def squared(self, contrasts: Array) -> tuple[float, float]:
        """The sum of the squared distances of ``contrasts`` (j, k), and its standard error: noise and sampling."""
        gram, rows = self.evidence.whole, self.evidence.rows
        dim, count = len(gram), self.count
        apart = contrasts @ self.means
        slopes = np.linalg.solve(self.covariance, apart.T).T
        q = apart @ slopes.T
        value = float(np.trace(q))
        h, w = np.zeros((len(contrasts), dim)), np.zeros((len(contrasts), dim))
        h[:, self.z] = np.linalg.solve(gram[np.ix_(self.z, self.z)], (contrasts @ self.of_classes).T).T
        w[:, self.x], w[:, self.z] = slopes, -(slopes @ self.regression.T)
        ones = np.eye(dim)[:1]
        left, right = np.vstack([2 * h, -w / count, value / count * ones]), np.vstack([w, w, ones])
        noise = float(np.sum(self.evidence.bilinear_covariance(left, right)))
        each = contrasts @ (contrasts / (self.priors * rows)).T
        sampling = self.evidence.design_effect * (4 * np.trace(each @ q) + 2 * np.trace(q @ q) / rows)
        return value, float(np.sqrt(max(noise, 0.0) + sampling))


def pair_error(distance: float, first: float, second: float) -> float:
    """The share of rows of two normal classes, so ``distance`` apart, that the discriminant puts into the wrong one."""
    first, second = first / (first + second), second / (first + second)
    if distance <= 0:
        return min(first, second)
    shift = np.log(first / second) / distance
    return float(first * ndtr(-distance / 2 - shift) + second * ndtr(-distance / 2 + shift))


def error_rate(distance: Array, priors: Array) -> float:
    """The same of all classes; drawn from a fixed seed where there are more than two."""
    if len(priors) == 2:
        return pair_error(float(distance[0, 1]), float(priors[0]), float(priors[1]))
    centred = np.eye(len(priors)) - 1 / len(priors)
    values, vectors = np.linalg.eigh(-centred @ distance**2 @ centred / 2)  # points that are so far apart
    points = vectors * np.sqrt(np.maximum(values, 0.0))
    rows = np.random.default_rng(0).standard_normal((DRAWS, len(priors)))
    scores = np.log(priors) - np.sum(points**2, axis=1) / 2
    wrong = [np.mean(np.argmax((rows + point) @ points.T + scores, axis=1) != k) for k, point in enumerate(points)]
    return float(priors @ np.array(wrong))
