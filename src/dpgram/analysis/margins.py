"""Marginal effects: how the expected target changes with one column, where products and powers of it are in the model too.

An effect is a combination of coefficients. Its weights follow from what the schema declares (``terms/derived.py``) and from the values of
the other columns, so its standard error is exact given those values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from dpgram.errors import ModelError, SchemaError, UnknownColumnError, suggestion
from dpgram.evidence.evidence import Evidence
from dpgram.inference.intervals import check_confidence
from dpgram.regression.design import level_names
from dpgram.regression.moments import moments
from dpgram.regression.restrictions import Restrictions
from dpgram.report.figures import draw_margins
from dpgram.report.summary import (
    Block,
    Summarised,
    Summary,
    cautions,
    data_frame,
    number,
    origin,
    probability,
    release_facts,
    rows_that_counted,
)
from dpgram.terms.columns import Boolean, Categorical, Column, bounds
from dpgram.terms.dates import days_of, iso_text
from dpgram.terms.derived import Derived, Log, Log1p, Power, Product
from dpgram.terms.schema import Schema

if TYPE_CHECKING:
    from dpgram.analysis.fit import Fit

Array = np.ndarray


@dataclass(frozen=True)
class MarginalEffect:
    """The effect of a column at given values of the others.

    Attributes
    ----------
    name : str
        The column, or one level of it, compared with the reference level.
    at : dict
        The values that were given, by column. The other columns are at their means.
    effect, se : float
        The effect and its standard error.
    z, p_value : float or None
        The test that the effect is zero. None if it is not identified.
    lower, upper : float
        Ends of the confidence interval. They are infinite if the effect is not identified at this budget.
    """

    name: str
    at: dict[str, Any]
    effect: float
    se: float
    z: float | None
    p_value: float | None
    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False)
class MarginalEffects(Summarised):
    """Marginal effects of one column. ``Fit.marginal_effects`` makes it, and it prints as a table.

    Attributes
    ----------
    column : str
        The column.
    effects : tuple of MarginalEffect
        One effect for each combination of given values, and for each level of a category.
    confidence : float
        Confidence level of the intervals.
    fit : Fit
        The regression.
    """

    column: str
    effects: tuple[MarginalEffect, ...]
    confidence: float
    fit: Fit

    def summary(self) -> Summary:
        """Print the effects as a table.

        Returns
        -------
        Summary
            The table. It prints as text, and as HTML in a notebook.
        """
        data, tail = self.to_dict(), (1 - self.confidence) / 2
        given = list(self.effects[0].at)
        rows = [
            [
                e["name"],
                *(str(e["at"][name]) for name in given),
                number(e["effect"]),
                number(e["se"]),
                "" if e["z"] is None else f"{e['z']:.2f}",
                "" if e["p_value"] is None else probability(e["p_value"]),
                "-inf" if e["lower"] is None else number(e["lower"]),
                "inf" if e["upper"] is None else number(e["upper"]),
            ]
            for e in data["effects"]
        ]
        header = ["", *given, "effect", "std err", "z", "P>|z|", f"[{tail:.4g}", f"{1 - tail:.4g}]"]
        return Summary(
            f"Marginal effects of {self.column} on {self.fit.target}", release_facts(data), [Block(header, rows)], data["notes"]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the effects as plain data, ready for JSON.

        Returns
        -------
        dict
            The effects as a list, the budget, and notes. Infinite ends of intervals are None.
        """
        release, infinite = self.fit.release, (float("inf"), float("-inf"))
        effects = [asdict(e) for e in self.effects]
        for e in effects:
            e |= {end: None if e[end] in infinite else e[end] for end in ("lower", "upper")}
            e["at"] = {
                name: value if isinstance(value, bool | int | float | str) else str(value) for name, value in e["at"].items()
            }
        notes = [
            "Columns that are not given are at their means, which count as fixed: their own noise is not in the standard errors."
        ]
        return {
            "column": self.column,
            "target": self.fit.target,
            "confidence": self.confidence,
            "effects": effects,
            **origin(release),
            **rows_that_counted(Evidence.of(release)),
            "private": release.private,
            "notes": [*notes, *cautions(release)],
        }

    def to_frame(self) -> Any:
        """Return the effects as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row per effect, indexed by its name. The given values are columns too.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        return data_frame(
            [{"name": e.name, **e.at, **{k: v for k, v in asdict(e).items() if k not in ("name", "at")}} for e in self.effects],
            index="name",
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the effects with their confidence intervals.

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
        return draw_margins(self.to_dict(), ax)

    def to_latex(self, *, caption: str | None = None, label: str | None = None) -> str:
        """Return the table in LaTeX. The document needs the package booktabs.

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
        """Return the table in Markdown.

        Returns
        -------
        str
            Markdown text with a pipe table, with all names escaped.
        """
        return self.summary().to_markdown()


Point = Mapping[str, Array]
"""Where an effect is taken: a column's number, or 1 and 0 or their means; of a category the share of every level, the reference first."""


def marginal_effects(fit: Fit, column: str, at: Mapping[str, Any] | None, confidence: float) -> MarginalEffects:
    """The effects of ``column`` for every combination of the values in ``at``."""
    confidence = check_confidence(confidence)
    schema = fit.release.schema
    declared = _declared(schema, column)
    places = np.flatnonzero(np.any(fit.design.regressors != 0, axis=1))
    used, sources = {schema.encoded[j].column for j in places}, set().union(*(schema.encoded[j].sources for j in places))
    moving = [d for d in schema.derived if d.name in used and column in (c.name for c in d.parents(schema.by_name))]
    if column not in used and not moving:
        raise ModelError(f"the model does not use column {column!r}. Name one of its features, or fit a model that has it.")
    for one in moving:
        if not isinstance(one, Product | Power | Log | Log1p):
            raise ModelError(
                f"the model has {one.name!r}, which jumps with {column!r}, so there is no marginal effect. Fit a model without it."
            )
    given = _given(schema, at)
    for name in given:
        if name not in sources:
            raise ModelError(
                f"at names column {name!r}, but the model does not use it. Its columns are "
                f"{', '.join(one for one in schema.names if one in sources)}."
            )
    needed = {c.name for d in moving for c in d.parents(schema.by_name)} if moving else set()
    means = _means(fit, sorted(needed - set(given)), declared, moving)
    points, names = [], []
    for values in product(*given.values()):
        chosen = dict(zip(given, values, strict=True))
        point = means | {name: _numbers(schema.by_name[name], value) for name, value in chosen.items()}
        for label, step in _steps(declared):
            moved = np.zeros(len(schema.encoded))
            if column in used:
                _put(schema, moved, column, step)
            for one in moving:
                _put(schema, moved, one.name, _slope(one, schema, column, step, point))
            names.append((label, chosen))
            points.append(moved)
    weights = fit.design.label_unit * np.linalg.solve(fit.design.to_own_units.T, fit.design.regressors.T @ np.array(points).T).T
    effect, se = weights @ fit.channel.own(fit.channel.estimate), fit.uncertainty.of(weights).se
    made = fit.intervals_of(weights, confidence=confidence)
    tested = fit.p_values_of(Restrictions(weights, np.zeros(len(weights)), tuple(label for label, _ in names)))
    effects = [
        _effect(label, chosen, *map(float, (effect[k], se[k], tested[k], made.lower[k], made.upper[k])))
        for k, (label, chosen) in enumerate(names)
    ]
    return MarginalEffects(column, tuple(effects), float(confidence), fit)


def _effect(label: str, at: dict[str, Any], effect: float, se: float, p: float, lower: float, upper: float) -> MarginalEffect:
    known = bool(np.isfinite(lower) and np.isfinite(upper) and se > 0)
    return MarginalEffect(label, at, effect, se, effect / se if known else None, p if known else None, lower, upper)


def _declared(schema: Schema, name: str) -> Column:
    if _named(name) in schema.by_name:
        return schema.by_name[name]
    for derived in schema.derived:
        if derived.name == name:
            of = " and ".join(c.name for c in derived.parents(schema.by_name))
            raise ModelError(f"{name!r} is computed from {of}, and moves with it. Name the declared column.")
    raise UnknownColumnError(name=name, known=schema.names)


def _named(name: object) -> str:
    if not isinstance(name, str):
        raise ModelError(f"the name of a column must be text, such as 'age', but it is {name!r}.")
    return name


def _given(schema: Schema, at: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    """The values of each column in ``at``, as lists."""
    if at is None:
        return {}
    if not isinstance(at, Mapping):
        raise ModelError(f"at is {at!r} and must be a dict of columns and values, such as {{'age': [30, 50]}}.")
    for name in at:
        _declared(schema, name)
    listed = {
        name: list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
        for name, values in at.items()
    }
    for name, values in listed.items():
        if not values:
            raise ModelError(f"the list of values of {name!r} is empty. Name at least one value.")
    return listed


def _numbers(column: Column, value: Any) -> Array:
    """A value of a column, as a point has it."""
    if isinstance(column, Categorical):
        level = str(value)
        if level not in column.levels:
            raise ModelError(
                f"column {column.name!r} has no level {level!r}.{suggestion(level, column.levels)} Its levels are "
                f"{', '.join(column.levels)}."
            )
        return np.array([1.0 * (one == level) for one in column.levels])
    if isinstance(column, Boolean):
        if value not in (True, False, 0, 1):
            raise ModelError(f"column {column.name!r} is {value!r} and must be True or False.")
        return np.array([float(value)])
    if column.kind == "date" and not isinstance(value, Real):
        try:
            days = days_of(iso_text(value, f"column {column.name!r}"))
        except SchemaError as problem:
            raise ModelError(str(problem)) from None
    elif isinstance(value, bool) or not isinstance(value, Real):
        raise ModelError(f"column {column.name!r} is {value!r} and must be a number.")
    else:
        days = float(value)
    lower, upper = bounds(column)
    if not lower <= days <= upper:
        raise ModelError(
            f"column {column.name!r} is {value}, but its bounds are [{column.lower}, {column.upper}]. Choose a value within them."
        )
    return np.array([days])


def _means(fit: Fit, names: list[str], declared: Column, moving: list[Derived]) -> dict[str, Array]:
    """Means of the columns that the effect depends on; the shares of levels of a category."""
    if all(isinstance(one, Product) for one in moving):  # a product changes by its other factor, wherever the column itself is
        names = [name for name in names if name != declared.name]
    if not names:
        return {}
    schema, evidence = fit.release.schema, Evidence.of(fit.release)
    if not evidence.intercept:
        raise ModelError(
            f"the effect depends on {', '.join(names)}, whose means need the intercept column, but the release was made without one. "
            f"Give values with at=."
        )
    found = moments(evidence, names)
    mean = dict(zip(found.names, found.mean, strict=True))
    return {name: _mean(schema.by_name[name], mean) for name in names}


def _mean(column: Column, mean: Mapping[str, float]) -> Array:
    if isinstance(column, Categorical):
        shares = np.clip([mean[name] for name in level_names(column)[1:]], 0.0, 1.0)
        return np.array([max(1 - shares.sum(), 0.0), *shares])
    lower, upper = (0.0, 1.0) if isinstance(column, Boolean) else bounds(column)
    return np.array([min(max(mean[column.name], lower), upper)])


def _steps(column: Column) -> Iterator[tuple[str, Array]]:
    """What an effect is of: one unit of a number, True instead of False, or each level instead of the reference."""
    if not isinstance(column, Categorical):
        yield column.name, np.ones(1)
        return
    for place, name in enumerate(level_names(column)[1:], 1):
        yield name, np.eye(len(column.levels))[place] - np.eye(len(column.levels))[0]


def _slope(derived: Derived, schema: Schema, column: str, step: Array, point: Point) -> Array:
    """How a derived column changes with the step, at the point, in own units: one number for each of its encoded columns."""
    if isinstance(derived, Power):
        return derived.exponent * point[column] ** (derived.exponent - 1) * step
    if isinstance(derived, Log):
        return step / point[column]
    if isinstance(derived, Log1p):
        return step / (1 + point[column])
    assert isinstance(derived, Product)
    sides = []
    for factor, places in derived.factors(schema.by_name):
        values = step if factor.name == column else point[factor.name]
        sides.append(values[list(places)] if places else values)
    return np.outer(*sides).ravel()


def _put(schema: Schema, moved: Array, name: str, values: Array) -> None:
    """Write the changes of a column's encoded columns, in scaled units."""
    declared = schema.by_name.get(name)
    wanted = values[1:] if isinstance(declared, Categorical) else values
    places = [j for j in schema.places[name] if schema.encoded[j].column == name and not schema.encoded[j].absent]
    for j, value in zip(places, wanted, strict=True):
        moved[j] = value / schema.encoded[j].half
