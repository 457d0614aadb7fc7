"""Settings of the core that are options of a crawl as well: each has its type, text, unit and bounds here, and nowhere else.

Place in the flow: the sheet of a unit has a field of such a type, and so has the sheet of options
(:mod:`gossamer.crawls.options`), where `sets` names the units that get the value. Help, reference and the starting page of the
dashboard read options without the code of the units. A setting that is no option stands in the sheet of its unit alone.
"""

from typing import Annotated, Literal

from gossamer.engine.sheet import setting

# -- scope

Scope = Annotated[
    Literal["page", "prefix", "host", "domain", "any"],
    setting("Follow links to the same `page`, path `prefix`, `host` or registered `domain` as a seed, or to `any`."),
]

Include = Annotated[
    tuple[str, ...], setting("Follow only URLs that contain a match of this RE2 pattern, or of one of several.")
]

Exclude = Annotated[
    tuple[str, ...], setting("Never follow URLs that contain a match of this RE2 pattern; this wins over `include`.")
]

Only = Annotated[
    tuple[str, ...], setting("Stay in these domains, written backwards: `hu.bme`, `hu.bme.+`, `hu.bme.*`.")
]

Never = Annotated[tuple[str, ...], setting("Keep out of these domains, written the same way; this wins over `only`.")]

#: With a limit, the ledger keeps the links of pages, so that a shorter way that is found later counts.
Depth = (
    Annotated[
        int,
        setting(
            "Follow at most this many links in a row from the nearest seed. A crawl that began without a limit cannot get one.",
            unit="links",
            ge=0,
        ),
    ]
    | None
)

MaxLinks = Annotated[
    int, setting("Keep at most this many different links of a page; cut and count the rest.", unit="links", ge=0)
]

Sitemaps = Annotated[bool, setting("Also fetch the sitemaps that robots.txt names.")]

FollowNofollow = Annotated[bool, setting("Also follow links that pages mark as nofollow.")]

Language = Annotated[
    tuple[str, ...],
    setting("Keep only pages in this language (ISO 639-1, as `de`) and pages of unknown language; discard others."),
]

Text = Annotated[
    Literal["main", "all"],
    setting(
        "Take as the text of a page its prose without menus and code (`main`), or every word that readers see (`all`). "
        "Language, fingerprints, processors and the index use this text."
    ),
]

# -- limits

Concurrency = Annotated[
    int,
    setting(
        "Allow at most this many requests in flight in all, counted from hand-out to commit.",
        unit="requests",
        ge=1,
        le=4096,
    ),
]

MaxPages = (
    Annotated[int, setting("Stop after this many HTML pages, and never fetch one more.", unit="pages", ge=1)] | None
)

MaxPerHost = Annotated[int, setting("Queue at most this many URLs of a host; cut the rest.", unit="URLs", ge=1)] | None

MaxTime = Annotated[float, setting("Stop this run after this time.", unit="s", gt=0)] | None

TotalTime = Annotated[float, setting("Stop after this time, over all runs.", unit="s", gt=0)] | None

MaxBytes = Annotated[int, setting("Stop after this many bytes of bodies.", unit="bytes", ge=1)] | None

MinFreeDisk = (
    Annotated[
        int, setting("Stop when less than this is free on the disk that the crawl writes to.", unit="bytes", ge=0)
    ]
    | None
)

#: The least memory that an agent and its processes can be held to: interpreter and modules take some 90 MB, and the process that
#: makes tables 80 MB (docs/benchmarks.md, "Memory over a crawl").
LEAST_MEMORY = 200_000_000

Memory = (
    Annotated[
        int,
        setting(
            "Let an agent and the processes that it begins use at most this much memory: its caches are made to fit, and close "
            "to the limit one page is asked for at a time.",
            unit="bytes",
            restart="caches have their sizes from the beginning; stop the crawl, and give it to gossamer resume",
            ge=LEAST_MEMORY,
        ),
    ]
    | None
)

Until = Annotated[
    str, setting("End the crawl at the first answer for which this expression is true; see docs/filters.md.")
]

MaxBody = Annotated[int, setting("Cut bodies at this size, as sent and as decoded.", unit="bytes", ge=1)]

#: The default of :data:`MaxBody`, of every protocol.
MAX_BODY = 16 << 20

#: Agents of one crawl: each keeps a connection to each other one.
MOST_AGENTS = 64

MaxAgents = (
    Annotated[
        int,
        setting(
            "Let others join by themselves until this many agents work; default: as `agents`, else as many as there are cores.",
            ge=1,
            le=MOST_AGENTS,
        ),
    ]
    | None
)

Linger = (
    Annotated[
        float,
        setting(
            "When only retries are left, wait this long for them, then end; with `forever`, never end. A resumed crawl makes "
            "the retries that are left.",
            unit="s",
            ge=0,
        ),
    ]
    | Literal["forever"]
)

# -- politeness

PerHost = Annotated[
    int,
    setting(
        "Allow at most this many requests in flight to one host; use more than 1 only if you own it.",
        unit="requests",
        ge=1,
    ),
]

HostDelay = (
    Annotated[
        float,
        setting(
            "Wait this long between two requests to a host; `auto` adapts to its latency and waits at least 1 s.",
            unit="s",
            ge=0,
        ),
    ]
    | Literal["auto"]
)

DomainDelay = (
    Annotated[
        float,
        setting(
            "Wait this long between the starts of two requests to one registered domain; default: 0.25 s off loopback.",
            unit="s",
            ge=0,
        ),
    ]
    | None
)

AddressDelay = (
    Annotated[
        float,
        setting(
            "Wait this long between the starts of two requests to one IP address; default: 0.25 s off loopback.",
            unit="s",
            ge=0,
        ),
    ]
    | None
)

PageRate = (
    Annotated[float, setting("Fetch at most this many pages a second in the whole crawl.", unit="pages/s", gt=0)] | None
)

Bandwidth = (
    Annotated[
        float, setting("Read at most this many bytes of bodies a second in the whole crawl.", unit="bytes/s", gt=0)
    ]
    | None
)

# -- identity and network

UserAgent = Annotated[str, setting("Send this user agent instead of `Gossamer/VERSION (+CONTACT)`.")]

Cookies = Annotated[
    Literal["off", "host", "keep"],
    setting(
        "Send cookies back to the server that set them: `host` while the crawl runs, `keep` also when it goes on later. Kept "
        "cookies lie in a file of the crawl that only its owner can read; no archive holds their values."
    ),
]

CookieFile = Annotated[
    str,
    setting(
        "Begin with the cookies of this file (cookies.txt, or JSON as browsers export it), which other users must not be able "
        "to read, and keep those that servers set while the crawl runs.",
        names="a file",
    ),
]

Proxies = Annotated[
    tuple[str, ...],
    setting(
        "Send requests through http://[USER:PASSWORD@]HOST:PORT or socks5h://... @FILE reads one proxy a line, $NAME reads an "
        "environment variable; crawl.toml holds the content of neither. HTTP_PROXY and its like are ignored. Several proxies "
        "take turns, and one that fails is not used for a while.",
        secret=True,
        names="a secret",
    ),
]

#: It is off by default: with one request at a time per host HTTP/2 gains nothing, and the archive has to render its answers as 1.1.
Http2 = Annotated[bool, setting("Offer HTTP/2 to https servers.")]

CaFile = Annotated[str, setting("Trust the certificates in this file (PEM) instead of the system's.", names="a file")]

Resolve = Annotated[
    tuple[str, ...],
    setting(
        "Connect to ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080`; the first that fits wins.",
        names="an address",
    ),
]

AllowedNetworks = Annotated[
    tuple[str, ...], setting("Let links reach this private network (CIDR).", names="a private network")
]
