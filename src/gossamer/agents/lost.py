"""Agents whose ledger is lost for good, and masters that have lost their shared file.

    supervisor   note ─► an empty ledger, and a file of links ─► the agent works again ─► forget file and note
    others                                                         owe it once more all that they have met

Place in the flow: an agent that has lost its ledger begins again with an empty one (:func:`begin_anew`), while the others work on,
or where a crawl goes on and a person says so. What the lost ledger had queued stood in it alone. It is found again as far as others
know of it: a process writes which links of all pages lead to domains of the agent, as the tables have them, and each other agent
owes it those that it has met, and so has sent, as any URL that it finds (:func:`owe_again`, a step of :mod:`domain_moves`). All of
this can be done again after a kill. Seeds are given to the agents anew in every run. Records and rows that the agent has written
stay, as where a crawl of one agent has lost its ledger (:mod:`gossamer.crawls.directory`). With a store, the agent goes on from its
last checkpoint instead (:func:`brought_back`).
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.agents.contract import DesignationPolicy
from gossamer.agents.designations import SCHEMA, chosen, give
from gossamer.agents.digests import CLAIMS_DUE, claim_again
from gossamer.agents.ended import end_of_ledger, ledger_of, opened_ledger
from gossamer.agents.handing_over import LOST, Divided, DividedByTable, lies_in
from gossamer.agents.joining import LOOK
from gossamer.agents.ring import held_domains, hold_again
from gossamer.agents.wiring import domain_rule_of, has_store
from gossamer.crawls.directory import begin_ledger_anew, damage_of
from gossamer.crawls.options import part_of
from gossamer.engine.files import replace_file
from gossamer.engine.sheet import show_count
from gossamer.storage.ledger.ledger import CLEAN, RocksLedger
from gossamer.storage.ledger.moving import Arc, forget_seen
from gossamer.storage.logs import log_path
from gossamer.storage.mailbox.mailbox import Mailbox
from gossamer.storage.mailbox.retaining import mail_of, point_path
from gossamer.storage.mailbox.shared_state import SHARED, shared_again
from gossamer.storage.mailbox.staging import DividedLedger
from gossamer.storage.members import agents_behind, crawl_id
from gossamer.values.agents import Designated, at_work, member
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import domain_point
from gossamer.values.task import Task
from gossamer.values.url import host_of

if TYPE_CHECKING:
    from gossamer.agents.run import AgentRun
    from gossamer.agents.several import SeveralAgents

#: Links that are looked at in one step.
_AT_ONCE = 5_000

#: Of them, those that an agent at work looks for and owes in one turn of its event loop: some milliseconds.
_OWED_AT_ONCE = 500

#: Targets of links by how near to a seed they were found, each with one page that has the link. The pages of the lost agent, too.
LINKS_BY_DEPTH = """
SELECT l.target, min(p.depth) + 1, any_value(l.source), any_value(l.relation)
FROM links_all l JOIN pages_all p ON p.visit = l.visit GROUP BY l.target
"""

#: The end of the name of an agent's file of links; it lies beside its note.
_LINKS = ".links"

_tasks = msgspec.json.Decoder(Task)


# An agent begins again, and the others tell it what they know of its domains.


def note_loss(directory: Path, agent: str) -> None:
    """From now on an agent is to begin again. Raises OSError: it could not be noted."""
    (directory / LOST).mkdir(parents=True, exist_ok=True)
    (directory / LOST / agent).with_suffix(_LINKS).unlink(missing_ok=True)
    replace_file(directory / LOST / agent, str(time.time_ns()).encode())


def noted_losses(directory: Path, *, with_links: bool) -> dict[str, bytes]:
    """The agents that begin again, each with its note: those that have their empty ledgers, or those that have not."""
    notes = sorted(note for note in (directory / LOST).glob("*") if not note.suffix)
    return {note.name: note.read_bytes() for note in notes if note.with_suffix(_LINKS).exists() == with_links}


def forget_loss(directory: Path, agent: str, loss: bytes) -> None:
    """All know of a loss; a later one of the same agent stays noted."""
    note = directory / LOST / agent
    if note.read_bytes() == loss:
        note.unlink()
        note.with_suffix(_LINKS).unlink(missing_ok=True)


def begin_anew(directory: Path, settings: Mapping[str, Any], agent: str, division: Divided) -> int:
    """Put an empty ledger in the place of a lost one, and write which links lead to the domains that its agent has by this
    division; returns how many files of the agent stay. It may be done again before the agent works."""
    ledger, files = ledger_of(directory, settings, agent), 0
    if damage_of(ledger) is not None:
        files = begin_ledger_anew(directory, ledger)
    with ExitStack() as stack:
        empty = opened_ledger(directory, settings, agent, stack)
        # It has asked hosts of which it knows nothing any more: the first requests wait, as after a kill.
        with empty.group() as group:
            group.meta(CLEAN, b"")
        if isinstance(division, DividedByTable):
            hold_again(empty, division.domains(agent))
    arcs, assignable = division.arcs(agent), domain_rule_of(settings).assignable
    links = (directory / LOST / agent).with_suffix(_LINKS)
    fresh = links.with_name(f"{links.name}.new")
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(arcs) + b"\n")
        for task in chain.from_iterable(found_links(directory)):
            if lies_in(arcs, assignable(task.host)):
                file.write(msgspec.json.encode(task) + b"\n")
    fresh.replace(links)
    return files


async def owe_again(run: "AgentRun", agent: str) -> int:
    """Owe an agent that has begun again all that this one has met of its domains, as far as the tables have the links; returns how
    much that was. By masters it goes as mail: their tables of recent URLs would hold it back."""
    [front] = run.providers(DividedLedger)
    is_by_table = bool(run.providers(Mailbox)[0].sheet.masters)
    count = 0
    with (run.directory / LOST / agent).with_suffix(_LINKS).open("rb") as file:
        arcs = msgspec.json.decode(file.readline(), type=list[Arc])
        while part := [_tasks.decode(line) for line in islice(file, _OWED_AT_ONCE)]:
            met = [task for task in part if run.ledger.is_seen(task.identity)]
            with front.group() as group:
                pushed: Any = group
                if is_by_table:
                    pushed.pass_on(Designated(agent, task) for task in met)
                else:
                    pushed.divert(met, is_new=True)
            count += len(met)
            await asyncio.sleep(0)
    # A link that the tables do not have is sent when it is met once more.
    forget_seen(run.ledger, arcs)
    # The agent's digests are gone, too.
    with run.ledger.group() as group:
        group.count(CLAIMS_DUE)
    await claim_again(run)
    return count


def found_links(directory: Path, at_once: int = _AT_ONCE) -> Iterator[list[Task]]:
    """The targets of all links that the tables have, as tasks, each once; some at a time. None where they have no links."""
    from gossamer.query.database import Database  # a crawl without losses pays for nothing of this

    with Database(directory) as database:
        if not {"links", "pages"} <= set(database.tables):
            return
        rows = iter(database.ask(LINKS_BY_DEPTH))
        while part := list(islice(rows, at_once)):
            yield [Task(target, host_of(target), depth, source, relation) for target, depth, source, relation in part]


# URLs that lost agents had fetched, as their logs say: where no page leads there any more, the crawl is not whole.


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


async def told_of_missing(crawl: "SeveralAgents", losses: Sequence[LostWork]) -> str:
    """The message about URLs that lost agents had fetched, and that no page has led to again; empty where there are none."""
    from gossamer.agents.parcels import AgentsAtRest

    missing = sorted({url for loss in losses for url in fetched(crawl.directory, loss)})
    async with AgentsAtRest(crawl.directory, crawl.graph.wiring) as agents:
        for name in crawl.roster.names if missing else ():
            [missing] = await agents.told("unseen", [name], list[str], missing)
    if not missing:
        return ""
    names = " and ".join(dict.fromkeys(loss.agent for loss in losses))
    return (
        f"{show_count(len(missing), 'URL')} that {names} had fetched could not be found again, such as {min(missing)}; "
        "their documents stay in the archive"
    )


async def back_from_store(
    directory: Path,
    store: Mapping[str, Any],
    agent: str,
    say: Callable[[str], object],
    is_over: Callable[[], bool],
    *,
    is_dead: bool = True,
    was_apart: bool = False,
) -> bool:
    """Bring an agent back from the store as soon as that can be; False where the crawl is over before. Raises CrawlDirectoryError:
    the agent is not known to be dead, and something keeps it from coming back for longer than its lease."""
    from gossamer.backup.one_agent import bring_agent_back

    url, lease = store["url"], store.get("lease", 30.0)
    told, until, loop = "", time.monotonic() + lease + LOOK, asyncio.get_running_loop()
    while not is_over():
        try:
            line = await asyncio.to_thread(
                bring_agent_back,
                *(directory, url, agent, lease),
                is_dead=is_dead,
                was_apart=was_apart,
                is_over=is_over,
                tell=lambda line: loop.call_soon_threadsafe(say, line),
            )
        except CrawlDirectoryError as error:
            if not is_dead and time.monotonic() > until:
                raise
            if not told:
                say(told := f"{agent} has lost its ledger, and cannot go on yet: {error}")
            await asyncio.sleep(LOOK)
        else:
            if line:
                say(line)
            return True
    return False


async def brought_back(crawl: "SeveralAgents", agent: str, is_dead: bool) -> bool:
    """Bring an agent back whose ledger is lost, from the store; whether all have to rest, since it is behind the last change of
    agents. One that is not known to be dead must be silent for the lease. Raises CrawlDirectoryError: it is not, or the store
    cannot be read; of one that is dead, this tries again."""
    from gossamer.backup.options import StoreOptions

    is_dead = is_dead or crawl.has_rested
    if not (is_dead or crawl.options.resume):
        return False
    sheet: Any = crawl.graph.sheet("store")
    is_dead = is_dead or part_of(crawl.options, StoreOptions).take_over
    store = {"url": sheet.url, "lease": sheet.lease}
    if not await back_from_store(
        crawl.directory, store, agent, crawl.report, lambda: crawl.supervisor.is_stopping, is_dead=is_dead
    ):
        return False
    if is_behind := agent in agents_behind(crawl.directory):
        crawl.roster.renew()
    return is_behind


async def store_is_there(crawl: "SeveralAgents") -> None:
    """Wait while the store is away. Raises StoreFailed: it is, and the crawl is told to stop."""
    if not (crawl.is_shared and has_store(crawl.graph.wiring)):
        return
    from gossamer.backup.contract import StoreFailed
    from gossamer.backup.opening import open_store, probe

    sheet: Any = crawl.graph.sheet("store")
    try:
        while True:
            try:
                await asyncio.to_thread(lambda: probe(open_store(sheet.url)))
            except StoreFailed as error:
                if crawl.is_told_to_stop:
                    raise
                if not crawl.waits_for_store:
                    crawl.waits_for_store = True
                    crawl.report(f"{error}; trying again, and all agents rest until it is there")
                await asyncio.sleep(LOOK)
            else:
                return
    finally:
        crawl.waits_for_store = False


# Masters that have lost their shared file for good: the table of designations is made again of the domains that agents hold
# (:mod:`ring`), where a person says so. Only mail of an older version is lost: its finders owe it no more. It is found
# again in the links of pages, and agents claim their documents anew.


def is_table_lost(directory: Path) -> bool:
    return not (directory / SHARED).exists()


def make_table_again(
    directory: Path, settings: Mapping[str, Any], members: Sequence[str], policy: DesignationPolicy
) -> Iterator[str]:
    """Make the table that masters share again, and yield lines for people. `policy` chooses for domains that no agent holds, and of
    which URLs are lost. A kill meanwhile leaves the table lost, and harms nothing. Raises CrawlDirectoryError: it cannot be made
    again, since something else is lost too."""
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
            if not any(ledger.is_seen(task.identity) for ledger in self._ledgers.values()):
                continue
            if not owner:  # no agent holds the domain
                at_point = self._at_points.get(domain_point(domain))
                owner = at_point or chosen(self._policy, domain, self._members, self._counts)
                self._note(domain, owner)
                hold_again(self._ledgers[owner], [domain])
            lost.setdefault(owner, []).append(task)
        count = 0
        for owner, those in lost.items():
            with self._ledgers[owner].group() as group:
                new = group.meet(those).new
                for task in new:
                    if group.tally("host", task.host, 1) == 1:
                        group.count("hosts")
                group.push(new)
            count += len(new)
        return count

    def _note(self, domain: str, agent: str) -> None:
        self.owners[domain] = self._at_points[domain_point(domain)] = agent
        self._counts[agent] += 1
