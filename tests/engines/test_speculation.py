"""A task that Spark runs twice at once counts once. Spark speculates across hosts only, so this is a cluster of two loopback ones."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

DRIVER = """
import os, sys, time
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
import dpgram

master, place = sys.argv[1:]
builder = SparkSession.builder.master(master)
settings = {
    "ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "cores.max": "2",
    "executor.cores": "1", "executor.memory": "512m", "speculation": "true", "speculation.interval": "100ms",
    "speculation.quantile": "0.5", "speculation.minTaskRuntime": "1s", "sql.files.openCostInBytes": "1g",
}
for name, value in settings.items():
    builder = builder.config(f"spark.{name}", value)
spark = builder.getOrCreate()
rng = np.random.default_rng(0)
os.mkdir(f"{place}/table")
for i in range(4):
    pq.write_table(pa.table({"x": rng.normal(size=500), "y": rng.normal(size=500)}), f"{place}/table/{i}.parquet")

def read(batches):
    context = TaskContext.get()
    name = f"{place}/{context.partitionId()}-{context.attemptNumber()}"
    open(name, "x").close()
    yield from batches
    if name.endswith("/0-0"):
        time.sleep(300)

from pyspark import TaskContext
schema = dpgram.Schema(unit="p", columns=[dpgram.Numeric("x", -2, 2), dpgram.Numeric("y", -2, 2)])
frame = spark.read.parquet(f"{place}/table")
one, other = (
    dpgram.release(table, schema, epsilon=1, delta=1e-6, insecure_seed=1).gram
    for table in (frame.mapInArrow(read, frame.schema), f"{place}/table")
)
assert np.array_equal(one, other)
assert os.path.exists(f"{place}/0-1"), os.listdir(place)
print("the same bits", flush=True)
os._exit(0)  # the first attempt may still sleep
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def running(*command: str, environment: dict[str, str]):
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
@pytest.mark.system("openjdk-17-jre-headless")
def test_a_speculative_attempt_counts_once(tmp_path):
    """The first attempt at one partition hangs, Spark runs a second beside it, and takes that."""
    import pyspark

    spark_class = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as cluster:
        command = [spark_class, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        cluster.enter_context(running(*command, "--webui-port", "0", environment=environment))
        for host in ("127.0.0.2", "127.0.0.3"):
            command = [spark_class, "org.apache.spark.deploy.worker.Worker", "--host", host, "--cores", "1", "--memory", "1g"]
            work = ["--webui-port", "0", "--work-dir", str(tmp_path / host), master]
            cluster.enter_context(running(*command, *work, environment=environment))
        time.sleep(5)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", DRIVER, master, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
    assert "the same bits" in done.stdout, done.stderr[-3000:]
