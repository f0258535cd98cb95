"""dpgram check at the command line: what it prints, and that it writes no file unless asked."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import dpgram
from dpgram.checking.result import NOTICE
from dpgram.checking.suggest import LOOKED_AT
from dpgram.cli.app import run

SCHEMA = """
unit = "person"
provenance = "Bounds are from the questionnaire."
[[columns]]
name = "x"
kind = "numeric"
lower = 0
upper = 10
[[columns]]
name = "when"
kind = "numeric"
lower = 0
upper = 10
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{x:.3f},2020-0{1 + k % 9}-15" for k, x in enumerate(np.random.default_rng(0).uniform(0, 10, 200))]
    (tmp_path / "t.csv").write_text("\n".join(["x,when", *rows]))
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def call(line, capsys):
    code = run(line.split())
    return code, *capsys.readouterr()


def test_it_prints_and_writes_nothing(folder, capsys):
    before = sorted(folder.iterdir())
    code, out, err = call("check t.csv --schema schema.toml", capsys)
    assert (code, err) == (0, "")
    assert out.startswith(NOTICE)
    assert out.rstrip().endswith(NOTICE)
    assert "dates where numbers are needed" in out
    assert 'when: kind = "date"' in out
    assert sorted(folder.iterdir()) == before


def test_json(folder, capsys):
    code, out, _ = call("check t.csv --schema schema.toml --json", capsys)
    data = json.loads(out)
    assert (code, data["notice"]) == (0, NOTICE)
    assert data == dpgram.check("t.csv", dpgram.Schema.load("schema.toml")).to_dict()


def test_it_writes_the_suggested_schema_where_asked(folder, capsys):
    code, _, err = call("check t.csv --schema schema.toml --out new.toml", capsys)
    assert (code, err.startswith("wrote new.toml")) == (0, True)
    written = tomllib.loads((folder / "new.toml").read_text())
    assert written["provenance"] == f"Bounds are from the questionnaire. {LOOKED_AT}"
    assert [each["kind"] for each in written["columns"]] == ["numeric", "date"]
    code, _, err = call("release t.csv --schema new.toml --epsilon 1 --delta 1e-6 --out r.json", capsys)
    assert (code, "lower is blank" in err) == (2, True)


def test_it_replaces_no_file_unless_told(folder, capsys):
    code, out, err = call("check t.csv --schema schema.toml --out schema.toml", capsys)
    assert (code, out) == (2, "")
    assert "exists" in err
    assert (folder / "schema.toml").read_text() == SCHEMA
    assert call("check t.csv --schema schema.toml --out schema.toml --overwrite", capsys)[0] == 0
    assert LOOKED_AT in (folder / "schema.toml").read_text()


def test_the_table_itself_is_never_replaced(folder, capsys):
    before = (folder / "t.csv").read_text()
    code, out, err = call("check t.csv --schema schema.toml --out t.csv --overwrite", capsys)
    assert (code, out) == (2, "")
    assert "is the table itself" in err
    assert (folder / "t.csv").read_text() == before


def test_a_place_that_cannot_be_written_is_refused_before_the_rows_are_read(folder, capsys):
    code, out, err = call("check none.csv --schema schema.toml --out none/new.toml", capsys)
    assert (code, out) == (2, "")
    assert "there is no folder" in err
    (folder / "long.toml").write_text(SCHEMA.replace("questionnaire", "q" * 450))
    code, _, err = call("check none.csv --schema long.toml --out new.toml", capsys)
    assert (code, "no room" in err) == (2, True)


def test_spark_is_refused(folder, capsys):
    code, _, err = call("check spark:people --schema schema.toml", capsys)
    assert (code, "Parquet" in err) == (2, True)


def test_a_query(folder, capsys):
    line = ["check", "duckdb:", "--query", "select * from 't.csv' where x < 5", "--schema", "schema.toml", "--json"]
    assert run(line) == 0
    assert json.loads(capsys.readouterr().out)["table_rows"] < 200
