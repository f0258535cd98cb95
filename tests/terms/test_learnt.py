"""Learnt intervals in a schema: columns are scaled by them, bounds stay declared, and a file brings them back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.encoding.encode import encoded_columns, own_units
from dpgram.errors import SchemaError
from dpgram.report.facts import label_groups, pairs
from dpgram.terms.schema import REACH


def schema(learnt=None, **changes):
    columns = [
        dpgram.Numeric("x", -1e6, 1e6),
        dpgram.Numeric("z", 0, 10),
        dpgram.Boolean("b"),
        dpgram.Date("when", "1900-01-01", "2100-01-01"),
    ]
    derived = [dpgram.Power("x2", "x", 2), dpgram.Product("xb", ("x", "b")), dpgram.Product("zb", ("z", "b"))]
    made = {"unit": "row", "columns": columns, "derived": derived, "learnt": learnt or {}, **changes}
    return dpgram.Schema(**made)


LEARNT = {"x": (10.0, 30.0), "when": (15_000.0, 16_000.0)}


def test_a_learnt_column_is_scaled_about_its_interval():
    by_name = {e.name: e for e in schema(LEARNT).encoded}
    assert (by_name["x"].centre, by_name["x"].half, by_name["x"].stretch) == (20.0, 10 * REACH, REACH)
    assert (by_name["z"].half, by_name["z"].stretch) == (5.0, 1.0)
    assert by_name["when"].centre == 15_500
    assert by_name["x2"].centre == 500  # of [100, 900]
    assert by_name["x2"].half == 400 * REACH
    assert (by_name["xb"].centre, by_name["xb"].half) == (0, 30 * REACH)  # where zero must stay zero
    assert by_name["zb"].stretch == 1.0


def test_numbers_go_no_further_than_declared_bounds():
    near = replace(schema(), learnt={"z": (0.0, 1.0)})
    encoded = near.encoded[near.places["z"][0]]
    assert (encoded.centre, encoded.half) == (0.5, 9.5)
    assert encoded.stretch == 19


def test_without_an_intercept_nothing_is_shifted():
    encoded = schema({"x": (10.0, 30.0)}, intercept=False).encoded[0]
    assert (encoded.centre, encoded.half, encoded.stretch) == (0.0, 30 * REACH, REACH)


def test_encoded_rows_are_bounded_and_go_back():
    made = schema(LEARNT)
    table = {"x": [20.0, 25.0, 1e6, np.nan], "z": [1.0, 2.0, 3.0, 4.0], "b": [1, 0, 1, 0], "when": ["2013-01-01"] * 4}
    encoded = encoded_columns(made, table)
    assert np.abs(encoded).max() <= 1
    place = made.places["x"][0]
    assert own_units(made, encoded)[:2, place] == pytest.approx([20, 25])
    assert own_units(made, encoded)[2, place] == 20 + 10 * REACH  # counts as lying at the end
    assert own_units(made, encoded)[3, place] == pytest.approx(0, abs=1e-9)  # the midpoint of the declared bounds
    assert made.effective_row_bound == schema().effective_row_bound


def test_it_is_written_and_read_back():
    made = schema(LEARNT)
    assert dpgram.Schema.from_dict(made.to_dict()) == made
    assert "learnt" not in schema().to_dict()  # older versions read such a schema
    assert made != schema()
    assert hash(made) is not None


@pytest.mark.parametrize(
    ("learnt", "words"),
    [
        ({"nobody": (0, 1)}, "not a numeric or date column"),
        ({"b": (0, 1)}, "not a numeric or date column"),
        ({"x2": (0, 1)}, "not a numeric or date column"),
        ({"x": (1, 1)}, "within the column's bounds"),
        ({"x": (2, 1)}, "within the column's bounds"),
        ({"z": (0, 11)}, "within the column's bounds"),
        ({"x": (9e5, 9e5 + 1e-6)}, "too narrow"),
        ({"x": (float("nan"), 1)}, "within the column's bounds"),
        ({"x": (1,)}, "two numbers"),
        ({"x": "12"}, "two numbers"),
        ({"x": (True, 2)}, "two numbers"),
        ([("x", 1)], "must be a table"),
    ],
)
def test_what_makes_no_sense_is_refused(learnt, words):
    with pytest.raises(SchemaError, match=words):
        schema(learnt)


def test_a_derived_column_that_cannot_follow_keeps_its_declared_scale():
    columns = [dpgram.Numeric("x", 0, 1000)]
    derived = [dpgram.Interval("old", "x", lower=500), dpgram.Power("x2", "x", 2, missing=250_000.0)]
    made = dpgram.Schema(unit="row", columns=columns, derived=derived, learnt={"x": (0.0, 10.0)})
    scales = {e.name: e.stretch for e in made.encoded}
    assert scales["old"] == 1.0
    assert scales["x2"] == 1.0


def test_a_release_shows_what_was_learnt_and_a_file_keeps_it(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, 20_000)
    table = {"x": x, "y": 2 * x + rng.normal(0, 5, 20_000)}
    wide = dpgram.Schema(unit="row", columns=[dpgram.Numeric("x", 0, 1e6), dpgram.Numeric("y", -1e6, 1e6)])
    made = dpgram.release(table, wide, epsilon=1.0, delta=1e-6, mechanism="whitened-noise", insecure_seed=0)
    assert set(made.schema.learnt) == {"x", "y"}
    assert made.schema.columns == wide.columns
    made.save(tmp_path / "release.json")
    again = dpgram.load(tmp_path / "release.json")
    assert again == made
    label = " ".join(text for _, facts in label_groups(again) for pair in pairs(facts) for text in pair)
    assert "scaled by a learnt interval, which holds most values" in label
    assert "share of the budget for looks" in label
    fit = dpgram.regress(again, "y")
    assert fit.params["x"] == pytest.approx(2, abs=0.1)
    assert fit.predict({"x": [50.0, 60.0]}) == pytest.approx([100, 120], abs=3)
