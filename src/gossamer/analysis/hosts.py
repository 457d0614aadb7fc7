"""One host of a crawl as a person looks at it: what the crawl knows of it, and its robots.txt with all versions of it.

Place in the flow: the dashboard shows it. A running crawl is asked over its control socket; of one at rest the ledger is read.
"""

import contextlib
from datetime import datetime
from pathlib import Path

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.client import Control, NotRunning, check_is_crawl
from gossamer.crawls.control.host_facts import NAMED, FailedUrl, HostKnown, host_known
from gossamer.crawls.control.messages import ReadHost
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.engine.planning import plan
from gossamer.query.archive import ArchiveReader
from gossamer.query.archived import view_archived
from gossamer.storage.logs import LOG_PATH
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl, UsageError
from gossamer.values.outcome import ERRORS
from gossamer.values.url import canonical, host_of

#: Seconds for an answer: a person waits for it.
PATIENCE = 5.0

#: Sites of a host whose robots.txt is looked for, versions that are listed of each, and characters that are shown of the last one.
SITES, VERSIONS, SHOWN = 4, 50, 50_000


#: Bytes at the end of the crawl's log in which visits are looked for that failed and are tried again.
TAIL = 4 << 20


class RobotsVersion(msgspec.Struct, frozen=True):
    """One answer to a request for a robots.txt."""

    at: str
    """Digits of the time, as `20260301120000` (UTC)."""
    status: str
    is_changed: bool
    """It has other bytes than the version before."""


class SiteRobots(msgspec.Struct, frozen=True):
    """The robots.txt of a site, out of the archive."""

    url: str
    versions: list[RobotsVersion]
    """The newest first; fifty at most."""
    text: str
    """Body of the last good answer; empty where there is none, or the archive cannot be read."""


class HostPicture(msgspec.Struct, frozen=True):
    """A host."""

    known: HostKnown
    robots: list[SiteRobots]
    errors: list[FailedUrl]
    """Visits that failed, the newest first: the last visits of URLs, and all among the last lines of the log."""


class _Logged(msgspec.Struct, frozen=True):
    """The fields that are read of a line of the log."""

    url: str
    host: str
    outcome: str
    fetched_at: str
    status: int = 0
    error: str = ""


def picture_of(directory: Path, name: str) -> HostPicture:
    """The knowledge of a crawl, which may be at work, of a host. Raises UsageError: it is not the name of a host, or there is
    no crawl. Raises CrawlDirectoryError: the ledger is missing or damaged, or a running crawl does not answer."""
    try:
        host = host_of(canonical(f"http://{name.strip()}/"))
    except UnreadableUrl:
        host = ""
    if not host or any(letter in name for letter in "/@?#"):
        raise UsageError(f"{name!r} is not the name of a host")
    check_is_crawl(directory)
    known = _known(directory, host)
    sites = known.sites[:SITES] or [f"https://{host}", f"http://{host}"]
    robots = [one for site in sites if (one := _robots(directory, f"{site}/robots.txt")).versions]
    # Both tell of the same visit with other digits of its time.
    errors = {(one.url, round(one.fetched_at, 3)): one for one in (*known.failed, *_logged(directory, host))}
    return HostPicture(known, robots, sorted(errors.values(), key=lambda one: -one.fetched_at)[:NAMED])


def _known(directory: Path, host: str) -> HostKnown:
    try:
        with Control(directory, PATIENCE, changing=0.0) as control:
            return control.told(ReadHost(host), HostKnown)
    except NotRunning:
        from gossamer.crawls.control.standing import ledgers_of

        graph = plan(completed(read_wiring(directory)), catalog())
        found = []
        for ledger in ledgers_of(directory):
            with ledger.looking():
                found.append(host_known(ledger, graph, host))
        return max(found, key=lambda one: (one.state.first_seen > 0, one.queued))


def _logged(directory: Path, host: str) -> list[FailedUrl]:
    """The failed visits of a host that the end of the log tells of."""
    path = directory / LOG_PATH
    if not path.is_file():
        return []
    with path.open("rb") as log:
        log.seek(max(0, log.seek(0, 2) - TAIL))
        lines = log.read(TAIL).splitlines()
    named = b'"host":' + msgspec.json.encode(host)
    found = []
    for line in lines:
        if named in line:
            with contextlib.suppress(msgspec.MsgspecError, ValueError):  # the first line is torn, and the last may be
                row = msgspec.json.decode(line, type=_Logged)
                if row.outcome in ERRORS and row.host == host:
                    at = datetime.fromisoformat(row.fetched_at).timestamp()
                    found.append(FailedUrl(row.url, row.outcome, row.status, at, row.error))
    return found


def _robots(directory: Path, url: str) -> SiteRobots:
    versions: list[RobotsVersion] = []
    before = ""
    for one in ArchiveReader(directory).captures(url):
        versions.append(RobotsVersion(one.timestamp, one.entry.status, one.entry.digest != before))
        before = one.entry.digest
    return SiteRobots(url, versions[: -VERSIONS - 1 : -1], _text(directory, url) if versions else "")


def _text(directory: Path, url: str) -> str:
    try:
        return view_archived(directory, url).source[:SHOWN]
    except (UsageError, CrawlDirectoryError):
        return ""  # the list of versions is worth showing without it
