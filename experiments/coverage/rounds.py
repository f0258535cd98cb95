"""A release in whitened rounds of rows in an array, in plain float64: the protocol of ``whitened-noise``, for studies that hold rows.

Every rule here looks at the number of rows, the dimension, mu and at what earlier rounds released."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpgram.linalg.rounds import in_own_columns, most_likely
from dpgram.terms.noise import Round, WhitenedGaussian

Array = np.ndarray

BLOCK = 16_384
MANY, DROPPED = 8, 3
STRENGTH = 0.25


def whitened_rounds(rows: Array, bound_squared: float, mu: float, rng: np.random.Generator) -> tuple[Array, WhitenedGaussian]:
    """The released matrix of ``rows`` (n, d), intercept first, under REPLACE at Gaussian privacy ``mu``, and its noise."""
    n, dim = rows.shape
    noisy = dim**1.5 / (n * mu)
    count = 1 if noisy > 0.4 else MANY
    share = float(np.clip((noisy / 0.3) ** 2, 0.02, 1 / MANY))
    last_mu = mu * np.sqrt(1 - (count - 1) * share)
    early = float(np.clip(0.2 * n * mu * np.sqrt(share) / dim**1.5, 1, 8))
    room = max(1.0, 0.5 * np.sqrt(n) * last_mu / dim)
    through, found = np.eye(dim), []
    for i in range(1, count + 1):
        own_mu = last_mu if i == count else mu * np.sqrt(share)
        widest = np.linalg.norm(through, 2) ** 2 * bound_squared
        bound = 0.2 * bound_squared if i == 1 else min(dim * (room if i == count else early), widest)
        folded = through / np.sqrt(bound)
        gram = shrunk_gram(rows, folded) + symmetric_noise(rng, dim, 1 / own_mu)
        kept = 1.0 if i == 1 else float(np.clip(np.trace(gram) * bound / (n * dim), 0.02, 1.0))
        found.append(Round(folded, gram, 1 / own_mu, kept))
        if i < count:
            looks = [(r.through, r.gram / r.kept, r.sd_off_diagonal / r.kept) for r in found[min(i // 2, DROPPED) :]]
            through = np.linalg.inv(
                np.linalg.cholesky(in_own_columns(most_likely(looks, strength=STRENGTH), folded, rows=n) / n)
            )
    last = found[-1]
    back = np.linalg.solve(last.through, np.linalg.solve(last.through, last.gram / last.kept).T)
    return (back + back.T) / 2, WhitenedGaussian(tuple(found))


def shrunk_gram(rows: Array, through: Array) -> Array:
    """The sum of z z' over z = ``through`` a, shrunk to norm one."""
    total = np.zeros(through.shape)
    for z, weight in shrunk(rows, through):
        total += (z * weight[:, None]).T @ z
    return total


def shrunk(rows: Array, through: Array) -> Iterator[tuple[Array, Array]]:
    """Mapped rows, block by block, and the weight that shrinking gives each one's square."""
    for start in range(0, len(rows), BLOCK):
        z = rows[start : start + BLOCK] @ through.T
        yield z, np.minimum(1.0, 1.0 / np.maximum(np.einsum("ij,ij->i", z, z), 1e-300))


def symmetric_noise(rng: np.random.Generator, dim: int, sd: float) -> Array:
    draw = rng.normal(scale=sd, size=(dim, dim))
    upper = np.triu(draw, 1)
    return upper + upper.T + np.sqrt(2) * np.diag(np.diag(draw))
