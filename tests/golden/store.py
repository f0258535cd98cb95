"""Where the goldens lie, and how they are written: compressed JSON, whose numbers read back to the bit."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILES = HERE / "files"  # release files as the starting commit wrote them
WHOLE = {  # whose contents are kept as files of their own too
    "gaussian-noise-replace.json": "gaussian-noise/replace",
    "whitened-noise-add-remove.json": "whitened-noise/add-remove",
    "noisy-inverse-exact.json": "noisy-inverse/replace/exact-arithmetic",
}


@functools.cache
def golden(name: str) -> Any:
    """What is kept under ``name``: "releases", "answers", "page" or "doors"."""
    return json.loads(gzip.decompress((HERE / f"{name}.json.gz").read_bytes()))


def keep(name: str, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    golden.cache_clear()
