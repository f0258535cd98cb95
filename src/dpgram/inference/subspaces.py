"""The smallest value of the statistic of Anderson and Rubin within linear subspaces, for many subspaces at once.

For a combination v of n columns the products of q instruments with v have the mean C v and the covariance

    V(v) = diag(o_i v'Kv + s_i v'Ev + c_i v'v + p_i v_n^2) + (L v)(L v)'.

T(v) = (C v)' V(v)^-1 (C v) does not change when v is multiplied by a number. So combinations that obey linear restrictions are a subspace,
those at infinity are in it too, and the smallest T is a function of the subspace alone.

T may have several valleys. If the shape of V did not depend on v, its smallest value would be an eigenvalue. So Newton's steps begin at
eigenvectors, for three shapes: that at a combination of interest, one with much more noise, and one with much more sampling. Of what they
lead to the smallest is taken. With y = V^-1 C v, half of the gradient is C'y - B v, and half of the second derivatives are
J' V^-1 J - B, where v'Bv = y'V(v)y, and J is the derivative of C v - V(v) y with this y.

Coordinates are those in which the first eigenproblem is about the identity. There nearly collinear columns do no harm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpgram.evidence.law import TINY

Array = np.ndarray

SHAPES = (1.0, 30.0, 1 / 30.0)  # times as much noise, and times as little sampling, as at the combination of interest
EACH = 2  # eigenvectors of each shape
STEPS = 60
STILL = 1e-11  # relative to 1 + T: a step that promises no more is the last
FIRST, LEAST, MOST = 1e-3, 1e-13, 1e9  # damping
SMALL = 1e-13  # of the variance at the combination of interest: no variance is less
FLAT = 1e-12  # of the largest: what an eigenvalue counts as at least


class Look(NamedTuple):
    """T at k points, with half of its derivatives."""

    value: Array  # (k,)
    gradient: Array  # (k, n)
    curvature: Array  # (k, n, n)
    scale: Array  # (k,) the mean diagonal of J' V^-1 J


@dataclass(frozen=True, eq=False)
class Statistic:
    """T, by C, L, K, E, o, s and c as above."""

    mean: Array  # (q, n) C
    along: Array  # (q, n) L
    noise: Array  # (n, n) K
    errors: Array  # (n, n) E; no eigenvalue is negative
    by_noise: Array  # (q,) o
    by_rows: Array  # (q,) s
    by_clipping: Array  # (q,) c
    by_last: Array  # (q,) p
    size: Array  # (n, n) what stands between v' and v in v'v: the identity, until coordinates are changed
    last: Array  # (n, n) ... and in v_n^2, v_n the last number of v

    def turned(self, to: Array) -> Statistic:
        """The same as a function of u, where v = ``to`` @ u."""
        inner = (to.T @ form @ to for form in self._forms)
        noise, errors, size, last = ((form + form.T) / 2 for form in inner)
        return replace(self, mean=self.mean @ to, along=self.along @ to, noise=noise, errors=errors, size=size, last=last)

    def with_means(self, rows: Array, size: Array) -> Statistic:
        """The same with further products, ``rows`` (k, n) @ v, whose covariance is diagonal: ``size`` (k,) times v_n^2."""
        none = np.zeros(len(rows))
        by_noise, by_rows, by_clipping = (np.append(each, none) for each in (self.by_noise, self.by_rows, self.by_clipping))
        return replace(
            self,
            mean=np.vstack([self.mean, rows]),
            along=np.vstack([self.along, 0 * rows]),
            by_noise=by_noise,
            by_rows=by_rows,
            by_clipping=by_clipping,
            by_last=np.append(self.by_last, size),
        )

    @property
    def _forms(self) -> tuple[Array, ...]:
        return self.noise, self.errors, self.size, self.last

    @property
    def _weights(self) -> tuple[Array, ...]:
        return self.by_noise, self.by_rows, self.by_clipping, self.by_last

    def diagonal(self, v: Array) -> Array:
        """(k, q) the diagonal part of the covariance at each of ``v`` (k, n)."""
        return self._diagonal([v @ form for form in self._forms], v)

    def _diagonal(self, moved: list[Array], v: Array) -> Array:
        noise, errors, size, last = (np.maximum(np.vecdot(each, v), 0.0)[:, None] for each in moved)
        return self.by_noise * noise + self.by_rows * errors + self.by_clipping * size + self.by_last * last + TINY

    def shaped(self, v: Array, times: float) -> Array:
        """(q,) the diagonal part at ``v`` (n,) if there were so many times more noise, and so many times less sampling."""
        noise, errors, size, last = (float(v @ form @ v) for form in self._forms)
        table = self.by_clipping * size + self.by_last * last
        return self.by_noise * noise * times + self.by_rows * errors / times + table + TINY

    def pencil(self, diagonal: Array) -> tuple[Array, Array]:
        """The eigenproblem that T would be, were this the diagonal part but for a factor: what is to be small, over what."""
        over = 1 / diagonal
        outer = np.zeros_like(self.size)
        for weights, form in zip(self._weights, self._forms, strict=True):
            outer = outer + np.sum(weights * over) * form
        return self.mean.T @ (over[:, None] * self.mean), outer

    def at(self, v: Array) -> Array:
        """(k,) T at each of ``v`` (k, n)."""
        return self.look(v).value

    def look(self, v: Array) -> Look:
        """T and its derivatives at each of ``v`` (k, n)."""
        forms = self._forms
        moved = [v @ form for form in forms]
        diagonal, mean, along = self._diagonal(moved, v), v @ self.mean.T, v @ self.along.T
        over, shaded = mean / diagonal, along / diagonal
        inflated = 1 + np.vecdot(along, shaded)
        share = np.vecdot(along, over) / inflated  # (L v)'y
        y = over - share[:, None] * shaded
        pulled = y @ self.along
        squares = [y**2 @ weights for weights in self._weights]
        gradient = y @ self.mean - share[:, None] * pulled
        inner = self.mean - share[:, None, None] * self.along - along[:, :, None] * pulled[:, None, :]  # J
        lost = pulled[:, :, None] * pulled[:, None, :]  # B
        for form, each, weights, square in zip(forms, moved, self._weights, squares, strict=True):
            gradient -= square[:, None] * each
            inner -= 2 * (weights * y)[:, :, None] * each[:, None, :]
            lost += square[:, None, None] * form
        crossed = (shaded[:, None, :] @ inner)[:, 0]
        gained = inner.mT @ (inner / diagonal[:, :, None]) - crossed[:, :, None] * (crossed / inflated[:, None])[:, None, :]
        scale = np.maximum(np.trace(gained, axis1=1, axis2=2) / v.shape[1], TINY)
        return Look(np.vecdot(mean, y), gradient, gained - lost, scale)


class Subspaces:
    """Finds the smallest T within subspaces. It keeps nothing between calls, so an answer does not depend on those before."""

    def __init__(self, statistic: Statistic, interest: Array):
        """``interest`` (n,) is a combination of interest, such as the errors of an estimate."""
        typical = statistic.shaped(interest, 1.0)
        floor = SMALL * float(np.mean(typical)) / float(interest @ statistic.size @ interest)
        statistic = replace(statistic, by_clipping=np.maximum(statistic.by_clipping, floor))  # so that T is finite everywhere
        inner, outer = statistic.pencil(typical)
        self._to = _roots(inner + outer)
        self._turned, within = statistic.turned(self._to), np.linalg.solve(self._to, interest)
        self._shapes = [_Shape.of(self._turned, self._turned.shaped(within, times)) for times in SHAPES]

    def least(self, restrictions: Array) -> tuple[Array, Array]:
        """(k,) the smallest T over v with ``restrictions`` (k, c, n) @ v = 0, for each of k problems, and (k, n) where it is."""
        across = restrictions @ self._to
        start = np.concatenate([shape.start(across) for shape in self._shapes], axis=1)
        k, count, n = start.shape
        normal = np.linalg.qr(across.mT)[0]
        value, v = _descended(self._turned, start.reshape(-1, n), np.repeat(normal @ normal.mT, count, axis=0))
        best = np.arange(k), np.argmin(value.reshape(k, count), axis=1)
        return value.reshape(k, count)[best], v.reshape(k, count, n)[best] @ self._to.T


class _Shape(NamedTuple):
    """An eigenproblem that T would be, in coordinates in which it is about the identity."""

    to: Array  # (n, n)
    inner: Array  # (n, n)

    @classmethod
    def of(cls, statistic: Statistic, diagonal: Array) -> _Shape:
        inner, outer = statistic.pencil(diagonal)
        to = _roots(inner + outer)
        return cls(to, to.T @ inner @ to)

    def start(self, across: Array) -> Array:
        """(k, EACH, n) the first eigenvectors within each subspace, or as many as it has."""
        normal = np.linalg.qr((across @ self.to).mT)[0]
        fixed = normal @ normal.mT
        free = np.eye(len(self.inner)) - fixed
        vectors = np.linalg.eigh(free @ self.inner @ free + 2 * fixed)[1]  # no eigenvalue of the inner part is above 1
        return vectors.mT[:, : min(EACH, len(self.inner) - across.shape[1])] @ self.to.T


def _roots(matrix: Array) -> Array:
    """R, where R' matrix R is about the identity."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return vectors / np.sqrt(np.maximum(values, max(FLAT * values[-1], TINY)))


def _descended(statistic: Statistic, v: Array, fixed: Array) -> tuple[Array, Array]:
    """The smallest T that Newton's damped steps from each of ``v`` (k, n) lead to, and where; ``fixed`` (k, n, n) are the projections on
    what must not change."""
    one = np.eye(v.shape[1])
    v = _normed((v[:, None, :] @ (one - fixed))[:, 0])
    near, damping, moving = statistic.look(v), np.full(len(v), FIRST), np.arange(len(v))
    least, where = near.value.copy(), v.copy()
    for _ in range(STEPS):
        free, scale = one - fixed, near.scale[:, None, None]
        slope = (free @ near.gradient[:, :, None]) / scale
        held = fixed + v[:, :, None] * v[:, None, :]  # along v nothing changes
        bent = free @ (near.curvature / scale) @ free + held + damping[:, None, None] * one
        try:
            step = -np.linalg.solve(bent, slope)[:, :, 0]
        except np.linalg.LinAlgError:  # singular, where rounding is all that is left of some curvature
            damping = damping * 6
            continue
        promised = -np.vecdot(slope[:, :, 0], step) * near.scale
        tried = _normed((free @ (v + step)[:, :, None])[:, :, 0])  # rounding must not leave the subspace: T may be less there
        there = statistic.look(tried)
        better = (promised > 0) & (there.value < near.value)
        settled = (np.abs(promised) < STILL * (1 + near.value)) & (damping <= FIRST) | (damping > MOST)
        near = Look(*(_chosen(better, new, old) for new, old in zip(there, near, strict=True)))
        v, damping = _chosen(better, tried, v), np.where(better, np.maximum(damping / 8, LEAST), damping * 6)
        least[moving], where[moving] = near.value, v
        if settled.all():
            break
        if settled.any():
            left = ~settled
            v, fixed, damping, moving = v[left], fixed[left], damping[left], moving[left]
            near = Look(*(each[left] for each in near))
    return least, where


def _chosen(which: Array, new: Array, old: Array) -> Array:
    return np.where(which.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _normed(v: Array) -> Array:
    return v / np.linalg.norm(v, axis=1, keepdims=True)
