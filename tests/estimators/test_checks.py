"""scikit-learn's own checks, but for those that contradict privacy, and the list of those is the one in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpgram.estimators.checks import SWITCHED_OFF_BY_TAG, expected_failed_checks
from tests.estimators.conftest import all_estimators

PAGE = Path(__file__).parents[2] / "docs" / "scikit-learn.md"


@pytest.mark.filterwarnings("ignore::dpgram.errors.RefitWarning", "ignore::dpgram.errors.NotPrivateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(all_estimators(), expected_failed_checks=expected_failed_checks, xfail_strict=True)
def test_scikit_learn_is_content(estimator, check):
    check(estimator)


def test_the_docs_list_the_same_checks():
    listed = re.findall(r"^- `(check_\w+)`", PAGE.read_text(), flags=re.MULTILINE)
    assert listed == [*expected_failed_checks(all_estimators()[0]), *SWITCHED_OFF_BY_TAG]
    assert all(expected_failed_checks(estimator) == {} for estimator in all_estimators()[3:])
