"""Sinks: rows of one table of a crawl in one table of a database, each once, or posted to a URL of the user's.

Place in the flow: each is a consumer of a feed (:mod:`gossamer.storage.tables.contract`); all tables of a sink are fed by one
process beside the crawl (`gossamer.query.following`). In a database rows and mark are in one transaction: its table
`gossamer_marks` has a row for each crawl, sink and table, so several agents and crawls fill one database without meeting. A row
that the database refuses for its values, as a text too long, is set aside in the crawl directory with the reason.

A webhook posts rows as JSON, signed, in order. The other side cannot keep the mark: it lies in the crawl directory, and is written
when the server has taken a delivery. A kill in between sends the same rows once more: each row has an `id` of its own, by which the
receiver of it twice knows.
"""

import datetime
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.files import replace_file
from gossamer.query.following import Posting, Retried, RetryingFollower
from gossamer.query.schema import tables_of, tells
from gossamer.sinks.drivers import RowsRefusedError, connect_sink
from gossamer.sinks.mapping import CRAWL, Row, SinkSpec, columns_of, read_sinks, row_maker
from gossamer.storage.logs import printable
from gossamer.storage.members import crawl_id
from gossamer.storage.tables.contract import VISIT, FeedBatch, FeedMark
from gossamer.storage.tables.places import SINKS_FILE
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.outcome import DOCUMENTS

#: The table that holds how far each sink is. Lengths are those that every database can have in a key.
MARKS = "gossamer_marks"
_MARKS = (
    "CREATE TABLE IF NOT EXISTS gossamer_marks (crawl VARCHAR(64) NOT NULL, sink VARCHAR(64) NOT NULL, "
    "source VARCHAR(128) NOT NULL, mark TEXT NOT NULL, page TEXT, PRIMARY KEY (crawl, sink, source))"
)

#: Where rows that a database refuses are set aside, in the crawl directory.
REFUSED = "state/sinks"


class DatabaseSink:
    """One table of a sink. Contract: `storage.tables.feeds.FeedConsumer`."""

    rows_at_once = 5_000

    def __init__(self, directory: Path, crawl: str, name: str, spec: SinkSpec, at: int) -> None:
        """Connect.
        Raises UsageError: there is no driver, or no password. Raises OSError: the database does not answer, or refuses."""
        self._to = spec.tables[at]
        self.table = self._to.source
        self.columns = columns_of(self._to)
        self._key = (crawl, name, f"{at}:{self._to.source}")
        self._aside = directory / REFUSED / f"{name}.refused.jsonl"
        self.refused = 0
        """Rows that were set aside."""
        self._driver = connect_sink(spec)
        try:
            self._mark, self._last = self._read_mark()
        except BaseException:
            self._driver.close()
            raise

    def __repr__(self) -> str:
        return f"<DatabaseSink {self._key[1]} {self._to.into or 'statement'}>"

    def _read_mark(self) -> tuple[FeedMark, str]:
        driver = self._driver
        try:
            driver.run(_MARKS)
            mark = driver.mark
            found = driver.run(
                f"SELECT mark, page FROM {MARKS} WHERE crawl = {mark} AND sink = {mark} AND source = {mark}", self._key
            )
            driver.commit()
        except RowsRefusedError as error:  # another process made the table at the same time
            raise OSError(str(error)) from None
        if not found:
            return FeedMark(), ""
        return msgspec.json.decode(found[0][0], type=FeedMark), found[0][1] or ""

    def mark(self) -> FeedMark:
        return self._mark

    def rebuild(self, generation: int) -> None:
        """See the contract. Rows of a table without a column for the crawl are replaced by their keys."""
        column = next((there for there, source in self._to.columns.items() if source == CRAWL), "")

        def work() -> str:
            if self._to.into and column:
                self._driver.delete(self._to.into, column, [self._key[0]])
            return ""

        self._kept(work, FeedMark(generation))

    def take(self, batch: FeedBatch) -> None:
        self._kept(partial(self._put, batch), batch.mark)

    def _kept(self, work: Callable[[], str], mark: FeedMark) -> None:
        """Do something to the rows, and keep it together with the mark and the page of the last one."""
        driver, sign = self._driver, self._driver.mark
        try:
            page = work()
            same = f"crawl = {sign} AND sink = {sign} AND source = {sign}"
            driver.run(f"DELETE FROM {MARKS} WHERE {same}", self._key)
            told = (*self._key, msgspec.json.encode(mark).decode(), page)
            driver.run(f"INSERT INTO {MARKS} (crawl, sink, source, mark, page) VALUES ({', '.join([sign] * 5)})", told)
            driver.commit()
        except RowsRefusedError as error:
            driver.rollback()
            raise OSError(str(error)) from None
        except BaseException:
            driver.rollback()
            raise
        self._mark, self._last = mark, page

    def _put(self, batch: FeedBatch) -> str:
        """Bring rows into the database; returns page and visit of the last one."""
        to, last = self._to, self._last
        at = {name: place for place, name in enumerate(batch.columns)}
        made_of = row_maker(to, self._key[0], batch.columns, self._driver.instant)
        judges = to.source == "pages" and to.gone != "put"
        page_at = list(to.columns).index(to.page) if to.page else -1
        key_of = self._keys(at)
        waiting: dict[Any, Row] = {}
        by_page: dict[str, list[Any]] = {}
        gone: dict[str, None] = {}
        fresh: list[str] = []
        for number, row in enumerate(batch.rows):
            if (to.kind and row[at["kind"]] != to.kind) or (to.changes and row[at["change"]] not in to.changes):
                continue
            if judges and not self._stands(row[at["outcome"]], row[at["change"]], row[at["url"]], waiting, gone):
                continue
            made = made_of(row)
            if to.page:
                page = made[page_at]
                if (visit := f"{page}\n{row[at['visit']]}") != last:
                    last = visit
                    fresh.append(page)
                    for key in by_page.pop(page, ()):
                        if key in waiting and waiting[key][page_at] == page:
                            del waiting[key]
                key = key_of(row, made, number)
                by_page.setdefault(page, []).append(key)
                waiting[key] = made
            else:
                waiting[key_of(row, made, number)] = made
        if fresh:
            self._driver.delete(to.into, to.page, fresh)
        self._try(list(waiting.values()))
        if gone and to.gone != "keep":
            url = next(there for there, source in to.columns.items() if source == "url")
            if to.gone == "delete":
                self._driver.delete(to.into, url, list(gone))
            else:
                self._driver.set_true(to.into, to.gone.removeprefix("mark:"), url, list(gone))
        return last

    @staticmethod
    def _stands(outcome: Any, change: Any, url: Any, waiting: dict[Any, Row], gone: dict[str, None]) -> bool:
        """Whether the row of a visit is put; a page that is gone is noted, and one that came back is not any more."""
        if not tells(outcome, change):
            return False
        if outcome not in DOCUMENTS:
            gone[url] = None
            waiting.pop(url, None)
            return False
        gone.pop(url, None)
        return True

    def _keys(self, at: Mapping[str, int]) -> Callable[[Row, Row, int], Any]:
        """The key by which a later row of a batch replaces an earlier one: the crawl's row's, the made row's, or its number."""
        if self._to.gone != "put":
            url = at["url"]
            return lambda row, made, number: row[url]
        if self._to.key:
            names = list(self._to.columns)
            key = itemgetter(*(names.index(column) for column in self._to.key))
            return lambda row, made, number: key(made)
        return lambda row, made, number: number

    def _try(self, rows: list[Row]) -> None:
        """Put rows; where the database refuses them, halves of them, until those are left that it refuses."""
        if not rows:
            return
        self._driver.run("SAVEPOINT gossamer_some")
        try:
            self._driver.write(self._to, rows)
            self._driver.run("RELEASE SAVEPOINT gossamer_some")
        except RowsRefusedError as error:
            self._driver.run("ROLLBACK TO SAVEPOINT gossamer_some")
            if len(rows) == 1:
                self.refused += 1
                self._aside.parent.mkdir(parents=True, exist_ok=True)
                row = dict(zip(self._to.columns, rows[0], strict=True))
                told = {"into": self._to.into, "reason": str(error), "row": row}
                with self._aside.open("ab") as file:
                    file.write(printable(msgspec.json.encode(told, enc_hook=str)) + b"\n")
                return
            self._try(rows[: len(rows) // 2])
            self._try(rows[len(rows) // 2 :])

    def close(self) -> None:
        self._driver.close()


def sink_follower(directory: Path, name: str, sleep: Callable[[float], None] = time.sleep) -> RetryingFollower:
    """The follower of one sink of a crawl. Raises UsageError: the file of the sinks cannot be read."""
    spec, crawl = read_sinks(directory / SINKS_FILE, tables_of(directory)).sinks[name], crawl_id(directory)
    kind = WebhookSink if spec.is_webhook else DatabaseSink
    every = [
        Retried(f"sink {name}, {to.source}", partial(kind, directory, crawl, name, spec, at))
        for at, to in enumerate(spec.tables)
    ]
    return RetryingFollower(directory, every, sleep)


#: Where the marks lie, in the crawl directory.
WEBHOOK_MARKS = "state/webhooks"

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
    """`gossamer sink check` asks whether a server listens."""


class WebhookSink:
    """One table of a webhook. Contract: `storage.tables.feeds.FeedConsumer`."""

    rows_at_once = 500

    def __init__(self, directory: Path, crawl: str, name: str, spec: SinkSpec, at: int) -> None:
        """Read how far it is; nothing is sent.
        Raises UsageError: the secret is not there. Raises CrawlDirectoryError: the mark cannot be read."""
        self._to = spec.tables[at]
        self.table = self._to.source
        when = {_WHEN} if self.table == "pages" else set()
        self.columns = tuple(sorted({*columns_of(self._to), VISIT, *when}))
        self._names = (crawl, name)
        self._path = directory / WEBHOOK_MARKS / f"{name}.{at}.json"
        self._posting = Posting(spec.url)
        self._secret = spec.secret.read().encode() if spec.secret else b""
        try:
            self._note = msgspec.json.decode(self._path.read_bytes(), type=WebhookNote)
        except FileNotFoundError:
            self._note = WebhookNote()
        except (OSError, ValueError) as error:
            raise CrawlDirectoryError(
                f"{self._path} cannot be read ({error}); without it all rows are sent again"
            ) from None

    def __repr__(self) -> str:
        return f"<WebhookSink {self._names[1]}>"

    def mark(self) -> FeedMark:
        return self._note.mark

    def rebuild(self, generation: int) -> None:
        """A row that was told is not told again when the table is made anew, as by `reprocess`, `trim` or `delete`."""
        newest = max(self._note.newest, self._note.known_until)
        self._keep(WebhookNote(FeedMark(generation), "", newest))

    def take(self, batch: FeedBatch) -> None:
        """Post the rows of a batch that are handed on, and keep when the newest of their pages was fetched."""
        to, at = self._to, {name: place for place, name in enumerate(batch.columns)}
        made_of = row_maker(to, self._names[0], batch.columns, datetime.datetime.isoformat)
        rows: list[dict[str, Any]] = []
        newest, visit, number = "", "", 0
        for row in batch.rows:
            number = number + 1 if row[at[VISIT]] == visit else 0
            visit = row[at[VISIT]]
            if (to.kind and row[at["kind"]] != to.kind) or (to.changes and row[at["change"]] not in to.changes):
                continue
            told = row[at[_WHEN]] if _WHEN in at else ""
            when = told.isoformat() if isinstance(told, datetime.datetime) else str(told or "")
            if when and when <= self._note.known_until:
                continue
            newest = max(newest, when)
            rows.append({"id": f"{visit}.{number}", **dict(zip(to.columns, made_of(row), strict=True))})
        if rows:
            self.send(Delivery(*self._names, self.table, batch.mark.generation, rows))
        self._keep(msgspec.structs.replace(self._note, mark=batch.mark, newest=max(newest, self._note.newest)))

    def send(self, delivery: Delivery) -> None:
        """Post one delivery. Raises OSError: it was not taken; says why."""
        body = msgspec.json.encode(delivery, enc_hook=str)
        headers = {"Content-Type": "application/json"}
        if self._secret:
            seconds = f"{time.time():.0f}"
            made = hmac.new(self._secret, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"t={seconds},v1={made}"
        status, reason, said = self._posting.post(body, headers)
        if not 200 <= status < 300:
            raise OSError(f"it answered {status} ({' '.join(said.split())[:_MOST_TOLD] or reason})")

    def _keep(self, note: WebhookNote) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._path, msgspec.json.encode(note), sync=True)
        self._note = note

    def close(self) -> None:
        self._posting.close()
