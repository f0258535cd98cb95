"""Mistakes that are planted into the package itself, as an editor's slip would: which audit must find them, and how they are made.

Each entry patches functions where they are used. ``MISTAKES`` maps a description to (mechanism, relation, options, patches)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb

from dpgram.accounting import additive_wishart, gaussian, wishart
from dpgram.audits.neighbours import Rows
from dpgram.linalg.norms import expected_norm
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.mechanisms import (
    first_stage,
    gaussian_noise,
    gaussian_sketch,
    inverse_wishart,
    noisy_inverse,
    whitened_noise,
    wishart_noise,
)
from dpgram.sampling import exact, symmetric, variates
from dpgram.sampling.base import EXACT, FLOAT
from dpgram.sampling.certified import middles
from dpgram.sampling.enclosed import normal_pairs
from dpgram.sampling.reals import box_muller
from dpgram.sampling.variates import bartlett_factor, normal_matrix, square_root
from dpgram.terms.budget import Budget, Neighbours

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
Patch = tuple[Any, str, Callable]


def times(factor: float, where: Any, name: str) -> Patch:
    """The function ``name``, its result multiplied."""
    right = getattr(where, name)
    return where, name, lambda *given, **named: factor * right(*given, **named)


def argument(where: Any, name: str, place: int, change: Callable) -> Patch:
    """The function ``name``, one of its arguments changed."""
    right = getattr(where, name)

    def wrong(*given, **named):
        return right(*given[:place], change(given[place]), *given[place + 1 :], **named)

    return where, name, wrong


def noise(make: Callable) -> Patch:
    """gaussian-noise whose normal numbers, one square of them for each release, are changed in float64."""

    def wrong(matrix, off, on, rng):
        draw = normal_matrix(matrix.shape, rng)
        if rng.arithmetic == FLOAT:
            draw = make(draw)
        upper = np.triu(np.ones(matrix.shape), 1) * draw
        return matrix + (off * (upper + upper.mT) + on * (np.eye(len(matrix)) * draw))

    return gaussian_noise, "add_symmetric_noise", wrong


def only_two_columns(draw):
    draw = draw.copy()
    draw[..., 2:] = 0.0
    return draw


def one_for_all(draw):
    return draw[..., :1, :1] + 0 * draw


def averaged(matrix, off, on, rng):
    draw = off * normal_matrix(matrix.shape, rng)
    return matrix + (draw + draw.mT) * 0.5 + (on - off) * (np.eye(len(matrix)) * draw)


_KEPT: dict[Any, Any] = {}


def remembered(matrix, off, on, rng):
    """Noise is kept by its shape, and drawn once."""
    key = (rng.arithmetic, rng.copies, matrix.shape)
    if key not in _KEPT:
        _KEPT[key] = normal_matrix(matrix.shape, rng)
    upper = np.triu(np.ones(matrix.shape), 1) * _KEPT[key]
    return matrix + (off * (upper + upper.mT) + on * (np.eye(len(matrix)) * _KEPT[key]))


def scale_of_the_data(matrix, off, on, rng):
    """The sensitivity is read from the largest entry that is there."""
    size = float(np.abs(matrix).max()) if isinstance(matrix, np.ndarray) else 2.25
    return RIGHT_NOISE(matrix, off * size / 2.25, on * size / 2.25, rng)


RIGHT_NOISE = gaussian_noise.add_symmetric_noise


def without_cache_key(where: Any, name: str, key: Callable) -> Patch:
    """A calibration whose cache forgets an argument."""
    right, kept = getattr(where, name), {}

    def wrong(*given, **named):
        found = key(*given)
        if found not in kept:
            kept[found] = right(*given, **named)
        return kept[found]

    return where, name, wrong


def degrees_one_off(dim, degrees, rng):
    return variates_chi_diagonal(dim, degrees - 1, rng)


variates_chi_diagonal = variates.chi_diagonal


def chi_not_rooted(dim, degrees, rng):
    root = variates_chi_diagonal(dim, degrees, rng)
    return root if rng.arithmetic == EXACT else root**2


def all_the_same_degrees(dim, degrees, rng):
    if rng.arithmetic == EXACT:
        return variates_chi_diagonal(dim, degrees, rng)
    each = np.broadcast_to(np.asarray(degrees)[..., None] + 0.0 * np.arange(dim), (*rng.copies, dim))
    return np.sqrt(variates.chi_square(each, rng))[..., None] * np.eye(dim)


def nothing_below_the_diagonal(dim, degrees, rng):
    return variates_chi_diagonal(dim, degrees, rng)


RIGHT_SKETCH, RIGHT_POSTERIOR = gaussian_sketch.draw_sketch, inverse_wishart.draw_posterior


def sketch_without_ridge_on_one_column(gram, ridge, r, rng):
    if rng.arithmetic == EXACT:
        return RIGHT_SKETCH(gram, ridge, r, rng)
    eye = np.eye(len(gram))
    eye[-1, -1] = 0.5
    root = square_root(gram + ridge * eye, 0.0) @ bartlett_factor(len(gram), r, rng)
    return root @ root.mT / r


def posterior_from_the_wrong_side(gram, psi, nu, rng):
    """T^-1 where T^-T is needed: V is then not the inverse-Wishart draw."""
    factor = bartlett_factor(len(gram), nu, rng)
    if rng.arithmetic == EXACT:
        return RIGHT_POSTERIOR(gram, psi, nu, rng)
    root = square_root(gram, psi) @ np.linalg.inv(factor)
    return root @ root.mT


def not_truncated(scale, upper, rng):
    return variates.laplace(scale, rng)


def cut_to_an_atom(scale, upper, rng):
    drawn = variates.laplace(scale, rng)
    return drawn if rng.arithmetic == EXACT else np.minimum(drawn, upper)


RIGHT_STAGE = first_stage.release_smallest_eigenvalue


def lifted(by):
    def wrong(gram, stages, rng):
        return (
            np.maximum(0.0, RIGHT_STAGE(gram, stages, rng) + by(stages))
            if rng.arithmetic == FLOAT
            else RIGHT_STAGE(gram, stages, rng)
        )

    return wrong


def rounded_up(gram, stages, rng):
    return np.ceil(RIGHT_STAGE(gram, stages, rng))


RIGHT_SECOND, RIGHT_LAPLACE = first_stage.second_stage, first_stage._laplace


def more_degrees(task, stages, s):
    ridge, r = RIGHT_SECOND(task, stages, s)
    return ridge, np.where(np.asarray(ridge) == 0.0, 2 * r, r) if np.ndim(s) else (2 * r if ridge == 0.0 else r)


def ridge_too_small(task, stages, s):
    ridge, r = RIGHT_SECOND(task, stages, s)
    return 0.8 * ridge, r


def whole_delta_twice(task, r0):
    budget = Budget(task.budget.epsilon, min(0.5, 2 * task.budget.delta))
    return RIGHT_LAPLACE(replace(task, budget=budget), r0)


def looks_at_the_true_gram(task, rng):
    """Whether the mean of the noise is taken off is decided by the Gram itself."""
    conversation = RIGHT_START(task, rng)
    question = next(conversation)
    answer = yield question
    try:
        conversation.send(answer)
    except StopIteration as end:
        outcome = end.value
    if rng.arithmetic == EXACT:
        return outcome
    found, removed = outcome.parameters, np.asarray(outcome.parameters["shift_removed"])
    whole = found["scale"] * found["degrees_of_freedom"] if np.linalg.eigvalsh(answer.gram)[0] > 0 else 0.0
    gram = outcome.gram + ((removed - whole)[..., None, None] if removed.ndim else float(removed) - whole) * np.eye(task.dim)
    return replace(outcome, gram=gram, parameters={**found, "shift_removed": whole + 0 * removed if removed.ndim else whole})


RIGHT_START = wishart_noise.MECHANISM.start


def repairs_by_the_true_gram(task, rng):
    """Whether the matrix is shifted is decided by the Gram itself."""
    conversation = gaussian_noise.MECHANISM.start(replace(task, options={}), rng)
    answer = yield next(conversation)
    try:
        conversation.send(answer)
    except StopIteration as end:
        outcome = end.value
    gram = answer.gram if isinstance(answer.gram, np.ndarray) else middles(answer.gram)
    if smallest_eigenvalue(gram) > 0:
        return outcome
    off, on = outcome.noise.sd_off_diagonal, outcome.noise.sd_diagonal
    lift = expected_norm(task.dim, off, on)
    return replace(outcome, gram=outcome.gram + lift * np.eye(task.dim), noise=replace(outcome.noise, shift=lift), grid=None)


def degrees_without_quantile(task, stages, s):
    """The second stage counts on the mean of a chi-square, where it needs a quantile."""
    if stages.kind != "gauss":
        return RIGHT_DEGREES(task, stages, s)
    floor = s / task.row_bound**2
    return max(stages.base_degrees, math.floor(stages.mixture[0] ** 2 * floor * (floor + 1)))


RIGHT_DEGREES = first_stage.allowed_degrees


def one_angle(first, second):
    """Both numbers of a pair from one angle's cosine."""
    even, _, error = normal_pairs(first, second)
    return even, even, error


def one_angle_in_balls(*of):
    even, _ = box_muller(*of)
    return even, even


def exact_laplace_of_a_quarter_of_the_scale(self, scale, upper):
    return RIGHT_EXACT_LAPLACE(self, scale / 4, upper)


RIGHT_EXACT_LAPLACE = exact.ExactSource.truncated_laplace


def exact_chi_without_two(self, degrees):
    found = RIGHT_EXACT_CHI(self, degrees)
    return exact.Real(lambda bits: found.at(bits) * arb(0.7))


RIGHT_EXACT_CHI = exact.ExactSource.chi_square


def grid_of_the_data(self, matrix, step):
    size = 1.0 if float(matrix.at(64)[0, 0]) > 0 else 2.0
    return RIGHT_PUBLISH(self, matrix, step * size)


RIGHT_PUBLISH = exact.ExactSource.publish


def sampling_for_one_row(epsilon, r, floor, neighbours, dim, *, mu=0.0):
    """The curve of ADD_REMOVE for both relations."""
    return RIGHT_SAMPLING(epsilon, r, floor, ADD_REMOVE, dim) if floor > 0 else 1.0


RIGHT_SAMPLING = wishart.sampling_delta


def largest_of_corners(epsilon, k, dim, b, neighbours):
    return RIGHT_ADDITIVE(epsilon, k, dim, b, ADD_REMOVE)


RIGHT_ADDITIVE = additive_wishart.additive_delta


def inverse_moves_less(row_bound, rho, neighbours, rows_per_unit, dim):
    return 1 / (row_bound**2 * (1 + rho) * (2 + rho))


def everywhere(name: str, function: Callable, *modules: Any) -> list[Patch]:
    return [(module, name, function) for module in modules]


def once_for_all_rounds(matrix, off, on, rng):
    """Noise is drawn for the first round of a release, and scaled for the others."""
    source, draw = _KEPT.get("round", (None, None))
    if source is not rng:  # kept itself, because a source that is gone may leave its id to the next
        draw = normal_matrix(matrix.shape[-2:], rng)
        _KEPT["round"] = (rng, draw)
    upper = np.triu(np.ones(matrix.shape[-2:]), 1) * draw
    return matrix + (off * (upper + upper.mT) + on * (np.eye(matrix.shape[-1]) * draw))


def whole_budget_for_each(mu, shares, *given):
    return RIGHT_ROUND_SDS(mu, tuple(1.0 for _ in shares), *given)


RIGHT_ROUND_SDS = whitened_noise.round_sds


def count_that_is_told(self, question, task):
    """The number of rows reaches the mechanism where it is protected."""
    return replace(RIGHT_ANSWER(self, question, task), rows=int(self.counts.sum()))


RIGHT_ANSWER = Rows.answer

GAUSS = {"first_stage": "gauss", "sketch_rows": 100.0}
RIDGE = {"sketch_rows": 10_000.0}  # so large a ridge that it always stays: quick
IW = {"degrees_of_freedom": 20.0}
ROUNDS = {"table_rows": 2000.0}

MISTAKES: dict[str, tuple[str, Neighbours, dict, list[Patch]]] = {
    "B for B^2 in the sensitivity": (
        "gaussian-noise",
        REPLACE,
        {},
        [(gaussian_noise, "gram_sensitivity", lambda b, n, m, d: math.sqrt(2) * b)],
    ),
    "half of the sensitivity": ("gaussian-noise", ADD_REMOVE, {}, [times(0.5, gaussian_noise, "gram_sensitivity")]),
    "five per cent less noise": ("gaussian-noise", REPLACE, {}, [times(1.05, gaussian_noise, "calibrate_mu")]),
    "a variance for a standard deviation": (
        "gaussian-noise",
        REPLACE,
        {},
        [argument(gaussian_noise, "add_symmetric_noise", 1, math.sqrt)],
    ),
    "half of the curve": (
        "gaussian-noise",
        REPLACE,
        {},
        [times(0.5, gaussian, "gaussian_delta"), times(0.5, gaussian_noise, "gaussian_delta")],
    ),
    "a cache without delta": (
        "gaussian-noise",
        REPLACE,
        {},
        [without_cache_key(gaussian_noise, "calibrate_mu", lambda budget: budget.epsilon)],
    ),
    "a cache without the row bound": (
        "gaussian-noise",
        REPLACE,
        {},
        [without_cache_key(gaussian_noise, "gram_sensitivity", lambda b, n, m, d: n)],
    ),
    "a cache without the relation": (
        "gaussian-noise",
        ADD_REMOVE,
        {},
        [without_cache_key(gaussian_noise, "gram_sensitivity", lambda b, n, m, d: b)],
    ),
    "averaged with its transpose": ("gaussian-noise", REPLACE, {}, [(gaussian_noise, "add_symmetric_noise", averaged)]),
    "tails cut at three": ("gaussian-noise", REPLACE, {}, [noise(lambda draw: np.clip(draw, -3, 3))]),
    "tails cut at four": ("gaussian-noise", REPLACE, {}, [noise(lambda draw: np.clip(draw, -4, 4))]),
    "single precision": ("gaussian-noise", REPLACE, {}, [noise(lambda draw: draw.astype(np.float32).astype(float))]),
    "a bias of the sign": ("gaussian-noise", REPLACE, {}, [noise(lambda draw: np.where(draw > 2, -draw, draw))]),
    "one number for all entries": ("gaussian-noise", REPLACE, {}, [noise(one_for_all)]),
    "the third column without noise": ("gaussian-noise", REPLACE, {}, [noise(only_two_columns)]),
    "noise that is kept": ("gaussian-noise", REPLACE, {}, [(gaussian_noise, "add_symmetric_noise", remembered)]),
    "a sensitivity from the data": (
        "gaussian-noise",
        REPLACE,
        {},
        [(gaussian_noise, "add_symmetric_noise", scale_of_the_data)],
    ),
    "a repair decided on the true Gram": (
        "gaussian-noise",
        REPLACE,
        {"repair": "shift"},
        [(gaussian_noise.MECHANISM, "start", repairs_by_the_true_gram)],
    ),
    "degrees of freedom without the quantile": (
        "gaussian-sketch-adaptive",
        REPLACE,
        {"first_stage": "gauss"},
        [(first_stage, "allowed_degrees", degrees_without_quantile)],
    ),
    "another law of the same variance": ("gaussian-noise", REPLACE, {}, [noise(lambda draw: np.sign(draw))]),
    "no two in the chi-square": ("gaussian-sketch", REPLACE, {}, [times(0.5, variates, "chi_square")]),
    "one degree of freedom less": ("gaussian-sketch", REPLACE, {}, [(variates, "chi_diagonal", degrees_one_off)]),
    "the same degrees in all columns": (
        "wishart-noise",
        REPLACE,
        {"degrees_of_freedom": 12.0},
        [(variates, "chi_diagonal", all_the_same_degrees)],
    ),
    "a chi-square for its root": ("inverse-wishart", REPLACE, IW, [(variates, "chi_diagonal", chi_not_rooted)]),
    "nothing below the diagonal": (
        "wishart-noise",
        ADD_REMOVE,
        {},
        everywhere("bartlett_factor", nothing_below_the_diagonal, wishart_noise),
    ),
    "half of the ridge in one column": (
        "gaussian-sketch",
        REPLACE,
        {},
        [(gaussian_sketch, "draw_sketch", sketch_without_ridge_on_one_column)],
    ),
    "the curve of adding for replacing": (
        "gaussian-sketch",
        REPLACE,
        {},
        everywhere("sampling_delta", sampling_for_one_row, wishart, gaussian_sketch),
    ),
    "a posterior from the wrong side": (
        "inverse-wishart",
        REPLACE,
        IW,
        [(inverse_wishart, "draw_posterior", posterior_from_the_wrong_side)],
    ),
    "the root of psi": ("inverse-wishart", ADD_REMOVE, IW, [argument(inverse_wishart, "draw_posterior", 1, math.sqrt)]),
    "one corner of three": (
        "wishart-noise",
        REPLACE,
        {},
        everywhere("additive_delta", largest_of_corners, additive_wishart, wishart_noise),
    ),
    "the mean is taken off by the true Gram": (
        "wishart-noise",
        REPLACE,
        {},
        [(wishart_noise.MECHANISM, "start", looks_at_the_true_gram)],
    ),
    "the inverse moves less": (
        "noisy-inverse",
        REPLACE,
        {"rho": 3.0},
        [(noisy_inverse, "inverse_sensitivity", inverse_moves_less)],
    ),
    "a Laplace number that is not cut": (
        "gaussian-sketch-adaptive",
        REPLACE,
        RIDGE,
        [(first_stage, "truncated_laplace", not_truncated)],
    ),
    "a Laplace number cut to an atom": (
        "gaussian-sketch-adaptive",
        REPLACE,
        RIDGE,
        [(first_stage, "truncated_laplace", cut_to_an_atom)],
    ),
    "the offset added": (
        "gaussian-sketch-adaptive",
        REPLACE,
        RIDGE,
        [(first_stage, "release_smallest_eigenvalue", lifted(lambda s: 2 * s.offset))],
    ),
    "the eigenvalue rounded up": (
        "inverse-wishart-adaptive",
        ADD_REMOVE,
        {},
        [(first_stage, "release_smallest_eigenvalue", rounded_up)],
    ),
    "twice the degrees without a ridge": (
        "gaussian-sketch-adaptive",
        REPLACE,
        {},
        [(first_stage, "second_stage", more_degrees)],
    ),
    "a ridge too small after the first stage": (
        "inverse-wishart-adaptive",
        REPLACE,
        {},
        [(first_stage, "second_stage", ridge_too_small)],
    ),
    "delta spent twice": ("gaussian-sketch-adaptive", REPLACE, {}, [(first_stage, "_laplace", whole_delta_twice)]),
    "half of the eigenvalue's sensitivity": (
        "gaussian-sketch-adaptive",
        ADD_REMOVE,
        {},
        [times(0.5, first_stage, "eigenvalue_sensitivity")],
    ),
    "a normal first stage of half the sd": (
        "gaussian-sketch-adaptive",
        REPLACE,
        GAUSS,
        [argument(first_stage, "truncated_normal", 0, lambda sd: sd / 2)],
    ),
    "exact: one angle for two numbers": (
        "gaussian-noise",
        REPLACE,
        {},
        [(symmetric, "normal_pairs", one_angle), (symmetric, "box_muller", one_angle_in_balls)],
    ),
    "exact: a quarter of the Laplace scale": (
        "gaussian-sketch-adaptive",
        REPLACE,
        RIDGE,
        [(exact.ExactSource, "truncated_laplace", exact_laplace_of_a_quarter_of_the_scale)],
    ),
    "exact: smaller chi-squares": ("gaussian-sketch", REPLACE, {}, [(exact.ExactSource, "chi_square", exact_chi_without_two)]),
    "exact: a grid of the data": ("gaussian-noise", REPLACE, {}, [(exact.ExactSource, "publish", grid_of_the_data)]),
    "rounds: half of the sensitivity": (
        "whitened-noise",
        ADD_REMOVE,
        ROUNDS,
        [times(0.5, whitened_noise, "gram_sensitivity")],
    ),
    "rounds: noise for adding where a row is replaced": (
        "whitened-noise",
        REPLACE,
        ROUNDS,
        [(whitened_noise, "gram_sensitivity", lambda bound, neighbours, rows_per_unit: bound**2)],
    ),
    "rounds: the same noise in all of them": (
        "whitened-noise",
        REPLACE,
        ROUNDS,
        [(whitened_noise, "add_symmetric_noise", once_for_all_rounds)],
    ),
    "rounds: the diagonal's sd everywhere but there": (
        "whitened-noise",
        ADD_REMOVE,
        ROUNDS,
        [(whitened_noise, "add_symmetric_noise", lambda matrix, off, on, rng: RIGHT_NOISE(matrix, on, off, rng))],
    ),
    "rounds: every round has the whole budget": (
        "whitened-noise",
        REPLACE,
        ROUNDS,
        [(whitened_noise, "round_sds", whole_budget_for_each)],
    ),
    "rounds: as many as the rows that are there": (
        "whitened-noise",
        ADD_REMOVE,
        ROUNDS,
        [(Rows, "answer", count_that_is_told)],
    ),
    "exact: a coarser grid of rounds": (
        "whitened-noise",
        REPLACE,
        ROUNDS,
        [(exact.ExactSource, "publish", lambda self, matrix, step: RIGHT_PUBLISH(self, matrix, 4 * step))],
    ),
}
