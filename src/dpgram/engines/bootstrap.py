"""Makes one certain state of dpgram's code importable on a machine that may have none, or another.

Its text travels with a task and is run there before anything of dpgram is imported, so it uses the standard library alone."""

from __future__ import annotations

import base64
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Mapping, Sequence
from pathlib import Path

PACKAGE = "dpgram"
MARK = "__shipped__"  # on the package: which code it is


class Shipped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports dpgram from texts in memory: no file is written, none is left behind, and none can be put in its place.

    ``kernel`` is the compiled one, if the driver has sent one for this platform."""

    def __init__(self, files: Mapping[str, str]):
        self._files = files
        self.kernel = base64.b64decode(files.get(f"native/{sysconfig.get_platform()}", ""))

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        inner = name.replace(".", "/").removeprefix(PACKAGE).lstrip("/")
        folder = f"{inner}/__init__.py".lstrip("/")
        origin = folder if folder in self._files else f"{inner}.py"
        if origin not in self._files:
            return None
        return importlib.util.spec_from_loader(name, self, origin=origin, is_package=origin == folder)

    def exec_module(self, module: types.ModuleType) -> None:
        assert module.__spec__ is not None
        origin = str(module.__spec__.origin)
        module.__file__ = f"<{PACKAGE}>/{origin}"  # no such file: what looks for its neighbours there finds none
        exec(compile(self._files[origin], module.__file__, "exec"), module.__dict__)


def ensure(files: Mapping[str, str], digest: str) -> None:
    """From now on ``import dpgram`` gives the code in ``files``: the installed package if it is the same, else that in memory."""
    if not installed_is_same(files):
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        # Loaders of an earlier task have another class of the same name: this module's text is run anew each time.
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != Shipped.__name__]
        sys.meta_path.insert(0, Shipped(files))
    setattr(importlib.import_module(PACKAGE), MARK, digest)


def installed_is_same(files: Mapping[str, str]) -> bool:
    """Whether ``import dpgram`` would find these very texts on disk."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
        if spec is None or spec.origin is None:
            return False
        folder = Path(spec.origin).parent
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in files.items() if name.endswith(".py"))
    except (ImportError, OSError, ValueError):
        return False
