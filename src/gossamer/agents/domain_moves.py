"""Single domains that go from one agent to another while both fetch on, and agents that are told again what they have lost.

Place in the flow: :mod:`joining` wants a domain to move, and :class:`DomainMoves` lets both agents do the steps of a hand-over
(:mod:`handing_over`); in each of them :class:`MovingDomains` does a step. The giver hands out nothing more of these domains, waits
until nothing of them is in flight, and owes their URLs to the taker from then on. What the taker itself has found of them waits in
its outbox until it has the parcel: what the parcel does not know is queued then. A third agent that has not heard of the move sends
to the giver, which owes it to the taker.

From the parcel on the domains are the taker's. A process that is killed on the way begins with the note, and asks for none of these
domains before the move is over.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from gossamer.agents import handing_over
from gossamer.agents.handing_over import Gift, HandOver, Step, UnderWay
from gossamer.agents.lost import forget_loss, noted_losses, owe_again
from gossamer.agents.parcels import steps
from gossamer.agents.supervision import MoveDomains, OfferDomains
from gossamer.agents.url_exchange import ReceiveUrls
from gossamer.agents.wiring import OUTBOX, domain_rule_of, ledger_settings
from gossamer.crawls.control.server import AgentLine, AgentSilent
from gossamer.crawls.control.wire import Listed, RequestRefused
from gossamer.engine.files import Point, crash_at
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.recrawl.schedule import RevisitSchedule
from gossamer.storage.contract import OWED
from gossamer.storage.ledger.moving import has_host
from gossamer.storage.ledger.parcels import Moved, found_within, seen_in
from gossamer.storage.ledger.providers import LedgerFrontier
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.mailbox.staging import owed_task
from gossamer.storage.seen.memory import MemoryFlights
from gossamer.values.errors import UsageError
from gossamer.values.hosts import domain_point
from gossamer.values.url import host_of

if TYPE_CHECKING:
    from gossamer.agents.run import AgentRun
    from gossamer.agents.supervisor import Supervisor

#: Seconds for what is in flight of domains that are to move, and between two looks at it: where one answer takes longer, they stay.
QUIET = 5.0
_LOOK = 0.02

#: Flights that are looked at: more than there can be.
_ALL = 1 << 30

#: Domains of one move by the rule of balance: it takes a second at most, and the rule looks again soon.
MOST = 64

#: Seconds for a step of an agent, and before an agent that is away is asked again.
_STEP = 60.0
_AGAIN = 0.2


# In each agent.


class MovingDomains:
    """The part of one agent in moves."""

    def __init__(self, run: "AgentRun") -> None:
        self._run = run
        self._rule = domain_rule_of(ledger_settings(run.graph.wiring))
        self._came = set[str]()
        """Domains that other agents have asked before."""

    def begin(self) -> None:
        """Before anything is asked for: a move that is under way holds."""
        work = handing_over.under_way(self._run.directory)
        if work is None or not work.is_at_work:
            return
        for move in work.hand_overs or ():
            if move.giver == self._run.agent:
                self._withhold(move)
                if self._parcel(move).exists():
                    self._assign(move)
            elif move.taker == self._run.agent:
                self._hold(is_held=True)

    def offered(self, share: float, most: int) -> list[str]:
        """Some domains that have URLs which may be asked for now: this share of them, and at least one stays."""
        hosts = self._run.units.frontier.hosts_due()
        names = list(dict.fromkeys(map(self._rule.assignable, hosts)))
        number = min(most, max(1, int(len(names) * share)), len(names) - 1)
        return [names[place * len(names) // number] for place in range(number)] if number > 0 else []

    async def asked(self, step: Step | Literal["tell"], told: Mapping[str, Any]) -> Moved:
        """Do a step. Raises UsageError: the domains cannot move, and nothing has changed."""
        move = msgspec.convert(told, HandOver)
        match step:
            case "hold":
                self._hold(is_held=True)
            case "give":
                return await self._give(move)
            case "take":
                await self._take(move)
            case "drop":
                await self._done("drop", move)
                for polite in self._run.providers(HostPoliteness):
                    polite.let_go(lambda host: self._rule.assignable(host) in move.domains)
                self._let(None)
            case "release":
                self._hold(is_held=False)
                self._let(None)
            case "tell":
                return Moved(tasks=await owe_again(self._run, move.taker))
        return Moved()

    async def _done(self, step: Step, move: HandOver) -> Moved:
        """Do a step in the ledger, with room for everything else of the agent between two parts of it."""
        parts = steps(step, self._run.ledger, self._run.agent, move, self._parcel(move), is_at_work=True)
        while True:
            try:
                next(parts)
            except StopIteration as end:
                return cast(Moved, end.value)
            await asyncio.sleep(0)

    async def _give(self, move: HandOver) -> Moved:
        if not self._parcel(move).exists():
            # A parcel that would change while it is written is refused.
            self._queues()
            if self._run.units.frontier.reopening.is_searching:
                raise UsageError("the limit of depth has just changed, and its URLs are being looked for")
            for row in self._run.ledger.aside():
                if row.count and self._rule.assignable(row.family.owner.removeprefix("*.")) in move.domains:
                    raise UsageError(
                        f"URLs of {row.family.owner} are set aside, and are fetched as probes now and then"
                    )
            self._withhold(move)
            deadline = time.monotonic() + QUIET
            while self._is_asking(move):
                if time.monotonic() > deadline:
                    self._let(None)
                    raise UsageError(
                        f"pages of {', '.join(move.domains[:3])} are still being fetched after {QUIET:g} s"
                    )
                await asyncio.sleep(_LOOK)
            # From here on URLs of these domains are owed to the taker, so that nothing of them changes here.
            self._assign(move)
        return await self._done("give", move)

    async def _take(self, move: HandOver) -> None:
        ledger, frontier = self._run.ledger, self._run.units.frontier
        self._hold(is_held=True)
        self._came.update(move.domains)
        frontier.turns.is_doubtful = lambda host: self._rule.assignable(host) in self._came
        await self._done("take", move)
        for schedule in self._run.providers(RevisitSchedule):
            schedule.look_again()
        # Tasks that this agent has found of them meanwhile, and the giver never heard of.
        self._assign(move)
        owed = list(map(owed_task, found_within(ledger, OWED, move.arcs)))
        if owed:
            known = seen_in(ledger, self._parcel(move), [task.identity for task in owed])
            [receiver] = self._run.units.components(ReceiveUrls)
            receiver.intake().brought_home(owed, self._run.providers(Mailbox)[0], known)
        self._hold(is_held=False)
        frontier.stir()

    def _hold(self, *, is_held: bool) -> None:
        """Send nothing, and forget nothing that was sent, or go on."""
        self._run.graph_at_work.set(OUTBOX, {"holds": is_held})

    def _assign(self, move: HandOver) -> None:
        sheet: Any = self._run.graph.sheet("ring")
        moved = dict(text.rsplit("=", 1) for text in sheet.moved)
        self._run.graph_at_work.set(
            "ring", {"moved": handing_over.as_settings({**moved, **dict.fromkeys(move.domains, move.taker)})}
        )

    def _withhold(self, move: HandOver) -> None:
        domains = frozenset(move.domains)
        self._let(lambda host: self._rule.assignable(host) in domains)

    def _let(self, is_withheld: Callable[[str], bool] | None) -> None:
        self._queues().withheld = is_withheld
        self._run.units.frontier.turns.is_withheld = is_withheld or (lambda host: False)

    def _queues(self) -> LedgerFrontier:
        for queues in self._run.providers(LedgerFrontier):
            return queues
        raise UsageError("the queues of this crawl cannot be divided anew")

    def _is_asking(self, move: HandOver) -> bool:
        """Whether something of these domains is on its way, from the hand-out to the commit."""
        arcs, domains = move.arcs, move.domains
        if self._run.ledger.queues.is_flying(lambda host: has_host(arcs, host)):
            return True
        hosts = [host.name for host in self._run.units.frontier.turns if host.asking or host.errands]
        flights = (one for unit in self._run.providers(MemoryFlights) for one in unit.oldest(_ALL))
        return any(self._rule.assignable(host) in domains for host in (*hosts, *map(host_of, flights)))

    def _parcel(self, move: HandOver) -> Path:
        return self._run.directory / move.parcel


# In the supervisor.


class DomainMoves:
    """Moves domains of a crawl at work, one move at a time."""

    def __init__(
        self,
        directory: Path,
        supervisor: "Supervisor",
        moved: Callable[[Mapping[str, str]], Mapping[str, str]],
        report: Callable[[str], None],
    ) -> None:
        """`moved` notes for every later run which agent has domains, and returns all that have moved so far."""
        self._directory = directory
        self._supervisor = supervisor
        self._moved = moved
        self._report = report
        self._is_at_it = False
        self.before_step: Callable[[str], None] = lambda _step: None
        """Called before an agent is asked for a step; an exception leaves the move to the next run, as a crash does."""
        supervisor.is_moving = lambda: handing_over.is_moving(directory)

    @property
    def is_under_way(self) -> bool:
        return self._is_at_it or handing_over.is_moving(self._directory)

    async def assign(self, given: Mapping[str, str], owner: Callable[[str], str]) -> str:
        """Let agents have domains that a person gives to them; returns what was done, in words. Raises as :meth:`move`."""
        moves: dict[tuple[str, str], list[str]] = {}
        for domain, taker in given.items():
            if (giver := owner(domain)) != taker:
                moves.setdefault((giver, taker), []).append(domain)
        for (giver, taker), domains in moves.items():
            await self.move(giver, taker, domains)
        lines = [f"{taker} has {', '.join(domains)} of {giver} now" for (giver, taker), domains in moves.items()]
        return "\n".join(lines) or "nothing has to move"

    async def even_out(self, giver: str, taker: str, share: float) -> None:
        """Let an agent have this share of the domains that another one asks now, as far as they can move."""
        # Where one does not answer or refuses, domains stay where they are.
        with suppress(AgentSilent, RequestRefused, UsageError), closing(AgentLine(self._directory, giver)) as line:
            offered = await line.ask(OfferDomains(share, MOST))
            if isinstance(offered, Listed) and offered.names and not self.is_under_way:
                await self.move(giver, taker, offered.names)

    async def move(self, giver: str, taker: str, domains: Sequence[str]) -> Moved:
        """Let an agent have these domains of another one; both are at work. Raises UsageError: they cannot move, or another
        move is under way. Nothing has changed."""
        if self.is_under_way:
            raise UsageError("other domains are moving; try again in some seconds")
        if self._supervisor.is_resting:
            raise UsageError("all agents rest for some seconds; ask again")
        arcs = tuple(handing_over.as_arcs(map(domain_point, domains)))
        one = HandOver(giver, taker, arcs, f"{handing_over.PARCELS}/{time.time_ns():x}", tuple(domains))
        return await self._driven(UnderWay((one,), is_at_work=True))

    async def go_on(self) -> None:
        """Finish moves that were interrupted, and let agents that have lost their ledgers be told what others know."""
        for agent, loss in noted_losses(self._directory, with_links=True).items():
            told = 0
            for other in [name for name in self._supervisor.agents if name != agent]:
                told += (await self._ask(other, "tell", HandOver("", agent, (), ""))).tasks
                crash_at(Point.JOINING)
            forget_loss(self._directory, agent, loss)
            self._report(f"{agent} was told {told:,} URLs of its domains again, which pages of other agents lead to")
        if not self._is_at_it and (work := handing_over.under_way(self._directory)) is not None and work.is_at_work:
            await self._driven(work)

    async def _driven(self, work: UnderWay) -> Moved:
        self._is_at_it = True
        began, [move] = time.monotonic(), work.hand_overs or ()

        async def commit() -> None:
            moved_so_far = self._moved(dict.fromkeys(move.domains, move.taker))
            await self._supervisor.giving.give("ring", {"moved": handing_over.as_settings(moved_so_far)})

        try:
            [(_, _, moved)] = await handing_over.carry_out(self._directory, work, self._step, commit)
        finally:
            self._is_at_it = False
        names = ", ".join(move.domains[:3]) + (f" and {len(move.domains) - 3} more" if len(move.domains) > 3 else "")
        self._report(
            f"{move.taker} took {names} with {moved.tasks:,} queued URLs from {move.giver} in {time.monotonic() - began:.1f} s"
        )
        return moved

    async def _step(self, step: Step, agents: Sequence[str], work: UnderWay) -> list[Gift]:
        """See :class:`~gossamer.agents.handing_over.DoesStep`. One move is under way at a time."""
        [agent], [one] = agents, work.hand_overs or ()
        return [(one.giver, one.taker, await self._ask(agent, step, one))]

    async def _ask(self, agent: str, step: Step | Literal["tell"], move: HandOver) -> Moved:
        """Let an agent do a step, as soon as it answers. Raises UsageError: it refuses."""
        self.before_step(step)
        while True:
            with closing(
                AgentLine(self._directory, agent)
            ) as line:  # of its own: the supervisor goes on asking for news
                try:
                    found: Moved = await line.told(MoveDomains(step, msgspec.to_builtins(move)), Moved, _STEP)
                    return found
                except AgentSilent:
                    await asyncio.sleep(_AGAIN)
                except RequestRefused as refused:
                    raise UsageError(str(refused)) from None
