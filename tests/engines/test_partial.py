"""Sums in pieces: any split of a table, sent as pieces and added up, is the whole; and the code that does it travels."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import dpgram
from dpgram.engines import partial, shipping
from dpgram.engines.local import LocalPass
from dpgram.errors import TableError, UnreadableTableError
from dpgram.native.library import kernel, kernel_name
from dpgram.sources.open import open_source
from dpgram.terms.public_map import PublicMap, digest_of
from dpgram.terms.scales import ONE_CLIP, first_scales


def table_and_schema(dim: int, rows: int = 300):
    rng = np.random.default_rng(dim)
    table = pa.table({f"x{i}": rng.normal(size=rows) for i in range(dim)})
    return table, dpgram.Schema(unit="p", row_bound=1.3, columns=[dpgram.Numeric(f"x{i}", -2, 2) for i in range(dim)])


def in_parts(table, schema, edges, bound=1.3, through=None, scales=ONE_CLIP):
    """One batch of pieces for each part of the table."""
    arguments = (schema.to_dict(), list(schema.names), bound)
    for number, (start, stop) in enumerate(pairwise(edges)):
        yield from partial.sum_part(iter(table.slice(start, stop - start).to_batches()), *arguments, number, through, scales)


def added(batches, groups=3):
    """The rows of SUM that come of adding by piece in several places."""
    pieces = pa.Table.from_batches(list(batches))
    found = []
    for group in range(groups):
        mine = pieces.filter(pa.compute.equal(pa.compute.subtract(pieces["piece"], group), pa.scalar(0, pa.int32())))
        if group == groups - 1:
            mine = pieces.filter(pa.compute.greater_equal(pieces["piece"], group))
        for batch in partial.add_pieces(mine.to_batches(), 1.3):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


@pytest.mark.parametrize("dim", [2, 44, 45, 90])  # one piece, just one, just two, five
def test_any_split_is_the_whole(dim):
    table, schema = table_and_schema(dim)
    whole = LocalPass(open_source(table), schema).gram(1.3)
    total = partial.from_pieces(added(in_parts(table, schema, [0, 0, 17, 17, 200, 300])), len(schema.encoded), 1.3)
    assert np.array_equal(total.high, whole.high)
    assert np.array_equal(total.low, whole.low)
    assert total.rows == whole.rows == 300


@pytest.mark.parametrize("dim", [2, 60])
def test_any_split_through_a_map_is_the_whole(dim):
    table, schema = table_and_schema(dim)
    through = PublicMap.near(np.random.default_rng(dim).normal(size=(dim + 1, dim + 1)) / 3)
    whole = LocalPass(open_source(table), schema).gram(0.8, through)
    parts = in_parts(table, schema, [0, 0, 17, 17, 200, 300], 0.8, through.to_bytes())
    total = partial.from_pieces(added(parts), dim + 1, 0.8, through.digest)
    assert np.array_equal(total.high, whole.high)
    assert np.array_equal(total.low, whole.low)
    assert (
        (total.rows, total.row_bound, total.through)
        == (whole.rows, whole.row_bound, whole.through)
        == (300, 0.8, through.digest)
    )
    nothing = partial.from_pieces([], dim + 1, 0.8, through.digest)
    assert nothing.merge(total).rows == 300


@pytest.mark.parametrize("dim", [2, 60])
def test_any_split_at_several_scales_is_the_whole(dim):
    table, schema = table_and_schema(dim)
    through, scales = PublicMap.near(np.random.default_rng(dim).normal(size=(dim + 1, dim + 1)) / 3), first_scales(3)
    whole = LocalPass(open_source(table), schema).gram(1.0, through, scales)
    parts = in_parts(table, schema, [0, 0, 17, 17, 200, 300], 1.0, through.to_bytes(), scales)
    total = partial.from_pieces(added(parts), dim + 1, 1.0, digest_of(through, scales), 3)
    assert whole.low[1:].any()  # there are long rows
    assert np.array_equal(total.high, whole.high)
    assert np.array_equal(total.low, whole.low)
    assert (total.rows, total.through) == (whole.rows, whole.through)
    assert partial.from_pieces([], dim + 1, 1.0, digest_of(through, scales), 3).merge(total).rows == 300


def test_a_part_that_comes_twice_or_not_at_all_is_noticed():
    table, schema = table_and_schema(60)
    batches = list(in_parts(table, schema, [0, 100, 200, 300]))
    for wrong in (
        batches[1:],
        [*batches, batches[1]],
        [batches[0], batches[2]],
        [batches[0], batches[1], batches[2].slice(1)],
        [batches[0], batches[0], batches[2]],
    ):
        with pytest.raises(TableError, match="summed twice or not at all, so nothing was released"):
            partial.from_pieces(added(wrong), 61, 1.3)


def test_pieces_of_two_attempts_at_a_part_are_noticed():
    """A part that gave other rows the second time, and some pieces of each: no table has such a sum."""
    table, schema = table_and_schema(60)
    first, second = in_parts(table, schema, [0, 100, 200])
    (other,) = in_parts(table.slice(200), schema, [0, 100])
    whole = added([first, second])
    assert partial.from_pieces(whole, 61, 1.3).rows == 200
    assert partial.from_pieces(added([other, second]), 61, 1.3).rows == 200
    with pytest.raises(TableError, match="summed twice or not at all, so nothing was released"):
        partial.from_pieces(added([first.slice(0, 1), other.slice(1), second]), 61, 1.3)


def test_a_failing_part_quotes_no_cell():
    _, schema = table_and_schema(2)

    def batches():
        raise ValueError("bad cell CANARY-SMITH")
        yield

    with pytest.raises(UnreadableTableError) as caught:
        list(partial.sum_part(batches(), schema.to_dict(), list(schema.names), 1.3, 0))
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


BARE_WORKER = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ImportError(name)

sys.meta_path.insert(0, Blocked())
from pyspark import cloudpickle
import pyarrow as pa

run = cloudpickle.loads(sys.stdin.buffer.read())
(batch,) = run(iter([pa.record_batch({{"a": [0.5, None], "b": [0.25, -1.0]}})]))
assert not any(name.partition(".")[0] in {unneeded} for name in sys.modules), sorted(sys.modules)
(again,) = run(iter([]))
assert again["rows"].to_pylist() == [0]
sys.stdout.buffer.write(batch["high"][0].as_py() + batch["low"][0].as_py())
"""
UNNEEDED = {"scipy", "msgspec", "cyclopts", "rich", "pandas", "polars", "sklearn", "matplotlib", "torch", "duckdb"}


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("through", [None, PublicMap.near(np.array([[1.0, 0.5, 0.2], [0.1, 2.0, 0.0], [0.0, 0.3, -1.0]]))])
def test_a_worker_needs_numpy_and_pyarrow_alone(installed, through):
    """With the package installed there, and without."""
    from pyspark import cloudpickle

    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x0", -2, 2), dpgram.Numeric("x1", -2, 2)])
    arguments = (schema.to_dict(), list(schema.names), 0.9, 0, None if through is None else through.to_bytes())
    run = shipping.shipped(partial.sum_part.__module__, "sum_part", *arguments)
    blocked = UNNEEDED if installed else UNNEEDED | {"dpgram"}  # the finder of shipped code stands before this one
    done = subprocess.run(
        [sys.executable, "-c", BARE_WORKER.format(blocked=blocked, unneeded=UNNEEDED)],
        input=cloudpickle.dumps(run),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    table = pa.table({"x0": [0.5, None], "x1": [0.25, -1.0]})
    total = LocalPass(open_source(table), schema).gram(0.9, through)
    upper = np.triu_indices(3)
    assert done.stdout == total.high[upper].tobytes() + total.low[upper].tobytes()


def test_code_of_another_version_gives_way(tmp_path):
    """A worker with another dpgram runs the driver's."""
    from pyspark import cloudpickle

    other = tmp_path / "dpgram"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('the wrong dpgram')\n")
    schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x0", -2, 2), dpgram.Numeric("x1", -2, 2)])
    run = shipping.shipped(partial.sum_part.__module__, "sum_part", schema.to_dict(), list(schema.names), 1.3, 0)
    done = subprocess.run(
        [sys.executable, "-c", BARE_WORKER.format(blocked=UNNEEDED, unneeded=UNNEEDED)],
        input=cloudpickle.dumps(run),
        capture_output=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr.decode()


def test_installed_code_is_used_where_it_is_the_same():
    import json
    import zlib

    files = json.loads(zlib.decompress(shipping.package_code()))
    assert shipping.installed_is_same(files)
    assert not shipping.installed_is_same({**files, "errors.py": files["errors.py"] + "\n"})
    assert len(shipping.package_code()) < 200_000


SHIPPED_KERNEL = """
import json, sys, zlib

files = json.loads(zlib.decompress(sys.stdin.buffer.read()))
files = {name.replace("native/linux", sys.argv[1]): text for name, text in files.items()}
space = {"__name__": "shipping"}
exec(compile(files["engines/shipping.py"], "shipping", "exec"), space)
space["installed_is_same"] = lambda files: False
space["ensure"](files, "digest")
from dpgram.native.library import kernel_name
print(kernel_name())
"""


@pytest.mark.skipif(kernel() is None or sys.platform != "linux", reason="NO COMPILED KERNEL, or not Linux: nothing to send")
@pytest.mark.parametrize(("platform", "found"), [("native/linux", kernel_name()), ("native/another", "NumPy")])
def test_the_compiled_kernel_travels_to_workers_of_its_platform(platform, found):
    command = [sys.executable, "-c", SHIPPED_KERNEL, platform]
    done = subprocess.run(command, input=shipping.package_code(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == found
