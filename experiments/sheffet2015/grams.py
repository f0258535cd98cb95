"""The Gram matrices of the simulated tables: generated and summed block by block, on a CPU or a GPU, never held.

Random numbers are a hash of (seed, row, column), so a table is the same on every machine and whatever its blocks; only the last
bits of logarithms, cosines and sums differ between CPU and GPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.sheffet2015.settings import ERROR_SD, FEATURES, Setting, seed

Array = np.ndarray

GOLDEN = -7046029254386353131  # splitmix64's constants, as signed 64-bit integers
FIRST, SECOND = -4658895280553007687, -7723592293110705685
BLOCK_CPU, BLOCK_GPU = 1 << 12, 1 << 20


def gram(setting: Setting, exponent: int, repetition: int, device: str = "cpu") -> tuple[Array, Array]:
    """(Gram matrix of 2^exponent rows shrunk to the row bound, true coefficients by label as columns).

    ``device`` "cpu" is NumPy; any other is PyTorch's, "cpu:0" among them."""
    key = seed(setting, exponent, repetition)
    beta = coefficients(setting, exponent, repetition)
    rows = 2**exponent
    if device == "cpu":
        total = np.zeros((setting.dim, setting.dim))
        for start in range(0, rows, BLOCK_CPU):
            block = _rows(np, setting, beta, key, np.arange(start, min(start + BLOCK_CPU, rows), dtype=np.int64))
            total += block.T @ block
        return total, beta
    import torch

    on_device = torch.from_numpy(beta).to(device)
    summed = torch.zeros((setting.dim, setting.dim), dtype=torch.float64, device=device)
    for start in range(0, rows, BLOCK_GPU):
        places = torch.arange(start, min(start + BLOCK_GPU, rows), dtype=torch.int64, device=device)
        block = _rows(torch, setting, on_device, key, places)
        summed += block.T @ block
    return summed.cpu().numpy(), beta


def coefficients(setting: Setting, exponent: int, repetition: int) -> Array:
    """The true coefficients of a table, by label as columns."""
    key = seed(setting, exponent, repetition)
    beta = 2 * _uniform(np, _hash(np, np.arange((1 + FEATURES) * setting.labels, dtype=np.int64), key, 1)) - 1
    return beta.reshape(1 + FEATURES, setting.labels)


def whole_rows(xp: Any, setting: Setting, beta: Any, key: int, places: Any) -> Any:
    """Rows of the table as they come: intercept, features, labels. ``xp`` is NumPy or PyTorch, on whose device ``places`` lies."""
    normals = _normals(xp, key, places, FEATURES + setting.labels)
    features = xp.concatenate([xp.ones_like(normals[:, :1]), normals[:, :FEATURES]], 1)
    return xp.concatenate([features, features @ beta + ERROR_SD * normals[:, FEATURES:]], 1)


def _rows(xp: Any, setting: Setting, beta: Any, key: int, places: Any) -> Any:
    """Rows of the table, shrunk to the bound."""
    table = whole_rows(xp, setting, beta, key, places)
    length = xp.sqrt((table * table).sum(1))
    factor = setting.row_bound / xp.where(length > setting.row_bound, length, setting.row_bound + 0 * length)
    return table * factor[:, None]


def _normals(xp: Any, key: int, places: Any, columns: int) -> Any:
    """(rows, columns) of standard normals: each hash gives two, by Box and Muller."""
    pairs = (columns + 1) // 2
    lane = xp.arange(pairs, dtype=xp.int64, **({} if xp is np else {"device": places.device}))
    bits = _hash(xp, places[:, None] * pairs + lane[None, :], key, 2)
    high, low = _real(xp, (bits >> 32) & 0xFFFFFFFF), _real(xp, bits & 0xFFFFFFFF)
    radius = xp.sqrt(-2 * xp.log((high + 0.5) * 2.0**-32))
    angle = (low + 0.5) * (2 * math.pi * 2.0**-32)
    return xp.concatenate([radius * xp.cos(angle), radius * xp.sin(angle)], 1)[:, :columns]


def _hash(xp: Any, counter: Any, key: int, stream: int) -> Any:
    """64 bits for each counter (splitmix64). Integers wrap around, on both libraries; shifts are made logical by a mask."""
    start = int(np.array((key * 8 + stream) * 0x5851F42D4C957F2D % 2**64, dtype=np.uint64).astype(np.int64))
    z = counter * GOLDEN + start
    z = (z ^ ((z >> 30) & (2**34 - 1))) * FIRST
    z = (z ^ ((z >> 27) & (2**37 - 1))) * SECOND
    return z ^ ((z >> 31) & (2**33 - 1))


def _uniform(xp: Any, bits: Any) -> Any:
    return (_real(xp, (bits >> 11) & (2**53 - 1)) + 0.5) * 2.0**-53


def _real(xp: Any, whole: Any) -> Any:
    return whole.astype(np.float64) if xp is np else whole.to(xp.float64)
