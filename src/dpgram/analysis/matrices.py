"""Covariances, correlations and principal components of a release's columns, as results to print, plot and put in a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.moments import MomentErrors, moment_errors
from dpgram.regression.moments import Components, Moments, moments, principal_components
from dpgram.report.figures import draw_matrix, draw_shares, mark
from dpgram.report.summary import Summarised, Summary, cautions, components_summary, data_frame, matrix_summary, origin

Array = np.ndarray

KINDS = ("covariance", "correlation", "partial")


@dataclass(frozen=True, eq=False, repr=False)
class Covariance(Summarised, Moments):
    """Means, covariance and correlations of some columns, in own units, with standard errors."""

    release: GramRelease

    @cached_property
    def errors(self) -> MomentErrors:
        """Standard errors of ``mean``, ``covariance`` and ``correlation``: privacy noise and sampling together."""
        return moment_errors(Evidence.of(self.release), self)

    def matrix(self, kind: str = "covariance") -> Array:
        if kind not in KINDS:
            raise ModelError(f"kind is {kind!r} and must be one of {', '.join(KINDS)}.")
        return {"covariance": self.covariance, "correlation": self.correlation, "partial": self.partial_correlation}[kind]

    def to_frame(self, kind: str = "covariance") -> Any:
        """The matrix as a pandas data frame."""
        return data_frame({"": self.names, **dict(zip(self.names, self.matrix(kind).T, strict=True))}, index="")

    def to_dict(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "correlation": self.correlation.tolist(),
            "partial_correlation": self.partial_correlation.tolist(),
            "se_mean": self.errors.mean.tolist(),
            "se_covariance": self.errors.covariance.tolist(),
            "se_correlation": self.errors.correlation.tolist(),
            **_origin(self.release),
        }

    def summary(self, kind: str = "covariance") -> Summary:
        return matrix_summary(self.to_dict(), kind, self.matrix(kind).tolist())

    def plot(self, kind: str = "correlation", ax: Any = None) -> Any:
        """A heat map of the correlations, or the partial ones."""
        if kind == "covariance":
            raise ModelError('covariances have no common scale to be drawn on: use kind="correlation" or "partial".')
        titles = {"correlation": "Private correlations", "partial": "Private partial correlations"}
        return draw_matrix(self.names, self.matrix(kind).tolist(), titles.get(kind, "") + mark(self.release.private), ax)


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(Summarised, Components):
    """Principal components of some columns, from the largest variance down."""

    release: GramRelease

    def to_frame(self) -> Any:
        """Loadings as a pandas data frame, a row per component."""
        numbers = {"component": range(1, len(self.shares) + 1), "variance": self.variances, "share": self.shares}
        return data_frame({**numbers, **dict(zip(self.names, self.loadings.T, strict=True))}, index="component")

    def to_dict(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "standardised": self.standardised,
            "variances": self.variances.tolist(),
            "shares": self.shares.tolist(),
            "loadings": self.loadings.tolist(),
            **_origin(self.release),
        }

    def summary(self, components: int | None = None) -> Summary:
        """The first six components, or as many as asked for."""
        count = 6 if components is None else components
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise ModelError(f"components is {components!r} and must be a whole number of at least 1.")
        return components_summary(self.to_dict(), int(count))

    def plot(self, ax: Any = None) -> Any:
        """The share of each component."""
        return draw_shares(self.shares.tolist(), f"Private principal components{mark(self.release.private)}", ax)


def covariance(release: GramRelease, columns: Sequence[str] | None = None) -> Covariance:
    """Means, covariance and correlations of ``columns`` (all when left out), in own units. Costs no budget."""
    return Covariance(**vars(moments(Evidence.of(release), columns)), release=release)


def pca(release: GramRelease, columns: Sequence[str] | None = None, *, standardise: bool = False) -> PrincipalComponents:
    """Principal components of ``columns``; of their correlations when ``standardise``. Costs no budget."""
    components = principal_components(moments(Evidence.of(release), columns), standardise=standardise)
    return PrincipalComponents(**vars(components), release=release)


def _origin(release: GramRelease) -> dict[str, Any]:
    notes = cautions(release)
    if Evidence.of(release).kept is not None:  # whatever share was kept: a few long rows can be much of a variance
        notes.append(
            "Rows far from the others count for less: means and variances are those of rows as they were weighed. A bias from that is "
            "not in the standard errors."
        )
    return {**origin(release), "private": release.private, "condition": release.condition or None, "notes": notes}
