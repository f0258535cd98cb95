"""What controls do to one coefficient: how its values in several regressions vary together, and what each group of controls adds.

To first order the error of a coefficient is a'Eu. E is what noise and the sampling of rows add to the matrix, a is the coefficient's row of
the inverse and u what the regression leaves of its label, both as combinations of released columns. All regressions see the same E, so for
two of them

    Cov(a'Eu, c'Ew) = K_ac K_uw + K_aw K_uc + ...

with the K of ``Evidence.noise_law`` for the noise. For rows whose errors have one variance K is the matrix itself, over the square root of
the number of rows. Standard errors stay those of each regression by itself (``inference.intervals``): correlations are taken from here.

What clipping leaves open is a third part. It is no noise: long rows may lie in the very directions of a coefficient and its controls, and
then move two regressions less alike than noise does. So only nine tenths of the correlation are counted, which makes changes less
certain.

The decomposition is that of Gelbach (2016). With b the coefficient in the short regression and beta all those of the long one,
b_short - b_long = sum_k delta_k beta_k over the controls k, delta_k the coefficient of interest in the short regression with control k as
its target. A group's part is the sum over its controls, whatever the order in which groups enter. Without noise it is exact. Noise leaves a
remainder of second order, because every regression removes its own bias: it is shared out in proportion to variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import quantile, uncertainty, weakly_identified
from dpgram.regression.channel import Channel

Array = np.ndarray
Term = tuple[Channel, Array]  # a regression, and a combination of its coefficients

ALIKE = 0.9  # of the correlation that noise has: how much clipping is taken to move two regressions alike


@dataclass(frozen=True, eq=False)
class Moved:
    """Numbers with standard errors and ends of intervals, which are infinite where the release does not identify them."""

    values: Array
    se: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, values: Array, variances: Array, known: Array, reach: float) -> Moved:
        se = np.sqrt(np.maximum(variances, 0.0))
        far = np.where(known, reach * se, np.inf)
        return cls(values, se, values - far, values + far)


def changes(evidence: Evidence, seen: Sequence[Channel], place: int, confidence: float) -> Moved:
    """From each regression to the next: how far the coefficient at ``place`` moves."""
    values = np.array([one.own(one.estimate)[place] for one in seen])
    known = np.array([not weakly_identified(one)[place] for one in seen])
    whole = _covariance(evidence, [(one, _unit(one, place)) for one in seen])
    own, apart = np.diag(whole), np.diag(whole, 1)
    reach = quantile(confidence, min(one.degrees for one in seen))
    return Moved.of(np.diff(values), own[1:] + own[:-1] - 2 * apart, known[1:] & known[:-1], reach)


def contributions(
    evidence: Evidence,
    ends: tuple[Channel, Channel],
    place: int,
    groups: Sequence[Sequence[tuple[int, Channel]]],
    confidence: float,
) -> Moved:
    """What each group of controls adds to the way from the short regression to the long one, the ``ends``.

    The coefficient has the same ``place`` in both. A group lists its coefficients' places in the long regression, and for each of them the
    short regression that explains it."""
    short, long = ends
    beta, weak = long.own(long.estimate), weakly_identified(long)
    sums, variances = np.zeros(len(groups)), np.zeros(len(groups))
    for number, group in enumerate(groups):
        delta = np.zeros(len(beta))
        for j, aside in group:
            delta[j] = aside.own(aside.estimate)[place]
        terms: list[Term] = [(long, delta), *((aside, beta[j] * _unit(aside, place)) for j, aside in group)]
        sums[number], variances[number] = delta @ beta, max(float(_covariance(evidence, terms).sum()), 0.0)
    whole, spread = short.own(short.estimate)[place] - beta[place], variances.sum()
    shares = variances / spread if spread > 0 else np.full(len(groups), 1 / len(groups))
    amounts = sums + shares * (whole - sums.sum())
    known = np.array([not any(weak[j] for j, _ in group) for group in groups])
    known &= not (weak[place] or weakly_identified(short)[place])
    return Moved.of(-amounts, variances, known, quantile(confidence, min(short.degrees, long.degrees)))


def _unit(seen: Channel, place: int) -> Array:
    return np.eye(len(seen.gain))[place]


def _covariance(evidence: Evidence, terms: Sequence[Term]) -> Array:
    """Of combinations of coefficients of several regressions, from all sources together."""
    noise, sampling, clipping = np.array([_parts(*term) for term in terms]).T
    by_noise, by_rows = _correlations(evidence, *map(np.stack, zip(*(influence(*term) for term in terms), strict=True)))
    alike = np.where(np.eye(len(terms)) > 0, 1.0, ALIKE * by_noise)
    return by_noise * np.outer(noise, noise) + by_rows * np.outer(sampling, sampling) + alike * np.outer(clipping, clipping)


def _parts(seen: Channel, combination: Array) -> tuple[float, float, float]:
    """Standard errors of a combination of coefficients by noise, by the sampling of rows and by clipping."""
    known = uncertainty(seen)
    row = (combination @ known.back) ** 2
    noise = np.sqrt(row @ known.by_noise + (combination @ known.along) ** 2)
    clipping = (combination @ known.leaning) ** 2 @ known.by_clipping
    return float(noise), float(np.sqrt(row @ known.by_rows)), float(np.sqrt(clipping))


def influence(seen: Channel, combination: Array) -> tuple[Array, Array]:
    """a and u of a combination of coefficients in own units: its error is a'Eu to first order."""
    design, basis = seen.design, seen.basis
    row = seen.axes @ (seen.weight / seen.divisor * (combination @ seen.to_own)) / seen.label_scale
    a = design.regressors @ (row if basis.triangle is None else np.linalg.solve(basis.triangle, row))
    scaled = np.linalg.solve(design.to_own_units, seen.own(seen.estimate) - design.offset)
    return a, design.label - design.regressors @ scaled


def _correlations(evidence: Evidence, a: Array, u: Array) -> tuple[Array, Array]:
    """Of all a'Eu: by the privacy noise, and by the sampling of rows."""
    many, forms = len(a), np.concatenate([a, u])
    products, excess, met = evidence.noise_law(forms)
    crossed, both = products[:many, many:], met[:many] * met[many:]
    noise = products[:many, :many] * products[many:, many:] + crossed * crossed.T + excess * both @ both.T
    matrix, turn = evidence.repaired_there
    turned = forms if turn is None else forms @ turn.T
    sums = turned @ matrix @ turned.T
    return _correlation(noise), _correlation(sums[:many, :many] * sums[many:, many:])


def _correlation(covariance: Array) -> Array:
    size = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    correlation = np.clip(covariance / np.outer(*[np.where(size > 0, size, np.inf)] * 2), -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
