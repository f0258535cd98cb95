"""Many regressions from one release: progress is told, and nothing is left behind."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest

import dpgram
from dpgram.evidence import evidence as room
from dpgram.evidence.evidence import Evidence
from dpgram.terms.noise import SymmetricGaussian
from tests.releases import matrix_release

LEAST = 200_000  # bytes; two thousand designs that were kept would be some ten millions


def some_release():
    root = np.random.default_rng(0).normal(size=(12, 12))
    return matrix_release(root @ root.T + 200 * np.eye(12), SymmetricGaussian.orthogonal(1.0))


def grown(release, count):
    """Bytes that are still held after so many regressions, with intervals and without."""
    for _ in range(20):
        dpgram.regress(release, "y").conf_int()
    gc.collect()
    tracemalloc.start()
    for place in range(count):
        dpgram.regress(release, "y", [f"x{place % 9}", "x9"][: 1 + place % 2]).conf_int()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held


def test_thousands_of_regressions_leave_nothing_behind():
    assert grown(some_release(), 2000) < LEAST


def test_a_leak_would_be_seen(monkeypatch):
    kept, regress = [], dpgram.regress
    monkeypatch.setattr(dpgram, "regress", lambda *given, **named: kept.append(regress(*given, **named)) or kept[-1])
    assert grown(some_release(), 2000) > LEAST


def test_evidence_is_worked_out_once_and_goes_with_its_release():
    gc.collect()
    before, release = len(room._KEPT), some_release()
    assert Evidence.of(release) is Evidence.of(release)
    assert len(room._KEPT) == before + 1
    del release
    gc.collect()
    assert len(room._KEPT) == before


def test_progress_is_told_after_each():
    told: list[float] = []
    fits = dpgram.regress(some_release(), ["y", "x0", "x1", "x2"], progress=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]
    assert [fit.target for fit in fits] == ["y", "x0", "x1", "x2"]
    with pytest.raises(ZeroDivisionError):
        dpgram.regress(some_release(), "y", progress=lambda share: 1 / 0)
