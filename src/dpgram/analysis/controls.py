"""``controls``: how one coefficient moves as groups of controls enter a regression, from one release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dpgram.analysis.compare import Comparison
from dpgram.analysis.fit import Fit
from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.controls import Moved, changes, contributions
from dpgram.regression.channel import channel
from dpgram.regression.design import Target, assemble, design, encoded_parts, feature_places
from dpgram.regression.formula import is_formula
from dpgram.report.controls import controls_summary
from dpgram.report.figures import draw_controls
from dpgram.report.summary import Summarised, Summary, cautions, data_frame, origin, rows_that_counted
from dpgram.terms.schema import INTERCEPT, Schema

PARTS = ("steps", "contributions")


@dataclass(frozen=True)
class ControlStep:
    """The coefficient in one regression of the sequence.

    Attributes
    ----------
    name : str
        Name of the group that was added. The first step has none, and is called "no controls" or by its features.
    added : tuple of str
        The features that were added.
    coefficient, se, lower, upper : float
        The coefficient with its standard error and confidence interval, as ``regress`` gives them.
    change : float or None
        Change from the step before. None for the first step.
    change_se, change_lower, change_upper : float or None
        Standard error and confidence interval of the change.
    r_squared : float or None
        R-squared of the regression.
    """

    name: str
    added: tuple[str, ...]
    coefficient: float
    se: float
    lower: float
    upper: float
    change: float | None
    change_se: float | None
    change_lower: float | None
    change_upper: float | None
    r_squared: float | None


@dataclass(frozen=True)
class Contribution:
    """What one group of controls adds to the whole change of the coefficient, whatever the order of the groups.

    Attributes
    ----------
    name : str
        Name of the group.
    amount : float
        How far the group moves the coefficient. The amounts of all groups add up to the last coefficient minus the first one.
    se, lower, upper : float
        Standard error and confidence interval of the amount.
    """

    name: str
    amount: float
    se: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False)
class Controls(Summarised):
    """How one coefficient moves as groups of controls enter a regression.

    ``dpgram.controls`` makes it from a release. It prints as a table.

    Attributes
    ----------
    target : str
        Name of the target.
    coefficient : str
        Name of the coefficient.
    steps : tuple of ControlStep
        The coefficient in each regression, from the one without controls to the one with all.
    contributions : tuple of Contribution
        What each group adds, by the decomposition of Gelbach (2016).
    fits : tuple of Fit
        The regressions.

    Examples
    --------
    >>> import numpy as np
    >>> import dpgram
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 20_000)
    >>> table = {"age": age, "weight": 60 + 0.2 * age, "pressure": 80 + 0.5 * age}
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 40, 100), dpgram.Numeric("pressure", 50, 150)]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> [step.name for step in dpgram.controls(made, "pressure", "weight", [["age"]]).steps]
    ['no controls', 'age']
    """

    target: str
    coefficient: str
    steps: tuple[ControlStep, ...]
    contributions: tuple[Contribution, ...]
    fits: tuple[Fit, ...]

    def summary(self) -> Summary:
        """Print the steps and the contributions of the groups as tables.

        Returns
        -------
        Summary
            The tables. They print as text, and as HTML in a notebook.
        """
        return controls_summary(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the steps and contributions as plain data, ready for JSON.

        Returns
        -------
        dict
            ``steps`` and ``contributions`` as lists, the budget, and notes. Infinite ends of intervals are None.
        """
        fit = self.fits[-1]
        release = fit.release
        return {
            "target": self.target,
            "coefficient": self.coefficient,
            "confidence": fit.confidence,
            "steps": [_plain(step) for step in self.steps],
            "contributions": [_plain(one) for one in self.contributions],
            **origin(release),
            **rows_that_counted(Evidence.of(release)),
            "private": release.private,
            "notes": cautions(release),
        }

    def to_frame(self, part: str = "steps") -> Any:
        """Return the steps, or the contributions, as a pandas data frame.

        Parameters
        ----------
        part : {"steps", "contributions"}
            Which of the two.

        Returns
        -------
        pandas.DataFrame
            One row per step or group, indexed by its name.

        Raises
        ------
        ModelError
            If there is no such part.
        MissingExtraError
            If pandas is not installed.
        """
        if part not in PARTS:
            raise ModelError(f'part is {part!r} and must be "steps" or "contributions".')
        listed = self.steps if part == "steps" else self.contributions
        return data_frame([{k: v for k, v in asdict(one).items() if k != "added"} for one in listed], index="name")

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the tables in LaTeX. The document needs the package booktabs.

        Parameters
        ----------
        caption : str, optional
            Caption of the table. With a caption or a label it is a floating table.
        label : str, optional
            Label to refer to the table.

        Returns
        -------
        str
            LaTeX text, with all names escaped.
        """
        return self.summary().to_latex(caption=caption, label=label)

    def to_markdown(self) -> str:
        """Return the tables in Markdown.

        Returns
        -------
        str
            Markdown text with pipe tables, with all names escaped.
        """
        return self.summary().to_markdown()

    def compare(self) -> Comparison:
        """Put the regressions side by side, with all their coefficients.

        Returns
        -------
        Comparison
            The regressions, named by their steps. Its ``to_latex`` is a table for a paper.
        """
        return Comparison(
            {f"({k}) {step.name}": fit for k, (step, fit) in enumerate(zip(self.steps, self.fits, strict=True), 1)}
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the coefficient with its confidence interval at each step.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. By default on a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return draw_controls(self.to_dict(), ax)


Groups = Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]]


def controls(
    release: GramRelease,
    target: Target,
    coefficient: str,
    groups: Groups,
    *,
    features: Sequence[str] = (),
    intervals: str = "auto",
    confidence: float = 0.95,
    intercept: bool | None = None,
    design_effect: float | None = None,
) -> Controls:
    """Show how one coefficient moves as groups of controls enter a regression.

    It fits a sequence of regressions from one release, and each has one group of controls more than the one before. It also computes how
    much each group moves the coefficient, by the decomposition of Gelbach (2016). That part does not depend on the order of the groups.
    All standard errors include the privacy noise. It costs no budget.

    Parameters
    ----------
    release : GramRelease
        The release, from ``load`` or ``release``.
    target : str or dict
        The column to explain, as in ``regress``. A formula is not possible here.
    coefficient : str
        The feature whose coefficient is followed. Of a categorical column, name one level, such as "carrier[AA]".
    groups : list, or dict of lists
        The groups of controls in the order in which they enter. Each is the name of a column or a list of names. The keys of a dict are
        the names of the groups.
    features : sequence of str
        Features that are in every regression.
    intervals : {"auto", "wald", "fieller", "bootstrap"}
        Method of the confidence intervals of the coefficients, as in ``regress``. Those of changes and contributions are always Wald
        intervals.
    confidence : float
        Confidence level of the intervals.
    intercept : bool, optional
        Whether to fit an intercept. By default there is one if the release has one.
    design_effect : float, optional
        Factor by which units and weights increase the sampling variance, as in ``regress``.

    Returns
    -------
    Controls
        The coefficient at each step, the changes, and the contribution of each group.

    Raises
    ------
    UnknownColumnError
        If the release has no such column.
    ModelError
        If there is no group, or a feature is named twice, or the regressions cannot be fitted. The message says why.

    Examples
    --------
    >>> import numpy as np
    >>> import dpgram
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, 20_000)
    >>> table = {"age": age, "weight": 60 + 0.2 * age, "pressure": 80 + 0.5 * age}
    >>> columns = [dpgram.Numeric("age", 0, 100), dpgram.Numeric("weight", 40, 100), dpgram.Numeric("pressure", 50, 150)]
    >>> schema = dpgram.Schema(unit="person", columns=columns)
    >>> made = dpgram.release(table, schema, epsilon=2.0, delta=1e-6, mechanism="gaussian-noise")
    >>> found = dpgram.controls(made, "pressure", "weight", {"how old": ["age"]})
    >>> [one.name for one in found.contributions]
    ['how old']
    """
    evidence = Evidence.of(release).assuming(design_effect)
    schema = evidence.schema
    if isinstance(target, str) and is_formula(target) and target not in (*schema.encoded_names, *schema.all_names):
        raise ModelError("the target is a formula, but controls needs the name of a column. Name the features in groups.")
    named = _named_groups(groups)
    first = [_single(schema, coefficient), *_listed(features, "features")]
    kept, fits = list(first), []
    for added in ([], *named.values()):
        kept += added
        asked = design(schema, target, kept, intercept)
        options: dict[str, Any] = {"intervals": intervals, "confidence": confidence, "design_effect": design_effect}
        fits.append(Fit(release, asked, estimator="debiased", **options))
    place = int(fits[0].names[0] == INTERCEPT)
    seen = [fit.channel for fit in fits]
    start = "no controls" if len(first) == 1 else ", ".join(first[1:])
    moved = changes(evidence, seen, place, fits[0].confidence)
    names, added_features = (start, *named), ((), *map(tuple, named.values()))
    steps = tuple(
        _step(name, added, fit, place, _at(moved, k - 1) if k else (None,) * 4)
        for k, (name, added, fit) in enumerate(zip(names, added_features, fits, strict=True))
    )
    parts = _parts(evidence, schema, fits, named, place, fits[0].confidence)
    listed = tuple(Contribution(name, *_at(parts, k)) for k, name in enumerate(named))  # type: ignore[arg-type]
    return Controls(fits[0].target, fits[0].names[place], steps, listed, tuple(fits))


def _parts(
    evidence: Evidence, schema: Schema, fits: Sequence[Fit], named: Mapping[str, Sequence[str]], place: int, confidence: float
) -> Moved:
    """What each group adds, from the short regression to the long one."""
    short, long = fits[0], fits[-1]
    base = encoded_parts(schema, (schema.places[name][0] for name in short.names[place:]))
    aside = {
        j: channel(evidence, assemble(schema, encoded_parts(schema, [schema.places[name][0]])[0], base, bool(place)))
        for j, name in enumerate(long.names)
        if j >= len(short.names)
    }
    groups, next_place = [], len(short.names)
    for names in named.values():
        many = len(feature_places(schema, names, []))
        groups.append([(j, aside[j]) for j in range(next_place, next_place + many)])
        next_place += many
    return contributions(evidence, (short.channel, long.channel), place, groups, confidence)


def _step(name: str, added: tuple[str, ...], fit: Fit, place: int, change: tuple[float | None, ...]) -> ControlStep:
    lower, upper = fit.ends()
    moved, moved_se, moved_lower, moved_upper = change
    return ControlStep(
        name,
        added,
        coefficient=float(fit.coefficients[place]),
        se=float(fit.uncertainty.se[place]),
        lower=float(lower[place]),
        upper=float(upper[place]),
        change=moved,
        change_se=moved_se,
        change_lower=moved_lower,
        change_upper=moved_upper,
        r_squared=fit.rsquared,
    )


def _at(moved: Moved, k: int) -> tuple[float | None, ...]:
    return float(moved.values[k]), float(moved.se[k]), float(moved.lower[k]), float(moved.upper[k])


def _named_groups(groups: Groups) -> dict[str, list[str]]:
    """The groups by name, in order."""
    if isinstance(groups, str) or not isinstance(groups, Mapping | Iterable):
        raise ModelError(f"groups is {groups!r} and must be a list of groups, such as [['age'], ['region', 'sex']].")
    if isinstance(groups, Mapping):
        named = {str(name): _listed(names, f"the group {name!r}") for name, names in groups.items()}
    else:
        listed = [_listed(names, "a group") for names in groups]
        named = {", ".join(map(str, names)): names for names in listed}
        if len(named) < len(listed):
            raise ModelError("two groups of controls are the same. Name each feature once.")
    if not named:
        raise ModelError("there is no group of controls. Name at least one, such as [['age']].")
    for name, names in named.items():
        if not names:
            raise ModelError(f"the group {name!r} has no features. Name at least one.")
    return named


def _listed(names: str | Sequence[str], what: str) -> list[str]:
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise ModelError(f"{what} is {names!r} and must be a list of names, such as ['age'].")
    return list(names)


def _single(schema: Schema, name: str) -> str:
    """The feature, which must have one coefficient. That of a number comes with the indicator of its missing cells."""
    if isinstance(name, str) and name not in schema.encoded_names and len(places := schema.places.get(name, ())) > 1:
        levels = ", ".join(schema.encoded_names[j] for j in places)
        raise ModelError(f"{name!r} has several coefficients, but one can be followed at a time. Name one of {levels}.")
    return name


def _plain(one: ControlStep | Contribution) -> dict[str, Any]:
    """Plain data: infinite ends are None."""
    infinite = (float("inf"), float("-inf"))
    return {
        key: list(value) if isinstance(value, tuple) else None if value in infinite else value
        for key, value in asdict(one).items()
    }
