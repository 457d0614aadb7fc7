"""Agents whose ledger is lost for good, and masters that have lost their shared file.

Place in the flow: the domains of a lost agent go to heirs as those of an agent that leaves do (:mod:`membership`): to the
others, where it has lost its ledger at work, or to itself, where a crawl goes on and a person says so. What a lost ledger had
queued stood in it alone. It is found again as far as others know of it: each of them writes what it has sent there and what it
still owes (:func:`give_found`), by the links of pages, which the tables have, and the heirs queue that (:func:`take_found`).
Seeds are given to the agents anew in every run. Records and rows that the lost agent has written stay, as where a crawl of one
agent has lost its ledger (:mod:`gossamer.crawls.directory`).

All of this but the words for people is done by processes that work for one agent each (:mod:`parcels`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SCHEMA, chosen, give
from gossamer.agents.digests import CLAIMS_DUE
from gossamer.agents.ended import end_of_ledger, ledger_of, opened_ledger
from gossamer.agents.handing_over import Heirs, lies_in
from gossamer.agents.ring import held_domains, hold_again
from gossamer.agents.wiring import domain_rule_of
from gossamer.crawls.directory import begin_ledger_anew, damage_of
from gossamer.engine.sheet import show_count
from gossamer.storage.contract import OWED
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.moving import Arc, forget_seen
from gossamer.storage.ledger.parcels import found_within
from gossamer.storage.logs import log_path
from gossamer.storage.mailbox.contract import OwedTask
from gossamer.storage.mailbox.retaining import mail_of, point_path
from gossamer.storage.mailbox.shared_state import SHARED, shared_again
from gossamer.storage.mailbox.staging import count_owed, owed_key, owed_task
from gossamer.storage.recovery import crawl_id
from gossamer.storage.tables.manifest import notes_of, write_notes
from gossamer.storage.tables.places import converting, rows_directory
from gossamer.values.agents import CLAIM, at_work, member
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import domain_point
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import ORDER

#: Links that are looked at in one step.
_AT_ONCE = 5_000

#: Targets of links by how near to a seed they were found, each with one page that has the link. The pages of the lost agent, too.
LINKS_BY_DEPTH = """
SELECT l.target, min(p.depth) + 1, any_value(l.source), any_value(l.relation)
FROM links_all l JOIN pages_all p ON p.visit = l.visit GROUP BY l.target
"""

#: Files of tasks beside parcels, called after giver and heir.
_FOUND = ".found"

#: Under this name a ledger keeps the last change in which it has forgotten what it had sent to a lost agent.
_FORGOTTEN = "lost"

_tasks = msgspec.json.Decoder(Task)


# What others know of the domains of lost agents.


def begin_again(directory: Path, settings: Mapping[str, Any], agent: str) -> int:
    """Put an empty ledger in the place of a lost one; returns how many files of its agent stay. A second time does nothing."""
    ledger = ledger_of(directory, settings, agent)
    if damage_of(ledger) is None:
        return 0
    if not rows_directory(directory, agent).exists():
        # Rows that were no tables yet are gone too: the index is made of the archive, which has all of them.
        with converting(directory, wait=True):
            write_notes(directory, msgspec.structs.replace(notes_of(directory), index=()))
    return begin_ledger_anew(directory, ledger)


def give_found(ledger: RocksLedger, folder: Path, agent: str, heirs: Heirs, assignable: Callable[[str], str]) -> None:
    """Write what an agent has sent to lost ones and what it owes them, a file for each heir; files that are there are whole."""
    paths = {heir: folder / f"{agent}-{heir}{_FOUND}" for heir in heirs}
    if all(path.exists() for path in paths.values()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    fresh = {heir: path.with_name(f"{path.name}.new") for heir, path in paths.items()}
    owed = _owed(ledger, [arc for arcs in heirs.values() for arc in arcs])
    sent = (
        task
        for task in chain.from_iterable(found_links(ledger.places.state.parents[1]))
        if ledger.is_seen(task.identity)
    )
    with ExitStack() as stack:
        files = {heir: stack.enter_context(path.open("wb")) for heir, path in fresh.items()}
        for task in chain((one for one in owed if one.relation not in (ORDER, CLAIM)), sent):
            domain = assignable(task.host)
            if heir := next((heir for heir, arcs in heirs.items() if lies_in(arcs, domain)), ""):
                files[heir].write(msgspec.json.encode(task) + b"\n")
    for heir, path in paths.items():
        fresh[heir].replace(path)


def take_found(
    ledger: RocksLedger, folder: Path, agent: str, lost: Sequence[Arc], stamp: str, *, is_alone: bool
) -> int:
    """Queue what others have found for an agent; returns how many URLs were new.

    Args:
        lost: stretches of the circle that lost agents had.
        stamp: names the change, so that what was sent there is forgotten once.
        is_alone: no other agent works, so that nothing can be owed any more.
    """
    if ledger.meta(_FORGOTTEN) != stamp.encode():
        forget_seen(ledger, lost)
        owed = _owed(ledger, lost)
        with ledger.group() as group:
            for task in owed:
                if is_alone or task.relation != ORDER:
                    group.delete(OWED, task.host, owed_key(task))
                    count_owed(OwedTask("", task), group, -1)
            # The lost agents' digests are gone: all others claim their documents again when they start.
            group.count(CLAIMS_DUE)
            group.meta(_FORGOTTEN, stamp.encode())
    count = 0
    for path in sorted(folder.glob(f"*-{agent}{_FOUND}")):
        with path.open("rb") as file:
            tasks = map(_tasks.decode, file)
            while part := list(islice(tasks, _AT_ONCE)):
                count += queue_found(ledger, part)
    return count


def _owed(ledger: RocksLedger, arcs: Sequence[Arc]) -> list[Task]:
    ledger.spaces.open(OWED)
    return list(map(owed_task, found_within(ledger, OWED, arcs)))


def found_links(directory: Path) -> Iterator[list[Task]]:
    """The targets of all links that the tables have, as tasks, each once; some at a time. None where they have no links."""
    from gossamer.query.database import Database  # who has lost nothing pays for nothing of this

    with Database(directory) as database:
        if not {"links", "pages"} <= set(database.tables):
            return
        rows = iter(database.ask(LINKS_BY_DEPTH))
        while part := list(islice(rows, _AT_ONCE)):
            yield [Task(target, host_of(target), depth, source, relation) for target, depth, source, relation in part]


def queue_found(ledger: RocksLedger, tasks: Sequence[Task]) -> int:
    """Queue those of some tasks that the ledger has not seen; returns how many."""
    with ledger.group() as group:
        new = group.meet(tasks).new
        for task in new:
            if group.tally("host", task.host, 1) == 1:
                group.count("hosts")
        group.push(new)
    return len(new)


# What lost agents had fetched, as their logs say: where no page leads there any more, the crawl is not whole.


class LostWork(msgspec.Struct, frozen=True):
    """The rest of the work of an agent that has lost its ledger while others went on."""

    agent: str
    logged: int
    """The byte at which its log ended then."""


class _Row(msgspec.Struct, frozen=True):
    event: str
    url: str = ""
    mark: str = ""


_rows = msgspec.json.Decoder(_Row)


def loss_of(directory: Path, agent: str) -> LostWork:
    try:
        return LostWork(agent, (directory / log_path(agent)).stat().st_size)
    except FileNotFoundError:
        return LostWork(agent, 0)


def fetched(directory: Path, loss: LostWork) -> Iterator[str]:
    """The URLs of pages that an agent has logged before its loss."""
    if not loss.logged:
        return
    with (directory / log_path(loss.agent)).open("rb") as log:
        while log.tell() < loss.logged and (line := log.readline()):
            with suppress(ValueError):  # the last line may be torn
                row = _rows.decode(line)
                if row.event == "page" and not row.mark:
                    yield row.url


def told_of_missing(losses: Sequence[LostWork], missing: Sequence[str]) -> str:
    """What is said of URLs that lost agents had fetched, and that no page has led to again."""
    names = " and ".join(dict.fromkeys(loss.agent for loss in losses))
    return (
        f"{show_count(len(missing), 'URL')} that {names} had fetched could not be found again, such as {min(missing)}; "
        "their documents stay in the archive"
    )


# Masters that have lost their shared file for good: the table of designations is made again of the domains that agents hold
# (:mod:`ring`), where a person says so. Only mail of an older version is lost: its finders owe it no more. It is found
# again in the links of pages, and agents claim their documents anew.


def is_table_lost(directory: Path) -> bool:
    return not (directory / SHARED).exists()


def make_table_again(
    directory: Path, settings: Mapping[str, Any], members: Sequence[str], policy: DesignationPolicy
) -> Iterator[str]:
    """Make the table that masters share again. A kill meanwhile leaves it lost, and harms nothing.

    Args:
        policy: chooses for domains that no agent holds, and of which URLs are lost.

    Yields:
        Lines for people.

    Raises:
        CrawlDirectoryError: the table cannot be made again, since something else is lost too.
    """
    names = at_work(members)
    for name in names:
        if damage := end_of_ledger(directory, ledger_of(directory, settings, name)).damage:
            raise CrawlDirectoryError(f"{damage}, and {directory / SHARED} is gone; bring one of them back from a copy")
    with ExitStack() as stack:
        ledgers = {name: opened_ledger(directory, settings, name, stack, existing=False) for name in names}
        again = _TableAgain(directory, settings, members, policy, ledgers)
        # Agents of a crawl with a store keep what they have sent until nothing of it can be lost.
        found = 0
        if not any(point_path(directory, name).exists() for name in names):
            found = sum(map(again.queue_lost, found_links(directory)))
            for ledger in ledgers.values():
                with ledger.group() as group:
                    group.count(CLAIMS_DUE)
    with shared_again(directory, crawl_id(directory)) as shared:
        shared.open(SCHEMA)
        with shared.writing() as connection:
            give(connection, again.owners)
    yield f"the table of agents and their {len(again.owners):,} domains was made again from what the agents hold"
    if found:
        yield f"{found:,} URLs that no agent has are queued again, since pages lead to them"


class _TableAgain:
    """Finds out which agent has which domain."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, Any],
        members: Sequence[str],
        policy: DesignationPolicy,
        ledgers: Mapping[str, RocksLedger],
    ) -> None:
        self.owners: dict[str, str] = {}
        """Domain -> agent."""
        self._rule = domain_rule_of(settings)
        self._members = [one for one in map(member, members) if one.capacity]
        self._policy = policy
        self._ledgers = ledgers
        self._at_points: dict[int, str] = {}
        self._counts = dict.fromkeys(ledgers, 0)
        for name, ledger in ledgers.items():
            for domain in held_domains(ledger):
                if (other := self.owners.get(domain)) is not None:
                    raise CrawlDirectoryError(
                        f"{directory / SHARED} is gone, and both {other} and {name} hold {domain}; bring it back from a copy"
                    )
                self._note(domain, name)
        for ledger in ledgers.values():
            for agent, task in mail_of(ledger):
                if (domain := self._rule.assignable(task.host)) not in self.owners and agent in ledgers:
                    self._note(domain, agent)

    def queue_lost(self, tasks: Iterable[Task]) -> int:
        """Queue those of some URLs that agents have sent, and that no agent has; returns how many."""
        lost: dict[str, list[Task]] = {}
        for task in tasks:
            domain = self._rule.assignable(task.host)
            owner = self.owners.get(domain, "")
            if owner and self._ledgers[owner].is_seen(task.identity):
                continue
            # An agent that has seen it let it through its filters, and has sent it.
            if any(ledger.is_seen(task.identity) for ledger in self._ledgers.values()):
                lost.setdefault(owner or self._given(domain), []).append(task)
        return sum(queue_found(self._ledgers[owner], those) for owner, those in lost.items())

    def _given(self, domain: str) -> str:
        """Let an agent hold a domain that none holds."""
        agent = self._at_points.get(domain_point(domain)) or chosen(self._policy, domain, self._members, self._counts)
        self._note(domain, agent)
        hold_again(self._ledgers[agent], [domain])
        return agent

    def _note(self, domain: str, agent: str) -> None:
        self.owners[domain] = self._at_points[domain_point(domain)] = agent
        self._counts[agent] += 1
