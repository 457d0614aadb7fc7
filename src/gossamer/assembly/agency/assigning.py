"""Domains that people give to agents themselves: `gossamer designations DIR --assign DOMAIN=AGENT`.

Place in the flow: a domain that nobody has yet is given away at once, in the table that masters share. One that an agent has moves
with its queue while all agents rest, so it is a wish until then, in a note of the crawl's state.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from gossamer.assembly.agency.handing import give_now
from gossamer.assembly.agents import ring_rule
from gossamer.assembly.masters import masters_of
from gossamer.flow.wiring import Wiring
from gossamer.model.agents import at_work
from gossamer.model.digest_claims import digest_names
from gossamer.model.domains import domain_point, domain_rule
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.model.host_table import given_host
from gossamer.stores.crawl_identity import crawl_id
from gossamer.stores.replacing import replace_file
from gossamer.stores.shared_state import SharedFile

#: The note of what people have said, inside the crawl directory.
_WISHES = "state/supervisor/assigned.json"


def check_shared(directory: Path) -> None:
    """Refuse a crawl whose masters have lost what they share, or have another crawl's.

    Raises:
        CrawlDirectoryError: that is so.
    """
    with closing(SharedFile(directory, crawl=crawl_id(directory))):
        pass


def read_wishes(directory: Path) -> dict[str, str]:
    """Domains that are to move to agents. Raises CrawlDirectoryError: the note is damaged."""
    path = directory / _WISHES
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; remove it, and assign the domains again") from None


def forget_wishes(directory: Path, done: Mapping[str, str]) -> None:
    """These domains have moved."""
    left = {domain: agent for domain, agent in read_wishes(directory).items() if done.get(domain) != agent}
    if left:
        replace_file(directory / _WISHES, msgspec.json.encode(left))
    else:
        (directory / _WISHES).unlink(missing_ok=True)


def assign(directory: Path, wiring: Wiring, members: tuple[str, ...], wanted: Mapping[str, str]) -> dict[str, str]:
    """Give domains to agents: at once where nothing has to move; of the others it is noted.

    Args:
        directory: of the crawl.
        wiring: the crawl's own.
        members: its agents.
        wanted: domains, or hosts of them, with the names of agents.

    Returns:
        The domains that move when all agents rest, with their agents.

    Raises:
        UsageError: one is no domain, or belongs to the crawl itself; or there is no such agent at work. Nothing has changed.
        CrawlDirectoryError: what masters share cannot be read or written.
    """
    if not masters_of(directory):
        raise UsageError(
            f"the crawl in {directory} divides its domains by the ring, which goes by their names; only a crawl that began "
            "with --designation master can give a domain to another agent"
        )
    names, rule = at_work(members), ring_rule(wiring)
    domains = domain_rule(rule.get("division", "domain"), rule.get("together", ()))
    given: dict[str, str] = {}
    for name, agent in wanted.items():
        if agent not in names:
            raise UsageError(f"{agent!r} is not an agent at work in {directory}; choose one of {', '.join(names)}")
        domain = domains.assignable(given_host(name))
        if domain_point(domain) in digest_names():
            raise UsageError(f"{domain} is always assigned by the ring, and cannot be given to another agent")
        given[domain] = agent
    later = give_now(directory, given)
    if later:
        path = directory / _WISHES
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode({**read_wishes(directory), **later}))
    return later


def told_of_assigned(wanted: Mapping[str, str], later: Mapping[str, str], how: str) -> str:
    """What became of domains that a person gave to agents, in words; `how` says when those move that have to."""
    lines = [f"{domain} moves to {agent} {how}" for domain, agent in later.items()]
    if len(later) < len(wanted):
        lines.append(
            "the other domains had no agent, and are assigned at once"
            if later
            else "assigned at once: nothing has to move"
        )
    return "\n".join(lines)
