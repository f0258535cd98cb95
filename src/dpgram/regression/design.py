"""Which columns of a release a regression uses, and how its coefficients get back to the columns' own units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np

from dpgram.errors import ModelError, UnknownColumnError, suggestion
from dpgram.terms.columns import DROP_ROW, INDICATOR, MISSING, Boolean, Categorical, Column
from dpgram.terms.derived import Interval, Product
from dpgram.terms.schema import INTERCEPT, Schema

Array = np.ndarray

Weights = Mapping[int, float]
"""A combination of released columns: the weight of each, by its place in the Gram."""

SMALLEST_UNIT = 1e-120  # of a column's half-range, or of the ratio of two


@dataclass(frozen=True, eq=False)
class Design:
    """A regression on a release of d columns, with p coefficients; or a stack of such (``submodels``), one along the first axis.

    ``regressors`` (d, p) and ``label`` (d,) say which combinations of released columns are used: for a Gram S the normal
    equations are ``regressors' S regressors b = regressors' S label``, and ``to_own_units @ b + offset`` are the
    coefficients in the columns' own units."""

    names: tuple[str, ...]  # of the coefficients
    target: str
    columns: tuple[Weights, ...]  # the regressors, then the label
    dim: int  # d
    to_own_units: Array
    offset: Array
    groups: tuple[tuple[str, tuple[int, ...]], ...]  # each declared column among the features: its coefficients' places
    label_unit: float  # one scaled unit of the label, in its own
    indicators: Array  # (p,) which regressors are 0/1 columns, or combinations of such
    kept: Array | None = None  # (k, p), of a stack: the coefficients that each of its regressions keeps

    def submodels(self, kept: Array) -> Design:
        """The regressions that keep the coefficients ``kept`` (k, p), no two alike in a row."""
        own = self.to_own_units[kept[:, :, None], kept[:, None, :]]
        return replace(self, to_own_units=own, offset=self.offset[kept], indicators=self.indicators[kept], kept=kept)

    @property
    def used(self) -> list[int]:
        """Places of the released columns that the regression uses, in order."""
        return sorted({place for weights in self.columns for place in weights})

    def among(self, places: Sequence[int]) -> Design:
        """The same on a release of the columns at ``places`` alone."""
        new = {place: j for j, place in enumerate(places)}
        columns = tuple({new[place]: weight for place, weight in weights.items()} for weights in self.columns)
        return replace(self, columns=columns, dim=len(places))

    @cached_property
    def _matrix(self) -> Array:
        matrix = np.zeros((self.dim, len(self.columns)))
        for place, weights in enumerate(self.columns):
            matrix[list(weights), place] = list(weights.values())
        return matrix

    @cached_property
    def regressors(self) -> Array:
        return self._matrix[:, :-1] if self.kept is None else self._matrix.T[self.kept].mT

    @property
    def label(self) -> Array:
        return self._matrix[:, -1]

    @property
    def tested(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """What a summary tests together: the coefficients of each feature that has several, and all slopes of several features."""
        several = tuple((name, places) for name, places in self.groups if len(places) > 1)
        slopes = tuple(j for j, name in enumerate(self.names) if name != INTERCEPT)
        return (*several, ("all features", slopes)) if len(slopes) > 1 and len(self.groups) > 1 else several

    @cached_property
    def places(self) -> Array | None:
        """(p + 1,) of the regressors and the label in the Gram, where each is a released column as it is, and none is there twice."""
        released = [place for weights in self.columns for place, weight in weights.items() if weight == 1.0]
        if len(set(released)) < len(self.columns) or sum(map(len, self.columns)) > len(self.columns):
            return None
        places = np.array(released)
        return places if self.kept is None else places[np.insert(self.kept, self.kept.shape[1], -1, axis=1)]


class DesignColumn(NamedTuple):
    """What a coefficient stands for: a column in its own units is ``centre + half * (weights @ z)``, z a scaled row.

    Most often ``weights`` picks one released column. The indicator of a category's reference level, which has no column of
    its own, is a combination of several."""

    name: str
    column: str  # the declared column it comes from
    weights: Weights
    centre: float = 0.0
    half: float = 1.0


Target = str | Mapping[str, float]
"""A column, or several with their weights: the sum of them, weighted, is then explained."""


def design(schema: Schema, target: Target, features: Sequence[str] | None, intercept: bool | None) -> Design:
    """The regression of ``target`` on ``features`` (when None, all columns that do not come from the target's own cells).

    Names are declared or derived columns, where one with levels stands for all its indicators, or single encoded columns such
    as ``carrier[AA]``. ``intercept`` None means: if the schema has one."""
    if intercept is not None and not isinstance(intercept, bool):
        raise ModelError(f"intercept is {intercept!r} and must be True, False or None.")
    if intercept and not schema.intercept:
        raise ModelError("the release was made without an intercept column. Fit with intercept=False.")
    constant = schema.intercept if intercept is None else intercept
    targets = _targets(schema, target)
    places = feature_places(schema, features, list(targets))
    return assemble(schema, _weighted(schema, targets), encoded_parts(schema, places), constant)


def encoded_parts(schema: Schema, places: Iterable[int]) -> list[DesignColumn]:
    """The released columns at ``places``."""
    encoded = schema.encoded
    return [DesignColumn((e := encoded[j]).name, e.column or e.name, {j: 1.0}, e.centre, e.half) for j in places]


def assemble(schema: Schema, target: DesignColumn, parts: Sequence[DesignColumn], constant: bool) -> Design:
    """The regression of ``target`` on ``parts``, in this order, after an intercept when ``constant``."""
    if not parts and not constant:
        raise ModelError("the regression has no feature and no intercept. Name a feature, or keep the intercept.")
    check_unit(target.name, target.half)
    for part in parts:
        if not SMALLEST_UNIT <= part.half / target.half <= 1 / SMALLEST_UNIT:
            check_unit(part.name, 0.0)
    units = target.half / np.array([part.half for part in parts])
    if constant:  # regress the scaled columns and let the intercept absorb every shift
        columns = ({0: 1.0}, *(part.weights for part in (*parts, target)))
        to_own = np.diag(np.concatenate([[target.half], units]))
        to_own[0, 1:] = -np.array([part.centre for part in parts]) * units
    else:  # through the origin of own units: x / half = z + centre / half. Without an intercept column a release has no shifts
        columns = tuple({0: c.centre / c.half, **c.weights} if c.centre else c.weights for c in (*parts, target))
        to_own = np.diag(units)
    offset = np.zeros(len(to_own))
    offset[:1] = target.centre * constant
    groups: dict[str, tuple[int, ...]] = {}
    for place, part in enumerate(parts, start=int(constant)):
        groups[part.column] = (*groups.get(part.column, ()), place)
    names = (INTERCEPT,) * constant + tuple(part.name for part in parts)
    indicators = np.array([all(j == 0 or is_indicator(schema, j) for j in part.weights) for part in parts], dtype=bool)
    return Design(
        names,
        target.name,
        columns,
        len(schema.encoded),
        to_own,
        offset,
        tuple(groups.items()),
        target.half,
        np.concatenate([np.zeros(int(constant), dtype=bool), indicators]),
    )


def check_unit(name: str, size: float) -> None:
    """Raise where squares of numbers of this ``size``, or of its inverse, leave double precision."""
    if not SMALLEST_UNIT <= size <= 1 / SMALLEST_UNIT:
        raise ModelError(
            f"the bounds of {name!r} are so large or so small that squares exceed double precision. Rescale the column."
        )


def _targets(schema: Schema, target: Target) -> dict[int, float]:
    """Places of the target's columns, with their weights."""
    if not isinstance(target, Mapping):
        return {_target(schema, target): 1.0}
    if not target:
        raise ModelError("the target is an empty dict. Name a column, or several columns with their weights.")
    weights: dict[int, float] = {}
    for name, weight in target.items():
        if isinstance(weight, bool) or not isinstance(weight, Real) or not np.isfinite(float(weight)) or not weight:
            raise ModelError(f"the weight of {name!r} in the target is {weight!r} and must be a finite number other than zero.")
        weights[_target(schema, name)] = float(weight)
    return weights


def _weighted(schema: Schema, targets: Mapping[int, float]) -> DesignColumn:
    weighted = list(zip(targets.values(), encoded_parts(schema, targets), strict=True))
    if list(targets.values()) == [1.0]:
        return weighted[0][1]
    name = " + ".join(f"{w:g}*{part.name}" for w, part in weighted).replace("+ -", "- ")
    half = sum(abs(w) * part.half for w, part in weighted)
    mixed = {j: w * part.half / half for j, (w, part) in zip(targets, weighted, strict=True)}
    return DesignColumn(name, name, mixed, sum(w * part.centre for w, part in weighted), half)


def _target(schema: Schema, name: str) -> int:
    places = _places(schema, name)
    if name == INTERCEPT:
        raise ModelError(
            f"{name!r} is the column of ones, so it cannot be a target. Name one of {', '.join(schema.all_names)}."
        )
    check_target(schema, name)
    if len(places) > 1:
        choices = ", ".join(schema.encoded_names[j] for j in places)
        raise ModelError(f"{name!r} has several levels, so it cannot be a target. Name one of its levels: {choices}.")
    return places[0]


def check_target(schema: Schema, name: str, places: Iterable[int] | None = None) -> None:
    """Raise where missing cells of a column, or of one that it is computed from, are filled and marked: it would be part made up.

    ``places`` are those of the released columns that it is a combination of, where it is none of them itself."""
    filled = _filled(schema, schema.places.get(name, ()) if places is None else places)
    if filled:
        whose = "its" if name in filled else f"it is computed from {filled[0]!r}, whose"
        raise ModelError(
            f"{name!r} cannot be a target, because {whose} missing cells count as the middle of its bounds. Ask the custodian for a "
            f'release with missing = "drop-row" for this column, or use {filled[0]}[{MISSING}] to explain which cells are missing.'
        )


def in_own_units(design: Design) -> Design:
    """The same regression, with a label of which one scaled unit is one of its own."""
    unit = design.label_unit
    if unit == 1.0:
        return design
    label = {place: weight * unit for place, weight in design.columns[-1].items()}
    return replace(design, columns=(*design.columns[:-1], label), to_own_units=design.to_own_units / unit, label_unit=1.0)


def yes_or_no(schema: Schema, design: Design) -> bool:
    """Whether the target can only be 0 or 1: a truth value, one or several levels, a mark of missing cells, or a product of such."""
    weights, encoded = dict(in_own_units(design).columns[-1]), schema.encoded
    if design.offset.any():  # something is added to it
        return False
    if list(weights.values()) == [1.0]:
        return is_indicator(schema, next(iter(weights)))
    levels = [j for j in weights if encoded[j].column is not None]
    category = encoded[levels[0]].column or ""
    places = schema.places.get(category, ())
    if not isinstance(schema.by_name.get(category), Categorical) or not set(levels) <= set(places):
        return False
    if weights == dict.fromkeys(levels, 1.0):  # no row has two levels
        return True
    others = len(levels) > 1 or len(levels) == len(
        places
    )  # the intercept less these levels: all others, with the reference level
    return others and weights == {0: 1.0, **dict.fromkeys(levels, -1.0)}


def mirrored_indicator(schema: Schema, design: Design) -> str | None:
    """Of a target that is one minus a released indicator, the name of that; None of any other target."""
    if yes_or_no(schema, design) or design.offset.any():
        return None
    weights = dict(in_own_units(design).columns[-1])
    place = next((j for j in weights if schema.encoded[j].column is not None), None)
    mirrored = place is not None and weights == {0: 1.0, place: -1.0} and is_indicator(schema, place)
    return schema.encoded[place].name if mirrored and place is not None else None


def is_indicator(schema: Schema, place: int) -> bool:
    """Whether the released column at ``place`` can only be 0 or 1."""
    e, kinds = schema.encoded[place], (Boolean, Categorical)
    if e.absent or isinstance(schema.by_name.get(e.column or ""), kinds):
        return True
    derived = next((d for d in schema.derived if d.name == e.column and isinstance(d, Product | Interval)), None)
    return isinstance(derived, Interval) or (
        derived is not None and all(isinstance(schema.by_name.get(name), kinds) for name in e.parents)
    )


def unmarked(schema: Schema, design: Design) -> list[tuple[str, str]]:
    """Coefficients of computed columns with filled cells that no other coefficient marks, and the columns they are missing in."""
    return [
        (name, source)
        for name, weights in zip(design.names, design.columns, strict=False)
        for source in _filled(schema, weights)
        if source != name and f"{source}[{MISSING}]" not in design.names
    ]


def made_up(schema: Schema, design: Design) -> list[Column]:
    """The declared columns that decide the target, and whose missing cells count as a value that nothing marks."""
    encoded = schema.encoded
    sources = frozenset().union(*(encoded[place].sources for place in design.columns[-1] if not encoded[place].absent))
    return [
        column for column in schema.columns if column.name in sources and column.missing not in (DROP_ROW, INDICATOR, "level")
    ]


def _filled(schema: Schema, places: Iterable[int]) -> list[str]:
    """The declared columns with an indicator whose cells decide those of the encoded columns at ``places``, other than indicators."""
    sources = frozenset().union(*(e.sources for e in (schema.encoded[j] for j in places) if not e.absent))
    return [column.name for column in schema.columns if column.missing == INDICATOR and column.name in sources]


def feature_places(
    schema: Schema, names: Sequence[str] | None, targets: Sequence[int], parameter: str = "features"
) -> list[int]:
    """Places in the Gram of the features ``names``, each once; when None, of all that say something of ``targets``.

    ``parameter`` is what the caller's list of names is called."""
    encoded = schema.encoded
    if names is None:
        # What is computed from the target's cells, or is what the target is computed from, explains it without saying anything.
        own = frozenset().union(*(encoded[j].sources for j in targets))
        return [j for j, e in enumerate(encoded) if e.sources and not e.sources & own]
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ModelError(f"{parameter} is {names!r} and must be a list of names, such as ['age'].")
    places: list[int] = []
    for name in names:
        for j in _places(schema, name):
            if j in targets:
                raise ModelError(f"{name!r} is the target, so it cannot be a feature too.")
            if j in places:
                raise ModelError(f"{parameter.removesuffix('s')} {encoded[j].name!r} is named twice. Name it once.")
            if encoded[j].column is None:
                added = ", unless intercept=False" if parameter == "features" else ""
                raise ModelError(
                    f"{name!r} is not a {parameter.removesuffix('s')}. The intercept is added automatically{added}."
                )
            places.append(j)
    return places


def _places(schema: Schema, name: str) -> tuple[int, ...]:
    """Places in the Gram of an encoded column, or of all indicators of a declared one."""
    if not isinstance(name, str):
        raise ModelError(f"the name of a column must be text, such as 'age', but it is {name!r}.")
    if (places := schema.places.get(name)) is not None:
        return places
    if (category := with_reference(schema, name)) is not None:
        raise ModelError(
            f"{name!r} is the reference level, so it has no column of its own. The other levels are compared with it. "
            f"Name {category.name!r} for all levels, or one of {', '.join(level_names(category)[1:])}."
        )
    raise no_such_feature(schema, name)


def no_such_feature(schema: Schema, name: str) -> ModelError:
    """The error for a name that no column and no level has."""
    for column in schema.columns:
        if isinstance(column, Categorical) and name.startswith(f"{column.name}[") and name.endswith("]"):
            level = name[len(column.name) + 1 : -1]
            return ModelError(
                f"column {column.name!r} has no level {level!r}.{suggestion(level, column.levels)} Its levels are "
                f"{', '.join(column.levels)}."
            )
    return UnknownColumnError(name=name, known=schema.all_names, levels=schema.encoded_names if "[" in name else ())


def with_reference(schema: Schema, name: str) -> Categorical | None:
    """The category whose reference level has this ``name``."""
    return next((c for c in schema.columns if isinstance(c, Categorical) and name == level_names(c)[0]), None)


def level_names(category: Categorical) -> tuple[str, ...]:
    """The levels as coefficients name them, the reference first."""
    return tuple(f"{category.name}[{level}]" for level in category.levels)
