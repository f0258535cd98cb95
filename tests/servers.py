"""A PostgreSQL server of the tests' own: made in a temporary folder, on a free port of the loopback, gone at the end."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.needs import program

PASSWORD = "PASSWORD-OF-THE-TESTS"


@dataclass
class Server:
    """A running server. ``uri`` has a password in it."""

    folder: Path
    port: int

    @property
    def uri(self) -> str:
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def connect(self):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.uri, autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def control(self, *words: str) -> None:
        command = [*as_postgres(), str(program("pg_ctl")), "-D", str(self.folder / "data"), "-w", *words]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL, cwd=self.folder)

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_wal_size=4GB"
        self.control("-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """At once, connections and all."""
        self.control("-m", "immediate", "stop")


def as_postgres() -> list[str]:
    """What to put before a command so that it does not run as root, which PostgreSQL refuses."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []


def make_server() -> Server:
    """A new server that runs; whoever asked stops it and removes its folder."""
    folder = Path(tempfile.mkdtemp(prefix="dpgram-postgresql-"))  # short, as the path of a socket must be
    (folder / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        for path in (folder, folder / "password"):
            shutil.chown(path, "postgres", "postgres")
    initdb = [str(program("initdb")), "-D", str(folder / "data"), "-U", "postgres", "-A", "scram-sha-256"]
    more = ["--pwfile", str(folder / "password"), "-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run([*as_postgres(), *initdb, *more], check=True, timeout=120, stdout=subprocess.DEVNULL, cwd=folder)
    server = Server(folder, free_port())
    server.start()
    return server


def free_port() -> int:
    """A port that nobody listens on. Between now and the server's start somebody may; so ask in a random place."""
    for _ in range(50):
        port = 20_000 + secrets.randbelow(10_000)  # below the range that the system itself gives to clients
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port on the loopback")
