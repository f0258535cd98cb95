"""The command line on real files: output, exit codes, errors, Ctrl-C."""

import json
import math
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpgram
from dpgram.cli.app import app, run
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.report.columns import declared
from tests.conftest import small_table

FILLED = """
unit = "person"
[[columns]]
name = "x"
kind = "numeric"
lower = -5
upper = 5
[[columns]]
name = "y"
kind = "numeric"
lower = -10
upper = 30
[[columns]]
name = "c"
kind = "categorical"
categories = ["a", "b"]
other = true
[[columns]]
name = "b"
kind = "boolean"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = small_table().to_pandas()
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    (tmp_path / "schema.toml").write_text(FILLED)
    return tmp_path


RELEASE = "--schema schema.toml --epsilon 5 --delta 1e-6 --out release.json"


def call(line, capsys):
    code = run(line.split())
    out, err = capsys.readouterr()
    return code, out, err


def test_derived_columns_at_the_command_line(folder, capsys):
    derived = (
        '[[derived]]\nname = "xc"\nkind = "product"\nof = ["x", "c"]\n[[derived]]\nname = "x,x"\nkind = "power"\nof = "x"\n'
    )
    (folder / "schema.toml").write_text(FILLED + derived)
    assert call(f"release t.csv {RELEASE}", capsys)[0] == 0
    code, out, _ = call("inspect release.json", capsys)
    assert code == 0
    assert "Derived columns" in out
    assert "x times c; 0 if a cell it uses is missing" in " ".join(out.split())
    code, out, _ = call("regress release.json --target y --features x,x,xc --json", capsys)
    assert (code, list(json.loads(out)["coefficients"])) == (0, ["(intercept)", "x,x", "xc[b]", "xc[other]"])
    (folder / "schema.toml").write_text(FILLED + derived.replace('of = "x"', 'of = "xc"'))
    code, _, err = call(f"release t.csv {RELEASE} --overwrite", capsys)
    assert (code, err.startswith("error: derived column 'x,x': 'xc' is not a declared column")) == (2, True)


def test_from_a_draft_to_a_regression(folder, capsys):
    code, draft, _ = call("schema draft t.parquet", capsys)
    assert code == 0
    assert draft.count('lower = ""') == 2
    (folder / "draft.toml").write_text(draft)
    code, _, err = call(f"release t.parquet {RELEASE}".replace("schema.toml", "draft.toml"), capsys)
    assert code == 2
    assert err.startswith("error: column 'x': lower is blank. Fill in a bound that you know from the domain")
    code, out, err = call(f"release t.parquet {RELEASE}", capsys)
    assert (code, out) == (0, "")
    assert "6 columns, noise standard deviation" in err
    assert "wrote release.json: " in err
    assert dpgram.load("release.json").private
    code, out, _ = call("regress release.json --target y --features x,c", capsys)
    assert code == 0
    for word in (
        "linear regression of y",
        "(intercept)",
        "c[b]",
        "c[other]",
        "privacy",
        "Epsilon, delta:",
        "5, 1e-06",
        "shrunk",
    ):
        assert word in out


def test_a_draft_of_csv_leaves_kinds_blank(folder, capsys):
    _, draft, _ = call("schema draft t.csv", capsys)
    assert draft.count('kind = ""') == 4
    assert [line for line in draft.splitlines() if line.startswith("name")] == [f'name = "{n}"' for n in "xycb"]


def test_json_holds_what_the_table_says(folder, capsys):
    call(f"release t.csv {RELEASE}", capsys)
    code, out, _ = call("regress release.json --target y --json", capsys)
    data = json.loads(out)
    assert code == 0
    assert list(data["coefficients"]) == ["(intercept)", "x", "c[b]", "c[other]", "b"]
    fit = dpgram.regress(dpgram.load("release.json"), "y")
    assert {name: c["coefficient"] for name, c in data["coefficients"].items()} == fit.params.to_dict()
    assert {name: c["shrunk"] for name, c in data["coefficients"].items()} == fit.shrunk.to_dict()
    assert [[c["lower"], c["upper"]] for c in data["coefficients"].values()] == fit.conf_int().to_numpy().tolist()
    assert data["coefficients"]["x"]["coefficient"] == pytest.approx(2, abs=0.5)
    _, out, _ = call("regress release.json --target y --features x --no-intercept --estimator plain --json", capsys)
    assert list(json.loads(out)["coefficients"]) == ["x"]


def test_formats_give_the_same_bits_under_a_seed(folder, capsys):
    for name in ("csv", "parquet"):
        code, _, err = call(f"release t.{name} {RELEASE} --insecure-seed 7".replace("release.json", f"{name}.json"), capsys)
        assert code == 0
        assert "NOT PRIVATE" in err
    assert (folder / "csv.json").read_bytes() == (folder / "parquet.json").read_bytes()


def test_inspect_prints_the_label(folder, capsys):
    call(f"release t.csv {RELEASE}", capsys)
    code, out, _ = call("inspect release.json", capsys)
    assert code == 0
    for word in ("epsilon", "delta", "replace", "one row: person", "This is not checked", "gaussian-noise", "noise sd",
                 "clamped to [-5, 5]", "public", "protected", dpgram.__version__, "cryptographic"):  # fmt: skip
        assert word in out, word
    label = json.loads(call("inspect release.json --json", capsys)[1])
    assert (label["epsilon"], label["delta"], label["neighbours"], label["unit"]) == (5, 1e-6, "replace", "person")
    assert label["noise"]["sd_diagonal"] == pytest.approx(np.sqrt(2) * label["noise"]["sd_off_diagonal"])


def test_release_prints_the_label_for_scripts(folder, capsys):
    code, out, err = call(f"release t.csv {RELEASE} --json", capsys)
    assert code == 0
    assert "wrote release.json: " in err
    assert out == call("inspect release.json --json", capsys)[1]
    assert json.loads(out)["epsilon"] == 5


def test_the_label_states_bounds_to_the_last_digit():
    assert "clamped to [-0.1, 1234567.5]; missing cells become 1000000.25" in declared(
        dpgram.Numeric("x", -0.1, 1234567.5, missing=1000000.25)
    )


def test_inspect_shouts_when_a_release_is_not_private(folder, capsys):
    call(f"release t.csv {RELEASE} --insecure-seed 1", capsys)
    assert "NOT PRIVATE" in call("inspect release.json", capsys)[1]
    assert "NOT PRIVATE" in call("regress release.json --target y", capsys)[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("release none.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out r.json", "none.csv is not a file"),
        ("release t.csv --schema none.toml --epsilon 1 --delta 1e-6 --out r.json", "schema file none.toml cannot be read"),
        ("release t.csv --schema schema.toml --epsilon 0 --delta 1e-6 --out r.json", "epsilon is 0 and must be"),
        ("release t.csv --schema schema.toml --epsilon 1 --delta 2 --out r.json", "delta is 2 and must lie"),
        ("release t.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out no/r.json", "there is no folder no"),
        ("release t.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out .", "it is a folder"),
        ("release t.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out r.json --mechanism x", "no mechanism named 'x'"),
        ("inspect none.json", "none.json: the file cannot be read"),
        ("regress t.csv --target y", "not valid JSON"),
        ("schema draft none.parquet", "is not a file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(folder, capsys, line, message):
    code, out, err = call(line, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (folder / "r.json").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("release t.csv", "--schema is missing, or has no value. 'dpgram release --help'"),
        ("release t.csv --schema schema.toml --epsilon 1 --out r.json", "--delta is missing, or has no value."),
        ("release t.csv --schema schema.toml --delta 1e-6 --epsilon", "--epsilon"),
        ("regress", "is missing, or has no value. 'dpgram regress --help'"),
        ("nonsense", 'Unknown command "nonsense"'),
        ("ledger sho", 'Did you mean "show"?'),
        ("inspect a.json b.json", "'dpgram inspect' does not take 'b.json'."),
        ("release t.csv --schema schema.toml --delta 1e-6 --epsilon much", 'unable to convert "much" into float'),
    ],
)
def test_bad_usage_is_one_line_that_names_it_and_exit_code_2(folder, capsys, line, message):
    code, out, err = call(line, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


def test_a_release_is_not_replaced_by_accident(folder, capsys):
    (folder / "release.json").write_text("paid for")
    code, _, err = call(f"release t.csv {RELEASE}", capsys)
    assert code == 2
    assert "Pass --overwrite" in err
    assert (folder / "release.json").read_text() == "paid for"
    assert call(f"release t.csv {RELEASE} --overwrite", capsys)[0] == 0


def test_a_release_does_not_replace_its_own_table(folder, capsys):
    before = (folder / "t.csv").read_bytes()
    for out in ("t.csv", "schema.toml"):
        code, _, err = call(f"release t.csv {RELEASE} --overwrite".replace("release.json", out), capsys)
        assert code == 2
        assert "is the table or the schema itself" in err
    assert (folder / "t.csv").read_bytes() == before


def test_a_large_delta_is_warned_of_on_standard_error(folder, capsys):
    code, _, err = call(f"release t.csv {RELEASE}".replace("1e-6", "0.01"), capsys)
    assert code == 0
    assert "warning: delta is 0.01, which is above 1/(number of rows)" in err


def test_names_with_commas_are_found(folder, capsys):
    table = {"a,b": np.arange(50.0), "c": np.arange(50.0), "y": np.arange(50.0)}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, 0, 50) for n in table])
    dpgram.release(table, schema, epsilon=1, delta=1e-3, mechanism="gaussian-noise").save("r.json")
    _, out, _ = run(["regress", "r.json", "--target", "y", "--features", " c, a,b", "--json"]), *capsys.readouterr()
    assert list(json.loads(out)["coefficients"]) == ["(intercept)", "c", "a,b"]


def test_every_command_has_help(capsys):
    for words in (
        ["--help"],
        ["schema", "draft", "--help"],
        *([name, "--help"] for name in ("release", "inspect", "regress", "cov", "pca", "report", "calibrate", "demo")),
    ):
        assert run(words) == 0
        assert "Usage: dpgram" in capsys.readouterr().out
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip() == dpgram.__version__
    assert app.name == ("dpgram",)


def big_csv(path):
    """Enough quoted rows to keep the reader busy for seconds."""
    block = "".join(f'"{i % 5}","{i % 7}","a","true"\n' for i in range(10_000))
    with path.open("w") as file:
        file.write("x,y,c,b\n")
        for _ in range(600):
            file.write(block)


def test_ctrl_c_in_the_middle_of_a_read_leaves_nothing(folder):
    big_csv(folder / "big.csv")
    before = {p.name for p in folder.iterdir()}
    main, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpgram", "release", "big.csv", *RELEASE.split(), "--mechanism", "gaussian-noise"],
        stderr=child,
        stdout=child,
        cwd=folder,
    )
    os.close(child)
    shown = b""
    deadline = time.monotonic() + 60
    while b"%" not in shown and time.monotonic() < deadline:  # the progress bar: rows are being read
        if select.select([main], [], [], 0.1)[0]:
            shown += os.read(main, 4096)
    assert b"reading" in shown
    process.send_signal(signal.SIGINT)
    while True:
        try:
            shown += os.read(main, 4096)
        except OSError:
            break
        if process.poll() is not None and not select.select([main], [], [], 0.1)[0]:
            break
    assert process.wait(60) == 130
    assert b"interrupted" in shown
    assert b"Traceback" not in shown
    assert {p.name for p in folder.iterdir()} == before


def test_a_closed_pipe_is_no_error(folder):
    dpgram.release("t.csv", dpgram.Schema.load("schema.toml"), epsilon=1, delta=1e-6, mechanism="gaussian-noise").save("r.json")
    for command in ("inspect r.json --json", "inspect r.json", "regress r.json --target y"):
        line = f"{sys.executable} -m dpgram {command} | true; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode in (0, 141)  # 0 when all was written before the pipe closed
        assert done.stderr == ""


def test_every_mechanism_can_be_chosen(folder, capsys):
    extra = {"noisy-inverse": "--rho 2", "gaussian-sketch": "--sketch-rows 50", "wishart-noise": "--scale 3 --repair none"}
    for name in MECHANISMS:
        code, _, err = call(f"release t.csv {RELEASE} --overwrite --mechanism {name} {extra.get(name, '')}", capsys)
        assert code == 0, err
        label = json.loads(call("inspect release.json --json", capsys)[1])
        assert (label["mechanism"], label["calibration"]) == (name, "exact")
        assert (label["conditional"] is not None) == (name == "noisy-inverse")
        assert name in call("inspect release.json", capsys)[1]
        assert any("first stage" in part for part in label["protected"]) == name.endswith("-adaptive")
        assert call("regress release.json --target y --features x", capsys)[0] == 0
        assert ("CONDITIONAL" in call("inspect release.json", capsys)[1]) == (name == "noisy-inverse")


def test_every_mechanism_is_named_in_the_help_and_in_the_docs(capsys):
    _, out, _ = call("calibrate --help", capsys)
    listed = " ".join(out.split()).partition("The mechanisms are ")[2].partition(".")[0].replace(" and ", ", ").split(", ")
    assert listed == list(MECHANISMS)
    page = (Path(__file__).parents[2] / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    for name, mechanism in MECHANISMS.items():
        assert name in " ".join(out.split())
        assert f"| `{name}`" in page
        for option in mechanism.options:
            assert f"`{option}`" in page


def test_any_option_of_a_mechanism_can_be_given_by_name(capsys):
    """So that a new mechanism needs no change here."""
    _, named, _ = call(f"calibrate gaussian-sketch {CALIBRATE} --sketch-rows 60 --json", capsys)
    _, other, _ = call(f"calibrate gaussian-sketch {CALIBRATE} --option sketch-rows=60 --json", capsys)
    assert json.loads(named) == json.loads(other)
    _, out, _ = call(
        f"calibrate gaussian-sketch-adaptive {CALIBRATE} --option sketch_rows=60 --option first_stage=gauss --json", capsys
    )
    assert "first_stage_mu" in json.loads(out)
    code, _, err = call(f"calibrate gaussian-sketch {CALIBRATE} --option sketch_rows", capsys)
    assert code == 2
    assert "must be NAME=VALUE" in err


def test_a_guess_of_the_rows_may_be_given_as_an_option_too(folder, capsys):
    (folder / "schema.toml").write_text('neighbours = "add-remove"\n' + FILLED)
    line = f"release t.csv {RELEASE} --mechanism whitened-noise --overwrite --json"
    _, named, _ = call(f"{line} --table-rows 60", capsys)
    code, other, err = call(f"{line} --option table_rows=60", capsys)
    assert code == 0, err
    assert json.loads(named)["parameters"]["rounds"] == json.loads(other)["parameters"]["rounds"]
    for flag in ("--option table_rows=many", "--option table_rows=0", "--table-rows 0"):
        code, _, err = call(f"{line} {flag}", capsys)
        assert code == 2
        assert "table_rows is" in err
    _, named, _ = call(f"{line} --dry-run --table-rows 60", capsys)
    _, other, _ = call(f"{line} --dry-run --option table-rows=60", capsys)
    assert json.loads(named) == json.loads(other)


def test_an_option_with_the_name_of_an_argument_is_refused(folder, capsys):
    for line in (f"release t.csv {RELEASE}", "plan --schema schema.toml --epsilon 1 --delta 1e-6 --table-rows 500"):
        code, _, err = call(f"{line} --option epsilon=2", capsys)
        assert code == 2
        assert "--option epsilon is not an option of any mechanism" in err


def test_a_printed_formula_that_is_less_private_than_it_says_is_refused(folder, capsys):
    code, _, err = call(f"release t.csv {RELEASE} --mechanism gaussian-noise --calibration paper", capsys)
    assert code == 2
    assert "less private than it says" in err
    assert not (folder / "release.json").exists()
    code, _, err = call(f"release t.csv {RELEASE} --mechanism gaussian-sketch --rho 3", capsys)
    assert "gaussian-sketch has no option 'rho'" in err


CALIBRATE = "--epsilon 0.1 --delta 0.0001234098 --dim 22 --row-bound 2"


def test_calibrate_tells_the_rounds_of_several_or_their_total(capsys):
    line = f"calibrate whitened-noise {CALIBRATE} --json"
    total = json.loads(call(line, capsys)[1])
    assert set(total) == {"epsilon", "delta", "mu", "delta_at_epsilon"}
    rounds = json.loads(call(f"{line} --table-rows 1000000", capsys)[1])
    assert rounds["mu"] == pytest.approx(total["mu"], rel=1e-12)
    assert rounds["rounds"] >= 1
    for hint in ("", "--table-rows 1000"):
        added = json.loads(call(f"{line} --neighbours add-remove {hint}", capsys)[1])
        assert math.hypot(*(added[f"round_{k}_mu"] for k in range(1, int(added["rounds"]) + 1))) == pytest.approx(total["mu"])


def test_calibrate_prints_parameters_without_data(capsys):
    _, out, _ = call(f"calibrate gaussian-sketch {CALIBRATE} --sketch-rows 44 --json", capsys)
    found = json.loads(out)
    assert found["w_squared"] == pytest.approx(4 * 162.082, rel=1e-5)
    assert (found["sketch_rows"], found["epsilon"], found["delta"]) == (44, 0.1, 0.0001234098)
    _, out, _ = call(f"calibrate gaussian-sketch {CALIBRATE} --sketch-rows 44 --compare", capsys)
    assert "paper" in out
    assert "exact" in out
    _, out, _ = call(f"calibrate gaussian-noise {CALIBRATE} --compare --json --neighbours add-remove", capsys)
    both = json.loads(out)
    assert both["paper"]["sd_off_diagonal"] > both["exact"]["sd_off_diagonal"]
    _, out, _ = call(f"calibrate inverse-wishart {CALIBRATE} --table-rows 1000 --json", capsys)
    assert json.loads(out)["degrees_of_freedom"] == 1022
    _, out, _ = call(f"calibrate wishart-noise {CALIBRATE} --compare --json --scale 4".replace("0.1", "3"), capsys)
    assert "epsilon < 1" in json.loads(out)["paper"]["refused"]
    _, out, _ = call(f"calibrate wishart-noise {CALIBRATE} --compare --scale 4".replace("0.1", "3"), capsys)
    assert "paper: the printed theorem needs epsilon < 1" in " ".join(out.split())
    _, out, _ = call(f"calibrate inverse-wishart-adaptive {CALIBRATE} --json", capsys)
    assert json.loads(out)["psi"] == json.loads(out)["base_w_squared"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"calibrate nonsense {CALIBRATE}", "no mechanism named 'nonsense'"),
        (f"calibrate noisy-inverse {CALIBRATE}", "rho is not given"),
        (f"calibrate gaussian-noise {CALIBRATE} --neighbours swap", "must be replace or add-remove"),
        (f"calibrate gaussian-noise {CALIBRATE}".replace("22", "0"), "dim is 0 and must be at least 1"),
        (f"calibrate gaussian-noise {CALIBRATE}".replace("bound 2", "bound 0"), "row_bound is 0 and must be positive"),
        (f"calibrate inverse-wishart {CALIBRATE}", "Give degrees_of_freedom, or table_rows"),
    ],
)
def test_calibrate_names_what_is_wrong(capsys, line, message):
    code, out, err = call(line, capsys)
    assert (code, out) == (2, "")
    assert message in err


def strict(text):
    """JSON as the standard has it: neither NaN nor Infinity."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def release_file(folder):
    dpgram.release(
        "t.parquet", dpgram.Schema.load("schema.toml"), epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1
    ).save("r.json")
    return folder


def words(*line):
    return [part for chunk in line for part in ([chunk] if " " in chunk else chunk.split())]


def test_regress_by_any_estimator_interval_and_confidence(release_file, capsys):
    release = dpgram.load("r.json")
    for estimator in ("shrunk", "debiased", "log-det", "plain", "ridge", "lasso", "elastic-net"):
        code, out, _ = call(f"regress r.json --target y --estimator {estimator} --json", capsys)
        data = strict(out)
        assert (code, data["estimator"]) == (0, estimator)
        fit = dpgram.regress(release, "y", estimator=estimator)
        assert {name: c[estimator] for name, c in data["coefficients"].items()} == fit.estimates.to_dict()
    for intervals in ("auto", "wald", "fieller", "bootstrap"):
        code, out, _ = call(f"regress r.json --target y --features x --intervals {intervals} --confidence 0.9 --json", capsys)
        data = strict(out)
        assert (code, data["intervals"], data["confidence"]) == (0, intervals, 0.9)
        ends = dpgram.regress(release, "y", ["x"]).conf_int(confidence=0.9, method=intervals)
        assert [[c["lower"], c["upper"]] for c in data["coefficients"].values()] == ends.to_numpy().tolist()
    _, out, _ = call("regress r.json --target y --estimator elastic-net --penalty 0.1 --l1-ratio 0.2 --json", capsys)
    wanted = dpgram.regress(release, "y", estimator="elastic-net", penalty=0.1, l1_ratio=0.2).estimates
    assert {name: c["elastic-net"] for name, c in strict(out)["coefficients"].items()} == wanted.to_dict()


def test_several_targets_and_formulas_at_the_command_line(release_file, capsys):
    code, out, _ = call("regress r.json --target y --target x --features b", capsys)
    assert code == 0
    assert out.index("linear regression of y") < out.index("linear regression of x")
    assert "\n\n" in out
    code, out, _ = call("regress r.json --target y --target x --features b --json", capsys)
    assert [fit["target"] for fit in strict(out)["models"].values()] == ["y", "x"]
    code = run(["regress", "r.json", "--formula", "y ~ x", "--formula", "y ~ x + c", "--compare"])
    out = capsys.readouterr().out
    assert code == 0
    assert "(1) y" in out
    assert "(2) y" in out
    assert "Private linear regressions" in out
    run(["regress", "r.json", "--formula", "y ~ x", "--compare", "--json"])
    assert list(strict(capsys.readouterr().out)["models"]) == ["(1) y"]


def test_what_noise_drowned_is_strict_json_too(folder, capsys):
    dpgram.release("t.parquet", dpgram.Schema.load("schema.toml"), epsilon=1e-3, delta=1e-6, mechanism="gaussian-noise").save(
        "r.json"
    )
    data = strict(call("regress r.json --target y --json", capsys)[1])
    assert {c["lower"] for c in data["coefficients"].values()} == {None}
    assert data["r_squared"] is None
    for line in ("cov r.json --json", "pca r.json --json", "pca r.json --standardise --json",
                 "regress r.json --target y --target x --compare --json"):  # fmt: skip
        code, out, _ = call(line, capsys)
        assert code == 0
        strict(out)
    code, out, _ = call("regress r.json --target y", capsys)
    assert "Not identified at this budget" in out
    code, out, _ = call("regress r.json --target y --target x --compare", capsys)
    assert "not identified at this budget" in out


def test_cov_and_pca_print_what_the_library_says(release_file, capsys):
    found = dpgram.covariance(dpgram.load("r.json"), ["x", "y"])
    code, out, _ = call("cov r.json --columns x,y --json", capsys)
    assert (code, strict(out)) == (0, found.to_dict())
    for kind in ("covariance", "correlation", "partial"):
        code, out, _ = call(f"cov r.json --columns x,y --kind {kind}", capsys)
        assert (code, out) == (0, f"{found.summary(kind)}\n")
        assert "NOT PRIVATE" in out
    components = dpgram.pca(dpgram.load("r.json"), standardise=True)
    code, out, _ = call("pca r.json --standardise --json", capsys)
    assert (code, strict(out)) == (0, components.to_dict())
    code, out, _ = call("pca r.json --standardise --components 2", capsys)
    assert (code, out) == (0, f"{components.summary(2)}\n")


FIGURES = [
    "regress r.json --target y",
    "regress r.json --target y --json",
    "regress r.json --target y --target x --compare",
    "cov r.json",
    "cov r.json --kind partial",
    "pca r.json",
]


@pytest.mark.parametrize("line", FIGURES)
def test_every_command_draws_its_figure(release_file, capsys, line):
    code, out, err = call(f"{line} --plot f.png", capsys)
    unsigned = "r.json: unsigned, so it does not prove that it comes from the custodian\n"
    assert (code, err) == (0, unsigned if line.startswith("regress") else "")
    assert out == call(line, capsys)[1]
    assert (release_file / "f.png").read_bytes().startswith(b"\x89PNG")
    before = {p.name for p in release_file.iterdir()}
    for place in ("f.jpg", "none/f.png", "."):
        code, out, err = call(f"{line} --plot {place}", capsys)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
    assert {p.name for p in release_file.iterdir()} == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("regress r.json", "give either --target (with --features) or --formula"),
        ("regress r.json --target y --formula y~x", "give either --target (with --features) or --formula"),
        ("regress r.json --formula y~x --features x", "Leave out features and intercept"),
        ("regress r.json --target q", "no column 'q'"),
        ("regress r.json --target y --features q", "no column 'q'"),
        ("regress r.json --target y --estimator ols", "there is no estimator named 'ols'"),
        ("regress r.json --target y --intervals exact", "intervals is 'exact' and must be one of"),
        ("regress r.json --target y --confidence 95", "confidence is 95.0 and must be a number between 0 and 1"),
        ("regress r.json --target y --penalty 1", "'shrunk' has no option 'penalty'"),
        ("regress r.json --target y --estimator ridge --penalty -1", "penalty is -1.0 and must be"),
        ("cov r.json --columns q", "no column 'q'"),
        ("cov r.json --kind spearman", "kind is 'spearman' and must be one of"),
        ("pca r.json --components 0", "components is 0 and must be"),
        ("pca none.json", "none.json: the file cannot be read"),
        ("cov t.csv", "not valid JSON"),
    ],
)
def test_what_an_analyst_gets_wrong_is_one_line_and_exit_code_2(release_file, capsys, line, message):
    code, out, err = call(line, capsys)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
