"""The options of a crawl as typed keywords: `gossamer.crawl(seeds, depth=2)`, `gossamer.Spider(seeds, concurrency=16)`.

Written by `./gossamer dev docs` out of :class:`gossamer.assembly.options.CrawlOptions`: change that, not this. Times, sizes
and rates are numbers (seconds, bytes) or texts with units, as `"10m"` and `"1GB"`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class CrawlKeywords(TypedDict, total=False):
    """What a crawl takes beside its seeds. An option that is left out has its default."""

    output: str
    """Directory of the crawl; default ./crawl-HOST-DATE."""

    resume: bool
    """Go on with the crawl that the directory holds."""

    overwrite: bool
    """Remove the crawl that the directory holds, and start anew."""

    accept_loss: bool
    """Go on with a damaged crawl without the files that are lost, and fetch what they held again; with --resume."""

    scope: Literal["page", "prefix", "host", "domain", "any"]
    """Which links are followed, seen from the seeds: page, prefix, host, domain or any."""

    include: Sequence[str]
    """Follow only URLs that match this RE2 pattern."""

    exclude: Sequence[str]
    """Never follow URLs that match this RE2 pattern."""

    normalise: Sequence[str]
    """Fold also URLs that differ in this (sort-query, index-pages, slashes, www), or no longer (no-sessions,
    no-tracking, ...); see docs/urls.md."""

    noise: str
    """Links to advertisements and trackers: drop, keep, or a FILE with a list of them."""

    traps: Literal["cut", "report"]
    """Set aside endless parts of hosts that say nothing new (cut), or only report them."""

    release: Sequence[str]
    """Fetch what was set aside under this ID of `gossamer traps`, or all of it, when a crawl goes on."""

    filter: Sequence[str]
    """Follow only links that this expression holds for, or GATE: EXPRESSION for another gate; see docs/filters.md."""

    only: Sequence[str]
    """Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*`."""

    never: Sequence[str]
    """Keep out of these domains, written the same way; wins over --only."""

    depth: int | None
    """Links to follow away from the seeds."""

    max_pages: int | None
    """Stop after so many HTML pages."""

    max_pages_per_host: int | None
    """Take so many URLs of one host."""

    max_time: float | str | None
    """Stop this run after this time."""

    total_time: float | str | None
    """Stop after this time, over all runs."""

    max_bytes: int | str | None
    """Stop after so many bytes of bodies."""

    min_free_disk: int | str | None
    """Stop when less disk is free."""

    until: str
    """End at the first page that this expression holds for; see docs/filters.md."""

    max_page_size: int | str
    """Cut bodies at this size."""

    max_links: int
    """Links kept of one page."""

    agents: int | None
    """Divide the hosts among so many processes, each with its own part of the crawl; one, unless told."""

    concurrency: int
    """Requests in flight in all."""

    per_host: int
    """Live requests to one host; more than 1 only where you own it."""

    delay: float | str
    """Wait this long between two requests to a host; `auto` adapts to its latency, with at least 1 s."""

    domain_delay: float | str | None
    """Between two starts in one registered domain; 0.25 s."""

    ip_delay: float | str | None
    """Between two starts at one IP address; 0.25 s."""

    rate: float | str | None
    """Pages a second in all."""

    bandwidth: float | str | None
    """Bytes a second in all."""

    retries: int
    """Try what failed so many times more, after 10 s, 10 and 60 minutes."""

    linger: float | str
    """Wait so long for retries alone, then end; resume asks for them when they are due. Or `forever`."""

    strategy: Literal["breadth", "depth", "host-breadth", "priority", "random-walk"]
    """What is fetched first: breadth, depth, host-breadth, priority, random-walk."""

    robots: Literal["obey", "ignore"]
    """Obey robots.txt; ignore only with --i-own-these-hosts, or on this machine."""

    sitemaps: bool
    """Also fetch the sitemaps that robots.txt names."""

    i_own_these_hosts: bool
    """You answer for every host that is asked."""

    user_agent: str
    """Sent instead of `Gossamer/VERSION (+CONTACT)`."""

    contact: str
    """URL or mail address for site owners; also GOSSAMER_CONTACT. Needed off loopback."""

    header: Sequence[str]
    """Send this header field, as `Name: value`."""

    auth: Sequence[str]
    """Send HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts, to that host alone. HOST=$NAME and HOST=@FILE
    take USER:PASSWORD or `Bearer TOKEN` from the environment or a file, and keep it out of crawl.toml."""

    cookies: Literal["off", "host", "keep"]
    """`host`: send the cookies that a server sets back to it while the crawl runs. `keep`: send them when it goes on,
    too; they lie in a file of the crawl that its owner alone can read, and their values are in no archive."""

    cookie_file: str
    """Begin with the cookies of this file (cookies.txt, or JSON as browsers export it), and keep those that servers set
    while the crawl runs."""

    proxy: str
    """Ask through http://[USER:PASSWORD@]HOST:PORT or socks5h://...; the environment's are never used."""

    http2: bool
    """Offer HTTP/2 to https servers."""

    ca_file: str
    """Trust the certificates in this file (PEM) instead of the system's."""

    resolve: Sequence[str]
    """Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080`."""

    allow_network: Sequence[str]
    """Private network (CIDR) that links may reach."""

    hosts: dict[str, dict[str, Any]]
    """Set delay, per-host, max-pages and header for single hosts; in a configuration file:
    `[hosts."*.example.org"]`."""

    page_requisites: bool
    """Also fetch what pages show (style sheets, images, scripts, media), wherever it lies."""

    rdf: bool
    """Read RDFa, JSON-LD and microdata into triples, which `query` and `sparql` ask, and `meta` and `link` into
    `items`."""

    language: Sequence[str]
    """Keep pages in this language alone, as de; others are discarded."""

    follow_nofollow: bool
    """Follow links that pages mark as nofollow, too."""

    details: Literal["plain", "full"]
    """full: also language of the text, fingerprint and texts of links; about 1 ms a page more."""

    text: Literal["main", "all"]
    """Take the prose of a page for its text, without menus and code (main), or every word that is for readers (all):
    for language, fingerprints, processors and the index."""

    near_duplicates: Literal["auto", "off", "report", "skip"]
    """Pages with nearly the same text: report, or skip; auto reports where details are full."""

    sinks: str
    """Hand rows on to the databases that this file names (TOML), while the crawl runs."""

    index: bool
    """Keep a full-text index while the crawl runs, for `gossamer search`."""

    items: Sequence[str]
    """Write the items that processors find to this file too: .jsonl and .csv grow while the crawl runs, .json, .parquet
    and .xlsx are written when it stops. KIND=FILE takes items of one kind alone."""

    item_columns: Sequence[str]
    """Write only this field of items to the files of --items, in this order."""

    item_key: Sequence[str]
    """Leave an item out of the files of --items if an earlier one of its kind has the same value in this field
    (repeatable: in all of them)."""

    item_formulas: Literal["disarm", "keep"]
    """Put an apostrophe before what a spreadsheet would take for a formula in .csv (disarm), or leave it (keep)."""

    mirror: str
    """Write the site to this folder when the crawl stops, with links rewritten so that it can be browsed without a
    server; includes --page-requisites."""

    triple_store: str
    """Send triples to this URL too, which takes SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is USER:PASSWORD for it."""

    no_warc: bool
    """Keep no archive."""
