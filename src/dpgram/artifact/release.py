"""GramRelease: the published matrix and everything a reader must know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import MANY_COLUMNS, NoiseModel
from dpgram.terms.schema import Schema

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class GramRelease:
    """What leaves the building. Only ``gram`` was computed from rows, and it carries noise."""

    schema: Schema  # public, declared: columns, bounds, unit, neighbours
    gram: Array  # protected, (d, d) over schema.encoded_names, in scaled units; may be indefinite
    rows: int | None  # public under REPLACE; None under ADD_REMOVE, where the number of rows is protected
    rows_of: str = "table"  # public; or "result" of a query, a lazy frame or a stream, where a row may stand for something else
    row_bound: float  # public; the bound in force
    budget: Budget  # what this release cost, read together with schema.neighbours
    mechanism: str  # public
    calibration: str = "exact"  # public; or "paper", the printed formulas
    choice: str = ""  # public; how the mechanism was chosen, where nobody named it
    condition: str = ""  # public; what the guarantee hangs on besides its proof, where there is such a thing
    parameters: dict[str, float] = field(default_factory=dict)  # what the mechanism was calibrated to; see mechanisms/
    noise: NoiseModel  # public; what was done to the true Gram
    randomness: str  # where the noise came from
    private: bool  # False when the noise came from a seed
    arithmetic: str = "float64"  # or "exact": what the mechanism's real numbers are, rounded once
    grid: float | None = None  # public; entries of ``gram`` are multiples of it, where they were published as they were drawn
    ledger_entry: str | None = None  # public; number and hash of the ledger's line that paid, from before noise was drawn
    library_version: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the rows and columns of ``gram``."""
        return self.schema.encoded_names

    @property
    def format(self) -> int:
        """The format of the file that ``save`` writes. A changed meaning gets a new number; old files keep loading."""
        return 1 if len(self.columns) <= MANY_COLUMNS else 2

    @property
    def neighbours(self) -> Neighbours:
        return self.schema.neighbours

    @property
    def exact_parameters(self) -> dict[str, Fraction]:
        """The parameters as the fractions that they are: in exact arithmetic the mechanism used these very numbers."""
        return {name: Fraction(value) for name, value in self.parameters.items()}

    def save(self, path: str | Path) -> None:
        """Write the release as JSON, whole or not at all."""
        from dpgram.artifact import files

        files.save(self, Path(path))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GramRelease):
            return NotImplemented
        mine, theirs = dict(self.__dict__), dict(other.__dict__)
        return np.array_equal(mine.pop("gram"), theirs.pop("gram")) and mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"GramRelease({len(self.columns)} columns, epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}, "
            f"neighbours={self.neighbours.value}, mechanism={self.mechanism}{'' if self.private else ', NOT PRIVATE'})"
        )
