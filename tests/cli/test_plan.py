"""dpgram plan and dpgram release --dry-run: what is printed, and that no table is touched."""

import json

import pytest

import dpgram
from dpgram import curator
from dpgram.cli.app import run
from dpgram.errors import LargeDeltaWarning
from tests.cli.test_commands import FILLED
from tests.conftest import small_table

BUDGET = "--schema schema.toml --epsilon 5 --delta 1e-6"
ONE = "--mechanism gaussian-noise"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(FILLED)
    return tmp_path


def call(line, capsys):
    code = run(line.split())
    out, err = capsys.readouterr()
    return code, out, err


def test_a_plan_prints_three_tables_and_says_why(folder, capsys):
    code, out, err = call(
        f"plan {BUDGET} --table-rows 20000 --target y --mechanism gaussian-noise --mechanism wishart-noise", capsys
    )
    assert code == 0
    for words in (
        "A release of 20,000 rows",
        "gaussian-noise (best)",
        "(no privacy)",
        "Each coefficient",
        "Choosing row_bound",
        "c[b]",
    ):
        assert words in out
    assert "recommended" in out
    assert "Assumed, not read" in out
    assert "gaussian-noise is expected to be best" in err


def test_json_holds_all_of_it_and_no_infinity(folder, capsys):
    code, out, _ = call(f"plan --schema schema.toml --epsilon 0.01 --delta 1e-6 --table-rows 50 --json {ONE}", capsys)
    found = json.loads(out)
    assert code == 0
    (only,) = found["mechanisms"]
    assert only["typical"]["width"] is None
    assert only["typical"]["name"] == found["typical"]
    assert found["assumptions"] == {"spread": 0.25, "correlation": 0.2, "signal": 0.5}
    assert found["recommended_row_bound"] in [trade["row_bound"] for trade in found["row_bounds"]]


def test_assumptions_are_taken_from_the_command_line(folder, capsys):
    line = f"plan {BUDGET} --table-rows 20000 {ONE} --spread 0.1 --spread x=0.3 --correlation 0.5 --signal 0.9 --json"
    found = json.loads(call(line, capsys)[1])
    assert found["assumptions"] == {"spread": 0.1, "spreads": {"x": 0.3}, "correlation": 0.5, "signal": 0.9}
    code, _, err = call(f"plan {BUDGET} --table-rows 20000 --spread wide", capsys)
    assert code == 2
    assert "must be a number, or NAME=VALUE" in err


def test_features_are_named_as_elsewhere(folder, capsys):
    found = json.loads(call(f"plan {BUDGET} --table-rows 20000 {ONE} --target y --features x,c --json", capsys)[1])
    assert found["features"] == ["(intercept)", "x", "c[b]", "c[other]"]
    code, _, err = call(f"plan {BUDGET} --table-rows 20000 --target y --features x,nonsense", capsys)
    assert code == 2
    assert "nonsense" in err


def test_a_sample_is_read_only_when_it_is_called_public(folder, capsys):
    small_table(300).to_pandas().to_csv("sample.csv", index=False)
    code, _, err = call(f"plan {BUDGET} --table-rows 20000 --sample sample.csv", capsys)
    assert code == 2
    assert "--sample-is-public" in err
    line = f"plan {BUDGET} --table-rows 20000 --sample sample.csv --sample-is-public --json {ONE}"
    found = json.loads(call(line, capsys)[1])
    assert found["sample_is_public"] is True
    assert "sample of 300 rows" in found["assumed"]


def test_the_inverse_question_is_answered(folder, capsys):
    line = f"plan --schema schema.toml --delta 1e-6 --table-rows 50000 --target y {ONE} --target-width 0.5"
    code, _, err = call(line, capsys)
    assert code == 0
    assert "At 50,000 rows and delta 1e-06, epsilon" in err
    found = json.loads(call(f"{line} --json", capsys)[1])
    assert found["answer"]["value"] == found["epsilon"]
    assert found["mechanisms"][0]["typical"]["width"] <= 0.5
    rows = json.loads(
        call(
            f"plan --schema schema.toml --delta 1e-6 --epsilon 1 --target y {ONE} --target-width 0.5 --solve rows --json",
            capsys,
        )[1]
    )
    assert rows["answer"]["value"] == rows["table_rows"]


def test_an_inverse_question_without_an_answer_says_so(folder, capsys):
    code, _, err = call(f"plan --schema schema.toml --delta 1e-6 --table-rows 100 {ONE} --target-width 0.0001", capsys)
    assert code == 2
    assert "even without privacy" in err
    code, _, err = call(f"plan {BUDGET} --table-rows 100 {ONE} --target-width 0.0001", capsys)
    assert code == 0  # a plan for the epsilon that was given
    assert "even without privacy" in err


def test_the_figure_is_drawn_and_a_wrong_ending_is_refused_first(folder, capsys):
    pytest.importorskip("matplotlib")
    code, out, _ = call(f"plan {BUDGET} --table-rows 20000 {ONE} --plot plan.svg --json", capsys)
    assert code == 0
    assert "gaussian-noise" in (folder / "plan.svg").read_text()
    assert [curve["quantity"] for curve in json.loads(out)["curves"]] == ["epsilon", "rows"]
    code, _, err = call(f"plan {BUDGET} --table-rows 20000 --plot plan.doc", capsys)
    assert code == 2
    assert ".doc" in err


def test_what_is_missing_is_said(folder, capsys):
    code, _, err = call(f"plan {BUDGET}", capsys)
    assert code == 2
    assert "table_rows is not given" in err
    code, _, err = call("plan --schema schema.toml --delta 1e-6 --table-rows 100", capsys)
    assert code == 2
    assert "epsilon is not given" in err


@pytest.fixture
def untouched(monkeypatch):
    monkeypatch.setattr(curator, "open_pass", lambda *_, **__: pytest.fail("the table was opened"))


def test_a_dry_run_shows_the_label_and_the_forecast_and_opens_nothing(folder, capsys, untouched):
    options = "--mechanism gaussian-noise --dry-run --table-rows 20000 --ledger none.sqlite"
    code, out, err = call(f"release nowhere.csv {BUDGET} {options}", capsys)
    assert code == 0
    for words in (
        "Guarantee of the release to be made",
        "noise sd off the diagonal",
        "clamped to [-5, 5]",
        "A release of 20,000 rows",
        "will be public",
    ):
        assert words in out
    assert "nothing was released or spent" in err
    assert sorted(path.name for path in folder.iterdir()) == ["schema.toml"]


@pytest.mark.parametrize(
    "options",
    [
        "--mechanism gaussian-noise",
        "--mechanism gaussian-noise --arithmetic float",
        "--mechanism gaussian-sketch --insecure-seed 1",
    ],
)
def test_a_dry_run_knows_what_the_release_will_say(folder, capsys, options):
    found = json.loads(call(f"release nowhere.csv {BUDGET} --dry-run --json {options}", capsys)[1])
    assert found["forecast"] is None
    small_table(200).to_pandas().to_csv("t.csv", index=False)
    call(f"release t.csv {BUDGET} --out release.json {options}", capsys)
    made = json.loads(call("inspect release.json --json", capsys)[1])
    told = found["label"]
    assert {name: made[name] for name in told} == told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--mechanism inverse-wishart", "depend on the number of rows"),
        ("--mechanism noisy-inverse --rho 5", "CONDITIONAL"),
        ("--mechanism gaussian-sketch-adaptive --query q", "one row of the result"),
        ("--mechanism auto --table-rows 5000", "auto, by a quick forecast for 5,000 rows"),
        ("--mechanism whitened-noise", "the table is read once or several times, depending on the number of rows"),
        ("--table-rows 5000 --insecure-seed 1", "NOT PRIVATE"),
        ("--mechanism whitened-noise", "mu"),
    ],
)
def test_a_dry_run_of_each_kind(folder, capsys, untouched, options, said):
    code, out, _ = call(f"release nowhere.csv {BUDGET} --dry-run {options}", capsys)
    assert code == 0
    assert said in " ".join(out.split())


def test_a_dry_run_of_several_rounds_knows_what_the_release_will_say(folder, capsys, monkeypatch):
    """With the number of rows, all of it but what follows from the noise; under add-remove, with a public guess."""
    monkeypatch.setattr(curator, "plan", lambda *_, **__: None)  # its forecast has tests of its own
    small_table(4000).to_pandas().to_csv("t.csv", index=False)
    for relation in ("replace", "add-remove"):
        schema = (folder / "schema.toml").read_text(encoding="utf-8")
        (folder / "schema.toml").write_text(f'neighbours = "{relation}"\n' + schema.removeprefix('neighbours = "replace"\n'))
        line = f"release t.csv {BUDGET} --mechanism whitened-noise --table-rows 4000"
        found = json.loads(call(f"{line} --dry-run --json", capsys)[1])
        told = found["label"]["parameters"]
        assert call(f"{line} --out {relation}.json", capsys)[0] == 0
        made = dpgram.load(f"{relation}.json").parameters
        assert {name: made[name] for name in told} == told
        assert told["rounds"] == len(dpgram.load(f"{relation}.json").noise.rounds)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"release t.csv {BUDGET}", "--out is not given"),
        (f"release t.csv {BUDGET} --dry-run", "needs --table-rows"),
        (f"release t.csv {BUDGET} --dry-run --mechanism auto", "needs --table-rows"),
        (f"release t.csv {BUDGET} --dry-run --mechanism nonsense", "no mechanism named 'nonsense'"),
        (f"release t.csv {BUDGET} --dry-run --table-rows 9 --rho 3", "takes no options"),
        (f"release t.csv {BUDGET} --dry-run --mechanism inverse-wishart --degrees-of-freedom 1", "degrees_of_freedom is 1"),
    ],
)
def test_dry_runs_that_make_no_sense_are_refused(folder, capsys, line, said):
    code, _, err = call(line, capsys)
    assert code == 2
    assert said in err


def test_auto_is_told_on_the_command_line(folder, capsys):
    small_table(500).to_pandas().to_csv("t.csv", index=False)
    code, _, err = call(f"release t.csv {BUDGET} --out release.json", capsys)
    assert code == 0
    assert "was chosen: auto, by a quick forecast for 500 rows" in err
    assert dpgram.load("release.json").choice


def test_a_dry_run_of_rounds_tells_how_often_the_table_is_read_and_how_the_budget_is_split(folder, capsys, untouched):
    line = f"release nowhere.csv {BUDGET} --dry-run --mechanism whitened-noise --table-rows 100000"
    code, out, err = call(line, capsys)
    rounds = int(json.loads(call(f"{line} --json", capsys)[1])["label"]["parameters"]["rounds"])
    assert code == 0
    assert "the table is read once if its rows fit into memory" in " ".join(out.split())
    many = " ".join(call(line.replace("100000", "10000000"), capsys)[1].split())
    assert "the table is read twice: once for a sample of rows that early rounds use, and once for the last round" in many
    assert "rows in the sample" in many
    assert "share of the budget" in out
    assert f"1 to {rounds - 1}, each" in out
    assert "streams are read once, and kept until the release is made" in " ".join(out.split())
    assert "Choosing row_bound" not in out
    assert "No row bounds are compared" in err
    (folder / "schema.toml").write_text(f'neighbours = "add-remove"\n{FILLED}')
    code, out, _ = call(line, capsys)
    assert code == 0
    assert "stay protected" in out
    assert "share of the budget" in out
    assert "round_1" not in out


ROUNDS = "calibrate whitened-noise --epsilon 1 --delta 1e-6 --dim 5 --row-bound 2 --json"


def test_rounds_are_calibrated_with_and_without_a_number_of_rows(capsys):
    unknown = json.loads(call(ROUNDS, capsys)[1])
    assert "rounds" not in unknown
    known = json.loads(call(f"{ROUNDS} --table-rows 100000", capsys)[1])
    shares = [known[f"round_{k}_mu"] ** 2 for k in range(1, int(known["rounds"]) + 1)]
    assert sum(shares) == pytest.approx(unknown["mu"] ** 2)
    guessed = json.loads(call(f"{ROUNDS} --table-rows 100000 --neighbours add-remove --no-intercept", capsys)[1])
    assert guessed["rounds"] == known["rounds"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--table-rows 0", "table_rows is 0"),
        ("--neighbours add-remove --no-intercept", "Give a public guess"),
        ("--calibration paper", "not in the paper"),
        ("--dim 3000", "at most 2048 encoded columns"),
    ],
)
def test_rounds_that_cannot_be_calibrated_are_refused_in_words(capsys, more, said):
    line = ROUNDS.replace("--dim 5", "") if "--dim" in more else ROUNDS
    code, _, err = call(f"{line} {more}", capsys)
    assert code == 2
    assert said in err


def test_a_target_width_can_name_coefficients(folder, capsys):
    line = f"plan --schema schema.toml --delta 1e-6 --table-rows 20000 --target y --json {ONE}"
    found = json.loads(call(f"{line} --target-width x=0.5 --target-width c[b]=2", capsys)[1])
    assert found["answer"]["widths"] == {"x": 0.5, "c[b]": 2.0}
    assert found["answer"]["value"] == found["epsilon"]
    widths = {c["name"]: c["width"] for c in found["mechanisms"][0]["coefficients"]}
    assert widths["x"] <= 0.5
    assert widths["c[b]"] <= 2
    for wrong, words in (("nonsense=1", "nonsense"), ("x=wide", "NAME=VALUE"), ("x=1 --target-width 2", "more than once")):
        code, _, err = call(f"{line} --target-width {wrong}", capsys)
        assert code == 2
        assert words in err


def test_a_plan_that_identifies_nothing_says_what_would(folder, capsys):
    line = f"plan --schema schema.toml --epsilon 0.02 --delta 1e-6 --table-rows 2000 --target y {ONE}"
    code, _, err = call(line, capsys)
    assert code == 0
    assert "No coefficient will be identified at epsilon 0.02 with 2,000 rows" in err
    found = json.loads(call(f"{line} --json", capsys)[1])["unidentified"]
    assert found["in_words"] in err.replace("\n", " ")
    assert found["epsilon"] > 0.02
    assert found["rows"] > 2000
    assert "identified at" not in call(line.replace("2000", "200000").replace("0.02", "2"), capsys)[2]


@pytest.mark.parametrize("line", ["plan --table-rows 20000", "release nowhere.csv --dry-run --table-rows 20000"])
def test_a_large_delta_is_warned_of_before_anything_is_spent(folder, capsys, line):
    line = f"{line} --schema schema.toml --epsilon 5 {ONE} --delta"
    assert "which is above 1/(number of rows) = 5e-05" in call(f"{line} 5.1e-5", capsys)[2]
    assert "warning" not in call(f"{line} 4.9e-5", capsys)[2]


def test_a_large_delta_is_warned_of_where_plan_was_called():
    schema = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", 0, 1), dpgram.Numeric("y", 0, 1)])
    with pytest.warns(LargeDeltaWarning) as caught:
        dpgram.plan(schema, epsilon=1.0, delta=0.02, table_rows=100, mechanisms=["gaussian-noise"])
    assert [each.filename for each in caught] == [__file__]
    with pytest.warns(LargeDeltaWarning):  # by the number that was found
        dpgram.plan(schema, epsilon=1.0, delta=0.02, target_width=1.0, solve="rows", mechanisms=["gaussian-noise"])
