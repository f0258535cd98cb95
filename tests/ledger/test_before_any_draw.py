"""No number is drawn that the ledger does not know of, whenever the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpgram
from dpgram.mechanisms.registry import MECHANISMS
from tests.conftest import small_schema, small_table
from tests.ledger.kill_release import NotedLedger, watched

ROOT = Path(__file__).parents[2]
OPTIONS = {"noisy-inverse": {"rho": 0.1}}


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_every_mechanism_draws_after_the_reservation(mechanism, arithmetic, tmp_path):
    ledger, options = (
        NotedLedger(tmp_path / "ledger"),
        {"mechanism": mechanism, "arithmetic": arithmetic, **OPTIONS.get(mechanism, {})},
    )
    with watched(ledger.drawn):
        dpgram.release(small_table(), small_schema(), epsilon=5, delta=1e-6, ledger=ledger, **options)
    assert ledger.read() == ["reserved", "drawn", "committed"]


@pytest.mark.parametrize("arithmetic", ["exact", "float"])
def test_a_release_killed_at_any_line_has_reserved_what_it_drew(arithmetic, tmp_path):
    """One process for every line of the curator, killed when it gets there: "drawn" never stands without "reserved"."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.ledger.kill_release", arithmetic, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Kills fell before and after each of the three, and between them there is nothing else.
    assert set(done.stdout.splitlines()) == {"", "reserved", "reserved drawn", "reserved drawn committed"}
