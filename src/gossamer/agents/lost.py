"""Agents whose ledger is lost for good: the crawl stops with a word, or their part begins again where a person says so.

Place in the flow: the supervisor calls :func:`check_lost` before it starts agents, and while a crawl rests of which one agent has
lost its ledger at work: then the others are there, and no person needs to say so. What a lost ledger had queued stood in it alone.
It is found again as far as others know of it: from the links of their pages, which the tables have, and from the seeds, which every
run gives to the agents anew. Records and rows that the lost agent has written stay, as where a crawl of one agent has lost its
ledger (:mod:`gossamer.crawls.directory`).
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path

import msgspec

from gossamer.agents.digests import CLAIMS_DUE
from gossamer.agents.handing_over import DividedByRing, DividedByTable, DomainDivision
from gossamer.agents.held_domains import hold_again
from gossamer.agents.parcels import ledger_of, opened_ledger
from gossamer.crawls.directory import begin_ledger_anew, damage_of
from gossamer.engine.sheet import show_count
from gossamer.engine.wiring import Wiring
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.moving import forget_seen
from gossamer.storage.logs import log_path
from gossamer.storage.recovery import files_of, members_of
from gossamer.storage.tables.manifest import notes_of, write_notes
from gossamer.storage.tables.places import converting
from gossamer.storage.tables.segments import rows_directory
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: Links that are looked at in one step.
_AT_ONCE = 5_000

#: Targets of links by how near to a seed they were found, each with one page that has the link. The pages of the lost agent, too.
LINKS_BY_DEPTH = """
SELECT l.target, min(p.depth) + 1, any_value(l.source), any_value(l.relation)
FROM links_all l JOIN pages_all p ON p.visit = l.visit GROUP BY l.target
"""


def check_lost(
    directory: Path,
    wiring: Wiring,
    members: Sequence[str],
    division: DividedByRing | DividedByTable,
    *,
    accept: bool,
    known: Collection[str] = (),
) -> Iterator[str]:
    """Say which agents have lost their ledgers, and let these begin again.

    Args:
        directory: the crawl directory; the caller has it alone.
        wiring: of the crawl, for the settings of its ledgers.
        members: the agents of the crawl.
        division: says whose a host is.
        accept: a person has said to go on without, or other agents do.
        known: agents that were at work, whether they have written anything or not.

    Yields:
        Lines for people.

    Raises:
        CrawlDirectoryError: a ledger is lost, and that is not accepted; or no ledger is left.
    """
    names = [member(text).agent for text in members]
    damages = {name: damage_of_agent(directory, wiring, name, has_begun=name in known) for name in names}
    lost = {name: damage for name, damage in damages.items() if damage is not None}
    if not lost:
        return
    first, damage = next(iter(lost.items()))
    if len(lost) == len(names):
        raise CrawlDirectoryError(f"{damage}, and so are those of all other agents; begin anew with --overwrite")
    if not accept:
        raise CrawlDirectoryError(
            f"{damage}; bring state/{first} back from a copy, or fetch the part of {first} again: "
            f"gossamer resume {directory} --accept-loss"
        )
    if any(not rows_directory(directory, name).exists() for name in lost):
        # Rows that were no tables yet are gone too: the index is made of the archive, which has all of them.
        with converting(directory, wait=True):
            write_notes(directory, msgspec.structs.replace(notes_of(directory), index=()))
    for name in lost:
        files = begin_ledger_anew(directory, ledger_of(directory, wiring.providers["ledger"].settings, name))
        yield f"the crawl goes on without the ledger of {name}; {files} files of its archive and logs stay"
    with ExitStack() as stack:
        kept = [
            opened_ledger(directory, wiring.providers["ledger"].settings, name, stack)
            for name in names
            if name not in lost
        ]
        begun = {name: opened_ledger(directory, wiring.providers["ledger"].settings, name, stack) for name in lost}
        for name, ledger in begun.items():
            if isinstance(division, DividedByTable):
                hold_again(ledger, division.domains(name))
        found = _found_again(directory, kept, begun, division)
        for ledger in kept:
            for name in lost:
                forget_seen(ledger, division.arcs(name))
            with ledger.group() as group:
                # The lost agents' digests are gone: all others claim their documents again when they start.
                group.count(CLAIMS_DUE)
    yield (
        f"{found:,} URLs of {' and '.join(lost)} are fetched again, since pages of other agents lead to them; "
        "URLs to which only lost pages led are found when these pages are fetched again, unless the pages have changed"
    )


class LostWork(msgspec.Struct, frozen=True):
    """What is left of the work of an agent that has lost its ledger while others went on."""

    agent: str
    logged: int
    """The byte at which its log ended then."""


class _Row(msgspec.Struct, frozen=True):
    event: str
    url: str = ""
    mark: str = ""


_rows = msgspec.json.Decoder(_Row)


def loss_of(directory: Path, agent: str) -> LostWork:
    """What an agent has lost, which does not run."""
    try:
        return LostWork(agent, (directory / log_path(agent)).stat().st_size)
    except FileNotFoundError:
        return LostWork(agent, 0)


def told_of_missing(directory: Path, losses: Sequence[LostWork]) -> str:
    """What is said of URLs that lost agents had fetched, and that no page has led to again; empty where there are none."""
    missing: set[str] = set()
    with ExitStack() as stack:
        ledgers = [RocksLedger(LedgerSheet(directory=str(directory), agent=name)) for name in _agents(directory)]
        known = [stack.enter_context(ledger.looking()) for ledger in ledgers]
        for loss in losses:
            for url in _fetched(directory, loss):
                if not any(ledger.is_seen(url) for ledger in known):
                    missing.add(url)
    if not missing:
        return ""
    names = " and ".join(dict.fromkeys(loss.agent for loss in losses))
    return (
        f"{show_count(len(missing), 'URL')} that {names} had fetched could not be found again, such as {min(missing)}; "
        "their documents stay in the archive"
    )


def _agents(directory: Path) -> Iterator[str]:
    for text in members_of(directory):
        if (directory / STATE_DIRECTORY / (name := member(text).agent) / "ledger").is_dir():
            yield name


def _fetched(directory: Path, loss: LostWork) -> Iterator[str]:
    """The URLs of pages that an agent has logged before its loss."""
    if not loss.logged:
        return
    with (directory / log_path(loss.agent)).open("rb") as log:
        while log.tell() < loss.logged and (line := log.readline()):
            with suppress(msgspec.DecodeError):  # the last line may be torn
                row = _rows.decode(line)
                if row.event == "page" and not row.mark:
                    yield row.url


def damage_of_agent(
    directory: Path, wiring: Wiring, agent: str, *, has_begun: bool = False
) -> CrawlDirectoryError | None:
    """What is wrong with the ledger of an agent that was at work, or has written something; None where nothing is."""
    damage = damage_of(ledger_of(directory, wiring.providers["ledger"].settings, agent))
    return damage if damage is not None and (has_begun or any(files_of(directory, agent))) else None


def _found_again(
    directory: Path, kept: Sequence[RocksLedger], begun: dict[str, RocksLedger], division: DomainDivision
) -> int:
    """Queue what other agents have sent to those that begin again: links that they count as seen."""
    count = 0
    for part in found_links(directory):
        tasks: dict[str, list[Task]] = {name: [] for name in begun}
        for task in part:
            owner = division.owner(task.host)
            if owner in begun and any(ledger.is_seen(task.url) for ledger in kept):
                tasks[owner].append(task)
        for name, those in tasks.items():
            count += queue_found(begun[name], those)
    return count


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
