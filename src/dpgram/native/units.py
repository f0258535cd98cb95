"""The compiled table of units and the numbers of their rows: units.c, as Python calls it."""

from __future__ import annotations

import secrets
import threading
import weakref

import numpy as np

from dpgram.native.library import Kernel

Array = np.ndarray

NO_ROOM = 1  # within the limit


class UnitTable:
    """Counts rows by keys, which are rows of two uint64 numbers. Threads may ``add`` at the same time. Once all have, ``finish`` and ask.

    Hashes depend on a secret of this table, so that nobody can choose ids that collide or that all lie in one place."""

    def __init__(self, compiled: Kernel, limit_bytes: int):
        self._functions = compiled.functions
        self._secret = np.frombuffer(secrets.token_bytes(16), np.uint64)
        spread = np.frombuffer(secrets.token_bytes(32), np.uint64)
        self._units = self._functions.dpgram_units_new(limit_bytes, spread.ctypes.data)
        if not self._units:
            raise MemoryError
        weakref.finalize(self, self._functions.dpgram_units_free, self._units)
        self._of_thread = threading.local()
        self._countings: list[int] = []  # of all threads
        self._failed = False  # for want of memory: rows are lost then, so nothing may be asked any more

    def number_keys(self, cells: tuple[int, int, int], rows: int, *, signed: bool) -> Array:
        """Keys of whole numbers of 64 bits. ``cells`` are the addresses of the numbers and of validity bits, zero if none is missing,
        and the place of the first such bit."""
        keys = np.empty((rows, 2), np.uint64)
        data, valid, first = cells
        self._functions.dpgram_number_keys(data, signed, valid, first, rows, keys.ctypes.data)
        return keys

    def text_keys(self, offsets: int, text: int, size: int, valid: int, first: int, rows: int) -> Array:
        """Keys of texts. The arguments are addresses of their offsets and of the text, its bytes, and validity bits as above."""
        keys, secret = np.empty((rows, 2), np.uint64), self._secret.ctypes.data
        if self._functions.dpgram_text_keys(offsets, text, size, valid, first, rows, secret, keys.ctypes.data):
            raise IndexError
        return keys

    def add(self, keys: Array) -> bool:
        """Count rows by their keys. False if that would take more than the limit: all that was counted is then worthless."""
        return self._went_well(self._functions.dpgram_units_add(self._counting(), keys.ctypes.data, len(keys)))

    def finish(self) -> bool:
        """Count rows that wait until they are many, before anything is asked; likewise. Nothing can be added afterwards."""
        return all([self._went_well(self._functions.dpgram_counting_finish(each)) for each in self._countings])

    def _counting(self) -> int:
        """What this thread counts with."""
        if not hasattr(self._of_thread, "counting"):
            counting = self._functions.dpgram_counting_new(self._units)
            if not counting:
                self._failed = True
                raise MemoryError
            weakref.finalize(self, self._functions.dpgram_counting_free, counting)
            self._of_thread.counting = counting
            self._countings.append(counting)
        return self._of_thread.counting

    def _went_well(self, failure: int) -> bool:
        self._failed |= failure not in (0, NO_ROOM)
        if self._failed:
            raise MemoryError
        return failure == 0

    def counts(self, keys: Array) -> tuple[Array, int] | None:
        """How many rows have each of the keys, zero where a cell is missing, and their mark; None if a key was never counted."""
        if self._failed:
            raise MemoryError
        counts, mark = np.empty(len(keys), np.int64), np.zeros(1, np.uint64)
        at = counts.ctypes.data, mark.ctypes.data
        unknown = self._functions.dpgram_units_counts(self._units, keys.ctypes.data, len(keys), *at)
        return None if unknown else (counts, int(mark[0]))

    @property
    def size(self) -> tuple[int, int, int]:
        """The number of units, that of bytes that they take, and the mark of all rows: a keyed hash of their ids, added up modulo 2^64."""
        size = np.empty(3, np.int64)
        self._functions.dpgram_units_size(self._units, size.ctypes.data)
        return int(size[0]), int(size[1]), int(size[2]) % 2**64
