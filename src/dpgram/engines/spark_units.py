"""How many rows each unit has in a Spark frame, and every row with that number beside it.

Spark groups the ids, whichever partitions their rows lie in, and adds up within each partition first: a unit of a million rows costs no
more than one of two. What is kept are the few ids whose rows do not count in full. They are joined to the rows, and while they are few
Spark sends them to the rows, not the rows to them.

Ids are compared as everywhere (rows/units.py). Text is compared by its bytes, whatever its collation, and a whole number with a point and
zeros behind it without them. Of one other type two cells are the same id exactly where Spark finds them equal: types for which that does
not hold are refused. What is a missing id is decided by our own code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from dpgram.engines.partial import long_part, wrapped
from dpgram.engines.shipping import shipped

DataFrame = Any  # pyspark.sql.DataFrame, classic or Connect

MOST_TASKS = 16  # of Python, which cost some 50 ms each: where Spark keeps an answer, it does not join small parts itself
WITH_POINT = "(?s)^-?[0-9]+[.]0+(?!.)"  # without a backslash, which settings of Spark read in two ways
UNIT, ROWS = "unit", "rows"  # columns of the frame of ids
MARK = f"xxhash64({UNIT}) as mark"  # by which it is seen whether the ids have changed since they were counted


class IdColumn(NamedTuple):
    """The column of ids: its name in a frame, and its type in Arrow and in Spark's words."""

    name: str
    arrow_type: pa.DataType
    spark_type: str

    @property
    def is_text(self) -> bool:
        return pa.types.is_string(self.arrow_type) or pa.types.is_binary(self.arrow_type)

    @property
    def bare(self) -> str:
        """An expression for the id, of text without its collation, by which texts that differ could be equal."""
        if not self.is_text:
            return self.name
        text = f"cast({self.name} as string)"
        whole = f"cast(substring_index({text}, '.', 1) as binary)"
        return f"case when {text} rlike '{WITH_POINT}' then {whole} else cast({self.name} as binary) end"


def long_units(frame: DataFrame, ids: IdColumn, most: int) -> DataFrame:
    """The ids whose rows do not count in full, with the number of their rows, zero where the id is missing.

    Besides, for every part of the groups, a line of numbers: how many units and rows it has, and the sum of the rows' marks."""
    arrow_type, spark_type = (pa.binary(), "binary") if ids.is_text else (ids.arrow_type, ids.spark_type)
    find = shipped(long_part.__module__, long_part.__name__, arrow_type, most)
    grouped = frame.selectExpr(f"{ids.bare} as {UNIT}").groupBy(UNIT).count().selectExpr("*", MARK)
    return grouped.coalesce(MOST_TASKS).mapInArrow(find, f"{UNIT} {spark_type}, {ROWS} long, units long, total long, ids long")


def numbers_of_units(long: DataFrame, collect: Callable[[DataFrame], list]) -> tuple[int, int, int]:
    """How many units there are, how many rows in all, and the sum of all rows' marks."""
    lines = collect(long.where("units is not null").select("units", "total", "ids"))
    units, rows, ids = (sum(line[i] for line in lines) for i in range(3))
    return units, rows, wrapped(ids)


def with_rows_of_unit(frame: DataFrame, long: DataFrame, ids: IdColumn, sent: Sequence[str]) -> DataFrame:
    """The columns ``sent`` of ``frame``; the number of rows of the row's unit, zero without an id, and one where all of them count in full;
    and last the mark of the id."""
    known = long.where("units is null").select(UNIT, ROWS)
    rows = frame.selectExpr(*sent, f"{ids.bare} as {UNIT}").join(known, on=UNIT, how="left")
    return rows.selectExpr(*sent, f"case when {UNIT} is null then 0L else coalesce({ROWS}, 1L) end as {ROWS}", MARK)
