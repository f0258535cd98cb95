"""What all private estimators share: one release per fit, the warnings, and the same treatment of rows in fit and after it."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpgram import curator
from dpgram.artifact.release import GramRelease
from dpgram.encoding.encode import own_units
from dpgram.errors import BudgetError, EmptyTableError, NotPrivateWarning, RefitWarning
from dpgram.estimators.declared import Counting, Declaration, declare
from dpgram.estimators.intake import Columns, PerRow, feature_columns
from dpgram.ledger.base import Ledger
from dpgram.terms.budget import Neighbours

Array = np.ndarray

SEEDED = "NOT PRIVATE: the noise comes from random_state"

_announced = threading.Event()


@dataclass(kw_only=True, repr=False, eq=False)
class PrivateEstimator(BaseEstimator):
    """Base class of the private estimators: one private release per fit, and the attributes ``release_``, ``private_`` and ``schema_``."""

    epsilon: float | None = None
    delta: float | None = None
    bounds: Any = None
    mechanism: str = "auto"
    mechanism_options: dict | None = None
    neighbours: str | None = None
    row_bound: float | None = None
    rows_per_unit: int | None = None
    largest_weight: float | None = None
    random_state: int | None = None
    ledger: Ledger | None = None

    def _declare(self, features: Columns, targets: Columns, per_row: PerRow, target_bounds: object = None) -> Declaration:
        """What the parameters declare about the columns; nothing has been spent and no cell looked at."""
        for name in ("epsilon", "delta"):
            if getattr(self, name) is None:
                raise BudgetError(
                    f"{name} is not given. It has no default, because the choice is yours. Usual values are an epsilon of 0.1 to 5, and a "
                    f"delta well below 1/(number of rows), such as 1e-7."
                )
        seed = self.random_state
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise BudgetError(
                "random_state must be None or a whole number of at least 0. Only None gives noise that protects anybody."
            )
        declaration = declare(
            self.bounds,
            target_bounds,
            features=tuple(features),
            targets=tuple(targets),
            neighbours=self.neighbours,
            row_bound=self.row_bound,
            counting=Counting(
                groups=per_row.groups is not None,
                weights=per_row.weights is not None,
                rows_per_unit=self.rows_per_unit,
                largest_weight=self.largest_weight,
            ),
        )
        if declaration.schema.neighbours is Neighbours.REPLACE and len(next(iter(features.values()))) == 0:
            raise EmptyTableError  # the number of rows is public; the curator would say so too, with the budget reserved
        _ = declaration.coefficients  # what could not be computed afterwards must fail here, before anything is spent
        return declaration

    def _spend(self, declaration: Declaration, features: Columns, targets: Columns, per_row: PerRow) -> GramRelease:
        """One release of the columns, which costs (epsilon, delta). Called by ``fit`` when all that is public was checked."""
        self._warn()
        schema = declaration.schema
        cells = dict(zip(schema.names, [*features.values(), *targets.values()], strict=True))
        for name, values in ((schema.unit_id, per_row.groups), (schema.weight, per_row.weights)):
            if name is not None and values is not None:
                cells[name] = values
        release = curator.release(
            cells,
            schema,
            epsilon=self.epsilon,  # type: ignore[arg-type]
            delta=self.delta,  # type: ignore[arg-type]
            mechanism=self.mechanism,
            insecure_seed=self.random_state,
            ledger=self.ledger,
            **(self.mechanism_options or {}),
        )
        self._declaration = declaration
        self.schema_ = schema
        self.release_ = release
        self.private_ = release.private
        return release

    def _warn(self) -> None:
        """Before anything is spent, so that a warning made an error stops the fit in time."""
        level = 4  # the caller of fit
        if self.random_state is not None:
            warnings.warn(
                f"random_state is set, so anyone who knows it can compute the noise of {type(self).__name__} and subtract it. This fit is "
                f"NOT PRIVATE. Leave out random_state to protect the data.",
                NotPrivateWarning,
                stacklevel=level,
            )
        if not _announced.is_set():
            _announced.set()
            warnings.warn(
                "every fit of a private estimator spends its epsilon and delta again. This includes each fold of a cross-validation and "
                "each candidate of a search. Pass ledger= to keep the total within a budget. Predictions and scores on private rows are "
                "not protected. (This warning is shown once per process. Filter dpgram.errors.RefitWarning to silence it.)",
                RefitWarning,
                stacklevel=level,
            )

    def _treated(self, X: Any) -> Array:
        """The rows of X in own units, one column per coefficient, clamped and filled as in ``fit``. NOT protected.

        A row that would not count in ``fit``, because a cell is missing, is NaN."""
        check_is_fitted(self)
        schema = self._declaration.feature_schema
        scaled = curator.encoded_rows(feature_columns(self, X, reset=False), schema)
        return own_units(schema, scaled)[:, 1:]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing cell raises nothing: whether it did would depend on somebody's row
        tags.input_tags.string = True  # cells that are text or objects are cast one by one, or count as missing
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return text if self.random_state is None else f"{text}  # {SEEDED}"

    def _repr_html_inner(self) -> str:
        return self._marked(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._marked(bundle["text/html"])
        return bundle

    def _marked(self, html: str) -> str:
        return html if self.random_state is None else f"<p><strong>{SEEDED}</strong></p>{html}"
