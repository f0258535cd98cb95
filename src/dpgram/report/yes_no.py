"""Logits and discriminants of yes-or-no targets and of categories, as text."""

from __future__ import annotations

from dpgram.report.summary import Block, Summary, coefficient_rows, number, probability, release_facts


def logit_summary(fit: dict) -> Summary:
    """One logit, as ``Logit.to_dict`` gives it."""
    tail = (1 - fit["confidence"]) / 2
    listed = coefficient_rows(fit)
    sources = ["sampling", "privacy", *(["clipping"] if any(c["se_clipping"] > 0 for c in listed) else [])]
    ends = [f"[{tail:.4g}", f"{1 - tail:.4g}]"]
    rows = [
        [
            c["name"],
            number(c["coefficient"]),
            number(c["se"]),
            *(number(c[f"se_{source}"]) for source in sources),
            probability(c["p_value"]) if c["identified"] else "",
            number(c["lower"]) if c["identified"] else "-inf",
            number(c["upper"]) if c["identified"] else "inf",
            number(c["odds_ratio"]),
            number(c["odds_ratio_lower"]),
            number(c["odds_ratio_upper"]),
        ]
        for c in listed
    ]
    header = ["", "coef", "std err", *sources, "P>|z|", *ends, "odds ratio", *ends]
    facts = [
        ("Target", fit["target"]),
        ("Share of ones", f"{number(fit['share'])} (s.e. {fit['share_se']:.2g})"),
        ("Method", "discriminant"),
        ("Distance of groups", number(fit["distance"])),
        *release_facts(fit),
    ]
    notes = [
        "coef: change of the log odds if the feature is larger by one unit. odds ratio: by what the odds are multiplied.",
        f"{', '.join(sources[:-1])} and {sources[-1]}: the parts of std err. Their squares add up to its square.",
        "Method: from the linear regression of the 0/1 target (Haggstrom 1983). These are the coefficients of a logit if the features are "
        "normal in both groups, with the same covariance. Otherwise they approximate them, and the intervals do not include the "
        "difference. See docs/yes-no.md.",
        "Distance of groups: how far the means of the features are apart, in standard deviations (Mahalanobis).",
    ]
    return Summary(f"Private logit of {fit['target']}", facts, [Block(header, rows)], [*notes, *fit["notes"]])


def lda_summary(data: dict) -> Summary:
    """Classes, their scores and their distances, as ``Discriminant.to_dict`` gives them."""
    tail = (1 - data["confidence"]) / 2
    low, high = data["error_interval"]
    facts = [
        ("Target", data["target"]),
        ("Error rate", f"{data['error_rate']:.4f} [{low:.4f}, {high:.4f}]"),
        *release_facts(data),
    ]
    scores = [
        [name, number(share), *map(number, (intercept, *slopes))]
        for name, share, intercept, slopes in zip(data["classes"], data["priors"], data["intercept"], data["coef"], strict=True)
    ]
    means = [[name, *map(number, row)] for name, row in zip(data["classes"], data["means"], strict=True)]
    pairs = [
        [
            f"{p['first']} - {p['second']}",
            *map(number, (p["distance"], p["lower"])),
            "inf" if p["upper"] is None else number(p["upper"]),
            f"{p['error_rate']:.4f}",
        ]
        for p in data["pairs"]
    ]
    blocks = [
        Block(["score of class", "share", "(intercept)", *data["names"]], scores),
        Block(["mean in class", *data["names"]], means),
        Block(["classes", "distance", f"[{tail:.4g}", f"{1 - tail:.4g}]", "error rate"], pairs),
    ]
    first = data["classes"][0]
    features = [f"{level} of {column}" for column, level in data["references"].items() if column != data["target"]]
    notes = [
        "score: a row belongs to the class with the largest score. Differences of scores are differences of log odds.",
        f"reference: {first} is the reference level of {data['target']}. The score of a class minus that of {first} is the log odds of "
        f"the class against {first}.",
        *([f"Features that are levels are compared with a reference level: {', '.join(features)}."] if features else []),
        "distance: how far the means of two classes are apart, in standard deviations (Mahalanobis).",
        "error rate: share of rows in the wrong class, if features are normal in each class with the same covariance. In the last table, "
        "if there were only these two classes.",
    ]
    return Summary(f"Private linear discriminant analysis of {data['target']}", facts, blocks, [*notes, *data["notes"]])
