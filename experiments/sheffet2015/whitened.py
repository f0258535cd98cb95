"""The whitened release on the paper's tables: ``python -m experiments.sheffet2015.whitened --device cuda``.

Every round needs the rows themselves, so a table is made once and held where the work is done, or made again in each pass where it does
not fit. What is published in all rounds is kept, one file a table; regressions from it are ``errors``. Nothing is imported here but NumPy,
SciPy and, on a GPU, PyTorch, so that a bare machine can make the releases.

The other techniques take rows that were shrunk to the bound B in their own units. This one takes rows as they come and shrinks them
after the map, as the library does. So least squares without privacy is computed on those rows too."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dpgram.evidence.evidence import Evidence
from dpgram.linalg.scales import weights
from dpgram.mechanisms import registry
from dpgram.mechanisms.conversation import GramAnswer, GramQuestion, hold
from dpgram.sampling.base import grid_step
from dpgram.sampling.seeded import SeededSource
from dpgram.terms.budget import Budget, Neighbours
from dpgram.terms.noise import Round
from dpgram.terms.scales import ONE_CLIP, SWITCH, first_scales
from experiments.sheffet2015.grams import BLOCK_CPU, BLOCK_GPU, coefficients, whole_rows
from experiments.sheffet2015.settings import DELTA, FEATURES, REPETITIONS, Cell, Setting, cells, seed

Array = np.ndarray

NAME, NOT_PRIVATE = "whitened-noise", "ols-unshrunk"
ESTIMATOR = "shrunk"  # the default
HELD = 0.7  # of the memory of a device may be filled with tables, all workers together; making one takes some more
SEED_PLACE = 4 + 63  # beside the seeds of the paper's techniques, which count up from zero


@dataclass(frozen=True, eq=False)
class Published:
    """What is known of one table: all rounds by epsilon, its Gram (not private, of rows as they come) and the true coefficients."""

    rounds: dict[float, tuple[Round, ...]]
    gram: Array
    beta: Array


class Table:
    """Rows of one table in blocks, held or made again in every pass."""

    def __init__(self, cell: Cell, device: str, *, held: bool):
        self.setting, self.exponent, _ = cell
        self.key = seed(*cell)
        self.beta = coefficients(*cell)
        self.device = device
        self.numpy = device == "cpu"
        self._held = None
        if held:
            self._held = self._empty((2**self.exponent, self.setting.dim))
            for start, block in self._made():
                self._held[start : start + len(block)] = block

    def gram(self, question: GramQuestion | None) -> Array:
        """The Gram of rows mapped and shrunk as ``question`` asks; as they come where it is None. Float64 throughout."""
        return self.grams(question)[0]

    def grams(self, question: GramQuestion | None) -> Array:
        """One for each scale that ``question`` asks for."""
        scales = ONE_CLIP if question is None else question.scales
        total = self._empty((len(scales), self.setting.dim, self.setting.dim))
        total[:] = 0
        through = None if question is None else self._here(question.through.matrix.T.copy())
        for block in self._blocks():
            if question is None:
                total[0] += block.T @ block
                continue
            mapped = block @ through
            squares = (mapped * mapped).sum(1)
            shares = weights(squares if self.numpy else squares.cpu().numpy(), scales, SWITCH)
            for place, share in enumerate(shares):
                total[place] += (mapped * self._here(share)[:, None]).T @ mapped
        return total if self.numpy else total.cpu().numpy()

    def _blocks(self) -> Iterator[Any]:
        if self._held is None:
            yield from (block for _, block in self._made())
            return
        step = 4 * BLOCK_CPU if self.numpy else BLOCK_GPU
        yield from (self._held[start : start + step] for start in range(0, 2**self.exponent, step))

    def _made(self) -> Iterator[tuple[int, Any]]:
        beta = self._here(self.beta)
        step = BLOCK_CPU if self.numpy else BLOCK_GPU
        rows = 2**self.exponent
        for start in range(0, rows, step):
            places = self._here(np.arange(start, min(start + step, rows), dtype=np.int64))
            yield start, whole_rows(self._xp, self.setting, beta, self.key, places)

    @property
    def _xp(self) -> Any:
        if self.numpy:
            return np
        import torch

        return torch

    def _here(self, array: Array) -> Any:
        return array if self.numpy else self._xp.from_numpy(array).to(self.device)

    def _empty(self, shape: tuple[int, int]) -> Any:
        return np.empty(shape) if self.numpy else self._xp.empty(shape, dtype=self._xp.float64, device=self.device)


def release(setting: Setting, epsilon: float, answer: Callable[[GramQuestion], GramAnswer], key: int) -> tuple[Round, ...]:
    """All rounds of one release: the one place that names the mechanism and its task."""
    mechanism = registry.find(NAME)
    budget = Budget(epsilon, DELTA)
    task = registry.task(mechanism, budget, Neighbours.REPLACE, setting.dim, setting.row_bound, intercept=True)
    return hold(mechanism.start(task, SeededSource(key)), answer).noise.rounds


def coefficients_of(cell: Cell, epsilon: float, rounds: Sequence[Round], extras: Sequence[int]) -> list[Array]:
    """Coefficients of the last label on all features and m other labels, for each m: the one place that names the estimator."""
    from dpgram.artifact.release import GramRelease  # not on the bare machine
    from dpgram.mechanisms.whitening import unwhitened
    from dpgram.regression.design import design
    from dpgram.regression.fit import fit_linear
    from dpgram.terms.columns import Numeric
    from dpgram.terms.noise import WhitenedGaussian
    from dpgram.terms.schema import Schema

    setting, exponent, _ = cell
    made = GramRelease(
        schema=Schema(unit="row", columns=tuple(Numeric(f"c{j}", -1, 1, missing="midpoint") for j in range(1, setting.dim))),
        gram=unwhitened(rounds[-1]),
        rows=2**exponent,
        row_bound=setting.row_bound,
        budget=Budget(epsilon, DELTA),
        mechanism=NAME,
        noise=WhitenedGaussian(tuple(rounds)),
        randomness="seed",
        private=False,
        library_version="",
    )
    last = 1 + FEATURES
    plans = [design(made.schema, f"c{setting.dim - 1}", [f"c{j}" for j in range(1, last + extra)], None) for extra in extras]
    return [fit_linear(Evidence.of(made), plan, ESTIMATOR) for plan in plans]


def errors(cell: Cell, folder: Path, extras: Sequence[int]) -> Iterator[tuple[float, str, int, float]]:
    """(epsilon, technique, m, error) of every regression from one table's releases; epsilon 0 where nothing is private."""
    setting = cell[0]
    known = load(path_of(folder, cell))
    wanted = [([*range(1 + FEATURES + extra)], setting.dim - 1) for extra in extras]
    truths = [np.concatenate([known.beta[:, -1], np.zeros(extra)]) for extra in extras]
    plain = [np.linalg.solve(known.gram[np.ix_(p, p)], known.gram[p, label]) for p, label in wanted]
    fitted = {(0.0, NOT_PRIVATE): plain}
    fitted |= {(e, NAME): coefficients_of(cell, e, rounds, extras) for e, rounds in known.rounds.items()}
    for (epsilon, technique), estimates in fitted.items():
        for extra, estimate, truth in zip(extras, estimates, truths, strict=True):
            yield epsilon, technique, extra, float(np.linalg.norm(estimate - truth))


def make_releases(wanted: Sequence[Cell], folder: Path, device: str = "cpu", workers: int = 1) -> dict:
    """Make those releases that are not there yet, saying on standard error how far it is.

    Returns where they were made, and how long that took in all."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [cell for cell in wanted if not path_of(folder, cell).exists()]
    room = HELD * memory(device)
    small = [c for c in missing if table_bytes(c) * workers <= room]
    large = [c for c in missing if table_bytes(c) * workers > room]
    fitting = max(1, int(room // max(map(table_bytes, large), default=1)))
    begun = time.perf_counter()
    done = 0
    for listed, at_once in ((small, workers), (large, min(workers, fitting))):
        for cell in _each(listed, folder, device, room / at_once, at_once):
            done += 1
            seconds = time.perf_counter() - begun
            note(f"{seconds:6.0f} s  {done} of {len(missing)}: {cell[0].name} 2^{cell[1]}, repetition {cell[2]}")
    record = folder / "whitened.json"
    facts = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if missing:
        before = facts.get("whitened_seconds", 0.0)
        facts = {"whitened_made_on": described(device), "whitened_seconds": round(before + time.perf_counter() - begun, 1)}
        record.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def _each(listed: Sequence[Cell], folder: Path, device: str, room: float, workers: int) -> Iterator[Cell]:
    if workers == 1:
        for cell in listed:
            yield _one(cell, folder, device, room)
        return
    with ProcessPoolExecutor(min(workers, max(1, len(listed))), mp_context=get_context("spawn")) as pool:
        for task in as_completed([pool.submit(_one, cell, folder, device, room) for cell in listed]):
            yield task.result()


def _one(cell: Cell, folder: Path, device: str, room: float) -> Cell:
    setting, exponent, _ = cell
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()  # the last table had another size
    table = Table(cell, device, held=table_bytes(cell) <= room)

    def answer(question: GramQuestion) -> GramAnswer:
        gram, *outer = table.grams(question)
        return GramAnswer(gram, 2**exponent, tuple(outer))

    keys = [(seed(*cell) * 16 + place) * 256 + SEED_PLACE for place in range(len(setting.epsilons))]
    rounds = {e: release(setting, e, answer, key) for e, key in zip(setting.epsilons, keys, strict=True)}
    save(path_of(folder, cell), Published(rounds, table.gram(None), table.beta))
    return cell


def save(path: Path, known: Published) -> None:
    """Whole or not at all. Symmetric matrices by their lower half, and on the grid on which a private release publishes them: what is
    zero or round takes no room in the file."""
    arrays = {"gram": np.tril(known.gram), "beta": known.beta, "epsilons": np.array(list(known.rounds))}
    for place, rounds in enumerate(known.rounds.values()):
        arrays[f"{place}_through"] = np.array([r.through for r in rounds])
        arrays[f"{place}_gram"] = np.array([on_grid(np.tril(r.gram), r.sd_off_diagonal) for r in rounds])
        arrays[f"{place}_numbers"] = np.array([(r.sd_off_diagonal, r.kept) for r in rounds])
        arrays[f"{place}_outer"] = np.array([on_grid(np.tril(m), rounds[-1].sd_off_diagonal) for m in rounds[-1].outer])
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(partial, **arrays)
    partial.replace(path)


def on_grid(gram: Array, sd: float) -> Array:
    step = grid_step(sd)
    return np.rint(gram / step) * step


def load(path: Path) -> Published:
    def whole(half: Array) -> Array:
        return half + np.tril(half, -1).T

    with np.load(path) as kept:
        rounds = {}
        for place, epsilon in enumerate(kept["epsilons"]):
            parts = zip(kept[f"{place}_through"], kept[f"{place}_gram"], kept[f"{place}_numbers"], strict=True)
            made = [Round(t, whole(g), float(sd), float(share)) for t, g, (sd, share) in parts]
            outer = tuple(whole(matrix) for matrix in kept.get(f"{place}_outer", ()))
            made[-1] = replace(made[-1], outer=outer, scales=first_scales(1 + len(outer)))
            rounds[float(epsilon)] = tuple(made)
        return Published(rounds, whole(kept["gram"]), kept["beta"])


def path_of(folder: Path, cell: Cell) -> Path:
    setting, exponent, repetition = cell
    return folder / f"whitened-{setting.name}-{exponent:02d}-{repetition:02d}.npz"


def table_bytes(cell: Cell) -> float:
    return 8.0 * cell[0].dim * 2 ** cell[1]


def described(device: str) -> str:
    """The device in words."""
    if device == "cpu":
        return f"CPU ({platform.machine()}), NumPy {np.__version__}"
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return f"{name}, PyTorch {torch.__version__}"


def memory(device: str) -> float:
    """Bytes of memory where tables are held."""
    if device.startswith("cuda"):
        import torch

        return float(torch.cuda.mem_get_info(torch.device(device).index or 0)[0])
    return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.sheffet2015.whitened", description=__doc__)
    parser.add_argument("--smallest", type=int, default=0, help="leave out tables of fewer than 2^SMALLEST rows")
    parser.add_argument("--largest", type=int, default=27, help="tables of up to 2^LARGEST rows")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--setting", choices=["single", "multiple"], help="one setting alone")
    parser.add_argument("--device", default="cpu", help="cpu is NumPy; any other name is PyTorch's")
    parser.add_argument("--workers", type=int, default=1, help="tables at a time; a GPU waits for one CPU core otherwise")
    parser.add_argument("--tables", type=Path, default=Path("build/sheffet2015"), help="folder of releases; those there stay")
    given = parser.parse_args()
    wanted = [c for c in cells(given.largest, given.repetitions) if c[1] >= given.smallest]
    wanted = [c for c in wanted if given.setting in (None, c[0].name)]
    begun = time.perf_counter()
    facts = make_releases(wanted, given.tables, given.device, given.workers)
    size = math.fsum(path_of(given.tables, c).stat().st_size for c in wanted) / 2**20
    note(f"{len(wanted)} tables in {time.perf_counter() - begun:.0f} s; {size:.1f} MiB in {given.tables}; {facts}")


if __name__ == "__main__":
    main()
