"""Every exception and warning of dpgram.

    DpgramError
    ├── BudgetError              epsilon or delta out of range
    ├── SchemaError              the declared schema is wrong or incomplete
    ├── TableError               the table cannot be used; the message holds no cell and no count
    │   ├── MissingColumnError
    │   ├── DuplicateColumnError
    │   ├── ColumnTypeError      a typed source holds the column in a type its kind cannot take
    │   ├── UnreadableTableError the library underneath failed; its own message is withheld, it may quote a cell
    │   ├── QueryError           a database refused the connection or the query before any row was read; its words are withheld
    │   ├── OneShotError         the table can be read once, and the mechanism reads it several times; nothing was read
    │   ├── RowsShapeError       X or y of an estimator is no table of rows; the message holds no cell and no count
    │   └── EmptyTableError      no rows, under REPLACE, where the number of rows is public
    ├── OptionError              an option of the pass over the rows makes no sense
    ├── BoundMismatchError       two sums of rows bounded differently
    ├── MapMismatchError         two sums of rows multiplied by different matrices
    ├── BoundBrokenError         a row left the clip above its bound: a bug, stopped before anything is released
    ├── MechanismError           a mechanism cannot be used like this
    │   └── UnknownMechanismError
    ├── CalibrationError         calibrated noise that does not meet the budget when asked back: a bug, stopped likewise
    ├── LedgerError              a ledger cannot be used like this
    │   └── BudgetSpentError     the ledger's budget does not suffice; nothing was released
    │       └── LedgerFullError  the same, for a ledger that composes what was spent
    ├── ReleaseFileError         a release file that is damaged, changed or of an unknown format
    ├── OutputError              a file cannot be written
    ├── ModelError               a regression that the release cannot answer
    │   ├── UnknownColumnError
    │   └── IndefiniteGramError
    ├── PlanError                a forecast that cannot be made like this
    ├── DeviceError              a device that PyTorch does not have here, or that cannot sum exactly
    │   └── InexactDeviceError
    └── MissingExtraError        an optional dependency is not installed

    DpgramWarning
    ├── LargeDeltaWarning        delta above one over the (public) number of rows
    ├── FloatArithmeticWarning   noise drawn in float64 though nobody asked for it, because exact arithmetic would take long
    ├── NotPrivateWarning        noise from a seed: the result protects nobody
    ├── SlowDeviceWarning        a CUDA device on which our kernel does not run: same bits, slower
    └── RefitWarning             every fit of an estimator spends budget, and scores on private rows are not protected

A message says what was found, what is needed and what to do. Upstream of a release it names columns and declared
bounds only: values, counts and row numbers stay with the rows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DpgramError(Exception):
    """Base of every error that dpgram raises on purpose."""


class BudgetError(DpgramError, ValueError):
    """Epsilon or delta is out of range."""


class SchemaError(DpgramError, ValueError):
    """The schema is wrong or incomplete."""


class TableError(DpgramError):
    """The table cannot be used with this schema."""


class MissingColumnError(TableError):
    """A declared column is not in the table."""

    def __init__(self, *, column: str, where: str, hint: str):
        self.column = column
        super().__init__(f"column {column!r} is declared in the schema but {where} has no column of that name: {hint}.")


class DuplicateColumnError(TableError):
    """A declared column stands in the table more than once."""

    def __init__(self, *, column: str, where: str):
        self.column = column
        super().__init__(f"{where} has several columns named {column!r}, where one is needed: rename all but one.")


class ColumnTypeError(TableError):
    """The table declares a type that the column's kind cannot take."""

    def __init__(self, *, column: str, kind: str, found: str, needed: str, do: str):
        self.column, self.kind, self.found = column, kind, found
        super().__init__(f"column {column!r} is declared {kind}, but the table holds {found}, where {needed} is needed: {do}.")


class UnreadableTableError(TableError):
    """Reading the rows failed in a library underneath."""

    def __init__(self, *, where: str, failure: str, do: str = "check that it opens with another tool"):
        self.where, self.failure = where, failure
        super().__init__(f"{where} cannot be read ({failure}; details withheld, they may quote a cell): {do}.")


class QueryError(TableError):
    """A database refused the connection or the query. No row was read; the database's own words are withheld all the same."""

    def __init__(self, *, where: str, problem: str, do: str):
        super().__init__(f"{where} cannot be had: {problem}: {do}.")


class OneShotError(TableError):
    """The table can be read once, and the mechanism asks for several sums. Nothing was read, reserved or drawn."""

    def __init__(self, *, where: str, mechanism: str):
        super().__init__(
            f"{where} can be read once, and {mechanism} reads a table several times; nothing was read. Leave out cache=False "
            f"(--no-cache), so that the declared columns are kept while the release is made; or pass the table as a file or in memory; "
            f"or use a mechanism that reads once, such as gaussian-noise."
        )


class RowsShapeError(TableError, ValueError):
    """X or y of an estimator does not have the shape of a table of rows."""


class EmptyTableError(TableError, ValueError):
    """No rows, under REPLACE, where the number of rows is public."""

    def __init__(self) -> None:
        super().__init__(
            'the table has no rows, and under neighbours = "replace" at least one is needed: check the source, or '
            'declare neighbours = "add-remove", under which an empty table is a table like any other.'
        )


class OptionError(DpgramError, ValueError):
    """An option of the pass over the rows, such as the number of threads, makes no sense."""


class BoundMismatchError(DpgramError):
    """Two sums whose rows were bounded differently cannot be added."""

    def __init__(self, *, expected: float, got: float):
        super().__init__(f"rows bounded by {got:g} cannot join a sum of rows bounded by {expected:g}: use one row bound.")


class MapMismatchError(DpgramError):
    """Two sums whose rows went through different maps cannot be added."""

    def __init__(self) -> None:
        super().__init__("rows multiplied by different public maps cannot join one sum: use one map.")


class BoundBrokenError(DpgramError):
    """A row left the clip above its bound."""

    def __init__(self) -> None:
        super().__init__("a row left the clip above its bound; nothing was released: this is a bug in dpgram, report it.")


class MechanismError(DpgramError, ValueError):
    """A mechanism cannot be used with these parameters."""


class UnknownMechanismError(MechanismError):
    """No mechanism of that name."""

    def __init__(self, *, name: str, known: Iterable[str]):
        super().__init__(f"there is no mechanism {name!r}: use one of {', '.join(sorted(known))}.")


class CalibrationError(DpgramError):
    """The calibrated noise does not meet the budget when asked back."""

    def __init__(self, *, mechanism: str, delta: float, needed: float):
        super().__init__(
            f"{mechanism} gives delta = {delta:.6g} where {needed:.6g} was asked for; nothing was released: "
            f"this is a bug in dpgram, report it."
        )


class LedgerError(DpgramError):
    """A ledger cannot be used like this."""


class BudgetSpentError(LedgerError):
    """What is left in the ledger does not suffice; nothing was released."""

    def __init__(self, *, asked: tuple[float, float], left: tuple[float, float], releases: int):
        self.asked, self.left = asked, left
        fits = (
            f"a release of at most epsilon {left[0]!r} and delta {left[1]!r} would fit"  # in full: rounded, it might not fit
            if min(left) > 0
            else "no further release fits"
        )
        super().__init__(
            f"the release asks for epsilon {asked[0]:g} and delta {asked[1]:g}, and the ledger has epsilon {left[0]!r} and delta "
            f"{left[1]!r} left after {releases} release{'' if releases == 1 else 's'}: {fits}."
        )


class LedgerFullError(BudgetSpentError):
    """What is left in a ledger that composes releases does not suffice; nothing was released."""

    def __init__(self, *, asked: tuple[float, float], total: tuple[float, float], left: float, releases: int):
        self.asked, self.left = asked, (left, asked[1])
        fits = (
            f"such a release fits with at most epsilon {left:g} at that delta" if left > 0 else "no such release fits any more"
        )
        others = f"with the {releases} release{'' if releases == 1 else 's'} in the ledger " if releases else ""
        text = f"the release asks for epsilon {asked[0]:g} and delta {asked[1]:g}, which {others}is more than the ledger's "
        LedgerError.__init__(self, f"{text}epsilon {total[0]:g} and delta {total[1]:g}: {fits}.")


class ReleaseFileError(DpgramError):
    """A release file is damaged, changed or of an unknown format."""

    def __init__(self, *, where: str, field: str | None, problem: str):
        self.field = field
        at = f", field {field!r}" if field else ""
        super().__init__(f"{where}{at}: {problem}.")


class OutputError(DpgramError):
    """A file cannot be written."""


class ModelError(DpgramError, ValueError):
    """The release cannot answer this regression."""


class UnknownColumnError(ModelError):
    """The release has no such column."""

    def __init__(self, *, name: str, known: Iterable[str]):
        known = list(known)
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        shown = ", ".join(repr(n) for n in known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        super().__init__(f"the release has no column {name!r}.{hint} It has {shown}.")


class IndefiniteGramError(ModelError):
    """The released Gram is not positive definite on the chosen columns."""

    def __init__(self, *, smallest: float, noise: float):
        self.smallest = smallest
        super().__init__(
            f"the released Gram is not positive definite on the chosen features (smallest eigenvalue {smallest:.3g}, "
            f"noise sd {noise:.3g}), so a plain solve has no meaning: use estimator='log-det', or fewer features."
        )


class PlanError(DpgramError, ValueError):
    """A forecast cannot be made from these assumptions."""


class DeviceError(DpgramError):
    """PyTorch has no such device here, or cannot sum there."""


class InexactDeviceError(DeviceError):
    """A product of whole numbers came out wrong on the device."""

    def __init__(self, *, device: str):
        super().__init__(
            f"device {device} multiplies whole numbers inexactly in double precision, and sums must be exact: switch off "
            f"emulated double precision (CUBLAS_EMULATE_DOUBLE_PRECISION), or leave device= out."
        )


class MissingExtraError(DpgramError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, *, package: str, extra: str, purpose: str):
        super().__init__(f"{purpose} needs {package}, which is not installed: run  pip install 'dpgram[{extra}]'.")


class DpgramWarning(UserWarning):
    """Base of every warning that dpgram gives on purpose."""


class LargeDeltaWarning(DpgramWarning):
    """Delta is above one over the number of rows."""


class FloatArithmeticWarning(DpgramWarning):
    """The noise was drawn in float64 because exact arithmetic would take long for so many columns."""


class NotPrivateWarning(DpgramWarning):
    """The noise comes from a seed, so whoever knows the seed can subtract it."""


class SlowDeviceWarning(DpgramWarning):
    """Our kernel does not run on this CUDA device."""


class RefitWarning(DpgramWarning):
    """Every fit of a private estimator spends budget again."""
