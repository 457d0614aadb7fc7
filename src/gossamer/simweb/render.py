"""From a page's draws to its bytes: HTML put together from pieces made ready beforehand; traps, sitemaps, feeds and images too.

Place in the flow: `site` has found host and page and asks for the body; `pages` says where links go, `text` supplies paragraphs.
What all pages of a host share (head, menu, foot) is made once a host and kept in a `Skin`; what is left for each page is to draw
its own links and to join ready-made list items and paragraphs.

Some hosts (`Host.trap`) link to a crawler trap: pages without end, each a function of its own URL. `site` sends every URL for
which `is_in_trap` holds here; the auditor counts what a crawler spent on them. A crawler that follows every link never finishes
such a host: there is always a next month, a deeper directory, a fresh session, another combination of filters, or one more page
that is not there and says 200.
"""

import struct
import time
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final, NamedTuple

from gossamer.simweb import draws, text
from gossamer.simweb.hosts import SimHost, SimHosts
from gossamer.simweb.page import EXTERNAL_BLOCKS, LOCAL_BLOCKS, PageKind, Pages, path_of, size_class
from gossamer.simweb.text import markup_of
from gossamer.values.hosts import Remembered

_FACETS: Final = {
    "color": ("red", "green", "blue", "black"),
    "size": ("s", "m", "l", "xl"),
    "brand": ("acme", "globex", "initech", "umbrella"),
    "sort": ("price", "name", "date"),
    "page": ("1", "2", "3", "4", "5", "6", "7", "8"),
}


def is_in_trap(trap: str, target: str) -> bool:
    """Return whether a path with its query lies inside a host's trap (never for `trap` "").

    A host of soft 404s answers *every* unknown path; the caller asks here only for those.
    """
    return trap != "" and target.startswith(TRAPS[trap].prefix)


def trap_page(trap: str, target: str) -> bytes:
    """Return the HTML that a trap shows at a path; `is_in_trap` must hold."""
    title, links = TRAPS[trap].write(target)
    anchors = "".join(f'<li><a href="{_escape(link)}">{_escape(link)}</a></li>' for link in links)
    return (
        f"<!DOCTYPE html><html lang=en><head><meta charset=utf-8><title>{_escape(title)}</title>"
        f"</head><body><h1>{_escape(title)}</h1><ul>{anchors}</ul></body></html>\n"
    ).encode("utf-8", "replace")


def _escape(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _calendar(target: str) -> tuple[str, list[str]]:
    parts = target.partition("?")[0].removesuffix(".html").split("/")
    try:
        months = int(parts[2][:6]) * 12 + int(parts[3][:3]) - 1
    except (IndexError, ValueError):
        months = 2026 * 12
    around = (divmod(months + step, 12) for step in (-1, 1, 12))
    links = [f"/calendar/{year}/{month + 1:02}.html" for year, month in around]
    return f"Events of {months // 12}-{months % 12 + 1:02}", links


def _loop(target: str) -> tuple[str, list[str]]:
    here = target.partition("?")[0].rstrip("/")[:1500]
    return f"Directory {here}", [f"{here}/a/", f"{here}/b/", f"{here}/a/b/"]


def _session(target: str) -> tuple[str, list[str]]:
    fresh = f"{zlib.crc32(target.encode('utf-8', 'replace')):08x}"
    return f"Your visit {fresh}", [f"/session/{fresh}/{number}.html" for number in range(1, 6)]


def _facets(target: str) -> tuple[str, list[str]]:
    """Offer every value of every facet on top of what is chosen, which never stops growing in the
    order of its parameters, as carelessly built shops do."""
    query = target.partition("?")[2][:1000]
    links = [
        f"/shop/list?{query}&{name}={value}" if query else f"/shop/list?{name}={value}"
        for name, values in _FACETS.items()
        for value in values
    ]
    return f"Products, {query.count('=')} filters", links


def _soft404(target: str) -> tuple[str, list[str]]:
    number = zlib.crc32(target.encode("utf-8", "replace"))
    return "Page not found", ["/", f"/missing/{number}.html", f"/missing/{number // 2}.html"]


class Trap(NamedTuple):
    entry: str
    """Where it begins."""
    prefix: str
    """How the paths inside it begin."""
    write: Callable[[str], tuple[str, list[str]]]
    """Title and links of the page at a path."""


TRAPS: Final = {
    "calendar": Trap("/calendar/2026/01.html", "/calendar/", _calendar),
    "loop": Trap("/loop/a/", "/loop/", _loop),
    "session": Trap("/session/start/1.html", "/session/", _session),
    "facets": Trap("/shop/list?color=red", "/shop/", _facets),
    "soft404": Trap("/missing/1.html", "", _soft404),
}

IMAGES: Final = 64
"""Different images of a host; each page shows two."""

SPECIAL_EVERY: Final = 16
"""One page in so many links into the trap of its host, another to a page under a second URL."""

SMALL: Final = 250
"""Bytes of all the small pieces of a page: titles, images, foot."""

_SPREAD: Final = 0x9E3779B1
"""An odd number with about as many ones as zeros: its multiples spread moments over a page's revisions."""

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (*("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),)
_MINUTES: Final = tuple(b"%02d:%02d:" % divmod(minute, 60) for minute in range(1440))
_SECONDS: Final = tuple(b"%02d GMT" % second for second in range(60))


def http_date(seconds: float) -> str:
    """Return a moment (seconds since 1970) as HTTP writes it, e.g. Thu, 01 Jan 2026 00:00:00 GMT."""
    return date_bytes(int(seconds)).decode()


def date_bytes(seconds: int) -> bytes:
    """The same as bytes, from pieces made beforehand: two of them stand in every answer."""
    return _date(seconds // 86_400) + _MINUTES[seconds // 60 % 1440] + _SECONDS[seconds % 60]


@lru_cache(maxsize=4096)
def _date(day: int) -> bytes:
    year, month, number, _, _, _, weekday, _, _ = time.gmtime(day * 86_400)
    return f"{_DAYS[weekday]}, {number:02} {_MONTHS[month - 1]} {year} ".encode()


_IMAGES: Final = tuple(b'<img src="/img/%d.png" alt="">' % number for number in range(IMAGES))


class Realm:
    """How the crawler names hosts: scheme, names or addresses, and which port belongs into URLs."""

    def __init__(self, pages: Pages, scheme: str, by_address: bool, port: str) -> None:
        self._hosts, self._scheme = pages.hosts, scheme
        self._by_address, self._port = by_address, port
        self._prefixes = Remembered(self._prefix, SimHosts.CACHE)
        self.chains = Chains(EXTERNAL_BLOCKS, pages.external_chain, self._block)
        """Chains of links to other hosts."""
        self._pages = pages
        self.skins: dict[int, Skin] = {}

    def prefix(self, rank: int) -> bytes:
        """Return scheme and authority of a host, such as http://www.amber0.sim:8080."""
        return self._prefixes[rank]

    def _prefix(self, rank: int) -> bytes:
        name = self._hosts.own_address(rank) if self._by_address else self._hosts.name(rank)
        return f"{self._scheme}://{name}{self._port}".encode()

    def _block(self, number: int) -> bytes:
        links = (self.prefix(rank) + path_of(index).encode() for rank, index in self._pages.external_block(number))
        return b"".join(b'<li><a href="%b">elsewhere</a>\n' % link for link in links)


class Chains(dict[int, bytes]):
    """Chains of blocks of links, rendered, by number: hosts of one language and size share the local ones, hosts of one
    realm those to other hosts. A page then takes all its links of either kind in one piece."""

    KEPT: Final = 4
    """Longer chains are put together from their blocks each time: they are few, and seldom seen twice."""

    def __init__(self, blocks: int, chain: Callable[[int], list[int]], block: Callable[[int], bytes]) -> None:
        self._room = (self.KEPT + 1) * blocks
        self._chain = chain
        """From the number of a chain to those of its blocks."""
        self._block = cache(block)

    def __missing__(self, number: int) -> bytes:
        made = b"".join([self._block(block) for block in self._chain(number)])
        if number < self._room:
            self[number] = made
        return made


class Skin:
    """The common part of all pages of one host, encoded."""

    LIMIT: Final = 8_000
    """Skins kept for each realm (3 KB each); the cache starts again when it is full."""

    def __init__(self, host: SimHost, pages: Pages, homes: bytes, chains: Chains) -> None:
        self.host, self.key = host, host.key
        self.inner = pages.inner(host.size)
        """Pages below this index have children."""
        self.homes = homes
        """A list of links to the hosts below this one, for its home page."""
        self.pool = text.pool(host.language, host.charset)
        self.chains = chains
        """Chains of local links."""
        # Both the header and the page may name the charset. Old sites often name it in one place
        # only; a mirror has to have the same bytes as its source, hence `source`.
        named = host.charset == "utf-8" or host.source % 2 == 1
        meta = f'<meta charset="{host.charset}">' if named else ""
        announced = host.charset == "utf-8" or host.source % 2 == 0
        kind = f"text/html; charset={host.charset}" if announced else "text/html"
        self.announced = f"Content-Type: {kind}\r\nContent-Length: ".encode()
        """The header fields of a page up to the number of its bytes."""
        feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
        self.head = (
            f'<!DOCTYPE html>\n<html lang="{host.language}">\n<head>{meta}{feed if host.feed else ""}<title>'
        ).encode()
        menu = range(1, min(pages.spec.navigation, host.size - 1) + 1)
        anchors = self.pool.anchors
        items = b"".join(b'<a href="%b">%b</a>\n' % (path_of(k).encode(), anchors[k % len(anchors)]) for k in menu)
        self.middle = b'</title></head>\n<body><nav><a href="/">Home</a>\n' + items + b"</nav>\n<main><h1>"
        entry = TRAPS[host.trap].entry if host.trap else ""
        self.trap = f'<p><a href="{entry}" rel="more">More</a></p>\n'.encode() if entry else b""
        self.fixed = len(self.head) + len(self.middle) + SMALL
        """About how long a page is without its list of links and its paragraphs."""


class Copy(NamedTuple):
    """The values that a near-duplicate has of its own: the index in its host, and the bits of its title."""

    number: int
    bits: int


class Renderer:
    """Writes the HTML of any page of one web."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self._chains: dict[tuple[str, str, int], Chains] = {}
        self._branching, self._sizes, self._dead = pages.spec.branching, pages.sizes, pages.dead_weight
        self._statements = pages.spec.statements

    def skin(self, host: SimHost, realm: Realm) -> Skin:
        """Return what a host's pages have in common under the names that the crawler uses."""
        known = realm.skins.get(host.rank)
        if known is None:
            if len(realm.skins) >= Skin.LIMIT:
                realm.skins.clear()
            below = self.pages.homes_below(host.source)
            links = b"".join(b'<li><a href="%b/">site</a>\n' % realm.prefix(r) for r in below)
            homes = b"<ul>" + links + b"</ul>"
            pages, group = self.pages, size_class(host.log_size)
            items = text.pool(host.language, host.charset).items

            def block(number: int) -> bytes:
                return b"".join([items[index] for index in pages.local_block(group, number)])

            # Chains are kept here and not with the text, which serves every web of this process.
            fresh = Chains(LOCAL_BLOCKS, pages.local_chain, block)
            chains = self._chains.setdefault((host.language, host.charset, group), fresh)
            known = realm.skins[host.rank] = Skin(host, pages, homes, chains)
        return known

    def html(self, skin: Skin, realm: Realm, shown: int, bits: int, changed: int, copy: Copy | None) -> list[bytes]:
        """Return, in pieces, the page of index `shown`, whose bits are `bits` and which last changed at `changed`.

        An exact duplicate has the bytes of its original; a near-duplicate, a `copy`, its original's text and
        links under a title and a line of its own.
        """
        pool = skin.pool
        # Small numbers from here on: their sums cost half.
        high = bits >> 34
        revision = (high ^ changed * _SPREAD) & draws.MASK30
        if copy is None:
            note, title = b"</h1>\n<ul>", pool.title(high, skin.key + shown)
        else:
            note = b"</h1>\n<p>Copy number %d.</p>\n<ul>" % copy.number
            title = pool.title(copy.bits >> 34, skin.key + copy.number)
        local, external = self.pages.choice(skin.host, bits)
        below = b""
        if shown < skin.inner:
            below = b"".join([skin.pool.items[child] for child in self.pages.children(skin.host.size, shown)])
        links, leaving = skin.chains[local], realm.chains[external]
        # Whole paragraphs, so that the size is met to half of one.
        room = self._sizes[bits >> 16 & 4095] - skin.fixed - len(below) - len(links) - len(leaving)
        parent = pool.items[(shown - 1) // self._branching] if shown else b""
        parts = [skin.head, title, skin.middle, title, note, parent, below, links, leaving]
        if (bits >> 52 & 1023) < self._dead:
            parts.append(b'<li><a href="/gone/%d.html">old</a>\n' % shown)
        parts += (b"</ul>\n", pool.paragraph(revision))
        parts += pool.paragraphs(high >> 12, (room + pool.half) // pool.mean - 1)
        parts += (_IMAGES[high & 63], _IMAGES[high >> 6 & 63])
        if self._statements:
            parts.append(markup_of(shown, self._statements))
        place = shown % SPECIAL_EVERY
        if place == 0:
            parts += (skin.trap, b"" if shown else skin.homes)
        elif place == SPECIAL_EVERY // 2:
            again = path_of(1 + shown // SPECIAL_EVERY % 8).encode()
            parts.append(b'<p><a href="%b?utm_source=top">Top story</a></p>\n' % again)
        parts.append(b"<footer>Updated %d, revision %x.</footer></body></html>\n" % (changed, revision))
        return parts


SITEMAP_URLS: Final = 1000
"""URLs in one sitemap file; larger hosts have an index of several."""

FEED_ITEMS: Final = 20

_SITEMAP_NAMESPACE: Final = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_LISTED: Final = (PageKind.PLAIN, PageKind.NEAR_DUPLICATE, PageKind.FLAKY)


def sitemap(pages: Pages, host: SimHost, prefix: str, target: str) -> bytes | None:
    """Return a host's sitemap, its index of sitemaps, or None where it has no such file.

    Listed are pages with content of their own: no copies, redirects or errors.
    """
    files = -(-host.size // SITEMAP_URLS)
    if target == "/sitemap.xml" and files > 1:
        entries = (f"<sitemap><loc>{prefix}/sitemap-{number}.xml</loc></sitemap>\n" for number in range(files))
        return _xml("sitemapindex", "".join(entries))
    number = 0
    if target != "/sitemap.xml":
        digits = target.removeprefix("/sitemap-").removesuffix(".xml")
        if not digits.isdecimal() or len(digits) > 9 or not 0 <= int(digits) < files:
            return None
        number = int(digits)
    first = number * SITEMAP_URLS
    urls = (
        f"<url><loc>{prefix}{path_of(index)}</loc></url>\n"
        for index in range(first, min(first + SITEMAP_URLS, host.size))
        if pages.kind(host, index) in _LISTED
    )
    return _xml("urlset", "".join(urls))


def _xml(root: str, inner: str) -> bytes:
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}<{root} {_SITEMAP_NAMESPACE}>\n{inner}</{root}>\n".encode()


def feed(host: SimHost, prefix: str, moment: float) -> bytes:
    """Return a host's RSS feed: its top pages under URLs with a campaign parameter, as feeds do."""
    items = "".join(
        f"<item><title>News {index}</title><link>{prefix}{path_of(index)}?utm_source=feed</link>"
        f"<guid>{prefix}{path_of(index)}</guid></item>\n"
        for index in range(1, min(FEED_ITEMS + 1, host.size))
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel>'
        f"<title>{host.name}</title><link>{prefix}/</link><description>News</description>\n"
        f"<lastBuildDate>{http_date(moment)}</lastBuildDate>\n{items}</channel></rss>\n"
    ).encode()


@lru_cache(maxsize=IMAGES)
def image(number: int) -> bytes:
    """Return image `number` of every host: a valid PNG of one colour with a diagonal."""
    bits = draws.draw(0, number)
    width, height = 16 + (bits & 127), 16 + (bits >> 7 & 127)
    colour = bytes((bits >> 16 & 255, bits >> 24 & 255, bits >> 32 & 255))
    rows = b"".join(
        b"\0" + colour * (row % width) + b"\xff\xff\xff" + colour * (width - row % width - 1) for row in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    framed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)
