"""`dpgram ledger` and `dpgram release --ledger` at the command line."""

import json

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.ledger.file import FileLedger
from tests.conftest import NUMBERS_TOML, small_table

OPEN = "ledger open --epsilon 2 --delta 1e-5 --unit person --dataset visits"
RELEASE = (
    "release t.parquet --schema schema.toml --mechanism gaussian-noise --epsilon 1 --delta 1e-6 --ledger ledger.sqlite --out"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_table().to_pandas().to_parquet("t.parquet")
    (tmp_path / "schema.toml").write_text(NUMBERS_TOML)
    return tmp_path


def call(line, capsys):
    code = run(line.split())
    out, err = capsys.readouterr()
    return code, out, err


def test_open_release_show(folder, capsys):
    code, out, err = call(OPEN, capsys)
    assert (code, out) == (0, "")
    assert "created ledger.sqlite for visits: epsilon 2, delta 1e-05" in err
    for name in ("one.json", "two.json"):
        code, _, err = call(f"{RELEASE} {name}", capsys)
        assert code == 0
        assert "not recorded in a ledger" not in err
    code, out, _ = call("ledger show", capsys)
    assert code == 0
    assert out.count("gaussian-noise release of 2 columns") == 2
    assert "visits: replace, one person (one row per unit assumed), opened" in " ".join(out.split())
    assert "Plain sum: epsilon 2, delta 2e-06." in out
    data = json.loads(call("ledger show --json", capsys)[1])
    assert data["budget"] == {"epsilon": 2.0, "delta": 1e-5}
    assert data["spent"]["plain_sum"] == {"epsilon": 2.0, "delta": 2e-6}
    assert 1.0 < data["spent"]["composed"]["epsilon"] < 1.5
    assert all(entry["committed"] for entry in data["releases"])
    assert [(entry["unit_id"], entry["rows_per_unit"]) for entry in data["releases"]] == [(None, 1)] * 2
    assert data["mixed_units"] is False
    entries = {dpgram.load(name).ledger_entry.split(":")[0] for name in ("one.json", "two.json")}
    assert entries == {str(entry["number"]) for entry in data["releases"]}


def test_a_release_beyond_the_budget_is_refused_and_leaves_nothing(folder, capsys):
    call(OPEN, capsys)
    code, _, err = call(f"{RELEASE} big.json".replace("--epsilon 1", "--epsilon 2.5"), capsys)
    assert code == 2
    assert "error: the release asks for epsilon 2.5 and delta 1e-06. This exceeds the ledger's total of epsilon 2" in err
    assert "a release of at most epsilon" in err
    assert not (folder / "big.json").exists()
    assert not FileLedger("ledger.sqlite").account().entries


def test_an_existing_release_is_not_paid_for_again(folder, capsys):
    call(OPEN, capsys)
    call(f"{RELEASE} one.json", capsys)
    code, _, err = call(f"{RELEASE} one.json", capsys)
    assert code == 2
    assert "exists" in err
    assert len(FileLedger("ledger.sqlite").account().entries) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{OPEN} --neighbours friends", "neighbours is 'friends'"),
        (f"{OPEN} --composition hope", "composition is 'hope'"),
        ("ledger show", "ledger.sqlite. Create one with `dpgram ledger open`"),
        (f"{RELEASE} one.json", "there is no ledger at"),
    ],
)
def test_mistakes_are_said(folder, capsys, line, message):
    code, _, err = call(line, capsys)
    assert code == 2
    assert message in err


def test_another_unit_is_refused(folder, capsys):
    call(OPEN.replace("--unit person", "--unit visit"), capsys)
    code, _, err = call(f"{RELEASE} one.json", capsys)
    assert code == 2
    assert "protects one 'visit', but the release's schema says unit = 'person'" in err


def test_a_release_without_a_ledger_says_so(folder, capsys):
    _, _, err = call("release t.parquet --schema schema.toml --epsilon 1 --delta 1e-6 --out one.json", capsys)
    assert "not recorded in a ledger: pass --ledger" in err


def test_the_line_to_settle_is_printed_however_wide_the_rest_is(folder, capsys):
    call(OPEN, capsys)
    budget, what = dpgram.Budget(0.1, 1e-7), "gaussian-sketch-adaptive release of 1000 columns"
    reserved = FileLedger("ledger.sqlite").reserve(budget, dpgram.Neighbours.REPLACE, what, unit="person", by_rounds=True)
    _, out, _ = call("ledger show", capsys)
    header, entry = (line for line in out.splitlines() if "rounds" in line or "RESERVED" in line)
    assert header.split()[0] == "line"
    assert header.split()[-1] == "rounds"
    assert entry.split()[0] == str(reserved.number)
    assert entry.split()[-1] == "none"


def test_show_says_of_each_release_whose_rows_it_protects_together(folder, capsys):
    call(f"{OPEN} --mixed-units", capsys)
    (folder / "by_id.toml").write_text('unit_id = "x"\nrows_per_unit = 2\n' + NUMBERS_TOML)
    for schema in ("schema", "by_id"):
        code, _, err = call(f"{RELEASE} {schema}.json".replace("schema.toml", f"{schema}.toml"), capsys)
        assert code == 0, err
    table = call("ledger show", capsys)[1]
    assert "assumed" in table
    assert "enforced by" in " ".join(table.split())
    shown = json.loads(call("ledger show --json", capsys)[1])
    assert shown["mixed_units"] is True
    assert [entry["protected"] for entry in shown["releases"]] == ["one row per unit assumed", "enforced by x, 2 rows"]
