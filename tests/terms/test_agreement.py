"""Where schemas differ is said in words, and what may differ is agreed on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpgram import Boolean, Categorical, Numeric, Product, Schema
from dpgram.terms.agreement import agreed, differences

AGE, SEX, WARD = Numeric("age", 0, 100), Boolean("sex"), Categorical("ward", ["a", "b"])
BASE = Schema(unit="person", columns=[AGE, SEX, WARD])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"unit": "visit"}, "unit is 'person' in the first and 'visit' in the second"),
        ({"neighbours": "add-remove"}, "neighbours is 'replace' in the first and 'add-remove' in the second"),
        ({"row_bound": 1.0}, "row_bound is 2 in the first and 1 in the second"),
        ({"weight": "w", "largest_weight": 3.0}, "weight is not given in the first and 'w' in the second"),
        ({"unit_id": "pid", "rows_per_unit": 2}, "unit_id is not given in the first and 'pid' in the second"),
        ({"columns": [Numeric("age", 0, 120), SEX, WARD]}, "upper of column 'age' is 100 in the first and 120 in the second"),
        ({"columns": [replace(AGE, missing="midpoint"), SEX, WARD]}, "missing of column 'age' is 'drop-row' in the first"),
        ({"columns": [AGE, SEX, Categorical("ward", ["b", "a"])]}, "of column 'ward' is"),
        ({"columns": [AGE, Numeric("sex", 0, 1), WARD]}, "column 'sex' is boolean in the first and numeric in the second"),
        ({"columns": [AGE, SEX]}, "column 'ward' is only in the first"),
        ({"derived": [Product("both", ["age", "sex"])]}, "column 'both' is only in the second"),
    ],
)
def test_every_difference_is_said(other, words):
    found = differences(BASE, replace(BASE, **other))
    assert any(words in each for each in found), found


def test_what_may_differ_is_no_difference():
    learnt = replace(BASE, learnt={"age": (20.0, 40.0)}, provenance="law", columns=(WARD, AGE, SEX))
    assert differences(BASE, learnt) == []
    assert differences(BASE, replace(BASE, row_bound=2.0)) == []  # what is in force without it


def test_units_span_all_learnt_intervals_and_provenance_is_told_once():
    low, high = (
        replace(BASE, learnt={"age": ends}, provenance=told) for ends, told in (((5.0, 30.0), "a"), ((20.0, 60.0), "b"))
    )
    for order in ([low, high, BASE, low], [high, BASE, low, high]):
        assert agreed(order).learnt == {"age": (5.0, 60.0)}
    assert agreed([low, high, BASE, low]).provenance == "a / b"
    assert agreed([low, low]).provenance == "a"
    assert len(agreed([replace(BASE, provenance=letter * 400) for letter in "ab"]).provenance) == 500
