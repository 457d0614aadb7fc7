"""The options of a crawl about where it goes, when it ends, how polite it is, and which processes share it.

Place in the flow: :class:`~gossamer.crawls.options.CrawlOptions` has them.
"""

from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from gossamer.engine.sheet import Sheet, setting
from gossamer.values import settings

_RESUME = "stop the crawl, and give it to gossamer resume"

# Options that cannot change while a crawl runs, and why. Those that say nothing can: `gossamer set DIR OPTION=VALUE`.
fixed_at_start = partial(setting, restart="it says how a crawl begins")
fixed_by_graph = partial(setting, restart=f"it changes the graph of the crawl; {_RESUME}")
_fixed_by_listening = partial(setting, restart=f"agents join there; {_RESUME}")
_fixed_by_masters = partial(setting, restart=f"masters read it when they start; {_RESUME}")
_PLACE = "its files are open there"
_ROBOTS = f"a crawl keeps the permission that it began with; {_RESUME}"
_RELEASE = "a running crawl is told by `gossamer traps DIR --release ID`"
_AGENTS = "it runs in the process of a program; stop it, and let agents join: gossamer resume DIR --agents N"

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

Strategy = Literal["breadth", "depth", "host-breadth", "priority", "opic", "trie", "random-walk"]


class BasicOptions(Sheet, frozen=True):
    """Place, scope, limits, politeness, order, and processes."""

    output: Annotated[
        str, setting("Keep the crawl in this directory; default: ./crawl-HOST-DATE.", restart=_PLACE, names="a folder")
    ] = ""
    resume: Annotated[bool, fixed_at_start("Go on with the crawl that the directory holds.")] = False
    overwrite: Annotated[bool, fixed_at_start("Remove the crawl that the directory holds, and start anew.")] = False
    accept_loss: Annotated[
        bool,
        fixed_at_start(
            "Go on with a damaged crawl without the files that are lost, and fetch what they held again; with --resume."
        ),
    ] = False
    scope: Annotated[settings.Scope, setting(sets="scope")] = "host"
    include: Annotated[settings.Include, setting(sets="patterns")] = ()
    exclude: Annotated[settings.Exclude, setting(sets="patterns")] = ()
    normalize: Annotated[
        tuple[str, ...],
        setting(
            "Also treat URLs as equal if they differ only in this respect (sort-query, index-pages, slashes, www); a `no-` "
            "prefix turns a default rule off (no-sessions, no-tracking, ...). See docs/urls.md.",
            was="normalise",
        ),
    ] = ()
    ads: Annotated[
        str,
        setting(
            "Drop or keep links to advertisements and trackers, or drop those that a FILE lists.",
            names="a file",
            was="noise",
        ),
    ] = "drop"
    traps: Annotated[
        Literal["cut", "report"],
        setting("Set aside parts of a host that grow without end and say nothing new (cut), or only report them."),
    ] = "cut"
    release: Annotated[
        tuple[str, ...],
        setting(
            "Fetch the URLs that were set aside under this ID of `gossamer traps`, or `all`, when a crawl goes on.",
            restart=_RELEASE,
        ),
    ] = ()
    filter: Annotated[
        tuple[str, ...],
        setting(
            "Follow a link only if this expression is true of it; write GATE: EXPRESSION for another gate. See "
            "docs/filters.md."
        ),
    ] = ()
    only: Annotated[settings.Only, setting(sets="constraints")] = ()
    never: Annotated[settings.Never, setting(sets="constraints")] = ()
    depth: Annotated[settings.Depth, setting(sets="ledger")] = None
    max_pages: Annotated[settings.MaxPages, setting(sets="frontier")] = None
    max_pages_per_host: Annotated[settings.MaxPerHost, setting(sets="commit.max_per_host")] = None
    max_time: Annotated[settings.MaxTime, setting(sets="frontier")] = None
    total_time: Annotated[settings.TotalTime, setting(sets="frontier")] = None
    max_bytes: Annotated[settings.MaxBytes, setting(sets="frontier")] = None
    min_free_disk: Annotated[settings.MinFreeDisk, setting(sets="frontier")] = None
    memory: Annotated[settings.Memory, setting(sets="frontier ledger log")] = None
    until: Annotated[settings.Until, setting(sets="expressions")] = ""
    max_page_size: Annotated[
        settings.MaxBody, setting(sets="http.max_body ftp.max_body gopher.max_body file.max_body")
    ] = settings.MAX_BODY
    max_links: Annotated[settings.MaxLinks, setting(sets="links")] = 6000
    concurrency: Annotated[settings.Concurrency, setting(sets="frontier")] = 64
    per_host: Annotated[settings.PerHost, setting(sets="politeness")] = 1
    delay: Annotated[settings.HostDelay, setting(sets="politeness")] = "auto"
    domain_delay: Annotated[settings.DomainDelay, setting(sets="politeness")] = None
    ip_delay: Annotated[settings.AddressDelay, setting(sets="politeness")] = None
    rate: Annotated[settings.PageRate, setting(sets="politeness")] = None
    bandwidth: Annotated[settings.Bandwidth, setting(sets="politeness http")] = None
    retries: Annotated[
        int, setting("Try a failed request this many times more: after 10 s, 10 minutes and 60 minutes.", ge=0, le=3)
    ] = 3
    linger: Annotated[settings.Linger, setting(sets="frontier frontier.stay")] = 30.0
    strategy: Annotated[
        Strategy,
        fixed_by_graph(
            "Choose which page is fetched next: breadth, depth, host-breadth, priority, opic, trie or random-walk."
        ),
    ] = "breadth"
    robots: Annotated[
        Literal["obey", "ignore"],
        setting("Obey robots.txt; `ignore` needs --i-own-these-hosts, except on this machine.", restart=_ROBOTS),
    ] = "obey"
    robots_cache: Annotated[
        Literal["off", "shared", "refresh"],
        fixed_by_graph(
            "Share robots.txt answers of sites with your other crawls, for a day at most: `shared` uses their answers, "
            "`refresh` asks each site itself and lets the others use its answers."
        ),
    ] = "off"
    sitemaps: Annotated[settings.Sitemaps, setting(sets="commit")] = False
    i_own_these_hosts: Annotated[
        bool, setting("Confirm that every host that the crawl asks is yours.", restart=_ROBOTS)
    ] = False
    hosts: Annotated[
        dict[str, dict[str, Any]],
        fixed_at_start(
            "Set delay, per-host, max-pages, min-interval, max-interval and header for single hosts; in a configuration file: "
            '`[hosts."*.example.org"]`.',
            names="a secret",
        ),
    ] = msgspec.field(default_factory=dict)
    agents: (
        Annotated[
            int,
            setting(
                "Divide the hosts among this many processes, each with its own part of the crawl; without it, a crawl begins "
                "with one, and others join when the processor is busy and several sites wait. Each of them "
                f"keeps a connection to each of the others, so {settings.MOST_AGENTS} are the most.",
                restart=_AGENTS,
                ge=1,
                le=settings.MOST_AGENTS,
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
        _fixed_by_listening(
            "With --cluster joined or ray: let agents on other machines join at HOST:PORT.", names="an address"
        ),
    ] = ""
    secret_file: Annotated[
        str,
        _fixed_by_listening(
            "Read the secret that agents on other machines show from this file; without it, GOSSAMER_SECRET has it.",
            names="a file",
        ),
    ] = ""
    agent_wheel: Annotated[
        tuple[str, ...],
        _fixed_by_listening(
            "With --cluster ray: let Ray bring the code of this wheel to machines on which it is not installed (repeatable).",
            names="a file",
        ),
    ] = ()
    max_agents: Annotated[settings.MaxAgents, setting(sets="frontier")] = None
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
            _fixed_by_masters(
                "Divide the hosts by consistent hashing of their domains (ring), or let masters give domains away as they are met "
                "(master), with --agents. The default is the ring; a crawl keeps the one that it began with."
            ),
        ]
        | None
    ) = None
    masters: (
        Annotated[
            int,
            _fixed_by_masters(
                "With --designation master: run this many masters, which share one table of domains; default: one.",
                ge=1,
                le=MOST_MASTERS,
            ),
        ]
        | None
    ) = None
    policy: Annotated[
        str,
        _fixed_by_masters(
            "Let masters choose the agent of a new domain by this policy: least-loaded, by-domain, by-place, random-agent, or one "
            "of your own; default: least-loaded.",
            names="code",
        ),
    ] = ""
    place: Annotated[PlaceRules, _fixed_by_masters()] = ()
    agent_place: Annotated[
        tuple[str, ...],
        _fixed_by_masters(
            "Name the place of an agent, as agent-01=oslo: --policy by-place gives it the hosts there, and --cluster joined or ray "
            "runs it there."
        ),
    ] = ()
    exchange: Annotated[
        Literal["live", "files"],
        fixed_at_start(
            "Let agents send each other URLs while they run (live), or let agents that no network connects write them into files "
            "(files): each agent is then a crawl of its own, and `gossamer merge` takes the files in. See docs/exchange.md."
        ),
    ] = "live"
    agent: (
        Annotated[
            int,
            fixed_at_start(
                "With --exchange files: number of this agent, counted from 1.", ge=1, le=settings.MOST_AGENTS
            ),
        ]
        | None
    ) = None
    exchange_key: Annotated[
        str,
        fixed_at_start(
            "With --exchange files: use this copy of the key that agent 1 made when it began; all agents share it.",
            names="a file",
        ),
    ] = ""

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
            "--agent-wheel": self.agent_wheel,
            "--designation": self.designation == "master",
            "--masters": self.masters,
            "--policy": self.policy,
            "--place": self.place,
            "--agent-place": self.agent_place,
        }
        return [name for name, value in given.items() if value]
