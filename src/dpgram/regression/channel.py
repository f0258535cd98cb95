"""What a release says about the coefficients of one regression: a linear channel with known noise.

Every noise model comes down to one form. In an orthonormal basis of p directions, with b the coefficients there,

    observed_i = gain_i b_i + error_i,

where the gain is itself seen through symmetric noise, of variance ``spread * weight_i * weight_j`` off the diagonal and twice
that on it. So, at the true b, observed - gain b has mean zero and covariance

    diag(weight_i (label + spread sum_j weight_j b_j^2)) + spread (weight b)(weight b)'        (the privacy noise)
    + diag(sigma^2 rows_weight_i)                                                              (the sampling of rows).

- Additive noise: observed = M_xy, gain = eigenvalues of M_xx less the public shift, weight = 1, label = spread = v.
- A Wishart draw M of S = G + w^2 I: the regression on M is unbiased for (1 - w^2 S_xx^-1) b, and M_xx^-1 (r - p - 1)/r is unbiased for
  S_xx^-1; both laws are exact, given M_xx. So observed = M_xx^-1 M_xy, gain = 1 - w^2 weight, weight = that inverse's eigenvalues.
- An inverse-Wishart draw: the same, where S_xx^-1 is estimated by a Wishart matrix of nu - d + p degrees of freedom.
- Noise N on the inverse moves the matrix by about -G N G: weight = squared eigenvalues. Where the noisy inverse's smallest eigenvalue
  does not stand above the noise, that says nothing about large noise, and the gains count as unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.linalg.shrinkage import debiased_gain, symmetric_shrinkage, wishart_shrinkage
from dpgram.regression.design import Design, has_intercept
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, SymmetricGaussian, WishartSample

Array = np.ndarray

TINY = 1e-300
UNKNOWN_GAIN = 1e-3  # standard deviations of its noise


@dataclass(frozen=True, eq=False, kw_only=True)
class Channel:
    """One regression as seen through the noise; see above. Coefficients in own units are ``to_own @ b + base``."""

    to_own: Array  # (p, p)
    base: Array  # (p,)
    observed: Array
    gain: Array
    weight: Array
    label: float
    spread: float
    degrees: float  # of freedom of the label's noise; infinite for additive noise
    debiased: Array  # the gain by which to divide without bias
    per_row: Array  # sampling of rows gives observed_i a variance of sigma^2 * per_row_i
    explains: Array  # the sum of squares that b_i explains is explains_i b_i^2
    expected: Array  # the gain's mean given all that was seen, before it is known to be positive
    others: Array  # the mean square of a row of the gain, off the diagonal
    scale: float  # the size of b^2 to expect from public bounds and the label's own variance
    rows: float  # the effective number of rows: one that was shrunk counts for the square of its factor
    rows_sd: float  # of the noise in it; zero where it is public
    unexplained: float  # the unit label's own sum of squares, before b explains any of it; scaled units
    shift: float  # the public multiple of the identity that the noise was drawn around
    label_scale: float  # the label is this times a unit vector

    @property
    def estimate(self) -> Array:
        """The debiased coefficients in the basis."""
        return self.observed / self.debiased

    def noise_variance(self, b: Array) -> Array:
        """Diagonal of the privacy noise's covariance at b, without the rank-one part."""
        return self.weight * (self.label + self.spread * np.sum(self.weight * b**2, axis=-1, keepdims=True))

    def error_squares(self) -> float:
        """The sum of squared errors of the unit label, unbiased, so that it may be negative.

        Squares of the estimate are too large by the variance of the label's noise in it, which is taken off before they explain
        anything; the noise in the gains has no such effect, because dividing by ``debiased`` is right on average."""
        variance = self.label * self.weight / self.debiased**2
        return float(self.unexplained - np.sum(self.explains * (self.estimate**2 - variance)))

    @property
    def gain_sd(self) -> Array:
        """Standard deviation of the noise on each gain."""
        return np.sqrt(2 * self.spread) * self.weight


def channel(release: GramRelease, plan: Design) -> Channel:
    """The channel of one regression."""
    basis, triangle, along, label_scale = _orthonormal(plan)
    noise, gram = release.noise, release.gram
    hidden = isinstance(noise, NoisyInverse) and _is_hidden(noise, gram)
    if isinstance(noise, NoisyInverse):
        gram = _unbiased_inverse(noise, gram)
    block = basis.T @ gram @ basis
    values, axes = np.linalg.eigh(block[:-1, :-1])
    cross, square = axes.T @ block[:-1, -1], float(block[-1, -1])
    back = plan.to_own_units @ np.linalg.inv(triangle)
    match noise:
        case SymmetricGaussian():
            seen = _additive(values, cross, noise)
        case WishartSample():
            seen = _wishart(values, cross, square, noise)
        case InverseWishartSample():
            seen = _inverse_wishart(values, cross, square, noise, len(gram))
        case NoisyInverse():
            seen = _inverse_noise(values, cross, basis.T @ gram @ gram @ basis, noise)
    seen["debiased"] = debiased_gain(seen["gain"], seen["weight"], seen["spread"])
    if hidden:
        seen["gain"] = UNKNOWN_GAIN * np.sqrt(2 * seen["spread"]) * seen["weight"]
    seen["per_row"] = seen["debiased"] * (1.0 if isinstance(noise, SymmetricGaussian | NoisyInverse) else seen["weight"])
    drawn = isinstance(noise, WishartSample | InverseWishartSample)
    rows, rows_sd = counted_rows(release)
    return Channel(
        to_own=label_scale * back @ axes,
        base=back @ along + plan.offset,
        scale=_expected_size(release, basis, block),
        rows=rows,
        rows_sd=rows_sd,
        explains=seen["debiased"] * (noise.shift if drawn else 1.0),
        unexplained=seen.pop("conditional", square) - noise.shift,
        shift=noise.shift,
        label_scale=label_scale,
        **seen,
    )


def effective_rows(release: GramRelease) -> float:
    """How many unshrunk rows carry the same information."""
    return counted_rows(release)[0]


def counted_rows(release: GramRelease) -> tuple[float, float]:
    """The effective number of rows, and the standard deviation of the noise in it.

    The intercept's own entry, where there is one, and no more than the public number of rows. Without an intercept, that number;
    where it is protected, the fewest rows that such a matrix can come from."""
    public = None if release.rows is None else float(release.rows)
    if has_intercept(release):
        count = float(release.gram[0, 0]) - release.noise.shift
        if public is not None:
            count = min(max(count, 0.05 * public), public)
        return max(count, 1.0), _count_sd(release, count)
    if public is not None:
        return max(public, 1.0), 0.0
    return float(max((np.trace(release.gram) - len(release.gram) * release.noise.shift) / release.row_bound**2, 1.0)), 0.0


def _count_sd(release: GramRelease, count: float) -> float:
    """Standard deviation of the intercept's own entry, were the effective number of rows ``count``."""
    noise = release.noise
    if isinstance(noise, WishartSample | InverseWishartSample):
        return float((max(count, 0.0) + noise.shift) * np.sqrt(2 / noise.degrees_of_freedom))
    if isinstance(noise, NoisyInverse):
        return float(noise.sd_diagonal_of_inverse * np.sum(release.gram[0] ** 2))
    return noise.sd_diagonal


def _orthonormal(plan: Design) -> tuple[Array, Array, Array, float]:
    """An orthonormal basis (d, p + 1) of the regressors and what is left of the label, with the way back.

    regressors = basis[:, :p] @ triangle, label = basis[:, :p] @ along + label_scale * basis[:, p]."""
    q, triangle = np.linalg.qr(plan.regressors)
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    q, triangle = q * signs, signs[:, None] * triangle
    sizes = np.abs(np.diag(triangle))
    along = q.T @ plan.label
    rest = plan.label - q @ along
    size = float(np.linalg.norm(rest))
    if size < 1e-9 * np.linalg.norm(plan.label) or sizes.min() < 1e-9 * sizes.max():
        raise ModelError(
            f"the columns of this regression of {plan.target!r} are exactly dependent, whatever the data (a category with all its "
            f"levels beside an intercept, say): leave one out."
        )
    return np.column_stack([q, rest / size]), triangle, along, size


def _is_hidden(noise: NoisyInverse, gram: Array) -> bool:
    """Whether the noisy inverse has an eigenvalue that noise alone could have made: half of the noise's spectral edge, or less."""
    smallest = float(np.linalg.eigvalsh(np.linalg.inv(gram))[0])
    return smallest < noise.sd_off_diagonal_of_inverse * np.sqrt(len(gram))


def _unbiased_inverse(noise: NoisyInverse, gram: Array) -> Array:
    values, vectors = np.linalg.eigh(np.linalg.inv(gram))
    gain = debiased_gain(values, np.ones_like(values), noise.sd_off_diagonal_of_inverse**2)
    return (vectors / gain) @ vectors.T


def _additive(values: Array, cross: Array, noise: SymmetricGaussian) -> dict:
    variance = noise.sd_off_diagonal**2
    expected, others = symmetric_shrinkage(values - noise.shift, variance)
    return {
        "observed": cross,
        "gain": values - noise.shift,
        "weight": np.ones_like(values),
        "label": variance,
        "spread": variance,
        "degrees": np.inf,
        "expected": expected,
        "others": others,
    }


def _wishart(values: Array, cross: Array, square: float, noise: WishartSample) -> dict:
    p, r = len(values), noise.degrees_of_freedom
    if r < p + 4:
        raise ModelError(
            f"the release is a sketch of {r:g} rows, and a regression with {p} coefficients needs {p + 4} or more: use fewer features."
        )
    values = np.maximum(values, TINY)
    weight = (r - p - 1) / (r * values)
    left = max(square - float(np.sum(cross**2 / values)), TINY)
    shrunk = 1 / wishart_shrinkage(values, r)
    left *= r / (r - p)
    return _drawn(values, cross, noise.shift, weight, left, left / (r - p - 1), noise.shift**2 / (r - p - 3), r - p, shrunk)


def _inverse_wishart(values: Array, cross: Array, square: float, noise: InverseWishartSample, dim: int) -> dict:
    p = len(values)
    degrees = noise.degrees_of_freedom - dim + p  # of the block of the regressors
    values = np.maximum(values, TINY)
    weight = noise.multiple / (degrees * values)
    left = max(square - float(np.sum(cross**2 / values)), TINY)
    shrunk = wishart_shrinkage(weight, degrees)
    left /= noise.multiple  # the label given the regressors, in the draw itself, which is S given them over about `degrees`
    return _drawn(
        values, cross, noise.shift, weight, left * max(degrees - 1, 1.0), left, noise.shift**2 / degrees, degrees, shrunk
    )


def _drawn(
    values: Array,
    cross: Array,
    shift: float,
    weight: Array,
    conditional: float,
    label: float,
    spread: float,
    degrees: float,
    shrunk: Array,
) -> dict:
    """What both draws share. ``weight`` estimates the eigenvalues of the inverse scale matrix, ``shrunk`` does it better on average;
    ``conditional`` estimates the scale matrix's left-over of the label."""
    return {
        "observed": cross / values,
        "gain": 1 - shift * weight,
        "weight": weight,
        "label": label,
        "spread": spread,
        "degrees": degrees,
        "conditional": conditional,
        "expected": 1 - shift * shrunk,
        "others": spread * shrunk * (shrunk.sum() - shrunk),
    }


def _inverse_noise(values: Array, cross: Array, squared: Array, noise: NoisyInverse) -> dict:
    variance, weight = noise.sd_off_diagonal_of_inverse**2, values**2
    return {
        "observed": cross,
        "gain": values,
        "weight": weight,
        "label": variance * float(squared[-1, -1]),
        "spread": variance,
        "degrees": np.inf,
        "expected": values,
        "others": variance * weight * (weight.sum() - weight),
    }


def _expected_size(release: GramRelease, basis: Array, block: Array) -> float:
    """About what b^2 would be if the regressors explained the label: its sum of squares over theirs, about their means."""
    noise = release.noise
    p, sd = basis.shape[1] - 1, noise.sd_off_diagonal
    own = block - noise.shift * np.eye(p + 1)
    features, label = np.trace(own[:-1, :-1]), own[-1, -1]
    if has_intercept(release) and p > 1:
        ones = own @ basis[0]  # the intercept's cross products, where it is among the regressors
        size = basis[0] @ ones
        if basis[0, :-1] @ basis[0, :-1] > 0.5 and size > sd:
            features, label = features - ones[:-1] @ ones[:-1] / size, label - ones[-1] ** 2 / size
    return float(max(label, sd, TINY) / max(features, sd * np.sqrt(p), TINY))
