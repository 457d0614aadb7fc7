"""A child process of a crawl: `python -P -m gossamer.crawls.child WIRING PROCESS DIRECTORY LINE` runs one process' part of a
wiring.

Started by :mod:`gossamer.crawls.processes`, or by hand on another machine whose connectors have `tcp:` addresses.
"""

import asyncio
import importlib
import operator
import sys
from pathlib import Path

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.children import serve
from gossamer.crawls.machine import loop_factory, tune_collector
from gossamer.crawls.processes import CATALOG
from gossamer.crawls.subscribing import setting_aside
from gossamer.engine.errors import FlowError
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.wiring import read
from gossamer.values.errors import GossamerError


def main() -> int:
    """Run the part; the exit status is 0 when all its inputs have ended."""
    path, process, directory, line = sys.argv[1:5]

    def report(line: str) -> None:
        print(f"gossamer [{process}]: {line}", file=sys.stderr, flush=True)

    try:
        graph = plan(read(Path(path)), _catalog(Path(path).with_name(CATALOG)))
        tune_collector()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
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


def _catalog(path: Path) -> Catalog:
    """The catalog of the program that started this process."""
    known = catalog()
    for places in msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, str]]).values():
        for name, place in places.items():
            module, _, qualified = place.partition(":")
            known.add(name, operator.attrgetter(qualified)(importlib.import_module(module)))
    return known


if __name__ == "__main__":
    sys.exit(main())
