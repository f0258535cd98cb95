"""What some tests need beside the ``test`` extra: programs of the system, and Python packages that weigh too much for everybody.

A test says so by a mark, ``@pytest.mark.system("postgresql")`` or ``@pytest.mark.package("torch")``. Where the thing is missing the test is
skipped, and the last lines of the run name what to install. Where everything must run (``DPGRAM_REQUIRE=system`` or ``package``, which
`make test-system` and `make test-packages` set), the test fails instead.

`python -m tests.needs` prints the missing Debian packages."""

from __future__ import annotations

import glob
import importlib
import os
import re
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from types import ModuleType
from typing import NoReturn

import pytest

PROGRAMS = {  # Debian package -> what must be there of it: of several names in one entry, any
    "postgresql": (("initdb",), ("pg_ctl",)),
    "openjdk-17-jre-headless": (("java",),),
    "chromium": (("chromium", "chromium-browser"),),
    "nodejs": (("node",),),
}
FIXTURES = {  # fixture -> Debian package; those that are asked for by name while a test runs are not seen, so "spark" stands for them
    "postgresql": "postgresql",
    "cluster": "openjdk-17-jre-headless",
    "spark": "openjdk-17-jre-headless",
    "browser": "chromium",
}
TARGETS = {"system": "make test-system", "package": "make test-packages"}  # kind of need -> what installs it and runs the tests
REQUIRED = "DPGRAM_REQUIRE"


def program(*names: str) -> str | None:
    """Where the first of these programs lies. Debian keeps those of PostgreSQL off the path."""
    for name in names:
        places = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
        if where := shutil.which(name) or (places[-1] if places else None):
            return where
    return None


def is_here(kind: str, name: str) -> bool:
    """Whether the Debian package ("system") or Python package ("package") is on this machine."""
    if kind == "package":
        return find_spec(name) is not None
    return all(program(*names) for names in PROGRAMS[name])


def refuse(kind: str, name: str, *, whole_module: bool = False) -> NoReturn:
    """End a test, or the import of a whole module of them, for want of ``name``."""
    reason = f"needs the {kind} {name!r}, which is not on this machine: `{TARGETS[kind]}` installs it"
    if os.environ.get(REQUIRED) == kind:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=whole_module)


def package(name: str) -> ModuleType:
    """The Python package, for a module that cannot even be imported without it."""
    if not is_here("package", name):
        refuse("package", name, whole_module=True)
    return importlib.import_module(name)


def check(item: pytest.Item) -> None:
    """Skip or fail the test if anything that its marks name is missing."""
    for kind in TARGETS:
        for mark in item.iter_markers(kind):
            for name in mark.args:
                if not is_here(kind, name):
                    refuse(kind, name)


def closing_lines(reasons: Iterable[str]) -> list[str]:
    """One line for each kind of need: how many tests or modules were skipped, for want of what, and what to do."""
    skipped: dict[str, list[str]] = {}
    for reason in reasons:
        if told := re.search(r"needs the (system|package) '([^']*)'", reason):
            skipped.setdefault(told[1], []).append(told[2])
    return [
        f"NOT RUN: {len(names)} tests or modules that need {', '.join(sorted(set(names)))}. "
        f"`{TARGETS[kind]}` installs what is missing and runs them."
        for kind, names in sorted(skipped.items(), reverse=True)
    ]


if __name__ == "__main__":
    print(*(name for name in PROGRAMS if not is_here("system", name)))
