"""scikit-learn's own checks, but for those that contradict privacy, and the list of those is the one in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpgram
from dpgram.errors import SchemaError
from dpgram.estimators.checks import SWITCHED_OFF_BY_TAG, expected_failed_checks
from tests.estimators.conftest import all_estimators

PAGE = Path(__file__).parents[2] / "docs" / "scikit-learn.md"


@pytest.mark.filterwarnings("ignore::dpgram.errors.RefitWarning", "ignore::dpgram.errors.NotPrivateWarning")
@pytest.mark.filterwarnings("ignore::dpgram.errors.UnidentifiedWarning", "ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(all_estimators(largest_weight=10), expected_failed_checks=expected_failed_checks, xfail_strict=True)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


def test_the_docs_list_the_same_checks():
    listed = re.findall(r"^- `(check_\w+)`", PAGE.read_text(), flags=re.MULTILINE)
    first, *_, components, covariance = all_estimators(largest_weight=10)
    assert listed == [*expected_failed_checks(first), *SWITCHED_OFF_BY_TAG]
    assert [*expected_failed_checks(components)] == listed[1:3]
    assert [*expected_failed_checks(covariance)] == listed[1:2]


def test_without_a_largest_weight_checks_that_pass_weights_fail_on_purpose():
    """Those that scikit-learn has, so that none is listed in vain."""
    given, not_given = (expected_failed_checks(dpgram.PrivatePCA(largest_weight=most)) for most in (1.0, None))
    more = set(not_given) - set(given)
    assert more
    assert all(hasattr(estimator_checks, name) for name in not_given)
    with pytest.raises(SchemaError, match="largest_weight is not given"):
        estimator_checks.check_sample_weights_list("PrivatePCA", all_estimators()[3])
