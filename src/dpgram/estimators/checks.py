"""Which of scikit-learn's estimator checks contradict privacy, each with its reason.

Pass ``expected_failed_checks`` to scikit-learn's ``check_estimator`` or ``parametrize_with_checks``."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor

NO_NAN_IN_Y = (
    "wants an error when a target is NaN or infinite. Whether a fit fails would depend on one person's cell, and the failure "
    "itself would tell it. Such a cell is a missing one and is filled as the schema says."
)

SWITCHED_OFF_BY_TAG = {
    "check_estimators_nan_inf": (
        "wants the same error for NaN and infinity in X; the tag allow_nan=True switches it off, for the same reason."
    ),
    "check_dtype_object": (
        "wants an error when one cell of an object column is no number; the tag string=True makes it want a fit instead. A "
        "cell that makes no sense is a missing one, for the same reason. The rest of the check runs."
    ),
    "check_regressors_train": (
        "wants R2 > 0.5 on 200 rows of 10 columns; the tag poor_score=True drops that line. No useful budget allows it: such a "
        "fit would depend too much on each of 200 people. The rest of the check runs."
    ),
}
"""Checks that tags switch off, wholly or in part."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks that fail on purpose, by name, with the reason."""
    return {"check_supervised_y_no_nan": NO_NAN_IN_Y} if is_regressor(estimator) else {}
