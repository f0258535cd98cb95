"""What a release claims of its privacy follows from its parameters, and its noise is the noise that these speak of.

A file has no signature, so who changes all of it in agreement makes another release. Who changes one number is noticed here: the budget, a
parameter or the size of the noise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import NoReturn

import numpy as np

from dpgram.accounting.additive_wishart import additive_delta
from dpgram.accounting.gaussian import MARGIN, plain_gaussian_delta
from dpgram.accounting.laplace import truncated_laplace_delta
from dpgram.accounting.wishart import sampling_delta
from dpgram.artifact.release import GramRelease
from dpgram.linalg.special import ndtr
from dpgram.terms.budget import Neighbours
from dpgram.terms.noise import (
    InverseWishartSample,
    NoiseModel,
    NoisyInverse,
    SymmetricGaussian,
    WhitenedGaussian,
    WishartSample,
)

CLOSE = 1e-6  # relative: far above the rounding of any curve
SLACK = 2.0**-20  # of the first stage's certified eigenvalue, over B^2
GRID = 2.0**-20  # of the noise's sd; a release is rounded to less
FAR, FEW = 1e9, 10.0  # a draw exceeds its scale by so much with probability 1e-30 at most, unless degrees of freedom are few
ROUNDING = 1e-9  # of the eigenvalues of a matrix whose diagonal is one
CHANGED = "One of them was changed"
SEEDED = re.compile(r"\bseed\b|not private", re.IGNORECASE)
DELTA = "delta_at_epsilon"

Parameters = dict[str, float]


class ClaimError(ValueError):
    """Two things in a release contradict each other: the ``field``, and in words what is wrong with it."""

    def __init__(self, field: str, problem: str):
        self.field, self.problem = field, problem
        super().__init__(f"{field}: {problem}")


@dataclass(frozen=True)
class Claim:
    """What a mechanism's label says: the shape of its noise, the curve, and which numbers of the noise are parameters too."""

    shape: type[NoiseModel]
    curve: Callable[[GramRelease, Parameters], float]
    same: dict[str, str]  # fields of the noise, and the parameters that say the same
    check_gram: Callable[[GramRelease], None] | None = None  # where not every symmetric matrix can be published


def check_claims(release: GramRelease) -> None:
    """Raise ClaimError where the label says what does not follow from the release's own numbers."""
    if release.private and SEEDED.search(release.randomness):
        raise ClaimError(
            "private",
            "is true, but the noise came from a seed, as randomness says, so the release is not private. One of the two was changed",
        )
    claim = CLAIMS.get(release.mechanism)
    if claim is None:
        if any(isinstance(release.noise, known.shape) for known in CLAIMS.values()):
            names = ", ".join(CLAIMS)
            raise ClaimError(
                "mechanism.name", f"is {release.mechanism[:40]!r} and must be one of {names}. Update dpgram, if it is a new one"
            )
        return  # somebody's own, with a shape of noise that was declared elsewhere
    if not isinstance(release.noise, claim.shape):
        needed = claim.shape.shape
        raise ClaimError(
            "noise.shape", f"is {release.noise.shape!r}, but {release.mechanism} has noise of the shape {needed!r}. {CHANGED}"
        )
    parameters = _Told(release.parameters)
    for field, name in claim.same.items():
        _agree(f"noise.{field}", getattr(release.noise, field), name, parameters[name])
    if claim.check_gram is not None:
        claim.check_gram(release)
    _check_delta(release, claim.curve, parameters)


def _check_posterior(release: GramRelease) -> None:
    """A draw with few degrees of freedom can be of any size."""
    few = release.noise.degrees_of_freedom <= len(release.gram) + FEW
    _check_draw(release, any_size=few)


def _check_draw(release: GramRelease, *, any_size: bool = False) -> None:
    """A draw is not too large for its rows, and has no negative eigenvalue, up to the grid that it was rounded to, far below the noise."""
    if release.rows is not None and not any_size:
        rows = release.rows * max(1.0, release.schema.largest_weight or 1.0)
        if np.abs(release.gram).max() > FAR * (rows * release.row_bound**2 + release.noise.shift):
            raise ClaimError("gram", "contains a number that is too large for a sum over rows. The file was changed or damaged")
    lifted = release.gram + GRID * len(release.gram) * release.noise.sd_off_diagonal * np.eye(len(release.gram))
    lengths = np.sqrt(np.maximum(np.diag(lifted), 0.0))
    if not lengths.min() > 0 or np.linalg.eigvalsh(lifted / lengths / lengths[:, None])[0] < -ROUNDING:
        raise ClaimError(
            "gram", f"has a negative eigenvalue, but a draw of {release.mechanism} has none. The file was changed or damaged"
        )


def _check_delta(release: GramRelease, curve: Callable[[GramRelease, Parameters], float], parameters: Parameters) -> None:
    epsilon, delta, said = release.budget.epsilon, release.budget.delta, parameters[DELTA]
    try:
        with np.errstate(all="ignore"):
            true = curve(release, parameters)
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, ClaimError):
            raise
        raise ClaimError("mechanism.parameters", "are out of range: no delta follows from them. The file was changed") from None
    if not true <= delta * (1 + CLOSE):
        raise ClaimError(
            "budget", f"promises delta = {delta:g} at epsilon = {epsilon:g}, but the parameters give {true:.6g}. {CHANGED}"
        )
    if not math.isclose(true, said, rel_tol=CLOSE, abs_tol=1e-3 * CLOSE * delta):
        raise ClaimError(
            f"mechanism.parameters.{DELTA}",
            f"is {said:.6g}, but at epsilon = {epsilon:g} the other parameters give {true:.6g}. {CHANGED}",
        )


class _Told(dict[str, float]):
    """Parameters, of which one that is asked for must be there."""

    def __missing__(self, name: str) -> NoReturn:
        raise ClaimError(f"mechanism.parameters.{name}", "is missing, but the mechanism always has it. The file was changed")


def _agree(field: str, there: float, name: str, told: float) -> None:
    if not math.isclose(there, told, rel_tol=1e-9):
        raise ClaimError(field, f"is {there:.6g}, but the parameter {name} says {told:.6g}. {CHANGED}")


def _is(name: str, told: float, follows: float) -> None:
    if not math.isclose(told, follows, rel_tol=1e-9):
        raise ClaimError(f"mechanism.parameters.{name}", f"is {told:.6g}, but {follows:.6g} follows from the others. {CHANGED}")


def _check_sensitivity(release: GramRelease, told: Parameters, row_bound: float) -> None:
    """It is at least what one unit moves the Gram sum by, in Frobenius norm; older versions took more than a single column needs."""
    two = release.neighbours is Neighbours.REPLACE and len(release.columns) > 1
    least = row_bound**2 * (release.schema.rows_per_unit or 1) * (math.sqrt(2) if two else 1.0)
    if told["frobenius_sensitivity"] < least * (1 - 1e-9):
        problem = f"is {told['frobenius_sensitivity']:.6g}, but one unit can move the sum by {least:.6g}. {CHANGED}"
        raise ClaimError("mechanism.parameters.frobenius_sensitivity", problem)


def _shift(told: Parameters, sensitivity: float) -> float:
    return sensitivity / min(math.sqrt(2) * told["sd_off_diagonal"], told["sd_diagonal"])


def curve_of_mu(release: GramRelease, told: Parameters) -> float:
    if not told["mu"] > 0:
        raise ClaimError("mechanism.parameters.mu", f"is {told['mu']:g} and must be positive")
    return plain_gaussian_delta(release.budget.epsilon, told["mu"])


def _gaussian_noise(release: GramRelease, told: Parameters) -> float:
    _check_sensitivity(release, told, release.row_bound)
    return _noisy_inverse(release, told)


def _noisy_inverse(release: GramRelease, told: Parameters) -> float:
    _is("mu", told["mu"], _shift(told, told["frobenius_sensitivity"]))
    return curve_of_mu(release, told)


def _whitened_noise(release: GramRelease, told: Parameters) -> float:
    """Every round is there once, with its share of mu."""
    _check_sensitivity(release, told, row_bound=1.0)  # the clip of every round is in its map
    rounds, looks, told_rounds = release.noise.rounds, told.get("looks_mu", 0.0), told["rounds"]
    places = range(1, min(int(told_rounds), MOST_ROUNDS) + 1)
    extra = f"round_{len(places) + 1}_mu"
    if extra in told or told_rounds != len(places):
        raise ClaimError(
            "mechanism.parameters.rounds", f"is {told_rounds:g}, which is not the number of rounds that the parameters tell of"
        )
    _is("mu", told["mu"], math.hypot(looks, *(told[f"round_{place}_mu"] for place in places)))
    for place in places:
        sensitivity = math.sqrt(2) * told[f"round_{place}_mu"] * told[f"round_{place}_sd_off_diagonal"]
        _is("frobenius_sensitivity", told["frobenius_sensitivity"], sensitivity)
    for k, one in enumerate(reversed(rounds)):  # of many columns the last alone is there
        name = f"round_{len(places) - k}_sd_off_diagonal"
        _agree(f"noise.rounds[{len(rounds) - 1 - k}].sd_off_diagonal", one.sd_off_diagonal, name, told[name])
    for (k, early), (j, late) in combinations(enumerate(rounds), 2):
        if np.array_equal(early.gram, late.gram):
            problem = f"is that of round {k + 1} again, but each round draws noise of its own. The file was changed"
            raise ClaimError(f"noise.rounds[{j}].gram", problem)
    return curve_of_mu(release, told)


def _one_draw(degrees: str, ridge: str) -> Callable[[GramRelease, Parameters], float]:
    def curve(release: GramRelease, told: Parameters) -> float:
        _is(ridge, told[ridge], told["floor"] * release.row_bound**2)
        _agree("noise.floor", release.noise.floor, ridge, told[ridge])  # type: ignore[attr-defined]
        return sampling_delta(release.budget.epsilon, told[degrees], told["floor"], release.neighbours, len(release.columns))

    return curve


def _added_draw(release: GramRelease, told: Parameters) -> float:
    scale, k = told["scale"], told["degrees_of_freedom"]
    _is("sd_off_diagonal", told["sd_off_diagonal"], scale * math.sqrt(k))
    return additive_delta(
        release.budget.epsilon, int(k), len(release.columns), release.row_bound**2 / scale, release.neighbours
    )


def _two_stages(release: GramRelease, told: Parameters) -> float:
    """As ``mechanisms.first_stage`` adds up its stages."""
    budget, bound, dim = release.budget, release.row_bound**2, len(release.columns)
    scale, offset, r0 = told["first_stage_scale"], told["first_stage_offset"], told["base_degrees_of_freedom"]
    floor = told["base_w_squared"] / bound
    _agree("noise.floor", release.noise.floor, "first_stage_value", max(told["base_w_squared"], told["first_stage_value"]))  # type: ignore[attr-defined]
    sensitivity = bound * (1 + SLACK)
    if "first_stage_mu" in told:
        _is("first_stage_scale", scale, sensitivity / told["first_stage_mu"])
        mu = math.hypot(told["first_stage_mu"], told["second_stage_mu"])
        rest = 0.1 * budget.delta * (1 - MARGIN) + plain_gaussian_delta(budget.epsilon, mu)
        return told["first_stage_delta"] + rest / float(ndtr(offset / scale))
    first = told["first_stage_epsilon"]
    second = budget.epsilon - first
    if not (first > 0 and second > 0):
        raise ClaimError(
            "mechanism.parameters.first_stage_epsilon", f"is {first:g} and must be below the budget's, {budget.epsilon:g}"
        )
    if release.calibration != "exact":
        _is("first_stage_epsilon", first, budget.epsilon / 2)
        _is("first_stage_scale", scale, 2 * bound / budget.epsilon)
        _is("first_stage_delta", told["first_stage_delta"], budget.delta / 4)
        drawn = sampling_delta(second * (1 - SLACK), r0, floor - 1 - SLACK, release.neighbours, dim)
        return told["first_stage_delta"] + drawn
    _is("first_stage_scale", scale, sensitivity / first)
    spent = truncated_laplace_delta(first, max(scale, sensitivity / first), offset, sensitivity)
    return spent + sampling_delta(second, r0, floor, release.neighbours, dim)


MOST_ROUNDS = 100  # far more than any release has
SKETCH, POSTERIOR = (
    {"degrees_of_freedom": "sketch_rows", "shift": "w_squared"},
    {"degrees_of_freedom": "degrees_of_freedom", "shift": "psi"},
)
SDS = ("sd_off_diagonal", "sd_diagonal")
CLAIMS = {
    "gaussian-noise": Claim(SymmetricGaussian, _gaussian_noise, {name: name for name in SDS}),
    "gaussian-sketch": Claim(WishartSample, _one_draw("sketch_rows", "w_squared"), SKETCH, _check_draw),
    "gaussian-sketch-adaptive": Claim(WishartSample, _two_stages, SKETCH, _check_draw),
    "wishart-noise": Claim(SymmetricGaussian, _added_draw, {"sd_off_diagonal": "sd_off_diagonal"}),
    "inverse-wishart": Claim(InverseWishartSample, _one_draw("degrees_of_freedom", "psi"), POSTERIOR, _check_posterior),
    "inverse-wishart-adaptive": Claim(InverseWishartSample, _two_stages, POSTERIOR, _check_posterior),
    "noisy-inverse": Claim(
        NoisyInverse, _noisy_inverse, {**{f"{name}_of_inverse": name for name in SDS}, "floor": "claimed_floor"}
    ),
    "whitened-noise": Claim(WhitenedGaussian, _whitened_noise, {}),
}
"""Every mechanism by name."""
