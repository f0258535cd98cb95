"""The rest of the way of a release, in `dpgram audit`: from cells to the bounded rows whose Gram sum a mechanism protects."""

from __future__ import annotations

import math
import warnings

import numpy as np

from dpgram import curator
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema

CELLS = ((1.0, -1.0), (1e300, -1e300), (2.0, 2.0), (math.inf, 1.0), (math.nan, -7.0), (-0.5, 0.1))
EPSILON, DELTA, SLACK = 1e6, 0.01, 0.02  # a budget so large that the noise is a thousandth of a row: what was summed shows
FAR = 12.0  # standard deviations, which noise does not add to a trace


def faults_of_rows() -> list[str]:
    """What releases of tables of one row say about its norm: whatever stands in its cells, it is at most the row bound.

    The mechanism is Gaussian noise, whose standard deviation is here some 0.0007 B^2; the trace may exceed B^2 by twenty times as much.
    Then it is one of several rounds, where a row's norm is at most one after every map."""
    faults = []
    for row_bound in (None, 0.7):
        schema = Schema(unit="row", columns=(Numeric("a", -1, 1), Numeric("b", -1, 1)), row_bound=row_bound)
        for cells in CELLS:
            table = {name: np.array([cell]) for name, cell in zip("ab", cells, strict=True)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about cells out of bounds, which are meant
                plain, rounds = (
                    curator.release(table, schema, epsilon=EPSILON, delta=DELTA, mechanism=name)
                    for name in ("gaussian-noise", "whitened-noise")
                )
            if not np.trace(plain.gram) <= schema.effective_row_bound**2 * (1 + SLACK):
                faults.append("a row that is longer than the row bound")
            far = FAR * math.sqrt(2 * len(rounds.gram))
            matrices = ((m, each.sd_off_diagonal) for each in rounds.noise.rounds for m in (each.gram, *each.outer))
            if not all(np.trace(matrix) <= 1 + far * sd for matrix, sd in matrices):
                faults.append("a row that is longer than one after a map")
    return list(dict.fromkeys(faults))
