"""Which of scikit-learn's estimator checks contradict privacy, each with its reason.

Pass ``expected_failed_checks`` to scikit-learn's ``check_estimator`` or ``parametrize_with_checks``."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor

NO_NAN_IN_Y = (
    "The check expects an error if a target is NaN or infinite. Then one person's cell would decide whether a fit fails, and the "
    "failure would reveal it. Such a cell counts as missing instead, and becomes what the schema says."
)
NOT_ALL_ZERO = (
    "The check expects an error if all weights are zero. Then one person's weight would decide whether a fit fails, and the failure would "
    "reveal it."
)
WEIGHTS_AND_NOISE = (
    "The check expects that weights do the same as repeated rows, to the digit. The noise of a private fit is that of rows with the "
    "largest weight, and the check makes no allowance for noise."
)
NEEDS_LARGEST = "The check passes sample_weight, which needs the parameter largest_weight."
WITH_WEIGHTS = ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")

SWITCHED_OFF_BY_TAG = {
    "check_estimators_nan_inf": (
        "The check expects the same error for NaN and infinity in X. The tag allow_nan=True switches it off, for the same reason."
    ),
    "check_dtype_object": (
        "The check expects an error if one cell of an object column is not a number. With the tag string=True it expects a fit instead. "
        "A cell that cannot be read counts as missing, for the same reason. The rest of the check runs."
    ),
    "check_regressors_train": (
        "The check expects R2 > 0.5 on 200 rows of 10 columns. The tag poor_score=True switches this part off. No useful budget allows "
        "it, because such a fit would depend too much on each of 200 people. The rest of the check runs."
    ),
}
"""Checks that tags switch off, wholly or in part."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks that fail on purpose, by name, with the reason."""
    compared = hasattr(estimator, "predict") or hasattr(estimator, "transform")  # what the check compares
    on_weights = (f"check_sample_weights_{each}" for each in WITH_WEIGHTS if estimator.largest_weight is None)
    return {
        **({"check_supervised_y_no_nan": NO_NAN_IN_Y} if is_regressor(estimator) else {}),
        "check_all_zero_sample_weights_error": NOT_ALL_ZERO,
        **({"check_sample_weight_equivalence_on_dense_data": WEIGHTS_AND_NOISE} if compared else {}),
        **dict.fromkeys(on_weights, NEEDS_LARGEST),
    }
