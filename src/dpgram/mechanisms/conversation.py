"""A mechanism is a small conversation: it asks for Gram sums, is given them, and ends with an outcome.

Most ask once, for the rows under their row bound. The curator carries a question to the engine and the sum back; a test
or an audit answers from an array."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

import numpy as np

from dpgram.sampling.base import NormalSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import NoiseModel

Array = np.ndarray


@dataclass(frozen=True)
class Task:
    """What a mechanism is to achieve. All of it is public."""

    budget: Budget
    neighbours: Neighbours
    dim: int
    row_bound: float


@dataclass(frozen=True)
class GramQuestion:
    """Asks for the sum of z z' over all rows, each shrunk to ``row_bound``."""

    row_bound: float


@dataclass(frozen=True)
class Outcome:
    """What a mechanism publishes."""

    gram: Array
    noise: NoiseModel
    parameters: dict[str, float] = field(default_factory=dict)


Conversation = Generator[GramQuestion, Array, Outcome]


@dataclass(frozen=True)
class Mechanism:
    """One line of the registry. ``start`` calibrates and asks back before its first question: no data, no noise yet."""

    name: str
    summary: str
    proof: str  # file in proofs/
    start: Callable[[Task, NormalSource], Conversation]


def hold(conversation: Conversation, answer: Callable[[GramQuestion], Array]) -> Outcome:
    """The outcome of the conversation when ``answer`` answers its questions."""
    try:
        question = next(conversation)
        while True:
            question = conversation.send(answer(question))
    except StopIteration as end:
        return end.value
