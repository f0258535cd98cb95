"""What the label says of units, weights and missing cells: in words, in JSON, on the page, and before a release is made."""

from __future__ import annotations

import html
import json

import numpy as np
import pytest

import dpgram
from dpgram.cli.app import run
from dpgram.report.fact import Planned
from dpgram.report.facts import facts, label_data, label_groups
from dpgram.report.page.write import report_page

SECRET = "patient-4711"
PROVENANCE = "the codebook of 2020\x1b[31m; rows were not looked at"


def schema_of(relation: str = "replace", **changes) -> dpgram.Schema:
    settings = {
        "unit": "person",
        "neighbours": relation,
        "columns": [
            dpgram.Numeric("age", 0, 100, missing="midpoint"),
            dpgram.Numeric("income", 0, 50),
            dpgram.Boolean("urban"),
        ],
        "unit_id": "person_id",
        "rows_per_unit": 5,
        "weight": "pwgt",
        "largest_weight": 2.5,
        "provenance": PROVENANCE,
    }
    return dpgram.Schema(**{**settings, **changes})


def table(rows: int = 400) -> dict:
    rng = np.random.default_rng(3)
    ids = [SECRET, *(f"p{k}" for k in rng.integers(0, 120, rows - 1))]
    income = np.where(rng.random(rows) < 0.1, np.nan, rng.uniform(0, 50, rows))
    return {
        "age": rng.uniform(0, 100, rows),
        "income": income,
        "urban": rng.random(rows) < 0.5,
        "person_id": ids,
        "pwgt": rng.uniform(0, 3, rows),
    }


def made(schema: dpgram.Schema) -> dpgram.GramRelease:
    return dpgram.release(table(), schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")


def said(of: dpgram.GramRelease | Planned) -> dict[str, str]:
    """What people read, by the name that stands before it; the last where there are several."""
    return {fact.name: line for _, listed in label_groups(of) for fact in listed for line in fact.lines}


@pytest.fixture(scope="module")
def release() -> dpgram.GramRelease:
    return made(schema_of())


def test_with_ids_the_unit_is_enforced(release):
    words = said(release)
    assert "assumed" not in words
    assert words["unit of privacy"] == "all rows of one person"
    assert words["enforced"].startswith("all rows of one person together count as at most 5 rows of the largest weight.")
    assert "'person_id'" in words["enforced"]
    assert "Its ids are not published" in words["enforced"]
    assert words["rows"] == "protected"
    assert words["number of units"] == f"{len(set(table()['person_id']))} (public under these neighbours)"
    data = label_data(release)
    assert (data["unit_id"], data["rows_per_unit"], data["unit_assumption"]) == ("person_id", 5, None)
    assert (data["units"], data["rows"]) == (release.units, None)
    assert "the number of units" in data["public"]
    assert not {"the number of rows"} & set(data["public"])


def test_without_ids_one_row_is_assumed():
    data = label_data(made(schema_of(unit_id=None, rows_per_unit=None)))
    assert data["unit_assumption"].startswith("each person has one row. This is not checked.")
    assert (data["unit_enforced"], data["unit_id"], data["units"]) == (None, None, None)
    assert data["rows"] == 400
    assert any("the number of rows that count" in part for part in data["protected"])


def test_a_single_row_of_a_unit_and_no_weights():
    words = said(made(schema_of(rows_per_unit=1, weight=None, largest_weight=None)))
    assert "count as at most one row. " in words["enforced"]
    assert "weights" not in words


@pytest.mark.parametrize(
    ("relation", "ids", "expected"),
    [
        (
            "replace",
            True,
            "tables that differ in all rows of one person, which are replaced by the rows of another; the number",
        ),
        (
            "add-remove",
            True,
            "tables that differ by all rows of one person, which are added or removed; the number of units is protected",
        ),
        ("replace", False, "tables that differ in one row, which is replaced by another; the number of rows is public"),
    ],
)
def test_neighbours_differ_in_a_whole_unit_where_there_are_ids(relation, ids, expected):
    release = made(schema_of(relation) if ids else schema_of(relation, unit_id=None, rows_per_unit=None))
    data = label_data(release)
    assert data["neighbours_in_words"].startswith(expected)
    plain = next(fact.value for fact in facts(release) if fact.name == "in plain words")
    assert ("one person with all its rows" in plain) == ids
    if relation == "add-remove":
        assert (data["units"], data["rows"]) == (None, None)
        assert said(release)["number of units"] == "protected"


def test_weights_missing_cells_and_provenance_are_told(release):
    words, data = said(release), label_data(release)
    assert "in proportion to column 'pwgt'" in words["weights"]
    assert "2.5" in words["weights"]
    assert words["missing cells"] == "a row with a missing cell in income does not count"
    assert words["provenance"] == PROVENANCE
    assert (data["weight"], data["largest_weight"], data["provenance"]) == ("pwgt", 2.5, PROVENANCE)
    assert data["dropped_if_missing"] == ["income"]


def test_which_columns_drop_a_row_stays_short():
    numbers = [dpgram.Numeric(f"x{k}", 0, 1) for k in range(9)]
    plain = {"unit_id": None, "rows_per_unit": None, "weight": None, "largest_weight": None}

    def words(columns: list) -> str | None:
        schema = schema_of(columns=columns, **plain)
        return next((f.words for f in facts(_planned(schema)) if f.name == "missing cells"), None)

    assert words(numbers) == "a row with a missing cell does not count"
    assert words([*numbers[:2], dpgram.Boolean("b")]) == "a row with a missing cell in x0 or x1 does not count"
    many = words([*numbers, dpgram.Boolean("b")])
    assert many == "a row with a missing cell in one of 9 columns, which are named below, does not count"
    assert words([dpgram.Boolean("b")]) is None


def _planned(schema: dpgram.Schema) -> Planned:
    return Planned(
        schema=schema,
        budget=dpgram.Budget(1.0, 1e-6),
        mechanism="gaussian-noise",
        calibration="exact",
        rows_of="table",
        arithmetic="exact",
        private=True,
    )


@pytest.mark.parametrize(("relation", "units"), [("replace", "will be public"), ("add-remove", "stays protected")])
def test_a_planned_release_says_what_will_be_public(relation, units):
    words = said(_planned(schema_of(relation)))
    assert (words["number of units"], words["rows"]) == (units, "stay protected")
    assert words["enforced"]
    assert "the table is read once. Before that, the column of ids is read" in words["passes"]
    without = said(_planned(schema_of(relation, unit_id=None, rows_per_unit=None)))
    assert not {"number of units", "passes"} & set(without)
    assert without["rows"] == units.replace("stays", "stay")


def test_the_page_and_the_terminal_say_the_same_and_no_id(release, tmp_path, capsys):
    page = report_page(release)
    release.save(tmp_path / "release.json")
    for argv in (["inspect"], ["inspect", "--json"], ["regress", "--target", "income"], ["cov"]):
        assert run([argv[0], str(tmp_path / "release.json"), *argv[1:]]) == 0
    printed = capsys.readouterr().out
    assert "No. Units:" in printed
    assert html.escape(said(release)["enforced"]) in page
    assert "Whom the guarantee protects" in page
    assert "protects one row" not in page
    for text in (page, printed, (tmp_path / "release.json").read_text(encoding="utf-8")):
        assert SECRET not in text


def test_a_terminal_obeys_nothing_that_stands_in_a_file(tmp_path, capsys):
    """Names and provenance come from whoever made the file."""
    evil = "in\x1b]0;come\x07\x9b2J\u202e"
    columns = [dpgram.Numeric(evil, 0, 50), dpgram.Numeric("age", 0, 100)]
    schema = dpgram.Schema(unit="person\x1b[2J", columns=columns, provenance=PROVENANCE)
    cells = {evil: np.linspace(0, 50, 300), "age": np.linspace(0, 100, 300) ** 2 / 100}
    release = dpgram.release(cells, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    path = tmp_path / "release.json"
    release.save(path)
    for argv in (
        ["inspect"],
        ["inspect", "--json"],
        ["regress", "--target", "age"],
        ["cov"],
        ["pca"],
        ["regress", "--target", "no\x1b"],
    ):
        run([argv[0], str(path), *argv[1:]])
        out, err = capsys.readouterr()
        assert not set(out + err) & set("\x1b\x07\x9b\u202e"), argv
        if "--json" in argv:
            assert json.loads(out)["provenance"] == PROVENANCE


def test_a_plan_says_that_noise_is_that_of_a_unit(tmp_path, capsys):
    text = (
        'unit = "person"\nunit_id = "who"\nrows_per_unit = 1200\n[[columns]]\nname = "age"\nkind = "numeric"\nlower = 0\nupper = 100\n'
        '[[columns]]\nname = "urban"\nkind = "boolean"\n'
    )
    schema = tmp_path / "schema.toml"
    asked = ["plan", "--schema", str(schema), "--table-rows", "100000", "--epsilon", "1", "--delta", "1e-7"]
    said = []
    for written in (text, text.replace('unit_id = "who"\nrows_per_unit = 1200\n', "")):
        schema.write_text(written, encoding="utf-8")
        assert run([*asked, "--mechanism", "gaussian-noise"]) == 0
        said.append(" ".join(capsys.readouterr().out.split()))
    assert "your public guess; the table's own number is protected" in said[0]
    assert "All rows of one person together count as at most 1,200, and the noise is that of so many rows." in said[0]
    assert not any(word in said[1] for word in ("public guess", "All rows of one"))
