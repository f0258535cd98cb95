"""Node and Chromium where there are any: tests that need one are skipped loudly elsewhere, and fail in CI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.servers import REQUIRED

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def needed(found: str | None, what: str) -> str:
    """``found``, or no test: a failure where everything must run."""
    if found:
        return found
    reason = f"there is no {what}: THE PAGE WAS NOT TESTED; install the package {what}"
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def node() -> str:
    return needed(shutil.which("node"), "nodejs")


def chromium() -> str:
    return needed(shutil.which("chromium") or shutil.which("chromium-browser"), "chromium")


def evaluate(data: dict, cases: list[dict]) -> Any:
    """What the page's modules make of a release: fits, moments and the spectrum."""
    done = subprocess.run(
        [node(), str(HERE / "evaluate.mjs")],
        input=json.dumps({"data": data, "cases": cases}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=float)
