"""A child process of a crawl: `python -P -m gossamer.assembly.child WIRING PROCESS DIRECTORY` runs one process' part of a wiring.

Started by :mod:`gossamer.assembly.processes`, or by hand on another machine whose connectors have `tcp:` addresses.
"""

import asyncio
import sys
from pathlib import Path

from gossamer.assembly.catalog import catalog
from gossamer.assembly.skipped import setting_aside
from gossamer.assembly.tuning import loop_factory, tune_collector
from gossamer.flow.errors import FlowError
from gossamer.flow.planning import plan
from gossamer.flow.running import RunningGraph
from gossamer.flow.wiring import read
from gossamer.model.errors import GossamerError


def main() -> int:
    """Run the part; the exit status is 0 when all its inputs have ended."""
    path, process, directory = sys.argv[1:4]

    def report(line: str) -> None:
        print(f"gossamer [{process}]: {line}", file=sys.stderr, flush=True)

    try:
        graph = plan(read(Path(path)), catalog())
        tune_collector()
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            running = RunningGraph(
                graph,
                process=process,
                report=report,
                meeting=str(Path(path).parent),
                aside=setting_aside(Path(directory), process),
            )
            runner.run(running.run())
    except (FlowError, GossamerError) as error:
        report(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
