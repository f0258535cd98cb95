"""dpgram: publish the Gram matrix of a sensitive table once, with differential privacy, and run every regression on it.

The public names, each imported when it is first used: an analyst who loads a release does not import what reads rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpgram.version import __version__

if TYPE_CHECKING:
    from dpgram.analysis.compare import Comparison, compare
    from dpgram.analysis.fit import Fit
    from dpgram.analysis.matrices import Covariance, PrincipalComponents, covariance, pca
    from dpgram.analysis.regress import Fits, penalty_path, regress
    from dpgram.artifact.files import load
    from dpgram.artifact.release import GramRelease
    from dpgram.curator import draft_schema, plan, release
    from dpgram.errors import DpgramError, DpgramWarning
    from dpgram.estimators.components import PrivateCovariance, PrivatePCA
    from dpgram.estimators.regressors import PrivateLasso, PrivateLinearRegression, PrivateRidge
    from dpgram.inference.selection import Selection, select
    from dpgram.ledger.file import FileLedger
    from dpgram.ledger.session import SessionLedger
    from dpgram.planning.assumed import Assumptions
    from dpgram.planning.plan import Plan
    from dpgram.report.page.write import write_report
    from dpgram.terms.budget import Budget, Neighbours
    from dpgram.terms.columns import Boolean, Categorical, Date, Numeric
    from dpgram.terms.derived import DatePart, Interval, Log1p, Power, Product
    from dpgram.terms.schema import Schema

_NAMES = {
    "analysis.compare": "Comparison compare",
    "analysis.fit": "Fit",
    "analysis.matrices": "Covariance PrincipalComponents covariance pca",
    "analysis.regress": "Fits penalty_path regress",
    "artifact.files": "load",
    "artifact.release": "GramRelease",
    "curator": "draft_schema plan release",
    "errors": "DpgramError DpgramWarning",
    "estimators.components": "PrivateCovariance PrivatePCA",
    "estimators.regressors": "PrivateLasso PrivateLinearRegression PrivateRidge",
    "inference.selection": "Selection select",
    "ledger.file": "FileLedger",
    "ledger.session": "SessionLedger",
    "planning.assumed": "Assumptions",
    "planning.plan": "Plan",
    "report.page.write": "write_report",
    "terms.budget": "Budget Neighbours",
    "terms.columns": "Boolean Categorical Date Numeric",
    "terms.derived": "DatePart Interval Log1p Power Product",
    "terms.schema": "Schema",
}  # by module
_HOMES = {name: f"dpgram.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Assumptions",
    "Boolean",
    "Budget",
    "Categorical",
    "Comparison",
    "Covariance",
    "Date",
    "DatePart",
    "DpgramError",
    "DpgramWarning",
    "FileLedger",
    "Fit",
    "Fits",
    "GramRelease",
    "Interval",
    "Log1p",
    "Neighbours",
    "Numeric",
    "Plan",
    "Power",
    "PrincipalComponents",
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
    "compare",
    "covariance",
    "draft_schema",
    "load",
    "pca",
    "penalty_path",
    "plan",
    "regress",
    "release",
    "select",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpgram' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
