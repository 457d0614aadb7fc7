"""Who may ask the dashboard for what: nobody without a key, no other site with one, and no name that leads here by a trick."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from gossamer.crawls.http_server import Guard
from gossamer.dashboard.app import read_address
from gossamer.dashboard.guarding import (
    ACCESS,
    HEADERS,
    MAX_BODY,
    MAX_SESSIONS,
    MAX_TARGET,
    Access,
    DashboardGuard,
    Keys,
    read_keys,
)
from gossamer.values.errors import UsageError

PORT = 4321
HOST = f"127.0.0.1:{PORT}"
KEYS = Keys("f" * 43, "r" * 43)


class Inside:
    """The application: notes who came in, and with what body."""

    def __init__(self) -> None:
        self.came: list[Access] = []
        self.body = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.came.append(scope[ACCESS])
        while True:
            message = await receive()
            self.body += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"in"})


class Door:
    """A guarded application, and requests to it."""

    def __init__(self, **more: Any) -> None:
        self.inside = Inside()
        self.guard = DashboardGuard(self.inside, KEYS, PORT, **more)
        self.headers: dict[str, str] = {}

    def ask(
        self,
        path: str = "/api/crawls",
        method: str = "GET",
        query: str = "",
        body: list[bytes] | None = None,
        **headers: str | None,
    ) -> int:
        """The status of a request; a header is `content_type="..."`, None leaves it out."""
        sent: list[Any] = []
        given = {"host": HOST, **headers}
        pairs = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in given.items() if value is not None
        ]
        parts = list(body or [b""])

        async def receive() -> Any:
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": pairs,
        }
        asyncio.run(self.guard(scope, receive, send))
        self.headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return int(sent[0]["status"])

    def enter(self, key: str) -> str:
        """Open the address that was printed; returns the cookie."""
        assert self.ask("/", query=f"token={key}") == 303
        return self.headers["set-cookie"].partition(";")[0]


def bearer(key: str) -> str:
    return f"Bearer {key}"


def order(door: Door, **headers: str | None) -> int:
    """Something that changes a crawl, asked as our own page asks."""
    usual = {"content_type": "application/json", "content_length": "2", "origin": f"http://{HOST}"}
    return door.ask("/api/crawls/c/pause", "POST", body=[b"{}"], **{**usual, **headers})


def test_without_a_key_nothing_is_shown() -> None:
    door = Door()
    paths = ("/", "/api/crawls", "/api/openapi.json", "/metrics", "/static/main.js", "/elsewhere")
    assert {door.ask(path) for path in paths} == {401}
    assert order(door) == 401
    assert door.inside.came == []


@pytest.mark.parametrize("key", ["", "x", "f" * 42, "f" * 44, "F" * 43, "é" * 43])
def test_a_wrong_key_opens_nothing(key: str) -> None:
    door = Door()
    assert door.ask(authorization=bearer(key)) == 401
    assert door.ask("/", query=f"token={key}") == 403
    assert door.ask(cookie=f"gossamer-{PORT}={key}") == 401
    assert door.inside.came == []


def test_each_key_opens_what_it_is_for() -> None:
    door = Door()
    assert door.ask(authorization=bearer(KEYS.read)) == door.ask(authorization=bearer(KEYS.full)) == 200
    assert door.inside.came == [Access.READ, Access.FULL]
    assert order(door, authorization=bearer(KEYS.read)) == 403
    assert order(door, authorization=bearer(KEYS.full), origin=None) == 200


def test_the_key_in_the_address_becomes_a_cookie_that_no_script_and_no_other_site_has() -> None:
    door = Door()
    cookie = door.enter(KEYS.full)
    said = door.headers["set-cookie"].lower()
    assert "httponly" in said and "samesite=strict" in said
    assert door.headers["location"] == "/"
    assert KEYS.full not in cookie, "browsers show cookies to other ports of this machine"
    assert door.ask(cookie=cookie) == 200
    assert Door().ask(cookie=cookie) == 401, "it is good for one process"


def test_a_cookie_of_the_reading_key_changes_nothing() -> None:
    door = Door()
    assert order(door, cookie=door.enter(KEYS.read)) == 403


def test_a_key_in_another_address_than_the_first_opens_nothing() -> None:
    assert Door().ask("/api/crawls", query=f"token={KEYS.full}") == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        f"evil.test:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"127.0.0.1.evil.test:{PORT}",
        "",
        f"localhost:{PORT}@evil.test",
        f"127.0.0.1:{'9' * 5_000}",
        "9" * 5_000,
        "127.0.0.1:\u0664\u0663\u0662\u0661",
    ],
)
def test_a_name_of_somebody_else_that_leads_here_is_refused(host: str) -> None:
    door = Door()
    assert door.ask(host=host, authorization=bearer(KEYS.full)) == 421
    assert door.ask("/", query=f"token={KEYS.full}", host=host) == 421
    assert door.inside.came == []


@pytest.mark.parametrize("host", [f"localhost:{PORT}", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"])
def test_our_own_names_are_ours(host: str) -> None:
    assert Door().ask(host=host, authorization=bearer(KEYS.full)) == 200


def test_a_name_that_the_dashboard_was_given_is_its_own() -> None:
    door = Door(name="crawler.example", scheme="https")
    assert door.ask(host=f"crawler.example:{PORT}", authorization=bearer(KEYS.full)) == 200
    assert door.ask(host=f"other.example:{PORT}", authorization=bearer(KEYS.full)) == 421


def test_another_origin_gets_nothing_even_with_the_cookie() -> None:
    door = Door()
    cookie = door.enter(KEYS.full)
    foreign: list[dict[str, str | None]] = [
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"origin": f"https://{HOST}"},
        {"origin": "http://127.0.0.1:1"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ]
    for headers in foreign:
        assert door.ask(cookie=cookie, **headers) == 403
        assert order(door, cookie=cookie, **{"origin": None, **headers}) == 403
    assert door.inside.came == []
    assert order(door, cookie=cookie) == 200


def test_a_browser_that_does_not_say_where_it_comes_from_changes_nothing() -> None:
    door = Door()
    cookie = door.enter(KEYS.full)
    assert order(door, cookie=cookie, origin=None) == 403
    assert order(door, cookie=cookie, origin=None, sec_fetch_site="same-origin") == 200


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_of_another_site_could_send_is_refused(kind: str | None) -> None:
    door = Door()
    assert order(door, cookie=door.enter(KEYS.full), content_type=kind) == 415


@pytest.mark.parametrize("length", [None, "", "-1", "x", str(MAX_BODY + 1), "１", "9" * 5_000])
def test_a_body_says_its_length_and_is_bounded(length: str | None) -> None:
    assert order(Door(), authorization=bearer(KEYS.full), content_length=length) == 413


def test_no_more_of_a_body_is_taken_than_may_be() -> None:
    door = Door()
    usual = {"content_type": "application/json", "content_length": "2", "authorization": bearer(KEYS.full)}
    door.ask("/api/crawls/c/pause", "POST", body=[b"x" * MAX_BODY, b"x", b"x"], **usual)
    assert door.inside.body == MAX_BODY


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get"])
def test_other_methods_are_refused(method: str) -> None:
    assert Door().ask(method=method, authorization=bearer(KEYS.full)) == 405


def test_an_address_that_is_too_long_is_refused() -> None:
    assert Door().ask(query="x" * MAX_TARGET, authorization=bearer(KEYS.full)) == 414


def test_every_answer_forbids_scripts_of_others_frames_and_referrers() -> None:
    door = Door()
    for asked in ({}, {"authorization": bearer(KEYS.full)}, {"host": "evil.test"}):
        door.ask(**asked)
        assert {name: door.headers[name.lower()] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in door.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy and "data:" not in policy


def test_browsers_that_are_remembered_are_bounded() -> None:
    door = Door()
    first = door.enter(KEYS.full)
    last = ""
    for _ in range(MAX_SESSIONS):
        last = door.enter(KEYS.full)
    assert door.ask(cookie=first) == 401
    assert door.ask(cookie=last) == 200


# -- the keys


def test_keys_are_made_once_and_nobody_else_can_read_them(tmp_path: Path) -> None:
    path = tmp_path / "state" / "gossamer" / "keys.json"
    keys = read_keys(path)
    assert read_keys(path) == keys
    assert keys.full != keys.read
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["keys.json"]


def test_keys_that_others_can_read_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    read_keys(path)
    path.chmod(0o644)
    with pytest.raises(UsageError, match="others can read it"):
        read_keys(path)


@pytest.mark.parametrize("text", ["", "{}", '{"full": "", "read": ""}', '{"full": "a", "read": "b"}', "[]"])
def test_a_file_that_holds_no_keys_opens_nothing(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(UsageError):
        read_keys(path)


def test_a_link_in_the_place_of_the_keys_is_not_followed(tmp_path: Path) -> None:
    read_keys(tmp_path / "real.json")
    (tmp_path / "keys.json").symlink_to(tmp_path / "real.json")
    with pytest.raises(UsageError):
        read_keys(tmp_path / "keys.json")


# -- where it listens


@pytest.mark.parametrize("text", ["0.0.0.0:80", "192.0.2.1", "crawler.example:443", "[::]:80", "0.0.0.0"])
def test_other_machines_are_let_in_only_with_tls_or_an_explicit_word(text: str) -> None:
    with pytest.raises(UsageError, match="in the clear"):
        read_address(text)
    assert read_address(text, is_open=True).scheme == "http"
    assert read_address(text, "c.pem", "k.pem").scheme == "https"


@pytest.mark.parametrize(
    ("text", "name", "port"),
    [
        ("", "127.0.0.1", 0),
        ("8080", "127.0.0.1", 8080),
        (":8080", "127.0.0.1", 8080),
        ("localhost", "localhost", 0),
        ("[::1]:80", "::1", 80),
    ],
)
def test_an_address_is_read_as_a_person_writes_it(text: str, name: str, port: int) -> None:
    found = read_address(text)
    assert (found.name, found.port) == (name, port)


@pytest.mark.parametrize("text", ["localhost:x", "localhost:99999", "localhost:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        read_address(text)


def test_a_certificate_without_its_key_is_refused() -> None:
    with pytest.raises(UsageError):
        read_address("", "c.pem")


def test_a_body_that_does_not_come_in_time_is_given_up_and_an_open_connection_is_not() -> None:
    class Hasty(Guard):
        max_body, patience = 100, 0.0

        def refused(self, scope: Scope) -> None:
            return None

    told: list[Any] = []
    parts: list[Any] = []

    async def receive() -> Any:
        if not parts:
            await asyncio.Event().wait()
        return parts.pop(0)

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        told.extend([await receive(), await receive()])

    async def send(message: Any) -> None:
        pass

    parts[:] = [{"type": "http.request", "body": b"a", "more_body": True}]
    asyncio.run(Hasty(inside)({"type": "http"}, receive, send))
    assert told[1] == {"type": "http.disconnect"}
    told.clear()
    parts[:] = [{"type": "http.request", "body": b"a"}, {"type": "http.disconnect", "by": "the client"}]
    asyncio.run(Hasty(inside)({"type": "http"}, receive, send))
    assert told[1]["by"] == "the client"
