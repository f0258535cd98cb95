"""Confidence sets and tests with instruments that hold however weak the instruments are (Anderson and Rubin 1949).

At the true coefficients the products of instruments with errors have mean zero and a covariance that is known and depends on the
coefficients. Their squared length in units of it,

    T(v) = (Z'Mv)' V(v)^-1 (Z'Mv),    v = (-b, 1),

made as small as possible over all b that obey r linear restrictions, is about chi-square with q - p + r degrees of freedom: q instruments,
p coefficients. A set contains the values of a combination of coefficients that this test does not reject. It may be an interval, two
half-lines, the whole line, or empty.

T does not change when v is multiplied by a number. So restrictions mean a subspace of all v, and T of a combination X d alone, without
y, is what T tends to when coefficients go to infinity along d. Divided by its degrees of freedom, its smallest value is the strength of
the instruments: with one endogenous regressor, and without noise, the F statistic of the first stage. Where it is small, sets have no end.

Values from minus to plus infinity are a circle: both ends are the same subspace, that of combinations without y. A set is looked for along
the circle, so that no value is too far away to be seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, null_space
from scipy.special import chdtri, fdtri

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import TINY
from dpgram.inference.hypotheses import Tested, apart
from dpgram.inference.hypotheses import jointly as together
from dpgram.inference.intervals import check_confidence, quantile
from dpgram.inference.pivot import p_value
from dpgram.inference.subspaces import Statistic, Subspaces
from dpgram.linalg.roots import root
from dpgram.linalg.symmetric import positive_part
from dpgram.regression.channel import channel
from dpgram.regression.instruments import Conditions, Estimate, with_fitted

Array = np.ndarray

WEAK = 10.0  # Staiger and Stock (1997): below this F, two-stage least squares and its standard errors mislead
STRONG = 104.7  # Lee, McCrary, Moreira and Porter (2022): above this F, the usual 95 % interval is right
SHARE = 0.1  # of the variance of a coefficient, in directions that are not strong: above it, its interval comes from the test
ANGLES = np.linspace(-0.5, 0.5, 43)[1:-1] * math.pi  # of values, in units of a spread around a value
CLOSER = 6  # times, points are added where T may cross its limit twice between two of them
AT_INFINITY = 1e-9  # of a combination: so little of y is none
WALD, BY_TEST, AUTO = "wald", "anderson-rubin", "auto"
METHODS = (AUTO, WALD, BY_TEST)

Pieces = tuple[tuple[float, float], ...]
WHOLE: Pieces = ((-math.inf, math.inf),)


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
        if self.pieces == WHOLE:
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
        """Of freedom, of the test of one combination of coefficients."""
        return self.of.over + 1

    @cached_property
    def statistic(self) -> Statistic:
        """T. No combination has a negative error variance, so what noise made negative counts as zero."""
        of = self.of
        errors = positive_part(of.sampled(1.0, len(of.own)) * of.unexplained)
        last, nothing = np.diag(np.eye(of.count + 1)[-1]), np.zeros(len(of.own))
        found = Statistic(
            of.cross,
            of.noise_cross,
            of.noise_square,
            errors,
            of.noise_own,
            np.maximum(of.own, 0.0),
            nothing + of.by_clipping,
            nothing,
            np.eye(of.count + 1),
            last,
        )
        return found if of.rare is None else found.with_means(np.column_stack([-of.rare.along, of.rare.base]), of.rare.size)

    @cached_property
    def _subspaces(self) -> Subspaces:
        return Subspaces(self.statistic, self.of.errors(self.at.b))

    def least(self, restrictions: Array) -> tuple[float, Array]:
        """The smallest T over all v with ``restrictions`` (c, p + 1) @ v = 0, and where it is.

        For b, ``rows @ b = values`` is the restrictions ``[rows, values]``."""
        found, v = self._subspaces.least(restrictions[None])
        return float(found[0]), v[0]

    def each(self, restrictions: Array) -> Array:
        """(k,) the smallest T with each of ``restrictions`` (k, p + 1) by itself."""
        return self._subspaces.least(restrictions[:, None])[0]

    @cached_property
    def _without_y(self) -> Array:
        return np.eye(self.of.count + 1)[-1:]

    @cached_property
    def far(self) -> float:
        """What T tends to at infinity, at least."""
        return self.least(self._without_y)[0]

    def unbounded(self, confidence: float) -> bool:
        """Whether sets by the test have no end, at least on one side."""
        return self.far <= self.limit(confidence)

    @property
    def strength(self) -> float:
        """F of the weakest combination of regressors that matters for an endogenous one, noise counted."""
        return self._weakest(self._without_y, list(self.of.asked.endogenous_places)) / self.degrees

    def _weakest(self, within: Array, places: list[int]) -> float:
        """The smallest T at infinity within a subspace, along a direction that brings more than a little of what is not known of one of the
        coefficients at ``places``. An exogenous regressor may be harder to see than instruments are, which says nothing of them."""
        rows, information = self.of.to_own[places], self.information(self.of.errors(self.at.b))
        for _ in range(self.of.count):
            inside = null_space(within)[:-1]
            found, v = self.least(within)
            d = v[:-1]
            try:
                spent = np.linalg.solve(inside.T @ information @ inside, (rows @ inside).T)
            except np.linalg.LinAlgError:
                return found
            part = (rows @ d) ** 2 / max(float(d @ information @ d), TINY)
            if inside.shape[1] == 1 or (part > SHARE * np.vecdot(rows @ inside, spent.T)).any():
                return found
            within = np.vstack([within, np.append(information @ d, 0.0)])
        return found

    def first_stage(self, place: int) -> Diagnostic:
        """The test that the excluded instruments say nothing of the endogenous regressor at ``place``."""
        of = self.of
        exogenous = [j for j in range(of.count) if j not in of.asked.endogenous_places]
        used = np.vstack([of.triangle[:, [*exogenous, place]], np.zeros(len(exogenous) + 1)])
        found, count = self._weakest(null_space(used.T).T, [place]), len(of.asked.excluded)
        return Diagnostic(of.asked.design.names[place], found, count, p_value(found, count, of.degrees))

    def information(self, v: Array) -> Array:
        """(p, p) what instruments say of the coefficients, with the covariance at v."""
        moved = self.statistic.mean[:, :-1]
        return moved.T @ (moved / self.statistic.diagonal(v[None])[0][:, None])

    @cached_property
    def _weak(self) -> tuple[Array, Array | None]:
        """The part of the covariance of b that comes from directions in which instruments are not strong, and all of it; None where
        instruments leave a direction out."""
        p = self.of.count
        information = self.information(self.of.errors(self.at.b))
        part, within = np.zeros((p, p)), self._without_y
        for _ in range(p):  # a direction less each time
            found, v = self.least(within)
            if found / self.degrees >= STRONG:
                break
            d = v[:-1]
            part += np.outer(d, d) / max(float(d @ information @ d), TINY)
            within = np.vstack([within, np.append(information @ d, 0.0)])  # what is left is unrelated to d
        try:
            return part, np.linalg.inv(information)
        except np.linalg.LinAlgError:
            return part, None

    def by_test(self, rows: Array) -> Array:
        """Which combinations of coefficients, ``rows`` (k, p), owe more than a little of their variance to directions in which instruments
        are not strong."""
        part, total = self._weak
        if total is None:
            return np.ones(len(rows), dtype=bool)
        return np.vecdot(rows @ part, rows) > SHARE * np.vecdot(rows @ total, rows)

    def together_by_test(self, rows: Array) -> bool:
        """Whether any combination of ``rows`` does."""
        part, total = self._weak
        if total is None:
            return True
        sizes = np.sqrt(np.vecdot(rows @ total, rows))
        rows = rows / sizes[:, None]
        return bool(eigh(rows @ part @ rows.T, rows @ total @ rows.T, eigvals_only=True)[-1] > SHARE)

    def unknown(self, rows: Array) -> Array:
        """Which combinations of coefficients, ``rows`` (k, p), are about rare levels, of which nothing is known but what is assumed."""
        if self.of.rare is None:
            return np.zeros(len(rows), dtype=bool)
        assumed = (rows @ self.of.rare.onto) ** 2 @ self.of.rare.size
        return assumed > np.vecdot(rows @ self.at.covariance, rows) / 2

    def limit(self, confidence: float) -> float:
        """What T is at most, within a set."""
        tail, count = 1 - confidence, self.degrees
        if np.isinf(self.of.degrees):
            return float(chdtri(count, tail))
        return count * float(fdtri(count, self.of.degrees, confidence))

    @cached_property
    def overall(self) -> tuple[float, Array]:
        """The smallest T of all, and where it is."""
        return self.least(np.empty((0, self.of.count + 1)))

    def overidentification(self) -> Diagnostic | None:
        """The test that one vector of coefficients agrees with all instruments; None where there are no more instruments than needed."""
        count = self.of.over
        if not count:
            return None
        found = self.overall[0]
        return Diagnostic("all instruments agree", found, count, p_value(found, count, self.of.degrees))


class Profile:
    """The smallest T with one combination of coefficients given, along the circle of its values.

    An angle t stands for the value ``centre + spread tan(t)``, and half a turn for infinity. There are two scales of values: that around
    the estimate, and that around the value that fits best. With weak instruments one of them can be a million times the other, and T may
    turn within the smaller one. So values of both are looked at, by angles on the smaller one."""

    def __init__(self, test: Test, row: Array, base: float):
        self._test, self._row, self._base = test, row, base
        scales = [(float(row @ test.at.b), math.sqrt(max(float(row @ test.at.covariance @ row), 0.0)))]
        v = test.overall[1]
        if abs(v[-1]) > AT_INFINITY * np.linalg.norm(v):
            v = v / v[-1]
            scales.append((float(-row @ v[:-1]), math.sqrt(abs(float(row @ np.linalg.lstsq(test.information(v), row)[0])))))
        usable = [(spread, centre) for centre, spread in scales if 0 < spread < math.inf]
        self._scales = sorted(usable) or [(max(abs(scales[0][0]), 1.0), scales[0][0])]
        self._spread, self._centre = self._scales[0]

    def _angles(self) -> Array:
        """Where to look first, from minus infinity to infinity."""
        found = [np.arctan((centre + spread * np.tan(ANGLES) - self._centre) / self._spread) for spread, centre in self._scales]
        return np.concatenate([[-math.pi / 2], np.unique(found), [math.pi / 2]])

    def _at(self, angles: Array) -> Array:
        restrictions = np.column_stack(
            [np.outer(np.cos(angles), self._row), np.cos(angles) * self._centre + np.sin(angles) * self._spread]
        )
        return self._test.each(restrictions)

    def _looked(self, limit: float) -> tuple[Array, Array]:
        """Angles, and T there; more of them where T has a valley above the limit, or a hill below it, that may reach the other side."""
        angles, end = self._angles(), [self._test.far]
        values = np.concatenate([end, self._at(angles[1:-1]), end])
        for _ in range(CLOSER):
            left, right = np.append(values[-2], values[:-1]), np.append(values[1:], values[1])
            hill = np.where(values <= limit, 1.0, -1.0)
            alone = (hill * (values - left) >= 0) & (hill * (values - right) >= 0)
            near = np.abs(values - limit) < np.maximum(np.abs(values - left), np.abs(values - right))
            turns = np.flatnonzero(alone & near)
            cells = np.unique(np.concatenate([(turns - 1) % (len(angles) - 1), turns % (len(angles) - 1)]))
            if not len(cells):
                break
            middle = (angles[cells] + angles[cells + 1]) / 2
            angles, values = np.insert(angles, cells + 1, middle), np.insert(values, cells + 1, self._at(middle))
        return angles, values

    def accepted(self, confidence: float) -> Pieces:
        """The values that are not rejected."""
        limit = self._test.limit(confidence)
        angles, values = self._looked(limit)
        known = dict(zip(angles.tolist(), values.tolist(), strict=True))

        def excess(angle: float) -> float:
            return (known[angle] if angle in known else float(self._at(np.array([angle]))[0])) - limit

        inside = values <= limit
        ends = [-math.inf] if inside[0] else []
        for k in np.flatnonzero(inside[1:] != inside[:-1]):
            at = root(excess, float(angles[k]), float(angles[k + 1]))
            ends.append(self._base + self._centre + self._spread * math.tan(at))
        ends += [math.inf] if inside[-1] else []
        return tuple(zip(ends[::2], ends[1::2], strict=True))


def confidence_sets(
    test: Test, confidence: float, method: str = AUTO, combinations: Array | None = None
) -> tuple[ConfidenceSet, ...]:
    """One set for each coefficient, or for each of ``combinations`` (k, p) of them in own units: Wald's where instruments are strong beyond
    doubt, else that of the test."""
    confidence = check_confidence(confidence)
    rows, base = in_directions(test.of, combinations)
    estimate = rows @ test.at.b + base
    reach = quantile(confidence, test.of.degrees) * standard_errors(test.of, test.at.covariance, combinations)
    unknown = test.unknown(rows)
    return tuple(
        ConfidenceSet(WHOLE if unknown[j] else Profile(test, rows[j], float(base[j])).accepted(confidence), BY_TEST)
        if tested
        else ConfidenceSet(((float(estimate[j] - reach[j]), float(estimate[j] + reach[j])),), WALD)
        for j, tested in enumerate(chosen(test, method, combinations))
    )


def p_values(test: Test, method: str = AUTO, values: Array | float = 0.0, combinations: Array | None = None) -> Array:
    """Of the tests that each coefficient, or each of ``combinations``, is one of ``values``: the same tests that the sets come from."""
    return np.array(
        [p_value(found, count, test.of.degrees) for found, count in _statistics(test, method, values, combinations)]
    )


def _statistics(test: Test, method: str, values: Array | float, combinations: Array | None) -> list[tuple[float, int]]:
    """Chi-square statistics with their degrees of freedom."""
    rows, base = in_directions(test.of, combinations)
    away = np.broadcast_to(values, base.shape) - base
    tested = chosen(test, method, combinations)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (away - rows @ test.at.b) / standard_errors(test.of, test.at.covariance, combinations)
    squares = z**2
    if tested.any():
        squares[tested] = test.each(np.column_stack([rows, away])[tested])
        squares[tested & test.unknown(rows)] = 0.0
    return [(float(square), test.degrees if by_test else 1) for square, by_test in zip(squares, tested, strict=True)]


def jointly(test: Test, values: Array, combinations: Array, method: str = AUTO) -> Tested:
    """All restrictions ``combinations @ coefficients = values`` together. A single one is tested as its set is made.

    Those on rare levels alone, about which nothing is known, take no part."""
    rows, base = in_directions(test.of, combinations)
    apart(rows)
    if method != WALD and len(rows) > 1 and (known := ~test.unknown(rows)).any() and not known.all():
        return jointly(test, values[known], combinations[known], method)
    if len(rows) == 1:
        ((found, count),) = _statistics(test, method, values, combinations)
    elif method == BY_TEST or (method == AUTO and test.together_by_test(rows)):
        found, count = test.least(np.column_stack([rows, values - base]))[0], test.of.over + len(rows)
    else:
        away, covariance = values - base - rows @ test.at.b, rows @ test.at.covariance @ rows.T
        scale = np.sqrt(np.diag(covariance))
        found = float(away / scale @ np.linalg.solve(covariance / np.outer(scale, scale), away / scale))
        count = len(rows)
    return Tested(found, count, p_value(found, count, test.of.degrees))


def chosen(test: Test, method: str, combinations: Array | None = None) -> Array:
    """Which coefficients, or combinations of them, get a set by the test."""
    if method not in METHODS:
        raise ModelError(f"intervals is {method!r} and must be one of {', '.join(METHODS)}.")
    rows, _ = in_directions(test.of, combinations)
    return test.by_test(rows) | test.unknown(rows) if method == AUTO else np.full(len(rows), method == BY_TEST)


def in_directions(of: Conditions, combinations: Array | None) -> tuple[Array, Array]:
    """Rows (k, p) and numbers (k,) so that rows @ b + numbers are combinations of the coefficients in own units, or these one by one."""
    return (of.to_own, of.base) if combinations is None else (combinations @ of.to_own, combinations @ of.base)


def standard_errors(of: Conditions, covariance: Array, combinations: Array | None = None) -> Array:
    """Of the coefficients in own units, or of combinations of them."""
    rows, _ = in_directions(of, combinations)
    return np.sqrt(np.maximum(np.vecdot(rows @ covariance, rows), 0.0))


def endogeneity(evidence: Evidence, test: Test) -> Diagnostic:
    """Wu and Hausman's test that the endogenous regressors are exogenous: what instruments say of them says no more of the target.

    It leaves rare levels out, so it counts what their coefficients may be in the same proportion as the estimate's variance does."""
    design, places = with_fitted(test.of)
    seen = channel(evidence, design)
    found = together(seen, np.zeros(len(places)), np.eye(len(design.names))[list(places)]).statistic
    if test.of.rare is not None:
        own = test.of.to_own[list(test.of.asked.endogenous_places)]
        assumed, whole = (np.vecdot(own @ part, own) for part in (test.at.assumed, test.at.covariance))
        found *= 1 - float(np.max(assumed / np.maximum(whole, TINY)))
    return Diagnostic("regressors are exogenous", found, len(places), p_value(found, len(places), seen.degrees))
