"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from dpgram.errors import OutputError


def check_writable(path: Path) -> None:
    """Raise if ``path`` cannot be written, before any work is done for it."""
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"cannot write {path}: there is no folder {folder}. Create it, or choose another place.")
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it is a device or a pipe, and a whole file is needed. Choose another place.")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {path}: folder {folder} is not writable. Choose another place.")


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``. A crash leaves the old file, or none, but never a part of the new one."""
    path = path.resolve()  # through a link, the file it points to is written
    check_writable(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError as error:
        problem = error.strerror
    else:
        return
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
    raise OutputError(f"cannot write {path}: {problem}. Nothing was left behind.")
