"""Stored records as a source: WARC and ARC files of anybody, and what a crawl of ours archived.

Place in the flow: :mod:`gossamer.mobile.sources.gate` asks here for hosts that are not served in another way. A site is met as
it was recorded, with its redirects and errors; a URL that was not recorded is answered with 404.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gossamer.contracts.sourcing import Withheld
from gossamer.model.body import beginning
from gossamer.model.errors import UsageError
from gossamer.model.outcome import DOCUMENTS, Outcome, of_status
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Response
from gossamer.reading.coding import undone
from gossamer.stores.recorded.index import ReplayError, ReplayIndex
from gossamer.stores.recorded.records import stored

#: Status of a URL that was not recorded.
_MISSING = 404


class CrawlSource:
    """What a crawl archived, behind a limit. Contract: `sourcing.PageSource`."""

    def __init__(self, archived: Callable[[Task], Response], *, limit: int) -> None:
        """Open nothing.

        Args:
            archived: answers out of the archive.
            limit: bytes of a document; a longer one is cut.
        """
        self._archived = archived
        self._limit = limit

    def answer(self, url: str) -> Response | Withheld:
        """See the contract."""
        plain = url.partition("#")[0]
        return _cut(self._archived(Task(plain, host_of(plain))), self._limit)

    def close(self) -> None:
        """Nothing is held between two answers."""


class WarcSource:
    """Records of WARC or ARC files. Contract: `sourcing.PageSource`.

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
        """See the contract."""
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
        """Close the index."""
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
