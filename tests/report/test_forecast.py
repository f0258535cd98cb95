"""A plan in words and numbers: what the tables hold."""

import math

import pytest

import dpgram
from dpgram.planning.curves import Curve
from dpgram.report import forecast as words
from tests.conftest import small_schema


@pytest.fixture(scope="module")
def plan():
    return dpgram.plan(
        small_schema(neighbours="add-remove"),
        table_rows=30_000,
        epsilon=1.0,
        delta=1e-6,
        target="y",
        mechanisms=["gaussian-noise", "gaussian-sketch", "inverse-wishart"],
    )


def test_the_best_stands_first_and_no_privacy_last(plan):
    rows = words.mechanism_rows(plan)
    assert rows[0][0] == "gaussian-noise (best)"
    assert rows[-1][0] == "(no privacy)"
    assert all(len(row) == len(words.MECHANISM_HEADER) for row in rows)
    error, width, effect = (float(rows[-1][k]) for k in (2, 4, 5))
    assert width == pytest.approx(2 * 1.96 * error / 0.6745, rel=1e-3)
    assert effect == pytest.approx(2.8016 * error / 0.6745, rel=1e-3)
    assert float(rows[0][2]) > error


def test_what_was_refused_is_told_with_its_reason(plan):
    (reason,) = words.refusals(plan)
    assert reason.startswith("inverse-wishart: the printed nu = n + d would reveal")


def test_every_coefficient_and_every_bound_has_a_line(plan):
    assert [row[0] for row in words.coefficient_rows(plan)] == ["(intercept)", "x", "c[b]", "c[other]", "b"]
    marks = [row[-1] for row in words.bound_rows(plan)]
    assert sum("the schema's" in mark for mark in marks) == sum("recommended" in mark for mark in marks) == 1
    assert all(len(row) == len(words.BOUND_HEADER) for row in words.bound_rows(plan))


def test_the_words_say_what_was_assumed_and_whose_number_of_rows_it_is(plan):
    said = words.captions(plan)["mechanisms"]
    assert "your public guess" in said
    assert "a standard deviation of 0.25 times half the width of the bounds" in said
    assert "in the units of x" in said


def test_a_figure_leaves_out_what_is_not_known():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    curve = Curve("epsilon", (0.1, 1.0), {"one": (math.inf, 2.0), "none": (math.inf, math.inf)}, (math.inf, math.inf))
    ax = figure.subplots()
    words.draw_curves([curve], "y$", "x$", [ax])
    (line,) = ax.get_lines()
    assert list(line.get_ydata()) == [2.0]
