"""Published tables again, each from one private release, beside least squares on the same rows without privacy.

- Kleiber and Zeileis (2008), Applied Econometrics with R, section 3.3: the log of weekly wages of 28,155 men (AER::CPS1988), on experience,
  its square, education and ethnicity, and with a product of ethnicity and education.
- Huntington-Klein (2022), The Effect, chapter 13: scores of 27,178 inspections of restaurants (causaldata), on how many locations their
  chain has, and with the year as a control.

The numbers are as the books print them. Least squares on the tables gives each of them, to all digits that are printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import dpgram
from experiments.controls.tables import Table, inspections, wages

EPSILON, DELTA, SEED = 1.0, 1e-6, 1988
MECHANISM = {"wages": "whitened-noise", "inspections": "gaussian-noise"}  # see ``held``
RELEASES = 40
WAGES = ["experience", "experience_squared", "education", "afam"]
Numbers = dict[str, tuple[str, str]]  # as printed: the coefficient and its standard error


@dataclass(frozen=True)
class Column:
    """One column of a published table."""

    name: str
    features: Sequence[str]
    printed: Numbers


PUBLISHED = {
    "wages": [
        Column(
            "wage equation",
            WAGES,
            {
                "(intercept)": ("4.321395", "0.019174"),
                "experience": ("0.077473", "0.000880"),
                "experience_squared": ("-0.001316", "0.000019"),
                "education": ("0.085673", "0.001272"),
                "afam": ("-0.243364", "0.012918"),
            },
        ),
        Column(
            "with an interaction",
            [*WAGES, "education_afam"],
            {
                "(intercept)": ("4.313059", "0.019590"),
                "experience": ("0.077520", "0.000880"),
                "experience_squared": ("-0.001318", "0.000019"),
                "education": ("0.086312", "0.001309"),
                "afam": ("-0.123887", "0.059026"),
                "education_afam": ("-0.009648", "0.004651"),
            },
        ),
    ],
    "inspections": [
        Column("(1)", ["locations"], {"(intercept)": ("94.866", "0.046"), "locations": ("-0.019", "0.000")}),
        Column(
            "(2)",
            ["locations", "year"],
            {"(intercept)": ("225.333", "12.411"), "locations": ("-0.019", "0.000"), "year": ("-0.065", "0.006")},
        ),
    ],
}


@dataclass(frozen=True)
class Line:
    """One coefficient: as published, by least squares on the table, and from the release."""

    table: str
    column: str
    name: str
    published: str
    published_se: str
    exact: float  # least squares on the table, without privacy
    private: float
    private_se: float
    lower: float
    upper: float


def least_squares(table: Table, features: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Coefficients and standard errors of the rows themselves. NOT PRIVATE: these tables are public."""
    import statsmodels.api as sm

    frame = table.frame.assign(**table.computed)
    fit = sm.OLS(frame[table.target], sm.add_constant(frame[list(features)].astype(float))).fit()
    names = ("(intercept)", *features)
    return dict(zip(names, fit.params, strict=True)), dict(zip(names, fit.bse, strict=True))


def agrees(value: float, printed: str) -> bool:
    """Whether a number is what was printed, to all its digits."""
    digits = len(printed.partition(".")[2])
    return np.isclose(value, float(printed), rtol=0, atol=0.501 * 10.0**-digits)


def released(table: Table, mechanism: str, seed: int) -> dpgram.GramRelease:
    return dpgram.release(table.frame, table.schema, epsilon=EPSILON, delta=DELTA, mechanism=mechanism, insecure_seed=seed)


@dataclass(frozen=True)
class Held:
    """In how many of some releases every slope of the last column had an interval that holds what least squares gives."""

    table: str
    mechanism: str
    name: str
    releases: int
    held: int


def held() -> Iterator[Held]:
    for table in (wages(), inspections()):
        features = PUBLISHED[table.name][0 if table.name == "wages" else -1].features
        exact, _ = least_squares(table, features)
        for mechanism in ("whitened-noise", "gaussian-noise"):
            ends = [dpgram.regress(released(table, mechanism, s), table.target, features).conf_int() for s in range(RELEASES)]
            for name in features:
                inside = sum(bool(one.loc[name, 0] <= exact[name] <= one.loc[name, 1]) for one in ends)
                yield Held(table.name, mechanism, name, RELEASES, inside)


def lines() -> Iterator[Line]:
    for table in (wages(), inspections()):
        made = released(table, MECHANISM[table.name], SEED)
        for column in PUBLISHED[table.name]:
            exact, _ = least_squares(table, column.features)
            fit = dpgram.regress(made, table.target, column.features)
            for name, (value, se) in column.printed.items():
                ends = fit.conf_int().loc[name]
                numbers = (exact[name], fit.params[name], fit.bse[name], *ends)
                yield Line(table.name, column.name, name, value, se, *map(float, numbers))
