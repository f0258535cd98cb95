"""Parametric bootstrap through the mechanism: fitted rows, the same noise again, the same estimate again.

How far a refitted estimate lies from the model it was drawn from, in its own standard errors, has a law that is simulated; its
quantile replaces the normal or Student's one where it is larger. Draws come from a seeded generator: nothing here needs protection.

Of a wide release only the regression's own columns are drawn, where the law of the noise is known for them alone. Else matrices are drawn
and used a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

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
MOST_BYTES = 2**26  # of matrices at once; what is computed from them takes a few times as much


@dataclass(frozen=True, eq=False)
class Simulated:
    """Refits of simulated releases: how far each estimate is from the model that it was drawn from, and how far it believes to be."""

    errors: Array  # (draws, p) in own units
    known: Uncertainty  # a stack of as many

    @classmethod
    def of(cls, evidence: Evidence, plan: Design, *, draws: int = DRAWS, seed: int = 0) -> Simulated:
        evidence, plan = _narrow(evidence, plan, draws)
        (fitted, turn), rng = evidence.repaired_there, SeededSource(seed)
        target, parts = solve(fitted, plan, turn), []
        for some in _portions(draws, len(fitted)):
            again = channel(evidence.with_published(_published(evidence, some, rng)), plan)
            parts.append(cls(debiased(again) - target, uncertainty(again)))
        return parts[0] if len(parts) == 1 else cls._joined(parts)

    @classmethod
    def _joined(cls, parts: Sequence[Simulated]) -> Simulated:
        names = (field.name for field in fields(Uncertainty))
        known = {name: np.concatenate([getattr(part.known, name) for part in parts]) for name in names}
        return cls(np.concatenate([part.errors for part in parts]), Uncertainty(**known))

    def distances(self, combinations: Array | None = None) -> Array:
        """(draws, k) of combinations of coefficients, all of them one by one where None, in standard errors."""
        if combinations is None:
            return np.abs(self.errors) / self.known.se
        return np.abs(self.errors @ combinations.T) / self.known.of(combinations).se

    def intervals(self, seen: Channel, confidence: float, combinations: Array | None = None) -> Intervals:
        """Intervals around the debiased estimate, as many standard errors wide as refits need."""
        confidence = check_confidence(confidence)
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


def _narrow(evidence: Evidence, plan: Design, draws: int) -> tuple[Evidence, Design]:
    """The evidence of the columns that the regression uses, and the regression on it, where all columns would take much memory."""
    if draws * evidence.gram.nbytes <= MOST_BYTES:
        return evidence, plan
    places = sorted({*plan.used, *([0] if evidence.intercept else [])})
    some = evidence.among(places)
    return (evidence, plan) if some is None else (some, plan.among(places))


def _portions(draws: int, dim: int) -> list[int]:
    """How many matrices to draw at a time."""
    most = max(MOST_BYTES // (8 * dim**2), 1)
    return [min(most, draws - done) for done in range(0, draws, most)]


def _published(evidence: Evidence, draws: int, rng: SeededSource) -> Array:
    """What would be published of tables like the fitted one, each of as many independent rows, weighed to the same sum."""
    fitted = evidence.repaired_there[0]
    rows = max(evidence.effective_rows, len(fitted) + 1.0)
    root, published = np.linalg.cholesky(fitted / rows), np.empty((draws, *fitted.shape))
    for place in range(draws):
        half = root @ bartlett_factor(len(fitted), rows, rng)
        published[place] = evidence.published_again(half @ half.T, rng)
    return published
