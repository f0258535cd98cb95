"""A function of dpgram as something that a worker can run although dpgram is not installed there.

Only the code that sums rows is sent, some 60 KB and as much for the compiled kernel, and it needs NumPy and PyArrow
alone. Sending it each time means that every worker runs the driver's code to the letter, whatever version is installed there. The text
of this module travels along and is run there before anything of dpgram is imported, so it uses the standard library alone."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
import sysconfig
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

PACKAGE = "dpgram"
MARK = "__shipped__"  # on the package: which code it is
ROOMS = ("terms", "encoding", "linalg", "native", "rows")
SENT = (
    *("__init__.py", "version.py", "errors.py", *ROOMS),
    *("sources/__init__.py", "sources/base.py"),
    *("engines/__init__.py", "engines/summing.py", "engines/partial.py", "engines/shipping.py"),
)


@cache
def package_code() -> bytes:
    """Path -> text of every file sent, packed; the compiled kernel, where there is one, in base 64 under the platform it is for."""
    root = resources.files(PACKAGE)
    files: dict[str, str] = {}
    for name in SENT:
        place = root / name
        sent = [place] if place.is_file() else [file for file in place.iterdir() if file.name.endswith(".py")]
        files |= {(name if file is place else f"{name}/{file.name}"): file.read_text(encoding="utf-8") for file in sent}
    if (kernel := root / "native" / "_kernel.so").is_file():
        files[f"native/{sysconfig.get_platform()}"] = base64.b64encode(kernel.read_bytes()).decode()
    return zlib.compress(json.dumps(files, sort_keys=True).encode(), 9)


def shipped(module: str, function: str, *arguments: object) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """``module.function(batches, *arguments)`` as a function of ``batches`` that brings the package along.

    The inner function is pickled by value because it is an inner one, and it refers to nothing of this module."""
    code = package_code()
    digest = hashlib.sha256(code).hexdigest()

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import json
        import sys
        import zlib

        if getattr(sys.modules.get("dpgram"), "__shipped__", None) != digest:
            files = json.loads(zlib.decompress(code))
            space: dict[str, Any] = {"__name__": "dpgram_shipping"}
            exec(compile(files["engines/shipping.py"], "<dpgram>/engines/shipping.py", "exec"), space)
            space["ensure"](files, digest)
        yield from getattr(importlib.import_module(module), function)(batches, *arguments)

    return run


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
