"""A function of dpgram as something that a worker can run although dpgram is not installed there.

Only the code that reads rows and sums them is sent, some 60 KB and as much for the compiled kernel, and it needs NumPy and PyArrow
alone. Sending it each time means that every worker runs the driver's code to the letter, whatever version is installed there."""

from __future__ import annotations

import base64
import hashlib
import json
import sysconfig
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import Any

SENT = ("__init__.py", "version.py", "errors.py", "terms", "encoding", "linalg", "native", "rows", "sources", "engines")


@cache
def package_code() -> bytes:
    """Path -> text of every file sent, packed; the compiled kernel, where there is one, in base 64 under the platform it is for."""
    root = resources.files("dpgram")
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
            space: dict[str, Any] = {"__name__": "dpgram_bootstrap"}
            exec(compile(files["engines/bootstrap.py"], "<dpgram>/engines/bootstrap.py", "exec"), space)
            space["ensure"](files, digest)
        yield from getattr(importlib.import_module(module), function)(batches, *arguments)

    return run
