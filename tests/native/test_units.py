"""The compiled table of units: its hash against published values, its keys, and what it does when it may not or cannot grow."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.native import library
from dpgram.native.library import Kernel
from dpgram.native.units import UnitTable
from dpgram.rows.units import _Compiled

pytestmark = pytest.mark.skipif(
    not library.FILE.is_file(), reason="NO COMPILED KERNEL: dpgram was installed without a C compiler"
)

# SipHash-2-4 with 128 bits under the key 00 01 ... 0f of the messages "", 00, 00 01, ... of 0 to 16 bytes: from vectors_sip128, which its
# authors publish with their reference implementation.
PUBLISHED = [
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
    "f88164c12d9c8faf7d0f6e7c7bcd5579",
    "1368875980776f8854527a07690e9627",
    "14eeca338b208613485ea0308fd7a15e",
    "a1f1ebbed8dbc153c0b84aa61ff08239",
    "3b62a9ba6258f5610f83e264f31497b4",
    "264499060ad9baabc47f8b02bb6d71ed",
    "00110dc378146956c95447d3f3d0fbba",
    "0151c568386b6677a2b4dc6f81e5dc18",
    "d626b266905ef35882634df68532c125",
    "9869e247e9c08b10d029934fc4b952f7",
    "31fcefac66d7de9c7ec7485fe4494902",
    "5493e99933b0a8117e08ec0f97cfc3d9",
    "6ee2a4ca67b054bbfd3315bf85230577",
]
LONGEST_PUBLISHED = "5150d1772f50834a503e069a973fbd7c"  # of 63 bytes


def table(limit_bytes: int = 2**30) -> UnitTable:
    return UnitTable(Kernel(library.FILE), limit_bytes)


def siphash(text: bytes) -> bytes:
    secret, found = np.frombuffer(bytes(range(16)), np.uint64), np.empty(2, np.uint64)
    functions, message = Kernel(library.FILE).functions, np.frombuffer(text + b"\0", np.uint8)
    functions.dpgram_siphash(secret.ctypes.data, message.ctypes.data, len(text), found.ctypes.data)
    return found.astype("<u8").tobytes()


def test_the_hash_is_the_published_one():
    assert [siphash(bytes(range(length))).hex() for length in range(17)] == PUBLISHED
    assert siphash(bytes(range(63))).hex() == LONGEST_PUBLISHED


def keys_of(cells: pa.Array, made: UnitTable | None = None) -> list[tuple[int, int]]:
    return [tuple(key) for key in _Compiled(made or table()).keys(cells).tolist()]


def test_short_texts_and_whole_numbers_are_their_own_keys():
    """Whatever the secret; each text of at most 15 bytes has a key of its own, and no number has that of a text that is not its own."""
    rng = np.random.default_rng(0)
    texts = {
        bytes(rng.integers(0, 256 if long else 3, length).astype(np.uint8)) for length in range(1, 16) for long in range(300)
    }
    texts |= {str(number).encode() for number in rng.integers(-(2**63), 2**63 - 1, 1000)}
    texts |= {b"0", b"-0", b"00", b"+1", b"1", b"-1", b"01", b"1.5", b"1 ", b" 1", b"-", b"--1", b"9" * 15, b"9" * 14}
    edges = [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**19, 10**20 - 1, 0]
    texts |= {str(number).encode() for number in edges}
    short = sorted(text for text in texts if len(text) <= 15 or (text in {str(n).encode() for n in edges}))
    first, second = table(), table()
    found = keys_of(pa.array(short, pa.binary()), first)
    assert len(set(found)) == len(short)
    long = [len(text) > 15 and not -(2**63) <= int(text) < 2**64 for text in short]
    same = [one == other for one, other in zip(found, keys_of(pa.array(short, pa.binary()), second), strict=True)]
    assert same == [not hashed for hashed in long]  # only hashes depend on the secret


@pytest.mark.parametrize("length", range(1, 40))
def test_every_byte_of_a_text_matters(length):
    changed = [bytes([*b"a" * place, *b"b", *b"a" * (length - place - 1)]) for place in range(length)]
    assert len(set(keys_of(pa.array([b"a" * length, *changed], pa.binary())))) == length + 1


def test_numbers_and_their_texts_have_one_key():
    made = table()
    for kind, edges in ((pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 10**18, -(10**15)]), (pa.uint64(), [0, 2**64 - 1, 2**63])):
        numbers = pa.array(edges, kind)
        assert keys_of(numbers, made) == keys_of(numbers.cast(pa.string()), made)
    assert keys_of(pa.array([-1], pa.int64()), made) != keys_of(pa.array([2**64 - 1], pa.uint64()), made)


def test_long_texts_have_keys_of_their_own():
    rng = np.random.default_rng(1)
    made, texts = (
        table(),
        [bytes(rng.integers(0, 256, length).astype(np.uint8)) for length in range(16, 200) for _ in range(20)],
    )
    found = keys_of(pa.array(texts, pa.binary()), made)
    assert len(set(found)) == len(texts)
    assert all(high >> 63 for _, high in found)
    halves = np.array(found, np.uint64).view(np.uint8).reshape(len(texts), 16)
    assert abs(np.unpackbits(halves[:, :15]).mean() - 0.5) < 0.01


def test_cells_within_longer_arrays():
    """Offsets of cells, of texts and of validity bits that are not whole bytes."""
    made, texts = table(), ["a", None, "bb", "", "x" * 50, None, "7", "dd"] * 5
    whole = pa.array(texts)
    for start in range(20):
        expected = [key for key, _ in zip(keys_of(whole, made)[start:], range(13), strict=False)]
        for kind in (pa.string(), pa.large_string(), pa.binary(), pa.string_view()):
            assert keys_of(whole.cast(kind).slice(start, 13), made) == expected
        assert [key == (0, 0) for key in expected] == [not text for text in texts[start : start + 13]]


@pytest.mark.parametrize("offsets", [[0, 3, 2], [0, -1, 4], [0, 5, 4], [0, 2**62, 4]])
def test_texts_that_lie_outside_are_an_error(offsets):
    cells = pa.Array.from_buffers(
        pa.large_binary(), 2, [None, pa.py_buffer(np.array(offsets, np.int64)), pa.py_buffer(np.frombuffer(b"abcd", np.uint8))]
    )
    with pytest.raises(IndexError):
        keys_of(cells)


@pytest.mark.parametrize(
    ("least", "most", "high"),
    [(0, 2**63, 5 << 56), (0, 2**40, 16 << 56), (2**40, 2**63, 16 << 56)],
    ids=["text", "small", "large"],
)
def test_growing_loses_nothing(least, most, high):
    made, rng = table(), np.random.default_rng(2)
    keys = np.column_stack([rng.integers(least, most, 200_000), np.full(200_000, high)]).astype(np.uint64)
    times = rng.integers(1, 4, len(keys))
    every = rng.permutation(np.repeat(np.arange(len(keys)), times))
    for start in range(0, len(every), 7777):
        assert made.add(np.ascontiguousarray(keys[every[start : start + 7777]]))
    assert made.finish()
    assert made.finish()
    np.testing.assert_array_equal(made.counts(keys)[0], times)
    units, size, _ = made.size
    assert units == len(keys)
    assert size <= 40 * units
    assert made.counts(np.array([[1, 5 << 56]], np.uint64)) is None
    assert made.counts(np.zeros((3, 2), np.uint64))[0].tolist() == [0, 0, 0]
    with pytest.raises(MemoryError):
        made.add(keys)


def test_keys_that_nobody_could_choose_are_spread_all_the_same():
    """Numbers in a row, multiples of powers of two, and keys that differ in the last byte alone take no more room than others."""
    for low, high, most in (
        (np.arange(100_000), 5 << 56, 40),
        (np.arange(100_000), 16 << 56, 20),
        (np.arange(100_000) << 20, 16 << 56, 20),
        (np.arange(100_000) << 44, 16 << 56, 40),
        (np.arange(100_000) << 40, 5 << 56, 40),
        (np.full(100_000, 7), (5 << 56) + np.arange(100_000), 40),
    ):
        made = table()
        keys = np.column_stack([low, np.broadcast_to(high, 100_000)]).astype(np.uint64)
        assert made.add(keys)
        assert made.finish()
        assert made.size[1] <= most * 100_000
        assert (made.counts(keys)[0] == 1).all()


def numbers(*ids: int) -> np.ndarray:
    """Their keys."""
    return np.column_stack([np.array(ids, np.uint64), np.full(len(ids), 16 << 56, np.uint64)])


@pytest.mark.parametrize("low", [0, 2**40 - 1, 2**40, 2**64 - 1])
def test_a_number_that_has_more_rows_than_its_word_can_say(low):
    """A small number and how often it was counted share a word, with room for 2^24 - 1. The rest is counted as well, for one unit."""
    most, made = 2**24 - 1, table()
    for key, times in ((numbers(low), most + 12), (numbers(3), most + 1), (numbers(4), most), (numbers(5), most - 1)):
        many = np.repeat(key, 2**20, axis=0)
        for start in range(0, times, 2**20):
            assert made.add(many[: times - start])
    assert made.add(numbers(2**41))
    assert made.finish()
    assert made.size[0] == 5
    asked = numbers(low, 3, 4, 5, 2**41, low)
    assert made.counts(asked)[0].tolist() == [most + 12, most + 1, most, most - 1, 1, most + 12]
    assert made.counts(numbers(6)) is None


def test_threads_count_the_rest_of_a_number_together():
    made, threads, rows = table(), [], 2**20
    many = np.repeat(numbers(7, 2**50), rows, axis=0)

    def count():
        for _ in range(6):
            assert made.add(many)

    for _ in range(4):
        threads.append(threading.Thread(target=count))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert made.finish()
    assert made.counts(numbers(7, 2**50))[0].tolist() == [24 * rows] * 2
    assert made.size[0] == 2


def test_the_rest_of_a_number_is_never_lost_to_the_limit():
    """Its table of small numbers is within the limit, and that of large ones, where the rest of its rows belongs, is not."""
    most, many = 2**24 - 1, np.repeat(numbers(7), 2**20, axis=0)
    made = table(table().size[1] + 1300)  # between 64 and 160 slots of 8 bytes, but not as many of 16 bytes as well
    every = [made.add(many[: most + 512 - start]) for start in range(0, most + 512, 2**20)]
    assert not (all(every) and made.finish())


@pytest.mark.parametrize(("least", "high", "most"), [(0, 16 << 56, 20), (2**40, 16 << 56, 40), (0, 5 << 56, 40)])
def test_bytes_of_a_unit_at_any_number_of_units(least, high, most):
    """Tables grow one after the other: had all the same size, they would grow together, and some of these numbers would need more."""
    for count in np.geomspace(100_000, 350_000, 12).astype(int):
        made = table()
        assert made.add(np.column_stack([np.arange(least, least + count), np.full(count, high)]).astype(np.uint64))
        assert made.finish()
        assert made.size[1] <= most * count


@pytest.mark.parametrize(("least", "high"), [(0, 16 << 56), (2**40, 16 << 56), (0, 5 << 56)])
def test_what_threads_need_to_let_tables_grow_is_given_back(least, high, monkeypatch):
    """Once all is counted, the bytes are those of the tables: as many whether one thread has counted, or several."""
    monkeypatch.setattr(
        "dpgram.native.units.secrets.token_bytes", lambda size: np.random.default_rng(4).bytes(size)
    )  # so that both tables have the same hashes
    keys = np.column_stack([np.arange(least, least + 100_000), np.full(100_000, high)]).astype(np.uint64)
    sizes = []
    for threads in (1, 4):
        made = table()
        for some in np.array_split(keys, threads):
            thread = threading.Thread(target=made.add, args=(some,))
            thread.start()
            thread.join()
        assert made.finish()
        sizes.append(made.size)
    assert sizes[0] == sizes[1]


def test_more_than_the_limit_is_refused():
    keys = np.column_stack([np.arange(10**6), np.full(10**6, 5 << 56)]).astype(np.uint64)
    made = table(10_000_000)
    assert not made.add(keys)
    assert made.size[1] <= 10_000_000
    assert table(60_000_000).add(keys)
    small = table(1000)
    assert small.add(keys[:1])
    assert not small.finish()


def test_the_mark_is_that_of_all_rows_in_any_order():
    """By another secret it is another one; an id more, less or exchanged changes it."""
    rng = np.random.default_rng(3)
    keys = np.column_stack([rng.integers(0, 500, 3000), np.full(3000, 5 << 56)]).astype(np.uint64)
    made, other = table(), table()
    for each in (made, other):
        assert each.add(keys)
        assert each.finish()
    order = rng.permutation(3000)
    marks = [made.counts(np.ascontiguousarray(keys[part]))[1] for part in (order[:700], order[700:])]
    assert sum(marks) % 2**64 == made.size[2] == made.counts(keys)[1]
    assert other.size[2] != made.size[2]
    exchanged = keys.copy()
    exchanged[np.flatnonzero(keys[:, 0] != keys[0, 0])[0]] = keys[0]
    for changed in (keys[1:], np.concatenate([keys, keys[:1]]), exchanged):
        assert made.counts(np.ascontiguousarray(changed))[1] != made.size[2]
    none = np.zeros((5, 2), np.uint64)
    assert made.counts(np.concatenate([keys, none]))[1] == made.size[2]


def marks(made: UnitTable, keys: np.ndarray) -> np.ndarray:
    """Of single rows."""
    assert made.add(keys)
    assert made.finish()
    return np.array([made.counts(keys[place : place + 1])[1] for place in range(len(keys))], np.uint64)


@pytest.mark.parametrize("length", [15, 14, 12, 9, 8])
@pytest.mark.parametrize(("one", "other"), ["08", "01", "aA"])
def test_two_changes_of_ids_that_are_alike_change_the_mark_by_different_amounts(length, one, other):
    """Rows of "x0" become those of "x8", and as many of "y8" those of "y0": that is another table. A hash whose high bits depend on few
    bits of the key would change by the same amount for many texts, so that the two changes cancel."""
    made = table()
    texts = [f"{place:0{length - 1}d}"[::-1] for place in range(10_000)] + [
        f"{place:0{length - 1}d}" for place in range(1, 10_000)
    ]
    keys = np.array(keys_of(pa.array([text + last for text in dict.fromkeys(texts) for last in (one, other)]), made), np.uint64)
    found = marks(made, keys)
    assert len(np.unique(found[::2] - found[1::2])) == len(keys) // 2


def test_two_ids_that_are_chosen_do_not_have_one_mark():
    """Multiplied by odd numbers, the high bits of both halves of a key could make up for each other."""
    keys = np.array(keys_of(pa.array([b"abcdefg", b"abcdefg\x08\0\0\0\x08\0\0\0"])), np.uint64)
    assert all(one != other for one, other in (marks(table(), keys) for _ in range(200)))


def test_the_rest_of_a_frequent_number_stays_where_it_is_when_its_table_grows():
    most, made = 2**24 - 1, table()
    many = np.repeat(numbers(7), 2**20, axis=0)
    for start in range(0, most + 1500, 2**20):  # more than wait, so that the rest is counted before others come
        assert made.add(many[: most + 1500 - start])
    assert made.add(numbers(*range(2**41, 2**41 + 200_000)))
    assert made.finish()
    assert made.counts(numbers(7))[0].tolist() == [most + 1500]
    assert made.size[0] == 200_001


MEMORY = """
import resource, sys, numpy as np
from dpgram.native import library
from dpgram.native.units import UnitTable
made = UnitTable(library.Kernel(library.FILE), 2**40)
first, kind = (int(word) for word in sys.argv[1:])
batch = np.column_stack([np.arange(first, first + 10**6), np.full(10**6, kind << 56)]).astype(np.uint64)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 120_000_000, used + 120_000_000))
try:
    for start in range(50):
        batch[:, 0] += 10**6
        assert made.add(batch)
except MemoryError:
    print("no memory", made.size[0] > 10**6)
for ask in (lambda: made.add(batch[:1]), made.finish, made.finish, lambda: made.counts(batch[:1])):
    try:
        ask()
        print("rows are lost")
    except MemoryError:
        pass
try:
    UnitTable(library.Kernel(library.FILE), 2**40)
except MemoryError:
    print("none at all")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits of memory as Linux has them")
@pytest.mark.parametrize(("first", "kind"), [(0, 5), (0, 16), (2**41, 16)], ids=["texts", "small numbers", "large numbers"])
def test_without_memory_there_is_an_error_and_no_crash(first, kind):
    """And nothing can be asked afterwards: rows that were not counted would make a unit's count too low."""
    env = {**os.environ, "PYTHONPATH": str(Path(dpgram.__file__).parents[1])}
    command = [sys.executable, "-c", MEMORY, str(first), str(kind)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert done.stdout.splitlines()[:1] == ["no memory True"], done.stderr
    assert "rows are lost" not in done.stdout
