"""A crawl directory whose rows and records are known; servers of PostgreSQL and MariaDB, where they are installed."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.sinks.drivers import connect_sink
from gossamer.sinks.mapping import SinkSpec
from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.storage import visit
from gossamer.values.visit import Item, Link, Visit


class Kept:
    """Stores of one agent, and what a crawl does with them."""

    def __init__(self, directory: Path, agent: str = "agent-00", **values: Any) -> None:
        self.directory = directory
        sheet = {"directory": str(directory), "agent": agent, "tables": ("pages", "links", "items"), **values}
        self.rows = TableLog(msgspec.convert(sheet, TableLogSheet))
        self.archive = WarcArchive(WarcSheet(directory=str(directory), agent=agent))
        self._ledger = LedgerSheet(directory=str(directory), agent=agent)
        (directory / "crawl.toml").touch()

    def commit(self, *visits: Visit) -> None:
        """One group."""
        self.rows.append(visits, self.archive.append(visits))

    def add(self, table: str, rows: Sequence[msgspec.Struct]) -> None:
        """Rows of no visit, in a group of their own."""
        ledger = RocksLedger(self._ledger)
        ledger.open()
        self.rows.add(table, rows, ledger)
        ledger.close()


def make_page(number: int, body: bytes = b"", **changes: Any) -> Visit:
    """A page with two links and an item."""
    url = f"http://a.test/{number}"
    one = visit(url, body or f"<p>page {number}".encode())
    links = (Link(f"{url}/x"), Link(f"{url}/y", "img src", "why", True))
    started = msgspec.structs.replace(one.response, started=1_700_000_000.0 + number)
    changes = {"links": links, "items": (Item("n", url, {"n": number}),), "response": started, **changes}
    return msgspec.structs.replace(one, **changes)


@pytest.fixture
def kept(tmp_path: Path) -> Callable[..., Kept]:
    """Open the stores of a crawl directory, under a name that SQL and wildcards would read wrongly."""
    directory = tmp_path / "it's [a] *crawl?"
    directory.mkdir(exist_ok=True)
    return lambda agent="agent-00", **values: Kept(directory, agent, **values)


@pytest.fixture
def page() -> Callable[..., Visit]:
    """Makes the page of a number."""
    return make_page


class DatabaseServer:
    """A server on loopback that can be stopped and started."""

    def __init__(self, url: str, command: list[str], folder: Path, **user: Any) -> None:
        self.url = url
        self._command = command
        self._folder = folder
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, blocks: str = "unlimited") -> None:
        """Start it, where it does not run, and wait until it answers; no file of it has more blocks of 512 bytes."""
        if self._process is not None:
            return
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", 'trap "" XFSZ; ulimit -S -f "$0"; exec "$@"', blocks, *self._command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._user,
            )
        for _ in range(200):
            try:
                connect_sink(SinkSpec(self.url, ())).close()
                return
            except OSError:
                threading.Event().wait(0.1)
        raise AssertionError((self._folder / "log").read_text(errors="replace")[-2000:])

    def stop(self) -> None:
        """Stop it as the machine's power would: connections are cut, and nothing is said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(HUNG_AFTER)
            self._process = None


def _folder(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix=f"gossamer-{name}-", dir="/tmp"))  # the path of a socket has to be short


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextlib.contextmanager
def _running(server: DatabaseServer, folder: Path) -> Iterator[DatabaseServer]:
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[DatabaseServer]:
    """A PostgreSQL server; the test is skipped where none is installed."""
    programs = [shutil.which(name) for name in ("initdb", "postgres")]
    if None in programs:
        pytest.skip("no PostgreSQL server is installed (initdb, postgres)")
    initdb, server = map(str, programs)
    folder = _folder("postgres")
    # The server refuses to be root.
    user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid} if os.geteuid() == 0 else {}
    if user:
        os.chown(folder, pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid)
    data, port = folder / "data", _port()
    made = [initdb, "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync", "--wal-segsize=1"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **user)  # type: ignore[call-overload]
    # Whoever is not the tester needs a password.
    rules = data / "pg_hba.conf"
    rules.write_text(f"host all stranger 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(folder), "-c", "fsync=off"]
    url = f"postgresql://tester@127.0.0.1:{port}/postgres"
    with _running(DatabaseServer(url, [server, "-D", str(data), *options], folder, **user), folder) as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[DatabaseServer]:
    """A MariaDB server without accounts; the test is skipped where none is installed."""
    server = shutil.which("mariadbd")
    if server is None:
        pytest.skip("no MariaDB server is installed (mariadbd)")
    folder, port = _folder("mariadb"), _port()
    (folder / "data" / "crawled").mkdir(parents=True)
    command = [
        server, "--no-defaults", f"--user={pwd.getpwuid(os.geteuid()).pw_name}", f"--datadir={folder}/data", "--skip-grant-tables",
        "--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder}/socket",
        "--character-set-server=utf8mb4", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M",
        "--innodb-buffer-pool-size=16M",
    ]  # fmt: skip
    url = f"mysql+pymysql://tester@127.0.0.1:{port}/crawled"
    with _running(DatabaseServer(url, command, folder), folder) as running:
        yield running
