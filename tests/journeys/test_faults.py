"""What the machine does to a crawl: no room, few open files, a process that is stopped, files that are torn or changed."""

import asyncio
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.messages import Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeRequest, FakeWeb
from gossamer.values.errors import CrawlDirectoryError
from tools.verifying import verify

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


@pytest.fixture(autouse=True)
def runtime(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime directory of our own."""
    (socket_folder / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_folder / "run"))


#: Sets limits of the system, then becomes the command: what the crawl starts has them, and nothing of ours.
LIMITED = (
    "import json, os, resource, sys\n"
    "for which, value in json.loads(sys.argv[1]).items():\n"
    "    resource.setrlimit(int(which), (value, resource.getrlimit(int(which))[1]))\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'gossamer', *sys.argv[2:]])"
)


def start(*arguments: str, limits: Mapping[int, int] | None = None) -> "subprocess.Popen[str]":
    """Start the command, under (soft) limits of the system."""
    return subprocess.Popen(
        [sys.executable, "-c", LIMITED, json.dumps(limits or {}), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


def gossamer(*arguments: str, limits: Mapping[int, int] | None = None) -> tuple[int, str, str]:
    """Run the command to its end: exit status, standard output, standard error."""
    process = start(*arguments, limits=limits)
    out, err = process.communicate(timeout=HUNG_AFTER)
    return process.returncode, out, err


def done(folder: Path) -> set[str]:
    (ledger,) = ledgers_of(folder)
    with ledger.looking():
        return {row.url for row in ledger.documents()}


def heavy(count: int) -> dict[str, Any]:
    """A page that links to many that do not compress."""
    links = "".join(f'<a href="/{number}">x</a>' for number in range(count))
    return {"/": links, **{f"/{number}": FakePage(os.urandom(10_000).hex()) for number in range(count)}}


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[Path, FakeWeb, "subprocess.Popen[str]"]]:
    """A crawl whose files may grow no more; it has said so, and waits."""
    folder = tmp_path / "c"
    with FakeWeb(heavy(80)) as web:
        process = start(
            "crawl", web.url("/"), "-o", str(folder), "--delay", "0", "--json", limits={resource.RLIMIT_FSIZE: 400_000}
        )
        assert process.stderr is not None
        assert "the disk is full ([Errno 27] File too large); make room: the crawl waits" in process.stderr.readline()
        yield folder, web, process
        process.kill()
        process.communicate()


Full = tuple[Path, FakeWeb, "subprocess.Popen[str]"]


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process' limits are changed on Linux only")
def test_a_crawl_without_room_waits_and_goes_on_when_there_is_room(full: Full) -> None:
    folder, web, process = full
    kept = done(folder)
    assert 5 < len(kept) < 80
    assert gossamer("status", str(folder))[1].startswith(f"{folder}: running")
    assert verify(folder).findings == []
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    out, _ = process.communicate(timeout=HUNG_AFTER)
    assert (process.returncode, json.loads(out)["pages"]) == (0, 81)
    assert set(Counter(web.targets()).values()) == {1}
    assert verify(folder).findings == []


def test_a_crawl_without_room_is_stopped_at_once_and_fetches_the_rest_later(full: Full) -> None:
    folder, web, process = full
    kept, asked = done(folder), Counter(web.targets())
    assert gossamer("stop", str(folder), "--now")[0] == 0
    process.communicate(timeout=HUNG_AFTER)
    assert process.returncode == 3
    assert verify(folder).findings == []
    status, out, _ = gossamer("resume", str(folder), "--json")
    assert (status, json.loads(out)["pages"]) == (0, 81)
    again = Counter(web.targets()) - asked
    assert not kept & set(map(web.url, again))
    assert verify(folder).findings == []


@pytest.mark.parametrize("limit", [256, 64])
def test_few_open_files_slow_a_crawl_of_many_hosts_and_lose_nothing(limit: int, tmp_path: Path) -> None:
    hosts = 300
    links = "".join(f'<a href="http://h{number}.test/">x</a>' for number in range(1, hosts))
    pages: dict[str, Any] = {"http://h0.test/": links}
    pages |= {f"http://h{number}.test/": FakePage(f"host {number}", latency=0.01) for number in range(1, hosts)}
    with FakeWeb(pages) as web:
        options = ["--scope", "any", "--resolve", web.resolve, "--allow-network", "127.0.0.0/8", "--delay", "0"]
        status, out, err = gossamer(
            "crawl", "http://h0.test/", "-o", str(tmp_path / "c"), *options, "--json",
            limits={resource.RLIMIT_NOFILE: limit},
        )  # fmt: skip
    assert (status, err) == (0, "")
    assert json.loads(out)["outcomes"] == {"ok": hosts}


def test_a_process_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with FakeWeb.tree(4, 4, latency=0.002) as web:
        process = start("crawl", web.url("/"), "-o", str(folder), "--delay", "0", "--json")
        web.wait_for(20)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with Control(folder, timeout=0.2) as control, pytest.raises(CrawlDirectoryError, match="may be suspended"):
            control.told(Status(), CrawlStanding)
        assert gossamer("resume", str(folder))[0] == 5
        os.kill(process.pid, signal.SIGCONT)
        out, _ = process.communicate(timeout=HUNG_AFTER)
        assert (process.returncode, json.loads(out)["pages"]) == (0, len(web.expected))
        assert Counter(map(web.url, web.targets())) == Counter(web.expected)
    assert verify(folder).findings == []


@pytest.fixture(scope="module")
def halfway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, FakeWeb]]:
    """A crawl that was killed in the middle, and its web."""
    folder = tmp_path_factory.mktemp("halfway") / "crawl"
    with FakeWeb.tree(4, 4, latency=0.002) as web:
        process = start("crawl", web.url("/"), "-o", str(folder), "--delay", "0", "--json")
        web.wait_for(60)
        process.kill()
        process.communicate()
        yield folder, web


def torn_archive(folder: Path) -> None:
    (path,) = folder.glob("warc/*.warc.gz")
    path.write_bytes(path.read_bytes()[:2000])


def lost_archive(folder: Path) -> None:
    (path,) = folder.glob("warc/*.warc.gz")
    path.unlink()


def changed_ledger(folder: Path) -> None:
    for path in folder.glob("state/*/ledger/MANIFEST-*"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x10
        path.write_bytes(data)


def lost_ledger(folder: Path) -> None:
    for path in folder.glob("state/*/ledger/CURRENT"):
        path.unlink()


def newer_ledger(folder: Path) -> None:
    (ledger,) = ledgers_of(folder)
    ledger.open()
    batch = ledger._store.batch()
    batch.put("meta", b"schema", b"999")
    ledger._store.write(batch)
    ledger.abandon()


@pytest.mark.parametrize("damage", [torn_archive, changed_ledger, lost_ledger, newer_ledger])
def test_a_damaged_crawl_is_refused_and_never_begun_anew(
    damage: Any, halfway: tuple[Path, FakeWeb], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(halfway[0], tmp_path / "c"))
    damage(folder)
    asked = len(halfway[1].requests)
    status, out, err = gossamer("resume", str(folder), "--json")
    assert (status, out, err.count("\n")) == (5, "", 1), err
    assert len(halfway[1].requests) == asked
    assert not verified(folder)


def verified(folder: Path) -> bool:
    try:
        return verify(folder).is_whole
    except CrawlDirectoryError:
        return False


def test_a_byte_that_changed_in_the_archive_is_told_when_it_is_read(
    halfway: tuple[Path, FakeWeb], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(halfway[0], tmp_path / "c"))
    (path,) = folder.glob("warc/*.warc.gz")
    (ledger,) = ledgers_of(folder)
    with ledger.looking():
        row = next(row for row in ledger.documents() if row.location is not None)
    assert row.location is not None
    data = bytearray(path.read_bytes())
    data[row.location.offset + 30] ^= 0x10
    path.write_bytes(data)
    status, out, err = gossamer("cat", str(folder), row.url)
    assert (status, out, err.count("\n")) == (5, "", 1), err
    assert not verify(folder).is_whole


def test_a_killed_crawl_goes_on_from_what_it_kept(halfway: tuple[Path, FakeWeb], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(halfway[0], tmp_path / "c"))
    web = halfway[1]
    assert standing_at_rest(folder).state == "killed"
    assert verify(folder).findings == []
    kept, asked = done(folder), Counter(web.targets())
    status, out, _ = gossamer("resume", str(folder), "--json")
    assert (status, json.loads(out)["pages"]) == (0, len(web.expected))
    again = Counter(web.targets()) - asked
    assert not kept & set(map(web.url, again))
    assert verify(folder).findings == []


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_jumps_an_hour_neither_stops_a_crawl_nor_hurries_it(
    jump: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: Counter[str] = Counter()
    jumped = 0.0

    def failing(request: FakeRequest) -> FakePage:
        """Fails once."""
        tries[request.target] += 1
        return FakePage("busy", status=500) if tries[request.target] == 1 else FakePage("here")

    def jumping(request: FakeRequest) -> FakePage:
        """While a page waits for its second try, the clock jumps."""
        nonlocal jumped
        jumped = jump
        return FakePage("x")

    system = time.time
    monkeypatch.setattr(time, "time", lambda: system() + jumped)
    names = [f"/{number}" for number in range(30)]
    pages: dict[str, Any] = {
        "/": "".join(f'<a href="{name}">x</a>' for name in names),
        **dict.fromkeys(names, FakePage("x")),
    }
    with FakeWeb({**pages, "/7": failing, "/9": jumping}) as web:
        options = {"output": str(tmp_path / "c"), "delay": 0.01}
        settings = {"politeness": {"retries": [1.0]}}
        job = Crawl([web.url("/")], build(all_options(), options), settings=settings, tables=False)
        summary = asyncio.run(asyncio.wait_for(job.run(), 30))
        assert (summary.state, summary.pages) == ("finished", 31)
        assert Counter(web.targets()) == Counter({"/": 1, **dict.fromkeys(names, 1), "/7": 2})
    assert verify(tmp_path / "c").findings == []


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_a_request_whose_kept_connection_was_dropped_is_a_try_like_any_other(tries: int, tmp_path: Path) -> None:
    pages = {"/": '<a href="/dropped">x</a>', "/dropped": FakePage(raw=b"")}
    with FakeWeb(pages) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0})
        job = Crawl([web.url("/")], options, settings={"politeness": {"retries": [0.01] * (tries - 1)}}, tables=False)
        summary = asyncio.run(asyncio.wait_for(job.run(), 60))
        assert web.targets() == ["/", *["/dropped"] * tries]
    assert summary.pages == 1
    rows = map(json.loads, (tmp_path / "c" / "logs" / "crawl.jsonl").read_text().splitlines())
    assert [row["attempt"] for row in rows if row["url"].endswith("/dropped")] == list(range(1, tries + 1))
