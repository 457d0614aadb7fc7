"""Webhooks get each row, signed, in order; what they do not take is sent again."""

import datetime
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gossamer.query.schema import tables_that_ship
from gossamer.sinks.commands import check_sinks
from gossamer.sinks.mapping import SinkSecret, SinkSpec, SinkTable, read_sinks
from gossamer.sinks.sink import SIGNATURE, WEBHOOK_MARKS, WebhookSink
from gossamer.storage.tables.contract import FeedBatch, FeedMark, FeedPlace
from gossamer.testing import check_feed_consumer
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.outcome import PageChange

COLUMNS = ("change", "fetched_at", "url", "visit")

PAGES = SinkTable(source="pages", columns={"page": "url", "what": "change", "crawl": "crawl"})

CHANGES = SinkTable(
    source="pages",
    columns={"page": "url", "what": "change"},
    changes=(PageChange.CHANGED, PageChange.GONE),
)


class Receiver:
    """A server that keeps what it is sent."""

    def __init__(self) -> None:
        self.statuses: list[int] = []
        """Answers before it takes anything."""
        self.deliveries: list[dict[str, Any]] = []
        self.signatures: list[tuple[str, bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status == 204:
                    receiver.signatures.append((self.headers.get(SIGNATURE, ""), body))
                    receiver.deliveries.append(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?a=b"

    def rows(self) -> list[dict[str, Any]]:
        """Every row once, by its id, in the order in which it came."""
        return list({row["id"]: row for delivery in self.deliveries for row in delivery["rows"]}.values())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


#: Those that a test made; whoever is killed or dropped closes nothing.
MADE: list[WebhookSink] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def webhook(folder: Path, url: str, table: SinkTable = PAGES, secret: SinkSecret | None = None) -> WebhookSink:
    MADE.append(WebhookSink(folder, "20260301-abc", "hook", SinkSpec(url, (table,), secret=secret), 0))
    return MADE[-1]


def row(number: int, change: str | None = None) -> tuple[Any, ...]:
    when = datetime.datetime.fromisoformat("2026-03-01") + datetime.timedelta(seconds=number)
    return (change, when, f"http://a.test/{number}", f"v{number}")


def batch(end: int, *rows: tuple[Any, ...], generation: int = 0) -> FeedBatch:
    return FeedBatch(COLUMNS, rows, FeedMark(generation, {"agent-00": FeedPlace("r", 1, end)}))


@pytest.mark.forks
@pytest.mark.parametrize("step", [31, pytest.param(7, marks=pytest.mark.long)])
def test_a_webhook_keeps_the_promises_of_a_consumer(tmp_path: Path, receiver: Receiver, step: int) -> None:
    def kept() -> list[str]:
        now = webhook(tmp_path, receiver.url).mark().generation
        ours = [delivery for delivery in receiver.deliveries if delivery["generation"] == now]
        return list({one["id"]: one["page"] for delivery in ours for one in delivery["rows"]}.values())

    check_feed_consumer(lambda: webhook(tmp_path, receiver.url), kept, COLUMNS, row, step=step)


def test_only_the_changes_that_were_asked_for_are_sent(tmp_path: Path, receiver: Receiver) -> None:
    one = webhook(tmp_path, receiver.url, CHANGES)
    one.take(batch(4, row(1), row(2, "changed"), row(3, "unchanged"), row(4, "gone")))
    one.take(batch(5, row(5, "unchanged")))
    assert [(told["page"], told["what"]) for told in receiver.rows()] == [
        ("http://a.test/2", "changed"),
        ("http://a.test/4", "gone"),
    ]
    assert len(receiver.deliveries) == 1, "nobody is woken for nothing"
    assert one.mark() == batch(5).mark


def test_deliveries_are_signed_and_the_secret_is_not_sent(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    webhook(tmp_path, receiver.url, secret=SinkSecret(env="HOOK_SECRET")).take(batch(1, row(1)))
    ((signature, body),) = receiver.signatures
    seconds, made = (part.partition("=")[2] for part in signature.split(","))
    assert made == hmac.new(b"s3cret", f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    assert b"s3cret" not in body


@pytest.mark.parametrize("status", [301, 400, 404, 410, 429, 500, 503])
def test_what_is_not_taken_is_said_and_sent_again(tmp_path: Path, receiver: Receiver, status: int) -> None:
    receiver.statuses = [status]
    one = webhook(tmp_path, receiver.url)
    with pytest.raises(OSError, match=f"it answered {status}"):
        one.take(batch(1, row(1)))
    assert one.mark() == FeedMark() and not receiver.rows()
    one.take(batch(1, row(1)))
    assert [told["id"] for told in receiver.rows()] == ["v1.0"]


def test_a_table_that_is_made_anew_tells_nothing_again(tmp_path: Path, receiver: Receiver) -> None:
    one = webhook(tmp_path, receiver.url)
    one.take(batch(2, row(1), row(2)))
    one.rebuild(1)
    webhook(tmp_path, receiver.url).take(batch(3, row(1), row(2), row(3), generation=1))
    assert [told["page"] for delivery in receiver.deliveries for told in delivery["rows"]] == [
        "http://a.test/1",
        "http://a.test/2",
        "http://a.test/3",
    ]


def test_a_server_that_is_away_and_a_mark_that_is_damaged_are_one_line(tmp_path: Path, receiver: Receiver) -> None:
    receiver.close()
    with pytest.raises(OSError, match="cannot be reached"):
        webhook(tmp_path, receiver.url).take(batch(1, row(1)))
    (tmp_path / WEBHOOK_MARKS).mkdir(parents=True)
    (tmp_path / WEBHOOK_MARKS / "hook.0.json").write_text("{")
    with pytest.raises(CrawlDirectoryError, match="cannot be read"):
        webhook(tmp_path, receiver.url)


def written(folder: Path, text: str) -> Path:
    path = folder / "sinks.toml"
    path.write_text(text, encoding="utf-8")
    return path


HOOK = '[sinks.hook]\nurl = "{}"\n{}[[sinks.hook.tables]]\nfrom = "{}"\ncolumns = {{ page = "url" }}\n{}'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HOOK.format("https://u:p@a.test/", "", "pages", ""), "password has no place"),
        (HOOK.format("https://a.test/", "password = { env = 'X' }\n", "pages", ""), "a webhook a secret"),
        (HOOK.format("sqlite:///x.db", "secret = { env = 'X' }\n", "pages", "into = 'x'"), "a webhook a secret"),
        (HOOK.format("https://a.test/", "", "pages", "into = 'x'"), "into is for databases"),
        (HOOK.format("https://a.test/", "", "pages", "gone = 'delete'"), "gone is for databases"),
        (HOOK.format("https://a.test/", "", "items", "changes = ['gone']"), "changes are those of pages"),
        (HOOK.format("https://a.test/", "", "pages", "changes = ['often']"), "often"),
        (HOOK.format("https://a.test/", "", "samples", ""), "made of visits"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_sinks(written(tmp_path, text), tables_that_ship())


def test_a_trial_reaches_the_receiver_as_one(tmp_path: Path, receiver: Receiver) -> None:
    file = written(tmp_path, HOOK.format(receiver.url, "", "pages", ""))
    (verdict,) = check_sinks(file, None)
    assert not verdict.problem and receiver.deliveries[0]["is_trial"] is True
    receiver.statuses = [500]
    (verdict,) = check_sinks(file, None)
    assert "it answered 500" in verdict.problem
