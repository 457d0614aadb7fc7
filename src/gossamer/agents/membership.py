"""Agents that join a crawl which rests, that leave it, or that get another part of it: the giver writes domains into
parcels, and the taker reads them.

Place in the flow: the supervisor calls :func:`change_members` before it starts agents, and :func:`settle` before that, whatever it
is to do: it finishes a change that a kill interrupted, or undoes it. It opens no ledger: a process for each agent does
(:mod:`parcels`). The crawl has its new agents from the instant in which :func:`~gossamer.storage.recovery.write_members` names
them; parcels that were written before that are thrown away, the next supervisor does what is left to do after it. Nothing is
fetched meanwhile, so that no host is asked by two.

An agent that has left stays among the members with capacity 0. It has no domain and does not run; its archive, tables, log and
counters are part of the crawl as before. Of those who join, such agents come back first.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.handing_over import RingMoves, TableMoves, is_moving, mail_waits, read_moved, write_moved
from gossamer.agents.parcels import PARCELS, AgentsAtRest, MemberChange, ledger_of
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.wiring import Wiring
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.parcels import Moved
from gossamer.storage.recovery import members_of, write_members
from gossamer.values.agents import Member, agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: The note of what is under way, in the supervisor's folder of the crawl's state.
_NOTE = "changing.json"

_SUPERVISOR = "supervisor"

#: Providers that keep sums over all hosts, or what was seen, beside the hosts' own state: a part of it cannot be handed on.
_WHOLE = ("sieve", "url-trie", "bloom-seen", "opic-ledger")


class DomainWishes(msgspec.Struct, frozen=True):
    """What the table of the masters needs to know of a change beside the members."""

    policy: Any
    """Chooses for the domains of those that leave: a `agents.contract.DesignationPolicy`."""
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
    """Whether agents have to run before domains can change hands: one was killed, some move, or URLs are owed or wait as mail.

    Raises:
        CrawlDirectoryError: a ledger is damaged, or in use.
    """
    if (by_table and mail_waits(directory)) or is_moving(directory):
        return True
    for name in at_work(members_of(directory)):
        with ledger_of(directory, wiring.providers["ledger"].settings, name).looking() as ledger:
            if ledger.counters().get("owed", 0) or not ledger.is_clean:
                return True
    return False


async def change_members(
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
    known = members_of(directory)
    _write_note(directory, MemberChange(known, tuple(members)))
    crash_at(Point.JOINING)
    async with AgentsAtRest(directory, wiring) as agents:
        await agents.prepare(dict.fromkeys(member(text).agent for text in (*known, *members)))
        if not known:
            await agents.do("divide", [agent_name(0)])
        work = MemberChange(members_of(directory), tuple(members), table is not None, by_parcels=True)
        _write_note(directory, work)
        crash_at(Point.JOINING)
        if table is not None:
            TableMoves(directory).plan(work.before, work.after, table.assigned, table.policy)
            crash_at(Point.JOINING)
        try:
            moved = await agents.do("give", [member(text).agent for text in work.before], work)
        except CrawlDirectoryError:
            await _undo(directory, agents, work)
            raise
        crash_at(Point.JOINING)
        if table is not None:
            TableMoves(directory).make()
            crash_at(Point.JOINING)
        write_members(directory, work.after)
        crash_at(Point.JOINING)
        await _finish(directory, agents, work)
    for line in _told(work, moved):
        report(line)


def is_changing(directory: Path) -> bool:
    """Whether a kill interrupted a change that :func:`settle` is to finish, or to undo."""
    return _note(directory).exists()


async def settle(directory: Path, wiring: Wiring) -> None:
    """Finish a change that a kill interrupted, or undo it, whichever leaves the crawl with the agents that it has.

    Raises:
        CrawlDirectoryError: a ledger is damaged, or in use.
    """
    try:
        work = msgspec.json.decode(_note(directory).read_bytes(), type=MemberChange)
    except FileNotFoundError:
        return
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{_note(directory)} is damaged: {error}; bring it back from a copy") from None
    members = members_of(directory)
    async with AgentsAtRest(directory, wiring) as agents:
        if not work.before:
            # It was about to be divided, and no agent has joined yet.
            if members:
                await agents.do("forget-log", [agent_name(0)])
            _note(directory).unlink()
        elif TableMoves(directory).are_made() if work.by_table else members == work.after:
            write_members(directory, work.after)
            await _finish(directory, agents, work)
        else:
            await _undo(directory, agents, work)


async def _finish(directory: Path, agents: AgentsAtRest, work: MemberChange) -> None:
    """Let those who gain domains read their parcels, and those who had them forget them."""
    await agents.do("take", at_work(work.after), work)
    crash_at(Point.JOINING)
    await agents.do("drop", work.givers, work)
    crash_at(Point.JOINING)
    if not work.by_table:
        write_moved(directory, RingMoves(work.before, work.after, read_moved(directory)).left())
    _forget(directory, work)


async def _undo(directory: Path, agents: AgentsAtRest, work: MemberChange) -> None:
    """Take back what was done. Before there were parcels, who gained domains had copied them already."""
    if not work.by_parcels:
        for name in work.new:
            shutil.rmtree(directory / STATE_DIRECTORY / name, ignore_errors=True)
        await agents.do("undo", [name for name in at_work(work.after) if name not in work.new], work)
    _forget(directory, work)


def _forget(directory: Path, work: MemberChange) -> None:
    if work.by_table:
        TableMoves(directory).forget()
    shutil.rmtree(directory / PARCELS, ignore_errors=True)
    _note(directory).unlink(missing_ok=True)


def _told(work: MemberChange, moved: Sequence[tuple[str, str, Moved]]) -> Iterator[str]:
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


def _write_note(directory: Path, work: MemberChange) -> None:
    note = _note(directory)
    note.parent.mkdir(parents=True, exist_ok=True)
    replace_file(note, msgspec.json.encode(work))


def _note(directory: Path) -> Path:
    return directory / STATE_DIRECTORY / _SUPERVISOR / _NOTE
