"""A mechanism declares its options once: the commands have a flag for each, with its words and default, and refuse what is not declared."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import pytest
from cyclopts import App

import dpgram
from dpgram.cli.app import run
from dpgram.cli.options import with_flags
from dpgram.errors import MechanismError
from dpgram.mechanisms.options import Option, by_name
from dpgram.mechanisms.registry import MECHANISMS
from tests.cli.test_commands import FILLED
from tests.conftest import small_schema, small_table

COMMANDS = ("release", "calibrate", "plan")
CALIBRATE = "--epsilon 0.1 --delta 1e-4 --dim 5 --row-bound 2"


def said(line, capsys):
    code = run(line.split())
    return code, *capsys.readouterr()


def together(text):
    """What is printed in a box, without the box and its line breaks."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_declared_option_is_a_flag_with_its_words_and_its_default(command, capsys):
    _, out, _ = said(f"{command} --help", capsys)
    group = together(out.partition("Options of mechanisms")[2])
    for mechanism in MECHANISMS.values():
        for option in mechanism.options.values():
            assert f"--{option.name.replace('_', '-')} " in together(out)
            if option.name == "table_rows" or (option.name == "memory" and command == "release"):
                # one of the command's own, in words that say more
                assert f"--{option.name.replace('_', '-')} " not in group
                continue
            assert f"{option.words}{f' [default: {option.default}]' if option.default else ''}." in group
            assert mechanism.name in group


def test_an_option_that_is_declared_later_needs_no_change_in_a_command(monkeypatch, capsys):
    plain = MECHANISMS["gaussian-noise"]
    colour = Option("colour", str, "red or blue", default="red", choices=("red", "blue"))
    monkeypatch.setitem(MECHANISMS, "painted-noise", replace(plain, name="painted-noise", options=by_name(colour)))
    seen = []

    @with_flags
    def paint(*, shade: float = 1.0, **options):
        """Paint."""
        seen.append((shade, options))

    app = App(name="paint")
    app.default(paint)
    app(["--colour", "blue", "--sketch-rows", "7"], exit_on_error=False, result_action="return_value")
    assert seen == [(1.0, {"colour": "blue", "sketch_rows": 7.0})]
    assert "painted-noise: red or blue [default: red]." in str(inspect.signature(paint).parameters["colour"].annotation)
    made = {
        name: dpgram.release(
            small_table(), small_schema(), epsilon=1, delta=1e-6, insecure_seed=1, mechanism=name
        ).gram.tolist()
        for name in ("gaussian-noise", "painted-noise")
    }
    assert made["painted-noise"] == made["gaussian-noise"]
    with pytest.raises(MechanismError, match="colour is 'green' and must be 'red' or 'blue'"):
        dpgram.release(small_table(), small_schema(), epsilon=1, delta=1e-6, mechanism="painted-noise", colour="green")


def test_an_option_that_a_mechanism_has_not_is_refused_with_those_that_it_has(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(FILLED)
    (tmp_path / "t.csv").write_text("x,y,c,b\n1,2,a,true\n")
    release = "release t.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out r.json --mechanism gaussian-sketch"
    for line in (
        f"{release} --rho 3",
        f"{release} --option rho=3",
        f"{release} --rho 3 --dry-run",
        f"calibrate gaussian-sketch {CALIBRATE} --rho 3",
        "audit gaussian-sketch --option rho=3",
    ):
        code, _, err = said(line, capsys)
        assert code == 2
        assert "gaussian-sketch has no option 'rho'. Its options are sketch_rows." in err
    plan = "plan --schema schema.toml --epsilon 1 --delta 1e-6 --table-rows 500 --mechanism gaussian-sketch --rho 3"
    code, _, err = said(plan, capsys)
    assert code == 2
    assert "none of gaussian-sketch has an option 'rho'. Their options are sketch_rows." in err
    for line in (release, f"calibrate gaussian-sketch {CALIBRATE}", "audit gaussian-sketch"):
        code, _, err = said(f"{line} --option colour=red", capsys)
        assert code == 2
        assert "--option colour is not an option of any mechanism. The options are repair, sketch_rows" in err
    assert not (tmp_path / "r.json").exists()


def test_a_flag_and_its_option_by_name_are_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(FILLED)
    plan = "plan --schema schema.toml --epsilon 1 --delta 1e-6 --table-rows 500 --json --mechanism gaussian-sketch"
    for line in (plan, f"calibrate gaussian-sketch {CALIBRATE} --json"):
        (_, flag, _), (_, named, _), (_, bare, _) = (
            said(f"{line} {more}", capsys) for more in ("--sketch-rows 60", "--option sketch-rows=60", "")
        )
        assert json.loads(flag) == json.loads(named) != json.loads(bare)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (Option("k", float, ""), "many", "k is 'many' and must be a number"),
        (Option("k", float, ""), True, "k is True and must be a number"),
        (Option("k", float, ""), float("nan"), "k is nan and must be a finite number"),
        (Option("k", float, ""), 10**400, "k is 1000.* and must be a finite number"),
        (Option("k", str, ""), 3, "k is 3 and must be a word"),
        (Option("k", str, "", choices=("a",)), "b", "k is 'b' and must be 'a'"),
        (Option("k", str, "", choices=("a", "b", "c")), "d", "k is 'd' and must be one of a, b, c"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_refused(option, value, message):
    with pytest.raises(MechanismError, match=message):
        option.checked(value)
    with pytest.raises(MechanismError, match=message):
        option.of({"k": value})


def test_an_option_that_is_left_out_has_its_default():
    assert Option("k", str, "", default="a").of({}) == "a"
    assert Option("k", float, "").of({"j": 1.0}) is None
    assert Option("k", float, "", default=2.0).of({"k": 3}) == 3


def test_a_repair_that_wishart_noise_does_not_know_is_refused():
    """It was taken without a word, and did nothing."""
    with pytest.raises(MechanismError, match="repair is 'psd' and must be 'none'"):
        dpgram.release(small_table(), small_schema(), epsilon=1, delta=1e-6, mechanism="wishart-noise", repair="psd")
