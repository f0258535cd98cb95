"""What rows beyond the clip hold, as far as the outer matrices of the last round show it, and how far that moves a regression.

A row that is long after the map counts in the first matrix M for part of its square. The rest is in the outer matrix M_k of its scale R_k,
whose entries are seen through the same noise, so R_k times as much of it in units of the first. The whole sum is M + sum_k R_k M_k. With S
the shape of the first matrix, shrinking undone and of mean square one, and c_k the mean square of an outer one, it is about

    M + sum_k R_k (c_k S + (M_k - c_k S)),

where a difference is zero if long rows say the same as the others. For a regression with orthonormal regressors Q and a residual v only
Q'(M_k - c_k S) v matters: p numbers with noise of variance t^2 |v|^2.

Estimates take their prior variance to be (rho^2 + 1/N_k) c_k D_k |v|^2, D_k the mean square of outer rows along v. rho is how far long rows
agree on a direction, N_k of which agree by chance as far as 1/N_k says. It is averaged over its posterior, where it rises from scale to
scale, probably not by much: the longer rows are, the more they are of a kind. Of what was seen the share

    f_k = E[(rho^2 + 1/N_k) c_k D_k / ((rho^2 + 1/N_k) c_k D_k + t^2)]

is believed, and the estimate is that of M + sum_k R_k (c_k S + f_k (M_k - c_k S)), whose noise is additive and known. Sizes c_k come from
traces, and are taken to fall from scale to scale at about the same pace in every table.

Intervals must not count on that pace. What is left out of the sum is R_k (1 - f_k) of a difference at each scale, and noise hides most of
them far out, where R_k is large. Along a direction q of the regressors it is taken to have the variance

    |v|^2 E[(sum_k R_k (1 - f_k) sqrt((rho^2 + 1/N_k) D_k(q) D_k(v)))^2],

D_k(q) the mean square of outer rows along q, which no row can exceed (Cauchy and Schwarz).

- Scales add up as if all of their rows pulled the same way, as they do where one line bends or one column has a long tail.
- Mean squares over all directions follow a power law, of which start, decline and end are averaged over their posterior
  (``linalg.clipped.usual_sizes``).
- D_k(q) has the part of it that q has in how far rows reach. A row whose cells lie anywhere at the ends of the declared bounds has the mean
  square |T'q|^2 along q, T the public map; none is longer than its scale says. So long rows are expected along columns whose bounds are
  wide, and hardly along indicators. What the matrices show of D_k(q) through their noise counts too.
- Rows far from the fit lie where the label is expected to be far from its mean: errors grow with it, or the line bends. So the variance is
  larger along the fit f than along other directions, by (1 + 6 (f'q)^2), and as large as before in the mean of them. On the tables that
  estimators were developed on, the fit had three times its share of what long rows did.
- rho is one number for all scales, averaged over its posterior.

Where long rows lie along v more than along other directions, the sum of squared errors lacks sum_k R_k (1 - f_k) (D_k(v) - c_k v'Sv) more
than those of other regressions do. Estimates leave that out, as R-squared does; partial correlations and logits, which divide by it,
count it as left open.

Where all rounds are read together, a direction counts in which a difference is far larger than noise makes it, at scales whose rows surely
follow another line. Where they follow the same line as the others, they would only bring their noise.

Rows fewer than a few times t cannot be seen by anybody. If they decide a regression and lie where the bounds do not let them be expected,
no interval of a bearable length holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpgram.evidence.additive import Additive
from dpgram.linalg.clipped import outer_sizes, usual_sizes, with_seen
from dpgram.linalg.symmetric import eigenvalues_within
from dpgram.terms.noise import Round, SymmetricGaussian

Array = np.ndarray

AGREEMENT = np.geomspace(0.005, 1.0, 12)  # values of rho
EXPECTED = AGREEMENT**-0.2  # prior weights of them
RISING = AGREEMENT**-2.0  # the same of those that are as large as that of the scale before
CAREFUL = 1 / AGREEMENT  # further weights, for estimates
FAINTEST = 1e-300  # of the largest likelihood: with many coefficients the others are no floats any more
NEAR = 1.5  # standard deviations of the noise: how far from what was seen a mean square along the residual may be
SURELY = 5.0  # standard deviations of a sum of squares that is noise alone
OPEN = np.array([0.05, 0.1, 0.2, 0.4, 0.8])  # values of rho that intervals count with, one for all scales
START = 0.4  # of a scale: about the squared length of its rows, which are between a fifth and four fifths of it
BENT = 6.0  # how much more of what long rows do is expected along the fit than along any other direction
WHOLE = 0.97  # of a row's square: at most so much lies in one direction
CLEAR = 3.0  # times sd sqrt(d), where 2 is the edge of pure noise: eigenvalues beyond it show something


@dataclass(frozen=True, eq=False)
class Open:
    """What rows beyond the clip leave open in a regression."""

    variance: float  # of what is observed in a direction, in the mean of all
    along: Array  # (m,) the same in some directions
    squares: float  # by how much more or less than others the sum of squared errors is expected to lack of long rows

    @property
    def leaning(self) -> Array:
        """(m,) what is left open in those directions over the mean of all, as standard deviations."""
        return np.sqrt(self.along / self.variance) if self.variance > 0 else np.ones(len(self.along))


NOTHING_OPEN = Open(0.0, np.zeros(0), 0.0)


@dataclass(frozen=True, eq=False)
class Tails:
    """The matrices of the last round, the first and the outer ones. ``size`` is the mean square of the first, shrinking undone: divided by
    it, what ``Evidence.alone`` says is the shape of what rows hold."""

    first: Array  # (d, d)
    outer: Array  # (K, d, d), each in units of its scale
    scales: Array  # (K,) squared lengths, in units of the first clip
    sizes: Array  # (K,) mean squares of what the outer ones hold, without noise
    sd: float  # of the noise off the diagonal, in each of them
    size: float
    shape_sd: float  # of the noise in the shape
    dim: int  # d
    usual: Array  # (K,) mean squares again, were lengths to follow a power law
    through: Array  # (d, d) of each vector of the basis, its product with a row: a combination of released columns
    reaches: Array  # (K,) how far rows of each scale reach, squared, in the mean of all directions
    observed: int = -1  # the directions of the basis whose products with the residual are observed come first, up to this one

    @classmethod
    def of(cls, last: Round, matrix: Array, sd: float) -> Tails | None:
        """Of a last round whose first matrix, shrinking undone, is ``matrix`` with noise of ``sd``; None where it has no outer ones."""
        if not last.outer or np.trace(matrix) <= 0:  # nothing there, or nothing but noise
            return None
        size, outer = float(np.trace(matrix)) / len(matrix), np.stack(last.outer)
        scales, (sizes, _) = np.array(last.scales[1:]), outer_sizes(last.gram, outer, last.sd_off_diagonal)
        return cls(
            last.gram,
            outer,
            scales,
            sizes,
            last.sd_off_diagonal,
            size,
            sd / size,
            len(matrix),
            usual_sizes(last.gram, outer, last.sd_off_diagonal),
            last.through,
            np.mean(_reached(scales, np.linalg.eigvalsh(last.through @ last.through.T)), axis=1),
        )

    @property
    def share(self) -> float:
        """About what part of all squares rows hold beyond the clip."""
        beyond = float(self.scales @ self.sizes)
        return beyond / (beyond + max(float(np.trace(self.first)) / self.dim, 0.0))

    @property
    def counts(self) -> Array:
        """About how many rows each outer matrix holds."""
        return _rows(self.dim * self.sizes, self.scales)

    @property
    def rows(self) -> float:
        """About how many rows are beyond the clip."""
        return float(np.sum(self.counts))

    def within(self, basis: Array, observed: int = -1) -> Tails:
        """The matrices in an orthonormal basis (d, any number) of a regression's columns.

        A regression observes products with all of them but the last, which is what is left of the label. One with instruments observes
        products with as many as are ``observed``, the first."""
        inner = {
            "first": basis.T @ self.first @ basis,
            "outer": basis.T @ self.outer @ basis,
            "through": basis.T @ self.through,
        }
        return replace(self, **inner, observed=observed)

    def joined(self, shape: Array, believed: Array) -> tuple[Array, Additive]:
        """The first matrix with the outer ones, as far as they are ``believed``, and the law of its noise."""
        guessed = float((self.scales * (1 - believed)) @ self.sizes)
        weights = self.scales * believed
        sd = math.hypot(self.sd + guessed * self.shape_sd, *(weights * self.sd))
        return self.first + guessed * shape + np.tensordot(weights, self.outer, 1), Additive(SymmetricGaussian.orthogonal(sd))

    def clear(self, place: int, shape: Array) -> Array:
        """(d, d) what an outer matrix shows beyond doubt, in units of the first with shrinking undone: its difference from the ``shape``
        with eigenvalues shrunk as is best for a few in noise, where the edge of the noise is taken to lie further out than it does."""
        whole = max(float(np.trace(self.first)) / self.dim, 0.0) + float(self.scales @ self.sizes)
        edge = CLEAR * math.sqrt(self.dim) * math.hypot(self.sd, self.sizes[place] * self.shape_sd)
        apart = self.outer[place] - self.sizes[place] * shape
        if eigenvalues_within(apart, edge):  # most often; vectors would take much longer
            return np.zeros_like(apart)
        values, vectors = np.linalg.eigh(apart)
        kept = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
        return self.size / whole * self.scales[place] * ((vectors * kept) @ vectors.T)

    def apart(self, shape: Array, residual: Array) -> Array:
        """(K, p) Q'(M_k - c_k S) v, where v is the ``residual``, the label less the fit, of length one."""
        return ((self.outer - self.sizes[:, None, None] * shape) @ residual)[:, : self.observed] / np.linalg.norm(residual)

    def disagree(self, shape: Array, residual: Array) -> Array:
        """(K,) whether long rows surely follow another line than that of the ``residual``."""
        apart = self.apart(shape, residual)
        p = apart.shape[1]
        noise = self.sd**2 + (self.sizes * self.shape_sd) ** 2
        return np.sum(apart**2, axis=1) > noise * (p + SURELY * math.sqrt(2 * p))

    def seen_along(self, directions: Array) -> Array:
        """(K, m) mean squares of the outer matrices along unit vectors (any number, m) in the basis, with their noise."""
        return np.asarray(np.sum(directions * (self.outer @ directions), axis=1))

    def expected_along(self, directions: Array) -> Array:
        """(K, m) the same by a power law, shared out as the declared bounds let rows reach."""
        reached = _reached(self.scales, np.sum((directions.T @ self.through) ** 2, axis=1))
        return self.usual[:, None] * np.minimum(reached / self.reaches[:, None], WHOLE * self.dim)

    def judged(self, shape: Array, residual: Array, believed: Array | None) -> Array:
        """(K,) the share to believe of each outer matrix.

        ``residual`` is the label less the fit, in the basis. Shares that were ``believed`` before are gone away from by half."""
        seen = self.seen_along(residual[:, None])[:, 0] / float(residual @ residual)
        near = NEAR * math.sqrt(2) * self.sd
        own = np.clip(np.clip(self.sizes, seen - near, seen + near), 0.0, self.dim * self.sizes)  # at most the trace
        agreed = np.minimum(AGREEMENT**2 + 1 / np.maximum(self.counts, 1.0)[:, None], 1.0)
        prior = agreed * (self.sizes * own)[:, None]
        likely = self._likelihood(prior, self.apart(shape, residual))
        chance = _rising(np.maximum(np.exp(likely - likely.max(axis=1, keepdims=True)), FAINTEST))
        shares = _mean(prior / (prior + self.sd**2), chance * CAREFUL)
        return shares if believed is None else (shares + believed) / 2

    def left_open(self, shape: Array, residual: Array, believed: Array, directions: Array, fit: Array) -> Open:
        """What is left open by what is not ``believed``. ``directions`` (any number, m) are unit vectors in the basis. So is ``fit``, that
        of what is said of the label, or it is zero."""
        length, weights = float(residual @ residual), self.scales * (1 - believed)
        unit = residual[:, None] / math.sqrt(length)
        noise, apart = 2 * self.sd**2, self.apart(shape, residual)
        own = with_seen(self.expected_along(unit), self.seen_along(unit), noise)[:, 0]
        agreed = np.minimum(OPEN**2 + 1 / np.maximum(_rows(self.dim * self.usual, self.scales), 1.0)[:, None], 1.0)
        likely = np.sum(self._likelihood(agreed * (self.usual * own)[:, None], apart), axis=0)
        chance = np.exp(likely - likely.max()) / OPEN
        there = with_seen(self.expected_along(directions), self.seen_along(directions), noise)
        sizes = np.column_stack([self.usual, there])
        sums = np.sqrt(agreed).T @ (
            weights[:, None] * np.sqrt(own[:, None] * sizes)
        )  # all scales agree: long rows are of a kind
        variance = length * (chance @ sums**2) / chance.sum()
        variance[1:] *= (1 + BENT * (fit @ directions) ** 2) / (1 + BENT * float(fit @ fit) / apart.shape[1])
        more = weights @ (own - self.usual * float(unit[:, 0] @ shape @ unit[:, 0]))
        return Open(float(variance[0]), variance[1:], length * abs(float(more)))

    def _likelihood(self, prior: Array, apart: Array) -> Array:
        """(K, any number) the logarithm of the likelihood of what was seen (K, p), whose prior variances are (K, any number)."""
        total = prior + self.sd**2
        return -0.5 * (apart.shape[1] * np.log(total) + np.sum(apart**2, axis=1)[:, None] / total)


def _rows(traces: Array, scales: Array) -> Array:
    """About how many rows outer matrices hold: one counts for a tenth or so in the next matrix, for a quarter further out."""
    return np.asarray(traces * np.where(scales == scales[0], 9.0, 3.5))


def _reached(scales: Array, squares: Array) -> Array:
    """(K, m) how far rows of each scale reach in directions, squared. It is no more than all of their length, and no more than what rows do
    whose cells lie at the ends of the declared bounds: ``squares`` (m,) in the mean of all such rows."""
    return np.asarray(np.minimum(squares, START * scales[:, None]))


def _mean(values: Array, weights: Array) -> Array:
    return np.sum(values * weights, axis=1) / np.sum(weights, axis=1)


def _rising(likely: Array) -> Array:
    """(K, grid) the posterior of rho at each scale: before anything is seen, it is at least that of the scale before."""
    posterior, prior = [], EXPECTED
    above = np.cumsum(RISING[::-1])[::-1]  # of the weights, those of values that are at least this one
    for each in likely:
        posterior.append(each * prior / np.sum(each * prior))
        prior = RISING * np.cumsum(posterior[-1] / above)
    return np.array(posterior)
