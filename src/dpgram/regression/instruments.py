"""Regressions with instruments: what a release says about the products of instruments with errors, and estimates from them.

Instruments Z are the exogenous regressors and the excluded instruments. For coefficients b the error is v = y - X b, and Z'Gv = 0 is what
identifies b. In the coordinates of the evidence the columns [X, y] and the instruments Z become orthonormal, and Z is turned so that Z'GZ
is diagonal. A vector c of p + 1 numbers stands for the combination [X, y] c; errors are those of c = (-b, 1). With E the noise in the
matrix and K its law (``Law.products``),

    Cov(Z'Ev) = K_zz K_vv + K_zv K_vz                              (the privacy noise)
    + design effect * sigma^2 * Z'GZ                               (the sampling of rows).

Noise makes X'P X too large, P the projection on Z. With R the residuals of X on Z, as combinations, and A = (Z'GZ)^-1, it adds on average

    tr(A K_zz) K_rr + K_rz A K_zr,

also because A is noisy itself; this is taken off. The inverse of what is left is then made unbiased to second order, as
``linalg.shrinkage.debiased_gain`` does it for least squares. Both are small where noise is small, so that estimates are those of the table:
two-stage least squares or LIML. Noise on the diagonal counts as in ``Channel``: twice the variance of that off it.

An exogenous regressor may be a rare level, which the noise hides: its coefficient could have any size, and so could all others then. As in
``Channel`` it is taken to have a size that anybody may expect, with mean zero, and it is left out of the instruments. The estimate is that
without it, and what it may have done to the estimate counts as noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, null_space

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.evidence.law import TINY, Law
from dpgram.linalg.symmetric import positive_part
from dpgram.regression.channel import DEPENDENT, STEADY, STEPS, channel, check_independent
from dpgram.regression.design import Design, Weights
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray

TWO_STAGE, LIML = "2sls", "liml"
ESTIMATORS = (TWO_STAGE, LIML)
RARE, MIXED = (
    4.0,
    0.5,
)  # a direction of gain below so many sds of its noise, at most so much of it not of 0/1 columns, is a rare level
FLOOR = 2.0  # times the noise: what the squares of an instrument count as at least
ROUNDS = 30  # of the unbiased inverse, each of which moves half way


@dataclass(frozen=True, eq=False)
class Instrumented:
    """A regression with instruments, as combinations of released columns."""

    design: Design  # the target on exogenous, then endogenous regressors
    instruments: Design  # the target on exogenous regressors, then excluded instruments
    endogenous: tuple[str, ...]
    excluded: tuple[str, ...]

    @property
    def endogenous_places(self) -> range:
        """Of the coefficients: the last ones."""
        p = len(self.design.names)
        return range(p - len(self.endogenous), p)


@dataclass(frozen=True, eq=False)
class Rare:
    """Directions of the exogenous regressors that 0/1 columns span and that the noise hides, and what is assumed of them: their
    coefficients, ``along @ b + base``, have mean zero and the mean squares ``size``."""

    along: Array  # (k, p)
    base: Array  # (k,)
    size: Array  # (k,)
    onto: Array  # (p, k) how b moves with these coefficients, where those of all other directions and regressors stay


@dataclass(frozen=True, eq=False)
class Conditions:
    """The products of instruments with [X, y] as seen through the noise; see above. Coefficients in own units are ``to_own @ b + base``."""

    asked: Instrumented
    cross: Array  # (q, p + 1) products of instruments with [X, y]
    own: Array  # (q,) those of instruments with themselves
    square: Array  # (p + 1, p + 1) those of [X, y] with themselves
    noise_own: Array  # (q,) K_zz
    noise_cross: Array  # (q, p + 1) K_zc
    noise_square: Array  # (p + 1, p + 1) K_cc
    by_clipping: float  # the variance that rows beyond the clip leave in each product with an error of length one
    triangle: Array  # (p, p) the regressors are the orthonormal columns times this
    to_own: Array  # (p, p)
    base: Array  # (p,)
    to_instruments: (
        Array  # (number of instruments, q) from combinations of the orthonormal instruments to ones of the instruments
    )
    degrees: float  # of freedom of the noise; infinite for additive noise
    rows: float
    design_effect: float
    unit: float  # one unit of an error, in own units of the target
    instruments: Array  # (d, q) the instruments, as combinations of released columns
    rare: Rare | None
    lengths: Array  # (p + 1, p + 1) of v the squared length is v'(..)v
    leaning: Array  # (p, p) what clipping does to b is this times what it would, did long rows favour no direction

    @cached_property
    def weights(self) -> Array:
        """(q,) the diagonal of A."""
        return 1 / np.maximum(self.own, np.maximum(FLOOR * self.noise_own, TINY))

    @cached_property
    def fitted(self) -> Array:
        """(q, p + 1) the first stages: what instruments say of each column."""
        return self.weights[:, None] * self.cross

    @cached_property
    def noise_fitted(self) -> tuple[Array, Array]:
        """K of the fitted columns with themselves, and with [X, y]."""
        return self.fitted.T @ (self.noise_own[:, None] * self.fitted), self.fitted.T @ self.noise_cross

    @cached_property
    def projected(self) -> Array:
        """(p + 1, p + 1) products of [X, y] after projection on the instruments, without what noise adds to them on average."""
        own, cross = self.noise_fitted
        left = self.noise_square - cross - cross.T + own  # K of the residuals
        along = self.noise_cross - self.noise_own[:, None] * self.fitted  # ... and of instruments with them
        added = np.sum(self.weights * self.noise_own) * left + along.T @ (self.weights[:, None] * along)
        return self.cross.T @ self.fitted - added

    @cached_property
    def unexplained(self) -> Array:
        """(p + 1, p + 1) products of what instruments leave of [X, y]."""
        return self.square - self.projected

    @property
    def count(self) -> int:
        """p, the number of coefficients."""
        return len(self.base)

    @property
    def over(self) -> int:
        """How many more instruments than coefficients there are. What is assumed of a coefficient is as good as an instrument for it."""
        return len(self.own) + (0 if self.rare is None else len(self.rare.size)) - self.count

    def errors(self, b: Array) -> Array:
        """The combination of [X, y] that is the error of b."""
        return np.append(-b, 1.0)

    def own_units(self, b: Array) -> Array:
        return self.to_own @ b + self.base

    def sampled(self, squares: float, estimated: int) -> float:
        """Error variance, times the design effect, of errors with this sum of squares after so many coefficients were ``estimated``."""
        left = max(self.rows - self.design_effect * estimated, self.design_effect)
        return self.design_effect * max(squares, 0.0) / left


@dataclass(frozen=True, eq=False)
class Estimate:
    """Coefficients of the orthonormal columns, and their covariance by its sources."""

    b: Array  # (p,)
    kappa: float  # of the k-class: 1 for two-stage least squares
    noise: Array  # (p, p) from the privacy noise
    sampling: Array  # (p, p) from the sampling of rows
    clipping: Array  # (p, p) from rows beyond the clip
    error_variance: float
    through: Array  # (p, q) from products with instruments to coefficients
    assumed: Array  # (p, p) the part of ``noise`` that comes from the size that rare levels are assumed to have

    @property
    def covariance(self) -> Array:
        return self.noise + self.sampling + self.clipping


def estimate(of: Conditions, estimator: str = TWO_STAGE) -> Estimate:
    """Two-stage least squares, or LIML, without the bias that noise would cause."""
    if of.rare is not None:
        return _without(of, of.rare, estimator)
    kappa = _smallest_ratio(of) if estimator == LIML else 1.0
    p = of.count
    k_class = (1 - kappa) * of.square + kappa * of.projected
    middle = positive_part(k_class[:p, :p])
    b, inverse = _unbiased(of, k_class, middle)
    v = of.errors(b)
    through = inverse @ of.fitted[:, :p].T  # from products with instruments to coefficients
    along = of.noise_cross @ v
    noise = (through * of.noise_own) @ through.T * float(v @ of.noise_square @ v) + np.outer(through @ along, through @ along)
    squares = float(v @ of.square @ v) - _noise_in_squares(of, inverse, v, noise)
    return Estimate(
        b,
        kappa,
        noise,
        of.sampled(squares, p) * (inverse @ middle @ inverse.T),
        of.by_clipping * float(v @ of.lengths @ v) * of.leaning @ (through @ through.T) @ of.leaning.T,
        of.sampled(squares, p) / of.design_effect,
        through,
        np.zeros((p, p)),
    )


def _without(of: Conditions, rare: Rare, estimator: str) -> Estimate:
    """The estimate where rare levels have the coefficient zero, and what theirs may have done to it."""
    p, free = of.count, null_space(rare.along)
    start = -rare.onto @ rare.base
    turn = np.zeros((p + 1, free.shape[1] + 1))  # from combinations of fewer columns to ones of [X, y]
    turn[:p, :-1], turn[:p, -1], turn[p, -1] = free, -start, 1.0
    fewer = replace(
        of,
        cross=of.cross @ turn,
        square=turn.T @ of.square @ turn,
        noise_cross=of.noise_cross @ turn,
        noise_square=turn.T @ of.noise_square @ turn,
        base=np.zeros(free.shape[1]),
        rare=None,
        lengths=turn.T @ turn,
        leaning=np.eye(free.shape[1]),
    )
    found = estimate(fewer, estimator)
    through = free @ found.through
    moved = through @ of.cross[:, :p] @ rare.onto - rare.onto
    noise, sampling, clipping = (free @ part @ free.T for part in (found.noise, found.sampling, found.clipping))
    clipping = of.leaning @ clipping @ of.leaning.T
    assumed = (moved * rare.size) @ moved.T
    b = start + free @ found.b
    return Estimate(b, found.kappa, noise + assumed, sampling, clipping, found.error_variance, through, assumed)


def _smallest_ratio(of: Conditions) -> float:
    """LIML's kappa: 1 + the smallest ratio of what instruments explain of a combination of [X, y] to what they leave."""
    try:
        largest = float(eigh(of.unexplained, of.projected, eigvals_only=True)[-1])
    except np.linalg.LinAlgError:  # noise explains more of some combination than instruments do
        return 1.0
    return 1.0 + 1.0 / largest if largest > 0 else 1.0


def _unbiased(of: Conditions, k_class: Array, middle: Array) -> tuple[Array, Array]:
    """b and the inverse J of X'(..)X in it, so that b is right on average to second order.

    Products of noise in X'PX with noise in X'Pv move J X'Py by -J C v, where C is linear in J: so C is added to both sides before they are
    solved, with the J that follows."""
    p = of.count
    own, cross = (each[:p] for each in of.noise_fitted)
    own = own[:, :p]
    left = of.noise_square[:p] - cross  # K of the residuals of X with [X, y]
    start, added = float(np.trace(of.noise_square[:p, :p])) / math.sqrt(p), np.zeros((p, p + 1))
    if start > 0:
        near = np.linalg.inv(middle + start * np.eye(p))
        for _ in range(ROUNDS):
            added = _moved(near, own, cross, left)
            try:
                near = (near + np.linalg.inv(k_class[:p, :p] + added[:, :p])) / 2
            except np.linalg.LinAlgError:
                break
    try:
        inverse = np.linalg.inv(k_class[:p, :p] + added[:, :p])
    except np.linalg.LinAlgError:
        raise ModelError(
            f"the instruments do not identify the coefficients of this regression of {of.asked.design.target!r}, because the system is "
            f"singular. Use instruments that explain different parts of {', '.join(of.asked.endogenous)}."
        ) from None
    return inverse @ (k_class[:p, p] + added[:, p]), inverse


def _moved(inverse: Array, own: Array, cross: Array, left: Array) -> Array:
    """(p, p + 1) C, by K of the fitted X with themselves and with [X, y], and of their residuals with [X, y]."""
    mixed = cross[:, : len(own)].T  # of X with the fitted X
    return (
        own @ inverse.T @ (left + cross)
        + np.sum(inverse * mixed) * cross
        + (mixed - own) @ inverse.T @ cross
        + np.sum(inverse * own) * left
    )


def _noise_in_squares(of: Conditions, inverse: Array, v: Array, noise: Array) -> float:
    """What noise adds on average to the sum of squared errors at the estimate, because that moved with the noise."""
    p = of.count
    _, cross = of.noise_fitted
    together = cross[:p, :p] * float(v @ of.noise_square @ v) + np.outer(cross[:p] @ v, of.noise_square[:p] @ v)
    return float(np.sum(of.square[:p, :p] * noise)) - 2 * float(np.sum(inverse.T * together))


def conditions(evidence: Evidence, asked: Instrumented, estimator: str = TWO_STAGE) -> Conditions:
    """What the evidence says, by the last of several rounds; of rows beyond its clip what outer matrices show."""
    if np.any(evidence.hidden):
        raise ModelError(
            "the noise of this release may hide whole directions of the matrix that was inverted, so instruments cannot be used. Ask for a "
            'release with a larger budget, or with mechanism="gaussian-noise".'
        )
    check_independent(asked.design)
    check_independent(asked.instruments)
    view = evidence.alone
    frame = _Frame.of(evidence, asked)
    block = frame.basis.T @ view.matrix @ frame.basis
    degrees = channel(evidence, asked.instruments).degrees
    seen = _seen(evidence, asked, frame, block, view.law, degrees)
    if evidence.tails is None:
        return seen
    tails, shape = evidence.tails.within(frame.basis, len(seen.own)), block / evidence.tails.size
    believed = None
    for _ in range(STEPS):
        before = 0.0 if believed is None else believed
        residual = frame.columns @ seen.errors(estimate(seen, estimator).b)
        believed = tails.judged(shape, residual, believed)
        joined, law = tails.joined(shape, believed)
        seen = _seen(evidence, asked, frame, joined, law, degrees)
        if np.max(np.abs(believed - before) * tails.scales) * tails.sd <= STEADY * law.sd_off_diagonal:
            break
    assert believed is not None
    through = seen.to_own @ estimate(seen, estimator).through @ (frame.instruments @ seen.to_instruments).T
    lengths = np.linalg.norm(through, axis=1, keepdims=True)
    directions = np.zeros((len(residual), len(through)))
    directions[: len(seen.own)] = (through / np.where(lengths > 0, lengths, 1.0)).T
    left = tails.left_open(shape, residual, believed, directions, _fit(evidence, asked, frame, estimate(seen, estimator).b))
    favoured = left.leaning[:, None] * seen.to_own
    return replace(seen, by_clipping=left.variance / float(residual @ residual), leaning=np.linalg.solve(seen.to_own, favoured))


def _fit(evidence: Evidence, asked: Instrumented, frame: _Frame, b: Array) -> Array:
    """The direction of what instruments know of the fitted label, in the basis, less its mean where the regression has one."""
    said = frame.columns[:, :-1] @ (frame.triangle[:-1, -1] / frame.triangle[-1, -1] + b)
    said[len(frame.instruments) :] = 0.0
    if asked.design.names[0] == INTERCEPT:
        ones = frame.basis.T @ evidence.alone.turned(np.eye(len(evidence.gram))[0])
        ones[len(frame.instruments) :] = 0.0
        said = said - ones * (ones @ said) / max(float(ones @ ones), TINY)
    return said / max(float(np.linalg.norm(said)), TINY)


@dataclass(frozen=True, eq=False)
class _Frame:
    """An orthonormal basis of instruments, then of what [X, y] adds to them, and [X, y] in it."""

    basis: Array  # (d, q + ...)
    columns: Array  # (q + ..., p + 1) orthonormal [X, y]
    instruments: Array  # (q, q) instruments are the first q vectors of the basis times this
    triangle: Array  # (p + 1, p + 1) the turned [X, y] are the orthonormal ones times this
    used: Array  # (d, q) the instruments, as combinations of released columns
    rare: Rare | None

    @classmethod
    def of(cls, evidence: Evidence, asked: Instrumented) -> _Frame:
        view, hidden = evidence.alone, _hidden(evidence, asked)
        count, used = asked.endogenous_places.start, asked.instruments.regressors
        if hidden is not None:
            used = np.column_stack([used[:, :count] @ hidden.others, used[:, count:]])
        instruments, own = np.linalg.qr(view.turned(used))
        turned = view.turned(np.column_stack([asked.design.regressors, asked.design.label]))
        columns, triangle = np.linalg.qr(turned)
        signs = np.where(np.diag(triangle) < 0, -1.0, 1.0)
        columns, triangle = columns * signs, signs[:, None] * triangle
        along = instruments.T @ columns
        rest, sizes, _ = np.linalg.svd(columns - instruments @ along, full_matrices=False)
        basis = np.column_stack([instruments, rest[:, sizes > DEPENDENT]])
        rare = None
        if hidden is not None:
            along, size = triangle[:-1, -1], float(triangle[-1, -1])
            rows = hidden.rows @ np.linalg.inv(triangle[:-1, :-1])[:count]
            onto = np.vstack([hidden.axes, np.zeros((len(along) - count, len(hidden.size)))]) / size
            rare = Rare(size * rows, rows @ along, hidden.size, onto)
        return cls(basis, basis.T @ columns, own, triangle, used, rare)


class _Hidden(NamedTuple):
    """Of the exogenous regressors, by their coefficients in scaled units."""

    rows: Array  # (k, number of them) the coefficients of rare directions are these combinations
    size: Array  # (k,) their mean squares
    axes: Array  # (number of them, k) the directions, in the orthonormal basis of the regressors
    others: Array  # (number of them, all but k) the combinations of the regressors that span all other directions


def _hidden(evidence: Evidence, asked: Instrumented) -> _Hidden | None:
    """What noise hides of the exogenous regressors, where 0/1 columns span it; None where there is no such thing."""
    whole, count = asked.design, asked.endogenous_places.start
    if not whole.indicators[:count].any():
        return None
    own = np.eye(count)
    design = replace(
        whole, names=whole.names[:count], columns=(*whole.columns[:count], whole.columns[-1]), to_own_units=own, offset=np.zeros(count),
        groups=(), indicators=whole.indicators[:count],
    )  # fmt: skip
    seen = channel(evidence, design)
    rare = seen.rare(RARE, MIXED)
    if not rare.any():
        return None
    triangle = own if seen.basis.triangle is None else seen.basis.triangle
    others = np.linalg.solve(triangle, seen.axes[:, ~rare])
    return _Hidden(seen.axes[:, rare].T @ triangle, seen.plausible[rare], seen.axes[:, rare], others)


def _seen(evidence: Evidence, asked: Instrumented, frame: _Frame, block: Array, law: Law, degrees: float) -> Conditions:
    q, design = len(frame.instruments), asked.design
    clean = block - law.shift * np.eye(len(block))
    own, axes = np.linalg.eigh(clean[:q, :q])
    turned = np.eye(len(block))[:, :q] @ axes
    products, _ = law.products(np.column_stack([turned, frame.columns]).T, block)
    along, size = frame.triangle[:-1, -1], float(frame.triangle[-1, -1])
    to_own = np.linalg.solve(frame.triangle[:-1, :-1].T, design.to_own_units.T).T
    return Conditions(
        asked=asked,
        cross=turned.T @ clean @ frame.columns,
        own=own,
        square=frame.columns.T @ clean @ frame.columns,
        noise_own=np.diag(products)[:q],
        noise_cross=products[:q, q:],
        noise_square=products[q:, q:],
        by_clipping=0.0,
        triangle=frame.triangle[:-1, :-1],
        to_own=size * to_own,
        base=to_own @ along + design.offset,
        to_instruments=np.linalg.solve(frame.instruments, axes),
        degrees=degrees,
        rows=float(evidence.rows),
        design_effect=evidence.design_effect,
        unit=size * design.label_unit,
        instruments=frame.used,
        rare=frame.rare,
        lengths=np.eye(len(frame.triangle)),
        leaning=np.eye(len(frame.triangle) - 1),
    )


def with_fitted(of: Conditions) -> tuple[Design, tuple[int, ...]]:
    """The regression of the target on all regressors but rare levels, and on what instruments say of the endogenous ones, and the places of
    the latter.

    If the endogenous regressors are exogenous, these have the coefficients zero, whatever noise did to the first stages."""
    asked, p = of.asked, of.count
    design, places = asked.design, list(asked.endogenous_places)
    fitted = of.instruments @ of.to_instruments @ of.fitted[:, :p] @ of.triangle[:, places]
    names, exogenous = design.names, design.columns[: -1 - len(places)]
    to_own, offset, indicators = design.to_own_units, design.offset, design.indicators
    if of.rare is not None:
        exogenous = _as_weights(of.instruments[:, : len(exogenous) - len(of.rare.size)])
        names = (*(f"part {k}" for k in range(len(exogenous))), *asked.endogenous)
        to_own, offset, indicators = np.eye(len(names)), np.zeros(len(names)), np.zeros(len(names), dtype=bool)
    count, extra = len(names), len(places)
    wider = np.eye(count + extra)
    wider[:count, :count] = to_own
    return (
        Design(
            (*names, *(f"fitted {name}" for name in asked.endogenous)),
            design.target,
            (*exogenous, *design.columns[-1 - extra : -1], *_as_weights(fitted), design.columns[-1]),
            design.dim,
            wider,
            np.append(offset, np.zeros(extra)),
            (),
            design.label_unit,
            np.append(indicators, np.zeros(extra, dtype=bool)),
        ),
        tuple(range(count, count + extra)),
    )


def _as_weights(columns: Array) -> tuple[Weights, ...]:
    """Combinations of released columns, by place."""
    return tuple({j: float(w) for j, w in enumerate(column) if w} for column in columns.T)
