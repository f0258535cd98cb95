"""Where no mechanism is named, "auto" chooses: through every door, for both relations and what is read once, and once per release."""

import inspect
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.errors import MechanismError
from dpgram.planning import choose
from tests.conftest import NUMBERS_TOML, small_schema, small_table

ROWS = 30_000
BUDGET = {"epsilon": 1.0, "delta": 1e-7}
TABLE = small_table(ROWS)
ESTIMATORS = [
    dpgram.PrivateLinearRegression,
    dpgram.PrivateRidge,
    dpgram.PrivateLasso,
    dpgram.PrivateCovariance,
    dpgram.PrivatePCA,
]


@pytest.fixture
def chosen(monkeypatch):
    """What every choice was asked for: schema, rows, budget, calibration."""
    asked, before = [], choose.choose
    monkeypatch.setattr(choose, "choose", lambda *given, **more: asked.append(given) or before(*given, **more))
    return asked


def toml(neighbours):
    return f'neighbours = "{neighbours}"{NUMBERS_TOML}'


def stream():
    return pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())


def released(table=TABLE, schema=None, **more):
    return dpgram.release(table, schema or small_schema(), insecure_seed=1, **BUDGET, **more)


# Every door


def test_a_release_is_that_of_auto_and_chooses_once(chosen):
    made = released()
    assert len(chosen) == 1
    assert made == released(mechanism="auto")
    assert made.mechanism == "whitened-noise"
    assert made.choice.startswith("auto, by a quick forecast for 30,000 rows")


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::dpgram.errors.RefitWarning", "ignore::dpgram.errors.NotPrivateWarning")
def test_estimators_choose_once_a_fit(estimator, chosen):
    assert estimator().mechanism == "auto"
    supervised = "target_bounds" in inspect.signature(estimator).parameters
    X = np.random.default_rng(0).normal(size=(2000, 2))
    for neighbours, said in (("replace", "2,000 rows"), ("add-remove", "counts the rows, under noise")):
        declared = {
            "bounds": (-5, 5),
            "neighbours": neighbours,
            "random_state": 0,
            **({"target_bounds": (-9, 9)} if supervised else {}),
        }
        fitted = estimator(**declared, **BUDGET).fit(*((X, X.sum(axis=1)) if supervised else (X,)))
        assert said in fitted.release_.choice
    assert len(chosen) == 2


@pytest.mark.parametrize(
    ("neighbours", "said"), [("replace", "by a quick forecast for 30,000 rows"), ("add-remove", "counts the rows, under noise")]
)
def test_the_command_says_what_was_taken_in_one_line_and_in_json(neighbours, said, tmp_path, monkeypatch, capsys, chosen):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "t.parquet")
    (tmp_path / "schema.toml").write_text(toml(neighbours))
    line = "release t.parquet --schema schema.toml --epsilon 1 --delta 1e-7 --arithmetic float --out r.json --json"
    assert run(line.split()) == 0
    assert len(chosen) == 1
    printed = capsys.readouterr()
    made = dpgram.load("r.json")
    assert said in made.choice
    assert json.loads(printed.out)["chosen_by"] == made.choice
    assert [each for each in printed.err.splitlines() if f"{made.mechanism} was chosen: {made.choice}" in each]


def test_a_dry_run_takes_what_the_release_will(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(toml("add-remove"))
    line = "release nowhere.csv --schema schema.toml --epsilon 1 --delta 1e-7 --dry-run --json"
    assert run(line.split()) == 0
    label = json.loads(capsys.readouterr().out)["label"]
    made = released(TABLE.select(["x", "y"]), dpgram.Schema.load("schema.toml"))
    assert label["mechanism"] == made.mechanism
    assert label["chosen_by"] == made.choice


# The protected number of rows


def protected(**changes):
    return small_schema(neighbours="add-remove", **changes)


def test_protected_rows_are_counted_noisily_by_the_first_round():
    made = released(schema=protected())
    assert made.mechanism == "whitened-noise"
    assert made.rows is None
    assert (
        "table_rows was not given. whitened-noise was chosen, because its first round counts the rows, under noise."
        in made.choice
    )
    named = released(schema=protected(), mechanism="whitened-noise")
    assert np.array_equal(made.gram, named.gram)
    assert made.parameters == named.parameters


@pytest.mark.parametrize(
    ("changes", "given", "said"),
    [
        ({"intercept": False}, {}, "without an intercept the release does not show it"),
        ({}, {"calibration": "paper"}, "whitened-noise is not in the paper"),
        ({}, {"table": stream, "cache": False}, "The table can be read only once"),
    ],
)
def test_gaussian_noise_is_taken_where_nothing_could_count_them_and_the_label_says_why(changes, given, said):
    table = given.pop("table", lambda: TABLE)()
    made = released(table, protected(**changes), **given)
    assert made.mechanism == "gaussian-noise"
    assert 'is protected under neighbours = "add-remove"' in made.choice
    assert said in made.choice


def test_a_stream_is_counted_noisily_too(tmp_path):
    for kept in ({}, {"cache": tmp_path, "memory": 0}):
        assert released(stream(), protected(), **kept).mechanism == "whitened-noise"


def test_nothing_to_regress_on_gets_gaussian_noise():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -1, 1)], intercept=False, neighbours="add-remove")
    made = released({"x": np.zeros(20)}, schema)
    assert made.mechanism == "gaussian-noise"
    assert "no regression to look at" in made.choice


# What can be read once, and options


def test_a_stream_that_is_not_kept_gets_what_reads_once():
    made = released(stream(), cache=False)
    assert made.mechanism == "gaussian-noise"
    assert "table_rows was not given. The table can be read only once" in made.choice


def test_an_option_needs_a_mechanism_and_the_error_names_those_that_have_it(tmp_path, monkeypatch, capsys):
    with pytest.raises(
        MechanismError,
        match=r"the option rho is given, but mechanism 'auto', the default, takes no options. .* \(noisy-inverse\)",
    ):
        released("nowhere.csv", rho=3.0)
    with pytest.raises(MechanismError, match=r"Name a mechanism that has it \(gaussian-noise, wishart-noise\)"):
        dpgram.PrivatePCA(bounds=(-1, 1), mechanism_options={"repair": "psd"}, **BUDGET).fit(np.zeros((9, 2)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(toml("replace"))
    line = "release nowhere.csv --schema schema.toml --epsilon 1 --delta 1e-7 --out r.json --sketch-rows 44"
    assert run(line.split()) == 2
    assert "(gaussian-sketch, gaussian-sketch-adaptive)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [1e-3, 1e5])
@pytest.mark.parametrize(
    "columns",
    [
        [dpgram.Numeric("x", -5, 5)],
        [dpgram.Categorical("c", ["a", "b"])],
        [dpgram.Boolean("b")],
        [dpgram.Numeric("x", -5, 5), dpgram.Numeric("y", 0, 1e9)],
    ],
)
def test_the_default_makes_a_release_of_whatever_gaussian_noise_does(columns, epsilon, neighbours):
    for intercept in (True, False):
        for rows in (1, 40):
            schema = dpgram.Schema(unit="p", columns=columns, intercept=intercept, neighbours=neighbours)
            for mechanism in ({"mechanism": "gaussian-noise"}, {}):
                made = dpgram.release(small_table(rows), schema, epsilon=epsilon, delta=1e-6, insecure_seed=0, **mechanism)
                assert np.isfinite(made.gram).all()
