"""Agents that join a crawl which rests, that leave it, or that get another part of it; and what people see of the division, and
change.

Place in the flow: the supervisor calls :func:`change_members` before it starts agents, and :func:`settle` before that, whatever
it is to do: it finishes what a kill interrupted. It opens no ledger: a process for each agent does
(:mod:`parcels`), by the steps of :mod:`handing_over`. Nothing is fetched meanwhile, so that no host is asked by two.

An agent that has left stays among the members with capacity 0. It has no domain and does not run; its archive, tables, log and
counters are part of the crawl as before. Of those who join, such agents come back first.

Where the crawl has a store, agents change only after all of them have published how they rest. So one that goes back to a
checkpoint later goes back to before the last change at most. Parcels stay with their givers, and in the givers' checkpoints, until
their takers have published, and :func:`settle` does the change again for those that are behind it.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from gossamer.agents import handing_over
from gossamer.agents.cluster import supervisor_lock
from gossamer.agents.contract import DesignationPolicy, MachineAway
from gossamer.agents.designations import agent_at, designated, forget_domains, give
from gossamer.agents.ended import is_ledger_gone
from gossamer.agents.handing_over import Gift, Step, UnderWay
from gossamer.agents.masters import mail_waits, masters_of
from gossamer.agents.parcels import AgentsAtRest, Elsewhere, ends_of
from gossamer.agents.ring import let_go
from gossamer.agents.wiring import domain_rule_of, has_store, ledger_settings
from gossamer.crawls.directory import read_wiring
from gossamer.engine.files import Point, crash_at
from gossamer.engine.wiring import Wiring
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.mailbox.shared_state import SHARED, delete_older_mail, forget_copies
from gossamer.storage.members import (
    agents_behind,
    division_of,
    members_of,
    note_behind,
    read_kept,
    write_division,
    write_kept,
    write_members,
)
from gossamer.storage.tables.places import check_is_here
from gossamer.values.agents import Member, agent_name, at_work, digest_names, member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import DeletionTarget, domain_point, given_host

#: Providers that keep sums over all hosts, or what was seen, beside the hosts' own state: a part of it cannot be handed on.
_WHOLE = ("sieve", "url-trie", "bloom-seen", "opic-ledger")


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


async def needs_rest(
    directory: Path, wiring: Wiring, elsewhere: Elsewhere | None = None, *, by_table: bool = False
) -> bool:
    """Whether agents have to run before domains can change hands: one was killed, some move, or URLs are owed or wait as mail.
    Raises CrawlDirectoryError: a ledger is damaged."""
    if (by_table and mail_waits(directory)) or handing_over.is_moving(directory):
        return True
    ends = await ends_of(directory, wiring, at_work(members_of(directory)), elsewhere)
    return any(end.owed or not end.is_clean for end in ends.values())


async def change_members(
    directory: Path,
    wiring: Wiring,
    members: Sequence[str],
    report: Callable[[str], None],
    policy: DesignationPolicy | None = None,
    elsewhere: Elsewhere | None = None,
) -> None:
    """Let a crawl at rest have these agents.

    Args:
        members: all agents, with those that have left.
        policy: chooses for the domains of those that leave, where masters say whose a domain is.
        elsewhere: see :class:`~gossamer.agents.parcels.AgentsAtRest`.

    Raises:
        CrawlDirectoryError: a ledger is damaged, in use, cannot be written, or has a secret of its own. Nothing has changed.
    """
    known = members_of(directory)
    handing_over.write_note(directory, UnderWay(before=known, after=tuple(members)))
    crash_at(Point.JOINING)
    async with AgentsAtRest(directory, wiring, elsewhere) as agents:
        await agents.prepare(dict.fromkeys(member(text).agent for text in (*known, *members)))
        if not known:
            await agents.told("divide", [agent_name(0)])
            known = members_of(directory)
        if has_store(wiring):
            try:
                await agents.publish(members_of(directory))
            except CrawlDirectoryError:
                handing_over.forget_note(directory)
                raise
        handing_over.forget_parcels(directory)  # of the change before: those that they are for have published
        wishes, moved = read_wishes(directory), handing_over.read_moved(directory)
        number, left = division_of(directory) + 1, None
        at = number if has_store(wiring) else 0
        if policy is None:
            moves = handing_over.moves_by_ring(known, members, moved, wishes)
            left = handing_over.left_by_ring(members, {**moved, **wishes})
        else:
            # Where a person gives domains away, the division stays.
            moves, number = handing_over.moves_by_table(directory, known, members, wishes, policy), time.time_ns()
        hand_overs = handing_over.planned(moves, number)
        work = UnderWay(hand_overs, known, tuple(members), policy is not None, division=at, moved=left)
        for line in _told(work, await _carry_out(directory, wiring, agents, work)):
            report(line)
    forget_wishes(directory, wishes)
    if elsewhere is None:
        await publish_left(directory, wiring, report)


async def publish_left(directory: Path, wiring: Wiring, report: Callable[[str], None]) -> None:
    """Publish agents that have left a crawl with a store, as far as the store does not have them as they are. Where it cannot be
    reached, that is told, and the next change or run does it: until then it has them as they were before they left."""
    if has_store(wiring) and len(at_work(members := members_of(directory))) < len(members):
        async with AgentsAtRest(directory, wiring) as agents:
            try:
                await agents.publish([text for text in members if not member(text).capacity])
            except CrawlDirectoryError as error:
                report(f"agents that have left are not published yet: {error}")


async def _carry_out(directory: Path, wiring: Wiring, agents: AgentsAtRest, work: UnderWay) -> Sequence[Gift]:
    async def commit() -> None:
        if work.by_table:
            handing_over.write_to_table(directory, work.hand_overs or ())
            crash_at(Point.JOINING)
        write_members(directory, work.after)
        if work.division:
            handing_over.note_change(directory, work)
            write_division(directory, work.division)
        if not work.by_table:
            left = handing_over.left_by_ring(work.after, handing_over.read_moved(directory))
            handing_over.write_moved(directory, left if work.moved is None else work.moved)

    async def step(step: Step, names: Sequence[str], work: UnderWay) -> Sequence[Gift]:
        gifts = await agents.step(step, names, work)
        if step == "drop" and agents.elsewhere is not None and has_store(wiring):
            # A machine may be lost as soon as the note is gone: the store has all of the change then, so that none is behind it.
            await agents.publish((*work.before, *work.after))
        return gifts

    while True:
        try:
            return await handing_over.carry_out(directory, work, step, commit)
        except MachineAway:  # it may have done steps that its agent does not know, which went on from the store
            continue


async def settle(directory: Path, wiring: Wiring, elsewhere: Elsewhere | None = None) -> None:
    """Finish what a kill interrupted while agents rested, or give it up where nothing has changed yet; and do the last change again
    for agents that have gone back to before it. Raises CrawlDirectoryError: a ledger is damaged, or in use."""
    async with AgentsAtRest(directory, wiring, elsewhere) as agents:
        if (work := handing_over.under_way(directory)) is not None and not work.is_at_work:
            if work.copies == "begun":
                known = {member(text).agent for text in work.before}
                for name in set(work.takers) - known:
                    shutil.rmtree(directory / STATE_DIRECTORY / name, ignore_errors=True)
                await agents.told("undo", [name for name in work.takers if name in known])
            elif work.hand_overs is not None:
                try:
                    await _carry_out(directory, wiring, agents, work)
                except CrawlDirectoryError:
                    if handing_over.is_changing(directory):
                        raise
            elif not work.before and members_of(directory):
                await agents.told("forget-log", [agent_name(0)])  # it was about to be divided
            handing_over.forget_note(directory)
        noted, members = agents_behind(directory), members_of(directory)
        work = handing_over.last_change(
            directory, [name for text in members if (name := member(text).agent) not in noted]
        )
        if work is not None and work.moved is not None:
            handing_over.write_moved(directory, work.moved)  # who publishes that may be behind
        # One whose ledger is not there yet is brought back first.
        behind = {name: then for name, then in noted.items() if not (then and is_ledger_gone(directory, name))}
        if behind:
            if work is None:  # an older version made it
                stayed = tuple(text for text in members if member(text).agent not in behind)
                before = next(filter(None, behind.values()), stayed)
                moves = handing_over.moves_by_ring(before, members, handing_over.read_moved(directory))
                work = UnderWay(handing_over.planned(moves, division_of(directory)), before, members)
            await _carry_out(directory, wiring, agents, msgspec.structs.replace(work, behind=tuple(behind)))
            note_behind(directory, {name: then for name, then in noted.items() if name not in behind})


def _told(work: UnderWay, moved: Sequence[Gift]) -> Iterator[str]:
    """The change, in words."""
    before, after = at_work(work.before), at_work(work.after)
    joined = [name for name in after if name not in before]
    left = [name for name in before if name not in after]
    for names, what, side in ((joined, "joined and took", 1), (left, "left and gave away", 0)):
        if names:
            those = [one[2] for one in moved if one[side] in names]
            hosts, urls = sum(one.hosts for one in those), sum(one.tasks for one in those)
            yield f"{' and '.join(names)} {what} {urls:,} queued URLs of {hosts:,} hosts"
    for giver, taker, one in () if joined or left else moved:
        if work.by_table or one.hosts:
            yield f"{taker} took {one.tasks:,} queued URLs of {one.hosts:,} hosts from {giver}"


# The division as people see it, and change it: `gossamer designations` reads the table that masters share, also while they work. A
# running crawl changes it itself, by a control message; of one at rest it is done here.


def designations(directory: Path, names: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield assignable domains with their agents: all that were given away, or those of the hosts or domains that are named; the
    agent is empty where none has it. Raises UsageError: the crawl has one agent, or a name is none; or all are asked for of a crawl
    that goes by the ring; CrawlDirectoryError: what the crawl keeps of agents and masters cannot be read."""
    members, masters = members_of(directory), masters_of(directory)
    if not members:
        raise UsageError(f"the crawl in {directory} has one agent, which has all domains")
    settings = ledger_settings(read_wiring(directory))
    if names:
        kind = handing_over.division(directory, members, settings, by_table=bool(masters))
        domains = domain_rule_of(settings)
        for domain in dict.fromkeys(domains.assignable(given_host(name)) for name in names):
            yield domain, kind.owner(domain)
        return
    if not masters:
        raise UsageError(f"the crawl in {directory} goes by the ring, which has no table; name the domains")
    with handing_over.opened_table(directory) as shared:
        yield from designated(shared.reading)


def forget_shared(directory: Path, ledgers: Sequence[Ledger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take domains that were given away, and URLs that wait for agents, out of what masters share.

    See `forget` of :class:`~gossamer.engine.subjects.Subject`. Raises CrawlDirectoryError.
    """
    if handing_over.keeps_parcels(directory) and not (handing_over.is_changing(directory) or agents_behind(directory)):
        handing_over.forget_parcels(directory)  # those that they are for have them
    if not (directory / SHARED).exists():
        return 0
    forget_copies(directory)
    with handing_over.opened_table(directory) as shared:
        gone = {domain: agent for domain, agent in designated(shared.reading) if target.has_host(domain)}
        for ledger in ledgers:  # before the table forgets which they are
            let_go(ledger, list(gone))
        with shared.erasing() as connection:
            delete_older_mail(connection, target.has)
            forget_domains(connection, gone)
    return 0  # mail is in no queue of an agent


# Domains that people give to agents: `gossamer designations DIR --assign DOMAIN=AGENT`. A domain without an agent is given away at
# once, in the table that masters share. One that an agent has moves with its queue while all agents rest, so it is a wish until
# then, in a note of the crawl's state.

#: The note of what people have said, inside the crawl directory.
_WISHES = "state/supervisor/assigned.json"


def read_wishes(directory: Path) -> dict[str, str]:
    """Domains that are to move to agents. Raises CrawlDirectoryError: the note is damaged."""
    return read_kept(directory / _WISHES, dict[str, str], "remove it, and assign the domains again") or {}


def forget_wishes(directory: Path, done: Mapping[str, str]) -> None:
    left = {domain: agent for domain, agent in read_wishes(directory).items() if done.get(domain) != agent}
    write_kept(directory / _WISHES, left)


def give_now(directory: Path, assigned: Mapping[str, str]) -> dict[str, str]:
    """Give domains that no agent has yet to agents: nothing has to move. Returns those that another agent has. Raises
    CrawlDirectoryError: the table cannot be read or written."""
    taken: dict[str, str] = {}
    with handing_over.opened_table(directory) as shared, shared.writing() as connection:
        for domain, agent in assigned.items():
            owner = agent_at(connection, domain_point(domain))
            if owner is None or owner == agent:
                give(connection, {domain: agent})
            else:
                taken[domain] = agent
    return taken


def given_domains(wanted: Mapping[str, str], agents: Sequence[str], wiring: Wiring) -> dict[str, str]:
    """The domains that a person gives to agents, by domains or hosts of them. Raises UsageError: one is no domain, or belongs
    to the crawl itself; or there is no such agent at work."""
    domains = domain_rule_of(ledger_settings(wiring))
    given: dict[str, str] = {}
    for name, agent in wanted.items():
        if agent not in agents:
            raise UsageError(f"{agent!r} is not an agent at work in this crawl; choose one of {', '.join(agents)}")
        domain = domains.assignable(given_host(name))
        if domain_point(domain) in digest_names():
            raise UsageError(f"{domain} is always assigned by the ring, and cannot be given to another agent")
        given[domain] = agent
    return given


def assign(directory: Path, wiring: Wiring, members: tuple[str, ...], wanted: Mapping[str, str]) -> dict[str, str]:
    """Give domains, or hosts of them, to the agents that are `wanted`: at once where nothing has to move; others are noted.
    Returns those that move when all agents rest, with their agents. Raises UsageError: one is no domain, or belongs to the crawl
    itself; or there is no such agent at work. Nothing has changed; CrawlDirectoryError: what masters share cannot be read or
    written."""
    by_table = bool(masters_of(directory))
    given = given_domains(wanted, at_work(members), wiring)
    if by_table:
        later = give_now(directory, given)
    else:
        now = handing_over.division(directory, members, ledger_settings(wiring), by_table=False)
        later = {domain: agent for domain, agent in given.items() if now.owner(domain) != agent}
    if later:
        write_kept(directory / _WISHES, {**read_wishes(directory), **later})
    return later


def told_of_assigned(wanted: Mapping[str, str], later: Mapping[str, str], how: str) -> str:
    """The answer to a person who gave domains to agents, in words; `how` says when those move that have to."""
    lines = [f"{domain} moves to {agent} {how}" for domain, agent in later.items()]
    if len(later) < len(wanted):
        lines.append("the other domains are assigned at once" if later else "assigned at once: nothing has to move")
    return "\n".join(lines)


def assign_at_rest(directory: Path, agents: Mapping[str, str]) -> str:
    """Give domains to agents of a crawl at rest; returns what was done, in words. Raises UsageError: that cannot be. Nothing
    has changed; CrawlDirectoryError: the crawl is at work, or what masters share cannot be read or written."""
    with closing(supervisor_lock(directory)):
        check_is_here(directory)
        wiring = read_wiring(directory)
        if not masters_of(directory) and not has_store(wiring):
            raise UsageError(
                f"the crawl in {directory} divides its domains by the ring, and gives one to another agent only while it runs; "
                "start it with gossamer resume"
            )
        check_can_change(wiring, directory)
        later = assign(directory, wiring, members_of(directory), agents)
    return told_of_assigned(agents, later, "when the crawl goes on")
