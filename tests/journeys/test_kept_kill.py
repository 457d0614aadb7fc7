"""A crawl is killed again and again and resumed: archive, tables, index and ledger say the same, to the byte."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.cli.main import main
from gossamer.query.database import Database
from gossamer.storage.archive.contract import INDEX
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")

KILLS = 6


def start(directory: Path, seed: str, *options: str) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "gossamer", "crawl", seed, "-o", str(directory), "--delay", "0", "--per-host", "4"]
    tables = ["--set", 'log.tables=["pages", "links"]', "--set", "log.segment_bytes=30000"]
    return subprocess.Popen(
        [*command, *tables, "--quiet", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def archived(directory: Path) -> list[tuple[str, int]]:
    """File and offset of every response record, by somebody else's reader; every record is whole."""
    found = []
    for path in sorted(directory.glob("warc/*.warc.gz")):
        with path.open("rb") as stream:
            records = ArchiveIterator(stream, check_digests="raise")
            for record in records:
                if record.rec_type in ("response", "revisit"):
                    found.append((f"warc/{path.name}", records.get_record_offset()))
                record.content_stream().read()
    return found


@pytest.mark.long
def test_whatever_is_killed_when_nothing_is_lost_doubled_or_torn(tmp_path: Path) -> None:
    directory, chance = tmp_path / "crawl", random.Random(7)
    with FakeWeb.tree(4, 5, latency=0.02) as web:
        seed, interrupted = web.url("/"), 0
        for _ in range(KILLS):
            resume = ["--resume"] if (directory / "crawl.toml").exists() else []
            child = start(directory, seed, *resume)
            web.wait_for(len(web.requests) + chance.randrange(20, 110))
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            interrupted += child.returncode == -signal.SIGKILL
        done = start(directory, seed, *(["--resume"] if (directory / "crawl.toml").exists() else []))
        _, said = done.communicate(timeout=HUNG_AFTER)
        assert done.returncode == 0, said.decode()
        expected = web.expected
    assert interrupted == KILLS, "the crawl was too short to be killed so often"

    with Database(directory) as database:
        rows = list(database.ask("SELECT url, warc_file, warc_offset FROM pages_all WHERE warc_file IS NOT NULL"))
        links = dict(list(database.ask("SELECT source, count(*) FROM links_all GROUP BY 1")))
    ledger = RocksLedger(LedgerSheet(directory=str(directory), existing=True))
    ledger.open()
    try:
        documents = {row.url: row.location for row in ledger.documents() if row.relation != "robots"}
        ends = ledger.committed_ends()
    finally:
        ledger.close()

    assert {url for url, _, _ in rows} == expected
    assert max(Counter(url for url, _, _ in rows).values()) == 1
    places = Counter((file, offset) for _, file, offset in rows)
    records = archived(directory)
    assert Counter(records) >= places
    assert len((directory / INDEX).read_bytes().splitlines()) == len(records)
    assert {url: (where.file, where.offset) for url, where in documents.items() if where is not None} == {
        url: (file, offset) for url, file, offset in rows
    }
    assert set(links.values()) == {5}
    for path in directory.glob("warc/*"):
        assert ends[f"warc/{path.name}"] == path.stat().st_size


@pytest.mark.long
def test_many_seeds_that_a_kill_or_the_end_of_the_time_came_before_are_queued_by_the_next_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first request goes out while most of them are still to be queued."""
    directory, number = tmp_path / "crawl", 20_000
    with FakeWeb({"/": "<p>hello"}) as web:
        file = tmp_path / "seeds.txt"
        file.write_text("".join(f"http://h{one}.test/\n" for one in range(number)))
        options = ["--resolve", f"*.test={web.url('/').split('/')[2]}", "--allow-network", "127.0.0.0/8"]
        killed = start(directory, "http://h0.test/", "--seeds", str(file), *options)
        web.wait_for(1)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
        timed = start(directory, "--resume", "--max-time", "0.2s")
        _, said = timed.communicate(timeout=HUNG_AFTER)
        assert timed.returncode in (0, 4), said.decode()
        done = start(directory, "--resume", "--max-time", "1h", "--max-pages", "1")
        _, said = done.communicate(timeout=HUNG_AFTER)
        assert done.returncode == 0, said.decode()
    assert main(["status", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["discovered"] == number
