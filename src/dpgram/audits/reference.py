"""The proven curves a second time: delta from published parameters alone, by textbook functions and plain quadrature.

Nothing here is shared with ``accounting`` or with the calibrations, so a mistake there does not excuse itself. Slow, and good to about
six digits; the formulas are those of mechanisms/proofs/."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr
from scipy.stats import chi2, laplace, norm

from dpgram.mechanisms.conversation import PAPER, Parameters, Task
from dpgram.terms.budget import Neighbours

SLACK = 2.0**-20  # by how much more than B^2, relatively, the certified smallest eigenvalue may move


def hockey_stick(epsilon: float, mu: Any) -> Any:
    """Of a Gaussian mechanism of shift ``mu`` > 0."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))


def _two_move(task: Task) -> bool:
    return task.neighbours is Neighbours.REPLACE and task.dim >= 2


def gaussian(task: Task, parameters: Parameters, one_unit: float) -> float:
    """Changes of one unit and of two at right angles: ``one_unit`` long in each direction, along the diagonal or across it."""
    off, on = parameters["sd_off_diagonal"], parameters["sd_diagonal"]
    apart = one_unit * (math.sqrt(2) if _two_move(task) else 1.0)
    return float(hockey_stick(task.budget.epsilon, apart / min(on, math.sqrt(2) * off if task.dim >= 2 else on)))


def inverse_moves(task: Task, floor: float) -> float:
    """How far a unit moves the inverse of ``floor`` times the identity: along one direction, or as far along each of several."""
    size = task.rows_per_unit * task.row_bound**2
    return max(math.sqrt(k) * (1 / floor - 1 / (floor + size / k)) for k in range(1, max(task.dim, 1) + 1))


def rounds(task: Task, sds: Sequence[float]) -> float:
    """Of rounds that each hide a change of one unit of rows of norm one, or of two: the squares of their shifts add up."""
    apart = task.rows_per_unit * (math.sqrt(2) if _two_move(task) else 1.0)
    return float(hockey_stick(task.budget.epsilon, math.sqrt(sum((apart / (math.sqrt(2) * sd)) ** 2 for sd in sds))))


def looks(task: Task, sds: Sequence[float]) -> float:
    """The shift of looks at all columns: a unit moves one count of each column by all its rows, one that is replaced moves two."""
    moved = 2 * task.dim if task.neighbours is Neighbours.REPLACE else task.dim
    return task.rows_per_unit * math.sqrt(sum(moved / sd**2 for sd in sds))


def _chi_squares(degrees: float, least: float, points: int) -> tuple[Any, Any]:
    """Logarithms of chi-square numbers and their weights, by the trapezoidal rule: integrands are smooth."""
    x = np.linspace(math.log(chi2.ppf(1e-18, degrees)), math.log(chi2.isf(least, degrees)), points)
    return x, np.exp(chi2.logpdf(np.exp(x), degrees) + x) * (x[1] - x[0])


def wishart_draw(task: Task, r: float, floor: float, epsilon: float) -> float:
    """Of a Wishart draw around scale matrices of at least ``floor``."""
    if not floor > 0:
        return 1.0
    a = task.row_bound**2 / floor
    if _two_move(task):
        x, weights = _chi_squares(r, 1e-25, 801)
        return float(weights @ hockey_stick(epsilon, np.sqrt(a * a / (1 + a) * np.exp(x))))
    lift = r / 2 * math.log1p(a)
    up, down = 2 * (1 + a) / a * (epsilon + lift), 2 * (1 + a) / a * (lift - epsilon)
    added = chi2.sf(up / (1 + a), r) - math.exp(epsilon) * chi2.sf(up, r)
    removed = chi2.cdf(down, r) - math.exp(epsilon) * chi2.cdf(down / (1 + a), r) if down > 0 else 0.0
    return float(max(added, removed))


def additive_wishart(task: Task, k: float, scale: float) -> float:
    """Of Wishart noise: the sum of the three corners for REPLACE, the larger of two for ADD_REMOVE."""
    b, epsilon = task.row_bound**2 / scale, task.budget.epsilon
    m, nu = (k - task.dim - 1) / 2, k - task.dim + 1
    if m == 0:
        return 1.0
    grown = 0.0
    if epsilon < b / 2:
        x = b / math.expm1((b / 2 - epsilon) / m)
        grown = chi2.sf(x, nu) - math.exp(epsilon) * chi2.sf(x + b, nu)
    x = b / -math.expm1(-(epsilon + b / 2) / m)
    shrunk = chi2.cdf(x, nu) - math.exp(epsilon) * chi2.cdf(x - b, nu)
    if not _two_move(task):
        return float(max(grown, shrunk))
    return float(min(1.0, grown + shrunk + _both_corners(epsilon, m, nu + 1, b)))


def _both_corners(epsilon: float, m: float, kappa: float, b: float) -> float:
    """Two rows at right angles: the correlation of two columns of the noise moves by b/t, t^2 a product of two chi-squares."""
    lift = math.exp(epsilon / m)
    x, weights = _chi_squares(kappa, 1e-18, 401)
    by = b / np.exp((x[:, None] + x) / 2)
    cut = (lift * by**2 - (lift - 1)) / (lift * by + np.sqrt(lift * by**2 + (lift - 1) ** 2))
    below, moved = (betainc(m + 1, m + 1, np.clip(each, 0, 1)) for each in ((1 + cut) / 2, (1 + cut - by) / 2))
    inside = below - math.exp(epsilon) * moved
    return float(weights @ np.where(by >= 2, 1.0, inside) @ weights)


def two_stages(task: Task, parameters: Parameters, degrees: float, floor: float) -> float:
    """The sum of the proof, for a second stage of these ``degrees`` of freedom over scale matrices of at least ``floor``."""
    scale, offset = parameters["first_stage_scale"], parameters["first_stage_offset"]
    epsilon, moves = task.budget.epsilon, task.row_bound**2 * (1 + SLACK)
    if "first_stage_mu" in parameters:
        mu, inside = parameters["second_stage_mu"], float(norm.cdf(offset / scale))
        g = task.row_bound**4 / (floor * (floor + task.row_bound**2))
        gap = float(norm.cdf(offset / scale) - norm.cdf((offset - moves) / scale)) / inside
        beyond = float(chi2.sf(mu**2 / g, degrees))
        return gap + (beyond + float(hockey_stick(epsilon, math.hypot(moves / scale, mu)))) / inside
    left = epsilon - moves / scale
    if left < 0:
        return 1.0
    if task.calibration == PAPER:  # without a cut: the eigenvalue may be overstated by one row
        return float(laplace.sf(offset / scale)) + wishart_draw(task, degrees, floor - moves, left)
    below = float(laplace.cdf(offset / scale))
    return (below - float(laplace.cdf((offset - moves) / scale))) / below + wishart_draw(task, degrees, floor, left)
