"""Maps for many whitened releases at once.

The maps of ``whitened-noise`` are made by a search that takes milliseconds. Its proof allows any maps that are functions of what was
published, so an audit that makes a hundred thousand releases has simpler ones, made in one step from the round before; all else is the
mechanism's own. A few releases are made with the mechanism's own maps as well."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpgram.mechanisms import whitening
from dpgram.mechanisms.conversation import Conversation, Mechanism, Task
from dpgram.terms.noise import Round

Array = np.ndarray

WHITENED = "whitened-noise"


def with_quick_maps(mechanism: Mechanism) -> Mechanism:
    """The mechanism with maps that are quickly made, many releases at once; one that makes no maps as it is."""
    if mechanism.name != WHITENED:
        return mechanism
    start: Callable[..., Conversation] = mechanism.start
    return replace(mechanism, start=partial(start, steering=QuickSteering()), batched=True)


class QuickSteering:
    """The rules' own rounds and shares; a map whitens by the last round alone, and shrinks rows of more than average length."""

    def rules(self, dim: int, rows: float | None, mu: float) -> whitening.Rules:
        return whitening.rules(dim, rows, mu)

    def first_map(self, dim: int, row_bound: float) -> Array:
        return whitening.first_map(dim, row_bound)

    def next_map(self, seen: Sequence[Round], plan: whitening.Rules, rows: float | None, task: Task) -> Array:
        """V w^(-1/2) V' T sqrt(m / d), from the last round's map T and matrix V w V' of m rows; eigenvalues within noise are lifted."""
        last = seen[-1]
        dim = last.gram.shape[-1]
        values, vectors = np.linalg.eigh(last.gram)
        values = np.maximum(values, 2 * math.sqrt(dim) * last.sd_off_diagonal)
        many = values.sum(axis=-1)[..., None, None]  # about so many rows, those that were not shrunk counting less
        return (vectors / np.sqrt(values)[..., None, :]) @ vectors.mT @ last.through * np.sqrt(many / dim)

    def weighed(self, seen: Sequence[Round], rows: float | None, task: Task) -> tuple[Round, ...]:
        return tuple(seen)

    def unwhitened(self, last: Round) -> Array:
        half = np.linalg.solve(np.broadcast_to(last.through, last.gram.shape), last.gram)
        whole = np.linalg.solve(last.through, half.mT)
        return (whole + whole.mT) / 2

    def choices(self, seen: Sequence[Round]) -> dict[str, float]:
        return {}
