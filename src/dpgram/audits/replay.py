"""Whether a conversation of several rounds sees its table through what it publishes, and through nothing else.

A release of one table is made and kept. The same conversation is then held on the other table, where whatever it publishes is replaced by
what was published of the first: nothing that an outsider can see may then differ, no question, no number, no matrix. This needs no
statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpgram.audits.neighbours import Pair, answered
from dpgram.mechanisms.conversation import CountsQuestion, Drawing, GramAnswer, Mechanism, Question, Task, hold
from dpgram.sampling.base import RandomSource

Array = np.ndarray


class KeptSource:
    """Another source, whose published matrices are kept; or, given ``instead``, replaced by those."""

    def __init__(self, source: RandomSource, instead: list[Array] | None = None):
        self._source, self._instead, self.published = source, instead, []  # type: ignore[var-annotated]

    def publish(self, matrix: Any, step: float) -> Array:
        place = len(self.published)
        published = self._source.publish(matrix, step)
        if self._instead is not None and place < len(self._instead):
            published = self._instead[place]
        self.published.append(published)
        return published

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def faults_of_replay(mechanism: Mechanism, task: Task, pair: Pair, rng: RandomSource) -> list[str]:
    """What differs between the tables though all that was published is the same."""
    kept = KeptSource(rng)
    one = _seen(mechanism, task, pair.first, kept)
    other = _seen(mechanism, task, pair.second, KeptSource(rng, kept.published))
    return [
        f"{what} depends on the table, and not only on what was published before"
        for what in one.keys() | other.keys()
        if what not in one or what not in other or not np.array_equal(one[what], other[what])
    ]


def _seen(mechanism: Mechanism, task: Task, table: Any, rng: Any) -> Mapping[str, Any]:
    """All that an outsider sees of one release, and all that a ledger is told."""
    asked: list[Array] = []
    announced: list[Drawing] = []

    def answer(question: Question) -> GramAnswer:
        asked.append(_numbers(question))
        return answered(table, question, task)

    outcome = hold(mechanism.start(task, rng), answer, announced.append)
    return {
        **{f"question {place}": numbers for place, numbers in enumerate(asked, 1)},
        **{name: np.asarray(value) for name, value in outcome.parameters.items()},
        **{
            f"round {place}": np.concatenate(
                [
                    *(matrix.ravel() for matrix in (each.through, each.gram, *each.outer)),
                    [each.sd_off_diagonal, each.kept, each.sampled],
                    each.scales,
                ]
            )
            for place, each in enumerate(outcome.noise.rounds, 1)
        },
        "the released matrix": outcome.gram,
        "what was learnt of columns": np.array([repr(each) for each in sorted(outcome.learnt.items())]),
        "the number of questions": len(asked),
        "what is announced": np.array([repr(each) for each in announced]),
    }


def _numbers(question: Question) -> Array:
    """All that a question says."""
    if isinstance(question, CountsQuestion):
        return np.concatenate(
            [[question.sample or 0.0], *([len(name), len(edges), *edges] for name, edges in question.bins.inner.items())]
        )
    through = np.empty(0) if question.through is None else question.through.matrix
    ends = [end for interval in (question.learnt or {}).values() for end in interval]
    return np.concatenate([through.ravel(), [question.row_bound, question.sample or 0.0], question.scales, ends])
