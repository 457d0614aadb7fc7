"""Keys, pins, log and connections of a runtime: whoever has no key costs little, and a reader of its files cannot open anything."""

import asyncio
import contextlib
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.exceptions import HTTPException

from gossamer.crawls.http_server import HurriedProtocol
from gossamer.mobile.contract import RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.manager.links import RemoteRuntime
from gossamer.mobile.runtime.serving import SenderGuard, _sequence, held, is_held, read_listening, state_folder
from gossamer.mobile.runtime.store import Diary, Senders, last_events, own_certificate
from gossamer.mobile.sources.owner import parse_sheet
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError, UsageError

PIN = f"sha256//{'A' * 43}="


def test_a_key_opens_until_another_is_made_and_its_file_holds_none(tmp_path: Path) -> None:
    senders = Senders(tmp_path)
    assert senders.sender("") == senders.sender("x") == ""
    first = senders.admit("library")
    other = Senders(tmp_path)
    assert other.sender(first) == "library"
    second = senders.admit("library")
    assert (other.sender(first), other.sender(second)) == ("", "library"), (
        "a runtime that runs does not know the change"
    )
    text = (tmp_path / "senders.json").read_text()
    assert second not in text and stat.S_IMODE((tmp_path / "senders.json").stat().st_mode) == 0o600
    senders.dismiss("library")
    assert other.sender(second) == ""
    for name in ("", "a b", "../x", "a\n", "-a", "x" * 65):
        with pytest.raises(UsageError, match="cannot be the name of a sender"):
            senders.admit(name)
    with pytest.raises(UsageError, match="known: none"):
        senders.dismiss("library")


def test_files_that_others_can_read_open_nothing(tmp_path: Path) -> None:
    senders = Senders(tmp_path)
    key = senders.admit("library")
    (tmp_path / "senders.json").chmod(0o644)
    assert Senders(tmp_path).sender(key) == ""
    with pytest.raises(UsageError, match="chmod 600"):
        _ = Senders(tmp_path).names
    path = own_certificate(tmp_path).path
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others can read it"):
        own_certificate(tmp_path)
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UsageError, match="others can write there"):
        state_folder(str(tmp_path / "open"))


def test_a_runtime_keeps_its_key(tmp_path: Path) -> None:
    made = own_certificate(tmp_path)
    assert own_certificate(tmp_path) == made and stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert made.pin.startswith("sha256//") and len(made.pin) == len(PIN)


def test_a_folder_has_one_runtime(tmp_path: Path) -> None:
    with held(tmp_path):
        assert is_held(tmp_path)
        with pytest.raises(CrawlDirectoryError, match="another runtime"), held(tmp_path):
            pass
    assert not is_held(tmp_path)


@pytest.mark.parametrize(
    ("text", "has_tls"),
    [
        ("127.0.0.1:1", False),
        ("[::1]:1", False),
        ("localhost:1", False),
        ("0.0.0.0:1", True),
        ("clinic.example:1", True),
    ],
)
def test_only_loopback_is_listened_to_without_tls(text: str, has_tls: bool) -> None:
    assert read_listening(text).has_tls is has_tls
    assert read_listening(text, tls=True).has_tls
    for wrong in ("", "8080", "host:", "host:x", "host:99999", ":1"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            read_listening(wrong)


@pytest.mark.parametrize(
    ("url", "pin", "told"),
    [
        ("http://clinic.example:1", "", "http only on this machine"),
        ("http://10.0.0.1:1", "", "http only on this machine"),
        ("http://127.0.0.1.clinic.example", "", "http only on this machine"),
        ("http://localhost:1", PIN, "a pin needs https"),
        ("https://clinic.example", "", "pin is missing"),
        ("https://clinic.example", "sha256//short=", "pin is missing"),
        ("https://clinic.example", PIN + ";sha256//x", "pin is missing"),
        ("https://user:x@clinic.example", PIN, "beside the URL"),
        ("https://clinic.example/path", PIN, "write it as"),
        ("ftp://clinic.example", PIN, "write it as"),
        ("https://clinic.example:x", PIN, "Port"),
    ],
)
def test_a_crawler_is_sent_nowhere_without_a_known_key(url: str, pin: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        RemoteRuntime(url, "key", pin)


def test_a_key_with_a_line_break_is_no_key() -> None:
    with pytest.raises(UsageError, match="copy it again"):
        RemoteRuntime("http://127.0.0.1:1", "key\r\nX: y")


def test_the_log_has_no_character_that_a_terminal_obeys_and_stays_bounded(tmp_path: Path) -> None:
    path = tmp_path / "log"
    diary = Diary(path, lambda: 0.0, most=2_000)
    hostile = "\x1b[31m\n\u202e\x7f\x85" + "a" * 1_000
    for number in range(20):
        diary.tell("accepted", crawler=hostile, number=number)
    lines = path.read_text().splitlines()
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert sum(one.stat().st_size for one in tmp_path.iterdir()) <= 4_000
    with path.open("a") as file:
        file.write('{"at": "cut')
    found = last_events(path, 3)
    assert [one["number"] for one in found] == [18, 19]
    assert found[-1]["crawler"].startswith("\x1b[31m") and len(found[-1]["crawler"]) == 500


class _Hasty(HurriedProtocol):
    SECONDS = 0.2


@pytest.fixture
def hasty() -> Iterator[int]:
    """The port of a server that answers, and waits a fifth of a second for a request."""

    async def application(scope: dict[str, object], receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"ok"})  # type: ignore[operator]

    yield from _serving(application, _Hasty)


@pytest.fixture
def patient() -> Iterator[int]:
    """The port of a server that has room for sixteen connections, and would wait for each of them for longer than a test runs."""

    class Patient(HurriedProtocol):
        SECONDS = HUNG_AFTER

    async def application(scope: dict[str, object], receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"ok"})  # type: ignore[operator]

    yield from _serving(application, Patient, limit_concurrency=16)


def _serving(application: Any, protocol: type[HurriedProtocol], **more: Any) -> Iterator[int]:
    config = uvicorn.Config(application, http=protocol, log_level="critical", lifespan="off", ws="none", **more)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
        thread.start()
        yield bound.getsockname()[1]
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: y\r\n"])
def test_a_connection_that_does_not_ask_in_time_is_closed(hasty: int, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hasty), 30) as stream:
        stream.sendall(said)
        with contextlib.suppress(ConnectionResetError):
            assert stream.recv(100) == b""
    with socket.create_connection(("127.0.0.1", hasty), 30) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stream.recv(100).startswith(b"HTTP/1.1 200")


def test_the_head_of_a_second_request_has_to_come_in_time_too(hasty: int) -> None:
    with socket.create_connection(("127.0.0.1", hasty), 30) as stream:
        stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert stream.recv(1000).startswith(b"HTTP/1.1 200")
        stream.sendall(b"GET / HTTP/1.1\r\nHost")
        with contextlib.suppress(ConnectionResetError):
            while stream.recv(1000):
                pass


def test_many_half_sent_heads_keep_out_nobody_and_the_oldest_go_first(patient: int) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(60):
            stream = held.enter_context(socket.create_connection(("127.0.0.1", patient), 30))
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        with socket.create_connection(("127.0.0.1", patient), 30) as owner:
            owner.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert owner.recv(100).startswith(b"HTTP/1.1 200")


def asked(guard: SenderGuard, key: str) -> int:
    """The status of a request with this key from the one address behind a proxy."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {key}".encode())]
    asyncio.run(guard({"type": "http", "client": ("10.0.0.1", 1), "headers": headers}, receive, send))
    return int(sent[0]["status"])


def test_wrong_keys_of_a_stranger_lock_out_nobody_who_has_the_right_one(tmp_path: Path) -> None:
    senders, now = Senders(tmp_path), 0.0
    key = senders.admit("library")

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    guard = SenderGuard(application, senders, Diary(tmp_path / "log"), lambda: now)
    assert [asked(guard, "guess") for _ in range(12)] == [401] * 10 + [429] * 2
    assert asked(guard, key) == 200
    assert len((tmp_path / "log").read_text().splitlines()) == 2, "a guesser does not fill the log"
    now = 61.0
    assert asked(guard, "guess") == 401


@pytest.mark.parametrize("number", ["9" * 5_000, "-1", "x", "\u00b2"])
def test_a_number_of_a_batch_that_nobody_can_read_is_refused(number: str) -> None:
    with pytest.raises(HTTPException, match="404"):
        _sequence(SimpleNamespace(path_params={"sequence": number}))  # type: ignore[arg-type]


#: What somebody may answer who is no runtime, or a hostile one; and what becomes of it.
ANSWERS = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "protocol"),
    (b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n{"versions": 1}', "protocol"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n" + b"[" * 20_000, "protocol"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b" " * (2 << 20), "protocol"),
    (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "protocol"),
    (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "protocol"),
    (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "later"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{", "later"),
    (b'HTTP/1.1 422 No\r\nContent-Length: 38\r\n\r\n{"reason": "hosts", "told": "\\u001b["}', "hosts"),
    (b'HTTP/1.1 422 No\r\nContent-Length: 17\r\n\r\n{"reason": "mine"}', "protocol"),
    (b"SSH-2.0-OpenSSH\r\n", "protocol"),
    (b"", "later"),
]


@pytest.mark.parametrize(("answer", "reason"), ANSWERS)
def test_whatever_a_runtime_answers_ends_in_one_of_two_errors(answer: bytes, reason: str) -> None:
    async def asked(port: int) -> SimpleNamespace:
        link = RemoteRuntime(f"http://127.0.0.1:{port}", "key")
        try:
            await link.offer()
        except RuntimeRefused as refused:
            return SimpleNamespace(reason=refused.reason, told=str(refused))
        except RuntimeUnavailable as error:
            return SimpleNamespace(reason="later", told=str(error))
        finally:
            await link.close()
        return SimpleNamespace(reason="", told="")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                stream, _ = server.accept()
                with stream:
                    stream.recv(65_536)
                    stream.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        found = asyncio.run(asked(server.getsockname()[1]))
        thread.join()
    assert found.reason == reason, found
    assert found.told.isprintable()


def test_every_setting_of_the_sheet_about_senders_is_read_with_its_units() -> None:
    sheet = parse_sheet(
        'listen = "0.0.0.0:8643"\nallow = ["prices"]\ncrawlers = 3\nwaiting = 5\nkeep = "2h"\ndisk = "1GB"\n'
        '[serve]\n"a.test" = "/srv"\n[limits]\ncpu = "10m"\nmemory = "256MiB"\nkept = "1MB"\n'
        '[senders.library]\nhosts = ["a.test"]\ncrawlers = 1\n'
    )
    assert (sheet.listen, sheet.allow, sheet.crawlers, sheet.waiting) == ("0.0.0.0:8643", ("prices",), 3, 5)
    assert (sheet.keep, sheet.disk) == (7_200.0, 1_000_000_000)
    assert (sheet.limits.cpu, sheet.limits.memory, sheet.limits.kept) == (600.0, 256 << 20, 1_000_000)
    assert sheet.rules("library").hosts == ("a.test",) and sheet.rules("other").hosts is None
    with pytest.raises(UsageError, match=r"senders.*hots.*hosts"):
        parse_sheet('[senders.library]\nhots = ["a.test"]')
