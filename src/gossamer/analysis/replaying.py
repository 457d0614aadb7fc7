"""Archived pages that are made ready to be shown, and the short-lived addresses at which they are.

Place in the flow: the dashboard has a worker (:mod:`gossamer.engine.workers`), which can be killed, make each page and sheet of a
replay ready (:mod:`gossamer.dashboard.questions`). Pictures need no parser: :func:`replayed` hands them over in the dashboard's
own process.

Promises: a replayed page reaches nothing but the archive. The policy that the dashboard sends with it forbids it to fetch, run or
send anything else; here every link is led into the archive, and links go that a policy does not cover: those that browsers look up
ahead, and places that a click would lead to. A replayed page has no origin, so that a browser sends no cookie with its requests:
its addresses themselves say what may be seen, are signed, and are good for as long as the page.
"""

import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec

from gossamer.analysis.changed_links import LinkTargets, changed_css, changed_html
from gossamer.crawls.directory import read_wiring
from gossamer.documents import charset
from gossamer.documents.document import Document
from gossamer.engine.worker import Caller
from gossamer.query.archive import ArchivedDocument, check_moment, content_of, reader_of, url_asked
from gossamer.values import media_type as mime
from gossamer.values.errors import ParseSkipped, UsageError
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.task import CSS_IMPORT, CSS_URL, Task
from gossamer.values.visit import Response, Visit

#: Where replays are.
REPLAY = "/replay"

#: Seconds for which an address is good: a person reads a page, and follows some links.
LASTS = 3_600


class ReplayAsked(msgspec.Struct, frozen=True):
    """The document that one address shows."""

    crawl: str
    """The key of the crawl."""
    url: str
    """Canonical, or as a person wrote it."""
    at: str
    """Digits of a time: the version that is meant; empty for the last."""
    until: int
    """Seconds since 1970 (UTC) after which the address shows nothing."""
    depth: int = 0
    """Pages and sheets that asked for it, one for the other; 0 where a person did."""


class ReplayAddresses:
    """Makes and reads addresses by one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, asked: ReplayAsked) -> str:
        """The address: a path with its query."""
        return f"{REPLAY}?{urlencode({**msgspec.to_builtins(asked), 'sign': self._sign(asked)})}"

    def read(self, query: bytes, now: float) -> ReplayAsked | None:
        """The document that an address shows at this time (seconds since 1970, UTC); None where we did not make it, or its time
        is over."""
        given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        sign = given.pop("sign", "")
        try:
            asked = msgspec.convert(given, ReplayAsked, strict=False)
        except msgspec.ValidationError:
            return None
        if not hmac.compare_digest(self._sign(asked).encode(), sign.encode("utf-8", "replace")) or now > asked.until:
            return None
        return asked

    def _sign(self, asked: ReplayAsked) -> str:
        return hmac.new(self._secret, msgspec.msgpack.encode(asked), hashlib.sha256).hexdigest()


#: Bytes of a page or style sheet that are replayed at most: the tree of a page takes a hundred times as much.
MOST_PARSED = 4 << 20

#: Bytes of a picture or a text.
MOST_SHOWN = 16 << 20

#: Written in the place of a link that leads nowhere.
NOWHERE = "about:invalid"

STYLE = "text/css"

# A media type that a server claims becomes a header field of ours.
_IMAGE = re.compile(r"image/[a-z0-9.+-]{1,50}")

#: Relations of links that a person follows, and of pictures, as rewriting names them. Nothing else is fetched by a replayed page.
_LINKS = frozenset(["a href", "area href"])
_PICTURES = frozenset(
    [CSS_URL, "img src", "input src", "video poster", "body background", "image href", "image xlink:href"]
)
_SHEETS = frozenset(["link href", CSS_IMPORT])

#: Sheets and pictures that a page, a sheet, and a sheet of a sheet may ask for: a page would keep two processes busy for an hour.
#: Few pages have a third as many.
_MOST_ASKED = ((30, 300), (5, 30), (0, 30))

#: Attributes by which a page would reach out without a script, or show what is no part of its tree.
_DROPPED = frozenset(
    ["action", "attributename", "download", "formaction", "http-equiv", "manifest", "ping", "shadowrootmode", "srcdoc"]
)

#: Beginnings of links that rewriting leaves alone, since a mirror may keep them.
_UNTOUCHED = ("data:", "javascript:", "mailto:", "tel:")


class ReplayQuestion(msgspec.Struct, frozen=True):
    directory: str
    """Of the crawl."""
    asked: ReplayAsked
    secret: bytes
    """By which addresses are signed."""


class Replayed(msgspec.Struct, frozen=True):
    media_type: str
    """As it is sent; empty where `target` says where to go on."""
    body: bytes
    target: str = ""
    """The address that an archived redirect leads to."""


class NeedsParsing(Exception):
    """It is a page or a style sheet, which another process has to make ready."""


def replayed(
    directory: Path, asked: ReplayAsked, addresses: ReplayAddresses, *, may_parse: bool, is_picture: bool = False
) -> Replayed:
    """The answer to an address.

    Args:
        addresses: makes the addresses that stand in it.
        may_parse: this is a process that may be killed.
        is_picture: it is asked for as a picture, in which SVG does nothing; a picture in XML is shown as text otherwise.

    Raises:
        NeedsParsing: it has to be parsed, and may not be here.
        UsageError: it is not in the archive, or cannot be shown.
        CrawlDirectoryError: the archive is damaged.
    """
    url, document = _found(directory, asked)
    source = document.source
    at = "".join(letter for letter in document.record.fields.get("warc-date", "")[:19] if letter.isdigit())

    def address(target: str, depth: int) -> str:
        return addresses.of(ReplayAsked(asked.crawl, target, at, asked.until, depth))

    location = source.header("location")
    if 300 <= source.status < 400 and location:
        target = LinkTargets(read_wiring(directory)).target(location, "redirect", url=url, base=url, charset="")
        if not target:
            raise UsageError(f"{url} led to {location[:500]}, which no crawl can follow")
        return Replayed("", b"", address(target, asked.depth))
    content, is_whole, trouble = content_of(source, MOST_SHOWN)
    if trouble:
        raise UsageError(f"{url} cannot be read: {trouble}")
    claim = mime.of_fields(source.headers)
    kind = mime.sniff_media_type(content, claim, nosniff=source.header("x-content-type-options").lower() == "nosniff")
    if kind in HTML_TYPES or kind == STYLE:
        if not may_parse:
            raise NeedsParsing
        if not is_whole or len(content) > MOST_PARSED:
            raise UsageError(f"{url} is too large to be replayed; `gossamer cat` writes it")
        response = Response(Outcome.OK, status=200, headers=source.headers, body=content)
        page = Document(Visit(task=Task(url, ""), response=response, mime=kind))
        return _ready(directory, page, asked.depth, address)
    if _IMAGE.fullmatch(kind) and (is_picture or not kind.endswith("xml")):
        return Replayed(kind, content)
    if b"\0" in content:
        raise UsageError(
            f"{url} is {kind or 'of no known type'}, which a replay does not show; `gossamer cat` writes it"
        )
    return Replayed("text/plain; charset=utf-8", charset.to_utf8(content, charset.sniff(content, claim)))


def _found(directory: Path, asked: ReplayAsked) -> tuple[str, ArchivedDocument]:
    """The version that was fetched nearest to the time that is meant: a page's pictures are fetched some time after it."""
    url, reader, at = url_asked(asked.url), reader_of(directory), asked.at
    check_moment(at)
    if len(at) == 14 and (captures := reader.captures(url)):
        try:
            meant = _instant(at)
        except ValueError:
            raise UsageError(f"{at} is not a time") from None
        at = min((one.timestamp for one in captures), key=lambda time: abs(_instant(time) - meant))
    return url, reader.document(url, at)


def _instant(digits: str) -> datetime:
    return datetime.strptime(f"{digits}+0000", "%Y%m%d%H%M%S%z")


def _ready(directory: Path, document: Document, depth: int, address: Callable[[str, int], str]) -> Replayed:
    links = _Links(LinkTargets(read_wiring(directory)), document, depth, address)
    if document.mime == STYLE:
        text = document.markup.decode()
        return Replayed("text/css; charset=utf-8", changed_css(text, links.change).encode("utf-8", "replace"))
    try:
        tree = document.tree
    except ParseSkipped as error:
        raise UsageError(f"it cannot be replayed: {error}") from None
    disarm(tree)
    return Replayed("text/html; charset=utf-8", changed_html(tree, links.change))


class _Links:
    """How the links of one document are written."""

    def __init__(
        self, targets: LinkTargets, document: Document, depth: int, address: Callable[[str, int], str]
    ) -> None:
        self._targets, self._address, self._depth = targets, address, depth
        self._url = document.url
        is_style = document.mime == STYLE
        self._base, self._charset = (document.url, "") if is_style else (document.base, document.charset)
        self._sheets, self._pictures = _MOST_ASKED[min(depth, len(_MOST_ASKED) - 1)]

    def change(self, href: str, relation: str) -> str:
        if relation in _SHEETS:
            self._sheets -= 1
            may = self._sheets >= 0
        elif relation in _PICTURES:
            self._pictures -= 1
            may = self._pictures >= 0
        else:
            may = relation in _LINKS
        target = may and self._targets.target(href, relation, url=self._url, base=self._base, charset=self._charset)
        if not target:
            return NOWHERE
        _, mark, fragment = href.partition("#")
        return f"{self._address(target, 0 if relation in _LINKS else self._depth + 1)}{mark}{fragment}"


def disarm(tree: Any) -> None:
    """Take out of a parsed page (`LexborHTMLParser`) what would reach out without being fetched by it: look-ups ahead,
    refreshes, and odd links. Nothing but attributes goes, so that the page keeps its form."""
    for node in tree.root.traverse():
        attributes = node.attributes
        for name, value in attributes.items():
            if name in _DROPPED or _leads_out(node.tag, name, (value or "").strip(), attributes):
                del node.attrs[name]


def _leads_out(tag: str, name: str, value: str, attributes: dict[str, str | None]) -> bool:
    if name == "target":
        return True  # a new window is forbidden, and a link is to work
    if name == "content":
        return tag == "meta" and "http-equiv" in attributes
    if name not in ("href", "xlink:href"):
        return False
    if tag == "link":
        return "stylesheet" not in (attributes.get("rel") or "").lower().split()
    if tag in ("a", "area") and name == "href":
        return value.lower().startswith(_UNTOUCHED)
    return tag not in ("base", "image", "use") and not value.startswith("#")


def answer_replay(question: ReplayQuestion, caller: Caller) -> Replayed:
    """The page of a question, parsed. Raises as :func:`replayed`."""
    return replayed(Path(question.directory), question.asked, ReplayAddresses(question.secret), may_parse=True)
