"""What is measured on releases with a known truth, and how it is averaged.

Coefficients of one release share its noise, so a release is the unit: the Monte-Carlo standard error of a coverage comes from the
releases' own shares, not from the number of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence
from dpgram.inference.bootstrap import bootstrap
from dpgram.inference.goodness import goodness
from dpgram.inference.intervals import Intervals, automatic, quantile, uncertainty
from dpgram.regression.channel import Channel, channel
from dpgram.regression.design import Design
from dpgram.regression.fit import debiased, shrunk, solve

Array = np.ndarray

CONFIDENCE = 0.95
BOOTSTRAP_DRAWS = 200


@dataclass(frozen=True, eq=False)
class Truth:
    """What the intervals of one regression should contain."""

    coefficients: Array
    variance: float | None = None  # of the errors, in the label's own units
    r_squared: float | None = None


@dataclass(frozen=True, eq=False)
class Seen:
    """One release's intervals against the truth."""

    covered: Array  # (p,) an unbounded interval covers
    bounded: Array
    width: Array
    naive: Array  # (p,) whether an interval that ignores the privacy noise would have covered
    error: Array  # debiased less true
    shrunk_error: float
    debiased_error: float
    variance_covered: float  # nan where there is no truth
    r_squared_covered: float

    def of(self, places: list[int]) -> Seen:
        """Of some of the coefficients alone."""
        parts = {name: getattr(self, name)[places] for name in ("covered", "bounded", "width", "naive", "error")}
        return replace(self, **parts)


@dataclass(frozen=True)
class Row:
    """One line of the results. Shares are of coefficients, averaged over releases; nan where there is nothing to average."""

    setting: str
    rows: int
    epsilon: float
    others: int  # labels among the features; of tables with rare levels 1 for those and 0 for all other coefficients
    mechanism: str
    method: str
    releases: int
    coefficients: int
    coverage: float
    coverage_se: float
    not_identified: float
    coverage_identified: float
    coverage_identified_se: float
    worst_coefficient: float  # the smallest coverage of any one coefficient, where identified
    naive: float  # what intervals that ignore the privacy noise cover
    median_width: float
    median_error: float
    error_shrunk: float  # mean l2 error
    error_debiased: float
    variance_coverage: float
    r_squared_coverage: float


KEY = ("setting", "rows", "epsilon", "others", "mechanism", "method")
TYPES = {field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(Row)}


def look(release: GramRelease, design: Design, truth: Truth, method: str, seed: int = 0) -> Seen:
    """The intervals of ``method`` ("auto" or "bootstrap") from one release, against the truth."""
    seen = channel(Evidence.of(release), design)
    intervals = _intervals(release, design, seen, method, seed)
    want = truth.coefficients
    estimate = debiased(seen)
    reach = quantile(CONFIDENCE, np.inf) * np.sqrt(np.diag(uncertainty(seen).sampling))
    fit = goodness(Evidence.of(release), design, CONFIDENCE)
    ratio = fit.r_squared_interval if fit.r_squared is not None else (-np.inf, np.inf)
    return Seen(
        covered=(intervals.lower <= want) & (want <= intervals.upper),
        bounded=intervals.identified,
        width=intervals.upper - intervals.lower,
        naive=np.abs(estimate - want) <= reach,
        error=estimate - want,
        shrunk_error=float(np.linalg.norm(shrunk(channel(Evidence.of(release), design, together=True)) - want)),
        debiased_error=float(np.linalg.norm(estimate - want)),
        variance_covered=_within(truth.variance, fit.residual_variance_interval),
        r_squared_covered=_within(truth.r_squared, ratio),
    )


def _intervals(release: GramRelease, design: Design, seen: Channel, method: str, seed: int) -> Intervals:
    if method == "bootstrap":
        return bootstrap(Evidence.of(release), design, CONFIDENCE, draws=BOOTSTRAP_DRAWS, seed=seed)
    return automatic(seen, CONFIDENCE)


def _within(value: float | None, ends: tuple[float, float]) -> float:
    return np.nan if value is None else float(ends[0] <= value <= ends[1])


def share(part: Array, whole: Array) -> tuple[float, float]:
    """Sum of ``part`` over sum of ``whole``, one of each per release, and its standard error by linearisation."""
    total = float(whole.sum())
    if total == 0:
        return np.nan, np.nan
    ratio = float(part.sum()) / total
    return ratio, float(np.sqrt(np.sum((part - ratio * whole) ** 2))) / total


def summarise(looks: list[Seen], **key: object) -> Row:
    """The line of one cell."""
    covered, bounded = np.array([s.covered for s in looks]), np.array([s.bounded for s in looks])
    p = covered.shape[1]
    overall, overall_se = share(covered.sum(axis=1), np.full(len(looks), p))
    within, within_se = share((covered & bounded).sum(axis=1), bounded.sum(axis=1))
    enough = bounded.sum(axis=0) >= len(looks) / 2
    each = (covered & bounded).sum(axis=0)[enough] / bounded.sum(axis=0)[enough]
    width, error = np.array([s.width for s in looks]), np.array([s.error for s in looks])
    return Row(
        **key,  # type: ignore[arg-type]
        releases=len(looks),
        coefficients=p,
        coverage=overall,
        coverage_se=overall_se,
        not_identified=float(1 - bounded.mean()),
        coverage_identified=within,
        coverage_identified_se=within_se,
        worst_coefficient=float(each.min()) if enough.any() else np.nan,
        naive=float(np.mean([s.naive for s in looks])),
        median_width=float(np.median(width[bounded])) if bounded.any() else np.nan,
        median_error=float(np.median(np.abs(error))),
        error_shrunk=float(np.mean([s.shrunk_error for s in looks])),
        error_debiased=float(np.mean([s.debiased_error for s in looks])),
        variance_coverage=float(np.mean([s.variance_covered for s in looks])),
        r_squared_coverage=float(np.mean([s.r_squared_covered for s in looks])),
    )


def r_squared(gram: Array, design: Design) -> float:
    """R^2 of the regression on a Gram without noise, about the mean."""
    scaled = np.linalg.solve(design.to_own_units, solve(gram, design) - design.offset)
    u = design.label - design.regressors @ scaled
    about = design.label.copy()
    about[0] -= gram[0] @ design.label / gram[0, 0]
    return 1 - float(u @ gram @ u) / float(about @ gram @ about)
