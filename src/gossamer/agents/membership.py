"""Agents that join a crawl which rests, that leave it, or that get another part of it: the giver writes domains into
parcels, and the taker reads them.

Place in the flow: the supervisor calls :func:`change_members` before it starts agents, and :func:`settle` before that, whatever
it is to do: it finishes a change that a kill interrupted, or undoes it. It opens no ledger: a process for each agent does
(:mod:`parcels`). The crawl has its new agents from the instant in which
:func:`~gossamer.storage.members.write_members` names them; parcels that were written before that are thrown away, the next
supervisor does what is left to do after it. Nothing is fetched meanwhile, so that no host is asked by two.

An agent that has left stays among the members with capacity 0. It has no domain and does not run; its archive, tables, log and
counters are part of the crawl as before. Of those who join, such agents come back first.

Where the crawl has a store, agents change only after all of them have published how they rest. So one that goes back to a
checkpoint later goes back to before the last change at most. Parcels stay with their givers, and in the givers' checkpoints, until
their takers have published, and :func:`settle` does the change again for those that are behind it.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.cluster import supervisor_lock
from gossamer.agents.designations import SCHEMA, designated, forget_domains
from gossamer.agents.handing_over import (
    DividedByRing,
    DividedByTable,
    RingMoves,
    TableMoves,
    assign,
    is_moving,
    mail_waits,
    read_moved,
    told_of_assigned,
    write_moved,
)
from gossamer.agents.masters import masters_of
from gossamer.agents.parcels import AgentsAtRest, MemberChange, ends_of
from gossamer.agents.ring import let_go
from gossamer.agents.supervised import is_ledger_gone
from gossamer.agents.wiring import STORE_USE, domain_rule_of, has_store, ledger_settings
from gossamer.crawls.directory import read_wiring
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.wiring import Wiring
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.parcels import Moved
from gossamer.storage.mailbox.retaining import point_path
from gossamer.storage.mailbox.shared_state import SHARED, SharedFile, delete_older_mail, forget_copies
from gossamer.storage.members import agents_behind, division_of, members_of, note_behind, write_members
from gossamer.values.agents import Member, agent_name, at_work, member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import DeletionTarget, given_host

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
    """The members with places that a person has given, as `agent-01=oslo`. Raises UsageError: one is written in another way, or
    names no agent of the crawl."""
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
    found = map(member, members)
    return tuple(str(Member(one.agent, 0.0, one.place) if one.agent == agent else one) for one in found)


def check_can_change(wiring: Wiring, directory: Path) -> None:
    """Refuse to change the agents of a crawl whose state cannot be handed on. Raises UsageError: that is so."""
    if has_store(wiring) and masters_of(directory):
        raise UsageError(
            f"the crawl in {directory} has a store (--store) and masters, and keeps the agents that it began with; leave their "
            "number as it is"
        )
    others = sorted(name for name, plan in wiring.providers.items() if plan.use in _WHOLE)
    if others:
        raise UsageError(
            f"the crawl in {directory} has {others[0]!r}, whose state cannot be divided anew; "
            "leave the number of agents as it is"
        )


async def needs_rest(directory: Path, wiring: Wiring, *, by_table: bool = False) -> bool:
    """Whether agents have to run before domains can change hands: one was killed, some move, or URLs are owed or wait as mail.
    Raises CrawlDirectoryError: a ledger is damaged."""
    if (by_table and mail_waits(directory)) or is_moving(directory):
        return True
    ends = await ends_of(directory, wiring, at_work(members_of(directory)))
    return any(end.owed or not end.is_clean for end in ends.values())


async def change_members(
    directory: Path,
    wiring: Wiring,
    members: Sequence[str],
    report: Callable[[str], None],
    table: DomainWishes | None = None,
) -> None:
    """Let a crawl at rest have these agents.

    Args:
        members: all agents, with those that have left.
        table: given where masters say whose a domain is.

    Raises:
        CrawlDirectoryError: a ledger is damaged, in use, cannot be written, or has a secret of its own. Nothing has changed.
    """
    known = members_of(directory)
    work = MemberChange(known, tuple(members), table is not None, by_parcels=True)
    _write_note(directory, work)
    crash_at(Point.JOINING)
    async with AgentsAtRest(directory, wiring) as agents:
        await agents.prepare(dict.fromkeys(member(text).agent for text in (*known, *members)))
        if not known:
            await agents.do("divide", [agent_name(0)])
        if has_store(wiring):
            try:
                await _publish(directory, wiring, agents)
            except CrawlDirectoryError:
                _note(directory).unlink()
                raise
        forget_parcels(directory)  # of the change before: those that they are for have published
        work = msgspec.structs.replace(work, before=members_of(directory), number=division_of(directory) + 1)
        _write_note(directory, work)
        crash_at(Point.JOINING)
        for line in await _carry_out(directory, agents, work, table):
            report(line)
    await publish_left(directory, wiring, report)


async def publish_left(directory: Path, wiring: Wiring, report: Callable[[str], None]) -> None:
    """Publish agents that have left a crawl with a store, as far as the store does not have them as they are. Where it cannot be
    reached, that is told, and the next change or run does it: until then it has them as they were before they left."""
    if has_store(wiring) and len(at_work(members := members_of(directory))) < len(members):
        async with AgentsAtRest(directory, wiring) as agents:
            try:
                await _publish(directory, wiring, agents, has_left=True)
            except CrawlDirectoryError as error:
                report(f"agents that have left are not published yet: {error}")


async def _publish(directory: Path, wiring: Wiring, agents: AgentsAtRest, *, has_left: bool = False) -> None:
    """Publish all agents, which rest, or those that have left; nothing is shipped of one that has published that it rests."""
    from gossamer.backup.one_agent import bring_agent_back

    members = [one for one in map(member, members_of(directory)) if not (has_left and one.capacity)]
    [url] = [plan.settings["url"] for plan in wiring.providers.values() if plan.use == STORE_USE]
    for one in members:
        if not one.capacity and is_ledger_gone(directory, one.agent):  # no supervisor looks after one that has left
            await asyncio.to_thread(bring_agent_back, directory, url, one.agent, 0.0, is_dead=True)
    await agents.do("publish", [one.agent for one in members], words=[url])


async def _carry_out(
    directory: Path, agents: AgentsAtRest, work: MemberChange, table: DomainWishes | None
) -> list[str]:
    """Do all of a change; returns what has changed, in words."""
    moves = TableMoves(directory) if work.by_table else None
    if moves is not None and table is not None and not moves.are_made():
        moves.plan(work.before, work.after, table.assigned, table.policy)
        crash_at(Point.JOINING)
    try:
        moved = await agents.told("give", work.givers, list[tuple[str, str, Moved]], work)
    except CrawlDirectoryError:
        await _undo(directory, agents, work)
        raise
    crash_at(Point.JOINING)
    if moves is not None:
        moves.make()
        crash_at(Point.JOINING)
    write_members(directory, work.after)
    crash_at(Point.JOINING)
    await _finish(directory, agents, work)
    return list(_told(work, list(chain.from_iterable(moved))))


def is_changing(directory: Path) -> bool:
    return _note(directory).exists()


async def settle(directory: Path, wiring: Wiring) -> None:
    """Finish a change that a kill interrupted, or undo it, whichever leaves the crawl with the agents that it has; and do one again
    for agents that have gone back to before it. Raises CrawlDirectoryError: a ledger is damaged, or in use."""
    members = members_of(directory)
    try:
        work = msgspec.json.decode(_note(directory).read_bytes(), type=MemberChange)
    except FileNotFoundError:
        await _settle_behind(directory, wiring, members)
        return
    except ValueError as error:
        raise CrawlDirectoryError(f"{_note(directory)} is damaged: {error}; bring it back from a copy") from None
    async with AgentsAtRest(directory, wiring) as agents:
        if not work.before:
            # It was about to be divided, and no agent has joined yet.
            if members:
                await agents.do("forget-log", [agent_name(0)])
            _note(directory).unlink()
        elif work.before != work.after and (
            TableMoves(directory).are_made() if work.by_table else members == work.after
        ):
            write_members(directory, work.after)
            await _finish(directory, agents, work)
        else:
            await _undo(directory, agents, work)


async def _settle_behind(directory: Path, wiring: Wiring, members: tuple[str, ...]) -> None:
    """Let agents that have gone back to before the last change give and take what it gave and took. One whose ledger is not there
    yet is brought back first."""
    noted = agents_behind(directory)
    behind = {name: then for name, then in noted.items() if not (then and is_ledger_gone(directory, name))}
    if behind:
        known = tuple(text for text in members if member(text).agent not in behind)
        before = next(filter(None, behind.values()), known)
        work = MemberChange(before, members, by_parcels=True, number=division_of(directory), behind=tuple(behind))
        async with AgentsAtRest(directory, wiring) as agents:
            await agents.do("give", work.givers, work)
            crash_at(Point.JOINING)
            await _finish(directory, agents, work)
        note_behind(directory, {name: then for name, then in noted.items() if name not in behind})


async def _finish(directory: Path, agents: AgentsAtRest, work: MemberChange) -> None:
    """Let those who gain domains read their parcels, and those who had them forget them."""
    # One that has lost its folder meanwhile is brought back from the store later, and is behind then.
    gone = {
        name
        for name in at_work(work.before)
        if _keeps_parcels(directory) and name not in work.behind and is_ledger_gone(directory, name)
    }
    await agents.do("take", [name for name in at_work(work.after) if name not in gone], work)
    crash_at(Point.JOINING)
    await agents.do("drop", [name for name in work.givers if name not in gone], work)
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
    if not _keeps_parcels(directory):
        forget_parcels(directory)
    _note(directory).unlink(missing_ok=True)


def _keeps_parcels(directory: Path) -> bool:
    """Whether the crawl has a store: then a parcel stays until the store has what its taker made of it."""
    return point_path(directory, agent_name(0)).exists()


def forget_parcels(directory: Path) -> None:
    for folder in (directory / STATE_DIRECTORY).glob("*/parcels"):
        shutil.rmtree(folder, ignore_errors=True)


def _told(work: MemberChange, moved: Sequence[tuple[str, str, Moved]]) -> Iterator[str]:
    """The change, in words."""
    before, after = at_work(work.before), at_work(work.after)
    joined = [name for name in after if name not in before]
    left = [name for name in work.givers if name not in after]
    for names, what, side in ((joined, "joined and took", 1), (left, "left and gave away", 0)):
        if names:
            those = [one[2] for one in moved if one[side] in names]
            hosts, urls = sum(one.hosts for one in those), sum(one.tasks for one in those)
            yield f"{' and '.join(names)} {what} {urls:,} queued URLs of {hosts:,} hosts"
    for giver, taker, one in () if joined or left else moved:
        if work.by_table or one.hosts:
            yield f"{taker} took {one.tasks:,} queued URLs of {one.hosts:,} hosts from {giver}"


def _write_note(directory: Path, work: MemberChange) -> None:
    note = _note(directory)
    note.parent.mkdir(parents=True, exist_ok=True)
    replace_file(note, msgspec.json.encode(work))


def _note(directory: Path) -> Path:
    return directory / STATE_DIRECTORY / _SUPERVISOR / _NOTE


# What people see of the division, and change: `gossamer designations` reads the table that masters share, also while they work. A
# running crawl changes it itself, by a control message; of one at rest it is done here.


def designations(directory: Path, names: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Assignable domains with their agents: all that were given away, or those of some hosts; the agent is empty where none has
    it.

    Args:
        names: hosts or domains; none for all.

    Yields:
        Domain and agent.

    Raises:
        UsageError: the crawl has one agent, or a name is none; or all are asked for of a crawl that goes by the ring.
        CrawlDirectoryError: what the crawl keeps of agents and masters cannot be read.
    """
    members, masters = members_of(directory), masters_of(directory)
    if not members:
        raise UsageError(f"the crawl in {directory} has one agent, which has all domains")
    settings = ledger_settings(read_wiring(directory))
    if names:
        kind = (
            DividedByTable(directory, members, settings)
            if masters
            else DividedByRing(members, settings, read_moved(directory))
        )
        domains = domain_rule_of(settings)
        for domain in dict.fromkeys(domains.assignable(given_host(name)) for name in names):
            yield domain, kind.owner(domain)
        return
    if not masters:
        raise UsageError(f"the crawl in {directory} goes by the ring, which has no table; name the domains")
    with closing(SharedFile(directory)) as shared:
        shared.open(SCHEMA)
        yield from designated(shared.reading)


def assign_at_rest(directory: Path, agents: Mapping[str, str]) -> str:
    """Give domains to agents of a crawl at rest; returns what was done, in words. Raises UsageError: that cannot be. Nothing
    has changed; CrawlDirectoryError: the crawl is at work, or what masters share cannot be read or written."""
    with closing(supervisor_lock(directory)):
        wiring = read_wiring(directory)
        check_can_change(wiring, directory)
        later = assign(directory, wiring, members_of(directory), agents)
    return told_of_assigned(agents, later, "when the crawl goes on")


def forget_shared(directory: Path, ledgers: Sequence[Ledger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take domains that were given away, and URLs that wait for agents, out of what masters share.

    See `forget` of :class:`~gossamer.engine.subjects.Subject`. Raises CrawlDirectoryError.
    """
    if _keeps_parcels(directory) and not (is_changing(directory) or agents_behind(directory)):
        forget_parcels(directory)  # those that they are for have them
    if not (directory / SHARED).exists():
        return 0
    forget_copies(directory)
    with closing(SharedFile(directory)) as shared:
        shared.open(SCHEMA)
        gone = {domain: agent for domain, agent in designated(shared.reading) if target.has_host(domain)}
        for ledger in ledgers:  # before the table forgets which they are
            let_go(ledger, list(gone))
        with shared.erasing() as connection:
            delete_older_mail(connection, target.has)
            forget_domains(connection, gone)
    return 0  # mail is in no queue of an agent
