"""Which columns of a release a regression uses, and how its coefficients get back to the columns' own units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.terms.columns import Categorical
from dpgram.terms.schema import INTERCEPT

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Design:
    """A regression on a release of d columns, with p coefficients.

    ``regressors`` (d, p) and ``label`` (d,) say which combinations of released columns are used: for a Gram S the normal
    equations are ``regressors' S regressors b = regressors' S label``, and ``to_own_units @ b + offset`` are the
    coefficients in the columns' own units."""

    names: tuple[str, ...]  # of the coefficients
    target: str
    regressors: Array
    label: Array
    to_own_units: Array
    offset: Array


def design(release: GramRelease, target: str, features: Sequence[str] | None, intercept: bool | None) -> Design:
    """The regression of ``target`` on ``features`` (when None, all columns that do not come from the target's own cells).

    Names are declared or derived columns, where one with levels stands for all its indicators, or single encoded columns such
    as ``carrier[AA]``. ``intercept`` None means: if the release has one."""
    if intercept is not None and not isinstance(intercept, bool):
        raise ModelError(f"intercept is {intercept!r} and must be True, False or None.")
    names = release.columns
    has_intercept = names[0] == INTERCEPT
    if intercept and not has_intercept:
        raise ModelError("the release was made without an intercept column: fit with intercept=False.")
    constant = has_intercept if intercept is None else intercept
    label = _target(release, target)
    places = _features(release, features, label)
    if not places and not constant:
        raise ModelError("there is nothing to regress on: name a feature, or keep the intercept.")
    if constant:
        return _affine_design(release, label, places)
    return _linear_design(release, label, places)


def _affine_design(release: GramRelease, label: int, places: list[int]) -> Design:
    """With an intercept: regress the scaled columns and let the intercept absorb every shift."""
    encoded, unit = release.schema.encoded, np.eye(len(release.columns))
    half = np.array([encoded[j].half for j in places])
    centre = np.array([encoded[j].centre for j in places])
    y = encoded[label]
    to_own = np.diag(np.concatenate([[y.half], y.half / half]))
    to_own[0, 1:] = -y.half * centre / half
    offset = np.zeros(len(places) + 1)
    offset[0] = y.centre
    return Design(
        names=(INTERCEPT, *(encoded[j].name for j in places)),
        target=y.name,
        regressors=unit[:, [0, *places]],
        label=unit[:, label],
        to_own_units=to_own,
        offset=offset,
    )


def _linear_design(release: GramRelease, label: int, places: list[int]) -> Design:
    """Through the origin of the columns' own units: each scaled column gets its shift back, x / half = z + centre / half.

    A release without an intercept column has no shifts."""
    encoded = release.schema.encoded
    unshifted = np.eye(len(release.columns))
    for j, column in enumerate(encoded):
        if column.centre:
            unshifted[0, j] = column.centre / column.half
    half = np.array([encoded[j].half for j in places])
    return Design(
        names=tuple(encoded[j].name for j in places),
        target=encoded[label].name,
        regressors=unshifted[:, places],
        label=unshifted[:, label],
        to_own_units=np.diag(encoded[label].half / half),
        offset=np.zeros(len(places)),
    )


def _target(release: GramRelease, name: str) -> int:
    places = _places(release, name)
    if name == INTERCEPT:
        raise ModelError(
            f"{name!r} is the column of ones and cannot be a target: name one of {', '.join(release.schema.all_names)}."
        )
    if len(places) > 1:
        choices = ", ".join(release.columns[j] for j in places)
        raise ModelError(f"{name!r} has several levels and cannot be a target: name one of them ({choices}).")
    return places[0]


def _features(release: GramRelease, names: Sequence[str] | None, label: int) -> list[int]:
    encoded = release.schema.encoded
    if names is None:
        # What is computed from the target's cells, or is what the target is computed from, explains it without saying anything.
        return [j for j, e in enumerate(encoded) if e.sources and not e.sources & encoded[label].sources]
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ModelError(f"features is {names!r} and must be a list of names, such as ['age'].")
    places: list[int] = []
    for name in names:
        for j in _places(release, name):
            if j == label:
                raise ModelError(f"{name!r} is the target and cannot be a feature too.")
            if j in places:
                raise ModelError(f"feature {encoded[j].name!r} is named twice.")
            if encoded[j].column is None:
                raise ModelError(f"{name!r} is not a feature: the intercept is added unless intercept=False.")
            places.append(j)
    return places


def _places(release: GramRelease, name: str) -> list[int]:
    """Places in the Gram of an encoded column, or of all indicators of a declared one."""
    if not isinstance(name, str):
        raise ModelError(f"{name!r} is a {type(name).__name__}, and the name of a column is needed.")
    if name in release.columns:
        return [release.columns.index(name)]
    places = [j for j, e in enumerate(release.schema.encoded) if e.column == name]
    if places:
        return places
    for column in release.schema.columns:
        if isinstance(column, Categorical) and name == f"{column.name}[{column.levels[0]}]":
            others = ", ".join(f"{column.name}[{level}]" for level in column.levels[1:])
            raise ModelError(
                f"{name!r} is the reference level, against which the others are measured: it has no column of its own. "
                f"Name {column.name!r} for all levels, or one of {others}."
            )
    raise UnknownColumnError(name=name, known=release.schema.all_names)
