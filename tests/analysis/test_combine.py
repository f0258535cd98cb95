"""Several releases as one: without noise the release of all rows, with it intervals that hold; what cannot be combined is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dpgram
from dpgram.accounting.compose import GaussianCost, PlainCost
from dpgram.artifact.combined import CombinedNoise
from dpgram.errors import CombineError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.bootstrap import bootstrap
from dpgram.interop.events import cost_of
from dpgram.regression.design import design
from dpgram.report.facts import label_data
from dpgram.report.page.data import page_data
from dpgram.terms.noise import InverseWishartSample, NoisyInverse, WishartSample
from experiments.combine import study
from experiments.coverage.releases import calibrated_once
from tests.page.node import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.NotPrivateWarning")

COLUMNS = [
    dpgram.Numeric("age", 0, 120),
    dpgram.Categorical("ward", ["a", "b", "c"]),
    dpgram.Numeric("bmi", 10, 60),
    dpgram.Numeric("pressure", 50, 300),
]
SCHEMA = dpgram.Schema(unit="patient", columns=COLUMNS)
FEATURES = ["age", "ward", "bmi"]
NEXT_TO_NOTHING = 1e12  # epsilon: a mu of about a million


def table(rows, seed):
    rng = np.random.default_rng(seed)
    age, bmi, ward = rng.uniform(20, 80, rows), rng.normal(27, 4, rows), rng.integers(0, 3, rows)
    pressure = 90 + 0.5 * age + 0.8 * bmi + np.array([0.0, 4.0, -3.0])[ward] + rng.normal(scale=8, size=rows)
    return {"age": age, "ward": np.array(["a", "b", "c"])[ward], "bmi": bmi, "pressure": pressure}


def together(*tables):
    return {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}


def released(of, epsilon=1.0, mechanism="gaussian-noise", schema=SCHEMA, seed=0, **options):
    return dpgram.release(of, schema, epsilon=epsilon, delta=1e-6, mechanism=mechanism, insecure_seed=seed, **options)


def slopes(release, **options):
    return np.array(list(dpgram.regress(release, "pressure", FEATURES, **options).params.to_numpy()))


@pytest.fixture(scope="module")
def tables():
    return table(1500, 1), table(900, 2), table(400, 3)


@pytest.fixture(scope="module")
def exact(tables):
    """The coefficients of all rows, by least squares."""
    whole = together(*tables)
    columns = [np.ones(2800), whole["age"], *(whole["ward"] == level for level in "bc"), whole["bmi"]]
    return np.linalg.lstsq(np.column_stack(columns), whole["pressure"], rcond=None)[0]


@pytest.fixture(scope="module")
def parts(tables):
    return [released(each, seed=k) for k, each in enumerate(tables)]


@pytest.fixture(scope="module")
def whitened(tables):
    return [released(each, epsilon=3.0, mechanism="whitened-noise", seed=k) for k, each in enumerate(tables)]


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "wishart-noise"])
def test_disjoint_rows_without_noise_are_the_whole_table(tables, exact, mechanism):
    """To five digits, by releases whose noise is next to nothing."""
    parts = [released(each, NEXT_TO_NOTHING, mechanism, seed=k) for k, each in enumerate(tables)]
    both = dpgram.combine(parts, rows="disjoint")
    assert both.rows == 2800
    assert slopes(both) == pytest.approx(exact, rel=1e-5)
    assert slopes(both) == pytest.approx(slopes(released(together(*tables), NEXT_TO_NOTHING, mechanism, seed=9)), rel=1e-5)


@pytest.mark.parametrize("rows", ["disjoint", "same"])
def test_rounds_without_noise_say_what_the_rows_say(tables, exact, rows):
    """Learnt intervals differ from part to part, and the last columns change places: the sum is in common units."""
    other = replace(SCHEMA, columns=(COLUMNS[3], COLUMNS[1], COLUMNS[0], COLUMNS[2]))
    wide = tuple(replace(c, upper=1e4) if c.name == "bmi" else c for c in COLUMNS)
    schemas = [replace(SCHEMA, columns=wide), replace(other, columns=(wide[3], wide[1], wide[0], wide[2]))]
    given = [together(*tables[:2]), tables[2]] if rows == "disjoint" else [together(*tables)] * 2
    parts = [
        released(of, 1e6, "whitened-noise", schema, seed, looks=("auto", "none")[seed])
        for seed, (of, schema) in enumerate(zip(given, schemas, strict=True))
    ]
    both = dpgram.combine(parts, rows=rows)
    assert isinstance(both.noise, CombinedNoise)
    assert len({str(part.schema.learnt) for part in parts}) == 2  # so units had to be changed
    whole = released(together(*tables), 1e6, "whitened-noise", schemas[0], seed=9)
    assert slopes(both) == pytest.approx(slopes(whole), rel=0.04)
    assert slopes(both) == pytest.approx(exact, rel=0.04)  # long rows are clipped, in either case
    single = dpgram.covariance(whole, ["age", "pressure"]).covariance
    assert dpgram.covariance(both, ["age", "pressure"]).covariance == pytest.approx(single, rel=0.05)


def test_noise_of_disjoint_rows_adds_up(parts):
    both = dpgram.combine(parts, rows="disjoint")
    assert both.noise.sd_off_diagonal == pytest.approx(math.sqrt(3) * parts[0].noise.sd_off_diagonal)
    assert both.noise.sd_diagonal == pytest.approx(math.sqrt(3) * parts[0].noise.sd_diagonal)
    assert both.gram == pytest.approx(sum(part.gram for part in parts))
    assert both.noise_shares == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_the_same_rows_are_weighted_by_noise(tables):
    strong, weak = released(tables[0], 2.0, seed=1), released(tables[0], 0.5, seed=2)
    both = dpgram.combine([strong, weak], rows="same")
    sds = np.array([strong.noise.sd_off_diagonal, weak.noise.sd_off_diagonal])
    wanted = sds**-2 / np.sum(sds**-2)
    assert both.weights == pytest.approx(wanted)
    assert both.gram == pytest.approx(wanted[0] * strong.gram + wanted[1] * weak.gram)
    assert both.noise.sd_off_diagonal == pytest.approx(1 / math.sqrt(np.sum(sds**-2)))
    assert both.rows == 1500


def test_a_shift_is_taken_off(tables):
    first, second = (released(tables[0], 1.0, "wishart-noise", seed=k) for k in (1, 2))
    shifted = replace(
        first, gram=first.gram + 7 * np.eye(6), noise=replace(first.noise, shift=first.noise.shift + 7), grid=None
    )
    assert dpgram.combine([shifted, second], rows="disjoint").gram == pytest.approx(
        dpgram.combine([first, second], rows="disjoint").gram
    )


def test_budgets_of_disjoint_rows_are_the_weakest_and_of_the_same_rows_the_sum(tables):
    here, there = released(tables[0], 0.1, seed=1), released(tables[1], 0.2, seed=2)
    assert dpgram.combine([here, there], rows="disjoint").budget == dpgram.Budget(0.2, 1e-6)
    again = released(tables[0], 0.2, seed=3)
    both = dpgram.combine([here, again], rows="same")
    assert both.budget == dpgram.Budget(0.3, 2e-6)  # as decimals
    third = released(tables[0], 0.3, seed=4)
    assert dpgram.combine([both, third], rows="same").budget.epsilon == 0.6
    composed = label_data(both)["composed"]
    assert 0.2 < composed["epsilon"] < 0.3
    assert composed["delta"] == 2e-6


def test_what_is_combined_again_stands_beside_the_others(parts, whitened):
    flat = dpgram.combine(parts, rows="disjoint")
    nested = dpgram.combine([dpgram.combine(parts[:2], rows="disjoint"), parts[2]], rows="disjoint")
    assert nested == flat
    assert len(nested.parts) == 3
    of_rounds = dpgram.combine([dpgram.combine(whitened[:2], rows="disjoint"), whitened[2]], rows="disjoint")
    assert slopes(of_rounds) == pytest.approx(slopes(dpgram.combine(whitened, rows="disjoint")))


def test_both_kinds_within_each_other(tables, whitened):
    """The first hospital released twice, and the second once."""
    again = released(tables[0], 1.0, "whitened-noise", seed=7)
    twice = dpgram.combine([whitened[0], again], rows="same")
    both = dpgram.combine([twice, whitened[1]], rows="disjoint")
    assert both.rows == 2400
    assert both.budget.epsilon == 4.0
    assert len(both.leaves) == 3
    fit = dpgram.regress(both, "pressure", FEATURES)
    assert all(low < high for low, high in fit.conf_int().to_numpy())
    parts = label_data(both)["parts"]
    assert parts[0]["rows_are"] == "same"
    assert len(parts[0]["parts"]) == 2


def test_a_seed_in_one_part_makes_all_of_it_not_private(tables):
    secret = dpgram.release(tables[0], SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")
    assert dpgram.combine([secret, dpgram.release(tables[1], SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian-noise")],
                          rows="disjoint").private  # fmt: skip
    both = dpgram.combine([secret, released(tables[1])], rows="disjoint")
    assert not both.private
    assert "NOT PRIVATE" in repr(both)
    assert both.randomness.count(";") == 1
    assert label_data(both)["parts"][1]["private"] is False


def test_words_of_each_case(parts, tables):
    disjoint = label_data(dpgram.combine(parts, rows="disjoint"))
    assert disjoint["promise"].startswith("a patient is protected by the budget of the part that it is in")
    assert disjoint["claimed"].startswith("no patient is in two parts")
    assert disjoint["claimed"].endswith("to epsilon 3 and delta 3e-06 for all parts")
    assert disjoint["composed"] is None
    assert disjoint["ledger_entry"] is None
    same = label_data(dpgram.combine([parts[0], released(tables[0], seed=8)], rows="same"))
    assert "epsilons and deltas add up" in same["promise"]
    assert same["claimed"].endswith("Their numbers of rows agree")


@pytest.mark.parametrize("kind", ["mixed", "whitened", "gaussian"])
def test_everything_that_takes_a_release_takes_it(kind, parts, whitened, tmp_path):
    given = {"mixed": [parts[0], *whitened[1:]], "whitened": whitened, "gaussian": parts}[kind]
    both = dpgram.combine(given, rows="disjoint")
    evidence = Evidence.of(both)
    fit = dpgram.regress(both, "pressure", FEATURES)
    assert "combined" in str(fit.summary())
    assert dpgram.compare(fit, fit).to_dict()["same_release"]
    assert np.linalg.eigvalsh(dpgram.covariance(both).covariance)[0] > 0
    assert len(dpgram.pca(both).variances) == 5
    assert dpgram.select(both, "pressure") is not None
    made = bootstrap(evidence, design(SCHEMA, "pressure", FEATURES, None), 0.95, draws=40)
    assert (made.lower < made.upper).all()
    assert page_data(both)["evidence"]["counted"]["rows"] == pytest.approx(evidence.rows)
    path = tmp_path / "page.html"
    dpgram.write_report(both, path)
    assert "no patient is in two parts" in path.read_text()
    assert evidence.rows == pytest.approx(2800, abs=1500)


def test_noise_of_several_shapes_is_that_of_the_parts(whitened):
    """What a bootstrap draws has the covariance that intervals say, and at least that of the parts."""
    both = dpgram.combine(whitened, rows="disjoint")
    evidence = Evidence.of(both)
    unit = np.eye(6)
    said = np.array([[evidence.quadratic_covariance(a, a)] for a in unit])[:, 0]
    own = sum(
        [
            np.array([Evidence.of(part).quadratic_covariance(a, a) for a in both.noise.rescaled[k]])
            for k, part in enumerate(both.parts)
        ]
    )
    assert (said >= own * (1 - 1e-9)).all()
    assert (said <= 3 * own).all()


def test_one_column_only():
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", 0, 1)], intercept=False)
    parts = [
        dpgram.release({"x": np.linspace(0, 1, n)}, schema, epsilon=3.0, delta=1e-6, mechanism=name, insecure_seed=n)
        for n, name in ((500, "gaussian-noise"), (700, "whitened-noise"))
    ]
    both = dpgram.combine(parts, rows="disjoint")
    assert both.gram.shape == (1, 1)
    assert Evidence.of(both).alone.matrix.shape == (1, 1)
    assert both.gram[0, 0] == pytest.approx(400, rel=0.5)


def test_protected_numbers_stay_protected():
    schema = replace(SCHEMA, neighbours="add-remove")
    parts = [released(table(2000, k), 3.0, "whitened-noise", schema, seed=k) for k in (1, 2)]
    both = dpgram.combine(parts, rows="disjoint")
    assert both.rows is None
    assert Evidence.of(both).rows == pytest.approx(4000, rel=0.2)
    assert Evidence.of(both).counted[1] > 0


def test_units_and_weights_are_added_up():
    schema = replace(SCHEMA, unit_id="pid", rows_per_unit=2, weight="w", largest_weight=2.0)
    given = [{**table(600, k), "pid": np.arange(600) // 3, "w": np.full(600, 1.0)} for k in (1, 2)]
    both = dpgram.combine([released(of, 3.0, schema=schema, seed=k) for k, of in enumerate(given)], rows="disjoint")
    assert (both.rows, both.units) == (None, 400)
    assert Evidence.of(both).design_effect == 2.0
    same = dpgram.combine([released(given[0], 3.0, schema=schema, seed=k) for k in (5, 6)], rows="same")
    assert same.units == 200


def test_inverses_of_the_same_rows_are_averaged(parts):
    base = np.linalg.inv(np.eye(6) * 500 + 40.0)
    noisy = [
        replace(
            part,
            gram=np.linalg.inv(base + k * 1e-6 * np.eye(6)),
            noise=NoisyInverse(sd, sd * math.sqrt(2), 60.0),
            grid=None,
            rows=7,
        )
        for k, (part, sd) in enumerate(zip(parts[:2], (1e-6, 2e-6), strict=True))
    ]
    both = dpgram.combine(noisy, rows="same")
    assert np.linalg.inv(both.gram) == pytest.approx(base + 0.2e-6 * np.eye(6))
    assert both.noise.sd_off_diagonal_of_inverse == pytest.approx(math.sqrt(0.8**2 + 0.4**2) * 1e-6)
    for given, rows in ((noisy, "disjoint"), ([noisy[0], replace(parts[1], rows=7)], "same")):
        with pytest.raises(CombineError, match="by noisy-inverse can only be combined with each other"):
            dpgram.combine(given, rows=rows)
    other = replace(noisy[1], noise=NoisyInverse(1e-6, 1e-6, 50.0))
    with pytest.raises(CombineError, match="different smallest eigenvalues"):
        dpgram.combine([noisy[0], other], rows="same")


def test_bad_input_is_one_sentence(parts, tables):
    first, second = parts[:2]

    def refused(message, given, rows="disjoint"):
        with pytest.raises(CombineError, match=message) as caught:
            dpgram.combine(given, rows=rows)
        assert "\n" not in str(caught.value)

    refused("rows is 'maybe' and must be \"disjoint\" if no row is in two", [first, second], "maybe")
    refused("one release was given", [first])
    refused("no release was given", [])
    refused("the list holds a str", [first, "south.json"])
    refused("combine got a GramRelease, but it needs a list", first)
    refused("releases 1 and 2 have the same matrix", [first, replace(first, ledger_entry="3:abc")])
    paid = [replace(part, ledger_entry="3:abc") for part in (first, second)]
    refused("paid for by the same line of a ledger", paid)
    refused("releases 1 and 3 have the same matrix", [dpgram.combine([first, second], rows="disjoint"), first])
    refused(r"different numbers of rows \(900, 1,500\), so they are not of the same rows", [first, second], "same")
    wider = replace(SCHEMA, columns=(replace(COLUMNS[0], upper=130), *COLUMNS[1:]))
    refused(
        "schemas differ: upper of column 'age' is 120 in the first and 130 in the second",
        [first, released(tables[1], schema=wider)],
    )
    few = replace(SCHEMA, columns=tuple(COLUMNS[:1]), unit="visit", neighbours="add-remove")
    refused("; .*, and 2 more. Release them again with one schema.", [first, released(tables[1], schema=few)])
    for noise in (WishartSample(300.0, 60.0, 60.0), InverseWishartSample(300.0, 60.0, 60.0, multiple=293.0)):
        refused("release 2 is by sketched, whose noise multiplies", [first, replace(second, noise=noise, mechanism="sketched")])
    refused(
        "matrix of release 2 were set to zero",
        [first, released({n: c[:60] for n, c in tables[1].items()}, 0.2, seed=5, repair="psd")],
    )
    with pytest.raises(TypeError, match="rows"):
        dpgram.combine([first, second])


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_intervals_hold(mechanism):
    """40 combined releases of two hospitals and of the same rows twice, four slopes each, at 95 %: of 320 intervals fewer than 277 hold
    with a probability below 1e-6, were every one right with 94 % and independent; an interval that forgot a part's noise would hold in
    about 83 %, which 277 tells from 94 % in nine of ten runs."""
    held = 0
    with calibrated_once():
        for case in (
            study.Case("disjoint", "", (12_000, 8_000), (mechanism,) * 2, (1.0, 1.0)),
            study.Case("same", "", (20_000,), (mechanism,) * 2, (1.0, 0.5)),
        ):
            for repeat in range(40):
                both, _ = study.combined_and_one(case, 3.0, repeat)
                _, ends = study.slopes(both)
                held += int(np.sum((ends[:, 0] <= study.SLOPES) & (ends[:, 1] >= study.SLOPES)))
    assert held >= 277


def test_other_accountants_are_told_its_budget(parts):
    assert cost_of(dpgram.combine(parts, rows="disjoint")) == PlainCost(1.0, 1e-6)
    assert isinstance(cost_of(parts[0]), GaussianCost)


@pytest.mark.system("nodejs")
@pytest.mark.parametrize("rows", ["disjoint", "same"])
def test_its_page_has_the_numbers_of_python(rows, tables, parts, whitened):
    given = [parts[0], *whitened[1:]] if rows == "disjoint" else [whitened[0], parts[0]]
    both = dpgram.combine(given, rows=rows)
    case = {"target": "pressure", "features": FEATURES, "options": {}, "cells": []}
    (found,) = evaluate(page_data(both), [case])["fits"]
    fit = dpgram.regress(both, "pressure", FEATURES)
    assert [one["coefficient"] for one in found["coefficients"]] == pytest.approx(list(fit.params.to_numpy()), rel=1e-6)
