"""dpgram audit: what it prints, its figure, its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace

from dpgram.cli.app import run
from dpgram.mechanisms import registry
from tests.audits.test_mutations import MUTANTS

SURE = "--draws 1000 --confidence 0.999999999"  # the secure source cannot be seeded: a false alarm once in 10^9 runs


def test_it_prints_a_table_and_draws_a_figure(tmp_path, capsys):
    figure = tmp_path / "a.svg"
    assert run(f"audit gaussian-noise {SURE} --plot {figure}".split()) == 0
    out, err = capsys.readouterr()
    for words in ("claimed", "proven", "orthogonal rows", "a row of zeros"):
        assert words in out
    assert "not refuted." in err
    assert figure.stat().st_size > 0


def test_a_refuted_claim_is_exit_code_1(monkeypatch, capsys):
    name, start, _, _ = MUTANTS["no noise on the diagonal"]
    monkeypatch.setitem(registry.MECHANISMS, name, replace(registry.MECHANISMS[name], start=start))
    assert run(f"audit {name} --draws 1000 --json".split()) == 1
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found[0]["broken"] is True
    assert "refuted on: orthogonal rows" in err


def test_the_printed_formula_can_be_audited(capsys):
    assert run(f"audit gaussian-sketch --calibration paper {SURE} --neighbours add-remove --json".split()) == 0
    assert json.loads(capsys.readouterr().out)[0]["proven_epsilon"] < 1


def test_nonsense_is_refused(capsys):
    assert run(["audit", "gaussian-noise", "--draws", "3"]) == 2
    assert run(["audit", "no-such", "--draws", "1000"]) == 2
    assert run(["audit", "gaussian-noise", "--draws", "1000", "--plot", "a.doc"]) == 2
    assert "draws is 3 and must be at least 1000" in capsys.readouterr().err
