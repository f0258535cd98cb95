"""Tables for docs/paper.md, written between its markers: claims, what exact constants gain, and mean errors."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.sheffet2015.claims import Book, Claim
from experiments.sheffet2015.figures import NOT_PRIVATE, OURS, SIX, WHITENED, WHITENED_EXTRAS
from experiments.sheffet2015.settings import MULTIPLE, SINGLE
from experiments.sheffet2015.techniques import EXACT_CURVE, TECHNIQUES

RATIO_OF = (
    "algorithm-1",
    "algorithm-2",
    "algorithm-3",
    "algorithm-3-shifted",
    "algorithm-4",
    "algorithm-5",
    "analyze-gauss",
    "dpgram",
)


def claims_table(claims: Sequence[Claim]) -> str:
    lines = ["| figure | the paper says | printed constants | exact constants | holds | note |", "|---|---|---|---|---|---|"]
    lines += [f"| {c.figure} | {c.says} | {c.printed} | {c.exact} | {c.holds} | {c.why} |" for c in claims]
    return "\n".join(lines)


def ratio_table(book: Book, epsilon: float = 0.1) -> str:
    """Mean error with printed constants over that with exact ones, by algorithm and n, in the single regression."""
    exponents = [k for k in SINGLE.exponents if k <= book.largest["single"]]
    lines = [
        f"| epsilon {epsilon:g} | " + " | ".join(f"2^{k}" for k in exponents) + " |",
        "|---|" + "---|" * len(exponents),
    ]
    for technique in RATIO_OF:
        printed, exact = (book.mean(technique, c, epsilon) for c in ("paper", "exact"))
        cells = [f"{printed[k] / exact[k]:.2g}" for k in exponents]
        lines.append(f"| {TECHNIQUES[technique]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def errors_table(book: Book, calibration: str, epsilon: float = 0.1) -> str:
    """Mean errors by technique and n, in the single regression."""
    exponents = [k for k in SINGLE.exponents if k <= book.largest["single"]]
    lines = ["| mean l2 error | " + " | ".join(f"2^{k}" for k in exponents) + " |", "|---|" + "---|" * len(exponents)]
    for technique, words in TECHNIQUES.items():
        means = book.mean(technique, calibration, epsilon)
        if means:
            lines.append(f"| {words} | " + " | ".join(_cell(means, k) for k in exponents) + " |")
    return "\n".join(lines)


def multiple_table(book: Book, calibration: str) -> str:
    """Mean errors in the multiple regressions, for a few m and n."""
    exponents = [k for k in range(14, 28, 2) if k in MULTIPLE.exponents and k <= book.largest["multiple"]]
    lines = ["| m | mean l2 error | " + " | ".join(f"2^{k}" for k in exponents) + " |", "|---|---|" + "---|" * len(exponents)]
    for extra in WHITENED_EXTRAS:
        for technique, words in TECHNIQUES.items():
            means = book.mean(technique, calibration, 0.1, setting="multiple", extra=extra)
            if means:
                lines.append(f"| {extra} | {words} | " + " | ".join(_cell(means, k) for k in exponents) + " |")
    return "\n".join(lines)


def whitened_table(book: Book) -> str:
    """How many times the whitened release's mean error the smallest of the six techniques' is, and its own times that of least squares."""
    exponents = [k for k in MULTIPLE.exponents if k <= book.largest["multiple"]]
    lines = ["| m | | " + " | ".join(f"2^{k}" for k in exponents) + " |", "|---|---|" + "---|" * len(exponents)]
    for extra in WHITENED_EXTRAS:

        def means(technique: str, extra: int = extra) -> dict[int, float]:
            return book.mean(technique, EXACT_CURVE, 0.1, setting="multiple", extra=extra)

        six = [means(line.technique) for line in SIX]
        ours = means(WHITENED.technique)
        best = {k: min(each[k] for each in six) for k in exponents}
        for words, over, under in (
            ("best of the six over whitened", best, ours),
            ("`gaussian-noise`, shrunk, over whitened", means(OURS.technique), ours),
            ("whitened over least squares, not private", ours, means(NOT_PRIVATE.technique)),
        ):
            ratios = {k: over[k] / under[k] for k in exponents if k in over and k in under}
            lines.append(f"| {extra} | {words} | " + " | ".join(_cell(ratios, k, 2) for k in exponents) + " |")
    return "\n".join(lines)


def _cell(numbers: dict[int, float], exponent: int, digits: int = 3) -> str:
    return f"{numbers[exponent]:.{digits}g}" if exponent in numbers else ""


def parts(book: Book, claims: Sequence[Claim]) -> dict[str, str]:
    return {
        "claims": claims_table(claims),
        "ratios": ratio_table(book),
        "errors-printed": errors_table(book, "paper"),
        "errors-exact": errors_table(book, "exact"),
        "multiple-exact": multiple_table(book, "exact"),
        "whitened": whitened_table(book),
    }
