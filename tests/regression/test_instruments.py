"""Estimates with instruments: those of the table where there is no noise, without bias where there is, and what formulas may say."""

from __future__ import annotations

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.anderson_rubin import standard_errors
from dpgram.regression.formula import designs, instrumented
from dpgram.regression.instruments import conditions, estimate
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SymmetricGaussian
from tests.instrumented import Textbook, made_up, schema_of
from tests.releases import NOISES, SILENT, seen_through, true_gram

FORMULA = "y ~ w + [x0 ~ z0 + z1 + z2]"


def seen(release, formula=FORMULA, estimator="2sls"):
    evidence = Evidence.of(release)
    found = conditions(evidence, instrumented(evidence.schema, formula), estimator)
    return found, estimate(found, estimator)


@pytest.mark.parametrize("estimator", ["2sls", "liml"])
@pytest.mark.parametrize("noise", SILENT)
def test_without_noise_it_is_the_textbook(noise, estimator):
    table = made_up()
    book = Textbook(table, ["w"], ["x0"], ["z0", "z1", "z2"])
    kappa = book.kappa if estimator == "liml" else 1.0
    b, se = book.fit(kappa)
    found, at = seen(seen_through(SILENT[noise], table, schema_of(table)), estimator=estimator)
    assert found.own_units(at.b) == pytest.approx(b, rel=2e-5)
    assert standard_errors(found, at.covariance) == pytest.approx(se, rel=2e-5)
    assert at.kappa == pytest.approx(kappa, rel=1e-6)


def test_several_endogenous_regressors_no_intercept_and_levels():
    table = made_up(endogenous=2, instruments=4)
    group = np.random.default_rng(5).integers(0, 3, len(table["y"]))
    names = ["y", "x0", "x1", "w", "z0", "z1", "z2", "z3"]
    columns = [*(dpgram.Numeric(name, -6, 7) for name in names), dpgram.Categorical("g", ["a", "b", "c"])]
    schema = dpgram.Schema(unit="person", columns=columns)
    full = {**{name: table[name] for name in names}, "g": np.array(["a", "b", "c"])[group]}
    release = seen_through(SILENT["gaussian"], full, schema)
    rows = {**table, "gb": (group == 1) * 1.0, "gc": (group == 2) * 1.0}
    z = ["z0", "z1", "z2", "z3"]
    cases = {
        "y ~ w + [x0 + x1 ~ z0 + z1 + z2 + z3]": Textbook(rows, ["w"], ["x0", "x1"], z),
        "y ~ [x0 ~ z0] - 1": Textbook(rows, [], ["x0"], ["z0"], intercept=False),
        "y ~ -1 + w + [x0 ~ z0]": Textbook(rows, ["w"], ["x0"], ["z0"], intercept=False),
        "y ~ 1 + g + [x0 ~ z0 + z1]": Textbook(rows, ["gb", "gc"], ["x0"], ["z0", "z1"]),
        "y ~ w + [x0 ~ g + z0]": Textbook(rows, ["w"], ["x0"], ["gb", "gc", "z0"]),
        "y ~ [x0 ~ z0] + w": Textbook(rows, ["w"], ["x0"], ["z0"]),
    }
    for formula, book in cases.items():
        found, at = seen(release, formula)
        b, se = book.fit()
        assert found.own_units(at.b) == pytest.approx(b, rel=1e-4, abs=1e-5), formula
        assert standard_errors(found, at.covariance) == pytest.approx(se, rel=1e-4), formula


DRAWS, ROWS, SD = 400, 20_000, 45.0


def test_noise_does_not_bias_what_is_projected_nor_the_estimate():
    """Many draws around one table. Without what is taken off, X'PX would be too large by 8 standard errors of the mean.

    A right mean lies within 5 standard errors but for a chance of 6e-7 in each of 13 numbers."""
    table = made_up(ROWS, instruments=4, strength=1.0)
    schema, formula = schema_of(table), "y ~ w + [x0 ~ z0 + z1 + z2 + z3]"
    gram = true_gram(table, schema)
    asked, exact = instrumented(schema, formula), SymmetricGaussian(0.0, 0.0)
    truth = conditions(Evidence.made(schema, gram, exact, ROWS), asked)
    noise, source = SymmetricGaussian.orthogonal(SD), SeededSource(3)
    drawn = [
        conditions(
            Evidence.made(schema, Evidence.made(schema, gram, noise, ROWS).published_again(gram, source), noise, ROWS), asked
        )
        for _ in range(DRAWS)
    ]
    upper = np.triu_indices(4)
    apart = np.array([(one.projected - truth.projected)[upper] for one in drawn])
    raw = np.array([(one.cross.T @ one.fitted - truth.projected)[upper] for one in drawn])
    error = apart.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(apart.mean(axis=0)) < 5 * error).all()
    assert (np.abs(raw.mean(axis=0)) > 8 * error).any()
    b = np.array([estimate(one).b for one in drawn]) - estimate(truth).b
    stated = np.sqrt(np.mean([np.diag(estimate(one).noise) for one in drawn], axis=0))
    error = b.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(b.mean(axis=0)) < 5 * error).all()
    assert b.std(axis=0) == pytest.approx(stated, rel=0.15)


@pytest.mark.parametrize("noise", NOISES)
def test_every_kind_of_noise_is_served(noise):
    table = made_up(8000, instruments=2, strength=1.0)
    found, at = seen(seen_through(NOISES[noise], table, schema_of(table), seed=4), "y ~ w + [x0 ~ z0 + z1]")
    b, _ = Textbook(table, ["w"], ["x0"], ["z0", "z1"]).fit()
    se = standard_errors(found, at.noise)
    assert (se > 0).all()
    assert (np.abs(found.own_units(at.b) - b) < 4.5 * se).all()


def test_a_matrix_that_noise_hides_is_refused():
    table = made_up(300)
    release = dpgram.release(
        table, schema_of(table), epsilon=0.1, delta=1e-6, mechanism="noisy-inverse", rho=0.01, insecure_seed=0
    )
    with pytest.raises(ModelError, match="instruments cannot be used"):
        seen(release)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ w + x0", "has no endogenous regressor with instruments"),
        ("y ~ w + [x0 ~ w]", "'w' is an exogenous regressor, so it cannot be an instrument too"),
        ("y ~ w + [x0 ~ x0]", "'x0' is an endogenous regressor, so it cannot be an instrument too"),
        ("y ~ x0 + [x0 ~ z0]", "'x0' is an exogenous regressor, so it cannot be an endogenous regressor too"),
        ("y ~ w + [x0 ~ y]", "'y' is the target, so it cannot be an instrument too"),
        ("y ~ w + [y ~ z0]", "'y' is the target, so it cannot be an endogenous regressor too"),
        ("y ~ y + [x0 ~ z0]", "'y' is the target, so it cannot be an exogenous regressor too"),
        ("y ~ [x0 + w ~ z0]", "2 endogenous regressors (x0, w) but only 1 instrument (z0)"),
        ("y ~ w + [x0 ~ 1]", "names no instrument"),
        ("y ~ w + [x0 ~ ]", "the formula 'y ~ w + [x0 ~ ]' names no instrument"),
        ("y ~ w + [ ~ z0]", "the formula 'y ~ w + [ ~ z0]' names no endogenous regressor"),
        ("y ~ w + [1 ~ z0]", "names no endogenous regressor"),
        (" ~ [x0 ~ z0]", "the formula ' ~ [x0 ~ z0]' names no target"),
        ("y ~ w + [x0]", "the formula 'y ~ w + [x0]' has no ~ in its square brackets"),
        ("y ~ w + []", "has no ~ in its square brackets"),
        ("y ~ w + [x0 ~ y]", "'y' is the target, so it cannot be an instrument too. Name only"),
        ("y ~ w + [x0]", "has no ~"),
        ("y ~ [x0 ~ z0] + [w ~ z1]", "must have one part in square brackets"),
        ("[x0 ~ z0]", "wrong place"),
        ("y + z1 ~ w + [x0 ~ z0]", "2 targets"),
        ("y ~ w [x0 ~ z0]", "wrong place"),
        ("y ~ w - [x0 ~ z0]", "wrong place"),
        ("y ~ w * [x0 ~ z0]", "wrong place"),
        ("y ~ [x0 ~ z0] w", "Put a + between them"),
        ("y ~ w + [x0 ~ z0", "must have one part in square brackets"),
        ("y ~ w + [x0*w ~ z0]", "cannot be an endogenous regressor too"),
        ("y ~ . + [x0 ~ z0]", "so it cannot be"),
        (3, "must be text"),
    ],
)
def test_what_a_formula_may_not_say(formula, words):
    with pytest.raises(ModelError) as caught:
        instrumented(schema_of(made_up(10)), formula)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_name_comes_with_a_suggestion():
    with pytest.raises(UnknownColumnError, match=r"'zo'.*'z0'"):
        instrumented(schema_of(made_up(10)), "y ~ w + [x0 ~ zo]")


def test_an_ordinary_formula_points_to_instruments():
    with pytest.raises(ModelError, match="use iv"):
        designs(schema_of(made_up(10)), FORMULA)


def test_a_release_without_an_intercept_column():
    table = made_up(4000)
    release = seen_through(SILENT["gaussian"], table, schema_of(table, intercept=False))
    with pytest.raises(ModelError, match="Add - 1"):
        seen(release)
    found, at = seen(release, "y ~ w + [x0 ~ z0 + z1] - 1")
    assert found.own_units(at.b) == pytest.approx(
        Textbook(table, ["w"], ["x0"], ["z0", "z1"], intercept=False).fit()[0], rel=1e-4
    )
