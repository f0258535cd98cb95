"""A release file from a stranger, before anything is made of it: how large it may be, how deep, and that no key is there twice.

What is refused here costs one pass over the bytes, and no more memory than they take."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

MOST_BYTES = 4 << 30
MOST_PIPED = 256 << 20  # from what is no regular file, and so does not say how large it is
MOST_WORDS = 32 << 20  # bytes of a file besides its matrices
BYTES_OF_NUMBER = 32  # of a matrix, with its indentation
MOST_MATRICES = 64
MOST_LEVELS = 32  # objects within each other: of releases that were combined, a few for each of them
MOST_OBJECTS = 1_000_000  # in all: a thousand releases of 700 columns have fewer, and are as large as a file may be
MOST_KEYS = 5_000  # of one object: a schema has at most 4,096 columns
MOST_PARAMETERS = 250
MOST_TEXT = 100_000  # characters of a text of the label

# Texts of lists all at once, a text whole, or a brace; what lies between them is not looked at. Every byte is read a few times at most,
# whatever they are: no quote is escaped any more, so only the last one can be without another, and nothing is tried twice.
MARKS = re.compile(rb'(?:"[^"]*+"[ \t\r\n]*+[],][][ \t\r\n,]*+)++|"[^"]*+"|[{}]')
COLON = re.compile(rb"[ \t\r\n]*+:")


class IntakeError(ValueError):
    """The content is not to be read; in words why."""


def content_of_file(path: Path) -> bytes:
    """The bytes of the file, if they are not too many. Raises OSError as well."""
    with path.open("rb") as file:
        status = path.stat()
        regular = stat.S_ISREG(status.st_mode)
        most = MOST_BYTES if regular else MOST_PIPED
        if regular and status.st_size > most:
            raise IntakeError(too_large(status.st_size, most))
        content = file.read(-1 if regular else most + 1)
    if len(content) > most:
        raise IntakeError(too_large(len(content), most))
    return content


def check_size(size: int, columns: int) -> None:
    """Raise if no release of so many columns takes so many bytes."""
    if size > (most := MOST_WORDS + MOST_MATRICES * BYTES_OF_NUMBER * columns**2):
        raise IntakeError(f"{too_large(size, most)}, because a release of {columns:,} columns needs no more")


def too_large(size: int, most: int) -> str:
    return f"the file has {size / 1e6:,.1f} MB, but at most {most / 1e6:,.1f} MB are read"


def check_objects(content: bytes) -> None:
    """Raise if objects are nested too deeply, have too many keys, or one key twice. Whether it is JSON is for the decoder to say."""
    inside: list[set[bytes]] = []
    objects = 0
    for mark in MARKS.finditer(_without_escaped_quotes(content)):
        text = content[mark.start() : mark.end()]
        if text == b"{":
            if len(inside) == MOST_LEVELS:
                raise IntakeError(f"its objects are nested more than {MOST_LEVELS} deep, which no release needs")
            objects += 1
            if objects > MOST_OBJECTS:
                raise IntakeError(f"it has more than {MOST_OBJECTS:,} objects, which no release needs")
            inside.append(set())
        elif text == b"}":
            if inside:
                inside.pop()
        elif inside and COLON.match(content, mark.end()):
            key = _plain(text) if b"\\" in text else text
            if key in inside[-1]:
                raise IntakeError(
                    f"it has the key {_shown(key)} twice in one object, so what it says is unclear. The file was changed"
                )
            inside[-1].add(key)
            if len(inside[-1]) > MOST_KEYS:
                raise IntakeError(f"one of its objects has more than {MOST_KEYS:,} keys, which no release needs")


def _without_escaped_quotes(content: bytes) -> bytes:
    """The content, as long as it is, with other letters for escaped quotes and backslashes."""
    if b"\\" not in content:
        return content
    return content.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def _plain(text: bytes) -> bytes:
    """A text without the escapes that it does not need, so that two ways to write a key are the same."""
    try:
        return json.dumps(json.loads(text)).encode()
    except ValueError:
        return text


def _shown(key: bytes) -> str:
    return key.decode(errors="replace")[:60]
