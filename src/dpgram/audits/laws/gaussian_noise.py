"""The law of gaussian-noise: independent normal entries around the Gram sum."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dpgram.accounting.gaussian import gaussian_delta
from dpgram.audits import reference
from dpgram.audits.laws.base import MechanismLaw, Options
from dpgram.audits.neighbours import Pair
from dpgram.errors import MechanismError
from dpgram.mechanisms.conversation import Outcome, Task
from dpgram.terms.budget import Neighbours

Array = np.ndarray


class GaussianNoiseLaw(MechanismLaw):
    """Also that of the inverse, with other matrices and another change by one row.

    A shift that repairs the matrix is published beside it, and is taken off again before anything is said of the noise."""

    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        return [{}, {"repair": "shift"}]

    @classmethod
    def prepared(cls, task: Task) -> Task:
        if task.options.get("repair") == "psd":
            raise MechanismError(
                "repair is 'psd', and of a matrix without its negative eigenvalues no law is known: audit it with repair=none, whose "
                "matrix is what psd repairs, or with repair=shift."
            )
        return task

    def loss(self, many: Outcome, pair: Pair) -> Array:
        off, on = self.parameters["sd_off_diagonal"], self.parameters["sd_diagonal"]
        return gaussian_loss(_unshifted(many), pair.first, pair.second, off, on)

    def uniforms(self, many: Outcome, table: Array) -> Array:
        return normal_uniforms(_unshifted(many) - table, self.parameters["sd_off_diagonal"], self.parameters["sd_diagonal"])

    def faults_of_numbers(self, many: Outcome) -> list[str]:
        """Whether what was repaired follows from what would be published without a repair: then it tells no more."""
        if not self._repaired:
            return []
        needed = np.linalg.eigvalsh(_unshifted(many))[:, 0] <= 0
        same = np.array_equal(np.broadcast_to(many.noise.shift, len(needed)) > 0, needed)
        return [] if same else ["whether the matrix was shifted does not follow from the matrix that was published"]

    @property
    def _repaired(self) -> bool:
        return self.task.options.get("repair", "none") != "none"

    def curve(self, epsilon: float, strength: float) -> float:
        return gaussian_delta(epsilon, strength * self.parameters["mu"])

    def delta(self) -> float:
        return reference.gaussian(self.task, self.parameters, self.task.rows_per_unit * self.task.row_bound**2)


def _unshifted(many: Outcome) -> Array:
    return many.gram - np.multiply.outer(np.broadcast_to(many.noise.shift, len(many.gram)), np.eye(many.gram.shape[-1]))


def gaussian_loss(released: Array, first: Array, second: Array, off: float, on: float) -> Array:
    """The loss of symmetric matrices with independent normal noise around ``first`` or ``second``, which may be another for each."""
    dim = first.shape[-1]
    precision = np.full((dim, dim), 0.5 / off**2)  # each entry off the diagonal stands there twice
    np.fill_diagonal(precision, 1 / on**2)
    weights = precision * (first - second)
    return np.einsum("nij,ij->n" if weights.ndim == 2 else "nij,nij->n", released - (first + second) / 2, weights)


def normal_uniforms(noise: Array, off: float, on: float) -> Array:
    """Normal noise of sd ``off`` off the diagonal and ``on`` on it, as uniform numbers."""
    rows, columns = np.triu_indices(noise.shape[-1])
    return ndtr(noise[:, rows, columns] / np.where(rows == columns, on, off))
