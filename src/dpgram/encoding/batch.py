"""What a batch of rows must offer to be encoded. Arrow's record batches do; so does anything that holds NumPy arrays by name."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

Cells: TypeAlias = pa.Array | np.ndarray  # NumPy's hold numbers in this machine's byte order, none missing but NaN


class Batch(Protocol):
    """Some rows, by column."""

    @property
    def num_rows(self) -> int: ...

    @property
    def schema(self) -> pa.Schema: ...

    def column(self, name: str) -> Cells: ...


def arrow_column(cells: Cells) -> pa.Array:
    """The cells in Arrow."""
    return pa.array(np.ascontiguousarray(cells)) if isinstance(cells, np.ndarray) else cells
