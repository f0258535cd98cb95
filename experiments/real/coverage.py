"""How often intervals hold on public tables.

How it was measured: a table is released many times by every method, at each epsilon, delta 1e-6, under REPLACE, through
``dpgram.release`` and ``dpgram.regress`` as users call them (noise from seeds). Each of its targets is explained by all other columns.
Truth is the table's own least squares, on all rows and without noise. Counted are coefficients whose interval is bounded, the
intercept among them. Errors, of the debiased estimate, and lengths are in units of the robust standard error: an error of 1 is as
large as what the sampling of rows leaves open anyway, and a length of 1 is that of the interval without privacy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import dpgram
from dpgram.mechanisms import registry, whitened_noise
from dpgram.terms import scales
from experiments.real.tables import Table
from experiments.real.truth import Truth, least_squares

Array = np.ndarray

EPSILONS, DELTA, CONFIDENCE = (0.3, 1.0, 3.0), 1e-6, 0.95
WITHOUT_PRIVACY = 2 * 1.959964  # standard errors that an interval is long

WHITENED, ONE_CLIP, PLAIN = "whitened-noise", "one clip", "gaussian-noise"
VARIANTS = (PLAIN, ONE_CLIP, WHITENED)


@dataclass(frozen=True)
class Row:
    """One regression by one method. Tuples have a number for each coefficient."""

    table: str
    target: str
    epsilon: float
    method: str
    releases: int
    rows: int
    columns: int  # encoded
    bounded: tuple[float, ...]  # share of releases with a bounded interval
    covered: tuple[float, ...]  # share of those that hold the truth
    error: tuple[float, ...]  # root of the mean square, of those, in robust standard errors
    length: tuple[float, ...]  # mean, of those, over that of the interval without privacy


def measure(table: Table, releases: int, variant: str, epsilons: Sequence[float] = EPSILONS) -> list[Row]:
    """The lines of one table by one method."""
    truths = {target: least_squares(table, target) for target in table.targets}
    options = {"looks": "none"} if variant == ONE_CLIP else {}
    lines = []
    for epsilon in epsilons:
        seen: dict[str, list[Array]] = {target: [] for target in truths}
        for index in range(releases):
            with listed(variant):
                made = dpgram.release(
                    table.data,
                    table.schema,
                    epsilon=epsilon,
                    delta=DELTA,
                    mechanism=variant,
                    insecure_seed=noise_seed(table.name, PLAIN if variant == PLAIN else WHITENED, epsilon) + index,
                    threads=1,
                    **options,
                )
            for target, truth in truths.items():
                seen[target].append(look(made, target, truth))
        for target, looks in seen.items():
            key = (table.name, target, epsilon, variant, releases, *table.rows.shape)
            lines.append(Row(*key, *summarise(np.array(looks), truths[target])))
    return lines


@contextmanager
def listed(variant: str) -> Iterator[None]:
    """Within it ``variant`` is the name of a mechanism: whitened noise whose last round has one scale is made for this study alone.

    It is what ``whitened-noise`` was before it had several scales, and looked at no column before its first round."""
    if variant != ONE_CLIP:
        yield
        return
    start = partial(whitened_noise.start, scales_of=lambda through, task: scales.ONE_CLIP)
    registry.MECHANISMS[ONE_CLIP] = replace(whitened_noise.MECHANISM, name=ONE_CLIP, start=start)
    try:
        yield
    finally:
        del registry.MECHANISMS[ONE_CLIP]


def look(made: dpgram.GramRelease, target: str, truth: Truth) -> Array:
    """(3, p) lower ends, estimates and upper ends of one release."""
    fit = dpgram.regress(made, target, confidence=CONFIDENCE)
    ends, names = fit.conf_int(), list(truth.names)
    return np.array([ends.loc[names, 0], fit.params[names], ends.loc[names, 1]])


def summarise(looks: Array, truth: Truth) -> tuple[tuple[float, ...], ...]:
    """The four tuples of a line from ``looks`` (releases, 3, p)."""
    lower, estimate, upper = np.moveaxis(looks, 1, 0)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    covered = (lower <= truth.coefficients) & (truth.coefficients <= upper)
    squares = ((estimate - truth.coefficients) / truth.se) ** 2
    with np.errstate(invalid="ignore"):
        length = np.where(bounded, upper - lower, 0.0) / (WITHOUT_PRIVACY * truth.se)
        many = bounded.sum(axis=0)
        means = [np.where(bounded, values, 0.0).sum(axis=0) / many for values in (covered, squares, length)]
    return tuple(tuple(map(float, v)) for v in (bounded.mean(axis=0), means[0], np.sqrt(means[1]), means[2]))


def noise_seed(*cell: object) -> int:
    """A seed of its own for each cell, so that no two share their noise."""
    return zlib.crc32(repr(cell).encode()) * 10_000
