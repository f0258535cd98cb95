"""Least squares from a release: ``regress`` and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import IndefiniteGramError, ModelError
from dpgram.linalg.symmetric import log_det_repair, smallest_eigenvalue
from dpgram.regression.design import Design, design
from dpgram.terms.noise import NoisyInverse

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of one regression, in the columns' own units."""

    target: str
    names: tuple[str, ...]
    coefficients: Array
    estimator: str
    design: Design
    gram: Array  # the matrix the coefficients solve, on all released columns: as released, or repaired

    @property
    def params(self) -> dict[str, float]:
        """Coefficient by name."""
        return dict(zip(self.names, self.coefficients.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"LinearFit({self.target} ~ {' + '.join(self.names)}, estimator={self.estimator})"


def regress(
    release: GramRelease,
    target: str,
    features: Sequence[str] | None = None,
    *,
    estimator: str = "log-det",
    intercept: bool | None = None,
) -> LinearFit:
    """The regression of ``target`` on ``features`` (when left out, all columns that share no declared column with it).

    Post-processing: costs no budget. Features are declared or derived columns (one with levels stands for all its indicators) or
    single levels such as ``"carrier[AA]"``. Estimators:

    - ``log-det`` (the default) takes off the public shift that the mechanism left in the matrix, makes the whole of it positive
      definite, then solves; it always has an answer.
    - ``plain`` solves with the matrix as released (a ridge is left in it), and raises IndefiniteGramError where that has no
      meaning."""
    if not isinstance(release, GramRelease):
        raise ModelError(f"release is a {type(release).__name__} and must be a GramRelease: use dpgram.load(path) first.")
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise ModelError(f"there is no estimator {estimator!r}: use one of {', '.join(ESTIMATORS)}.")
    plan = design(release, target, features, intercept)
    gram = ESTIMATORS[estimator](release, plan)
    scaled = np.linalg.solve(plan.regressors.T @ gram @ plan.regressors, plan.regressors.T @ gram @ plan.label)
    return LinearFit(
        target=plan.target,
        names=plan.names,
        coefficients=plan.to_own_units @ scaled + plan.offset,
        estimator=estimator,
        design=plan,
        gram=gram,
    )


def _log_det(release: GramRelease, plan: Design) -> Array:
    noise = release.noise
    if isinstance(noise, NoisyInverse):
        return np.linalg.inv(log_det_repair(np.linalg.inv(release.gram), noise.sd_off_diagonal_of_inverse))
    return log_det_repair(release.gram - noise.shift * np.eye(len(release.gram)), noise.sd_off_diagonal)


def _plain(release: GramRelease, plan: Design) -> Array:
    smallest = smallest_eigenvalue(plan.regressors.T @ release.gram @ plan.regressors)
    if smallest <= 0:
        raise IndefiniteGramError(smallest=smallest, noise=release.noise.sd_off_diagonal)
    return release.gram


ESTIMATORS: dict[str, Callable[[GramRelease, Design], Array]] = {"log-det": _log_det, "plain": _plain}
