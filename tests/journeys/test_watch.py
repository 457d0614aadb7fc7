"""`gossamer watch`: the overview of a crawl that runs or rests, on a terminal, until Ctrl-C."""

import asyncio
import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.analysis.watching import CrawlWatch, combined, read_samples, speeds
from gossamer.cli.main import main
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.storage.tables.row_tables import SampleRow
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

#: One page, and one that is tried again much later.
WAITING = {"/": '<a href="/1">x</a>', "/1": FakePage(status=500)}


@contextlib.contextmanager
def running(web: FakeWeb, folder: Path) -> Iterator[Crawl]:
    """A crawl at work in a thread, waiting for a retry."""
    options = build(all_options(), {"output": str(folder), "delay": 0, "linger": "forever"})
    job = Crawl([web.url("/")], options)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(job.run()))
    thread.start()
    try:
        with CrawlLook(folder) as looking:
            deadline = time.monotonic() + 30
            while looking.fetched() < 2 and time.monotonic() < deadline:
                time.sleep(0.02)
        yield job
    finally:
        loop.call_soon_threadsafe(job.abort)
        thread.join(HUNG_AFTER)
        loop.close()


class CrawlLook:
    """Looks at a crawl that may not be there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watch: CrawlWatch | None = None

    def __enter__(self) -> "CrawlLook":
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.close()

    def fetched(self) -> int:
        with contextlib.suppress(Exception):
            self._watch = self._watch or CrawlWatch(self._folder)
            now = self._watch.look()
            return now.fetched if now.is_at_work else 0
        return 0


def test_a_watched_crawl_is_told_as_it_runs_ends_and_rests(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        with running(web, tmp_path / "c"):
            watch = CrawlWatch(tmp_path / "c")
            now = watch.look(units=True)
            assert (now.state, now.fetched, now.queued) == ("running", 2, 1)
            assert now.units
        rest = watch.look()
    assert not rest.is_at_work
    assert (rest.fetched, rest.queued) == (2, 1)
    assert watch.look() is rest, "a crawl at rest that nobody touches is read once"
    assert main(["block", str(tmp_path / "c"), "no.test"]) == 0
    assert watch.look() is not rest
    assert rest.fetched == standing_at_rest(tmp_path / "c").fetched
    watch.close()


def test_what_is_no_crawl_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        CrawlWatch(tmp_path)


def test_samples_are_read_from_logs_and_tables_alike(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        for resume in (False, True):
            options = {"output": str(tmp_path / "c"), "delay": 0, "retries": 0, "resume": resume}
            asyncio.run(Crawl([web.url("/")], build(all_options(), options)).run())
            if not resume:
                [first] = read_samples(tmp_path / "c")
    rows = read_samples(tmp_path / "c")
    assert rows[0] == first
    assert [row.pages for row in rows] == [1, 1]
    assert read_samples(tmp_path / "c", since=first.taken_at) == rows[1:]


def test_samples_of_several_agents_are_added_up() -> None:
    rows = [
        SampleRow(taken_at=f"2026-03-01T12:00:{second:02d}.000000Z", agent=agent, pages=pages, seconds=float(second))
        for second, agent, pages in ((1, "agent-00", 5), (2, "agent-01", 7), (11, "agent-00", 15), (12, "agent-01", 17))
    ]
    both = combined(rows)
    assert [row.pages for row in both] == [12, 32]
    assert speeds(both) == [2.0]


def test_without_a_terminal_one_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "terminal" in err


@pytest.mark.parametrize("columns", [30, 120])
def test_ctrl_c_leaves_the_overview_and_the_terminal_as_it_was(tmp_path: Path, columns: int) -> None:
    with FakeWeb(WAITING) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0, "retries": 0}
        asyncio.run(Crawl([web.url("/")], build(all_options(), options)).run())
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "gossamer", "watch", str(tmp_path / "c"), "--interval", "0.5"]
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm"}
    process = subprocess.Popen(line, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while b"problems" not in shown:
            shown += os.read(ours, 65_536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65_536):
                shown += part
        assert process.wait(HUNG_AFTER) == 0
    finally:
        process.kill()
        _, said = process.communicate()
        os.close(ours)
    assert said == b""
    assert b"\x1b[?1049h" in shown and b"\x1b[?1049l" in shown, "the screen of before comes back"
