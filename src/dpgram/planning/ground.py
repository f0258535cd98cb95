"""What a forecast stands on: the second moments of assumed rows, or of a public sample, and one regression on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from dpgram.errors import PlanError
from dpgram.linalg.scales import weights
from dpgram.regression.design import Design
from dpgram.regression.design import design as design_of
from dpgram.regression.fit import solve
from dpgram.terms.scales import SWITCH, Scales
from dpgram.terms.schema import INTERCEPT, Schema

Array = np.ndarray

MOST_CONDITION = 1e13  # of the standardised features' moments, beyond which a solve has no digits left
NORMAL_MEDIAN = 0.6744897501960817  # of the absolute value of a standard normal variate


@dataclass(frozen=True, eq=False)
class Shrinking:
    """By how much shrunk rows move least squares, in own units: on average, and from table to table."""

    bias: Array  # (p,)
    per_row: Array  # (p,) standard deviations on a table of one row; of n rows, over sqrt(n)


@dataclass(frozen=True, eq=False)
class Ground:
    """Scaled rows that stand for a table, and a regression on them. Coefficients and errors are in own units."""

    schema: Schema
    rows: Array  # (any number, d), scaled, not shrunk
    design: Design
    truth: Array  # (p,) least squares on the rows
    per_row: Array  # (p,) standard errors of least squares on a table of one such row; of n rows, over sqrt(n)
    size: Array  # (p,) a coefficient's standardised value over its own: sd of its column over sd of the target
    places: Array  # the coefficients among which a typical one is looked for: numbers, where there are any
    left_out: tuple[str, ...]  # features that are constant in the rows
    counted: float = 1.0  # how much a row counts on average
    given_design_effect: float | None = None  # see evidence.design_effect; the worst case where none was given

    @property
    def design_effect(self) -> float:
        """By what the variance from the sampling of rows is multiplied."""
        return float(self.schema.most_rows) if self.given_design_effect is None else self.given_design_effect

    def effective(self, rows: float) -> float:
        """As many independent rows, which count in full, tell as much as so many rows of the table."""
        return rows * self.counted / self.design_effect

    @property
    def typical(self) -> int:
        """The place of the coefficient in whose units a typical one is told: its standardised sampling error is the median one."""
        sizes = (self.per_row * self.size)[self.places]
        return int(self.places[np.argsort(sizes, kind="stable")[(len(sizes) - 1) // 2]])

    def in_typical_units(self, values: Array) -> float:
        """The median of the standardised ``values`` of (p,) coefficients, told in the units of the typical one."""
        return float(np.median((values * self.size)[self.places])) / float(self.size[self.typical])

    def sampling_sd(self, rows: float) -> Array:
        """Standard errors of least squares on a table of so many rows, not private; infinite where there are too few."""
        rows = self.effective(rows)
        return self.per_row / math.sqrt(rows) if rows > len(self.truth) else np.full(len(self.truth), np.inf)

    def norms(self, through: Array | None = None) -> Array:
        """Lengths of the rows, multiplied by ``through`` where it is given."""
        rows = self.rows if through is None else self.rows @ through.T
        return np.sqrt(np.einsum("ij,ij->i", rows, rows))

    def moments(self, row_bound: float = math.inf, through: Array | None = None) -> Array:
        """The mean of z z' over the rows, each shrunk as if it were mapped by ``through`` and then had ``row_bound``; not mapped itself."""
        return self._mean_square(self._weights(row_bound, through)) if through is not None else self._plain_moments(row_bound)

    @cached_property
    def _plain_moments(self) -> Callable[[float], Array]:
        """Those of rows without a map, once for each bound: mechanisms of one sum ask for the same."""
        return cache(lambda row_bound: self._mean_square(self._weights(row_bound)))

    def moments_at(self, through: Array, scales: Scales) -> list[Array]:
        """The mean of z z' at each of several scales, in its units, of rows that are shared between them; with one, a bound of one."""
        shares = weights(self.norms(through) ** 2, scales, SWITCH)
        return [self._mean_square(share) for share in shares]

    def _mean_square(self, weights: Array) -> Array:
        """The mean of w z z' over the rows. Its last bits decide in which direction a map turns, and so which noise a coefficient meets."""
        return (self.rows * weights[:, None]).T @ self.rows / len(self.rows)

    def _weights(self, row_bound: float, through: Array | None = None) -> Array:
        """A row that is shrunk by s counts for s^2."""
        norms = self.norms(through)
        return np.minimum(1.0, row_bound / np.where(norms > 0, norms, 1.0)) ** 2

    def shrinking(self, row_bound: float, through: Array | None = None) -> Shrinking:
        """What shrinking the rows to ``row_bound``, after a map where there is one, does to least squares: a regression with weights.

        Each row's influence on the difference gives its law. Where a linear model holds, the mean is zero, and what some thousand rows
        show of it is chance: all coefficients are drawn towards zero by the share that chance explains (James and Stein), each
        counted in units of its own chance, so that one that a few long rows decide does not hide the others."""
        return self._shrinking(row_bound, through) if through is not None else self._plain_shrinking(row_bound)

    @cached_property
    def _plain_shrinking(self) -> Callable[[float], Shrinking]:
        return cache(self._shrinking)

    def _shrinking(self, row_bound: float, through: Array | None = None) -> Shrinking:
        weights = self._weights(row_bound, through)
        if (weights == 1.0).all():
            return Shrinking(np.zeros_like(self.truth), np.zeros_like(self.truth))
        (beta, influence), (plain, plain_influence) = self._least_squares(weights), self._unweighted
        moved, variance = beta - plain, (influence - plain_influence).var(axis=0)
        chance = np.maximum(variance[self.places] / len(self.rows), np.finfo(float).tiny)
        shown = float(np.mean(moved[self.places] ** 2 / chance))  # one, where all of it is chance
        return Shrinking(moved * (1 - 1 / shown if shown > 1 else 0.0), np.sqrt(variance))

    @cached_property
    def _unweighted(self) -> tuple[Array, Array]:
        return self._least_squares(np.ones(len(self.rows)))

    def _least_squares(self, weights: Array) -> tuple[Array, Array]:
        """Coefficients of weighted least squares, (p,), and the influence of each row on them, (rows, p)."""
        x, y = self._regression
        inverse = np.linalg.pinv((x * weights[:, None]).T @ x / len(x), hermitian=True)
        beta = inverse @ (x.T @ (weights * y)) / len(x)
        back = inverse @ self.design.to_own_units.T
        return self.design.to_own_units @ beta, (x * (weights * (y - x @ beta))[:, None]) @ back

    @cached_property
    def _regression(self) -> tuple[Array, Array]:
        return self.rows @ self.design.regressors, self.rows @ self.design.label

    def with_bound(self, row_bound: float) -> Ground:
        """This ground under a schema with another row bound."""
        return replace(self, schema=replace(self.schema, row_bound=row_bound))


def alike_in_words(ground: Ground) -> str:
    """What is assumed of the rows of a unit, where nobody gave a design effect and there can be several."""
    if ground.given_design_effect is not None or ground.schema.most_rows == 1:
        return ""
    return (
        f"; all rows of one {ground.schema.unit} have the same error, the worst case (design effect {ground.design_effect:g})"
    )


def ground_of(schema: Schema, rows: Array, target: str, features: Sequence[str] | None = None) -> Ground:
    """The regression of ``target`` on ``features`` (by default all others) over scaled ``rows``."""
    if len(rows) < 2 or not np.isfinite(rows).all():
        raise PlanError("the sample is too small. A forecast needs at least two rows.")
    design = design_of(schema, target, features, None)
    moments = rows.T @ rows / len(rows)
    sd = _standard_deviations(moments, design.regressors, schema.intercept)
    constant = tuple(name for name, s in zip(design.names, sd, strict=True) if name != INTERCEPT and s < 1e-12)
    if constant:  # such as a category that a sample does not hold
        design = design_of(schema, target, [name for name in design.names if name != INTERCEPT and name not in constant], None)
        sd = _standard_deviations(moments, design.regressors, schema.intercept)
    target_sd = _standard_deviations(moments, design.label[:, None], schema.intercept)[0]
    if target_sd < 1e-12:
        raise PlanError(f"{design.target!r} is constant in the sample. Choose another target, or give a larger sample.")
    own = design.regressors.T @ moments @ design.regressors
    scale = np.sqrt(np.diag(own))
    if np.linalg.cond(own / np.outer(scale, scale)) > MOST_CONDITION:
        raise PlanError(
            f"the features of {design.target!r} are linearly dependent in the sample. Use fewer features, or give more rows."
        )
    inverse = np.linalg.inv(own)
    cross = design.regressors.T @ moments @ design.label
    left = max(float(design.label @ moments @ design.label - cross @ inverse @ cross), 0.0)
    rows = _without_chance(rows, design, own, inverse @ cross, left)
    truth = solve(rows.T @ rows / len(rows), design)
    per_row = np.sqrt(left * np.einsum("ij,jk,ik->i", design.to_own_units, inverse, design.to_own_units))
    units = np.abs(np.diag(design.to_own_units))  # of the target over the feature's
    return Ground(
        schema=schema,
        rows=rows,
        design=design,
        truth=truth,
        per_row=per_row,
        size=np.where(sd > 0, sd, 1.0) / (target_sd * units),
        places=_numbers(schema, design.names),
        left_out=constant,
    )


def _without_chance(rows: Array, design: Design, own: Array, beta: Array, left: float) -> Array:
    """The rows with a target whose coefficients are smaller, along weak directions of the features, by what chance explains of them.

    Along a weak direction a sample's coefficient is mostly chance, and too large on average; an estimator that shrinks would then be
    forecast to lose what is not there. Errors of the regression stay as they are."""
    values, axes = np.linalg.eigh(own)
    seen = axes.T @ beta
    chance = left / (len(rows) * np.maximum(values, np.finfo(float).tiny))
    kept = np.maximum(1 - chance / np.where(seen != 0, seen**2, np.inf), 0.0)  # positive part of Stein's rule
    change = (rows @ design.regressors) @ (axes @ ((kept - 1) * seen))
    return rows + np.outer(change, design.label / (design.label @ design.label))


def _standard_deviations(moments: Array, weights: Array, intercept: bool) -> Array:
    """Of each column that ``weights`` makes, in scaled units; root mean squares where there is no intercept to measure from."""
    squares = np.einsum("ij,ik,kj->j", weights, moments, weights)
    means = weights.T @ moments[:, 0] if intercept else np.zeros(len(squares))
    return np.sqrt(np.maximum(squares - means**2, 0.0))


def _numbers(schema: Schema, names: Sequence[str]) -> Array:
    """Places of the numbers among the coefficients; of all slopes where there is none; of the intercept where it is alone."""
    slopes = [place for place, name in enumerate(names) if name != INTERCEPT]
    numbers = [place for place in slopes if names[place] in schema.made and schema.made[names[place]].is_number]
    return np.array(numbers or slopes or [0])
