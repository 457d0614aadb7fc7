"""A crawling application of one's own, apart from the crawling system: it says what to fetch next, and sees what came.

In one terminal the system, which knows how to fetch politely and follows nothing by itself (`--depth 0`)::

    python examples/04-own-application/application.py wiring /tmp/mine > system.toml
    gossamer crawl https://example.org/ --wiring system.toml --depth 0 --scope any --contact me@example.org

In another this program, which knows nothing of crawling: it reads titles, and goes on from the pages that have a word in
theirs::

    python examples/04-own-application/application.py run /tmp/mine crawler

Two connectors over sockets in /tmp/mine are all that they share: tasks one way, committed visits the other. If this program
dies, the crawl waits for its successor. When every page that the program asked for has come, it closes its connector, and the
crawl ends.

The system may have several agents (`gossamer crawl --agents 4 ...`, `run /tmp/mine crawler --agents 4`): each sends its visits, and
one takes the tasks. There may be several of this program, too (`wiring /tmp/mine --parts 2`; `run ... --part 0 --parts 2` and
`--part 1`): hosts are divided among them by hash, and a URL that is another's is forwarded to it. None of these knows when the
others have asked for everything, so such a crawl ends by a limit or by `gossamer stop`.
"""

import argparse
import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any
from zlib import crc32

import msgspec

from gossamer.crawls.compiling import shipped
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import EndOfItems
from gossamer.engine.remote.links import Exchange
from gossamer.engine.transports import Opening, open_connector
from gossamer.engine.wiring import ComponentPlan, ConnectorPlan, to_toml
from gossamer.values.outcome import TRANSIENT
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Record, Visit

#: The wiring's names of the two connectors.
TASKS, VISITS = "seeds", "records"


def wiring(folder: str, parts: int) -> str:
    """The shipped wiring with this program in it, `parts` times: it sends beside the seeds, and receives what the tally did."""
    plain = shipped("default")
    connectors = {**plain.connectors, TASKS: ConnectorPlan(address=f"unix:{folder}/tasks")}
    components = {name: one for name, one in plain.components.items() if name != "tally"}
    for part in range(parts):
        connectors[visits_of(part)] = ConnectorPlan(address=f"unix:{folder}/{visits_of(part)}")
        ports = {"records": visits_of(part), "urls": TASKS}
        components[f"application-{part}"] = ComponentPlan(use="application", ports=ports, process=process_of(part))
    for part in range(1, parts):  # each of several gets all visits
        connectors[f"rest-{part}"] = ConnectorPlan()
        ports = {"inbox": f"rest-{part}", "outbox": visits_of(part), "copy": visits_of(0)}
        if part + 1 < parts:
            ports["copy"] = f"rest-{part + 1}"
        components[f"copy-{part}"] = ComponentPlan(use="copy-records", ports=ports)
    sender = components["commit"]
    arrow = "rest-1" if parts > 1 else visits_of(0)
    components["commit"] = msgspec.structs.replace(sender, ports={**sender.ports, "records": arrow})
    del connectors[VISITS]
    return to_toml(msgspec.structs.replace(plain, connectors=connectors, components=components))


def visits_of(part: int) -> str:
    """The connector by which one of these programs receives."""
    return f"visits-{part}"


def process_of(part: int) -> str:
    """The name of one of these programs in the wiring: a process that another program starts."""
    return f"outside-{part}"


class System:
    """The crawling system, and the other programs of this kind, as one of them sees them."""

    def __init__(self, folder: str, part: int, parts: int, agents: int) -> None:
        self._about: dict[str, Any] = {"slot": process_of(part), "exchange": Exchange()}
        self._folder = folder
        self._open = AsyncExitStack()
        self._part, self._parts, self._agents = part, parts, agents

    async def __aenter__(self) -> "System":
        await self._open.__aenter__()
        self.tasks: Out[Task] = Out(TASKS, await self._opened(TASKS, Task, "tasks", side="send"))
        name = visits_of(self._part)
        self.visits: In[Record] = In(name, await self._opened(name, Record, name, side="receive", senders=self._agents))
        others = [part for part in range(self._parts) if part != self._part]
        self.found: In[Task] | None = None
        if others:
            senders = frozenset(map(process_of, others))
            name = f"found-{self._part}"
            self.found = In(name, await self._opened(name, Task, name, side="receive", senders=senders))
        names = {part: f"found-{part}" for part in others}
        self.others: dict[int, Out[Task]] = {
            part: Out(name, await self._opened(name, Task, name, side="send")) for part, name in names.items()
        }
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._open.aclose()

    async def _opened(self, name: str, item: type, socket: str, **more: Any) -> Any:
        opening = Opening(name=name, item_type=item, address=f"unix:{self._folder}/{socket}", **self._about, **more)
        connector = open_connector(opening)
        await connector.start()
        self._open.push_async_callback(connector.stop)
        return connector


class Application:
    """Follows the links of pages that have a word in their title, among the hosts that are its own."""

    def __init__(self, system: System, word: str, part: int, parts: int) -> None:
        self._system = system
        self._word = word.lower()
        self._part, self._parts = part, parts
        self._asked: set[str] = set()
        self._awaited: set[str] = set()

    async def run(self) -> None:
        """Until every page that was asked for has come, where there is no other one; else until the crawl ends."""
        listening = asyncio.create_task(self._hear())
        with suppress(EndOfItems):
            while True:
                visit = (await self._system.visits.receive()).visit
                if visit.is_robots or visit.response.outcome in TRANSIENT or self._owner(visit.url) != self._part:
                    continue  # the system's own affair: it asks for robots.txt, and tries again; or another one's page
                await self._came(visit)
                if not self._awaited and self._parts == 1:
                    self._system.tasks.close()
        listening.cancel()

    def _owner(self, url: str) -> int:
        """The program that a URL belongs to, by its host, so that each one knows which URLs of its hosts were asked for."""
        return crc32(host_of(url).encode()) % self._parts

    async def _came(self, visit: Visit) -> None:
        wanted = self._word in visit.title.lower()
        print(f"{'*' if wanted else ' '} {visit.response.outcome} {visit.url} {visit.title!r}", flush=True)
        self._asked.add(visit.url)
        self._awaited.discard(visit.url)
        redirected = {link.url for link in visit.links if link.relation == "redirect"} - self._asked
        found = {link.url for link in visit.links} - redirected if wanted else set()
        self._asked |= redirected  # the system follows redirects
        self._awaited |= redirected
        tasks = [Task(url, host_of(url), source=visit.url) for url in sorted(found)]
        for part, other in self._system.others.items():
            await other.send_many([task for task in tasks if self._owner(task.url) == part])
        await self._ask([task for task in tasks if self._owner(task.url) == self._part])

    async def _hear(self) -> None:
        """URLs of our hosts that others found."""
        with suppress(EndOfItems):
            while self._system.found is not None:
                await self._ask([await self._system.found.receive()])

    async def _ask(self, tasks: list[Task]) -> None:
        new = [task for task in tasks if task.url not in self._asked]
        self._asked |= {task.url for task in new}
        self._awaited |= {task.url for task in new}
        await self._system.tasks.send_many(new)


async def run(folder: str, word: str, part: int, parts: int, agents: int) -> None:
    """Run one of `parts` such programs beside a system of so many agents."""
    async with System(folder, part, parts, agents) as system:
        await Application(system, word, part, parts).run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A crawling application of one's own.")
    parser.add_argument("do", choices=["wiring", "run"])
    parser.add_argument("folder", help="where the sockets are")
    parser.add_argument("word", nargs="?", default="", help="in the titles of pages whose links are followed")
    parser.add_argument("--parts", type=int, default=1, help="how many of these programs there are")
    parser.add_argument("--part", type=int, default=0, help="which of them this is, from 0")
    parser.add_argument("--agents", type=int, default=1, help="how many agents the system has")
    given = parser.parse_args()
    if given.do == "wiring":
        print(wiring(given.folder, given.parts))
    else:
        asyncio.run(run(given.folder, given.word, given.part, given.parts, given.agents))
