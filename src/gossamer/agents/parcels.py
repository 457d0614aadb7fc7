"""The work of one agent where domains change hands and no agent runs: each opens its own ledger, in a process of its own.

Place in the flow: :mod:`membership` says what is to be done, and asks here (:class:`AgentsAtRest`); a worker
(:mod:`gossamer.engine.worker`) does it (:func:`do`). The giver writes parcels
(:mod:`gossamer.storage.ledger.parcels`) beside its own ledger, and the taker reads them. All of it can be killed, and
done again. Such a process also says how an agent stands that was killed, and publishes one that rests.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from gossamer.agents.digests import CLAIMS_DUE, has_unclaimed
from gossamer.agents.ended import AgentEnd, end_of_ledger, ledger_of, note_agent_end, noted_end, opened_ledger
from gossamer.agents.handing_over import (
    DividedByRing,
    DividedByTable,
    RingMoves,
    TableMoves,
    lies_in,
    read_moved,
)
from gossamer.agents.lost import begin_anew, make_table_again
from gossamer.agents.masters import designation_policy, masters_of
from gossamer.agents.ring import held_domains, let_go
from gossamer.agents.wiring import ledger_settings
from gossamer.crawls.control.resting import checkpoint_those
from gossamer.engine.wiring import Wiring
from gossamer.engine.worker import Caller, PeerGone, Use
from gossamer.engine.workers import Worker, WorkerFailed
from gossamer.frontier.politeness.rules import ORDERS
from gossamer.recrawl.learning import RATES
from gossamer.recrawl.ledger import adopt, disown, noted, release
from gossamer.storage.contract import COPIES
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger
from gossamer.storage.ledger.moving import dropping
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import (
    Moved,
    at_once,
    check_secret,
    giving,
    head_of,
    is_taken,
    parcel_path,
    parcels_for,
    taking,
)
from gossamer.storage.logs import LOG_PATH, MergeMark, log_path, write_mark
from gossamer.storage.members import write_members
from gossamer.values.agents import agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError

#: Where parcels of domains that move while agents work lie inside the crawl directory.
PARCELS = "state/supervisor/parcels"

#: How often a process that dies is begun again, which does no harm: what was done is done.
TRIES = 3

#: Owners of spaces who keep under no host what holds for all agents: the orders of processors, the rates of change of
#: all pages, and claims that no table has yet.
FOR_ALL = (ORDERS.owner, RATES.owner, COPIES.owner)

T = TypeVar("T")


class MemberChange(msgspec.Struct, frozen=True):
    """A change of a crawl's agents that is under way."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    by_table: bool = False
    """Masters have said what moves, so that the table says whether it has."""
    by_parcels: bool = False
    """Not so in the notes of older versions: who gains domains has copied them before the crawl has its new agents."""
    number: int = 0
    """Of the division that it makes; 0 in the notes of older versions."""
    behind: tuple[str, ...] = ()
    """Where a change is done again for agents that have gone back to before it: these. The others take what they have not."""

    @property
    def new(self) -> tuple[str, ...]:
        known = {member(text).agent for text in self.before}
        return tuple(name for text in self.after if (name := member(text).agent) not in known)

    @property
    def givers(self) -> tuple[str, ...]:
        """The names of those that have domains before, as far as they have to give them."""
        return tuple(name for name in at_work(self.before) if not self.behind or name in self.behind)

    def moves(self, directory: Path) -> RingMoves | TableMoves:
        return TableMoves(directory) if self.by_table else RingMoves(self.before, self.after, read_moved(directory))

    def division(self, directory: Path, settings: Mapping[str, Any]) -> DividedByRing | DividedByTable:
        """As it is before."""
        if self.by_table:
            return DividedByTable(directory, self.before, settings)
        return DividedByRing(self.before, settings, read_moved(directory))


class Deed(msgspec.Struct, frozen=True):
    """The orders of one agent."""

    deed: str
    directory: str
    ledger: dict[str, Any]
    """Settings of its ledger."""
    agent: str
    change: MemberChange = MemberChange()
    words: tuple[str, ...] = ()
    """URLs, or a name."""


class AgentsAtRest:
    """Processes that work for agents at rest: one for each, which stays until all is done."""

    def __init__(self, directory: Path, wiring: Wiring) -> None:
        self._directory = directory
        self._settings = dict(ledger_settings(wiring))
        self._workers: dict[str, Worker] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))

    async def prepare(self, agents: Iterable[str]) -> None:
        """Let processes load the program that are to work soon. Raises CrawlDirectoryError: the system starts none."""
        for agent in agents:
            if agent not in self._workers:
                try:
                    self._workers[agent] = await Worker.start(Use("gossamer.agents.parcels:do"), stderr=None)
                except OSError as error:
                    raise CrawlDirectoryError(f"no process can be started: {error.strerror}") from None

    async def do(
        self, deed: str, agents: Sequence[str], change: MemberChange | None = None, words: Iterable[str] = ()
    ) -> None:
        """Let agents do something. Raises CrawlDirectoryError: one cannot."""
        await self.told(deed, agents, Any, change, words)

    async def told(
        self, deed: str, agents: Sequence[str], form: Any, change: MemberChange | None = None, words: Iterable[str] = ()
    ) -> list[Any]:
        """What each agent says when it has done something, as values of this form. Raises CrawlDirectoryError: one cannot."""
        await self.prepare(agents)
        deeds = [
            Deed(deed, str(self._directory), self._settings, agent, change or MemberChange(), tuple(words))
            for agent in agents
        ]
        said = list[Any]()
        # All of them end before a failure of one is told: another would begin its process anew while these are being ended.
        for answer in await asyncio.gather(*map(self._done, deeds), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            said.append(msgspec.msgpack.decode(answer, type=form) if answer else None)
        return said

    async def _done(self, deed: Deed) -> bytes:
        for attempt in range(1, TRIES + 1):
            await self.prepare([deed.agent])
            worker = self._workers[deed.agent]
            await worker.put(deed)
            try:
                return await worker.answer()
            except WorkerFailed as failed:
                await self._workers.pop(deed.agent).end()
                if failed.reason == "refused" or attempt == TRIES:
                    raise CrawlDirectoryError(str(failed)) from None
        raise AssertionError("unreachable")


async def ends_of(directory: Path, wiring: Wiring, agents: Iterable[str]) -> dict[str, AgentEnd]:
    """How agents stand that do not work: by what they have told, or by a process for each that was killed."""
    found: dict[str, AgentEnd] = {}
    killed = list[str]()
    for agent in agents:
        own = ledger_of(directory, ledger_settings(wiring), agent)
        if (end := noted_end(directory, agent)) is not None:
            found[agent] = end
        elif own.places.ledger.is_dir():
            killed.append(agent)
        else:
            found[agent] = end_of_ledger(directory, own)
    if killed:
        async with AgentsAtRest(directory, wiring) as at_rest:
            found |= dict(zip(killed, await at_rest.told("look", killed, AgentEnd), strict=True))
    return found


def do(deed: Deed, caller: Caller) -> Any:
    """Do it; the parent may be killed meanwhile, and the next one does it again."""
    directory = Path(deed.directory)
    own = ledger_of(directory, deed.ledger, deed.agent)
    match deed.deed:
        case "look":
            return end_of_ledger(directory, own)
        case "begin":
            division = deed.change.division(directory, deed.ledger)
            files = begin_anew(directory, deed.ledger, deed.agent, division)
            note_agent_end(directory, deed.agent, own)
            return files
        case "unseen":
            with own.looking():
                return [url for url in deed.words if not own.is_seen(url)]
        case "checkpoint":
            return checkpoint_those(directory, [deed.agent], *deed.words)
        case "table":
            masters = masters_of(directory).wiring
            assert masters is not None
            policy = designation_policy(masters)
            asyncio.run(policy.start())
            return list(make_table_again(directory, deed.ledger, deed.change.before, policy))
        case _:
            pass
    is_new = deed.deed == "take" and deed.agent in (*deed.change.new, *deed.change.behind)
    with ExitStack() as stack:
        told = _DEEDS[deed.deed](
            opened_ledger(directory, deed.ledger, deed.agent, stack, existing=not is_new), deed, _wanted(caller)
        )
    note_agent_end(directory, deed.agent, own)
    return told


def _give(ledger: RocksLedger, deed: Deed, wanted: Callable[[], None]) -> list[tuple[str, str, Moved]]:
    """A gift: by whom, to whom, how much. Where agents are lost, it may be done again after others have taken."""
    directory, told = Path(deed.directory), []
    check_secret(ledger)
    for taker, arcs in deed.change.moves(directory).of(deed.agent):
        parcel = parcel_path(directory, deed.agent, taker, deed.change.number)
        moved = at_once(giving(ledger, arcs, parcel, common=FOR_ALL, notes=noted(ledger)), wanted)
        told.append((deed.agent, taker, moved))
    return told


def _take(ledger: RocksLedger, deed: Deed, wanted: Callable[[], None]) -> None:
    knows_all = deed.change.behind and deed.agent not in deed.change.behind
    for parcel in parcels_for(Path(deed.directory), deed.agent, deed.change.number):
        if knows_all and is_taken(ledger, parcel):
            continue
        at_once(taking(ledger, parcel), wanted)
        taken(ledger, parcel, deed.agent)


def _drop(ledger: RocksLedger, deed: Deed, wanted: Callable[[], None]) -> None:
    for _, arcs in deed.change.moves(Path(deed.directory)).of(deed.agent):
        release(ledger, deed.agent, arcs)
        at_once(dropping(ledger, arcs), wanted)


def _undo(ledger: RocksLedger, deed: Deed, wanted: Callable[[], None]) -> None:
    """Take out what an older version has copied here."""
    moves = deed.change.moves(Path(deed.directory))
    for arcs in (arcs for giver in deed.change.givers for taker, arcs in moves.of(giver) if taker == deed.agent):
        disown(ledger, deed.agent, arcs)
        at_once(dropping(ledger, arcs, spaces=False), wanted)
        if deed.change.by_table:
            let_go(ledger, [domain for domain in held_domains(ledger) if lies_in(arcs, domain)])


def _publish(ledger: RocksLedger, deed: Deed, wanted: Callable[[], None]) -> None:
    from gossamer.backup.one_agent import publish_at_rest

    publish_at_rest(Path(deed.directory), deed.words[0], ledger)


_DEEDS: Mapping[str, Callable[[RocksLedger, Deed, Callable[[], None]], Any]] = {
    "divide": lambda ledger, deed, wanted: divide(Path(deed.directory), ledger),
    "forget-log": lambda ledger, deed, wanted: forget_shared_log(ledger),
    "give": _give,
    "take": _take,
    "drop": _drop,
    "undo": _undo,
    "publish": _publish,
}


def taken(ledger: RocksLedger, parcel: Path, agent: str) -> None:
    """A parcel was read into the ledger of this agent: let its parts know that keep more than entries."""
    head = head_of(parcel)
    adopt(ledger, head, agent)
    if has_unclaimed(head.counters):
        # The giver was alone when it met documents that the taker now has.
        with ledger.group() as group:
            group.count(CLAIMS_DUE)


def _wanted(caller: Caller) -> Callable[[], None]:
    """Ends a process whose parent was killed: the next one needs the ledger."""

    def check() -> None:
        if caller.has_closed(0.0):
            raise PeerGone("the supervisor is gone")

    return check


# A crawl that was begun by one agent in one process becomes a divided one that has one agent: its log is the agent's from then on.
# :mod:`membership` divides a crawl before other agents join it. It is a divided one from the instant in which its members are
# written; what is made before that is in no other process' way.

#: Bytes of the log that are copied at once.
_CHUNK = 1 << 20

_OWN = log_path(agent_name(0))


def divide(directory: Path, ledger: RocksLedger) -> None:
    """Make a crawl of one agent at rest a divided one, with the same agent. Raises CrawlDirectoryError: what was committed of
    its log is not there, or it cannot be copied. Nothing has changed."""
    end = ledger.committed_ends().get(LOG_PATH, 0)
    try:
        if end:
            _copy(directory / LOG_PATH, directory / _OWN, end)
        write_mark(directory, MergeMark({_OWN: end}, end))
        ledger.give_up_ends({_OWN: end})
        share_secret(directory / STATE_DIRECTORY, ledger.secret)
        write_members(directory, [agent_name(0)])
    except OSError as error:
        raise CrawlDirectoryError(f"the crawl in {directory} cannot be divided: {error.strerror}") from None
    forget_shared_log(ledger)


def forget_shared_log(ledger: RocksLedger) -> None:
    """The log of a divided crawl is made of those of its agents: an agent has committed nothing of it."""
    ledger.give_up_ends({LOG_PATH: None})


def _copy(source: Path, target: Path, end: int) -> None:
    """Copy the first bytes of a file: whole, or not at all."""
    fresh = target.with_name(f"{target.name}.new")
    left = end
    with source.open("rb") as old, fresh.open("wb") as new:
        while left and (data := old.read(min(left, _CHUNK))):
            new.write(data)
            left -= len(data)
    if left:
        fresh.unlink()
        raise CrawlDirectoryError(
            f"{source} is shorter than what was committed of it; resume the crawl with one agent and --accept-loss first"
        )
    fresh.replace(target)
