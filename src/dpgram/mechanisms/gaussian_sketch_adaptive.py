"""The Gaussian sketch whose ridge shrinks, or whose rows grow, with a private look at the smallest eigenvalue (Algorithm 2).

Statement: (epsilon, delta) for REPLACE and ADD_REMOVE, both stages counted; the released value of the first stage is part of the
release. Proof: proofs/gaussian_sketch_adaptive.md and proofs/adaptive.md, on top of proofs/gaussian_sketch.md."""

from __future__ import annotations

from dpgram.mechanisms import first_stage, gaussian_sketch
from dpgram.mechanisms.conversation import Conversation, Mechanism, Parameters, Task
from dpgram.mechanisms.first_stage import FIRST_STAGE, both_stages, plan_stages
from dpgram.mechanisms.gaussian_sketch import drawn, sketch_rows
from dpgram.mechanisms.options import Option, by_name
from dpgram.sampling.base import RandomSource


def calibrate(task: Task) -> Parameters:
    """What is known before the data: the ridge that is needed when the smallest eigenvalue turns out to be zero."""
    stages = plan_stages(task, sketch_rows(task))
    return {**stages.parameters, "w_squared": stages.base_ridge, "sketch_rows": stages.base_degrees}


def start(task: Task, rng: RandomSource) -> Conversation:
    return both_stages(task, rng, MECHANISM.name, sketch_rows, drawn)


MECHANISM = Mechanism(
    name="gaussian-sketch-adaptive",
    summary="the Gaussian sketch with a ridge chosen from a noisy smallest eigenvalue (Algorithm 2)",
    proof="gaussian_sketch_adaptive.md",
    words={**first_stage.WORDS, **gaussian_sketch.WORDS},
    calibrate=calibrate,
    start=start,
    batched=True,
    options=by_name(
        Option("sketch_rows", float, "smallest number of rows of the sketch, by default twice the number of columns"),
        FIRST_STAGE,
    ),
)
