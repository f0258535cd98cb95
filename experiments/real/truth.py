"""What a table itself says about a regression: least squares on all of its rows, robust standard errors, and how much it explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpgram.regression.design import Design, design
from experiments.real.tables import Table

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Truth:
    """The regression of one target on all other columns of a table, in their own units."""

    names: tuple[str, ...]
    coefficients: Array
    se: Array  # robust (HC1): what the sampling of rows leaves open
    r_squared: float
    asked: Design
    gram: Array  # of the encoded rows

    def explained(self, estimates: Mapping[str, float]) -> float:
        """R² of these coefficients on the table; below zero where the mean would have been a better guess."""
        own = np.array([estimates[name] for name in self.names])
        return _r_squared(self.gram, self.asked, np.linalg.solve(self.asked.to_own_units, own - self.asked.offset))


def least_squares(table: Table, target: str) -> Truth:
    """The truth about ``target``."""
    asked, rows = design(table.schema, target, None, None), table.rows
    x, y = rows @ asked.regressors, rows @ asked.label
    scaled = np.linalg.lstsq(x, y, rcond=None)[0]
    bread = np.linalg.inv(x.T @ x)
    scores = x * (y - x @ scaled)[:, None]
    n, p = x.shape
    half = asked.to_own_units @ bread @ scores.T
    se = np.sqrt(np.sum(half**2, axis=1) * n / (n - p))
    gram = rows.T @ rows
    own = asked.to_own_units @ scaled + asked.offset
    return Truth(asked.names, own, se, _r_squared(gram, asked, scaled), asked, gram)


def _r_squared(gram: Array, asked: Design, scaled: Array) -> float:
    left = asked.label - asked.regressors @ scaled
    about = asked.label.copy()
    about[0] -= gram[0] @ asked.label / gram[0, 0]
    return 1 - float(left @ gram @ left) / float(about @ gram @ about)
