"""A child process of a crawl: `python -P -m gossamer.assembly.child WIRING PROCESS DIRECTORY LINE` runs one process' part of a
wiring.

Started by :mod:`gossamer.assembly.processes`, or by hand on another machine whose connectors have `tcp:` addresses.
"""

import asyncio
import importlib
import operator
import sys
from pathlib import Path

import msgspec

from gossamer.assembly.catalog import catalog
from gossamer.assembly.children import serve
from gossamer.assembly.processes import CATALOG
from gossamer.assembly.skipped import setting_aside
from gossamer.assembly.tuning import loop_factory, tune_collector
from gossamer.flow.catalog import Catalog
from gossamer.flow.errors import FlowError
from gossamer.flow.planning import plan
from gossamer.flow.running import RunningGraph
from gossamer.flow.wiring import read
from gossamer.model.errors import GossamerError


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
                aside=setting_aside(Path(directory), process),
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
