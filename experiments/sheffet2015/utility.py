"""Bounds on the error of a regression from a noisy Gram: the utility theorems of Sheffet 2015, with explicit constants.

Each returns a number that the Euclidean distance between the private and the non-private coefficients exceeds with probability at
most ``failure``. ``smallest`` is the smallest eigenvalue of X'X, ``size`` the norm of the non-private coefficients; both must be public
guesses, or the bound is about a hypothetical table. The printed statements leave constants open, or have them wrong (docs/paper.md);
these are derived here, in scaled units."""

from __future__ import annotations

import math


def gaussian_noise_error(*, features: int, sd_off_diagonal: float, smallest: float, size: float, failure: float) -> float:
    """For X'X + N, X'y + n with symmetric Gaussian noise (diagonal sd at most sqrt(2) times the off-diagonal one).

    The error is (X'X + N)^-1 (n - N b), so at most (|N| |b| + |n|)/(smallest - |N|). |N| is a Lipschitz function of the noise with
    mean at most 2 sd sqrt(p), |n| that of a normal vector. Infinite where the noise may reach the smallest eigenvalue."""
    tail = math.sqrt(math.log(4 / failure))
    norm = sd_off_diagonal * (2 * math.sqrt(features) + 2 * tail)
    vector = sd_off_diagonal * (math.sqrt(features) + math.sqrt(2) * tail)
    return (norm * size + vector) / (smallest - norm) if smallest > norm else math.inf


def wishart_noise_error(
    *, features: int, scale: float, degrees_of_freedom: float, smallest: float, size: float, failure: float
) -> float:
    """For the Gram plus W_d(scale I, k), its mean left in.

    (X'X + N)^-1 is at most (X'X)^-1, so the error is at most (|N| |b| + |n|)/smallest, with |N| below
    scale (sqrt(k) + sqrt(p) + s)^2 and |n| below the smaller of that (for p + 1 columns) and 2 scale sqrt(2 k p ln(8 p/failure))."""
    s = math.sqrt(2 * math.log(4 / failure))
    root = math.sqrt(degrees_of_freedom)
    norm = scale * (root + math.sqrt(features) + s) ** 2
    whole = scale * (root + math.sqrt(features + 1) + s) ** 2
    entries = 2 * scale * math.sqrt(2 * degrees_of_freedom * features * math.log(8 * features / failure))
    return (norm * size + min(whole, entries)) / smallest


def sketch_error(
    *, features: int, sketch_rows: float, w_squared: float, smallest: float, residual: float, failure: float
) -> float:
    """For the Gaussian sketch, against ridge regression with penalty w^2; ``residual`` is its whole objective, penalty included.

    In an orthonormal basis of the augmented features the error is |e| T^-T z, with z normal and independent of Bartlett's T. So it is
    at most sqrt(residual / (w^2 + smallest)) (sqrt(p) + s)/(sqrt(r) - sqrt(p) - s). Infinite where r is too small for that."""
    s = math.sqrt(2 * math.log(2 / failure))
    room = math.sqrt(sketch_rows) - math.sqrt(features) - s
    if room <= 0:
        return math.inf
    return math.sqrt(residual / (w_squared + smallest)) * (math.sqrt(features) + s) / room
