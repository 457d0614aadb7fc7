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
"""

import asyncio
import sys
from typing import Any

import msgspec

from gossamer.assembly.compiling import shipped
from gossamer.flow.ends import In, Out
from gossamer.flow.errors import EndOfItems
from gossamer.flow.remote.links import Exchange
from gossamer.flow.transports import Opening, open_connector
from gossamer.flow.wiring import ComponentPlan, ConnectorPlan, to_toml
from gossamer.model.outcome import TRANSIENT
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Record

#: The wiring's names of the two connectors, and of the two processes.
TASKS, VISITS = "seeds", "records"
SYSTEM, APPLICATION = "main", "outside"


def wiring(folder: str) -> str:
    """The shipped wiring with this program in it: it sends beside the seeds, and receives beside the tally."""
    plain = shipped("default")
    plan = ComponentPlan(use="application", ports={"records": VISITS, "urls": TASKS}, process=APPLICATION)
    connectors = {
        **plain.connectors,
        TASKS: ConnectorPlan(address=f"unix:{folder}/tasks"),
        VISITS: ConnectorPlan(address=f"unix:{folder}/visits"),
    }
    components = {name: one for name, one in plain.components.items() if name != "tally"}
    return to_toml(
        msgspec.structs.replace(plain, connectors=connectors, components={**components, "application": plan})
    )


class System:
    """The crawling system as this program sees it."""

    def __init__(self, folder: str) -> None:
        about: dict[str, Any] = {"slot": APPLICATION, "senders": frozenset({SYSTEM}), "exchange": Exchange()}
        tasks = Opening(name=TASKS, item_type=Task, address=f"unix:{folder}/tasks", side="send", **about)
        visits = Opening(name=VISITS, item_type=Record, address=f"unix:{folder}/visits", side="receive", **about)
        self._connectors = [open_connector(tasks), open_connector(visits)]
        self.tasks: Out[Task] = Out(TASKS, self._connectors[0])
        self.visits: In[Record] = In(VISITS, self._connectors[1])

    async def __aenter__(self) -> "System":
        for connector in self._connectors:
            await connector.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for connector in self._connectors:
            await connector.stop()


async def run(folder: str, word: str) -> None:
    """Follow the links of pages that have a word in their title, until every page that was asked for has come."""
    asked: set[str] = set()
    awaited: set[str] = set()
    async with System(folder) as system:
        try:
            while True:
                visit = (await system.visits.receive()).visit
                if visit.is_robots or visit.response.outcome in TRANSIENT:
                    continue  # the system's own affair: it asks for robots.txt, and tries again
                wanted = word.lower() in visit.title.lower()
                print(f"{'*' if wanted else ' '} {visit.response.outcome} {visit.url} {visit.title!r}", flush=True)
                asked.add(visit.url)
                awaited.discard(visit.url)
                redirected = {link.url for link in visit.links if link.relation == "redirect"} - asked
                found = {link.url for link in visit.links} - asked - redirected if wanted else set()
                await system.tasks.send_many([Task(url, host_of(url), source=visit.url) for url in sorted(found)])
                asked |= found | redirected
                awaited |= found | redirected  # redirects are followed by the system
                if not awaited:
                    system.tasks.close()
        except EndOfItems:
            pass  # the crawl is over


if __name__ == "__main__":
    if sys.argv[1] == "wiring":
        print(wiring(sys.argv[2]))
    else:
        asyncio.run(run(*sys.argv[2:4]))
