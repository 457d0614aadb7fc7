"""A runtime's sources, opened as the owner's sheet says, one of which is a stored crawl (docs/runtime.md).

Place in the flow: `gossamer runtime` opens a :class:`Runtime` and gives each crawler the pages of :meth:`Runtime.pages`. In a
stored crawl a crawler meets the site as it was crawled, redirects and errors too, as far as they were archived, and without a
request.
"""

import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from gossamer.documents.content_coding import undone
from gossamer.engine.clock import Clock, SystemClock
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import PageSource
from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.gate import GatedPages, ServedSite, SharedRobots
from gossamer.mobile.sources.owner import OwnerSheet, ServedHost
from gossamer.mobile.sources.stored import CrawlSource, ServerSource, WarcSource
from gossamer.query.archive import ArchiveReader
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.url import site_of
from gossamer.values.visit import Response

# A stored crawl as a source.

#: What a URL is answered with that is not in the archive: the crawl may have had no reason to fetch it.
_MISSING = 404


class ArchiveSource:
    """Answers for URLs out of the archive of one crawl: the version that stands last.

    Contract: :class:`~gossamer.mobile.running.Fetch`.

    Raises:
        UsageError: the crawl has no archive.
    """

    def __init__(self, directory: Path) -> None:
        if not (directory / WARC_DIRECTORY).is_dir():
            raise UsageError(f"{directory} has no archive; name the directory of a crawl that ran without --no-warc")
        self._reader = ArchiveReader(directory)

    def __call__(self, task: Task) -> Response:
        """The answer for `task.url`; 404 for what is not archived, `protocol_failed` where the archive is damaged."""
        try:
            document = self._reader.document(task.url)
        except UsageError as error:
            return Response(Outcome.CLIENT_ERROR, _MISSING, error=str(error))
        except CrawlDirectoryError as error:
            return Response(Outcome.PROTOCOL_FAILED, error=str(error))
        record, source = document.record, document.source
        cut = source.fields.get("warc-truncated", "")
        # A `resource` record has no status: it is a document that came by another protocol.
        status = source.status if source.is_http else 200
        outcome = of_status(status)
        found = undone(source.headers, source.body, whole=not cut)
        return Response(
            Outcome.TRUNCATED if cut and outcome is Outcome.OK else outcome,
            status,
            response_head=record.head,
            headers=source.headers,
            body=source.body,
            decoded=found.data if found.is_readable and found.data is not source.body else None,
            cut=cut,
        )


#: Endings of the files of a folder that are served as an archive.
_RECORDED = (".warc", ".warc.gz", ".arc", ".arc.gz")


class Runtime:
    """Sources of one owner's sheet, open. Use it as a context manager."""

    def __init__(
        self, sheet: OwnerSheet, clock: Clock | None = None, rest: Callable[[float], None] = time.sleep
    ) -> None:
        """Open what the sheet names.

        Args:
            sheet: checked.
            clock: for robots.txt, limits and the rate.
            rest: waits this many seconds between two requests to a local server.

        Raises:
            UsageError: something cannot be served.
        """
        self._sheet = sheet
        self._clock = clock or SystemClock()
        self._rest = rest
        self._robots = SharedRobots(ObeyRobots())
        self.hosts = sheet.hosts()
        self._refusals = sheet.refusals()
        self._sites: dict[str, ServedSite] = {}
        try:
            for host in self.hosts:
                self._sites[host.host] = self._opened(host)
        except UsageError:
            self.close()
            raise

    def _opened(self, host: ServedHost) -> ServedSite:
        limit = self._sheet.limits.max_page_size
        if host.kind == "server":
            return ServedSite(
                ServerSource(host.place, host.host, limit=limit, scheme=host.scheme),
                host.scheme,
                self._sheet.delay,
                turn=threading.Lock(),
            )
        if host.kind == "files":
            ignores = host.host in self._sheet.ignore_htaccess
            return ServedSite(FileSource(Path(host.place), limit=limit, ignores_htaccess=ignores), host.scheme)
        return ServedSite(_stored(Path(host.place), limit), turn=threading.Lock())

    def pages(self, hosts: Collection[str] | None = None, rest: Callable[[float], None] | None = None) -> GatedPages:
        """The pages for one crawler, with nothing used up; crawlers in other threads may ask at the same time.

        Args:
            hosts: the only ones that it may visit; None for all that are served.
            rest: waits this many seconds for this crawler.
        """
        sites = self._site if hosts is None else partial(self._site_among, frozenset(hosts))
        return GatedPages(sites, self._robots, self._clock, self._refusals, self._sheet.limits, rest or self._rest)

    def serves(self, url: str, hosts: Collection[str] | None = None) -> bool:
        """Whether the host of a canonical URL is served, and is one of these where they are given."""
        host = site_of(url).partition("://")[2]
        return self._site(host) is not None and (hosts is None or host in hosts)

    def _site_among(self, hosts: frozenset[str], host: str) -> ServedSite | None:
        return self._site(host) if host in hosts else None

    def _site(self, host: str) -> ServedSite | None:
        # An archive has no host of its own: it stands for all that are not served in another way.
        return self._sites.get(host) or self._sites.get("")

    def close(self) -> None:
        for site in self._sites.values():
            site.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _stored(place: Path, limit: int) -> PageSource:
    """A crawl, a WARC file, or a folder of them."""
    if (place / WARC_DIRECTORY).is_dir():
        return CrawlSource(ArchiveSource(crawl_directory(str(place))), limit=limit)
    if place.is_file():
        return WarcSource([place], limit=limit)
    try:
        files = sorted(one for one in place.iterdir() if one.name.endswith(_RECORDED) and one.is_file())
    except OSError as error:
        raise UsageError(f"{place}: cannot be served: {error.strerror or error}") from None
    if not files:
        raise UsageError(
            f"{place} holds neither a crawl nor WARC files; name a crawl's directory, a WARC file or a folder of them"
        )
    return WarcSource(files, limit=limit)
