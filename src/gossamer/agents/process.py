"""The orders of an agent or a master, and its program: `python -P -m gossamer.agents.process FOLDER NAME`.

Place in the flow: the supervisor writes the crawl's wiring and the agents' names into files of the folder where agents meet,
before it starts an agent and whenever the wiring changes; an agent reads them when it starts, also when it starts again. What
belongs to the crawl as a whole is divided here: requests in flight, rates, pages.

:mod:`gossamer.agents.cluster` starts the program, with its standard input as a line to the supervisor: it begins when a word
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.cluster import WORD
from gossamer.agents.handing_over import as_settings
from gossamer.agents.masters import Masters, master_wiring
from gossamer.agents.run import AgentRun, MasterRun
from gossamer.agents.supervision import ALONE, QUIET
from gossamer.agents.wiring import is_exchanging, only_applications, with_agents
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import with_fetchers
from gossamer.crawls.machine import allow_open_files, coroutine_runner, tune_collector
from gossamer.engine.errors import FlowError, WiringError
from gossamer.engine.files import joined, replace_file
from gossamer.engine.graph import Graph
from gossamer.engine.planning import plan
from gossamer.engine.remote.addresses import SECRET
from gossamer.engine.unit import meanwhile
from gossamer.engine.wiring import MAIN_PROCESS, Wiring, read, to_toml, with_settings, write
from gossamer.values.agents import at_work
from gossamer.values.errors import GossamerError, UsageError

#: Names of the files.
WIRING = "wiring.toml"
ORDERS = "orders.json"
MASTERS = "master.toml"

#: Settings that are so many for the whole crawl, as (unit, setting): each agent begins with an equal part (:mod:`shares`).
_DIVIDED_RATES = (("politeness", "rate"), ("politeness", "bandwidth"), ("http", "bandwidth"))


class AgentOrders(msgspec.Struct, frozen=True):
    """The orders that all agents of a crawl get beside its wiring."""

    directory: str
    members: tuple[str, ...]
    accept_loss: bool = False
    """Go on without what is lost."""
    masters: tuple[str, ...] = ()
    """The names of those that say whose a host is; none where the ring does."""
    moved: dict[str, str] = {}
    """Domains that have another agent than the ring says."""
    lease: float = 0.0
    """Seconds after which an agent on a machine of its own may be counted as gone, if its supervisor does not hear of it: it asks
    no host by then. 0 where all agents are on the supervisor's machine."""

    @property
    def names(self) -> tuple[str, ...]:
        return at_work(self.members)


def write_orders(folder: Path, orders: AgentOrders, wiring: Wiring, masters: Masters) -> None:
    """Write what agents and masters are to run; `wiring` is the crawl's own."""
    write(folder / WIRING, wiring, is_private=True)
    if masters.wiring is not None:
        write(folder / MASTERS, masters.wiring, is_private=True)
    replace_file(folder / ORDERS, msgspec.json.encode(orders))


def read_orders(folder: Path) -> tuple[AgentOrders, Wiring]:
    return msgspec.json.decode((folder / ORDERS).read_bytes(), type=AgentOrders), read(folder / WIRING)


def is_renewed(folder: Path, wiring: Wiring, masters: Masters) -> bool:
    """Whether agents that meet there run another wiring of the crawl than this one, or have other masters."""
    path = folder / WIRING
    if not path.exists():
        return False
    orders, _ = read_orders(folder)
    if path.read_text() != to_toml(wiring) or orders.masters != masters.names:
        return True
    return masters.wiring is not None and (folder / MASTERS).read_text() != to_toml(masters.wiring)


def agent_wiring(wiring: Wiring, graph: Graph, orders: AgentOrders, agent: str, folder: str) -> Wiring:
    """The wiring of one agent. Raises WiringError: it cannot be divided; UsageError: what is to be divided is less than there are
    agents."""
    if "frontier" not in graph.components:
        raise WiringError(f"{graph.wiring.source}: several agents need a component called 'frontier'")
    frontier: Any = graph.sheet("frontier")
    number, index = len(orders.names), orders.names.index(agent)
    check_concurrency(graph, number)
    parts: dict[str, dict[str, Any]] = {
        "frontier": {
            "page_share": None if frontier.max_pages is None else 0,
            "byte_share": None if frontier.max_bytes is None else 0,
            **{
                name: part_of("frontier", name, getattr(frontier, name), number, index)
                for name in ("concurrency", "max_pages", "max_bytes")
            },
        }
    }
    for unit, setting in _DIVIDED_RATES:
        if unit in graph.providers and (value := getattr(graph.sheet(unit), setting, None)) is not None:
            parts.setdefault(unit, {})[setting] = part_of(unit, setting, value, number, index)
    for name, settings in parts.items():
        wiring = with_settings(wiring, name, settings)
    if "fetch" in wiring.components:
        concurrency = wiring.components["frontier"].settings["concurrency"]
        wiring = with_fetchers(wiring, min(wiring.components["fetch"].workers, concurrency))
    divided = with_agents(wiring, orders.members, agent, folder, orders.masters, is_far=orders.lease > 0)
    if not (orders.moved and "ring" in divided.providers):
        return divided
    return with_settings(divided, "ring", {"moved": as_settings(orders.moved)})


def part_of(unit: str, setting: str, value: Any, number: int, index: int) -> Any:
    """The part that one agent gets of a setting for the whole crawl; the value itself of any other one."""
    if (unit, setting) == ("frontier", "concurrency"):
        return value // number + (index < value % number)
    if (unit, setting) in _DIVIDED_RATES and value is not None:
        return value / number
    if unit == "frontier" and setting in ("max_pages", "max_bytes"):
        return None  # they are lent
    return value


def check_concurrency(graph: Graph, number: int) -> None:
    """Refuse so many agents, by a UsageError, where not each of them may have a request in flight."""
    frontier: Any = graph.sheet("frontier")
    if frontier.concurrency < number:
        raise UsageError(
            f"--concurrency {frontier.concurrency} cannot be divided among {number} agents; each needs one"
        )


def check_can_divide(graph: Graph, members: Sequence[str], directory: Path, masters: tuple[str, ...] = ()) -> None:
    """Refuse a crawl that several agents cannot run. Touches nothing. Raises WiringError: its wiring cannot be divided;
    UsageError: what is to be divided is less than there are agents, or a limit cannot be kept where hosts are assigned
    singly."""
    wiring = graph.wiring
    if is_exchanging(wiring):
        raise UsageError(
            "this crawl exchanges URLs by files, and keeps the agents that it began with; leave out --agents"
        )
    others = [
        process for process in wiring.processes if process != MAIN_PROCESS and not only_applications(wiring, process)
    ]
    if others:
        raise WiringError(
            f"{wiring.source}: the wiring has a process of its own ({others[0]}), so it runs in one agent; leave --agents at 1"
        )
    ledger = wiring.providers.get("ledger")
    is_finer = ledger is not None and ledger.settings.get("division", "domain") != "domain"
    if is_finer and any(plan.settings.get("max_per_domain") for plan in wiring.components.values()):
        raise UsageError(
            "agents that divide the hosts of a registered domain cannot count its URLs together; leave out max_per_domain, "
            "or leave ledger.division at domain"
        )
    orders = AgentOrders(str(directory), tuple(members), masters=masters)
    agent_wiring(wiring, graph, orders, orders.names[0], "/meeting")


#: Seconds between two looks at how long an agent has been alone.
_LOOK = 1.0


def main() -> int:
    """Run the agent, or the master."""
    folder, agent = Path(sys.argv[1]), sys.argv[2]
    if not _has_said():
        # An agent that has to wait loads the program meanwhile; an error is said when it begins, if it still is so.
        with contextlib.suppress(FlowError, GossamerError, OSError, ValueError):
            plan(read_orders(folder)[1], catalog())
    if not os.read(sys.stdin.fileno(), len(WORD)):
        return 0  # the supervisor is gone
    try:
        run = _made(folder, agent)
        tune_collector()
        allow_open_files()
        with joined(folder), coroutine_runner() as runner:
            if not _has_said():  # the supervisor says nothing after its first word: all that can be read is its end
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
        masters = Masters(orders.masters, read(folder / MASTERS) if orders.masters else None)
        is_far = (folder / SECRET).exists()  # what proves to agents on other machines who this is
        own = master_wiring(masters, wiring, orders.members, name, str(folder), directory, is_far=is_far)
        return MasterRun(name, plan(own, known), directory, folder, _report)
    graph = plan(agent_wiring(wiring, plan(wiring, known), orders, name, str(folder)), known)
    return AgentRun(
        *(name, graph, directory, folder, _report),
        among=orders.names,
        accept_loss=orders.accept_loss,
        lease=orders.lease,
    )


def _report(line: str) -> bool:
    """Tell a line; False where it is not read, since the supervisor is gone."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        return False
    return True


def _has_said() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


async def _run(run: AgentRun | MasterRun) -> None:
    """Run it; a signal stops it, and so does a long time without a supervisor, which lets one on a machine of its own pause."""

    async def watch() -> None:
        lease = run.lease if isinstance(run, AgentRun) else 0.0
        while lease or not run.watched.solitude.is_over(time.monotonic()):
            if isinstance(run, AgentRun) and lease:
                run.attend(is_alone=run.watched.solitude.is_over(time.monotonic(), QUIET * lease))
            await asyncio.sleep(_LOOK)
        run.report(f"no supervisor has asked for {ALONE:g} s, so this process stops")
        run.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, run.stop)
    async with meanwhile(watch()):
        await run.run()


if __name__ == "__main__":
    sys.exit(main())
