"""The whitened release on an array of rows, in float64 and without the library's exact arithmetic: not private, for studies only.

``whitened`` and ``single`` are the two releases that the study compares. Both take the rows and public numbers, and answer with a
``Seen``: to compare the library's own mechanism, make a ``Seen`` from its release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpgram.linalg.symmetric import log_det_repair

Array = np.ndarray

BLOCK = 1 << 14
NUMBER, INDICATOR, INTERCEPT = 1.0, 0.5, 0.0  # half-ranges of scaled columns


@dataclass(frozen=True, eq=False)
class Seen:
    """``matrix`` is the Gram of rows mapped by ``through``, up to a factor, with symmetric Gaussian noise of off-diagonal ``sd``."""

    matrix: Array
    sd: float
    through: Array
    clips: tuple[float, ...] = ()  # of every round, over the number of columns

    def repaired(self, strength: float = 0.1) -> Array:
        """A positive definite estimate of the Gram of the rows themselves, up to a factor."""
        back = np.linalg.inv(self.through)
        return back @ log_det_repair(self.matrix, self.sd, strength=strength) @ back.T


@dataclass(frozen=True)
class Plan:
    """What is fixed before any noise is drawn, from the rows' number (or a public hint of it), the columns' and the budget."""

    shares: tuple[float, ...]  # of mu^2, by round
    early: float  # the clip of whitened rows over d, before the last round
    last: float


def make_plan(rows: float, columns: int, mu: float) -> Plan:
    rho = columns**1.5 / (rows * mu)  # how noisy one whitened release is: the noise's norm over the Gram's, about
    rounds = 8 if rho < 0.05 else 12 if rho <= 0.4 else 6 if rho <= 1 else 1
    share = float(np.clip((rho / 0.3) ** 2, 0.02, 1 / rounds))
    last = 1 - (rounds - 1) * share
    return Plan(
        shares=(share,) * (rounds - 1) + (last,),
        early=float(np.clip(0.2 * math.sqrt(share) / rho, 0.5, 8)),
        last=float(np.clip(0.7 * math.sqrt(rows * last) * mu / columns, 1, 5)),
    )


def whitened(
    rows: Array, half: Array, squared_bound: float, mu: float, rng: np.random.Generator, *, hint: float | None = None
) -> Seen:
    """Rounds of noisy Grams, each of rows whitened with what the rounds before it published.

    ``half`` says what each column is, ``squared_bound`` is the largest squared norm of a row. Neighbours are REPLACE; with a ``hint`` of
    the number of rows they are ADD_REMOVE, and that number is used nowhere."""
    d = rows.shape[1]
    plan = make_plan(len(rows) if hint is None else hint, d, mu)
    count = None if hint is not None else float(len(rows))
    through, grams, sds, maps, clips = np.eye(d), [], [], [], []
    guess = None
    for i, share in enumerate(plan.shares):
        last = i == len(plan.shares) - 1
        widest = np.linalg.norm(through, 2) ** 2 * squared_bound
        clip = 0.2 * squared_bound if i == 0 else min(d * (plan.last if last else plan.early), widest)
        sd = clip / (mu * math.sqrt(share)) / (1 if hint is None else math.sqrt(2))
        gram = clipped_gram(rows, through, clip) + symmetric_noise(rng, d, sd)
        kept = 1.0
        if guess is not None:  # the shrinking took a share of every row, on average: give it back, so that rounds are alike
            expected = float(np.trace(through @ guess @ through.T))
            kept = float(np.clip(np.trace(gram) / expected, 0.02, 1.2 if hint is None else 20))
        grams.append(gram / kept)
        sds.append(sd / kept)
        maps.append(through)
        clips.append(clip / d)
        seen = pooled(grams, sds, maps, oldest(clips, last=last))
        if last:
            return Seen(seen.matrix, seen.sd, seen.through, tuple(clips))
        guess = seen.repaired(0.25)
        if count is None:
            count = max(float(guess[0, 0]), float(d))  # the first round's noisy number of rows, as a unit
        guess *= np.clip(count / guess[0, 0], 0.2, 5)
        ahead = d * (plan.last if i == len(plan.shares) - 2 else plan.early)
        through = whitening(guess, half, count, mu, ahead)
    raise AssertionError("a plan has a last round")


def oldest(clips: list[float], *, last: bool) -> int:
    """The first round that still counts: the oldest were seen through poor maps, and much harder clips tell of other rows."""
    start = min(len(clips) // 2, 3)
    if last:
        while start < len(clips) - 1 and clips[-1] > 2 * clips[start]:
            start += 1
    return start


def whitening(gram: Array, half: Array, count: float, mu: float, clip: float) -> Array:
    """The map under which rows with this Gram have the unit matrix, less where that would only stretch a few rows beyond the clip.

    A level that is rarer than 1/clip makes rows that are shrunk whatever the map is, so that every round would stretch it further, and
    the label's part in those rows would vanish: an indicator's rows get a squared norm of a few times the clip, and no more."""
    wide = gram / count + np.diag(half**2) / (mu * count)
    for kind, least in ((INDICATOR, 0.3), (NUMBER, 0.02)):
        own = np.flatnonzero(half == kind)
        given_others = 1 / np.diag(np.linalg.inv(wide))[own]
        wide[own, own] += np.maximum(0.0, least / clip - given_others)
    return np.linalg.inv(np.linalg.cholesky(wide))


def pooled(grams: list[Array], sds: list[float], maps: list[Array], start: int) -> Seen:
    """The least-squares Gram of the rounds from ``start`` on, in coordinates where its noise is about that of one round of sd 1."""
    if start == len(grams) - 1:
        return Seen(grams[-1], sds[-1], maps[-1])
    last, back = maps[-1], np.linalg.inv(maps[-1])
    weights = [1 / sd**2 for sd in sds[start:]]
    turns = [m @ back for m in maps[start:]]
    squares = [h.T @ h for h in turns]

    def normal(x: Array) -> Array:
        return sum(w * s @ x @ s for w, s in zip(weights, squares, strict=True))

    right = sum(w * h.T @ m @ h for w, h, m in zip(weights, turns, grams[start:], strict=True))
    values, axes = np.linalg.eigh(sum(w * s @ s for w, s in zip(weights, squares, strict=True)))
    values = np.maximum(values, 1e-24 * values[-1])
    inverse = (axes / np.sqrt(values)) @ axes.T
    x = inverse @ right @ inverse
    left = right - normal(x)
    step = near = inverse @ left @ inverse  # conjugate gradients, preconditioned with the pooled precision
    size = float(np.sum(left * near))
    for _ in range(50):
        if size <= 1e-10 * float(np.sum(right * x)):
            break
        ahead = normal(step)
        far = size / float(np.sum(step * ahead))
        x, left = x + far * step, left - far * ahead
        near = inverse @ left @ inverse
        size, before = float(np.sum(left * near)), size
        step = near + size / before * step
    root = (axes * values**0.25) @ axes.T
    found = root @ x @ root
    return Seen((found + found.T) / 2, 1.0, root @ last)


def single(rows: Array, squared_bound: float, mu: float, rng: np.random.Generator) -> Seen:
    """One release with Gaussian noise, under REPLACE."""
    d = rows.shape[1]
    sd = squared_bound / mu
    return Seen(clipped_gram(rows, np.eye(d), squared_bound) + symmetric_noise(rng, d, sd), sd, np.eye(d))


def clipped_gram(rows: Array, through: Array, clip: float) -> Array:
    total = np.zeros_like(through)
    for start in range(0, len(rows), BLOCK):
        z = rows[start : start + BLOCK] @ through.T
        z *= np.sqrt(np.minimum(1.0, clip / np.maximum(np.einsum("ij,ij->i", z, z), 1e-300)))[:, None]
        total += z.T @ z
    return total


def symmetric_noise(rng: np.random.Generator, d: int, sd: float) -> Array:
    draw = rng.normal(scale=sd, size=(d, d))
    upper = np.triu(draw, 1)
    return upper + upper.T + math.sqrt(2) * np.diag(np.diag(draw))
