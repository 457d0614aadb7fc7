"""Traces of one URL in log and link table: its visits, the links that lead to it, the targets of its redirects.

Place in the flow: telling a story asks here. The link table is asked as `gossamer query` does; a crawl that keeps none has no links
to tell of.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gossamer.query.database import Database
from gossamer.storage.archive.reading import read_record
from gossamer.storage.logs import LOG_PATH
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl
from gossamer.values.relations import REDIRECTS
from gossamer.values.url import canonical, of_field
from gossamer.values.visit import CUTS_OF_PAGES, Location

# What a story is made of: the values that `gossamer why --json` prints.

#: The parts of a URL as written, whatever they hold (RFC 3986, appendix B).
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_NAMES = ("scheme", "authority", "path", "query", "fragment")


class Normalised(msgspec.Struct, frozen=True):
    """A part of the URL that its canonical form writes otherwise."""

    part: str
    given: str
    canonical: str


class Judged(msgspec.Struct, frozen=True):
    """The verdict of one filter."""

    gate: str
    """`follow`: of the link; `fetch`: of the task, before it is asked for."""
    filter: str
    verdict: str
    """Empty where it lets the URL pass; otherwise the rule that refuses it."""


class RobotsWord(msgspec.Struct, frozen=True):
    """The word of robots.txt."""

    ruling: str
    """`allowed`, `denied`, `wait`, or `unknown` where the file has not been read."""
    rule: str = ""
    line: int = 0
    delay: float = 0.0


class LeadingLink(msgspec.Struct, frozen=True):
    """A link that leads to the URL."""

    page: str
    relation: str
    nofollow: bool
    verdict: str = ""
    """Why it is not followed, as `nofollow: nofollow` (filter and rule); empty where the filters let it pass."""


class Story(msgspec.Struct, frozen=True):
    """The story of one URL."""

    asked: str
    url: str
    """Its canonical form: the one that a crawl goes by."""
    state: str
    """`unknown`, `refused`, `set_aside`, `queued`, `later`, `in_flight`, `done`, `deleted`, `owed` where it is another agent's, or
    `done_and_queued` where it is to be fetched again."""
    told: str
    """The state, in words."""
    normalised: list[Normalised]
    discovered_from: str = ""
    found_by: str = ""
    """The agent that found it and brought it by a file, where it is another one than that of this crawl."""
    relation: str = ""
    depth: int | None = None
    attempt: int = 0
    filters: list[Judged] = []
    robots: RobotsWord | None = None
    blocked_by: str = ""
    visits: list[dict[str, Any]] = []
    """Its lines in the crawl's log, the oldest first."""
    outcome: str = ""
    """Of the last visit."""
    record: dict[str, Any] | None = None
    """The place of the last answer in the archive: file, offset, length."""
    duplicate_of: str = ""
    """The first URL of the same document, byte for byte."""
    near_duplicate_of: str = ""
    """The first URL of nearly the same text."""
    redirects: list[str] = []
    """The targets of a redirect, each further redirect included; a loop ends with a URL that it had before."""
    links: list[LeadingLink] = []
    """Links that lead to it, at most some."""
    host: dict[str, Any] | None = None
    """Facts about its host."""


def normalised(given: str, url: str) -> list[Normalised]:
    """The parts that a canonical URL writes otherwise than it was given."""
    before, after = _PARTS.fullmatch(given), _PARTS.fullmatch(url)
    assert before is not None and after is not None  # the pattern fits every text
    pairs = zip(_NAMES, before.groups(default=""), after.groups(default=""), strict=True)
    return [Normalised(part, old, new) for part, old, new in pairs if old != new]


#: Visits of one URL that are told; a crawl that comes again and again has more.
MOST_VISITS = 100

#: Links to one URL that are told: a page of every menu has a million.
MOST_LINKS = 20

#: Redirects that are followed; a crawl gives up before.
MOST_HOPS = 25


def visits_of(directory: Path, url: str) -> Iterator[dict[str, Any]]:
    """The lines of the crawl's log that tell of visits of a canonical URL, in order.

    The log is searched from end to end, some seconds for each 10 GB; what is being written meanwhile may be missed.
    """
    path = directory / LOG_PATH
    if not path.is_file() or not path.stat().st_size:
        return
    wanted = b'"url":' + msgspec.json.encode(url)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        at = log.find(wanted)
        while at >= 0:
            start, end = log.rfind(b"\n", 0, at) + 1, log.find(b"\n", at)
            if end < 0:
                return
            try:
                row = msgspec.json.decode(log[start:end])
            except msgspec.DecodeError:
                row = {}
            if row.get("url") == url and row.get("event") in ("page", "robots"):
                yield row
            at = log.find(wanted, end)


_LEADING = "SELECT DISTINCT source, relation, nofollow FROM links WHERE target = ? ORDER BY source, relation LIMIT ?"
_CUT = "SELECT url FROM pages WHERE list_has_any(json_keys(rejected), ?) LIMIT 1"
_REDIRECTED = "SELECT target FROM links WHERE source = ? AND list_contains(?, relation) LIMIT 1"


class Tables:
    """Questions about links to the tables of a crawl; a context manager."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._database = Database(directory)

    def __enter__(self) -> "Tables":
        return self

    def __exit__(self, *_: object) -> None:
        self._database.__exit__()

    def links_to(self, url: str) -> list[LeadingLink]:
        """Links to a canonical URL, at most :data:`MOST_LINKS`, in the order of their pages."""
        found = self._database.ask(_LEADING, (url, MOST_LINKS))
        return [LeadingLink(page, relation, bool(nofollow)) for page, relation, nofollow in found]

    def cut_page(self) -> str:
        """A page of which a limit left links out; empty where there is none."""
        return next((str(url) for (url,) in self._database.ask(_CUT, (list(CUTS_OF_PAGES),))), "")

    def redirects_from(self, url: str, record: Location | None) -> list[str]:
        """The targets of a URL that was answered with a redirect: each in turn, up to one that came before.

        Args:
            url: canonical.
            record: where the archive keeps the answer: a redirect to its own URL is in no link table.
        """
        chain = [url]
        while len(chain) <= MOST_HOPS and chain[-1] not in chain[:-1]:
            targets = self._database.ask(_REDIRECTED, (chain[-1], sorted(REDIRECTS)))
            found = next((str(target) for (target,) in targets), "")
            if not found and len(chain) == 1 and record is not None:
                found = _location_of(self._directory, record, url)
            if not found:
                break
            chain.append(found)
        return chain[1:]


def _location_of(directory: Path, record: Location, url: str) -> str:
    """The URL that the Location field of an archived answer names; empty where it names none."""
    try:
        head = read_record(directory, record).head
    except (OSError, CrawlDirectoryError):
        return ""  # it is told by those who look after the archive
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"location":
            try:
                return canonical(of_field(value.strip().decode("latin-1")), url)
            except UnreadableUrl:
                return ""
    return ""
