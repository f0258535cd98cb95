"""How many rows counted, and what units and weights do to the sampling variance: never less than the truth says, and the whole of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dpgram
from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.terms.noise import SymmetricGaussian
from tests.releases import in_rounds, matrix_release

SILENT = SymmetricGaussian.orthogonal(1e-9)
COLUMNS = [dpgram.Numeric("x", -1, 1), dpgram.Numeric("y", -1, 1)]


def shares(ids, most, weights=None, largest=1.0):
    """What each row counts as, by the rule of the schema, in plain NumPy."""
    _, place, rows = np.unique(ids, return_inverse=True, return_counts=True)
    by_weight = 1.0 if weights is None else np.clip(weights, 0, largest) / largest
    return by_weight * np.minimum(1.0, most / rows[place])


def weighted_release(z, share, schema, noise=SILENT, rows=None, units=None, seed=None):
    """A release of encoded rows ``z`` (n, d), each counted with its share."""
    gram = (z * share[:, None]).T @ z
    if seed is not None:
        draw = np.triu(np.random.default_rng(seed).normal(scale=noise.sd_off_diagonal, size=gram.shape))
        gram = gram + draw + np.triu(draw, 1).T + (np.sqrt(2) - 1) * np.diag(np.diag(draw))
    table = {name: np.zeros(2) for name in schema.read_names}
    plain = dataclasses.replace(schema, unit_id=None, rows_per_unit=None, weight=None, largest_weight=None)
    made = dpgram.release(table, plain, epsilon=1, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0)
    return dataclasses.replace(made, schema=schema, gram=gram, noise=noise, rows=rows, units=units)


def panel(units=600, seed=0, alike=True):
    """Encoded rows of units of 1 to 9 rows; their features and errors are the same within a unit, or all independent."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(units), rng.integers(1, 10, units))
    n = len(ids)
    x, error = (rng.uniform(-1, 1, n), rng.normal(scale=0.1, size=n))
    if alike:
        x, error = x[:units][ids], error[:units][ids]
    return ids, np.column_stack([np.ones(n), x, 0.3 * x + error])


def schema_of(most=3, columns=COLUMNS, **changes):
    return dpgram.Schema(unit="person", columns=columns, unit_id="id", rows_per_unit=most, **changes)


def test_the_number_of_rows_that_counted_is_the_intercepts_entry():
    ids, z = panel()
    share = shares(ids, 3)
    fit = dpgram.regress(weighted_release(z, share, schema_of(), units=600), "y", ["x"])
    assert fit.counted_rows[0] == pytest.approx(share.sum())
    assert fit.design_effect == 3.0
    assert fit.effective_rows == pytest.approx(share.sum() / 3)
    data = fit.to_dict()
    assert data["counted_rows_note"].endswith("; the rows of a unit count as 3 at most")
    assert (data["counted_rows"], data["rows"], data["units"]) == (pytest.approx(share.sum()), None, 600)


@pytest.mark.parametrize("public", [{"units": 700}, {"rows": 2100}])
def test_a_public_number_is_an_upper_bound_and_noise_gives_a_standard_error(public):
    noise = SymmetricGaussian.orthogonal(40.0)
    schema = schema_of() if "units" in public else dpgram.Schema(unit="person", columns=COLUMNS)  # which drops rows with holes
    gram = np.diag([2400.0, 700.0, 90.0])
    release = weighted_release(np.sqrt(gram), np.ones(3), schema, noise, **public)
    assert Evidence.of(release).counted == pytest.approx((2100.0, 40 * np.sqrt(2)))
    fewer = dataclasses.replace(release, gram=np.diag([150.0, 50.0, 9.0]))
    assert Evidence.of(fewer).counted == pytest.approx((150.0, 40 * np.sqrt(2)))  # weights can be small: no share is too few
    words = " ".join(str(dpgram.regress(fewer, "y", ["x"]).summary()).split())
    assert "Rows that counted: about 150 (s.e. 57)" in words
    assert "Rows that counted about 150 (s.e. 57)" in " ".join(str(dpgram.compare(dpgram.regress(fewer, "y", ["x"]))).split())
    assert "Rows that counted: about 150 (s.e. 57)" in " ".join(str(dpgram.covariance(fewer)).split())
    assert "Rows that counted: about 150 (s.e. 57)" in " ".join(str(dpgram.pca(fewer)).split())
    assert dpgram.covariance(fewer).to_dict()["counted_rows_se"] == pytest.approx(40 * np.sqrt(2))


@pytest.mark.parametrize("entry", [-60.0, 0.0, 1.2])
def test_a_noisy_number_of_rows_that_is_as_small_as_it_can_be_says_none(entry):
    """As where all weights are zero; "about 1" would look like a row."""
    schema = dpgram.Schema(unit="person", columns=COLUMNS, neighbours="add-remove", weight="w", largest_weight=2.0)
    gram = np.diag([entry, 20.0, 9.0])
    release = weighted_release(np.sqrt(np.abs(gram)), np.ones(3), schema, SymmetricGaussian.orthogonal(40.0))
    fit = dpgram.regress(dataclasses.replace(release, gram=gram), "y", ["x"])
    assert fit.counted_rows == (max(entry, 1.0), pytest.approx(40 * np.sqrt(2)))
    assert "Rows that counted: about none (s.e. 57)" in " ".join(str(fit.summary()).split())
    assert "Rows that counted about none (s.e. 57)" in " ".join(str(dpgram.compare(fit)).split())


def test_one_row_whose_number_is_public_is_one():
    release = matrix_release(np.eye(3), SymmetricGaussian.orthogonal(40.0), rows=1)
    assert "Rows that counted: 1 " in " ".join(str(dpgram.regress(release, release.columns[-1]).summary()).split())


def test_without_an_intercept_they_are_at_least_as_many_as_such_a_matrix_needs():
    columns = [dataclasses.replace(c, missing="drop-row") for c in COLUMNS]
    schema = dpgram.Schema(unit="person", columns=columns, intercept=False)
    release = weighted_release(np.eye(2) * 20, np.ones(2), schema, rows=900)
    fit = dpgram.regress(release, "y", ["x"])
    assert fit.counted_rows == (pytest.approx(800 / schema.effective_row_bound**2), 0.0)
    assert fit.to_dict()["counted_rows_se"] is None
    assert "Rows that counted: at least about 400" in " ".join(str(fit.summary()).split())


def test_rounds_read_the_number_of_rows_from_the_matrix_where_rows_count_for_less():
    _, z = panel(3000)
    gram, noise = in_rounds(z, mus=(3.0, 3.0, 9.0), room=50.0)
    known = matrix_release(gram, noise, rows=len(z))
    partly = dataclasses.replace(
        known, schema=dataclasses.replace(known.schema, columns=[known.schema.columns[0], dpgram.Numeric("y", -1, 1)])
    )
    assert Evidence.of(known).counted == (len(z), 0.0)
    count, sd = Evidence.of(dataclasses.replace(partly, rows=2 * len(z))).counted
    assert sd > 0
    assert count == pytest.approx(len(z), abs=6 * sd)


@pytest.mark.parametrize(("tails", "dropped"), [("normal", 0.0), ("long", 0.3)])
def test_clipped_rows_count_in_full(tails, dropped):
    """Whitened rounds clip rows hard if columns are many: of ten releases, the mean error is within one standard error of one of them.

    Without what outer matrices show it would be six to nine too low. For a mean of ten, 1 is more than three standard deviations."""
    columns = [dpgram.Numeric(f"x{j}", -8, 8) for j in range(21)]
    schema = dpgram.Schema(unit="person", columns=columns, neighbours="add-remove")
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        cells = rng.normal(size=(5000, 21))
        if tails == "long":
            cells /= np.sqrt(rng.gamma(2, 1, size=(5000, 1)))
        cells[rng.random(5000) < dropped, 0] = np.nan
        table = {f"x{j}": cells[:, j] for j in range(21)}
        made = dpgram.release(table, schema, epsilon=1, delta=1e-6, mechanism="whitened-noise", insecure_seed=seed)
        count, se = dpgram.regress(made, "x0").counted_rows
        true = np.sum(~np.isnan(cells[:, 0]))
        assert se < 0.12 * true
        errors.append((count - true) / se)
    assert abs(np.mean(errors)) < 1.0


def test_the_worst_case_is_reached_where_rows_of_a_unit_are_alike():
    """With m rows in every unit, all the same, it is the variance of one row per unit: exactly, but for degrees of freedom."""
    rng = np.random.default_rng(3)
    x, units = rng.uniform(-1, 1, 500), 500
    one = np.column_stack([np.ones(units), x, 0.3 * x + rng.normal(scale=0.1, size=units)])
    ids, z = np.repeat(np.arange(units), 4), np.repeat(one, 4, axis=0)
    panel_fit = dpgram.regress(weighted_release(z, shares(ids, 4), schema_of(4), units=units), "y", ["x"])
    single = dpgram.regress(
        weighted_release(one, np.ones(units), dpgram.Schema(unit="p", columns=COLUMNS), rows=units), "y", ["x"]
    )
    assert panel_fit.params.to_dict() == pytest.approx(single.params.to_dict())
    assert panel_fit.bse_sampling.to_dict() == pytest.approx(single.bse_sampling.to_dict(), rel=1e-9)
    assert panel_fit.goodness.residual_variance == pytest.approx(single.goodness.residual_variance, rel=1e-9)
    assert panel_fit.goodness.r_squared_interval == pytest.approx(single.goodness.r_squared_interval, rel=1e-6)
    means = [dpgram.covariance(fit.release).errors for fit in (panel_fit, single)]
    for mine, theirs in zip(vars(means[0]).values(), vars(means[1]).values(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6)
    ends = [fit.conf_int(method="bootstrap").loc["x"].tolist() for fit in (panel_fit, single)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


@pytest.mark.parametrize(("alike", "most"), [(True, 3), (False, 3), (True, 1)])
def test_sampling_errors_are_no_smaller_than_the_spread_over_panels(alike, most):
    """The coefficient of 400 panels: its spread is at most the standard error, whatever errors have in common within a unit."""
    found, se = [], []
    for seed in range(400):
        ids, z = panel(150, seed, alike)
        fit = dpgram.regress(weighted_release(z, shares(ids, most), schema_of(most), units=150), "y", ["x"])
        found.append(fit.params["x"])
        se.append(fit.bse_sampling["x"])
    assert np.std(found) < 1.15 * np.mean(se)  # a spread over 400 draws is known to 3.5 %
    if alike:  # and not by much, where the worst case is the case
        assert np.std(found) > 0.7 * np.mean(se)


def test_without_the_design_effect_errors_would_be_too_small():
    found, se = [], []
    for seed in range(200):
        ids, z = panel(150, seed)
        release = weighted_release(z, shares(ids, 3), schema_of(), units=150)
        fit = dpgram.regress(release, "y", ["x"], design_effect=1.0)
        found.append(fit.params["x"])
        se.append(fit.bse_sampling["x"])
    assert np.std(found) > 1.3 * np.mean(se)


def test_weights_that_are_a_declared_column_tell_their_own_design_effect():
    rng = np.random.default_rng(5)
    n, largest = 4000, 8.0
    weight = rng.uniform(0.5, 6, n)
    z = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 2)), weight / 5 - 1])
    plain = {"unit": "person", "weight": "w", "largest_weight": largest}
    declared = dpgram.Schema(columns=[*COLUMNS, dpgram.Numeric("w", 0, 10)], **plain)
    share = weight / largest
    q = np.sum(share**2) / np.sum(share)
    assert Evidence.of(weighted_release(z, share, declared, rows=n)).design_effect == pytest.approx(q)
    undeclared = dpgram.Schema(columns=COLUMNS, **plain)
    assert Evidence.of(weighted_release(z[:, :3], share, undeclared, rows=n)).design_effect == 1.0
    clamped = dpgram.Schema(columns=[*COLUMNS, dpgram.Numeric("w", 0, 5)], **plain)  # its mean would be too small
    assert Evidence.of(weighted_release(z, share, clamped, rows=n)).design_effect == 1.0
    both = dataclasses.replace(declared, unit_id="id", rows_per_unit=2)
    assert Evidence.of(weighted_release(z, share, both, units=n)).design_effect == pytest.approx(2 * q)
    drowned = weighted_release(z, share, declared, SymmetricGaussian.orthogonal(1e5), rows=n)
    assert Evidence.of(drowned).design_effect == 1.0  # noise never makes it smaller


def test_a_group_with_larger_weights_has_the_design_effect_of_its_own():
    """Few rows stand for many where a group is hard to reach: its coefficient varies as if all weights were so large."""
    rng = np.random.default_rng(6)
    n = 20_000
    group, kind = rng.random(n) < 0.02, rng.integers(0, 3, n)
    columns = [dpgram.Boolean("group"), dpgram.Categorical("kind", ["a", "b", "c"]), dpgram.Numeric("w", 0, 4)]
    schema = dpgram.Schema(unit="person", weight="w", largest_weight=4.0, columns=columns)

    def design_effect(weight, noise=SILENT):
        z = np.column_stack([np.ones(n), group, kind == 1, kind == 2, weight / 2 - 1])
        return Evidence.of(weighted_release(z, weight / 4, schema, noise, rows=n)).design_effect

    def own(weight, rows):
        return np.sum(weight[rows] ** 2) / np.sum(weight[rows]) / 4

    every, spread = np.ones(n, dtype=bool), rng.uniform(0.6, 1.0, n)
    for rows in (group, kind == 2, kind == 0):  # also the reference, which no column of the matrix stands for
        weight = np.where(rows, 3.6, 0.2) * spread
        assert design_effect(weight) == pytest.approx(own(weight, rows), rel=1e-4)
    weight = np.where(group, 3.6, 0.2) * spread
    assert own(weight, group) > 2 * own(weight, every)  # it would be seen
    assert design_effect(weight, SymmetricGaussian.orthogonal(300.0)) < own(weight, group)  # noise alone shows no group
    alike = np.where(group, 1.04, 1.0) * spread
    assert design_effect(alike) == pytest.approx(own(alike, every), rel=1e-4)


def test_every_group_that_columns_tell_has_the_design_effect_of_its_own():
    """Missing cells, intervals of a number, and cells of two categories whose product is declared: each has large weights in turn."""
    rng = np.random.default_rng(8)
    n = 20_000
    a, kind, x = rng.random(n) < 0.3, rng.integers(0, 3, n), rng.uniform(-1, 1, n)
    hole = rng.random(n) < 0.1
    table = {"a": a, "kind": np.array(["r", "s", "t"])[kind], "x": x, "z": np.where(hole, np.nan, x)}
    columns = [
        dpgram.Boolean("a"),
        dpgram.Categorical("kind", ["r", "s", "t"]),
        dpgram.Numeric("x", -1, 1),
        dpgram.Numeric("z", -1, 1, missing="indicator"),
        dpgram.Numeric("w", 0, 4),
    ]
    derived = [
        dpgram.Product("both", ["a", "kind"]),
        dpgram.Product("slope", ["a", "x"]),  # not 0 or 1
        dpgram.Interval("high", "x", lower=0.8),
    ]

    def design_effect(rows, derived):
        weight = np.where(rows, 3.6, 0.9)
        schema = dpgram.Schema(unit="person", weight="w", largest_weight=4.0, columns=columns, derived=derived)
        made = dpgram.release(
            {**table, "w": weight}, schema, epsilon=1e6, delta=1e-6, mechanism="gaussian-noise", insecure_seed=0
        )
        return Evidence.of(made).design_effect

    cells = (a & (kind == 2), a & (kind == 0), ~a & (kind == 1))
    for rows in (hole, x >= 0.8, *cells):
        assert design_effect(rows, derived) == pytest.approx(0.9, rel=1e-3)
    assert design_effect(cells[0], []) < 0.8  # no column tells this cell


@pytest.mark.parametrize("given", [0, -1.0, np.nan, np.inf, True, "2", 1e300, 1e-300, 1e7])
def test_a_design_effect_is_a_positive_number(given):
    release = weighted_release(panel()[1], np.ones(len(panel()[0])), schema_of(), units=600)
    with pytest.raises(ModelError, match="design_effect is .* and must be a positive number"):
        dpgram.regress(release, "y", ["x"], design_effect=given)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "ask",
    [
        lambda made, by: dpgram.regress(made, "y", ["x"], design_effect=by),
        lambda made, by: dpgram.partial_correlations(made, ["x", "y"], design_effect=by),
        lambda made, by: dpgram.graph(made, ["x", "y"], design_effect=by),
        lambda made, by: dpgram.controls(made, "y", "x", ["b"], design_effect=by),
        lambda made, by: dpgram.logit(made, "b", ["x"], design_effect=by),
        lambda made, by: dpgram.lda(made, "b", ["x"], design_effect=by),
    ],
)
def test_a_design_effect_is_at_most_the_number_of_rows(small_release, ask):
    """Beyond, squares of it overflowed. If all rows are alike it is their number."""
    rows = small_release.rows
    ask(small_release, 1e-9)
    ask(small_release, rows)
    for given in (1e300, rows + 1):
        with pytest.raises(ModelError, match=rf"design_effect is .* from 1e-09 to {rows:,}, the number of rows, such as 1"):
            ask(small_release, given)


def test_a_design_effect_that_is_given_is_used_and_shown_and_changes_no_other_fit():
    ids, z = panel()
    release = weighted_release(z, shares(ids, 3), schema_of(), units=600)
    worst, given = dpgram.regress(release, "y", ["x"]), dpgram.regress(release, "y", ["x"], design_effect=1.5)
    assert given.to_dict()["design_effect"] == 1.5
    assert "Design effect: 1.5" in " ".join(str(given.summary()).split())
    assert worst.bse_sampling["x"] / given.bse_sampling["x"] == pytest.approx(np.sqrt(2), rel=1e-2)
    assert dpgram.regress(release, "y", ["x"]).design_effect == 3.0
    assert np.diff(given.conf_int(method="bootstrap").loc["x"]) < np.diff(worst.conf_int(method="bootstrap").loc["x"])
    joint = [fit.joint_test("x").statistic for fit in (worst, given)]
    assert joint[0] < joint[1]
