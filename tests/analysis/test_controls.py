"""How a coefficient moves as controls enter: a sequence of least squares when noise is nil, honest intervals when it is not."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dpgram
from dpgram.errors import ModelError, UnknownColumnError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.controls import changes
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.report.figures import save_figure
from dpgram.terms.noise import SymmetricGaussian
from tests.analysis.test_fit import OPTIONS
from tests.analysis.test_predict import exact_release
from tests.needs import package
from tests.report.test_markup import compiled

COLUMNS = [
    dpgram.Numeric("x", -5, 5),
    dpgram.Numeric("a", -5, 5),
    dpgram.Numeric("b", -5, 5),
    dpgram.Categorical("c", ["p", "q", "r"]),
    dpgram.Boolean("t", missing=False),
    dpgram.Numeric("y", -15, 15),
]
SCHEMA = dpgram.Schema(unit="row", columns=COLUMNS)
GROUPS = {"first": ["a"], "kinds": ["c", "t"], "last": ["b"]}


def rows(count=20_000, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=count)
    x, a, b = (np.clip(np.sqrt(0.5) * (common + rng.normal(size=count)), -5, 5) for _ in range(3))
    c = np.array(["p", "q", "r"])[np.clip((x + rng.normal(size=count) + 1.5).astype(int), 0, 2)]
    t = rng.random(count) < stats.norm.cdf(x)
    y = 0.5 * x + 0.5 * a - 0.3 * b + 0.4 * (c == "q") + 0.2 * (c == "r") - 0.5 * t + rng.normal(size=count)
    return {"x": x, "a": a, "b": b, "c": c, "t": t, "y": np.clip(y, -15, 15)}


TABLE = rows()


def exact(schema=SCHEMA, table=TABLE):
    return exact_release(pa.table(table), schema)


def least_squares(names, table=TABLE):
    frame = pd.DataFrame(table)
    own = {"(intercept)": 1.0, "c[q]": frame["c"] == "q", "c[r]": frame["c"] == "r"}
    own |= {name: frame[name] for name in ("x", "a", "b", "t")}
    x = np.column_stack([np.broadcast_to(own[name], len(frame)).astype(float) for name in names])
    y = frame["y"].to_numpy()
    b = np.linalg.lstsq(x, y, rcond=None)[0]
    inverse = np.linalg.inv(x.T @ x)
    return dict(zip(names, b, strict=True)), np.sum((y - x @ b) ** 2) / (len(y) - len(b)) * inverse, x


STEPS = (["x"], ["x", "a"], ["x", "a", "c[q]", "c[r]", "t"], ["x", "a", "c[q]", "c[r]", "t", "b"])


def test_every_step_is_least_squares_when_noise_is_nil():
    found = dpgram.controls(exact(), "y", "x", GROUPS)
    assert [step.name for step in found.steps] == ["no controls", *GROUPS]
    assert [step.added for step in found.steps] == [(), ("a",), ("c", "t"), ("b",)]
    for step, names in zip(found.steps, STEPS, strict=True):
        b, covariance, _ = least_squares(["(intercept)", *names])
        assert step.coefficient == pytest.approx(b["x"], rel=1e-5)
        assert step.se == pytest.approx(np.sqrt(covariance[1, 1]), rel=1e-3)
    values = [step.coefficient for step in found.steps]
    assert [step.change for step in found.steps[1:]] == pytest.approx(np.diff(values))
    assert found.steps[0].change is None


@pytest.mark.package("statsmodels")
def test_every_step_is_that_of_statsmodels():
    sm, frame = package("statsmodels.api"), pd.DataFrame(TABLE)
    frame = frame.assign(**{"c[q]": frame["c"] == "q", "c[r]": frame["c"] == "r"})
    for step, names in zip(dpgram.controls(exact(), "y", "x", GROUPS).steps, STEPS, strict=True):
        theirs = sm.OLS(frame["y"], sm.add_constant(frame[names].astype(float))).fit(use_t=False)
        assert step.coefficient == pytest.approx(theirs.params["x"], rel=1e-5)
        assert (step.lower, step.upper) == pytest.approx(tuple(theirs.conf_int().loc["x"]), rel=1e-3)
        assert step.r_squared == pytest.approx(theirs.rsquared, abs=1e-5)


def test_the_contributions_are_those_of_gelbach_and_add_up():
    """By hand: delta' beta, with delta from regressions of each control on x."""
    found = dpgram.controls(exact(), "y", "x", GROUPS)
    names = ["(intercept)", *STEPS[-1]]
    beta, _, x = least_squares(names)
    delta = np.linalg.lstsq(x[:, :2], x[:, 2:], rcond=None)[0][1]
    moved = dict(zip(names[2:], -delta * [beta[n] for n in names[2:]], strict=True))
    wanted = {"first": moved["a"], "kinds": moved["c[q]"] + moved["c[r]"] + moved["t"], "last": moved["b"]}
    assert {one.name: one.amount for one in found.contributions} == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    whole = found.steps[-1].coefficient - found.steps[0].coefficient
    assert sum(one.amount for one in found.contributions) == pytest.approx(whole, rel=1e-9)
    again = dpgram.controls(exact(), "y", "x", dict(reversed(GROUPS.items())))
    for one in again.contributions:  # the order does not matter
        assert one.amount == pytest.approx(wanted[one.name], rel=1e-4, abs=1e-6)


def test_single_levels_of_a_category_are_groups_of_their_own():
    """Each level has its own step, contribution and name: as controls, and as the coefficient that is followed."""
    found = dpgram.controls(exact(), "y", "x", [["c[r]"], ["c[q]", "a"]])
    assert [step.name for step in found.steps] == ["no controls", "c[r]", "c[q], a"]
    assert [one.name for one in found.contributions] == ["c[r]", "c[q], a"]
    for step, names in zip(found.steps, (["x"], ["x", "c[r]"], ["x", "c[r]", "c[q]", "a"]), strict=True):
        assert step.coefficient == pytest.approx(least_squares(["(intercept)", *names])[0]["x"], rel=1e-5)
    beta, _, x = least_squares(["(intercept)", "x", "c[r]", "c[q]", "a"])
    delta = np.linalg.lstsq(x[:, :2], x[:, 2:], rcond=None)[0][1]
    assert found.contributions[0].amount == pytest.approx(-delta[0] * beta["c[r]"], rel=1e-4)
    assert list(found.compare().models) == ["(1) no controls", "(2) c[r]", "(3) c[q], a"]
    followed = dpgram.controls(exact(), "y", "c[q]", [["x"], ["c[r]"]])
    assert followed.coefficient == "c[q]"
    assert followed.steps[-1].coefficient == pytest.approx(
        least_squares(["(intercept)", "c[q]", "x", "c[r]"])[0]["c[q]"], rel=1e-5
    )
    with pytest.raises(ModelError, match=re.escape("feature 'c[q]' is named twice. Name it once")):
        dpgram.controls(exact(), "y", "x", [["c[q]"], ["c"]])


def test_a_number_with_an_indicator_of_its_missing_cells_can_be_followed():
    schema = dataclasses.replace(SCHEMA, columns=(dpgram.Numeric("x", -5, 5, missing="indicator"), *COLUMNS[1:]))
    table = TABLE | {"x": [None if k % 7 == 0 else float(v) for k, v in enumerate(TABLE["x"])]}
    found = dpgram.controls(exact(schema, table), "y", "x", [["a"]])
    gone = np.arange(len(TABLE["x"])) % 7 == 0
    for step, further in zip(found.steps, ([], [TABLE["a"]]), strict=True):
        x = np.column_stack([np.where(gone, 0, TABLE["x"]), gone, np.ones(len(gone)), *further])
        assert step.coefficient == pytest.approx(np.linalg.lstsq(x, TABLE["y"], rcond=None)[0][0], rel=1e-5)
    assert found.coefficient == "x"
    assert found.steps[0].name == "no controls"
    assert sum(one.amount for one in found.contributions) == pytest.approx(
        found.steps[-1].coefficient - found.steps[0].coefficient, rel=1e-9
    )


def test_standard_errors_of_changes_are_those_of_resampled_rows():
    """Sampling alone. 300 resamples know a standard error to about 4 %: a band of 25 % is six of those."""
    groups, seen = {"first": ["a"], "last": ["b"]}, []
    release = exact()
    mine = dpgram.controls(release, "y", "x", groups)
    one = np.column_stack([np.ones(len(TABLE["x"])), TABLE["x"], TABLE["a"], TABLE["b"], TABLE["y"]])
    rng = np.random.default_rng(1)
    for _ in range(300):
        z = one[rng.integers(0, len(one), len(one))]
        gram = z.T @ z
        b = [np.linalg.solve(gram[:k, :k], gram[:k, 4]) for k in (2, 3, 4)]
        delta = np.linalg.solve(gram[:2, :2], gram[:2, 2:4])[1]
        seen.append([b[1][1] - b[0][1], b[2][1] - b[1][1], -delta[0] * b[2][2], -delta[1] * b[2][3]])
    found = [*(step.change_se for step in mine.steps[1:]), *(c.se for c in mine.contributions)]
    assert found == pytest.approx(np.std(seen, axis=0), rel=0.25)
    assert mine.steps[1].change_se < 0.8 * mine.steps[1].se * np.sqrt(2)  # far below that of independent steps


def noisy(release, sd, seed):
    draw = np.random.default_rng(seed).normal(scale=sd, size=release.gram.shape)
    upper = np.triu(draw, 1)
    noise = SymmetricGaussian.orthogonal(sd)
    return dataclasses.replace(release, gram=release.gram + upper + upper.T + np.sqrt(2) * np.diag(np.diag(draw)), noise=noise)


FALSE_ALARM = 1e-6


def test_intervals_hold_at_each_budget():
    """Noise alone on one table, so that the truth is the table's own. For each of four numbers, the share of 200 draws in which it is held
    is not smaller than an interval of 95 % would have it but once in a million."""
    release = exact()
    truth = dpgram.controls(release, "y", "x", ["a", "b"])
    wanted = np.array([*(s.change for s in truth.steps[1:]), *(c.amount for c in truth.contributions)])
    for sd in (20.0, 100.0):
        held = []
        for seed in range(200):
            found = dpgram.controls(noisy(release, sd, seed), "y", "x", ["a", "b"], design_effect=1e-3)  # next to no sampling
            low = np.array([*(s.change_lower for s in found.steps[1:]), *(c.lower for c in found.contributions)])
            high = np.array([*(s.change_upper for s in found.steps[1:]), *(c.upper for c in found.contributions)])
            held.append((low <= wanted) & (wanted <= high))
        for share in np.mean(held, axis=0):
            assert stats.binom.cdf(round(200 * share), 200, 0.95) > FALSE_ALARM, share


def test_the_noise_in_changes_is_what_the_law_says():
    """Standard errors of changes by noise alone, against 400 draws: known to 4 %, so 20 % off would be seen."""
    release, sd = exact(), 20.0
    draws, said = [], []
    for seed in range(400):
        found = dpgram.controls(noisy(release, sd, seed), "y", "x", ["a", "b"], design_effect=1e-6)
        draws.append([s.change for s in found.steps[1:]] + [c.amount for c in found.contributions])
        said.append([s.change_se for s in found.steps[1:]] + [c.se for c in found.contributions])
    assert np.median(said, axis=0) == pytest.approx(np.std(draws, axis=0), rel=0.2)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("count", "epsilon", "neighbours"), [(4000, 5.0, "replace"), (60, 0.1, "add-remove")])
def test_every_mechanism_gives_an_answer_that_holds_together(mechanism, count, epsilon, neighbours):
    options = dict(OPTIONS.get(mechanism, {}))
    if mechanism == "inverse-wishart" and neighbours == "add-remove":
        options = {"degrees_of_freedom": 400.0}
    schema = dataclasses.replace(SCHEMA, neighbours=neighbours)
    made = dpgram.release(rows(count), schema, epsilon=epsilon, delta=1e-6, mechanism=mechanism, insecure_seed=1, **options)
    found = dpgram.controls(made, "y", "x", GROUPS)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(data["steps"]) == 4
    for step, fit in zip(found.steps, found.fits, strict=True):
        assert step.coefficient == fit.params["x"]
        assert (step.lower, step.upper) == tuple(fit.conf_int().loc["x"])
        assert step.se > 0
    for step in found.steps[1:]:
        assert step.change_lower <= step.change <= step.change_upper
        assert np.isfinite(step.change_se)
    whole = found.steps[-1].coefficient - found.steps[0].coefficient
    assert sum(one.amount for one in found.contributions) == pytest.approx(whole, rel=1e-6, abs=1e-9)
    assert "nan" not in str(found)
    compiled(found.to_latex())


def test_what_is_not_identified_is_infinite():
    drowned = dpgram.release(rows(60), SCHEMA, epsilon=0.05, delta=1e-6, mechanism="gaussian-noise", insecure_seed=1)
    found = dpgram.controls(drowned, "y", "x", GROUPS)
    assert np.isinf([s.upper for s in found.steps]).any()
    assert np.isinf([s.change_upper for s in found.steps[1:]]).any()
    assert "not identified at this budget" in str(found)
    assert found.to_dict()["steps"][-1]["upper"] is None


def test_renderings(tmp_path):
    found = dpgram.controls(exact(), "y", "x", GROUPS, confidence=0.9)
    frame = found.to_frame()
    assert frame.index.tolist() == ["no controls", *GROUPS]
    assert frame.loc["first", "change"] == found.steps[1].change
    assert found.to_frame("contributions")["amount"].tolist() == [c.amount for c in found.contributions]
    with pytest.raises(ModelError, match="part is 'all' and must be"):
        found.to_frame("all")
    text = str(found)
    assert repr(found) == text
    assert "[0.05" in text
    assert "+ kinds" in text
    assert text.count("NOT PRIVATE") == 1
    assert "Coefficient of x" in found._repr_html_()
    assert len(compiled(found.to_latex(caption="c"))) == 3
    assert "| sum: last step minus first |" in found.to_markdown()
    assert list(found.compare().models) == ["(1) no controls", "(2) first", "(3) kinds", "(4) last"]
    save_figure(tmp_path / "f.png", found.plot, rows=5)
    assert (tmp_path / "f.png").stat().st_size > 0


def test_features_of_every_step_levels_and_units():
    found = dpgram.controls(exact(), "y", "c[q]", [["a"], "b"], features=["c[r]", "x"])
    assert found.steps[0].name == "c[r], x"
    assert found.coefficient == "c[q]"
    b, _, _ = least_squares(["(intercept)", "c[q]", "c[r]", "x", "a"])
    assert found.steps[1].coefficient == pytest.approx(b["c[q]"], rel=1e-4)
    through = dpgram.controls(exact(), "y", "x", ["a"], intercept=False)
    assert through.steps[1].coefficient == pytest.approx(least_squares(["x", "a"])[0]["x"], rel=1e-4)
    assert sum(c.amount for c in through.contributions) == pytest.approx(through.steps[1].change, rel=1e-6)
    scaled = dataclasses.replace(SCHEMA, columns=[dpgram.Numeric("x", -5e6, 5e6), *COLUMNS[1:]])
    large = dpgram.controls(exact(scaled, TABLE | {"x": TABLE["x"] * 1e6}), "y", "x", GROUPS)
    plain = dpgram.controls(exact(), "y", "x", GROUPS)
    for one, other in zip(large.steps[1:], plain.steps[1:], strict=True):
        assert 1e6 * one.change_se == pytest.approx(other.change_se, rel=1e-3)


def test_steps_that_change_nothing_have_next_to_no_error():
    """A control that is not related to anything: the change is known far better than either coefficient."""
    rng = np.random.default_rng(3)
    found = dpgram.controls(exact(table=TABLE | {"b": rng.uniform(-5, 5, len(TABLE["b"]))}), "y", "x", ["b"])
    assert found.steps[1].change_se < 0.05 * found.steps[1].se


def test_the_law_does_not_depend_on_which_regressions_are_beside_each_other():
    release = noisy(exact(), 20.0, 0)
    fits = dpgram.controls(release, "y", "x", GROUPS).fits
    seen = [fit.channel for fit in fits]
    pair = changes(Evidence.of(release), seen[:2], 1, 0.95)
    assert changes(Evidence.of(release), seen, 1, 0.95).se[0] == pytest.approx(pair.se[0])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("y", "x", []), "there is no group of controls. Name at least one"),
        (("y", "x", [[]]), "has no features. Name at least one"),
        (("y", "x", "a"), "groups is 'a' and must be a list of groups"),
        (("y", "x", 3), "groups is 3 and must be a list of groups"),
        (("y", "x", [3]), "a group is 3 and must be a list of names"),
        (("y", "x", [["a"], ["a"]]), "two groups of controls are the same"),
        (("y", "x", [["a"], ["b", "a"]]), "feature 'a' is named twice"),
        (("y", "x", [["x"]]), "feature 'x' is named twice"),
        (("y", "x", [["y"]]), "'y' is the target, so it cannot be a feature too"),
        (("y", "c", [["a"]]), "'c' has several coefficients, but one can be followed at a time. Name one of c[q], c[r]"),
        (("y", "c[z]", [["a"]]), "column 'c' has no level 'z'"),
        (("y ~ x", "x", [["a"]]), "the target is a formula, but controls needs the name of a column"),
    ],
)
def test_what_cannot_be_asked(asked, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        dpgram.controls(exact(), *asked)


def test_names_that_do_not_exist_come_with_a_suggestion():
    with pytest.raises(UnknownColumnError, match="there is no column 'aa'. Did you mean 'a'?"):
        dpgram.controls(exact(), "y", "x", [["aa"]])
