"""The Gaussian sketch whose ridge shrinks, or whose rows grow, with a private look at the smallest eigenvalue (Algorithm 2).

Statement: (epsilon, delta) for REPLACE and ADD_REMOVE, both stages counted; the released value of the first stage is part of the
release. Proof: proofs/gaussian_sketch_adaptive.md and proofs/adaptive.md, on top of proofs/gaussian_sketch.md."""

from __future__ import annotations

from dpgram.mechanisms import first_stage, gaussian_sketch
from dpgram.mechanisms.conversation import Conversation, GramQuestion, Mechanism, Outcome, Parameters, Task, ask_back, publish
from dpgram.mechanisms.first_stage import FIRST_STAGE, plan_stages, release_smallest_eigenvalue, second_stage
from dpgram.mechanisms.gaussian_sketch import draw_sketch, sketch_rows
from dpgram.mechanisms.options import Option, by_name
from dpgram.sampling.base import RandomSource, known
from dpgram.terms.noise import WishartSample


def calibrate(task: Task) -> Parameters:
    """What is known before the data: the ridge that is needed when the smallest eigenvalue turns out to be zero."""
    found = plan_stages(task, sketch_rows(task)).parameters
    return {**found, "w_squared": found["base_w_squared"], "sketch_rows": found["base_degrees_of_freedom"]}


def start(task: Task, rng: RandomSource) -> Conversation:
    stages = plan_stages(task, sketch_rows(task))
    ask_back(task, MECHANISM.name, stages.parameters["delta_at_epsilon"])
    answer = yield GramQuestion(task.row_bound)
    true = known(answer.gram, rng)
    s = release_smallest_eigenvalue(true, stages, rng)
    ridge, r = second_stage(task, stages, s)
    noise = WishartSample(degrees_of_freedom=r, shift=ridge, floor=ridge + s)
    gram, grid = publish(draw_sketch(true, ridge, r, rng), noise, rng)
    found = {**stages.parameters, "first_stage_value": s, "w_squared": ridge, "sketch_rows": r}
    return Outcome(gram, noise, found, grid)


MECHANISM = Mechanism(
    name="gaussian-sketch-adaptive",
    summary="the Gaussian sketch after a private look at the smallest eigenvalue (Algorithm 2)",
    proof="gaussian_sketch_adaptive.md",
    words={**first_stage.WORDS, **gaussian_sketch.WORDS},
    calibrate=calibrate,
    start=start,
    batched=True,
    options=by_name(
        Option("sketch_rows", float, "smallest number of rows of the sketch; twice the number of columns when left out"),
        FIRST_STAGE,
    ),
)
