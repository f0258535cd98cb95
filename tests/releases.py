"""Releases with any noise wanted, whatever it would have cost: what tests of estimators and inference start from."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np

import dpgram
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.wishart import sampling_delta, spread
from dpgram.engines.encoded import encoded_rows
from dpgram.engines.local import LocalPass
from dpgram.evidence.evidence import Evidence
from dpgram.linalg.norms import expected_norm
from dpgram.linalg.rounds import in_own_columns, unmapped
from dpgram.linalg.symmetric import log_det_repair
from dpgram.sampling.seeded import SeededSource
from dpgram.sources.open import open_source
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, Round, SymmetricGaussian, WhitenedGaussian, WishartSample
from dpgram.terms.scales import ONE_CLIP, SWITCH

ROOT = math.sqrt(2)
NOISES = {  # of a size that a table of a few thousand rows stands well above
    "gaussian": SymmetricGaussian.orthogonal(8.0),
    "shifted": SymmetricGaussian.orthogonal(8.0, shift=50.0),
    "wishart": WishartSample(300.0, 60.0, 60.0),
    "inverse-wishart": InverseWishartSample(300.0, 60.0, 60.0, multiple=293.0),
    "noisy-inverse": NoisyInverse(1e-5, 1e-5 * ROOT, 1.0),
}
SILENT = {  # of no size at all
    "gaussian": SymmetricGaussian.orthogonal(1e-7),
    "nil": SymmetricGaussian(0.0, 0.0),
    "shifted": SymmetricGaussian.orthogonal(1e-7, shift=50.0),
    "wishart": WishartSample(1e16, 60.0, 60.0),
    "inverse-wishart": InverseWishartSample(1e16, 60.0, 60.0, multiple=1e16),
    "noisy-inverse": NoisyInverse(1e-13, 1e-13 * ROOT, 1.0),
}


@cache
def plain_schema(count):
    return dpgram.Schema(unit="p", columns=[dpgram.Numeric(f"x{j}", -1, 1) for j in range(count)], intercept=False)


def pass_through(noise, gram, rng):
    """The matrix that would be published of ``gram`` with this noise: of rounds, the last one's in own columns."""
    evidence = Evidence.made(plain_schema(len(gram)), gram, noise, rows=1000)
    if not noise.rounds:
        return evidence.published_again(gram, rng)
    last, (_, turn) = noise.last, evidence.repaired_there
    there = np.linalg.solve(turn.T, np.linalg.solve(turn.T, gram).T)
    return unmapped(evidence.published_again(there, rng) / last.kept, last.through)


def true_gram(table, schema):
    return LocalPass(open_source(table), schema).gram(schema.effective_row_bound).in_scaled_units()


def seen_through(noise, table, schema, seed=0, **changes):
    """A release of ``table`` with this noise."""
    return with_gram(noise, pass_through(noise, true_gram(table, schema), SeededSource(seed)), table, schema, **changes)


def with_gram(noise, gram, table, schema, **changes):
    made = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    return dataclasses.replace(made, gram=gram, noise=noise, **changes)


def labelled(release):
    """The release with a label that fits its noise: a mechanism of this shape, and parameters and a budget that follow from its size."""
    noise, bound, dim = release.noise, release.row_bound**2, len(release.columns)
    two = release.neighbours is dpgram.Neighbours.REPLACE
    one = (ROOT if two and (dim > 1 or isinstance(noise, WhitenedGaussian)) else 1.0) * (release.schema.rows_per_unit or 1)
    match noise:
        case SymmetricGaussian():
            if noise.shift:  # what a repair adds
                lift = expected_norm(dim, noise.sd_off_diagonal, ROOT * noise.sd_off_diagonal)
                noise = SymmetricGaussian.orthogonal(noise.sd_off_diagonal, shift=lift)
            name, off, on = "gaussian-noise", noise.sd_off_diagonal, noise.sd_diagonal
            told = {"sd_off_diagonal": off, "sd_diagonal": on, "frobenius_sensitivity": one * bound}
            told["mu"] = one * bound / min(ROOT * off, on)
        case NoisyInverse():
            name, off, on = "noisy-inverse", noise.sd_off_diagonal_of_inverse, noise.sd_diagonal_of_inverse
            told = {"sd_off_diagonal": off, "sd_diagonal": on, "claimed_floor": noise.floor, "mu": 0.2}
            told["rho"] = noise.floor / bound - 1
            told["frobenius_sensitivity"] = 0.2 * min(ROOT * off, on)
        case WhitenedGaussian():
            name, mus = "whitened-noise", [one / ROOT / each.sd_off_diagonal for each in noise.rounds]
            told = {"mu": math.hypot(*mus), "frobenius_sensitivity": one, "rounds": float(len(mus))}
            for place, (mu, each) in enumerate(zip(mus, noise.rounds, strict=True), 1):
                told |= {f"round_{place}_mu": mu, f"round_{place}_sd_off_diagonal": each.sd_off_diagonal}
        case WishartSample() | InverseWishartSample():
            drawn = isinstance(noise, WishartSample)
            if not drawn:  # what makes it unbiased
                noise = dataclasses.replace(noise, multiple=noise.degrees_of_freedom - dim - 1)
            name, degrees, ridge = (
                ("gaussian-sketch", "sketch_rows", "w_squared") if drawn else ("inverse-wishart", "degrees_of_freedom", "psi")
            )
            told = {degrees: noise.degrees_of_freedom, ridge: noise.shift, "floor": noise.shift / bound}
    if "mu" in told:
        epsilon = max(told["mu"] ** 2 / 2 + 6 * told["mu"], 1e-5)
        delta = gaussian_delta(epsilon, told["mu"])
    else:
        mu = math.sqrt(noise.degrees_of_freedom * spread(told["floor"]))
        epsilon = 2 * mu**2 + 10 * mu + 1.0
        delta = sampling_delta(epsilon, noise.degrees_of_freedom, told["floor"], release.neighbours, dim)
    told["delta_at_epsilon"] = delta
    budget = dpgram.Budget(epsilon, max(1.1 * delta, 1e-9))
    return dataclasses.replace(release, mechanism=name, parameters=told, budget=budget, noise=noise)


def matrix_release(gram, noise, *, intercept=True, rows=1000, **changes):
    """A release of columns x0, x1, ... and y, all in scaled units, with this matrix. Every row counts as one."""
    count = len(gram) - int(intercept) - 1
    names = [*(f"x{j}" for j in range(count)), "y"]
    columns = [dpgram.Numeric(name, -1, 1, missing="midpoint") for name in names]
    schema = dpgram.Schema(unit="p", columns=columns, intercept=intercept, **changes)
    table = dict.fromkeys(names, np.zeros(10))
    return with_gram(noise, np.asarray(gram, dtype=float), table, schema, rows=rows)


def shared(z, scales):
    """What each of ``scales`` gets of rows ``z`` (n, d): long ones are shared between the first and the one that holds their square.

    A plain version of ``rows.clip``, in NumPy."""
    squares, steps = np.sum(z**2, axis=1), SWITCH * np.array(scales[1:])
    lengths = np.minimum(squares, steps[-1])
    place = 1 + np.searchsorted(steps, lengths)
    scale = np.array(scales)[place]
    angle = np.arcsin(lengths / np.hypot(1.0, scale)) - np.arctan(1 / scale)  # cos angle + scale sin angle = length
    long = squares > 1.0
    weights = [np.where(long, np.cos(angle), squares)]
    weights += [np.where(long & (place == k), np.sin(angle), 0.0) for k in range(1, len(scales))]
    return [z * np.sqrt(weight / squares)[:, None] for weight in weights]


def in_rounds(rows, seed=0, *, mus=(0.3, 0.3, 1.0), room=2.0, first=0.4, scales=ONE_CLIP):
    """(released matrix, noise) of ``rows`` (n, d) in whitened rounds, at these costs; ``room`` times a row's mean square is not shrunk.

    The last round is published at all ``scales``. A plain version of the mechanism, in NumPy: each round's map is the inverse root of what
    the one before it released."""
    n, dim = rows.shape
    rng, found = np.random.default_rng(seed), []
    through = np.eye(dim) / math.sqrt(first * dim)
    for mu in mus:
        z = rows @ through.T
        if len(found) + 1 == len(mus) and len(scales) > 1:
            parts, at = shared(z, scales), scales
        else:
            parts, at = [z / np.maximum(np.linalg.norm(z, axis=1), 1.0)[:, None]], ONE_CLIP
        gram, *outer = (_noisy(part.T @ part, mu, rng) for part in parts)
        mean = n / room if found else n  # of all squares, were no row shrunk: that is known only where rows are white
        kept = float(np.clip(np.trace(gram) / mean, 0.05, 1.0)) if found else 1.0
        found.append(Round(through, gram, 1 / mu, kept, tuple(outer), at))
        own = (
            in_own_columns(log_det_repair(gram / kept, 1 / mu / kept), through, rows=n if (rows[:, 0] == 1).all() else None) / n
        )
        through = np.linalg.inv(np.linalg.cholesky(own)) / math.sqrt(room * dim)
    last = found[-1]
    back = np.linalg.solve(last.through, np.linalg.solve(last.through, last.gram / last.kept).T)
    return (back + back.T) / 2, WhitenedGaussian(tuple(found))


def _noisy(gram, mu, rng):
    draw = np.triu(rng.normal(scale=1 / mu, size=gram.shape), 1)
    return gram + draw + draw.T + np.diag(rng.normal(scale=ROOT / mu, size=len(gram)))


def whitened_release(table, schema, seed=0, **choices):
    """A release of ``table`` in whitened rounds."""
    gram, noise = in_rounds(encoded_rows(table, schema), seed, **choices)
    return labelled(with_gram(noise, gram, table, schema))


RARE_COEFFICIENTS = np.array([0.0, 0.3, 0.2, -0.1, 0.4])  # intercept, x, and the levels b, c and d of a category; d is rare


def rare_release(index: int, *, sd: float = 80.0, rows: int = 20_000, rare: int = 12) -> dpgram.GramRelease:
    """A release of a table with a level of a few rows, with noise that hides this level alone."""
    rng = np.random.default_rng(index)
    place = rng.choice(3, rows, p=(0.5, 0.3, 0.2))
    place[:rare] = 3
    x = np.clip(rng.normal(size=rows) / 3, -1, 1)
    y = RARE_COEFFICIENTS[1] * x + np.append(0.0, RARE_COEFFICIENTS[2:])[place] + 0.2 * rng.normal(size=rows)
    schema = dpgram.Schema(
        unit="p",
        columns=[
            dpgram.Numeric("x", -1, 1, missing="midpoint"),
            dpgram.Categorical("c", ["a", "b", "c", "d"]),
            dpgram.Numeric("y", -1, 1, missing="midpoint"),
        ],
    )
    z = np.column_stack([np.ones(rows), x, *(place == k for k in (1, 2, 3)), np.clip(y, -1, 1)])
    noise = SymmetricGaussian.orthogonal(sd)
    made = matrix_release(pass_through(noise, z.T @ z, SeededSource(index)), noise, rows=rows)
    return dataclasses.replace(made, schema=schema)


def hidden_number_release(seed: int, *, sd: float = 20.0, rows: int = 16_384) -> tuple[dpgram.GramRelease, np.ndarray]:
    """A release with noise that hides x0 alone, and the coefficients of y without noise. x0 explains a third of y, and goes together with
    x1; its bounds are a hundred standard deviations apart."""
    among = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]])
    slopes = np.array([0.5, 0.4, 0.2])
    cross = among @ slopes
    whole = np.block([[among, cross[:, None]], [cross, 0.5 + cross @ slopes]])
    size = np.array([0.02, 0.25, 0.25, 0.2])  # standard deviations of x0, x1, x2 and about that of y, over half of a range
    gram = np.zeros((5, 5))
    gram[0, 0], gram[1:, 1:] = rows, rows * whole * np.outer(size, size)
    noise = SymmetricGaussian.orthogonal(sd)
    release = matrix_release(pass_through(noise, gram, SeededSource(seed)), noise, rows=rows)
    return release, np.linalg.solve(gram[:4, :4], gram[:4, 4])
