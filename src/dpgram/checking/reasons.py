"""Why a cell cannot be read as its declared kind: rules on its text, each with words for people.

The words have an example of their own. They never repeat what was found in a cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

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
BARE = "Remove all but the digits, the sign and the decimal point in the source."
GAP = "[ \u00a0\u202f'’]"  # spaces of any kind, and apostrophes
AMOUNT = f"[+-]?[0-9](?:[0-9.,_]|{GAP})*"
OTHER_DIGITS = "٠-٩۰-۹०-९０-９"  # Arabic, Persian, Devanagari, full-width
CURRENCY = r"(?:\p{Sc}|us\$|usd|eur|gbp|chf|jpy|cny|inr|cad|aud|nzd|sek|nok|dkk|pln|kr\.?|fr\.)"
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
CLOCK = r"(?:[ t,]+[0-9]{1,2}[:.][0-9]{2}.*)?$"  # a time of day, however written
DAY, MONTH_NUMBER, FROM_13 = "(?:0?[1-9]|[12][0-9]|3[01])", "(?:0?[1-9]|1[0-2])", "(?:1[3-9]|2[0-9]|3[01])"
YEAR = "(?:[0-9]{4}|[0-9]{2})"
TRUTH = "true false t f yes no y n on off ja nein oui non si sí no sim não da nee wahr falsch vrai faux verdadero falso checked unchecked"

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
    rf"^(?:[a-z]+,? )?(?:{DAY}(?:st|nd|rd|th)?[-/. ]*{MONTH}|{MONTH}[-/. ]*{DAY}(?:st|nd|rd|th)?)[-/., ]*{YEAR}{CLOCK}",
)  # fmt: skip
DATES = {
    "year-first": YEAR_FIRST,
    "day-first": DAY_FIRST,
    "month-first": MONTH_FIRST,
    "day-or-month": EITHER_FIRST,
    "month-names": MONTH_NAMES,
}
ANY_DATE = "|".join([DATE.replace("?P<", "?P<x"), *(one.pattern for one in DATES.values())])
NOT_FINITE = Reason(
    "infinite, or too large for double precision",
    "Leave such cells empty in the source, or write the number that is meant.",
    pattern=r"^[+-]?(inf|infinity|∞)$|" + NUMBER,  # a number that could not be read is too large
)
NOT_UTF8 = Reason("bytes that are not UTF-8 text", "Save the table as UTF-8.")
YES_NO = Reason(
    "words for true and false, such as yes and no", 'Declare kind = "boolean", or write 1 and 0.', "boolean",
    f"^({'|'.join(dict.fromkeys(TRUTH.split()))})$",
)  # fmt: skip
TEXT = Reason("text, such as a name", 'Declare kind = "categorical", or correct the cells in the source.', "categorical")
TEXT_FOR_CODES = Reason("text, but the categories are whole numbers", "Declare the categories as text, in quotes.")

NUMBERS = {
    "not-finite": NOT_FINITE,
    "dates": Reason("dates where numbers are needed", 'Declare kind = "date".', "date", ANY_DATE),
    "thousands-separators": Reason(
        "numbers with thousands separators, such as 1,500 or 1.500.000", "Remove the separators in the source.",
        pattern=rf"^[+-]?[0-9]{{1,3}}(?:(?:[,_]|{GAP})[0-9]{{3}})+(?:\.[0-9]*)?$|^[+-]?[0-9]{{1,3}}(?:\.[0-9]{{3}}){{2,}}$",
    ),
    "decimal-comma": Reason(
        "numbers with a decimal comma, such as 3,14", "Write a decimal point in the source, and no separators of thousands.",
        pattern=rf"^[+-]?(?:[0-9]*|[0-9]{{1,3}}(?:(?:\.|{GAP})[0-9]{{3}})+),[0-9]+(?:e[+-]?[0-9]+)?$",
    ),
    "percent-sign": Reason(
        "numbers with a percent sign, such as 12 %", "Remove the sign in the source, and declare bounds in per cent.",
        pattern=rf"^{AMOUNT} ?(?:%|percent|per cent)$",
    ),
    "currency-sign": Reason(
        "numbers with a sign of a currency, such as $ 5", BARE,
        pattern=rf"^[+-]?{CURRENCY} ?{AMOUNT}$|^{AMOUNT} ?{CURRENCY}$",
    ),
    "negative": Reason(
        "negative numbers written in another way, such as (500)", "Write a hyphen before the number in the source.",
        pattern=rf"^\( ?{AMOUNT} ?\)$|^[−–—] ?{AMOUNT}$|^{AMOUNT} ?-$",
    ),
    "limits": Reason(
        "ranges or limits, such as 10-19 or <5",
        'Choose one number for each of them in the source, or declare kind = "categorical".', "categorical",
        rf"^[<>≤≥~=]+ ?{AMOUNT}$|^{AMOUNT} ?(?:\+|or more|or less|and over)$|^{AMOUNT} ?(?:-|–|to|\.\.) ?{AMOUNT}$",
    ),
    "yes-no": YES_NO,
    "other-digits": Reason(
        "numbers in other digits than 0 to 9, such as full-width ones", "Write them with the digits 0 to 9 in the source.",
        pattern=rf"^[+-]?[0-9.,]*[{OTHER_DIGITS}][0-9.,．，٫٬{OTHER_DIGITS}]*$",
    ),
    "hexadecimal": Reason(
        "hexadecimal numbers, such as 0x1F", "Write them in decimal in the source.", pattern="^[+-]?0x[0-9a-f]+$"
    ),
    "units": Reason(
        "numbers with a unit behind them, such as 170 cm", BARE, pattern=rf"^{AMOUNT} ?[\p{{L}}°µ²³/]{{1,12}}$"
    ),
    "text": TEXT,
}  # fmt: skip
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
        "years or months without a day, such as 2020 or 2020-12",
        'Write a whole date in the source, such as 2020-01-01, or declare kind = "numeric" for years.', "numeric",
        r"^(?:1[5-9]|2[01])[0-9]{2}$|^[0-9]{4}[-/][0-9]{1,2}$|^[0-9]{1,2}[-/][0-9]{4}$",
    ),
    "compact-short": Reason(
        "dates without separators and with two digits for the year, such as 201231", ISO,
        pattern=r"^[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$",
    ),
    "numbers": Reason("numbers where dates are needed", 'Declare kind = "numeric", or write dates in the source.', "numeric", NUMBER),
    "yes-no": YES_NO,
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
    "text": TEXT,
}  # fmt: skip
OTHERS = {
    "undeclared-numbers": Reason(
        "numbers that are not among the categories", 'Declare kind = "numeric", or all categories that are possible.', "numeric", NUMBER
    ),
    "undeclared-dates": Reason(
        "dates that are not among the categories", 'Declare kind = "date", or all categories that are possible.', "date", ANY_DATE
    ),
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
COMMON = {"not-utf8": NOT_UTF8, "codes": CODES}  # of all kinds

NONE = "- -- --- . .. ... ? ?? / * na n/a n.a. #n/a #na #null! nan null nil none missing unknown unk blank empty (blank) (null) nd n/d"
NONE_WORDS = frozenset([*NONE.split(), "not available", "not applicable", "no data", "no answer"])
MISSING_CODES = frozenset(sign * (10**k - 1) for k in range(2, 8) for sign in (-1, 1)) | {-9.0, -88.0, -888.0, -77.0, -777.0}


def plain_words(text: pa.Array) -> pa.Array:
    """The texts in lower case and without white space at their ends, as rules look at them."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(text))


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
