"""dpgram audit: what it prints, its figure, its exit codes."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dpgram.accounting.gaussian import calibrate_mu
from dpgram.audits.laws.base import MechanismLaw
from dpgram.audits.laws.gaussian_noise import gaussian_loss, normal_uniforms
from dpgram.audits.laws.registry import LAWS
from dpgram.audits.reference import hockey_stick
from dpgram.cli.app import run
from dpgram.cli.audit import faults_of_rows
from dpgram.engines import summing
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramQuestion, Mechanism, Outcome, publish
from dpgram.rows.clip import BoundedRows, clip
from dpgram.rows.gram_sum import GramSum
from dpgram.sampling.base import FLOAT, known
from dpgram.sampling.variates import normal_matrix
from dpgram.terms.noise import SymmetricGaussian
from dpgram.terms.public_map import digest_of
from tests.audits.test_mutations import MUTANTS

SURE = "--draws 1000 --random 0 --confidence 0.999999999"  # the secure source cannot be seeded: a false alarm once in 10^9 runs


@pytest.fixture(autouse=True)
def no_further_processes(monkeypatch):
    """They have a test of their own."""
    monkeypatch.setattr("dpgram.cli.audit.faults_of_processes", lambda name, task: [])


def test_a_forgotten_clip_is_found_on_the_way_from_cells_to_rows(monkeypatch):
    """A row may be twice as long as its bound."""
    assert faults_of_rows() == []
    right = GramSum.in_whole_numbers
    monkeypatch.setattr(GramSum, "in_whole_numbers", lambda total: (4 * right(total)[0], right(total)[1]))
    assert faults_of_rows() == ["a row that is longer than the row bound", "a row that is longer than one after a map"]


def not_shrunk_after_the_map(encoded, row_bound, through, scales, factors=None):
    rows = np.trunc(through.matrix @ clip(encoded, 1.0).points)  # before it, to the bound that was asked for
    return BoundedRows(rows, row_bound, digest_of(through, scales), tuple(rows[:, :0] for _ in scales[1:]))


def test_a_clip_before_the_map_is_found_on_the_way_from_cells_to_rows(monkeypatch):
    monkeypatch.setattr(summing, "kernel", lambda: None)
    assert faults_of_rows() == []
    monkeypatch.setattr(summing, "mapped", not_shrunk_after_the_map)
    assert faults_of_rows() == ["a row that is longer than one after a map"]


def in_floats(start):
    """The mutants know no other arithmetic."""
    right = registry.MECHANISMS["gaussian-noise"].start
    return lambda task, rng: (start if rng.arithmetic == FLOAT else right)(task, rng)


def test_it_prints_a_table_and_draws_a_figure(tmp_path, capsys):
    figure = tmp_path / "a.svg"
    assert run(f"audit gaussian-noise {SURE} --plot {figure}".split()) == 0
    out, err = capsys.readouterr()
    for words in ("claimed", "proven", "orthogonal rows", "a row of zeros"):
        assert words in out
    assert "not refuted." in err
    assert figure.stat().st_size > 0


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_a_release_of_several_rounds_is_audited(neighbours, monkeypatch, capsys):
    monkeypatch.setattr("dpgram.audits.run.SLOW", 3)
    assert run(f"audit whitened-noise {SURE} --neighbours {neighbours} --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["pair"] for each in found} >= {
        "the last direction",
        "orthogonal rows" if neighbours == "replace" else "one row more",
    }
    assert all(0.5 < each["proven_epsilon"] < 1.001 for each in found)


def test_a_refuted_claim_is_exit_code_1(monkeypatch, capsys):
    name, start, _, _ = MUTANTS["no noise on the diagonal"]
    monkeypatch.setitem(registry.MECHANISMS, name, replace(registry.MECHANISMS[name], start=in_floats(start)))
    assert run(f"audit {name} --draws 1000 --random 0 --json".split()) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found[0]["broken"] is True
    assert "refuted on orthogonal rows" in err


def test_the_printed_formula_can_be_audited(capsys):
    assert run(f"audit gaussian-sketch --calibration paper {SURE} --neighbours add-remove --json".split()) == 0
    assert json.loads(capsys.readouterr().out)[0]["proven_epsilon"] < 0.9


def test_nonsense_is_refused(capsys):
    assert run(["audit", "gaussian-noise", "--draws", "3"]) == 2
    assert run(["audit", "no-such", "--draws", "1000"]) == 2
    assert run(["audit", "gaussian-noise", "--draws", "1000", "--plot", "a.doc"]) == 2
    assert "draws is 3 and must be at least 1000" in capsys.readouterr().err


def test_exact_arithmetic_is_audited_one_release_at_a_time(capsys):
    assert run(f"audit gaussian-noise --arithmetic exact {SURE} --neighbours add-remove --json".split()) == 0
    assert json.loads(capsys.readouterr().out)[0]["draws"] == 1000
    assert run(["audit", "gaussian-noise", "--arithmetic", "decimal"]) == 2
    assert "must be 'exact' or 'float'" in capsys.readouterr().err


def stranger(spread):
    """A mechanism that somebody else registered: noise of the same sd in all entries, of which ``spread`` is left."""

    def calibrate(task):
        mu = calibrate_mu(task.budget)
        sd = spread * math.sqrt(2) * task.row_bound**2 / mu
        return {"sd": sd, "mu": mu, "delta_at_epsilon": task.budget.delta}

    def start(task, rng):
        found = calibrate(task)
        answer = yield GramQuestion(task.row_bound)
        drawn = normal_matrix((task.dim, task.dim), rng)
        upper = np.triu(np.ones((task.dim, task.dim)), 1) * drawn
        noise = SymmetricGaussian(found["sd"], found["sd"])
        noisy = known(answer.gram, rng) + found["sd"] * (upper + upper.mT + np.eye(task.dim) * drawn)
        return Outcome(*publish(noisy, noise, rng)[:1], noise, found)

    return Mechanism("even-noise", "the same noise everywhere", "none.md", calibrate, start, batched=True)


class EvenNoiseLaw(MechanismLaw):
    def loss(self, many, pair):
        return gaussian_loss(many.gram, pair.first, pair.second, self.parameters["sd"], self.parameters["sd"])

    def uniforms(self, many, table):
        return normal_uniforms(many.gram - table, self.parameters["sd"], self.parameters["sd"])

    def delta(self):
        return hockey_stick(self.task.budget.epsilon, math.sqrt(2) * self.task.row_bound**2 / self.parameters["sd"])


@pytest.mark.parametrize(("spread", "code"), [(1.0, 0), (0.02, 1)])
def test_a_mechanism_that_somebody_else_registered_is_audited_by_the_law_that_it_brings(spread, code, monkeypatch, capsys):
    monkeypatch.setitem(registry.MECHANISMS, "even-noise", stranger(spread))
    monkeypatch.setitem(LAWS, "even-noise", EvenNoiseLaw)
    assert run(f"audit even-noise {SURE} --neighbours replace --json".split()) == code
    found = json.loads(capsys.readouterr().out)[0]
    assert (found["counted_epsilon"] > 1) is bool(code)
    assert any("the parameters have delta" in fault for fault in found["faults"]) is bool(code)


def test_a_mechanism_whose_law_nobody_wrote_is_refused(monkeypatch, capsys):
    monkeypatch.setitem(registry.MECHANISMS, "even-noise", stranger(1.0))
    for options in ("", "--option sd=3"):
        assert run(f"audit even-noise {SURE} {options}".split()) == 2
    assert "even-noise cannot be audited: its law is not known" in capsys.readouterr().err
    monkeypatch.setitem(LAWS, "even-noise", type("HalfALaw", (MechanismLaw,), {"loss": EvenNoiseLaw.loss}))
    assert run(f"audit even-noise {SURE}".split()) == 2
    assert "even-noise cannot be audited: its law, HalfALaw, lacks delta, uniforms" in capsys.readouterr().err


def test_a_repair_is_audited_where_its_law_is_known(capsys):
    """The shift is published and can be taken off; of cut eigenvalues nothing is left."""
    for option in ("--neighbours replace --option repair=shift", "--neighbours add-remove --option repair=none"):
        assert run(f"audit gaussian-noise {SURE} {option}".split()) == 0
    assert run(f"audit gaussian-noise {SURE} --option repair=psd".split()) == 2
    assert "of a matrix without its negative eigenvalues no law is known" in capsys.readouterr().err
