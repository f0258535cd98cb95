"""Samplers as one would write them: float64 noise, added to a float64 sum. Here to be broken; nothing of the library is like them."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def laplace(true: Array, scale: float, rng: np.random.Generator) -> Array:
    """Laplace noise through inversion of a uniform number of 53 bits."""
    sign = np.where(rng.random(true.shape) < 0.5, -1.0, 1.0)
    return true - sign * scale * np.log(1 - rng.random(true.shape))


def box_muller(true: Array, sd: Array, rng: np.random.Generator) -> Array:
    """Normal noise, numbers 2i and 2i + 1 from one pair of uniform ones."""
    u, v = 1 - rng.random(len(true) // 2), rng.random(len(true) // 2)
    radius, angle = np.sqrt(-2 * np.log(u)), 2 * np.pi * v
    return true + sd * np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()


def polar(true: Array, sd: Array, rng: np.random.RandomState) -> Array:
    """NumPy's older generator, which many programs still use: Marsaglia's polar method."""
    return true + sd * rng.standard_normal(len(true))


def ziggurat(true: Array, sd: Array, rng: np.random.Generator) -> Array:
    """NumPy's present generator."""
    return true + sd * rng.standard_normal(len(true))
