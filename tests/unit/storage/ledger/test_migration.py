"""A ledger of version 1, written by hand as that version lay on the disk, goes on as the present one; so does one of version 2."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from gossamer.storage.ledger import schema
from gossamer.storage.ledger import schema as lanes
from gossamer.storage.ledger.layout import LedgerKeys
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.storage.ledger.store import RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import Task

LIMITS = LedgerSheet(cache=1 << 20, buffers=1 << 20, log=1 << 20)
HOSTS = [f"h{number}.test" for number in range(5)]
CHUNKS, TASKS = 4, 3

pack = msgspec.msgpack.encode


def urls(host: str) -> list[str]:
    return [f"http://{host}/{number}" for number in range(CHUNKS * TASKS)]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Hosts with four chunks of three tasks; of each, the first chunk and the second task of the second are finished."""
    folder = tmp_path / "state/agent-00/ledger"
    folder.parent.mkdir(parents=True)
    store = RocksStore(folder, LIMITS, create=True)
    batch, keys, serial = store.batch(), LedgerKeys(7), 1
    for host in HOSTS:
        first = serial
        for chunk in range(CHUNKS):
            rows = [[url, 2, "http://s.test/", "a href", 1] for url in urls(host)[chunk * TASKS : (chunk + 1) * TASKS]]
            if chunk:
                batch.put("frontier", b"q" + keys.host(host) + serial.to_bytes(8), pack([host, rows]))
            serial += 1
        batch.put("hosts", keys.host(host) + b"c", pack([first + 1, 0, [[first + 1, 1]]]))
        batch.put("hosts", keys.host(host) + b"s", pack([host, 5.0, "asking", {"pages": 4}, None]))
        batch.put("hosts", keys.host(host) + b"x", b"robots")
        batch.put("frontier", b"a" + keys.host(host), host.encode())
    batch.put("meta", b"secret", (7).to_bytes(8))
    batch.put("meta", b"state", pack([[serial, 0, len(HOSTS) * 8], {"discovered": 60}]))
    batch.put("meta", b"schema", b"1")
    store.write(batch)
    store.close()
    return tmp_path


def check(directory: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(directory)))
    ledger.open()
    queues = LedgerFrontier()
    queues.ledger = ledger
    assert len(queues) == len(HOSTS) * 8
    states = queues.admit(0.0)
    assert sorted(states, key=lambda state: state.host) == [HostState(host, counters={"pages": 4}) for host in HOSTS]
    for host in HOSTS:
        popped = queues.pop(host, 99)
        assert [task.url for task in popped] == [url for n, url in enumerate(urls(host)) if n >= 3 and n != 4]
        assert {(task.level, task.depth, task.source) for task in popped} == {(0, 2, "http://s.test/")}
    with ledger.group() as group:
        for host in HOSTS:
            assert all(group.done(url) for n, url in enumerate(urls(host)) if n >= 3 and n != 4)
    assert len(queues) == 0
    assert ledger.counters() == {"discovered": 60}
    assert ledger.robots("http://h1.test", "h1.test") is None
    ledger.close()


def test_nothing_is_lost_on_the_way_from_version_1(old: Path) -> None:
    check(old)
    check_version(old)


def test_a_ledger_of_version_2_goes_on_as_it_is(tmp_path: Path) -> None:
    ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
    ledger.open()
    with ledger.group() as group:
        group.push([Task("http://a.test/1", "a.test"), Task("http://a.test/2", "a.test")])
    ledger.put_meta("x", b"y")
    ledger.close()
    store = RocksStore(tmp_path / "state/agent-00/ledger", LIMITS)
    batch = store.batch()
    schema.stamp(batch, 2)
    store.write(batch)
    assert schema.migrate(store) == 2
    store.close()
    ledger.open()
    assert [task.url for task in ledger.queues.pop(ledger.queues.admit(0.0, 1)[0], 9)] == [
        "http://a.test/1",
        "http://a.test/2",
    ]
    ledger.close()


@pytest.mark.parametrize("passing", range(1, 10))
def test_a_migration_that_a_kill_interrupts_goes_on(old: Path, passing: int) -> None:
    program = (
        "import sys\nfrom gossamer.storage.ledger import schema\n"
        "from gossamer.storage.ledger.ledger import RocksLedger, LedgerSheet\n"
        f"schema.AT_ONCE = 7\nRocksLedger(LedgerSheet(directory={str(old)!r})).open()"
    )
    environment = {**os.environ, "GOSSAMER_CRASH": f"recovery:{passing}"}
    assert subprocess.run([sys.executable, "-c", program], env=environment, check=False).returncode == -9
    check(old)
    check_version(old)


def check_version(directory: Path) -> None:
    store = RocksStore(directory / "state/agent-00/ledger", LIMITS)
    assert store.get("meta", b"schema") == str(schema.VERSION).encode()
    assert not [key for key, _ in store.scan("frontier", b"q", b"r") if len(key) == lanes.OLD_CHUNK_KEY]
    store.close()


def test_a_ledger_on_its_way_to_a_newer_version_is_refused(old: Path) -> None:
    store = RocksStore(old / "state/agent-00/ledger", LIMITS)
    batch = store.batch()
    schema.stamp(batch, schema.VERSION, schema.VERSION + 1)
    store.write(batch)
    with pytest.raises(
        CrawlDirectoryError, match=f"has version {schema.VERSION + 1}, and this program knows {schema.VERSION}"
    ):
        schema.migrate(store)
    store.close()
