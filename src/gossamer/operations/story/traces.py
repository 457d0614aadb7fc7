"""What log and link table tell of one URL: its visits, the links that lead to it, where its redirects lead.

Place in the flow: telling a story asks here. The link table is asked as `gossamer query` does; a crawl that keeps none has no links
to tell of.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.errors import CrawlDirectoryError, UnreadableUrl
from gossamer.model.requisites import REDIRECTS
from gossamer.model.url import canonical, of_field
from gossamer.model.visit import CUTS_OF_PAGES, Location
from gossamer.operations.story.values import LeadingLink
from gossamer.query.database import Database
from gossamer.stores.rowlog import LOG_PATH
from gossamer.stores.warc_reading import read_record

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
    """What the tables of a crawl tell of links; a context manager."""

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
        """Where a URL leads that was answered with a redirect: each target in turn, up to one that came before.

        Args:
            url: canonical.
            record: where the archive keeps the answer: a redirect to its own URL is in no link table.
        """
        chain = [url]
        while len(chain) <= MOST_HOPS and chain[-1] not in chain[:-1]:
            found = self._target(chain[-1])
            if not found and len(chain) == 1 and record is not None:
                found = _location_of(self._directory, record, url)
            if not found:
                break
            chain.append(found)
        return chain[1:]

    def _target(self, url: str) -> str:
        return next((str(target) for (target,) in self._database.ask(_REDIRECTED, (url, sorted(REDIRECTS)))), "")


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
