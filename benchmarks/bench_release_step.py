"""What a release costs besides the pass over the rows: ``make bench-release``.

For every mechanism and several numbers of columns, the calibration with empty caches and the step from the exact Gram to the outcome,
noise from the operating system's source included: in float64 and, up to 500 columns, in exact arithmetic. Then what starting Python
with the library costs. Each number is the best of several runs, then their median: on a shared machine the two lie apart, and processor
time, in the JSON, tells why. Prints a table, and with ``--json`` all of it as JSON after the table; progress goes to standard error."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import scipy

from benchmarks.timing import machine
from dpgram.accounting import additive_wishart, gaussian, wishart
from dpgram.mechanisms.conversation import GramAnswer, Mechanism, Task, hold
from dpgram.mechanisms.registry import MECHANISMS, task
from dpgram.rows.clip import GRID_BITS
from dpgram.rows.gram_sum import LIMB_BITS, LIMB_MASK, GramSum
from dpgram.sampling.base import RandomSource, exact_gram
from dpgram.sampling.exact import ExactSource
from dpgram.sampling.secure import SecureSource
from dpgram.terms.budget import Budget, Neighbours

ONE_SUM = [
    mechanism for mechanism in MECHANISMS.values() if not mechanism.several
]  # the others read the table between two steps
DIMS = (22, 100, 200, 500, 1000)
EXACT_UP_TO = 500  # columns: beyond, one exact release takes half a minute
ROWS = 100_000  # for the mechanism whose degrees of freedom follow the number of rows
CACHED = (
    additive_wishart.additive_delta,
    additive_wishart.calibrate_b,
    additive_wishart.calibrate_degrees,
    gaussian.calibrate_mu,
    wishart.calibrate_degrees,
    wishart.calibrate_floor,
    wishart.sampling_delta,
)
STARTS = {
    "python, nothing imported": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import numpy, scipy.special, pyarrow.parquet": ["-c", "import numpy, scipy.special, pyarrow.parquet"],
    "import dpgram": ["-c", "import dpgram"],
    "dpgram.load": ["-c", "import dpgram; dpgram.load"],
    "dpgram.regress": ["-c", "import dpgram; dpgram.regress"],
    "dpgram.release": ["-c", "import dpgram; dpgram.release"],
    "dpgram --help": ["-m", "dpgram", "--help"],
}


def some_gram(dim: int) -> np.ndarray:
    """A Gram of ROWS rows of norm about one, with condition number about 10."""
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(4 * dim, dim))
    return ROWS / (4 * dim) * (rows.T @ rows) / dim


def as_sum(gram: np.ndarray) -> GramSum:
    """``gram`` on the grid, as the pass over the rows leaves it."""
    points = np.rint(np.ldexp(gram, 2 * GRID_BITS - LIMB_BITS))  # only the high limb: enough to time with
    high = points.astype(np.int64)
    return GramSum(high, (high * 2654435761) & LIMB_MASK, ROWS, 1.0)


def empty_caches() -> None:
    for function in CACHED:
        function.cache_clear()


def asked(mechanism: Mechanism, dim: int, epsilon: float, delta: float, neighbours: Neighbours) -> Task:
    options = {"noisy-inverse": {"rho": 3.0}, "inverse-wishart": {"degrees_of_freedom": float(ROWS + dim)}}
    return task(mechanism, Budget(epsilon, delta), neighbours, dim, 1.0, options=options.get(mechanism.name))


@dataclass(frozen=True)
class Timing:
    """Milliseconds of several runs."""

    best: float
    median: float
    processor: float  # the median of processor time, all threads and processes together

    @classmethod
    def of(cls, runs: Sequence[tuple[float, float]]) -> Timing:
        """From (wall, processor) seconds."""
        wall = [1e3 * run[0] for run in runs]
        return cls(min(wall), statistics.median(wall), 1e3 * statistics.median(run[1] for run in runs))

    def __str__(self) -> str:
        return f"{self.best:.1f} ({self.median:.1f})"


def clocks() -> tuple[float, float]:
    """Wall time, and processor time of this process and of those it waited for."""
    used = os.times()
    return time.perf_counter(), time.process_time() + used.children_user + used.children_system


def timed(call: Callable[[], object]) -> tuple[float, float]:
    before = clocks()
    call()
    after = clocks()
    return after[0] - before[0], after[1] - before[1]


def one_release(
    mechanism: Mechanism, wanted: Task, gram: object, rng: RandomSource
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The time until the first question, with empty caches, and from its answer to the outcome."""
    empty_caches()
    conversation = mechanism.start(wanted, rng)

    def answer() -> None:
        try:
            conversation.send(GramAnswer(gram, ROWS))
        except StopIteration:
            return
        raise RuntimeError(f"{mechanism.name} asked twice")

    return timed(lambda: next(conversation)), timed(answer)


def exact_step(mechanism: Mechanism, wanted: Task, total: GramSum) -> None:
    """From the exact Gram to the outcome, in exact arithmetic; calibrations are known by now."""
    gram = exact_gram(*total.in_whole_numbers())
    hold(mechanism.start(wanted, ExactSource()), lambda question: GramAnswer(gram, ROWS))


def bench_steps(repeats: int, epsilon: float, delta: float, neighbours: Neighbours) -> Iterator[dict]:
    """One row for each number of columns and mechanism."""
    for dim in DIMS:
        gram = some_gram(dim)
        times = repeats if dim < 500 else max(3, repeats // 3)
        whole = as_sum(gram)
        conversion = Timing.of([timed(whole.in_scaled_units) for _ in range(3)])
        for mechanism in ONE_SUM:
            print(f"d = {dim}: {mechanism.name}", file=sys.stderr, flush=True)
            wanted = asked(mechanism, dim, epsilon, delta, neighbours)
            one_release(mechanism, wanted, gram, SecureSource())  # imports, and memory that is touched for the first time
            runs = [one_release(mechanism, wanted, gram, SecureSource()) for _ in range(times)]
            exact = None
            if dim <= EXACT_UP_TO:
                count = 1 if dim >= 500 else 3
                exact = Timing.of([timed(partial(exact_step, mechanism, wanted, whole)) for _ in range(count)])
            yield {
                "mechanism": mechanism.name,
                "dim": dim,
                "calibration": Timing.of([run[0] for run in runs]),
                "step": Timing.of([run[1] for run in runs]),
                "gram_to_float": conversion,
                "exact": exact,
            }


def bench_starts(repeats: int) -> dict[str, Timing]:
    """Fresh Python processes."""
    timings = {}
    for name, arguments in STARTS.items():
        print(name, file=sys.stderr, flush=True)
        start = partial(subprocess.run, [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        timings[name] = Timing.of([timed(start) for _ in range(repeats)])
    return timings


def bench(repeats: int, epsilon: float, delta: float, neighbours: Neighbours) -> dict:
    return {
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": neighbours.value,
        "steps": list(bench_steps(repeats, epsilon, delta, neighbours)),
        "starts": bench_starts(repeats),
        "machine": machine() | {"scipy": scipy.__version__},
    }


def table(result: dict) -> str:
    lines = [
        f"epsilon = {result['epsilon']:g}, delta = {result['delta']:g}, {result['neighbours']}; milliseconds, best (median)",
        "",
        "| mechanism | d | calibration, empty caches | Gram to outcome, float | exact | exact over float | Gram to float64 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in result["steps"]:
        exact = row["exact"] or ""
        ratio = f"{row['exact'].best / row['step'].best:.0f}" if row["exact"] else ""
        lines.append(
            f"| {row['mechanism']} | {row['dim']} | {row['calibration']} | {row['step']} | {exact} | {ratio} | {row['gram_to_float']} |"
        )
    lines += ["", "| start | ms |", "|---|---:|"]
    lines += [f"| {name} | {timing} |" for name, timing in result["starts"].items()]
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.bench_release_step", description=__doc__)
    options.add_argument("--repeats", type=int, default=9)
    options.add_argument("--epsilon", type=float, default=1.0)
    options.add_argument("--delta", type=float, default=1e-6)
    options.add_argument("--neighbours", choices=[n.value for n in Neighbours], default=Neighbours.REPLACE.value)
    options.add_argument("--json", action="store_true", help="print all of it as JSON after the table")
    given = options.parse_args()
    result = bench(given.repeats, given.epsilon, given.delta, Neighbours(given.neighbours))
    print(table(result))
    if given.json:
        print(json.dumps(result, default=asdict))


if __name__ == "__main__":
    main()
