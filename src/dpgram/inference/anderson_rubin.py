"""Confidence sets for coefficients with instruments that hold however weak the instruments are (Anderson and Rubin 1949).

At the true coefficients the products of instruments with errors have mean zero and a covariance that is known and depends on the
coefficients. Their squared length in units of it,

    T(v) = (Z'Mv)' V(v)^-1 (Z'Mv),

made as small as possible over all other coefficients, is about chi-square with q - p + 1 degrees of freedom: q instruments, p coefficients.
A set contains the values that this test does not reject. It may be an interval, two half-lines, the whole line, or empty.

T does not change when v is multiplied by a number. So T of a combination X d alone, without y, is what T tends to when coefficients go to
infinity along d. Divided by its degrees of freedom, its smallest value is the strength of the instruments: with one endogenous regressor,
and without noise, the F statistic of the first stage. Where it is small, sets are unbounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import brentq
from scipy.special import chdtri, fdtri

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import TINY
from dpgram.inference.intervals import check_confidence, quantile
from dpgram.inference.pivot import Pivot, p_value, profile
from dpgram.regression.channel import channel
from dpgram.regression.instruments import Conditions, Estimate, with_fitted

Array = np.ndarray

WEAK = 10.0  # Staiger and Stock (1997): below this F, two-stage least squares and its standard errors mislead
STRONG = 104.7  # Lee, McCrary, Moreira and Porter (2022): above this F, the usual 95 % interval is right
SHARE = 0.1  # of the variance of a coefficient, in directions that are not strong: above it, its interval comes from the test
ITERATIONS = 60
GRID = np.tan(np.linspace(-0.5, 0.5, 42)[1:-1] * math.pi)  # standard errors from the estimate
STILL = 1e-9
WALD, BY_TEST, AUTO = "wald", "anderson-rubin", "auto"
METHODS = (AUTO, WALD, BY_TEST)

Pieces = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ConfidenceSet:
    """The values of a coefficient that a test does not reject.

    Attributes
    ----------
    pieces : tuple of (float, float)
        The intervals that the set consists of, from left to right. Ends can be infinite. Empty if the test rejects every value.
    method : str
        How the set was made: "wald" or "anderson-rubin".
    """

    pieces: Pieces
    method: str

    @property
    def lower(self) -> float:
        """Smallest value of the set. Infinite if the set has no end on this side, NaN if it is empty."""
        return self.pieces[0][0] if self.pieces else math.nan

    @property
    def upper(self) -> float:
        """Largest value of the set. Infinite if the set has no end on this side, NaN if it is empty."""
        return self.pieces[-1][1] if self.pieces else math.nan

    @property
    def bounded(self) -> bool:
        """Whether the set has both ends."""
        return bool(self.pieces) and math.isfinite(self.lower) and math.isfinite(self.upper)

    @property
    def words(self) -> str:
        """The set in words."""
        if not self.pieces:
            return "empty"
        if self.pieces == ((-math.inf, math.inf),):
            return "the whole line"
        return " and ".join(_piece(low, high) for low, high in self.pieces)


def _piece(low: float, high: float) -> str:
    if math.isinf(low):
        return f"all values up to {high:.5g}"
    return f"all values from {low:.5g}" if math.isinf(high) else f"{low:.5g} to {high:.5g}"


@dataclass(frozen=True)
class Diagnostic:
    """A test about the instruments.

    Attributes
    ----------
    name : str
        What was tested.
    statistic : float
        The chi-square statistic, privacy noise included.
    degrees : int
        Its degrees of freedom.
    p_value : float
        The p-value. It comes from an F distribution if the noise of the release has few degrees of freedom.
    """

    name: str
    statistic: float
    degrees: int
    p_value: float

    @property
    def f(self) -> float:
        """The F statistic: the chi-square statistic divided by its degrees of freedom."""
        return self.statistic / self.degrees


@dataclass(frozen=True, eq=False)
class Test:
    """The test behind the sets, for one regression."""

    of: Conditions
    at: Estimate

    @property
    def degrees(self) -> int:
        """Of freedom, of the test of one coefficient."""
        return self.of.over + 1

    @cached_property
    def covariance_parts(self) -> tuple[Array, Array]:
        """Error variance per sum of squares of [X, y] after projection, and its weight in each direction of the instruments."""
        return self.of.sampled(1.0, len(self.of.own)) * self.of.unexplained, np.maximum(self.of.own, 0.0)

    def statistic(self, v: Array) -> tuple[float, Array, Array]:
        """T, its gradient, and the diagonal part of the covariance."""
        of, (errors, weight) = self.of, self.covariance_parts
        m, along, noise, sampled = of.cross @ v, of.noise_cross @ v, of.noise_square @ v, errors @ v
        sigma = float(v @ sampled)
        if sigma <= 0:
            sigma, sampled = 0.0, np.zeros_like(v)
        diagonal = of.noise_own * float(v @ noise) + weight * sigma + of.by_clipping * float(v @ v) + TINY
        over = m / diagonal
        shaded = along / diagonal
        share = float(along @ over) / (1 + float(along @ shaded))
        y = over - share * shaded
        squares = y**2
        pulled = (of.noise_own @ squares) * noise + (weight @ squares) * sampled + of.by_clipping * squares.sum() * v
        gradient = 2 * (of.cross.T @ y - pulled - float(along @ y) * (of.noise_cross.T @ y))
        return float(m @ y), gradient, diagonal

    def least(self, start: Array, free: Array) -> tuple[float, Array]:
        """The smallest T that steps from ``start`` lead to, within the directions ``free`` (p + 1, k), and where it is."""
        v = start
        best, gradient, diagonal = self.statistic(v)
        if free.shape[1] == 0:
            return best, v
        damping = 1e-3
        for _ in range(ITERATIONS):
            moved = self.of.cross @ free
            metric = moved.T @ (moved / diagonal[:, None])
            metric[np.diag_indices_from(metric)] += damping * metric.diagonal().max() + TINY
            step = free @ np.linalg.solve(metric, free.T @ gradient / -2)
            tried, slope, spread = self.statistic(v + step)
            if tried < best:
                settled = best - tried < STILL * (1 + best)
                v, best, gradient, diagonal, damping = v + step, tried, slope, spread, max(damping / 5, 1e-12)
                if settled:
                    break
            else:
                damping *= 6
                if damping > 1e8:
                    break
        return best, v

    def weakest(self, within: Array) -> tuple[float, Array]:
        """The smallest T over all combinations in the span of ``within`` (p + 1, k), orthonormal, and the combination."""
        of, (errors, weight) = self.of, self.covariance_parts
        diagonal = self.statistic(of.errors(self.at.b))[2]
        size = float(np.sum(of.noise_own / diagonal)), float(np.sum(weight / diagonal)), float(np.sum(1 / diagonal))
        scale = size[0] * of.noise_square + size[1] * errors + size[2] * of.by_clipping * np.eye(len(errors))
        inner = within.T @ (of.cross.T @ (of.cross / diagonal[:, None])) @ within
        outer = within.T @ scale @ within
        values, vectors = np.linalg.eigh((outer + outer.T) / 2)
        root = vectors / np.sqrt(np.maximum(values, 1e-12 * max(values[-1], TINY)))
        start = within @ (root @ np.linalg.eigh(root.T @ inner @ root)[1][:, 0])
        best, v = math.inf, start / np.linalg.norm(start)
        for _ in range(5):
            found, v = self.least(v, within @ null_space((within.T @ v)[None]))
            v = v / np.linalg.norm(v)
            if best - found < 1e-6 * (1 + found):
                break
            best = found
        return found, v

    @cached_property
    def regressors(self) -> Array:
        """(p + 1, p) a basis of the combinations without y."""
        return np.eye(self.of.count + 1)[:, :-1]

    @cached_property
    def least_strong(self) -> tuple[float, Array]:
        """What T tends to at infinity at least, and along which combination of regressors."""
        return self.weakest(self.regressors)

    def unbounded(self, confidence: float) -> bool:
        """Whether sets by the test have no end, at least on one side."""
        return self.least_strong[0] <= self.limit(confidence)

    @property
    def strength(self) -> float:
        """F of the weakest combination of regressors, noise counted."""
        return self.least_strong[0] / self.degrees

    def first_stage(self, place: int) -> Diagnostic:
        """The test that the excluded instruments say nothing of the endogenous regressor at ``place``."""
        of = self.of
        exogenous = [j for j in range(of.count) if j not in of.asked.endogenous_places]
        columns = np.vstack([of.triangle[:, [*exogenous, place]], np.zeros(len(exogenous) + 1)])
        start, (controls, _) = columns[:, -1], np.linalg.qr(columns[:, :-1])
        start = start - controls @ (controls.T @ start)
        start = start / np.linalg.norm(start)
        if len(exogenous):  # what exogenous regressors explain of it, by the noisy matrix itself
            inner = controls.T @ of.square @ controls
            start = start - controls @ np.linalg.lstsq(inner, controls.T @ of.square @ start, rcond=None)[0]
        found, _ = self.least(start, controls)
        count = len(of.asked.excluded)
        return Diagnostic(of.asked.design.names[place], found, count, p_value(found, count, of.degrees))

    @cached_property
    def by_test(self) -> Array:
        """Which coefficients owe more than a little of their variance to directions in which instruments are not strong."""
        of = self.of
        diagonal = self.statistic(of.errors(self.at.b))[2]
        moved = of.cross[:, :-1]
        information = moved.T @ (moved / diagonal[:, None])
        rows, p = of.to_own, of.count
        free, weak = self.regressors, np.zeros(p)
        for _ in range(p):  # a direction less each time
            found, v = self.weakest(free)
            if found / self.degrees >= STRONG:
                break
            d = v[:-1]
            weak += (rows @ d) ** 2 / max(float(d @ information @ d), TINY)
            across = free[:-1].T @ information @ d
            rest = np.linalg.qr(across[:, None], mode="complete")[0][:, 1:]  # what is left is unrelated to d
            if rest.shape[1] == 0:
                break
            free = free @ rest
        try:
            total = np.vecdot(rows, np.linalg.solve(information, rows.T).T)
        except np.linalg.LinAlgError:
            return np.ones(p, dtype=bool)
        return weak > SHARE * total

    def limit(self, confidence: float) -> float:
        """What T is at most, within a set."""
        tail, count = 1 - confidence, self.degrees
        if np.isinf(self.of.degrees):
            return float(chdtri(count, tail))
        return count * float(fdtri(count, self.of.degrees, confidence))

    def of_coefficient(self, place: int) -> Profile:
        return Profile(self, place)

    @cached_property
    def overall(self) -> tuple[float, Array]:
        """The smallest T over all coefficients, and those."""
        found, v = self.least(self.of.errors(self.at.b), self.regressors)
        return found, -v[:-1]

    def overidentification(self) -> Diagnostic | None:
        """The test that one vector of coefficients agrees with all instruments; None where there are no more instruments than needed."""
        count = self.of.over
        if not count:
            return None
        found = self.overall[0]
        return Diagnostic("all instruments agree", found, count, p_value(found, count, self.of.degrees))


class Profile:
    """The smallest T with one coefficient given."""

    def __init__(self, test: Test, place: int):
        self.test, self.row, self.base = test, test.of.to_own[place], float(test.of.base[place])
        spanned = null_space(self.row[None])
        self.free = np.vstack([spanned, np.zeros(spanned.shape[1])])
        self.estimate = float(self.row @ test.at.b + self.base)
        self.se = math.sqrt(max(float(self.row @ test.at.covariance @ self.row), 0.0))
        self.elsewhere = (
            test.weakest(self.free)[0] if self.free.shape[1] else math.inf
        )  # where other coefficients go to infinity
        self._last: Array | None = None

    def __call__(self, value: float) -> float:
        test, row = self.test, self.row
        starts = [test.at.b, test.overall[1]]
        if self._last is not None:
            starts.append(self._last)
        weak = test.least_strong[1][:-1]
        moves = [row / float(row @ row)] * len(starts)
        if abs(along := float(row @ weak)) > 1e-6 * np.linalg.norm(row):
            starts.append(test.at.b)
            moves.append(weak / along)
        points = [
            test.of.errors(b + move * (value - self.base - float(row @ b))) for b, move in zip(starts, moves, strict=True)
        ]
        first = [test.statistic(v)[0] for v in points]
        best, found = math.inf, points[0]
        for k in np.argsort(first)[:2]:
            reached, v = test.least(points[k], self.free)
            if reached < best:
                best, found = reached, v
        self._last = -found[:-1]
        return min(best, self.elsewhere)

    def p_value(self, value: float) -> float:
        return p_value(self(value), self.test.degrees, self.test.of.degrees)

    def accepted(self, confidence: float) -> Pieces:
        """The values that are not rejected."""
        limit, lowest = self.test.limit(confidence), self.test.overall
        if lowest[0] > limit:
            return ()
        if self.elsewhere <= limit:
            return ((-math.inf, math.inf),)
        inside_at = float(self.row @ lowest[1] + self.base)
        scale = self.se if 0 < self.se < math.inf else max(abs(inside_at), 1.0)
        at = np.unique(np.append(GRID, (inside_at - self.estimate) / scale))

        def excess(t: float) -> float:
            return self(self.estimate + scale * t) - limit

        values = [excess(t) for t in at]
        far = self.test.unbounded(confidence)
        ends: list[float] = [-math.inf] if far else []
        if far != (values[0] <= 0):
            ends.append(self._crossing(excess, at[0], values[0], -1.0))
        for low, high, left, right in zip(at, at[1:], values, values[1:], strict=False):
            if (left <= 0) != (right <= 0):
                ends.append(brentq(excess, low, high, xtol=1e-10, rtol=1e-10))
        if far != (values[-1] <= 0):
            ends.append(self._crossing(excess, at[-1], values[-1], 1.0))
        if far:
            ends.append(math.inf)
        own = [self.estimate + scale * t for t in ends]
        return tuple(zip(own[::2], own[1::2], strict=True))

    @staticmethod
    def _crossing(excess: Callable[[float], float], start: float, value: float, sign: float) -> float:
        """Where, beyond the grid, values begin or cease to be rejected; infinite where that is too far to tell."""
        low = high = start
        for _ in range(40):
            low, high = high, high + sign * 2 * abs(high)
            if (excess(high) <= 0) != (value <= 0):
                return float(brentq(excess, *sorted((low, high)), xtol=1e-10, rtol=1e-10))
        return sign * math.inf


def confidence_sets(test: Test, confidence: float, method: str = AUTO) -> tuple[ConfidenceSet, ...]:
    """One set for each coefficient: Wald's where instruments are strong beyond doubt, else that of the test."""
    check_confidence(confidence)
    estimate, se = test.of.own_units(test.at.b), standard_errors(test.of, test.at.covariance)
    reach = quantile(confidence, test.of.degrees) * se
    return tuple(
        ConfidenceSet(test.of_coefficient(j).accepted(confidence), BY_TEST)
        if tested
        else ConfidenceSet(((float(estimate[j] - reach[j]), float(estimate[j] + reach[j])),), WALD)
        for j, tested in enumerate(chosen(test, method))
    )


def p_values(test: Test, method: str = AUTO, values: Array | float = 0.0) -> Array:
    """Of the tests that each coefficient is zero, or one of ``values`` (p,): the same tests that the sets come from."""
    values = np.broadcast_to(values, test.of.base.shape)
    z = (test.of.own_units(test.at.b) - values) / standard_errors(test.of, test.at.covariance)
    return np.array(
        [
            test.of_coefficient(j).p_value(float(values[j])) if tested else p_value(z[j] ** 2, 1, test.of.degrees)
            for j, tested in enumerate(chosen(test, method))
        ]
    )


def chosen(test: Test, method: str) -> Array:
    """Which coefficients get a set by the test."""
    if method not in METHODS:
        raise ModelError(f"intervals is {method!r} and must be one of {', '.join(METHODS)}.")
    return test.by_test if method == AUTO else np.full(test.of.count, method == BY_TEST)


def standard_errors(of: Conditions, covariance: Array) -> Array:
    """Of the coefficients in own units."""
    return np.sqrt(np.maximum(np.vecdot(of.to_own @ covariance, of.to_own), 0.0))


def endogeneity(evidence: Evidence, of: Conditions) -> Diagnostic:
    """Wu and Hausman's test that the endogenous regressors are exogenous: what instruments say of them says no more of the target."""
    design, places = with_fitted(of)
    seen = channel(evidence, design)
    rows, values = seen.to_own[list(places)], -seen.base[list(places)]
    found = float(profile(Pivot.exactly(seen), rows[None], values[None])[0])
    return Diagnostic("regressors are exogenous", found, len(places), p_value(found, len(places), seen.degrees))
