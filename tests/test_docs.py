"""The docs are true: code blocks run, names are listed, links lead somewhere."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpgram

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SCHEMA_BLOCKS = BLOCK.findall((ROOT / "docs" / "schema.md").read_text(encoding="utf-8"))
REFERENCE = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "reference").glob("*.md")))
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "reference").glob("*.md")),
    *sorted((ROOT / "src").rglob("*.md")),
]


def test_the_readme_runs(tmp_path):
    """Every bash and python block, in order, in one folder with the demo's table and schema."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    commands = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-W", "error", "-c"]}
    (tmp_path / "demo").mkdir()  # `make demo` writes these; tests/test_guides.py runs the command
    for name in ("flights.parquet", "flights.toml"):
        shutil.copy(ROOT / "src" / "dpgram" / "demo" / name, tmp_path / "demo")
    ran = 0
    for language, code in BLOCK.findall(README):
        if language in commands:
            done = subprocess.run(
                [*commands[language], code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{code}\n{done.stderr}"
            assert done.stdout.strip()
            ran += 1
    assert ran == 2
    for name in ("schema.toml", "release.json", "report.html"):
        assert (tmp_path / name).stat().st_size > 0


def test_the_page_on_formulas_runs(capsys):
    """Every formula of the first block has the coefficients that its comment names; the others name coefficients and columns, too."""
    blocks = BLOCK.findall((ROOT / "docs" / "formulas.md").read_text(encoding="utf-8"))
    names: dict = {}
    for language, code in blocks:
        if language == "python":
            exec(compile(code, "formulas.md", "exec"), names)
    printed = capsys.readouterr().out
    for comment in re.findall(r"# (\(intercept\), .*|carrier\[.*)$", blocks[0][1], flags=re.MULTILINE):
        assert f"arr_delay on {comment}\n" in printed
    assert "carrier[UA] on (intercept), air time\n" in printed
    (comment,) = re.findall(r"# ('\(intercept\)', .*)$", blocks[1][1], flags=re.MULTILINE)
    assert f"({comment})\n" in printed
    assert 'name = "age_by_earnings", kind = "product", of = ["age", "earnings"]' in printed
    assert "('hours', 'age', 'female', 'age_squared', 'age_by_female')\n" in printed


def test_the_page_on_scikit_learn_runs(tmp_path):
    """Its python blocks, one after the other, with every warning but the one they silence an error."""
    blocks = [code for language, code in BLOCK.findall((ROOT / "docs" / "scikit-learn.md").read_text()) if language == "python"]
    code = "\n".join(blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    assert "spent epsilon 2 of 2" in done.stdout
    assert "No further release is possible" in done.stdout
    assert re.search(r"^4\d{3} groups$", done.stdout, flags=re.MULTILINE)
    assert len(blocks) == 2


def test_the_page_on_sources_runs(capsys):
    (code,) = (code for language, code in BLOCK.findall((ROOT / "docs" / "sources.md").read_text()) if language == "python")
    exec(compile(code, "sources.md", "exec"), {})
    assert capsys.readouterr().out == "result\n"


def test_the_page_on_selection_runs(capsys):
    ((_, code),) = BLOCK.findall((ROOT / "docs" / "selection.md").read_text(encoding="utf-8"))
    exec(compile(code, "selection.md", "exec"), {})
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == last == "('x0', 'x1')"


def test_the_page_on_combining_runs(tmp_path, monkeypatch, capsys):
    """What it makes of two hospitals is what it says, and its file can be read."""
    ((_, code),) = [
        block for block in BLOCK.findall((ROOT / "docs" / "combine.md").read_text(encoding="utf-8")) if block[0] == "python"
    ]
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "combine.md", "exec"), {})
    assert "2 parts of disjoint rows" in capsys.readouterr().out
    assert dpgram.load(tmp_path / "both.json").rows == 50_000


@pytest.mark.parametrize("page", ["yes-no.md", "structure.md"])
def test_the_pages_on_yes_or_no_targets_and_structure_print_what_they_show(page, capsys):
    blocks = dict(BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))
    exec(compile(blocks["python"], page, "exec"), {})
    assert capsys.readouterr().out == blocks["text"]


def test_the_page_on_instruments_runs(capsys):
    fitted, tested = (
        code for language, code in BLOCK.findall((ROOT / "docs" / "instruments.md").read_text()) if language == "python"
    )
    names = {}
    exec(compile(fitted, "instruments.md", "exec"), names)
    least_squares, coefficient, word, *summary = capsys.readouterr().out.splitlines()
    assert (least_squares, coefficient, word) == ("1.7", "1.0", "strong")
    assert summary[0].strip() == "Private regression of wage with instruments"
    exec(compile(tested, "instruments.md", "exec"), names)
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert said[0] == "Private tests about the regression of wage"
    assert "32" in said
    assert any(line.split() == ["estimator", "OLS", "2SLS"] for line in said)


def test_the_page_on_plans_runs(tmp_path, monkeypatch, capsys):
    blocks = dict(BLOCK.findall((ROOT / "docs" / "plan.md").read_text(encoding="utf-8")))
    (tmp_path / "demo").mkdir()
    shutil.copy(ROOT / "src" / "dpgram" / "demo" / "flights.toml", tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks["python"], "plan.md", "exec"), {})
    assert capsys.readouterr().out.startswith("whitened-noise Coefficient(name=")


@pytest.mark.slow
def test_the_commands_on_plans_run(tmp_path):
    blocks = dict(BLOCK.findall((ROOT / "docs" / "plan.md").read_text(encoding="utf-8")))
    (tmp_path / "demo").mkdir()
    shutil.copy(ROOT / "src" / "dpgram" / "demo" / "flights.toml", tmp_path / "demo")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", blocks["bash"]], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert (tmp_path / "plan.png").stat().st_size > 0


def test_the_page_on_the_whitened_release_runs(tmp_path):
    """Its python block, with every warning an error: the new mechanism finds what the other one loses."""
    blocks = dict(BLOCK.findall((ROOT / "docs" / "whitened.md").read_text(encoding="utf-8")))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks["python"]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    plain, whitened = (ast.literal_eval(line.partition(" ")[2]) for line in done.stdout.splitlines())
    assert abs(plain["first"]) < 0.7 < whitened["first"] < 1.3


@pytest.mark.slow
def test_the_commands_on_the_whitened_release_run(tmp_path):
    blocks = dict(BLOCK.findall((ROOT / "docs" / "whitened.md").read_text(encoding="utf-8")))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", blocks["bash"]], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert (tmp_path / "whitened.json").stat().st_size > 0


@pytest.mark.package("torch")
def test_the_page_on_gpus_runs(tmp_path):
    """On the host where no GPU is, in a process of its own."""
    ((_, code),) = BLOCK.findall((ROOT / "docs" / "gpu.md").read_text(encoding="utf-8"))
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "('(intercept)', 'age', 'minutes', 'urgent')" in done.stdout


def test_the_pages_that_the_code_names_exist():
    for file in (*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")):
        for page in re.findall(r"docs/[\w-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / page).exists(), f"{file.name} names {page}"


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = [line.split()[1] for language, code in BLOCK.findall(README) if language == "sh" for line in code.splitlines()]
    assert named == ["demo", "test"]
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_schema_in_the_docs_loads():
    declared, units, weights, derived = (tomllib.loads(code) for language, code in SCHEMA_BLOCKS if language == "toml")
    schema = dpgram.Schema.from_dict(declared)
    assert schema.encoded_names[-1] == "red_eye"
    counted = dpgram.Schema.from_dict({**declared, **units, **weights})
    assert (counted.unit_id, counted.most_rows, counted.weight, counted.largest_weight) == ("person_id", 5, "pwgt", 4.0)
    parents = (dpgram.Numeric("distance", 0, 5000), dpgram.Date("scheduled", "2013-01-01", "2014-01-01"))
    declared["columns"] += dpgram.Schema(unit="flight", columns=parents).to_dict()["columns"]
    both = dpgram.Schema.from_dict({**declared, **derived})
    assert {d.kind for d in both.derived} == {"product", "power", "log1p", "interval", "date-part"}
    assert both.encoded_names[-1] == "weekday[7]"


def test_the_example_of_derived_columns_runs(capsys):
    derived, missing = (code for language, code in SCHEMA_BLOCKS if language == "python")
    exec(missing, {})
    assert {"sector[other]", "sector[missing]"} <= set(ast.literal_eval(capsys.readouterr().out))
    exec(derived, {})
    found = ast.literal_eval(capsys.readouterr().out)
    assert found["age_squared"] == pytest.approx(0.001, abs=2e-4)
    assert found["age_treated"] == pytest.approx(-0.05, abs=0.01)


def test_the_public_names_are_sorted_and_documented():
    """Each has one place in the reference, where its docstring is printed; autodoc shows its public methods too (docs/conf.py)."""
    documented = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", REFERENCE, flags=re.MULTILINE)
    assert sorted([*documented, "__version__"]) == dpgram.__all__ == sorted(dpgram.__all__)
    assert "`dpgram.__version__`" in REFERENCE
    for name in dpgram.__all__:
        assert getattr(dpgram, name) is not None
    assert set(dpgram.__all__) <= set(dir(dpgram))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dpgram.nonsense  # noqa: B018


def test_the_summaries_of_the_reference_name_what_their_pages_describe():
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for listed in re.findall(r"^\.\. autosummary::\n(.*?)(?=^\S)", text, flags=re.MULTILINE | re.DOTALL):
            names = re.findall(r"^   (\w+)$", listed, flags=re.MULTILINE)
            assert names == re.findall(r"^\.\. auto\w+:: (\w+)$", text, flags=re.MULTILINE), page.name


def test_every_page_is_in_the_contents_of_the_site():
    """Sphinx warns of this too; here nobody needs it."""
    for folder in (ROOT / "docs", ROOT / "docs" / "reference"):
        contents = re.findall(r"^```\{toctree\}\n(.*?)^```$", (folder / "index.md").read_text(), flags=re.MULTILINE | re.DOTALL)
        listed = {line for block in contents for line in block.splitlines() if line and not line.startswith(":")}
        assert {page.stem for page in folder.glob("*.md")} - {"index"} == {name for name in listed if "/" not in name}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_room_is_on_the_map():
    drawn = (ROOT / "docs" / "architecture.md").read_text()
    for room in (ROOT / "src" / "dpgram").iterdir():
        if room.is_dir() and room.name != "__pycache__":
            assert f"{room.name}/" in drawn


def test_every_error_is_in_the_tree():
    from dpgram import errors

    for name, thing in vars(errors).items():
        if isinstance(thing, type) and issubclass(thing, Exception | Warning):
            assert re.search(rf"\b{name}\b", errors.__doc__), name


def public() -> dict[str, object]:
    """The public names, and the methods of public classes that dpgram writes itself."""
    found = {name: getattr(dpgram, name) for name in dpgram.__all__ if not name.startswith("_")}
    for name, thing in [*found.items()]:
        if inspect.isclass(thing):
            methods = inspect.getmembers(thing, lambda each: inspect.isfunction(each) or inspect.ismethod(each))
            found |= {f"{name}.{m}": f for m, f in methods if not m.startswith("_") and f.__module__.startswith("dpgram")}
    return found


def undocumented(names: dict[str, object]) -> list[str]:
    """What the docstrings lack: an example for every name, parameters and results for whatever has them."""
    lacking = []
    for name, thing in names.items():
        text = inspect.getdoc(thing) or ""
        needs = ["" if "." in name else "Examples"]
        if not inspect.isclass(thing):
            signature = inspect.signature(thing)
            needs += ["Parameters"] if set(signature.parameters) - {"self", "cls"} else []
            needs += ["Returns"] if signature.return_annotation not in ("None", None) else []
        lacking += [f"{name}: {each or 'words'}" for each in needs if not text or (each and f"{each}\n---" not in text)]
    return lacking


def test_every_public_name_says_what_it_takes_and_gives_and_shows_an_example():
    assert undocumented(public()) == []


def test_a_docstring_without_its_sections_is_noticed():
    def toy(rows: int) -> float:
        """Half of them."""
        return rows / 2

    assert undocumented({"toy": toy, "Toy.toy": toy}) == [
        "toy: Examples",
        "toy: Parameters",
        "toy: Returns",
        "Toy.toy: Parameters",
        "Toy.toy: Returns",
    ]
