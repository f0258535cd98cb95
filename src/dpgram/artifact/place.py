"""The file that a release is made for: its space is taken before the noise is drawn, and if it cannot be written, another is.

The budget is spent when the noise is drawn. So what could go wrong with the file should go wrong before, and what still does must not cost
the release."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dpgram.artifact.atomic import Draft, drafted, write_whole
from dpgram.artifact.files import content_of
from dpgram.artifact.release import GramRelease
from dpgram.errors import OutputError, UnsavedReleaseError
from dpgram.terms.noise import MANY_COLUMNS
from dpgram.terms.scales import MOST_SCALES
from dpgram.terms.schema import Schema

NUMBER_BYTES, PACKED_BYTES = 32, 12  # of one entry of a matrix: with its indentation, or among many columns
WORDS_BYTES = 16_384  # of the label, with the parameters of all rounds
INDENTED = 3  # how much longer the schema is with line breaks and spaces


def expected_size(schema: Schema, rounds: int) -> int:
    """About how many bytes the file of a release takes, rather more than fewer; ``rounds`` are at most so many, or none.

    Everything here is public: the schema, and the number of matrices that a mechanism publishes."""
    dim = len(schema.encoded)
    matrices = 1
    if rounds:
        pairs = rounds if dim <= MANY_COLUMNS else 2  # of many columns the last round, and one for all of them
        matrices += 2 * pairs + MOST_SCALES - 1
    numbers = matrices * dim**2 * (NUMBER_BYTES if dim <= MANY_COLUMNS else PACKED_BYTES)
    names = sum(len(name.encode()) + INDENTED for name in schema.encoded_names)
    declared = len(msgspec.json.encode(schema.to_dict())) + 64 * len(schema.columns)  # learnt intervals among them
    return numbers + INDENTED * (names + declared) + WORDS_BYTES


@contextlib.contextmanager
def reserved(path: Path, schema: Schema, *, rounds: int, overwrite: bool) -> Iterator[Draft]:
    """A draft of the file of a release, whose space is taken. What fails here comes before the budget is spent, and says so."""
    with contextlib.ExitStack() as held:
        try:
            draft = held.enter_context(drafted(path, overwrite=overwrite, size=expected_size(schema, rounds)))
        except OutputError as error:
            raise OutputError(error.problem, f"{error.advice} No budget was spent.") from None
        yield draft


def save_paid(release: GramRelease, draft: Draft) -> UnsavedReleaseError | None:
    """Put a release that is paid for in its place. If that fails, put it somewhere else, and return the error that says where.

    An interrupt is passed on, with a note that says where the release is."""
    content = content_of(release)
    try:
        draft.finish(content)
        return None
    except OutputError as error:
        unsaved = _rescued(release, content, draft.path, error.problem)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(str(_rescued(release, content, draft.path, f"{draft.path} was not written.")))
        raise
    return unsaved


def _rescued(release: GramRelease, content: bytes, path: Path, problem: str) -> UnsavedReleaseError:
    """Write the release beside ``path``, or else to the system's temporary folder."""
    fallback = None
    for folder in (path.parent, Path(tempfile.gettempdir())):
        other = folder / f"{path.stem}.{secrets.token_hex(4)}{path.suffix}"
        try:
            write_whole(other, content, overwrite=False)
        except OutputError:
            continue
        fallback = other
        break
    line = "" if release.ledger_entry is None else f"Line {release.ledger_entry.partition(':')[0]} of the ledger"
    return UnsavedReleaseError(problem=problem, release=release, fallback=fallback, line=line)
