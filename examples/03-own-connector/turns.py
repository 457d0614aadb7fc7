"""A connector of one's own in a wiring: tasks leave it host by host in turn.

    python examples/03-own-connector/turns.py

`taking_turns-1.0.dist-info` beside this file is what `pip install` leaves of a package, so that the example runs without
installing anything; in a package of your own it comes from three lines of pyproject.toml::

    [project.entry-points."gossamer.connectors"]
    turns = "taking_turns:TRANSPORT"
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.engine.component import Consumer, Filter, Producer
from gossamer.engine.ends import In, Out
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings
from gossamer.engine.wiring import read

HERE = Path(__file__).parent


class Task(msgspec.Struct, frozen=True):
    """A page to visit."""

    host: str
    depth: int


class Tasks(Producer[NoSettings]):
    """All of one host, then all of the next: as links are found."""

    outbox: Out[Task]

    def produce(self) -> Iterator[Task]:
        """Nine tasks of three hosts."""
        for host in ("a.test", "b.test", "c.test"):
            for depth in (2, 1, 0):
                yield Task(host, depth)


class Visit(Filter[NoSettings]):
    """Only says in what order it was asked."""

    inbox: In[Task]
    outbox: Out[Task]

    def filter(self, item: Task) -> list[Task]:
        """Visit one."""
        print("visit ", item.host, item.depth)
        return [item]


class Show(Consumer[NoSettings]):
    """Prints."""

    inbox: In[Task]

    def consume(self, item: Task) -> None:
        """One line for each report."""
        print("report", item.host, item.depth)


CATALOG = Catalog({"tasks": Tasks, "visit": Visit, "show": Show})


async def main() -> None:
    """Run the wiring beside this file."""
    await RunningGraph(plan(read(HERE / "wiring.toml"), CATALOG)).run()


if __name__ == "__main__":
    asyncio.run(main())
