"""dpgram margins: marginal effects at the command line, and their picture."""

from __future__ import annotations

import json

import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.cli.margins import given_values
from tests.analysis.test_margins import RELEASE, SCHEMA, rows
from tests.releases import labelled
from tests.report.test_markup import compiled

FORMULA = "y ~ age*female + I(age**2) + age:place + place"
ASK = ["margins", "r.json", "--formula", FORMULA, "--column", "age"]


@pytest.fixture
def released(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labelled(RELEASE).save(tmp_path / "r.json")
    return dpgram.load("r.json")


def test_the_table_json_and_picture_are_those_of_python(released, tmp_path, capsys):
    fit = dpgram.regress(released, FORMULA)
    at = ["--at", "age=30,50", "--at", "female=yes,no", "--at", "place=w"]
    assert run([*ASK, *at, "--plot", "f.png"]) == 0
    wanted = fit.marginal_effects("age", at={"age": [30.0, 50.0], "female": [True, False], "place": ["w"]})
    assert capsys.readouterr().out.rstrip() == str(wanted)
    assert (tmp_path / "f.png").stat().st_size > 0
    assert run([*ASK, "--json", "--confidence", "0.9"]) == 0
    wanted = dpgram.regress(released, FORMULA, confidence=0.9).marginal_effects("age").to_dict()
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(wanted))
    assert run([*ASK, *at, "--format", "latex"]) == 0
    compiled(capsys.readouterr().out)


def test_a_target_with_features_does_as_well(released, capsys):
    assert run(["margins", "r.json", "--target", "y", "--features", "age,place", "--column", "place", "--no-intercept"]) == 0
    wanted = dpgram.regress(released, "y", ["age", "place"], intercept=False).marginal_effects("place")
    assert capsys.readouterr().out.rstrip() == str(wanted)


def test_the_picture_has_a_row_for_each_effect_and_says_what_it_shows():
    found = dpgram.regress(RELEASE, FORMULA).marginal_effects("age", at={"age": [30, 50], "female": True})
    ax = found.plot()
    assert [one.get_text() for one in ax.get_yticklabels()] == ["age, age = 30, female = True", "age, age = 50, female = True"]
    assert ax.get_xlabel() == "effect, with 95% confidence interval"
    assert "Marginal effects of age on y" in ax.get_title(loc="left") + ax.get_title()


def test_an_effect_that_is_not_identified_is_drawn_as_such():
    drowned = dpgram.release(rows(60), SCHEMA, epsilon=0.01, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    ax = dpgram.regress(drowned, "y", ["age", "age2"]).marginal_effects("age").plot()
    assert [one.get_text() for one in ax.texts] == ["not identified at this budget"]


def test_values_are_read_as_the_kind_of_the_column_writes_them():
    columns = [
        dpgram.Numeric("a", 0, 9),
        dpgram.Numeric("a=b", 0, 9),
        dpgram.Boolean("f"),
        dpgram.Categorical("c", ["x", "y, z", "true"]),
        dpgram.Date("d", "2020-01-01", "2021-01-01"),
    ]
    schema = dpgram.Schema(unit="person", columns=columns)
    texts = ["a=1,2.5", "a=b=3", "f=Yes,0,maybe", "c=y, z,x,true", "d=2020-05-01"]
    assert given_values(schema, texts) == {
        "a": [1.0, 2.5],
        "a=b": [3.0],
        "f": [True, False, "maybe"],
        "c": ["y, z", "x", "true"],
        "d": ["2020-05-01"],
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["margins", "r.json", "--column", "age"], "give either --target (with --features) or --formula"),
        ([*ASK, "--at", "age"], "--at is 'age' and must be COLUMN=VALUES, such as age=30,50"),
        ([*ASK, "--at", "age="], "--at is 'age=' and must be COLUMN=VALUES"),
        ([*ASK, "--at", "age=30", "--at", "age=50"], "--at names 'age' twice. Write its values once, separated by commas"),
        ([*ASK, "--at", "age=old"], "column 'age' is 'old' and must be a number"),
        ([*ASK, "--at", "female=maybe"], "column 'female' is 'maybe' and must be True or False"),
        ([*ASK, "--at", "place=nn"], "column 'place' has no level 'nn'. Did you mean 'n'?"),
        ([*ASK, "--at", "agee=30"], "there is no column 'agee'. Did you mean 'age'?"),
        ([*ASK, "--at", "dose=3"], "at names column 'dose', but the model does not use it. Its columns are age, female, place"),
        ([*ASK, "--format", "html"], "--format is 'html' and must be one of text, latex, markdown"),
        (
            ["margins", "r.json", "--formula", "y + dose ~ age", "--column", "age"],
            "marginal effects are those of one target, but the formula has several",
        ),
    ],
)
def test_bad_input_is_one_line(released, capsys, words, message):
    assert run(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
