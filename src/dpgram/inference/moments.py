"""Standard errors of means, covariances and correlations: privacy noise to first order, and the sampling of normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import Moments

Array = np.ndarray

HIDDEN = 1 / 3  # standard deviations of its noise, over a variance: above it, the variance may be nothing but noise


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Standard errors in own units, in the shape of what they belong to."""

    mean: Array
    covariance: Array
    correlation: Array


def moment_errors(evidence: Evidence, of: Moments) -> MomentErrors:
    """Standard errors of the moments of some columns, noise and sampling together."""
    size, whole = of.sd / of.half, np.maximum(of.rows, 1.0)
    r, sizes = of.correlation, np.outer(size, size)
    products, excess, forms = evidence.noise_law(_standardised(evidence, of))
    lengths, fourth = np.diag(products), excess * forms**2 @ (forms**2).T
    both = np.outer(lengths, lengths) + products**2 + fourth  # variance of a'Eb, for each pair of a and b
    sampled = evidence.design_effect / whole
    mean = both[0, 1:] / whole**2 + sampled
    covariance = both[1:, 1:] / whole**2 + (1 + r**2) * sampled
    # To first order a correlation r moves by a'Eb - r/2 (a'Ea + b'Eb).
    ends = 2 * lengths[:, None] * products + excess * forms**3 @ forms.T  # covariance of a'Eb with a'Ea
    apart = 2 * products**2 + fourth  # ... of a'Ea with b'Eb
    own = np.diag(both)
    moved = both[1:, 1:] - r * (ends + ends.T)[1:, 1:] + r**2 / 4 * (own[:, None] + own + 2 * apart)[1:, 1:]
    correlation = np.maximum(moved, 0.0) / whole**2 + (1 - r**2) ** 2 * sampled
    np.fill_diagonal(correlation, 0.0)
    return MomentErrors(
        of.half * size * np.sqrt(mean), np.outer(of.half, of.half) * sizes * np.sqrt(covariance), np.sqrt(correlation)
    )


def unrelated_errors(evidence: Evidence, of: Moments) -> Array:
    """Standard errors that the correlations would have, were all of them zero."""
    products, excess, forms = evidence.noise_law(_standardised(evidence, of)[1:])
    lengths, whole = np.diag(products), np.maximum(of.rows, 1.0)
    noise = np.outer(lengths, lengths) + products**2 + excess * forms**2 @ (forms**2).T
    return np.sqrt(noise / whole**2 + evidence.design_effect / whole)


def _standardised(evidence: Evidence, of: Moments) -> Array:
    """The intercept, then each column less its mean, over its standard deviation, as combinations of columns."""
    encoded = evidence.schema.encoded
    places = [evidence.schema.places[name][0] for name in of.names]
    unit = np.eye(len(encoded))
    middle = (of.mean - np.array([encoded[j].centre for j in places])) / of.half
    about = unit[places] - middle[:, None] * unit[0]
    return np.vstack([unit[:1], about / (of.sd / of.half)[:, None]])


def hidden_columns(evidence: Evidence, of: Moments) -> Array:
    """Columns whose variance may be nothing but noise, such as rare levels: their correlations with each other may be anything."""
    products, excess, forms = evidence.noise_law(_standardised(evidence, of)[1:])
    variance = 2 * np.diag(products) ** 2 + excess * np.sum(forms**4, axis=1)
    return np.sqrt(variance) / np.maximum(of.rows, 1.0) > HIDDEN


def unrelated_penalty(evidence: Evidence, of: Moments, chance: float = 0.05, shown: Array | None = None) -> float:
    """The penalty of a graphical lasso at which columns without any relation have an edge with a probability of about ``chance``.

    There is none where every correlation is at most the penalty. Of p (p - 1) / 2 unrelated pairs the expected number beyond it is
    ``chance``. It is at most one, where nothing has an edge. Only columns that are ``shown`` count."""
    places = np.arange(len(of.names)) if shown is None else np.flatnonzero(shown)
    pairs = np.triu_indices(len(places), 1)
    errors = unrelated_errors(evidence, of)[np.ix_(places, places)][pairs]
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * np.sum(ndtr(-middle / errors)) > chance else (low, middle)
    return high
