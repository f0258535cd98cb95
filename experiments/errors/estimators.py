"""The estimators that are compared: the library's, the paper's repair, and the first version of the default."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence
from dpgram.linalg.norms import expected_norm
from dpgram.regression.design import Design
from dpgram.regression.fit import fit_linear, solve
from dpgram.terms.noise import SymmetricGaussian

Array = np.ndarray


def errors(release: GramRelease, plan: Design, truth: Array) -> dict[str, float]:
    """The l2 error of every estimator that applies to the release's noise."""
    distances = {}
    for name, fit in ESTIMATORS.items():
        if name in ONLY_ADDITIVE and not isinstance(release.noise, SymmetricGaussian):
            continue
        distances[name] = float(np.linalg.norm(fit(release, plan) - truth))
    return distances


def by_name(name: str) -> Callable[[GramRelease, Design], Array]:
    return lambda release, plan: fit_linear(Evidence.of(release), plan, name)


def as_released(release: GramRelease, plan: Design) -> Array:
    """A solve with the matrix as it is, definite or not, less its public shift."""
    return solve(release.gram - release.noise.shift * np.eye(len(release.gram)), plan)


def shifted(release: GramRelease, plan: Design) -> Array:
    """The paper's repair: where the matrix is not positive definite, the expected norm of the noise is added to its diagonal."""
    noise = release.noise
    gram = release.gram - noise.shift * np.eye(len(release.gram))
    if np.linalg.eigvalsh(gram)[0] <= 0:
        gram = gram + expected_norm_of(len(gram)) * noise.sd_off_diagonal * np.eye(len(gram))
    return solve(gram, plan)


_NORMS: dict[int, float] = {}


def expected_norm_of(dim: int) -> float:
    """Expected norm of noise with unit sd off the diagonal and sqrt(2) on it."""
    if dim not in _NORMS:
        _NORMS[dim] = expected_norm(dim, 1.0, np.sqrt(2))
    return _NORMS[dim]


def first_version(release: GramRelease, plan: Design) -> Array:
    """RIE-BLUP as it was first written down: rotation-invariant eigenvalues, one variance of coefficients by maximum likelihood.

    It takes released columns as regressors, one by one, as every design of this study does."""
    v = release.noise.sd_off_diagonal**2
    gram = release.gram - release.noise.shift * np.eye(len(release.gram))
    w, axes = np.linalg.eigh(plan.regressors.T @ gram @ plan.regressors)
    seen = axes.T @ plan.regressors.T @ gram @ plan.label
    p = len(w)
    eta = np.sqrt(v) * p**0.25 / 2
    apart = w[:, None] - w[None, :]
    size = apart**2 + eta**2
    np.fill_diagonal(size, np.inf)
    h, r = (apart / size).sum(axis=1), (eta / size).sum(axis=1)
    xi = np.maximum(0.0, w - 2 * v * h)
    q = xi**2 + np.maximum(0.0, v * p - v**2 * (h**2 + r**2)) + v

    def unlikely(log_size: float) -> float:
        total = np.exp(log_size) * q + v
        return float(np.sum(np.log(total) + seen**2 / total))

    size_of_b = np.exp(minimize_scalar(unlikely, bounds=(-14, 8), method="bounded").x)
    return plan.to_own_units @ (axes @ (xi / (q + v / size_of_b) * seen)) + plan.offset


ESTIMATORS: dict[str, Callable[[GramRelease, Design], Array]] = {
    "shrunk": by_name("shrunk"),
    "debiased": by_name("debiased"),
    "log-det": by_name("log-det"),
    "plain": as_released,
    "PSD shift": shifted,
    "AdaSSP": by_name("ridge"),
    "RIE-BLUP": first_version,
}
ONLY_ADDITIVE = ("PSD shift", "RIE-BLUP")
