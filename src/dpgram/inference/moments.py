"""Standard errors of means, covariances and correlations: privacy noise to first order, and the sampling of normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.regression.moments import Moments

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Standard errors in own units, in the shape of what they belong to."""

    mean: Array
    covariance: Array
    correlation: Array


def moment_errors(evidence: Evidence, of: Moments) -> MomentErrors:
    """Standard errors of the moments of some columns, noise and sampling together."""
    encoded = evidence.schema.encoded
    places = [evidence.schema.places[name][0] for name in of.names]
    rows, unit = of.rows, np.eye(len(encoded))
    middle = (of.mean - np.array([encoded[j].centre for j in places])) / of.half
    about = unit[places] - middle[:, None] * unit[0]  # each column less its mean, as a combination of columns
    size = of.sd / of.half  # standard deviations in scaled units
    whole = np.maximum(rows, 1.0)
    r, sizes = of.correlation, np.outer(size, size)
    products, excess, forms = evidence.noise_law(np.vstack([unit[:1], about / size[:, None]]))
    lengths, fourth = np.diag(products), excess * forms**2 @ (forms**2).T
    both = np.outer(lengths, lengths) + products**2 + fourth  # variance of a'Eb, for each pair of a and b
    mean = both[0, 1:] / whole**2 + 1 / whole
    covariance = both[1:, 1:] / whole**2 + (1 + r**2) / whole
    # To first order a correlation r moves by a'Eb - r/2 (a'Ea + b'Eb).
    ends = 2 * lengths[:, None] * products + excess * forms**3 @ forms.T  # covariance of a'Eb with a'Ea
    apart = 2 * products**2 + fourth  # ... of a'Ea with b'Eb
    own = np.diag(both)
    moved = both[1:, 1:] - r * (ends + ends.T)[1:, 1:] + r**2 / 4 * (own[:, None] + own + 2 * apart)[1:, 1:]
    correlation = np.maximum(moved, 0.0) / whole**2 + (1 - r**2) ** 2 / whole
    np.fill_diagonal(correlation, 0.0)
    return MomentErrors(
        of.half * size * np.sqrt(mean), np.outer(of.half, of.half) * sizes * np.sqrt(covariance), np.sqrt(correlation)
    )
