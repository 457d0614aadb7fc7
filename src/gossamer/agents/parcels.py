"""The work of agents at rest: each opens its own ledger, in a process of its own.

Place in the flow: :mod:`membership` lets domains change hands (:mod:`handing_over`), and asks here (:class:`AgentsAtRest`); a
worker (:mod:`gossamer.engine.worker`) does it (:func:`do`). In a ledger the steps are the same as at work (:func:`steps`): the
giver writes parcels (:mod:`gossamer.storage.ledger.parcels`) beside its own ledger, and the taker reads them. All of it can be
killed, and done again. Such a process also says how an agent stands that was killed, and publishes one that rests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from gossamer.agents import ended
from gossamer.agents.digests import CLAIMS_DUE, has_unclaimed
from gossamer.agents.handing_over import Gift, HandOver, Step, UnderWay, division, keeps_parcels, lies_in, under_way
from gossamer.agents.lost import begin_anew, make_table_again
from gossamer.agents.masters import designation_policy, masters_of
from gossamer.agents.ring import held_domains, let_go
from gossamer.agents.wiring import STORE_USE, ledger_settings
from gossamer.crawls.control.resting import checkpoint_those
from gossamer.engine.errors import refusing
from gossamer.engine.files import pieces_of
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.engine.worker import Caller, PeerGone, Use
from gossamer.engine.workers import Worker, WorkerFailed
from gossamer.frontier.limits import FrontierSheet
from gossamer.frontier.politeness.rules import ORDERS
from gossamer.recrawl.learning import RATES
from gossamer.recrawl.ledger import adopt, disown, noted, release
from gossamer.storage.contract import COPIES
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger
from gossamer.storage.ledger.moving import dropping
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import Moved, at_once, check_secret, giving, head_of, taking
from gossamer.storage.logs import LOG_PATH, MergeMark, log_path, write_mark
from gossamer.storage.members import write_members
from gossamer.values.agents import agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError

#: How often a process that dies is begun again, which does no harm: a finished step stays finished.
TRIES = 3

#: Seconds between two looks at whether a process is suspended.
_LOOK = 0.5

#: Owners of spaces who keep under no host what holds for all agents: the orders of processors, the rates of change of
#: all pages, and claims that no table has yet.
FOR_ALL = (ORDERS.owner, RATES.owner, COPIES.owner)

T = TypeVar("T")


class Deed(msgspec.Struct, frozen=True):
    """The orders of one agent."""

    deed: str
    directory: str
    ledger: dict[str, Any]
    """Settings of its ledger."""
    agent: str
    words: tuple[str, ...] = ()
    """URLs, names of members, or a name."""
    by_table: bool = False
    """Masters say whose domains are."""


#: Does something where its agent is; returns what it says. Raises CrawlDirectoryError: it cannot be done.
Elsewhere = Callable[[Deed], Awaitable[bytes]]


class AgentsAtRest:
    """Processes that work for agents at rest: one for each, which stays until all is done."""

    def __init__(self, directory: Path, wiring: Wiring, elsewhere: Elsewhere | None = None) -> None:
        """`elsewhere` does what is to be done where agents have machines of their own."""
        self._directory = directory
        self.elsewhere = elsewhere
        self._patience = build(FrontierSheet, wiring.components["frontier"].settings).silence
        """Seconds after which a process that is suspended is ended, as that of an agent at work: all others wait for it."""
        self._settings = dict(ledger_settings(wiring))
        self._stores = [str(plan.settings["url"]) for plan in wiring.providers.values() if plan.use == STORE_USE]
        self._workers: dict[str, Worker] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))

    async def prepare(self, agents: Iterable[str]) -> None:
        """Let processes load the program that are to work soon. Raises CrawlDirectoryError: the system starts none."""
        for agent in agents:
            if agent not in self._workers and self.elsewhere is None:
                with refusing(CrawlDirectoryError, "no process can be started"):
                    self._workers[agent] = await Worker.start(Use("gossamer.agents.parcels:do"), stderr=None)

    async def step(self, step: Step, agents: Sequence[str], work: UnderWay) -> Sequence[Gift]:
        """See :class:`~gossamer.agents.handing_over.DoesStep`."""
        if step in ("hold", "release"):
            return ()  # all rest
        if step == "give" and not work.behind:
            # Those that have nothing to give must be able to take.
            agents = list(dict.fromkeys((*agents, *at_work(work.before))))
        elif step != "give" and keeps_parcels(self._directory):
            # One that has lost its folder meanwhile is brought back from the store later, and is behind then.
            known = set(at_work(work.before)) - set(work.behind)
            agents = [name for name in agents if not (name in known and ended.is_ledger_gone(self._directory, name))]
        return list(chain.from_iterable(await self.told(step, agents, list[Gift])))

    async def publish(self, members: Iterable[str]) -> None:
        """Publish agents in the store; nothing is shipped of one that has published that it rests."""
        from gossamer.backup.one_agent import bring_agent_back

        [url] = self._stores
        found = [one for one in map(member, members) if one.capacity or self.elsewhere is None]
        for one in found:
            # No supervisor looks after one that has left.
            if not one.capacity and ended.is_ledger_gone(self._directory, one.agent):
                await asyncio.to_thread(bring_agent_back, self._directory, url, one.agent, 0.0, is_dead=True)
        await self.told("publish", list(dict.fromkeys(one.agent for one in found)), words=[url])

    async def told(
        self, deed: str, agents: Sequence[str], form: Any = Any, words: Iterable[str] = (), *, by_table: bool = False
    ) -> list[Any]:
        """Let agents do something; returns what each says then, as values of this form. Raises CrawlDirectoryError: one cannot."""
        await self.prepare(agents)
        deeds = [Deed(deed, str(self._directory), self._settings, agent, tuple(words), by_table) for agent in agents]
        said = list[Any]()
        # All of them end before a failure of one is told: another would begin its process anew while these are being ended.
        for answer in await asyncio.gather(*map(self.elsewhere or self.done, deeds), return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            said.append(msgspec.msgpack.decode(answer, type=form) if answer else None)
        return said

    async def done(self, deed: Deed) -> bytes:
        """Do one thing on this machine; returns what it says. Raises CrawlDirectoryError: it cannot be done."""
        for attempt in range(1, TRIES + 1):
            await self.prepare([deed.agent])
            worker = self._workers[deed.agent]
            await worker.put(deed)
            try:
                return await self._answer(worker)
            except WorkerFailed as failed:
                await self._workers.pop(deed.agent).end()
                if failed.reason == "refused" or attempt == TRIES:
                    raise CrawlDirectoryError(str(failed)) from None
        raise AssertionError("unreachable")

    async def _answer(self, worker: Worker) -> bytes:
        answer, seconds = asyncio.create_task(worker.answer()), 0.0
        try:
            while not (await asyncio.wait([answer], timeout=_LOOK))[0]:
                # Looks are counted, and no time: this process may have been suspended, too.
                seconds = seconds + _LOOK if worker.is_suspended else 0.0
                if seconds >= self._patience:
                    raise WorkerFailed(
                        "time", f"a process was suspended for {seconds:.0f} s while agents rested; resume the crawl"
                    )
            return answer.result()
        finally:
            answer.cancel()


async def ends_of(
    directory: Path, wiring: Wiring, agents: Iterable[str], elsewhere: Elsewhere | None = None
) -> dict[str, ended.AgentEnd]:
    """How agents stand that do not work: by what they have told, or by a process for each that was killed."""
    found: dict[str, ended.AgentEnd] = {}
    killed = list[str]()
    for agent in agents:
        own = ended.ledger_of(directory, ledger_settings(wiring), agent)
        if (end := ended.noted_end(directory, agent)) is not None:
            found[agent] = end
        elif own.places.ledger.is_dir() or elsewhere is not None:
            killed.append(agent)
        else:
            found[agent] = ended.end_of_ledger(directory, own)
    if killed:
        async with AgentsAtRest(directory, wiring, elsewhere) as at_rest:
            found |= dict(zip(killed, await at_rest.told("look", killed, ended.AgentEnd), strict=True))
    return found


def do(deed: Deed, caller: Caller) -> Any:
    """Do it; the parent may be killed meanwhile, and the next one does it again."""
    directory = Path(deed.directory)
    own = ended.ledger_of(directory, deed.ledger, deed.agent)
    match deed.deed:
        case "look":
            return ended.end_of_ledger(directory, own)
        case "begin":
            known = division(directory, deed.words, deed.ledger, by_table=deed.by_table)
            files = begin_anew(directory, deed.ledger, deed.agent, known)
            ended.note_agent_end(directory, deed.agent, own)
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
            return list(make_table_again(directory, deed.ledger, deed.words, policy))
        case _:
            pass
    with ExitStack() as stack:
        told: list[Gift] | None = None
        if deed.deed not in ("divide", "forget-log", "publish"):
            told = _steps_at_rest(deed, stack, caller)
        else:
            ledger = ended.opened_ledger(directory, deed.ledger, deed.agent, stack)
            if deed.deed == "divide":
                divide(directory, ledger)
            elif deed.deed == "forget-log":
                forget_shared_log(ledger)
            else:
                from gossamer.backup.one_agent import publish_at_rest

                publish_at_rest(directory, deed.words[0], ledger)
    ended.note_agent_end(directory, deed.agent, own)
    return told


def _steps_at_rest(deed: Deed, stack: ExitStack, caller: Caller) -> list[Gift]:
    """Do a step of the hand-overs that are under way, as far as they are this agent's."""

    def wanted() -> None:
        if caller.has_closed(0.0):  # it was killed, and the next one needs the ledger
            raise PeerGone("the supervisor is gone")

    directory, agent, told = Path(deed.directory), deed.agent, []
    work = under_way(directory)
    assert work is not None
    known = {member(text).agent for text in work.before}.difference(work.behind)
    is_new = deed.deed == "take" and agent not in known
    ledger = ended.opened_ledger(directory, deed.ledger, agent, stack, existing=not is_new)
    if deed.deed == "give":
        check_secret(ledger)
    is_taker = deed.deed in ("take", "undo")
    for one in [one for one in work.hand_overs or () if agent == (one.taker if is_taker else one.giver)]:
        parcel = directory / one.parcel
        if deed.deed == "undo":  # version 0.2.0 has copied it here
            disown(ledger, agent, one.arcs)
            at_once(dropping(ledger, one.arcs, spaces=False))
            if work.by_table:
                let_go(ledger, [domain for domain in held_domains(ledger) if lies_in(one.arcs, domain)])
        elif parcel.exists() or not work.behind or not is_taker:  # else its checkpoint has it
            told.append((one.giver, one.taker, at_once(steps(deed.deed, ledger, agent, one, parcel), wanted)))
    return told


def steps(
    step: str, ledger: RocksLedger, agent: str, one: HandOver, parcel: Path, *, is_at_work: bool = False
) -> Generator[None, None, Moved]:
    """Give, take or drop what one agent hands to another, in the ledger of an agent at rest or at work. It may be killed, and done
    again. Raises CrawlDirectoryError: a ledger or the parcel cannot be read or written; OSError: likewise."""
    if step == "give":
        if parcel.exists():
            return head_of(parcel).moved
        notes = noted(ledger)
        if is_at_work:
            release(ledger, agent, one.arcs)
        common = () if is_at_work else FOR_ALL  # at work each agent has what holds for all
        return (yield from giving(ledger, one.arcs, parcel, common=common, notes=notes, is_at_work=is_at_work))
    if step == "take":
        moved = yield from taking(ledger, parcel, is_at_work=is_at_work)
        head = head_of(parcel)
        adopt(ledger, head, agent)
        if has_unclaimed(head.counters):
            # The giver was alone when it met documents that the taker now has.
            with ledger.group() as group:
                group.count(CLAIMS_DUE)
        return moved
    release(ledger, agent, one.arcs)
    yield from dropping(ledger, one.arcs, is_at_work=is_at_work)
    return Moved()


# A crawl that was begun by one agent in one process becomes a divided one that has one agent: its log is the agent's from then on.
# :mod:`membership` divides a crawl before other agents join it. It is a divided one from the instant in which its members are
# written; what is made before that is in no other process' way.

_OWN = log_path(agent_name(0))


def divide(directory: Path, ledger: RocksLedger) -> None:
    """Make a crawl of one agent at rest a divided one, with the same agent. Raises CrawlDirectoryError: what was committed of
    its log is not there, or it cannot be copied. Nothing has changed."""
    end = ledger.committed_ends().get(LOG_PATH, 0)
    with refusing(CrawlDirectoryError, f"the crawl in {directory} cannot be divided"):
        if end:
            _copy(directory / LOG_PATH, directory / _OWN, end)
        write_mark(directory, MergeMark({_OWN: end}, end))
        ledger.give_up_ends({_OWN: end})
        share_secret(directory / STATE_DIRECTORY, ledger.secret)
        write_members(directory, [agent_name(0)])
    forget_shared_log(ledger)


def forget_shared_log(ledger: RocksLedger) -> None:
    """The log of a divided crawl is made of those of its agents: an agent has committed nothing of it."""
    ledger.give_up_ends({LOG_PATH: None})


def _copy(source: Path, target: Path, end: int) -> None:
    """Copy the first bytes of a file: whole, or not at all."""
    fresh = target.with_name(f"{target.name}.new")
    with source.open("rb") as old, fresh.open("wb") as new:
        new.writelines(pieces_of(old, end))
    if fresh.stat().st_size < end:
        fresh.unlink()
        raise CrawlDirectoryError(
            f"{source} is shorter than what was committed of it; resume the crawl with one agent and --accept-loss first"
        )
    fresh.replace(target)
