"""Mistakes planted into the package itself: the audit must say that something is wrong.

All draws are seeded. A right mechanism is accused with probability at most 1e-6 per audit (``CONFIDENCE``)."""

from __future__ import annotations

import functools
import gc
from dataclasses import replace

import pytest

from dpgram.audits.fresh import faults_of_processes
from dpgram.audits.run import audit
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import Mechanism
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from tests.audits.planted import MISTAKES

CONFIDENCE = 1 - 1e-6
MANY = {"tails cut at four": 200_000, "single precision": 50_000}  # releases, where a few do not show it
PAIRS = {"the mean is taken off by the true Gram": ["the last direction"], "a sensitivity from the data": ["a row of zeros"]}
NEARBY = ("cache", "third column")  # what shows with other bounds, budgets or columns only
BOTH = ("exact:",)  # what shows in exact arithmetic only


def forget():
    for each in gc.get_objects():
        if type(each) is functools._lru_cache_wrapper and each.__module__.startswith(
            "dpgram."
        ):  # isinstance wakes other objects
            each.cache_clear()


@pytest.fixture
def nothing_remembered():
    """Calibrations keep results; those of a planted mistake must not outlive it."""
    forget()
    yield
    forget()


def found_in(mistake, monkeypatch, draws):
    name, neighbours, options, patches = MISTAKES[mistake]
    mechanism = MECHANISMS[name]
    for where, attribute, wrong in patches:
        if isinstance(where, Mechanism):
            mechanism = replace(where, **{attribute: wrong})
        else:
            monkeypatch.setattr(where, attribute, wrong)
    task = registry.task(mechanism, Budget(1.0, 0.01), neighbours, 2, 1.5, "exact", options)
    return audit(
        mechanism,
        task,
        SeededSource(1),
        draws=draws,
        confidence=CONFIDENCE,
        only=PAIRS.get(mistake, ["orthogonal rows", "one row more"]),
        others=(ExactSource(3),) if mistake.startswith(BOTH) else (),
        nearby=any(word in mistake for word in NEARBY),
    )


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_audit_finds_a_mistake_in_the_package(mistake, monkeypatch, nothing_remembered):
    (result,) = found_in(mistake, monkeypatch, MANY.get(mistake, 3000))
    assert result.broken


def test_a_mistake_undone_is_not_found(monkeypatch, nothing_remembered):
    """What was planted does not stay: the same audit of the package as it is."""
    with monkeypatch.context() as planted:
        assert found_in("half of the sensitivity", planted, 1000)[0].broken
    monkeypatch.setitem(MISTAKES, "none", (*MISTAKES["half of the sensitivity"][:3], []))
    forget()
    assert not found_in("none", monkeypatch, 1000)[0].broken


@pytest.mark.parametrize("fixed", [False, True])
def test_noise_from_a_seed_fixed_at_import_is_found_between_processes(fixed, tmp_path, monkeypatch):
    """The operating system's source gives the same bytes in every process."""
    if fixed:
        text = "import os, random\n_fixed = random.Random(0)\nos.urandom = lambda n: _fixed.randbytes(n)\n"
        (tmp_path / "sitecustomize.py").write_text(text, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    task = registry.task(MECHANISMS["gaussian-noise"], Budget(1.0, 0.01), Neighbours.REPLACE, 2, 1.0)
    assert bool(faults_of_processes("gaussian-noise", task)) is fixed
