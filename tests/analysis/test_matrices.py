"""Means, covariance, correlations and components: those of the rows where noise is nil, and always an answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.evidence.evidence import Evidence
from dpgram.mechanisms.registry import MECHANISMS
from tests.analysis.test_fit import released
from tests.conftest import small_schema, small_table
from tests.regression.test_regress import columns_in_own_units, noiseless

NAMES = ("x", "y", "c[b]", "c[other]", "b")


@pytest.fixture(scope="module")
def exact():
    return noiseless(small_schema())


@pytest.fixture(scope="module")
def own():
    columns = columns_in_own_units()
    return np.column_stack([columns[name] for name in NAMES])


def test_they_are_those_of_the_rows_when_noise_is_nil(exact, own):
    found = dpgram.covariance(exact)
    n = len(own)
    covariance, correlation = np.cov(own.T, bias=True), np.corrcoef(own.T)
    precision = np.linalg.inv(covariance)
    partial = -precision / np.sqrt(np.outer(np.diag(precision), np.diag(precision)))
    np.fill_diagonal(partial, 1.0)
    assert found.names == NAMES
    assert found.mean == pytest.approx(own.mean(axis=0), rel=1e-4, abs=1e-4)
    assert found.covariance == pytest.approx(covariance, rel=1e-4, abs=1e-4)
    assert found.correlation == pytest.approx(correlation, rel=1e-4, abs=1e-4)
    assert found.partial_correlation == pytest.approx(partial, rel=1e-3, abs=1e-3)
    assert found.errors.mean == pytest.approx(own.std(axis=0) / np.sqrt(n), rel=1e-3)
    normal = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
    assert found.errors.covariance == pytest.approx(normal, rel=1e-2)
    off = ~np.eye(5, dtype=bool)
    assert found.errors.correlation[off] == pytest.approx(((1 - correlation**2) / np.sqrt(n))[off], rel=1e-2)
    assert (np.diag(found.errors.correlation) == 0).all()


def noise_variance(release, form):
    """Variance of tr(E form), E the privacy noise on the whole matrix and ``form`` symmetric; first order where noise multiplies."""
    noise = release.noise
    if np.isfinite(noise.degrees_of_freedom):
        turned = form @ release.gram
        return float(2 * np.trace(turned @ turned) / noise.degrees_of_freedom)
    evidence = Evidence.of(release)
    seen = evidence.seen_by_noise(np.eye(len(form)))
    form, off, on = seen.T @ form @ seen, evidence.law.sd_off_diagonal, evidence.law.noise.sd_diagonal
    return float(2 * off**2 * np.sum(form**2) + (on**2 - 2 * off**2) * np.sum(np.diag(form) ** 2))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_standard_errors_are_the_noise_variance_of_each_form(mechanism):
    release = released(mechanism, epsilon=2.0)
    found = dpgram.covariance(release)
    rows, unit = found.rows, np.eye(len(release.columns))
    encoded = [release.schema.encoded[release.columns.index(name)] for name in found.names]
    half = np.array([e.half for e in encoded])
    middle = (found.mean - np.array([e.centre for e in encoded])) / half
    about = np.array([unit[release.columns.index(name)] - m * unit[0] for name, m in zip(NAMES, middle, strict=True)])
    size, r = found.sd / half, found.correlation
    for i, j in ((0, 1), (1, 3), (2, 4), (2, 2)):
        form = (np.outer(about[i], about[j]) + np.outer(about[j], about[i])) / 2
        scaled = noise_variance(release, form) / rows**2 + (size[i] * size[j]) ** 2 * (1 + r[i, j] ** 2) / rows
        assert found.errors.covariance[i, j] == pytest.approx(half[i] * half[j] * np.sqrt(scaled), rel=1e-6)
        if i != j:
            a, b = about[i] / size[i], about[j] / size[j]
            form = (np.outer(a, b) + np.outer(b, a)) / 2 - r[i, j] / 2 * (np.outer(a, a) + np.outer(b, b))
            wanted = noise_variance(release, form) / rows**2 + (1 - r[i, j] ** 2) ** 2 / rows
            assert found.errors.correlation[i, j] == pytest.approx(np.sqrt(wanted), rel=1e-6)
        form = (np.outer(unit[0], about[i]) + np.outer(about[i], unit[0])) / 2
        wanted = noise_variance(release, form) / rows**2 + size[i] ** 2 / rows
        assert found.errors.mean[i] == pytest.approx(half[i] * np.sqrt(wanted), rel=1e-6)


def test_components_are_those_of_the_rows_when_noise_is_nil(exact, own):
    for standardise, matrix in ((False, np.cov(own.T, bias=True)), (True, np.corrcoef(own.T))):
        found = dpgram.pca(exact, standardise=standardise)
        values = np.linalg.eigvalsh(matrix)[::-1]
        assert found.variances == pytest.approx(values, rel=1e-3, abs=1e-4)
        assert found.shares.sum() == pytest.approx(1)
        assert found.loadings @ found.loadings.T == pytest.approx(np.eye(5), abs=1e-9)
        assert np.diag(found.loadings @ matrix @ found.loadings.T) == pytest.approx(values, rel=1e-3, abs=1e-3)
        assert found.to_frame()["variance"].tolist() == found.variances.tolist()


def test_some_columns_only(exact):
    found = dpgram.covariance(exact, ["c", "x"])
    assert found.names == ("c[b]", "c[other]", "x")
    whole = dpgram.covariance(exact)
    assert found.covariance[2, 2] == pytest.approx(whole.covariance[0, 0])
    assert found.to_frame("correlation").loc["x", "c[b]"] == found.correlation[2, 0]
    assert dpgram.pca(exact, ["x"]).shares.tolist() == [1.0]
    with pytest.raises(UnknownColumnError):
        dpgram.covariance(exact, ["q"])
    with pytest.raises(ModelError, match="the list of columns is empty"):
        dpgram.covariance(exact, [])
    with pytest.raises(ModelError, match="release is a str and must be a GramRelease"):
        dpgram.pca("release.json")
    with pytest.raises(ModelError, match="need the intercept column"):
        dpgram.covariance(released(intercept=False))
    with pytest.raises(ModelError, match="kind is 'kendall' and must be one of covariance, correlation, partial"):
        dpgram.covariance(exact).summary("kendall")
    with pytest.raises(ModelError, match="no common scale, so they cannot be drawn"):
        dpgram.covariance(exact).plot("covariance")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("rows", "epsilon"), [(4000, 5.0), (2, 5.0), (60, 0.01)])
def test_they_always_have_an_answer(mechanism, rows, epsilon):
    release = released(mechanism, rows, epsilon)
    for found in (dpgram.covariance(release), dpgram.pca(release), dpgram.pca(release, standardise=True)):
        json.dumps(found.to_dict(), allow_nan=False)
        text = str(found)
        assert "nan" not in text
        assert "NOT PRIVATE" in text
        assert "NOT PRIVATE" in found._repr_html_()
        assert mechanism in text
    matrix = dpgram.covariance(release)
    for kind in ("correlation", "partial"):
        assert (np.abs(matrix.matrix(kind)) <= 1).all()
        assert (np.diag(matrix.matrix(kind)) == 1).all()
        assert "nan" not in str(matrix.summary(kind))


def test_a_condition_of_the_guarantee_is_said():
    release = released("noisy-inverse")
    for found in (dpgram.covariance(release), dpgram.pca(release)):
        assert "CONDITIONAL" in str(found)


def test_that_whitened_rows_were_weighed_is_said():
    """A few long rows that count for less can be most of a variance, while the share kept of all rows is nearly one."""
    for mechanism in ("gaussian-noise", "whitened-noise"):
        for found in (dpgram.covariance(released(mechanism)), dpgram.pca(released(mechanism))):
            said = " ".join(str(found).split())
            assert ("The standard errors do not include the bias that this can cause." in said) == (
                mechanism == "whitened-noise"
            )
            assert any("count for less" in note for note in found.to_dict()["notes"]) == (mechanism == "whitened-noise")


def test_a_protected_number_of_rows_is_not_shown():
    release = released(neighbours="add-remove", epsilon=1.0)
    for found in (dpgram.covariance(release), dpgram.pca(release)):
        assert "protected" in str(found)
        assert "4,000" not in str(found)
        assert found.to_dict()["rows"] is None


def test_the_number_of_components_shown(exact):
    found = dpgram.pca(exact)
    assert "component 5" in str(found)
    assert "component 3" not in str(found.summary(2))
    assert "component 5" in str(found.summary(99))
    for wrong in (0, -1, True, 1.5):
        with pytest.raises(ModelError, match="components is .* and must be"):
            found.summary(wrong)


def test_two_hundred_columns_take_seconds_at_most():
    """Errors of 20,000 covariances without a loop; the time itself is not asserted, but a loop would be noticed."""
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.normal(size=300) for j in range(200)}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -4, 4) for name in table])
    release = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    assert np.isfinite(dpgram.covariance(release).errors.correlation).all()
    fit = dpgram.regress(release, "x0")
    assert len(fit.not_identified) == 200
    json.dumps(fit.to_dict(), allow_nan=False)


def test_units_are_only_units():
    table = small_table()
    schema = small_schema()
    big = dpgram.Schema(unit="person", columns=[dpgram.Numeric("x", -5e12, 5e12), *schema.columns[1:]])
    table_big = table.set_column(0, "x", [np.array(table["x"]) * 1e12])
    ours, theirs = (dpgram.covariance(dpgram.release(t, s, epsilon=5, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)) for t, s in
                    ((table, schema), (table_big, big)))  # fmt: skip
    assert theirs.correlation == pytest.approx(ours.correlation, abs=1e-6)
    assert theirs.partial_correlation == pytest.approx(ours.partial_correlation, abs=1e-6)
    assert theirs.errors.correlation == pytest.approx(ours.errors.correlation, rel=1e-5)
