"""Anderson-Rubin sets: in closed form where there is no noise, of every shape, and in agreement with the p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.inference.anderson_rubin import (
    BY_TEST,
    STRONG,
    WALD,
    Test,
    confidence_sets,
    endogeneity,
    p_values,
    standard_errors,
)
from dpgram.regression.formula import instrumented
from dpgram.regression.instruments import conditions, estimate
from dpgram.sampling.seeded import SeededSource
from tests.instrumented import CARD, Textbook, card_schema, like_card, made_up, schema_of
from tests.releases import NOISES, SILENT, seen_through, true_gram

FORMULA = "y ~ w + [x0 ~ z0 + z1 + z2]"


def prepared(release, formula=FORMULA, estimator="2sls"):
    evidence = Evidence.of(release)
    seen = conditions(evidence, instrumented(evidence.schema, formula), estimator)
    return Test(seen, estimate(seen, estimator))


Test.__test__ = False  # not one of pytest's


def silent(table, formula=FORMULA, **options):
    return prepared(seen_through(SILENT["gaussian"], table, schema_of(table)), formula, **options)


SHAPES = {  # what a table is like, and how many pieces its set has, with or without ends
    "interval": ({"strength": 0.5}, 1, True),
    "two half-lines": ({"rows": 200, "strength": 0.12, "instruments": 1, "seed": 5}, 2, False),
    "whole line": ({"rows": 200, "strength": 0.0, "instruments": 1, "seed": 2}, 1, False),
    "empty": ({"strength": 0.8, "direct": 0.4}, 0, False),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_without_noise_a_set_is_that_of_the_closed_form(shape):
    made, pieces, bounded = SHAPES[shape]
    table = made_up(**made)
    names = [f"z{k}" for k in range(made.get("instruments", 3))]
    expected = Textbook(table, ["w"], ["x0"], names).anderson_rubin()
    (found,) = confidence_sets(silent(table, f"y ~ w + [x0 ~ {' + '.join(names)}]"), 0.95, BY_TEST)[-1:]
    assert (len(found.pieces), found.bounded) == (pieces, bounded)
    assert np.ravel(found.pieces) == pytest.approx(np.ravel(expected), rel=1e-4)
    assert {"empty": "empty", "whole line": "the whole line", "two half-lines": "and all values from"}.get(
        shape, "to"
    ) in found.words


def test_diagnostics_are_the_textbooks():
    table = made_up()
    book, test = Textbook(table, ["w"], ["x0"], ["z0", "z1", "z2"]), silent(table)
    assert test.strength == pytest.approx(book.partial_f, rel=1e-4)
    assert test.first_stage(2).f == pytest.approx(book.partial_f, rel=1e-4)
    assert test.overidentification().statistic == pytest.approx((book.kappa - 1) * (4000 - 5), rel=1e-3)
    release = seen_through(SILENT["gaussian"], table, schema_of(table))
    assert endogeneity(Evidence.of(release), test).statistic == pytest.approx(book.wu_hausman(), rel=1e-4)
    assert silent(table, "y ~ w + [x0 ~ z0]").overidentification() is None


@pytest.mark.parametrize("seed", range(4))
def test_a_set_is_exactly_what_its_test_does_not_reject(seed):
    """Where noise nearly hides one of two collinear columns. Sets of all shapes occur, and their search used to fail in half of these."""
    release = dpgram.release(like_card(), card_schema(), epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed)
    test = prepared(release, CARD)
    sets, se = confidence_sets(test, 0.95, BY_TEST), standard_errors(test.of, test.at.covariance)
    values = test.of.own_units(test.at.b) + se * np.tan(np.linspace(-1.55, 1.55, 60))[:, None]
    for value in values:
        accepted = p_values(test, BY_TEST, value) >= 0.05
        inside = [any(low <= one <= high for low, high in made.pieces) for one, made in zip(value, sets, strict=True)]
        assert accepted.tolist() == inside


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(8, 3000),
    endogenous=st.integers(1, 2),
    more=st.integers(0, 2),
    strength=st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.5, 5.0]),
    direct=st.sampled_from([0.0, 0.3]),
    epsilon=st.floats(0.01, 50),
    mechanism=st.sampled_from(["gaussian-noise", "whitened-noise", "wishart-noise"]),
    estimator=st.sampled_from(["2sls", "liml"]),
    confidence=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
)
@example(2554, 1730, 1, 1, 0.0, 0.3, 4.014105104983824, "gaussian-noise", "2sls", 0.9)  # the best fit is nearly at infinity
@settings(deadline=None, max_examples=30)
def test_every_noisy_release_has_sets_that_are_what_the_test_does_not_reject(
    seed, rows, endogenous, more, strength, direct, epsilon, mechanism, estimator, confidence
):
    """Whatever the instruments, the rows and the noise; at values of many sizes."""
    table = made_up(rows, seed=seed, instruments=endogenous + more, endogenous=endogenous, strength=strength, direct=direct)
    release = dpgram.release(
        table, schema_of(table), epsilon=epsilon, delta=1e-6, mechanism=mechanism, insecure_seed=seed % 2**31
    )
    excluded, features = (" + ".join(name for name in table if name[0] == kind) for kind in "zx")
    test = prepared(release, f"y ~ w + [{features} ~ {excluded}]", estimator)
    centre, se = test.of.own_units(test.at.b), standard_errors(test.of, test.at.covariance)
    values = [0 * centre, *(centre + sign * size * se for size in 10.0 ** np.arange(-2, 5) for sign in (-1, 1))]
    for method in ("auto", BY_TEST):
        sets = confidence_sets(test, confidence, method)
        for one in sets:
            ends = np.ravel(one.pieces)
            assert np.array_equal(ends, np.sort(ends))
            assert not np.isnan(ends).any()
        for value in values:
            p = p_values(test, method, value)
            near = np.abs(p - (1 - confidence)) < 1e-3 * (1 - confidence)
            inside = np.array([any(low <= at <= high for low, high in one.pieces) for at, one in zip(value, sets, strict=True)])
            assert (near | (inside == (p >= 1 - confidence))).all()


def test_a_p_value_and_its_set_agree():
    table = made_up(6000, strength=0.4)
    test = prepared(seen_through(NOISES["gaussian"], table, schema_of(table), seed=3))
    assert 0 < test.strength < STRONG
    for method in (BY_TEST, WALD):
        sets = confidence_sets(test, 0.9, method)
        for end in ("lower", "upper"):
            ends = np.array([getattr(one, end) for one in sets])
            known = np.isfinite(ends)
            assert known[-1]
            assert p_values(test, method, np.where(known, ends, 0.0))[known] == pytest.approx(0.1, rel=1e-3)


def test_strong_instruments_get_wald_and_weak_ones_do_not():
    strong, weak = silent(made_up(strength=1.0)), silent(made_up(strength=0.1))
    assert strong.strength > STRONG > weak.strength
    assert {one.method for one in confidence_sets(strong, 0.95)} == {WALD}
    assert confidence_sets(weak, 0.95)[-1].method == BY_TEST


def test_where_instruments_are_strong_both_sets_agree():
    test = silent(made_up(rows=20_000, strength=1.5, instruments=1), "y ~ w + [x0 ~ z0]")
    for by_wald, by_test in zip(confidence_sets(test, 0.95, WALD), confidence_sets(test, 0.95, BY_TEST), strict=True):
        assert by_test.pieces[0] == pytest.approx(by_wald.pieces[0], abs=0.05 * (by_wald.upper - by_wald.lower))


DRAWS = 300


@pytest.mark.parametrize("noise", ["gaussian", "shifted", "wishart", "inverse-wishart", "noisy-inverse"])
def test_the_statistic_at_the_truth_is_chi_square(noise):
    """Noise alone: the table's own errors are orthogonal to its instruments, and sampling is told to be nil.

    With 300 draws of 4 degrees of freedom the mean lies within 0.9 of 4 (5.5 standard errors), with a chance of 4e-8 to the contrary."""
    table = made_up(8000, instruments=2, strength=1.0)
    z = np.column_stack([np.ones(8000), table["w"], table["z0"], table["z1"]])
    errors = table["y"] - 0.5 * table["x0"]
    table["y"] = 0.5 * table["x0"] + errors - z @ np.linalg.lstsq(z, errors, rcond=None)[0]
    schema = schema_of(table)
    gram, source = true_gram(table, schema), SeededSource(7)
    asked, law = instrumented(schema, "y ~ w + [x0 ~ z0 + z1]"), NOISES[noise]
    drawn = []
    for _ in range(DRAWS):
        made = Evidence.made(schema, gram, law, 8000).published_again(gram, source)
        seen = conditions(Evidence.made(schema, made, law, 8000).assuming(1e-9), asked)
        test = Test(seen, estimate(seen))
        b = np.linalg.solve(seen.to_own, np.array([0.0, 0.0, 0.5]) - seen.base)
        drawn.append(test.statistic.at(seen.errors(b)[None])[0])
    assert np.mean(drawn) == pytest.approx(4.0, abs=0.9)
    assert math.isfinite(max(drawn))


def test_tiny_budgets_say_that_nothing_is_known():
    table = made_up(500)
    release = dpgram.release(table, schema_of(table), epsilon=0.01, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    sets = confidence_sets(prepared(release), 0.95)
    assert not sets[-1].bounded
    assert all(one.method == BY_TEST for one in sets)
