"""What the page's script needs to know of a release: the matrix, the columns, the noise. All of it is in the release file too."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from dpgram.artifact.release import GramRelease
from dpgram.inference.bootstrap import bootstrap
from dpgram.regression.channel import additive_form, counted_rows, weighed_rows
from dpgram.regression.design import design
from dpgram.regression.repair import repaired
from dpgram.terms.columns import Boolean, Categorical, Column, Date, Numeric, bounds
from dpgram.terms.derivation import Derived
from dpgram.terms.derived import DatePart, Interval, Power, Product
from dpgram.terms.noise import (
    InverseWishartSample,
    NoiseModel,
    NoisyInverse,
    SymmetricGaussian,
    WhitenedGaussian,
    WishartSample,
)
from dpgram.terms.schema import Schema

SHAPES: dict[type, str] = {
    SymmetricGaussian: "symmetric-gaussian",
    WishartSample: "wishart-sample",
    InverseWishartSample: "inverse-wishart-sample",
    NoisyInverse: "noisy-inverse",
    WhitenedGaussian: "whitened-gaussian",
}


def page_data(release: GramRelease, bootstrapped: Sequence[str] = (), confidence: float = 0.95) -> dict[str, Any]:
    """The release as plain data. For the targets in ``bootstrapped``, intervals that a browser does not compute itself."""
    schema = release.schema
    return {
        "gram": _lower_half(release.gram),
        "encoded": [
            {"name": e.name, "column": e.column, "centre": e.centre, "half": e.half, "sources": sorted(e.sources)}
            for e in schema.encoded
        ],
        "declared": [_declared(column) for column in schema.columns],
        "derived": [_derived(derived, schema) for derived in schema.derived],
        "intercept": schema.intercept,
        "unit": schema.unit,
        "rows": release.rows,
        "rowBound": release.row_bound,
        "largestNorm": schema.largest_norm,
        "epsilon": release.budget.epsilon,
        "delta": release.budget.delta,
        "neighbours": release.neighbours.value,
        "mechanism": release.mechanism,
        "private": release.private,
        "condition": release.condition,
        "noise": {"shape": SHAPES[type(release.noise)], **_numbers(release.noise)},
        **({"rounds": _rounds(release, release.noise)} if isinstance(release.noise, WhitenedGaussian) else {}),
        "bootstrap": [_bootstrap(release, target, confidence) for target in bootstrapped],
    }


def _lower_half(matrix: Any) -> list[list[float]]:
    """All there is of a symmetric matrix."""
    return [row[: k + 1].tolist() for k, row in enumerate(matrix)]


def _numbers(noise: NoiseModel) -> dict[str, float]:
    return {"shift": noise.shift} if isinstance(noise, WhitenedGaussian) else dataclasses.asdict(noise)


def _rounds(release: GramRelease, noise: WhitenedGaussian) -> dict[str, Any]:
    """What estimates start from where the release came about in rounds: worked out here, because it takes many steps."""
    counted, weighed = counted_rows(release), weighed_rows(release)
    return {
        **_look(release, together=False),
        "together": _look(release, together=True),
        "weighed_gram": _lower_half(noise.last.gram / noise.last.kept),
        "repaired": _lower_half(repaired(release)),
        "counted": {"rows": counted[0], "rowsSd": counted[1]},
        "weighed": {"rows": weighed[0], "rowsSd": weighed[1]},
        "kept": noise.last.kept,
        "keptWords": f"{noise.last.kept:.0%}",
    }


def _look(release: GramRelease, *, together: bool) -> dict[str, Any]:
    """The last round, or all of them together, as additive noise in other coordinates."""
    there, additive, turn = additive_form(release, together=together)
    noise = {"shape": SHAPES[SymmetricGaussian], **dataclasses.asdict(additive)}
    return {"there": _lower_half((there + there.T) / 2), "noise": noise, "turn": turn.tolist()}


def _declared(column: Column) -> dict[str, Any]:
    """A declared column as the prediction form needs it; ``fill`` stands for a missing cell."""
    common: dict[str, Any] = {"name": column.name, "kind": column.kind}
    match column:
        case Numeric() | Date():
            lower, upper = bounds(column)
            return {**common, "lower": lower, "upper": upper, "fill": column.fill}
        case Categorical():
            own = len(column.levels) - 1 if column.missing == "level" else None
            return {**common, "levels": list(column.levels), "fill": 0, "missing_level": own, "numbers": column.matches_numbers}
        case Boolean():
            return {**common, "fill": int(column.missing)}


def _derived(derived: Derived, schema: Schema) -> dict[str, Any]:
    """A derived column with everything that follows from the declared ones worked out, so that a script need only compute."""
    made, columns = schema.made[derived.name], schema.by_name
    common: dict[str, Any] = {
        "name": derived.name,
        "kind": derived.kind,
        "lower": made.lower,
        "upper": made.upper,
        "fill": list(made.fill),
    }
    match derived:
        case Product():
            factors = derived.factors(columns)
            return {
                **common,
                "factors": [{"column": column.name, "levels": list(places) or None} for column, places in factors],
            }
        case Power():
            return {**common, "of": derived.of, "exponent": derived.exponent}
        case Interval():
            low, high = (end if math.isfinite(end) else None for end in derived.ends(columns))
            return {**common, "of": derived.of, "from": low, "to": high}
        case DatePart():
            wanted = [part if math.isfinite(part) else None for part in derived.wanted(columns)] if derived.levels else None
            return {**common, "of": derived.of, "part": derived.part, "wanted": wanted}
        case _:
            return {**common, "of": derived.of}  # type: ignore[attr-defined]


def _bootstrap(release: GramRelease, target: str, confidence: float) -> dict[str, Any]:
    """Bootstrap intervals of ``target`` on all columns that do not come from its own cells."""
    plan = design(release, target, None, None)
    made = bootstrap(release, plan, confidence)
    return {
        "target": plan.target,
        "names": list(plan.names),
        "confidence": confidence,
        "lower": [end if math.isfinite(end) else None for end in made.lower.tolist()],
        "upper": [end if math.isfinite(end) else None for end in made.upper.tolist()],
    }
