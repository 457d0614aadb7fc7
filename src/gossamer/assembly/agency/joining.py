"""Agents that join a crawl which rests: each gets a ledger out of those of the others, and these forget what it has.

Place in the flow: the supervisor calls :func:`join` before it starts agents, and :func:`settle` before that, whatever it is to do:
it finishes a join that a kill interrupted, or undoes it. The crawl has its new agents from the instant in which
:func:`~gossamer.stores.members.write_members` names them; what is made before that is thrown away, what is left to do after it
is done by whoever comes next. Nothing is fetched meanwhile, so that no host is asked by two.
"""

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from gossamer.flow.crashing import Point, crash_at
from gossamer.flow.sheet import build
from gossamer.flow.wiring import Wiring
from gossamer.model.agents import agent_name, member
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.services.designation.ring import Ring, moving
from gossamer.services.orders import ORDERS
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.stores.ledger.moving import Moved, drop, fill
from gossamer.stores.members import members_of, write_members

#: Where ledgers are made, and the note that says for whom, in the supervisor's folder of the crawl's state.
_MADE, _NOTE = "joining", "joining.json"

_SUPERVISOR = "supervisor"

#: Owners of spaces who keep under no host what holds for all agents: the orders of processors.
_FOR_ALL = (ORDERS.owner,)

#: Providers that keep sums over all hosts, or what was seen, beside the hosts' own state: a part of it cannot be handed on.
_WHOLE = ("sieve", "url-trie", "bloom-seen", "opic-ledger", "revisits")


class _Join(msgspec.Struct, frozen=True):
    """What is under way."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def new(self) -> tuple[str, ...]:
        """The names of those who join."""
        known = {member(text).agent for text in self.before}
        return tuple(name for text in self.after if (name := member(text).agent) not in known)

    @property
    def rings(self) -> tuple[Ring, Ring]:
        """Whose the hosts were, and whose they are going to be."""
        return Ring(map(member, self.before)), Ring(map(member, self.after))


def more_members(members: Sequence[str], number: int) -> tuple[str, ...]:
    """So many agents, these among them; the names of the others are free."""
    known = {member(text).agent for text in members}
    free = (agent_name(index) for index in range(number + len(known)) if agent_name(index) not in known)
    return (*members, *(next(free) for _ in range(number - len(members))))


def check_can_join(wiring: Wiring, directory: Path) -> None:
    """Refuse agents that are to join a crawl whose state cannot be handed to them.

    Raises:
        UsageError: that is so.
    """
    others = sorted(name for name, plan in wiring.providers.items() if plan.use in _WHOLE)
    if others:
        raise UsageError(
            f"the crawl in {directory} has {others[0]!r}, whose state cannot be divided anew; "
            "leave the number of agents as it is"
        )


def join(directory: Path, wiring: Wiring, members: Sequence[str], report: Callable[[str], None]) -> None:
    """Let a crawl at rest have these agents, which are those that it has and some more.

    Args:
        directory: the crawl directory; the caller has it alone.
        wiring: of the crawl, for the settings of its ledger.
        members: all agents.
        report: takes a line for people.

    Raises:
        CrawlDirectoryError: a ledger is damaged, in use, cannot be written, or has a secret of its own. Nothing has changed.
    """
    work = _Join(members_of(directory), tuple(members))
    note = _note(directory)
    note.parent.mkdir(parents=True, exist_ok=True)
    fresh = note.with_name(f"{_NOTE}.new")
    fresh.write_bytes(msgspec.json.encode(work))
    fresh.replace(note)
    crash_at(Point.JOINING)
    try:
        moved = _make(directory, wiring, work)
    except CrawlDirectoryError:
        _undo(directory, work)
        raise
    write_members(directory, work.after)
    crash_at(Point.JOINING)
    _give_up(directory, wiring, work)
    hosts, urls = sum(one.hosts for one in moved), sum(one.tasks for one in moved)
    report(f"{' and '.join(work.new)} joined, and took {urls:,} queued URLs of {hosts:,} hosts")


def settle(directory: Path, wiring: Wiring) -> None:
    """Finish a join that a kill interrupted, or undo it, whichever leaves the crawl with the agents that it has.

    Raises:
        CrawlDirectoryError: a ledger is damaged, or in use.
    """
    try:
        work = msgspec.json.decode(_note(directory).read_bytes(), type=_Join)
    except FileNotFoundError:
        return
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{_note(directory)} is damaged: {error}; bring it back from a copy") from None
    if members_of(directory) == work.after:
        _give_up(directory, wiring, work)
    else:
        _undo(directory, work)


def _make(directory: Path, wiring: Wiring, work: _Join) -> list[Moved]:
    """Make the ledgers of those who join, and put them in their places."""
    before, after = work.rings
    made = directory / STATE_DIRECTORY / _SUPERVISOR / _MADE
    moved: list[Moved] = []
    with ExitStack() as stack:
        givers = [opened_ledger(directory, wiring, agent, stack) for agent in _names(work.before)]
        for name in work.new:
            arcs = [(giver, moving(before, after, giver.sheet.agent, name)) for giver in givers]
            moved.append(fill(ledger_of(made, wiring, name).sheet, arcs, common=_FOR_ALL))
            crash_at(Point.JOINING)
            target = directory / STATE_DIRECTORY / name
            shutil.rmtree(target, ignore_errors=True)
            (made / STATE_DIRECTORY / name).rename(target)
            crash_at(Point.JOINING)
    return moved


def _give_up(directory: Path, wiring: Wiring, work: _Join) -> None:
    """Let those who were there forget what the new ones have."""
    before, after = work.rings
    for agent in _names(work.before):
        with ExitStack() as stack:
            ledger = opened_ledger(directory, wiring, agent, stack)
            for name in work.new:
                drop(ledger, moving(before, after, agent, name))
                crash_at(Point.JOINING)
    _forget(directory)


def _undo(directory: Path, work: _Join) -> None:
    for name in work.new:
        shutil.rmtree(directory / STATE_DIRECTORY / name, ignore_errors=True)
    _forget(directory)


def _forget(directory: Path) -> None:
    shutil.rmtree(_note(directory).with_name(_MADE), ignore_errors=True)
    _note(directory).unlink(missing_ok=True)


def _note(directory: Path) -> Path:
    return directory / STATE_DIRECTORY / _SUPERVISOR / _NOTE


def _names(members: Sequence[str]) -> list[str]:
    return [member(text).agent for text in members]


def opened_ledger(directory: Path, wiring: Wiring, agent: str, stack: ExitStack) -> RocksLedger:
    """An agent's ledger as its crawl has it, open until `stack` is left. Raises as `open` does."""
    ledger = ledger_of(directory, wiring, agent, existing=True)
    ledger.open()
    stack.callback(ledger.close)
    return ledger


def ledger_of(directory: Path, wiring: Wiring, agent: str, *, existing: bool = False) -> RocksLedger:
    """An agent's ledger as its crawl has it, not open."""
    given = {**wiring.providers["ledger"].settings, "directory": str(directory), "agent": agent, "existing": existing}
    return RocksLedger(build(LedgerSheet, given))
