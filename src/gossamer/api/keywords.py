"""The options of a crawl as typed keywords: `gossamer.crawl(seeds, depth=2)`, `gossamer.Spider(seeds, concurrency=16)`.

Written by `./gossamer dev docs` out of :class:`gossamer.crawls.options.CrawlOptions`: change that, not this. Times, sizes
and rates are numbers (seconds, bytes) or texts with units, as `"10m"` and `"1GB"`.
"""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict


class CrawlKeywords(TypedDict, total=False):
    """The options of a crawl beside its seeds. An option that is left out has its default."""

    output: str
    """Keep the crawl in this directory; default: ./crawl-HOST-DATE."""
    resume: bool
    """Go on with the crawl that the directory holds."""
    overwrite: bool
    """Remove the crawl that the directory holds, and start anew."""
    accept_loss: bool
    """Go on with a damaged crawl without the files that are lost, and fetch what they held again; with --resume."""
    scope: Literal["page", "prefix", "host", "domain", "any"]
    """Follow links to the same `page`, path `prefix`, `host` or registered `domain` as a seed, or to `any`."""
    include: Sequence[str]
    """Follow only URLs that contain a match of this RE2 pattern, or of one of several."""
    exclude: Sequence[str]
    """Never follow URLs that contain a match of this RE2 pattern; this wins over `include`."""
    normalize: Sequence[str]
    """Also treat URLs as equal if they differ only in this respect (sort-query, index-pages, slashes, www); a `no-`
    prefix turns a default rule off (no-sessions, no-tracking, ...). See docs/urls.md."""
    ads: str
    """Drop or keep links to advertisements and trackers, or drop those that a FILE lists."""
    traps: Literal["cut", "report"]
    """Set aside parts of a host that grow without end and say nothing new (cut), or only report them."""
    release: Sequence[str]
    """Fetch the URLs that were set aside under this ID of `gossamer traps`, or `all`, when a crawl goes on."""
    filter: Sequence[str]
    """Follow a link only if this expression is true of it; write GATE: EXPRESSION for another gate. See
    docs/filters.md."""
    only: Sequence[str]
    """Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*`."""
    never: Sequence[str]
    """Keep out of these domains, written the same way; this wins over `only`."""
    depth: int | None
    """Follow at most this many links in a row from the nearest seed. A crawl that began without a limit cannot get
    one."""
    max_pages: int | None
    """Stop after this many HTML pages, and never fetch one more."""
    max_pages_per_host: int | None
    """Queue at most this many URLs of a host; cut the rest."""
    max_time: float | str | None
    """Stop this run after this time."""
    total_time: float | str | None
    """Stop after this time, over all runs."""
    max_bytes: int | str | None
    """Stop after this many bytes of bodies."""
    min_free_disk: int | str | None
    """Stop when less than this is free on the disk that the crawl writes to."""
    memory: int | str | None
    """Let an agent and the processes that it begins use at most this much memory: its caches are made to fit, and close
    to the limit one page is asked for at a time."""
    until: str
    """End the crawl at the first answer for which this expression is true; see docs/filters.md."""
    max_page_size: int | str
    """Cut bodies at this size, as sent and as decoded."""
    max_links: int
    """Keep at most this many different links of a page; cut and count the rest."""
    concurrency: int
    """Allow at most this many requests in flight in all, counted from hand-out to commit."""
    per_host: int
    """Allow at most this many requests in flight to one host; use more than 1 only if you own it."""
    delay: float | str
    """Wait this long between two requests to a host; `auto` adapts to its latency and waits at least 1 s."""
    domain_delay: float | str | None
    """Wait this long between the starts of two requests to one registered domain; default: 0.25 s off loopback."""
    ip_delay: float | str | None
    """Wait this long between the starts of two requests to one IP address; default: 0.25 s off loopback."""
    rate: float | str | None
    """Fetch at most this many pages a second in the whole crawl."""
    bandwidth: float | str | None
    """Read at most this many bytes of bodies a second in the whole crawl."""
    retries: int
    """Try a failed request this many times more: after 10 s, 10 minutes and 60 minutes."""
    linger: float | str
    """When only retries are left, wait this long for them, then end; with `forever`, never end. A resumed crawl makes
    the retries that are left."""
    strategy: Literal["breadth", "depth", "host-breadth", "priority", "opic", "trie", "random-walk"]
    """Choose which page is fetched next: breadth, depth, host-breadth, priority, opic, trie or random-walk."""
    robots: Literal["obey", "ignore"]
    """Obey robots.txt; `ignore` needs --i-own-these-hosts, except on this machine."""
    robots_cache: Literal["off", "shared", "refresh"]
    """Share robots.txt answers of sites with your other crawls, for a day at most: `shared` uses their answers,
    `refresh` asks each site itself and lets the others use its answers."""
    sitemaps: bool
    """Also fetch the sitemaps that robots.txt names."""
    i_own_these_hosts: bool
    """Confirm that every host that the crawl asks is yours."""
    hosts: dict[str, dict[str, Any]]
    """Set delay, per-host, max-pages, min-interval, max-interval and header for single hosts; in a configuration file:
    `[hosts."*.example.org"]`."""
    agents: int | None
    """Divide the hosts among this many processes, each with its own part of the crawl; without it, a crawl begins with
    one, and others join when the processor is busy and several sites wait. Each of them keeps a connection to each of
    the others, so 64 are the most."""
    cluster: str
    """Let this cluster run the agents: local (the default: this machine), joined, ray, or one of an installed
    package."""
    listen: str
    """With --cluster joined or ray: let agents on other machines join at HOST:PORT."""
    secret_file: str
    """Read the secret that agents on other machines show from this file; without it, GOSSAMER_SECRET has it."""
    agent_wheel: Sequence[str]
    """With --cluster ray: let Ray bring the code of this wheel to machines on which it is not installed
    (repeatable)."""
    max_agents: int | None
    """Let others join by themselves until this many agents work; default: as `agents`, else as many as there are
    cores."""
    crawlers: int | None
    """Let this many processes fetch and read pages. They lease URLs from one queue and one URL cache, which the crawl's
    own process keeps; with 0, that process does all the work. See docs/leases.md."""
    designation: Literal["ring", "master"] | None
    """Divide the hosts by consistent hashing of their domains (ring), or let masters give domains away as they are met
    (master), with --agents. The default is the ring; a crawl keeps the one that it began with."""
    masters: int | None
    """With --designation master: run this many masters, which share one table of domains; default: one."""
    policy: str
    """Let masters choose the agent of a new domain by this policy: least-loaded, by-domain, by-place, random-agent, or
    one of your own; default: least-loaded."""
    place: Sequence[str]
    """Prefer agents at this place for hosts with this suffix or in this network, as hu=budapest or 192.0.2.0/24=oslo;
    the option needs --policy by-place."""
    agent_place: Sequence[str]
    """Name the place of an agent, as agent-01=oslo: --policy by-place gives it the hosts there, and --cluster joined or
    ray runs it there."""
    exchange: Literal["live", "files"]
    """Let agents send each other URLs while they run (live), or let agents that no network connects write them into
    files (files): each agent is then a crawl of its own, and `gossamer merge` takes the files in. See
    docs/exchange.md."""
    agent: int | None
    """With --exchange files: number of this agent, counted from 1."""
    exchange_key: str
    """With --exchange files: use this copy of the key that agent 1 made when it began; all agents share it."""
    user_agent: str
    """Send this user agent instead of `Gossamer/VERSION (+CONTACT)`."""
    contact: str
    """Give site owners this URL or mail address as your contact; required to crawl beyond this machine.
    GOSSAMER_CONTACT sets it too."""
    header: Sequence[str]
    """Send this header field, as `Name: value`; one that looks secret, as `X-Api-Key`, goes to the seeds' hosts alone,
    and no archive holds it."""
    header_for: Sequence[str]
    """Send the fields of --header that look secret to this HOST too, on every port unless it is HOST:PORT."""
    auth: Sequence[str]
    """Send HOST=USER:PASSWORD, or USER:PASSWORD for the seeds' hosts, to that host alone. HOST=$NAME and HOST=@FILE
    take USER:PASSWORD or `Bearer TOKEN` from the environment or a file, and keep it out of crawl.toml."""
    cookies: Literal["off", "host", "keep"]
    """Send cookies back to the server that set them: `host` while the crawl runs, `keep` also when it goes on later.
    Kept cookies lie in a file of the crawl that only its owner can read; no archive holds their values."""
    cookie_file: str
    """Begin with the cookies of this file (cookies.txt, or JSON as browsers export it), which other users must not be
    able to read, and keep those that servers set while the crawl runs."""
    proxy: Sequence[str]
    """Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://... @FILE reads one proxy a line, $NAME reads
    an environment variable; crawl.toml holds the content of neither. HTTP_PROXY and its like are ignored. Several
    proxies take turns, and one that fails is not used for a while."""
    http2: bool
    """Offer HTTP/2 to https servers."""
    ca_file: str
    """Trust the certificates in this file (PEM) instead of the system's."""
    resolve: Sequence[str]
    """Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080`; the first that fits wins."""
    allow_network: Sequence[str]
    """Let links reach this private network (CIDR)."""
    page_requisites: bool
    """Also fetch the style sheets, images, scripts and media that pages show, from any host."""
    rdf: bool
    """Read RDFa, JSON-LD and microdata into triples for `query` and `sparql`, and `meta` and `link` elements into
    `items`."""
    language: Sequence[str]
    """Keep only pages in this language (ISO 639-1, as `de`) and pages of unknown language; discard others."""
    follow_nofollow: bool
    """Also follow links that pages mark as nofollow."""
    analysis: Literal["plain", "full"]
    """With `full`, also find the language and the fingerprint of each text, and the texts of links; this takes about 1
    ms more per page."""
    text: Literal["main", "all"]
    """Take as the text of a page its prose without menus and code (`main`), or every word that readers see (`all`).
    Language, fingerprints, processors and the index use this text."""
    near_duplicates: Literal["auto", "off", "report", "skip"]
    """Report or skip pages with nearly the same text; `auto` reports them with --analysis full."""
    sinks: str
    """While the crawl runs, write rows to the databases that this TOML file names."""
    index: bool
    """Keep a full-text index while the crawl runs, for `gossamer search`."""
    items: Sequence[str]
    """Also write the items that processors find to this file: .jsonl and .csv grow while the crawl runs; .json,
    .parquet and .xlsx are written when it stops. KIND=FILE takes only items of one kind."""
    item_columns: Sequence[str]
    """Write only this field of items to the files of --items, in this order."""
    item_key: Sequence[str]
    """Leave an item out of the files of --items if an earlier one of its kind has the same value in this field (if
    repeated, in all of these fields)."""
    item_formulas: Literal["disarm", "keep"]
    """Put an apostrophe before cells of .csv that a spreadsheet would run as a formula (disarm), or leave them
    (keep)."""
    mirror: str
    """Write the site to this folder when the crawl stops, with links rewritten so that it can be browsed without a
    server; includes --page-requisites."""
    triple_store: str
    """Also send triples to the store at this URL, by SPARQL updates; GOSSAMER_TRIPLE_STORE_AUTH is its
    USER:PASSWORD."""
    no_warc: bool
    """Keep no archive."""
    archive: Sequence[str]
    """Also write archive files to this folder on another disk, in turn with the crawl directory."""
    topic: Sequence[str]
    """Look for pages with these words, and follow the most relevant links first; a text counts as its words."""
    topic_page: Sequence[str]
    """Look for pages that are about the same topic as this file (HTML or text)."""
    relevance: str
    """Judge the relevance of pages with the installed part of this name, instead of by words."""
    irrelevant_hops: int
    """If the crawl has a topic, follow links through at most this many irrelevant pages in a row; with 0, follow only
    links of relevant pages."""
    recrawl: str
    """Visit known pages again: `adaptive` visits each page when a visit is worth most, an average page once in 7 days
    (`adaptive=1d`: in one day); `every=7d` visits each after that time; `proportional`, `nutch` and `stormcrawler`
    apply the rule of that name; `never` visits none. The crawl keeps running for these visits; with --linger 0s it
    makes those that are due and ends."""
    recrawl_rate: str | None
    """While there are new pages, spend at most this share of the requests on known pages, as 20%; default: 50%."""
    min_interval: float | str | None
    """Wait at least this long between two visits of a page; default: 1h."""
    max_interval: float | str | None
    """Wait at most this long between two visits of a page; default: 90d."""
    interval: Sequence[str]
    """Use other bounds for pages for which an expression is true, as `1h..1d: path("/news/**")` or `..6h:
    host(a.example)`; the first expression that matches counts, and it wins over the bounds of hosts and of the crawl.
    See docs/order.md."""
    render: Literal["never", "asked", "auto", "always"]
    """Render the pages that need a browser (`auto`), every HTML page (`always`), none (`never`), or those that a spider
    or `--render-rule` asks for (`asked`); this needs Chromium."""
    render_rule: Sequence[str]
    """Render pages that an expression holds for by this choice, as `always: path("/app/**")` or `never: label(list)`;
    the first that holds counts."""
    render_actions: tuple[Literal["scroll", "more", "cookies"], ...]
    """On each rendered page, scroll to its end while it grows (`scroll`), click what loads more (`more`), or accept
    cookies (`cookies`), in this order."""
    render_places: int
    """Render at most this many pages at once."""
    render_post: bool
    """Send `POST` requests of rendered pages to their own hosts; they may change something there."""
    screenshot: bool
    """Keep a picture of each rendered page in the archive."""
    profile: str
    """Render pages, and send requests, with the cookies and the storage of this file of `gossamer profile`, which other
    users must not be able to read."""
    browser: str
    """Render with this program; by default, the Chromium of this machine."""
    llms_txt: bool
    """Also fetch the llms.txt of each seed's site, and follow the pages that it lists."""
    follow_pdf: bool
    """Follow the links in PDF documents; this needs the package pypdfium2."""
    keep_words: tuple[Literal["facts", "text", "markdown"], ...]
    """Keep the words of each page as an item of the kind `words`, with these columns: `facts` (author, dates,
    description, ...), `text`, `markdown`; this needs the package html-to-markdown."""
    mobile: bool
    """Send mobile crawlers to the hosts of --runtime, and bring home the relevant pages (--filter 'store: ...'); see
    docs/mobile.md."""
    runtime: Sequence[str]
    """Send crawlers for HOST to its runtime, as example.org=https://example.org:8443, or read HOST from a folder of
    this machine, as example.org=/var/www/html; *.example.org stands for all hosts below example.org."""
    runtime_keys: str
    """Read keys and pins of runtimes from this TOML file: a table ["https://ADDRESS"] with `key` and `pin`. Only its
    owner may read it. Without it, GOSSAMER_RUNTIME_KEY and GOSSAMER_RUNTIME_PIN are the key and pin of the only
    runtime."""
    mobile_content: tuple[Literal["whole", "text", "links", "fingerprint"], ...]
    """Let crawlers bring these parts of a relevant page: whole (default), text, links, fingerprint."""
    mobile_elements: Sequence[str]
    """Let crawlers bring the elements that this CSS selector finds."""
    irrelevant: Literal["counts", "rows"]
    """Only count irrelevant pages of mobile crawls (counts), or keep a row for each (rows)."""
    store: str
    """Keep a copy of the crawl there, from which it can go on elsewhere: s3://, gs:// or az:// with a place, or a
    folder on another disk."""
    copies: int
    """Keep so many copies of the crawl: beside its directory, the last folders of --archive hold one each, as a store
    does. The crawl goes on while they are away."""
    checkpoint_every: float | str
    """With --store, publish a checkpoint this often."""
    checkpoint_bytes: int | str
    """With --store, also publish a checkpoint as soon as an agent has written this much since the last one; if four
    times as much is not in the store, ask no host until it is."""
    keep_local: int | str | None
    """With --store, keep at most this much of the archive on the disk; files that are in the store go, the oldest
    first, and are read from there."""
    lease: float | str
    """With --store or --cluster, count an owner or an agent as gone that has not been heard of for this long; one that
    cannot reach the store, or its supervisor, for as long asks no host."""
    take_over: bool
    """Take the crawl of a store even if its owner may be alive."""
