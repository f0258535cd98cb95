"""No number is drawn that the ledger does not know of, whenever the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpgram
from dpgram import curator
from dpgram.mechanisms.registry import MECHANISMS
from tests.conftest import small_schema, small_table
from tests.ledger.kill_release import FileLedger, watched

ROOT = Path(__file__).parents[2]
OPTIONS = {"noisy-inverse": {"rho": 0.1}}


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_every_mechanism_draws_after_the_reservation(mechanism, tmp_path, monkeypatch):
    ledger = FileLedger(tmp_path / "ledger")
    monkeypatch.setattr(curator, "SecureSource", watched(ledger.drawn))
    dpgram.release(
        small_table(), small_schema(), epsilon=5, delta=1e-6, mechanism=mechanism, ledger=ledger, **OPTIONS.get(mechanism, {})
    )
    happened = ledger.read()
    assert happened[0] == "reserved"
    assert happened[-1] == "committed"
    assert set(happened[1:-1]) == {"drawn"}


def test_a_release_killed_at_any_line_has_reserved_what_it_drew(tmp_path):
    """One process for every line of the curator, killed when it gets there: "drawn" never stands without "reserved"."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.ledger.kill_release", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # Kills fell before and after each of the three, and between them there is nothing else.
    assert set(done.stdout.splitlines()) == {"", "reserved", "reserved drawn", "reserved drawn committed"}
