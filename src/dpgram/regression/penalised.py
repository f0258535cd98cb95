"""Ridge, lasso and elastic net from the evidence of a release, by scikit-learn's solvers where there is an iteration.

Penalties mean what they mean in scikit-learn, in the columns' own units, and the intercept is never penalised: with no noise
the coefficients are those of scikit-learn on the clamped rows. Left out, the penalty comes from the public size of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Real

import numpy as np

from dpgram.errors import MissingExtraError, ModelError
from dpgram.evidence.evidence import Evidence, View
from dpgram.regression.channel import orthonormal
from dpgram.regression.design import Design
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray

MAX_ITERATIONS, TOLERANCE, TINY = 10_000, 1e-6, 1e-300
SMALLEST_OF_PATH = 1e-4  # of the largest penalty


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Sums of products of one regression in own units, about the means where there is an intercept. Positive definite."""

    design: Design
    features: Array  # (q, q), without the intercept
    cross: Array  # (q,)
    square: float
    scaled: Array  # (p, p + 1): features and label in scaled units, intercept included
    half: Array  # (q,) half-ranges of the features, which turn own units into scaled ones
    rows: float

    def coefficients(self, slopes: Array) -> Array:
        """All coefficients in own units, the intercept included, from the slopes in own units."""
        if len(slopes) == len(self.design.names):
            return slopes
        in_scale = slopes * self.half / self.design.label_unit
        first = (self.scaled[0, -1] - self.scaled[0, 1:-1] @ in_scale) / self.scaled[0, 0]
        return self.design.to_own_units @ np.concatenate([[first], in_scale]) + self.design.offset

    def pseudo_rows(self) -> tuple[Array, Array]:
        """As many rows as columns, with the same sums of products: a table for solvers that want one."""
        joint = np.block([[self.features, self.cross[:, None]], [self.cross[None, :], np.array([[self.square]])]])
        size = np.sqrt(np.diag(joint))
        values, vectors = np.linalg.eigh(joint / size[:, None] / size)
        rows = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size
        return np.asfortranarray(rows[:, :-1]), rows[:, -1]


def normal_equations(evidence: Evidence, design: Design) -> NormalEquations:
    """The regression's sums of products from the repaired matrix."""
    joint = np.column_stack([design.regressors, design.label])
    scaled = joint.T @ evidence.repaired @ joint
    constant = design.names[0] == INTERCEPT
    inner = scaled
    if constant:  # a Schur complement: definite like the whole
        inner = scaled[1:, 1:] - np.outer(scaled[0, 1:], scaled[0, 1:]) / scaled[0, 0]
    half = design.label_unit / np.diag(design.to_own_units)[int(constant) :]
    own = np.concatenate([half, [design.label_unit]])
    inner = own[:, None] * (inner + inner.T) / 2 * own
    return NormalEquations(design, inner[:-1, :-1], inner[:-1, -1], float(inner[-1, -1]), scaled[:-1], half, evidence.rows)


def ridge(evidence: Evidence, design: Design, penalty: float | None = None) -> Array:
    """Ridge coefficients. ``penalty`` as scikit-learn's alpha, in own units.

    Left out, the features' matrix gets, in scaled units, what its smallest eigenvalue lacks to the edge of the noise, 2 sd sqrt(p)
    (the rule of AdaSSP, Wang 2018): nothing where the data stand well above the noise. Noise in whitened coordinates has its edge there, so
    there the rule is applied: what the penalty draws towards is the regression that earlier rounds knew."""
    if penalty is None:
        return _lifted(evidence, design)
    check_penalty("penalty", penalty)
    of = normal_equations(evidence, design)
    return of.coefficients(ridge_slopes(of, penalty))


def _lifted(evidence: Evidence, design: Design) -> Array:
    view = evidence.lifted
    joint, unit = np.column_stack([design.regressors, design.label]), np.eye(len(view.matrix))

    def block(matrix: Array) -> Array:
        return joint.T @ matrix @ joint if view.turn is None else orthonormal(design, View(matrix, view.law, view.turn)).block

    seen = block(view.matrix - view.law.shift * unit)
    features, same = seen[:-1, :-1], np.eye(len(seen) - 1)
    edge = 2 * view.law.sd_off_diagonal * np.sqrt(len(features))
    added = max(0.0, edge - max(0.0, float(np.linalg.eigvalsh(features)[0])))  # what the smallest eigenvalue lacks to the edge
    lifted = features + added * same
    if np.linalg.eigvalsh(lifted)[0] <= 0:  # noise beyond its usual edge
        lifted = block(evidence.repaired_there[0])[:-1, :-1] + added * same
    solution = np.linalg.solve(lifted, seen[:-1, -1])
    if view.turn is None:
        return design.to_own_units @ solution + design.offset
    basis = orthonormal(design, view)
    return basis.back(design, (basis.along + basis.label_scale * solution)[:, None])[:, 0] + design.offset


def ridge_slopes(of: NormalEquations, penalty: float) -> Array:
    """Slopes in own units, solved where all features have the same size."""
    scale = 1 / np.sqrt(np.maximum(np.diag(of.features), TINY))
    lhs = scale[:, None] * (of.features + penalty * np.eye(len(scale))) * scale
    return scale * np.linalg.solve(lhs, scale * of.cross)


def elastic_net(
    evidence: Evidence,
    design: Design,
    penalty: float | None = None,
    l1_ratio: float = 1.0,
    *,
    max_iter: int = MAX_ITERATIONS,
    tol: float = TOLERANCE,
) -> tuple[Array, int]:
    """Coefficients of scikit-learn's ElasticNet with alpha = ``penalty``, and the iterations of its solver.

    The lasso where ``l1_ratio`` is 1. Left out, the penalty is ``noise_penalty``."""
    of = normal_equations(evidence, design)
    alpha = noise_penalty(evidence, of) if penalty is None else check_penalty("penalty", penalty)
    check_solver()
    from sklearn.linear_model import ElasticNet

    check_penalty("l1_ratio", l1_ratio, most=1.0)
    if alpha == 0 or not len(of.cross):  # no penalty: the solver's steps would be many and say so
        return of.coefficients(ridge_slopes(of, 0.0)), 1
    rows, label = of.pseudo_rows()
    # The solver's loss is a mean over rows, so penalties are scaled by (rows) / (pseudo-rows).
    model = ElasticNet(alpha=alpha * of.rows / len(rows), l1_ratio=l1_ratio, fit_intercept=False, max_iter=max_iter, tol=tol)
    model.fit(rows, label)
    return of.coefficients(np.reshape(model.coef_, -1)), int(model.n_iter_)


def penalty_path(evidence: Evidence, design: Design, *, l1_ratio: float = 1.0, penalties: int = 60) -> tuple[Array, Array]:
    """Penalties (k,) from the largest, where all slopes are zero, down; and the lasso's (or an elastic net's) coefficients (k, p)."""
    check_solver()
    from sklearn.linear_model import enet_path

    if not check_penalty("l1_ratio", l1_ratio, most=1.0) > 0:
        raise ModelError(
            "l1_ratio is 0, but a path needs a penalty on absolute values. Use a larger l1_ratio, or the estimator ridge."
        )
    of = normal_equations(evidence, design)
    if not len(of.cross):
        raise ModelError("a path needs a feature besides the intercept. Name at least one.")
    rows, label = of.pseudo_rows()
    largest = float(np.abs(rows.T @ label).max()) / len(rows) / l1_ratio  # where the first slope leaves zero
    alphas = max(largest, np.finfo(float).tiny) * np.geomspace(1.0, SMALLEST_OF_PATH, penalties)
    _, slopes, _ = enet_path(rows, label, l1_ratio=l1_ratio, alphas=alphas, max_iter=MAX_ITERATIONS)
    return alphas * len(rows) / of.rows, np.array([of.coefficients(column) for column in slopes.T])


def noise_penalty(evidence: Evidence, of: NormalEquations) -> float:
    """The lasso penalty at which pure noise gives no coefficient: the largest cross product that noise alone is likely to make.

    Cross products carry noise of sd t |u| in scaled units, u the residual's combination of columns, at most about
    sqrt(2 log(2 p)) sds over p features; the sampling of rows adds sigma sqrt(n), times the root of the design effect."""
    q = max(len(of.cross), 1)
    varied = evidence.design_effect * max(of.square, 0.0)
    sampling = np.sqrt(varied * np.median(np.diag(of.features)) / of.rows) if len(of.cross) else 0.0
    view = evidence.plain
    lengths, left = of.half, 1.0
    if view.turn is not None:  # each feature, and what is left of the label, has a length of its own there
        regressors, label = view.turned(of.design.regressors), view.turned(of.design.label)
        lengths = of.half * np.linalg.norm(regressors[:, len(of.design.names) - len(of.half) :], axis=0)
        left = float(np.linalg.norm(label - regressors @ np.linalg.lstsq(regressors, label)[0]))
    typical = (float(np.median(lengths)) if len(lengths) else 1.0) * left
    noise = of.design.label_unit * np.sqrt(2.0) * view.law.sd_off_diagonal * typical
    return float(np.sqrt(2 * np.log(2 * q)) * np.hypot(noise, sampling) / of.rows)


def check_penalty(name: str, value: object, most: float = np.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= most or not np.isfinite(float(value)):
        at_most = "" if most == np.inf else f" and at most {most:g}"
        raise ModelError(f"{name} is {value!r} and must be a finite number of at least 0{at_most}.")
    return float(value)


def check_solver(purpose: str = "the lasso and the elastic net") -> None:
    if find_spec("sklearn") is None:
        raise MissingExtraError(package="scikit-learn", extra="sklearn", purpose=purpose)
