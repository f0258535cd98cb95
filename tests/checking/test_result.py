"""What comes back: plain data, text that says it is not for publication, and a schema that says the rows were looked at."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import dpgram
from dpgram.checking.result import NOTICE
from dpgram.checking.suggest import LOOKED_AT, with_provenance
from dpgram.errors import SchemaError
from dpgram.terms.columns import COLUMN_KINDS

SECRET = "Zyxwvutsecret"
COLUMNS = [
    dpgram.Numeric("n", 0, 10),
    dpgram.Date("d", "2020-01-01", "2021-01-01"),
    dpgram.Categorical("c", ["p", "q"]),
    dpgram.Categorical("k", [1, 2]),
    dpgram.Boolean("b"),
]


def full_schema(**more) -> dpgram.Schema:
    fields = {
        "unit": 'a "quoted" \\ unit\x7f',
        "columns": [*COLUMNS, dpgram.Numeric("m", -1e-7, 1e30, missing="indicator")],
        "derived": [dpgram.Power("nn", of="n"), dpgram.Product("nc", of=("n", "c"))],
        "row_bound": 2.5,
        "unit_id": "id",
        "rows_per_unit": 4,
        "weight": "w",
        "largest_weight": 3.5,
        "neighbours": "add-remove",
        "provenance": "Bounds are from the questionnaire.",
    }
    return dpgram.Schema(**fields | more)


def test_nothing_that_is_said_repeats_a_cell():
    """Whatever the kind of column, and in ids and weights too."""
    table = {name: [SECRET, "Other" + SECRET] * 20 for name in ("n", "d", "c", "k", "b", "m", "id", "w")}
    found = dpgram.check(table, full_schema())
    assert len(found.findings) >= 6
    for said in (str(found), repr(found), json.dumps(found.to_dict()), found.suggested_schema):
        assert SECRET.lower() not in said.lower()


def test_numbers_of_rows_are_not_told_by_value():
    table = {"n": [123.4567, 3.0, 4.5, 7.0] * 30}
    found = dpgram.check(table, dpgram.Schema(unit="p", columns=COLUMNS[:1]))
    assert "clamped-upper" in {each.code for each in found.findings}
    assert "123" not in str(found) + json.dumps(found.to_dict()) + found.suggested_schema


def test_head_and_foot_say_that_it_is_not_for_publication():
    found = dpgram.check({"n": [1.0, 2.0, 3.0]}, dpgram.Schema(unit="p", columns=COLUMNS[:1]))
    lines = str(found).splitlines()
    assert lines[0] == lines[-1] == NOTICE == "Not for publication: these figures come from the rows and carry no noise."
    assert found.to_dict()["notice"] == NOTICE
    assert "not for publication" in repr(found)


def test_it_is_plain_data():
    found = dpgram.check({"n": ["1,500", "7", ""] * 9, "more": [1] * 27}, dpgram.Schema(unit="p", columns=COLUMNS[:2]))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["table_rows"] == 27
    assert (data["absent"], data["unused"]) == (["d"], ["more"])
    assert data["columns"] == [
        {
            "name": "n", "kind": "numeric", "missing": 1 / 3, "below": 0, "above": 0, "undeclared": None, "unreadable": 1 / 3,
        }
    ]  # fmt: skip
    assert {"column", "code", "share", "words", "do"} == data["findings"][0].keys()


def test_results_are_frozen():
    found = dpgram.check({"n": [1.0]}, dpgram.Schema(unit="p", columns=COLUMNS[:1]))
    with pytest.raises(AttributeError):
        found.findings = ()


def test_the_suggested_schema_is_the_declared_one_with_its_provenance():
    schema = full_schema()
    found = dpgram.check({"n": [1.0, 2.0]}, schema)
    read = dpgram.Schema.from_dict(tomllib.loads(found.suggested_schema))
    assert read == with_provenance(schema)
    assert read.provenance == f"Bounds are from the questionnaire. {LOOKED_AT}"
    assert with_provenance(read) == read  # said once
    learnt = dpgram.Schema(unit="p", columns=COLUMNS[:1], learnt={"n": (2.0, 3.0)})
    again = dpgram.Schema.from_dict(tomllib.loads(dpgram.check({"n": [1.0, 2.0]}, learnt).suggested_schema))
    assert again == with_provenance(learnt)


@pytest.mark.parametrize(
    ("before", "after"),
    [("", LOOKED_AT), ("From the survey", f"From the survey. {LOOKED_AT}"), ("Known. ", f"Known. {LOOKED_AT}")],
)
def test_the_sentence_is_put_behind_what_was_said(before, after):
    assert with_provenance(full_schema(provenance=before)).provenance == after


def test_a_provenance_without_room_is_refused():
    with pytest.raises(SchemaError, match="no room"):
        with_provenance(full_schema(provenance="x" * 480))


WRONG_KINDS = [
    (dpgram.Numeric("v", 0, 10), ["yes", "no"], "boolean"),
    (dpgram.Numeric("v", 0, 10), ["2020-01-01", "31/12/2020"], "date"),
    (dpgram.Numeric("v", 0, 10), ["Smith", "Jones"], "categorical"),
    (dpgram.Date("v", "2020-01-01", "2021-01-01"), ["3", "4.5"], "numeric"),
    (dpgram.Date("v", "2020-01-01", "2021-01-01"), ["Smith", "Jones"], "categorical"),
    (dpgram.Boolean("v"), ["3", "4"], "numeric"),
    (dpgram.Boolean("v"), ["Smith", "Jones"], "categorical"),
    (dpgram.Categorical("v", ["p", "q"]), ["3", "4.5"], "numeric"),
    (dpgram.Categorical("v", ["p", "q"]), ["2020-01-01", "2020-02-02"], "date"),
    (dpgram.Categorical("v", ["p", "q"]), ["yes", "no"], "boolean"),
    (dpgram.Categorical("v", [1, 2]), ["Smith", "Jones"], ""),
]


@pytest.mark.parametrize(("column", "cells", "kind"), WRONG_KINDS)
def test_another_kind_is_suggested_with_what_it_needs_left_blank(column, cells, kind):
    found = dpgram.check({"v": cells * 20}, dpgram.Schema(unit="p", columns=[column]))
    lines = [each.line for each in found.suggestions if each.column == "v" and each.line.startswith("kind")]
    assert lines == ([f'kind = "{kind}"'] if kind else [])
    written = tomllib.loads(found.suggested_schema)
    assert LOOKED_AT in written["provenance"]
    (entry,) = written["columns"]
    if kind:
        assert entry["kind"] == kind
        assert not any(value for key, value in entry.items() if key not in ("name", "kind"))  # nothing came from the rows
        if kind != "boolean":
            with pytest.raises(SchemaError, match="blank"):
                dpgram.Schema.from_dict(written)


def test_no_other_kind_is_suggested_for_a_few_cells():
    found = dpgram.check({"n": ["1", "2", "3", "yes"] * 20}, dpgram.Schema(unit="p", columns=COLUMNS[:1]))
    assert "yes-no" in {each.code for each in found.findings}
    assert not any(each.line.startswith("kind") for each in found.suggestions)


def test_no_bound_and_no_category_is_ever_suggested():
    rng = np.random.default_rng(0)
    table = {
        "n": rng.uniform(-5, 500, 90), "d": ["24/12/1990"] * 90, "c": ["x", "y", "z"] * 30, "k": [7, 8, 9] * 30, "b": ["3"] * 90,
    }  # fmt: skip
    found = dpgram.check(table, dpgram.Schema(unit="p", columns=COLUMNS))
    assert {each.line.split()[0] for each in found.suggestions} <= {"kind", "missing", "other", "#", "provenance"}
    assert "No bounds and no categories are suggested" in str(found)
    fields = {key for kind in COLUMN_KINDS for key in ("lower", "upper", "categories") if hasattr(kind, "made")}
    for entry, column in zip(tomllib.loads(found.suggested_schema)["columns"], COLUMNS, strict=True):
        if entry["kind"] == column.kind:
            for key in fields & entry.keys():
                assert entry[key] == (list(value) if isinstance(value := getattr(column, key), tuple) else value)


def test_rules_for_missing_and_undeclared_cells_are_suggested():
    table = {"n": [1.0, None, 3.0] * 30, "c": ["p", None, "tokyo"] * 30}
    found = dpgram.check(table, dpgram.Schema(unit="p", columns=[COLUMNS[0], COLUMNS[2]]))
    assert [(each.column, each.line) for each in found.suggestions][:3] == [
        ("n", 'missing = "indicator"'),
        ("c", 'missing = "level"'),
        ("c", "other = true"),
    ]
    assert '# suggested: missing = "indicator"' in found.suggested_schema
    dpgram.Schema.from_dict(tomllib.loads(found.suggested_schema))  # comments change nothing


def test_the_schema_must_be_one():
    with pytest.raises(SchemaError, match="must be a Schema"):
        dpgram.check({"n": [1.0]}, "schema.toml")


def test_shares_that_are_not_quite_nothing_or_all():
    table = {"n": [1.0 + k / 1e5 for k in range(5000)], "c": ["p", "q"] * 2500}
    table["n"][17] = None
    table["c"][:4999] = ["tokyo"] * 4999
    found = str(dpgram.check(table, dpgram.Schema(unit="p", columns=[COLUMNS[0], COLUMNS[2]])))
    assert "< 0.1 %" in found
    assert "> 99.9 %" in found
