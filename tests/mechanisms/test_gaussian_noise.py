"""The sensitivity is attacked, the scale is what theory says, and the noise asks back before it is drawn."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram import Budget, Neighbours
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.errors import CalibrationError, MechanismError, UnknownMechanismError
from dpgram.linalg.norms import expected_norm
from dpgram.mechanisms import gaussian_noise, registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, Task, hold
from dpgram.mechanisms.gaussian_noise import calibrate, gram_sensitivity, shift
from dpgram.sampling.seeded import SeededSource

BOUND = 1.7
ROW = arrays(float, 4, elements=st.floats(-1, 1)).map(lambda v: BOUND * v / max(1.0, np.linalg.norm(v)))


@given(v=ROW, w=ROW)
def test_no_neighbours_exceed_the_sensitivity(v, w):
    replace = np.linalg.norm(np.outer(v, v) - np.outer(w, w))
    assert replace <= gram_sensitivity(BOUND, Neighbours.REPLACE, 1) * (1 + 1e-12)
    assert np.linalg.norm(np.outer(v, v)) <= gram_sensitivity(BOUND, Neighbours.ADD_REMOVE, 1) * (1 + 1e-12)


def test_worst_neighbours_attain_the_sensitivity():
    v, w = BOUND * np.eye(4)[:2]
    assert np.linalg.norm(np.outer(v, v) - np.outer(w, w)) == pytest.approx(gram_sensitivity(BOUND, Neighbours.REPLACE, 1))
    assert np.linalg.norm(np.outer(v, v)) == pytest.approx(gram_sensitivity(BOUND, Neighbours.ADD_REMOVE, 1))


@given(v=st.floats(-BOUND, BOUND), w=st.floats(-BOUND, BOUND), many=st.integers(1, 5))
def test_a_single_column_moves_no_further_than_one_unit(v, w, many):
    """Sums of squares are not negative, so that of the unit that comes makes up for that of the unit that goes."""
    for neighbours in Neighbours:
        largest = gram_sensitivity(BOUND, neighbours, many, 1)
        assert many * abs(v**2 - w**2) <= largest * (1 + 1e-12)
        assert largest == pytest.approx(many * BOUND**2)  # attained by a unit at the bound beside one of zeros


def test_the_noise_of_a_single_column_is_that_of_one_unit():
    one, other = (calibrate(Task(Budget(1.0, 1e-6), each, dim=1, row_bound=BOUND)) for each in Neighbours)
    assert one == other
    assert one["delta_at_epsilon"] == pytest.approx(1e-6, rel=1e-6)
    two = calibrate(Task(Budget(1.0, 1e-6), Neighbours.REPLACE, dim=2, row_bound=BOUND))
    assert two["sd_diagonal"] == pytest.approx(math.sqrt(2) * one["sd_diagonal"])


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-3])
@pytest.mark.parametrize("bound", [0.5, 1.0, math.sqrt(22), 60.0])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_scale_is_row_bound_squared_over_mu(epsilon, delta, bound, neighbours):
    task = Task(Budget(epsilon, delta), neighbours, dim=3, row_bound=bound)
    found = calibrate(task)
    sd = found["sd_off_diagonal"]
    factor = {Neighbours.REPLACE: 1.0, Neighbours.ADD_REMOVE: 1 / math.sqrt(2)}[neighbours]
    assert sd == pytest.approx(factor * bound**2 / calibrate_mu(task.budget), rel=1e-12)
    assert found["sd_diagonal"] == pytest.approx(math.sqrt(2) * sd)
    assert gaussian_delta(epsilon, shift(sd, math.sqrt(2) * sd, gram_sensitivity(bound, neighbours, 1))) <= delta


def test_privacy_loss_of_the_worst_neighbours_has_the_promised_curve():
    """The densities themselves, without svec or mu: the loss between diag(B^2, 0) and diag(0, B^2) is N(m^2/2, m^2)."""
    task = Task(Budget(1.0, 1e-4), Neighbours.REPLACE, dim=2, row_bound=BOUND)
    sd = calibrate(task)["sd_off_diagonal"]
    change = np.diag([BOUND**2, -(BOUND**2)])
    variance = np.array([[2 * sd**2, sd**2], [sd**2, 2 * sd**2]])
    shift_squared = sum(change[i, j] ** 2 / variance[i, j] for i in range(2) for j in range(i, 2))
    assert gaussian_delta(1.0, math.sqrt(shift_squared)) == pytest.approx(1e-4, rel=1e-6)


def test_wrong_noise_is_refused_before_anything_is_asked(monkeypatch):
    monkeypatch.setattr(gaussian_noise, "calibrate_mu", lambda budget: 1.01 * calibrate_mu(budget))
    conversation = gaussian_noise.start(Task(Budget(1, 1e-6), Neighbours.REPLACE, 2, 1.0), SeededSource(0))
    with pytest.raises(CalibrationError, match="nothing was released"):
        next(conversation)


def test_the_conversation_asks_once_and_adds_noise_to_the_answer():
    task = Task(Budget(1, 1e-6), Neighbours.REPLACE, dim=3, row_bound=2.0)
    asked: list[GramQuestion] = []

    def answer(question):
        asked.append(question)
        return GramAnswer(1e6 * np.eye(3), 5)

    outcome = hold(gaussian_noise.start(task, SeededSource(3)), answer)
    assert asked == [GramQuestion(row_bound=2.0)]
    assert np.array_equal(outcome.gram, outcome.gram.T)
    assert outcome.noise.sd_off_diagonal == calibrate(task)["sd_off_diagonal"]
    noise = outcome.gram - 1e6 * np.eye(3)
    assert 0 < np.abs(noise).max() < 8 * outcome.noise.sd_diagonal


PRINTED_EXCESS = [
    (0.5, math.exp(-9), 0.42),
    (0.5, 1e-6, 2.8),
    (1, math.exp(-9), 1.08),
    (1, 1e-6, 7.0),
    (1, 1e-9, 131),
    (2, 1e-9, 424),
]


@pytest.mark.parametrize(("epsilon", "delta", "excess"), PRINTED_EXCESS)
def test_the_printed_formula_has_the_true_delta_that_others_found(epsilon, delta, excess):
    task = Task(Budget(epsilon, delta), Neighbours.REPLACE, dim=5, row_bound=1.0, calibration="paper")
    found = calibrate(task)
    assert found["sd_off_diagonal"] == found["sd_diagonal"] == pytest.approx(math.sqrt(2 * math.log(2 / delta)) / epsilon)
    assert found["delta_at_epsilon"] / delta == pytest.approx(excess, rel=0.02)
    conversation = gaussian_noise.start(task, SeededSource(0))
    if excess > 1:
        with pytest.raises(MechanismError, match="less private than it says: its true delta is"):
            next(conversation)
        next(gaussian_noise.start(replace(task, experiment=True), SeededSource(0)))
    else:
        next(conversation)


def noisy(repair, gram=None):
    task = Task(Budget(1, 1e-6), Neighbours.REPLACE, dim=6, row_bound=1.0, options={"repair": repair})
    gram = np.zeros((6, 6)) if gram is None else gram
    return hold(gaussian_noise.start(task, SeededSource(5)), lambda q: GramAnswer(gram, 9))


def test_repairs_are_functions_of_the_noisy_matrix():
    none, psd, lifted = noisy("none"), noisy("psd"), noisy("shift")
    values, vectors = np.linalg.eigh(none.gram)
    assert values[0] < 0
    assert psd.gram == pytest.approx((vectors * np.maximum(values, 0)) @ vectors.T)
    assert lifted.gram == pytest.approx(none.gram + lifted.noise.shift * np.eye(6))
    assert lifted.noise.shift / (none.noise.sd_off_diagonal * math.sqrt(6)) == pytest.approx(1.76, abs=0.06)
    definite = noisy("shift", gram=1e6 * np.eye(6))
    assert definite.noise.shift == 0
    with pytest.raises(MechanismError, match="repair is 'lasso' and must be one of"):
        noisy("lasso")


@pytest.mark.parametrize(
    ("dim", "orthogonal", "equal"),
    [(2, 1.45, 1.16), (5, 1.73, 1.56), (10, 1.84, 1.74), (22, 1.91, 1.87), (50, 1.95, 1.93), (100, 1.97, 1.96)],
)
def test_the_expected_norm_is_that_of_independent_simulations(dim, orthogonal, equal):
    assert expected_norm(dim, 1.0, math.sqrt(2)) / math.sqrt(dim) == pytest.approx(orthogonal, rel=0.03)
    assert expected_norm(dim, 1.0, 1.0) / math.sqrt(dim) == pytest.approx(equal, rel=0.05)


def test_unknown_mechanisms_are_refused_by_name():
    with pytest.raises(UnknownMechanismError, match="no mechanism named 'laplace'. Use one of .*gaussian-noise"):
        registry.find("laplace")
