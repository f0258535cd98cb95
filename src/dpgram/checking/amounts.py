"""Why a text is no number: rules as in reasons.py, the first that fits.

Most of these texts are numbers with something around them. They are no categories, so no other kind of column is suggested for them."""

from __future__ import annotations

from dataclasses import replace

from dpgram.checking.reasons import ANY_DATE, FORMULA_ERRORS, NO_NUMBER, PERIODS, QUOTED, TEXT, TIMES, YES_NO, Reason
from dpgram.encoding.cells import NUMBER

GAP = "[ \u00a0\u2007\u2009\u202f'’]"  # spaces of any kind, and apostrophes
AMOUNT = rf"[+-]?\.?[0-9](?:[0-9.,_]|{GAP})*"
OTHER_DIGITS = "٠-٩۰-۹०-९０-９"  # Arabic, Persian, Devanagari, full-width
UNSEEN = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"  # soft hyphens, spaces without width, marks of the direction
CURRENCY = r"(?:\p{Sc}|us\$|usd|eur|gbp|chf|jpy|cny|inr|cad|aud|nzd|sek|nok|dkk|pln|kr\.?|fr\.|rs\.?)"
MULTIPLE = r"(?:k|tsd\.?|thousand|lakhs?|mn|mio\.?|millions?|crores?|bn|mrd\.?|billions?)"  # m may be metres, and b bytes
UNIT = (  # of those that come in pairs
    r"(?:ft|feet|foot|in|inch(?:es)?|st|lbs?|oz|kg|g|km|m|cm|mm|y|yrs?|years?|mos?|months?|w|wks?|weeks?|d|days?|h|hrs?|hours?"
    r"|mins?|minutes?|s|secs?|seconds?|°|['’′]{1,2}|[\"”″])\.?"
)
BARE = "Remove all but the digits, the sign and the decimal point in the source."
NOT_FINITE = Reason(
    "infinite, or too large for double precision",
    "Leave such cells empty in the source, or write the number that is meant.",
    pattern=r"^[+-]?(inf|infinity|∞)$|" + NUMBER,  # a number that could not be read is too large
)
TEXT_FOR_CODES = Reason("text, but the categories are whole numbers", "Declare the categories as text, in quotes.")

NUMBERS = {
    "not-finite": NOT_FINITE,
    "dates": Reason("dates where numbers are needed", 'Declare kind = "date".', "date", ANY_DATE),
    "periods": replace(PERIODS, do=f'{PERIODS.do} Then declare kind = "date".'),
    "times": TIMES,
    "thousands-separators": Reason(
        "numbers with thousands separators, such as 1,500, 1,23,456 or 1.500.000", "Remove the separators in the source.",
        pattern=rf"^[+-]?[0-9]{{1,3}}(?:(?:[,_]|{GAP})[0-9]{{3}})+(?:\.[0-9]*)?$|^[+-]?[0-9]{{1,3}}(?:\.[0-9]{{3}}){{2,}}$"
        r"|^[+-]?[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?$",
    ),
    "decimal-comma": Reason(
        "numbers with a decimal comma, such as 3,14", "Write a decimal point in the source, and no separators of thousands.",
        pattern=rf"^[+-]?(?:[0-9]*|[0-9]{{1,3}}(?:(?:\.|{GAP})[0-9]{{3}})+),[0-9]+(?:e[+-]?[0-9]+)?$",
    ),
    "percent-sign": Reason(
        "numbers with a percent sign, such as 12 %", "Remove the sign in the source, and declare bounds in per cent.",
        pattern=rf"^{AMOUNT} ?(?:%|percent|per cent)$",
    ),
    "dash-for-cents": Reason(
        "prices with a dash for the cents, such as 17.-", "Remove the dash and the currency in the source. The dash is no minus sign.",
        pattern=rf"^(?:{CURRENCY} ?)?[+-]?[0-9](?:[0-9.,_]|{GAP})*[.,] ?[-–—]{{1,2}}(?: ?{CURRENCY})?$",
    ),
    "multiples": Reason(
        "numbers with a word or a power for a multiple, such as 12.3k or 2 x 10^3",
        "Write each number in full in the source, such as 12300.",
        pattern=rf"^(?:{CURRENCY} ?)?{AMOUNT} ?{MULTIPLE}(?: ?{CURRENCY})?$|^{AMOUNT} ?[x×*·] ?10 ?\^? ?[+-]?[0-9⁻⁰¹²³⁴-⁹]+$",
    ),
    "currency-sign": Reason(
        "numbers with a sign of a currency, such as $ 5", BARE,
        pattern=rf"^[+-]?{CURRENCY} ?{AMOUNT}$|^{AMOUNT} ?{CURRENCY}$",
    ),
    "negative": Reason(
        "negative numbers written in another way, such as (500)", "Write a hyphen before the number in the source, without a space.",
        pattern=rf"^\( ?{AMOUNT} ?\)$|^(?:- |[−–—] ?){AMOUNT}$|^{AMOUNT} ?-$",
    ),
    "limits": Reason(
        "ranges or limits, such as 10-19 or <5",
        'Choose one number for each of them in the source, or declare kind = "categorical".', "categorical",
        rf"^[<>≤≥~≈=]+ ?{AMOUNT}$|^(?:ca?\.|circa|approx(?:\.|imately)?|about|around) ?{AMOUNT}$"
        rf"|^{AMOUNT} ?(?:\+|or more|or less|and over)$|^{AMOUNT} ?(?:-|–|to|\.\.) ?{AMOUNT}$",
    ),
    "yes-no": YES_NO,
    "quoted": QUOTED,
    "marks": Reason(
        "numbers with a mark beside them, such as 12* or [12]", BARE,
        pattern=rf"^[*†‡§#^]+ ?{AMOUNT}$|^{AMOUNT} ?(?:[*†‡§#^?!¹²³]+|[\[(][a-z][\])])$|^[\[{{] ?{AMOUNT} ?[\]}}]$",
    ),
    "with-another": Reason(
        "numbers with another one behind them, such as 20.1 ± 0.3 or 20.1 (0.3)",
        "Keep one number in each cell in the source, and write the other into a column of its own.",
        pattern=rf"^{AMOUNT} ?(?:±|\+/?[-−]) ?{AMOUNT}$|^{AMOUNT} ?[\[(][^\])]*[0-9][^\])]*[\])]$",
    ),
    "two-units": Reason(
        "numbers in two units, such as 5'11\" or 2 h 30 min", "Convert them to one unit in the source.",
        pattern=rf"^[+-]?[0-9]+(?:\.[0-9]+)? ?{UNIT}(?:,? ?[0-9]+(?:\.[0-9]+)? ?{UNIT})+$|^[0-9] ?['’′] ?[0-9]{{1,2}}$",
    ),
    "two-numbers": Reason(
        "fractions, or two numbers in one cell, such as 3/4 or 120/80",
        "Write two columns in the source, or what the fraction comes to, whichever is meant.",
        pattern=rf"^{AMOUNT} ?(?:[/⁄:;|&x×]|, |of|out of|by|and) ?{AMOUNT}$|^[+-]?(?:[0-9]+ ?)?[½¼¾⅓⅔⅛⅜⅝⅞]$",
    ),
    "other-digits": Reason(
        "numbers in other digits than 0 to 9, such as full-width ones", "Write them with the digits 0 to 9 in the source.",
        pattern=rf"^[+-]?[0-9.,]*[{OTHER_DIGITS}][0-9.,．，٫٬{OTHER_DIGITS}]*$",
    ),
    "hexadecimal": Reason(
        "hexadecimal numbers, such as 0x1F", "Write them in decimal in the source.", pattern="^[+-]?0x[0-9a-f]+$"
    ),
    "units": Reason(
        "numbers with a unit behind them, such as 170 cm",
        "Convert all cells to one unit in the source, and remove the unit. If it is a multiple, such as M for million, write each number "
        "in full.",
        pattern=rf"^{AMOUNT} ?(?:[\p{{L}}°µ²³/]{{1,12}}|[cdkm]?m[23]|['’′]{{1,2}}|[\"”″])$",
    ),
    "unseen": Reason(
        "numbers with characters that cannot be seen, such as a space without width", BARE,
        pattern=rf"^[{UNSEEN}]+{AMOUNT}[{UNSEEN}]*$|^{AMOUNT}[{UNSEEN}]+$",
    ),
    "no-number": NO_NUMBER,
    "formula-errors": FORMULA_ERRORS,
    "text": TEXT,
}  # fmt: skip
