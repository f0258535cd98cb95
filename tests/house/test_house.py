"""The audit of the whole house finds planted mistakes that an audit of a mechanism alone cannot see, and none in the code as it stands.

Nothing here is a matter of chance: noise is drawn from a seed, and what is compared must be equal, or differ by at most mu."""

from __future__ import annotations

import ast
import inspect
import json
import logging
import textwrap
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from dpgram import curator, custody
from dpgram.cli.app import run
from dpgram.engines.local import LocalPass
from dpgram.house import tables
from dpgram.house.run import EPSILONS, Case, audit_cases, cases, settings
from dpgram.mechanisms import gaussian_noise, registry, whitened_noise
from dpgram.rows.shares import Shares
from dpgram.terms.budget import Neighbours

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
MEMORY = "a table in memory"


def case(mechanism: str, neighbours: Neighbours, kind: str = "rows", source: str = MEMORY, **options: Any) -> Case:
    return Case(mechanism, tuple(options.items()), kind, neighbours, source, EPSILONS[0])


def faults_of(*chosen: Case) -> list[str]:
    faults, _ = audit_cases(chosen)
    return [f"{fault.case}: {fault.words}" for fault in faults]


@pytest.mark.parametrize(
    "chosen",
    [
        case("gaussian-noise", REPLACE, "units and weights"),
        case("gaussian-noise", ADD_REMOVE, "units", repair="shift"),
        case("whitened-noise", REPLACE),
        case("whitened-noise", ADD_REMOVE, "units"),
        case("auto", ADD_REMOVE),
        case("gaussian-noise", ADD_REMOVE, source="a CSV file"),
        case("gaussian-noise", REPLACE, source="a Parquet file"),
        case("gaussian-sketch-adaptive", REPLACE, first_stage="gauss"),
    ],
    ids=lambda chosen: chosen.name,
)
def test_nothing_is_found_in_the_code_as_it_stands(chosen):
    faults, releases = audit_cases([chosen])
    assert faults == []
    assert releases >= 18  # of at least two groups of tables


def test_every_mechanism_option_relation_and_source_is_visited():
    visited = list(cases(quick=False))
    for mechanism in registry.MECHANISMS.values():
        of_it = [each for each in visited if each.mechanism == mechanism.name]
        assert {each.neighbours for each in of_it} == set(Neighbours)
        assert {each.source for each in of_it} == set(tables.SOURCES)
        for option in mechanism.options.values():
            chosen = {dict(each.options).get(option.name, option.default) for each in of_it}
            assert chosen >= set(option.choices), (mechanism.name, option.name)
        assert len(settings(mechanism)) >= 1


def patched(function: Callable, old: str, new: str) -> Callable:
    """The function with a mistake in it."""
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{function.__qualname__} does not hold {old!r} once"
    parsed = ast.parse(source.replace(old, new))
    names = {**function.__globals__, "np": np}
    exec(compile(parsed, "planted", "exec", dont_inherit=True), names)
    made = names[function.__name__]
    assert isinstance(made, FunctionType)
    return made


def with_start(monkeypatch, module: Any, old: str, new: str) -> None:
    mechanism = module.MECHANISM
    wrong = replace(mechanism, start=patched(mechanism.start, old, new))
    monkeypatch.setitem(registry.MECHANISMS, mechanism.name, wrong)


def true_rows(monkeypatch):
    """The mechanism is told how many rows there are, though their number is protected."""
    wrong = patched(custody.Custody._answer, "GramAnswer(gram, self.rows,", "GramAnswer(gram, total.rows,")
    monkeypatch.setattr(custody.Custody, "_answer", wrong)


def map_of_the_true_gram(monkeypatch):
    """In a rare case the next map depends on the sum itself, not on what was published of it."""
    rare = "through = next_map(seen, rules, rows, task)"
    wrong = f"{rare} if np.trace(np.asarray(answer.gram)) > 1e-3 else first_map(task.dim, task.row_bound, task.stretches)"
    with_start(monkeypatch, whitened_noise, rare, wrong)


def shift_of_the_true_gram(monkeypatch):
    """Whether the matrix is repaired depends on the sum itself."""
    with_start(
        monkeypatch, gaussian_noise, "smallest_eigenvalues(gram) <= 0", "smallest_eigenvalues(np.asarray(answer.gram)) <= 0"
    )


def noise_for_half(monkeypatch):
    """The noise is that of a row that is added, where one is replaced."""
    monkeypatch.setattr(
        gaussian_noise, "gram_sensitivity", lambda bound, neighbours, rows_per_unit, dim: bound**2 * rows_per_unit
    )


def units_in_full(monkeypatch):
    """All rows of a unit count in full."""
    monkeypatch.setattr(Shares, "_by_unit", lambda self, rows: (rows > 0).astype(float))


def counted_for_auto(monkeypatch):
    """The choice of a mechanism follows a number of rows that is protected."""
    old = "rows_pass.rereadable and schema.neighbours is Neighbours.REPLACE:"
    monkeypatch.setattr(curator, "release", patched(curator.release, old, "rows_pass.rereadable:"))


def a_telling_note(monkeypatch):
    """A line of a log says how many rows were summed."""
    right = custody.Custody._answer

    def wrong(self, *given, **named):
        import logging

        answer = right(self, *given, **named)
        logging.getLogger("dpgram").warning("the trace is %g", np.trace(np.asarray(answer.gram)))
        return answer

    monkeypatch.setattr(custody.Custody, "_answer", wrong)


def a_quiet_note(monkeypatch):
    """The same at a level that the command line shows, and Python by itself does not."""
    right = LocalPass._read

    def wrong(self, *given, **named):
        rows = right(self, *given, **named)
        logging.getLogger("dpgram").info("%d rows were read", rows)
        return rows

    monkeypatch.setattr(LocalPass, "_read", wrong)


PLANTED = {
    true_rows: case("whitened-noise", ADD_REMOVE),
    map_of_the_true_gram: case("whitened-noise", ADD_REMOVE),
    shift_of_the_true_gram: case("gaussian-noise", ADD_REMOVE, repair="shift"),
    noise_for_half: case("gaussian-noise", REPLACE),
    units_in_full: case("gaussian-noise", ADD_REMOVE, "units"),
    counted_for_auto: case("auto", ADD_REMOVE),
    a_telling_note: case("gaussian-noise", REPLACE),
    a_quiet_note: case("gaussian-noise", ADD_REMOVE),
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_mistake_is_found(plant, monkeypatch):
    plant(monkeypatch)
    assert faults_of(PLANTED[plant])


def test_the_command_says_what_was_found(monkeypatch, capsys):
    only = [case("gaussian-noise", REPLACE)]
    monkeypatch.setattr("dpgram.house.run.cases", lambda quick: only)
    assert run(["audit-house", "--quick", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["faults"] == []
    assert "not refuted by" in told.err
    noise_for_half(monkeypatch)
    assert run(["audit-house", "gaussian-noise"]) == 1
    assert "refuted on gaussian-noise" in capsys.readouterr().err


def test_an_unknown_mechanism_is_named(capsys):
    assert run(["audit-house", "laplace"]) == 2
    assert "there is no mechanism 'laplace'" in capsys.readouterr().err
