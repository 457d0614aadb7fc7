"""Cookies that are kept for the next run, and what an answer looks like without them."""

import stat
from pathlib import Path

from gossamer.fetcher.authentication import without_cookies
from gossamer.fetcher.cookies import CookieJar, CookieLog, forget_cookies
from gossamer.values.outcome import Outcome
from gossamer.values.visit import Response

NOW = 1_700_000_000.0
URL = "http://a.test/"


def fields(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple(("set-cookie", value) for value in values)


def opened(path: Path, now: float = NOW) -> tuple[CookieJar, CookieLog]:
    jar = CookieJar()
    return jar, CookieLog(path, {"": jar}, now)


def test_cookies_come_back_as_they_were_and_those_that_ended_do_not(tmp_path: Path) -> None:
    path = tmp_path / "state" / "cookies"
    jar, log = opened(path)
    for value in ("a=1", "b=2; Max-Age=100", "a=3", "c=4", "c=; Max-Age=0"):
        log.add(jar.receive(URL, fields(value), NOW))
    # Nothing is closed: a kill leaves the file as it is.
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert opened(path)[0].field(URL, NOW) == "a=3; b=2"
    assert opened(path, NOW + 200)[0].field(URL, NOW + 200) == "a=3"


def test_a_line_that_a_kill_tore_costs_only_its_cookie(tmp_path: Path) -> None:
    path = tmp_path / "cookies"
    jar, log = opened(path)
    log.add(jar.receive(URL, fields("a=1"), NOW))
    log.enter("log-in")
    whole = path.read_bytes()
    log.add(jar.receive(URL, fields("b=2"), NOW))
    path.write_bytes(path.read_bytes()[: len(whole) + 9])
    jar, log = opened(path)
    assert jar.field(URL, NOW) == "a=1"
    assert log.entered == {("", "log-in")}
    log.add(jar.receive(URL, fields("c=3"), NOW))
    assert opened(path)[0].field(URL, NOW) == "a=1; c=3"


def test_a_cookie_that_is_set_again_and_again_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "cookies"
    jar, log = opened(path)
    log.add(jar.receive(URL, fields("a=1; Max-Age=1800"), NOW))
    size = path.stat().st_size
    log.add(jar.receive(URL, fields("a=1; Max-Age=1800"), NOW + 1))
    assert path.stat().st_size == size
    log.add(jar.receive(URL, fields("a=1; Max-Age=1800"), NOW + 100))
    assert path.stat().st_size > size


def test_sessions_have_cookies_of_their_own_and_one_that_begins_anew_has_none(tmp_path: Path) -> None:
    path = tmp_path / "cookies"
    jars = {"": CookieJar()}
    log = CookieLog(path, jars, NOW)
    for session in ("", "1", "anna"):
        jar = jars.setdefault(session, CookieJar())
        log.add(jar.receive(URL, fields(f"sid=of-{session}"), NOW), session)
        log.enter("log-in", session)
    log.renew("1")
    log.add(CookieJar().receive(URL, fields("sid=second"), NOW), "1")
    for _ in range(2):  # what is written anew when the file is opened says the same
        again = {"": CookieJar()}
        assert CookieLog(path, again, NOW).entered == {("", "log-in"), ("anna", "log-in")}
        told = {session: jar.field(URL, NOW) for session, jar in again.items()}
        assert told == {"": "sid=of-", "1": "sid=second", "anna": "sid=of-anna"}


def test_forgetting_a_host_leaves_the_cookies_of_others_and_of_the_domain(tmp_path: Path) -> None:
    path = tmp_path / "cookies"
    jar, log = opened(path)
    for url, value in (
        ("http://www.a.test/", "own=1"),
        ("http://www.a.test/", "shared=2; Domain=a.test"),
        ("http://b.test/", "b=3"),
    ):
        log.add(jar.receive(url, fields(value), NOW))
    log.close()
    assert forget_cookies(path, "www.a.test".__eq__) == 1
    assert opened(path)[0].field("http://www.a.test/", NOW) == "shared=2"
    assert opened(path)[0].field("http://b.test/", NOW) == "b=3"
    assert forget_cookies(tmp_path / "none", "b.test".__eq__) == 0


def test_an_answer_keeps_the_names_of_its_cookies_and_not_their_values() -> None:
    head = b"HTTP/1.1 200 OK\r\nSET-COOKIE: sid=hush; Path=/\r\nset-cookie:hush\r\nX: hush=1\r\n\r\n"
    response = Response(
        Outcome.OK,
        response_head=head,
        headers=(("set-cookie", "sid=hush; Path=/"), ("set-cookie", "hush"), ("x", "hush=1")),
    )
    kept = without_cookies(response)
    assert kept.response_head == (
        b"HTTP/1.1 200 OK\r\nSET-COOKIE: sid=(not kept); Path=/\r\nset-cookie: (not kept)\r\nX: hush=1\r\n\r\n"
    )
    assert kept.headers == (("set-cookie", "sid=(not kept)"), ("set-cookie", "(not kept)"), ("x", "hush=1"))
