"""The busy office in small, and books that somebody has tampered with."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from pathlib import Path

import pytest

from dpgram import FileLedger
from experiments.soak import office

ROOT = Path(__file__).parents[2]


@pytest.fixture
def day(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "src")]))
    *_, last = office.spend(tmp_path, releases=10, at_once=4, seed=3)
    return last


def test_a_short_day_loses_nothing_and_what_is_lost_is_noticed(day, tmp_path):
    assert day.faults == []
    assert len(day.desks) == 10
    assert day.made > 0
    assert day.reads > 0
    ledger = FileLedger(tmp_path / "ledger.sqlite")
    done = next(desk for desk in day.desks if desk.code == 0)
    whole = done.out.read_bytes()

    done.out.write_bytes(whole[: len(whole) // 2])
    assert any("is not whole" in fault for fault in office._wrong_in_books(tmp_path, ledger, day))
    done.out.unlink()
    assert any("there is no release" in fault for fault in office._wrong_at_desks(day.desks))
    done.out.write_bytes(whole)
    (tmp_path / "release-copy.json").write_bytes(whole)
    assert any("share line" in fault for fault in office._wrong_in_books(tmp_path, ledger, day))
    (tmp_path / "release-copy.json").unlink()

    other = tmp_path / "other"
    other.mkdir()
    elsewhere = FileLedger.create(other / "ledger.sqlite", epsilon=20, delta=1e-6, unit="person", dataset="office")
    (other / done.out.name).write_bytes(whole)
    assert any("is not in the ledger" in fault for fault in office._wrong_in_books(other, elsewhere, day))

    loud = dataclasses.replace(done, code=1, words="Traceback (most recent call last)")
    stuck = dataclasses.replace(done, words="stuck")
    silent = dataclasses.replace(done, code=2, words="error: one\nand another line")
    assert len(office._wrong_at_desks([loud, stuck, silent])) >= 3
    with sqlite3.connect(ledger.path) as database:
        assert database.execute("select count(*) from lines").fetchone()[0] >= 2 * day.made
