"""dpgram controls, and tables as LaTeX and Markdown at the command line."""

from __future__ import annotations

import json

import pytest

import dpgram
from dpgram.cli.app import run
from tests.report.test_markup import compiled

ASK = ["controls", "r.json", "--target", "y", "--coefficient", "x"]


@pytest.fixture
def released(small_release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_release.save(tmp_path / "r.json")
    return dpgram.load("r.json")


def test_the_table_json_and_picture_are_those_of_python(released, capsys):
    assert run([*ASK, "--add", "c", "--add", "b", "--plot", "f.png"]) == 0
    wanted = dpgram.controls(released, "y", "x", [["c"], ["b"]])
    assert capsys.readouterr().out.rstrip() == str(wanted)
    assert run([*ASK, "--add", "c,b", "--json", "--confidence", "0.9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(dpgram.controls(released, "y", "x", [["c", "b"]], confidence=0.9).to_dict()))
    assert run([*ASK, "--add", "c", "--features", "b", "--no-intercept", "--compare", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["models"]) == ["(1) b", "(2) c"]


def test_one_level_of_a_category_is_a_control(released, capsys):
    assert run([*ASK, "--add", "c[b]", "--add", "b"]) == 0
    wanted = dpgram.controls(released, "y", "x", [["c[b]"], ["b"]])
    assert capsys.readouterr().out.rstrip() == str(wanted)
    assert "+ c[b]" in str(wanted)


def test_latex_and_markdown(released, capsys):
    assert run([*ASK, "--add", "c", "--format", "latex"]) == 0
    compiled(capsys.readouterr().out)
    assert run(["regress", "r.json", "--target", "y", "--features", "x", "--format", "latex"]) == 0
    ((header, *_),) = compiled(capsys.readouterr().out)
    assert header == ["", "(1) y"]
    assert run(["regress", "r.json", "--target", "y", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.strip() == dpgram.compare(dpgram.regress(released, "y")).to_markdown()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (ASK, "there is no group of controls. Name at least one, such as --add age,sex"),
        ([*ASK, "--add", "c", "--format", "html"], "--format is 'html' and must be one of text, latex, markdown"),
        ([*ASK, "--add", "cc"], "there is no column 'cc'. Did you mean 'c'?"),
        (["regress", "r.json", "--target", "y", "--format", "tex"], "--format is 'tex' and must be one of"),
    ],
)
def test_bad_input_is_one_line(released, capsys, words, message):
    assert run(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
