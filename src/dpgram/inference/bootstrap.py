"""Parametric bootstrap through the mechanism: fitted rows, the same noise again, the same estimate again.

How far a refitted estimate lies from the model it was drawn from, in its own standard errors, has a law that is simulated; its
quantile replaces the normal or Student's one where it is larger. Draws come from a seeded generator: nothing here needs protection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import BOOTSTRAP, Intervals, Uncertainty, check_confidence, quantile, uncertainty, valued
from dpgram.regression.channel import Channel, channel
from dpgram.regression.design import Design
from dpgram.regression.fit import debiased, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.sampling.variates import bartlett_factor

Array = np.ndarray

DRAWS = 500


@dataclass(frozen=True, eq=False)
class Simulated:
    """Refits of simulated releases: how far each estimate is from the model that it was drawn from, and how far it believes to be."""

    errors: Array  # (draws, p) in own units
    known: Uncertainty  # a stack of as many

    @classmethod
    def of(cls, evidence: Evidence, plan: Design, *, draws: int = DRAWS, seed: int = 0) -> Simulated:
        fitted, turn = evidence.repaired_there
        again = channel(evidence.with_published(_published(evidence, draws, SeededSource(seed))), plan)
        return cls(debiased(again) - solve(fitted, plan, turn), uncertainty(again))

    def distances(self, combinations: Array | None = None) -> Array:
        """(draws, k) of combinations of coefficients, all of them one by one where None, in standard errors."""
        if combinations is None:
            return np.abs(self.errors) / self.known.se
        return np.abs(self.errors @ combinations.T) / self.known.of(combinations).se

    def intervals(self, seen: Channel, confidence: float, combinations: Array | None = None) -> Intervals:
        """Intervals around the debiased estimate, as many standard errors wide as refits need."""
        check_confidence(confidence)
        estimate = valued(combinations, debiased(seen))
        # The fitted matrix was made positive definite, so simulated regressions are better conditioned than the one at hand may be: their
        # quantile alone is too small where noise has few degrees of freedom.
        needed = np.quantile(self.distances(combinations), confidence, axis=0)
        reach = np.maximum(needed, quantile(confidence, seen.degrees)) * uncertainty(seen, combinations).se
        return Intervals(estimate - reach, estimate + reach, (BOOTSTRAP,) * len(estimate))

    def p_values(self, z: Array, combinations: Array | None = None) -> Array:
        """How often refits are farther off than ``z`` (k,) standard errors, by the quantiles that intervals are made of."""
        return np.array([_beyond(far, one) for far, one in zip(self.distances(combinations).T, z, strict=True)])

    def joint_p_value(self, statistic: float, combinations: Array) -> float:
        """How often Wald's statistic of several combinations is larger in refits."""
        away = (self.errors @ combinations.T)[:, :, None]
        whole = self.known.of(combinations).covariance
        return _beyond((away.mT @ np.linalg.solve(whole, away))[:, 0, 0], statistic)


def bootstrap(evidence: Evidence, plan: Design, confidence: float, *, draws: int = DRAWS, seed: int = 0) -> Intervals:
    """Intervals of all coefficients, from one set of refits."""
    return Simulated.of(evidence, plan, draws=draws, seed=seed).intervals(channel(evidence, plan), confidence)


def _beyond(values: Array, limit: float) -> float:
    """The share of ``values`` above ``limit``, interpolated as their quantiles are."""
    return 1 - float(np.interp(limit, np.sort(values), np.linspace(0.0, 1.0, len(values)), left=0.0))


def _published(evidence: Evidence, draws: int, rng: SeededSource) -> Array:
    """What would be published of tables like the fitted one, each of as many independent rows, weighed to the same sum."""
    fitted = evidence.repaired_there[0]
    rows = max(evidence.effective_rows, len(fitted) + 1.0)
    root, published = np.linalg.cholesky(fitted / rows), np.empty((draws, *fitted.shape))
    for place in range(draws):
        half = root @ bartlett_factor(len(fitted), rows, rng)
        published[place] = evidence.published_again(half @ half.T, rng)
    return published
