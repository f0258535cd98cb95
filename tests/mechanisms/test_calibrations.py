"""Calibrations over a wide grid: the parameters that plain bisection found, on the private side, and not a digit too much noise.

``calibrations.json`` was written by bisection of each curve to the precision stated here, with quadrature at 48 panels throughout.
It leaves out Wishart noise of default size where no number of degrees of freedom comes near the Gaussian limit: the rule changed there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpgram.accounting.additive_wishart import additive_delta
from dpgram.accounting.gaussian import gaussian_delta
from dpgram.accounting.wishart import sampling_delta
from dpgram.mechanisms import registry
from dpgram.mechanisms.registry import MECHANISMS
from dpgram.terms.budget import Budget, Neighbours

CASES = json.loads((Path(__file__).parent / "calibrations.json").read_text(encoding="utf-8"))
EXACT_CASES = [case for case in CASES if case["calibration"] == "exact"]
PRECISION = {"wishart-noise": 2e-9}  # relative, of a parameter; elsewhere 1e-10


def calibrated(case):
    name, neighbours = case["mechanism"], Neighbours(case["neighbours"])
    budget = Budget(case["epsilon"], case["delta"])
    asked = registry.task(MECHANISMS[name], budget, neighbours, case["dim"], 1.0, case["calibration"], case["options"])
    return MECHANISMS[name].calibrate(asked), budget, neighbours


def name_of(case):
    return f"{case['mechanism']}-{case['neighbours']}-{case['dim']}-{case['epsilon']:.2g}-{case['delta']:.1g}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_parameters_are_those_of_bisection(case):
    found, budget, _ = calibrated(case)
    if case["calibration"] == "exact":
        assert 0 < found["delta_at_epsilon"] <= budget.delta
    # The certified eigenvalue lies up to 2^-20 B^2 below the true one, and the first stage's noise makes up for that.
    wider = 1 + 2.0**-20 if case["calibration"] == "exact" else 1.0
    precision = PRECISION.get(case["mechanism"], 1e-10)
    for name, value in case["found"].items():
        value *= wider if name in ("first_stage_scale", "first_stage_offset") else 1.0
        # delta moves up to some seventy times as fast as the parameters
        assert found[name] == pytest.approx(value, rel=100 * precision if name == "delta_at_epsilon" else precision, abs=0), (
            name
        )


@pytest.mark.parametrize("case", [case for case in EXACT_CASES if "first_stage" not in case["options"]], ids=name_of)
def test_a_little_less_noise_is_not_private(case):
    """So the answer is the best one, not merely a private one."""
    found, budget, neighbours = calibrated(case)
    epsilon, dim, delta = budget.epsilon, case["dim"], budget.delta
    if case["mechanism"] in ("gaussian-noise", "noisy-inverse"):
        assert gaussian_delta(epsilon, found["mu"] * (1 + 1e-6)) > delta
    elif case["mechanism"] == "wishart-noise":
        scale, k = found["scale"], found["degrees_of_freedom"]
        if not case["options"]:
            assert additive_delta(epsilon, k, dim, 1.0001 / scale, neighbours) > delta
        elif "scale" in case["options"] and k > dim + 1:
            assert additive_delta(epsilon, k - 1, dim, 1 / scale, neighbours) > delta * (1 - 1e-6)
    elif "adaptive" not in case["mechanism"]:
        r = found.get("sketch_rows", found.get("degrees_of_freedom"))
        assert sampling_delta(epsilon, r, found["floor"] * (1 - 1e-6), neighbours, dim) > delta
