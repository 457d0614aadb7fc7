"""The options of a crawl that several processes share: agents, crawlers, masters, exchange files.

Place in the flow: :class:`~gossamer.crawls.options.CrawlOptions` has them.
"""

from typing import Annotated, Literal

from gossamer.crawls.basic_options import BasicOptions
from gossamer.engine.sheet import setting
from gossamer.values.settings import MOST_AGENTS, MaxAgents

_AGENTS = "it runs in the process of a program; stop it, and let agents join: gossamer resume DIR --agents N"
_BEGINNING = "it says how a crawl begins"
_LISTENS = "agents join there; stop the crawl, and give it to gossamer resume"
_MASTERS = "masters read it when they start; stop the crawl, and give it to gossamer resume"

#: Masters of one crawl: two are enough for any one of them to be lost, and each agent keeps a connection to each.
MOST_MASTERS = 8

#: Crawlers on one queue: long before that, its keeper has no processor time left.
MOST_CRAWLERS = 64


#: A setting of the ring and of the policy, too.
PlaceRules = Annotated[
    tuple[str, ...],
    setting(
        "Prefer agents at this place for hosts with this suffix or in this network, as hu=budapest or 192.0.2.0/24=oslo; the "
        "option needs --policy by-place."
    ),
]


class ProcessOptions(BasicOptions, frozen=True):
    """Options of processes: which of them does the work."""

    @property
    def is_divided(self) -> bool:
        """They ask for several agents that are connected, or for what only a crawl of those has."""
        return bool(self.dividing) and self.exchange != "files"

    @property
    def dividing(self) -> list[str]:
        """Those of them that were given, as on the command line."""
        given = {
            "--agents": (self.agents or 1) > 1,
            "--cluster": self.cluster,
            "--listen": self.listen,
            "--designation": self.designation == "master",
            "--masters": self.masters,
            "--policy": self.policy,
            "--place": self.place,
            "--agent-place": self.agent_place,
        }
        return [name for name, value in given.items() if value]

    agents: (
        Annotated[
            int,
            setting(
                "Divide the hosts among this many processes, each with its own part of the crawl; without it, a crawl begins "
                "with one, and others join when the processor is busy and several sites wait. Each of them "
                f"keeps a connection to each of the others, so {MOST_AGENTS} are the most.",
                restart=_AGENTS,
                ge=1,
                le=MOST_AGENTS,
            ),
        ]
        | None
    ) = None
    cluster: Annotated[
        str,
        setting(
            "Let this cluster run the agents: local (the default: this machine), joined, ray, or one of an installed package.",
            restart="agents cannot change their cluster while they work; stop the crawl, and give it to gossamer resume",
            names="code",
        ),
    ] = ""
    listen: Annotated[
        str,
        setting(
            "With --cluster joined or ray: let agents on other machines join at HOST:PORT.",
            restart=_LISTENS,
            names="an address",
        ),
    ] = ""
    secret_file: Annotated[
        str,
        setting(
            "Read the secret that agents on other machines show from this file; without it, GOSSAMER_SECRET has it.",
            restart=_LISTENS,
            names="a file",
        ),
    ] = ""
    max_agents: Annotated[MaxAgents, setting(sets="frontier")] = None
    crawlers: (
        Annotated[
            int,
            setting(
                "Let this many processes fetch and read pages. They lease URLs from one queue and one URL cache, which the crawl's "
                "own process keeps; with 0, that process does all the work. See docs/leases.md.",
                restart="it starts with the crawl's processes; stop the crawl, and give it to gossamer resume",
                ge=0,
                le=MOST_CRAWLERS,
            ),
        ]
        | None
    ) = None
    designation: (
        Annotated[
            Literal["ring", "master"],
            setting(
                "Divide the hosts by consistent hashing of their domains (ring), or let masters give domains away as they are met "
                "(master), with --agents. The default is the ring; a crawl keeps the one that it began with.",
                restart=_MASTERS,
            ),
        ]
        | None
    ) = None
    masters: (
        Annotated[
            int,
            setting(
                "With --designation master: run this many masters, which share one table of domains; default: one.",
                restart=_MASTERS,
                ge=1,
                le=MOST_MASTERS,
            ),
        ]
        | None
    ) = None
    policy: Annotated[
        str,
        setting(
            "Let masters choose the agent of a new domain by this policy: least-loaded, by-domain, by-place, random-agent, or one "
            "of your own; default: least-loaded.",
            restart=_MASTERS,
            names="code",
        ),
    ] = ""
    place: Annotated[PlaceRules, setting(restart=_MASTERS)] = ()
    agent_place: Annotated[
        tuple[str, ...],
        setting("With --policy by-place: name the place of an agent, as agent-01=oslo.", restart=_MASTERS),
    ] = ()
    exchange: Annotated[
        Literal["live", "files"],
        setting(
            "Let agents send each other URLs while they run (live), or let agents that no network connects write them into files "
            "(files): each agent is then a crawl of its own, and `gossamer merge` takes the files in. See docs/exchange.md.",
            restart=_BEGINNING,
        ),
    ] = "live"
    agent: (
        Annotated[
            int,
            setting(
                "With --exchange files: number of this agent, counted from 1.", restart=_BEGINNING, ge=1, le=MOST_AGENTS
            ),
        ]
        | None
    ) = None
    exchange_key: Annotated[
        str,
        setting(
            "With --exchange files: use this copy of the key that agent 1 made when it began; all agents share it.",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ""
