"""What a check found, as small frozen results and as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpgram.terms.schema import Schema

NOTICE = "Not for publication: these figures come from the rows and carry no noise."


@dataclass(frozen=True)
class Finding:
    """One thing that a release would get wrong, or that the custodian should know before it.

    Attributes
    ----------
    column : str or None
        The column that it is about. None if it is about whole rows.
    code : str
        A short name, such as "thousands-separators".
    share : float or None
        The share of cells, rows or units. None where there is none to tell.
    words : str
        What was found, in words, with a made-up example.
    do : str
        What to do about it.
    """

    column: str | None
    code: str
    share: float | None
    words: str
    do: str


@dataclass(frozen=True)
class ColumnShares:
    """Shares of the cells of one declared column. A share is None where the column's kind has no such cells.

    Attributes
    ----------
    name, kind : str
        The column as it is declared.
    missing : float
        Cells without a value.
    below, above : float or None
        Cells that are moved to the lower and to the upper bound.
    undeclared : float or None
        Cells with a value that is not among the categories.
    unreadable : float
        Cells that hold something of another kind.
    """

    name: str
    kind: str
    missing: float
    below: float | None
    above: float | None
    undeclared: float | None
    unreadable: float


@dataclass(frozen=True)
class Suggestion:
    """A line for the schema that comes from no value: a kind or a rule.

    Attributes
    ----------
    column : str or None
        The column. None for a line of the whole schema.
    line : str
        The line, in TOML.
    why : str
        Why, in words.
    """

    column: str | None
    line: str
    why: str


@dataclass(frozen=True, repr=False)
class Check:
    """What ``dpgram.check`` found in a table. It is not for publication, because its figures carry no noise.

    Print it to read it. It holds shares and counts, and never the value of a cell.

    Attributes
    ----------
    where : str
        What the table is called.
    table_rows : int or None
        Number of rows. None if no declared column could be read.
    findings : tuple of Finding
        What is wrong, column by column, then for whole rows. Empty if nothing was found.
    columns : tuple of ColumnShares
        Shares of missing, clamped, undeclared and unreadable cells, for each column that is in the table.
    whole : dict
        Shares of rows, units and weights, by name.
    suggestions : tuple of Suggestion
        Lines for the schema.
    absent : tuple of str
        Declared columns that are not in the table.
    unused : tuple of str
        Columns of the table that the schema does not declare.
    schema : Schema
        The schema that the table was compared with.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("income", 0, 100_000)])
    >>> found = dpgram.check({"income": ["900", "1,500", "2,100", "800"]}, schema)
    >>> [(each.column, each.code, each.share) for each in found.findings][0]
    ('income', 'thousands-separators', 0.5)
    """

    where: str
    table_rows: int | None
    findings: tuple[Finding, ...]
    columns: tuple[ColumnShares, ...]
    whole: dict[str, float | int | str | None]
    suggestions: tuple[Suggestion, ...]
    absent: tuple[str, ...]
    unused: tuple[str, ...]
    schema: Schema

    @property
    def suggested_schema(self) -> str:
        """The schema with the suggested kinds, as TOML. Its ``provenance`` says that the rows were looked at."""
        from dpgram.checking.suggest import suggested_toml  # which knows results

        return suggested_toml(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain data for JSON.

        Returns
        -------
        dict
            Everything that was found. The entry ``notice`` says that it is not for publication.
        """
        return {
            "notice": NOTICE,
            "where": self.where,
            "table_rows": self.table_rows,
            "findings": [asdict(each) for each in self.findings],
            "columns": [asdict(each) for each in self.columns],
            "whole": dict(self.whole),
            "suggestions": [asdict(each) for each in self.suggestions],
            "absent": list(self.absent),
            "unused": list(self.unused),
        }

    def __str__(self) -> str:
        from dpgram.checking.text import in_words  # which knows results

        return in_words(self)

    def __repr__(self) -> str:
        return f"<Check of {self.where}: not for publication>"
