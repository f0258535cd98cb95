"""Files that are written whole or not at all.

The content goes to a draft beside the file, to the disk, and then under the file's name in one step. A draft is locked by whoever
writes it, and the system lets go of a lock when its process ends, however it ends: so the next writer can tell a draft that was left
by a killed process from one that is being written, by a process in another container too, and removes it.

A draft can be made long before there is something to write. The space on the disk is then taken, and so is the right to write there."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from dpgram.errors import OutputError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: there a draft that was left stays
    fcntl = None


FULL = {errno.ENOSPC, errno.EDQUOT}  # a disk, or what a user may have of it
NO_RESERVING = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}  # how file systems say that they cannot set space aside
BLOCK = 1 << 20


def check_writable(path: Path, *, overwrite: bool = True) -> None:
    """Raise if ``path`` cannot be written, or is there and must not be replaced, before any work is done for it."""
    target = _target(path)
    folder = target.parent
    if not folder.is_dir():
        missing = (
            f"it is a link to {target}, and there is no folder {folder}"
            if path.is_symlink()
            else f"there is no folder {path.parent}"
        )
        raise OutputError(f"cannot write {path}: {missing}. Create it, or choose another place.")
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder. Name a file in it.")
    if path.exists() and not path.is_file():
        raise OutputError(f"cannot write {path}: it is a device or a pipe, but a regular file is needed. Choose another place.")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"cannot write {path}: folder {folder} is not writable. Choose another place.")
    if path.exists() and not overwrite:
        raise OutputError(
            f"{path} exists.", "Pass --overwrite (overwrite=True in Python) to replace it, or choose another place."
        )


def _target(path: Path) -> Path:
    """The file that is written: through a link, the one that it points to."""
    try:
        target = Path(os.path.realpath(path))
        circular = target.is_symlink()
    except (OSError, ValueError) as error:
        raise OutputError(
            f"cannot write {str(path)!r}: {getattr(error, 'strerror', None) or error}. Choose another place."
        ) from None
    if circular:
        raise OutputError(
            f"cannot write {path}: it is a link that leads back to itself. Remove the link, or choose another place."
        )
    return target


def write_whole(path: Path, content: bytes, *, overwrite: bool = True) -> None:
    """Put ``content`` at ``path``. A crash leaves the old file, or none, but never a part of the new one."""
    with drafted(path, overwrite=overwrite) as draft:
        draft.finish(content)


@contextlib.contextmanager
def drafted(path: Path, *, overwrite: bool, size: int = 0) -> Iterator[Draft]:
    """A draft of the file ``path``, for which ``size`` bytes of the disk are taken. It is gone at the end unless it was finished."""
    check_writable(path, overwrite=overwrite)
    path = _target(path)
    _clear_drafts(path)
    with contextlib.ExitStack() as held:
        with _failures_in_words(path):
            place = held.enter_context(_draft(path))
            if size:
                _take(place, size)
        yield Draft(path, place, overwrite)


@dataclass(frozen=True)
class Draft:
    """A file that is ours alone, beside the one that it will become."""

    path: Path
    _place: Path
    _overwrite: bool

    def finish(self, content: bytes) -> None:
        """Make it the file, with this content. If that fails the space is free again."""
        try:
            with _failures_in_words(self.path):
                with self._place.open("r+b") as file:
                    file.write(content)
                    file.truncate()  # what was taken and not needed
                    file.flush()
                    os.fsync(file.fileno())
                self._move()
        except BaseException:
            _remove(self._place)
            raise
        _sync_folder(self.path.parent)

    def _move(self) -> None:
        """Under the file's name, in one step. Without leave to replace a file, one that has appeared meanwhile stays."""
        if not self._overwrite:
            try:
                os.link(self._place, self.path)
                return
            except OSError:  # it exists, or the file system has no such links: then the look is a moment before the step
                check_writable(self.path, overwrite=False)
        os.replace(self._place, self.path)


@contextlib.contextmanager
def _failures_in_words(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problem, full = error.strerror, error.errno in FULL
    else:
        return
    advice = "Free some, or choose another disk." if full else "Choose another place."
    raise OutputError(f"cannot write {path}: {problem}.", f"{advice} Nothing was left behind.")


def _take(draft: Path, size: int) -> None:
    """Have the system set aside ``size`` bytes for the draft; where it cannot, they are written."""
    with draft.open("r+b") as file:
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), 0, size)
                return
            except OSError as error:
                if error.errno not in NO_RESERVING:
                    raise
        for start in range(0, size, BLOCK):
            file.write(bytes(min(BLOCK, size - start)))
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _draft(path: Path) -> Iterator[Path]:
    """An empty file beside ``path`` that is ours alone, and is gone at the end unless it was moved away."""
    while True:
        # Not the number of the process: threads share it, and in two containers it may be the same.
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        held = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        with contextlib.ExitStack() as closed, contextlib.ExitStack() as removed:
            closed.callback(os.close, held)
            removed.callback(_remove, draft)
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


def _remove(draft: Path) -> None:
    """Remove our draft if it is still there. If that fails, the next writer removes it."""
    with contextlib.suppress(OSError):
        draft.unlink()


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
