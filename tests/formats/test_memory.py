"""Memory does not grow with the table."""

import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAM = """
import sys, dpgram
schema = dpgram.Schema(unit="r", columns=[dpgram.Numeric(f"x{i}", -3, 3) for i in range(20)])
dpgram.release(sys.argv[1], schema, epsilon=1, delta=1e-9)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # not ru_maxrss, which counts the parent too
"""


def write_table(folder, files, group):
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i in range(files):
        table = pa.table({f"x{j}": rng.normal(size=500_000) for j in range(20)})
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=group, compression="none", use_dictionary=False)


def peak_megabytes(table) -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(table)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")
def test_a_table_sixteen_times_larger_takes_no_more_memory(tmp_path):
    """80 MB against 1.3 GB of Parquet, in one row group per file: below 600 MB, and within 100 MB of each other."""
    write_table(tmp_path / "small", 1, 500_000)
    write_table(tmp_path / "large", 16, 500_000)
    small, large = peak_megabytes(tmp_path / "small"), peak_megabytes(tmp_path / "large")
    assert large < 600
    assert large < small + 100


ROWS, COLUMNS = 3_000_000, 10
QUERY = """
import sys, dpgram
schema = dpgram.Schema(unit="r", columns=[dpgram.Numeric(f"x{i}", -3, 3) for i in range(10)])
dpgram.release(sys.argv[1], schema, query=sys.argv[2], epsilon=1, delta=1e-9, memory=0)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])  # not ru_maxrss, which counts the parent too
"""


def peaks(table, query="select * from many") -> tuple[float, float]:
    """Peak megabytes for few rows and for all of them."""
    found = []
    for limit in (" limit 1000", ""):
        command = [sys.executable, "-c", QUERY, str(table), query + limit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(int(done.stdout) / 1024)
    return found[0], found[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")
def test_a_query_to_postgresql_takes_memory_for_a_few_batches(postgresql):
    """240 MB of cells through batches of 16 MB."""
    cells = ", ".join(f"random() as x{i}" for i in range(COLUMNS))
    postgresql.run("drop table if exists many", f"create table many as select {cells} from generate_series(1, {ROWS})")
    small, large = peaks(postgresql.uri)
    postgresql.run("drop table many")
    assert large < small + 150


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")
def test_a_query_to_duckdb_keeps_to_the_cache_that_it_is_given(tmp_path):
    """800 MB of cells. DuckDB's cache is held to 256 MB where there are two cores; left alone it would keep the table."""
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        cells = ", ".join(f"random() as x{i}" for i in range(COLUMNS))
        connection.execute(f"create table many as select {cells} from range(10_000_000)")
    small, large = peaks(tmp_path / "t.duckdb")
    assert large < small + 650  # the rest is what the allocator keeps
