"""``regress`` and ``penalty_path``: from a release and the name of a target, or a formula, to fitted models or a path of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.analysis.compare import Comparison, compare
from dpgram.analysis.fit import Fit
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Design, Target, design
from dpgram.regression.formula import designs, is_formula
from dpgram.regression.penalised import penalty_path as path_of
from dpgram.report.figures import draw_path, mark
from dpgram.report.summary import Summarised, Summary, data_frame
from dpgram.terms.schema import Schema

Array = np.ndarray


class Fits(Summarised, tuple[Fit, ...]):
    """Several fits from one release, in order; ``compare()`` lays them side by side."""

    def compare(self) -> Comparison:
        by_target = {fit.target: fit for fit in self}
        return compare(by_target if len(by_target) == len(self) else self)  # numbered where two have one target

    def summary(self) -> Summary:
        return self.compare().summary()


def regress(
    release: GramRelease,
    target: Target | Sequence[Target],
    features: Sequence[str] | None = None,
    *,
    estimator: str = "shrunk",
    intervals: str = "auto",
    confidence: float = 0.95,
    intercept: bool | None = None,
    penalty: float | None = None,
    l1_ratio: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Fit | Fits:
    """The regression of ``target`` on ``features`` (all columns that do not come from the target's own, when left out).

    Post-processing: costs no budget. ``target`` is a column, a formula such as ``"arr_delay ~ dep_delay + carrier - 1"``, a dict of columns
    with weights (their weighted sum is explained), or a list of these, which gives several fits at once. Features are declared or derived
    columns (one with levels stands for all of them) or single levels such as ``"carrier[AA]"``.

    ``estimator`` says what ``fit.estimates`` and ``fit.predict`` use:

    - ``shrunk`` (the default) has the smallest error to be expected, at any budget;
    - ``log-det`` makes the whole matrix positive definite, then solves; ``debiased`` removes the bias of inverting a noisy matrix;
      ``plain`` solves with the matrix as released, and raises IndefiniteGramError where that has no meaning;
    - ``ridge``, ``lasso`` and ``elastic-net`` take a ``penalty`` as in scikit-learn, or choose one from the public size of the noise.

    ``fit.params`` and intervals are always of the debiased estimate. ``intervals`` is "auto" (Wald, and Fieller for what is weakly
    identified), "wald", "fieller" or "bootstrap". ``progress`` is called with the share of the regressions that are done."""
    schema = Evidence.of(release).schema
    targets = [target] if isinstance(target, str | Mapping) or not isinstance(target, Sequence) else list(target)
    several = targets != [target]
    if not targets:
        raise ModelError("the list of targets is empty: name one.")
    asked = [each for one in targets for each in asked_designs(schema, one, features, intercept)]
    options = {"penalty": penalty, "l1_ratio": l1_ratio}
    fits = []
    for done, each in enumerate(asked, 1):
        fits.append(Fit(release, each, estimator=estimator, intervals=intervals, confidence=confidence, **options))
        if progress is not None:
            progress(done / len(asked))
    return Fits(fits) if several or len(fits) > 1 else fits[0]


@dataclass(frozen=True, eq=False, repr=False)
class PenaltyPath:
    """Coefficients in own units along a list of penalties, from the largest down."""

    target: str
    names: tuple[str, ...]
    penalties: Array  # (k,)
    coefficients: Array  # (k, p)
    private: bool

    def at(self, penalty: float) -> dict[str, float]:
        """Coefficients by name at the listed penalty nearest to this one."""
        place = int(np.argmin(np.abs(np.log(self.penalties / max(penalty, np.finfo(float).tiny)))))
        return dict(zip(self.names, self.coefficients[place].tolist(), strict=True))

    def to_frame(self) -> Any:
        """A pandas data frame, a row per penalty."""
        columns = zip(self.names, self.coefficients.T, strict=True)
        return data_frame({"penalty": self.penalties, **dict(columns)}, index="penalty")

    def plot(self, ax: Any = None) -> Any:
        """Coefficients against the penalty."""
        title = f"Path of {self.target}{mark(self.private)}"
        return draw_path(self.names, self.penalties.tolist(), self.coefficients.tolist(), title, ax)

    def __repr__(self) -> str:
        return f"PenaltyPath({self.target} ~ {' + '.join(self.names)}, {len(self.penalties)} penalties){mark(self.private)}"


def penalty_path(
    release: GramRelease,
    target: Target,
    features: Sequence[str] | None = None,
    *,
    l1_ratio: float = 1.0,
    penalties: int = 60,
    intercept: bool | None = None,
) -> PenaltyPath:
    """The lasso's path (an elastic net's where ``l1_ratio`` < 1), from a release alone. Costs no budget.

    Penalties are scikit-learn's alpha; target, features and formulas are as in ``regress``."""
    evidence = Evidence.of(release)
    if isinstance(penalties, bool) or not isinstance(penalties, Integral) or penalties < 1:
        raise ModelError(f"penalties is {penalties!r} and must be a whole number of at least 1.")
    asked = asked_designs(evidence.schema, target, features, intercept)
    if len(asked) > 1:
        raise ModelError("a path has one target: write one formula for each.")
    path = path_of(evidence, asked[0], l1_ratio=l1_ratio, penalties=int(penalties))
    return PenaltyPath(asked[0].target, asked[0].names, *path, private=release.private)


def asked_designs(schema: Schema, target: Target, features: Sequence[str] | None, intercept: bool | None) -> list[Design]:
    """What a target or a formula asks for; a formula may name several targets."""
    if isinstance(target, str) and is_formula(target) and target not in (*schema.encoded_names, *schema.all_names):
        if features is not None or intercept is not None:
            raise ModelError("a formula says itself which features and intercept it has: leave features and intercept out.")
        return designs(schema, target)
    return [design(schema, target, features, intercept)]
