"""What the page's script needs to know of a release: the columns, and the evidence. All of it follows from the release file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence, View
from dpgram.evidence.tails import Tails
from dpgram.inference.bootstrap import Simulated
from dpgram.inference.hypotheses import jointly, p_values
from dpgram.inference.intervals import BOOTSTRAP
from dpgram.regression.channel import channel
from dpgram.regression.design import design, is_indicator
from dpgram.report.columns import value_of_missing
from dpgram.report.summary import origin
from dpgram.terms.columns import DROP_ROW, INDICATOR, Boolean, Categorical, Column, Date, Numeric, bounds
from dpgram.terms.derived import DatePart, Derived, Interval, Power, Product
from dpgram.terms.schema import Schema


def page_data(release: GramRelease, bootstrapped: Sequence[str] = (), confidence: float = 0.95) -> dict[str, Any]:
    """The release as plain data. For the targets in ``bootstrapped``, intervals that a browser does not compute itself."""
    schema = release.schema
    return {
        "encoded": [
            {
                "name": e.name,
                "column": e.column,
                "centre": e.centre,
                "half": e.half,
                "sources": sorted(e.sources),
                "absent": e.absent,
                "indicator": is_indicator(schema, place),
            }
            for place, e in enumerate(schema.encoded)
        ],
        "declared": [_declared(column) for column in schema.columns],
        "derived": [_derived(derived, schema) for derived in schema.derived],
        "intercept": schema.intercept,
        "unit": schema.unit,
        **origin(release),
        "private": release.private,
        "condition": release.condition,
        "evidence": evidence_data(Evidence.of(release)),
        "bootstrap": [_bootstrap(release, target, confidence) for target in bootstrapped],
    }


def evidence_data(evidence: Evidence) -> dict[str, Any]:
    """What every number of the page starts from. Worked out here, so that the script knows no kinds of noise."""
    spectrum, unit = evidence.spectrum, np.eye(len(evidence.gram))
    by_noise = evidence.seen_by_noise(unit)
    return {
        "alone": _view(evidence.alone),
        "together": None if evidence.together is evidence.alone else _view(evidence.together),
        "tails": None if evidence.tails is None else {**_tails(evidence.tails), "clear": _clear(evidence)},
        "weighed": {"matrix": _lower_half(evidence.weighed.matrix), "turned": evidence.weighed.turn is not None},
        "repaired": _lower_half(evidence.whole),
        "byNoise": None if by_noise is unit else by_noise.T.tolist(),
        "counted": dict(zip(("rows", "rowsSd"), evidence.counted, strict=True)),
        "weighedRows": dict(zip(("rows", "rowsSd"), evidence.weighed_rows, strict=True)),
        "designEffect": evidence.design_effect,
        "countsPartly": evidence.schema.counts_partly,
        "countsAtLeast": evidence.counts_at_least,
        "neverShrunk": evidence.never_shrunk,
        "longRowsShrunk": evidence.row_bound < evidence.schema.largest_norm,
        "hidden": bool(evidence.hidden),
        "hidesSquares": evidence.hides_squares,
        "shrinking": evidence.shrinking,
        "spectrum": {
            "values": list(spectrum.values),
            "edge": spectrum.edge if math.isfinite(spectrum.edge) else None,
            "hidden": list(spectrum.hidden),
            "words": spectrum.words,
        },
    }


def _view(view: View) -> dict[str, Any]:
    matrix = _lower_half((view.matrix + view.matrix.T) / 2)
    turn = None if view.turn is None else view.turn.tolist()
    return {"matrix": matrix, "law": view.law.numbers, "turn": turn}


def _clear(evidence: Evidence) -> list[Any]:
    """What each outer matrix shows beyond doubt, in the coordinates of all rounds together; None where that is nothing."""
    return [_lower_half((each + each.T) / 2) if each.any() else None for each in evidence.clear]


def _tails(tails: Tails) -> dict[str, Any]:
    first, *outer = (_lower_half(matrix) for matrix in (tails.first, *tails.outer))
    numbers = {"sd": tails.sd, "size": tails.size, "shapeSd": tails.shape_sd, "dim": tails.dim}
    lists = {name: getattr(tails, name).tolist() for name in ("scales", "sizes", "usual", "reaches", "through")}
    return {"first": first, "outer": outer, **lists, **numbers}


def _lower_half(matrix: np.ndarray) -> list[list[float]]:
    """All there is of a symmetric matrix."""
    return [row[: k + 1].tolist() for k, row in enumerate(matrix)]


def _declared(column: Column) -> dict[str, Any]:
    """A declared column as the prediction form needs it: ``fill`` stands for a missing cell, unless such rows were dropped."""
    common: dict[str, Any] = {"name": column.name, "kind": column.kind, "drops": column.missing == DROP_ROW}
    common["made_up"] = value_of_missing(column)
    match column:
        case Numeric() | Date():
            lower, upper = bounds(column)
            return {
                **common,
                "lower": lower,
                "upper": upper,
                "fill": column.fill,
                "indicator": column.missing == INDICATOR,
            }
        case Categorical():
            own = len(column.levels) - 1 if column.missing == "level" else None
            return {**common, "levels": list(column.levels), "fill": 0, "missing_level": own, "numbers": column.matches_numbers}
        case Boolean():
            return {**common, "fill": int(column.fill)}


def _derived(derived: Derived, schema: Schema) -> dict[str, Any]:
    """A derived column with everything that follows from the declared ones worked out, so that a script need only compute."""
    made = schema.made[derived.name]
    columns = schema.by_name
    common: dict[str, Any] = {
        "name": derived.name,
        "kind": derived.kind,
        "lower": made.lower,
        "upper": made.upper,
        "fill": list(made.fill),
    }
    match derived:
        case Product():
            factors = [{"column": column.name, "levels": list(places) or None} for column, places in derived.factors(columns)]
            return {**common, "factors": factors}
        case Power():
            return {**common, "of": derived.of, "exponent": derived.exponent}
        case Interval():
            low, high = _finite(derived.ends(columns))
            return {**common, "of": derived.of, "from": low, "to": high}
        case DatePart():
            wanted = _finite(derived.wanted(columns)) if derived.levels else None
            return {**common, "of": derived.of, "part": derived.part, "wanted": wanted}
        case _:
            return {**common, "of": derived.of}  # type: ignore[attr-defined]


def _bootstrap(release: GramRelease, target: str, confidence: float) -> dict[str, Any]:
    """Bootstrap intervals of ``target`` on all columns that do not come from its own cells."""
    designed, evidence = design(release.schema, target, None, None), Evidence.of(release)
    seen, simulated = channel(evidence, designed), Simulated.of(evidence, designed)
    made, unit = simulated.intervals(seen, confidence), np.eye(len(designed.names))
    joint = [
        jointly(seen, np.zeros(len(places)), unit[list(places)], method=BOOTSTRAP, simulated=simulated)
        for _, places in designed.tested
    ]
    return {
        "target": designed.target,
        "names": list(designed.names),
        "confidence": confidence,
        "lower": _finite(made.lower.tolist()),
        "upper": _finite(made.upper.tolist()),
        "pValues": p_values(seen, np.zeros(len(unit)), method=BOOTSTRAP, simulated=simulated).tolist(),
        "jointPValues": [one.p_value for one in joint],
    }


def _finite(values: Iterable[float]) -> list[float | None]:
    """The values; None where one is infinite, which JSON does not know."""
    return [value if math.isfinite(value) else None for value in values]
