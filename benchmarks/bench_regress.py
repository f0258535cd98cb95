"""Time of 1,000 regressions from one release, over a bare solve of the same normal equations: ``make bench-regress``.

Prints a line for each way of fitting, or all of it as JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from benchmarks.timing import machine
from dpgram.artifact.release import GramRelease
from dpgram.inference.intervals import automatic, wald
from dpgram.regression.channel import channel
from dpgram.regression.design import Design, design
from dpgram.regression.fit import debiased, fit_linear, shrunk
from experiments.coverage.releases import make_release, plain_schema
from experiments.coverage.settings import Setting, draw

ROWS, SEED = 2**18, 3


def one_release(epsilon: float) -> GramRelease:
    """The paper's setting of 41 columns, released once with Gaussian noise."""
    setting = Setting("bench", ROWS, labels=20)
    gram = draw(setting, 0)[0]
    return make_release(
        gram,
        schema=plain_schema(setting.columns),
        rows=setting.rows,
        row_bound=setting.row_bound,
        epsilon=epsilon,
        mechanism="gaussian-noise",
        seed=SEED,
    )


def choices(release: GramRelease, count: int) -> list[tuple[str, list[str]]]:
    """Random targets, each with a random subset of the other columns as features."""
    rng = np.random.default_rng(SEED)
    names = np.array(release.columns[1:])
    picked = [rng.permutation(names)[: rng.integers(2, len(names) + 1)].tolist() for _ in range(count)]
    return [(chosen[0], chosen[1:]) for chosen in picked]


def bare(release: GramRelease, target: str, features: list[str]) -> np.ndarray:
    """The solve alone, with columns found by name."""
    places = [0, *(release.columns.index(name) for name in features)]
    return np.linalg.solve(release.gram[np.ix_(places, places)], release.gram[places, release.columns.index(target)])


def with_default(release: GramRelease, plan: Design) -> None:
    fit_linear(release, plan, "shrunk")


def with_wald(release: GramRelease, plan: Design) -> None:
    seen = channel(release, plan)
    shrunk(seen), debiased(seen), wald(seen, 0.95)


def with_intervals(release: GramRelease, plan: Design) -> None:
    seen = channel(release, plan)
    shrunk(seen), debiased(seen), automatic(seen, 0.95)


WAYS: dict[str, Callable[[GramRelease, Design], None]] = {
    "default estimator": with_default,
    "default, debiased and Wald intervals": with_wald,
    "default, debiased and automatic intervals": with_intervals,
}


def bench(count: int = 1000, epsilon: float = 1.0) -> dict:
    """Milliseconds per regression, the design included, and the ratio to the bare solve; every way over the same regressions."""
    release = one_release(epsilon)
    asked = choices(release, count)
    start = time.perf_counter()
    for target, features in asked:
        bare(release, target, features)
    alone = (time.perf_counter() - start) / count
    timings: dict[str, dict[str, float]] = {}
    for name, fit in WAYS.items():
        start = time.perf_counter()
        for target, features in asked:
            fit(release, design(release, target, features, None))
        each = (time.perf_counter() - start) / count
        timings[name] = {"ms": 1e3 * each, "over_solve": each / alone}
    return {
        "regressions": count,
        "columns": len(release.columns),
        "epsilon": epsilon,
        "solve_ms": 1e3 * alone,
        "ways": timings,
        "machine": machine(),
    }


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_regress", description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    result = bench(given.count, given.epsilon)
    if given.json:
        print(json.dumps(result))
        return
    print(f"- numpy.linalg.solve: {result['solve_ms']:.3f} ms")
    for name, timing in result["ways"].items():
        print(f"- {name}: {timing['ms']:.2f} ms, {timing['over_solve']:.1f} times the bare solve")


if __name__ == "__main__":
    main()
