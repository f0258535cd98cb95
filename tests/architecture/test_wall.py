"""What an analyst runs does not load what reads rows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from dpgram import curator

BLOCKED = (
    "import sys\nfor name in ('pyarrow', 'pandas', 'polars', 'duckdb', 'matplotlib', 'sklearn'): sys.modules[name] = None\n"
)
ANALYST = """
import dpgram
release = dpgram.load({path!r})
print(dpgram.regress(release, "y", ["x"]).params)
assert not any(name.startswith(("dpgram.rows", "dpgram.sources", "dpgram.curator")) for name in sys.modules)
from dpgram.cli.app import run
assert run(["inspect", {path!r}]) == 0
assert run(["regress", {path!r}, "--target", "y"]) == 0
"""


def test_a_release_loads_without_the_libraries_that_read_rows(tmp_path, small_release):
    path = tmp_path / "release.json"
    small_release.save(path)
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + ANALYST.format(path=str(path))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_block_would_be_felt():
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + "import dpgram; dpgram.release"], capture_output=True, text=True, check=False
    )
    assert "pyarrow" in done.stderr


def test_a_release_by_a_named_mechanism_imports_no_forecast():
    """They take a while to import, and only "auto" and plans need them."""
    script = """
import sys
import dpgram
schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
dpgram.release({"x": [0.5] * 9}, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise")
slow = ("dpgram.planning", "dpgram.regression", "dpgram.inference", "dpgram.report", "scipy.optimize", "scipy.stats")
assert not (found := [name for name in sys.modules if name.startswith(slow)]), found
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_label_is_printed_without_scipy(tmp_path, small_release):
    """Its import takes as long as all else that `dpgram inspect` does."""
    small_release.save(tmp_path / "release.json")
    script = f"""
import sys
sys.modules["scipy"] = None
from dpgram.cli.app import run
assert run(["inspect", {str(tmp_path / "release.json")!r}]) == 0
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_curator_orders_calls_and_stays_short():
    """At most 204 lines besides its docstrings: what computes belongs into a room."""
    text = Path(curator.__file__).read_text(encoding="utf-8")
    documented = [
        each.body[0]
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.Module | ast.FunctionDef) and ast.get_docstring(each)
    ]
    words = sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in documented)
    assert len(text.splitlines()) - words <= 204
