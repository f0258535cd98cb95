"""Regression from a release: exact where the noise is nil, in own units, with clear refusals."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpgram
from dpgram.engines.local import LocalPass
from dpgram.errors import IndefiniteGramError, ModelError, UnknownColumnError
from dpgram.linalg.symmetric import log_det_repair
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, hold
from dpgram.sampling.seeded import SeededSource
from dpgram.sources.open import open_source
from dpgram.terms.noise import SymmetricGaussian
from tests.conftest import small_schema, small_table

TABLE = small_table(rows=3000)


def noiseless(schema, table=TABLE):
    """A release whose Gram is the true one and whose noise is next to nothing: what the regression makes of it is exact."""
    release = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    true = LocalPass(open_source(table), schema).gram(schema.effective_row_bound).in_scaled_units()
    return dataclasses.replace(release, gram=true, noise=SymmetricGaussian.orthogonal(1e-6))


def columns_in_own_units():
    x, y, b = (TABLE[name].to_numpy().astype(float) for name in ("x", "y", "b"))
    c = TABLE["c"].to_numpy()
    return {"(intercept)": np.ones(len(x)), "x": x, "y": y, "c[b]": (c == "b") * 1.0, "c[other]": (c == "z") * 1.0, "b": b}


def least_squares(names, target):
    own = columns_in_own_units()
    return np.linalg.lstsq(np.column_stack([own[name] for name in names]), own[target], rcond=None)[0]


@pytest.mark.parametrize("estimator", ["shrunk", "debiased", "log-det", "plain"])
@pytest.mark.parametrize(
    ("target", "features", "names"),
    [
        ("y", None, ("(intercept)", "x", "c[b]", "c[other]", "b")),
        ("y", ["x"], ("(intercept)", "x")),
        ("x", ["b", "y"], ("(intercept)", "b", "y")),
        ("b", ["c", "x"], ("(intercept)", "c[b]", "c[other]", "x")),
        ("c[b]", None, ("(intercept)", "x", "y", "b")),
        ("y", ["c[other]"], ("(intercept)", "c[other]")),
        ("y", [], ("(intercept)",)),
    ],
)
def test_any_target_and_subset_agrees_with_least_squares_on_the_rows(estimator, target, features, names):
    fit = dpgram.regress(noiseless(small_schema()), target, features, estimator=estimator)
    assert fit.names == names
    assert fit.coefficients == pytest.approx(least_squares(names, target), rel=1e-4, abs=1e-5)
    assert fit.estimates[names[0]] == fit.coefficients[0]
    assert list(fit.params) == pytest.approx(least_squares(names, target), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("with_column", [True, False])
def test_without_an_intercept_the_fit_goes_through_the_origin_of_own_units(with_column):
    release = noiseless(small_schema(intercept=with_column))
    fit = dpgram.regress(release, "y", ["x", "c", "b"], intercept=False)
    assert fit.names == ("x", "c[b]", "c[other]", "b")
    assert fit.coefficients == pytest.approx(least_squares(fit.names, "y"), rel=1e-4, abs=1e-5)


def test_a_release_without_an_intercept_column_fits_without_one():
    release = noiseless(small_schema(intercept=False))
    assert dpgram.regress(release, "y", ["x"]).names == ("x",)
    with pytest.raises(ModelError, match="made without an intercept column"):
        dpgram.regress(release, "y", ["x"], intercept=True)
    with pytest.raises(ModelError, match="has no feature and no intercept"):
        dpgram.regress(release, "y", [])


def sds(fit):
    """The privacy noise's part of each standard error."""
    return fit.bse_privacy.to_numpy()


def test_log_det_and_plain_agree_when_noise_is_small(small_release):
    log_det, plain = (dpgram.regress(small_release, "y", ["x", "b"], estimator=e) for e in ("log-det", "plain"))
    assert (np.abs(log_det.coefficients - plain.coefficients) < sds(plain)).all()


def test_a_private_fit_is_close_to_the_truth(small_release):
    fit = dpgram.regress(small_release, "y")
    truth = least_squares(fit.names, "y")
    assert np.abs(fit.coefficients - truth).max() < 5 * sds(fit).max()


def indefinite(release):
    return dataclasses.replace(release, gram=release.gram - 1e4 * np.eye(len(release.gram)))


def test_plain_refuses_what_is_not_positive_definite(small_release):
    with pytest.raises(IndefiniteGramError, match="not positive definite on the chosen features.*Use estimator='log-det'"):
        dpgram.regress(indefinite(small_release), "y", estimator="plain")


@pytest.mark.parametrize("estimator", ["shrunk", "debiased", "log-det", "ridge", "lasso", "elastic-net"])
def test_all_but_plain_always_have_an_answer(small_release, estimator):
    fit = dpgram.regress(indefinite(small_release), "y", estimator=estimator)
    assert np.isfinite(fit.coefficients).all()
    assert np.isfinite(list(fit.params)).all()


def test_plain_asks_only_about_the_chosen_columns(small_release):
    gram = small_release.gram.copy()
    b = small_release.columns.index("b")
    gram[b, b] = -1.0
    bent = dataclasses.replace(small_release, gram=gram)
    assert dpgram.regress(bent, "y", ["x"], estimator="plain").estimates.to_dict() == pytest.approx(
        dpgram.regress(small_release, "y", ["x"], estimator="plain").estimates.to_dict()
    )


@pytest.mark.parametrize(
    ("target", "features", "error", "message"),
    [
        ("z", None, UnknownColumnError, "no column 'z'.*The columns are 'x', 'y', 'c', 'b'"),
        ("y", ["xx"], UnknownColumnError, "no column 'xx'. Did you mean 'x'"),
        (None, None, ModelError, "^the name of a column must be text, such as 'age', but it is None"),
        ("y", [1], ModelError, "^the name of a column must be text, such as 'age', but it is 1"),
        ("y", 3, ModelError, "features is 3 and must be a list"),
        ("y", ["x", "y"], ModelError, "'y' is the target, so it cannot be a feature too"),
        ("y", ["x", "x"], ModelError, "feature 'x' is named twice"),
        ("y", ["c", "c[b]"], ModelError, r"feature 'c\[b\]' is named twice"),
        ("y", "x", ModelError, "features is 'x' and must be a list"),
        ("c", None, ModelError, r"'c' has several levels, so it cannot be a target.*c\[b\], c\[other\]"),
        ("(intercept)", None, ModelError, "cannot be a target"),
        ("y", ["(intercept)"], ModelError, "is not a feature"),
        ("y", ["c[a]"], ModelError, r"'c\[a\]' is the reference level.*Name 'c' for all levels, or one of c\[b\]"),
    ],
)
def test_what_a_release_cannot_answer(small_release, target, features, error, message):
    with pytest.raises(error, match=message):
        dpgram.regress(small_release, target, features)


def test_other_mistakes_of_the_call(small_release):
    with pytest.raises(ModelError, match="release is a str and must be a GramRelease. Use dpgram.load"):
        dpgram.regress("release.json", "y")
    with pytest.raises(ModelError, match="intercept is 'no' and must be"):
        dpgram.regress(small_release, "y", intercept="no")


def test_weak_identification_is_said(small_release):
    weak = dpgram.release(small_table(60), small_schema(), epsilon=0.5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    for release, cautious in ((small_release, False), (weak, True)):
        fit = dpgram.regress(release, "y", ["x"])
        assert ("Not identified at this budget: " in " ".join(fit.notes)) == cautious
        assert ("ot identified at this budget" in str(fit.summary())) == cautious


def test_unknown_estimators_and_options_are_refused(small_release):
    with pytest.raises(ModelError, match="no estimator named 'ols'. Use one of shrunk, debiased, log-det, plain, ridge, lasso"):
        dpgram.regress(small_release, "y", estimator="ols")
    with pytest.raises(ModelError, match="'shrunk' has no option 'penalty'. It has no options"):
        dpgram.regress(small_release, "y", penalty=1.0)
    with pytest.raises(ModelError, match="penalty is -1 and must be a finite number of at least 0"):
        dpgram.regress(small_release, "y", estimator="ridge", penalty=-1)


SYMMETRIC = st.integers(1, 6).flatmap(
    lambda d: arrays(float, (d, d), elements=st.floats(-1e6, 1e6)).map(lambda a: (a + a.T) / 2)
)


@given(matrix=SYMMETRIC, sd=st.floats(1e-2, 1e3))
def test_the_repair_is_positive_definite_and_solves_its_equation(matrix, sd):
    """The mode of the posterior: S - matrix = 2 strength d sd^2 S^-1."""
    repaired = log_det_repair(matrix, sd)
    values, old = np.linalg.eigvalsh(repaired), np.linalg.eigvalsh(matrix)
    assert values[0] > -1e-9 * np.abs(old).max()
    lift = 2 * 0.25 * len(matrix) * sd**2
    exact = np.sort((old + np.sqrt(old**2 + 4 * lift)) / 2)
    assert values == pytest.approx(exact, rel=1e-6, abs=1e-7 * max(1, np.abs(old).max()))


def test_log_det_is_the_formula_of_the_whole_matrix():
    """Eigenvalues become (w + sqrt(w^2 + 4 a d s^2)) / 2 with s = t sqrt(2), a = 1/4."""
    t, d = 3.0, 5
    matrix = np.diag([100.0, 10.0, 1.0, -1.0, -10.0])
    w = np.diag(matrix)
    expected = (w + np.sqrt(w**2 + 4 * 0.25 * d * (t * np.sqrt(2)) ** 2)) / 2
    assert np.diag(log_det_repair(matrix, t)) == pytest.approx(expected)


def test_the_noise_sd_is_that_of_repeated_releases():
    """First-order sd against 400 releases with different seeds; the ratio has a standard error of 3.5 %."""
    schema = small_schema()
    fits = []
    for seed in range(400):
        release = dpgram.release(TABLE, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=seed)
        fits.append(dpgram.regress(release, "y", ["x", "b"]))
    spread = np.std([list(fit.params) for fit in fits], axis=0)
    predicted = np.mean([sds(fit) for fit in fits], axis=0)
    assert spread == pytest.approx(predicted, rel=0.2)


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("gaussian-sketch", {"sketch_rows": 400.0}),
        ("inverse-wishart", {"degrees_of_freedom": 400.0}),
        ("wishart-noise", {"scale": 1.0, "degrees_of_freedom": 500.0}),
    ],
)
def test_the_noise_sd_follows_the_noise_model(mechanism, options):
    """The same for noise of other shapes, 80 draws each on the Gram of thirty such tables: the ratio has a standard error of 8 %."""
    schema = small_schema()
    release = dpgram.release(TABLE, schema, epsilon=5, delta=1e-6, mechanism=mechanism, insecure_seed=0, **options)
    true = 30 * LocalPass(open_source(TABLE), schema).gram(schema.effective_row_bound).in_scaled_units()
    chosen = registry.find(mechanism)
    asked = registry.task(chosen, release.budget, schema.neighbours, len(true), release.row_bound, options=options)
    fits = []
    for seed in range(80):
        outcome = hold(chosen.start(asked, SeededSource(seed)), lambda question: GramAnswer(true, 90_000))
        drawn = dataclasses.replace(release, gram=outcome.gram, noise=outcome.noise)
        fits.append(dpgram.regress(drawn, "y", ["x", "b"]))
    spread = np.std([list(fit.params) for fit in fits], axis=0)
    predicted = np.median([sds(fit) for fit in fits], axis=0)
    assert spread == pytest.approx(predicted, rel=0.35)


def test_log_det_takes_off_the_public_shift():
    """The sketch's ridge pulls the plain fit towards zero; the default estimator knows it and takes it off."""
    schema = small_schema(neighbours="add-remove")
    release = dpgram.release(
        TABLE, schema, epsilon=20, delta=1e-2, mechanism="gaussian-sketch", sketch_rows=1e5, insecure_seed=3
    )
    truth = least_squares(("(intercept)", "x", "b"), "y")
    shrunk, corrected = (dpgram.regress(release, "y", ["x", "b"], estimator=e).coefficients for e in ("plain", "log-det"))
    assert np.linalg.norm(corrected - truth) < np.linalg.norm(shrunk - truth) / 2


def test_one_column_alone():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)])
    release = dpgram.release(
        {"x": np.full(2000, 0.75)}, schema, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1
    )
    assert dpgram.regress(release, "x").params["(intercept)"] == pytest.approx(0.75, abs=0.02)


def test_duplicate_and_constant_columns_have_an_answer():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(n, -3, 3) for n in ("a", "twin", "constant", "y")])
    rng = np.random.default_rng(0)
    a = rng.normal(size=5000)
    table = {"a": a, "twin": a, "constant": np.ones(5000), "y": a + rng.normal(size=5000)}
    release = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=2)
    fit = dpgram.regress(release, "y")
    assert np.isfinite(fit.coefficients).all()
    assert fit.estimates["a"] + fit.estimates["twin"] == pytest.approx(1.0, abs=0.15)
