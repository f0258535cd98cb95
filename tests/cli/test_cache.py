"""Rows that a command keeps by itself: said in one line, forbidden by a flag, limited by another."""

import numpy as np
import pytest

import dpgram
from dpgram.cli.app import run
from tests.conftest import NUMBERS_TOML, small_table

TOML = f'neighbours = "replace"{NUMBERS_TOML}'
ROWS = 3001
SAID = "t.csv is read once, and its declared columns are kept until the release is made"


@pytest.fixture
def made(tmp_path, monkeypatch, capsys):
    """Runs ``dpgram release t.csv`` and gives its exit code, its words, and the release."""
    monkeypatch.chdir(tmp_path)
    small_table(ROWS).to_pandas().to_csv("t.csv", index=False)
    (tmp_path / "schema.toml").write_text(TOML)
    (tmp_path / "kept").mkdir()
    fixed = "--schema schema.toml --epsilon 1 --delta 1e-7 --insecure-seed 1 --out r.json --overwrite"

    def release(*words, mechanism="whitened-noise"):
        code = run(["release", "t.csv", *fixed.split(), "--mechanism", mechanism, *words])
        return code, capsys.readouterr().err, dpgram.load("r.json") if code == 0 else None

    return release


def test_it_is_said_in_one_line_and_bits_do_not_depend_on_it(made):
    code, words, kept = made()
    assert code == 0
    (line,) = [line for line in words.splitlines() if SAID in line]
    assert "Up to 256 MB are kept in memory" in line
    assert "--no-cache" in line
    assert str(ROWS) not in words
    assert "3,001" not in words
    for flags in (["--no-cache"], ["--memory", "0", "--cache", "kept"], ["--memory", "0.01"]):
        code, words, again = made(*flags)
        assert code == 0
        assert (SAID in words) is (flags != ["--no-cache"])
        assert np.array_equal(again.gram, kept.gram)
    assert SAID not in made(mechanism="gaussian-noise")[1]  # reads it once anyway


def test_what_cannot_be_meant_is_refused(made):
    code, words, _ = made("--no-cache", "--cache", "kept")
    assert (code, "Pass one of the two" in words) == (2, True)
    code, words, _ = made("--memory=-1")
    assert (code, "memory is -1.0 and must be a number of megabytes, 0 or more" in " ".join(words.split())) == (2, True)
