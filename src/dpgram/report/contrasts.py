"""Linear combinations of coefficients, and tests of several restrictions, as tables."""

from __future__ import annotations

from dpgram.inference.anderson_rubin import BY_TEST
from dpgram.report.instruments import set_ends, set_words
from dpgram.report.summary import Block, Summary, number, probability


def contrast_summary(data: dict) -> Summary:
    """What ``Contrasts.to_dict`` gives, and the test of all together where it is there."""
    rows, tail = data["contrasts"], (1 - data["confidence"]) / 2
    sources = ["sampling", "privacy", *(["clipping"] if any(c["se_clipping"] > 0 for c in rows) else [])]
    tested = any(c["tested_value"] for c in rows)
    header = [
        "",
        "coef",
        *(["tested"] if tested else []),
        "std err",
        *sources,
        "z",
        "P>|z|",
        f"[{tail:.4g}",
        f"{1 - tail:.4g}]",
    ]
    cells = [
        [
            c["name"],
            number(c["effect"]),
            *([number(c["tested_value"])] if tested else []),
            number(c["se"]),
            *(number(c[f"se_{source}"]) for source in sources),
            f"{c['z']:.2f}" if c["identified"] and c["z"] is not None and c["interval"] != BY_TEST else "",
            probability(c["p_value"]) if c.get("set", c["identified"]) else "",
            *set_ends(c),
        ]
        for c in rows
    ]
    blocks, joint = [Block(header, cells)], data.get("joint_test")
    if joint is not None:
        together = ["all of them", f"{joint['chi_square']:.4g}", str(joint["degrees"]), probability(joint["p_value"])]
        blocks.append(Block(["joint test", "chi2", "df", "P>chi2"], [together]))
    lost = [c["name"] for c in rows if not c["identified"] and "set" not in c]
    notes = [f"Not identified at this budget: {', '.join(lost)}."] if lost else []
    notes += [f"The confidence set of {c['name']} is {set_words(c)}." for c in rows if "set" in c and not c["identified"]]
    if joint is not None and joint["degrees"] < joint["restrictions"]:
        notes.append(
            f"The joint test is about {joint['degrees']} of {joint['restrictions']} combinations. The release says too little about the "
            f"others."
        )
    if not data["private"]:
        notes.append("NOT PRIVATE: the noise came from a seed, so anyone who knows the seed can subtract it.")
    return Summary(f"Private tests about the regression of {data['target']}", [], blocks, notes)
