"""Several releases as one: of disjoint rows, whose Gram matrices add up, or of the same rows, whose mean has less noise.

All of it follows from the releases that it is made of, so a file holds these and nothing else, and each is read as strictly as before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from dpgram.accounting.total import Spending, rounded_up
from dpgram.artifact.release import GramRelease
from dpgram.errors import BudgetError, CombineError
from dpgram.linalg.spreads import OneShape, one_shape, weights
from dpgram.terms.agreement import agreed, differences
from dpgram.terms.budget import Budget
from dpgram.terms.noise import NoiseModel
from dpgram.terms.schema import Schema

Array = np.ndarray
Rows = Literal["disjoint", "same"]

DISJOINT: Rows = "disjoint"
SAME: Rows = "same"
MATRIX, INVERSE = "matrix", "inverse"  # what noise was added to
COMBINED = "combined"  # the mechanism's name, and the name of noise that has several shapes
MOST_PARTS = 1000  # each is compared with every other
MOST_TOLD = 3  # differences between two schemas
ROUNDING = 1e-14  # of an eigenvalue, relative to the largest and times the number of columns


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CombinedRelease(GramRelease):
    """Several releases as one, made by ``dpgram.combine``. It is a ``GramRelease``, and everything that takes one takes it.

    Attributes
    ----------
    parts : tuple of GramRelease
        The releases that it was made of, in the order in which they were given.
    rows_are : "disjoint" or "same"
        Whether the parts are releases of disjoint rows or of the same rows.
    weights : tuple of float
        By what the matrix of each part was multiplied. It is 1 for disjoint rows. For the same rows, less noise means more weight.

    Examples
    --------
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100)])
    >>> table = {"age": [31.0, 45.0, 62.0]}
    >>> made = [dpgram.release(table, schema, epsilon=e, delta=1e-6, mechanism="gaussian-noise") for e in (1.0, 1.0)]
    >>> both = dpgram.combine(made, rows="same")
    >>> both.weights
    (0.5, 0.5)
    >>> both.budget
    Budget(epsilon=2.0, delta=2e-06)
    """

    parts: tuple[GramRelease, ...]
    rows_are: Rows
    weights: tuple[float, ...]

    @property
    def format(self) -> int:
        """Number of the file format that ``save`` writes."""
        return 3

    @property
    def leaves(self) -> tuple[GramRelease, ...]:
        """The releases that custodians made, of which the parts are made in turn."""
        return tuple(leaf for part in self.parts for leaf in leaves_of(part))

    @cached_property
    def noise_shares(self) -> tuple[float, ...]:
        """What part of the noise's variance comes from each part, over all directions: a part with hardly any rows can bring most of it."""
        if isinstance(self.noise, CombinedNoise):
            squares = np.array([float(np.vdot(each, each)) for each in self.noise.one_shape.within])
        else:  # of one law, whose sums are its own
            noises = [part.noise for part in self.parts]
            squares = np.array([w * noise.sd_off_diagonal for w, noise in zip(self.weights, noises, strict=True)]) ** 2
        return tuple((squares / squares.sum()).tolist())

    def __repr__(self) -> str:
        rows = "disjoint rows" if self.rows_are == DISJOINT else "the same rows"
        return f"{super().__repr__()[:-1]}, {len(self.parts)} parts of {rows})".replace("GramRelease", "CombinedRelease", 1)


@dataclass(frozen=True, eq=False)
class CombinedNoise(NoiseModel):
    """The release is the sum of other releases, each times its weight, and in common units. Each of them has the noise that it has."""

    shape: ClassVar[str] = COMBINED
    words: ClassVar[str] = "Each part has noise of its own. The matrix is their sum, each times its weight."
    added_to: ClassVar[str] = MATRIX
    shift = 0.0

    parts: tuple[GramRelease, ...]
    weights: tuple[float, ...]
    rescaled: tuple[Array, ...]  # from the encoded columns of each part to the common ones

    @property
    def same_rows(self) -> bool:
        """Whether it is a mean of looks at the same rows, and no sum over disjoint ones."""
        return self.weights != (1.0,) * len(self.weights)

    @property
    def several(self) -> bool:
        """Whether some part came about in several rounds."""
        return any(getattr(part.noise, "several", False) for part in self.parts)

    @cached_property
    def one_shape(self) -> OneShape:
        """The coordinates in which the noise is at most even."""
        maps, sds = spreads(self.parts, self.rescaled)
        return one_shape(maps, [w * sd for w, sd in zip(self.weights, sds, strict=True)])

    def spread(self, dim: int) -> tuple[Array, float]:
        return self.one_shape.turn.T, 1.0

    @property
    def sd_off_diagonal(self) -> float:  # type: ignore[override]
        """Along the weakest direction, as of a whitened release."""
        return float(np.linalg.norm(self.one_shape.turn, -2)) ** 2

    @property
    def sd_diagonal(self) -> float:  # type: ignore[override]
        return float(np.sqrt(2)) * self.sd_off_diagonal

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CombinedNoise):
            return NotImplemented
        return self.parts == other.parts and self.weights == other.weights

    __hash__ = None  # type: ignore[assignment]


def leaves_of(release: GramRelease) -> tuple[GramRelease, ...]:
    """The releases that a release was combined of; itself where it was not."""
    return release.leaves if isinstance(release, CombinedRelease) else (release,)


def combined(releases: Sequence[GramRelease], rows: Rows, *, library_version: str) -> CombinedRelease:
    """The releases as one. Raises CombineError, in one sentence, where they cannot be."""
    parts = _flat(releases, rows)
    _check(parts, rows)
    schema = agreed([part.schema for part in parts])
    rescaled = tuple(rescaling(part.schema, schema) for part in parts)
    each = _weights(parts, rows, rescaled)
    gram, noise = _sum(parts, each, rescaled)
    return CombinedRelease(
        schema=schema,
        gram=gram,
        noise=noise,
        rows=_number(rows, [part.rows for part in parts]),
        units=_number(rows, [part.units for part in parts]),
        rows_of="result" if any(part.rows_of == "result" for part in parts) else "table",
        row_bound=schema.effective_row_bound,
        budget=_budget(parts, rows),
        mechanism=COMBINED,
        calibration="exact" if all(part.calibration == "exact" for part in parts) else "paper",
        condition=_joined(part.condition for part in parts),
        randomness=_joined(part.randomness for part in parts),
        private=all(part.private for part in parts),
        arithmetic="exact" if all(part.arithmetic == "exact" for part in parts) else "float64",
        library_version=library_version,
        parts=parts,
        rows_are=rows,
        weights=each,
    )


def _flat(releases: Sequence[GramRelease], rows: Rows) -> tuple[GramRelease, ...]:
    """The parts, in which those of a release that was combined in the same way stand for it."""
    if rows not in (DISJOINT, SAME):
        raise CombineError(
            f'rows is {rows!r} and must be "disjoint" if no row is in two of the releases, or "same" if all of them are of the same rows.'
        )
    for release in releases:
        if not isinstance(release, GramRelease):
            raise CombineError(
                f"the list holds a {type(release).__name__}, but combine needs releases. Use dpgram.load(path) to read one."
            )
    if len(releases) < 2:
        given = "one release was" if releases else "no release was"
        raise CombineError(f"{given} given, but two or more are needed.")
    return tuple(
        part
        for release in releases
        for part in (release.parts if isinstance(release, CombinedRelease) and release.rows_are == rows else (release,))
    )


def _check(parts: Sequence[GramRelease], rows: Rows) -> None:
    if len(parts) > MOST_PARTS:
        raise CombineError(f"{len(parts):,} releases were given, but at most {MOST_PARTS:,} can be combined. Combine fewer.")
    for place, part in enumerate(parts[1:], 2):
        if found := differences(parts[0].schema, part.schema):
            more = f", and {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
            raise CombineError(
                f"releases 1 and {place} cannot be combined, because their schemas differ: {'; '.join(found[:MOST_TOLD])}{more}. "
                f"Release them again with one schema."
            )
    _check_noise(parts, rows)
    _check_apart([leaf for part in parts for leaf in leaves_of(part)])
    for name in ("rows", "units"):
        numbers = {getattr(part, name) for part in parts}
        if rows == SAME and len(numbers) > 1:
            raise CombineError(
                f"the releases have different numbers of {name} ({', '.join(f'{n:,}' for n in sorted(numbers))}), so they are not of the "
                f'same rows. If no row is in two of them, use rows="disjoint".'
            )


def _check_noise(parts: Sequence[GramRelease], rows: Rows) -> None:
    if any(part.noise.added_to == INVERSE for part in parts):
        if rows == DISJOINT or any(part.noise.added_to != INVERSE for part in parts):
            raise CombineError(
                "releases by noisy-inverse can only be combined with each other, and only if they are of the same rows, because their "
                "noise is in the inverse of the matrix."
            )
        if len({part.noise.floor for part in parts}) > 1:  # type: ignore[attr-defined]
            raise CombineError(
                "the releases by noisy-inverse claim different smallest eigenvalues. Combine releases with the same claim."
            )
        return
    for place, part in enumerate(parts, 1):
        if part.noise.added_to != MATRIX:
            raise CombineError(
                f"release {place} is by {part.mechanism}, whose noise multiplies, and cannot be combined with others. Releases by "
                f"gaussian-noise, whitened-noise and wishart-noise can."
            )
        if part.noise.even and _is_projected(part.gram):
            raise CombineError(
                f"negative eigenvalues of the matrix of release {place} were set to zero (repair = psd), so its noise is no longer zero on "
                f"average, and would add up. Combine releases without this repair."
            )


def _is_projected(gram: Array) -> bool:
    """Whether eigenvalues were set to zero: noise makes none that is zero up to rounding, except in one of millions of releases."""
    values = np.linalg.eigvalsh(gram)
    return bool(abs(values[0]) <= ROUNDING * len(values) * values[-1])


def _check_apart(leaves: Sequence[GramRelease]) -> None:
    """No release is there twice: its noise would be counted as that of two."""
    for place, leaf in enumerate(leaves):
        for other, earlier in enumerate(leaves[:place]):
            paid = leaf.ledger_entry is not None and leaf.ledger_entry == earlier.ledger_entry
            if paid or np.array_equal(leaf.gram, earlier.gram):
                why = "were paid for by the same line of a ledger" if paid else "have the same matrix"
                raise CombineError(
                    f"releases {other + 1} and {place + 1} {why}, so they are one release, and its noise is drawn only once. Leave one out."
                )


def rescaling(own: Schema, common: Schema) -> Array:
    """(d, d) from the encoded columns of one schema to those of another that declares the same, with other units and another order."""
    at = {encoded.name: place for place, encoded in enumerate(own.encoded)}
    matrix = np.zeros((len(at), len(at)))
    for place, to in enumerate(common.encoded):
        source = at[to.name]
        from_ = own.encoded[source]
        matrix[place, source] = from_.half / to.half
        if from_.centre != to.centre:  # there is an intercept: without one no column is shifted
            moved = (from_.centre - to.centre) / to.half
            matrix[place, 0] = moved
            if (absent := source + 1) < len(at) and own.encoded[absent].absent:  # what is missing is zero in all units
                matrix[place, absent] = -moved
    return matrix


def spreads(parts: Sequence[GramRelease], rescaled: Sequence[Array]) -> tuple[list[Array], list[float]]:
    """L_i and t_i of each part: in common units its noise is that of L_i N L_i', N of sd t_i off the diagonal."""
    told = [part.noise.spread(len(part.gram)) for part in parts]
    return [into @ each for into, (each, _) in zip(rescaled, told, strict=True)], [sd for _, sd in told]


def _weights(parts: Sequence[GramRelease], rows: Rows, rescaled: Sequence[Array]) -> tuple[float, ...]:
    """By what to multiply the matrices of the parts, or their inverses where the noise is in these."""
    if rows == DISJOINT:
        return (1.0,) * len(parts)
    if parts[0].noise.added_to == INVERSE:
        return weights([np.eye(len(part.gram)) for part in parts], [part.noise.sd_off_diagonal for part in parts])
    return weights(*spreads(parts, rescaled), white=[getattr(part.noise, "several", False) for part in parts])


def _sum(parts: Sequence[GramRelease], each: tuple[float, ...], rescaled: tuple[Array, ...]) -> tuple[Array, NoiseModel]:
    """The matrix of all parts together, in common units, and its noise."""
    kind, noises = type(parts[0].noise), [part.noise for part in parts]
    if kind.added_to == INVERSE:
        inverses = [
            into @ np.linalg.inv(part.gram) @ into.T for into, part in zip(rescaled, parts, strict=True)
        ]  # in this order
        gram = np.linalg.inv(np.tensordot(each, inverses, 1))
        return (gram + gram.T) / 2, kind.sum_of(noises, each)
    matrices = [
        into @ (part.gram - part.noise.shift * np.eye(len(part.gram))) @ into.T
        for into, part in zip(rescaled, parts, strict=True)
    ]
    total = np.tensordot(each, matrices, 1)
    gram = (total + total.T) / 2
    if all(noise.even for noise in noises) and all(map(_only_order, rescaled)):
        return gram, kind.sum_of(noises, each)
    return gram, CombinedNoise(tuple(parts), each, rescaled)


def _only_order(matrix: Array) -> bool:
    """Whether a map changes the order of columns only."""
    return bool(np.isin(matrix, (0.0, 1.0)).all() and (matrix.sum(axis=0) == 1).all())


def _number(rows: Rows, numbers: Sequence[int | None]) -> int | None:
    """The public number of rows or units of all parts together."""
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    return sum(known) if rows == DISJOINT else known[0]


def _budget(parts: Sequence[GramRelease], rows: Rows) -> Budget:
    """What holds for everybody: of disjoint rows the weakest promise, of the same rows the sum of all."""
    asked = [part.budget for part in parts]
    if rows == DISJOINT:
        return Budget(max(budget.epsilon for budget in asked), max(budget.delta for budget in asked))
    return budget_sum(asked)


def budget_sum(asked: Sequence[Budget]) -> Budget:
    """What is promised to somebody whose rows are in all of several releases: epsilons and deltas add up."""
    epsilon, delta = Spending(tuple(asked)).plain
    try:
        return Budget(rounded_up(epsilon), rounded_up(delta))
    except BudgetError as error:
        raise CombineError(f"the budgets of the releases add up to no budget: {error}") from None


def _joined(texts: Iterable[str]) -> str:
    """Every text once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))
