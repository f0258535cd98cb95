"""A mechanism of several rounds for tests: Gaussian noise, one round for each of some row bounds, of which the last is published; and
answers for mechanisms that ask for sums at several scales."""

from __future__ import annotations

import math

from dpgram.accounting.compose import GaussianCost
from dpgram.mechanisms import gaussian_noise
from dpgram.mechanisms.conversation import Drawing, GramAnswer, GramQuestion, Mechanism, Outcome, ask_back, publish
from dpgram.mechanisms.options import Option, by_name
from dpgram.sampling.base import known
from dpgram.terms.noise import SymmetricGaussian

NAME = "test-rounds"


def always(gram, rows):
    """Answers every question with one Gram sum; at further scales there is none of it."""
    return lambda question: GramAnswer(gram, rows, tuple(0 * gram for _ in question.scales[1:]))


def start(task, rng):
    """``rounds`` rounds of equal shift. ``late`` leaves their number out of the first question, as if it followed the number of rows."""
    found, rounds, late = gaussian_noise.calibrate(task), int(task.options.get("rounds", 3)), task.options.get("late", 0)
    ask_back(task, NAME, found["delta_at_epsilon"])
    mu = found["mu"] / math.sqrt(rounds)
    for number in range(1, rounds + 1):
        bound = task.row_bound * number / rounds
        answer = yield GramQuestion(bound, questions=None if late and number == 1 else rounds)
        yield Drawing(number, rounds, GaussianCost(mu * math.sqrt(number)))
        off = gaussian_noise.gram_sensitivity(bound, task.neighbours, 1) / (math.sqrt(2) * mu)
        on = gaussian_noise.diagonal_sd(off)
        noisy = gaussian_noise.add_symmetric_noise(known(answer.gram, rng), off, on, rng)
        gram, grid = publish(noisy, SymmetricGaussian(off, on), rng)
    return Outcome(gram, SymmetricGaussian(off, on), found, grid)


MECHANISM = Mechanism(
    name=NAME,
    summary="for tests",
    proof="gaussian_noise.md",
    calibrate=gaussian_noise.calibrate,
    start=start,
    cost=gaussian_noise.gaussian_cost,
    several=True,
    options=by_name(
        Option("rounds", float, "how many"),
        Option("late", float, "1: the number of rounds is known after the first question only"),
    ),
)
