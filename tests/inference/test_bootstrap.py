"""The bootstrap of wide releases: the same law from a regression's own columns, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import dpgram
from dpgram.evidence.evidence import Evidence
from dpgram.inference import bootstrap
from dpgram.inference.bootstrap import Simulated
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.regression.design import design
from dpgram.regression.formula import designs
from tests.analysis.test_fit import released


def simulated(evidence, plan, monkeypatch, most_bytes, draws):
    monkeypatch.setattr(bootstrap, "MOST_BYTES", most_bytes)
    return Simulated.of(evidence, plan, draws=draws)


@pytest.mark.parametrize("formula", ["y ~ x", "`c[a]` ~ x"])
@pytest.mark.parametrize("mechanism", [*(name for name in MECHANISMS if name != "noisy-inverse"), "combined"])
def test_a_regressions_own_columns_have_the_law_of_the_whole(mechanism, formula, monkeypatch):
    """2000 draws of each: the median of a distance has a relative sd of 3.7 % here, its upper decile one of 2.8 %."""
    if mechanism == "combined":
        parts = [released(one, rows=3000, epsilon=8.0) for one in ("whitened-noise", "gaussian-noise")]
        release = dpgram.combine(parts, rows="disjoint")
    else:
        release = released(mechanism, rows=4000, epsilon=8.0)
    (plan,) = designs(release.schema, formula)
    evidence = Evidence.of(release)
    whole = simulated(evidence, plan, monkeypatch, 2**30, 2000)
    own = simulated(evidence, plan, monkeypatch, 1000, 2000)
    assert not np.array_equal(whole.errors, own.errors)  # other columns were not drawn
    assert np.quantile(own.distances(), 0.5, axis=0) == pytest.approx(np.quantile(whole.distances(), 0.5, axis=0), rel=0.2)
    assert np.quantile(own.distances(), 0.9, axis=0) == pytest.approx(np.quantile(whole.distances(), 0.9, axis=0), rel=0.15)
    for share in (0.25, 0.75):
        far = np.quantile(np.abs(whole.errors), 0.9, axis=0)
        assert np.quantile(own.errors, share, axis=0) / far == pytest.approx(
            np.quantile(whole.errors, share, axis=0) / far, abs=0.12
        )


def test_portions_of_draws_are_the_same(monkeypatch):
    release = released("noisy-inverse", rows=4000, epsilon=8.0)
    plan, evidence = design(release.schema, "y", ["x", "c"], None), Evidence.of(release)
    whole, portions = (simulated(evidence, plan, monkeypatch, most, 50) for most in (2**30, 8 * 36 * 7))
    assert portions.errors == pytest.approx(whole.errors, rel=1e-6)
    assert portions.distances() == pytest.approx(whole.distances(), rel=1e-6)
    assert portions.joint_p_value(3.0, np.eye(4)[1:]) == pytest.approx(whole.joint_p_value(3.0, np.eye(4)[1:]))


@pytest.mark.parametrize("mechanism", ["gaussian-noise", "whitened-noise"])
def test_a_wide_release_takes_little_memory(mechanism):
    """500 matrices of 250 columns are 250 MB; they were made several times over."""
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.uniform(-1, 1, 2000) for j in range(250)}
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric(name, -1, 1) for name in table])
    made = dpgram.release(table, schema, epsilon=500.0, delta=1e-6, mechanism=mechanism, insecure_seed=1, arithmetic="float")
    dpgram.regress(made, "x0", ["x1", "x2"]).conf_int()
    tracemalloc.start()
    fit = dpgram.regress(made, "x0", ["x1", "x2"], intervals="bootstrap")
    ends = fit.conf_int().to_numpy()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 128 * 2**20
    plain = dpgram.regress(made, "x0", ["x1", "x2"], intervals="wald").conf_int().to_numpy()
    assert np.ptp(ends, axis=1) == pytest.approx(np.ptp(plain, axis=1), rel=0.25)
