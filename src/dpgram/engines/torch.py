"""The pass over the rows with PyTorch: tensors where they lie, or any source streamed to a device. The same bits as everywhere.

A tensor on the host without ``device=`` is summed by the local engine. A tensor of numbers on a device is encoded, clipped and summed
there. Anything else is encoded on this machine and sent over in blocks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from dpgram.engines.base import Progress, Steps, check_unchanged
from dpgram.engines.device_shares import DeviceCounts, in_parts
from dpgram.engines.device_sum import DeviceSum
from dpgram.engines.kept import KeptRows
from dpgram.engines.kernels import CELL_TYPES
from dpgram.engines.local import LocalPass
from dpgram.engines.pytorch import Device, Tensor, torch
from dpgram.engines.scaling import Scaling
from dpgram.errors import DeviceError, MissingExtraError, TableError
from dpgram.rows.bin_counts import packed_counts
from dpgram.rows.coins import Coins
from dpgram.rows.decoded import has_factors
from dpgram.rows.gram_sum import GramSum
from dpgram.rows.shares import Shares
from dpgram.sources.arrays import check_flat, check_named
from dpgram.sources.base import BATCH_ROWS, Batch, Piece, Source, quiet_iterator, quietly, record_batch, spans
from dpgram.sources.open import open_source
from dpgram.terms.bins import Bins
from dpgram.terms.public_map import PublicMap
from dpgram.terms.scales import ONE_CLIP, Scales
from dpgram.terms.schema import Schema

COPY_BYTES = 2**26  # sent to a device, or put side by side there, at a time
CHOSEN_BYTES = 2**28  # the same where some rows are to be left out, or count as less than one
VIEW_ROWS = 2**28  # of a tensor that lies on the device: no copy is made
HALF = ("float16", "bfloat16")
# Arrow lacks bfloat16 and does little with float16; wider, both are exact.
ARROW_TYPES = {name: pa.from_numpy_dtype("float32" if name in HALF else name) for name in CELL_TYPES}


def holds_tensors(table: object) -> bool:
    """Whether a table is a PyTorch tensor, or a dict with one. PyTorch is not imported for it: a tensor's owner has done so."""
    if sys.modules.get("torch") is None:
        return False
    return _is_tensor(table) or (isinstance(table, Mapping) and any(_is_tensor(values) for values in table.values()))


def open_tensors(table: Any, columns: Sequence[str] | None, device: str | None) -> tuple[Source, str | Device | None]:
    """A tensor, or a dict with tensors, as a source, and the device that sums it: None where this machine's cores do."""
    if not isinstance(table, Mapping):
        tensors = Tensors.of_matrix(table, columns)
    elif columns is not None:
        raise TableError("columns= names the columns of one tensor, but this table has names already. Leave it out.")
    elif all(_is_tensor(values) for values in table.values()):
        tensors = Tensors.of_columns(table)
    else:
        return _mixed_source(table), device
    if device is None and tensors.device.type == "cpu":
        return tensors.on_host(), None
    return tensors, tensors.device if device is None else device


class DevicePass(LocalPass):
    """Sums the Gram of a source's rows on a device. Of any source this machine reads and encodes, the device clips and adds.

    Tensors of numbers under a schema of numbers and truth values are encoded on the device too: no row leaves theirs."""

    def __init__(
        self, source: Source, schema: Schema, device: str | Device, progress: Progress | None = None, *, memory: float = 0.0
    ):
        self._device = known_device(device)
        super().__init__(source, schema, progress=progress, threads=1, memory=memory)
        # How the device encodes cells; None where this machine does.
        self.scaling = Scaling.of_schema(schema, source.places(schema.names)) if isinstance(source, Tensors) else None

    def gram(self, row_bound: float, through: PublicMap | None = None, scales: Scales = ONE_CLIP) -> GramSum:
        """As ``Pass`` says. Memory does not grow with the number of rows."""
        steps = Steps(self._progress)
        scaling = self.scaling or Scaling.of_encoded(len(self._schema.encoded))
        summing = quietly(self.where, DeviceSum, scaling, row_bound, self._device, through, scales)
        with self._sharing() as shares:
            for cells, factors, fraction in self._cells(shares):
                for part in quiet_iterator(self.where, in_parts(cells, scaling, factors, CHOSEN_BYTES // (8 * cells.shape[1]))):
                    quietly(self.where, summing.add, *part)
                steps.reach(fraction or 0.0)
        total = quietly(self.where, summing.total)
        if not isinstance(self._source, KeptRows | Tensors):
            check_unchanged(self.where, self._counted, total.rows)
        steps.reach(1.0)
        return total

    def counts(self, bins: Bins) -> GramSum:
        """As ``Pass`` says: where the device encodes cells it counts them too."""
        if not (self.scaling and isinstance(self._source, Tensors)):
            return super().counts(bins)
        places, steps = self._source.places(self._schema.names), Steps(self._progress)
        counts = quietly(self.where, DeviceCounts, {places[name]: inner for name, inner in bins.inner.items()}, self._device)
        with self._sharing() as shares:
            for cells, factors, fraction in self._cells(shares):
                quietly(self.where, counts.add, cells, factors)
                steps.reach(fraction or 0.0)
        whole, part = quietly(self.where, counts.total)
        steps.reach(1.0)
        return packed_counts(bins, whole, self._source.count(), part)

    def kept(self, coins: Coins | None) -> tuple[LocalPass, int]:
        """As ``Pass`` says. Rows that the device encodes stay there; all of them are where they were."""
        if not (self.scaling and isinstance(self._source, Tensors)):
            return super().kept(coins)
        rows, steps = self._source.count(), Steps(self._progress)
        chosen = self._source if coins is None else quietly(self.where, self._source.taken, coins.chosen(0, 0, rows))
        steps.reach(1.0)
        made = self._over(chosen)
        made._whole = coins is None
        return made, rows

    def under(self, schema: Schema) -> Self:
        other = super().under(schema)
        if other.scaling is not None and isinstance(self._source, Tensors):
            other.scaling = Scaling.of_schema(schema, self._source.places(schema.names))
        return other

    def _cells(self, shares: Shares) -> Iterator[tuple[Tensor, Tensor | None, float | None]]:
        """The rows on the device, (rows, columns), some at a time, as they are or encoded; and their factors, unless all are one."""
        if self.scaling and isinstance(self._source, Tensors):
            for span, fraction in self._source.spans(self._device, CHOSEN_BYTES if has_factors(self._schema) else None):
                cells = quietly(self.where, self._source.cells, span, self._device)
                yield cells, quietly(self.where, self._factors, shares, span), fraction
        else:
            for piece in self._source.pieces(self._schema.read_names):
                yield *quietly(self.where, self._encoded, shares, piece.batch), piece.fraction

    def _factors(self, shares: Shares, span: slice) -> Tensor | None:
        """Made on this machine, of ids and weights alone."""
        names = [name for name in (self._schema.unit_id, self._schema.weight) if name is not None]
        if not names or not isinstance(self._source, Tensors):
            return None
        factors = shares.of(self._source.batch(span, list(dict.fromkeys(names))))
        return None if factors is None else torch.from_numpy(factors).to(self._device)

    def _encoded(self, shares: Shares, batch: Batch) -> tuple[Tensor, Tensor | None]:
        (encoded, counts), factors = self._encoder.encode_counted(batch), shares.of(batch)
        if counts is not None:
            factors = counts * (1.0 if factors is None else factors)
        return (
            torch.from_numpy(encoded).to(self._device).T,
            None if factors is None else torch.from_numpy(np.ascontiguousarray(factors)).to(self._device),
        )


class Tensors(Source):
    """Named columns held by PyTorch: one matrix, or one-dimensional tensors of one length."""

    where, rereadable = "the table (PyTorch tensors)", True

    def __init__(self, names: Sequence[str], matrix: Tensor | None, columns: Sequence[Tensor]):
        self._matrix, self._columns = matrix, tuple(columns)
        self.device = columns[0].device
        self.columns = pa.schema([(name, ARROW_TYPES[_dtype(one)]) for name, one in zip(names, columns, strict=True)])

    @classmethod
    def of_matrix(cls, table: Tensor, names: Sequence[str] | None) -> Tensors:
        """A two-dimensional tensor, rows down, and the names of its columns."""
        if names is None:
            raise TableError("a PyTorch tensor needs column names. Pass columns=[...], or a dict of tensors.")
        _check_tensor("the tensor", table)
        check_named(table, names, "tensor", least=1)
        matrix = _plain(table)
        return cls(names, matrix, matrix.unbind(1))

    @classmethod
    def of_columns(cls, table: Mapping[object, Tensor]) -> Tensors:
        """A dict of names and one-dimensional tensors."""
        for name, one in table.items():
            _check_tensor(f"column {name!r}", one)
        check_flat(list(table.items()), "tensor")
        devices = sorted({str(one.device) for one in table.values()})
        if len(devices) > 1:
            raise TableError(f"the table's columns are on {' and '.join(devices)}. Move them to one device.")
        return cls([str(name) for name in table], None, [_plain(one) for one in table.values()])

    def on_host(self) -> Source:
        """Tensors on the host as NumPy's arrays, without a copy; half precision, which Arrow lacks, block by block."""
        if any(_dtype(column) in HALF for column in self._columns):
            return self
        if self._matrix is not None:
            return open_source(_on_host(self._matrix), columns=self.columns.names)
        return open_source({name: _on_host(one) for name, one in zip(self.columns.names, self._columns, strict=True)})

    def count(self, names: Sequence[str] = ()) -> int:
        return len(self._columns[0])

    def taken(self, places: Any) -> Tensors:
        """The rows at these places, on the same device."""
        wanted = torch.from_numpy(places).to(self.device)
        if self._matrix is not None:
            matrix = self._matrix[wanted]
            return Tensors(self.columns.names, matrix, matrix.unbind(1))
        return Tensors(self.columns.names, None, [column[wanted] for column in self._columns])

    def places(self, names: Sequence[str]) -> dict[str, int]:
        """Which column of ``cells`` each name is."""
        return {name: self.columns.names.index(name) for name in names}

    def spans(self, device: Device, most: int | None = None) -> Iterator[tuple[slice, float]]:
        """Stretches of rows small enough that copies may be made where they must, of at most so many bytes if it is given, and the fraction
        read after each."""
        stays = self._matrix is not None and self.device == device
        if most is None and stays:
            return spans(self.count(), VIEW_ROWS)
        return spans(self.count(), max(1, (most if most is not None and stays else COPY_BYTES) // (8 * len(self._columns))))

    def cells(self, span: slice, device: Device) -> Tensor:
        """Some rows on ``device``, (rows, columns): a view where a matrix lies there, else a copy."""
        if self._matrix is not None:
            return self._matrix[span].to(device, non_blocking=True)
        return torch.stack([column[span].to(device).to(torch.float64) for column in self._columns]).T

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """The rows as record batches on the host."""
        for span, fraction in spans(self.count(), BATCH_ROWS):
            yield Piece(self.batch(span, names), fraction)

    def batch(self, span: slice, names: Sequence[str]) -> pa.RecordBatch:
        """Some rows of these columns on the host."""
        places = self.places(names)
        host = quietly(self.where, self._block, span, [places[name] for name in names])
        return record_batch(self.where, names, [quietly(self.where, pa.array, column) for column in host])

    def _block(self, span: slice, places: Sequence[int]) -> list[Any]:
        if self._matrix is not None:
            some = self._matrix[span] if list(places) == list(range(len(self._columns))) else self._matrix[span, places]
            return list(_on_host(_wide(some).T.contiguous()))
        return [_on_host(_wide(self._columns[place][span]).contiguous()) for place in places]


def known_device(name: str | Device) -> Device:
    """The device of that name, with its number; DeviceError if PyTorch has none such here, or none with double precision."""
    try:
        device = torch.device(name)
    except ImportError:
        raise MissingExtraError(package="torch", extra="torch", purpose="device=") from None
    except (RuntimeError, TypeError):
        device = None
    if device is None:
        raise DeviceError(f"device={name!r} is not a device that PyTorch knows. Use cuda, cuda:1 or cpu.")
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            cuda = torch.version.cuda
            why = (
                f"it is built for CUDA {cuda} but sees no GPU or no driver"
                if cuda
                else "this build of PyTorch is for the CPU alone"
            )
            raise DeviceError(f"device={str(name)!r} needs a CUDA device, but PyTorch finds none: {why}. Use device='cpu'.")
        if device.index is None:
            return torch.device("cuda", torch.cuda.current_device())
        if device.index >= count:
            raise DeviceError(
                f"device={str(name)!r} does not exist here. PyTorch finds {', '.join(f'cuda:{i}' for i in range(count))}."
            )
        return device
    try:
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, TypeError, NotImplementedError, AssertionError):
        pass
    else:
        return device
    raise DeviceError(
        f"device={str(name)!r} does not exist here, or has no double precision, which exact sums need. Use cuda or cpu."
    )


def _check_tensor(what: str, tensor: Tensor) -> None:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise TableError(f"{what} is sparse, quantized or without data, but a dense tensor is needed. Convert it first.")
    if _dtype(tensor) not in ARROW_TYPES:
        raise TableError(f"{what} holds {tensor.dtype}, but real numbers or truth values are needed. Convert it first.")


def _mixed_source(table: Mapping[object, Any]) -> Source:
    """A dict that holds tensors and other columns: all of them on the host."""
    for name, values in table.items():
        if _is_tensor(values):
            _check_tensor(f"column {name!r}", values)
            if values.device.type != "cpu":
                raise TableError(
                    f"column {name!r} is on {values.device}, but other columns are on the host. Move all of them to one place."
                )
    return open_source({name: _on_host(_wide(one)) if _is_tensor(one) else one for name, one in table.items()})


def _is_tensor(values: object) -> bool:
    return isinstance(values, torch.Tensor)


def _plain(tensor: Tensor) -> Tensor:
    """The tensor without a gradient, its memory as it reads: a kernel knows nothing of negations that PyTorch has put off."""
    return tensor.detach().resolve_neg()


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _wide(tensor: Tensor) -> Tensor:
    """Half precision as single precision, exactly; anything else as it is."""
    return tensor.float() if _dtype(tensor) in HALF else tensor


def _on_host(tensor: Tensor) -> Any:
    """The tensor as a NumPy array, without a copy where it lies on the host."""
    return tensor.detach().cpu().numpy(force=True)
