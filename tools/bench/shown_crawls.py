"""Crawls that only answer: directories with tables, and a process that speaks for them, so that a dashboard has as many as
wanted.

Place in the flow: :mod:`tools.bench.dashboard` makes the directories and starts `python -m tools.bench.shown_crawls FOLDER`,
which listens where crawls would, until its standard input ends. The first crawl is the large one.
"""

import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

from gossamer.crawls.control.host_facts import HostKnown, HostNow, HostsNow, KeptOfHost
from gossamer.crawls.control.instances import UnitInstance, UnitInstances
from gossamer.crawls.control.messages import ReadGraph, ReadHost, ReadHosts, ReadUnit, Status
from gossamer.crawls.control.picture import GraphPicture, PictureConnector, PictureSetting, PictureUnit
from gossamer.crawls.control.server import ControlServer
from gossamer.crawls.control.standing import AgentStanding, ConnectorFigures, CrawlStanding, UnitFigures
from gossamer.crawls.control.wire import Answered, ControlRequest, NotDone, told
from gossamer.query.engine import ParquetWriter
from gossamer.storage.tables.places import CRAWL_FILE, TABLES
from gossamer.values.agents import agent_name

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
            rows = _visits(start, min(start + _ROWS, hosts * _VISITS), hosts)
            name = f"agent-00-20260301120000-{start:08x}-000001.parquet"
            writer.write(rows, made[0] / TABLES / "pages" / name)
    return made


def _visits(start: int, end: int, hosts: int) -> str:
    return f"""
    SELECT host, format('https://{{}}/{{}}', host, n) AS url, 'text/html' AS mime, 'text/html' AS media_type,
           CASE WHEN hash(n + 1) % 7 = 0 THEN 'server_error' ELSE 'ok' END AS outcome, format('192.0.2.{{}}', n % 255) AS ip,
           TIMESTAMP '2026-03-01 12:00:00' + INTERVAL 1 SECOND * n AS fetched_at
    FROM (SELECT n, format('www.site-{{}}.example', (n * 7919) % {hosts}) AS host FROM range({start}, {end}) t(n))
    """


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
            AgentStanding(agent_name(number), "running", 1, 10**4, 10**4, 10**9) for number in range(_agents_of(name))
        ],
        units=[UnitFigures(f"unit-{number}", "links", figures) for number in range(UNITS)] if units else [],
        connectors=[ConnectorFigures(f"c-{number}", 10**6, 17, 256, 3.5) for number in range(UNITS)] if units else [],
    )


def _agents_of(name: str) -> int:
    return AGENTS if name.endswith("-000") else 0


def picture() -> GraphPicture:
    """The graph of the large crawl: a chain of units, each in every agent."""
    settings = [
        PictureSetting(f"setting_{number}", number, 0, "a whole number", "pages", ">= 0", "Take so many pages at once.")
        for number in range(SETTINGS)
    ]
    units = [
        PictureUnit(
            f"unit-{number}",
            "links",
            "filter",
            "Resolves links.",
            settings,
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


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def speak_for(directories: Iterable[Path]) -> None:
    """Answer for these crawls until the standard input ends."""
    servers = [ControlServer(one, SpokenFor(one.name).steer, _say) for one in directories]
    for server in servers:
        await server.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for server in servers:
        await server.stop()


if __name__ == "__main__":
    asyncio.run(speak_for(sorted(Path(sys.argv[1]).iterdir())))
