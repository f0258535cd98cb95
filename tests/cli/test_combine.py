"""dpgram combine: two files become one, and what cannot be is one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpgram
from dpgram.cli.app import run

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.NotPrivateWarning")

SCHEMA = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1), dpgram.Numeric("y", 0, 1)])


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for seed, name in enumerate(("north", "south")):
        table = {"x": rng.random(400), "y": rng.random(400)}
        made = dpgram.release(table, SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed)
        made.save(tmp_path / f"{name}.json")
    return [str(tmp_path / "north.json"), str(tmp_path / "south.json")]


def test_it_writes_a_release(files, tmp_path, capsys):
    out = str(tmp_path / "both.json")
    assert run(["combine", *files, "--rows", "disjoint", "--out", out]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "2 releases of disjoint rows: their Gram matrices were added up. This spent no budget." in said.err
    assert "NOT PRIVATE" in said.err
    assert dpgram.load(out) == dpgram.combine([dpgram.load(file) for file in files], rows="disjoint")
    for command in (
        ["regress", out, "--target", "y"],
        ["cov", out],
        ["pca", out],
        ["inspect", out],
        ["inspect", out, "--json"],
    ):
        assert run(command) == 0
    assert "no person is in two parts" in capsys.readouterr().out


def test_a_part_that_brings_most_of_the_noise_is_named(files, tmp_path, capsys):
    rng = np.random.default_rng(1)
    few = {"x": rng.random(40), "y": rng.random(40)}
    dpgram.release(few, SCHEMA, epsilon=0.1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=5).save(
        tmp_path / "few.json"
    )
    assert (
        run(["combine", files[0], str(tmp_path / "few.json"), "--rows", "disjoint", "--out", str(tmp_path / "new.json")]) == 0
    )
    assert "part 2 brings 9" in capsys.readouterr().err
    assert run(["combine", *files, "--rows", "disjoint", "--out", str(tmp_path / "other.json")]) == 0
    assert "of the noise" not in capsys.readouterr().err


def test_its_label_is_that_of_inspect(files, tmp_path, capsys):
    out = str(tmp_path / "both.json")
    assert run(["combine", *files, "--rows", "same", "--out", out, "--json"]) == 0
    label = json.loads(capsys.readouterr().out)
    run(["inspect", out, "--json"])
    assert json.loads(capsys.readouterr().out) == label
    assert label["epsilon"] == 2.0
    assert label["rows_are"] == "same"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "new.json"], "--rows"),
        (["--rows", "alike", "--out", "new.json"], "alike"),
        (["--rows", "disjoint", "--out", "north.json"], "is one of the releases"),
        (["--rows", "disjoint", "--out", "nowhere/new.json"], "nowhere"),
        (["north.json", "--rows", "disjoint", "--out", "new.json"], "have the same matrix"),
    ],
)
def test_bad_input_is_one_line(arguments, words, files, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["combine", *files, *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert not (tmp_path / "new.json").exists()


def test_one_file_is_not_enough(files, tmp_path, capsys):
    assert run(["combine", files[0], "--rows", "same", "--out", str(tmp_path / "new.json")]) == 2
    assert "one release was given, but two or more are needed" in capsys.readouterr().err
