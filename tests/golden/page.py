"""What the page shows: the release that a page holds, and what the page's own modules compute from it with node.

Kept are results, not what is embedded. The modules are called by ``tests/page/evaluate.mjs`` of the same tree as dpgram itself."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import dpgram
from tests.golden.answers import plain
from tests.golden.releases import Setting
from tests.golden.tables import TABLES
from tests.needs import program

EMBEDDED = re.compile(r'<script type="application/json" id="release">(.*?)</script>', flags=re.DOTALL)
CELLS = {  # as the page's form hands them on: a category's place, a date's days
    "small": [{"x": 0.5, "y": 1.0, "c": 1, "b": 1}, {"x": -9.0, "y": 1.0, "c": None, "b": None}],
    "kinds": [
        {"age": 41.5, "weight": 70.0, "cost": 250.0, "region": 1, "urban": 1, "seen": 18764.5625},
        {"age": None, "weight": None, "cost": None, "region": None, "urban": None, "seen": None},
    ],
    "origin": [{"u": 1.0, "v": 0.5, "w": 0.0, "t": 0.0}],
}
FEATURES = {
    "small": ["x", "c", "b"],
    "kinds": ["age", "region", "urban", "hour", "quarter", "age_urban"],
    "origin": ["u", "v", "w"],
}
FIT = {  # of what a fit shows; the rest is words
    "confidence",
    "rSquared",
    "rSquaredInterval",
    "residualVariance",
    "residualVarianceInterval",
    "effectiveRows",
    "degrees",
    "predictions",
}
COEFFICIENT = {
    "name",
    "coefficient",
    "shrunk",
    "se",
    "seSampling",
    "seClipping",
    "sePrivacy",
    "z",
    "pValue",
    "lower",
    "upper",
    "identified",
    "interval",
}


def embedded(release: dpgram.GramRelease, bootstrapped: list[str]) -> dict:
    """What the page's script is given; targets in ``bootstrapped`` bring simulated intervals along."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.html")
        dpgram.write_report(release, path, bootstrap=bootstrapped)
        found = EMBEDDED.search(path.read_text(encoding="utf-8"))
    assert found is not None, "the page holds no release where this test looks for it"
    return json.loads(found[1])


def shown(setting: Setting, release: dpgram.GramRelease) -> dict:
    """Fits, moments and the spectrum."""
    table, cells = TABLES[setting.table], CELLS[setting.table]
    cases = [
        {"target": table.target, "features": FEATURES[setting.table], "options": {}, "cells": cells},
        {"target": table.target, "features": FEATURES[setting.table][:1], "options": {"confidence": 0.8}, "cells": cells},
        {"target": table.target, "features": FEATURES[setting.table], "options": {"intervals": "fieller"}, "cells": []},
        {"target": table.target, "features": FEATURES[setting.table], "options": {"intervals": "wald"}, "cells": []},
        {"target": table.target, "features": FEATURES[setting.table], "options": {"intercept": False}, "cells": []},
        {"target": table.target, "features": [], "options": {"intercept": False}, "cells": []},
    ]
    bootstrapped = [table.target] if setting.page_bootstrap else []
    if bootstrapped:
        cases.append({**cases[0], "options": {"intervals": "bootstrap"}})
    script = Path(dpgram.__file__).parents[2] / "tests" / "page" / "evaluate.mjs"
    done = subprocess.run(
        [str(program("node")), str(script)],
        input=json.dumps({"data": embedded(release, bootstrapped), "cases": cases}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    spectrum = {name: one for name, one in found["spectrum"].items() if name != "words"}
    return plain({"fits": [_fit(one) for one in found["fits"]], "moments": found["moments"], "spectrum": spectrum})


def _fit(found: dict) -> dict[str, Any]:
    if "error" in found:
        return {"error": True}  # in words
    rows = [{name: one for name, one in row.items() if name in COEFFICIENT} for row in found["coefficients"]]
    tests = [{name: one[name] for name in ("name", "statistic", "degrees", "pValue")} for one in found["jointTests"]]
    kept = {name: one for name, one in found.items() if name in FIT}
    return {**kept, "coefficients": {row.pop("name"): row for row in rows}, "joint_tests": tests}
