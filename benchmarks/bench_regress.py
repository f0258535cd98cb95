"""Time of ``dpgram.regress`` on a loaded release of 41 columns, over ``numpy.linalg.solve`` of the same columns found by name:
``make bench-regress``. Then ten thousand regressions with a progress bar, and what they add to memory.

Prints a line for each way of fitting, or all of it as JSON."""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np

import dpgram
from benchmarks.timing import machine
from dpgram.artifact.release import GramRelease
from dpgram.cli.output import working_bar
from experiments.coverage.releases import make_release, plain_schema
from experiments.coverage.settings import Setting, draw

ROWS, SEED = 2**18, 3
MANY, PARTS = 10_000, 10

Asked = tuple[str, list[str]]


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


def choices(release: GramRelease, count: int) -> list[Asked]:
    """Random targets, each with a random subset of the other columns as features."""
    rng = np.random.default_rng(SEED)
    names = np.array(release.columns[1:])
    picked = [rng.permutation(names)[: rng.integers(2, len(names) + 1)].tolist() for _ in range(count)]
    return [(chosen[0], chosen[1:]) for chosen in picked]


def solved(release: GramRelease, target: str, features: list[str]) -> dict[str, float]:
    """Least squares by one solve, as somebody would write it: columns found by name, coefficients by name and in own units."""
    places = [0, *(release.columns.index(name) for name in features)]
    label = release.columns.index(target)
    scaled = np.linalg.solve(release.gram[np.ix_(places, places)], release.gram[places, label])
    encoded = release.schema.encoded
    unit, centre = encoded[label].half, encoded[label].centre
    slopes = unit * scaled[1:] / np.array([encoded[j].half for j in places[1:]])
    first = centre + unit * scaled[0] - slopes @ np.array([encoded[j].centre for j in places[1:]])
    return dict(zip(["(intercept)", *features], [float(first), *slopes.tolist()], strict=True))


WAYS: dict[str, Callable[[GramRelease, str, list[str]], object]] = {
    "default fit": lambda release, target, features: dpgram.regress(release, target, features).coefficients,
    "debiased with Wald intervals": lambda release, target, features: dpgram.regress(
        release, target, features, estimator="debiased", intervals="wald"
    ).ends(),
    "debiased with automatic intervals": lambda release, target, features: dpgram.regress(
        release, target, features, estimator="debiased"
    ).ends(),
}


def bench(count: int = 1000, epsilon: float = 1.0, many: int = MANY) -> dict:
    """Milliseconds of processor time per regression, and the ratio to the solve; every way over the same regressions, in turns."""
    release = one_release(epsilon)
    asked = choices(release, count)
    ways = {"numpy.linalg.solve": solved, **WAYS}
    spent = dict.fromkeys(ways, 0.0)
    for part in range(PARTS):
        for name, fit in ways.items():
            start = time.process_time()
            for target, features in asked[part::PARTS]:
                fit(release, target, features)
            spent[name] += time.process_time() - start
    alone = spent.pop("numpy.linalg.solve")
    return {
        "regressions": count,
        "columns": len(release.columns),
        "epsilon": epsilon,
        "solve_ms": 1e3 * alone / count,
        "ways": {name: {"ms": 1e3 * each / count, "over_solve": each / alone} for name, each in spent.items()},
        "many": many_regressions(release, many),
        "machine": machine(),
    }


def many_regressions(release: GramRelease, count: int) -> dict[str, float]:
    """Seconds of ``count`` regressions, and by how many MB the process grew after the first tenth of them."""
    start, first = time.perf_counter(), 0.0
    with working_bar("fitting") as bar:
        for done, (target, features) in enumerate(choices(release, count), 1):
            dpgram.regress(release, target, features).coefficients  # noqa: B018
            if done == count // 10:
                first = _resident()
            if bar is not None and done % 100 == 0:
                bar(done / count)
    return {"regressions": count, "seconds": time.perf_counter() - start, "grown_mb": _resident() - first}


def _resident() -> float:
    """The largest resident size so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_regress", description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--many", type=int, default=MANY)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    result = bench(given.count, given.epsilon, given.many)
    if given.json:
        print(json.dumps(result))
        return
    print(f"- numpy.linalg.solve, columns found by name: {result['solve_ms']:.3f} ms")
    for name, found in result["ways"].items():
        print(f"- {name}: {found['ms']:.2f} ms, {found['over_solve']:.1f} times the solve")
    many = result["many"]
    if many["regressions"]:
        grown = f"memory grew by {many['grown_mb']:.1f} MB after the first tenth"
        print(f"- {many['regressions']:,} default fits: {many['seconds']:.1f} s; {grown}")


if __name__ == "__main__":
    main()
