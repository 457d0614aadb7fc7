"""`gossamer runtime --serve` as senders meet it: over TLS, killed and started again, and attacked."""

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.cli.main import main
from gossamer.mobile.contract import RuntimeLink, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.crawler import CrawlerBatch, MobileCrawler, MobileProgram, TravelLimits
from gossamer.mobile.manager.links import RemoteRuntime
from gossamer.mobile.runtime.serving import MAX_HEAD
from gossamer.mobile.runtime.store import Senders
from gossamer.mobile.wire import to_bytes, unpacked
from gossamer.testing import check_runtime_link
from gossamer.testing.clock import HUNG_AFTER

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
SITE = "http://site.test"
#: Bytes of a document that fills a batch alone.
LARGE = 9 << 20

CRAWLER = to_bytes(MobileCrawler(MobileProgram(seeds=(f"{SITE}/",))))
OTHER = to_bytes(MobileCrawler(MobileProgram(seeds=(f"{SITE}/a.txt",))))


class Server:
    """A runtime in a process of its own."""

    def __init__(self, folder: Path, sheet: str, *options: str) -> None:
        self.state = folder / "state"
        self._sheet = folder / "runtime.toml"
        self._sheet.write_text(sheet)
        self._options = options
        self._links: list[RemoteRuntime] = []
        self.keys: dict[str, str] = {}
        self.pin = ""

    def admit(self, sender: str) -> None:
        self.keys[sender] = self._command("admit", sender).strip()

    def start(self, address: str = "127.0.0.1:0") -> None:
        arguments = ["--config", str(self._sheet), "--state", str(self.state), "--listen", address, *self._options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gossamer", "runtime", *arguments],
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": SOURCE, "HOME": "/"},
            text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[-1]
        assert self.address.startswith(("http://127.0.0.1:", "https://127.0.0.1:"))
        if self.address.startswith("https"):
            pin = self.process.stdout.readline().split()[-1]
            assert self.pin in ("", pin), "the runtime changed its key"
            self.pin = pin

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        status = self.process.wait(timeout=HUNG_AFTER)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def begin_again(self) -> None:
        """At the same address, where nobody has given a wrong key yet."""
        port = self.port
        self.end(signal.SIGTERM)
        self.start(f"127.0.0.1:{port}")

    def link(self, sender: str) -> RemoteRuntime:
        self._links.append(RemoteRuntime(self.address, self.keys[sender], self.pin))
        return self._links[-1]

    async def hang_up(self) -> None:
        for link in self._links:
            await link.close()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.state / "runtime.jsonl").read_text().splitlines()]

    def _command(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "gossamer", "runtime", *arguments, "--state", str(self.state)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PYTHONPATH": SOURCE, "HOME": "/"}
        )
        return done.stdout


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Of a site with a page, large documents, what must never be served, and one more host for one sender alone."""
    folder = tmp_path_factory.mktemp("runtime")
    root = folder / "root"
    (root / ".git").mkdir(parents=True)
    links = "".join(
        f'<a href="{name}">x</a>' for name in ("a.txt", "b.txt", "c.txt", ".git/config", "index.php", "%2e%2e/key")
    )
    (root / "index.html").write_text(f"<title>Home</title>{links}<a href='http://secret.test/'>s</a>")
    for letter in "abc":
        (root / f"{letter}.txt").write_bytes(letter.encode() * LARGE)
    (root / ".git" / "config").write_text("SECRET")
    (root / "index.php").write_text("SECRET")
    (folder / "key").write_text("SECRET")
    (folder / "secret").mkdir()
    (folder / "secret" / "index.html").write_text("<title>SECRET</title>")
    server = Server(
        folder,
        f"""
[serve]
"site.test" = "{root}"
"secret.test" = "{folder / "secret"}"
[senders.library]
hosts = ["site.test"]
[senders.stranger]
hosts = ["site.test"]
""",
        "--tls",
    )
    server.admit("library")
    server.keys |= {sender: Senders(server.state).admit(sender) for sender in ("stranger", "owner")}
    server.start()
    yield server
    assert server.end(signal.SIGTERM) == 0
    children = subprocess.run(
        ["pgrep", "-f", "gossamer.mobile.runtime.confined"], capture_output=True, check=False
    ).stdout.split()
    assert not [
        one for one in children if Path(f"/proc/{int(one)}/stat").exists() and _parent(int(one)) == server.process.pid
    ]


def _parent(process: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


async def brought(link: RuntimeLink, identity: str, crawler: MobileCrawler) -> list[CrawlerBatch]:
    """Everything that a crawler brings home."""
    await link.send(identity, to_bytes(crawler))
    found: list[CrawlerBatch] = []
    while True:
        frame = await link.batch(identity, len(found), 30.0)
        if isinstance(frame, bytes):
            found.append(unpacked(frame, CrawlerBatch))
            await link.acknowledge(identity, len(found) - 1)
        elif frame.has_ended:
            assert frame.state == "finished", frame
            return found


def test_the_link_keeps_its_promises_over_tls_and_kills(server: Server) -> None:
    async def checked() -> list[bytes]:
        async def again() -> RemoteRuntime:
            port = server.port
            server.end(signal.SIGKILL)
            server.start(f"127.0.0.1:{port}")
            return server.link("library")

        try:
            return await check_runtime_link(
                server.link("library"), CRAWLER, OTHER, again=again, stranger=server.link("stranger")
            )
        finally:
            await server.hang_up()

    frames = asyncio.run(checked())
    pages = [page for frame in frames for page in unpacked(frame, CrawlerBatch).pages]
    assert [page.url for page in pages] == [f"{SITE}/{name}" for name in ("", "a.txt", "b.txt", "c.txt")]
    assert not any(b"SECRET" in (page.whole or b"") for page in pages)


def test_a_sender_reaches_its_own_hosts_alone(server: Server) -> None:
    secret = MobileCrawler(
        MobileProgram(seeds=("http://secret.test/", f"{SITE}/"), limits=TravelLimits(pages=1, depth=0))
    )
    hidden = MobileCrawler(MobileProgram(seeds=("http://secret.test/",)))

    async def asked() -> tuple[list[str], list[str], str]:
        library, owner = server.link("library"), server.link("owner")
        offered = [host.host for host in (await library.offer()).hosts]
        (batch,) = await brought(library, "secret", secret)
        (open_,) = await brought(owner, "secret", hidden)
        try:
            await library.send("hidden", to_bytes(hidden))
            refused = ""
        except RuntimeRefused as error:
            refused = error.reason
        await server.hang_up()
        assert offered == ["site.test"]
        return [page.url for page in batch.pages], [page.title for page in open_.pages], refused

    assert asyncio.run(asked()) == ([f"{SITE}/"], ["SECRET"], "hosts")


def test_other_keys_and_other_pins_are_refused_and_guessing_ends(server: Server) -> None:
    async def refusal(link: RemoteRuntime) -> str:
        try:
            await link.offer()
        except RuntimeRefused as refused:
            return refused.reason
        except RuntimeUnavailable:
            return "later"
        finally:
            await link.close()
        return ""

    async def asked() -> list[str]:
        key, pin = server.keys["library"], server.pin
        found = [await refusal(RemoteRuntime(server.address, key, f"sha256//{'A' * 43}="))]
        plain = RemoteRuntime(server.address.replace("https", "http"), key)
        found.append(await refusal(plain))
        found += [await refusal(RemoteRuntime(server.address, "guessed", pin)) for _ in range(11)]
        return found

    server.begin_again()  # wrong keys of other tests count as well
    before = len(server.events())
    found = asyncio.run(asked())
    assert found[0] == "wrong_key"
    assert found[1] in ("later", "protocol"), "a key was sent to a port that speaks TLS"
    assert found[2:] == ["not_authorized"] * 10 + ["later"]
    denied = [event for event in server.events()[before:] if event["event"] == "denied"]
    assert [event["wrong_keys"] for event in denied] == [1, 10], "a guesser fills the log"
    server.begin_again()  # else the minute of refusals would hold for the next test


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/offer HTTP/1.1\r\nHost: x\r\n\r\n", 401),
        (b"GET /anything HTTP/1.1\r\nHost: x\r\n\r\n", 401),
        (b"PUT /v1/crawlers/x HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", 401),
        # The last byte is the one too many, so that the server has read all when it answers and closes.
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: ".ljust(MAX_HEAD + 1, b"a"), 400),
        (b"\x00\xff" * 100 + b"\r\n\r\n", 400),
    ],
)
def test_whoever_has_no_key_is_answered_before_a_body_is_read(server: Server, request_: bytes, status: int) -> None:
    with _dialled(server) as stream:
        stream.sendall(request_)
        answer = stream.recv(65_536)
        assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
        assert b"gossamer" not in answer.lower()
        stream.settimeout(30)
        while answer:  # it is closed, and the rest of the body is not waited for
            answer = stream.recv(65_536)


def test_a_head_that_does_not_end_is_read_no_further(server: Server) -> None:
    # Its sender may still write when the server closes, so that it meets a closed line instead of the answer.
    with _dialled(server) as stream, contextlib.suppress(ConnectionError, ssl.SSLError):
        for _ in range(1_000):
            stream.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ".ljust(100_000, b"a"))
        pytest.fail("a head of 100 MB was taken")
    test_whoever_has_no_key_is_answered_before_a_body_is_read(server, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 401)


def test_a_crawler_that_is_too_large_or_nobodys_path_is_refused(server: Server) -> None:
    key = server.keys["library"]
    for line, status in (
        (f"PUT /v1/crawlers/x HTTP/1.1\r\nContent-Length: {(64 << 20) + 65}", 422),
        ("PUT /v1/crawlers/..%2f..%2fetc HTTP/1.1\r\nContent-Length: 0", 404),
        ("GET /v1/crawlers/x/batches/-1 HTTP/1.1", 404),
        ("GET /v1/crawlers/x/batches/99999999999999999999999999 HTTP/1.1", 404),
        ("GET /v1/crawlers/x/batches/0?wait=nan HTTP/1.1", 202),
        ("POST /v1/offer HTTP/1.1\r\nContent-Length: 0", 405),
    ):
        with _dialled(server) as stream:
            head, _, rest = line.partition("\r\n")
            stream.sendall(
                f"{head}\r\nHost: x\r\nAuthorization: Bearer {key}\r\n{rest}\r\n\r\n".replace(
                    "\r\n\r\n\r\n", "\r\n\r\n"
                ).encode()
            )
            stream.settimeout(30)
            answer = stream.recv(65_536)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (line, answer[:200])


def test_status_says_what_ran_without_characters_that_a_terminal_obeys(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    small = MobileCrawler(MobileProgram(seeds=(f"{SITE}/",), limits=TravelLimits(pages=1, depth=0)))

    async def asked() -> None:
        await brought(server.link("library"), "told", small)
        stranger = RemoteRuntime(server.address, "guessed", server.pin)
        with contextlib.suppress(RuntimeRefused):
            await stranger.offer()
        await stranger.close()
        await server.hang_up()

    asyncio.run(asked())
    assert main(["runtime", "status", "--state", str(server.state), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["running"] is True and found["pin"] == server.pin and found["address"] == server.address
    assert main(["runtime", "status", "--state", str(server.state), "--events", "100"]) == 0
    shown = capfd.readouterr().out
    assert "wrong_keys" in shown and "accepted: sender library, crawler told" in shown
    assert shown.replace("\n", "").isprintable()
    assert main(["runtime", "--serve", "site.test=.", "--state", str(server.state)]) == 5


@contextlib.contextmanager
def _dialled(server: Server) -> Iterator[ssl.SSLSocket]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), 30) as plain, context.wrap_socket(plain) as stream:
        yield stream
