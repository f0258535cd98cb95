"""Means, covariance, correlations and principal components from the evidence of a release. Post-processing: sees no row.

The matrix is first made positive definite, so every function here has an answer, however large the noise is. ``inference`` says how
accurate the answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import check_unit, feature_places

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Moments:
    """Means and covariance of some columns in their own units, estimated from a release.

    ``rows`` is the public number of rows where every row counted as one, else a noisy estimate, in which rows of a smaller share and
    shrunk ones count for less."""

    names: tuple[str, ...]
    rows: float
    mean: Array
    covariance: Array
    half: Array  # half-ranges: noise is even where every column has a half-range of one

    @property
    def sd(self) -> Array:
        """Standard deviations of the columns."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> Array:
        """Correlation matrix."""
        return _correlation(self.covariance)

    @property
    def precision(self) -> Array:
        """Inverse of the covariance matrix."""
        scaled = np.linalg.inv(self.covariance / self.half[:, None] / self.half)  # well conditioned in these units
        inverse = scaled / self.half[:, None] / self.half
        return (inverse + inverse.T) / 2

    @property
    def partial_correlation(self) -> Array:
        """Correlation of each pair of columns, given all the other columns."""
        partial = -_correlation(self.precision)
        np.fill_diagonal(partial, 1.0)
        return partial


def _correlation(covariance: Array) -> Array:
    sd = np.sqrt(np.diag(covariance))
    correlation = np.clip(covariance / sd[:, None] / sd, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def moments(evidence: Evidence, columns: Sequence[str] | None = None) -> Moments:
    """Moments of ``columns``, declared or encoded ones; of all when left out. Divisor n."""
    if not evidence.intercept:
        raise ModelError("means and covariances need the intercept column, but the release was made without one.")
    encoded, places = evidence.schema.encoded, feature_places(evidence.schema, columns, [], "columns")
    if not places:
        raise ModelError("the list of columns is empty. Name at least one, or leave out the list to use all columns.")
    for j in places:
        check_unit(encoded[j].name, encoded[j].half)
    gram = evidence.whole
    half = np.array([encoded[j].half for j in places])
    centre = np.array([encoded[j].centre for j in places])
    count, cross = gram[0, 0], gram[0, places]
    inner = gram[np.ix_(places, places)] - np.outer(cross, cross) / count  # a Schur complement: definite like the whole
    covariance = half[:, None] * (inner + inner.T) / 2 / count * half
    known = evidence.schema.counts_partly or (evidence.public_rows and evidence.never_shrunk)
    rows = evidence.rows if known else float(count)
    return Moments(tuple(encoded[j].name for j in places), rows, centre + half * cross / count, covariance, half)


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components, from the largest variance down; each row of ``loadings`` has its largest entry positive."""

    names: tuple[str, ...]
    variances: Array
    loadings: Array  # (components, columns): one unit vector per row
    standardised: bool

    @property
    def shares(self) -> Array:
        """Share of the total variance that each component explains."""
        return self.variances / self.variances.sum()


def principal_components(of: Moments, *, standardise: bool = False) -> Components:
    """Components of the covariance, or of the correlations when ``standardise``."""
    values, vectors = np.linalg.eigh(of.correlation if standardise else of.covariance)
    directions = vectors[:, ::-1].T
    largest = np.abs(directions).argmax(axis=1)
    signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
    return Components(of.names, np.maximum(values[::-1], 0.0), directions * signs[:, None], standardise)
