"""What every query has in common: it is one statement, its declared columns are picked by place, and a thread fetches its result."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import Any, TypeVar

import pyarrow as pa

from dpgram.errors import LimitedQueryWarning, QueryError, TableError
from dpgram.sources.base import Piece, Source, quiet_iterator, slices

T = TypeVar("T")
STEP = 0.1  # seconds of a wait: some libraries set up signals so that an endless one cannot be interrupted

# What may hold a semicolon that ends nothing: texts, quoted names, comments.
SKIPPED = re.compile(
    r"""[eE]'(?:\\.|''|[^'\\])*'      # E'it\'s'
    |   '(?:''|[^'])*'                # 'it''s'
    |   "(?:""|[^"])*"                # "a name"
    |   \$(?P<tag>[^\W\d]?\w*)\$.*?\$(?P=tag)\$   # $tag$it's$tag$
    |   --[^\n]*
    """,
    flags=re.VERBOSE | re.DOTALL,
)
COMMENT_EDGE = re.compile(r"/\*|\*/")
# A limit, or a sample, that leaves out rows. What stands before it may show that it is a name: people.limit, price as limit, $limit.
LIMIT = re.compile(
    r"(?P<name>[.$:@]\s*|\bas\s+)?\b(?:limit(?!\s+(?:all|null)\b)|fetch\s+(?:first|next)|using\s+sample|tablesample)\b",
    flags=re.IGNORECASE,
)

OF_ROWS = (
    "if one row is taken away, another one takes its place. So two tables that differ in one row can have results that differ in two rows. "
    "The promise is about one row of the result, and it can protect a person less than it says."
)
OF_UNITS = (
    "if a unit with k rows is taken away, k rows of up to k other units take their place. So two tables that differ in one unit can have "
    "results that differ in k + 1 units. The promise is about one unit of the result, and it can protect a person less than it says."
)


def one_statement(query: object) -> str:
    """The query without the semicolon at its end, if it is one statement."""
    if not isinstance(query, str):
        raise TableError(f"query is a {type(query).__name__} and must be SQL text, such as 'select age, income from people'.")
    if "\0" in query:
        raise TableError("the query contains a null character, which no database accepts. Remove it.")
    end = next((at for at, token in _tokens(query) if token == ";"), len(query))
    statement, rest = query[:end], query[end:]
    if _has_words(rest):
        raise TableError(
            "the query contains several statements, but a release reads the result of one select. Pass one statement."
        )
    if not _has_words(statement):
        raise TableError("the query is empty, but one select is needed.")
    return statement


def warn_of_limit(query: str, *, by_units: bool = False, stacklevel: int) -> None:
    """Warn of a limit or a sample in the query: it may then give neighbouring tables results that are no neighbours.

    ``by_units`` says that units have ids. Text, quoted names and comments are not looked at. A limit that a view or a function hides is
    not seen."""
    code = "".join(token if len(token) == 1 else " " if token.startswith(("--", "/*")) else '""' for _, token in _tokens(query))
    if all(found["name"] for found in LIMIT.finditer(code)):
        return
    warnings.warn(
        "the query has a limit or a sample, such as 'order by ... limit 100'. Which rows it returns then depends on other rows: "
        f"{OF_UNITS if by_units else OF_ROWS} Use a 'where' that looks at one row at a time.",
        LimitedQueryWarning,
        stacklevel=stacklevel,
    )


class Query(Source):
    """The result of a query. Nothing is computed before rows are asked for, and no more than a few batches at a time.

    A database says which ``_expressions`` stand for the result's columns, each in a type that loses nothing on the way."""

    rereadable = True
    costly = True
    _query: str
    _expressions: list[str]

    def _asked(self, call: Callable[[], Any]) -> Any:
        """What the database answers before any row is read; its refusal in words of ours."""
        try:
            return awaited(InThread(call), self._cancel)
        except Exception as error:
            problem, do = self._refusal(error)
        raise QueryError(where=self.where, problem=problem, do=do)

    def _refusal(self, error: Exception) -> tuple[str, str]:
        """What the database's error means, and what to do."""
        raise NotImplementedError

    def _cancel(self) -> None:
        raise NotImplementedError

    def _batches(self, names: list[str], sql: str) -> Iterator[pa.RecordBatch]:
        """The answer to ``sql``, its columns called ``names``."""
        raise NotImplementedError

    def _sql(self, expressions: Sequence[str]) -> str:
        """A query for ``expressions`` over the result, whose columns are c0, c1, ... by place.

        Places know nothing of quoting, of names that differ in case only, or of names that stand twice. The line breaks end a
        comment at the end of the query."""
        places = ", ".join(f"c{i}" for i in range(len(self._expressions)))
        return f"select {', '.join(expressions)} from (\n{self._query}\n) as dpgram({places})"

    def count(self, names: Sequence[str]) -> int:
        """The number of rows of the result, counted by the database.

        The declared columns are asked for as well: a CSV that DuckDB reads with ignore_errors loses the rows whose cells fail in a column
        that is."""
        (counted,) = self._fetched(["rows", *names], ["count(*)", *(f"count({cells})" for cells in self._declared(names))])
        return counted.column(0)[0].as_py()

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        for batch in self._fetched(names, self._declared(names)):
            yield Piece(batch, None)

    def tell_apart(self, name: str) -> None:
        for place, column in enumerate(self.columns):
            if column.name == name and (text := self._in_full(place)) is not None:
                self._expressions[place] = text
                self.columns = self.columns.set(place, pa.field(name, pa.string()))
                self.untyped = self.untyped | {name}

    def _in_full(self, place: int) -> str | None:
        """The column as text, all of its digits, if its expression rounds numbers; None if it does not."""
        raise NotImplementedError

    def _declared(self, names: Sequence[str]) -> list[str]:
        return [self._expressions[self.columns.names.index(name)] for name in names]

    def _fetched(self, names: Sequence[str], expressions: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The answer, fetched by a thread that is one batch ahead of whoever sums them.

        Leaving early, by Ctrl-C or because the sum failed, cancels the query and waits for the thread."""
        batches = quiet_iterator(self.where, self._batches(list(names), self._sql(expressions)))
        parts = (part for batch in batches for part in slices(batch))
        ahead = InThread(lambda: next(parts, None))
        try:
            while (part := awaited(ahead)) is not None:
                ahead = InThread(lambda: next(parts, None))
                yield part
        except BaseException:
            if ahead.done() and ahead.exception() is None:
                self._cancel()  # to close an answer that is not cancelled would read it to its end
            while not ahead.done():  # a cancel can come between two calls and find nothing to cancel
                self._cancel()
                ahead.thread.join(timeout=0.5)
            ahead.thread.join()
            parts.close()
            raise


def _has_words(text: str) -> bool:
    """Whether the text holds more than comments, white space and semicolons."""
    return any(not (token.startswith(("--", "/*")) or token.isspace() or token == ";") for _, token in _tokens(text))


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Each quoted text, quoted name and comment, and every other character by itself, with the place where it starts."""
    at = 0
    while at < len(text):
        skipped = SKIPPED.match(text, at)
        end = _after_comment(text, at) if text.startswith("/*", at) else skipped.end() if skipped else at + 1
        yield at, text[at:end]
        at = end


def _after_comment(text: str, at: int) -> int:
    """Where the comment that starts at ``at`` ends. Comments of this form nest."""
    depth = 0
    for edge in COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


class InThread(Future[T]):
    """What ``call()`` will return or raise, in a thread of its own."""

    def __init__(self, call: Callable[[], T]):
        super().__init__()
        self._call = call
        self.thread = threading.Thread(target=self._work, name="dpgram-query", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            self.set_result(self._call())
        except BaseException as error:
            self.set_exception(error)


def awaited(answer: Future[T], cancel: Callable[[], object] = lambda: None) -> T:
    """The answer of a thread, for which Ctrl-C need not wait while a library is deep in a long call: it calls ``cancel`` instead."""
    try:
        while not wait([answer], STEP).done:
            pass
    except BaseException:
        cancel()
        raise
    return answer.result()
