"""The run of one master, and the way back where all masters have lost their shared file.

Place in the flow: :mod:`process` makes one, as it makes agents, and the supervisor starts and steers both alike. A master keeps
nothing of its own: what it must not forget lies in the file that all masters share (:mod:`shared_state`), or is owed by the
agents that have sent it. So it ends by dropping what it has in hand.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer.agents.agent import AgentNews
from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SCHEMA, chosen, give
from gossamer.agents.digests import CLAIMS_DUE
from gossamer.agents.held_domains import held_domains, hold_again
from gossamer.agents.line import place_of
from gossamer.agents.lost import damage_of_agent, found_links, queue_found
from gossamer.agents.mail import MassMail
from gossamer.agents.marshaler import Marshal
from gossamer.agents.membership import is_changing
from gossamer.agents.parcels import opened_ledger
from gossamer.agents.rendezvous import Solitude, Unheard
from gossamer.agents.shared_state import SHARED, shared_again
from gossamer.agents.shares import AgentReport
from gossamer.agents.supervised import ENDED
from gossamer.agents.supervision import REQUESTS
from gossamer.agents.wiring import ring_rule
from gossamer.crawls.control.server import ControlServer
from gossamer.crawls.control.standing import MasterStanding
from gossamer.crawls.control.wire import ProcessRequest, tag_of
from gossamer.engine.graph import Graph
from gossamer.engine.running import RunningGraph
from gossamer.engine.wiring import Wiring
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.recovery import crawl_id
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import domain_point, domain_rule
from gossamer.values.task import Task

if TYPE_CHECKING:
    from gossamer.crawls.control.wire import Answered, ControlRequest


class MasterRun:
    """One master at work."""

    def __init__(self, master: str, graph: Graph, directory: Path, folder: Path, report: Callable[[str], bool]) -> None:
        """Nothing is touched yet.

        Args:
            master: its name.
            graph: planned of its own wiring.
            directory: of the crawl.
            folder: where agents and masters meet.
            report: takes lines for people; says whether they are heard.
        """
        self.master = master
        self.directory = directory
        self._unheard = Unheard(report)
        self.report = self._unheard.tell
        """Takes a line for people."""
        self.solitude = Solitude(time.monotonic())
        """How long no supervisor has asked."""
        self._life = f"{os.getpid()}-{time.time_ns()}"
        self._is_ending = asyncio.Event()
        self.graph_at_work = RunningGraph(graph, report=self.report, meeting=str(folder))

    def __repr__(self) -> str:
        return f"<MasterRun {self.master} of {self.directory}>"

    async def run(self) -> None:
        """Work until the supervisor says that all is over, or that it is to stop.

        Raises:
            FlowError: a unit cannot start, or fails.
            CrawlDirectoryError: what masters share is damaged, or another crawl's.
        """
        place, running = place_of(self.directory, self.master), self.graph_at_work
        with contextlib.closing(ProcessLock(place / "lock")):
            control = ControlServer(place, self._steer, self.report, requests=REQUESTS)
            (place / ENDED).unlink(missing_ok=True)
            try:
                await running.start()
                await control.start()
                work, ending = asyncio.ensure_future(running.work()), asyncio.ensure_future(self._is_ending.wait())
                await asyncio.wait((work, ending), return_when=asyncio.FIRST_COMPLETED)
                ending.cancel()
                if not work.done():
                    work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await work
                (place / ENDED).touch()
            finally:
                await control.stop()
                await running.stop()

    async def _steer(self, request: "ControlRequest") -> "Answered":
        if not isinstance(request, ProcessRequest):
            raise UsageError(
                f"{self.master} only passes URLs on, and cannot answer {tag_of(type(request))!r}; ask the crawl in {self.directory}"
            )
        return await request.act(self)

    # -- what the supervisor asks

    def news(self, *, first: bool = False) -> AgentNews:
        """What it has come to. It is at rest when no mail waits."""
        self.solitude.asked(time.monotonic())
        mail = self._mail
        report = AgentReport(self.master, self._life, mail.commits, mail.is_empty)
        return AgentNews(
            report, is_settled=report.is_at_rest, is_ending=self._is_ending.is_set(), said=self._unheard.taken()
        )

    def master_standing(self) -> MasterStanding:
        """How it stands, for people."""
        components = (runner.component for runner in self.graph_at_work.runners.values())
        marshal, mail = next(one for one in components if isinstance(one, Marshal)), self._mail
        return MasterStanding(
            self.master,
            "running",
            process=os.getpid(),
            marshaled=int(marshal.metrics.counters["marshaled"]),
            waiting=mail.waiting,
            lag=round(mail.lag, 1),
        )

    @property
    def _mail(self) -> MassMail:
        return next(one for one in self.graph_at_work.providers.values() if isinstance(one, MassMail))

    def finish(self) -> None:
        self._is_ending.set()

    def stop(self) -> None:
        """End. What is in hand is owed by the agents that have sent it. Safe to call at any time."""
        self._is_ending.set()

    def abort(self) -> None:
        self._is_ending.set()

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of a running unit.

        Raises:
            SettingError: a value that the setting cannot have, or a setting that changes only with a restart.
        """
        self.graph_at_work.set(unit, settings)


# Masters that have lost their shared file for good: the supervisor makes the table of designations again of the domains that agents
# hold (:mod:`held_domains`), where a person says so. Only mail of an older version is lost: its finders owe it no more. It is found
# again in the links of pages, as where an agent is lost (:mod:`lost`), and agents claim their documents anew.


def is_table_lost(directory: Path) -> bool:
    """Whether the file that masters share is gone."""
    return not (directory / SHARED).exists()


def make_table_again(
    directory: Path, wiring: Wiring, members: Sequence[str], policy: DesignationPolicy
) -> Iterator[str]:
    """Make the table that masters share again. A kill meanwhile leaves it lost, and harms nothing.

    Args:
        directory: the crawl directory; the caller has it alone.
        wiring: of the crawl, for the settings of its ledgers.
        members: the agents of the crawl.
        policy: chooses for domains that no agent holds, and of which URLs are lost.

    Yields:
        Lines for people.

    Raises:
        CrawlDirectoryError: the table cannot be made again, since something else is lost too.
    """
    if is_changing(directory):
        raise CrawlDirectoryError(
            f"{directory / SHARED} is gone, and domains were just changing hands; bring it back from a copy"
        )
    names = [one.agent for one in map(member, members) if one.capacity]
    for name in names:
        if (damage := damage_of_agent(directory, wiring, name)) is not None:
            raise CrawlDirectoryError(f"{damage}, and {directory / SHARED} is gone; bring one of them back from a copy")
    with ExitStack() as stack:
        settings = wiring.providers["ledger"].settings
        ledgers = {name: opened_ledger(directory, settings, name, stack, existing=False) for name in names}
        again = _TableAgain(directory, wiring, members, policy, ledgers)
        found = again.find_lost()
        for ledger in ledgers.values():
            with ledger.group() as group:
                group.count(CLAIMS_DUE)
    with shared_again(directory, crawl_id(directory)) as shared:
        shared.open(SCHEMA)
        with shared.writing() as connection:
            give(connection, again.owners)
    yield f"the table of agents and their {len(again.owners):,} domains was made again from what the agents hold"
    if found:
        yield f"{found:,} URLs that no agent has are queued again, since pages lead to them"


class _TableAgain:
    """Finds out which agent has which domain."""

    def __init__(
        self,
        directory: Path,
        wiring: Wiring,
        members: Sequence[str],
        policy: DesignationPolicy,
        ledgers: Mapping[str, RocksLedger],
    ) -> None:
        rule = ring_rule(wiring)
        self.owners: dict[str, str] = {}
        """Domain -> agent."""
        self._directory = directory
        self._rule = domain_rule(rule.get("division", "domain"), rule.get("together", ()))
        self._members = [one for one in map(member, members) if one.capacity]
        self._policy = policy
        self._ledgers = ledgers
        self._at_points: dict[int, str] = {}
        self._counts = dict.fromkeys(ledgers, 0)
        for name, ledger in ledgers.items():
            for domain in held_domains(ledger):
                if (other := self.owners.get(domain)) is not None:
                    raise CrawlDirectoryError(
                        f"{directory / SHARED} is gone, and both {other} and {name} hold {domain}; bring it back from a copy"
                    )
                self._note(domain, name)

    def find_lost(self) -> int:
        """Queue URLs that agents have sent, and that no agent has; returns how many."""
        count = 0
        for part in found_links(self._directory):
            count += self._queue_lost(part)
        return count

    def _queue_lost(self, tasks: Iterable[Task]) -> int:
        lost: dict[str, list[Task]] = {}
        for task in tasks:
            domain = self._rule.assignable(task.host)
            owner = self.owners.get(domain, "")
            if owner and self._ledgers[owner].is_seen(task.identity):
                continue
            # An agent that has seen it let it through its filters, and has sent it.
            if any(ledger.is_seen(task.identity) for ledger in self._ledgers.values()):
                lost.setdefault(owner or self._given(domain), []).append(task)
        return sum(queue_found(self._ledgers[owner], those) for owner, those in lost.items())

    def _given(self, domain: str) -> str:
        """Let an agent hold a domain that none holds."""
        agent = self._at_points.get(domain_point(domain)) or chosen(self._policy, domain, self._members, self._counts)
        self._note(domain, agent)
        hold_again(self._ledgers[agent], [domain])
        return agent

    def _note(self, domain: str, agent: str) -> None:
        self.owners[domain] = self._at_points[domain_point(domain)] = agent
        self._counts[agent] += 1
