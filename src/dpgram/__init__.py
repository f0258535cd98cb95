"""dpgram: publish the Gram matrix of a sensitive table once, with differential privacy, and run every regression on it.

The public names, each imported when it is first used: an analyst who loads a release does not import what reads rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpgram.version import __version__

if TYPE_CHECKING:
    from dpgram.analysis.combine import combine
    from dpgram.analysis.compare import Comparison, compare
    from dpgram.analysis.controls import Controls, controls
    from dpgram.analysis.fit import Fit
    from dpgram.analysis.iv import IVFit, iv
    from dpgram.analysis.lda import Discriminant, lda
    from dpgram.analysis.logit import Logit, logit
    from dpgram.analysis.matrices import Covariance, PrincipalComponents, covariance, pca
    from dpgram.analysis.regress import Fits, penalty_path, regress
    from dpgram.analysis.structure import Graph, PartialCorrelations, graph, partial_correlations
    from dpgram.artifact.combined import CombinedRelease
    from dpgram.artifact.files import load
    from dpgram.artifact.release import GramRelease
    from dpgram.checking.result import Check
    from dpgram.checking.run import check
    from dpgram.curator import draft_schema, plan, release
    from dpgram.errors import DpgramError, DpgramWarning
    from dpgram.estimators.components import PrivateCovariance, PrivatePCA
    from dpgram.estimators.regressors import PrivateLasso, PrivateLinearRegression, PrivateRidge
    from dpgram.inference.selection import Selection, select
    from dpgram.ledger.file import FileLedger
    from dpgram.ledger.session import SessionLedger
    from dpgram.planning.assumed import Assumptions
    from dpgram.planning.plan import Plan
    from dpgram.planning.suggest import SuggestedDerived, suggest_derived
    from dpgram.report.page.write import write_report
    from dpgram.terms.budget import Budget, Neighbours
    from dpgram.terms.columns import Boolean, Categorical, Date, Numeric
    from dpgram.terms.derived import DatePart, Interval, Log, Log1p, Power, Product
    from dpgram.terms.schema import Schema

_NAMES = {
    "analysis.combine": "combine",
    "analysis.compare": "Comparison compare",
    "analysis.controls": "Controls controls",
    "analysis.fit": "Fit",
    "analysis.lda": "Discriminant lda",
    "analysis.logit": "Logit logit",
    "analysis.iv": "IVFit iv",
    "analysis.matrices": "Covariance PrincipalComponents covariance pca",
    "analysis.regress": "Fits penalty_path regress",
    "artifact.combined": "CombinedRelease",
    "analysis.structure": "Graph PartialCorrelations graph partial_correlations",
    "artifact.files": "load",
    "artifact.release": "GramRelease",
    "checking.result": "Check",
    "checking.run": "check",
    "curator": "draft_schema plan release",
    "errors": "DpgramError DpgramWarning",
    "estimators.components": "PrivateCovariance PrivatePCA",
    "estimators.regressors": "PrivateLasso PrivateLinearRegression PrivateRidge",
    "inference.selection": "Selection select",
    "ledger.file": "FileLedger",
    "ledger.session": "SessionLedger",
    "planning.assumed": "Assumptions",
    "planning.plan": "Plan",
    "planning.suggest": "SuggestedDerived suggest_derived",
    "report.page.write": "write_report",
    "terms.budget": "Budget Neighbours",
    "terms.columns": "Boolean Categorical Date Numeric",
    "terms.derived": "DatePart Interval Log Log1p Power Product",
    "terms.schema": "Schema",
}  # by module
_HOMES = {name: f"dpgram.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Assumptions",
    "Boolean",
    "Budget",
    "Categorical",
    "Check",
    "CombinedRelease",
    "Comparison",
    "Controls",
    "Covariance",
    "Date",
    "DatePart",
    "Discriminant",
    "DpgramError",
    "DpgramWarning",
    "FileLedger",
    "Fit",
    "Fits",
    "GramRelease",
    "Graph",
    "IVFit",
    "Interval",
    "Log",
    "Log1p",
    "Logit",
    "Neighbours",
    "Numeric",
    "PartialCorrelations",
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
    "SuggestedDerived",
    "__version__",
    "check",
    "combine",
    "compare",
    "controls",
    "covariance",
    "draft_schema",
    "graph",
    "iv",
    "lda",
    "load",
    "logit",
    "partial_correlations",
    "pca",
    "penalty_path",
    "plan",
    "regress",
    "release",
    "select",
    "suggest_derived",
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
