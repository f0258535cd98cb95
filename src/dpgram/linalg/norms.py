"""The expected spectral norm of symmetric Gaussian noise: a public constant."""

from __future__ import annotations

import math

import numpy as np

# For 1 to 64 columns and an off-diagonal sd of one: means over draws of a fixed generator (``simulated_norm``).
ORTHOGONAL = (
    1.127856, 2.053365, 2.757472, 3.349501, 3.848583, 4.323456, 4.731217, 5.116735,
    5.490827, 5.829054, 6.143973, 6.450484, 6.718328, 6.993529, 7.199246, 7.578766,
    7.785559, 8.052515, 8.263816, 8.514395, 8.760301, 8.940176, 9.14265, 9.368757,
    9.592612, 9.758026, 10.00006, 10.23706, 10.3995, 10.60148, 10.76589, 10.95817,
    11.09212, 11.31183, 11.41965, 11.60723, 11.75592, 11.96472, 12.06506, 12.2677,
    12.44185, 12.60665, 12.72943, 12.92637, 13.08604, 13.20137, 13.30906, 13.52227,
    13.61552, 13.82804, 13.93539, 14.07229, 14.21442, 14.41427, 14.48751, 14.71011,
    14.75832, 14.89521, 15.07449, 15.1873, 15.27379, 15.46163, 15.55981, 15.6493,
)  # fmt: skip
EQUAL = (
    0.7975148, 1.642279, 2.345228, 2.954211, 3.476271, 3.961159, 4.389466, 4.789812,
    5.173533, 5.524963, 5.851228, 6.168663, 6.458126, 6.727645, 6.950725, 7.330037,
    7.537682, 7.82089, 8.0198, 8.289845, 8.53338, 8.733543, 8.933362, 9.167317,
    9.390283, 9.552269, 9.805953, 10.03704, 10.20476, 10.40101, 10.58881, 10.77752,
    10.90737, 11.13241, 11.24046, 11.43685, 11.59273, 11.80411, 11.89716, 12.1028,
    12.27664, 12.44629, 12.56262, 12.76287, 12.91957, 13.05052, 13.15821, 13.36628,
    13.46555, 13.68708, 13.7877, 13.92721, 14.07115, 14.2662, 14.34953, 14.56375,
    14.62379, 14.75451, 14.93392, 15.05788, 15.13641, 15.32579, 15.42096, 15.51744,
)  # fmt: skip


def expected_norm(dim: int, sd_off_diagonal: float, sd_diagonal: float) -> float:
    """Expected spectral norm of symmetric Gaussian noise.

    Tabulated up to 64 columns for a diagonal whose sd is sqrt(2) times the others', or the same, and simulated for any other; then
    2 sd sqrt(d) (1 - 0.33 d^(-2/3)), the edge of the spectrum with its first correction."""
    if dim > 64:
        return 2 * sd_off_diagonal * math.sqrt(dim) * (1 - 0.33 * dim ** (-2 / 3))
    for ratio, table in ((math.sqrt(2), ORTHOGONAL), (1.0, EQUAL)):
        if math.isclose(sd_diagonal, ratio * sd_off_diagonal, rel_tol=1e-9):
            return sd_off_diagonal * table[dim - 1]
    return simulated_norm(dim, sd_off_diagonal, sd_diagonal)


def simulated_norm(dim: int, sd_off_diagonal: float, sd_diagonal: float) -> float:
    """The mean norm over draws of a fixed generator: a tenth of a second."""
    rng = np.random.default_rng(20150707)
    draws = 400 if dim > 12 else 20_000
    upper = np.triu(rng.normal(scale=sd_off_diagonal, size=(draws, dim, dim)), 1)
    noise = upper + upper.transpose(0, 2, 1)
    noise[:, np.arange(dim), np.arange(dim)] = rng.normal(scale=sd_diagonal, size=(draws, dim))
    return float(np.abs(np.linalg.eigvalsh(noise)).max(axis=1).mean())
