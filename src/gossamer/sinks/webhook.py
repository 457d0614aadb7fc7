"""A webhook: rows of one table of a crawl posted to a URL of the user's as JSON, signed, in order.

Place in the flow: a consumer of a feed, as a sink of a database is, but the other side cannot keep the mark. It lies in the crawl
directory, and is written when the server has taken a delivery. A kill in between sends the same rows once more: each row has an
`id` of its own, by which whoever gets it twice knows.
"""

import datetime
import hashlib
import hmac
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from gossamer.query.posting import Posting
from gossamer.sinks.mapping import SinkSpec, SinkTable, columns_of, row_maker
from gossamer.storage.tables.contract import VISIT
from gossamer.storage.tables.feeds import FeedBatch, FeedMark
from gossamer.values.errors import CrawlDirectoryError

#: Where the marks lie, in the crawl directory.
MARKS = "state/webhooks"

#: The field that says who sends: `t=SECONDS,v1=HEX`, where HEX is HMAC-SHA-256 of `SECONDS.BODY` with the secret.
SIGNATURE = "Gossamer-Signature"

#: Characters of an answer that a person is told.
_MOST_TOLD = 200

#: The column by which rows are in the order of their visits.
_WHEN = "fetched_at"


class WebhookNote(msgspec.Struct, frozen=True):
    """How far a webhook is."""

    mark: FeedMark = FeedMark()
    newest: str = ""
    """When the newest page was fetched of whose visit a row was handed on."""
    known_until: str = ""
    """Rows of visits up to then were handed on before the table was made anew."""


class Delivery(msgspec.Struct, frozen=True):
    """The body of a request."""

    crawl: str
    sink: str
    table: str
    generation: int
    """Which making of the table the rows are of."""
    rows: list[dict[str, Any]]
    is_trial: bool = False
    """`gossamer sink check` asks whether somebody listens."""


class WebhookSink:
    """One table of a webhook. Contract: `feeding.FeedConsumer`."""

    rows_at_once = 500

    def __init__(self, directory: Path, crawl: str, name: str, spec: SinkSpec, at: int) -> None:
        """Read how far it is; nothing is sent.

        Args:
            directory: the crawl directory.
            crawl: the crawl's id.
            name: of the sink.
            spec: the sink.
            at: which of its tables.

        Raises:
            UsageError: the secret is not there.
            CrawlDirectoryError: the mark cannot be read.
        """
        self._to = spec.tables[at]
        self.table = self._to.source
        self.columns = _columns_of(self._to)
        self._names = (crawl, name)
        self._path = directory / MARKS / f"{name}.{at}.json"
        self._posting = Posting(spec.url)
        self._secret = spec.secret.read().encode() if spec.secret else b""
        try:
            self._note = msgspec.json.decode(self._path.read_bytes(), type=WebhookNote)
        except FileNotFoundError:
            self._note = WebhookNote()
        except (OSError, msgspec.DecodeError) as error:
            raise CrawlDirectoryError(
                f"{self._path} cannot be read ({error}); without it all rows are sent again"
            ) from None

    def __repr__(self) -> str:
        return f"<WebhookSink {self._names[1]}>"

    def mark(self) -> FeedMark:
        return self._note.mark

    def rebuild(self, generation: int) -> None:
        """See the contract. What was told is not told again when the table is made anew, as by `reprocess`, `trim` or `delete`."""
        newest = max(self._note.newest, self._note.known_until)
        self._keep(WebhookNote(FeedMark(generation), "", newest))

    def take(self, batch: FeedBatch) -> None:
        rows, newest = self._chosen(batch)
        if rows:
            self.send(Delivery(*self._names, self.table, batch.mark.generation, rows))
        self._keep(msgspec.structs.replace(self._note, mark=batch.mark, newest=max(newest, self._note.newest)))

    def _chosen(self, batch: FeedBatch) -> tuple[list[dict[str, Any]], str]:
        """The rows of a batch that are handed on, and when the newest of their pages was fetched."""
        to, at = self._to, {name: place for place, name in enumerate(batch.columns)}
        made_of = row_maker(to, self._names[0], batch.columns, datetime.datetime.isoformat)
        rows: list[dict[str, Any]] = []
        newest, visit, number = "", "", 0
        for row in batch.rows:
            number = number + 1 if row[at[VISIT]] == visit else 0
            visit = row[at[VISIT]]
            if (to.kind and row[at["kind"]] != to.kind) or (to.changes and row[at["change"]] not in to.changes):
                continue
            when = _text(row[at[_WHEN]]) if _WHEN in at else ""
            if when and when <= self._note.known_until:
                continue
            newest = max(newest, when)
            rows.append({"id": f"{visit}.{number}", **dict(zip(to.columns, made_of(row), strict=True))})
        return rows, newest

    def send(self, delivery: Delivery) -> None:
        """Post one delivery.

        Raises:
            OSError: it was not taken; says why.
        """
        body = msgspec.json.encode(delivery, enc_hook=str)
        status, reason, said = self._posting.post(body, {"Content-Type": "application/json", **self._signature(body)})
        if not 200 <= status < 300:
            raise OSError(f"it answered {status} ({' '.join(said.split())[:_MOST_TOLD] or reason})")

    def _signature(self, body: bytes) -> dict[str, str]:
        if not self._secret:
            return {}
        seconds = f"{time.time():.0f}"
        made = hmac.new(self._secret, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
        return {SIGNATURE: f"t={seconds},v1={made}"}

    def _keep(self, note: WebhookNote) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_name(f"{self._path.name}.new")
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(note))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self._note = note

    def close(self) -> None:
        self._posting.close()


def _columns_of(to: SinkTable) -> tuple[str, ...]:
    when = {_WHEN} if to.source == "pages" else set()
    return tuple(sorted({*columns_of(to), VISIT, *when}))


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value or "")
