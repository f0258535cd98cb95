"""How a coefficient moves as controls enter, as a table: the steps, then what each group adds."""

from __future__ import annotations

from dpgram.report.summary import Block, Summary, number, release_facts


def controls_summary(data: dict) -> Summary:
    """The result of ``controls``, as ``Controls.to_dict`` gives it."""
    tail = (1 - data["confidence"]) / 2
    ends = [f"[{tail:.4g}", f"{1 - tail:.4g}]"]
    steps = [
        [
            s["name"] if k == 0 else f"+ {s['name']}",
            number(s["coefficient"]),
            number(s["se"]),
            *_ends(s["lower"], s["upper"]),
            *(["", "", "", ""] if k == 0 else [number(s["change"]), number(s["change_se"]), *_ends(s["change_lower"], s["change_upper"])]),
            "" if s["r_squared"] is None else f"{s['r_squared']:.3f}",
        ]
        for k, s in enumerate(data["steps"])
    ]  # fmt: skip
    parts = [[c["name"], number(c["amount"]), number(c["se"]), *_ends(c["lower"], c["upper"])] for c in data["contributions"]]
    whole = data["steps"][-1]["coefficient"] - data["steps"][0]["coefficient"]
    parts.append(["sum: last step minus first", number(whole), "", "", ""])
    notes = [
        "coef: the debiased coefficient in the regression with this group and all groups above it. change: from the step above.",
        "contribution: how far a group moves the coefficient, given all the others (Gelbach 2016). It does not depend on the order of the "
        "groups, and the contributions add up to the whole change.",
        "Standard errors include sampling, privacy noise and clipping. Those of changes count that all steps share the same noise.",
    ]
    if any(one["lower"] is None for one in (*data["steps"], *data["contributions"])):
        notes.append("An infinite interval means: not identified at this budget.")
    return Summary(
        title=f"Coefficient of {data['coefficient']} in regressions of {data['target']}, as controls enter",
        facts=release_facts(data),
        blocks=[
            Block(["", "coef", "std err", *ends, "change", "std err", *ends, "R-squared"], steps),
            Block(["contribution of", "amount", "std err", *ends], parts, (len(parts) - 1,)),
        ],
        notes=[*notes, *data["notes"]],
    )


def _ends(lower: float | None, upper: float | None) -> list[str]:
    return ["-inf" if lower is None else number(lower), "inf" if upper is None else number(upper)]
