"""How one agent among several stands, and how one master does: parts of how the crawl stands.

Place in the flow: whoever adds up the standings of agents (:mod:`adding`) notes here what each of them said.
"""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gossamer.assembly.control.standing import CrawlStanding

#: The state of an agent or a master that does not answer: it is being started again, or is lost.
SILENT = "silent"


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent. The names are those of the whole crawl, and mean the same."""

    name: str
    state: str
    """As of a crawl, or `silent`."""
    process: int = 0
    pages: int = 0
    fetched: int = 0
    bytes: int = 0
    errors: int = 0
    queued: int = 0
    hosts: int = 0
    in_flight: int = 0
    concurrency: int = 0
    recent_pages_per_second: float = 0.0
    busy: float = 0.0
    peak_rss_bytes: int = 0
    silent_seconds: float = 0.0
    """Since it answered its supervisor last, where that is long; 0 where it is not."""
    silences: int = 0
    """How often it has been silent in this run."""
    restarts: int = 0
    """How often it was started again in this run."""


class MasterStanding(msgspec.Struct, frozen=True):
    """One master that gives domains to agents."""

    name: str
    state: str
    """`running`, `silent`, or `gone`: another master does its work."""
    process: int = 0
    marshaled: int = 0
    """URLs that it has taken from agents, since it was started."""
    waiting: int = 0
    """URLs that it has yet to bring to agents, in memory and on the disk."""
    lag: float = 0.0
    """Seconds for which the agent that is latest has not acknowledged what it was sent."""


def agent_standing(name: str, told: "CrawlStanding | None") -> AgentStanding:
    """What an agent said of itself; None where it does not answer."""
    if told is None:
        return AgentStanding(name, SILENT)
    shared = {field: getattr(told, field) for field in AgentStanding.__struct_fields__ if hasattr(told, field)}
    return AgentStanding(name, **shared)
