"""A Spark frame that several jobs read: what is more than a scan of files is kept by Spark while they last, and computed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

DataFrame = Any  # pyspark.sql.DataFrame, classic or Connect

# Steps of a plan that cost no more than reading the rows again: of a classic session, once it is optimized, and of Connect.
PLAIN = {
    *("LogicalRelation", "HiveTableRelation", "DataSourceV2ScanRelation", "InMemoryRelation", "LocalRelation", "Range"),
    *("Project", "Filter"),
    *(
        "Read",
        "DataSource",
        "ChunkedCachedLocalRelation",
        "CachedRelation",
        "CachedRemoteRelation",
        "SubqueryAlias",
        "ToDF",
        "Drop",
    ),
    *("WithColumns", "WithColumnsRenamed"),
}


@contextmanager
def persisted(frame: DataFrame) -> Iterator[DataFrame]:
    """The frame, kept from its first job on unless it is a plain scan; it is let go of at the end, whatever ends it."""
    kept = None if is_plain(frame) else _persisted(frame)
    try:
        yield frame if kept is None else kept
    finally:
        if kept is not None:
            with suppress(Exception):  # a session that is gone keeps nothing
                kept.unpersist()


def _persisted(frame: DataFrame) -> DataFrame | None:
    """None where Spark fails: planning may look at cells, and quote one. The job that reads the frame fails in words of our own, and is
    paid for."""
    try:
        return frame.persist()
    except Exception:
        return None


def is_plain(frame: DataFrame) -> bool:
    """Whether the frame is a scan, with columns and rows left out at most, or is kept already. One whose plan cannot be told is not."""
    try:
        level = frame.storageLevel
        return level.useMemory or level.useDisk or set(_steps(frame)) <= PLAIN
    except Exception:
        return False


def _steps(frame: DataFrame) -> Iterator[str]:
    """The names of all steps of the frame's plan."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        yield from (type(step).__name__ for step in _upwards(frame._plan))
        return
    plans = [frame._jdf.queryExecution().optimizedPlan()]
    while plans:
        plan = plans.pop()
        yield plan.nodeName()
        children = plan.children()
        plans += [children.apply(place) for place in range(children.size())]


def _upwards(step: Any) -> Iterator[Any]:
    """A step of Connect's plan, and all that it is made of. One that has two sides is none that is plain."""
    while step is not None:
        yield step
        step = step._child
