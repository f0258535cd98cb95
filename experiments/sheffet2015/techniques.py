"""Every technique of the paper on one Gram matrix: releases with printed and with exact constants, and the errors of their regressions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpgram.artifact.release import GramRelease
from dpgram.evidence.evidence import Evidence
from dpgram.linalg.norms import expected_norm
from dpgram.linalg.symmetric import positive_part, smallest_eigenvalue
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import EXACT_CURVE, PAPER, GramAnswer, Outcome, Task, hold
from dpgram.mechanisms.gaussian_sketch import draw_sketch
from dpgram.mechanisms.inverse_wishart import draw_posterior
from dpgram.regression.design import design
from dpgram.regression.fit import fit_linear
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.columns import Numeric
from dpgram.terms.schema import Schema
from experiments.sheffet2015.settings import DELTA, FEATURES, MULTIPLE, Setting, seed

Array = np.ndarray

CALIBRATIONS = (PAPER, EXACT_CURVE)
NO_EPSILON = 0.0  # marks what is not private

# name -> what it is, in the paper's words or ours
TECHNIQUES = {
    "ols": "least squares on the rows, not private",
    "sketch": "a sketch of the rows themselves, not private",
    "posterior": "a posterior draw without a prior, not private",
    "algorithm-1": "Algorithm 1: sketch with a ridge",
    "algorithm-2": "Algorithm 2: sketch, smallest eigenvalue first",
    "algorithm-3": "Algorithm 3: additive Wishart noise",
    "algorithm-3-shifted": "Algorithm 3, mean subtracted",
    "algorithm-4": "Algorithm 4: inverse-Wishart draw",
    "algorithm-5-n": "Algorithm 5 with n + d degrees of freedom",
    "algorithm-5": "Algorithm 5 with 2d degrees of freedom",
    "analyze-gauss": "Analyze Gauss",
    "analyze-gauss-scaled": "Analyze Gauss, lifted if indefinite",
    "analyze-gauss-psd": "Analyze Gauss, negative eigenvalues made zero",
    "dpgram": "dpgram: gaussian-noise, shrunk",
    "whitened-noise": "dpgram: whitened-noise, shrunk",
    "ols-unshrunk": "least squares on rows that are not shrunk, not private",
}


@dataclass(frozen=True)
class Result:
    """One error: the distance of an estimate to the coefficients that made the data."""

    setting: str
    exponent: int
    repetition: int
    epsilon: float
    calibration: str  # empty where nothing is private
    technique: str
    extra: int  # m
    error: float


def results(
    setting: Setting, exponent: int, repetition: int, gram: Array, beta: Array, extras: tuple[int, ...]
) -> Iterator[Result]:
    """All errors on one table."""
    problem = Problem(setting, exponent, repetition, gram, beta, extras)
    yield from problem.errors(NO_EPSILON, "", "ols", gram)
    if setting.name != MULTIPLE.name:
        draw = draw_posterior(gram, 0.0, 2**exponent + setting.dim, problem.source(0, 0, "posterior"))
        yield from problem.errors(NO_EPSILON, "", "posterior", draw)
    for place, epsilon in enumerate(setting.epsilons):
        for calibration in CALIBRATIONS:
            yield from _private(problem, epsilon, calibration, place)


def _private(problem: Problem, epsilon: float, calibration: str, place: int) -> Iterator[Result]:
    dim = problem.setting.dim

    def released(technique: str, mechanism: str, **options: float | str) -> Outcome:
        return problem.release(epsilon, calibration, place, technique, mechanism, options)

    gauss = released("analyze-gauss", "gaussian-noise")
    yield from problem.errors(epsilon, calibration, "analyze-gauss", gauss.gram)
    yield from problem.errors(epsilon, calibration, "dpgram", gauss.gram, gauss)
    lift = (
        expected_norm(dim, gauss.noise.sd_off_diagonal, gauss.noise.sd_diagonal)
        if smallest_eigenvalue(gauss.gram) <= 0
        else 0.0
    )
    yield from problem.errors(epsilon, calibration, "analyze-gauss-scaled", gauss.gram + lift * np.eye(dim))
    yield from problem.errors(epsilon, calibration, "analyze-gauss-psd", positive_part(gauss.gram))

    wishart = released("algorithm-3", "wishart-noise")
    yield from problem.errors(epsilon, calibration, "algorithm-3-shifted", wishart.gram)
    raw = wishart.gram + wishart.parameters["shift_removed"] * np.eye(dim)
    yield from problem.errors(epsilon, calibration, "algorithm-3", raw)

    adaptive = released("algorithm-2", "gaussian-sketch-adaptive", sketch_rows=2.0 * dim)
    yield from problem.errors(epsilon, calibration, "algorithm-2", adaptive.gram)
    yield from problem.errors(
        epsilon,
        calibration,
        "algorithm-5",
        released("algorithm-5", "inverse-wishart-adaptive", degrees_of_freedom=2.0 * dim).gram,
    )
    if problem.setting.name == MULTIPLE.name:
        return
    rows = float(math.floor(adaptive.parameters["sketch_rows"]))
    yield from problem.errors(
        epsilon, calibration, "algorithm-1", released("algorithm-1", "gaussian-sketch", sketch_rows=rows).gram
    )
    plain = draw_sketch(problem.gram, 0.0, rows, problem.source(place, CALIBRATIONS.index(calibration), "sketch"))
    yield from problem.errors(epsilon, calibration, "sketch", plain)
    degrees = float(2**problem.exponent + dim)
    yield from problem.errors(
        epsilon, calibration, "algorithm-4", released("algorithm-4", "inverse-wishart", degrees_of_freedom=degrees).gram
    )
    yield from problem.errors(
        epsilon,
        calibration,
        "algorithm-5-n",
        released("algorithm-5-n", "inverse-wishart-adaptive", degrees_of_freedom=degrees).gram,
    )


@dataclass(frozen=True, eq=False)
class Problem:
    setting: Setting
    exponent: int
    repetition: int
    gram: Array
    beta: Array
    extras: tuple[int, ...]

    def source(self, place: int, calibration: int, technique: str) -> SeededSource:
        """Randomness of one release: a seed for each."""
        key = seed(self.setting, self.exponent, self.repetition)
        return SeededSource(((key * 16 + place) * 4 + calibration) * 64 + list(TECHNIQUES).index(technique))

    def release(
        self, epsilon: float, calibration: str, place: int, technique: str, mechanism: str, options: dict[str, float | str]
    ) -> Outcome:
        chosen = registry.find(mechanism)
        # "experiment" lets printed formulas through that promise more than they keep
        task = Task(
            Budget(epsilon, DELTA),
            Neighbours.REPLACE,
            self.setting.dim,
            self.setting.row_bound,
            calibration,
            options,
            experiment=True,
        )
        rng = self.source(place, CALIBRATIONS.index(calibration), technique)
        return hold(chosen.start(task, rng), lambda question: GramAnswer(self.gram, 2**self.exponent))

    def errors(
        self, epsilon: float, calibration: str, technique: str, gram: Array, outcome: Outcome | None = None
    ) -> Iterator[Result]:
        """The error of each regression: the paper's plain solve, or our default where an outcome is given."""
        label = self.setting.dim - 1
        for extra in self.extras:
            places = [*range(1 + FEATURES + extra)]
            truth = np.concatenate([self.beta[:, -1], np.zeros(extra)])
            if outcome is None:
                # lstsq where negative eigenvalues were made zero: that block may be singular
                solver = _pseudo_solve if technique == "analyze-gauss-psd" else np.linalg.solve
                coefficients = solver(gram[np.ix_(places, places)], gram[places, label])
            else:
                coefficients = _default(self.setting, outcome, places, label, epsilon)
            error = float(np.linalg.norm(coefficients - truth))
            yield Result(self.setting.name, self.exponent, self.repetition, epsilon, calibration, technique, extra, error)


def _pseudo_solve(matrix: Array, cross: Array) -> Array:
    return np.linalg.lstsq(matrix, cross, rcond=None)[0]


def _default(setting: Setting, outcome: Outcome, places: list[int], label: int, epsilon: float) -> Array:
    columns = [Numeric(f"c{j}", -1, 1, missing="midpoint") for j in range(1, setting.dim)]
    release = GramRelease(
        schema=Schema(unit="row", columns=tuple(columns)),
        gram=outcome.gram,
        rows=None,
        row_bound=setting.row_bound,
        budget=Budget(epsilon, DELTA),
        mechanism="gaussian-noise",
        noise=outcome.noise,
        randomness="seed",
        private=False,
        library_version="",
    )
    plan = design(release.schema, f"c{label}", [f"c{j}" for j in places[1:]], None)
    return fit_linear(Evidence.of(release), plan, "shrunk")
