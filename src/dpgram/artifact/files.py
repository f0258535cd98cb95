"""The release as a JSON file: written whole, read strictly. Needs none of the libraries that read rows.

Up to ``MANY_COLUMNS`` it is format 1: indented, every number as a decimal fraction. Above, it is format 2: matrices are packed
(``artifact.matrices``), and nothing is indented. Format 3 is of releases that were combined: it holds each of them as its own file does."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from dpgram.artifact.atomic import check_writable, write_whole
from dpgram.artifact.claims import ClaimError, check_claims
from dpgram.artifact.combined import MOST_PARTS, CombinedRelease, combined
from dpgram.artifact.intake import (
    MOST_PARAMETERS,
    MOST_TEXT,
    MOST_WORDS,
    IntakeError,
    check_objects,
    check_size,
    content_of_file,
)
from dpgram.artifact.matrices import InFile, stored, unpacked
from dpgram.artifact.release import GramRelease
from dpgram.artifact.signature import Signature, SigningKey, checked
from dpgram.errors import BrokenSignatureError, BudgetError, CombineError, ReleaseFileError, SchemaError
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import ANY_SIZE, SHAPES, NoiseModel, Pooled, Round
from dpgram.terms.scales import MOST_SCALES, first_scales
from dpgram.terms.schema import MOST_ENCODED_COLUMNS, Schema
from dpgram.terms.words import visible

FORMATS = (1, 2, 3)
COMBINED_FORMAT = 3
MOST_NESTED = 8  # combined releases within each other: two kinds of rows leave no reason for more
PLAUSIBLE_ROWS = 1e19  # far above anything real; here and below, what is larger was changed, and would overflow later
WORST_CONDITION = 1e14  # of a round's map: beyond it, undoing the map leaves no digits
MOST_APART = 1e20  # two rounds' maps, which tell of the same rows
SYMMETRIC = ("gram", "half")  # matrices of a noise model
ROUNDING = 1e-8  # between the matrix and what the last round makes of it, relative to the sizes that are added up


class _Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class _Budget(_Strict):
    epsilon: float
    delta: float


class _Mechanism(_Strict):
    name: str
    calibration: str
    condition: str
    parameters: dict[str, float]


class _Signature(_Strict):
    by: str
    key: str
    value: str


class _File(_Strict, kw_only=True, omit_defaults=True):
    """The file, field by field, in the order it is written. A field that came later has a default, and stands only where it differs."""

    format: int
    library_version: str
    private: bool
    budget: _Budget
    neighbours: str
    unit: str
    rows: int | None
    units: int | None = None
    rows_of: Literal["table", "result"] = "table"
    row_bound: float
    mechanism: _Mechanism
    noise: msgspec.Raw
    randomness: str
    arithmetic: Literal["float64", "exact"]
    grid: float | None = None
    ledger_entry: str | None = None
    choice: str = ""
    columns: list[str]
    schema: dict[str, Any]
    gram: InFile
    signature: _Signature | None = None


class _Combined(_Strict, kw_only=True):
    """The file of releases that were combined. All but the parts follows from them, and stands here for people to read."""

    format: int
    library_version: str
    private: bool
    budget: _Budget
    neighbours: str
    unit: str
    rows_are: Literal["disjoint", "same"]
    parts: list[msgspec.Raw]


class _Head(msgspec.Struct):
    format: int


class _Columns(msgspec.Struct):
    columns: list[str]


# Fields of a release that the file holds as they are: under "mechanism", and beside it.
OF_MECHANISM = {*_Mechanism.__struct_fields__} - {"name"}
AS_THEY_ARE = {field.name for field in dataclasses.fields(GramRelease)} & {*_File.__struct_fields__}
AS_THEY_ARE -= {"format", "budget", "mechanism", "noise", "schema", "gram", "signature"}


def save(release: GramRelease, path: Path, *, overwrite: bool) -> None:
    """Write the release to ``path``, whole or not at all."""
    check_writable(path, overwrite=overwrite)
    write_whole(path, content_of(release), overwrite=overwrite)


def content_of(release: GramRelease) -> bytes:
    """What a file of the release holds."""
    if isinstance(release, CombinedRelease):
        return _combined_content(release)
    own = release.signature
    noise = {"shape": release.noise.shape, **_stored(release.noise)}
    content = _File(
        format=release.format,
        budget=_Budget(epsilon=release.budget.epsilon, delta=release.budget.delta),
        neighbours=release.neighbours.value,
        unit=release.schema.unit,
        mechanism=_Mechanism(name=release.mechanism, **_fields(release, OF_MECHANISM)),
        noise=msgspec.Raw(msgspec.json.encode(noise)),
        columns=list(release.columns),
        schema=release.schema.to_dict(),
        gram=stored(release.gram),
        signature=None if own is None else _Signature(**_fields(own, _Signature.__struct_fields__)),
        **_fields(release, AS_THEY_ARE),
    )
    text = msgspec.json.encode(content)
    return (text if release.format > 1 else msgspec.json.format(text, indent=1)) + b"\n"


def file_hash(release: GramRelease) -> str:
    """SHA-256 of a file of the release, in hexadecimal digits."""
    return hashlib.sha256(content_of(release)).hexdigest()


def signed(release: GramRelease, key: SigningKey | None) -> GramRelease:
    """The release with a signature of all that its file says; as it is without a key."""
    if key is None:
        return release
    bare = dataclasses.replace(release, signature=None)
    return dataclasses.replace(bare, signature=key.sign(content_of(bare)))


def _combined_content(release: CombinedRelease) -> bytes:
    content = _Combined(
        format=release.format,
        budget=_Budget(epsilon=release.budget.epsilon, delta=release.budget.delta),
        neighbours=release.neighbours.value,
        unit=release.schema.unit,
        parts=[msgspec.Raw(content_of(part)) for part in release.parts],
        **_fields(release, ("library_version", "private", "rows_are")),
    )
    text, wide = msgspec.json.encode(content), any(leaf.format > 1 for leaf in release.leaves)
    return (text if wide else msgspec.json.format(text, indent=1)) + b"\n"


def _stored(of: Any) -> Any:
    """A noise model, or a part of one, as a file holds it. A part that came later stands only where it differs from its default."""
    if isinstance(of, tuple):
        return [_stored(each) for each in of]
    if isinstance(of, np.ndarray):
        return stored(of)
    if not dataclasses.is_dataclass(of):
        return of
    fields = [(each, getattr(of, each.name)) for each in dataclasses.fields(of)]
    return {each.name: _stored(v) for each, v in fields if not (_came_later(each) and v == each.default)}


def _came_later(field: dataclasses.Field) -> bool:
    """Whether files were written without this part of a noise model, and mean its default."""
    return field.default is None or isinstance(field.default, tuple) or "later" in field.metadata


def _fields(of: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


_hints = cache(get_type_hints)  # of a noise model with eight rounds it is a third of the time to load


@cache
def _in_file(kind: Any) -> Any:
    """What a file holds of a field: numbers as they are, matrices in either form, dataclasses as structs that are read strictly."""
    if kind is np.ndarray:
        return InFile
    if get_origin(kind) is tuple:
        return list[_in_file(get_args(kind)[0])]  # type: ignore[misc]
    if get_origin(kind) is UnionType:
        return _in_file(get_args(kind)[0]) | None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return kind
    hints, tag = _hints(kind), getattr(kind, "shape", None)
    fields = [
        (field.name, _in_file(hints[field.name]), *([field.default] if _came_later(field) else []))
        for field in dataclasses.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, bases=(_Strict,), kw_only=True, tag_field=tag and "shape", tag=tag)


def load(path: str | Path, *, check_signature: bool = True) -> GramRelease:
    """Read a release from a file.

    Every field is checked, so a file that was damaged or changed is refused. If the release is signed, its signature is checked, too. That
    needs ``pip install 'dpgram[sign]'``. Without it, ``release.signature.holds`` is None.

    Parameters
    ----------
    path : str or Path
        The release file, as ``GramRelease.save`` or ``dpgram release`` wrote it.
    check_signature : bool
        Whether a signature that does not hold is an error. With False the release is loaded, and ``release.signature.holds`` is False.

    Returns
    -------
    GramRelease
        The release. Pass it to ``regress``, ``covariance``, ``pca`` or ``select``.

    Raises
    ------
    ReleaseFileError
        If the file cannot be read, is damaged, was changed, or has an unknown format. The message names the field. It is a
        ``BrokenSignatureError`` if the file was changed after it was signed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dpgram
    >>> schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("age", 0, 100)])
    >>> made = dpgram.release({"age": [31.0, 45.0]}, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "release.json"
    >>> made.save(path)
    >>> dpgram.load(path) == made
    True
    """
    path = Path(path)
    reader = _Reader(str(path), strict=check_signature)
    try:
        content = content_of_file(path)
        reader.check_whole(content)
        check_objects(content)
    except OSError as error:
        raise ReleaseFileError(where=str(path), field=None, problem=f"the file cannot be read ({error.strerror})") from None
    except IntakeError as error:
        raise ReleaseFileError(where=str(path), field=None, problem=str(error)) from None
    return reader.read(content)


class _Reader:
    def __init__(self, where: str, within: tuple[int, ...] = (), *, strict: bool = True):
        self._where = where
        self._strict = strict  # about signatures
        self._within = within  # places of the part that is read, and of those around it

    def check_whole(self, content: bytes) -> None:
        """Refuse a large file by its columns alone, before its objects are looked at one by one."""
        if len(content) > MOST_WORDS and self._decode(content, _Head).format != COMBINED_FORMAT:
            self._check_size(content, self._decode(content, _Columns).columns)

    def read(self, content: bytes | msgspec.Raw) -> GramRelease:
        version = self._decode(content, _Head).format
        if version not in FORMATS:
            self._refuse(
                "format", f"is {version}, but this version of dpgram reads formats {FORMATS[0]} to {FORMATS[-1]}. Update dpgram"
            )
        if version == COMBINED_FORMAT:
            return self._read_combined(self._decode(content, _Combined))
        self._check_size(content, self._decode(content, _Columns).columns)
        file = self._decode(content, _File)
        self._check_texts(file)
        schema, budget = self._schema(file), self._budget(file)
        self._check_columns(file, schema)
        self._check_rows(file, schema)
        if not math.isclose(file.row_bound, schema.effective_row_bound, rel_tol=1e-15):
            self._refuse("row_bound", f"is {file.row_bound:g}, but the schema in the file gives {schema.effective_row_bound:g}")
        noise = self._noise(file)
        made = GramRelease(
            schema=schema,
            gram=self._gram(file, noise),
            budget=budget,
            mechanism=file.mechanism.name,
            noise=noise,
            signature=self._signature(content, file.signature),
            **_fields(file.mechanism, OF_MECHANISM),
            **_fields(file, AS_THEY_ARE),
        )
        try:
            check_claims(made)
        except ClaimError as error:
            self._refuse(error.field, error.problem)
        return made

    def _check_size(self, content: bytes | msgspec.Raw, columns: list[str]) -> None:
        try:
            check_size(len(memoryview(content)), min(len(columns), MOST_ENCODED_COLUMNS))
        except IntakeError as error:
            self._refuse(None, str(error))

    def _check_texts(self, file: _File) -> None:
        told = {name: getattr(file, name) for name in ("library_version", "unit", "randomness", "ledger_entry", "choice")}
        told |= {"mechanism.name": file.mechanism.name, "mechanism.calibration": file.mechanism.calibration}
        told |= {"mechanism.condition": file.mechanism.condition}
        for field, text in told.items():
            if text is not None and len(text) > MOST_TEXT:
                self._refuse(field, f"has {len(text):,} characters, but at most {MOST_TEXT:,} are read. The file was changed")
        if (count := len(file.mechanism.parameters)) > MOST_PARAMETERS:
            self._refuse("mechanism.parameters", f"has {count:,} parameters, but no mechanism has more than {MOST_PARAMETERS}")

    def _read_combined(self, file: _Combined) -> CombinedRelease:
        """The parts, each read as its own file is, and what follows from them."""
        if len(file.library_version) > MOST_TEXT:
            self._refuse("library_version", f"has more than {MOST_TEXT:,} characters. The file was changed")
        if len(file.parts) > MOST_PARTS:
            self._refuse("parts", f"are {len(file.parts):,}, but at most {MOST_PARTS:,} releases are read as one")
        if len(self._within) >= MOST_NESTED:
            self._refuse("parts", "are combined of parts that are combined in turn, too many times. The file was changed")
        parts = [
            _Reader(self._where, (*self._within, place), strict=self._strict).read(part)
            for place, part in enumerate(file.parts)
        ]
        try:
            made = combined(parts, file.rows_are, library_version=file.library_version)
        except CombineError as error:
            return self._refuse("parts", f"cannot be combined: {str(error).rstrip('.')}")
        budget = _Budget(epsilon=made.budget.epsilon, delta=made.budget.delta)
        said = {"private": made.private, "budget": budget, "neighbours": made.neighbours.value, "unit": made.schema.unit}
        for field, follows in said.items():
            if getattr(file, field) != follows:
                self._refuse(field, "is not what follows from the parts. One of them was changed")
        return made

    def _signature(self, content: bytes | msgspec.Raw, stored: _Signature | None) -> Signature | None:
        if stored is None:
            return None
        found = checked(bytes(content), Signature(**_fields(stored, _Signature.__struct_fields__)))
        if found.holds is False and self._strict:
            raise BrokenSignatureError(where=self._where, field=self._place("signature"), by=found.by)
        return found

    def _decode(self, content: bytes | msgspec.Raw, type_: type | UnionType, within: str = "") -> Any:
        try:
            return msgspec.json.decode(content, type=type_)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at `$")
            return self._refuse((within + place.rstrip("`")).lstrip(".") or None, problem[0].lower() + problem[1:])
        except RecursionError:
            return self._refuse(None, "this is not a release file: its lists or objects are nested far too deeply")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._refuse(None, f"this is not a release file. It is not valid JSON, or it was cut short ({error})")

    def _schema(self, file: _File) -> Schema:
        try:
            schema = Schema.from_dict(file.schema)
        except SchemaError as error:
            return self._refuse("schema", str(error).rstrip("."))
        for field, needed in (("neighbours", schema.neighbours.value), ("unit", schema.unit)):
            if (stored := getattr(file, field)) != needed:
                self._refuse(field, f"is {stored!r}, but the schema in the file says {needed!r}")
        return schema

    def _budget(self, file: _File) -> Budget:
        try:
            return Budget(file.budget.epsilon, file.budget.delta)
        except BudgetError as error:
            return self._refuse("budget", str(error).rstrip("."))

    def _check_columns(self, file: _File, schema: Schema) -> None:
        if tuple(file.columns) != schema.encoded_names:
            self._refuse(
                "columns",
                f"has {len(file.columns)} names, which are not the {len(schema.encoded_names)} encoded columns of the "
                f"schema in the file. The file was changed after it was written",
            )

    def _check_rows(self, file: _File, schema: Schema) -> None:
        """Exactly one of the two numbers is there if a unit is replaced, and none if a unit is added or removed."""
        replaced, ids = schema.neighbours is Neighbours.REPLACE, schema.unit_id is not None
        for field, number, public in (("rows", file.rows, replaced and not ids), ("units", file.units, replaced and ids)):
            if public and number is not None and number > PLAUSIBLE_ROWS:
                self._refuse(field, f"is above {PLAUSIBLE_ROWS:g}, and no table is so long. The file was changed")
            if public and (number is None or number < 1):
                self._refuse(
                    field, f'must be a positive number, because neighbours = "replace" makes the number of {field} public'
                )
            if not public and number is not None:
                why = (
                    'neighbours = "add-remove" protects it'
                    if not replaced
                    else "the schema has a unit_id, so only the number of units is public"
                    if ids
                    else "the schema has no unit_id"
                )
                self._refuse(field, f"must be null, because {why}")

    def _noise(self, file: _File) -> NoiseModel:
        stored = self._decode(file.noise, Union[*(_in_file(kind) for kind in SHAPES.values())], "noise")  # type: ignore[arg-type]
        noise = self._part(file, "noise", stored, SHAPES[type(stored).__struct_config__.tag])
        sizes = [float(np.abs(r.through).max()) for r in noise.rounds]
        for k, size in enumerate(sizes):
            if not 1 / MOST_APART < size / sizes[-1] < MOST_APART:
                self._refuse(
                    f"noise.rounds[{k}].through",
                    "has a very different size from that of the last round. One of them was changed",
                )
        for k, early in enumerate(noise.rounds[:-1]):
            if early.outer:
                self._refuse(
                    f"noise.rounds[{k}].scales",
                    "has several scales, but only the last round can have several. The file was changed or damaged",
                )
        self._check_counts(file, noise)
        return noise

    def _check_counts(self, file: _File, noise: NoiseModel) -> None:
        """Rounds and scales are as many as the mechanism's parameters say, where they say it."""
        counted = {"scales": len(noise.rounds[-1].scales)} if noise.rounds else {}
        if noise.rounds and noise.pooled is None:  # else the others are told of together
            counted["rounds"] = len(noise.rounds)
        for name, there in counted.items():
            if (said := file.mechanism.parameters.get(name, there)) != there:
                self._refuse(f"mechanism.parameters.{name}", f"is {said:g}, but the file has {there}. One of them was changed")

    def _part(self, file: _File, field: str, stored: Any, kind: Any) -> Any:
        """A noise model, or a part of one, its numbers checked."""
        values, hints = {}, _hints(kind)
        for each in dataclasses.fields(kind):
            value, name = getattr(stored, each.name), f"{field}.{each.name}"
            if isinstance(value, float):
                least, most = kind.limits(len(file.columns)).get(each.name, ANY_SIZE)
                if not (least <= value <= most or (each.name == "shift" and value == 0)):
                    self._refuse(name, f"is {value:g} and must be a number from {least:g} to {most:g}")
            elif hints[each.name] is np.ndarray:
                read = self._symmetric if each.name in SYMMETRIC else self._matrix
                value = read(file, name, value)
            elif get_origin(hints[each.name]) is tuple:
                (part, *_) = get_args(hints[each.name])
                if not value and each.default is dataclasses.MISSING:
                    self._refuse(name, f"is empty, but at least one {part.__name__.lower()} is needed")
                value = tuple(self._one_of(file, f"{name}[{k}]", one, part) for k, one in enumerate(value))
            elif value is not None:
                value = self._part(file, name, value, get_args(hints[each.name])[0])
            values[each.name] = value
        made = kind(**values)
        if isinstance(made, Round):
            self._check_round(file, field, made)
        if isinstance(made, Pooled):
            self._check_pooled(field, made)
        return made

    def _one_of(self, file: _File, field: str, stored: Any, kind: Any) -> Any:
        if kind is np.ndarray:
            return self._symmetric(file, field, stored)
        return stored if kind is float else self._part(file, field, stored, kind)

    def _check_round(self, file: _File, field: str, round_: Round) -> None:
        if not 1 <= len(round_.scales) <= MOST_SCALES or round_.scales != first_scales(len(round_.scales)):
            self._refuse(f"{field}.scales", "must be 1, 4, 16 and so on. The file was changed or damaged")
        if len(round_.outer) != len(round_.scales) - 1:
            needed = f"{len(round_.scales)} scales need {len(round_.scales) - 1}"
            self._refuse(f"{field}.outer", f"has {len(round_.outer)} matrices, but {needed}")
        matrices = {"gram": round_.gram, **{f"outer[{k}]": each for k, each in enumerate(round_.outer)}}
        most, noise = self._most_rows(file), 100 * round_.sd_off_diagonal
        for name, matrix in matrices.items():
            self._check_sum(f"{field}.{name}", matrix, most + noise)
            if np.diag(matrix).min() < -noise:
                self._refuse(f"{field}.{name}", "contains a negative sum of squares. The file was changed or damaged")
        self._check_map(f"{field}.through", round_.through)

    def _most_rows(self, file: _File) -> float:
        """As many rows as can have counted in full."""
        if file.units is not None:
            return file.units * float(file.schema["rows_per_unit"])
        return PLAUSIBLE_ROWS if file.rows is None else file.rows

    def _check_pooled(self, field: str, pooled: Pooled) -> None:
        self._check_sum(f"{field}.gram", pooled.gram, PLAUSIBLE_ROWS + 100 * pooled.sd_off_diagonal)
        self._check_map(f"{field}.half", pooled.half)

    def _check_sum(self, field: str, matrix: np.ndarray, most: float) -> None:
        if np.abs(matrix).max() > most:  # mapped rows have norm one at most
            self._refuse(field, "contains a number that is too large for a sum over rows. The file was changed or damaged")

    def _check_map(self, field: str, matrix: np.ndarray) -> None:
        largest = float(np.abs(matrix).max())
        if not ANY_SIZE[0] < largest < ANY_SIZE[1] or not np.linalg.cond(matrix / largest) < WORST_CONDITION:
            self._refuse(field, "cannot be inverted: it is singular or nearly so, or its numbers are too large or too small")

    def _gram(self, file: _File, noise: NoiseModel) -> np.ndarray:
        gram = self._symmetric(file, "gram", file.gram)
        if noise.rounds:
            self._check_last(gram, noise.rounds[-1])
        elif np.abs(gram).max() > PLAUSIBLE_ROWS * file.row_bound**2 + 100 * (noise.sd_off_diagonal + noise.shift):
            self._refuse("gram", "contains a number that is too large for a sum over rows. The file was changed or damaged")
        if file.grid is not None and not (file.grid > 0 and math.frexp(file.grid)[0] == 0.5):
            self._refuse("grid", f"is {file.grid:g} and must be a power of two")
        if file.grid is not None and not ANY_SIZE[0] < file.grid < ANY_SIZE[1]:
            self._refuse("grid", f"is {file.grid:g} and must be a power of two from {ANY_SIZE[0]:g} to {ANY_SIZE[1]:g}")
        if file.grid is not None and not np.array_equal(gram / file.grid, np.rint(gram / file.grid)):
            self._refuse(
                "gram", f"contains a number that is not a multiple of the grid, {file.grid:g}. The file was changed or damaged"
            )
        return gram

    def _check_last(self, gram: np.ndarray, last: Round) -> None:
        """The matrix is what the last round makes of it, but for rounding; it is over all rows."""
        if last.sampled != 1.0:
            self._refuse(
                "noise.rounds",
                "ends with a round over a sample of the rows, but the last round must use all rows. The file was changed",
            )
        size = np.abs(last.through) @ np.abs(gram) @ np.abs(last.through).T
        apart = np.abs(last.through @ gram @ last.through.T - last.gram / last.kept)
        if not (apart <= ROUNDING * (size + np.abs(last.gram) / last.kept)).all():
            self._refuse("gram", "does not agree with the last round. One of them was changed or damaged")

    def _matrix(self, file: _File, field: str, read: InFile) -> np.ndarray:
        try:
            return unpacked(read, len(file.columns))
        except ValueError as error:
            return self._refuse(field, str(error))

    def _symmetric(self, file: _File, field: str, read: InFile) -> np.ndarray:
        matrix = self._matrix(file, field, read)
        if not np.array_equal(matrix, matrix.T):
            i, j = np.argwhere(matrix != matrix.T)[0]
            self._refuse(
                field, f"is not symmetric at {file.columns[i]!r}, {file.columns[j]!r}. The file was changed or damaged"
            )
        return matrix

    def _refuse(self, field: str | None, problem: str) -> Any:
        place = self._place(field) or None
        raise ReleaseFileError(where=self._where, field=place and visible(place), problem=visible(problem)) from None

    def _place(self, field: str | None) -> str:
        """A field of the part that is read, in the file."""
        return ".".join([*(f"parts[{place}]" for place in self._within), *([field] if field else [])])
