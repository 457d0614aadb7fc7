"""The options of a crawl: one table, read by the command line, the Python API, configuration files and the reference.

Every option is a field of some unit's sheet in the end (:mod:`gossamer.assembly.compiling` says which); here they have the
names and the words that people use.
"""

from typing import Annotated, Literal

from gossamer.flow.sheet import Sheet, setting

#: Why most options cannot change while a crawl runs: the units that they set say which of their settings can.
_START = "it shapes the crawl from its start; change the unit's own setting instead where that is live"

Scope = Literal["page", "prefix", "host", "domain", "any"]

Strategy = Literal["breadth", "depth", "host-breadth", "priority", "random-walk"]


class CrawlOptions(Sheet, frozen=True):
    """What `gossamer crawl` and `gossamer.crawl()` take, apart from the seeds."""

    output: Annotated[str, setting("Directory of the crawl; default ./crawl-HOST-DATE.", restart=_START)] = ""
    resume: Annotated[bool, setting("Go on with the crawl that the directory holds.", restart=_START)] = False
    overwrite: Annotated[
        bool, setting("Remove the crawl that the directory holds, and start anew.", restart=_START)
    ] = False

    accept_loss: Annotated[
        bool,
        setting(
            "Go on with a damaged crawl without the files that are lost, and fetch what they held again; with --resume.",
            restart=_START,
        ),
    ] = False

    scope: Annotated[
        Scope,
        setting("Which links are followed, seen from the seeds: page, prefix, host, domain or any.", restart=_START),
    ] = "host"
    include: Annotated[
        tuple[str, ...], setting("Follow only URLs that match this RE2 pattern (repeatable).", restart=_START)
    ] = ()
    exclude: Annotated[
        tuple[str, ...], setting("Never follow URLs that match this RE2 pattern (repeatable).", restart=_START)
    ] = ()
    normalise: Annotated[
        tuple[str, ...],
        setting(
            "Fold also URLs that differ in this (sort-query, index-pages, slashes, www), or no longer (no-sessions, "
            "no-tracking, ...); see docs/urls.md (repeatable).",
            restart=_START,
        ),
    ] = ()
    noise: Annotated[
        str,
        setting("Links to advertisements and trackers: drop, keep, or a FILE with a list of them.", restart=_START),
    ] = "drop"
    traps: Annotated[
        Literal["cut", "report"],
        setting("Set aside endless parts of hosts that say nothing new (cut), or only report them.", restart=_START),
    ] = "cut"
    release: Annotated[
        tuple[str, ...],
        setting(
            "Fetch what was set aside under this ID of `gossamer traps`, or all of it, when a crawl goes on (repeatable).",
            restart=_START,
        ),
    ] = ()
    filter: Annotated[
        tuple[str, ...],
        setting(
            "Follow only links that this expression holds for, or GATE: EXPRESSION for another gate; see docs/filters.md "
            "(repeatable).",
            restart=_START,
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        setting(
            "Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*` (repeatable).", restart=_START
        ),
    ] = ()
    never: Annotated[
        tuple[str, ...],
        setting("Keep out of these domains, written the same way; wins over --only (repeatable).", restart=_START),
    ] = ()
    depth: (
        Annotated[int, setting("Links to follow away from the seeds.", unit="links", restart=_START, ge=0)] | None
    ) = None

    max_pages: Annotated[int, setting("Stop after so many HTML pages.", unit="pages", restart=_START, ge=1)] | None = (
        None
    )
    max_pages_per_host: (
        Annotated[int, setting("Take so many URLs of one host.", unit="pages", restart=_START, ge=1)] | None
    ) = None
    max_time: Annotated[float, setting("Stop this run after this time.", unit="s", restart=_START, gt=0)] | None = None
    total_time: (
        Annotated[float, setting("Stop after this time, over all runs.", unit="s", restart=_START, gt=0)] | None
    ) = None
    max_bytes: (
        Annotated[int, setting("Stop after so many bytes of bodies.", unit="bytes", restart=_START, ge=1)] | None
    ) = None
    min_free_disk: (
        Annotated[int, setting("Stop when less disk is free.", unit="bytes", restart=_START, ge=0)] | None
    ) = None
    max_page_size: Annotated[int, setting("Cut bodies at this size.", unit="bytes", restart=_START, ge=1)] = 16_000_000
    max_links: Annotated[int, setting("Links kept of one page.", unit="links", restart=_START, ge=0)] = 6000

    agents: Annotated[
        int, setting("Agents that share the crawl; one, until there is a way for several.", restart=_START, ge=1, le=1)
    ] = 1
    concurrency: Annotated[
        int, setting("Requests in flight in all.", unit="requests", restart=_START, ge=1, le=4096)
    ] = 64
    per_host: Annotated[
        int,
        setting("Live requests to one host; more than 1 only where you own it.", unit="requests", restart=_START, ge=1),
    ] = 1

    delay: (
        Annotated[
            float,
            setting(
                "Wait this long between two requests to a host; `auto` adapts to its latency, with at least 1 s.",
                unit="s",
                restart=_START,
                ge=0,
            ),
        ]
        | Literal["auto"]
    ) = "auto"
    domain_delay: (
        Annotated[
            float, setting("Between two starts in one registered domain; 0.25 s.", unit="s", restart=_START, ge=0)
        ]
        | None
    ) = None
    ip_delay: (
        Annotated[float, setting("Between two starts at one IP address; 0.25 s.", unit="s", restart=_START, ge=0)]
        | None
    ) = None
    rate: Annotated[float, setting("Pages a second in all.", unit="pages/s", restart=_START, gt=0)] | None = None
    bandwidth: Annotated[float, setting("Bytes a second in all.", unit="bytes/s", restart=_START, gt=0)] | None = None
    retries: Annotated[
        int, setting("Try what failed so many times more, after 10 s, 10 and 60 minutes.", restart=_START, ge=0, le=3)
    ] = 3
    linger: (
        Annotated[
            float,
            setting(
                "Wait so long for retries alone, then end; resume asks for them when they are due. Or `forever`.",
                unit="s",
                restart=_START,
                ge=0,
            ),
        ]
        | Literal["forever"]
    ) = 30.0
    strategy: Annotated[
        Strategy, setting("What is fetched first: breadth, depth, host-breadth, priority, random-walk.", restart=_START)
    ] = "breadth"
    robots: Annotated[
        Literal["obey", "ignore"],
        setting("Obey robots.txt; ignore only with --i-own-these-hosts, or on this machine.", restart=_START),
    ] = "obey"
    sitemaps: Annotated[bool, setting("Also fetch the sitemaps that robots.txt names.", restart=_START)] = False
    i_own_these_hosts: Annotated[bool, setting("You answer for every host that is asked.", restart=_START)] = False

    user_agent: Annotated[str, setting("Sent instead of `Gossamer/VERSION (+CONTACT)`.", restart=_START)] = ""
    contact: Annotated[
        str, setting("URL or mail address for site owners; also GOSSAMER_CONTACT. Needed off loopback.", restart=_START)
    ] = ""
    header: Annotated[
        tuple[str, ...], setting("Send this header field, as `Name: value` (repeatable).", restart=_START)
    ] = ()
    auth: Annotated[
        tuple[str, ...],
        setting(
            "HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts; sent to that host alone (repeatable).",
            restart=_START,
            secret=True,
        ),
    ] = ()
    cookies: Annotated[
        Literal["off", "host"],
        setting("`host`: cookies that a server sets go back to it while the crawl runs.", restart=_START),
    ] = "off"
    proxy: Annotated[
        str,
        setting(
            "Ask through http://[USER:PASSWORD@]HOST:PORT or socks5h://...; the environment's are never used.",
            restart=_START,
            secret=True,
        ),
    ] = ""
    http2: Annotated[bool, setting("Offer HTTP/2 to https servers.", restart=_START)] = False
    ca_file: Annotated[
        str, setting("Trust the certificates in this file (PEM) instead of the system's.", restart=_START)
    ] = ""
    resolve: Annotated[
        tuple[str, ...],
        setting(
            "Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080` (repeatable).", restart=_START
        ),
    ] = ()
    allow_network: Annotated[
        tuple[str, ...], setting("Private network (CIDR) that links may reach (repeatable).", restart=_START)
    ] = ()

    page_requisites: Annotated[
        bool,
        setting("Also fetch what pages show (style sheets, images, scripts, media), wherever it lies.", restart=_START),
    ] = False
    rdf: Annotated[
        bool,
        setting(
            "Read RDFa, JSON-LD and microdata of pages into triples, which `query` and `sparql` ask, and OpenGraph into `items`.",
            restart=_START,
        ),
    ] = False
    language: Annotated[
        tuple[str, ...],
        setting("Keep pages in this language alone, as de; others are discarded (repeatable).", restart=_START),
    ] = ()
    follow_nofollow: Annotated[bool, setting("Follow links that pages mark as nofollow, too.", restart=_START)] = False
    details: Annotated[
        Literal["plain", "full"],
        setting(
            "full: also language of the text, fingerprint and texts of links; about 1 ms a page more.", restart=_START
        ),
    ] = "plain"
    near_duplicates: Annotated[
        Literal["auto", "off", "report", "skip"],
        setting(
            "Pages with nearly the same text: report, or skip; auto reports where details are full.", restart=_START
        ),
    ] = "auto"
    sinks: Annotated[
        str,
        setting("Hand rows on to the databases that this file names (TOML), while the crawl runs.", restart=_START),
    ] = ""
    index: Annotated[
        bool,
        setting("Keep a full-text index while the crawl runs, for `gossamer search`.", restart=_START),
    ] = False
    items: Annotated[
        str,
        setting(
            "Write the items that processors find to this file too, .jsonl or .csv; it grows while the crawl runs.",
            restart=_START,
        ),
    ] = ""
    triple_store: Annotated[
        str,
        setting(
            "Send triples to this URL too, which takes SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is USER:PASSWORD for it.",
            restart=_START,
        ),
    ] = ""
    no_warc: Annotated[bool, setting("Keep no archive.", restart=_START)] = False
