"""`gossamer fetch`: one request as a crawl would make it."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

PAGES = {
    "/": FakePage(
        gzip.compress(b"<p>h\xc3\xa9llo</p>", mtime=0), headers=(("Content-Encoding", "gzip"), ("X-Odd", "\x85esc"))
    ),
    "/moved": FakePage(status=301, headers=(("Location", "/"),)),
    "/gone": FakePage("gone", status=410),
    "/nothing": FakePage(raw=b""),
    "/long": FakePage("x" * 5000),
}


def fetch(*arguments: str) -> tuple[int, str, str]:
    environment = {key: value for key, value in os.environ.items() if key != "GOSSAMER_CONTACT"}
    command = [sys.executable, "-m", "gossamer", "fetch", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=HUNG_AFTER, env=environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_person_reads_outcome_times_and_fields() -> None:
    with FakeWeb(PAGES) as web:
        status, out, err = fetch(web.url("/"))
        assert (status, err) == (0, "")
        lines = out.splitlines()
        assert lines[0] == f"ok 200 {web.url('/')}"
        assert "address  127.0.0.1" in lines
        assert "protocol HTTP/1.1" in lines
        assert "connect " in out and "first byte " in out and "total " in out
        assert "HTTP/1.1 200 OK" in lines
        assert "X-Odd: \\x85esc" in lines
        assert len(web.requests) == 1, "no robots.txt, no redirect, no second try"


def test_the_body_alone_is_on_standard_output() -> None:
    with FakeWeb(PAGES) as web:
        status, out, err = fetch(web.url("/"), "--body")
    assert (status, out) == (0, "<p>h\u00e9llo</p>")
    assert err.startswith("ok 200")


def test_json_is_one_line() -> None:
    with FakeWeb(PAGES) as web:
        _, out, err = fetch(web.url("/"), "--json", "--body", "--header", "X-Mine: 1")
        assert web.requests[0].header("x-mine") == "1"
    told = json.loads(out)
    assert err == ""
    assert (told["outcome"], told["status"], told["address"]) == ("ok", 200, "127.0.0.1")
    assert (told["body"], told["document_bytes"]) == ("<p>h\u00e9llo</p>", 13)
    assert set(told["timings"]) == {"dns", "connect", "tls", "first_byte", "total"}
    assert ["content-encoding", "gzip"] in told["headers"]
    assert len(told["sha1"]) == 32 and len(told["sha256"]) == 64


@pytest.mark.parametrize(
    ("path", "status", "outcome"),
    [
        ("/moved", 0, "redirect"),
        ("/gone", 0, "client_error"),
        ("/long", 0, "truncated"),
        ("/nothing", 4, "protocol_failed"),
    ],
)
def test_every_end_has_its_name(path: str, status: int, outcome: str) -> None:
    with FakeWeb(PAGES) as web:
        code, out, _ = fetch(web.url(path), "--json", "--max-page-size", "1KB")
    assert (code, json.loads(out)["outcome"]) == (status, outcome)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["example.org"], "http://example.org"),
        (["mailto:me@example.org"], "names no host"),
        (["http://192.0.2.1/"], "reserved"),
        (["http://93.184.216.34/"], "--contact"),
        (["http://127.0.0.1/", "--header", "nonsense"], "Name: value"),
        (["http://127.0.0.1/", "--proxy", "nonsense"], "proxy"),
    ],
)
def test_what_cannot_be_used_is_one_line(arguments: list[str], word: str) -> None:
    status, out, err = fetch(*arguments)
    assert word in out + err
    assert len(err.splitlines()) <= 1
    assert status == (4 if word == "reserved" else 2)


def test_other_schemes_are_fetched_as_well(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    status, out, _ = fetch(f"file://{tmp_path}/a.txt", "--body")
    assert (status, out) == (0, "hello")
