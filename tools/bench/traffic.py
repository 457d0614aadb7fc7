"""The savings of a mobile crawl: bytes, requests and seconds, beside a stationary crawl of the same pages over the same line.

Place in the flow: `gossamer bench mobile` adds these tables to those of judging. The site lies in a folder; a web server and
a runtime serve it. Crawls are commands, as people run them, and reach either through a line that delays, limits and counts:
a proxy on loopback. Both directions are lines of their own, that all connections share. Both crawls have the same gates.
Bytes are those of the sockets, both ways: program, acknowledgements, heads and all.
"""

import asyncio
import gzip
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Final, Self

import msgspec

from gossamer.bench.harness import AT_ONCE, BenchReport
from gossamer.engine import processes
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.errors import UsageError

#: Bytes that are read at once.
_PIECE = 64 << 10

#: How a request begins.
_REQUEST = re.compile(rb"(?:GET|PUT|DELETE|POST|HEAD) /")


class LineCount(msgspec.Struct):
    up: int = 0
    """Bytes towards the server."""
    down: int = 0
    requests: int = 0

    @property
    def bytes(self) -> int:
        return self.up + self.down


class _Direction:
    """One direction of the line: a byte leaves when those before it have left, and arrives half a round trip later."""

    def __init__(self, delay: float, rate: float) -> None:
        self._delay, self._rate = delay, rate
        self._free = 0.0

    def arrives(self, now: float, size: int) -> float:
        self._free = max(self._free, now) + size / self._rate
        return self._free + self._delay


class SlowLine:
    """The proxy, on a thread of its own: `with SlowLine(port, 0.05, 100e6) as line` listens at `line.port`.

    It leads to a server on 127.0.0.1, with so many seconds for a round trip and so many bytes a second each way.
    """

    def __init__(self, to: int, round_trip: float, rate: float) -> None:
        self.count = LineCount()
        self.port = 0
        self._to = to
        self._up, self._down = (_Direction(round_trip / 2, rate) for _ in range(2))
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:

        async def ended() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break all connections off; new ones can be made."""
        for writer in list(self._writers):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:  # nothing listens there now
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._carried(reader, back, self._up), self._carried(there, writer, self._down))
        finally:
            self._writers -= {writer, back}

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: _Direction) -> None:
        """Carry one direction of one connection: pieces are on their way while others are read."""
        moving: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arriving = asyncio.create_task(_delivered(moving, writer))
        with suppress(ConnectionError):
            while piece := await reader.read(_PIECE):
                if way is self._up:
                    self.count.up += len(piece)
                    self.count.requests += _REQUEST.match(piece) is not None
                else:
                    self.count.down += len(piece)
                moving.put_nowait((way.arrives(self._loop.time(), len(piece)), piece))
        moving.put_nowait((0.0, b""))
        await arriving


async def _delivered(moving: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError), closing(writer):
        while (due := await moving.get())[1]:
            await asyncio.sleep(max(0.0, due[0] - asyncio.get_running_loop().time()))
            writer.write(due[1])
            await writer.drain()


#: Shares of relevant pages, in per cent, each with a word that so many pages have.
SHARES: Final[Mapping[int, str]] = {
    0: "zyzzyvanone",
    5: "zyzzyvafive",
    10: "zyzzyvaten",
    50: "zyzzyvahalf",
    100: "zyzzyvaall",
}

Line = tuple[float, float]
"""Seconds of a round trip, and bytes a second."""

#: Shares are compared on the first of these.
LINES: Final[tuple[Line, ...]] = ((0.001, 100e6), (0.001, 1e6), (0.05, 100e6), (0.05, 1e6))

#: The share for which lines are compared.
USUAL_SHARE: Final = 5

_COLUMNS = ("relevant", "crawl", "bytes", "up", "requests", "seconds", "of gzip", "of no coding")

_BODY: Final = re.compile(rb"<body[^>]*>", re.IGNORECASE)

_HOST: Final = "www.bench.example"
_FIRST: Final = "/all.html"
#: Seconds that one crawl may take.
_PATIENCE: Final = 1_800


def write_site(pages: Mapping[str, bytes], root: Path) -> int:
    """Write pages as files with the words of :data:`SHARES`, and a first page that leads to all; returns their bytes."""
    size = 0
    for number, (path, page) in enumerate(pages.items()):
        words = [word for share, word in SHARES.items() if share and number % (100 // share) == 0]
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        # At its beginning: of a very long page only the beginning is read as text.
        body = _BODY.search(page)
        at = body.end() if body else len(page)
        marked = page[:at] + f"<p>{' '.join(words)}</p>".encode() + page[at:]
        file.write_bytes(marked)
        size += len(marked)
    links = "".join(f'<a href="{path}">x</a>' for path in pages)
    (root / _FIRST.lstrip("/")).write_text(f"<title>All</title>{SHARES[100]}{links}", encoding="utf-8")
    for place in (root, *root.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    return size


def measure(report: BenchReport, pages: Mapping[str, bytes]) -> None:
    """Add the tables of traffic and time to a report."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "site"
        root.mkdir()
        size = write_site(pages, root)
        files = {f"/{file.relative_to(root).as_posix()}": file.read_bytes() for file in root.rglob("*.html")}
        coding = (("Content-Encoding", "gzip"),)
        zipped = {path: FakePage(gzip.compress(page, 6, mtime=0), headers=coding) for path, page in files.items()}
        runtime = RuntimeProcess(_HOST, root, folder / "runtime", "--weak-isolation")
        runtime.begin()
        try:
            with FakeWeb(zipped) as packed, FakeWeb({path: FakePage(page) for path, page in files.items()}) as plain:
                _compare(report, folder, runtime, packed.port, plain.port, len(pages), size)
        finally:
            runtime.end()


def _compare(
    report: BenchReport, folder: Path, runtime: "RuntimeProcess", packed: int, plain: int, pages: int, size: int
) -> None:
    numbers = count()

    def crawled(line: SlowLine, share: int, *options: str) -> tuple[LineCount, float]:
        """The traffic, and seconds by the crawl's own clock: without the start of its process."""
        place = str(folder / f"crawl-{next(numbers)}")
        command = processes.command("gossamer", "crawl", f"http://{_HOST}{_FIRST}", "-o", place, "--json", "--quiet")
        command += ["--contact", "bench@example.org", "--filter", f"store: text({SHARES[share]})", "--traps", "report"]
        environment = {**processes.environment(), "GOSSAMER_RUNTIME_KEY": runtime.key}
        done = subprocess.run(
            [*command, *options], env=environment, capture_output=True, timeout=_PATIENCE, check=False
        )
        if done.returncode not in (0, 4):
            raise UsageError(f"a crawl ended with status {done.returncode}: {done.stderr.decode()[-500:]}")
        return line.count, msgspec.json.decode(done.stdout)["seconds"]

    def stationary(line: Line, *, server: int = packed, per_host: int = 1) -> tuple[LineCount, float]:
        """Fetch all pages and keep those that are relevant."""
        with SlowLine(server, *line) as slow:
            resolved = "--resolve", f"{_HOST}=127.0.0.1:{slow.port}", "--allow-network", "127.0.0.0/8"
            return crawled(slow, USUAL_SHARE, *resolved, *AT_ONCE, "--per-host", str(per_host))

    def mobile(line: Line, share: int, part: str = "whole") -> tuple[LineCount, float]:
        """Send a crawler that brings those pages that are relevant."""
        with SlowLine(runtime.port, *line) as slow:
            there = f"{_HOST}=http://127.0.0.1:{slow.port}"
            return crawled(slow, share, "--mobile", "--runtime", there, "--mobile-content", part)

    table = report.table(f"{pages:,} pages, {size / 1e6:.1f} MB, over a line of {_words(LINES[0])}", *_COLUMNS)
    by_gzip, by_none = stationary(LINES[0]), stationary(LINES[0], server=plain)

    def row(share: str, name: str, one: tuple[LineCount, float]) -> None:
        passed, seconds = one
        cells = (f"{passed.bytes:,}", f"{passed.up:,}", f"{passed.requests:,}", f"{seconds:.1f}")
        parts = (f"{passed.bytes / other.bytes:.1%}" for other, _ in (by_gzip, by_none))
        table.add(share, name, *cells, *parts)

    row("any", "stationary, gzip -6", by_gzip)
    row("any", "stationary, no coding", by_none)
    for share in SHARES:
        row(f"{share} %", "mobile, whole pages", mobile(LINES[0], share))
        if share:
            row(f"{share} %", "mobile, main text", mobile(LINES[0], share, "text"))
    table = report.table(
        f"{pages:,} pages, {USUAL_SHARE} % relevant, by line",
        *("line", "mobile, s", "--delay 0, s", "times", "--delay 0 --per-host 8, s", "times"),
    )
    for line in LINES:
        _, ours = mobile(line, USUAL_SHARE)
        cells = [f"{ours:.1f}"]
        for number in (1, 8):
            _, seconds = stationary(line, per_host=number)
            cells += [f"{seconds:.1f}", f"{seconds / ours:.1f}"]
        table.add(_words(line), *cells)


def _words(line: Line) -> str:
    return f"{line[0] * 1e3:g} ms, {line[1] / 1e6:g} MB/s"


class RuntimeProcess:
    """A runtime over a folder, as people start it. It comes back at the same address."""

    def __init__(self, host: str, root: Path, state: Path, *options: str) -> None:
        admit = processes.command("gossamer", "runtime", "admit", "home", "--state", str(state))
        admitted = subprocess.run(admit, env=processes.environment(), capture_output=True, check=True, text=True)
        self.key = admitted.stdout.split()[0]
        self.url = self.pin = ""
        self._options = ["--serve", f"{host}={root}", "--state", str(state), *options]
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[str] | None = None

    @property
    def port(self) -> int:
        return int(self._address.rpartition(":")[2])

    def begin(self) -> None:
        """Start it, and wait until it listens."""
        command = processes.command("gossamer", "runtime", *self._options, "--listen", self._address)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=processes.environment(), text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]
        self.pin = self._process.stdout.readline().split()[-1]  # of one with TLS
        self._address = self.url.rpartition("//")[2].strip("/")

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.communicate()
            self._process = None
