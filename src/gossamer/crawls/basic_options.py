"""The options of a crawl about where it goes, when it ends, and how polite it is.

Place in the flow: :class:`~gossamer.crawls.options.CrawlOptions` has them.
"""

from typing import Annotated, Any, Literal

import msgspec

from gossamer.engine.sheet import Sheet, setting

#: Why an option cannot change while a crawl runs, where it adds units.
CHANGES_GRAPH = "it changes the graph of the crawl; stop the crawl, and give it to gossamer resume"

# Why an option cannot change while a crawl runs. Those that say nothing can: `gossamer set DIR OPTION=VALUE`.
_PLACE = "its files are open there"
_BEGINNING = "it says how a crawl begins"
_ROBOTS = "a crawl keeps the permission that it began with; stop the crawl, and give it to gossamer resume"
_RELEASE = "a running crawl is told by `gossamer traps DIR --release ID`"

Scope = Literal["page", "prefix", "host", "domain", "any"]

Strategy = Literal["breadth", "depth", "host-breadth", "priority", "opic", "trie", "random-walk"]


class BasicOptions(Sheet, frozen=True):
    """Place, scope, limits, politeness and order."""

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
        setting(
            "Follow links to the same page, path prefix, host or registered domain as a seed, or to any.", sets="scope"
        ),
    ] = "host"
    include: Annotated[
        tuple[str, ...], setting("Follow only URLs that match this RE2 pattern (repeatable).", sets="patterns")
    ] = ()
    exclude: Annotated[
        tuple[str, ...], setting("Never follow URLs that match this RE2 pattern (repeatable).", sets="patterns")
    ] = ()
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
            "(repeatable)."
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        setting(
            "Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*` (repeatable).",
            sets="constraints",
        ),
    ] = ()
    never: Annotated[
        tuple[str, ...],
        setting(
            "Keep out of these domains, written the same way; this wins over --only (repeatable).", sets="constraints"
        ),
    ] = ()
    depth: (
        Annotated[
            int, setting("Follow at most this many links in a row from a seed.", unit="links", ge=0, sets="ledger")
        ]
        | None
    ) = None
    max_pages: (
        Annotated[int, setting("Stop after this many HTML pages.", unit="pages", ge=1, sets="frontier")] | None
    ) = None
    max_pages_per_host: (
        Annotated[
            int, setting("Queue at most this many URLs per host.", unit="pages", ge=1, sets="commit.max_per_host")
        ]
        | None
    ) = None
    max_time: Annotated[float, setting("Stop this run after this time.", unit="s", gt=0, sets="frontier")] | None = None
    total_time: (
        Annotated[float, setting("Stop after this time, over all runs.", unit="s", gt=0, sets="frontier")] | None
    ) = None
    max_bytes: (
        Annotated[int, setting("Stop after this many bytes of bodies.", unit="bytes", ge=1, sets="frontier")] | None
    ) = None
    min_free_disk: (
        Annotated[int, setting("Stop when less than this is free on the disk.", unit="bytes", ge=0, sets="frontier")]
        | None
    ) = None
    until: Annotated[
        str,
        setting(
            "End the crawl at the first page for which this expression is true; see docs/filters.md.",
            sets="expressions",
        ),
    ] = ""
    max_page_size: Annotated[
        int,
        setting(
            "Cut bodies at this size.",
            unit="bytes",
            ge=1,
            sets="http.max_body ftp.max_body gopher.max_body file.max_body",
        ),
    ] = 16_000_000
    max_links: Annotated[
        int, setting("Keep at most this many different links of a page.", unit="links", ge=0, sets="links")
    ] = 6000
    concurrency: Annotated[
        int,
        setting("Allow at most this many requests in flight in all.", unit="requests", ge=1, le=4096, sets="frontier"),
    ] = 64
    per_host: Annotated[
        int,
        setting(
            "Allow at most this many requests in flight to one host; use more than 1 only if you own it.",
            unit="requests",
            ge=1,
            sets="politeness",
        ),
    ] = 1
    delay: (
        Annotated[
            float,
            setting(
                "Wait this long between two requests to a host; `auto` adapts to its latency and waits at least 1 s.",
                unit="s",
                ge=0,
                sets="politeness",
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
                sets="politeness",
            ),
        ]
        | None
    ) = None
    ip_delay: (
        Annotated[
            float,
            setting(
                "Wait this long between the starts of two requests to one IP address; default: 0.25 s.",
                unit="s",
                ge=0,
                sets="politeness",
            ),
        ]
        | None
    ) = None
    rate: (
        Annotated[
            float, setting("Fetch at most this many pages a second in all.", unit="pages/s", gt=0, sets="politeness")
        ]
        | None
    ) = None
    bandwidth: (
        Annotated[
            float,
            setting("Read at most this many bytes a second in all.", unit="bytes/s", gt=0, sets="politeness http"),
        ]
        | None
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
                sets="frontier frontier.stay",
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
    sitemaps: Annotated[bool, setting("Also fetch the sitemaps that robots.txt names.", sets="commit")] = False
    i_own_these_hosts: Annotated[
        bool, setting("Confirm that every host that the crawl asks is yours.", restart=_ROBOTS)
    ] = False
    hosts: Annotated[
        dict[str, dict[str, Any]],
        setting(
            "Set delay, per-host, max-pages, min-interval, max-interval and header for single hosts; in a configuration file: "
            '`[hosts."*.example.org"]`.',
            restart=_BEGINNING,
            names="a secret",
        ),
    ] = msgspec.field(default_factory=dict)
