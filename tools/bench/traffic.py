"""What a mobile crawl saves: bytes, requests and seconds, beside a stationary crawl of the same pages over the same line.

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
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

import msgspec

from gossamer.bench.report import BenchReport
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
    connections: int = 0


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
        asyncio.run_coroutine_threadsafe(self._ended(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _ended(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break all connections off; new ones can be made."""
        for writer in list(self._writers):
            self._loop.call_soon_threadsafe(writer.transport.abort)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count.connections += 1
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

#: Lines: seconds of a round trip, and bytes a second.
LINES: Final = ((0.001, 100e6), (0.001, 1e6), (0.05, 100e6), (0.05, 1e6))

#: The line on which shares are compared, and the share for which lines are.
USUAL_LINE: Final = LINES[0]
USUAL_SHARE: Final = 5

_COLUMNS = ("relevant", "crawl", "bytes", "up", "requests", "seconds", "of gzip", "of no coding")

_BODY: Final = re.compile(rb"<body[^>]*>", re.IGNORECASE)

_HOST: Final = "www.bench.example"
_FIRST: Final = "/all.html"
#: Seconds that one crawl may take.
_PATIENCE: Final = 1_800


class CrawlOverLine(msgspec.Struct, frozen=True):
    """One crawl over a line."""

    count: LineCount
    seconds: float
    """By the crawl's own clock: without the start of its process."""

    @property
    def bytes(self) -> int:
        return self.count.up + self.count.down


def write_site(pages: Mapping[str, bytes], root: Path) -> int:
    """Write pages as files with the words of :data:`SHARES`, and a first page that leads to all; returns their bytes."""
    size = 0
    for number, (path, page) in enumerate(pages.items()):
        words = [word for share, word in SHARES.items() if share and number % (100 // share) == 0]
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        marked = _marked(page, f"<p>{' '.join(words)}</p>".encode())
        file.write_bytes(marked)
        size += len(marked)
    links = "".join(f'<a href="{path}">x</a>' for path in pages)
    (root / _FIRST.lstrip("/")).write_text(f"<title>All</title>{SHARES[100]}{links}", encoding="utf-8")
    for place in (root, *root.rglob("*")):
        place.chmod(0o755 if place.is_dir() else 0o644)
    return size


def _marked(page: bytes, paragraph: bytes) -> bytes:
    """A page with a paragraph more, at its beginning: of a very long page only the beginning is read as text."""
    body = _BODY.search(page)
    at = body.end() if body else len(page)
    return page[:at] + paragraph + page[at:]


def measure(report: BenchReport, pages: Mapping[str, bytes]) -> None:
    """Add the tables of traffic and time to a report."""
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = folder / "site"
        root.mkdir()
        size = write_site(pages, root)
        runtime = RuntimeProcess(_HOST, root, folder / "runtime", "--weak-isolation")
        runtime.begin()
        try:
            with _servers(root) as (packed, plain):
                bench = _Bench(folder, packed, plain, runtime.port, runtime.key)
                _by_share(report, bench, len(pages), size)
                _by_line(report, bench, len(pages))
        finally:
            runtime.end()


def _by_share(report: BenchReport, bench: "_Bench", pages: int, size: int) -> None:
    table = report.table(f"{pages:,} pages, {size / 1e6:.1f} MB, over a line of {_line(*USUAL_LINE)}", *_COLUMNS)
    gzip = bench.stationary(USUAL_SHARE, USUAL_LINE)
    plain = bench.stationary(USUAL_SHARE, USUAL_LINE, is_packed=False)

    def row(share: str, name: str, one: CrawlOverLine) -> None:
        cells = (f"{one.bytes:,}", f"{one.count.up:,}", f"{one.count.requests:,}", f"{one.seconds:.1f}")
        table.add(share, name, *cells, f"{one.bytes / gzip.bytes:.1%}", f"{one.bytes / plain.bytes:.1%}")

    row("any", "stationary, gzip -6", gzip)
    row("any", "stationary, no coding", plain)
    for share in SHARES:
        row(f"{share} %", "mobile, whole pages", bench.mobile(share, USUAL_LINE))
        if share:
            row(f"{share} %", "mobile, main text", bench.mobile(share, USUAL_LINE, "text"))


def _by_line(report: BenchReport, bench: "_Bench", pages: int) -> None:
    table = report.table(
        f"{pages:,} pages, {USUAL_SHARE} % relevant, by line",
        *("line", "mobile, s", "--delay 0, s", "times", "--delay 0 --per-host 8, s", "times"),
    )
    for line in LINES:
        mobile = bench.mobile(USUAL_SHARE, line).seconds
        one, eight = (bench.stationary(USUAL_SHARE, line, per_host=number).seconds for number in (1, 8))
        quicker = (f"{other / mobile:.1f}" for other in (one, eight))
        table.add(_line(*line), f"{mobile:.1f}", f"{one:.1f}", next(quicker), f"{eight:.1f}", next(quicker))


def _line(round_trip: float, rate: float) -> str:
    return f"{round_trip * 1e3:g} ms, {rate / 1e6:g} MB/s"


class _Bench:
    """The servers, and the crawls over a line to one of them."""

    def __init__(self, folder: Path, packed: int, plain: int, runtime: int, key: str) -> None:
        self._folder = folder
        self._packed, self._plain, self._runtime = packed, plain, runtime
        self._key = key
        self._number = 0

    def stationary(
        self, share: int, line: tuple[float, float], *, is_packed: bool = True, per_host: int = 1
    ) -> CrawlOverLine:
        """Fetch all pages and keep those that are relevant."""
        with SlowLine(self._packed if is_packed else self._plain, *line) as slow:
            return self._crawled(
                slow,
                share,
                *("--resolve", f"{_HOST}=127.0.0.1:{slow.port}", "--allow-network", "127.0.0.0/8"),
                *("--delay", "0", "--domain-delay", "0", "--ip-delay", "0", "--per-host", str(per_host)),
            )

    def mobile(self, share: int, line: tuple[float, float], part: str = "whole") -> CrawlOverLine:
        """Send a crawler that brings those pages that are relevant."""
        with SlowLine(self._runtime, *line) as slow:
            runtime = f"{_HOST}=http://127.0.0.1:{slow.port}"
            return self._crawled(slow, share, "--mobile", "--runtime", runtime, "--mobile-content", part)

    def _crawled(self, line: SlowLine, share: int, *options: str) -> CrawlOverLine:
        self._number += 1
        place = str(self._folder / f"crawl-{self._number}")
        command = processes.command("gossamer", "crawl", f"http://{_HOST}{_FIRST}", "-o", place, "--json", "--quiet")
        command += ["--contact", "bench@example.org"]
        gates = ("--filter", f"store: text({SHARES[share]})", "--traps", "report")
        environment = {**processes.environment(), "GOSSAMER_RUNTIME_KEY": self._key}
        done = subprocess.run(
            [*command, *gates, *options], env=environment, capture_output=True, timeout=_PATIENCE, check=False
        )
        if done.returncode not in (0, 4):
            raise UsageError(f"a crawl ended with status {done.returncode}: {done.stderr.decode()[-500:]}")
        told = msgspec.json.decode(done.stdout)
        return CrawlOverLine(line.count, told["seconds"])


@contextmanager
def _servers(root: Path) -> Iterator[tuple[int, int]]:
    """Ports of two web servers over a folder, with gzip -6 and without a coding; pages are packed beforehand."""
    files = {f"/{file.relative_to(root).as_posix()}": file.read_bytes() for file in root.rglob("*.html")}
    coding = (("Content-Encoding", "gzip"),)
    packed = {path: FakePage(gzip.compress(page, 6, mtime=0), headers=coding) for path, page in files.items()}
    with FakeWeb(packed) as one, FakeWeb({path: FakePage(page) for path, page in files.items()}) as other:
        yield one.port, other.port


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
