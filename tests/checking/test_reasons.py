"""Every reason has a cell that it explains, in the words of the rule and not of the cell."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpgram
from dpgram.checking import reasons

NUMBER = dpgram.Numeric("x", 0, 1e6)
DAY = dpgram.Date("x", "2000-01-01", "2030-01-01")
TRUTH = dpgram.Boolean("x")
PLACE = dpgram.Categorical("x", ["paris", "london", "10", "20"])
CODE = dpgram.Categorical("x", [1, 2, 3])

EXPLAINED = [
    (NUMBER, "thousands-separators", ["1,234", "12 345", "1,234,567.5", "-7'654", "1_234", "1\u00a0234", "1\u202f234", "1.234.567"]),
    (NUMBER, "decimal-comma", ["2,71", "-0,5", "1.234,56", "1.234.567,8", ",75", "2,5e3"]),
    (NUMBER, "percent-sign", ["17%", "17.5 %", "17 percent"]),
    (NUMBER, "currency-sign", ["$17", "€ 17", "17 EUR", "-£1,234", "17 kr", "₹17"]),
    (NUMBER, "negative", ["(17)", "−17", "17-"]),
    (NUMBER, "limits", ["<17", "17+", "17-19", ">= 17", "17 to 19", "17 or more"]),
    (NUMBER, "yes-no", ["yes", "No", "N", "off", "ja"]),
    (NUMBER, "other-digits", ["１２", "-１２．５", "٤٢"]),
    (NUMBER, "hexadecimal", ["0x1F", "0xAB"]),
    (NUMBER, "units", ["17 kg", "17cm", "17 °C"]),
    (NUMBER, "dates", ["2021-03-04", "14/03/2021", "2021-03-04T05:06:07", "4 March 2021"]),
    (NUMBER, "not-finite", ["inf", "-Infinity", "1e999"]),
    (NUMBER, "text", ["Smith", "17 apples and more", "seventeen", "1,23,4"]),
    (NUMBER, "not-utf8", [b"\xff\xfe", b"17\xff"]),
    (DAY, "day-first", ["14/03/2021", "14.3.2021", "14-03-21", "14/03/2021 05:06"]),
    (DAY, "month-first", ["03/14/2021", "3-14-2021", "03/14/21 5:06 pm"]),
    (DAY, "day-or-month", ["03/04/2021", "3.4.2021"]),
    (DAY, "year-first", ["2021/03/14", "2021.03.14", "2021-3-4", "2021-03-14 5:06 pm"]),
    (DAY, "month-names", ["14 Mar 2021", "March 14, 2021", "14-MAR-21", "Sun, 14 Mar 2021 05:06:07", "1st May 2021"]),
    (DAY, "compact", ["20210314", "19991231"]),
    (DAY, "epoch-seconds", ["1615680000", "1615680000.5", "915148800"]),
    (DAY, "epoch-milliseconds", ["1615680000000", "915148800000"]),
    (DAY, "epoch-finer", ["1615680000000000", "1615680000000000000"]),
    (DAY, "spreadsheet-days", ["44269", "44269.25"]),
    (DAY, "years", ["2021", "2021-03", "03/2021"]),
    (DAY, "impossible", ["2021-02-30", "2021-13-01", "2021-03-14T25:00:00", "0000-00-00"]),
    (DAY, "compact-short", ["210314", "991231"]),
    (DAY, "numbers", ["17", "-3.5", "123456"]),
    (DAY, "yes-no", ["yes", "false"]),
    (DAY, "text", ["soon", "14 of them"]),
    (TRUTH, "other-truth", ["on", "OFF", "ja", "nein", "oui", "x"]),
    (TRUTH, "numbers", ["2", "-1", "0.5"]),
    (TRUTH, "dates", ["2021-03-14"]),
    (TRUTH, "text", ["maybe"]),
    (PLACE, "white-space", [" paris", "london ", "\tparis"]),
    (PLACE, "case", ["Paris", "LONDON"]),
    (PLACE, "case-and-white-space", [" Paris ", "LONDON "]),
    (PLACE, "written-otherwise", ["10.0", "2e1", "010"]),
    (PLACE, "misspelt", ["pariss", "Lonodn", "londn"]),
    (PLACE, "none-words", ["NA", "unknown", "?", "n/a", "  "]),
    (PLACE, "undeclared-numbers", ["17", "30"]),
    (PLACE, "undeclared-dates", ["2021-03-14"]),
    (PLACE, "undeclared-truth", ["yes", "False"]),
    (PLACE, "undeclared", ["tokyo", "rome"]),
    (PLACE, "not-utf8", [b"paris\xff"]),
    (CODE, "undeclared", ["4", "2.5"]),
    (CODE, "text", ["one"]),
    (CODE, "thousands-separators", ["1,234"]),
]  # fmt: skip


def found_in(column, cells):
    return dpgram.check({"x": list(cells)}, dpgram.Schema(unit="person", columns=[column]))


def codes(found, column="x"):
    return {each.code for each in found.findings if each.column == column}


@pytest.mark.parametrize(("column", "code", "cells"), EXPLAINED, ids=lambda value: value if isinstance(value, str) else "")
def test_each_cell_has_its_reason(column, code, cells):
    for cell in cells:
        (finding,) = [each for each in found_in(column, [cell] * 3).findings if each.code == code]
        assert finding.share == 1
        assert finding.words.startswith("100.0 % of the cells are ")
        assert finding.do.endswith(".")


def test_text_for_numbered_categories_does_not_ask_for_the_kind_that_is_declared():
    (finding,) = [each for each in found_in(CODE, ["one"] * 3).findings if each.code == "text"]
    assert finding.do == "Declare the categories as text, in quotes."


def test_every_reason_is_tried():
    rules = {*reasons.NUMBERS, *reasons.DAYS, *reasons.TRUTHS, *reasons.OTHERS, *reasons.LEVELS, *reasons.COMMON}
    assert rules - {code for _, code, _ in EXPLAINED} == {"codes"}  # which is told of numbers that can be read, below


@pytest.mark.parametrize(("column", "code", "cells"), EXPLAINED, ids=lambda value: value if isinstance(value, str) else "")
def test_no_reason_repeats_a_cell(column, code, cells):
    """All that is said is the same for every cell of the same reason, so it cannot depend on what the cell holds."""
    said = {json.dumps(found_in(column, [cell] * 3).to_dict()["findings"]) for cell in cells}
    assert len(said) == 1
    written = {found_in(column, [cell] * 3).suggested_schema for cell in cells}
    assert len(written) == 1


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        (NUMBER, ["17", " 17 ", "1.7e3", "+17", ".5", "true", 17, 17.5, np.float32(3)]),
        (DAY, ["2021-03-14", " 2021-03-14 ", "2021-03-14T05:06:07Z", "2021-03-14 05:06"]),
        (TRUTH, ["yes", "No", "t", "F", "1", "0", 1.0, True, " true"]),
        (PLACE, ["paris", "london", "10", 10, "20"]),
        (CODE, ["1", "2.0", 3, " 1"]),
    ],
)
def test_cells_that_can_be_read_have_no_reason(column, cells):
    assert not codes(found_in(column, cells)) - {"empty-category", "constant"}
    assert found_in(column, cells).columns[0].unreadable == 0


@pytest.mark.parametrize("column", [NUMBER, DAY, TRUTH, PLACE, CODE], ids=lambda column: column.kind)
@pytest.mark.parametrize("cell", ["", None])
def test_empty_cells_are_missing(column, cell):
    found = found_in(column, [cell] * 4)
    assert codes(found) == {"missing"}
    assert found.columns[0].missing == 1


@pytest.mark.parametrize("column", [NUMBER, DAY, TRUTH, CODE], ids=lambda column: column.kind)
@pytest.mark.parametrize("cell", ["NA", "n/a", "NULL", "-", "?", "unknown", "   ", float("nan")])
def test_words_for_missing_are_missing(column, cell):
    assert found_in(column, [cell] * 4).columns[0].missing == 1


def test_days_and_months_of_one_column_are_read_alike():
    """A date that can be read in two ways is told by the others of its column; where those disagree, it is not."""

    def shares(cells):
        return {each.code: each.share for each in found_in(DAY, cells).findings if each.share and each.column == "x"}

    assert shares(["14/03/2021", "03/04/2021"]) == {"day-first": 1}
    assert shares(["03/14/2021", "03/04/2021"]) == {"month-first": 1}
    assert shares(["03/14/2021", "14/03/2021", "03/04/2021", "04/04/2021"]) == {
        "day-first": 0.25,
        "month-first": 0.25,
        "day-or-month": 0.5,
    }


def test_codes_for_missing_numbers_are_told_only_outside_the_bounds():
    assert "codes" in codes(found_in(NUMBER, [-999.0, 5.0, 7.0]))
    assert "codes" not in codes(found_in(dpgram.Numeric("x", -1000, 1000), [-999.0, 5.0, 7.0]))
    assert "codes" not in codes(found_in(NUMBER, [-998.0, 5.0, 7.0]))


def test_a_bound_that_looks_like_a_code_is_none():
    assert "codes" not in codes(found_in(dpgram.Numeric("x", 0, 999), [999.0, 5.0, 7.0]))


def test_numbers_and_dates_are_not_misspelt_categories():
    column = dpgram.Categorical("x", ["1000", "2020-01-01"])
    assert codes(found_in(column, ["10000", "2020-01-11", "1000", "2020-01-01"])) == {"undeclared-numbers", "undeclared-dates"}


def test_bytes_that_are_no_text_are_not_missing():
    found = found_in(NUMBER, [b"\xff", b"", b"7", b"8"])
    assert (found.columns[0].missing, found.columns[0].unreadable) == (0.25, 0.25)


def test_several_reasons_of_one_column_are_all_told():
    found = found_in(NUMBER, ["1,234", "1,5", "17 %", "17"] * 5)
    assert {each.code: each.share for each in found.findings if each.code != "dropped-rows"} == {
        "thousands-separators": 0.25,
        "decimal-comma": 0.25,
        "percent-sign": 0.25,
        "constant": None,
    }
    assert found.columns[0].unreadable == 0.75


@pytest.mark.parametrize(("column", "cell"), [(NUMBER, "１２"), (NUMBER, "0x1F"), (DAY, "210314")])
def test_no_other_kind_is_suggested_for_numbers_and_dates_that_are_written_otherwise(column, cell):
    assert not [each for each in found_in(column, [cell] * 4).suggestions if each.line.startswith("kind")]
