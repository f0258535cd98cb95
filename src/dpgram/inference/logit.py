"""Logit coefficients from a linear regression of a 0/1 target, by the discriminant route (Haggstrom 1983), with standard errors.

Let y be 0 or 1, with mean p, q = 1 - p, and let the features be normal in both groups, with one covariance S and means m1, m0. Then
P(y = 1 | x) is a logit with slopes beta = S^-1 (m1 - m0) and intercept alpha = log(p / q) - (m1 + m0)'beta / 2. With the least-squares
coefficients a, b of y on x and s = (residual sum of squares) / n, Sherman and Morrison's formula gives

    beta = b / s,    alpha = log(p / q) + (1/p - 1/q) / 2 + (a - 1/2) / s.

So slopes and their noise follow from those of b and of s. The sampling variance of beta, for normal groups, is
Cov(b) / s^2 + 2 beta beta' / n: that of a ratio, as if b and s were independent and the errors normal. With M = (m1 + m0) / 2,
D = beta'S beta and c = 1 / (n p q), alpha + M'beta has the variance c (1 + D/4), and the covariance -c (q - p) beta / 2 with beta.

s is that of clipped rows. What it may lack of long ones counts as a standard error of s, and with the clipping of beta. So does what hidden
features may explain of it, with the noise: any part, from nothing to all that is plausible.

The hypothesis beta_j = t is b_j - t s = 0, which is linear in what was estimated. So intervals are Fieller's: all t that a test does not
reject. Where s may be zero the set is the whole line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import bilinear_covariance
from dpgram.inference.intervals import Intervals, automatic, quantile, uncertainty, weakly_identified
from dpgram.regression.channel import Channel, channel, channel_of_shrunk
from dpgram.regression.design import Design

Array = np.ndarray

REACHED = 0.5  # of what hidden features may explain, as a standard error: 95 % intervals then reach as far as all of it
UNCLEAR = 2.0  # standard errors: a share that is so close to 0 or 1 may well be that
HIDDEN = 0.25  # a standard error of a share that leaves nothing known of it


@dataclass(frozen=True, eq=False)
class Logistic:
    """Coefficients of a logit, the intercept first, with the parts of their covariance."""

    estimate: Array  # (p,)
    noise: Array  # (p, p) from the privacy noise
    sampling: Array
    clipping: Array
    share: float  # of rows where the target is 1
    share_se: float
    residual: float  # s
    residual_se: float
    distance: float  # D, Mahalanobis' squared distance of the groups
    mixed: Array  # (p,) covariance of the privacy noise in s and in what is divided by it
    apart: float  # alpha, but for what is divided by s

    @property
    def covariance(self) -> Array:
        return self.noise + self.sampling + self.clipping


def logistic(evidence: Evidence, design: Design) -> Logistic:
    """The logit of a regression with an intercept, whose target is 0 or 1. s is that of rows as they were shrunk, as R-squared is."""
    target, seen, plain = design.target, channel(evidence, design), channel_of_shrunk(evidence, design)
    known, rows, effect = uncertainty(seen), float(seen.rows), seen.design_effect
    theta = seen.own(seen.estimate)
    share, means, between = _means(plain)
    noise = _noise(plain, share)  # of theta, s and the share
    factor = np.ones(len(noise))  # so that the standard errors of theta are those of the regression
    with np.errstate(invalid="ignore", divide="ignore"):
        factor[:-2] = np.nan_to_num(np.sqrt(np.diag(known.noise) / np.diag(noise)[:-2]), nan=1.0, posinf=1.0)
    noise = factor[:, None] * noise * factor
    share_se = float(np.sqrt(noise[-1, -1] + effect * max(share * (1 - share), 0.0) / rows))
    if not 0 < share < 1:
        raise _without_share(target, share, share_se)
    s = float(plain.error_squares()) / rows * float(plain.label_scale) ** 2
    if not s > 0 and min(share, 1 - share) < UNCLEAR * share_se:
        raise _without_share(target, share, share_se)
    if not s > 0:
        raise ModelError(
            f"the noise of the release hides what the features leave of {target!r}, so there is no logit at this budget. Use fewer "
            f"features, or a release with a larger budget."
        )
    hidden = REACHED * seen.squares_hidden
    p, q, a, b = share, 1 - share, theta[0], theta[1:]
    beta = b / s
    apart = np.log(p / q) + (1 / p - 1 / q) / 2
    alpha = apart + (a - 0.5) / s
    turn = np.zeros((len(theta), len(theta) + 2))  # derivatives by theta, s and the share
    turn[:, : len(theta)] = np.eye(len(theta)) / s
    turn[0, -2], turn[1:, -2] = -(a - 0.5) / s**2, -beta / s
    turn[0, -1] = -((q - p) ** 2) / (2 * p**2 * q**2)
    mixed = noise[:-2, -2].copy()
    mixed[0] += s * turn[0, -1] * noise[-1, -2]  # what the share moves counts with alpha's numerator
    by_noise = turn @ noise @ turn.T
    of_slopes = known.sampling[1:, 1:] / s**2 + 2 * effect * np.outer(beta, beta) / rows
    distance, c = max(1 / s - 1 / (p * q), 0.0), effect / (rows * p * q)
    middle = means + (q - p) * between / 2
    inner = np.zeros((len(theta), len(theta)))
    inner[0, 0], inner[1:, 1:] = c * (1 + distance / 4), of_slopes
    inner[0, 1:] = inner[1:, 0] = -c * (q - p) / 2 * beta
    back = np.eye(len(theta))
    back[0, 1:] = -middle
    return Logistic(
        np.concatenate([[alpha], beta]),
        by_noise + (s * hidden) ** 2 * np.outer(turn[:, -2], turn[:, -2]),
        back @ inner @ back.T,
        known.clipping / s**2 + (s * seen.squares_left_open) ** 2 * np.outer(turn[:, -2], turn[:, -2]),
        share,
        share_se,
        s,
        float(np.sqrt(noise[-2, -2] + s**2 * (2 * effect / rows + seen.squares_left_open**2 + hidden**2))),
        distance,
        mixed,
        apart,
    )


def _without_share(target: str, share: float, se: float) -> ModelError:
    """The error where the share of ones may be 0, or 1."""
    if not se < HIDDEN:
        return ModelError(
            f"the noise of the release hides in what share of the rows {target!r} is 1, so there is no logit at this budget. Use a release "
            f"with a larger budget."
        )
    only, other = (1, 0) if share > 0.5 else (0, 1)
    return ModelError(
        f"the release cannot tell the share of rows in which {target!r} is 1 from {only} (standard error {se:.2g}), and a logit needs rows "
        f"of both kinds. Perhaps all rows are {only}. If some are {other}, use a release with a larger budget."
    )


def intervals(seen: Channel, of: Logistic, confidence: float) -> Intervals:
    """Intervals of the coefficients by Fieller's method; infinite where the noise leaves nothing known."""
    reach, linear = quantile(confidence, seen.degrees), automatic(seen, confidence)
    s, spread = of.residual, of.residual_se**2
    ratio = of.estimate - of.apart * (np.arange(len(of.estimate)) == 0)
    over = ratio * s
    theirs = uncertainty(seen).se ** 2
    theirs[0] = max(s**2 * of.covariance[0, 0] + 2 * ratio[0] * of.mixed[0] - ratio[0] ** 2 * spread, 0.0)
    leading = s**2 - reach**2 * spread
    if leading <= 0:  # s may be zero
        return Intervals(np.full(len(over), -np.inf), np.full(len(over), np.inf), ("fieller",) * len(over))
    half = over * s - reach**2 * of.mixed
    root = np.sqrt(np.maximum(half**2 - leading * (over**2 - reach**2 * theirs), 0.0))
    lower, upper = (half - root) / leading, (half + root) / leading
    weak = np.array([method == "fieller" for method in linear.method])
    if weak.any():  # the set of a linear coefficient, over both ends of s
        ends = s + reach * np.sqrt(spread) * np.array([-1.0, 1.0])
        lower = np.where(weak, np.min(linear.lower[:, None] / ends, axis=1), lower)
        upper = np.where(weak, np.max(linear.upper[:, None] / ends, axis=1), upper)
    if weak[0]:
        lower[0], upper[0] = -np.inf, np.inf
    lower[0], upper[0] = lower[0] + of.apart, upper[0] + of.apart
    return Intervals(lower, upper, ("fieller",) * len(over))


def probabilities(seen: Channel, of: Logistic, features: Array, confidence: float) -> tuple[Array, Array, Array]:
    """P(y = 1) for rows of ``features``, and the ends of its intervals; 0 and 1 where the release does not say."""
    score = features @ of.estimate
    variance = np.einsum("ij,jk,ik->i", features, of.covariance, features)
    reach = quantile(confidence, seen.degrees) * np.sqrt(np.maximum(variance, 0.0))
    reach = np.where(weakly_identified(seen, features), np.inf, reach)
    return _logistic(score), _logistic(score - reach), _logistic(score + reach)


def _logistic(score: Array) -> Array:
    return (1 + np.tanh(score / 2)) / 2


def _means(seen: Channel) -> tuple[float, Array, Array]:
    """The share of rows where the target is 1, the means of the features in own units, and how far those of the groups are apart."""
    p = len(seen.gain)
    gram = seen.basis.block - seen.law.shift * np.eye(p + 1)
    columns = np.eye(p) if seen.basis.triangle is None else seen.basis.triangle
    regressors = np.vstack([columns, np.zeros(p)])
    label = np.append(seen.basis.along, seen.basis.label_scale)
    sums = regressors.T @ gram @ np.column_stack([regressors[:, 0], label])
    count = max(float(sums[0, 0]), 1.0)
    means, products = (np.linalg.solve(seen.design.to_own_units.T, column) for column in (sums / count).T)
    share = float(sums[0, 1]) / count
    varied = share * (1 - share)
    between = (products[1:] - share * means[1:]) / varied if varied > 0 else np.zeros(p - 1)
    return share, means[1:], between


def _noise(seen: Channel, share: float) -> Array:
    """Covariance of the privacy noise in the linear coefficients, in s and in the share, to first order.

    Each moves by a bilinear form l'E r of the noise E in the basis: a coefficient by one with the residual u, s by u'E u / n."""
    p, scale, rows = len(seen.gain), float(seen.label_scale), float(seen.rows)
    turned = np.vstack([seen.axes, np.zeros((1, p))])  # from directions to the basis
    rules = (seen.to_own * (seen.weight / seen.divisor)) @ turned.T
    u = np.append(-(seen.axes @ seen.estimate), 1.0)
    one = np.eye(p + 1)[0] if seen.basis.triangle is None else np.append(seen.basis.triangle[:, 0], 0.0)
    about = np.append(seen.basis.along, scale) - share * one
    left = np.vstack([rules, u * scale**2 / rows, one / rows])
    right = np.vstack([np.tile(u, (p + 1, 1)), about])
    both = np.vstack([left, right])
    own = both if seen.basis.vectors is None else both @ seen.basis.vectors.T
    return bilinear_covariance(*seen.law.products(both, seen.basis.block), own)
