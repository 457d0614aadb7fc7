"""Agents that join a crawl which rests, that leave it, or that get another part of it: whoever gains domains takes them out of the
ledgers of the others.

Place in the flow: the supervisor calls :func:`change_members` before it starts agents, and :func:`settle` before that, whatever it
is to do: it finishes a change that a kill interrupted, or undoes it. The crawl has its new agents from the instant in which
:func:`~gossamer.storage.recovery.write_members` names them; what was copied before that is taken back, what is left to do after it
is done by whoever comes next. Nothing is fetched meanwhile, so that no host is asked by two.

An agent that has left stays among the members with capacity 0. It has no domain and does not run; its archive, tables, log and
counters are part of the crawl as before. Of those who join, such agents come back first.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.digests import CLAIMS_DUE, has_unclaimed
from gossamer.agents.handing_over import RingMoves, TableMoves, lies_in, mail_waits
from gossamer.agents.held_domains import held_domains, let_go
from gossamer.agents.orders import divide, forget_shared_log
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.frontier.politeness.orders import ORDERS
from gossamer.recrawl.learning import RATES
from gossamer.recrawl.ledger import adopt, disown, release
from gossamer.storage.contract import COPIES
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.moving import Moved, absorb, drop
from gossamer.storage.recovery import members_of, write_members
from gossamer.values.agents import Member, agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: The note of what is under way, in the supervisor's folder of the crawl's state.
_NOTE = "changing.json"

_SUPERVISOR = "supervisor"

#: Owners of spaces who keep under no host what holds for all agents: the orders of processors, the rates of change of
#: all pages, and claims that no table has yet.
_FOR_ALL = (ORDERS.owner, RATES.owner, COPIES.owner)

#: Providers that keep sums over all hosts, or what was seen, beside the hosts' own state: a part of it cannot be handed on.
_WHOLE = ("sieve", "url-trie", "bloom-seen", "opic-ledger")


class _Change(msgspec.Struct, frozen=True):
    """What is under way."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    by_table: bool = False
    """Masters have said what moves, so that the table says whether it has."""

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
        return TableMoves(directory) if self.by_table else RingMoves(self.before, self.after)


class DomainWishes(msgspec.Struct, frozen=True):
    """What the table of the masters needs to know of a change beside the members."""

    policy: Any
    """Chooses for the domains of those that leave: a `marshaling.DesignationPolicy`."""
    assigned: dict[str, str] = {}
    """Domains that a person gives to agents."""


def with_number(members: Sequence[str], number: int) -> tuple[str, ...]:
    """The members with so many of them at work: the last ones leave; of those who join, the ones that had left come first."""
    found = [member(text) for text in members]
    known = {one.agent for one in found}
    free = (agent_name(index) for index in range(number + len(known)) if agent_name(index) not in known)
    working = sum(1 for one in found if one.capacity)
    for index, one in list(enumerate(found)):
        if working < number and not one.capacity:
            found[index] = Member(one.agent, place=one.place)
            working += 1
    for index, one in reversed(list(enumerate(found))):
        if working > number and one.capacity:
            found[index] = Member(one.agent, 0.0, one.place)
            working -= 1
    return (*map(str, found), *(next(free) for _ in range(number - working)))


def with_places(members: Sequence[str], given: Iterable[str]) -> tuple[str, ...]:
    """The members with places that a person has given, as `agent-01=oslo`.

    Raises:
        UsageError: one is written in another way, or names no agent of the crawl.
    """
    found = {one.agent: one for one in map(member, members)}
    for text in given:
        agent, equals, place = text.partition("=")
        if not (equals and place):
            raise UsageError(f"--agent-place {text!r} names no place; write AGENT=PLACE, as {agent_name(1)}=oslo")
        if agent not in found:
            raise UsageError(f"--agent-place {text!r}: the crawl has no agent {agent!r}; it has {', '.join(found)}")
        found[agent] = Member(agent, found[agent].capacity, place)
    # Written and read once: a place with a blank is refused here rather than in the next run.
    return tuple(str(member(str(one))) for one in found.values())


def with_capacities(members: Sequence[str], capacities: Mapping[str, float]) -> tuple[str, ...]:
    """The members with other capacities, by their names; those without one keep theirs."""
    found = map(member, members)
    return tuple(str(msgspec.structs.replace(one, capacity=capacities.get(one.agent, one.capacity))) for one in found)


def without(members: Sequence[str], agent: str) -> tuple[str, ...]:
    """The members when this one has left."""
    found = map(member, members)
    return tuple(str(Member(one.agent, 0.0, one.place) if one.agent == agent else one) for one in found)


def check_can_change(wiring: Wiring, directory: Path) -> None:
    """Refuse to change the agents of a crawl whose state cannot be handed on.

    Raises:
        UsageError: that is so.
    """
    others = sorted(name for name, plan in wiring.providers.items() if plan.use in _WHOLE)
    if others:
        raise UsageError(
            f"the crawl in {directory} has {others[0]!r}, whose state cannot be divided anew; "
            "leave the number of agents as it is"
        )


def needs_rest(directory: Path, wiring: Wiring, *, by_table: bool = False) -> bool:
    """Whether agents have to run before domains can change hands: one was killed, or URLs are owed or wait as mail.

    Raises:
        CrawlDirectoryError: a ledger is damaged, or in use.
    """
    if by_table and mail_waits(directory):
        return True
    for name in at_work(members_of(directory)):
        with ledger_of(directory, wiring, name).looking() as ledger:
            if ledger.counters().get("owed", 0) or not ledger.is_clean:
                return True
    return False


def change_members(
    directory: Path,
    wiring: Wiring,
    members: Sequence[str],
    report: Callable[[str], None],
    table: DomainWishes | None = None,
) -> None:
    """Let a crawl at rest have these agents.

    Args:
        directory: the crawl directory; the caller has it alone.
        wiring: of the crawl, for the settings of its ledgers.
        members: all agents, with those that have left.
        report: takes a line for people.
        table: given where masters say whose a domain is.

    Raises:
        CrawlDirectoryError: a ledger is damaged, in use, cannot be written, or has a secret of its own. Nothing has changed.
    """
    _write_note(directory, _Change(members_of(directory), tuple(members)))
    crash_at(Point.JOINING)
    if not members_of(directory):
        with ExitStack() as stack:
            divide(directory, opened_ledger(directory, wiring, agent_name(0), stack))
    work = _Change(members_of(directory), tuple(members), table is not None)
    _write_note(directory, work)
    crash_at(Point.JOINING)
    if table is not None:
        TableMoves(directory).plan(work.before, work.after, table.assigned, table.policy)
        crash_at(Point.JOINING)
    try:
        moved = list(_copied(directory, wiring, work))
    except CrawlDirectoryError:
        _undo(directory, wiring, work)
        raise
    if table is not None:
        TableMoves(directory).make()
        crash_at(Point.JOINING)
    write_members(directory, work.after)
    crash_at(Point.JOINING)
    _give_up(directory, wiring, work)
    for line in _told(work, moved):
        report(line)


def is_changing(directory: Path) -> bool:
    """Whether a kill interrupted a change that :func:`settle` is to finish, or to undo."""
    return _note(directory).exists()


def settle(directory: Path, wiring: Wiring) -> None:
    """Finish a change that a kill interrupted, or undo it, whichever leaves the crawl with the agents that it has.

    Raises:
        CrawlDirectoryError: a ledger is damaged, or in use.
    """
    try:
        work = msgspec.json.decode(_note(directory).read_bytes(), type=_Change)
    except FileNotFoundError:
        return
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{_note(directory)} is damaged: {error}; bring it back from a copy") from None
    members = members_of(directory)
    if not work.before:
        # It was about to be divided, and nobody has joined yet.
        if members:
            with ExitStack() as stack:
                forget_shared_log(opened_ledger(directory, wiring, agent_name(0), stack))
        _note(directory).unlink()
    elif TableMoves(directory).are_made() if work.by_table else members == work.after:
        write_members(directory, work.after)
        _give_up(directory, wiring, work)
    else:
        _undo(directory, wiring, work)


def _copied(directory: Path, wiring: Wiring, work: _Change) -> Iterator[tuple[str, str, Moved]]:
    """Let each one that gains domains copy them; yields giver, taker, and what was copied."""
    for giver in work.givers:
        for taker, arcs in work.moves(directory).of(giver):
            with ExitStack() as stack:
                source = opened_ledger(directory, wiring, giver, stack)
                target = opened_ledger(directory, wiring, taker, stack, existing=taker not in work.new)
                yield giver, taker, absorb(target, source, arcs, common=_FOR_ALL)
                adopt(target, source, taker, arcs)
                if has_unclaimed(source.counters()):
                    # The giver was alone when it met documents that the taker now has.
                    with target.group() as group:
                        group.count(CLAIMS_DUE)
            crash_at(Point.JOINING)


def _give_up(directory: Path, wiring: Wiring, work: _Change) -> None:
    """Let those who had the domains forget what others have."""
    for giver in work.givers:
        with ExitStack() as stack:
            ledger = opened_ledger(directory, wiring, giver, stack)
            for _, arcs in work.moves(directory).of(giver):
                release(ledger, giver, arcs)
                drop(ledger, arcs)
                crash_at(Point.JOINING)
    _forget(directory, work)


def _forget(directory: Path, work: _Change) -> None:
    if work.by_table:
        TableMoves(directory).forget()
    _note(directory).unlink(missing_ok=True)


def _undo(directory: Path, wiring: Wiring, work: _Change) -> None:
    """Take back what was copied."""
    for name in work.new:
        shutil.rmtree(directory / STATE_DIRECTORY / name, ignore_errors=True)
    for giver in work.givers:
        for taker, arcs in work.moves(directory).of(giver):
            if taker not in work.new:
                with ExitStack() as stack:
                    ledger = opened_ledger(directory, wiring, taker, stack)
                    disown(ledger, taker, arcs)
                    drop(ledger, arcs, spaces=False)
                    if work.by_table:
                        let_go(ledger, [domain for domain in held_domains(ledger) if lies_in(arcs, domain)])
    _forget(directory, work)


def _told(work: _Change, moved: Sequence[tuple[str, str, Moved]]) -> Iterator[str]:
    """What has changed, in words."""
    joined = [name for name in at_work(work.after) if name not in work.givers]
    left = [name for name in work.givers if name not in at_work(work.after)]
    for names, what, side in ((joined, "joined and took", 1), (left, "left and gave away", 0)):
        if names:
            those = [one[2] for one in moved if one[side] in names]
            hosts, urls = sum(one.hosts for one in those), sum(one.tasks for one in those)
            yield f"{' and '.join(names)} {what} {urls:,} queued URLs of {hosts:,} hosts"
    for giver, taker, one in moved if not joined and not left else ():
        if work.by_table or one.hosts:
            yield f"{taker} took {one.tasks:,} queued URLs of {one.hosts:,} hosts from {giver}"


def _write_note(directory: Path, work: _Change) -> None:
    note = _note(directory)
    note.parent.mkdir(parents=True, exist_ok=True)
    replace_file(note, msgspec.json.encode(work))


def _note(directory: Path) -> Path:
    return directory / STATE_DIRECTORY / _SUPERVISOR / _NOTE


def opened_ledger(
    directory: Path, wiring: Wiring, agent: str, stack: ExitStack, *, existing: bool = True
) -> RocksLedger:
    """An agent's ledger as its crawl has it, open until `stack` is left. Raises as `open` does.

    Its next owner takes it for one whose process was killed: who asks hosts that another one has just asked waits before the first
    request, as after a kill.
    """
    ledger = ledger_of(directory, wiring, agent, existing=existing)
    ledger.open()
    stack.callback(ledger.abandon)
    return ledger


def ledger_of(directory: Path, wiring: Wiring, agent: str, *, existing: bool = False) -> RocksLedger:
    """An agent's ledger as its crawl has it, not open."""
    given = {**wiring.providers["ledger"].settings, "directory": str(directory), "agent": agent, "existing": existing}
    return RocksLedger(build(LedgerSheet, given))
