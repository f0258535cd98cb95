"""The pass over the rows on a Spark cluster: executors encode, clip and sum their partitions, the driver gets one small sum.

Rows go from Spark to Python on the executor that holds them and no further, but for a sample that a mechanism of several rounds steers
by, which goes to the driver's memory. Sums come back as the result of the job, of which
Spark takes one attempt per partition: a task that is retried or run twice counts once. docs/spark.md says what that needs."""

from __future__ import annotations

import builtins
import copy
import logging
import math
import re
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, Self, TypeVar

import pyarrow as pa

from dpgram.encoding.encode import Encoder
from dpgram.engines.base import Pass, Progress, Steps, check_unchanged
from dpgram.engines.kept import KeptRows
from dpgram.engines.local import LocalPass
from dpgram.engines.partial import (
    MARK_OF_UNIT,
    ROWS_OF_UNIT,
    add_pieces,
    count_part,
    count_pieces,
    from_kept,
    from_pieces,
    ids_of,
    keep_part,
    sum_part,
)
from dpgram.engines.persisted import persisted
from dpgram.engines.shipping import shipped
from dpgram.engines.spark_units import IdColumn, long_units, numbers_of_units, with_rows_of_unit
from dpgram.errors import ColumnTypeError, MissingExtraError, TableError
from dpgram.rows.bin_counts import COUNT_BOUND
from dpgram.rows.clip import check_map
from dpgram.rows.coins import Coins
from dpgram.rows.decoded import bytes_of_row
from dpgram.rows.gram_sum import GramSum
from dpgram.sources.base import Source, check_columns, explained
from dpgram.sources.query import InThread
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

T = TypeVar("T")
DataFrame = Any  # pyspark.sql.DataFrame, classic or Connect
Session = Any

PREFIX = "spark:"
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
PIECES_PER_GROUP = 8  # a task costs Spark some 50 ms, which a small table should not pay for every piece
MOST_GROUPS = 32  # tasks that add up pieces
PARTIAL_DDL = "piece int, part int, mark long, rows long, ids long, high binary, low binary"
SUM_DDL = "piece int, parts int, mark long, rows long, ids long, high binary, low binary"
KEPT_DDL = "rows long, ids long, cells binary"
STOP_TRIES, STOP_PAUSE = 10, 0.5  # seconds between them
ARROW_TYPES = {  # what Spark hands to Python for each of its simple types
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


class SparkTable(Source):
    """A frame, whose names and types Spark knows before it reads a row. Its rows are summed where they are, never read from here."""

    rows_of = "result"

    def __init__(self, frame: DataFrame, where: str = "the Spark DataFrame", do: str | None = None):
        self.frame, self.where = frame, where
        # With Spark Connect this is when Spark looks whether it exists.
        fields = _asked(where, lambda: [(f.name, f.dataType) for f in frame.schema.fields], do)
        self.spark_types = [type_.simpleString() for _, type_ in fields]
        self.columns = pa.schema([pa.field(name, _arrow_type(type_)) for name, type_ in fields])


class SparkPass:
    """Sums the Gram of the rows of a Spark frame, on the cluster that holds them.

    Every sum is a job of its own: that a frame is the same in all of them, persisted or read from a table that keeps its versions, is for
    whoever made it. What is more than a scan is persisted while ``one_state`` lasts, so that no job computes it again."""

    rereadable = True

    def __init__(self, table: SparkTable, schema: Schema, progress: Progress | None = None, memory: float = 0.0):
        self.rows_of, self.where = table.rows_of, table.where
        self._room = memory * 1e6 or math.inf  # for rows that are kept on this machine
        self._table, self._schema, self._progress = table, schema, progress
        self._kept_frame: DataFrame | None = None  # the columns that are read, while ``one_state`` lasts
        self._long_units: DataFrame | None = None  # ids whose rows do not count in full, from their count on, likewise
        self._while_kept = ExitStack()
        self._counted: tuple[int, int] | None = None  # when units were counted: the rows, and the sum of their ids' marks
        if _asked(self.where, lambda: table.frame.isStreaming):
            raise TableError(f"{self.where} is a stream, which has no end. Write it to a table first.")
        check_columns(table, schema.read_names)
        _check_types(table, schema)

    @contextmanager
    def one_state(self) -> Iterator[None]:
        """As ``Pass`` says: as far as Spark keeps what it has computed."""
        with ExitStack() as self._while_kept:
            with _without_log():  # planning may look at cells, and Spark's own log would quote one
                self._kept_frame = self._while_kept.enter_context(persisted(_asked(self.where, self._declared)))
            try:
                yield
            finally:
                self._kept_frame = self._long_units = None

    def count(self) -> int:
        """The number of rows, counted by Spark in a job of its own.

        The declared columns are asked for as well: files read with DROPMALFORMED lose the rows whose cells fail in a column that is."""
        declared = self._declared()
        counts = ["count(*)", *(f"count({_quoted(name)})" for name in declared.columns)]
        ((rows, *_),) = _asked(self._table.where, lambda: _collect(declared.selectExpr(*counts)))
        return rows

    def count_units(self) -> int:
        """As ``Pass`` says. One Spark job over the column of ids; what it found is kept by Spark while ``one_state`` lasts."""
        with _without_log():
            long = long_units(self._plain(), self._ids, self._schema.most_rows)
            self._long_units = self._while_kept.enter_context(persisted(long))
        units, *counted = _asked(self.where, lambda: numbers_of_units(self._long_units, _collect))
        self._counted = counted[0], counted[1]
        return units

    def gram(self, row_bound: float, through: PublicMap | None = None, scales: Scales = ONE_CLIP) -> GramSum:
        """As ``Pass`` says. One Spark job; its first stage reads the rows once."""
        dim = len(self._schema.encoded)
        check_map(through, dim, row_bound, scales)
        public = (row_bound, None, None if through is None else through.to_bytes(), scales)
        return self._summed(sum_part, public, dim, row_bound, digest_of(through, scales), len(scales))

    def counts(self, bins: Bins) -> GramSum:
        """As ``Pass`` says. One Spark job, as for a sum."""
        return self._summed(count_part, (dict(bins.inner),), bins.dim, COUNT_BOUND)

    def kept(self, coins: Coins | None) -> tuple[Pass, int]:
        """As ``Pass`` says. One Spark job, whose answer, the decoded rows, lies on this machine: sums over them are made here.

        The places by which coins are thrown are those in Spark's partitions."""
        if coins is None and self._counted is not None and self._counted[0] * bytes_of_row(self._schema) > self._room:
            return self, self._counted[0]
        public = (b"", 1.0) if coins is None else (coins.key, coins.share)
        keep = shipped(keep_part.__module__, keep_part.__name__, self._schema.to_dict(), self._sent, *public)
        found = _asked(self.where, lambda: _collect(self._rows().mapInArrow(keep, KEPT_DDL)))
        batches, rows, ids = from_kept([tuple(each) for each in found], self._schema)
        check_unchanged(self.where, self._counted, (rows, ids))
        Steps(self._progress).reach(1.0)
        return LocalPass(KeptRows(self.where, self._schema.read_names, batches), self._schema, progress=self._progress), rows

    def under(self, schema: Schema) -> Self:
        """As ``Pass`` says."""
        other = copy.copy(self)
        other._schema = schema
        return other

    def _summed(self, part: Callable, public: tuple, dim: int, row_bound: float, through: str = "", sums: int = 1) -> GramSum:
        """The sum over all parts of what ``part`` makes of one; ``public`` is what it is told besides the schema."""
        groups = min(-(-count_pieces(dim, sums) // PIECES_PER_GROUP), MOST_GROUPS)
        pieces = [tuple(each) for each in _asked(self.where, lambda: _collect(self._sums(part, public, row_bound, groups)))]
        total = from_pieces(pieces, dim, row_bound, through, sums)
        check_unchanged(self.where, self._counted, (total.rows, ids_of(pieces)))
        Steps(self._progress).reach(1.0)
        return total

    def _sums(self, part: Callable, public: tuple, row_bound: float, groups: int) -> DataFrame:
        """The frame of one row per piece of the sum. A piece goes to the same group in every attempt: groups are found by hash."""
        sum_rows = shipped(part.__module__, part.__name__, self._schema.to_dict(), self._sent, *public)
        add = shipped(add_pieces.__module__, add_pieces.__name__, row_bound)
        partial = self._rows().mapInArrow(sum_rows, PARTIAL_DDL)
        return partial.repartition(groups, "piece").mapInArrow(add, SUM_DDL)

    def _rows(self) -> DataFrame:
        """What workers are sent, its columns called ``_sent``; where units have ids, with the number of rows of each row's unit."""
        if self._long_units is None:
            return self._declared()
        sent = [f"c{i}" for i, name in enumerate(self._names) if name in self._sent]
        return with_rows_of_unit(self._plain(), self._long_units, self._ids, sent)

    def _plain(self) -> DataFrame:
        """The columns that are read, called c0, c1, ... by place."""
        return self._declared().toDF(*(f"c{i}" for i in range(len(self._names))))

    @property
    def _ids(self) -> IdColumn:
        """The column of ids of ``_plain``."""
        name = self._schema.unit_id
        assert name is not None
        place = self._table.columns.names.index(name)
        return IdColumn(f"c{self._names.index(name)}", self._table.columns.types[place], self._table.spark_types[place])

    @property
    def _sent(self) -> list[str]:
        """The columns of ``_rows``, by the table's names: no worker needs an id that was counted."""
        if self._long_units is None:
            return self._names
        wanted = {*self._schema.names, self._schema.weight}
        return [*(name for name in self._names if name in wanted), ROWS_OF_UNIT, MARK_OF_UNIT]

    def _declared(self) -> DataFrame:
        """The columns that are read, in the table's order, renamed only if PySpark would read more than a name into one of them: Spark
        copies every row to rename a column or to move it.

        They are taken by name: Connect looks at a table or view anew when it runs, and another column may stand in that place by
        then. Where names differ by their case alone, which Spark does not tell apart, they are taken by place."""
        if self._kept_frame is not None:
            return self._kept_frame
        frame, names = self._table.frame, self._table.columns.names
        if len({name.lower() for name in names}) == len(names):
            plain_names = all(name.isidentifier() for name in self._names)
            return frame.selectExpr(
                *(_quoted(name) if plain_names else f"{_quoted(name)} as c{i}" for i, name in enumerate(self._names))
            )
        plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
        return plain.select(*(f"c{names.index(name)}" for name in self._names))

    @property
    def _names(self) -> list[str]:
        """The columns that are read, in the table's order."""
        wanted = set(self._schema.read_names)
        return [name for name in self._table.columns.names if name in wanted]


def _quoted(name: str) -> str:
    """A name in which dots and ticks have no meaning."""
    return "`" + name.replace("`", "``") + "`"


def is_spark(table: object) -> bool:
    """Whether ``table`` is for this engine."""
    if isinstance(table, str):
        return table.startswith(PREFIX)
    return _is_frame_of("pyspark.sql.dataframe", table) or _is_frame_of("pyspark.pandas.frame", table)


def find_table(table: Any, query: str | None) -> SparkTable:
    """A frame, the table of a catalog ("spark:sales.visits"), or a query's answer ("spark:")."""
    if not isinstance(table, str):
        if query is not None:
            raise TableError(
                'query= needs a catalog. Pass "spark:" as the table, or run the query yourself and pass its DataFrame.'
            )
        is_frame = _is_frame_of("pyspark.sql.dataframe", table)
        return SparkTable(table if is_frame else _asked("the Spark DataFrame", table.to_spark))
    name = table.removeprefix(PREFIX).strip()
    if bool(name) == (query is not None):
        raise TableError(
            '"spark:" needs either the name of a table after it, such as spark:sales.visits, or a query. Pass one of the two.'
        )
    session = _session()
    if query is not None:
        where = "the answer to the Spark query"
        return SparkTable(_asked(where, lambda: session.sql(query), "run the query in Spark itself to see why"), where)
    where = f"the Spark table {name}"
    do = "check the name with `show tables`, and your right to read it"
    named = SparkTable(_asked(where, lambda: session.table(name), do), where, do)
    named.rows_of = _rows_of(session, name)
    return named


def _arrow_type(type_: Any) -> pa.DataType:
    """The Arrow type that Python gets. One that no kind of column takes becomes an empty struct, with Spark's name as its field."""
    name = type_.typeName()
    if name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    return ARROW_TYPES.get(name) or pa.struct([pa.field(type_.simpleString(), pa.null())])


def _check_types(table: SparkTable, schema: Schema) -> None:
    kinds = {"unit_id": schema.unit_id, "weight": schema.weight}
    kinds_by_name = {name: kind for kind, name in kinds.items() if name} | {
        column.name: column.kind for column in schema.columns
    }
    for name, kind in kinds_by_name.items():
        arrow_type = table.columns.field(name).type
        if pa.types.is_struct(arrow_type):
            raise ColumnTypeError(
                column=name,
                kind=kind,
                found=arrow_type.field(0).name,
                needed="numbers, text, truth values, dates or timestamps",
                do="convert it in Spark first",
            )
    Encoder(schema).check_types(table.columns)


def _is_frame_of(module: str, table: object) -> bool:
    """Whether the module made it. A frame can only have come from a library that is already imported."""
    library = sys.modules.get(module)
    return library is not None and isinstance(table, library.DataFrame)


def _session() -> Session:
    """The session in use, else the one that Spark's own settings describe (SPARK_REMOTE, spark-defaults.conf, spark-submit)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError(package="pyspark", extra="spark", purpose="a Spark table") from None
    do = "set SPARK_REMOTE to a Spark Connect server, start it with spark-submit, or install Java 17 for a Spark of its own"
    return _asked("Spark", lambda: SparkSession.getActiveSession() or SparkSession.builder.getOrCreate(), do)


def _rows_of(session: Session, name: str) -> str:
    """A view is a query: its rows are those of a result. So are a table's whose kind the catalog does not tell."""
    try:
        return "table" if session.catalog.getTable(name).tableType in ("MANAGED", "EXTERNAL") else "result"
    except Exception:  # a catalog without this call
        return "result"


def _collect(frame: DataFrame) -> list:
    """The rows of a small frame. An interrupt stops the job on the cluster, classic or Connect.

    The job is waited for in a thread of its own: a classic session cannot be told to stop by the thread that waits for its answer."""
    session = frame.sparkSession
    tag = f"dpgram-{uuid.uuid4().hex}"
    users, tags = session.getTags(), _tags(session)

    def ask() -> list:
        for each in users:
            session.addTag(each)
        tags.add(tag)
        try:
            return frame.collect()
        finally:
            with suppress(Exception):  # where Python's threads share one of Java, it would stay on the user's next job
                tags.remove(tag)

    answer = InThread(_with_settings(session, ask))
    try:
        return answer.result()
    except KeyboardInterrupt:
        _stop(tags, tag, answer)
        raise


class _Tags(NamedTuple):
    """How to tag the jobs of a thread, and to stop those that have a tag."""

    add: Callable[[str], object]
    remove: Callable[[str], object]
    interrupt: Callable[[str], object]


def _tags(session: Session) -> _Tags:
    """A classic session's own would find no job of another thread, its context's do."""
    if _is_connect(session):
        return _Tags(session.addTag, session.removeTag, session.interruptTag)
    context = session.sparkContext
    return _Tags(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)


def _stop(tags: _Tags, tag: str, answer: Future[list]) -> None:
    """Stops the job, and asks again for some seconds: one that Spark was about to begin does not hear the first time."""
    with suppress(Exception):  # a session that is gone has no job left
        for _ in range(STOP_TRIES):
            tags.interrupt(tag)
            with suppress(TimeoutError):
                answer.exception(timeout=STOP_PAUSE)
                return


def _is_connect(session: Session) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect")


def _with_settings(session: Session, call: Callable[[], T]) -> Callable[[], T]:
    """``call`` for another thread, with what the user has set for this one: a scheduler's pool, a job's description."""
    if _is_connect(session):
        return call  # of a session of Connect only tags belong to a thread
    from pyspark.util import inheritable_thread_target

    return inheritable_thread_target(session)(call)


def _asked(where: str, call: Callable[[], T], do: str | None = None) -> T:
    """``call()``, where a failure becomes an UnreadableTableError without Spark's message, which may quote a cell."""

    def explain(error: BaseException) -> dict[str, str]:
        failure, advice = _what_failed(error)
        return {"failure": failure, "do": advice or do or "run the same frame or query in Spark itself"}

    with _without_log():
        return explained(where, call, explain)


@contextmanager
def _without_log() -> Iterator[None]:
    """Holds back the lines that PySpark itself logs, in this process, about a query that failed: they quote the cell."""

    def nothing(record: logging.LogRecord) -> bool:
        return False

    module = sys.modules.get("pyspark.logger")
    loggers = [module.PySparkLogger.getLogger(name) for name in LOGGERS] if module else []
    for logger in loggers:
        logger.addFilter(nothing)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(nothing)


def _what_failed(error: BaseException) -> tuple[str, str | None]:
    """The kind of failure, in words that cannot come from a cell: names of conditions and classes; and what to do, where known."""
    name, text = type(error).__name__, str(error)
    if missing := re.search(r"No module named '(numpy|pyarrow)\b", text):
        do = f"install {missing[1]} for the Python of the executors, or name another by PYSPARK_PYTHON"
        return f"the executors' Python has no {missing[1]}", do
    if "PYTHON_VERSION_MISMATCH" in text:
        return "PYTHON_VERSION_MISMATCH", "the driver and the executors need the same minor version of Python"
    if "spark.driver.maxResultSize" in text:
        return (
            "the answer is larger than spark.driver.maxResultSize",
            "raise that setting, declare fewer columns, or pass memory=0",
        )
    for kind in re.findall(r"cannot be read \((\w{1,40}); details withheld", text):  # said by our worker
        if hasattr(builtins, kind) or hasattr(pa, kind):
            return kind, None
    with suppress(Exception):
        name = condition if (condition := error.getCondition()) in TOLD else name  # type: ignore[attr-defined]
    return name, None


TOLD = (  # conditions that say something to a reader of Spark's documentation; others may be made by a query
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "PARSE_SYNTAX_ERROR",
    "PARSE_EMPTY_STATEMENT",
    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
    "CAST_INVALID_INPUT",
    "DIVIDE_BY_ZERO",
    "ARITHMETIC_OVERFLOW",
    "INSUFFICIENT_PERMISSIONS",
    "JAVA_GATEWAY_EXITED",
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    "PATH_NOT_FOUND",
)
