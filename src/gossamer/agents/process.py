"""The program of an agent or a master: `python -P -m gossamer.agents.process FOLDER NAME`.

Started by :mod:`gossamer.agents.supervised`, with its standard input as a line to the supervisor: it begins when a word
comes there, and ends if the line ends before. Its exit status is 0 when it ended in order, and that of the error where a person has
to do something first.
"""

import asyncio
import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

from gossamer.agents.masters import master_wiring
from gossamer.agents.orders import agent_wiring, ordered_masters, read_orders
from gossamer.agents.rendezvous import ALONE
from gossamer.agents.run import AgentRun, MasterRun
from gossamer.agents.supervised import WORD
from gossamer.crawls.catalog import catalog
from gossamer.crawls.machine import allow_open_files, loop_factory, tune_collector
from gossamer.engine.errors import FlowError
from gossamer.engine.files import joined
from gossamer.engine.planning import plan
from gossamer.values.errors import GossamerError

#: Seconds between two looks at how long an agent has been alone.
_LOOK = 1.0


def main() -> int:
    """Run the agent, or the master."""
    folder, agent = Path(sys.argv[1]), sys.argv[2]
    if not _is_called(folder):
        return 0
    try:
        run = _made(folder, agent)
        tune_collector()
        allow_open_files()
        with joined(folder), asyncio.Runner(loop_factory=loop_factory()) as runner:
            if not _has_said():  # the supervisor says nothing after its first word: what can be read of it is its end
                runner.run(_run(run))
    except (FlowError, GossamerError) as error:
        _report(str(error))
        return error.exit_code
    return 0


def _made(folder: Path, name: str) -> AgentRun | MasterRun:
    """The agent or the master of this name. Raises FlowError, GossamerError."""
    orders, wiring = read_orders(folder)
    known, directory = catalog(), Path(orders.directory)
    if name in orders.masters:
        masters = ordered_masters(folder, orders)
        own = master_wiring(masters, wiring, orders.members, name, str(folder), directory)
        return MasterRun(name, plan(own, known), directory, folder, _report)
    graph = plan(agent_wiring(wiring, plan(wiring, known), orders, name, str(folder)), known)
    return AgentRun(name, graph, directory, folder, _report, among=orders.names, accept_loss=orders.accept_loss)


def _report(line: str) -> bool:
    """Tell a line; False where it is not read, since the supervisor is gone."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        return False
    return True


def _is_called(folder: Path) -> bool:
    """Wait for the word to begin; False where the supervisor is gone. Who has to wait loads the program meanwhile."""
    if not _has_said():
        with contextlib.suppress(
            FlowError, GossamerError, OSError, ValueError
        ):  # said when it begins, if it still is so
            _, wiring = read_orders(folder)
            plan(wiring, catalog())
    return bool(os.read(sys.stdin.fileno(), len(WORD)))


def _has_said() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


async def _run(run: AgentRun | MasterRun) -> None:
    """Run it; a signal stops it, and so does a long time without a supervisor."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, run.stop)
    watch = asyncio.create_task(_watch(run))
    try:
        await run.run()
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


async def _watch(run: AgentRun | MasterRun) -> None:
    """Stop when no supervisor has asked for news for a long time."""
    while not run.watched.solitude.is_over(time.monotonic()):
        await asyncio.sleep(_LOOK)
    run.report(f"no supervisor has asked for {ALONE:g} s, so this process stops")
    run.stop()


if __name__ == "__main__":
    sys.exit(main())
