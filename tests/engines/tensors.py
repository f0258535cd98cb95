"""Tensors and tables for the tests of PyTorch's engine. Can be imported without PyTorch, because doctests are looked for here too."""

from __future__ import annotations

import numpy as np
import pytest

import dpgram
from dpgram.engines import kernels
from dpgram.engines.local import LocalPass
from dpgram.engines.open import open_pass
from dpgram.engines.torch import DevicePass
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap
from tests.needs import is_here

if is_here("package", "torch"):
    import torch

HAS_CUDA = is_here("package", "torch") and torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not HAS_CUDA, reason="no NVIDIA GPU here: the kernels were not run")
WIDE = (79, 80, 81, 120, 121, 160, 161, 199, 200, 201)  # columns where wide.cu takes other shapes, and where it ends
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]


def numbers(dim: int, **changes) -> dpgram.Schema:
    """Columns of numbers, each with bounds of its own."""
    rng = np.random.default_rng(dim)
    lower = rng.normal(size=dim) - 2
    upper = lower + rng.exponential(size=dim) + 0.5
    columns = [
        dpgram.Numeric(f"x{i}", low, up, missing="midpoint") for i, (low, up) in enumerate(zip(lower, upper, strict=True))
    ]
    return dpgram.Schema(**{"unit": "row", "columns": columns, **changes})


def wild_cells(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    """Ordinary numbers, whole numbers, missing, huge and tiny ones."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(rows, dim)) * 2 - 1.5
    for share, value in ((0.03, np.nan), (0.01, np.inf), (0.01, -np.inf), (0.02, 1e308), (0.02, 5e-324), (0.02, -0.0)):
        cells[rng.random(cells.shape) < share] = value
    whole = rng.random(cells.shape) < 0.1
    cells[whole] = rng.integers(-3, 3, cells.shape)[whole]
    return cells


def bits(total) -> tuple:
    return total.high.tobytes(), total.low.tobytes(), total.rows


def local_bits(cells: np.ndarray, schema: dpgram.Schema, row_bound: float, through: PublicMap | None = None) -> tuple:
    """By the local engine, from NumPy."""
    source = open_source(np.ascontiguousarray(cells), columns=list(schema.names))
    return bits(LocalPass(source, schema).gram(row_bound, through))


def tensor_bits(cells, schema, row_bound, device, through: PublicMap | None = None, **options) -> tuple:
    """By PyTorch's engine, from a tensor or a dict of them."""
    names = None if isinstance(cells, dict) else list(schema.names)
    opened = open_pass(cells, schema, columns=names, device=device, **options)
    assert isinstance(opened, DevicePass)
    assert opened.scaling is not None
    total = opened.gram(row_bound, through)
    assert (total.row_bound, total.through) == (row_bound, "" if through is None else through.digest)
    return bits(total)


def on(device: str, cells) -> torch.Tensor:
    return torch.as_tensor(cells).to(device)


def break_kernels(monkeypatch, right: str, wrong: str) -> None:
    """Compile kernels with a mistake in them, and none that was compiled before."""
    source = kernels._source
    assert any(right in source(name) for name in kernels.SOURCES)

    def broken(name: str, defines, device):
        return kernels.Kernel(source(name).replace(right, wrong), name, dict(defines), device)

    monkeypatch.setattr(kernels, "_compiled", broken)
