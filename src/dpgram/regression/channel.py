"""What the evidence says about the coefficients of one regression, or of many side by side: a linear channel with known noise.

``evidence.law`` has the mathematics; here are the way there, an orthonormal basis of the regressors and what is left of the label, and
the way back to own units. One channel's arrays have one axis for its p directions; those of a stack have others in front."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence, View
from dpgram.evidence.law import TINY, Law, Seen
from dpgram.evidence.tails import NOTHING_OPEN, Open, Tails
from dpgram.linalg.shrinkage import debiased_gain, positive_moments
from dpgram.regression.design import Design
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray

WEAK = 1.96  # a gain below so many sds of its noise may be zero
EFFECT = 2.0  # of a 0/1 column, in standard deviations of the target: one standard deviation of what is expected
TELLING = 1.0  # the same of one standard deviation of any other column, which then explains all of the target
UNKNOWN_GAIN = 1e-3  # standard deviations of its noise
DEPENDENT = 1e-9  # of the largest: what a column adds to those before it
STEPS, STEADY = 6, 0.05  # of what is believed of outer matrices: at most so many; enough when a step changes less of the noise


@dataclass(frozen=True, eq=False)
class Basis:
    """An orthonormal basis of the regressors and what is left of the label, the matrix in it, and the way back:

    turned regressors = basis triangle, turned label = basis along + label_scale * (the last vector)."""

    block: Array  # (..., p + 1, p + 1), the matrix in the basis; the label is last
    triangle: Array | None  # (..., p, p); None for the identity
    along: Array  # (..., p)
    label_scale: float | Array  # (...)
    ones: Array | None  # (..., p + 1): the intercept's direction in the basis, where there is an intercept column
    vectors: Array | None = None  # (..., d, p + 1) the basis itself; None for released columns

    def back(self, design: Design, b: Array) -> Array:
        """Coefficients in own units, but for the offset, from combinations (..., p, any number) in the basis."""
        return design.to_own_units @ (b if self.triangle is None else np.linalg.solve(self.triangle, b))


@dataclass(frozen=True, eq=False)
class Channel(Seen):
    """One regression, or a stack of them, as seen through the noise. Coefficients in own units are ``to_own @ b + base``."""

    measured: Array  # the gain as the matrix has it; ``gain`` is of no size where the noise may hide it
    design: Design
    basis: Basis
    axes: Array  # (..., p, p) the directions, in the basis
    values: Array  # (..., p) eigenvalues of the regressors' matrix
    law: Law
    rows: float | Array  # the number of rows that counted: one that was shrunk counts for the square of its factor
    design_effect: float  # see evidence.design_effect
    dim: int  # of the matrix
    open: Open = NOTHING_OPEN  # what rows beyond the clip leave open; along the residual of each regressor on the others

    @property
    def by_clipping(self) -> float:
        """The variance that rows beyond the clip leave in what was observed, in the mean of all directions."""
        return self.open.variance

    @property
    def leaning(self) -> Array:
        """(p,) what clipping leaves open of each coefficient over what it would, did long rows favour no direction; standard deviations."""
        return self.open.leaning if len(self.open.along) else np.ones(self.gain.shape[-1])

    @property
    def label_scale(self) -> float | Array:
        """The label is this times a unit vector."""
        return self.basis.label_scale

    @cached_property
    def debiased(self) -> Array:
        """The gain by which to divide without bias."""
        return debiased_gain(self.measured, self.weight, self.spread)

    def gain_below(self, limit: float) -> Array:
        """Directions whose gain is less than ``limit`` sds of its noise, also once it is known that noise spreads a spectrum."""
        return np.minimum(self.gain, self.expected[0]) < limit * self.gain_sd

    @cached_property
    def hidden(self) -> Array:
        """Directions whose gain may well be zero. There, coefficients are taken to have a size that is plausible."""
        return self.gain_below(WEAK)

    def rare(self, limit: float, mixed: float) -> Array:
        """Directions that 0/1 columns span, but for a share ``mixed``, and whose gain is less than ``limit`` sds of its noise."""
        low = self.gain_below(limit)
        if not low.any():
            return low
        spanned = self._spanned
        whole = np.sum(spanned, axis=-1)
        others = np.sum(np.where(self.design.indicators[..., None, :], 0.0, spanned), axis=-1)
        return low & (others <= mixed * whole)

    @property
    def plausible(self) -> Array:
        """The mean square that is expected of the coefficient of each direction, in scaled units, about zero.

        That of a 0/1 column is a few standard deviations of the target. What a number has for itself, beside the other columns, explains no
        more than all of the target. Where noise is all there is of that, because its bounds are wide or because it is nearly a combination
        of other columns, its standard deviation is that of the noise: so its coefficient may be large."""
        each = np.where(self.design.indicators, EFFECT, TELLING / self._own_sds) * self._label_sd
        return np.sum(self._spanned * np.square(each)[..., None, :], axis=-1)

    @property
    def _own_sds(self) -> Array:
        """(..., p) standard deviations of what each column has beside the others, in scaled units, as far as they stand above the noise."""
        seen = np.maximum(self.values - self.law.shift, np.maximum(self.law.sd_off_diagonal, TINY))
        back = self.axes if self.basis.triangle is None else np.linalg.solve(self.basis.triangle, self.axes)
        precision = np.sum(back**2 / seen[..., None, :], axis=-1)
        return 1 / np.sqrt(precision * np.maximum(np.asarray(self.rows), 1.0)[..., None])

    @property
    def _spanned(self) -> Array:
        """By which columns each direction is spanned: the squares of their shares."""
        triangle = self.basis.triangle
        return (self.axes.mT if triangle is None else self.axes.mT @ triangle) ** 2

    @property
    def _label_sd(self) -> Array:
        """(..., 1) the label's standard deviation, in scaled units, as far as it stands above the noise."""
        along, ones, noise = self.basis.along, self.basis.ones, self.law.sd_off_diagonal
        scale = np.broadcast_to(np.asarray(self.label_scale)[..., None], (*along.shape[:-1], 1))
        label = np.concatenate([along, scale], axis=-1)[..., None]
        sums = self.basis.block @ label - self.law.shift * label
        squares = np.sum(label * sums, axis=-2)
        if ones is not None:
            size = np.sum(ones * ((self.basis.block @ ones[..., None])[..., 0] - self.law.shift * ones), axis=-1, keepdims=True)
            squares = squares - (ones[..., None, :] @ sums)[..., 0, :] ** 2 / np.where(size > noise, size, np.inf)
        least = np.maximum(noise * np.sum(label**2, axis=-2), TINY)
        return np.sqrt(np.maximum(squares, least) / np.maximum(np.asarray(self.rows), 1.0)[..., None])

    @cached_property
    def divisor(self) -> Array:
        """By what is observed divided for the estimate.

        It is the gain that leaves no bias. In a direction that is hidden, such as that of a rare level, such a division would bring nothing
        but noise, and noise without end, which the noise in the matrix turns into every other coefficient. There it is the division with
        the smallest mean square error, for coefficients of the size that is plausible."""
        if not self.hidden.any():
            return self.debiased
        shrunk = self._shrunk[0]
        pull = np.sum(np.where(self.hidden, self.weight / shrunk, 0.0), axis=-1, keepdims=True)
        others = np.where(self.hidden, np.inf, self.measured + self.spread * self.weight * pull)
        return np.where(self.hidden, shrunk, debiased_gain(others, self.weight, self.spread))

    @cached_property
    def left(self) -> Array:
        """The variance of coefficients that is left in hidden directions; 0 in all others."""
        return np.where(self.hidden, self._shrunk[1], 0.0) if self.hidden.any() else np.zeros_like(self.gain)

    @cached_property
    def _shrunk(self) -> tuple[Array, Array]:
        middle = (self.axes.mT @ self.basis.along[..., None])[..., 0]  # where released coefficients are zero
        size = (self.plausible + middle**2) / np.square(np.asarray(self.label_scale))[..., None]
        gain, others = self.expected
        mean, square = positive_moments(gain, self.gain_sd)
        total = size * (square + others) + self.label * self.weight
        return total / (size * mean), size * (1 - size * mean**2 / total)

    @cached_property
    def estimate(self) -> Array:
        """The debiased coefficients in the basis; shrunk in hidden directions."""
        return self.observed / self.divisor

    @property
    def per_row(self) -> Array:
        """Sampling of rows gives observed_i a variance of sigma^2 * per_row_i."""
        return self.debiased * self.row_weight

    @cached_property
    def expected(self) -> tuple[Array, Array]:
        """The gain's mean given all that was seen, before it is known to be positive; the mean square of its row, off the diagonal."""
        return self.law.expected(self.values, self.dim)

    @cached_property
    def to_own(self) -> Array:
        return np.asarray(self.label_scale)[..., None, None] * self.basis.back(self.design, self.axes)

    @cached_property
    def base(self) -> Array:
        if self.basis.triangle is None:
            return self.design.offset
        return self.basis.back(self.design, self.basis.along[..., None])[..., 0] + self.design.offset

    def own(self, b: Array) -> Array:
        """Coefficients in own units."""
        return (self.to_own @ b[..., None])[..., 0] + self.base

    def noise_variance(self, b: Array) -> Array:
        """Diagonal of the privacy noise's covariance at b, without the rank-one part."""
        return self.weight * (self.label + self.spread * np.sum(self.weight * b**2, axis=-1, keepdims=True))

    @cached_property
    def size(self) -> Array:
        """(..., 1) sum of weight b^2 over the coefficients that the table itself has, before noise: the privacy noise grows with it.

        That of the estimate is too large by the variance that noise gives them, which is taken off, but for a quarter: where noise is all
        there is, its size is what is known least. What the sampling of rows adds to them stays, because the noise saw those rows."""
        b, weight, clear = self.estimate, self.weight, np.where(self.hidden, 0.0, 1 / self.divisor)
        hidden = np.sum(weight * np.where(self.hidden, b**2 + self.left, 0.0), axis=-1, keepdims=True)
        whole = np.sum(weight * np.where(self.hidden, 0.0, b**2), axis=-1, keepdims=True)
        believed = whole + hidden
        for _ in range(3):
            own = weight * (self.label + self.spread * believed) * clear**2
            excess = np.sum(weight * (own + self.spread * (weight * b * clear) ** 2), axis=-1, keepdims=True)
            believed = hidden + np.maximum(whole - excess, whole / 4)
        return believed

    @property
    def believed_noise(self) -> Array:
        """The privacy noise's variance in each direction, without the rank-one part, at the size that is believed."""
        return self.weight * (self.label + self.spread * self.size)

    def error_squares(self) -> Array:
        """The sum of squared errors of the unit label, unbiased, so that it may be negative.

        Squares of the estimate are too large by the variance of the label's noise in it, which is taken off before they explain
        anything; the noise in the gains has no such effect, because dividing by ``debiased`` is right on average."""
        variance = self.label * self.weight / self.debiased**2
        explained = self.debiased * self.explaining * ((self.observed / self.debiased) ** 2 - variance)
        return self.unexplained - np.sum(explained, axis=-1)

    @cached_property
    def error_variance(self) -> Array:
        """Variance of the errors of the unit label, floored at zero."""
        return np.maximum(self.error_squares(), 0.0) / self.rows_left(self.rows)

    @property
    def squares_left_open(self) -> float:
        """By how much more or less than others the sum of squared errors may lack of long rows, as a part of it."""
        squares = self.error_variance * self.rows_left(self.rows)
        return float(self.open.squares / max(squares, self.open.squares)) if self.open.squares > 0 else 0.0

    @property
    def squares_hidden(self) -> float:
        """By how much less the sum of squared errors may be, as a part of it, if what the noise hides explains as much as is plausible."""
        if not self.hidden.any():
            return 0.0
        gain, _ = positive_moments(self.expected[0], self.gain_sd)
        explained = float(np.sum(np.where(self.hidden, gain * self.explaining * (self.estimate**2 + self.left), 0.0)))
        squares = float(self.error_variance * self.rows_left(self.rows))
        return explained / max(squares, explained) if explained > 0 else 0.0

    def rows_left(self, rows: float | Array) -> float | Array:
        """By what to divide squares that ``rows`` left unexplained: each coefficient takes as many rows as the design effect says."""
        return np.maximum(rows - self.design_effect * self.gain.shape[-1], self.design_effect)

    @property
    def sampling_variance(self) -> Array:
        """Variance of the errors times the design effect: what independent rows that all count as one would vary as much with."""
        return self.design_effect * self.error_variance

    @property
    def by_rows(self) -> Array:
        """The variance that the sampling of rows gives what was observed."""
        return self.sampling_variance[..., None] * self.per_row

    @property
    def by_table(self) -> Array:
        """The variance in what was observed that is no noise: the sampling of rows, and the clipping of long ones."""
        return self.by_rows + self.by_clipping

    @cached_property
    def gain_sd(self) -> Array:
        """Standard deviation of the noise on each gain."""
        return np.sqrt(2 * self.spread) * self.weight

    @cached_property
    def scale(self) -> Array:
        """About what b^2 would be if the regressors explained the label: its sum of squares over theirs, about their means."""
        block, ones = self.basis.block, self.basis.ones
        p, sd, shift = block.shape[-1] - 1, self.law.sd_off_diagonal, self.law.shift
        label = block[..., -1, -1] - shift
        features = np.linalg.trace(block) - block[..., -1, -1] - p * shift
        if ones is not None and p > 1:
            cross = (block @ ones[..., None])[..., 0] - shift * ones
            size = np.sum(ones * cross, axis=-1)
            told = (np.sum(ones[..., :-1] ** 2, axis=-1) > 0.5) & (size > sd)
            known = np.where(told, size, np.inf)
            features, label = features - np.sum(cross[..., :-1] ** 2, axis=-1) / known, label - cross[..., -1] ** 2 / known
        return np.maximum(label, max(sd, TINY)) / np.maximum(features, max(sd * np.sqrt(p), TINY))


def channel(evidence: Evidence, design: Design, *, together: bool = False) -> Channel:
    """The channel of the regression ``design``.

    It is that of the last of several rounds, for inference, or of all of them ``together``, for estimates. Of rows beyond the last round's
    clip the former counts what outer matrices show, the latter what they show beyond doubt; a stack of regressions does without."""
    if evidence.tails is None or design.kept is not None:
        return _channel(evidence, evidence.together if together else evidence.alone, design)
    seen = _channel(evidence, evidence.alone, design)
    if not together:
        return _with_tails(seen, evidence)
    tails, shape = _tails_of(seen, evidence)
    return _channel(evidence, evidence.together_with(tails.disagree(shape, _residual(seen))), design)


def channel_of_shrunk(evidence: Evidence, design: Design) -> Channel:
    """That of the last round's first matrix: of rows as they were shrunk."""
    return _channel(evidence, evidence.alone, design)


@lru_cache(maxsize=1)
def _channel(evidence: Evidence, view: View, design: Design) -> Channel:
    """Kept until another is asked for: an estimate and its intervals start from the same."""
    basis = orthonormal(design, view, intercept=evidence.intercept)
    return _seen(evidence, view.law, basis, design, view.matrix.shape[-1])


def _seen(evidence: Evidence, law: Law, basis: Basis, design: Design, dim: int) -> Channel:
    values, axes = np.linalg.eigh(basis.block[..., :-1, :-1])
    cross = (axes.mT @ basis.block[..., :-1, -1:])[..., 0]
    seen = law.seen(values, cross, basis.block[..., -1, -1], dim)
    gain = seen.gain
    if evidence.hidden is not False:
        unknown = UNKNOWN_GAIN * np.sqrt(2 * seen.spread) * seen.weight
        gain = np.where(np.asarray(evidence.hidden)[..., None], unknown, gain)
    return Channel(
        **{**vars(seen), "gain": gain},
        measured=seen.gain,
        design=design,
        basis=basis,
        axes=axes,
        values=values,
        law=law,
        rows=evidence.rows,
        design_effect=evidence.design_effect,
        dim=dim,
    )


def _with_tails(seen: Channel, evidence: Evidence) -> Channel:
    """``seen`` with as much of the outer matrices as is believed, and what the rest leaves open.

    What is believed follows from the residual, and the residual from what is believed: a few steps settle both."""
    tails, shape = _tails_of(seen, evidence)
    believed, residual = None, _residual(seen)
    for _ in range(STEPS):
        before, residual = 0.0 if believed is None else believed, _residual(seen)
        believed = tails.judged(shape, residual, believed)
        block, law = tails.joined(shape, believed)
        seen = _seen(evidence, law, replace(seen.basis, block=block), seen.design, seen.dim)
        if np.max(np.abs(believed - before) * tails.scales) * tails.sd <= STEADY * law.sd_off_diagonal:
            break
    assert believed is not None
    return replace(seen, open=tails.left_open(shape, residual, believed, _regressors_apart(seen), _fit(seen)))


def _fit(seen: Channel) -> Array:
    """The direction of what the regressors say of the label, in the basis, less its mean where the regression has one; zero where that is
    nothing."""
    said, ones = seen.basis.along - seen.label_scale * _residual(seen)[:-1], seen.basis.ones
    if ones is not None and seen.design.names[0] == INTERCEPT:
        said = said - ones[:-1] * (ones[:-1] @ said) / max(float(ones[:-1] @ ones[:-1]), TINY)
    return np.append(said, 0.0) / max(float(np.linalg.norm(said)), TINY)


def _regressors_apart(seen: Channel) -> Array:
    """(p + 1, p) each regressor less what the others explain of it, in the basis, with length one."""
    rows = seen.basis.back(seen.design, np.eye(seen.gain.shape[-1]))
    return np.vstack([(rows / np.linalg.norm(rows, axis=1, keepdims=True)).T, np.zeros(len(rows))])


def _tails_of(seen: Channel, evidence: Evidence) -> tuple[Tails, Array]:
    """The matrices of the last round, and the shape of the first, in the basis of a channel of that round."""
    assert evidence.tails is not None
    assert seen.basis.vectors is not None
    return evidence.tails.within(seen.basis.vectors), seen.basis.block / evidence.tails.size


def _residual(seen: Channel) -> Array:
    """The label less the fit, in the basis."""
    return np.append(-(seen.axes @ seen.estimate), 1.0)


def orthonormal(design: Design, view: View, *, intercept: bool = False) -> Basis:
    """The basis of a regression, or of a stack of them. Released columns are one by themselves."""
    if view.turn is None and design.places is not None:
        places = design.places
        block = view.matrix[..., places[..., :, None], places[..., None, :]]
        return Basis(block, None, np.zeros(places.shape[-1] - 1), 1.0, (places == 0) * 1.0 if intercept else None)
    check_independent(design)
    label = view.turned(design.label[..., None])
    q, triangle = np.linalg.qr(view.turned(design.regressors))
    signs = np.where(np.diagonal(triangle, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    q, triangle = q * signs[..., None, :], signs[..., :, None] * triangle
    along = q.mT @ label
    rest = label - q @ along
    again = q.mT @ rest  # what rounding left, where the label is nearly a combination of the regressors
    along, rest = along + again, rest - q @ again
    size = np.linalg.norm(rest, axis=-2, keepdims=True)
    basis = np.concatenate([np.broadcast_to(q, (*rest.shape[:-1], q.shape[-1])), rest / size], axis=-1)
    ones = None
    if intercept:
        first = np.eye(len(design.label))[0] if view.turn is None else view.turn[..., :, 0]
        ones = (basis.mT @ (first / np.linalg.norm(first, axis=-1, keepdims=True))[..., None])[..., 0]
    return Basis(basis.mT @ view.matrix @ basis, triangle, along[..., 0], size[..., 0, 0], ones, basis)


def check_independent(design: Design) -> None:
    """Raise where the columns of the regression are dependent, whatever the data."""
    label = np.broadcast_to(design.label[..., None], (*design.regressors.shape[:-1], 1))
    triangle = np.linalg.qr(np.concatenate([design.regressors, label], axis=-1), mode="r")
    own = np.abs(np.diagonal(triangle, axis1=-2, axis2=-1))  # what each column adds to those before
    features = own[..., :-1]
    if (own[..., -1] < DEPENDENT * np.linalg.norm(design.label)).any() or (
        features.min(axis=-1, initial=np.inf) < DEPENDENT * features.max(axis=-1, initial=0.0)
    ).any():
        raise ModelError(
            f"the columns of this regression of {design.target!r} are exactly dependent, whatever the data are. An example is a category "
            f"with all its levels beside an intercept. Leave one column out."
        )
