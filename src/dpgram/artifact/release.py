"""GramRelease: the published matrix and everything a reader must know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from dpgram.artifact.signature import Signature
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import MANY_COLUMNS, NoiseModel
from dpgram.terms.schema import Schema
from dpgram.terms.words import visible

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class GramRelease:
    """A private release: the Gram matrix of a table with noise, and all that a reader must know about it.

    ``dpgram.release`` makes one, and ``dpgram.load`` reads one from a file. A release can be published, and everything computed from it
    costs no budget. Whatever in it was computed from rows contains noise. This is the Gram matrix, and with some mechanisms also numbers
    in ``noise``, ``parameters`` and ``schema.learnt``.

    Attributes
    ----------
    schema : Schema
        What was declared about the table: columns, bounds, unit and neighbours.
    gram : numpy.ndarray
        The noisy Gram matrix, of shape (d, d), in scaled units. Its rows and columns are named by ``columns``. The noise can make it
        indefinite.
    rows : int or None
        Number of rows of the table. None if it is protected, which is so for the neighbours "add-remove" and with a ``unit_id``. Where
        a row can count as less than one (missing cells, weights), fewer rows than this may have counted.
    units : int or None
        Number of units, with a ``unit_id`` and the neighbours "replace". None otherwise.
    rows_of : str
        "table", or "result" if the rows came from a query, a lazy frame or a stream. A row can then stand for several units.
    row_bound : float
        The row bound that was used. Longer rows were clipped to it.
    budget : Budget
        Epsilon and delta of this release.
    mechanism : str
        Name of the mechanism that added the noise.
    calibration : str
        "exact" if the noise follows from proven privacy curves, "paper" if it follows from printed formulas.
    choice : str
        How the mechanism was chosen. Empty if the custodian named it.
    condition : str
        What the guarantee depends on besides its proof. Empty if there is no such condition.
    parameters : dict
        Parameters of the mechanism, by name.
    noise : NoiseModel
        The distribution of the noise.
    randomness : str
        Where the random numbers came from.
    private : bool
        False if the noise came from a seed. The release then protects nobody.
    arithmetic : str
        "exact" if the noise was drawn as real numbers and rounded once, otherwise "float64".
    grid : float or None
        The entries of ``gram`` are multiples of this number. None if they are not on a grid.
    ledger_entry : str or None
        Number and hash of the ledger line that paid for this release. None without a ledger.
    library_version : str
        Version of dpgram that made the release.
    signature : Signature or None
        Who signed the release, with which key, and whether the signature holds. None if it is unsigned.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Boolean("smoker")])
    >>> table = {"age": [31.0, 45.0, 62.0], "smoker": [True, False, False]}
    >>> made = dpgram.release(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    >>> made
    GramRelease(3 columns, epsilon=1, delta=1e-06, neighbours=replace, mechanism=gaussian-noise)
    >>> made.columns
    ('(intercept)', 'age', 'smoker')
    """

    schema: Schema  # public, declared: columns, bounds, unit, neighbours
    gram: Array  # protected, (d, d) over schema.encoded_names, in scaled units; may be indefinite
    rows: int | None  # public under REPLACE of a row; None under ADD_REMOVE, and where the units have ids: it is protected then
    units: int | None = None  # public under REPLACE of a unit that has an id; None else
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
    signature: Signature | None = None  # public; of all the rest, so it stays with this release and no changed one

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the rows and columns of ``gram``, in order."""
        return self.schema.encoded_names

    @property
    def format(self) -> int:
        """Number of the file format that ``save`` writes. Files in older formats can still be loaded."""
        return 1 if len(self.columns) <= MANY_COLUMNS else 2

    @property
    def neighbours(self) -> Neighbours:
        """Which tables the guarantee makes hard to tell apart, ``Neighbours.REPLACE`` or ``Neighbours.ADD_REMOVE``."""
        return self.schema.neighbours

    @property
    def exact_parameters(self) -> dict[str, Fraction]:
        """The parameters as exact fractions, by name. In exact arithmetic the mechanism used exactly these numbers."""
        return {name: Fraction(value) for name, value in self.parameters.items()}

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to a JSON file.

        The file is written completely or not at all.

        Parameters
        ----------
        path : str or Path
            The file to write.
        overwrite : bool
            Whether to replace the file if it exists. Without it an existing file is an error.

        Raises
        ------
        OutputError
            If the file exists, or if it cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import dpgram
        >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100)])
        >>> made = dpgram.release({"age": [31.0, 45.0]}, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "release.json"
        >>> made.save(path)
        >>> path.exists()
        True
        """
        from dpgram.artifact import files

        files.save(self, Path(path), overwrite=overwrite)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GramRelease):
            return NotImplemented
        mine, theirs = dict(self.__dict__), dict(other.__dict__)
        return np.array_equal(mine.pop("gram"), theirs.pop("gram")) and mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return visible(
            f"GramRelease({len(self.columns)} columns, epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}, "
            f"neighbours={self.neighbours.value}, mechanism={self.mechanism}{'' if self.private else ', NOT PRIVATE'})"
        )
