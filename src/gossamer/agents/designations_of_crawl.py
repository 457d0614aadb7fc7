"""Which agent has which domain, and domains that people give to agents: `gossamer designations`.

Place in the flow: it reads the table that the masters of a crawl share, also while they work. A running crawl changes it itself, by
a control message; of one at rest it is done here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from gossamer.agents.designations import SCHEMA, designated
from gossamer.agents.handing_over import DividedByRing, DividedByTable, assign, told_of_assigned
from gossamer.agents.masters import masters_of
from gossamer.agents.membership import check_can_change
from gossamer.agents.rendezvous import supervisor_lock
from gossamer.agents.shared_state import SharedFile
from gossamer.agents.wiring import ring_rule
from gossamer.crawls.directory import read_wiring
from gossamer.storage.recovery import members_of
from gossamer.values.errors import UsageError
from gossamer.values.hosts import domain_rule, given_host


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
    wiring = read_wiring(directory)
    if names:
        kind = DividedByTable(directory, members, wiring) if masters else DividedByRing(members, wiring)
        rule = ring_rule(wiring)
        domains = domain_rule(rule.get("division", "domain"), rule.get("together", ()))
        for domain in dict.fromkeys(domains.assignable(given_host(name)) for name in names):
            yield domain, kind.owner(domain)
        return
    if not masters:
        raise UsageError(f"the crawl in {directory} goes by the ring, which has no table; name the domains")
    with closing(SharedFile(directory)) as shared:
        shared.open(SCHEMA)
        yield from designated(shared.reading)


def assign_at_rest(directory: Path, agents: Mapping[str, str]) -> str:
    """Give domains to agents of a crawl that nobody is at work on; returns what was done, in words.

    Raises:
        UsageError: that cannot be. Nothing has changed.
        CrawlDirectoryError: somebody is at work, or what masters share cannot be read or written.
    """
    with closing(supervisor_lock(directory)):
        wiring = read_wiring(directory)
        check_can_change(wiring, directory)
        later = assign(directory, wiring, members_of(directory), agents)
    return told_of_assigned(agents, later, "when the crawl goes on")
