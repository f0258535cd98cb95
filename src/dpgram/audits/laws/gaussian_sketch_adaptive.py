"""The law of gaussian-sketch-adaptive: of the released smallest eigenvalue, and then of the draw that follows from it."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaincc, log_ndtr, ndtr

from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.laplace import truncated_laplace_delta
from dpgram.accounting.wishart import sampling_delta, spread
from dpgram.audits import reference
from dpgram.audits.laws.base import TOLERANCE, Options, published
from dpgram.audits.laws.gaussian_sketch import GaussianSketchLaw
from dpgram.audits.neighbours import Pair
from dpgram.linalg.symmetric import smallest_eigenvalue
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER, Outcome, Parameters, Task
from dpgram.mechanisms.first_stage import EIGENVALUE_SLACK
from dpgram.terms.budget import Neighbours

Array = np.ndarray

MANY = 1e6


class AdaptiveSketchLaw(GaussianSketchLaw):
    """Also that of other draws after such a first stage: the second stage's law stands behind it among the parents of their own."""

    grid_varies = smallest_eigenvalue_tells = True

    def __init__(self, task: Task, parameters: Parameters):
        super().__init__(task, parameters)
        self.varying = ("first_stage_value", self.ridge, self.degrees)
        self._rng = np.random.default_rng(0)

    @classmethod
    def settings(cls, neighbours: Neighbours, dim: int, calibration: str) -> list[Options]:
        """With many degrees of freedom the ridge is large beside the doubt about the smallest eigenvalue, and the proof, which adds up the
        worst of both stages, comes close to the truth; with few, both branches of the second stage are taken."""
        settings: list[Options] = [{}]
        if calibration == EXACT_CURVE:
            settings.append({cls.degrees: MANY})
        if calibration == EXACT_CURVE and neighbours is Neighbours.REPLACE and dim >= 2:
            settings += [{cls.degrees: MANY, "first_stage": "gauss"}, {"first_stage": "gauss"}]
        return settings

    def level(self) -> float:
        """So that the released eigenvalue is seldom cut at zero, and often just enough for no ridge at all."""
        scale = self.parameters["first_stage_scale"]
        return self.parameters["first_stage_offset"] + min(self.parameters["base_w_squared"] - 2 * scale, 4 * scale)

    def loss(self, many: Outcome, pair: Pair) -> Array:
        s = published(many, "first_stage_value")
        one, other = (self._log_law(s, max(0.0, smallest_eigenvalue(gram))) for gram in (pair.first, pair.second))
        with np.errstate(invalid="ignore"):
            first = np.where(np.isneginf(one) & np.isneginf(other), 0.0, one - other)
        return first + super().loss(many, pair)

    def _log_law(self, s: Array, value: float) -> Array:
        """ln of the density where the true eigenvalue is ``value``, or, at zero, of all that lies below; up to what both tables share.

        The noise is cut above at the offset (under "exact") and below at zero."""
        scale, offset = self.parameters["first_stage_scale"], self.parameters["first_stage_offset"]
        highest = math.inf if self.task.calibration == PAPER else offset / scale
        z = (s - value + offset) / scale
        if "first_stage_mu" in self.parameters:
            unit = math.log(math.sqrt(2 * math.pi) * scale)
            density, tail, whole = -z * z / 2, log_ndtr(z) + unit, log_ndtr(highest) + unit
        else:
            tail = np.where(z < 0, z, np.log(np.maximum(2 - np.exp(-np.maximum(z, 0.0)), 1e-300))) + math.log(scale)
            density, whole = -np.abs(z), math.log(scale * (2 - math.exp(-highest)))
        slack = 1e-9 * (abs(value) / scale + 1)  # rounding of the eigenvalue must not look like an impossible release
        return np.where(s > 0, np.where(z <= highest + slack, density, -np.inf), np.where(z <= highest, tail, whole))

    def uniforms(self, many: Outcome, table: Array) -> Array:
        s = published(many, "first_stage_value")
        first = self._below(s, max(0.0, float(np.linalg.eigvalsh(table)[0])))
        first = np.where(s > 0, first, first * self._rng.random(len(s)))  # zero stands for all that lies below
        return np.column_stack([first, super().uniforms(many, table)])

    def _below(self, s: Array, smallest: float) -> Array:
        """The distribution function of the released eigenvalue, where that is positive."""
        scale, offset = self.parameters["first_stage_scale"], self.parameters["first_stage_offset"]

        def plain(z: Array) -> Array:
            if "first_stage_mu" in self.parameters:
                return ndtr(z / scale)
            return np.where(z < 0, np.exp(np.minimum(z, 0.0) / scale) / 2, 1 - np.exp(-np.maximum(z, 0.0) / scale) / 2)

        if self.task.calibration == PAPER:
            return plain(s - smallest + offset)
        share = plain(s - smallest + offset) / plain(np.array(offset))
        return np.where(s - smallest > 1e-9 * (smallest + scale), 1.0, np.minimum(share, 1.0))

    def curve(self, epsilon: float, strength: float) -> float:
        """The sum of the proof: both stages cost their epsilon, the first also the chance that it relied on too much."""
        task, known = self.task, self.parameters
        if "first_stage_mu" in known:
            return self._two_gaussian_stages(epsilon, strength)
        r, base = known["base_degrees_of_freedom"], known["base_w_squared"] / task.row_bound**2
        moves, scale = task.row_bound**2 * (1 + EIGENVALUE_SLACK), known["first_stage_scale"]
        first = strength * moves / scale
        left = float(epsilon - first)
        if left < 0:
            return 1.0
        if task.calibration == PAPER:
            spent = known["first_stage_delta"]
            floor = base / strength - 1
        else:
            spent = truncated_laplace_delta(first * (1 + 1e-9), scale, known["first_stage_offset"], strength * moves)
            floor = base / strength
        return min(1.0, spent + sampling_delta(left, r, floor, task.neighbours, task.dim))

    def _two_gaussian_stages(self, epsilon: float, strength: float) -> float:
        """A normal first stage, cut above, and a second that is a Gaussian mechanism but for a rare event (adaptive.md, Theorem 2)."""
        known = self.parameters
        r, base = known["base_degrees_of_freedom"], known["base_w_squared"] / self.task.row_bound**2
        mu1, mu2 = known["first_stage_mu"], known["second_stage_mu"]
        z = known["first_stage_offset"] / known["first_stage_scale"]
        rare, inside = float(gammaincc(r / 2, mu2**2 / spread(base) / 2)), float(ndtr(z))
        gap = (inside - float(ndtr(z - strength * mu1))) / inside
        second = mu2 * math.sqrt(spread(base / strength) / spread(base))
        return min(1.0, gap + (rare + gaussian_delta(float(epsilon), math.hypot(strength * mu1, second))) / inside)

    def delta(self) -> float:
        return reference.two_stages(
            self.task, self.parameters, self.parameters["base_degrees_of_freedom"], self.parameters["base_w_squared"]
        )

    def faults_of_numbers(self, many: Outcome, most: int = 12) -> list[str]:
        """Whether what was chosen after the first stage stays within what it kept for the second."""
        if self.task.calibration == PAPER:
            return []
        degrees = published(many, self.degrees)
        floors = published(many, self.ridge) + published(many, "first_stage_value")
        for place in np.argsort(-degrees, kind="stable")[:: max(1, len(degrees) // most)]:
            r, floor = float(degrees[place]), float(floors[place])
            if reference.two_stages(self.task, self.parameters, r, floor) > self.task.budget.delta * (1 + TOLERANCE):
                return [f"{r:g} degrees of freedom over a floor of {floor:.4g} are more than the second stage may have"]
        return []
