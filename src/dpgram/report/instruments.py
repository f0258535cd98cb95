"""A regression with instruments as text and HTML, from plain data."""

from __future__ import annotations

import math

from dpgram.inference.anderson_rubin import ConfidenceSet
from dpgram.report.summary import Block, Summary, coefficient_rows, number, probability, release_facts

NAMES = {"2sls": "two-stage least squares", "liml": "LIML"}


def summarise_iv(fit: dict) -> Summary:
    """One fit, as ``IVFit.to_dict`` gives it."""
    tail = (1 - fit["confidence"]) / 2
    clipped = any(c["se_clipping"] > 0 for c in coefficient_rows(fit))
    sources = ["sampling", "privacy", *(["clipping"] if clipped else [])]
    rows = [
        [
            c["name"],
            number(c["coefficient"]),
            number(c["se"]),
            *(number(c[f"se_{source}"]) for source in sources),
            probability(c["p_value"]) if c["set"] else "",
            *set_ends(c),
            c["interval"],
        ]
        for c in coefficient_rows(fit)
    ]
    tests = [_test(test, "f") for test in fit["first_stage"]]
    if len(tests) > 1:
        tests.append(["weakest combination of the endogenous", number(fit["strength"]), "", ""])
    others = [_test(test, "chi_square") for test in (fit["overidentification"], fit["endogeneity"]) if test is not None]
    blocks = [
        Block(["", "coef", "std err", *sources, "P", f"[{tail:.4g}", f"{1 - tail:.4g}]", "interval"], rows),
        Block(["first stage of", "F", "df", "P>F"], tests),
        Block(["test that", "chi2", "df", "P>chi2"], others),
    ]
    facts = [
        ("Target", fit["target"]),
        ("Estimator", NAMES[fit["estimator"]]),
        ("Endogenous", ", ".join(fit["endogenous"])),
        ("Instruments", ", ".join(fit["instruments"])),
        ("Strength", f"F = {number(fit['strength'])}, {fit['strength_word']}"),
        ("Confidence", f"{fit['confidence']:g}"),
        *release_facts(fit),
    ]
    if fit["design_effect"] != 1:
        facts.append(("Design effect", number(fit["design_effect"])))
    explained = [
        f"std err: includes {', '.join(sources[:-1])} and {sources[-1]}. The squares of these parts add up to its square.",
        "interval: wald is coef plus or minus standard errors. anderson-rubin contains all values that a test does not reject, and is "
        "right however weak the instruments are. P comes from the same test as the interval.",
        "F: how well the instruments explain an endogenous regressor. It includes the privacy noise.",
    ]
    if fit["counted_rows_note"] is not None:
        explained.append(f"Rows that counted: {fit['counted_rows_note']}.")
    title = f"Private regression of {fit['target']} with instruments"
    return Summary(title, facts, blocks, [*fit["notes"], *explained])


def set_ends(c: dict) -> list[str]:
    """The smallest and the largest value of the set of a coefficient, or of a combination."""
    if c.get("set") == []:
        return ["empty", "empty"]
    return ["-inf" if c["lower"] is None else number(c["lower"]), "inf" if c["upper"] is None else number(c["upper"])]


def set_words(c: dict) -> str:
    """The same set in words."""
    pieces = tuple((-math.inf if low is None else low, math.inf if high is None else high) for low, high in c["set"])
    return ConfidenceSet(pieces, c["interval"]).words


def _test(test: dict, statistic: str) -> list[str]:
    return [test["name"], number(test[statistic]), str(test["degrees"]), probability(test["p_value"])]
