"""Options with which a mechanism is audited when none are asked for: where it needs one, and where its proof is sharpest."""

from __future__ import annotations

from dpgram.mechanisms.conversation import EXACT
from dpgram.terms.budget import Neighbours

Options = dict[str, float | str]

MANY = 1e6


def settings(mechanism: str, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
    """The settings, the most usual one first.

    With many degrees of freedom the ridge of an adaptive mechanism is large beside the doubt about the smallest eigenvalue, and the
    proof, which adds up the worst of both stages, comes close to the truth; with few, both branches of the second stage are taken.
    Few degrees of freedom of additive Wishart noise are where it may be too small to hide a row."""
    if mechanism == "noisy-inverse":
        return [{"rho": 3.0}]
    if mechanism == "whitened-noise" and neighbours is Neighbours.ADD_REMOVE:
        return [{"table_rows": 3000.0}]
    if mechanism == "inverse-wishart":
        return [{"degrees_of_freedom": dim + 18.0}]
    if calibration != EXACT:
        return [{}]
    if mechanism == "wishart-noise":
        return [{}, {"degrees_of_freedom": dim + 10.0}]
    if mechanism.endswith("-adaptive"):
        degrees = "sketch_rows" if mechanism == "gaussian-sketch-adaptive" else "degrees_of_freedom"
        found: list[Options] = [{}, {degrees: MANY}]
        if neighbours is Neighbours.REPLACE and dim >= 2:
            found.append({degrees: MANY, "first_stage": "gauss"})
        return found
    return [{}]


def in_words(options: Options) -> str:
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in options.items())
