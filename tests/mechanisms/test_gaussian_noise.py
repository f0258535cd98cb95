"""The sensitivity is attacked, the scale is what theory says, and the noise asks back before it is drawn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram import Budget, Neighbours
from dpgram.accounting.gaussian import calibrate_mu, gaussian_delta
from dpgram.errors import CalibrationError, UnknownMechanismError
from dpgram.mechanisms import gaussian_noise, registry
from dpgram.mechanisms.conversation import GramQuestion, Task, hold
from dpgram.mechanisms.gaussian_noise import calibrate, gram_sensitivity, shift
from dpgram.sampling.seeded import SeededSource

BOUND = 1.7
ROW = arrays(float, 4, elements=st.floats(-1, 1)).map(lambda v: BOUND * v / max(1.0, np.linalg.norm(v)))


@given(v=ROW, w=ROW)
def test_no_neighbours_exceed_the_sensitivity(v, w):
    replace = np.linalg.norm(np.outer(v, v) - np.outer(w, w))
    assert replace <= gram_sensitivity(BOUND, Neighbours.REPLACE) * (1 + 1e-12)
    assert np.linalg.norm(np.outer(v, v)) <= gram_sensitivity(BOUND, Neighbours.ADD_REMOVE) * (1 + 1e-12)


def test_worst_neighbours_attain_the_sensitivity():
    v, w = BOUND * np.eye(4)[:2]
    assert np.linalg.norm(np.outer(v, v) - np.outer(w, w)) == pytest.approx(gram_sensitivity(BOUND, Neighbours.REPLACE))
    assert np.linalg.norm(np.outer(v, v)) == pytest.approx(gram_sensitivity(BOUND, Neighbours.ADD_REMOVE))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 20])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-3])
@pytest.mark.parametrize("bound", [0.5, 1.0, math.sqrt(22), 60.0])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_scale_is_row_bound_squared_over_mu(epsilon, delta, bound, neighbours):
    task = Task(Budget(epsilon, delta), neighbours, dim=3, row_bound=bound)
    sd = calibrate(task)
    factor = {Neighbours.REPLACE: 1.0, Neighbours.ADD_REMOVE: 1 / math.sqrt(2)}[neighbours]
    assert sd == pytest.approx(factor * bound**2 / calibrate_mu(task.budget), rel=1e-12)
    assert gaussian_delta(epsilon, shift(sd, bound, neighbours)) <= delta


def test_privacy_loss_of_the_worst_neighbours_has_the_promised_curve():
    """The densities themselves, without svec or mu: the loss between diag(B^2, 0) and diag(0, B^2) is N(m^2/2, m^2)."""
    task = Task(Budget(1.0, 1e-4), Neighbours.REPLACE, dim=2, row_bound=BOUND)
    sd = calibrate(task)
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
        return 1e6 * np.eye(3)

    outcome = hold(gaussian_noise.start(task, SeededSource(3)), answer)
    assert asked == [GramQuestion(row_bound=2.0)]
    assert np.array_equal(outcome.gram, outcome.gram.T)
    assert outcome.noise.sd_off_diagonal == calibrate(task)
    noise = outcome.gram - 1e6 * np.eye(3)
    assert 0 < np.abs(noise).max() < 8 * outcome.noise.sd_diagonal


def test_unknown_mechanisms_are_refused_by_name():
    with pytest.raises(UnknownMechanismError, match="no mechanism 'laplace': use one of gaussian-noise"):
        registry.find("laplace")
