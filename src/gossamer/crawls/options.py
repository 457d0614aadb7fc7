"""The options of a crawl: one table, read by the command line, the Python API, configuration files and the reference.

Every option is a field of some unit's sheet in the end (:mod:`gossamer.crawls.compiling` says which); here they have the
names and the words that people use. :class:`CrawlOptions` has those of the core. A subject, of ours or of a stranger,
brings a sheet of its own (:mod:`gossamer.engine.subjects`): :func:`all_options` puts all of them into one flat sheet, and
:func:`part_of` gives a subject its part.
"""

import typing
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.subjects import found_at, shipped, subjects

# Why an option cannot change while a crawl runs. Those that say nothing can: `gossamer set DIR OPTION=VALUE`.
_PLACE = "its files are open there"
_BEGINNING = "it says how a crawl begins"
#: Why an option of a subject cannot change while a crawl runs, where it adds units.
CHANGES_GRAPH = "it changes the graph of the crawl; stop the crawl, and give it to gossamer resume"
_ROBOTS = "a crawl keeps the permission that it began with; stop the crawl, and give it to gossamer resume"
_SEEDS = "the seeds decide who may see it; stop the crawl, and give it to gossamer resume"
_RELEASE = "a running crawl is told by `gossamer traps DIR --release ID`"
_AGENTS = "it runs in the process of a program; stop it, and let agents join: gossamer resume DIR --agents N"

_MASTERS = "masters read it when they start; stop the crawl, and give it to gossamer resume"

#: Masters of one crawl: two are enough for any one of them to be lost, and each agent keeps a connection to each.
MOST_MASTERS = 8

#: Agents of one crawl: each keeps a connection to each other one.
MOST_AGENTS = 64

#: Crawlers on one queue: long before that, its keeper has no processor time left.
MOST_CRAWLERS = 64

Scope = Literal["page", "prefix", "host", "domain", "any"]

Strategy = Literal["breadth", "depth", "host-breadth", "priority", "opic", "trie", "random-walk"]


class CrawlOptions(Sheet, frozen=True):
    """What `gossamer crawl` and `gossamer.crawl()` take, apart from the seeds."""

    @property
    def is_divided(self) -> bool:
        """They ask for several agents that are connected, or for what only a crawl of those has."""
        return bool(self.dividing) and self.exchange != "files"

    @property
    def dividing(self) -> list[str]:
        """Those of them that were given, as on the command line."""
        given = {
            "--agents": (self.agents or 1) > 1,
            "--designation": self.designation == "master",
            "--masters": self.masters,
            "--policy": self.policy,
            "--place": self.place,
            "--agent-place": self.agent_place,
        }
        return [name for name, value in given.items() if value]

    output: Annotated[
        str, setting("Keep the crawl in this directory; default: ./crawl-HOST-DATE.", restart=_PLACE, names="a folder")
    ] = ""
    resume: Annotated[bool, setting("Go on with the crawl that the directory holds.", restart=_BEGINNING)] = False
    overwrite: Annotated[
        bool, setting("Remove the crawl that the directory holds, and start anew.", restart=_BEGINNING)
    ] = False

    accept_loss: Annotated[
        bool,
        setting(
            "Go on with a damaged crawl without the files that are lost, and fetch what they held again; with --resume.",
            restart=_BEGINNING,
        ),
    ] = False

    scope: Annotated[
        Scope,
        setting("Follow links to the same page, path prefix, host or registered domain as a seed, or to any."),
    ] = "host"
    include: Annotated[tuple[str, ...], setting("Follow only URLs that match this RE2 pattern (repeatable).")] = ()
    exclude: Annotated[tuple[str, ...], setting("Never follow URLs that match this RE2 pattern (repeatable).")] = ()
    normalize: Annotated[
        tuple[str, ...],
        setting(
            "Also treat URLs as equal if they differ only in this respect (sort-query, index-pages, slashes, www); a `no-` "
            "prefix turns a default rule off (no-sessions, no-tracking, ...). See docs/urls.md (repeatable).",
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
            "Fetch the URLs that were set aside under this ID of `gossamer traps`, or `all`, when a crawl goes on (repeatable).",
            restart=_RELEASE,
        ),
    ] = ()
    filter: Annotated[
        tuple[str, ...],
        setting(
            "Follow a link only if this expression is true of it; write GATE: EXPRESSION for another gate. See "
            "docs/filters.md "
            "(repeatable).",
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        setting("Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*` (repeatable)."),
    ] = ()
    never: Annotated[
        tuple[str, ...],
        setting("Keep out of these domains, written the same way; this wins over --only (repeatable)."),
    ] = ()
    depth: (
        Annotated[int, setting("Follow at most this many links in a row from a seed.", unit="links", ge=0)] | None
    ) = None

    max_pages: Annotated[int, setting("Stop after this many HTML pages.", unit="pages", ge=1)] | None = None
    max_pages_per_host: Annotated[int, setting("Queue at most this many URLs per host.", unit="pages", ge=1)] | None = (
        None
    )
    max_time: Annotated[float, setting("Stop this run after this time.", unit="s", gt=0)] | None = None
    total_time: Annotated[float, setting("Stop after this time, over all runs.", unit="s", gt=0)] | None = None
    max_bytes: Annotated[int, setting("Stop after this many bytes of bodies.", unit="bytes", ge=1)] | None = None
    min_free_disk: (
        Annotated[int, setting("Stop when less than this is free on the disk.", unit="bytes", ge=0)] | None
    ) = None
    until: Annotated[
        str,
        setting("End the crawl at the first page for which this expression is true; see docs/filters.md."),
    ] = ""
    max_page_size: Annotated[int, setting("Cut bodies at this size.", unit="bytes", ge=1)] = 16_000_000
    max_links: Annotated[int, setting("Keep at most this many different links of a page.", unit="links", ge=0)] = 6000

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
    max_agents: (
        Annotated[
            int,
            setting(
                "Let others join by themselves until this many agents work; default: as --agents, else as many as there are cores.",
                ge=1,
                le=MOST_AGENTS,
            ),
        ]
        | None
    ) = None
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
    place: Annotated[
        tuple[str, ...],
        setting(
            "With --policy by-place: prefer agents at this place for hosts with this suffix or in this network, as hu=budapest or "
            "192.0.2.0/24=oslo (repeatable).",
            restart=_MASTERS,
        ),
    ] = ()
    agent_place: Annotated[
        tuple[str, ...],
        setting(
            "With --policy by-place: name the place of an agent, as agent-01=oslo (repeatable).",
            restart=_MASTERS,
        ),
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
                "With --exchange files: number of this agent, counted from 1.",
                restart=_BEGINNING,
                ge=1,
                le=MOST_AGENTS,
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
    concurrency: Annotated[
        int, setting("Allow at most this many requests in flight in all.", unit="requests", ge=1, le=4096)
    ] = 64
    per_host: Annotated[
        int,
        setting(
            "Allow at most this many requests in flight to one host; use more than 1 only if you own it.",
            unit="requests",
            ge=1,
        ),
    ] = 1

    delay: (
        Annotated[
            float,
            setting(
                "Wait this long between two requests to a host; `auto` adapts to its latency and waits at least 1 s.",
                unit="s",
                ge=0,
            ),
        ]
        | Literal["auto"]
    ) = "auto"
    domain_delay: (
        Annotated[
            float,
            setting(
                "Wait this long between the starts of two requests to one registered domain; default: 0.25 s.",
                unit="s",
                ge=0,
            ),
        ]
        | None
    ) = None
    ip_delay: (
        Annotated[
            float,
            setting(
                "Wait this long between the starts of two requests to one IP address; default: 0.25 s.", unit="s", ge=0
            ),
        ]
        | None
    ) = None
    rate: Annotated[float, setting("Fetch at most this many pages a second in all.", unit="pages/s", gt=0)] | None = (
        None
    )
    bandwidth: (
        Annotated[float, setting("Read at most this many bytes a second in all.", unit="bytes/s", gt=0)] | None
    ) = None
    retries: Annotated[
        int, setting("Try a failed request this many times more: after 10 s, 10 minutes and 60 minutes.", ge=0, le=3)
    ] = 3
    linger: (
        Annotated[
            float,
            setting(
                "When only retries are left, wait this long for them, then end; with `forever`, never end. A resumed "
                "crawl makes the retries that are left.",
                unit="s",
                ge=0,
            ),
        ]
        | Literal["forever"]
    ) = 30.0
    strategy: Annotated[
        Strategy,
        setting(
            "Choose which page is fetched next: breadth, depth, host-breadth, priority, opic, trie or random-walk.",
            restart=CHANGES_GRAPH,
        ),
    ] = "breadth"
    robots: Annotated[
        Literal["obey", "ignore"],
        setting("Obey robots.txt; `ignore` needs --i-own-these-hosts, except on this machine.", restart=_ROBOTS),
    ] = "obey"
    robots_cache: Annotated[
        Literal["off", "shared", "refresh"],
        setting(
            "Share robots.txt answers of sites with your other crawls, for a day at most: `shared` uses their answers, "
            "`refresh` asks each site itself and lets the others use its answers.",
            restart=CHANGES_GRAPH,
        ),
    ] = "off"
    sitemaps: Annotated[bool, setting("Also fetch the sitemaps that robots.txt names.")] = False
    i_own_these_hosts: Annotated[
        bool, setting("Confirm that every host that the crawl asks is yours.", restart=_ROBOTS)
    ] = False

    user_agent: Annotated[str, setting("Send this user agent instead of `Gossamer/VERSION (+CONTACT)`.")] = ""
    contact: Annotated[
        str,
        setting(
            "Give site owners this URL or mail address as your contact; required to crawl beyond this machine. "
            "GOSSAMER_CONTACT sets it too."
        ),
    ] = ""
    header: Annotated[
        tuple[str, ...],
        setting(
            "Send this header field, as `Name: value`; one that looks secret, as `X-Api-Key`, goes to the seeds' hosts alone, and "
            "no archive holds it (repeatable)."
        ),
    ] = ()
    header_for: Annotated[
        tuple[str, ...],
        setting(
            "Send the fields of --header that look secret to this HOST too, on every port unless it is HOST:PORT (repeatable).",
            restart=_SEEDS,
        ),
    ] = ()
    auth: Annotated[
        tuple[str, ...],
        setting(
            "Send HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts, to that host alone. HOST=$NAME and HOST=@FILE take "
            "USER:PASSWORD or `Bearer TOKEN` from the environment or a file, and keep it out of crawl.toml (repeatable).",
            restart=_SEEDS,
            secret=True,
            names="a secret",
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host", "keep"],
        setting(
            "Send cookies back to the server that set them: `host` while the crawl runs, `keep` also when it goes on later. Kept "
            "cookies lie in a file of the crawl that only its owner can read; no archive holds their values."
        ),
    ] = "off"
    cookie_file: Annotated[
        str,
        setting(
            "Begin with the cookies of this file (cookies.txt, or JSON as browsers export it), and keep those that servers "
            "set while the crawl runs.",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ""
    proxy: Annotated[
        tuple[str, ...],
        setting(
            "Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://..., taking turns if there are "
            "several (repeatable). @FILE reads one proxy a line, $NAME reads an environment variable; crawl.toml "
            "holds the content of neither. A proxy that fails is not used for a while. HTTP_PROXY and its like are "
            "ignored.",
            secret=True,
            names="a secret",
        ),
    ] = ()
    http2: Annotated[bool, setting("Offer HTTP/2 to https servers.")] = False
    ca_file: Annotated[
        str, setting("Trust the certificates in this file (PEM) instead of the system's.", names="a file")
    ] = ""
    resolve: Annotated[
        tuple[str, ...],
        setting(
            "Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080` (repeatable).",
            names="an address",
        ),
    ] = ()
    allow_network: Annotated[
        tuple[str, ...],
        setting("Let links reach this private network (CIDR) (repeatable).", names="a private network"),
    ] = ()

    hosts: Annotated[
        dict[str, dict[str, Any]],
        setting(
            "Set delay, per-host, max-pages, min-interval, max-interval and header for single hosts; in a configuration file: "
            '`[hosts."*.example.org"]`.',
            restart=_BEGINNING,
            names="a secret",
        ),
    ] = msgspec.field(default_factory=dict)
    page_requisites: Annotated[
        bool,
        setting(
            "Also fetch the style sheets, images, scripts and media that pages show, from any host.",
        ),
    ] = False
    rdf: Annotated[
        bool,
        setting(
            "Read RDFa, JSON-LD and microdata into triples for `query` and `sparql`, and `meta` and `link` elements "
            "into `items`.",
            restart=CHANGES_GRAPH,
        ),
    ] = False
    language: Annotated[
        tuple[str, ...],
        setting("Keep only pages in this language, as de; discard others (repeatable)."),
    ] = ()
    follow_nofollow: Annotated[bool, setting("Also follow links that pages mark as nofollow.")] = False
    analysis: Annotated[
        Literal["plain", "full"],
        setting(
            "With `full`, also find the language and the fingerprint of each text, and the texts of links; this "
            "takes about 1 ms more per page.",
            restart=CHANGES_GRAPH,
            was="details",
        ),
    ] = "plain"
    text: Annotated[
        Literal["main", "all"],
        setting(
            "Take as the text of a page its prose without menus and code (main), or every word that readers see "
            "(all). Language, fingerprints, processors and the index use this text.",
            restart=CHANGES_GRAPH,
        ),
    ] = "main"
    near_duplicates: Annotated[
        Literal["auto", "off", "report", "skip"],
        setting(
            "Report or skip pages with nearly the same text; `auto` reports them with --analysis full.",
            restart=CHANGES_GRAPH,
        ),
    ] = "auto"
    sinks: Annotated[
        str,
        setting(
            "While the crawl runs, write rows to the databases that this TOML file names.",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ""
    index: Annotated[
        bool,
        setting("Keep a full-text index while the crawl runs, for `gossamer search`.", restart=_BEGINNING),
    ] = False
    items: Annotated[
        tuple[str, ...],
        setting(
            "Also write the items that processors find to this file: .jsonl and .csv grow while the crawl runs; .json, .parquet "
            "and .xlsx are written when it stops. KIND=FILE takes only items of one kind (repeatable).",
            restart=_BEGINNING,
            names="a file",
        ),
    ] = ()
    item_columns: Annotated[
        tuple[str, ...],
        setting(
            "Write only this field of items to the files of --items, in this order (repeatable).", restart=_BEGINNING
        ),
    ] = ()
    item_key: Annotated[
        tuple[str, ...],
        setting(
            "Leave an item out of the files of --items if an earlier one of its kind has the same value in this "
            "field (if repeated, in all of these fields).",
            restart=_BEGINNING,
        ),
    ] = ()
    item_formulas: Annotated[
        Literal["disarm", "keep"],
        setting(
            "Put an apostrophe before cells of .csv that a spreadsheet would run as a formula (disarm), or leave them (keep).",
            restart=_BEGINNING,
        ),
    ] = "disarm"
    mirror: Annotated[
        str,
        setting(
            "Write the site to this folder when the crawl stops, with links rewritten so that it can be browsed without a "
            "server; includes --page-requisites.",
            restart=_BEGINNING,
            names="a folder",
        ),
    ] = ""
    triple_store: Annotated[
        str,
        setting(
            "Also send triples to the store at this URL, by SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is its USER:PASSWORD.",
            restart=_BEGINNING,
            names="a secret",
        ),
    ] = ""
    no_warc: Annotated[bool, setting("Keep no archive.", restart=CHANGES_GRAPH)] = False


class Heading(NamedTuple):
    """Options that stand together in the help."""

    usual: str
    """Names of options that `gossamer crawl --help` shows, in their order."""
    others: str
    """Those that its help shows when the group, or everything, is asked for."""
    example: str


#: The options of the core under the headings of `gossamer crawl --help`, in their order. Those of subjects stand behind them.
HEADINGS = {
    "Start": Heading(
        "output resume overwrite seed_files config",
        "sets wiring_name accept_loss",
        "gossamer crawl --seeds seeds.txt --config my.toml -o mine",
    ),
    "Scope": Heading(
        "scope include exclude depth page_requisites",
        "sitemaps only never filter language follow_nofollow normalize ads max_links traps release",
        "gossamer crawl https://example.org/docs/ --scope prefix --depth 3 --exclude '\\?print='",
    ),
    "Limits": Heading(
        "max_pages max_time max_pages_per_host",
        "max_bytes max_page_size total_time min_free_disk until",
        "gossamer crawl https://example.org/ --max-pages 1000 --max-time 10m --min-free-disk 5GB",
    ),
    "Politeness": Heading(
        "delay per_host rate robots",
        "domain_delay ip_delay bandwidth robots_cache i_own_these_hosts retries linger hosts",
        "gossamer crawl http://localhost:8000/ --delay 0 --per-host 4",
    ),
    "Order": Heading("strategy", "", "gossamer crawl https://example.org/ --strategy host-breadth"),
    "Identity and network": Heading(
        "contact user_agent header cookies proxy",
        "header_for auth cookie_file http2 ca_file resolve allow_network",
        "gossamer crawl https://example.org/ --contact you@example.org --proxy socks5h://127.0.0.1:1080",
    ),
    "Results": Heading(
        "items mirror rdf",
        "no_warc analysis text near_duplicates item_columns item_key item_formulas index sinks triple_store",
        "gossamer crawl https://example.org/ --mirror site --items items.csv",
    ),
    "Many processes": Heading(
        "agents",
        "max_agents concurrency crawlers designation masters policy place agent_place exchange agent exchange_key",
        "gossamer crawl --seeds seeds.txt --agents 4 --concurrency 256",
    ),
    "Output": Heading(
        "as_json quiet dashboard fail_on", "verbose", "gossamer crawl https://example.org/ --json > summary.json"
    ),
}

S = TypeVar("S", bound=Sheet)


def headings() -> dict[str, Heading]:
    """The headings of the help: those of the core, then the titles of subjects."""
    found = dict(HEADINGS)
    for one in subjects():
        if one.options:
            names = " ".join(found_at(one.options).__struct_fields__)
            known = found.get(one.title, Heading("", "", one.example))
            part = "others" if one in shipped() else "usual"  # people install a package for its options
            found[one.title] = known._replace(**{part: f"{getattr(known, part)} {names}".strip()})
    return found


def all_options(*, installed: bool = True) -> type[CrawlOptions]:
    """The options of the core and of all subjects, as one flat sheet.

    Args:
        installed: with those of installed packages, and not only of the subjects that ship.

    Raises:
        WiringError: two subjects bring an option of one name.
    """
    members = subjects() if installed else shipped()
    return merged_options(tuple((one.name, one.options) for one in members if one.options))


@lru_cache(maxsize=4)
def merged_options(members: tuple[tuple[str, str], ...]) -> type[CrawlOptions]:
    """The options of the core and of these subjects, each with its name and the place of its sheet."""
    owners = dict.fromkeys(CrawlOptions.__struct_fields__, "the core")
    fields: list[tuple[str, Any, Any]] = []
    for name, place in members:
        sheet: type[Sheet] = found_at(place)
        hints = typing.get_type_hints(sheet, include_extras=True)
        for field in msgspec.structs.fields(sheet):
            if (other := owners.setdefault(field.name, name)) != name:
                raise WiringError(f"subject {name!r}: option {field.name!r} is taken by {other}; rename it")
            fields.append((field.name, hints[field.name], field.default))
    made: Any = msgspec.defstruct("CrawlOptions", fields, bases=(CrawlOptions,), frozen=True, kw_only=True)
    found: type[CrawlOptions] = made
    return found


def part_of(options: CrawlOptions, sheet: type[S]) -> S:
    """A subject's part of the options of a crawl; its defaults where these are options of the core alone."""
    return sheet(**{name: getattr(options, name) for name in sheet.__struct_fields__ if hasattr(options, name)})
