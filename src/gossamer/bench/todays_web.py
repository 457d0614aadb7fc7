"""Pages as they are today, under many hosts, over TLS: the web that `gossamer bench today` crawls, and its server.

Place in the flow: the benchmark starts `serve` in a process of its own. Every URL of a host is a page with a body of its
own, made when it is asked for, out of a template: the links of the template that lead to its own site lead to pages of the
host, a paragraph and a title belong to the page alone. So a crawl of any length meets URLs that are new, and what it has not
fetched waits in its ledger.

Templates are the HTML files of a folder, or made to the shape that the HTTP Archive publishes (Web Almanac 2024, chapter
Markup, https://almanac.httparchive.org/en/2024/markup): bytes that a document takes on the line, elements of a page, shares
of the elements, and attributes. Documents that many hosts serve have their bulk in scripts, which fill a page up to its size
here.

Hosts are addresses of loopback, since no crawler needs a name server for these.
"""

import asyncio
import gzip
import random
import re
import ssl
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec
from isal import igzip_lib

from gossamer.simweb.tls import Authority
from gossamer.values.errors import UsageError

#: Percentiles of the HTTP Archive (Web Almanac 2024), each with bytes of the HTML document on the line, on desktops, and elements
#: of a page, on phones. The smallest and largest pages are guesses.
SHAPE = (
    (0.0, 2_000, 60),
    (0.10, 6_000, 180),
    (0.25, 14_000, 342),
    (0.50, 33_000, 594),
    (0.75, 73_000, 1_010),
    (0.90, 148_000, 1_716),
    (1.0, 400_000, 4_000),
)

#: Shares of elements, in per cent (the same source); what is left is spread over the others of the fifteen most frequent ones.
ELEMENTS = {
    "div": 28.7,
    "a": 12.6,
    "span": 11.2,
    "li": 7.7,
    "script": 3.9,
    "img": 3.3,
    "p": 3.2,
    "link": 2.5,
    "path": 2.3,
    "i": 1.8,
}

#: Bytes of a made document for each that passes the line: what gzip makes of it. With it the mean page has 245 KB; a crawl of a
#: billion pages met 242 KB in 2025.
PACKED = 4.0

#: Templates that are made.
MADE = 120

#: Links of its own site that a page shares with all pages of the host (menu, foot), and pages between which its other links
#: choose: of twelve links, the host's menu has seven, near pages have four, and one leads anywhere on the host.
MENU, NEAR, ANYWHERE = 40, 15, 50_000

#: One in so many links to other sites leads to another host of this web.
ACROSS = 25

_WORD = "abcdefghijklmnopqrstuvwxyz"
_HREF = re.compile(rb"""(<(?:a|area)\s[^<>]*?\bhref\s*=\s*)(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)
_CANONICAL = re.compile(
    rb"""<(?:link[^<>]*rel=["']canonical["'][^<>]*href|meta[^<>]*og:url[^<>]*content)=["'](https?://[^"'<>]+)""",
    re.IGNORECASE,
)
_BODY = re.compile(rb"<body[^>]*>", re.IGNORECASE)
_TITLE = re.compile(rb"<title[^>]*>", re.IGNORECASE)
_BASE = re.compile(rb"<base\s[^>]*>", re.IGNORECASE)


class Template:
    """A page in pieces: between two of them stands a link, or what belongs to one page alone."""

    def __init__(self, page: bytes) -> None:
        # A base would lead every relative link out of this web; a canonical URL would call all pages one.
        self._page = _CANONICAL.sub(lambda found: found[0].replace(found[1], b"#"), _BASE.sub(b"", page))
        # The host that the page says it is from, or else the one that its links name most often.
        if found := _CANONICAL.search(page):
            self._site = urlsplit(found[1].decode("latin-1")).netloc
        else:
            named = Counter(urlsplit(link).netloc for _, _, link in _links(page) if link.startswith("http"))
            self._site = named.most_common(1)[0][0] if named else ""
        self.pieces: list[bytes] = []
        self.kinds: list[str] = []
        """The place behind each piece but the last: `own`, `title`, `menu`, `near`, `anywhere` or `across`."""
        at, seen = 0, Counter[str]()
        for start, end, place in sorted(self._places()):
            seen[place] += 1
            turn = seen[place] % 12
            if place == "outward" and seen[place] % ACROSS:
                continue
            inward = "menu" if turn < 7 else "near" if turn < 11 else "anywhere"
            self.pieces.append(self._page[at:start])
            self.kinds.append({"inward": inward, "outward": "across"}.get(place, place))
            at = end
        self.pieces.append(self._page[at:])
        self.size = len(self._page)

    def _places(self) -> Iterator[tuple[int, int, str]]:
        body, title = _BODY.search(self._page), _TITLE.search(self._page)
        at = body.end() if body else len(self._page)
        yield at, at, "own"
        if title and title.end() < at:
            yield title.end(), title.end(), "title"
        for start, end, link in _links(self._page):
            try:
                parts = urlsplit(link.strip())
            except ValueError:
                continue
            if parts.scheme in ("http", "https", "") and (parts.path or parts.netloc) and start >= at:
                is_inward = not parts.netloc or parts.netloc.removeprefix("www.") == self._site.removeprefix("www.")
                yield start, end, "inward" if is_inward else "outward"

    def page(self, host: int, number: int, others: Sequence[str]) -> bytes:
        """The body of the page of a number; 0 to :data:`MENU` are those of the menu."""
        dice = random.Random(host * 1_000_003 + number)
        out = []
        for index, (piece, kind) in enumerate(zip(self.pieces, self.kinds, strict=False)):
            out.append(piece)
            if kind == "own":
                text = " ".join("".join(dice.choices(_WORD, k=dice.randint(2, 9))) for _ in range(80))
                out.append(f'<p class="of-its-own">Page {number}: {text}.</p>'.encode())
            elif kind == "title":
                out.append(b"%d: " % number)
            elif kind == "across":
                out.append(f"{dice.choice(others)}/".encode())
            else:
                target = (
                    index % MENU
                    if kind == "menu"
                    else number + index % NEAR
                    if kind == "near"
                    else dice.randrange(ANYWHERE)
                )
                out.append(f"/a/{target}/{_slug(target)}.html".encode())
        return b"".join([*out, self.pieces[-1]])


def _links(page: bytes) -> Iterator[tuple[int, int, str]]:
    for found in _HREF.finditer(page):
        group = 2 if found[2] is not None else 3
        yield *found.span(group), found[group].decode("latin-1")


def _slug(number: int) -> str:
    dice = random.Random(-number - 1)
    return "-".join("".join(dice.choices(_WORD, k=6)) for _ in range(3))


# -- templates


def templates(folder: Path | None) -> list[Template]:
    """Those of a folder (`*.html`, `*.html.gz`; not what tests expect of them), or made ones.

    Raises:
        UsageError: there is no page in the folder.
    """
    if folder is None:
        return [Template(made_page(random.Random(seed), (seed + 0.5) / MADE)) for seed in range(MADE)]
    files = [*folder.rglob("*.html"), *folder.rglob("*.htm"), *folder.rglob("*.html.gz")]
    files = sorted(file for file in files if file.is_file() and not file.name.startswith("expected."))
    if not files:
        raise UsageError(f"--pages {folder}: there is no .html or .html.gz in this folder")
    return [
        Template(gzip.decompress(data) if file.suffix == ".gz" else data)
        for file in files
        for data in [file.read_bytes()]
    ]


def shape_at(share: float) -> tuple[int, int]:
    """Bytes on the line and elements at a percentile, between those that are published."""
    for (low, size, elements), (high, more, most) in pairwise(SHAPE):
        if share <= high:
            part = (share - low) / (high - low)
            return round(size * (more / size) ** part), round(elements * (most / elements) ** part)
    return SHAPE[-1][1:]


def made_page(dice: random.Random, share: float) -> bytes:
    """A page of a percentile of size: elements in their shares, then scripts up to its size."""
    transferred, elements = shape_at(share)
    words = ["".join(dice.choices(_WORD, k=dice.randint(2, 10))) for _ in range(1_500)]
    ranks = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))

    def prose(count: int) -> str:
        return " ".join(dice.choices(words, cum_weights=ranks, k=count))

    def attributes() -> str:
        # Two attributes an element: a third of them are classes, a tenth is data of scripts.
        more = f' data-{words[dice.randrange(30)]}="{prose(1)}"' if dice.random() < 0.2 else ""
        more += f' id="{prose(1)}-{dice.randrange(999)}"' if dice.random() < 0.12 else ""
        return f' class="{words[dice.randrange(200)]} {words[dice.randrange(60)]}__{words[dice.randrange(40)]}"{more}'

    def element(name: str) -> str:
        if name == "a":
            place = (
                f"/{'/'.join(dice.choices(words, k=3))}"
                if dice.random() < 0.8
                else f"https://www.{prose(1)}.example/{prose(1)}"
            )
            return f'<a{attributes()} href="{place}">{prose(dice.randint(1, 6))}</a>'
        if name == "img":
            return (
                f'<img{attributes()} src="/img/{prose(1)}-{dice.randrange(9999)}.jpg" alt="{prose(4)}" loading="lazy">'
            )
        if name == "script":
            return f'<script>window.{prose(1)}=window.{prose(1)}||[];{prose(1)}.push({{"{prose(1)}":"{prose(2)}"}})</script>'
        if name == "path":
            points = " ".join(f"{dice.random() * 24:.2f} {dice.random() * 24:.2f}" for _ in range(12))
            return f'<svg width="24" height="24" viewBox="0 0 24 24"><path d="M{points}z"/></svg>'
        if name in ("p", "li", "span", "i"):
            return f"<{name}{attributes()}>{prose(dice.randint(*((12, 60) if name == 'p' else (1, 6))))}</{name}>"
        return f"<div{attributes()}>" if dice.random() < 0.5 else f"<div{attributes()}>{prose(3)}</div></div>"

    named = dice.choices([*ELEMENTS], [*ELEMENTS.values()], k=elements)
    links = "".join(f'<link rel="stylesheet" href="/css/{prose(1)}.css">' for _ in range(named.count("link")))
    body = "\n".join(element(name) for name in named if name != "link")
    size = round(transferred * PACKED) - len(body) - len(links)
    scripts = []
    while size > 0:
        calls = "".join(
            f'function {words[dice.randrange(300)]}{dice.randrange(99)}(e,t){{if(e.{prose(1)}<t){{return {{"{prose(1)}":'
            f'e["{prose(1)}"],"{prose(1)}":{dice.randrange(9999)}}}}}var n="{prose(4)}";'
            f'for(let i=0;i<e.length;i++)t.{prose(1)}(n+"<b>"+i);}}'
            for _ in range(dice.randint(5, 120))
        )
        scripts.append(f"<script>{calls[: max(size, 60)]}</script>")
        size -= len(calls)
    head = f'<meta charset="utf-8"><title>{prose(6)}</title><meta name="description" content="{prose(20)}">'
    first, last = "".join(scripts[::2]), "".join(scripts[1::2])
    return (
        f'<!DOCTYPE html><html lang="en"><head>{head}{links}{first}</head>'
        f'<body class="{prose(3)}">{body}{last}</body></html>'
    ).encode()


# -- the server


class WebOfToday(msgspec.Struct, frozen=True):
    """The pages that are served, and how."""

    hosts: int
    tls: str
    """full: a handshake for each page; resumed: sessions can be resumed; none: plain HTTP on connections that stay open."""
    trusted: str
    """File for the certificate that crawlers are told to trust."""
    pages: str = ""
    """Folder of templates; made ones where it is empty."""

    @property
    def addresses(self) -> list[str]:
        return [f"127.1.{number // 250}.{number % 250 + 1}" for number in range(self.hosts)]


class _Answers(asyncio.Protocol):
    """One connection. `/-/served` tells the pages and bytes of bodies that were served since it was asked last."""

    def __init__(self, made: Sequence[Template], origins: Sequence[str], told: Counter[str], *, stays: bool) -> None:
        self._made, self._origins, self._stays = made, origins, stays
        self._came = b""
        self._host = 0
        self._told = told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own for TLS is none by its class
        _, _, high, low = transport.get_extra_info("sockname")[0].split(".")
        self._host = int(high) * 250 + int(low) - 1

    def data_received(self, data: bytes) -> None:
        self._came += data
        while (end := self._came.find(b"\r\n\r\n")) >= 0:
            head, self._came = self._came[:end].lower(), self._came[end + 4 :]
            target = head.split(b" ", 2)[1]
            status, kind, body = self._answer(target)
            is_packed = kind != "text/plain" and b"gzip" in head.partition(b"accept-encoding:")[2].partition(b"\r")[0]
            if is_packed:
                body = igzip_lib.compress(body, 2, igzip_lib.COMP_GZIP)
            coding = "Content-Encoding: gzip\r\n" if is_packed else ""
            stays = "keep-alive" if self._stays else "close"
            fields = (
                f"Content-Type: {kind}; charset=utf-8\r\n{coding}Content-Length: {len(body)}\r\nConnection: {stays}"
            )
            self._transport.write(f"HTTP/1.1 {status}\r\nServer: today\r\n{fields}\r\n\r\n".encode() + body)
            if not self._stays:
                self._transport.close()

    def _answer(self, target: bytes) -> tuple[str, str, bytes]:
        if target == b"/robots.txt":
            return "200 OK", "text/plain", b"User-agent: *\nDisallow: /search\nDisallow: /cart/\nAllow: /a/\n"
        if target == b"/-/served":
            told = msgspec.json.encode(self._told)
            self._told.clear()
            return "200 OK", "text/plain", told
        number = target.split(b"/")[2] if target.startswith(b"/a/") else b"0"
        if not number.isdigit():
            return "404 Not Found", "text/html", b"<title>Not found</title>"
        page = int(number)
        template = self._made[(page * 31 + self._host * 7) % len(self._made)]
        body = template.page(self._host, page, self._origins)
        self._told.update(pages=1, bytes=len(body))
        return "200 OK", "text/html", body


async def _serve(web: WebOfToday) -> None:
    made = templates(Path(web.pages) if web.pages else None)
    tls: ssl.SSLContext | None = None
    if web.tls != "none":
        authority = Authority()
        Path(web.trusted).write_bytes(authority.certificate)
        tls = authority.fixed_context("today.example", addresses=web.addresses)
        if web.tls == "full":
            tls.num_tickets = 0
            tls.options |= ssl.OP_NO_TICKET
    origins, served = list[str](), Counter[str]()
    loop, port = asyncio.get_running_loop(), 0
    for address in web.addresses:
        server = await loop.create_server(
            lambda: _Answers(made, origins, served, stays=tls is None), address, port, ssl=tls, backlog=256
        )
        port = port or server.sockets[0].getsockname()[1]
        origins.append(f"{'https' if tls else 'http'}://{address}:{port}")
    sizes = sorted(template.size for template in made)
    told = {
        "origins": origins,
        "templates": len(made),
        "median": sizes[len(sizes) // 2],
        "mean": sum(sizes) // len(sizes),
    }
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def serve(web: dict[str, object]) -> None:
    """Serve a :class:`WebOfToday`, and say where, until the process is ended."""
    from gossamer.crawls.machine import coroutine_runner

    with coroutine_runner() as runner:
        runner.run(_serve(msgspec.convert(web, WebOfToday)))
