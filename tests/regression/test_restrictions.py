"""Restrictions as people write them, and what is said of those that cannot be read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.errors import ModelError
from dpgram.regression.restrictions import is_equation, restrictions

NAMES = ("(intercept)", "x", "dep_delay", "dep_delay[missing]", "c[a b]", "c[x]", "I(age / 10)", "age:female", "wage, in 1,000")
GROUPS = {"x": (1,), "c": (4, 5)}


def read(asked):
    return restrictions(asked, NAMES, GROUPS)


def row(**weights):
    found = np.zeros(len(NAMES))
    for place, weight in weights.items():
        found[int(place[1:])] = weight
    return found


@pytest.mark.parametrize(
    ("text", "weights", "value"),
    [
        ("x", row(_1=1), 0),
        ("x = 0", row(_1=1), 0),
        ("x = 2.5", row(_1=1), 2.5),
        ("2.5 = x", row(_1=-1), -2.5),
        ("x = dep_delay", row(_1=1, _2=-1), 0),
        ("x - dep_delay = 0", row(_1=1, _2=-1), 0),
        ("dep_delay[missing] - dep_delay", row(_3=1, _2=-1), 0),
        ("`c[a b]` - c[x] = 1e-3", row(_4=1, _5=-1), 1e-3),
        ("c[a b] = c[x]", row(_4=1, _5=-1), 0),
        ("2*(x + dep_delay)/4 - -1 = 3", row(_1=0.5, _2=0.5), 2),
        ("(intercept) + 10*x = 40", row(_0=1, _1=10), 40),
        ("I(age / 10) = age:female", row(_6=1, _7=-1), 0),
        ("wage, in 1,000 = 1", row(_8=1), 1),
        ("+x + +x = 0", row(_1=2), 0),
    ],
)
def test_one_restriction(text, weights, value):
    found = read(text)
    assert found.matrix.tolist() == [weights.tolist()]
    assert found.values.tolist() == [value]
    assert found.texts == (text.replace("`", "").removesuffix(" = 0"),)


def test_several_at_once():
    found = read("x = 1, dep_delay - x, c")
    assert found.matrix.tolist() == [row(_1=1).tolist(), row(_2=1, _1=-1).tolist(), row(_4=1).tolist(), row(_5=1).tolist()]
    assert found.values.tolist() == [1, 0, 0, 0]
    assert found.texts == ("x = 1", "dep_delay - x", "c[a b]", "c[x]")
    chain = read("x = dep_delay = 2")
    assert chain.matrix.tolist() == [row(_1=1, _2=-1).tolist(), row(_2=1).tolist()]
    assert chain.values.tolist() == [0, 2]
    assert len(set(chain.texts)) == 2
    assert len(read(["x", {"dep_delay": 2}, "c"]).texts) == 4


def test_a_dict_is_a_contrast_with_its_weights():
    found = read({"x": 1, "dep_delay": -2.5})
    assert found.matrix.tolist() == [row(_1=1, _2=-2.5).tolist()]
    assert found.texts == ("x - 2.5*dep_delay",)


def test_numbers_are_rows_in_the_order_of_the_coefficients():
    one = read(row(_1=1, _2=-1))
    assert one.matrix.tolist() == [row(_1=1, _2=-1).tolist()]
    two = read((np.eye(9)[1:3], [0.5, 0]))
    assert two.values.tolist() == [0.5, 0]
    assert two.texts == ("x = 0.5", "dep_delay")
    assert read(np.eye(9)[1:3].tolist()).texts == ("x", "dep_delay")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("", "there is nothing between two commas, or at an end"),
        ("x = 1,", "there is nothing between two commas, or at an end"),
        ("x*dep_delay", "multiplies coefficients with each other"),
        ("x/dep_delay", "divides by a coefficient or by zero"),
        ("x/0", "divides by a coefficient or by zero"),
        ("x**2 = 1", r"'x \*\* 2' is not a sum of coefficients and numbers"),
        ("x < 1", "'x < 1' is not a sum of coefficients"),
        ("x = True", "no coefficient 'True'"),
        ("__import__('os')", "is not a sum of coefficients"),
        ("x =", "there is nothing on one side of '='"),
        ("= 1", "there is nothing on one side of '='"),
        ("x == 1", "it has '==' where one '=' is wanted"),
        ("c - x", r"'c' has several coefficients. Name one of c\[a b\], c\[x\]"),
        ("dep_delai = 0", "no coefficient 'dep_delai'. Did you mean 'dep_delay'?"),
        ("c[y] = 0", r"no coefficient 'c\[y\]'. Did you mean 'c\[x\]'?"),
        ("dep delay = 0", "no coefficient 'dep delay'. Did you mean 'dep_delay'?"),
        ("x = x", "'x = x' is about no coefficient"),
        ("3 = 4", "'3 = 4' is about no coefficient"),
        ("1e400*x", "a number in it is too large"),
        ("x*1e200*1e200", "a number in it is too large"),
        ("9" * 400 + "*x", "a number in it is too large"),
        ("(" * 300 + "x" + ")" * 300, "is not a sum of coefficients|nested too deeply"),
        ("-" * 3000 + "x", "is not a sum of coefficients|nested too deeply"),
        ("x + " * 4000 + "x", "At most 10,000 are read"),
        ({}, r"^the dict of weights is empty. Give a weight for a coefficient, such as \{.*: 1\}\.$"),
        ({"x": 0}, "^all weights in the dict are zero"),
        ({"x": 1e160}, r"the restriction '1e\+160\*x' has numbers of a size that cannot be computed with"),
        ({"x": -1e-170}, "with weights between 1e-50 and 1e\\+50, and a value of at most 1e\\+50"),
        ("x = -1e160", "numbers of a size that cannot be computed with"),
        ("x*1e-60 = 0", "numbers of a size that cannot be computed with"),
        (1e60 * np.eye(9)[1], "numbers of a size that cannot be computed with"),
        ((np.eye(9)[1], [1e60]), "numbers of a size that cannot be computed with"),
        (["x", {"x": 1e60}], "numbers of a size that cannot be computed with"),
        ({"x": True}, "the weight of 'x' is True and must be a finite number"),
        ({"x": np.nan}, "the weight of 'x' is nan"),
        ({"q": 1}, "no coefficient 'q'"),
        ([], "no restriction is given"),
        ([["x"]], "needs one finite number for each of the 9 coefficients"),
        ([[1.0, 2.0]], "needs one finite number for each of the 9 coefficients"),
        (np.zeros(9), "all its numbers are zero"),
        (np.full(9, np.inf), "one finite number"),
        ((np.eye(9), [1.0, 2.0]), "as many values as rows"),
        (["x", 3], "a restriction is int, and must be a text"),
        (None, "a restriction is NoneType"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(asked, message):
    with pytest.raises(ModelError, match=message):
        read(asked)


def test_a_small_weight_beside_others_is_no_mistake():
    assert read({"x": 1, "dep_delay": 1e-170}).matrix[0, 2] == 1e-170


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("x - dep_delay", False),
        ("x = dep_delay", True),
        ("x - dep_delay = 0", True),
        (["x = dep_delay"], True),
        ({"x": 1}, False),
        (np.eye(9)[1], False),
        ("k[p=q]", False),
    ],
)
def test_an_equation_is_told_from_a_combination(asked, said):
    assert is_equation(asked, [*NAMES, "k[p=q]"], {}) == said


def test_a_message_does_not_list_hundreds_of_names():
    many = [f"x{k}" for k in range(500)]
    with pytest.raises(ModelError, match="x29 and 470 more") as caught:
        restrictions("x*y = ", many, {})
    assert len(str(caught.value)) < 500


def test_what_was_asked_before_is_asked_once():
    found = read(["x", "c[x]", "x = 0", "x = 1"]).once()
    assert found.texts == ("x", "c[x]", "x = 1")
    assert found.names(NAMES) == ("x", "c[x]")


@given(st.text(alphabet="xc[]()a b+-*/=,.0123456789e`<>:'\"\\_{}", max_size=40))
def test_any_text_is_read_or_refused_in_our_own_words(text):
    try:
        found = read(text)
    except ModelError:
        return
    assert np.isfinite(found.matrix).all()
    assert np.isfinite(found.values).all()
    assert len(found.matrix) == len(found.values) == len(found.texts) > 0
