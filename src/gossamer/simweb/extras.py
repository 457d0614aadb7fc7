"""Everything a host serves besides pages: sitemaps, feeds, images.

Place in the flow: `site` sends requests for them here. As with pages, each is made on request.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Final

from gossamer.simweb import draws
from gossamer.simweb.hosts import SimHost
from gossamer.simweb.pages import PageKind, Pages, path_of
from gossamer.simweb.render import IMAGES, http_date

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
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)
