"""The whole suite can be collected with the packages of the ``test`` extra alone: that is what `make test` installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
COLLECT = """
import importlib.util, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + repr(name))

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name.partition(".")[0] in {blocked!r} else find(name, package)
sys.meta_path.insert(0, Missing())
import pytest
sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *{paths!r}]))
"""


def packages(extra: str) -> set[str]:
    """The names under which what an extra brings is imported, those of extras that it names included."""
    names: set[str] = set()
    for requirement in EXTRAS[extra]:
        name, inner = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        names |= {n for other in inner.split(",") for n in packages(other)} if name == "dpgram" else {name.replace("-", "_")}
    return names


def collected(blocked: list[str], *paths: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", COLLECT.format(blocked=blocked, paths=list(paths))]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_test_is_collected_without_what_the_test_extra_does_not_bring():
    others = set().union(*(packages(extra) for extra in EXTRAS)) - packages("test")
    assert others >= {"torch", "diffprivlib", "atheris"}
    done = collected(sorted(others))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "tests/engines/test_partial.py" in done.stdout


def test_a_module_that_imports_such_a_package_would_be_noticed(tmp_path):
    (tmp_path / "test_wrong.py").write_text("import torch\ndef test_nothing(): pass\n")
    done = collected(["torch"], str(tmp_path))
    assert done.returncode == 2
    assert "ModuleNotFoundError" in done.stdout


@pytest.mark.xdist_group("kept together")
def test_tests_of_one_group_run_in_one_worker(request):
    """By a name behind their own, which pytest-xdist does not write under every version of pytest; else each worker starts a cluster."""
    assert request.node.nodeid.endswith("@kept together") or "PYTEST_XDIST_WORKER" not in os.environ
