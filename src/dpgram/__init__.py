"""dpgram: publish the Gram matrix of a sensitive table once, with differential privacy, and run every regression on it.

The public names, each imported when it is first used: an analyst who loads a release does not import what reads rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpgram.version import __version__

if TYPE_CHECKING:
    from dpgram.artifact.files import load
    from dpgram.artifact.release import GramRelease
    from dpgram.curator import draft_schema, release
    from dpgram.errors import DpgramError, DpgramWarning
    from dpgram.estimators.components import PrivateCovariance, PrivatePCA
    from dpgram.estimators.regressors import PrivateLasso, PrivateLinearRegression, PrivateRidge
    from dpgram.inference.selection import Selection, select
    from dpgram.ledger.session import SessionLedger
    from dpgram.regression.fit import LinearFit, regress
    from dpgram.terms.budget import Budget, Neighbours
    from dpgram.terms.columns import Boolean, Categorical, Date, Numeric
    from dpgram.terms.derived import DatePart, Interval, Log1p, Power
    from dpgram.terms.products import Product
    from dpgram.terms.schema import Schema

_HOMES = {
    "Boolean": "dpgram.terms.columns",
    "Budget": "dpgram.terms.budget",
    "Categorical": "dpgram.terms.columns",
    "Date": "dpgram.terms.columns",
    "DatePart": "dpgram.terms.derived",
    "DpgramError": "dpgram.errors",
    "DpgramWarning": "dpgram.errors",
    "GramRelease": "dpgram.artifact.release",
    "Interval": "dpgram.terms.derived",
    "LinearFit": "dpgram.regression.fit",
    "Log1p": "dpgram.terms.derived",
    "Neighbours": "dpgram.terms.budget",
    "Numeric": "dpgram.terms.columns",
    "Power": "dpgram.terms.derived",
    "PrivateCovariance": "dpgram.estimators.components",
    "PrivateLasso": "dpgram.estimators.regressors",
    "PrivateLinearRegression": "dpgram.estimators.regressors",
    "PrivatePCA": "dpgram.estimators.components",
    "PrivateRidge": "dpgram.estimators.regressors",
    "Product": "dpgram.terms.products",
    "Schema": "dpgram.terms.schema",
    "Selection": "dpgram.inference.selection",
    "SessionLedger": "dpgram.ledger.session",
    "draft_schema": "dpgram.curator",
    "load": "dpgram.artifact.files",
    "regress": "dpgram.regression.fit",
    "release": "dpgram.curator",
    "select": "dpgram.inference.selection",
}

__all__ = [
    "Boolean",
    "Budget",
    "Categorical",
    "Date",
    "DatePart",
    "DpgramError",
    "DpgramWarning",
    "GramRelease",
    "Interval",
    "LinearFit",
    "Log1p",
    "Neighbours",
    "Numeric",
    "Power",
    "PrivateCovariance",
    "PrivateLasso",
    "PrivateLinearRegression",
    "PrivatePCA",
    "PrivateRidge",
    "Product",
    "Schema",
    "Selection",
    "SessionLedger",
    "__version__",
    "draft_schema",
    "load",
    "regress",
    "release",
    "select",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpgram' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
