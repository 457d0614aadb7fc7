"""A child process of a crawl, and what the main process asks of it while it runs: figures of its units, settings.

`python -P -m gossamer.crawls.children WIRING PROCESS DIRECTORY LINE` runs one process' part of a wiring. It is started by
:mod:`gossamer.crawls.processes`, or by hand on another machine whose connectors have `tcp:` addresses.

Place in the flow: :mod:`~gossamer.crawls.processes` starts a child with one end of a socket pair, by its number; no other process
can reach it. Each message is one line of JSON; the main process asks, the child answers, one at a time, each answer with the
number of its question: so one that comes too late is not taken for another.
"""

import asyncio
import contextlib
import importlib
import operator
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.machine import coroutine_runner, tune_collector
from gossamer.engine.connector import Statistics
from gossamer.engine.errors import FlowError
from gossamer.engine.planning import plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import change
from gossamer.engine.wiring import read
from gossamer.storage.logs import setting_aside
from gossamer.values.errors import GossamerError

#: The file beside the wiring that has classes of the program's own by name.
CATALOG = "catalog.json"

#: Seconds for an answer. A child answers between two pages; one that is being started again does not, and is left out.
PATIENCE = 5.0

#: Bytes of a line at most: the figures of some thousand units.
LINE = 1 << 22


class Look(msgspec.Struct, frozen=True, tag_field="do", tag="look"):
    """Tell the counts of your units."""

    number: int = 0


class Give(msgspec.Struct, frozen=True, tag_field="do", tag="give"):
    """Change settings of a unit."""

    unit: str
    settings: dict[str, Any]
    number: int = 0


class Figures(msgspec.Struct, frozen=True, tag_field="is", tag="figures"):
    """The counters of the units and connectors of one process."""

    units: dict[str, dict[str, float]] = {}
    connectors: dict[str, Statistics] = {}
    number: int = 0


class Given(msgspec.Struct, frozen=True, tag_field="is", tag="given"):
    """It was done, or why not."""

    refused: str = ""
    number: int = 0


_asked = msgspec.json.Decoder(Look | Give)
_answered = msgspec.json.Decoder(Figures | Given)


def figures_of(running: RunningGraph) -> Figures:
    nodes = {**running.graph.components, **running.graph.providers}
    return Figures({name: dict(running.metrics(name)) for name in nodes}, running.statistics())


# -- the child's side


async def serve(running: RunningGraph, number: int) -> None:
    """Answer the main process until it hangs up."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=number), limit=LINE)
    with contextlib.suppress(OSError):
        while line := await reader.readline():
            asked = _asked.decode(line)
            answer = msgspec.structs.replace(_answer(running, asked), number=asked.number)
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()


def _answer(running: RunningGraph, asked: Look | Give) -> Figures | Given:
    if isinstance(asked, Look):
        return figures_of(running)
    try:
        running.give(asked.unit, change(running.sheet(asked.unit), asked.settings, running=True))
    except FlowError as error:
        return Given(str(error) or type(error).__name__)
    return Given()


# -- the main process' side


class Child:
    """The line to one child."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self._asked = 0

    async def look(self) -> Figures:
        """Its figures; none where it does not answer."""
        answer = await self._ask(Look())
        return answer if isinstance(answer, Figures) else Figures()

    async def give(self, unit: str, settings: dict[str, Any]) -> str:
        """Change settings; why not, or nothing. A child that does not answer is about to start anew, and reads them then."""
        answer = await self._ask(Give(unit, settings))
        return answer.refused if isinstance(answer, Given) else ""

    async def _ask(self, request: Look | Give) -> Figures | Given | None:
        try:
            async with self._turn, asyncio.timeout(PATIENCE):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(sock=self._end, limit=LINE)
                reader, writer = self._streams
                self._asked += 1
                request = msgspec.structs.replace(request, number=self._asked)
                writer.write(msgspec.json.encode(request) + b"\n")
                await writer.drain()
                while line := await reader.readline():
                    answer: Figures | Given = _answered.decode(line)
                    if answer.number == self._asked:
                        return answer
        except (OSError, TimeoutError, ValueError):
            pass  # it died, is busy, or is of another version
        return None

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        else:
            self._end.close()


def main() -> int:
    """Run the part; the exit status is 0 when all its inputs have ended."""
    path, process, directory, line = sys.argv[1:5]

    def report(line: str) -> None:
        sys.stderr.write(f"gossamer [{process}]: {line}\n")

    try:
        # The catalog of the program that started this process.
        known = catalog()
        own = Path(path).with_name(CATALOG).read_bytes()
        for places in msgspec.json.decode(own, type=dict[str, dict[str, str]]).values():
            for name, place in places.items():
                module, _, qualified = place.partition(":")
                known.add(name, operator.attrgetter(qualified)(importlib.import_module(module)))
        graph = plan(read(Path(path)), known)
        tune_collector()
        with coroutine_runner() as runner:
            running = RunningGraph(
                graph,
                process=process,
                report=report,
                meeting=str(Path(path).parent),
                keep_failed=setting_aside(Path(directory), process),
            )
            runner.run(_run(running, int(line)))
    except (FlowError, GossamerError) as error:
        report(str(error))
        return error.exit_code
    return 0


async def _run(running: RunningGraph, line: int) -> None:
    serving = asyncio.create_task(serve(running, line))
    try:
        await running.run()
    finally:
        serving.cancel()


if __name__ == "__main__":
    sys.exit(main())
