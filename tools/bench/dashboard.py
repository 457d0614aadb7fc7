"""The dashboard: how long its answers take for large crawls, and what it costs a crawl that is watched.

Answers are asked for over HTTP, as browsers do, from a process of its own. CPU time is what the kernel counted for the process
of the dashboard, all threads together. The crawl whose cost is measured is a real one that pauses: it uses nothing by itself
then, and its hosts and its queue are still there to be told of.

Crawls that only answer are directories with tables, and a process that speaks for them: this module as a program, with their
folder. It listens where crawls would, until it is ended. The first crawl is the large one.
"""

import asyncio
import contextlib
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.bench.harness import PLAIN, BenchReport, begun, pages_option, serving, simulated
from gossamer.crawls.control.client import Control
from gossamer.crawls.control.facts import HostKnown, HostNow, HostsNow, KeptOfHost
from gossamer.crawls.control.messages import Pause, ReadGraph, ReadHost, ReadHosts, ReadUnit, Status
from gossamer.crawls.control.picture import (
    GraphPicture,
    PictureConnector,
    PictureSetting,
    PictureUnit,
    UnitInstance,
    UnitInstances,
)
from gossamer.crawls.control.server import ControlServer
from gossamer.crawls.control.standing import (
    AgentStanding,
    ConnectorFigures,
    CrawlStanding,
    UnitFigures,
)
from gossamer.crawls.control.wire import Answered, ControlRequest, NotDone, told
from gossamer.engine import processes
from gossamer.query.engine import ParquetWriter
from gossamer.storage.tables.places import CRAWL_FILE, TABLES
from gossamer.values.agents import agent_name
from gossamer.values.errors import GossamerError, UsageError

T = TypeVar("T")

#: Hosts of the large crawl, and crawls that are shown beside it.
HOSTS, CRAWLS = 1_000_000, 100

#: Times that each address is asked, and seconds between, after which no answer is good any more.
REPEATS, PAUSE = 5, 1.1

#: Pages and hosts of the crawl that is watched, and how many of the pages it has when it pauses.
WEB, WEB_HOSTS, FETCHED = 20_000, 400, 2_000

#: Browsers that watch it, seconds for each number of them, and rounds.
BROWSERS, WATCHED, ROUNDS = (0, 1, 10), 20.0, 3

#: Seconds in which a process has to begin, and an answer to come.
PATIENCE = 120.0


@pages_option(HOSTS, "Give the large crawl this many hosts.")
def run(pages: int = HOSTS, watched: float = WATCHED) -> BenchReport:
    """Ask a dashboard about large crawls, and measure what watching costs a crawl."""
    if not Path("/proc/self/task").is_dir():
        raise UsageError("the kernel's counters of a process are read from /proc, which this system does not have")
    report = BenchReport("dashboard")
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name:
        crawls = Path(name, "crawls")
        large, *_ = make_crawls(crawls, CRAWLS, pages)
        with (
            serving(processes.command("tools.bench.dashboard", str(crawls))),
            dashboard(Path(name), crawls) as shown,
        ):
            _ask_all(report, shown, large, pages)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as name, simulated(WEB, WEB_HOSTS, *PLAIN) as port:
        directory = Path(name, "crawl")
        crawl = begun(directory, port, ["--concurrency", "32"])
        try:
            _until(lambda: _standing(directory).fetched >= FETCHED)
            with Control(directory) as control:
                control.do(Pause())
            _until(lambda: not _standing(directory).in_flight)
            with dashboard(Path(name), directory) as shown:
                _cost(report, shown, crawl.pid, directory, watched)
                _change(report, shown, directory)
        finally:
            crawl.terminate()
            crawl.communicate(timeout=PATIENCE)
    return report


class BenchedDashboard:
    """A dashboard at work, and a client of it."""

    def __init__(self, process: "subprocess.Popen[str]", address: str) -> None:
        self.process = process
        self._place, _, self._key = address.removeprefix("http://").partition("/?token=")

    def open(self, path: str, body: object = None) -> http.client.HTTPResponse:
        """An answer that has begun."""
        connection = http.client.HTTPConnection(self._place, timeout=PATIENCE)
        fields = {"Authorization": f"Bearer {self._key}"}
        data = None if body is None else msgspec.json.encode(body)
        if data is not None:
            fields["Content-Type"] = "application/json"
        connection.request("GET" if body is None else "POST", path, data, fields)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            raise UsageError(f"{path}: {answer.status} {answer.read(500).decode(errors='replace')}")
        return answer

    def ask(self, path: str, body: object = None) -> bytes:
        with self.open(path, body) as answer:
            return answer.read()

    def place_of(self, directory: Path) -> str:
        """The address of a crawl."""
        listed = msgspec.json.decode(self.ask("/api/crawls"))
        [key] = [one["key"] for one in listed if Path(one["directory"]).name == directory.name]
        return f"/api/crawls/{key}"


@contextlib.contextmanager
def dashboard(folder: Path, place: Path) -> Iterator[BenchedDashboard]:
    """A dashboard of the crawls in `place`, whose keys lie in `folder`."""
    home = dict.fromkeys(("XDG_STATE_HOME", "XDG_CONFIG_HOME"), str(folder / "home"))
    command = processes.command("gossamer", "dashboard", str(place))
    process = subprocess.Popen(command, env={**processes.environment(), **home}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise UsageError("the dashboard cannot be begun")
        yield BenchedDashboard(process, address)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def cpu_of(process: int) -> float:
    """Seconds of CPU that all threads of a process have used, to the nanosecond; those of threads that ended are missing."""
    used = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        with contextlib.suppress(OSError):
            used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


# -- answers


def _timed(shown: BenchedDashboard, act: Callable[[], T]) -> tuple[T, float, float]:
    """The result of the act, and the milliseconds that it took by the clock, and of the dashboard's CPU."""
    began, used = time.perf_counter(), cpu_of(shown.process.pid)
    found = act()
    return found, 1e3 * (time.perf_counter() - began), 1e3 * (cpu_of(shown.process.pid) - used)


def _ask_all(report: BenchReport, shown: BenchedDashboard, large: Path, hosts: int) -> None:
    def load() -> list[int]:
        """All that a browser loads before it shows something: the page, and the files that it names."""
        page = shown.ask("/")
        files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.decode())
        sizes = [len(page), *(len(shown.ask(path)) for path in files)]
        shown.ask("/api/session")
        shown.ask("/api/crawls")
        return sizes

    def made() -> None:
        while msgspec.json.decode(shown.ask(f"{crawl}/hosts"))["is_being_made"]:
            time.sleep(0.1)

    sizes, wall, work = _timed(shown, load)
    title = f"The first view: {len(sizes)} files, and the list of {CRAWLS} crawls"
    report.table(title, "kB", "ms", "ms of CPU").add(f"{sum(sizes) / 1e3:.0f}", f"{wall:.0f}", f"{work:.0f}")
    crawl = shown.place_of(large)
    _, wall, work = _timed(shown, made)
    table = report.table(f"The list of {hosts:,} hosts", "", "s", "s of CPU")
    table.add("is made", f"{wall / 1e3:.1f}", f"{work / 1e3:.1f}")
    middle = hosts // 2
    asked = {
        f"list of {CRAWLS} crawls": "/api/crawls",
        "metrics for Prometheus": "/metrics",
        "overview": crawl,
        "samples of an hour": f"{crawl}/samples?hours=1",
        f"figures of {UNITS:,} units": f"{crawl}?units=1",
        f"graph of {UNITS:,} units, {AGENTS} agents": f"{crawl}/graph",
        f"a unit in {AGENTS} agents": f"{crawl}/unit?name=unit-7",
        "hosts with the most errors, asked live": f"{crawl}/hosts?sort=errors&descending=1&live=1",
        "hosts by name, in the middle": f"{crawl}/hosts?offset={middle}",
        "hosts by errors, in the middle": f"{crawl}/hosts?sort=errors&descending=1&offset={middle}",
        "hosts by time, in the middle": f"{crawl}/hosts?sort=last_seen&offset={middle}",
        "hosts that a search finds": f"{crawl}/hosts?search=77&sort=errors&descending=1",
        "one host": f"{crawl}/host?name=www.site-77.example",
        "log": f"{crawl}/log",
        "exports": f"{crawl}/exports",
        "the form of a new crawl": "/api/options",
        "names for a change of the graph": "/api/catalog",
    }
    title = f"Answers: {CRAWLS} crawls, {hosts:,} hosts; {REPEATS} times each"
    table = report.table(title, "what", "kB", "first ms", "of CPU", "median ms", "of CPU")
    for name, path in asked.items():
        walls, works, size = list[float](), list[float](), 0
        for _ in range(REPEATS):
            answer, wall, work = _timed(shown, partial(shown.ask, path))
            size = len(answer)
            walls.append(wall)
            works.append(work)
            time.sleep(PAUSE)
        middles = statistics.median(walls), statistics.median(works)
        table.add(name, f"{size / 1e3:.1f}", *(f"{one:.0f}" for one in (walls[0], works[0], *middles)))


# -- what it costs


def _standing(directory: Path) -> CrawlStanding:
    try:
        with Control(directory) as control:
            found: CrawlStanding = control.told(Status(), CrawlStanding)
            return found
    except GossamerError:
        return CrawlStanding("", "")  # it has not begun yet


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > deadline:
            raise UsageError("the crawl that is to be watched does not get on")
        time.sleep(0.01)


def _cost(report: BenchReport, shown: BenchedDashboard, crawl: int, directory: Path, seconds: float) -> None:
    crawled: dict[int, list[float]] = {number: [] for number in BROWSERS}
    showed: dict[int, list[float]] = {number: [] for number in BROWSERS}
    for _ in range(ROUNDS):
        for number in BROWSERS:
            with _browsers(shown, f"{shown.place_of(directory)}/events", number):
                began, before = time.monotonic(), (cpu_of(crawl), cpu_of(shown.process.pid))
                time.sleep(seconds)
                passed = time.monotonic() - began
                crawled[number].append((cpu_of(crawl) - before[0]) / passed)
                showed[number].append((cpu_of(shown.process.pid) - before[1]) / passed)
    none = statistics.median(crawled[0])
    title = f"A crawl of {WEB_HOSTS} hosts, watched for {seconds:g} s, median of {ROUNDS}; % of a core"
    table = report.table(title, "browsers", "the crawl", "more than with none", "the dashboard")
    for number in BROWSERS:
        of_crawl, of_shown = statistics.median(crawled[number]), statistics.median(showed[number])
        table.add(number, *(f"{100 * one:.2f}" for one in (of_crawl, of_crawl - none, of_shown)))


@contextlib.contextmanager
def _browsers(shown: BenchedDashboard, path: str, number: int) -> Iterator[None]:
    """So many that read the events of a crawl meanwhile."""
    is_over = threading.Event()

    def read(answer: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            while not is_over.is_set() and answer.readline():
                pass

    answers = [shown.open(path) for _ in range(number)]
    readers = [threading.Thread(target=read, args=(answer,)) for answer in answers]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        is_over.set()
        for reader, answer in zip(readers, answers, strict=True):
            reader.join()  # an event, or a sign of life, comes within seconds
            answer.close()


def _change(report: BenchReport, shown: BenchedDashboard, directory: Path) -> None:
    """Seconds from the click to the first thing that the crawl does by the new setting: it goes on where it may."""
    orders, table = shown.place_of(directory), report.table("A setting that is changed", "from click to", "ms")

    def wait(path: str, body: object, is_so: Callable[[], bool]) -> float:
        began = time.perf_counter()
        shown.ask(f"{orders}/{path}", body)
        _until(is_so)
        return 1e3 * (time.perf_counter() - began)

    walls = []
    for wanted in range(10, 10 + REPEATS):
        change = {"values": {"frontier.concurrency": str(wanted)}}
        walls.append(wait("set", change, lambda wanted=wanted: _standing(directory).concurrency == wanted))  # type: ignore[misc]
    table.add("the crawl goes by another concurrency", f"{statistics.median(walls):.0f}")
    before = _standing(directory).fetched
    table.add(
        "a paused crawl has fetched again", f"{wait('continue', {}, lambda: _standing(directory).fetched > before):.0f}"
    )


#: Units of the large crawl's graph, settings and figures of each, and agents.
UNITS, SETTINGS, FIGURES, AGENTS = 1_000, 10, 5, 100

#: Rows of one Parquet file, and visits of each host.
_ROWS, _VISITS = 100_000, 2


def make_crawls(folder: Path, crawls: int, hosts: int) -> list[Path]:
    """Make directories of crawls; the first one has tables of so many hosts, in no order."""
    made = [folder / f"crawl-{number:03d}" for number in range(crawls)]
    for directory in made:
        directory.mkdir(parents=True)
        (directory / CRAWL_FILE).touch()
    with ParquetWriter() as writer:
        for start in range(0, hosts * _VISITS, _ROWS):
            rows = f"""
            SELECT host, format('https://{{}}/{{}}', host, n) AS url, 'text/html' AS mime, 'text/html' AS media_type,
                   CASE WHEN hash(n + 1) % 7 = 0 THEN 'server_error' ELSE 'ok' END AS outcome,
                   format('192.0.2.{{}}', n % 255) AS ip,
                   TIMESTAMP '2026-03-01 12:00:00' + INTERVAL 1 SECOND * n AS fetched_at
            FROM (SELECT n, format('www.site-{{}}.example', (n * 7919) % {hosts}) AS host
                  FROM range({start}, {min(start + _ROWS, hosts * _VISITS)}) t(n))
            """
            writer.write(rows, made[0] / TABLES / "pages" / f"agent-00-20260301120000-{start:08x}-000001.parquet")
    return made


def standing_of(name: str, *, units: bool) -> CrawlStanding:
    """How such a crawl stands; with `units` as the large one."""
    figures = {f"figure_{number}": 12345.0 * number for number in range(FIGURES)}
    return CrawlStanding(
        name,
        "running",
        pages=1_234_567,
        fetched=2_345_678,
        outcomes={"ok": 2_000_000, "server_error": 345_678},
        each_agent=[
            AgentStanding(agent_name(number), "running", 1, 10**4, 10**4, 10**9)
            for number in range(AGENTS if name.endswith("-000") else 0)
        ],
        units=[UnitFigures(f"unit-{number}", "links", figures) for number in range(UNITS)] if units else [],
        connectors=[ConnectorFigures(f"c-{number}", 10**6, 17, 256, 3.5) for number in range(UNITS)] if units else [],
    )


def picture() -> GraphPicture:
    """The graph of the large crawl: a chain of units, each in every agent."""
    about = (0, "a whole number", "pages", ">= 0", "Take so many pages at once.")
    settings = [PictureSetting(f"setting_{number}", number, *about) for number in range(SETTINGS)]
    units = [
        PictureUnit(
            *(f"unit-{number}", "links", "filter", "Resolves links.", settings),
            process=f"process-{number % 8}",
            inputs={"in": f"c-{number}"},
            outputs={"out": f"c-{number + 1}"},
        )
        for number in range(UNITS)
    ]
    connectors = [
        PictureConnector(f"c-{number}", "Visit", "local:", 256, [f"unit-{number - 1}"], [f"unit-{number}"])
        for number in range(1, UNITS)
    ]
    return GraphPicture(units, connectors, [agent_name(number) for number in range(AGENTS)])


def instances() -> list[UnitInstance]:
    """One instance of a unit in each agent."""
    settings = {f"setting_{number}": number for number in range(SETTINGS)}
    metrics = {f"counted_{number}": 1e6 + number for number in range(SETTINGS)}
    return [UnitInstance(1, metrics, settings, agent_name(number)) for number in range(AGENTS)]


class SpokenFor:
    """A crawl that answers what browsers make a dashboard ask."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def steer(self, request: ControlRequest) -> Answered:
        match request:
            case Status():
                return told(standing_of(self._name, units=request.units))
            case ReadGraph():
                return told(picture())
            case ReadUnit():
                return told(UnitInstances(request.name, instances()))
            case ReadHosts():
                return told(HostsNow({name: HostNow(5.0, "setting", "delay") for name in request.names}))
            case ReadHost():
                state = KeptOfHost({"pages": 3}, 1.0, 2.0, "192.0.2.1", 5.0, "setting", "qualified", 1.0)
                return told(HostKnown(request.name, state, ""))
            case _:
                return NotDone("it only answers", 1)


async def speak_for(directories: Iterable[Path]) -> None:
    """Answer for these crawls until the process is ended."""
    servers = [
        ControlServer(one, SpokenFor(one.name).steer, lambda line: print(line, file=sys.stderr)) for one in directories
    ]
    for server in servers:
        await server.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(speak_for(sorted(Path(sys.argv[1]).iterdir())))
