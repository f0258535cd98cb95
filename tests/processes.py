"""What a process has open, as Linux tells it."""

from __future__ import annotations

import os
from contextlib import suppress


def open_files(process: int) -> list[str]:
    """Names of the files that a process has open. It goes on meanwhile: a file that it closes while we look is left out."""
    names = []
    for link in os.listdir(f"/proc/{process}/fd"):
        with suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{process}/fd/{link}"))
    return names
