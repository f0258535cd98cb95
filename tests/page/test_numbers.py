"""The page's numbers are Python's, to 1e-8: every mechanism, both neighbour relations, weak and strong models."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.inference.moments import moment_errors
from dpgram.regression.moments import moments
from dpgram.report.page.data import page_data
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import InverseWishartSample, SymmetricGaussian, WishartSample
from tests.page.node import evaluate
from tests.page.releases import CELLS, MECHANISMS, every_kind, release_of, table, tailed_release, with_holes
from tests.releases import hidden_number_release, matrix_release, pass_through, rare_release, whitened_release

pytestmark = pytest.mark.system("nodejs")
CLOSE = 1e-8
STRONG, WEAK = ["age", "region", "urban", "hour"], None
ENCODED = {"age": 41.5, "weight": 70.0, "region": 1, "urban": 1, "seen": 18764.5625}  # as the script has CELLS
BLANK = {"age": None, "weight": None, "region": None, "urban": None, "seen": None}
FAR = {**ENCODED, "age": 500.0, "seen": -3.0}
CASES = [
    ("cost", STRONG, {}),
    ("cost", WEAK, {}),
    ("cost", ["age"], {"confidence": 0.8}),
    ("cost", STRONG, {"intervals": "fieller"}),
    ("cost", STRONG, {"intervals": "wald", "confidence": 0.99}),
    ("cost", ["age", "quarter", "in_summer", "age_urban", "region_weight", "log_weight", "age_squared"], {}),
    ("region[west]", ["age", "cost"], {}),
    ("cost", [], {}),
    ("cost", ["age", "urban"], {"intercept": False}),
]


def close(found, wanted, what, scale=None):
    """Equal to 1e-8 of the number, or of ``scale`` where a number is a difference of larger ones."""
    wanted = math.inf if wanted is None else wanted
    found = float(found) if found is not None else math.inf
    if math.isnan(wanted):
        assert math.isnan(found), f"{what}: {found} and {wanted}"
        return
    if math.isinf(wanted) or math.isinf(found):
        assert abs(found) == abs(wanted), f"{what}: {found} and {wanted}"
        return
    assert abs(found - wanted) <= CLOSE * max(abs(wanted), scale or 0.0), f"{what}: {found!r} and {wanted!r}"


def compare(found: dict, fit: dpgram.Fit) -> None:
    wanted = fit.to_dict()
    assert [c["name"] for c in found["coefficients"]] == list(wanted["coefficients"])
    for one in found["coefficients"]:
        name, other = one["name"], wanted["coefficients"][one["name"]]
        assert one["identified"] == other["identified"], name
        assert one["interval"] == other["interval"], name
        close(one["se"], other["se"], f"se of {name}")
        for mine, theirs in (("coefficient", "coefficient"), ("shrunk", "shrunk"), ("lower", "lower"), ("upper", "upper")):
            close(one[mine], other[theirs], f"{mine} of {name}", scale=other["se"])
        close(one["seSampling"], other["se_sampling"], f"sampling of {name}", scale=other["se"])
        close(one["sePrivacy"], other["se_privacy"], f"privacy of {name}", scale=other["se"])
        close(one["seClipping"], other["se_clipping"], f"clipping of {name}", scale=other["se"])
        close(one["z"], other["z"], f"z of {name}", scale=1.0)
        assert one["pValue"] == pytest.approx(other["p_value"], rel=1e-6, abs=1e-13)
    spread = wanted["residual_variance"] or 1.0
    close(found["residualVariance"], wanted["residual_variance"], "residual variance")
    for mine, theirs in zip(found["residualVarianceInterval"], wanted["residual_variance_interval"], strict=True):
        close(mine, theirs, "its interval", scale=spread)
    if wanted["r_squared"] is None:
        assert found["rSquared"] is None
    else:
        close(found["rSquared"], wanted["r_squared"], "R^2", scale=1.0)
    for mine, theirs in zip(found["rSquaredInterval"], wanted["r_squared_interval"], strict=True):
        close(mine, theirs, "interval of R^2", scale=1.0)
    for mine, theirs in zip(found["jointTests"], wanted["joint_tests"], strict=True):
        for what in ("name", "degrees", "restrictions"):
            assert mine[what] == theirs[what]
        assert mine["statistic"] == pytest.approx(theirs["chi_square"], rel=1e-5)  # found by steps that stop at 1e-7
        assert mine["pValue"] == pytest.approx(theirs["p_value"], rel=1e-4, abs=1e-13)
    close(found["effectiveRows"], wanted["effective_rows"], "effective rows")
    close(found["countedRows"], wanted["counted_rows"], "rows that counted")
    close(found["designEffect"], wanted["design_effect"], "design effect")
    assert found["notes"] == wanted["notes"]


def compare_predictions(found: dict, fit: dpgram.Fit, cells: dict) -> None:
    frame = {name: [value] for name, value in cells.items()}
    mean, one = fit.predict(frame, interval="mean"), fit.predict(frame, interval="observation")
    scale = math.sqrt(fit.goodness.residual_variance) or 1.0
    close(found["prediction"], float(mean["prediction"][0]), "prediction", scale)
    close(found["debiased"], float(mean["debiased"][0]), "debiased prediction", scale)
    for which, wanted in (("mean", mean), ("observation", one)):
        reach = float(wanted["upper"][0]) - float(wanted["debiased"][0])
        for mine, end in zip(found[which], ("lower", "upper"), strict=True):
            close(mine, float(wanted[end][0]), f"{end} end for {which}", scale if math.isinf(reach) else max(scale, reach))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_fits_and_predictions_are_those_of_python(mechanism, neighbours):
    compare_all(release_of(mechanism, neighbours))


@pytest.mark.parametrize("units", [{}, {"unit_id": "id", "rows_per_unit": 3, "weight": "weight", "largest_weight": 200.0}])
def test_rows_that_count_for_less_and_cells_that_are_missing_are_as_in_python(units):
    release = release_of("gaussian-noise", "replace")
    changed = dataclasses.replace(
        release, schema=with_holes(**units), rows=None if units else 30_000, units=9000 if units else None
    )
    places = changed.schema.places
    new = [places["age"][1], places["seen"][1]]
    old = [j for j in range(len(changed.schema.encoded)) if j not in new]
    gram = np.diag([4000.0] * len(changed.schema.encoded))
    gram[np.ix_(old, old)] = release.gram
    gram[0, new] = gram[new, 0] = 4000.0
    fits = compare_all(dataclasses.replace(changed, gram=gram))
    assert {fit.design_effect > 1 for fit in fits} == {bool(units)}
    assert {fit.counted_rows[1] > 0 for fit in fits} == {True}


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_fits_of_a_release_in_rounds_are_those_of_python(neighbours):
    compare_all(whitened_release(table(), every_kind(neighbours), seed=3, mus=(2.0, 2.0, 8.0)))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("mus", [(2.0, 2.0, 8.0), (0.3, 0.3, 1.0), (4.0,)])
def test_fits_that_count_what_was_clipped_are_those_of_python(mus, neighbours):
    """With a large budget, a small one, and in one round, whose rows are not white."""
    fits = compare_all(tailed_release(neighbours, mus))
    assert all(se > 0 for fit in fits for se in fit.bse_clipping)
    methods = {row["interval"] for fit in fits if fit.intervals == "auto" for row in fit.to_dict()["coefficients"].values()}
    assert methods == {"wald", "fieller"}


def test_what_was_clipped_counts_as_in_python_without_an_intercept_too():
    """The regressors know nothing of the mean then. In one round its direction is orthogonal to theirs, but for rounding errors."""
    release = dpgram.release(table(5000, 1), every_kind(), epsilon=0.1, delta=1e-5, mechanism="whitened-noise", insecure_seed=1)
    asked = {
        "target": "seen",
        "features": ["urban", "region_weight", "in_summer"],
        "options": {"intercept": False},
        "cells": [],
    }
    (found,) = evaluate(page_data(release), [asked])["fits"]
    compare(found, dpgram.regress(release, "seen", asked["features"], intercept=False))


@pytest.mark.parametrize("wrong", [None, {"scales": [4.0, 4.0, 4.0]}, {"sizes": [1e-9, 1e-9, 1e-9]}])
def test_a_script_that_reads_outer_matrices_otherwise_is_noticed(wrong):
    release = tailed_release()
    data = page_data(release)
    data["evidence"]["tails"] = wrong and {**data["evidence"]["tails"], **wrong}
    (found,) = evaluate(data, [{"target": "cost", "features": STRONG, "options": {}, "cells": []}])["fits"]
    with pytest.raises(AssertionError, match="se of"):
        compare(found, dpgram.regress(release, "cost", STRONG))


def compare_all(release: dpgram.GramRelease) -> list[dpgram.Fit]:
    typed = [(ENCODED, CELLS), (FAR, {**CELLS, "age": 500.0, "seen": "1960-01-01"}), (BLANK, dict.fromkeys(CELLS))]
    cases, fits = [], []
    for target, features, options in CASES:
        fit = dpgram.regress(release, target, features, **options)
        fits.append(fit)
        columns = list(dict(fit.design.groups))
        cells = [{**encoded, "cost": 250.0} for encoded, _ in typed]
        cases.append({"target": target, "features": columns, "options": options, "cells": cells})
    found = evaluate(page_data(release), cases)
    for one, fit in zip(found["fits"], fits, strict=True):
        assert "error" not in one, one
        compare(one, fit)
        for prediction, (_, cells) in zip(one["predictions"], typed, strict=True):
            compare_predictions(prediction, fit, {**cells, "cost": 250.0})
    compare_moments(found["moments"], release)
    return fits


def compare_moments(found: dict, release: dpgram.GramRelease) -> None:
    wanted = moments(Evidence.of(release))
    errors = moment_errors(Evidence.of(release), wanted)
    assert found["names"] == list(wanted.names)
    np.testing.assert_allclose(found["mean"], wanted.mean, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(found["sd"], wanted.sd, rtol=CLOSE)
    np.testing.assert_allclose(found["correlation"], wanted.correlation, atol=CLOSE)
    np.testing.assert_allclose(found["se"], errors.correlation, rtol=1e-6, atol=CLOSE)


@pytest.mark.parametrize("sd", [3.0, 30.0, 80.0, 300.0, 1500.0])
@pytest.mark.parametrize("options", [{}, {"intervals": "fieller"}, {"confidence": 0.6}, {"confidence": 0.999}])
def test_levels_from_clear_to_hidden_are_as_in_python(sd, options):
    """Identification goes coefficient by coefficient, and joint tests leave out what is hidden."""
    for rare in (5, 60):
        release = rare_release(7, sd=sd, rare=rare)
        cases = [{"target": "y", "features": features, "options": options, "cells": []} for features in (["x", "c"], ["c"])]
        for found, case in zip(evaluate(page_data(release), cases)["fits"], cases, strict=True):
            compare(found, dpgram.regress(release, "y", case["features"], **options))


@pytest.mark.parametrize("options", [{}, {"intervals": "fieller", "confidence": 0.5}, {"confidence": 0.6}])
def test_what_is_assumed_of_a_hidden_number_is_as_in_python(options):
    for seed in range(4):
        release, _ = hidden_number_release(seed)
        case = {"target": "y", "features": ["x0", "x1", "x2"], "options": options, "cells": []}
        compare(evaluate(page_data(release), [case])["fits"][0], dpgram.regress(release, "y", case["features"], **options))


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "gaussian-sketch"])
def test_a_release_without_an_intercept_is_fitted_through_the_origin(mechanism):
    release = release_of(mechanism, "add-remove", intercept=False)
    fit = dpgram.regress(release, "cost", STRONG)
    found = evaluate(page_data(release), [{"target": "cost", "features": STRONG, "options": {}, "cells": [ENCODED]}])
    compare(found["fits"][0], fit)
    compare_predictions(found["fits"][0]["predictions"][0], fit, CELLS)
    assert found["moments"] is None


COMBINED = [
    ("cost", STRONG, {}, "age"),
    ("cost", STRONG, {"intervals": "fieller", "confidence": 0.8}, "urban"),
    ("cost", ["weight", "age", "region"], {"intervals": "wald"}, "region[west]"),
    ("cost", ["age", "urban"], {"intercept": False}, "age"),
]


def combined_cases(release: dpgram.GramRelease) -> None:
    """Contrasts of the last two slopes and of all coefficients, and a coefficient as the others enter."""
    cases, fits, moves = [], [], []
    for target, features, options, followed in COMBINED:
        fits.append(fit := dpgram.regress(release, target, features, **options))
        weights = [np.eye(len(fit.names))[-1] - np.eye(len(fit.names))[-2], np.arange(1.0, len(fit.names) + 1)]
        place = release.schema.encoded_names.index(followed)
        column = release.schema.encoded[place].column
        levels = [release.schema.encoded_names[j] for j in release.schema.places[column] if j != place]
        rest = [name for name in features if name != column]
        moves.append(dpgram.controls(release, target, followed, rest, features=levels, **options))
        told = {"contrasts": [list(one) for one in weights], "followed": [followed], "cells": []}
        cases.append({"target": target, "features": features, "options": options, **told})
    for found, fit, case, moved in zip(evaluate(page_data(release), cases)["fits"], fits, cases, moves, strict=True):
        assert "error" not in found, found
        tested = fit.t_test(np.array(case["contrasts"]))
        ends = np.asarray(tested.conf_int(confidence=fit.confidence))
        for k, one in enumerate(found["contrasts"]):
            scale = float(np.asarray(tested.sd)[k])
            close(one["se"], scale, "se of a contrast")
            close(one["estimate"], float(np.asarray(tested.effect)[k]), "a contrast", scale)
            for end, wanted in zip((one["lower"], one["upper"]), ends[k], strict=True):
                close(end, float(wanted), "its interval", scale)
            assert one["pValue"] == pytest.approx(float(np.asarray(tested.pvalue)[k]), rel=1e-5, abs=1e-13)
        (steps,) = found["steps"]
        for one, wanted in zip(steps, moved.steps, strict=True):
            for what in ("coefficient", "se", "lower", "upper"):
                close(one[what], getattr(wanted, what), f"{what} of a step", scale=wanted.se)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_contrasts_and_steps_are_those_of_python(mechanism, neighbours):
    combined_cases(release_of(mechanism, neighbours))


@pytest.mark.parametrize("mus", [(2.0, 2.0, 8.0), (0.3, 0.3, 1.0)])
def test_contrasts_and_steps_that_count_what_was_clipped_are_those_of_python(mus):
    combined_cases(tailed_release("replace", mus))


PAIRS = ["age", "weight", "cost", "region[west]", "region[south]", "urban", "hour"]


def compare_partials(release: dpgram.GramRelease, names: list[str]) -> dpgram.PartialCorrelations:
    wanted = dpgram.partial_correlations(release, names, confidence=0.9)
    found = evaluate(page_data(release), [], names)["partial"]
    assert found["names"] == list(wanted.names)
    for i, row in enumerate(found["pairs"]):
        for j, pair in enumerate(row):
            what = f"of {names[i]} and {names[j]}"
            assert pair["identified"] == wanted.identified[i, j], what
            scale = float(wanted.se[i, j])
            close(pair["partial"], float(wanted.estimate[i, j]), f"partial correlation {what}", scale)
            close(pair["se"], scale, f"standard error {what}")
            for end in ("lower", "upper"):
                close(pair[end], float(getattr(wanted, end)[i, j]), f"{end} end {what}", scale)
    return wanted


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_partial_correlations_are_those_of_python(mechanism, neighbours):
    compare_partials(release_of(mechanism, neighbours), PAIRS)


@pytest.mark.parametrize("mus", [(2.0, 2.0, 8.0), (0.3, 0.3, 1.0)])
def test_partial_correlations_that_count_what_was_clipped_are_those_of_python(mus):
    found = compare_partials(tailed_release("replace", mus), PAIRS)
    assert (found.clipping[np.triu_indices(len(PAIRS), 1)] > 0).all()


def test_partial_correlations_that_noise_hides_are_the_same_ones():
    known = []
    for sd in (3.0, 80.0, 1500.0):
        release = rare_release(7, sd=sd, rare=5)
        found = compare_partials(release, [e.name for e in release.schema.encoded[1:]])
        known.append(int(found.identified[np.triu_indices(len(found.names), 1)].sum()))
    assert known[0] > known[2]


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_partial_correlations_of_which_nothing_is_known_are_those_of_python(mechanism):
    """A standard error of one, and of more only where rows were clipped."""
    found = compare_partials(release_of(mechanism, "replace", epsilon=0.01), PAIRS)
    unknown = ~found.identified & (found.estimate == 0)
    assert unknown.any()
    assert (found.privacy[unknown] == 1).all()
    assert (found.clipping[unknown] == (mechanism == "whitened-noise")).all()


def test_the_edge_is_where_noise_alone_ends():
    """Of a matrix that is noise and nothing else, nearly all eigenvalues lie below the edge, and the largest lies near it."""
    d = 60
    for noise in (
        SymmetricGaussian.orthogonal(3.0, shift=20.0),
        WishartSample(400.0, 50.0, 50.0),
        InverseWishartSample(400.0, 50.0, 50.0, multiple=400.0 - d - 1),
    ):
        gram = pass_through(noise, np.zeros((d, d)), SeededSource(3))
        found = evaluate(page_data(matrix_release((gram + gram.T) / 2, noise)), [])["spectrum"]
        assert found["values"] == sorted(found["values"], reverse=True)
        assert found["hidden"].count(False) <= 1
        assert found["values"][0] == pytest.approx(found["edge"], rel=0.15)


def test_what_has_no_meaning_is_said_in_words():
    release = release_of("gaussian-noise", "replace")
    found = evaluate(page_data(release), [{"target": "cost", "features": [], "options": {"intercept": False}, "cells": []}])
    assert "no feature and no intercept" in found["fits"][0]["error"]
