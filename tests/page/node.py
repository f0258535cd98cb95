"""The page's modules, run by Node. A test that calls this has the mark ``system("nodejs")``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.needs import program

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def evaluate(data: dict, cases: list[dict], pairs: list[str] | None = None) -> Any:
    """What the page's modules make of a release: fits, moments, the spectrum, and partial correlations of the columns ``pairs``."""
    done = subprocess.run(
        [str(program("node")), str(HERE / "evaluate.mjs")],
        input=json.dumps({"data": data, "cases": cases, "pairs": pairs}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_constant=float)
