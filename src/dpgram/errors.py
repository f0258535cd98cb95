"""Every exception and warning of dpgram.

    DpgramError
    ├── BudgetError              epsilon or delta out of range
    ├── SchemaError              the schema is wrong or incomplete
    ├── TableError               the table cannot be used; the message contains no cell and no count
    │   ├── MissingColumnError   a declared column is not in the table
    │   ├── DuplicateColumnError a declared column is in the table more than once
    │   ├── ColumnTypeError      the table stores a column in a type that does not suit its kind
    │   ├── UnreadableTableError a library could not read the table; its message is withheld, because it may quote a cell
    │   ├── QueryError           a database refused the connection or the query before any row was read
    │   ├── OneShotError         the table can be read only once, but the mechanism reads it several times; nothing was read
    │   ├── RowsShapeError       X or y of an estimator is not a table of rows
    │   └── EmptyTableError      the table has no rows, under "replace", where the number of rows is public
    ├── OptionError              an option such as the number of threads is out of range
    ├── BoundMismatchError       two sums have rows with different bounds
    ├── MapMismatchError         two sums have rows that were multiplied by different matrices
    ├── BoundBrokenError         a row exceeds its bound after clipping: a bug, and nothing was released
    ├── MechanismError           a mechanism cannot be used with these parameters
    │   └── UnknownMechanismError there is no mechanism with this name
    ├── CalibrationError         the calibrated noise does not meet the budget: a bug, and nothing was released
    ├── LedgerError              a ledger cannot be used like this
    │   └── BudgetSpentError     not enough budget is left in the ledger; nothing was released
    │       └── LedgerFullError  the same, for a ledger that composes its releases
    ├── ReleaseFileError         a release file is damaged, was changed, or has an unknown format
    │   └── BrokenSignatureError a release file was changed after it was signed
    ├── KeyFileError             a key for signatures cannot be used
    ├── OutputError              a file cannot be written
    │   └── UnsavedReleaseError  a release was made and paid for, but is not in the file that was asked for
    ├── CombineError             these releases cannot be combined
    ├── ModelError               the release cannot answer this regression
    │   ├── UnknownColumnError   the release has no such column
    │   ├── UnderivedError       a formula contains a product or a transform that the release has no column for
    │   └── IndefiniteGramError  the released Gram matrix is not positive definite
    ├── PlanError                a forecast cannot be made from these inputs
    ├── DeviceError              PyTorch does not have this device here, or cannot use it
    │   └── InexactDeviceError   the device does not compute exact sums
    └── MissingExtraError        an optional dependency is not installed

    DpgramWarning
    ├── LargeDeltaWarning        delta is above one over the public number of rows
    ├── FloatArithmeticWarning   noise was drawn in float64 by default, because exact arithmetic would take too long
    ├── NotPrivateWarning        the noise comes from a seed, so the result protects nobody
    ├── LimitedQueryWarning      a query has a limit, so which rows it returns depends on other rows
    ├── SlowDeviceWarning        our kernel does not run on this CUDA device: same result, but slower
    ├── UnidentifiedWarning      the noise of an estimator's release is so large that it says nothing about any coefficient
    └── RefitWarning             every fit of an estimator spends budget, and scores on private rows are not protected

A message says what was found, what is needed and what to do. Before a release is made, messages mention column names and
declared bounds only. They never contain values, counts or row numbers."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """A question after a space, about the known name that is most like this one, whatever the case of letters; empty where none is."""
    listed = list(known)
    by_letters: dict[str, str] = {}
    for one in listed:
        by_letters.setdefault(one.casefold(), one)
    close = get_close_matches(name, listed, n=1, cutoff=0.9) or [
        by_letters[one] for one in get_close_matches(name.casefold(), list(by_letters), n=1)
    ]
    return f" Did you mean {close[0]!r}?" if close else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


class DpgramError(Exception):
    """Base class of all errors that dpgram raises on purpose.

    The message says what was found, what is needed and what to do. Catch this class to handle every error of the library.

    Examples
    --------
    >>> from dpgram import DpgramError, Numeric
    >>> try:
    ...     Numeric("age", 120, 0)
    ... except DpgramError as error:
    ...     print(error)
    column 'age': lower is 120 and upper is 0, but lower must be smaller than upper.
    """


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
        super().__init__(f"the schema declares column {column!r}, but {where} has no column of that name. {_sentence(hint)}.")


class DuplicateColumnError(TableError):
    """A declared column is in the table more than once."""

    def __init__(self, *, column: str, where: str):
        self.column = column
        super().__init__(f"{where} has several columns named {column!r}, but only one is allowed. Rename the others.")


class ColumnTypeError(TableError):
    """The table stores a column in a type that does not suit its kind."""

    def __init__(self, *, column: str, kind: str, found: str, needed: str, do: str):
        self.column, self.kind, self.found, self.needed = column, kind, found, needed
        use = {"weight": "is the weight", "unit_id": "is the unit_id"}.get(kind, f"is declared {kind}")
        super().__init__(f"column {column!r} {use}, but the table holds {found}. It needs {needed}. {_sentence(do)}.")


class UnreadableTableError(TableError):
    """A library could not read the rows."""

    def __init__(self, *, where: str, failure: str, do: str = "check that it opens with another tool"):
        self.where, self.failure = where, failure
        super().__init__(
            f"{where} cannot be read ({failure}; details withheld, because they may quote a cell). {_sentence(do)}."
        )


class QueryError(TableError):
    """A database refused the connection or the query before any row was read. The database's own message is withheld."""

    def __init__(self, *, where: str, problem: str, do: str):
        super().__init__(f"{where} cannot be read: {problem}. {_sentence(do)}.")


class OneShotError(TableError):
    """The table can be read only once, but the release reads it several times. Nothing was read or spent."""

    def __init__(self, *, where: str, mechanism: str, units: bool = False):
        reader = "a release with a unit_id" if units else mechanism
        otherwise = "" if units else " Or use a mechanism that reads the table once, such as gaussian-noise."
        super().__init__(
            f"{where} can be read only once, but {reader} reads the table several times. Nothing was read or spent. Leave out "
            f"cache=False (--no-cache), so that rows are kept while the release is made. Or pass the table as a file or in memory."
            f"{otherwise}"
        )


class RowsShapeError(TableError, ValueError):
    """X or y of an estimator is not a table of rows."""


class EmptyTableError(TableError, ValueError):
    """The table has no rows, or no unit with an id, under "replace", where their number is public."""

    def __init__(self, what: str = "rows") -> None:
        check = "the source" if what == "rows" else "the source, and the column of ids"
        super().__init__(
            f'the table has no {what}, but neighbours = "replace" needs at least one. Check {check}. If an empty table is '
            'possible, declare neighbours = "add-remove".'
        )


class OptionError(DpgramError, ValueError):
    """An option such as the number of threads is out of range."""


class BoundMismatchError(DpgramError):
    """Two sums have rows with different bounds, so they cannot be added."""

    def __init__(self, *, expected: float, got: float):
        super().__init__(
            f"rows with the bound {got:g} cannot be added to a sum of rows with the bound {expected:g}. Use one row bound."
        )


class MapMismatchError(DpgramError):
    """Two sums have rows that were multiplied by different matrices, so they cannot be added."""

    def __init__(self) -> None:
        super().__init__("rows that were multiplied by different public maps cannot be added. Use one map.")


class BoundBrokenError(DpgramError):
    """A row exceeds its bound after clipping."""

    def __init__(self) -> None:
        super().__init__(
            "a row exceeds its bound after clipping, so nothing was released. This is a bug in dpgram: please report it."
        )


class MechanismError(DpgramError, ValueError):
    """A mechanism cannot be used with these parameters."""


class UnknownMechanismError(MechanismError):
    """There is no mechanism with this name."""

    def __init__(self, *, name: str, known: Iterable[str]):
        super().__init__(f"there is no mechanism named {name!r}. Use one of {', '.join(sorted(known))}.")


class CalibrationError(DpgramError):
    """The calibrated noise does not meet the budget."""

    def __init__(self, *, mechanism: str, delta: float, needed: float):
        super().__init__(
            f"{mechanism} gives delta = {delta:.6g}, but the budget allows {needed:.6g}, so nothing was released. "
            f"This is a bug in dpgram: please report it."
        )


class LedgerError(DpgramError):
    """A ledger cannot be used like this."""


class BudgetSpentError(LedgerError):
    """Not enough budget is left in the ledger. Nothing was released."""

    def __init__(self, *, asked: tuple[float, float], left: tuple[float, float], releases: int):
        self.asked, self.left = asked, left
        fits = (
            f"A release of at most epsilon {left[0]!r} and delta {left[1]!r} is possible"  # in full: rounded, it might not be
            if min(left) > 0
            else "No further release is possible"
        )
        super().__init__(
            f"the release asks for epsilon {asked[0]:g} and delta {asked[1]:g}, but after {releases} "
            f"release{'' if releases == 1 else 's'} the ledger has only epsilon {left[0]!r} and delta {left[1]!r} left. {fits}."
        )


class LedgerFullError(BudgetSpentError):
    """Not enough budget is left in a ledger that composes its releases. Nothing was released."""

    def __init__(self, *, asked: tuple[float, float], total: tuple[float, float], left: float, releases: int):
        self.asked, self.left = asked, (left, asked[1])
        fits = (
            f"At this delta, a release of at most epsilon {left:g} is possible"
            if left > 0
            else "No further release at this delta is possible"
        )
        others = (
            f"Together with the {releases} release{'' if releases == 1 else 's'} in the ledger, this" if releases else "This"
        )
        text = f"the release asks for epsilon {asked[0]:g} and delta {asked[1]:g}. {others} exceeds the ledger's total of "
        LedgerError.__init__(self, f"{text}epsilon {total[0]:g} and delta {total[1]:g}. {fits}.")


class ReleaseFileError(DpgramError):
    """A release file is damaged, was changed, or has an unknown format."""

    def __init__(self, *, where: str, field: str | None, problem: str):
        self.field = field
        at = f", field {field!r}" if field else ""
        super().__init__(f"{where}{at}: {problem}.")


class BrokenSignatureError(ReleaseFileError):
    """A release file was changed after it was signed."""

    def __init__(self, *, where: str, field: str, by: str):
        super().__init__(
            where=where,
            field=field,
            problem=f"the signature of {by!r} does not hold. The file was changed after it was signed. Do not use it: ask the custodian "
            f"for a new copy",
        )


class KeyFileError(DpgramError):
    """A key for signatures cannot be used."""


class OutputError(DpgramError):
    """A file cannot be written.

    ``problem`` is the sentence that says why, and ``advice`` what follows it in the message."""

    def __init__(self, problem: str, advice: str = ""):
        self.problem, self.advice = problem, advice
        super().__init__(f"{problem} {advice}".rstrip())


class UnsavedReleaseError(OutputError):
    """A release was made and paid for, but is not in the file that was asked for.

    ``release`` is the release itself, and ``fallback`` is the file to which it was saved instead. That is None if no other file could be
    written either."""

    def __init__(self, *, problem: str, release: object, fallback: object, line: str):
        self.release, self.fallback = release, fallback
        paid = "the noise was already drawn, so the budget counts as spent."
        if fallback is not None:
            rescued = f"the release was saved to {fallback} instead. Move it to where you want it, and do not make it again:"
            super().__init__(f"{rescued} {paid}", f"What went wrong: {problem}")
        else:
            stays = f" {line} stays reserved." if line else ""
            held = "In Python, the error holds the release: error.release.save(path)."
            super().__init__(f"{problem} No other file could be written either. {_sentence(paid)}{stays}", held)


class CombineError(DpgramError, ValueError):
    """These releases cannot be combined."""


class ModelError(DpgramError, ValueError):
    """The release cannot answer this regression."""


class UnknownColumnError(ModelError):
    """The release has no such column."""

    def __init__(self, *, name: str, known: Iterable[str], levels: Iterable[str] = ()):
        known = list(known)
        hint = suggestion(name, [*known, *levels])
        shown = ", ".join(repr(n) for n in known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
        super().__init__(f"there is no column {name!r}.{hint} The columns are {shown}.")


class UnderivedError(ModelError):
    """A formula contains a product or a transform that the release has no column for.

    ``needed`` are the derived columns that would have to be declared. It is empty if none can help."""

    def __init__(self, message: str, needed: tuple = ()):
        self.needed = needed
        super().__init__(message)


class IndefiniteGramError(ModelError):
    """The released Gram matrix is not positive definite on the chosen columns."""

    def __init__(self, *, smallest: float, noise: float):
        self.smallest = smallest
        super().__init__(
            f"the released Gram matrix is not positive definite on the chosen features (smallest eigenvalue {smallest:.3g}, "
            f"noise standard deviation {noise:.3g}), so plain least squares has no meaning. Use estimator='log-det', or fewer features."
        )


class PlanError(DpgramError, ValueError):
    """A forecast cannot be made from these inputs."""


class DeviceError(DpgramError):
    """PyTorch does not have this device here, or cannot use it."""


class InexactDeviceError(DeviceError):
    """The device does not compute exact sums."""

    def __init__(self, *, device: str):
        super().__init__(
            f"device {device} does not multiply whole numbers exactly in double precision, but sums must be exact. Switch off "
            f"emulated double precision (CUBLAS_EMULATE_DOUBLE_PRECISION), or leave out device=."
        )


class MissingExtraError(DpgramError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, *, package: str, extra: str, purpose: str):
        super().__init__(f"{purpose} needs {package}, which is not installed. Run  pip install 'dpgram[{extra}]'.")


class DpgramWarning(UserWarning):
    """Base class of all warnings that dpgram gives.

    Use it to silence them, or to turn them into errors.

    Examples
    --------
    >>> import warnings
    >>> from dpgram import DpgramWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DpgramWarning)
    ...     warnings.warn("delta is large", DpgramWarning)  # not shown
    """


class LargeDeltaWarning(DpgramWarning):
    """Delta is above one over the number of rows."""


class LimitedQueryWarning(DpgramWarning):
    """A query has a limit, so which rows it returns depends on other rows."""


class FloatArithmeticWarning(DpgramWarning):
    """The noise was drawn in float64, because exact arithmetic would take too long for so many columns."""


class NotPrivateWarning(DpgramWarning):
    """The noise comes from a seed, so anyone who knows the seed can subtract it."""


class SlowDeviceWarning(DpgramWarning):
    """Our kernel does not run on this CUDA device, so the release takes longer."""


class UnidentifiedWarning(DpgramWarning):
    """The noise of an estimator's release is so large that it says nothing about any coefficient."""


class RefitWarning(DpgramWarning):
    """Every fit of a private estimator spends budget again."""
