"""Files that are written whole or not at all.

The content goes to a draft beside the file, to the disk, and then under the file's name in one step. A draft is locked by whoever
writes it, and the system lets go of a lock when its process ends, however it ends: so the next writer can tell a draft that was left
by a killed process from one that is being written, by a process in another container too, and removes it."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from dpgram.errors import OutputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: there a draft that was left stays
    fcntl = None


def check_writable(path: Path) -> None:
    """Raise if ``path`` cannot be written, before any work is done for it."""
    folder = path.parent
    if not folder.is_dir():
        raise OutputError(f"cannot write {path}: there is no folder {folder}. Create it, or choose another place.")
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it is a device or a pipe, but a regular file is needed. Choose another place.")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {path}: folder {folder} is not writable. Choose another place.")


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``. A crash leaves the old file, or none, but never a part of the new one."""
    path = path.resolve()  # through a link, the file it points to is written
    check_writable(path)
    _clear_drafts(path)
    try:
        with _draft(path) as draft:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        _sync_folder(path.parent)
    except OSError as error:
        problem = error.strerror
    else:
        return
    raise OutputError(f"cannot write {path}: {problem}. Nothing was left behind.")


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """An empty file beside ``path`` that is ours alone, and is gone at the end unless it was moved away."""
    while True:
        # Not the number of the process: threads share it, and in two containers it may be the same.
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        with contextlib.ExitStack() as closed, contextlib.ExitStack() as removed:
            closed.callback(os.close, held)
            removed.callback(draft.unlink, missing_ok=True)
            if fcntl is None:
                closed.close()  # Windows moves no file that is open, and there is no lock to hold
            if not _is_lost(draft, held):
                yield draft
                return


def _is_lost(draft: Path, held: int) -> bool:
    """Lock the new draft; True if another writer came in between, and took it for one that was left."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not os.path.samestat(draft.stat(), os.fstat(held))
    except (BlockingIOError, FileNotFoundError):
        return True
    except OSError:  # a file system without locks: nobody can take it for one that was left
        return False


def _clear_drafts(path: Path) -> None:
    """Remove drafts of ``path`` that a killed process has left. Whatever stands in the way of that does not matter."""
    name = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{16}\.part")
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(path.parent)) if fcntl is not None else []:
            if name.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _clear(entry.path)


def _clear(draft: str) -> None:
    held = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if fcntl is not None and stat.S_ISREG(os.fstat(held).st_mode):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where somebody is writing it
            os.unlink(draft)
    finally:
        os.close(held)


def _sync_folder(folder: Path) -> None:
    """Bring the file's new name to the disk too. Where a folder cannot be synced the file is whole all the same."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
