"""A real Spark cluster of two executors, classic and Connect, for the modules that need one."""

from __future__ import annotations

import signal
import socket
import sys

import pytest


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A classic session on two executors, each a process of its own, and the address at which it answers Spark Connect."""
    from pyspark.sql import SparkSession

    place, port = tmp_path_factory.mktemp("cluster"), free_port()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={place}",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.files.maxPartitionBytes": "64k",
        "spark.sql.files.openCostInBytes": "64k",  # a partition for every file, the empty one included
        "spark.task.maxFailures": "2",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,512]").appName("dpgram tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    handler = signal.getsignal(signal.SIGINT)
    changed = pytest.MonkeyPatch()
    changed.setenv("PYSPARK_PYTHON", sys.executable)
    session = builder.getOrCreate()
    signal.signal(signal.SIGINT, handler)  # Spark puts its own there, and other tests run while the cluster is up
    session.sparkContext.setLogLevel("OFF")
    yield session, f"sc://127.0.0.1:{port}"
    session.stop()
    changed.undo()


@pytest.fixture(scope="module")
def classic(cluster):
    return cluster[0]


@pytest.fixture(scope="module")
def connect(cluster):
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.builder.remote(cluster[1]).create()
    yield session
    session.stop()


@pytest.fixture(params=["classic", "connect"])
def spark(request):
    return request.getfixturevalue(request.param)
