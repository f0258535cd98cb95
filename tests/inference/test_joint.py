"""Joint tests: the F test where there is no noise, the size promised where there is, however weak the features are."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dpgram.errors import ModelError
from dpgram.evidence.evidence import Evidence
from dpgram.inference.hypotheses import jointly
from dpgram.inference.pivot import Pivot, p_value, statistic
from dpgram.regression.channel import channel
from dpgram.regression.design import design
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.noise import SymmetricGaussian, WishartSample
from tests.conftest import small_schema, small_table
from tests.releases import NOISES, matrix_release, pass_through, seen_through, true_gram, with_gram

TABLE = small_table(rows=3000)


def joint(seen, places, **how):
    """The test that the coefficients at ``places`` are all zero."""
    return jointly(seen, np.zeros(len(places)), np.eye(len(seen.gain))[list(places)], **how)


def of(release, features=None, target="y"):
    plan = design(release.schema, target, features, None)
    return plan, channel(Evidence.of(release), plan)


@pytest.mark.parametrize("target", ["y", "x"])
def test_without_noise_it_is_the_f_test(target):
    """The drop of the sum of squares over the error variance, for the levels of c; chi-square in place of F at 3000 rows."""
    schema = small_schema()
    release = with_gram(SymmetricGaussian.orthogonal(1e-6), true_gram(TABLE, schema), TABLE, schema)
    _, seen = of(release, ["b", "c"], target)
    found = joint(seen, [2, 3])
    b, c = TABLE["b"].to_numpy().astype(float), TABLE["c"].to_numpy()
    y = TABLE[target].to_numpy()
    few = np.column_stack([np.ones(3000), b])
    many = np.column_stack([few, c == "b", c == "z"])
    left = [float(np.linalg.lstsq(x, y, rcond=None)[1][0]) for x in (few, many)]
    expected = (left[0] - left[1]) / (left[1] / (3000 - 4))
    assert found.degrees == 2
    assert found.statistic == pytest.approx(expected, rel=1e-3)
    assert found.p_value == pytest.approx(stats.chi2.sf(expected, 2), rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("name", NOISES)
def test_levels_that_matter_are_seen(name):
    release = seen_through(NOISES[name], TABLE, small_schema())
    plan, seen = of(release)
    places = dict(plan.groups)["b"]
    found = joint(seen, places)
    assert found.statistic >= 0
    assert found.p_value < 0.05 or name == "wishart"


@pytest.mark.parametrize(
    "noise", [SymmetricGaussian.orthogonal(10.0), WishartSample(60.0, 40.0, 40.0)], ids=["gaussian", "sketch"]
)
@pytest.mark.parametrize("size", [200.0, 20.0])
def test_a_true_hypothesis_is_rejected_as_often_as_said(noise, size):
    """Three features of which two have no effect, at a size where they stand above the noise and one where they hardly do.

    200 draws at level 0.1 and five sd above it: a false alarm in three million runs. The test may be cautious, never loose.
    Power: the effect that there is, is seen nearly always at the larger size."""
    true = np.diag([size, size, size, 0.0])
    true[0, 3] = true[3, 0] = 0.8 * size
    true[3, 3] = 0.64 * size + 0.1 * size
    rejected, seen_at = 0, 0
    for k in range(200):
        release = matrix_release(pass_through(noise, true, SeededSource(k)), noise, intercept=False, rows=100_000)
        _, seen = of(release)
        rejected += joint(seen, [1, 2]).p_value < 0.1
        seen_at += joint(seen, [0]).p_value < 0.1
    assert rejected / 200 < 0.1 + 5 * np.sqrt(0.1 * 0.9 / 200)
    assert size == 20.0 or seen_at / 200 > 0.9


def test_all_coefficients_leave_nothing_to_profile():
    """With every coefficient given, the statistic of the exact test is the one at that point."""
    release = seen_through(NOISES["gaussian"], TABLE, small_schema())
    _, seen = of(release)
    found = joint(seen, range(5), method="fieller")
    zero = np.linalg.solve(seen.to_own, -seen.base)
    exact = statistic(Pivot.exactly(seen), zero[None])[0][0]
    assert found.statistic == pytest.approx(exact, rel=1e-6)


def test_the_statistic_does_not_depend_on_units():
    release = seen_through(NOISES["gaussian"], TABLE, small_schema())
    wide = dataclasses.replace(
        release,
        schema=small_schema(
            columns=[dataclasses.replace(release.schema.columns[0], lower=-500, upper=500), *release.schema.columns[1:]]
        ),
    )
    (_, one), (_, other) = of(release), of(wide)
    found = joint(other, [1, 2]).statistic
    assert found == pytest.approx(joint(one, [1, 2]).statistic, rel=1e-5)


def test_p_values():
    assert p_value(3.84, 1, np.inf) == pytest.approx(0.05, abs=1e-3)
    assert p_value(2 * 3.0, 2, 20.0) == pytest.approx(stats.f.sf(3.0, 2, 20.0))
    assert p_value(0.0, 3, np.inf) == 1.0


def test_no_coefficient_no_test():
    _, seen = of(seen_through(NOISES["gaussian"], TABLE, small_schema()))
    with pytest.raises(ModelError, match="needs at least one restriction"):
        joint(seen, [])
