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
- Noise N on the inverse moves the matrix G by about -G N G, so a regression with G is one with G^-1, which carries additive noise,
  on the columns G X and the label G y: additive noise again. Where the noisy inverse's smallest eigenvalue does not stand above the
  noise, "about" is not good enough, and the gains count as unknown.
- Noise in whitened coordinates: the matrix is L M L' with M of additive noise and a public L, so a regression with it is one with M on the
  columns L'X and the label L'y. There b = 0 is the regression that L L' itself gives: what the rounds before the last knew. Rows that
  were shrunk make M fall short of I by less than it should; ``linalg.rounds.unshrunk`` makes up for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.linalg.shrinkage import debiased_gain, symmetric_shrinkage, wishart_shrinkage
from dpgram.regression.design import Design, has_intercept
from dpgram.regression.rounds import last_look, pooled_look, unmapped
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, SymmetricGaussian, WhitenedGaussian, WishartSample

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


def channel(release: GramRelease, plan: Design, *, together: bool = False) -> Channel:
    """The channel of one regression: by the last of several rounds, for inference, or by all of them ``together``, for estimates."""
    gram, noise, turn = additive_form(release, together=together)
    basis, triangle, along, label_scale = orthonormal(plan, turn)
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
    seen["debiased"] = debiased_gain(seen["gain"], seen["weight"], seen["spread"])
    if isinstance(release.noise, NoisyInverse) and _is_hidden(release.noise, release.gram):
        seen["gain"] = UNKNOWN_GAIN * np.sqrt(2 * seen["spread"]) * seen["weight"]
    seen["per_row"] = seen["debiased"] * (1.0 if isinstance(noise, SymmetricGaussian) else seen["weight"])
    drawn = isinstance(noise, WishartSample | InverseWishartSample)
    rows, rows_sd = counted_rows(release)
    return Channel(
        to_own=label_scale * back @ axes,
        base=back @ along + plan.offset,
        scale=_expected_size(block, noise, basis.T @ _unit(turn[:, 0]) if has_intercept(release) else None),
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

    The public number where no row can have been shrunk. Else the intercept's own entry, where there is one, and no more than the public
    number. Without an intercept, that number; where it is protected, the fewest rows that such a matrix can come from.

    Rows that were shrunk in whitened coordinates count as one each: they are as many as were drawn, and ``weighed_rows`` says what
    they weigh."""
    public = None if release.rows is None else float(release.rows)
    whitened = isinstance(release.noise, WhitenedGaussian)
    if public is not None and (whitened or release.row_bound >= release.schema.largest_norm):
        return max(public, 1.0), 0.0
    if has_intercept(release):
        count = float(release.gram[0, 0]) - release.noise.shift
        if public is not None:
            count = min(max(count, 0.05 * public), public)
        return max(count, 1.0), _count_sd(release, count)
    if public is not None:
        return max(public, 1.0), 0.0
    if isinstance(release.noise, WhitenedGaussian):  # a mapped row has norm one at most
        return max(float(np.trace(release.noise.last.gram)), 1.0), 0.0
    return float(max((np.trace(release.gram) - len(release.gram) * release.noise.shift) / release.row_bound**2, 1.0)), 0.0


def _count_sd(release: GramRelease, count: float) -> float:
    """Standard deviation of the intercept's own entry, were the effective number of rows ``count``."""
    noise = release.noise
    if isinstance(noise, WishartSample | InverseWishartSample):
        return float((max(count, 0.0) + noise.shift) * np.sqrt(2 / noise.degrees_of_freedom))
    if isinstance(noise, NoisyInverse):
        return float(noise.sd_diagonal_of_inverse * np.sum(release.gram[0] ** 2))
    if isinstance(noise, WhitenedGaussian):
        return float(
            np.sqrt(2) * noise.last.sd_off_diagonal / noise.last.kept * np.sum(unmapped(noise.last.through)[:, 0] ** 2)
        )
    return noise.sd_diagonal


def additive_form(
    release: GramRelease, *, together: bool = False
) -> tuple[Array, SymmetricGaussian | WishartSample | InverseWishartSample, Array]:
    """A matrix, its noise, and T: the regression of T y on T X with this matrix is that of y on X with the Gram.

    T is the identity but for noise on the inverse, where it is the Gram and the matrix is its inverse, and for noise in whitened
    coordinates, where the matrix is the last round's own: the released one has lost digits if its map is badly conditioned. When
    ``together``, it is that of all rounds: less noise, whose law is known less well."""
    noise = release.noise
    if isinstance(noise, WhitenedGaussian):
        through, gram, sd = (pooled_look if together else last_look)(noise, rows_summed(release))
        return gram, SymmetricGaussian.orthogonal(sd), unmapped(through)
    if not isinstance(noise, NoisyInverse):
        return release.gram, noise, np.eye(len(release.gram))
    values, vectors = np.linalg.eigh(np.linalg.inv(release.gram))
    unbiased = debiased_gain(values, np.ones_like(values), noise.sd_off_diagonal_of_inverse**2)
    additive = SymmetricGaussian(noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse)
    return (vectors * unbiased) @ vectors.T, additive, (vectors / unbiased) @ vectors.T


def rows_summed(release: GramRelease) -> float | None:
    """The number of rows that a matrix is the sum over, by what is known of it; None where nothing is."""
    return effective_rows(release) if release.rows is not None or has_intercept(release) else None


def weighed_rows(release: GramRelease) -> tuple[float, float]:
    """By what to divide sums of squares to get means, and the standard deviation of the noise in it: the effective number of rows, but
    where rows were shrunk in whitened coordinates the intercept's own entry, in which each counts with its weight."""
    noise = release.noise
    if not isinstance(noise, WhitenedGaussian) or not has_intercept(release) or noise.last.kept >= 1.0:
        return counted_rows(release)
    count = max(float(release.gram[0, 0]), 1.0)
    return count, _count_sd(release, count)


def turned(plan: Design, turn: Array) -> Design:
    """The same regression in other coordinates."""
    return replace(plan, regressors=turn @ plan.regressors, label=turn @ plan.label)


def orthonormal(plan: Design, turn: Array) -> tuple[Array, Array, Array, float]:
    """An orthonormal basis (d, p + 1) of the regressors and what is left of the label, with the way back.

    turn @ regressors = basis[:, :p] @ triangle, turn @ label = basis[:, :p] @ along + label_scale * basis[:, p]."""
    own = np.abs(
        np.diag(np.linalg.qr(np.column_stack([plan.regressors, plan.label]))[1])
    )  # what each column adds to those before
    if own[-1] < 1e-9 * np.linalg.norm(plan.label) or own[:-1].min() < 1e-9 * own[:-1].max():
        raise ModelError(
            f"the columns of this regression of {plan.target!r} are exactly dependent, whatever the data (a category with all its "
            f"levels beside an intercept, say): leave one out."
        )
    q, triangle = np.linalg.qr(turn @ plan.regressors)
    signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
    q, triangle = q * signs, signs[:, None] * triangle
    label = turn @ plan.label
    along = q.T @ label
    rest = label - q @ along
    again = q.T @ rest  # what rounding left, where the label is nearly a combination of the regressors
    along, rest = along + again, rest - q @ again
    size = float(np.linalg.norm(rest))
    return np.column_stack([q, rest / size]), triangle, along, size


def _unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)


def _is_hidden(noise: NoisyInverse, gram: Array) -> bool:
    """Whether the noisy inverse has an eigenvalue that noise alone could have made: half of the noise's spectral edge, or less."""
    smallest = float(np.linalg.eigvalsh(np.linalg.inv(gram))[0])
    return smallest < noise.sd_off_diagonal_of_inverse * np.sqrt(len(gram))


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


def _expected_size(block: Array, noise: SymmetricGaussian | WishartSample | InverseWishartSample, ones: Array | None) -> float:
    """About what b^2 would be if the regressors explained the label: its sum of squares over theirs, about their means.

    ``block`` has the label last; ``ones`` is the intercept's direction in its basis."""
    p, sd = len(block) - 1, noise.sd_off_diagonal
    own = block - noise.shift * np.eye(p + 1)
    features, label = np.trace(own[:-1, :-1]), own[-1, -1]
    if ones is not None and p > 1:
        cross = own @ ones
        size = ones @ cross
        if ones[:-1] @ ones[:-1] > 0.5 and size > sd:
            features, label = features - cross[:-1] @ cross[:-1] / size, label - cross[-1] ** 2 / size
    return float(max(label, sd, TINY) / max(features, sd * np.sqrt(p), TINY))
