"""Which features to keep, by a criterion that counts the privacy noise. Post-processing: costs no budget.

What a submodel S of p coefficients is worth is its squared error on rows to come, summed over n of them,

    risk(S) = n sigma_S^2 + tr G_S Cov(b_S),

sigma_S^2 the variance of its errors and b_S its debiased coefficients. Cov has two sources: rows give D sigma_S^2 G_S^-1 and with it
p D sigma_S^2, where D is the design effect (1 for independent rows), the privacy noise gives ``tr G_S Noise_S``. n sigma_S^2 is the sum
of squared errors within the table plus p D sigma_S^2, and ``error_squares`` estimates that sum without bias, the squares that noise
seems to explain having been taken off it already. So

    error_squares(S) + 2 p D sigma_S^2 + tr G_S Noise_S

is unbiased for the risk of one given S: Mallows' Cp with the noise added, and once only. (In terms of the squares that a feature seems
to explain, which the noise makes larger, the noise counts twice, like the rows: a feature enters when its estimate is more than sqrt(2)
of its whole standard errors from zero.) The smallest of many is too small, because the search looks for it. The best k of q groups are
charged for that, as by Foster and Stine (1999): 2 log(q/1) + ... + 2 log(q/k) times the risk that one coefficient adds on average,
(p D sigma_S^2 + tr G_S Noise_S) / p. It is the price at which about the same share of what is chosen is false, however large q is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.regression.channel import channel
from dpgram.regression.design import Design, Target, design

Array = np.ndarray

METHODS = ("forward", "best")
MOST_GROUPS = 15  # of an exhaustive search: 32 768 submodels
CHUNK = 4096  # submodels at once: bounds the memory

Choice = tuple[int, ...]  # groups by their places among all groups, in order


@dataclass(frozen=True)
class Step:
    """One set of features in a selection: the next one with "forward", or the best one of its size with "best".

    Attributes
    ----------
    features : tuple of str
        Names of the features.
    criterion : float
        Expected squared error on as many new rows, in the target's own units squared. Smaller is better. It can be negative if the
        noise is large.
    change : float
        Change of the criterion from the step before. It is 0 for the first step.
    """

    features: tuple[str, ...]
    criterion: float  # expected squared error on as many new rows, in the target's own units; may be negative where noise rules
    change: float  # against the step before; 0 at the first


@dataclass(frozen=True)
class Selection:
    """The features to keep, and how they were found.

    ``dpgram.select`` makes it from a release.

    Attributes
    ----------
    target : str
        Name of the target.
    chosen : tuple of str
        Names of the features to keep. Pass them to ``dpgram.regress``.
    steps : tuple of Step
        The sets of features that were compared, each with its criterion.
    method : str
        "forward" or "best".

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.select(made, "pressure")
    >>> dpgram.regress(made, "pressure", found.chosen).names
    ('(intercept)', 'age')
    """

    target: str
    chosen: tuple[str, ...]
    steps: tuple[Step, ...]
    method: str


def select(
    release: GramRelease,
    target: Target,
    features: Sequence[str] | None = None,
    *,
    method: str = "forward",
    largest: int | None = None,
    intercept: bool | None = None,
) -> Selection:
    """Choose the features of a regression from a release.

    A feature is kept if it reduces the expected prediction error. The criterion is like Mallows' Cp, and it also counts the privacy noise
    and the number of features that were searched. It costs no budget.

    As after any search, the coefficients of the chosen features tend to be too large in absolute value, and their intervals are too narrow.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str or dict
        The column to explain, as in ``regress``. A formula is not possible here.
    features : sequence of str, optional
        The features to choose from. A categorical column is kept or left out as a whole. By default all columns, as in ``regress``.
    method : {"forward", "best"}
        "forward" adds the best feature until the criterion no longer falls. "best" compares all subsets, of up to 15 features.
    largest : int, optional
        How many features can be chosen at most. A categorical column counts as one.
    intercept : bool, optional
        Whether to fit an intercept. By default there is one if the release has one.

    Returns
    -------
    Selection
        The features to keep in ``chosen``, and all steps. ``chosen`` is empty if no feature improves on the mean of the target.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    ModelError
        If the method is not known, or if there are too many features for "best".

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100), dpgram.Numeric("pressure", 50, 250)])
    >>> table = {"age": [30, 50, 70] * 10_000, "pressure": [105, 115, 125] * 10_000}
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> dpgram.select(made, "pressure").chosen
    ('age',)
    """
    evidence = Evidence.of(release)
    if method not in METHODS:
        raise ModelError(f"method is {method!r} and must be one of {', '.join(METHODS)}.")
    plan = design(release.schema, target, features, intercept)
    groups = _groups(plan, features)
    if largest is not None and (isinstance(largest, bool) or not isinstance(largest, int) or largest < 0):
        raise ModelError(f"largest is {largest!r} and must be a whole number of at least 0, or None for no limit.")
    most = len(groups) if largest is None else min(largest, len(groups))
    if method == "best" and len(groups) > MOST_GROUPS:
        raise ModelError(
            f"there are {len(groups)} features to choose from, but method='best' compares all subsets of at most {MOST_GROUPS}. Use "
            f"method='forward', or name fewer features."
        )
    constant = release.schema.intercept if intercept is None else intercept
    judge = _Judge(evidence, plan, tuple(places for _, places in groups), constant)
    path = (_forward if method == "forward" else _best)(judge, most)
    names = [name for name, _ in groups]
    steps, last = [], path[0][1]
    for choice, criterion in path:
        steps.append(Step(tuple(names[g] for g in choice), criterion, criterion - last))
        last = criterion
    chosen = min(steps, key=lambda step: step.criterion)  # of equals the first, which has fewest features
    return Selection(plan.target, chosen.features, tuple(steps), method)


@dataclass(frozen=True, eq=False)
class Risks:
    """For each of some submodels, in scaled units of the label."""

    error_squares: Array  # (k,) what is left over, unbiased
    variance: Array  # (k,) of the errors, floored at zero, times the design effect
    noise: Array  # (k,) what the privacy noise in the coefficients adds to the squared errors of prediction


def risks(evidence: Evidence, plan: Design, places: Array) -> Risks:
    """The risks of the submodels that keep the coefficients ``places`` (k, p) of ``plan``, no two alike in a row.

    An exhaustive search looks at tens of thousands of submodels: those of one size are one stack of channels."""
    parts = []
    for start in range(0, len(places), CHUNK):
        seen = channel(evidence, plan.submodels(places[start : start + CHUNK]))
        spent = seen.believed_noise + seen.spread * (seen.weight * seen.estimate) ** 2
        unit = np.square(seen.label_scale)
        parts.append((unit * seen.error_squares(), unit * seen.sampling_variance, unit * np.sum(spent / seen.per_row, axis=-1)))
    return Risks(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class _Judge:
    """The criterion of any choice of groups."""

    evidence: Evidence
    plan: Design
    groups: tuple[tuple[int, ...], ...]  # places of each group's coefficients
    constant: bool

    def criteria(self, choices: Sequence[Choice]) -> Array:
        """For each choice, in own units squared; submodels of one size are computed at once."""
        criteria = np.empty(len(choices))
        by_size: dict[int, list[int]] = {}
        places = [self._places(choice) for choice in choices]
        for j, kept in enumerate(places):
            by_size.setdefault(len(kept), []).append(j)
        for size, which in by_size.items():
            of = risks(self.evidence, self.plan, np.array([places[j] for j in which], dtype=int).reshape(len(which), size))
            added = size * of.variance + of.noise
            searched = np.array([self._search(len(choices[j])) for j in which])
            criteria[which] = of.error_squares + size * of.variance + added + searched * added / max(size, 1)
        return self.plan.label_unit**2 * criteria

    def best(self, choices: Iterable[Choice]) -> tuple[Choice, float] | None:
        """The choice with the smallest criterion, of equals the first, of those that the release can carry; None where it can none."""
        alone = self.evidence.alone
        most = alone.law.most_coefficients(
            len(alone.matrix)
        )  # that the release can carry: a sketch of few rows cannot carry many
        tried = [choice for choice in choices if not choice or len(self._places(choice)) <= most]
        if not tried:
            return None
        criteria = self.criteria(tried)
        place = int(np.argmin(criteria))
        return tried[place], float(criteria[place])

    def _search(self, count: int) -> float:
        """What the best ``count`` of all groups are charged for having been looked for."""
        return float(2 * np.sum(np.log(len(self.groups) / np.arange(1, count + 1))))

    def _places(self, choice: Choice) -> list[int]:
        return [0] * self.constant + [place for g in choice for place in self.groups[g]]


def _forward(judge: _Judge, most: int) -> list[tuple[Choice, float]]:
    """Choices, each with one group more, as long as the criterion falls."""
    path: list[tuple[Choice, float]] = [((), float(judge.criteria([()])[0]))]
    while len(path) <= most:
        taken, last = path[-1]
        best = judge.best((*taken, g) for g in range(len(judge.groups)) if g not in taken)
        if best is None or best[1] >= last:
            break
        path.append(best)
    return path


def _best(judge: _Judge, most: int) -> list[tuple[Choice, float]]:
    """The best choice of each number of groups, from none up."""
    sizes = (judge.best(combinations(range(len(judge.groups)), count)) for count in range(most + 1))
    return [best for best in sizes if best is not None]


def _groups(plan: Design, features: Iterable[str] | None) -> list[tuple[str, tuple[int, ...]]]:
    """What moves together: the coefficients of one declared column, or a single level where it was named as such."""
    named = set(features or ())
    groups: list[tuple[str, tuple[int, ...]]] = []
    for column, places in plan.groups:
        if features is None or column in named:
            groups.append((column, places))
        else:
            groups += [(plan.names[place], (place,)) for place in places]
    return groups
