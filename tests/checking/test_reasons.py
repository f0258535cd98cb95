"""Every reason has a cell that it explains, in the words of the rule and not of the cell."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest

import dpgram
from dpgram.checking import amounts, reasons

NUMBER = dpgram.Numeric("x", 0, 1e6)
DAY = dpgram.Date("x", "2000-01-01", "2030-01-01")
TRUTH = dpgram.Boolean("x")
PLACE = dpgram.Categorical("x", ["paris", "london", "10", "20"])
CODE = dpgram.Categorical("x", [1, 2, 3])

EXPLAINED = [
    (NUMBER, "thousands-separators", ["1,234", "12 345", "1,234,567.5", "-7'654", "1_234", "1\u00a0234", "1\u202f234",
                                       "1\u2009234", "1.234.567", "4,56,789", "12,34,567.5"]),
    (NUMBER, "decimal-comma", ["2,71", "-0,5", "1.234,56", "1.234.567,8", ",75", "2,5e3"]),
    (NUMBER, "percent-sign", ["17%", "17.5 %", "17 percent"]),
    (NUMBER, "currency-sign", ["$17", "€ 17", "17 EUR", "-£1,234", "17 kr", "₹17"]),
    (NUMBER, "dash-for-cents", ["17.-", "1'234.–", "17,--", "CHF 17.-", "17.— €"]),
    (NUMBER, "multiples", ["17.3k", "17 k", "$17k", "17 Mio.", "17 million", "€17bn", "17 x 10^3", "1.7×10³", "1.7 * 10^-3", "4 lakh"]),
    (NUMBER, "negative", ["(17)", "−17", "17-", "- 17"]),
    (NUMBER, "limits", ["<17", "17+", "17-19", ">= 17", "17 to 19", "17 or more", "ca. 17", "approx. 17", "≈17"]),
    (NUMBER, "yes-no", ["yes", "No", "N", "off", "ja"]),
    (NUMBER, "other-digits", ["１２", "-１２．５", "٤٢"]),
    (NUMBER, "hexadecimal", ["0x1F", "0xAB"]),
    (NUMBER, "units", ["17 kg", "17cm", "17 °C", "17 m2", "17M", '17"', "17'"]),
    (NUMBER, "quoted", ["'19", '"19"', "’19", "“19”", "'1,234", '="19"', "'yes'"]),
    (NUMBER, "marks", ["19*", "19**", "*19", "19†", "19 #", "19?", "19[a]", "[19]", "19¹"]),
    (NUMBER, "with-another", ["21.1 ± 0.4", "21.1 +/- 0.4", "21.1±0.4", "21.1 (0.4)", "19 (50 %)", "19 [17, 21]", "19[3]"]),
    (NUMBER, "two-units", ["6'2\"", "6' 2\"", "6′2″", "6'2", "6 ft 2 in", "1 h 45 min", "1h45m", "48°12'", "3 lb 4 oz"]),
    (NUMBER, "two-numbers", ["110/70", "2/3", "1 2/3", "½", "2½", "19 of 30", "17x19", "17 × 19", "16:9", "17; 19", "17, 19", "17 and 19"]),
    (NUMBER, "times", ["4:05", "14:05", "14:05:09", "1:02:03.5", "4:05 pm", "4 p.m."]),
    (NUMBER, "periods", ["2021-W15", "2021W15", "2021-W15-2", "2021-Q2", "2021q2", "Q2 2021", "2021-04", "04/2021", "Apr 2021", "Apr-21"]),
    (NUMBER, "unseen", ["\u200b17", "17\u200b", "\ufeff17", "1\u00a0234\u200e"]),
    (NUMBER, "no-number", ["1,23,4", "17.5.19.2", "777-13-45", "17,", "#17/3", "(17", "--17"]),
    (NUMBER, "dates", ["2021-03-04", "14/03/2021", "2021-03-04T05:06:07", "4 March 2021"]),
    (NUMBER, "not-finite", ["inf", "-Infinity", "1e999"]),
    (NUMBER, "formula-errors", ["#DIV/0!", "#VALUE!", "#Ref!", "#NAME?"]),
    (NUMBER, "text", ["Smith", "17 apples and more", "seventeen", "A17", "7b2", "'the' 17"]),
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
    (DAY, "years", ["2021", "1999"]),
    (DAY, "periods", ["2021-W15", "2021-03", "03/2021", "2021-M03", "2021Q2", "March 2021", "Mar-21", "2021 Mar"]),
    (DAY, "times", ["14:15", "4:15 pm"]),
    (DAY, "quoted", ["'2021-03-14", '"14/03/2021"']),
    (DAY, "no-date", ["32/32/2021", "14/03", "2021-03-14-1"]),
    (DAY, "impossible", ["2021-02-30", "2021-13-01", "2021-03-14T25:00:00", "0000-00-00"]),
    (DAY, "compact-short", ["210314", "991231"]),
    (DAY, "numbers", ["17", "-3.5", "123456"]),
    (DAY, "yes-no", ["yes", "false"]),
    (DAY, "formula-errors", ["#VALUE!"]),
    (DAY, "text", ["soon", "14 of them"]),
    (TRUTH, "other-truth", ["on", "OFF", "ja", "nein", "oui", "x"]),
    (TRUTH, "numbers", ["2", "-1", "0.5"]),
    (TRUTH, "dates", ["2021-03-14"]),
    (TRUTH, "quoted", ["'1", '"yes"', "“No”"]),
    (TRUTH, "no-number", ["1*", "0/1"]),
    (TRUTH, "formula-errors", ["#VALUE!"]),
    (TRUTH, "text", ["maybe"]),
    (PLACE, "white-space", [" paris", "london ", "\tparis"]),
    (PLACE, "case", ["Paris", "LONDON"]),
    (PLACE, "case-and-white-space", [" Paris ", "LONDON "]),
    (PLACE, "other-form", ["ｐａｒｉｓ", " Ｐaris", "１０"]),
    (PLACE, "in-quotes", ["'paris", '"london"', "“paris”"]),
    (PLACE, "written-otherwise", ["10.0", "2e1", "010"]),
    (PLACE, "misspelt", ["pariss", "Lonodn", "londn"]),
    (PLACE, "none-words", ["NA", "unknown", "?", "n/a", "  ", "Refused", "don't know", "–"]),
    (PLACE, "undeclared-numbers", ["17", "30"]),
    (PLACE, "undeclared-dates", ["2021-03-14"]),
    (PLACE, "undeclared-errors", ["#REF!"]),
    (PLACE, "undeclared-truth", ["yes", "False"]),
    (PLACE, "undeclared", ["tokyo", "rome"]),
    (PLACE, "not-utf8", [b"paris\xff"]),
    (CODE, "undeclared", ["4", "2.5"]),
    (CODE, "text", ["one"]),
    (CODE, "thousands-separators", ["1,234"]),
    (CODE, "quoted", ["'1"]),
    (CODE, "marks", ["1*"]),
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
    rules = {*amounts.NUMBERS, *reasons.DAYS, *reasons.TRUTHS, *reasons.OTHERS, *reasons.LEVELS, *reasons.COMMON}
    assert rules - {code for _, code, _ in EXPLAINED} == reasons.READ  # which are told of numbers that can be read


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


AROUND = [
    "'17",
    '"17"',
    "12*",
    "1,23,456",
    "3:05",
    "120/80",
    "5'11\"",
    "20.1 ± 0.3",
    "3/4",
    "2020-W14",
    "17.-",
    "12.3k",
    "555-12-34",
]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *((NUMBER, cell) for cell in AROUND),
        (NUMBER, "１２"),
        (NUMBER, "0x1F"),
        (DAY, "210314"),
        (DAY, "2020-03"),
        (TRUTH, "'1"),
    ],
)
def test_no_other_kind_is_suggested_for_numbers_and_dates_that_are_written_otherwise(column, cell):
    found = found_in(column, [cell] * 4)
    assert not [each for each in found.suggestions if each.line.startswith("kind")]
    assert dpgram.Schema.from_dict(tomllib.loads(found.suggested_schema)).columns == found.schema.columns


@pytest.mark.parametrize(
    ("cell", "said", "never"),
    [
        ("17.-", "no minus sign", "hyphen"),
        ("12.3k", "in full", "all but the digits"),
        ("12 M", "in full", "all but the digits"),
    ],
)
def test_what_to_do_does_not_change_the_number(cell, said, never):
    do = found_in(NUMBER, [cell] * 4).findings[0].do
    assert said in do
    assert never not in do


def test_a_category_in_another_unicode_form():
    """As two characters, in another case too; what a release compares is the exact text."""
    column = dpgram.Categorical("x", ["caf\u00e9", "bar"])
    found = found_in(column, ["cafe\u0301", "Cafe\u0301 ", "bar"] * 10)
    assert codes(found) == {"other-form"}
    assert not any("other = true" in each.line for each in found.suggestions)
    assert "undeclared" in codes(found_in(column, ["cafes", "bar"] * 10))


@pytest.mark.parametrize("cell", ["paris ", "Paris", " PARIS", "ｐaris", "'paris'", "pariss"])
def test_a_category_that_is_spelt_otherwise_is_not_said_to_be_absent_as_well(cell):
    """But one that nobody has is, and so is one of two whose cells are right for the other."""
    column = dpgram.Categorical("x", ["paris", "london", "tokyo"])
    found = found_in(column, [cell, "london"] * 10)
    (absent,) = [each.words for each in found.findings if each.code == "empty-category"]
    assert "'tokyo'" in absent
    assert "paris" not in absent.lower()
