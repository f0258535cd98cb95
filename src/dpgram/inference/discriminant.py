"""Linear discriminants from the evidence of a release, with intervals of the distances between classes and of error rates.

Let Z hold the intercept and the indicators of all classes but the first, and X the features. With the repaired Gram G, B = G_zz^-1 G_zx
gives the means of the classes, S = (G_xx - G_xz B) / n the covariance within them. Let T'S T = I, so that T turns means into points P, one
row p_k for each class, whose distances are Mahalanobis'. Noise E moves a function of the points with the gradient g (one row g_k for each
class), to first order, by

    sum_k h_k'E w(T g_k) - sum_k w(T g_k)'E w(T p_k) / 2n + (sum_k g_k'p_k) e'E e / 2n,    h_k = Z G_zz^-1 c_k,  w(t) = X t - Z B t,

c_k the row of class k and e the intercept: bilinear forms, whose covariance every kind of noise knows. The gradient of the squared distance
of two classes is 2 (p_a - p_b) for one and its opposite for the other. Normal rows give such a function the sampling variance
sum_k g_k'g_k / n_k + 2 tr(A A) / n, A the symmetric part of g'P / 2. What was clipped from long rows moves means and
covariance too. A regression of each coordinate on the classes says how far.

The share of a class is the coefficient of a regression of its indicator on the intercept alone. So its standard error has the noise, the
sampling of rows, and what clipping may have done to the share: rows of a rare class are long in whitened coordinates. Noise moves share and
points together, by forms in the same E.

Error rates are those of normal classes with one covariance, classified by the discriminant itself (apparent). The discriminant is the
best rule there is, so at a fixed rule the derivatives are the same: by the share of a class, its own error rate; by its point, what its
rows outside of its region are away from it. An interval has the smallest and the largest error rate on an ellipse: the shares move in the
direction in which their error moves the error rate, and the points away from each other or towards each other, by a factor whose error is
that of the rate. This is the delta method for all shares and distances together, but for error rates that are not linear in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import check_confidence, quantile, uncertainty, weakly_identified
from dpgram.regression.channel import channel
from dpgram.regression.design import DesignColumn, assemble

Array = np.ndarray

ROWS = 30_000  # of all classes together, whose scores are compared where there are more than two classes
FEWER_ROWS = 6_000  # to find out where on the ellipse the ends are
TINY = np.finfo(float).tiny
ANGLES = np.arange(32) * (np.pi / 16)
FAINT = 1e-20  # of a gradient's squares: a coordinate with less does not matter
FLAT = 1e-3  # change of the error rate by a factor between all points: below it, the spread of the points says how well it is known


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
    evidence: Evidence, indicators: Sequence[DesignColumn], features: list[int], names: Sequence[str], confidence: float
) -> Classes:
    """The classes with these ``indicators``, for all but the first, by the ``features`` at these places of the Gram."""
    confidence = check_confidence(confidence)
    encoded, x = [evidence.schema.encoded[j] for j in features], features
    shares = _Shares.of(evidence, indicators, names)
    gram = evidence.whole
    count, unit = float(gram[0, 0]), np.eye(len(gram))
    z = np.vstack([unit[0], *(sum(weight * unit[j] for j, weight in each.weights.items()) for each in indicators)])
    of_classes = np.eye(len(z))
    of_classes[:, 0] = 1.0  # (k, z) a row of Z for each class
    within = z @ gram @ z.T
    regression = np.linalg.solve(within, z @ gram[:, x])
    inner = gram[np.ix_(x, x)] - gram[x] @ z.T @ regression
    scaled = (inner + inner.T) / 2 / count
    means = of_classes @ regression
    white = np.linalg.inv(np.linalg.cholesky(scaled))
    left, lengths, axes = np.linalg.svd((means - shares.values @ means) @ white.T, full_matrices=False)
    turn = white.T @ axes.T  # T
    rest = unit[x].T @ turn - z.T @ (regression @ turn)  # w(T), a column for each of the points' coordinates
    forms = np.vstack([of_classes @ np.linalg.solve(within, z), rest.T, z])
    points = _Points(evidence, shares, left * lengths, forms, count, indicators, of_classes, unit[x].T @ turn)
    reach = quantile(confidence, np.inf)
    distance, lower, upper = points.distances(reach)
    half, centre = (np.array([getattr(e, side) for e in encoded]) for side in ("half", "centre"))
    return Classes(
        shares.values,
        centre + half * means,
        half[:, None] * scaled * half,
        distance,
        lower,
        upper,
        error_rate(points.points, shares.values),
        points.error_interval(reach),
    )


@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of the classes; the others of all but the first, whose share is what they leave."""

    values: Array  # (k,)
    noise: Array  # (k - 1,) standard errors by the noise
    clipping: Array  # (k - 1,) ... and by the clipping of long rows
    known: bool  # whether the noise leaves them anything

    @classmethod
    def of(cls, evidence: Evidence, indicators: Sequence[DesignColumn], names: Sequence[str]) -> _Shares:
        found = [channel(evidence, assemble(evidence.schema, each, [], True)) for each in indicators]
        rest = np.array([float(seen.own(seen.estimate)[0]) for seen in found])
        values = np.concatenate([[1 - rest.sum()], rest])
        if not (values > 0).all():
            hidden = [name for name, share in zip(names, values, strict=True) if not share > 0]
            raise ModelError(
                f"the noise of the release hides how many rows are in {', '.join(hidden)}, so there is no discriminant. Use a release "
                f"with a larger budget."
            )
        parts = [uncertainty(seen) for seen in found]
        noise, clipping = (np.sqrt([getattr(part, name)[0, 0] for part in parts]) for name in ("noise", "clipping"))
        return cls(values, noise, clipping, not any(weakly_identified(seen).any() for seen in found))

    @property
    def multinomial(self) -> Array:
        """(k - 1, k - 1) the covariance of the classes' indicators."""
        rest = self.values[1:]
        return np.diag(rest) - np.outer(rest, rest)


@dataclass(frozen=True, eq=False)
class _Points:
    """The classes as points whose distances are Mahalanobis', and what moves them.

    ``forms`` are h of each class, w(T) of each coordinate, the intercept and the indicators: combinations of columns whose sums of
    products say all. A function of them is a symmetric matrix of its derivatives by these sums."""

    evidence: Evidence
    shares: _Shares
    points: Array  # (k, r)
    forms: Array  # (k + r + k, d)
    count: float
    indicators: Sequence[DesignColumn]
    of_classes: Array  # (k, k) the mean of each class as a combination of the intercept and the indicators' coefficients
    coordinates: Array  # (d, r) each of them as a combination of released columns

    @cached_property
    def _law(self) -> tuple[Array, float, Array]:
        products, excess, seen = self.evidence.noise_law(self.forms)
        return products, excess, seen

    def _noise(self, *functions: Array) -> Array:
        """Covariance matrix of the noise of some functions."""
        products, excess, seen = self._law
        turned = np.stack([by @ products for by in functions])
        covariance = 2 * turned.reshape(len(functions), -1) @ turned.mT.reshape(len(functions), -1).T
        squares = (
            np.stack([np.sum(seen * (by @ seen), axis=0) for by in functions]) if excess else np.zeros((len(functions), 1))
        )
        return covariance + excess * squares @ squares.T

    def _of_points(self, gradient: Array, *, means: bool = True) -> Array:
        """A function of the points by its gradient there; without the ``means``, what the covariance alone does to it."""
        k, r = self.points.shape
        by = np.zeros((len(self.forms),) * 2)
        by[:k, k : k + r] = gradient * means
        by[k : k + r, k : k + r] = -(gradient.T @ self.points) / (2 * self.count)
        by[k + r, k + r] = np.sum(gradient * self.points) / (2 * self.count)
        return (by + by.T) / 2

    def _reach(self, gradient: Array, value: float, reach: float) -> tuple[float, float]:
        """How far a function of the points, a combination of squared distances, reaches down and up, in parts of its ``value``.

        Upwards it is more than a multiple of the standard error. What noise there is in the means adds to distances, not to their squares.
        And noise in the covariance adds to what distances are divided by: where it may be all there is, they have no upper end. What was
        clipped is missing there, so it cannot be all there is."""
        noise = np.maximum(np.diag(self._noise(self._of_points(gradient), self._of_points(gradient, means=False))), 0.0)
        by_means, by_spread = self._clipping(gradient)
        whole = np.sqrt(noise[0] + self._sampling(gradient) + by_means**2 + by_spread**2)
        whole, of_noise, of_clipping = reach / value * np.array([whole, np.sqrt(noise[1]), by_spread])
        of_means = np.sqrt(max(whole**2 - of_noise**2 - of_clipping**2, 0.0))
        upwards = of_noise / (1 - of_noise) if of_noise < 1 else np.inf
        return float(whole), float(np.hypot(np.hypot((1 + of_means / 2) ** 2 - 1, upwards), of_clipping))

    @cached_property
    def _of_shares(self) -> list[Array]:
        """Of each share but the first, multiplied so that its standard error is that of the regression."""
        one, found = sum(self.points.shape), []
        for place, (share, noise) in enumerate(zip(self.shares.values[1:], self.shares.noise, strict=True), 1):
            by = np.zeros((len(self.forms),) * 2)
            by[one, one], by[one, one + place] = -share / self.count, 1 / self.count
            by = (by + by.T) / 2
            own = float(self._noise(by)[0, 0])
            found.append(by * (noise / np.sqrt(own)) if own > 0 else by)
        return found

    @property
    def _covariance(self) -> Array:
        """(k - 1, k - 1) of the shares of all classes but the first."""
        rows = self.shares.multinomial
        clipped = self.shares.clipping / np.sqrt(np.diag(rows))  # what clipping takes from one share is in the others
        by_noise, by_clipping = self._noise(*self._of_shares), clipped[:, None] * rows * clipped
        return by_noise + rows / self.evidence.effective_rows + by_clipping

    def _sampling(self, gradient: Array) -> float:
        """Variance by the sampling of rows, of a function of the points."""
        bent = _bent(gradient, self.points)
        means = np.sum(gradient**2 / self.shares.values[:, None])
        return float((means + 2 * np.sum(bent**2)) / self.evidence.effective_rows)

    def _clipping(self, gradient: Array) -> tuple[float, float]:
        """What long rows leave open of a function of the points, as standard deviations: by way of the means, and of the covariance.

        A coordinate is explained by the classes in a regression. It knows what clipping may have done to the means, and to the variance
        within classes. Coordinates are those in which no covariance matters, and are taken to agree."""
        if self.evidence.tails is None:
            return 0.0, 0.0
        sizes, axes = np.linalg.eigh(_bent(gradient, self.points))
        by_means, by_spread = 0.0, 0.0
        for size, axis in zip(sizes.tolist(), axes.T, strict=True):
            along = gradient @ axis
            if np.sum(along**2) <= FAINT * np.sum(gradient**2):
                continue
            weights = self.coordinates @ axis
            score = DesignColumn("score", "score", {int(j): float(weights[j]) for j in np.flatnonzero(weights)})
            seen = channel(self.evidence, assemble(self.evidence.schema, score, self.indicators, True))
            means = uncertainty(seen, along[None, :] @ self.of_classes).clipping
            by_means += float(np.sqrt(max(means[0, 0], 0.0)))
            by_spread += abs(size) * seen.squares_left_open
        return by_means, by_spread

    def distances(self, reach: float) -> tuple[Array, Array, Array]:
        """(k, k) the distances of the points, and the ends of their intervals."""
        k = len(self.points)
        distance, lower, upper = (np.zeros((k, k)) for _ in range(3))
        for a, b in zip(*np.triu_indices(k, 1), strict=True):
            apart = self.points[a] - self.points[b]
            gradient = np.zeros_like(self.points)
            gradient[a], gradient[b] = 2 * apart, -2 * apart
            value = max(float(apart @ apart), TINY)
            down, up = self._reach(gradient, value, reach)
            found = np.sqrt(value * np.array([1.0, max(1 - down, 0.0), 1 + up]))
            distance[a, b], lower[a, b], upper[a, b] = distance[b, a], lower[b, a], upper[b, a] = found
        return distance, lower, upper

    def error_interval(self, reach: float) -> tuple[float, float]:
        """The ends of the error rate's interval."""
        priors = self.shares.values
        if not self.shares.known:
            return 0.0, 1 - 1 / len(priors)
        own, gradient = error_gradient(self.points, priors)
        along = own[1:] - own[0]  # the derivatives by the shares, where the first has what the others leave
        scatter = priors[:, None] * self.points  # half the derivative of the squared distances from the mean of all rows
        gradient = gradient - FLAT * scatter / max(float(np.sum(scatter * self.points)), TINY)
        factor = 2 * gradient / min(float(np.sum(gradient * self.points)), -TINY)  # what multiplies squared distances
        down, up = self._reach(factor, 1.0, reach)
        covariance = self._covariance
        sd = float(np.sqrt(max(along @ covariance @ along, 0.0)))  # of what the shares do to the error rate
        moved = covariance @ along / max(sd, TINY)
        moved = np.concatenate([[-moved.sum()], moved]) / priors  # of their logarithms
        shared = self._noise(self._of_points(factor), np.tensordot(along, self._of_shares, 1))[0, 1]
        together = float(np.clip(shared * reach / max(down * sd, TINY), -1.0, 1.0))  # the correlation of both

        def at(angle: float, many: int) -> float:
            far, other = np.cos(angle), np.sin(angle)
            if far > 0 and np.isinf(up):
                return 0.0
            logs = np.log(priors) + reach * (together * far + np.sqrt(1 - together**2) * other) * moved
            weights = np.exp(logs - logs.max())
            scale = max(1 + far * (up if far > 0 else down), 0.0)
            return error_rate(np.sqrt(scale) * self.points, weights / weights.sum(), many)

        rates = [at(angle, FEWER_ROWS) for angle in ANGLES]
        low, high = (at(ANGLES[place], ROWS) for place in (int(np.argmin(rates)), int(np.argmax(rates))))
        here = error_rate(self.points, priors)
        return min(low, here), max(high, here)


def _bent(gradient: Array, points: Array) -> Array:
    """A in what the covariance within classes does to a function of the ``points``: -tr(A dS), where S is one."""
    bent = gradient.T @ points / 2
    return np.asarray((bent + bent.T) / 2)


def pair_error(distance: float, first: float, second: float) -> float:
    """The share of rows of two normal classes, so ``distance`` apart, that the discriminant puts into the wrong one."""
    first, second = first / (first + second), second / (first + second)
    return float(np.array([first, second]) @ _own_errors(distance, first, second))


def _own_errors(distance: float, first: float, second: float) -> Array:
    """The share of each of two classes that the discriminant puts into the other one."""
    if distance <= 0:
        return np.array([1.0, 0.0] if first < second else [0.0, 1.0])
    shift = np.log(first / second) / distance
    return ndtr(-distance / 2 + np.array([-shift, shift]))


def error_rate(points: Array, priors: Array, many: int = ROWS) -> float:
    """The same of all classes, at these ``points``; where there are more than two, a mean over so ``many`` rows."""
    if len(priors) == 2:
        return pair_error(float(np.linalg.norm(points[1] - points[0])), *priors.tolist())
    return 1 - sum(share * float(np.mean(chance.max(axis=1))) for share, (_, chance) in _rows(points, priors, many))


def error_gradient(points: Array, priors: Array) -> tuple[Array, Array]:
    """The derivatives of the error rate by the shares (k,), and by the points (k, r)."""
    if len(priors) == 2:
        apart = points[1] - points[0]
        distance, own = float(np.linalg.norm(apart)), _own_errors(float(np.linalg.norm(apart)), *priors.tolist())
        if distance <= 0:
            return own, np.zeros_like(points)
        away = distance / 2 + np.log(priors[0] / priors[1]) / distance
        slope = -priors[0] * np.exp(-(away**2) / 2) / np.sqrt(2 * np.pi)  # by the distance
        return own, slope * np.array([[-1.0], [1.0]]) * apart / distance
    inside, gradient = np.zeros(len(priors)), np.zeros_like(points)
    for share, (rows, chance) in _rows(points, priors, ROWS):
        own_region = share / len(rows) * chance * (chance == chance.max(axis=1, keepdims=True))
        inside += own_region.sum(axis=0)
        gradient -= own_region.T @ rows - own_region.sum(axis=0)[:, None] * points
    return 1 - inside / priors, gradient


def _rows(points: Array, priors: Array, many: int) -> Iterator[tuple[float, tuple[Array, Array]]]:
    """For each class its share, its part of so ``many`` rows, and their chances to be of each class.

    Rows fill the normal law evenly: a Kronecker sequence by the generalised golden ratio, so that few are needed."""
    dim = points.shape[1]
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dim + 1))
    normal = ndtri((0.5 + np.outer(np.arange(1, many // len(priors) + 1), ratio ** -np.arange(1.0, dim + 1))) % 1)
    for share, point in zip(priors.tolist(), points, strict=True):
        rows = normal + point
        scores = rows @ points.T + np.log(priors) - np.sum(points**2, axis=1) / 2
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        yield share, (rows, chance / chance.sum(axis=1, keepdims=True))
