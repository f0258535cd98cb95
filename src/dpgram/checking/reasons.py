"""Why a cell cannot be read as its declared kind: rules on its text, each with words for people. Those of numbers are in amounts.py.

The words have an example of their own. They never repeat what was found in a cell."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.encoding.cells import DATE, NUMBER


@dataclass(frozen=True)
class Reason:
    """What is wrong with some cells, what to do about it, and which kind of column would take them."""

    words: str  # after "5 % of the cells are ..."
    do: str
    kind: str = ""
    pattern: str = ""  # of the cell's text, in lower case and without white space at its ends; without one, whatever is left


ISO = "Convert them to ISO 8601, such as 2020-12-31, in the source."
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
CLOCK = r"(?:[ t,]+[0-9]{1,2}[:.][0-9]{2}.*)?$"  # a time of day, however written
DAY, MONTH_NUMBER, FROM_13 = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:0?[1-9]|1[0-2])", "(?:1[3-9]|2[0-9]|3[01])"
YEAR, CENTURY = "(?:[0-9]{4}|[0-9]{2})", "(?:1[5-9]|2[01])"
QUOTES = "'\"`´‘’‚“”„‹›«»"
TRUTH = "true false t f yes no y n on off j ja nein oui non si sí no sim não da nee wahr falsch vrai faux verdadero falso checked unchecked"

# In every list the first rule that fits is the reason.
YEAR_FIRST = Reason(
    "dates with the year first that are not in ISO 8601, such as 2020/12/31 or 2020-1-5", ISO, "date",
    rf"^[0-9]{{4}}[-/. ]{MONTH_NUMBER}[-/. ]{DAY}{CLOCK}",
)  # fmt: skip
DAY_FIRST = Reason(
    "dates with the day first, such as 31/12/2020", ISO, "date", rf"^{FROM_13}[-/. ]{MONTH_NUMBER}[-/. ]{YEAR}{CLOCK}"
)
MONTH_FIRST = Reason(
    "dates with the month first, such as 12/31/2020", ISO, "date", rf"^{MONTH_NUMBER}[-/. ]{FROM_13}[-/. ]{YEAR}{CLOCK}"
)
EITHER_FIRST = Reason(
    "dates of which day or month may come first, such as 01/02/2020",
    "Find out which comes first, and convert them to ISO 8601, such as 2020-12-31, in the source.",
    "date",
    rf"^{MONTH_NUMBER}[-/.]{MONTH_NUMBER}[-/.]{YEAR}{CLOCK}",
)
MONTH_NAMES = Reason(
    "dates with the name of the month, such as 31 Dec 2020", ISO, "date",
    rf"^(?:[a-z]+,? )?(?:{DAY}(?:st|nd|rd|th)?[-/. ]*{MONTH}[-/., ]*|{MONTH}[-/. ]*{DAY}(?:st|nd|rd|th)?[-/., ]+){YEAR}{CLOCK}",
)  # fmt: skip
DATES = {
    "year-first": YEAR_FIRST,
    "day-first": DAY_FIRST,
    "month-first": MONTH_FIRST,
    "day-or-month": EITHER_FIRST,
    "month-names": MONTH_NAMES,
}
PERIODS = Reason(
    "weeks, months or quarters without a day, such as 2020-W14, 2020-03 or Mar 2020",
    "Write a whole date in the source, such as the first day of each.",
    pattern=r"^[0-9]{4}[- ]?w[0-9]{1,2}(?:-[1-7])?$|^w[0-9]{1,2}[-/ ]+[0-9]{4}$"
    r"|^[0-9]{4}[-/ ]?q[1-4]$|^q[1-4](?:[-/ ]*[0-9]{4}|[-/ ']+[0-9]{2})$"
    rf"|^{CENTURY}[0-9]{{2}}(?:[-/]|[-/ ]?m)(?:0[1-9]|1[0-2])$|^(?:0?[1-9]|1[0-2])[-/]{CENTURY}[0-9]{{2}}$"
    rf"|^{MONTH}[-/ ,]*[0-9]{{4}}$|^{MONTH}[-'][0-9]{{2}}$|^[0-9]{{4}}[-/ ]?{MONTH}$",
)
TIMES = Reason(
    "times or durations, such as 3:05", "Convert them to one number, such as minutes, in the source.",
    pattern=r"^[+-]?[0-9]{1,3}(?::[0-9]{2}){1,2}(?:[.,][0-9]+)?(?: ?[ap]\.?m\.?)?$|^[0-9]{1,2} ?[ap]\.?m\.?$",
)  # fmt: skip
ANY_DATE = "|".join([DATE.replace("?P<", "?P<x"), *(one.pattern for one in DATES.values())])
NOT_UTF8 = Reason("bytes that are not UTF-8 text", "Save the table as UTF-8.")
YES_NO = Reason(
    "words for true and false, such as yes and no", 'Declare kind = "boolean", or write 1 and 0.', "boolean",
    f"^({'|'.join(dict.fromkeys(TRUTH.split()))})$",
)  # fmt: skip
QUOTED = Reason(
    "in quotation marks or behind an apostrophe, such as '17 or \"17\"", "Remove the quotation marks in the source.",
    pattern=rf"^=?[{QUOTES}]+ ?(?:[-+.]?[0-9][^{QUOTES}]*|{'|'.join(TRUTH.split())})[{QUOTES}]*$",
)  # fmt: skip
NO_NUMBER = Reason(
    "digits and signs that make no number, such as 1.2.3.4 or 555-12-34",
    "Write one plain number in each cell in the source. If these are codes, such as telephone numbers, remove the column.",
    pattern=r"^[^\p{L}]*[0-9][^\p{L}]*$",
)
FORMULA_ERRORS = Reason(
    "errors of a formula in a spreadsheet, such as #DIV/0!", "Correct the formula, or leave such cells empty in the source.",
    pattern=r"^#(?:div/0|value|ref|name|num|spill|calc|field)[!?]$",
)  # fmt: skip
TEXT = Reason("text, such as a name", 'Declare kind = "categorical", or correct the cells in the source.', "categorical")

DAYS = {
    "impossible": Reason(
        "dates or times that do not exist, such as 2020-02-30", "Correct them in the source, or leave them empty.", pattern=DATE
    ),
    **DATES,
    "compact": Reason(
        "dates without separators, such as 20201231", ISO,
        pattern=r"^(?:1[89]|2[01])[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$",
    ),
    "epoch-seconds": Reason("seconds since 1970, such as 1609372800", ISO, pattern=r"^-?[0-9]{9,10}(?:\.[0-9]+)?$"),
    "epoch-milliseconds": Reason("milliseconds since 1970, such as 1609372800000", ISO, pattern="^-?[0-9]{12,13}$"),
    "epoch-finer": Reason("microseconds or nanoseconds since 1970", ISO, pattern="^-?[0-9]{15,19}$"),
    "spreadsheet-days": Reason(
        "numbers of days, as spreadsheets store dates, such as 44196", ISO, pattern=r"^[1-9][0-9]{4}(?:\.[0-9]+)?$"
    ),
    "years": Reason(
        "years, such as 2020", 'Write a whole date in the source, such as 2020-01-01, or declare kind = "numeric".', "numeric",
        rf"^{CENTURY}[0-9]{{2}}$",
    ),
    "periods": PERIODS,
    "times": replace(
        TIMES, words="times of day without a date, such as 14:05", do="Write the date before the time in the source.",
    ),
    "compact-short": Reason(
        "dates without separators and with two digits for the year, such as 201231", ISO,
        pattern=r"^[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$",
    ),
    "numbers": Reason("numbers where dates are needed", 'Declare kind = "numeric", or write dates in the source.', "numeric", NUMBER),
    "yes-no": YES_NO,
    "quoted": QUOTED,
    "no-date": replace(
        NO_NUMBER, words="digits and signs that make no date, such as 31/31/2020", do="Correct them in the source, or leave them empty."
    ),
    "formula-errors": FORMULA_ERRORS,
    "text": TEXT,
}  # fmt: skip
TRUTHS = {
    "other-truth": Reason(
        "words for true and false that are not known here, such as on and off",
        "Write true and false, yes and no, or 1 and 0 in the source.", pattern=YES_NO.pattern + "|^[x+✓✔]$",
    ),
    "numbers": Reason(
        "numbers other than 0 and 1, such as codes 1 and 2", 'Write 1 and 0 in the source, or declare kind = "numeric".', "numeric",
        NUMBER,
    ),
    "dates": Reason("dates where truth values are needed", 'Declare kind = "date".', "date", ANY_DATE),
    "quoted": QUOTED,
    "no-number": replace(NO_NUMBER, do="Write 1 and 0 in the source."),
    "formula-errors": FORMULA_ERRORS,
    "text": TEXT,
}  # fmt: skip
OTHERS = {
    "undeclared-numbers": Reason(
        "numbers that are not among the categories", 'Declare kind = "numeric", or all categories that are possible.', "numeric", NUMBER
    ),
    "undeclared-dates": Reason(
        "dates that are not among the categories", 'Declare kind = "date", or all categories that are possible.', "date", ANY_DATE
    ),
    "undeclared-errors": FORMULA_ERRORS,
    "undeclared-truth": Reason(
        "words for true and false that are not among the categories", 'Declare kind = "boolean".', "boolean", YES_NO.pattern
    ),
    "undeclared": Reason(
        "not among the categories",
        "Declare all categories that are possible, from what you know of the domain, or set other = true.",
    ),
}  # fmt: skip
LEVELS = {
    "none-words": Reason(
        "words for a missing value, such as NA or unknown",
        "Leave such cells empty in the source, or declare the word as a category.",
    ),
    "white-space": Reason(
        "categories with white space before or behind them", "Remove the white space in the source.",
    ),
    "case": Reason(
        "categories in another case, such as Paris for paris", "Write them as they are declared.",
    ),
    "case-and-white-space": Reason(
        "categories in another case, and with white space before or behind them",
        "Remove the white space in the source, and write them as they are declared.",
    ),
    "other-form": Reason(
        "categories in another Unicode form, such as é written as two characters", "Write them in the form that is declared.",
    ),
    "in-quotes": Reason(
        "categories in quotation marks or behind an apostrophe", "Remove the quotation marks in the source.",
    ),
    "written-otherwise": Reason(
        "numbers that are written otherwise than the category, such as 1.0 for 1",
        "Declare the categories as integers, without quotes.",
    ),
    "misspelt": Reason(
        "spelt almost as a category, but not quite", "Correct the spelling in the source or in the schema.",
    ),
}  # fmt: skip
CODES = Reason(
    "numbers outside the bounds that often stand for a missing value, such as -999",
    "Leave such cells empty in the source.",
)
POINTS = Reason(
    "numbers such as 12.345, whose point may separate thousands: every point in the column has three digits behind it",
    "If it does, remove it in the source, because a release reads it as a decimal point. If it is one, leave it.",
)
COMMON = {"not-utf8": NOT_UTF8, "codes": CODES, "thousands-points": POINTS}  # of all kinds
READ = frozenset(["codes", "thousands-points"])  # of cells that can be read, but may mean something else

NONE = "- -- --- – — . .. ... ? ?? / * na n/a n.a. #n/a #na #null! nan null nil none missing unknown unk blank empty (blank) (null) nd n/d"
ANSWERS = "not available,not applicable,not reported,not stated,no data,no answer,no response,refused,don't know,don’t know,dont know,k.a."
NONE_WORDS = frozenset([*NONE.split(), *ANSWERS.split(",")])


def plain_words(text: pa.Array) -> pa.Array:
    """The texts in lower case and without white space at their ends, as rules look at them."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(text))


def in_one_form(text: pa.Array) -> pa.Array:
    """The texts in one case and one Unicode form. Arrow does it for ASCII; of other letters Python knows more, such as that ß and SS are
    one."""
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return pc.utf8_lower(text)
    coded = text.dictionary_encode()
    forms = [_normal(_normal(each).casefold()) for each in coded.dictionary.to_pylist()]
    return pa.array(forms, pa.large_string()).take(coded.indices)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def says_nothing(words: pa.Array) -> pa.Array:
    """Whether each text, as ``plain_words`` gives it, is empty or a word for a missing value. Null where it is null."""
    return pc.is_in(words, value_set=pa.array(["", *sorted(NONE_WORDS)], pa.large_string()))


def explained(rules: dict[str, Reason], words: pa.Array, times: np.ndarray) -> Counter[str]:
    """How many cells each reason explains: ``times`` of each of the texts."""
    found: Counter[str] = Counter()
    for code, reason in rules.items():
        if not len(words):
            break
        fits = (
            np.asarray(pc.match_substring_regex(words, reason.pattern)) if reason.pattern else np.ones(len(words), dtype=bool)
        )
        if fits.any():
            found[code] += int(times[fits].sum())
            words, times = words.filter(pa.array(~fits)), times[~fits]
    return found
