"""From declared bounds to a schema. All of it is public: nothing here sees a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from dpgram.errors import SchemaError
from dpgram.estimators.intake import free_name
from dpgram.terms.budget import Neighbours
from dpgram.terms.columns import Categorical, Column, Numeric
from dpgram.terms.schema import Schema

WHY = (
    "Take bounds from what you know of the domain, never from the data: the smallest or largest value belongs to somebody, and "
    "using it would reveal it"
)


@dataclass(frozen=True)
class Declaration:
    """What is declared about X and y together."""

    schema: Schema  # the features in the order of X, then the targets
    features: tuple[str, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        return self.schema.names[len(self.features) :]

    @property
    def feature_schema(self) -> Schema:
        """What is declared about X alone."""
        columns = self.schema.columns[: len(self.features)]
        counted = dict.fromkeys(("unit_id", "rows_per_unit", "weight", "largest_weight"))
        return replace(self.schema, columns=columns, row_bound=None, **counted)  # type: ignore[arg-type]

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients: the features, and for a categorical one its levels but the first."""
        return self.feature_schema.encoded_names[1:]


@dataclass(frozen=True)
class Counting:
    """What an estimator was told of how rows count: whether ``fit`` got groups and weights, and what the parameters say of them."""

    groups: bool = False
    weights: bool = False
    rows_per_unit: int | None = None
    largest_weight: float | None = None


def declare(
    bounds: object,
    target_bounds: object,
    *,
    features: Sequence[str],
    targets: Sequence[str],
    neighbours: str | None,
    row_bound: float | None,
    counting: Counting,
) -> Declaration:
    """The declaration behind an estimator's parameters.

    ``bounds`` is a tuple (lower, upper) of numbers or of sequences with one number per column, a dict from names to such
    pairs of numbers, or a Schema. The columns of a Schema that X does not have are the targets, in their order."""
    if isinstance(bounds, Schema):
        schema = _with_terms(_of_columns(bounds, target_bounds, features, targets), neighbours, row_bound)
    else:
        columns = [*_columns("bounds", bounds, features), *_columns("target_bounds", target_bounds, targets)]
        chosen = Neighbours.REPLACE if neighbours is None else neighbours
        unit = "group" if counting.groups else "row"
        schema = Schema(unit=unit, columns=tuple(columns), neighbours=chosen, row_bound=row_bound)  # type: ignore[arg-type]
    return Declaration(_with_weights(_with_units(schema, counting), counting), tuple(features))


def _of_columns(schema: Schema, target_bounds: object, features: Sequence[str], targets: Sequence[str]) -> Schema:
    """What ``schema`` declares about the features, and it or ``target_bounds`` about the targets."""
    for name in features:
        if name not in schema.by_name:
            raise SchemaError(f"X has a column {name!r}, but the schema does not declare it. Declare it, or remove it from X.")
    rest = [column for column in schema.columns if column.name not in features]
    if targets and not rest:
        rest = _columns("target_bounds", target_bounds, targets)
    elif targets and target_bounds is not None:
        raise SchemaError(
            "the target is declared twice, in the schema and in target_bounds. Leave out target_bounds, or remove it from the schema."
        )
    if len(rest) != len(targets):
        names = ", ".join(repr(column.name) for column in rest)
        raise SchemaError(
            f"besides the columns of X, the schema declares {names}, but there are {len(targets)} target columns. Declare "
            f"the columns of X and of y, and no others."
        )
    for column in rest:
        if isinstance(column, Categorical):
            raise SchemaError(f"target {column.name!r} is declared categorical and must be numeric or boolean.")
    if not schema.intercept:
        raise SchemaError(
            "the schema has intercept = false, but an estimator needs the intercept column. Use fit_intercept=False instead."
        )
    return replace(schema, columns=(*(schema.by_name[name] for name in features), *rest))


def _with_terms(schema: Schema, neighbours: str | None, row_bound: float | None) -> Schema:
    """The schema, where an estimator's own terms do not contradict it."""
    if neighbours is not None and replace(schema, neighbours=neighbours).neighbours is not schema.neighbours:  # type: ignore[arg-type]
        raise SchemaError("neighbours differs from what the schema declares. Leave it out, or change the schema.")
    if row_bound is None:
        return schema
    if schema.row_bound not in (None, row_bound):
        raise SchemaError("row_bound differs from what the schema declares. Leave it out, or change the schema.")
    return replace(schema, row_bound=row_bound)


def _with_units(schema: Schema, counting: Counting) -> Schema:
    """The schema with the groups that ``fit`` got as ids of units."""
    most, name = counting.rows_per_unit, schema.unit_id
    if name is None and counting.groups:
        if most is None:
            raise SchemaError(
                "fit got groups, but rows_per_unit is not given. Say how many rows of one group count in full, such as rows_per_unit=5. "
                "Take it from the domain, not from the data."
            )
        return replace(schema, unit_id=free_name("groups", schema.names), rows_per_unit=most)
    if name is None and most is not None:
        raise SchemaError(
            "rows_per_unit is given, but fit got no groups. Pass fit(..., groups=ids), or leave out rows_per_unit."
        )
    if name is not None:
        _check_told_once("groups", counting.groups, "unit_id", name, schema)
        if most not in (None, schema.rows_per_unit):
            raise SchemaError("rows_per_unit differs from what the schema declares. Leave it out, or change the schema.")
    return schema


def _with_weights(schema: Schema, counting: Counting) -> Schema:
    """The schema with the sample weights that ``fit`` got. Where it got none, all rows have the same weight, as in scikit-learn."""
    largest, name = counting.largest_weight, schema.weight
    if name is None and counting.weights:
        if largest is None:
            raise SchemaError(
                "fit got sample_weight, but largest_weight is not given. Say how large a weight can be, such as largest_weight=4. Take it "
                "from the design of the survey, not from the data."
            )
        return replace(schema, weight=free_name("sample_weight", schema.names), largest_weight=largest)
    if name is not None:
        _check_told_once("sample_weight", counting.weights, "weight", name, schema)
        if largest not in (None, schema.largest_weight):
            raise SchemaError("largest_weight differs from what the schema declares. Leave it out, or change the schema.")
    return schema


def _check_told_once(argument: str, given: bool, key: str, name: str, schema: Schema) -> None:
    """Raise unless a column that the schema names for ids or weights is either a column of X and y or an argument of ``fit``."""
    if given and name in schema.names:
        raise SchemaError(
            f"the schema says {key} = {name!r}, which is a column of X or y, but fit got {argument}, too. Leave it out."
        )
    if not given and name not in schema.names:
        raise SchemaError(f"the schema says {key} = {name!r}, which is no column of X or y. Pass fit(..., {argument}=...).")


def _columns(parameter: str, bounds: object, names: Sequence[str]) -> list[Column]:
    """A numeric column for every name, bounded as ``bounds`` says."""
    if not names:
        return []
    if isinstance(bounds, Mapping):
        if set(bounds) != set(names):
            raise SchemaError(f"{parameter} names {_listed(bounds)}, but it must name exactly the columns {_listed(names)}.")
        pairs = {name: _pair(f"{parameter}[{name!r}]", bounds[name]) for name in names}
        return [Numeric(name, *(_each(parameter, end, 1)[0] for end in pairs[name])) for name in names]
    lower, upper = _pair(parameter, bounds)
    lowers, uppers = _each(parameter, lower, len(names)), _each(parameter, upper, len(names))
    return [Numeric(name, low, up) for name, low, up in zip(names, lowers, uppers, strict=True)]


def _pair(parameter: str, bounds: object) -> tuple[object, object]:
    # A tuple and no list: [(0, 1), (5, 9)] for two columns would read as a pair of lowers and a pair of uppers.
    if isinstance(bounds, tuple) and len(bounds) == 2:
        return bounds
    got = "not given" if bounds is None else f"{bounds!r}" if isinstance(bounds, str) else f"a {type(bounds).__name__}"
    raise SchemaError(
        f"{parameter} is {got} and must be a tuple (lower, upper) of numbers or of one number per column, or a dict of names "
        f"and such pairs{', or a dpgram.Schema' if parameter == 'bounds' else ''}. {WHY}."
    )


def _each(parameter: str, end: object, count: int) -> list[float]:
    """One end of the bounds for every column."""
    if isinstance(end, Real) and not isinstance(end, bool):
        return [float(end)] * count
    values = np.asarray(end)
    if values.dtype.kind not in "iuf":
        raise SchemaError(f"{parameter} contains a {type(end).__name__}, but it must contain numbers. {WHY}.")
    if values.shape != (count,):
        raise SchemaError(f"each end of {parameter} must be one number, or one number for each of the {count} columns.")
    return [float(value) for value in values]


def _listed(names: object) -> str:
    return ", ".join(repr(name) for name in names)  # type: ignore[attr-defined]
