"""Which agent has which domain, and domains that people give to agents: `gossamer designations`.

Place in the flow: it reads the table that the masters of a crawl share, also while they work. A running crawl changes it itself, by
a control message; of one at rest it is done here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from gossamer.agents.designations import SCHEMA, designated, forget_domains
from gossamer.agents.handing_over import DividedByRing, DividedByTable, assign, read_moved, told_of_assigned
from gossamer.agents.held_domains import let_go
from gossamer.agents.masters import masters_of
from gossamer.agents.membership import check_can_change
from gossamer.agents.rendezvous import supervisor_lock
from gossamer.agents.wiring import domain_rule_of, ledger_settings
from gossamer.crawls.directory import read_wiring
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.mailbox.shared_state import SHARED, SharedFile, delete_older_mail, forget_copies
from gossamer.storage.recovery import members_of
from gossamer.values.errors import UsageError
from gossamer.values.hosts import DeletionTarget, given_host


def designations(directory: Path, names: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Assignable domains with their agents: all that were given away, or those of some hosts; the agent is empty where none has it.

    Args:
        directory: of the crawl.
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
    """Give domains to agents of a crawl at rest; returns what was done, in words.

    Raises:
        UsageError: that cannot be. Nothing has changed.
        CrawlDirectoryError: the crawl is at work, or what masters share cannot be read or written.
    """
    with closing(supervisor_lock(directory)):
        wiring = read_wiring(directory)
        check_can_change(wiring, directory)
        later = assign(directory, wiring, members_of(directory), agents)
    return told_of_assigned(agents, later, "when the crawl goes on")


def forget_shared(directory: Path, ledgers: Sequence[Ledger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take domains that were given away, and URLs that wait for agents, out of what masters share.

    See `forget` of :class:`~gossamer.engine.subjects.Subject`. Raises CrawlDirectoryError.
    """
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
