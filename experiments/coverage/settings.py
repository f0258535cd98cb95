"""The settings of the study: laws of rows whose true coefficients are known, and the Grams of data sets drawn from them.

A data set is drawn from a seed of its own, so any part of the study can be run again, in any order, with the same numbers. Only its
Gram is kept: rows of norm above the bound are shrunk to it first, as a release does."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Array = np.ndarray

BLOCK = 8192
SEED = 20260501
FEATURES_OF_PAPER, ERROR_SD = 20, 0.5


@dataclass(frozen=True)
class Setting:
    """A law of rows (1, x, y_1 ... y_k) with y_j = x' beta_j + error, and the regressions that are studied on it.

    Coefficients are uniform on [-1, 1], drawn anew for every data set. Errors have standard deviation 0.5."""

    name: str
    rows: int
    features: int = FEATURES_OF_PAPER
    labels: int = 1
    law: str = (
        "normal"  # of the features; or "binary" (with chance 0.3), "heavy" (t, 3 degrees of freedom) or "skewed" (log-normal)
    )
    correlation: float = 0.0  # of neighbouring features: AR(1)
    errors: str = "normal"  # or "growing" (with the first feature), "heavy" (t, 3 degrees of freedom) or "skewed" (exponential)
    clamp: float = np.inf  # labels are clamped to +- this, as declared bounds do
    bound_squared: float | None = None  # the paper's 2.5 d when left out
    other_labels: tuple[int, ...] = (0,)  # how many other labels are features too; their true coefficients are zero
    epsilons: tuple[float, ...] = (0.1,)

    @property
    def columns(self) -> int:
        return 1 + self.features + self.labels

    @property
    def row_bound(self) -> float:
        return float(np.sqrt(2.5 * self.columns if self.bound_squared is None else self.bound_squared))

    def places(self, others: int) -> list[int]:
        """Columns of the Gram that the last label is regressed on, beside the intercept."""
        return list(range(1, 1 + self.features + others))

    def truth(self, beta: Array, others: int) -> Array:
        return np.concatenate([beta[:, -1], np.zeros(others)])

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.rows}"


@dataclass(frozen=True, eq=False)
class DataSets:
    """Grams of independent data sets, (k, d, d), their coefficients (k, 1 + features, labels), and the share of rows shrunk."""

    grams: Array
    betas: Array
    left: Array  # (k,) the last label's weighted mean of squared errors: a row shrunk by s counts s^2
    shrunk: float


def draw(setting: Setting, index: int) -> tuple[Array, Array, float, float]:
    """The Gram of data set number ``index``, its coefficients, its mean squared error and the share of rows that were shrunk."""
    rng = np.random.default_rng([SEED, zlib.crc32(setting.name.encode()), setting.rows, index])
    p = setting.features
    beta = rng.uniform(-1, 1, (1 + p, setting.labels))
    gram, squares, weight, over = np.zeros((setting.columns,) * 2), 0.0, 0.0, 0
    for z, errors in _blocks(setting, beta, rng):
        norm = np.einsum("ij,ij->i", z, z)
        factor = np.minimum(1.0, setting.row_bound**2 / norm)  # squared
        z *= np.sqrt(factor)[:, None]
        gram += z.T @ z
        squares, weight = squares + factor @ errors[:, -1] ** 2, weight + factor.sum()
        over += int((norm > setting.row_bound**2).sum())
    return gram, beta, squares / weight, over / setting.rows


def draw_rows(setting: Setting, index: int) -> tuple[Array, Array, Array]:
    """The rows of data set number ``index`` as they are, its coefficients, and the last label's errors."""
    rng = np.random.default_rng([SEED, zlib.crc32(setting.name.encode()), setting.rows, index])
    beta = rng.uniform(-1, 1, (1 + setting.features, setting.labels))
    parts = [(z, errors[:, -1]) for z, errors in _blocks(setting, beta, rng)]
    return np.concatenate([z for z, _ in parts]), beta, np.concatenate([e for _, e in parts])


def _blocks(setting: Setting, beta: Array, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Rows, a block at a time, and the errors of their labels."""
    p = setting.features
    root = np.linalg.cholesky(setting.correlation ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))).T
    for start in range(0, setting.rows, BLOCK):
        k = min(BLOCK, setting.rows - start)
        z = np.empty((k, setting.columns))
        z[:, 0] = 1.0
        features = FEATURES[setting.law](rng, (k, p))
        z[:, 1 : 1 + p] = features if setting.correlation == 0 else features @ root
        errors = ERRORS[setting.errors](rng, z[:, 1], (k, setting.labels))
        z[:, 1 + p :] = z[:, : 1 + p] @ beta + errors
        if np.isfinite(setting.clamp):
            np.clip(z[:, 1 + p :], -setting.clamp, setting.clamp, out=z[:, 1 + p :])
        yield z, errors


FEATURES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "binary": lambda rng, size: (rng.random(size) < 0.3).astype(float),
    "heavy": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
    "skewed": lambda rng, size: (np.exp(rng.standard_normal(size)) - np.exp(0.5)) / np.sqrt(np.expm1(1) * np.e),
}


def _growing(rng: np.random.Generator, first: Array, size: tuple[int, int]) -> Array:
    """Standard deviation proportional to exp(x_1 / 2), mean square 0.25."""
    return ERROR_SD * np.exp(first / 2 - 0.25)[:, None] * rng.standard_normal(size)


ERRORS: dict[str, Callable[[np.random.Generator, Array, tuple[int, int]], Array]] = {
    "normal": lambda rng, first, size: ERROR_SD * rng.standard_normal(size),
    "growing": _growing,
    "heavy": lambda rng, first, size: ERROR_SD / np.sqrt(3) * rng.standard_t(3, size),
    "skewed": lambda rng, first, size: ERROR_SD * (rng.standard_exponential(size) - 1),
}


def data_sets(setting: Setting, count: int, folder: Path | None, done: Callable[[], None] = lambda: None) -> DataSets:
    """The first ``count`` data sets; from ``folder`` where it holds them, else drawn, and kept there."""
    file = None if folder is None else folder / f"{setting.stem}.npz"
    if file is not None and file.exists():
        with np.load(file) as kept:
            if len(kept["grams"]) >= count:
                return DataSets(kept["grams"][:count], kept["betas"][:count], kept["left"][:count], float(kept["shrunk"]))
    drawn = []
    for index in range(count):
        drawn.append(draw(setting, index))
        done()
    grams, betas, left, over = (np.array(part) for part in zip(*drawn, strict=True))
    made = DataSets(grams, betas, left, float(over.mean()))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, grams=grams, betas=betas, left=left, shrunk=made.shrunk)
    return made


LENGTHS = (2**14, 2**16, 2**18, 2**20)
PAPER = tuple(
    setting
    for rows in LENGTHS
    for setting in (Setting("single", rows), Setting("multi", rows, labels=20, other_labels=(0, 1, 5)))
)
EXTRA = (
    Setting("small", 2**16, features=3, bound_squared=30.0, epsilons=(0.1, 1.0, 5.0)),
    Setting("small, growing errors", 2**16, features=3, bound_squared=30.0, errors="growing", epsilons=(0.1, 1.0, 5.0)),
    Setting("single, growing errors", 2**16, errors="growing", epsilons=(0.1, 1.0)),
    Setting("single, half of the rows shrunk", 2**16, bound_squared=27.0, epsilons=(0.1, 1.0)),
    Setting("single, half of the rows shrunk", 2**18, bound_squared=27.0, epsilons=(1.0,)),
    Setting("small, heavy errors", 2**16, features=3, bound_squared=30.0, errors="heavy", epsilons=(1.0, 5.0)),
    Setting(
        "small, heavy errors, label clamped",
        2**16,
        features=3,
        bound_squared=30.0,
        errors="heavy",
        clamp=1.5,
        epsilons=(0.1, 1.0, 5.0),
    ),
    Setting("single, AR(0.8)", 2**16, correlation=0.8, epsilons=(0.1, 1.0)),
    Setting("single, AR(0.8)", 2**18, correlation=0.8, epsilons=(0.1, 1.0)),
)
WHITENED = (  # of a mechanism that weighs rows by where they lie; the last ones hurt, each in its own way
    Setting("single", 2**12, epsilons=(1.0, 3.0)),
    Setting("single", 2**14, epsilons=(0.1, 1.0, 3.0)),
    Setting("single", 2**16, epsilons=(0.1, 1.0, 3.0)),
    Setting("single", 2**18, epsilons=(0.1, 1.0)),
    Setting("small", 2**16, features=3, bound_squared=30.0, epsilons=(0.1, 1.0, 5.0)),
    Setting("multi", 2**16, labels=20, other_labels=(0, 5), epsilons=(0.1, 1.0)),
    Setting("multi", 2**18, labels=20, other_labels=(0, 5), epsilons=(0.1,)),
    Setting("single, AR(0.9)", 2**16, correlation=0.9, epsilons=(0.1, 1.0, 3.0)),
    Setting("single, binary", 2**16, law="binary", epsilons=(0.1, 1.0, 3.0)),
    Setting("single, heavy errors", 2**16, errors="heavy", epsilons=(0.1, 1.0, 3.0)),
    Setting("single, heavy features and errors", 2**16, law="heavy", errors="heavy", epsilons=(0.1, 1.0, 3.0)),
    Setting("single, skewed features", 2**16, law="skewed", epsilons=(0.1, 1.0, 3.0)),
    Setting("single, skewed errors", 2**16, errors="skewed", epsilons=(0.1, 1.0, 3.0)),
    Setting("single, growing errors", 2**16, errors="growing", epsilons=(0.1, 1.0, 3.0)),
)
