"""For each table, mechanism and epsilon: how often 95 % intervals of each kind of answer contain what the table itself gives.

The truth is the same answer from a release with next to no noise. So an interval also has room for the sampling of rows that it need not
have here, and should contain the truth more often than 95 %."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import dpgram
from dpgram.artifact.release import GramRelease
from experiments.answers.tables import LISTED, Asked, load

MECHANISMS, EPSILONS = ("gaussian-noise", "whitened-noise"), (0.3, 1.0, 3.0)
KINDS = ("regress", "controls", "iv", "logit", "lda", "partial")
DELTA, NO_NOISE = 1e-6, 1e10
RELEASES = 20

Interval = tuple[float, float, float]  # the estimate, and both ends


@dataclass(frozen=True)
class Line:
    """Of one table, mechanism and epsilon: coverage of bounded intervals by kind of answer, NaN where there are none."""

    table: str
    mechanism: str
    epsilon: float
    releases: int
    regress: float
    controls: float
    iv: float
    logit: float
    lda: float
    partial: float
    bounded: float  # share of all intervals that are bounded
    worst: str  # the quantity with the lowest coverage, where half of its intervals are bounded
    lowest: float  # ... and its coverage


def cells() -> list[tuple[str, str, float]]:
    return list(product(LISTED, MECHANISMS, EPSILONS))


def measured(table: str, mechanism: str, epsilon: float, releases: int = RELEASES) -> Line:
    asked, (frame, schema) = LISTED[table], load(table)

    def made(budget: float, by: str, seed: int) -> GramRelease:
        return dpgram.release(frame, schema, epsilon=budget, delta=DELTA, mechanism=by, insecure_seed=seed)

    truth = {name: found[0] for name, found in answers(made(NO_NOISE, "gaussian-noise", 0), asked)}
    hits: dict[str, list[bool]] = {name: [] for name in truth}
    for seed in range(1, releases + 1):
        for name, (_, lower, upper) in answers(made(epsilon, mechanism, seed), asked):
            if math.isfinite(lower) and math.isfinite(upper):
                hits[name].append(lower <= truth[name] <= upper)
    by_kind = {kind: [hit for name in hits if name.startswith(f"{kind} ") for hit in hits[name]] for kind in KINDS}
    known = {name: float(np.mean(found)) for name, found in hits.items() if len(found) >= releases / 2}
    worst = min(known, key=known.__getitem__, default="")
    return Line(
        table,
        mechanism,
        epsilon,
        releases,
        **{kind: float(np.mean(found)) if found else math.nan for kind, found in by_kind.items()},
        bounded=sum(map(len, hits.values())) / (releases * len(hits)),
        worst=worst,
        lowest=known.get(worst, math.nan),
    )


def answers(release: GramRelease, asked: Asked) -> Iterator[tuple[str, Interval]]:
    """All answers with their intervals. What the release refuses to answer is left out."""
    names = release.schema.names
    for kind, target in (("regress", asked.target), ("logit", asked.yes_no)):
        fit = attempted(getattr(dpgram, kind), release, target, [name for name in names if name != target])
        yield from _coefficients(kind, fit)
    if asked.instruments:
        yield from _coefficients("iv", dpgram.iv(release, asked.instruments))
    moved = dpgram.controls(release, asked.target, asked.feature, [[name] for name in asked.controls.split()]).to_dict()
    for k, step in enumerate(moved["steps"]):
        yield f"controls step {k}", (step["coefficient"], *_ends(step))
    for part in moved["contributions"]:
        yield f"controls part of {part['name']}", (part["amount"], *_ends(part))
    found = attempted(dpgram.lda, release, asked.yes_no, [name for name in names if name != asked.yes_no])
    if found is not None:
        yield "lda error rate", (found.error_rate, *found.error_interval)
        yield "lda distance", (found.distance[0, 1], found.distance_lower[0, 1], found.distance_upper[0, 1])
    for pair in dpgram.partial_correlations(release).pairs:
        ends = (pair["lower"], pair["upper"]) if pair["identified"] else (-math.inf, math.inf)
        yield f"partial {pair['first']}, {pair['second']}", (pair["partial"], *ends)


def attempted(ask: Any, *given: Any) -> Any:
    """What is found; None where noise hides it, which is said in an error."""
    try:
        return ask(*given)
    except dpgram.DpgramError:
        return None


def _coefficients(kind: str, fit: Any) -> Iterator[tuple[str, Interval]]:
    if fit is not None:
        for name, (lower, upper) in zip(fit.names, fit.conf_int().to_numpy(), strict=True):
            yield f"{kind} {name}", (float(fit.params[name]), float(lower), float(upper))


def _ends(found: dict[str, Any]) -> tuple[float, float]:
    lower, upper = found["lower"], found["upper"]
    return (-math.inf if lower is None else lower), (math.inf if upper is None else upper)
