"""Texts that are compared: the archived one has the fingerprint that it had when it came, or none."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from gossamer.recrawl.changes import MOST_READ, ComparedTexts, TextsSheet
from gossamer.storage.archive.warc import WarcArchive, WarcSheet
from gossamer.testing.clock import FakeClock
from gossamer.values.body import sha1_base32
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import KnownPage
from gossamer.values.task import Task
from gossamer.values.visit import Location, Response, Visit

URL = "http://a.test/"
PROSE = " ".join(f"The {number}th müller grinds what the others have left of the harvest." for number in range(40))
PAGE = f"<html><body><p>{PROSE}</p></body></html>"


def fetched(body: bytes, *fields: tuple[str, str], decoded: bytes | None = None) -> Visit:
    headers = fields or (("content-type", "text/html; charset=utf-8"),)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers)
    response = Response(
        Outcome.OK,
        200,
        request_head=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        response_head=f"HTTP/1.1 200 OK\r\n{head}\r\n".encode("latin-1"),
        headers=headers,
        body=body,
        decoded=decoded,
    )
    return Visit(Task(URL, "a.test"), response, digest=sha1_base32(body), mime="text/html")


def archived(directory: Path, visits: Sequence[Visit]) -> list[Location]:
    archive = WarcArchive(WarcSheet(directory=str(directory)))
    archive.clock = FakeClock(1_700_000_000.0)
    places = [place for place in archive.append(visits) if place is not None]
    assert len(places) == len(visits)
    return places


def texts(directory: Path) -> ComparedTexts:
    return ComparedTexts(TextsSheet(directory=str(directory)))


def known(visit: Visit, place: Location | None) -> KnownPage:
    return KnownPage(digest=visit.digest, body_at=place)


@pytest.mark.parametrize(
    "visit",
    [
        fetched(PAGE.encode()),
        fetched(PAGE.encode("latin-1"), ("content-type", "text/html; charset=iso-8859-1")),
        fetched(
            gzip.compress(PAGE.encode()),
            ("content-type", "text/html; charset=utf-8"),
            ("content-encoding", "gzip"),
            decoded=PAGE.encode(),
        ),
    ],
)
def test_an_archived_page_has_the_fingerprint_that_it_had_when_it_came(visit: Visit, tmp_path: Path) -> None:
    [place] = archived(tmp_path, [visit])
    made = texts(tmp_path)
    assert made.of_visit(visit) == made.of_visit(fetched(PAGE.encode())) != 0
    assert made.of_known(URL, known(visit, place)) == made.of_visit(visit)


def test_what_is_no_page_or_was_not_archived_has_none(tmp_path: Path) -> None:
    made = texts(tmp_path)
    assert made.of_visit(msgspec.structs.replace(fetched(PAGE.encode()), mime="text/plain")) == 0
    assert made.of_known(URL, known(fetched(PAGE.encode()), None)) == 0


def test_a_record_of_other_bytes_and_one_that_is_lost_say_nothing(tmp_path: Path) -> None:
    page, other = fetched(PAGE.encode()), fetched(PAGE.upper().encode())
    place, of_other = archived(tmp_path, [page, other])
    made = texts(tmp_path)
    assert made.of_known(URL, known(page, of_other)) == 0
    (tmp_path / place.file).write_bytes(b"damaged")
    assert made.of_known(URL, known(page, place)) == 0
    (tmp_path / place.file).unlink()
    assert made.of_known(URL, known(page, place)) == 0
    assert made.metrics.snapshot()["unreadable"] == 3


def test_a_page_that_is_large_once_it_is_unpacked_is_not_read(tmp_path: Path) -> None:
    visit = fetched(f"<p>{PROSE}</p>{' ' * MOST_READ}".encode())
    [place] = archived(tmp_path, [visit])
    assert place.length < MOST_READ / 10
    assert texts(tmp_path).of_known(URL, known(visit, place)) == 0
