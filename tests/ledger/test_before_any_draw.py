"""No number is drawn that the ledger does not know of, whenever the process ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import dpgram
from dpgram.errors import UnreadableTableError
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


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise", "auto"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_counting_units_that_fails_is_paid_for(neighbours, mechanism):
    """Whether a query fails can depend on somebody's row: else questions could be put to the ids free of charge."""
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)], neighbours=neighbours, unit_id="who", rows_per_unit=2)
    names = pa.schema({"x": pa.float64(), "who": pa.string()})

    def batches():
        yield pa.record_batch({"x": [0.5], "who": ["a"]}, schema=names)
        raise ValueError("a cast fails in some row")

    ledger = dpgram.SessionLedger(1.0, 1e-6, neighbours=neighbours)
    reader = pa.RecordBatchReader.from_batches(names, batches())
    with pytest.raises(UnreadableTableError):
        dpgram.release(reader, schema, epsilon=1, delta=1e-6, mechanism=mechanism, ledger=ledger)
    assert len(ledger.entries) == 1
