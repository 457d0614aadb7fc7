"""A runtime's sources, opened as the owner's sheet says, one of which is a stored crawl (docs/runtime.md).

Place in the flow: `gossamer runtime` opens a :class:`Runtime` and gives each crawler the pages of :meth:`Runtime.pages`.
:mod:`gossamer.mobile.sources.owner` asks here for hosts that are not served from files. Stored records are WARC and ARC files of
any origin, and archives of our crawls: a site is met as it was recorded, with its redirects and errors, and a URL that was not
recorded is answered with 404. A local server is asked through the protocol module of a crawl, with its deadlines and caps, at the
one address that the owner named, whatever the URL says.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from gossamer.documents.content_coding import undone
from gossamer.engine.errors import refusing
from gossamer.engine.unit import Clock, SystemClock
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.robots.contract import RobotsRuling
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import PageSource, Withheld
from gossamer.mobile.crawler import BringRules, MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.running import run_crawler
from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.owner import REASONS, GatedPages, OwnerSheet, RobotsNote, ServedHost, ServedSite
from gossamer.query.archive import ArchiveReader
from gossamer.storage.archive.others import ReplayError, ReplayIndex, stored
from gossamer.storage.archive.warc import WARC_DIRECTORY
from gossamer.storage.tables.places import crawl_directory
from gossamer.values.addresses import place_of
from gossamer.values.body import MAX_READ, beginning
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.outcome import DOCUMENTS, Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.url import canonical, endpoint_of, host_of, path_of, site_of
from gossamer.values.visit import Response

#: Endings of the files of a folder that are served as an archive.
_RECORDED = (".warc", ".warc.gz", ".arc", ".arc.gz")


class Runtime:
    """Sources of one owner's sheet, open. Use it as a context manager."""

    def __init__(
        self, sheet: OwnerSheet, clock: Clock | None = None, rest: Callable[[float], None] = time.sleep
    ) -> None:
        """Open what the sheet names; `rest` waits so many seconds between two requests to a local server. Raises UsageError:
        something cannot be served."""
        self._sheet = sheet
        self._clock = clock or SystemClock()
        self._rest = rest
        self._robots = ObeyRobots()
        self._robots_turn = threading.Lock()
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
        """The pages of these hosts, or of all, for one crawler, with nothing used up; crawlers in other threads may ask at the
        same time. `rest` waits so many seconds for this crawler."""
        known = None if hosts is None else frozenset(hosts)

        def sites(host: str) -> ServedSite | None:
            return self._site(host) if known is None or host in known else None

        limits, rest = self._sheet.limits, rest or self._rest
        return GatedPages(sites, self._robots, self._clock, self._refusals, limits, rest, self._robots_turn)

    def serves(self, url: str, hosts: Collection[str] | None = None) -> bool:
        host = site_of(url).partition("://")[2]
        return self._site(host) is not None and (hosts is None or host in hosts)

    def _site(self, host: str) -> ServedSite | None:
        # An archive has no host of its own: it stands for all that are not served in another way.
        return self._sites.get(host) or self._sites.get("")

    def close(self) -> None:
        for site in self._sites.values():
            site.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _stored(place: Path, limit: int) -> PageSource:
    if (place / WARC_DIRECTORY).is_dir():
        return CrawlSource(ArchiveReader(crawl_directory(str(place))), limit=limit)
    if place.is_file():
        return WarcSource([place], limit=limit)
    with refusing(UsageError, f"{place} cannot be served", "; bring it back, or give another place"):
        files = sorted(one for one in place.iterdir() if one.name.endswith(_RECORDED) and one.is_file())
    if not files:
        raise UsageError(
            f"{place} holds neither a crawl nor WARC files; name a crawl's directory, a WARC file or a folder of them"
        )
    return WarcSource(files, limit=limit)


_LOCALHOST: Final = "127.0.0.1"


class ServerSource:
    """A local server, as :class:`~gossamer.mobile.contract.PageSource`. Not for use inside a running event loop."""

    def __init__(self, origin: str, host: str, *, limit: int, scheme: str = "") -> None:
        """Open nothing yet. The origin is that of the server, on this machine, as `http://127.0.0.1:8080`; `host` is the site,
        with the port where its URLs have one: the server is asked for it by this name. A document of more than `limit` bytes is
        cut. The scheme is that of the site's URLs, where it is known; the server is told of `https`."""
        address, port = endpoint_of(f"{origin}/")
        place = place_of(_LOCALHOST if address == "localhost" else address, port)
        self._host = host
        told = ("X-Forwarded-Proto: https",) if scheme == "https" else ()
        self._resolver = SystemResolver(
            ResolverSheet(
                resolve=(f"*={place}",),
                seed_hosts=(endpoint_of(f"http://{host}/")[0],),
                allow_ports=(port, endpoint_of(f"http://{host}/")[1]),
            )
        )
        self._http = HttpModule(HttpSheet(max_body=limit, header=told))
        self._http.resolver = self._resolver
        self._runner: asyncio.Runner | None = None

    def answer(self, url: str) -> Response | Withheld:
        if site_of(url).partition("://")[2] != self._host:
            return Withheld("not_served")
        plain = f"http://{self._host}{path_of(url).partition('#')[0]}"
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._runner.run(self._http.start())
        response = self._runner.run(self._http.fetch(Task(plain, host_of(plain))))
        # A server that names no media type leaves it to the bytes.
        if response.content_type or response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
            return response
        kind = ("content-type", "application/octet-stream")
        return msgspec.structs.replace(response, headers=(*response.headers, kind))

    def close(self) -> None:
        if self._runner is not None:
            with contextlib.closing(self._runner) as runner:
                runner.run(self._http.stop())
                runner.run(self._resolver.stop())
            self._runner = None


class CrawlSource:
    """The archive of one crawl: the version that stands last. Contract: :class:`~gossamer.mobile.contract.PageSource`."""

    def __init__(self, archive: ArchiveReader, *, limit: int) -> None:
        """Open nothing. A document longer than `limit` bytes is cut."""
        self._archive = archive
        self._limit = limit

    def answer(self, url: str) -> Response | Withheld:
        """The answer; 404 for what is not archived, `protocol_failed` where the archive is damaged."""
        try:
            document = self._archive.document(url.partition("#")[0])
        except UsageError as error:
            return Response(Outcome.CLIENT_ERROR, 404, error=str(error))
        except CrawlDirectoryError as error:
            return Response(Outcome.PROTOCOL_FAILED, error=str(error))
        source = document.source
        cut = source.fields.get("warc-truncated", "")
        # A `resource` record has no status: it is a document that came by another protocol.
        status = source.status if source.is_http else 200
        head, outcome = document.record.head, of_status(status)
        answer = Response(outcome, status, response_head=head, headers=source.headers, body=source.body, cut=cut)
        return _document(answer, self._limit)

    def close(self) -> None:
        """Nothing is held between two answers."""


class WarcSource:
    """Records of WARC or ARC files. Contract: :class:`~gossamer.mobile.contract.PageSource`.
    Raises UsageError: a file cannot be read."""

    def __init__(self, files: Sequence[Path], *, limit: int, cache: Path | None = None) -> None:
        self._limit = limit
        try:
            self._index = ReplayIndex(files, cache)
            self._index.__enter__()
        except (ReplayError, OSError) as error:
            raise UsageError(str(error)) from None

    def answer(self, url: str) -> Response | Withheld:
        plain = url.partition("#")[0]
        if self._index.place(plain) is None:
            return Response(Outcome.CLIENT_ERROR, 404, error="it was not recorded")
        found = stored(self._index, plain, self._limit + 1)
        if found is None:
            return Withheld("damaged", "the record, or the one that it refers to, cannot be read")
        status = int(found.status[:3])
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in found.fields)
        if not any(name == "content-type" for name, _ in headers):
            headers = (*headers, ("content-type", "application/octet-stream"))
        body, cut = found.body[: self._limit], "length" if len(found.body) > self._limit else ""
        answer = Response(of_status(status), status, headers=headers, body=body, cut=cut)
        return _document(answer, self._limit, self._limit)

    def close(self) -> None:
        self._index.__exit__()


def _document(stored: Response, limit: int, most: int = MAX_READ) -> Response:
    """A stored answer as it is given: without content coding, of which `most` bytes come, and cut where it is too long."""
    found = undone(stored.headers, stored.body, most, whole=not stored.cut)
    decoded = found.data if found.is_readable and found.data is not stored.body else None
    outcome = Outcome.TRUNCATED if stored.cut and stored.outcome is Outcome.OK else stored.outcome
    answer = msgspec.structs.replace(stored, outcome=outcome, decoded=decoded)
    if outcome not in DOCUMENTS or len(answer.document) <= limit:
        return answer
    whole, headers = answer.document, answer.headers
    if decoded is not None:  # its content coding is undone for good
        headers = tuple((name, value) for name, value in headers if name != "content-encoding")
    return msgspec.structs.replace(
        answer,
        outcome=Outcome.TRUNCATED,
        body=beginning(whole, limit)[:limit],
        decoded=None,
        cut="length",
        headers=headers,
    )


# The pages that a mobile crawler without any wishes would reach: home pages, sitemaps, and all that they link to. `gossamer runtime
# check` shows it to an owner before a crawler comes. The crawler here is one like any other, with the same runner and the same
# gate, so the answer is not a guess. Nothing is listed.

#: First URLs of each kind that are told.
_EXAMPLES = 5


class RefusedKind(msgspec.Struct, frozen=True):
    """All that was refused for one reason."""

    count: int
    reason: str
    """In plain words."""
    examples: list[dict[str, str]]
    """`url` of each, and the obstacle as `told`; empty where the reason says it all."""


class Reach(msgspec.Struct, frozen=True):
    seeds: list[str]
    robots: dict[str, RobotsNote]
    """By site."""
    reachable: int
    """Documents that a crawler would get."""
    pages: int
    """Those of them that are HTML."""
    bytes: int
    examples: list[str]
    """First URLs with a document."""
    outcomes: dict[str, int]
    """URLs by how they were answered."""
    refused: dict[str, RefusedKind]
    """By name."""
    left: int
    """URLs that a limit left unasked."""
    limit: str
    """The name of that limit; empty where there was none."""


def reach(runtime: Runtime, seeds: tuple[str, ...] = (), urls: int = 100_000) -> Reach:
    """Walk all that can be reached from the home pages, the sitemaps that robots.txt names, and the seeds of a sender; at most
    so many URLs. Raises UsageError: a seed cannot be read, or there is none."""
    gate = runtime.pages()
    homes = [host.home for host in runtime.hosts if host.host]
    try:
        given = list(map(canonical, seeds))
    except UnreadableUrl as error:
        raise UsageError(f"--seed: {error}") from None
    if not homes and not given:
        raise UsageError("an archive has no home page; say where crawlers would start, with --seed URL")
    starts = list(dict.fromkeys((*homes, *given)))
    listed = [
        url for site in dict.fromkeys(map(site_of, starts)) for url in _sitemaps(gate, site) if runtime.serves(url)
    ]
    starts = list(dict.fromkeys((*starts, *listed)))
    limits = TravelLimits(pages=urls, urls=urls, external=0)
    crawler = MobileCrawler(MobileProgram(seeds=tuple(starts), limits=limits, bring=BringRules(parts=())))
    examples: list[str] = []

    def watched(task: Task) -> Response:
        response = gate(task)
        if response.outcome in DOCUMENTS and len(examples) < _EXAMPLES:
            examples.append(task.url)
        return response

    *_, last = run_crawler(crawler, watched)
    assert last.summary is not None
    summary = last.summary
    refused = {
        name: RefusedKind(
            tally.count, REASONS.get(name, name), [{"url": url, "told": told} for url, told in tally.examples]
        )
        for name, tally in sorted(gate.refused.items(), key=lambda item: -item[1].count)
    }
    skipped = summary.rejected.get("limit:urls", 0)
    return Reach(
        seeds=starts,
        robots=dict(gate.robots),
        reachable=sum(number for name, number in summary.outcomes.items() if name in DOCUMENTS),
        pages=summary.pages,
        bytes=summary.bytes,
        examples=examples,
        outcomes=dict(sorted(summary.outcomes.items(), key=lambda item: -item[1])),
        refused=refused,
        left=summary.queued + skipped,
        limit=summary.limit or ("urls" if skipped else ""),
    )


def _sitemaps(gate: GatedPages, site: str) -> list[str]:
    """The sitemaps that a site's robots.txt names, as far as they are URLs."""
    if gate.verdict(f"{site}/").ruling is RobotsRuling.WAIT or site not in gate.robots:
        return []
    found: list[str] = []
    for text in gate.robots[site].sitemaps:
        try:
            found.append(canonical(text, f"{site}/"))
        except UnreadableUrl:
            continue
    return found
