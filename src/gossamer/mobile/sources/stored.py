"""Hosts that are not served from files: stored records, and a local server of the owner's.

Place in the flow: :mod:`gossamer.mobile.sources.gate` asks here. Stored records are WARC and ARC files of any origin, and
archives of our crawls: a site is met as it was recorded, with its redirects and errors, and a URL that was not recorded is
answered with 404. A local server is asked through the protocol module of a crawl, with its deadlines and caps, at the one address
that the owner named, whatever the URL says.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from gossamer.documents.content_coding import undone
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.http_options import HttpSheet
from gossamer.mobile.contract import Withheld
from gossamer.storage.archive.others import ReplayError, ReplayIndex, stored
from gossamer.values.body import beginning
from gossamer.values.errors import UsageError
from gossamer.values.outcome import DOCUMENTS, Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.url import endpoint_of, host_of, path_of, site_of
from gossamer.values.visit import Response

# A local server.

_LOCALHOST: Final = "127.0.0.1"


class ServerSource:
    """A local server, as :class:`~gossamer.mobile.contract.PageSource`. Not for use inside a running event loop."""

    def __init__(self, origin: str, host: str, *, limit: int, scheme: str = "") -> None:
        """Open nothing yet.

        Args:
            origin: of the server, on this machine, as `http://127.0.0.1:8080`.
            host: of the site, with the port where its URLs have one: the server is asked for it by this name.
            limit: bytes of a document; a longer one is cut.
            scheme: of the site's URLs, where it is known; the server is told of `https`.
        """
        address, port = endpoint_of(f"{origin}/")
        shown = _LOCALHOST if address == "localhost" else f"[{address}]" if ":" in address else address
        self._host = host
        told = ("X-Forwarded-Proto: https",) if scheme == "https" else ()
        self._resolver = SystemResolver(
            ResolverSheet(
                resolve=(f"*={shown}:{port}",),
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
        return _named(response)

    def close(self) -> None:
        if self._runner is not None:
            with contextlib.closing(self._runner) as runner:
                runner.run(self._http.stop())
                runner.run(self._resolver.stop())
            self._runner = None


def _named(response: Response) -> Response:
    """The answer with a media type: a server that names none leaves it to the bytes."""
    if response.content_type or response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return response
    kind = ("content-type", "application/octet-stream")
    return msgspec.structs.replace(response, headers=(*response.headers, kind))


#: Status of a URL that was not recorded.
_MISSING = 404


class CrawlSource:
    """The archive of a crawl, behind a limit. Contract: :class:`~gossamer.mobile.contract.PageSource`."""

    def __init__(self, archived: Callable[[Task], Response], *, limit: int) -> None:
        """Open nothing.

        Args:
            archived: answers out of the archive.
            limit: bytes of a document; a longer one is cut.
        """
        self._archived = archived
        self._limit = limit

    def answer(self, url: str) -> Response | Withheld:
        plain = url.partition("#")[0]
        return _cut(self._archived(Task(plain, host_of(plain))), self._limit)

    def close(self) -> None:
        """Nothing is held between two answers."""


class WarcSource:
    """Records of WARC or ARC files. Contract: :class:`~gossamer.mobile.contract.PageSource`.

    Raises:
        UsageError: a file cannot be read.
    """

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
            return Response(Outcome.CLIENT_ERROR, _MISSING, error="it was not recorded")
        found = stored(self._index, plain, self._limit + 1)
        if found is None:
            return Withheld("damaged", "the record, or the one that it refers to, cannot be read")
        status = int(found.status[:3])
        headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in found.fields)
        if not any(name == "content-type" for name, _ in headers):
            headers = (*headers, ("content-type", "application/octet-stream"))
        is_cut = len(found.body) > self._limit
        body = found.body[: self._limit]
        plainly = undone(headers, body, self._limit, whole=not is_cut)
        decoded = plainly.data if plainly.is_readable and plainly.data is not body else None
        outcome = of_status(status)
        if is_cut and outcome is Outcome.OK:
            outcome = Outcome.TRUNCATED
        answer = Response(outcome, status, headers=headers, body=body, decoded=decoded, cut="length" if is_cut else "")
        return _cut(answer, self._limit)

    def close(self) -> None:
        self._index.__exit__()


def _cut(response: Response, limit: int) -> Response:
    """The answer with a document of at most this many bytes."""
    if response.outcome not in DOCUMENTS or len(response.document) <= limit:
        return response
    whole = response.document
    return msgspec.structs.replace(
        response,
        outcome=Outcome.TRUNCATED,
        body=beginning(whole, limit)[:limit],
        decoded=None,
        cut="length",
        headers=_plain(response),
    )


def _plain(response: Response) -> tuple[tuple[str, str], ...]:
    """The header fields of a document whose content coding is undone for good."""
    if response.decoded is None:
        return response.headers
    return tuple((name, value) for name, value in response.headers if name != "content-encoding")
