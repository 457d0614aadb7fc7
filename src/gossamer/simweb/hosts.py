"""The hosts of the web: how many pages each has, what it is called, where it lives, how it behaves, and what its robots.txt says.

Place in the flow: `pages` asks for a host's size, `site` finds a host by the name in a request,
`dns` answers with its address, `graph` and the auditor walk all of them. Host sizes have a closed
form, so that no table of them is needed, however large the web.

Ranks 0..hosts-1 are hosts of their own, largest first; the ranks after them are mirrors, each an
exact copy of one of the former under another name.
"""

import math
import re
from functools import cache
from itertools import accumulate
from typing import Final

import msgspec

from gossamer.simweb import draws
from gossamer.simweb.spec import WebSpec
from gossamer.values.hosts import Remembered

PORTFOLIO: Final = (0, 1, 2, 3, 0, 0, 4, 4)
"""Which of a block's five domains each of eight consecutive ranks belongs to: most domains have one
host, some two, some three."""

LABELS: Final = ("www", "www", "www", "www", "blog", "shop", "www", "docs")
"""The first label of each of those eight."""

DOMAINS_PER_BLOCK: Final = 5

WORDS: Final = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jasper"),
    *("kelp", "lotus", "maple", "nectar", "onyx", "pearl", "quartz", "raven", "sable", "topaz"),
)

LANGUAGES: Final = {"en": 49.4, "es": 6.0, "de": 5.6, "ja": 5.0, "fr": 4.4, "ru": 4.0, "pt": 3.8, "zh": 1.2}
"""Content languages in per cent of sites, W3Techs (2024), the eight that the simulator can write."""

UTF8_SHARE: Final = 0.983
"""Sites in UTF-8, W3Techs (2024); the others take the charset that their language used before."""

OLD_CHARSETS: Final = {
    "en": "windows-1252",
    "es": "iso-8859-1",
    "de": "iso-8859-15",
    "fr": "windows-1252",
    "pt": "iso-8859-1",
    "ru": "windows-1251",
    "ja": "shift_jis",
    "zh": "gb2312",
}

TRAPS: Final = ("calendar", "loop", "session", "facets", "soft404")

VALIDATORS: Final = {"both": 45.0, "date": 20.0, "etag": 10.0, "none": 25.0}
"""Which of Last-Modified and ETag a host sends, in per cent of hosts. Our choice."""


# robots.txt of every kind, held as data: the file is written from the rules, never parsed. `site` serves it; `graph` and the
# auditor ask `allowed`, which is a plain reading of RFC 9309 (longest match wins, allow on a tie). Since the rules are known as
# data, the auditor cannot share a parser's mistake with the crawler that it judges.
#
# The patterns depend only on a page's directory and on the last digit of its number: by that `graph` judges a million pages by some
# thousand representatives.


ROBOTS_MOVED: Final = "/robots-moved.txt"
"""Where the robots.txt of a host of kind "redirect" really is."""


class RobotsGroup(msgspec.Struct, frozen=True):
    """Rules for some user agents ("*" is everyone else)."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...] = ()
    """(allowed, pattern) in the order of the file."""
    delay: float | None = None
    """Crawl-delay in seconds."""


class SimRobots(msgspec.Struct, frozen=True):
    """The answer of a host to /robots.txt."""

    share: float
    """How common the kind is, in per cent of hosts. Our choice."""
    status: int = 200
    groups: tuple[RobotsGroup, ...] = ()
    prefix: bytes = b""
    """Bytes before the first line, such as a byte order mark."""
    newline: str = "\n"


def _everyone(*rules: tuple[bool, str], delay: float | None = None) -> tuple[RobotsGroup, ...]:
    return (RobotsGroup(agents=("*",), rules=rules, delay=delay),)


_JUNK: Final = b"<!DOCTYPE html><html><body><p>Welcome to our site</p></body></html>\n"

ROBOTS: Final = {
    "allow": SimRobots(35, groups=_everyone((False, ""))),
    "missing": SimRobots(14, status=404),
    "sections": SimRobots(20, groups=_everyone((False, "/s1/"), (False, "/s3/"), (False, "/private/"))),
    "wildcard": SimRobots(6, groups=_everyone((False, "/*7.html$"), (False, "/*?*sort="))),
    "longest": SimRobots(6, groups=_everyone((False, "/s1/"), (True, "/s1/*5.html$"), (False, "/s2/"), (True, "/s2/"))),
    "agents": SimRobots(
        6,
        groups=(
            RobotsGroup(agents=("BadBot", "EvilSpider"), rules=((False, "/"),)),
            RobotsGroup(agents=("Gossamer", "Wget"), rules=((False, "/s1/"),)),
            RobotsGroup(agents=("Scrapy",), rules=((False, "/s2/"),)),
            *_everyone((False, "/s3/")),
        ),
    ),
    "delay": SimRobots(4, groups=_everyone((False, "/private/"), delay=1)),
    "bom": SimRobots(3, groups=_everyone((False, "/s1/")), prefix=b"\xef\xbb\xbf", newline="\r\n"),
    "redirect": SimRobots(2, status=301, groups=_everyone((False, "/s1/"))),
    "forbidden": SimRobots(1, status=403),
    "html": SimRobots(1, prefix=_JUNK),
    "deny": SimRobots(1, groups=_everyone((False, "/"))),
    "error": SimRobots(1, status=503),
}
"""The kinds of robots.txt."""


def robots_text(robots: SimRobots, sitemaps: list[str]) -> bytes:
    """Return the body of a robots.txt, naming the given sitemap URLs at its end."""
    lines: list[str] = []
    for group in robots.groups:
        lines += (f"User-agent: {agent}" for agent in group.agents)
        for allowed_here, pattern in group.rules:
            lines.append(f"{'Allow' if allowed_here else 'Disallow'}: {pattern}".rstrip())
        if group.delay is not None:
            lines.append(f"Crawl-delay: {group.delay:g}")
        lines.append("")
    lines += (f"Sitemap: {url}" for url in sitemaps)
    return robots.prefix + "".join(line + robots.newline for line in lines).encode()


@cache
def _matcher(pattern: str) -> re.Pattern[str]:
    """Return a pattern of robots.txt as a regular expression matched at the start of a path."""
    anchored = pattern.endswith("$")
    parts = pattern.rstrip("$").split("*")
    return re.compile(".*".join(map(re.escape, parts)) + ("$" if anchored else ""))


@cache
def group_for(robots: SimRobots, agent: str) -> RobotsGroup | None:
    """Return the group that a crawler has to obey; `agent` is its whole User-Agent value."""
    lowered = agent.lower()
    for group in robots.groups:
        if any(name.lower() in lowered for name in group.agents if name != "*"):
            return group
    return next((group for group in robots.groups if "*" in group.agents), None)


def allowed(kind: str, agent: str, target: str) -> bool:
    """Return whether a crawler may ask for a path (with its query) on a host of this kind."""
    robots = ROBOTS[kind]
    if robots.status >= 500:
        return False
    group = group_for(robots, agent)
    if group is None or target == "/robots.txt":
        return True
    best, verdict = -1, True
    for permits, pattern in group.rules:
        longer = len(pattern) > best or (len(pattern) == best and permits)
        if pattern and longer and _matcher(pattern).match(target):
            best, verdict = len(pattern), permits
    return verdict


UNRESTRICTED: Final = frozenset(
    kind
    for kind, robots in ROBOTS.items()
    if robots.status < 500 and not any(pattern for group in robots.groups for _, pattern in group.rules)
)
"""Kinds that allow everything to everyone."""


def crawl_delay(kind: str, agent: str) -> float:
    """Return the Crawl-delay in seconds that a host of this kind asks of a crawler, or 0."""
    group = group_for(ROBOTS[kind], agent)
    return (group.delay or 0.0) if group else 0.0


class SimHost(msgspec.Struct, frozen=True):
    """One host and everything about it that does not depend on a page."""

    rank: int
    name: str
    domain: str
    """The registered domain, by the rule that the last label is the public suffix."""
    base: int
    """Number of its first page."""
    size: int
    """Its pages."""
    source: int
    """Rank of the host whose pages it shows: its own, unless it is a mirror."""
    key: int
    """Number of the first page of `source`; a page's draws depend on that one."""
    log_size: int
    """`draws.log2_fixed(size)`."""
    address: str
    """Where its name resolves to; shared with other hosts."""
    own_address: str
    """An address that stands for this host alone, in 127.128.0.0/9."""
    language: str
    charset: str
    robots: str
    trap: str
    """The kind of trap, or an empty string."""
    validators: str
    sitemap: bool
    feed: bool
    latency: float
    """Median seconds before its first byte."""


class SimHosts:
    """All hosts of one web, each made when it is asked for; `len()` counts mirrors too."""

    CACHE: Final = 100_000
    """Hosts kept ready; the cache starts again when it is full."""

    def __init__(self, spec: WebSpec) -> None:
        self.spec = spec
        self.mirrors = int(spec.hosts * spec.mirror_share) if spec.hosts > 1 else 0
        self._power = -1.0 / (spec.host_exponent - 1.0)
        self._scale = self._shape(spec.hosts) or 1.0
        self._salt = draws.draw(spec.seed, 1)
        self._sources = [
            (1 + draws.draw(self._salt ^ 0x5A5A, number) % (self.spec.hosts - 1)) for number in range(self.mirrors)
        ]
        sizes = (self.base(rank + 1) - self.base(rank) for rank in self._sources)
        self._mirror_bases = list(accumulate(sizes, initial=spec.pages))
        self.pages = self._mirror_bases[-1]
        """Pages of the whole web, mirrors included."""
        self.log_count = draws.log2_fixed(len(self))
        """`draws.log2_fixed` of the hosts: what a draw of a linked host needs."""
        self._addresses = -(-len(self) // spec.hosts_per_address)
        self._languages = draws.pick_table(LANGUAGES, 256)
        self._robots = draws.pick_table({kind: robots.share for kind, robots in ROBOTS.items()}, 256)
        self._validators = draws.pick_table(VALIDATORS, 256)
        self._latencies = draws.lognormal_table(1000, spec.latency_sigma, 256, 1, 1_000_000)
        self._cache = Remembered(self._make, self.CACHE)

    def __len__(self) -> int:
        return self.spec.hosts + self.mirrors

    def __repr__(self) -> str:
        return f"Hosts({len(self)} hosts, {self.mirrors} of them mirrors, {self.pages} pages)"

    def _shape(self, rank: int) -> float:
        """Return the pages of the first `rank` hosts, up to a factor: the integral of r^power."""
        exponent = self._power + 1.0
        if abs(exponent) < 1e-9:
            return math.log1p(rank)
        return (math.pow(1.0 + rank, exponent) - 1.0) / exponent

    def base(self, rank: int) -> int:
        """Return the number of the first page of a host; `rank` may be one past the last."""
        hosts = self.spec.hosts
        if rank > hosts:
            return self._mirror_bases[rank - hosts]
        if rank == hosts:
            return self.spec.pages
        spread = int((self.spec.pages - hosts) * (self._shape(rank) / self._scale))
        return rank + spread

    def size(self, rank: int) -> int:
        known = self._cache.get(rank)
        return known.size if known else self.base(rank + 1) - self.base(rank)

    def domain(self, rank: int) -> str:
        if rank >= self.spec.hosts:
            return f"mirror{rank - self.spec.hosts}.sim"
        number = rank // 8 * DOMAINS_PER_BLOCK + PORTFOLIO[rank % 8]
        return f"{WORDS[number % len(WORDS)]}{number}.sim"

    def name(self, rank: int) -> str:
        label = LABELS[rank % 8] if rank < self.spec.hosts else "www"
        return f"{label}.{self.domain(rank)}"

    def address(self, rank: int) -> str:
        """Return the address that a host's name resolves to, shared with others."""
        return _dotted(1 << 16 | 1, rank % self._addresses)

    def own_address(self, rank: int) -> str:
        """Return the address that stands for one host alone: 127.0.0.1 for the first."""
        return _dotted(128 << 16, rank) if rank else "127.0.0.1"

    def rank_of_name(self, name: str) -> int | None:
        """Return the rank of a host by its name or its own address; None for no host of this web."""
        if name.startswith("127."):
            if name == "127.0.0.1":
                return 0
            parts = name.split(".")
            if len(parts) != 4 or not all(part.isdecimal() and len(part) < 4 for part in parts):
                return None
            number = (int(parts[1]) - 128) << 16 | int(parts[2]) << 8 | int(parts[3])
            return number if 0 < number < len(self) and self.own_address(number) == name else None
        label, _, domain = name.partition(".")
        word, _, suffix = domain.rpartition(".")
        stem = word.rstrip("0123456789")
        digits = word[len(stem) :]
        if suffix != "sim" or not digits or len(digits) > 9:
            return None
        number = int(digits)
        if stem == "mirror":
            rank, end = self.spec.hosts + number, len(self)
        else:
            # The only one that may have this label in this domain.
            block, member = divmod(number, DOMAINS_PER_BLOCK)
            offset = next((n for n in range(8) if (PORTFOLIO[n], LABELS[n]) == (member, label)), 0)
            rank, end = block * 8 + offset, self.spec.hosts
        return rank if rank < end and self.name(rank) == name else None

    def host(self, rank: int) -> SimHost:
        """Return a host by its rank, 0..len-1; raises IndexError for any other."""
        return self._cache[rank]

    def _make(self, rank: int) -> SimHost:
        """Draw a host. The largest is kept plain, so that every crawl has a sound place to start."""
        if not 0 <= rank < len(self):
            raise IndexError(f"no host of rank {rank}: this web has {len(self)}")
        spec = self.spec
        source = self._sources[rank - spec.hosts] if rank >= spec.hosts else rank
        bits = draws.draw(self._salt, source)
        base = self.base(rank)
        size = self.base(rank + 1) - base
        plain = source == 0
        language = "en" if plain else self._languages[bits & 255]
        modern = plain or (bits >> 8 & 1023) < UTF8_SHARE * 1024
        trapped = not plain and (bits >> 18 & 1023) < spec.trap_share * 1024
        manner = self._robots[draws.draw(self._salt ^ 0xA5A5, rank) & 255]
        return SimHost(
            rank=rank,
            name=self.name(rank),
            domain=self.domain(rank),
            base=base,
            size=size,
            source=source,
            key=self.base(source),
            log_size=draws.log2_fixed(size),
            address=self.address(rank),
            own_address=self.own_address(rank),
            language=language,
            charset="utf-8" if modern else OLD_CHARSETS[language],
            robots="allow" if plain or spec.plain_robots else manner,
            trap=TRAPS[(bits >> 28) % len(TRAPS)] if trapped else "",
            validators="both" if plain else self._validators[bits >> 34 & 255],
            sitemap=plain or bool(bits >> 42 & 1),
            feed=plain or bool(bits >> 43 & 1),
            latency=spec.latency * self._latencies[bits >> 44 & 255] / 1000,
        )


def _dotted(offset: int, number: int) -> str:
    place = offset + number
    return f"127.{place >> 16 & 255}.{place >> 8 & 255}.{place & 255}"
