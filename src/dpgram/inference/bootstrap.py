"""Parametric bootstrap through the mechanism: fitted rows, the same noise again, the same estimate again.

How far a refitted estimate lies from the model it was drawn from, in its own standard errors, has a law that is simulated; its
quantile replaces the normal or Student's one where it is larger. Draws come from a seeded generator: nothing here needs protection."""

from __future__ import annotations

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import Intervals, check_confidence, quantile, uncertainty
from dpgram.regression.channel import channel
from dpgram.regression.design import Design
from dpgram.regression.fit import debiased, solve
from dpgram.sampling.seeded import SeededSource
from dpgram.sampling.variates import bartlett_factor

Array = np.ndarray

DRAWS = 500


def bootstrap(evidence: Evidence, plan: Design, confidence: float, *, draws: int = DRAWS, seed: int = 0) -> Intervals:
    """Intervals around the debiased estimate, as many standard errors wide as refits of simulated releases need."""
    check_confidence(confidence)
    fitted, turn = evidence.repaired_there
    again = channel(evidence.with_published(_published(evidence, draws, SeededSource(seed))), plan)
    far = np.abs(debiased(again) - solve(fitted, plan, turn)) / uncertainty(again).se
    seen = channel(evidence, plan)
    estimate = debiased(seen)
    # The fitted matrix was made positive definite, so simulated regressions are better conditioned than the one at hand may be: their
    # quantile alone is too small where noise has few degrees of freedom.
    reach = np.maximum(np.quantile(far, confidence, axis=0), quantile(confidence, seen.degrees)) * uncertainty(seen).se
    return Intervals(estimate - reach, estimate + reach, ("bootstrap",) * len(estimate))


def _published(evidence: Evidence, draws: int, rng: SeededSource) -> Array:
    """What would be published of tables like the fitted one, each of as many independent rows, weighed to the same sum."""
    fitted = evidence.repaired_there[0]
    rows = max(evidence.effective_rows, len(fitted) + 1.0)
    root, published = np.linalg.cholesky(fitted / rows), np.empty((draws, *fitted.shape))
    for place in range(draws):
        half = root @ bartlett_factor(len(fitted), rows, rng)
        published[place] = evidence.published_again(half @ half.T, rng)
    return published
