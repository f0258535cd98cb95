"""The look itself: one pass over the rows, a batch at a time, and everything that is counted in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from dpgram.checking import findings as found
from dpgram.checking.header import Header
from dpgram.checking.result import Check, Finding
from dpgram.checking.suggest import suggestions
from dpgram.checking.tally import ColumnTally
from dpgram.checking.units import UnitCounts, UnitTally
from dpgram.checking.whole import WholeTally, restricted
from dpgram.encoding.encode import Batch
from dpgram.encoding.types import check_id_type, check_weight_type
from dpgram.engines.base import Steps
from dpgram.engines.spark import is_spark
from dpgram.errors import ColumnTypeError, SchemaError, TableError
from dpgram.sources.base import Source, quietly
from dpgram.sources.open import open_source
from dpgram.terms.columns import Column, Numeric
from dpgram.terms.schema import Schema

Array = np.ndarray


def check(
    table: object,
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    query: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Check:
    """Compare a table with its schema before a release, and say what would go wrong.

    It tells cells that are missing, clamped, undeclared or unreadable, and why. It also tells columns that are constant or follow from
    others, and rows that would not count. It spends no budget. Its figures come from the rows and carry no noise, so do not publish them.

    Parameters
    ----------
    table : path, frame, array or database
        The rows, in any form that ``release`` takes, except a Spark table. They are read once.
    schema : Schema
        What is declared about the table.
    columns : sequence of str, optional
        Column names of a two-dimensional array.
    query : str, optional
        SQL for a database, as in ``release``.
    progress : callable, optional
        Called with the fraction of the rows that is read.

    Returns
    -------
    Check
        The findings, and shares for every column. Print it to read it.

    Raises
    ------
    TableError
        If the table cannot be read. A column that does not fit the schema is a finding, not an error.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="visit", columns=[dpgram.Date("day", "2020-01-01", "2021-01-01")])
    >>> found = dpgram.check({"day": ["24/12/2020", "25/12/2020"]}, schema)
    >>> found.findings[0].words
    '100.0 % of the cells are dates with the day first, such as 31/12/2020'
    """
    if not isinstance(schema, Schema):
        raise SchemaError(f"schema is a {type(schema).__name__} and must be a Schema. Use dpgram.Schema.load(path).")
    if is_spark(table):
        raise TableError(
            "a Spark table cannot be checked here. Write a sample of its rows to a Parquet file, and check that: "
            'frame.sample(0.01).write.parquet("sample").'
        )
    source = open_source(table, columns=columns, query=query)
    if schema.unit_id is not None:
        source.tell_apart(schema.unit_id)
    look = _Look(source, schema)
    look.read(progress)
    return look.result()


class _Look:
    """All that is counted in one pass."""

    def __init__(self, source: Source, schema: Schema):
        self._source, self._schema = source, schema
        self._header = Header.of(source, schema)
        self._rows = 0
        there = set(self._header.there)
        self._tallies = [self._tally(column) for column in schema.columns if column.name in there]
        self._units: UnitTally | None = None
        self._refused_id: ColumnTypeError | None = None
        if schema.unit_id is not None and schema.unit_id in there:
            self._refused_id = self._refusal(schema.unit_id, check_id_type)
            self._units = UnitTally() if self._refused_id is None else None
        self._weight: ColumnTally | None = None
        self._zero = self._large = 0  # weights that are zero, and those above a tenth of the largest
        if schema.weight is not None and schema.weight in there:
            assert schema.largest_weight is not None
            self._weight = self._tally(Numeric(schema.weight, 0.0, schema.largest_weight))
            self._weight.refused = self._refusal(schema.weight, check_weight_type)  # in words for weights
        known = restricted(schema, tuple(tally.column for tally in self._tallies if tally.known))
        self._whole = None if known is None else WholeTally(known)

    def _tally(self, column: Column) -> ColumnTally:
        given = self._source.columns.field(column.name).type
        return ColumnTally(column, given, untyped=column.name in self._source.untyped)

    def _refusal(self, name: str, check_type: Callable[[str, pa.DataType], None]) -> ColumnTypeError | None:
        """Why a release would refuse the type of a column; None if it would not."""
        try:
            if name not in self._source.untyped:
                check_type(name, self._source.columns.field(name).type)
        except ColumnTypeError as error:
            return error
        return None

    def read(self, progress: Callable[[float], None] | None) -> None:
        """Count all rows. Memory does not grow with their number, but for the ids of units."""
        if not self._header.there:
            return
        steps = Steps(progress)
        with self._source.one_state():
            for batch, fraction in self._source.pieces(self._header.there):
                quietly(self._source.where, self._add, batch)
                steps.reach(fraction or 0.0)
        steps.reach(1.0)

    def _add(self, batch: Batch) -> None:
        self._rows += batch.num_rows
        with np.errstate(all="ignore"):  # a warning would depend on somebody's row
            cells = {each.column.name: each.add(batch.column(each.column.name)) for each in self._tallies}
            counting = np.ones(batch.num_rows, dtype=bool)
            if self._units is not None:
                counting &= self._units.add(batch.column(self._schema.unit_id))  # type: ignore[arg-type]
            if self._weight is not None:
                weights = self._weight.add(batch.column(self._weight.column.name))
                self._zero += int((weights == 0).sum())
                self._large += int((weights > self._schema.largest_weight / 10).sum())  # type: ignore[operator]
                counting &= weights > 0
            if self._whole is not None:
                self._whole.add(cells, counting)

    @cached_property
    def _unit_counts(self) -> UnitCounts | None:
        return None if self._units is None else self._units.counts(self._schema.most_rows)

    def result(self) -> Check:
        listed = tuple(self._findings())
        return Check(
            where=self._source.where,
            table_rows=self._rows if self._header.there else None,
            findings=listed,
            columns=tuple(found.shares_of(tally) for tally in self._tallies),
            whole=self._shares(),
            suggestions=suggestions(self._schema, self._tallies, changes=bool(listed)),
            absent=self._header.absent,
            unused=self._header.unused,
            schema=self._schema,
        )

    def _findings(self) -> Iterator[Finding]:
        yield from found.header_findings(self._header, self._schema)
        of_columns = [each for tally in self._tallies for each in found.column_findings(tally)]
        of_weights = [] if self._weight is None else [*found.weight_findings(self._weight, self._zero, self._large)]
        as_weight = {(each.column, each.code, each.share) for each in of_weights}
        said = {(each.column, each.code) for each in of_columns}  # where the weight is a declared column, too, once is enough
        yield from (e for e in of_columns if (e.column, found.AS_WEIGHT.get(e.code), e.share) not in as_weight)
        if self._whole is not None:
            yield from found.whole_findings(self._whole)
        if self._refused_id is not None:
            yield found.refusal(self._refused_id)
        if self._units is not None:
            yield from found.unit_findings(self._units, self._unit_counts, self._schema, self._rows)
        yield from (each for each in of_weights if (each.column, each.code) not in said)

    def _shares(self) -> dict[str, float | int | str | None]:
        """Shares of rows, of units and of weights, those of which there are some."""
        rows = max(1, self._rows)
        shares: dict[str, float | int | str | None] = {}
        if (whole := self._whole) is not None:
            worst = whole.dropped_for.most_common(1) if whole.dropped else []
            shares = {
                "rows_dropped": whole.dropped / rows,
                "rows_dropped_most_for": worst[0][0] if worst else None,
                "rows_clipped": whole.clipped / rows if self._schema.row_bound is not None else None,
                "rows_counting": whole.counting / rows,
            }
        if self._units is not None:
            counts = self._unit_counts
            shares["rows_without_id"] = self._units.without / rows
            shares["rows_with_placeholder_id"] = self._units.saying_nothing / rows
            if counts is not None:
                shares["units"] = counts.units
                shares["units_above_rows_per_unit"] = counts.above / max(1, counts.units)
                shares["ids_alike"] = counts.alike / max(1, counts.units)
        if self._weight is not None:
            weight = self._weight
            for name, times in (
                ("missing", weight.missing),
                ("unreadable", weight.unreadable),
                ("negative", weight.below),
                ("zero", self._zero),
                ("above_largest", weight.above),
            ):
                shares[f"weights_{name}"] = times / rows
        return shares
