"""A PostgreSQL server of this machine's own packages, on the loopback interface, with one database for a test each."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.slow.servers import free_port

USER = "askance"
PASSWORD = "a secret of the team"  # of a server that lives as long as a test


def binaries() -> Path:
    """The folder of the server's programs; the test is skipped where there are none."""
    named = shutil.which("initdb")
    folders = [Path(named).parent] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("No PostgreSQL server is installed (Debian: postgresql).")
    return folders[-1]


@dataclass
class PostgresServer:
    """A server that runs, and can be stopped and started again."""

    folder: Path
    port: int

    def address(self, **settings: str) -> str:
        """The address of the records; the password is told as people do, by PGPASSWORD."""
        query = "&".join(f"{name}={value}" for name, value in settings.items())
        return f"postgres://{USER}@127.0.0.1:{self.port}/postgres{'?' if query else ''}{query}"

    def run(self, statement: str, values: tuple[Any, ...] = (), *, user: str = USER) -> list[tuple[Any, ...]]:
        """The rows of a statement of the test's own."""
        there = f"host=127.0.0.1 port={self.port} dbname=postgres user={user}"
        with psycopg.connect(there, password=PASSWORD, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        self._control("-o", settings, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, how: str = "fast") -> None:
        """Stops the server; `immediate` is a crash."""
        self._control("-m", how, "-w", "stop")

    def _control(self, *words: str) -> None:
        _as_server([str(binaries() / "pg_ctl"), "-D", str(self.folder / "data"), *words])


@contextmanager
def serving() -> Generator[PostgresServer]:
    """A server whose files are gone with the context."""
    programs = binaries()
    with tempfile.TemporaryDirectory(prefix="askance-postgres-") as name:
        folder = Path(name)
        (folder / "password").write_text(PASSWORD, encoding="utf-8")
        if os.geteuid() == 0:  # the server does not run as root
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres")
        made = (*("--pgdata", str(folder / "data"), "--username", USER, "--pwfile", str(folder / "password")),)
        _as_server([str(programs / "initdb"), *made, "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-sync"])
        server = PostgresServer(folder, free_port())
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


def _as_server(command: list[str]) -> None:
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None:
        try:
            pwd.getpwnam(user)
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user `postgres`.")
    subprocess.run(command, check=True, user=user, group=user, cwd="/", stdout=subprocess.DEVNULL)
