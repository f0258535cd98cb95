"""What is printed: a table that a user of statsmodels can read, with every mark, and HTML that runs nothing."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import dpgram
from tests.analysis.test_fit import released
from tests.conftest import filled_schema

NASTY = "<script>alert(\"x\")</script> & 'co'"


@pytest.fixture(scope="module")
def fit(small_release):
    return dpgram.regress(small_release, "y")


def rows_of(text, names):
    """The cells of each coefficient's line."""
    lines = [line for line in text.splitlines() if line.startswith(names)]
    return {line.split()[0]: line.split()[1:] for line in lines}


def test_the_table_holds_the_numbers_of_the_fit(fit):
    text = str(fit.summary())
    header = next(line for line in text.splitlines() if "std err" in line).split()
    assert header == ["coef", "std", "err", "sampling", "privacy", "z", "P>|z|", "[0.025", "0.975]", "shrunk"]
    for name, cells in rows_of(text.split("joint test")[0], fit.names).items():
        low, high = fit.conf_int().loc[name]
        wanted = (fit.params[name], fit.bse[name], fit.bse_sampling[name], fit.bse_privacy[name], fit.tvalues[name])
        assert [float(c) for c in cells[:5]] == pytest.approx(wanted, rel=1e-3, abs=0.006)
        assert [float(c) for c in cells[6:]] == pytest.approx((low, high, fit.shrunk[name]), rel=1e-3)
        assert cells[5] == ("<0.001" if fit.pvalues[name] < 0.001 else f"{fit.pvalues[name]:.3f}")


def test_the_header_states_what_was_promised(fit):
    text = " ".join(str(fit.summary()).split())
    for words in (
        "linear regression of y",
        "Epsilon, delta: 5, 1e-06",
        "Mechanism: gaussian-noise",
        "No. Observations: 4,000",
        "Neighbours: replace",
        "Confidence: 0.95",
        "R-squared:",
        "Residual sd:",
        "coef: debiased coefficients, without the bias that the noise would cause. std err, z, P>|z| and the interval are about them.",
        "sampling and privacy: the parts of std err.",
        "shrunk: coefficients with the smallest expected error. predict uses them.",
        "NOT PRIVATE",
        "joint test: all coefficients are zero",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"neighbours": "add-remove"}, "Rows that counted: a noisy estimate; rows with a missing cell do not count"),
        ({"row_bound": 1.0}, "where the schema says drop-row; clipped rows count for less."),
    ],
)
def test_rows_that_counted_are_explained_where_they_are_not_the_number_of_rows(small_release, changes, words):
    assert words in " ".join(str(dpgram.regress(released(**changes), "y").summary()).split())
    known = dataclasses.replace(small_release, schema=filled_schema())
    assert words not in str(dpgram.regress(known, "y").summary())
    assert "Rows that counted: 4,000" in " ".join(str(dpgram.regress(known, "y").summary()).split())


@pytest.mark.parametrize(
    ("confidence", "low", "high"), [(0.5, "[0.25", "0.75]"), (0.9, "[0.05", "0.95]"), (0.999, "[0.0005", "0.9995]")]
)
def test_the_confidence_is_named_in_the_header(small_release, confidence, low, high):
    text = str(dpgram.regress(small_release, "y", confidence=confidence).summary())
    assert low in text
    assert high in text
    assert f"Confidence: {confidence:g}" in " ".join(text.split())


@pytest.mark.parametrize("estimator", ["debiased", "log-det", "plain", "ridge", "lasso", "elastic-net"])
def test_the_second_column_is_named_after_its_estimator(small_release, estimator):
    text = str(dpgram.regress(small_release, "y", estimator=estimator).summary())
    header = next(line for line in text.splitlines() if "std err" in line)
    assert header.rstrip().endswith("0.975]" if estimator == "debiased" else estimator)
    assert ("predict uses them" in text) == (estimator != "debiased")


def test_what_is_not_identified_is_said():
    text = str(dpgram.regress(released(rows=60, epsilon=0.1), "y").summary())
    assert text.count("-inf") == 5
    assert "Not identified at this budget: (intercept), x, c[b], c[other], b." in " ".join(text.split())
    assert "R-squared: not identified" in " ".join(text.split())


def test_lines_are_no_wider_than_the_table(fit):
    lines = str(fit.summary()).splitlines()
    width = max(len(line) for line in lines if line.startswith("="))
    assert all(len(line) <= width for line in lines)


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(html):
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    return tags


def test_html_escapes_every_name():
    schema = dpgram.Schema(
        unit="p",
        columns=[dpgram.Numeric(NASTY, -5, 5), dpgram.Numeric("y", -5, 5), dpgram.Categorical("c", ["a", "<b>bold</b>"])],
    )
    rng = np.random.default_rng(0)
    table = {NASTY: rng.normal(size=500), "y": rng.normal(size=500), "c": rng.choice(["a", "<b>bold</b>"], 500)}
    release = dpgram.release(table, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    one = dpgram.regress(release, "y")
    other = dpgram.regress(release, NASTY)
    shown = [
        one._repr_html_(),
        one.summary()._repr_html_(),
        other._repr_html_(),
        dpgram.compare({NASTY: one, "<i>": other})._repr_html_(),
        dpgram.regress(release, ["y", NASTY])._repr_html_(),
        dpgram.covariance(release)._repr_html_(),
        dpgram.pca(release)._repr_html_(),
    ]
    for html in shown:
        tags = parsed(html)
        assert set(tags.tags) <= {"div", "b", "table", "thead", "tbody", "tr", "th", "td", "p"}
        assert "<script" not in html
        assert "<b>bold" not in html
        assert any(NASTY in text for text in tags.text)


def test_html_holds_what_the_text_holds(fit):
    text, tags = str(fit.summary()), parsed(fit._repr_html_())
    words = " ".join(tags.text)
    for line in text.split("joint test")[0].splitlines():
        for cell in re.split(r"\s{2,}|: +", line.strip(" =")):
            assert cell.strip(":-") in words
