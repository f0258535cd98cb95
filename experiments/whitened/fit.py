"""Coefficients of one regression from what a release shows: the library's `shrunk`, and a solve with the repaired matrix."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from dpgram.regression import channel as forms
from dpgram.regression.fit import shrunk as shrunk_of
from dpgram.terms.noise import SymmetricGaussian
from experiments.whitened.protocol import Seen

Array = np.ndarray


def shrunk(seen: Seen, features: list[int], label: int) -> Array:
    """The library's default estimator, in the coordinates of the release. The first feature is the intercept."""
    turn = np.linalg.inv(seen.through).T
    eye = np.eye(len(turn))
    plan = SimpleNamespace(regressors=eye[:, features], label=eye[:, label], target="label")
    basis, triangle, along, size = forms._orthonormal(plan, turn)
    block = basis.T @ seen.matrix @ basis
    values, axes = np.linalg.eigh(block[:-1, :-1])
    noise = SymmetricGaussian.orthogonal(seen.sd)
    found = forms._additive(values, axes.T @ block[:-1, -1], noise)
    back = np.linalg.inv(triangle)
    view = SimpleNamespace(
        **found,
        gain_sd=np.full(len(values), np.sqrt(2) * seen.sd),
        to_own=size * back @ axes,
        base=back @ along,
        scale=forms._expected_size(block, noise, basis.T @ forms._unit(turn[:, 0])),
    )
    return shrunk_of(view)


def repaired(seen: Seen, features: list[int], label: int, strength: float = 0.1) -> Array:
    gram = seen.repaired(strength)
    return np.linalg.solve(gram[np.ix_(features, features)], gram[features, label])
