"""``penalty_path``: how the coefficients of a lasso or an elastic net come in as the penalty falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpgram.analysis.regress import asked_designs
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.design import Target
from dpgram.regression.penalised import penalty_path as path_of
from dpgram.report.figures import draw_path, mark
from dpgram.report.summary import data_frame

Array = np.ndarray


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
