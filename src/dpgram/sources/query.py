"""What every query has in common: it is one statement, its declared columns are picked by place, and a thread fetches its result."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from dpgram.errors import TableError
from dpgram.sources.base import quiet_iterator, quietly, slices

T = TypeVar("T")
AHEAD = 2  # batches fetched before they are asked for

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


def one_statement(query: object) -> str:
    """The query without the semicolon at its end, if it is one statement."""
    if not isinstance(query, str):
        raise TableError(
            f"query is a {type(query).__name__} and must be a text of SQL, such as 'select age, income from people'."
        )
    if "\0" in query:
        raise TableError("the query holds a null character, which no database takes: remove it.")
    end = _end_of_statement(query)
    statement, rest = query[:end], query[end:]
    if _has_words(rest):
        raise TableError("the query holds several statements, and one is needed: a release reads the result of one select.")
    if not _has_words(statement):
        raise TableError("the query is empty, and one select is needed.")
    return statement


def projected(query: str, width: int, expressions: Sequence[str]) -> str:
    """A query for ``expressions`` over the result of ``query``, whose ``width`` columns are c0, c1, ... by place.

    Places know nothing of quoting, of names that differ in case only, or of names that stand twice. The line breaks end a
    comment at the end of the query."""
    places = ", ".join(f"c{i}" for i in range(width))
    return f"select {', '.join(expressions)} from (\n{query}\n) as dpgram({places})"


def _end_of_statement(query: str) -> int:
    """Where the first semicolon stands that ends a statement; the end of the text if none does."""
    at = 0
    while at < len(query):
        if query[at] == ";":
            return at
        at = _after(query, at)
    return at


def _has_words(text: str) -> bool:
    """Whether the text holds more than comments, white space and semicolons."""
    at = 0
    while at < len(text):
        comment = text.startswith(("--", "/*"), at)
        if not comment and not text[at].isspace() and text[at] != ";":
            return True
        at = _after(text, at)
    return False


def _after(text: str, at: int) -> int:
    """Where the text, name, comment or character that starts at ``at`` ends."""
    if text.startswith("/*", at):
        return _after_comment(text, at)
    if skipped := SKIPPED.match(text, at):
        return skipped.end()
    return at + 1


def _after_comment(text: str, at: int) -> int:
    """Where the comment that starts at ``at`` ends. Comments of this form nest."""
    depth = 0
    for edge in COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def interruptible(call: Callable[[], T], cancel: Callable[[], None] = lambda: None) -> T:
    """``call()`` in a thread of its own, so that Ctrl-C need not wait for a library that is deep in a long call."""
    done: queue.Queue[tuple[bool, object]] = queue.Queue()

    def work() -> None:
        try:
            done.put((True, call()))
        except BaseException as error:
            done.put((False, error))

    threading.Thread(target=work, name="dpgram-query", daemon=True).start()
    try:
        good, result = _next(done)
    except BaseException:
        cancel()
        raise
    if good:
        return result  # type: ignore[return-value]
    raise result  # type: ignore[misc]


def _next(items: queue.Queue[T]) -> T:
    """The next item. Waits in short steps: some libraries set up signals so that an endless wait cannot be interrupted."""
    while True:
        try:
            return items.get(timeout=0.1)
        except queue.Empty:
            pass


def fetched(where: str, start: Callable[[], Iterator[pa.RecordBatch]], cancel: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """The batches of ``start()``, fetched by a thread that stays a little ahead of whoever sums them.

    Leaving early, by Ctrl-C or because the sum failed, cancels the query and waits for the thread."""
    batches: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(AHEAD)
    left = threading.Event()

    def put(item: pa.RecordBatch | BaseException | None) -> None:
        while not left.is_set():
            try:
                return batches.put(item, timeout=0.1)
            except queue.Full:
                pass
        return None

    def work() -> None:
        try:
            for batch in quiet_iterator(where, quietly(where, start)):
                for part in slices(batch):
                    put(part)
                if left.is_set():
                    break
            put(None)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work, name="dpgram-fetch", daemon=True)
    worker.start()
    ended = False
    try:
        while isinstance(item := _next(batches), pa.RecordBatch):
            yield item
        ended = True
    finally:
        left.set()
        if ended:  # a cancel now might hit another query of the same connection
            worker.join()
        while worker.is_alive():  # a cancel can come between two calls and find nothing to cancel
            cancel()
            worker.join(timeout=0.5)
    if item is not None:
        raise item
