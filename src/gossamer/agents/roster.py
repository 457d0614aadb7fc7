"""The agents of one crawl: those that it has, those that it is to have, the way from one to the other, and how all of them stand.

Place in the flow: :mod:`crawl` asks it before it starts agents, and when people ask for another number while they work. Domains
change hands while no agent runs (:mod:`membership`), so a crawl at work rests for some seconds: its agents hand out nothing more,
what is in flight comes in, what they owe each other is delivered, and they end.
"""

import math
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents import membership
from gossamer.agents.cluster import living
from gossamer.agents.contract import Cluster, FarCluster
from gossamer.agents.domain_moves import DomainMoves
from gossamer.agents.ended import is_ledger_gone, write_agent_end
from gossamer.agents.handing_over import Divided, division, is_changing, read_moved, write_moved
from gossamer.agents.lost import is_table_lost, note_loss, noted_losses
from gossamer.agents.masters import check_places, check_shared, designation_policy, masters_for
from gossamer.agents.parcels import AgentsAtRest, Elsewhere, ends_of
from gossamer.agents.process import AgentOrders, check_can_divide, check_concurrency, write_orders
from gossamer.agents.supervisor import Supervisor
from gossamer.agents.wiring import has_store, ledger_settings
from gossamer.crawls.control.server import place_of
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.graph import Graph
from gossamer.engine.unit import meanwhile
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import Places
from gossamer.storage.logs import log_path
from gossamer.storage.mailbox.shared_state import SHARED
from gossamer.storage.members import JOINED, members_of, write_members
from gossamer.values.agents import agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Where it stands how many agents people have asked for, until the crawl has them.
_WANTED = "supervisor/wanted"


def want(directory: Path, number: int | None) -> None:
    """Note how many agents a crawl is to have as soon as it can; None: those that it has. Raises OSError."""
    note = directory / STATE_DIRECTORY / _WANTED
    if number is None:
        note.unlink(missing_ok=True)
    else:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(str(number), encoding="ascii")


class Roster:
    """The names of the agents."""

    def __init__(
        self,
        directory: Path,
        graph: Graph,
        options: CrawlOptions,
        report: Callable[[str], None],
        store_is_there: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Check that the crawl can have so many agents as the options say; nothing is touched. `store_is_there` waits for the store
        before agents change, since all of them publish first; None where there is no store. Raises UsageError: it cannot;
        CrawlDirectoryError: the names of its agents cannot be read; WiringError: its wiring cannot be divided."""
        self._directory = directory
        self._report = report
        self._store_is_there = store_is_there
        self._accepts_loss = options.accept_loss
        self.masters = masters_for(directory, options)
        """Those that say whose a host is; none where the ring does."""
        kept = members_of(directory) if options.resume else ()
        one = (agent_name(0),)
        is_begun = options.resume and (directory / STATE_DIRECTORY / one[0] / "ledger").is_dir()
        before = kept or (one if is_begun else ())
        self._number = options.agents or 0
        if options.resume and not self._number:
            with suppress(OSError, ValueError):
                self._number = int((directory / STATE_DIRECTORY / _WANTED).read_text(encoding="ascii"))
        self._given_places = options.agent_place
        self.members: tuple[str, ...] = ()
        """All of them, with those that have left: the ones that the crawl is to have, until it has them."""
        self.has_changed = False
        """They are not the ones that the directory names."""
        self._follow(before, kept)
        self.left: list[CrawlStanding] = []
        """How those stand that have left."""
        self._wanted: tuple[str, ...] | None = None
        self.check(graph, self.members)
        check_places(self.masters, self.members)

    def _follow(self, before: tuple[str, ...], kept: tuple[str, ...]) -> None:
        """Take the members that the crawl has for those that it is to have, in the number that was asked for."""
        numbered = membership.with_number(before, self._number or len(at_work(before)) or 1)
        self.members = membership.with_places(numbered, self._given_places)
        self.has_changed = bool(before) and self.members != kept

    def check(self, graph: Graph, members: tuple[str, ...]) -> None:
        check_can_divide(graph, members, self._directory, self.masters.names)
        if self.has_changed or members != self.members:
            membership.check_can_change(graph.wiring, self._directory)

    def check_settings(self, graph: Graph) -> None:
        """Refuse settings, by a UsageError, that cannot be divided among the agents at work, or among those that are wanted."""
        check_concurrency(graph, max(len(at_work(self.members)), len(at_work(self._wanted or ()))))

    def division(self, graph: Graph, members: Sequence[str] = ()) -> Divided:
        among, settings = members or self.members, ledger_settings(graph.wiring)
        return division(self._directory, among, settings, by_table=bool(self.masters))

    @property
    def told_kept(self) -> str:
        """Why agents on machines of their own stay as they are, and what to do."""
        return (
            "agents on machines of their own keep the hosts that they have, and their number; to change that, stop the crawl "
            f"(gossamer stop {self._directory}), and go on from its store: gossamer resume STORE -o DIR --agents N, and --cluster "
            "as before"
        )

    def goes_out(self, graph: Graph) -> bool:
        """Whether the agents of a crawl on other machines are here, as :meth:`send_out` lets them go. Raises UsageError: they
        cannot, or are elsewhere, and are to be others."""
        names = at_work(self.members)
        if (self._directory / JOINED).exists():
            return False
        if all(is_ledger_gone(self._directory, name) for name in names):
            if self.has_changed:
                raise UsageError(self.told_kept)
            return False
        if living(self._directory, names):
            raise UsageError(
                f"agents of {self._directory} are at work on this machine; stop the crawl before others join it"
            )
        if not has_store(graph.wiring):
            raise UsageError(
                f"the agents of {self._directory} keep their parts here; add --store with a place that all machines reach, so that "
                "they can go on elsewhere"
            )
        return True

    def write(self) -> None:
        write_members(self._directory, self.members)
        self.masters.write(self._directory)

    # -- changes

    def want(self, graph: Graph, number: int) -> None:
        """Let the crawl have so many agents as soon as it rests, or in its next run, where this one is killed before.

        Raises as the constructor; then nothing has changed.
        """
        self._wanted = self.with_number(graph, number)
        want(self._directory, number)

    def with_number(self, graph: Graph, number: int) -> tuple[str, ...]:
        """The members with so many of them at work. Raises as the constructor."""
        members = membership.with_number(self.members, number)
        self.check(graph, members)
        return members

    def let_go(self, graph: Graph, agent: str) -> bool:
        """Let an agent leave as soon as the crawl rests; False where it has to stay: the only one, and in a crawl with a store the
        last one that is at work already."""
        members = membership.without(self._wanted or self.members, agent)
        if not at_work(members) or (has_store(graph.wiring) and at_work(members)[0] not in at_work(self.members)):
            return False
        try:
            self.check(graph, members)
        except UsageError:
            return False
        self._wanted = members
        return True

    def may_lose(self, graph: Graph) -> bool:
        """Whether an agent that has lost its ledger at work may begin again with an empty one."""
        try:
            membership.check_can_change(graph.wiring, self._directory)
        except UsageError:
            return False
        return True

    async def begin_anew(self, graph: Graph, lost: Sequence[str]) -> None:
        """Let agents that have lost their ledgers have empty ones; the others tell them what they know as soon as they work. Raises
        CrawlDirectoryError: one cannot have it."""
        for name in lost:
            note_loss(self._directory, name)
        crash_at(Point.JOINING)
        async with AgentsAtRest(self._directory, graph.wiring) as agents:
            files = await agents.told("begin", lost, int, self.members, by_table=bool(self.masters))
        crash_at(Point.JOINING)
        for name, number in zip(lost, files, strict=True):
            self._report(
                f"the crawl goes on without the ledger of {name}; {number} files of its archive and logs stay. URLs to which "
                "only its pages led are found when these pages are fetched again, unless the pages have changed"
            )

    def move(self, agents: Mapping[str, str]) -> dict[str, str]:
        """Note that agents have domains from now on; returns all that have another agent than the ring says. Raises OSError."""
        moved = {**read_moved(self._directory), **agents}
        write_moved(self._directory, moved)
        return moved

    def assign(self, graph: Graph, agents: Mapping[str, str]) -> dict[str, str]:
        """Give domains to agents; returns those that move when the crawl rests. Raises as
        :func:`~gossamer.agents.membership.assign`."""
        membership.check_can_change(graph.wiring, self._directory)
        return membership.assign(self._directory, graph.wiring, self.members, agents)

    def take_wish(self) -> tuple[str, ...] | None:
        wanted, self._wanted = self._wanted, None
        return wanted

    async def prepare(self, graph: Graph, cluster: Cluster) -> None:
        """Before the agents of a crawl that goes on are started: finish or undo what was under way, then let it have its agents.
        Where agents of it are at work, they are to be taken over as they are; what is to change is a wish. Raises
        CrawlDirectoryError: a ledger is lost or damaged; ComponentFailed: agents that should bring each other what they owe do
        not come to an end."""
        members = members_of(self._directory)
        if await cluster.living(at_work(members)):
            if self.has_changed:
                self._wanted, self.members, self.has_changed = self.members, members, False
            else:
                want(self._directory, None)
            return
        for one in (await cluster.living(self.masters.names)).values():
            one.kill()  # masters that are at work without agents hold nothing that would be lost
            await one.ended(self._report)
        if self.masters:
            await self._mend_shared(graph, members)
            check_shared(self._directory)
        await membership.settle(self._directory, graph.wiring, _elsewhere(cluster))
        settled = members_of(self._directory)
        if settled != members:
            # The table of the masters had made a change, and the kill came before the crawl's note of its agents.
            self._follow(settled, settled)
            self.check(graph, self.members)
        if settled:
            await self._look_for_lost(graph, settled)
        if self.has_changed or membership.read_wishes(self._directory):
            await self.change(graph, cluster, self.members)
            self.has_changed = False
        elif cluster.is_shared:
            await membership.publish_left(self._directory, graph.wiring, self._report)
        want(self._directory, None)

    async def _mend_shared(self, graph: Graph, members: Sequence[str]) -> None:
        """Make a lost table of the masters again, where a person says to go on, or the crawl has a store, which never has it.
        Raises CrawlDirectoryError: it cannot be."""
        if not ((self._accepts_loss or has_store(graph.wiring)) and is_table_lost(self._directory)):
            return
        if (self._directory / JOINED).exists():
            raise CrawlDirectoryError(
                f"{self._directory / SHARED} is gone, and agents that hold domains are on machines of their own; bring it back "
                "from a copy, or go on from the store of the crawl: gossamer resume STORE -o DIR"
            )
        if is_changing(self._directory):
            raise CrawlDirectoryError(
                f"{self._directory / SHARED} is gone, and domains were just changing hands; bring it back from a copy"
            )
        async with AgentsAtRest(self._directory, graph.wiring) as agents:
            first = at_work(members)[:1]
            for line in chain.from_iterable(await agents.told("table", first, list[str], members)):
                self._report(line)

    async def _look_for_lost(self, graph: Graph, members: tuple[str, ...]) -> None:
        """Let agents begin again that have lost their ledgers, where a person says so. Raises CrawlDirectoryError: a ledger is
        lost, and that is not accepted; or no ledger is left."""
        names = [member(text).agent for text in members]
        ends = await ends_of(self._directory, graph.wiring, names)
        noted = noted_losses(self._directory, with_links=False).keys()
        lost = [name for name, end in ends.items() if end.damage or name in noted]
        if not lost or (has_store(graph.wiring) and all(is_ledger_gone(self._directory, name) for name in lost)):
            return  # the supervisor brings these back
        damage = ends[lost[0]].damage
        if len(lost) == len(names):
            raise CrawlDirectoryError(f"{damage}, and so are those of all other agents; begin anew with --overwrite")
        if not (self._accepts_loss or noted >= set(lost)):
            raise CrawlDirectoryError(
                f"{damage}; bring state/{lost[0]} back from a copy, or fetch the part of {lost[0]} again: "
                f"gossamer resume {self._directory} --accept-loss"
            )
        await self.begin_anew(graph, lost)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member(text).agent for text in self.members)

    @property
    def soon(self) -> tuple[str, ...]:
        """Those who are to work after the crawl has come to rest, agents and masters."""
        return (*at_work(self._wanted or self.members), *self.masters.names)

    @property
    def joining(self) -> list[str]:
        """Those that are to join."""
        return [name for name in at_work(self._wanted or ()) if name not in at_work(self.members)]

    @property
    def is_wishing(self) -> bool:
        """The crawl is to rest, and to begin again with the members that it is to have then."""
        return self._wanted is not None

    def renew(self) -> None:
        """Let the crawl rest, and begin again by the graph as it is then."""
        self._wanted = self._wanted or self.members

    async def change(self, graph: Graph, cluster: Cluster, members: tuple[str, ...]) -> None:
        """Let a crawl of which no agent runs have these. Raises as :meth:`prepare`, and UsageError: the cluster cannot do that."""
        elsewhere = _elsewhere(cluster)
        if elsewhere is None and not cluster.is_shared:
            raise UsageError(self.told_kept)
        # An agent may have come back that lacks what it took, or has what it gave.
        await membership.settle(self._directory, graph.wiring, elsewhere)
        kept = members_of(self._directory)
        if members == kept and not membership.read_wishes(self._directory):
            want(self._directory, None)
            return
        if self._store_is_there is not None:
            await self._store_is_there()
        if kept and await membership.needs_rest(self._directory, graph.wiring, elsewhere, by_table=bool(self.masters)):
            # The agents that the crawl has bring each other what they owe.
            supervisor = Supervisor(self.orders(graph, cluster.folder, kept), cluster, self._report)
            moves = DomainMoves(self._directory, supervisor, self.move, self._report)
            supervisor.rest()
            async with meanwhile(moves.go_on()):
                await supervisor.work()
            if await membership.needs_rest(self._directory, graph.wiring, elsewhere, by_table=bool(self.masters)):
                raise ComponentFailed(
                    "the agents could not bring each other the URLs that they owe, so none of them can leave; "
                    f"gossamer resume {self._directory} goes on with those that the crawl has"
                )
        lines, policy = list[str](), None
        if self.masters.wiring is not None:
            policy = designation_policy(self.masters.wiring)
            await policy.start()
        try:
            await membership.change_members(self._directory, graph.wiring, members, lines.append, policy, elsewhere)
        except CrawlDirectoryError:
            if elsewhere is not None or not (has_store(graph.wiring) and is_changing(self._directory)):
                raise
            # An agent has lost its folder meanwhile, and is brought back later.
            await membership.settle(self._directory, graph.wiring)
        self.members = members_of(self._directory)
        want(self._directory, None)
        for line in lines:
            self._report(line)

    async def send_out(self, graph: Graph) -> None:
        """Let agents that rest here go on from the store, on machines of their own: it gets all of them, and their ledgers and logs
        here go. Raises CrawlDirectoryError: the store cannot be reached; nothing is gone."""
        directory, names = self._directory, at_work(self.members)
        async with AgentsAtRest(directory, graph.wiring) as agents:
            await agents.publish(members_of(directory))
        ends = await ends_of(directory, graph.wiring, names)
        replace_file(directory / JOINED, msgspec.json.encode(dict.fromkeys(names, "")))
        for name in names:
            (directory / log_path(name)).unlink(missing_ok=True)
            shutil.rmtree(Places(place_of(directory, name)).ledger)
            write_agent_end(directory, name, msgspec.structs.replace(ends[name], opening=0))

    def orders(self, graph: Graph, folder: Path, members: tuple[str, ...] | None = None) -> AgentOrders:
        among, moved = members or self.members, read_moved(self._directory)
        orders = AgentOrders(str(self._directory), among, self._accepts_loss, self.masters.names, moved)
        write_orders(folder, orders, graph.wiring, self.masters)
        return orders

    async def look_at_left(self, graph: Graph) -> None:
        """Learn how those stand that have left. Raises CrawlDirectoryError: a ledger is damaged."""
        working = at_work(self.members)
        gone = [name for text in self.members if (name := member(text).agent) not in working]
        still = {"pages_per_second": 0.0, "recent_pages_per_second": 0.0, "concurrency": 0, "in_flight": 0}
        ends = await ends_of(self._directory, graph.wiring, gone)
        self.left = [
            msgspec.structs.replace(one.standing, **still) for one in ends.values() if one.standing is not None
        ]

    def limit(self, supervisor: Supervisor, graph: Graph, began: float) -> None:
        """Tell a supervisor the limits of the whole crawl; `began` is the monotonic instant at which this run did."""
        frontier: Any = graph.sheet("frontier")
        supervisor.beats.ended_after = frontier.silence
        supervisor.lending.max_pages = self._left_of(frontier.max_pages, "pages")
        supervisor.lending.max_bytes = self._left_of(frontier.max_bytes, "bytes")
        supervisor.lending.ends_at = math.inf if frontier.max_time is None else began + frontier.max_time

    def _left_of(self, limit: int | None, used: str) -> int | None:
        """The part of a limit of the whole crawl that is left for agents at work; `used` names the count."""
        return None if limit is None else max(0, limit - sum(getattr(one, used) for one in self.left))


def _elsewhere(cluster: Cluster) -> Elsewhere | None:
    """The way to agents at rest that have machines of their own; None where they are here, or the cluster knows no such way."""
    return cluster.do_at_rest if isinstance(cluster, FarCluster) else None
