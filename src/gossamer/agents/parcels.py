"""The work of one agent where domains change hands and no agent runs: each opens its own ledger, in a process of its own.

Place in the flow: :mod:`membership` says what is to be done, and asks here (:class:`AgentsAtRest`); a worker
(:mod:`gossamer.engine.worker`) does it (:func:`do`). The giver writes parcels
(:mod:`gossamer.storage.ledger.parcels`) into a folder of the supervisor, and the taker reads them. All of it can be killed, and
done again.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from gossamer.agents.digests import CLAIMS_DUE, has_unclaimed
from gossamer.agents.handing_over import RingMoves, TableMoves, lies_in, read_moved
from gossamer.agents.held_domains import held_domains, let_go
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.engine.worker import Caller, PeerGone, Use
from gossamer.engine.workers import Worker, WorkerFailed
from gossamer.frontier.politeness.orders import ORDERS
from gossamer.recrawl.learning import RATES
from gossamer.recrawl.ledger import adopt, disown, noted, release
from gossamer.storage.contract import COPIES
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.moving import dropping
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import Moved, at_once, check_secret, giving, head_of, taking
from gossamer.storage.logs import LOG_PATH, MergeMark, log_path, write_mark
from gossamer.storage.recovery import write_members
from gossamer.values.agents import agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError

#: Where parcels lie inside the crawl directory, each called after its giver and its taker.
PARCELS = "state/supervisor/parcels"

#: How often a process that dies is begun again, which does no harm: what was done is done.
TRIES = 3

#: Owners of spaces who keep under no host what holds for all agents: the orders of processors, the rates of change of
#: all pages, and claims that no table has yet.
FOR_ALL = (ORDERS.owner, RATES.owner, COPIES.owner)

_Deed = Literal["divide", "forget-log", "give", "take", "drop", "undo"]


class MemberChange(msgspec.Struct, frozen=True):
    """A change of a crawl's agents that is under way."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    by_table: bool = False
    """Masters have said what moves, so that the table says whether it has."""
    by_parcels: bool = False
    """Not so in the notes of older versions: who gains domains has copied them before the crawl has its new agents."""

    @property
    def new(self) -> tuple[str, ...]:
        """The names of those that the crawl never had."""
        known = {member(text).agent for text in self.before}
        return tuple(name for text in self.after if (name := member(text).agent) not in known)

    @property
    def givers(self) -> tuple[str, ...]:
        """The names of those that have domains before."""
        return at_work(self.before)

    def moves(self, directory: Path) -> RingMoves | TableMoves:
        return TableMoves(directory) if self.by_table else RingMoves(self.before, self.after, read_moved(directory))


class Deed(msgspec.Struct, frozen=True):
    """What one agent is to do."""

    directory: str
    ledger: dict[str, Any]
    """Settings of its ledger."""
    agent: str
    deed: _Deed
    change: MemberChange


class AgentsAtRest:
    """Processes that work for agents at rest: one for each, which stays until all is done."""

    def __init__(self, directory: Path, wiring: Wiring) -> None:
        self._directory = directory
        self._settings = dict(wiring.providers["ledger"].settings)
        self._workers: dict[str, Worker] = {}

    def __repr__(self) -> str:
        return f"<AgentsAtRest of {self._directory}: {', '.join(self._workers)}>"

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
        self, deed: _Deed, agents: Sequence[str], change: MemberChange | None = None
    ) -> list[tuple[str, str, Moved]]:
        """Let agents do something; returns what was given: by whom, to whom, how much.

        Raises:
            CrawlDirectoryError: one cannot.
        """
        await self.prepare(agents)
        told = await asyncio.gather(*(self._done(deed, agent, change or MemberChange((), ())) for agent in agents))
        return [one for answer in told for one in answer]

    async def _done(self, deed: _Deed, agent: str, change: MemberChange) -> list[tuple[str, str, Moved]]:
        for attempt in range(1, TRIES + 1):
            await self.prepare([agent])
            worker = self._workers[agent]
            await worker.put(Deed(str(self._directory), self._settings, agent, deed, change))
            try:
                return msgspec.msgpack.decode(await worker.answer(), type=list[tuple[str, str, Moved]])
            except WorkerFailed as failed:
                await self._workers.pop(agent).end()
                if failed.reason == "refused" or attempt == TRIES:
                    raise CrawlDirectoryError(str(failed)) from None
        raise AssertionError("unreachable")


def do(deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    """Do it; the parent may be killed meanwhile, and the next one does it again."""
    is_new = deed.deed == "take" and deed.agent in deed.change.new
    with ExitStack() as stack:
        ledger = opened_ledger(Path(deed.directory), deed.ledger, deed.agent, stack, existing=not is_new)
        return _DEEDS[deed.deed](ledger, deed, caller)


def _divide(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    divide(Path(deed.directory), ledger)
    return []


def _forget_log(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    forget_shared_log(ledger)
    return []


def _give(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    directory, told = Path(deed.directory), []
    check_secret(ledger)
    for taker, arcs in deed.change.moves(directory).of(deed.agent):
        parcel = directory / PARCELS / f"{deed.agent}-{taker}"
        moved = at_once(giving(ledger, arcs, parcel, common=FOR_ALL, notes=noted(ledger)), _wanted(caller))
        told.append((deed.agent, taker, moved))
    return told


def _take(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    for parcel in sorted((Path(deed.directory) / PARCELS).glob(f"*-{deed.agent}")):
        at_once(taking(ledger, parcel), _wanted(caller))
        taken(ledger, parcel, deed.agent)
    return []


def _drop(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    for _, arcs in deed.change.moves(Path(deed.directory)).of(deed.agent):
        release(ledger, deed.agent, arcs)
        at_once(dropping(ledger, arcs), _wanted(caller))
    return []


def _undo(ledger: RocksLedger, deed: Deed, caller: Caller) -> list[tuple[str, str, Moved]]:
    """Take out what an older version has copied here."""
    moves = deed.change.moves(Path(deed.directory))
    for arcs in (arcs for giver in deed.change.givers for taker, arcs in moves.of(giver) if taker == deed.agent):
        disown(ledger, deed.agent, arcs)
        at_once(dropping(ledger, arcs, spaces=False), _wanted(caller))
        if deed.change.by_table:
            let_go(ledger, [domain for domain in held_domains(ledger) if lies_in(arcs, domain)])
    return []


_DEEDS = {
    "divide": _divide,
    "forget-log": _forget_log,
    "give": _give,
    "take": _take,
    "drop": _drop,
    "undo": _undo,
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
    """Make a crawl of one agent at rest a divided one, with the same agent.

    Args:
        directory: of the crawl.
        ledger: its one ledger, open.

    Raises:
        CrawlDirectoryError: what was committed of its log is not there, or it cannot be copied. Nothing has changed.
    """
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


def opened_ledger(
    directory: Path, settings: Mapping[str, Any], agent: str, stack: ExitStack, *, existing: bool = True
) -> RocksLedger:
    """An agent's ledger as its crawl has it, open until `stack` is left. Raises as `open` does.

    Its next owner takes it for one whose process was killed: who asks hosts that another one has just asked waits before the first
    request, as after a kill.
    """
    ledger = ledger_of(directory, settings, agent, existing=existing)
    ledger.open()
    stack.callback(ledger.abandon)
    return ledger


def ledger_of(directory: Path, settings: Mapping[str, Any], agent: str, *, existing: bool = False) -> RocksLedger:
    """An agent's ledger by the settings that its crawl has for ledgers, not open."""
    given = {**settings, "directory": str(directory), "agent": agent, "existing": existing}
    return RocksLedger(build(LedgerSheet, given))
