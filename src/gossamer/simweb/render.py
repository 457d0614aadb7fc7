"""From a page's draws to its bytes: HTML put together from pieces made ready beforehand.

Place in the flow: `site` has found host and page and asks for the body; `pages` says where links go,
`text` supplies paragraphs. What all pages of a host share (head, menu, foot) is made once a host and
kept in a `Skin`; what is left for each page is to draw its own links and to join ready-made list
items and paragraphs.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final, NamedTuple

from gossamer.simweb import draws, text, traps
from gossamer.simweb.hosts import Host, Hosts
from gossamer.simweb.pages import Pages, path_of, size_class

IMAGES: Final = 64
"""Different images of a host; each page shows two."""

SPECIAL_EVERY: Final = 16
"""One page in so many links into the trap of its host, another to a page under a second URL."""

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
    """Return the date part; changes fall on far fewer days than there are pages."""
    year, month, number, _, _, _, weekday, _, _ = time.gmtime(day * 86_400)
    return f"{_DAYS[weekday]}, {number:02} {_MONTHS[month - 1]} {year} ".encode()


_IMAGES: Final = tuple(b'<img src="/img/%d.png" alt="">' % number for number in range(IMAGES))


class Realm:
    """How the crawler names hosts: scheme, names or addresses, and which port belongs into URLs."""

    def __init__(self, hosts: Hosts, scheme: str, by_address: bool, port: str) -> None:
        self._hosts, self._scheme = hosts, scheme
        self._by_address, self._port = by_address, port
        self._known: dict[int, bytes] = {}
        self.blocks: dict[int, bytes] = {}
        """Rendered blocks of links to other hosts, by number."""
        self.skins: dict[int, Skin] = {}

    def prefix(self, rank: int) -> bytes:
        """Return scheme and authority of a host, such as http://www.amber0.sim:8080."""
        known = self._known.get(rank)
        if known is None:
            if len(self._known) >= Hosts.CACHE:
                self._known.clear()
            hosts = self._hosts
            name = hosts.own_address(rank) if self._by_address else hosts.name(rank)
            known = self._known[rank] = f"{self._scheme}://{name}{self._port}".encode()
        return known


class Skin:
    """What all pages of one host have in common, encoded."""

    LIMIT: Final = 8_000
    """Skins kept for each realm (3 KB each); the cache starts again when it is full."""

    def __init__(self, host: Host, pages: Pages, homes: bytes, blocks: dict[int, bytes]) -> None:
        self.host, self.key = host, host.key
        self.group = size_class(host.log_size)
        self.inner = pages.inner(host.size)
        """Pages below this index have children."""
        self.homes = homes
        """Links to the hosts below this one, for its home page."""
        self.pool = text.pool(host.language, host.charset)
        self.blocks = blocks
        """Rendered blocks of local links by number; hosts of one language and size share them."""
        # Both the header and the page may name the charset. Old sites often name it in one place
        # only; a mirror has to have the same bytes as its source, hence `source`.
        named = host.charset == "utf-8" or host.source % 2 == 1
        meta = f'<meta charset="{host.charset}">' if named else ""
        announced = host.charset == "utf-8" or host.source % 2 == 0
        kind = f"text/html; charset={host.charset}" if announced else "text/html"
        self.content_type = kind.encode()
        feed = '<link rel="alternate" type="application/rss+xml" href="/feed.xml">'
        self.head = (
            f'<!DOCTYPE html>\n<html lang="{host.language}">\n<head>{meta}{feed if host.feed else ""}<title>'
        ).encode()
        menu = range(1, min(pages.spec.navigation, host.size - 1) + 1)
        anchors = self.pool.anchors
        items = b"".join(b'<a href="%b">%b</a>\n' % (path_of(k).encode(), anchors[k % len(anchors)]) for k in menu)
        self.middle = b'</title></head>\n<body><nav><a href="/">Home</a>\n' + items + b"</nav>\n<main><h1>"
        entry = traps.ENTRIES.get(host.trap, "")
        self.trap = f'<p><a href="{entry}" rel="more">More</a></p>\n'.encode() if entry else b""
        self.fixed = len(self.head) + len(self.middle) + 400


class Copy(NamedTuple):
    """What a near-duplicate has of its own: the index in its host, and the bits of its title."""

    number: int
    bits: int


class Renderer:
    """Writes the HTML of any page of one web."""

    def __init__(self, hosts: Hosts, pages: Pages) -> None:
        self.hosts, self.pages = hosts, pages
        self._blocks: dict[tuple[str, str, int], dict[int, bytes]] = {}
        self._branching = pages.spec.branching

    def skin(self, host: Host, realm: Realm) -> Skin:
        """Return what a host's pages have in common under the names that the crawler uses."""
        known = realm.skins.get(host.rank)
        if known is None:
            if len(realm.skins) >= Skin.LIMIT:
                realm.skins.clear()
            below = self.pages.homes_below(host.source)
            homes = b"".join(b'<li><a href="%b/">site</a>\n' % realm.prefix(r) for r in below)
            # Kept here and not with the text, which serves every web of this process.
            blocks = self._blocks.setdefault((host.language, host.charset, size_class(host.log_size)), {})
            known = realm.skins[host.rank] = Skin(host, self.pages, homes, blocks)
        return known

    def html(self, skin: Skin, realm: Realm, shown: int, bits: int, changed: int, copy: Copy | None) -> bytes:
        """Return the bytes of the page of index `shown`, whose bits are `bits` and which last changed at `changed`.

        An exact duplicate has the bytes of its original; a near-duplicate, a `copy`, its original's text and
        links under a title and a line of its own.
        """
        pool = skin.pool
        if copy is None:
            note, title = b"</h1>\n", pool.title(bits >> 8, skin.key + shown)
        else:
            note = b"</h1>\n<p>Copy number %d.</p>\n" % copy.number
            title = pool.title(copy.bits >> 8, skin.key + copy.number)
        seed = draws.mix(bits + changed)
        parts = [skin.head, title, skin.middle, title, note]
        room = self.pages.sizes[bits >> 16 & 4095] - skin.fixed - 120
        self._add_links(parts, skin, realm, shown, bits)
        # Whole paragraphs, so that the size is met to half of one; the parts so far are links, of
        # about 120 bytes each on average.
        count = (room - 120 * len(parts) + pool.mean // 2) // pool.mean
        parts += pool.paragraphs(seed >> 8, 1)
        parts += pool.paragraphs(bits >> 40, count - 1 if count > 2 else 1)
        parts += (_IMAGES[bits >> 50 & 63], _IMAGES[bits >> 44 & 63], b"\n")
        if shown == 0:
            parts += (b"<ul>", skin.homes, b"</ul>")
        if shown % SPECIAL_EVERY == 0:
            parts.append(skin.trap)
        elif shown % SPECIAL_EVERY == SPECIAL_EVERY // 2:
            again = path_of(1 + shown // SPECIAL_EVERY % 8).encode()
            parts.append(b'<p><a href="%b?utm_source=top">Top story</a></p>\n' % again)
        parts.append(b"<footer>Updated %d, revision %x.</footer></body></html>\n" % (changed, seed))
        return b"".join(parts)

    def _add_links(self, parts: list[bytes], skin: Skin, realm: Realm, index: int, bits: int) -> None:
        """Add the HTML of a page's own links, most of it from blocks rendered before."""
        pages, pool = self.pages, skin.pool
        local, external = pages.choice(skin.host, bits)
        parts.append(b"<ul>")
        if index:
            parts.append(pool.items[(index - 1) // self._branching])
        if index < skin.inner:
            parts += [pool.items[child] for child in pages.children(skin.host.size, index)]
        blocks = skin.blocks
        for number in local:
            parts.append(blocks.get(number) or self._local_block(skin, number))
        blocks = realm.blocks
        for number in external:
            parts.append(blocks.get(number) or self._external_block(realm, number))
        if pages.has_dead_link(bits):
            parts.append(b'<li><a href="/gone/%d.html">old</a>\n' % index)
        parts.append(b"</ul>\n")

    def _local_block(self, skin: Skin, number: int) -> bytes:
        """Render a block of links within a host, and keep it."""
        links = self.pages.local_block(skin.group, number)
        block = b"".join([skin.pool.items[index] for index in links])
        skin.blocks[number] = block
        return block

    def _external_block(self, realm: Realm, number: int) -> bytes:
        """Render a block of links to other hosts, and keep it."""
        block = b"".join(
            b'<li><a href="%b%b">elsewhere</a>\n' % (realm.prefix(rank), path_of(index).encode())
            for rank, index in self.pages.external_block(number)
        )
        realm.blocks[number] = block
        return block
