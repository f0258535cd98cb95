"""Numbers by which releases of two tables may be told apart.

The privacy loss is the best where the law is the proven one. Two more know nothing of the mechanism: a linear and a quadratic
discriminant of the published entries, fitted to the first releases. They find mistakes that the proven law does not foresee."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpgram.mechanisms.conversation import Outcome

Array = np.ndarray
OutcomeScore = Callable[[Outcome, Array], Array]
"""(releases, their entries above the diagonal, one release in a row) -> one number each, larger where the first table is likelier."""

WIDEST = 60  # entries, for a quadratic discriminant


def scores(loss: Callable[[Outcome], Array], first: Array, second: Array) -> list[OutcomeScore]:
    """The scores, from some releases of each table; the loss comes first."""
    known: list[OutcomeScore] = [lambda many, entries: loss(many)]
    low, middle, high = np.quantile(np.vstack([first, second]), [0.25, 0.5, 0.75], axis=0)
    width = np.where(high > low, high - low, np.abs(middle) + 1e-300)

    def tame(entries: Array) -> Array:  # heavy tails must not rule
        return np.arcsinh((entries - middle) / width)

    one, other = tame(first), tame(second)
    weights = discriminant(one, other)
    known.append(lambda many, entries: tame(entries) @ weights)
    if first.shape[1] <= WIDEST:
        a, b = _log_density(one), _log_density(other)
        known.append(lambda many, entries: a(tame(entries)) - b(tame(entries)))
    return known


def discriminant(one: Array, other: Array) -> Array:
    """Weights of the entries that tell the two tables best apart, if both laws are normal with one covariance (Fisher)."""
    step = one.mean(axis=0) - other.mean(axis=0)
    within = _covariance(one) + _covariance(other)
    return np.linalg.solve(within + _little(within), step)


def _covariance(rows: Array) -> Array:
    return np.cov(rows.T).reshape(rows.shape[1], -1)


def _little(covariance: Array) -> Array:
    return (1e-9 * np.trace(covariance) / len(covariance) + 1e-12) * np.eye(len(covariance))


def _log_density(rows: Array) -> Callable[[Array], Array]:
    """ln of the normal density that fits the rows, up to a constant."""
    mean = rows.mean(axis=0)
    covariance = _covariance(rows)
    inverse = np.linalg.inv(covariance + _little(covariance))
    return lambda entries: -np.einsum("ni,ij,nj->n", entries - mean, inverse, entries - mean, optimize=True) / 2
