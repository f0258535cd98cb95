"""A plugin for pytest in a fresh process, for a mistake that is in no function: whoever imports its file gets it with the mistake.

``forks`` starts the process, and says in its environment which mistake it is and where to tell how it goes."""

from __future__ import annotations

import json
import os

from experiments.mutants.mutations import Mutant
from experiments.mutants.planting import import_with

MISTAKE, PIPE = "DPGRAM_MISTAKE", "DPGRAM_MISTAKE_PIPE"
SECONDS = 30.0  # of processor time that a test may take


def tell(line: str) -> None:
    os.write(int(os.environ[PIPE]), f"{line}\n".encode())


def pytest_runtest_logstart(nodeid: str) -> None:
    from experiments.mutants.forks import limit_to

    pytest_runtest_logstart.begun = True  # type: ignore[attr-defined]
    limit_to(SECONDS)
    tell(f"test {nodeid}")


def pytest_sessionfinish(exitstatus: int) -> None:
    begun = getattr(pytest_runtest_logstart, "begun", False)
    tell("survived" if exitstatus == 0 else "failed" if begun else "no import")


if (told := os.environ.get(MISTAKE)) is not None and told != "null":
    import_with(Mutant(**json.loads(told)))
