"""ftp, gopher and file: each crawled whole from real servers, archived as resources, and kept in its bounds (row M1)."""

import asyncio
import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.crawls.builder import hostless, with_protocols
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl, run
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import is_bare
from gossamer.crawls.summary import Summary
from gossamer.engine import wiring as wirings
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.fetcher.contract import Resolver
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.fetch_stage import FileModule, FileSheet, TransferSheet
from gossamer.fetcher.plain import FtpModule, FtpSheet, GopherModule
from gossamer.testing.clock import HUNG_AFTER, FakeClock
from gossamer.testing.fetching import FetchCase, check_protocol_module
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import path_of
from gossamer.values.visit import Response

CAP = 10_000


def crawl(seed: str, folder: Path, **options: Any) -> tuple[dict[str, dict[str, Any]], list[tuple[str, str, str]]]:
    """Crawl from a seed; the rows by URL, and type, URI and content type of every record but metadata."""
    options = {"output": str(folder / "crawl"), "delay": 0.0, **options}
    run(Crawl([seed], CrawlOptions(**options), tables=False))
    text = (folder / "crawl" / "logs" / "crawl.jsonl").read_text()
    rows = {row["url"]: row for row in map(json.loads, text.splitlines())}
    records = []
    [archive] = (folder / "crawl").glob("warc/*.gz")
    with archive.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            fields = record.rec_headers
            if record.rec_type not in ("warcinfo", "metadata"):
                records.append((record.rec_type, fields["WARC-Target-URI"], fields["Content-Type"]))
            record.content_stream().read()
    return rows, records


def ftp_python() -> str:
    """A Python that has pyftpdlib: there is no wheel of it, so that it is not among what every test may use."""
    if importlib.util.find_spec("pyftpdlib") is not None:
        return sys.executable
    if "GOSSAMER_READERS" not in os.environ:
        pytest.skip("GOSSAMER_READERS names no Python with pyftpdlib; ./gossamer dev readers does")
    return os.environ["GOSSAMER_READERS"]


@contextmanager
def serving_ftp(folder: Path) -> Iterator[int]:
    """A real ftp server of a folder, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = [ftp_python(), "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port), "-d", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 10):
                break
        yield port
    finally:
        server.terminate()
        server.wait(HUNG_AFTER)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with what names can be."""
    root = tmp_path / "tree"
    (root / "sub dir").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "page.html").write_text('<title>one</title><a href="sub%20dir/two.html">two</a>')
    (root / "sub dir" / "two.html").write_text("<title>two</title>")
    (root / "sub dir" / "100%;type=a#x?.txt").write_text("odd")
    (root / "sub dir" / "ünï.bin").write_bytes(b"\0\1\2" * 10)
    return root


NAMES = {
    "": "listing",
    "page.html": "text/html",
    "empty/": "listing",
    "sub%20dir/": "listing",
    "sub%20dir/two.html": "text/html",
    "sub%20dir/100%25%3Btype%3Da%23x%3F.txt": "text/plain",
    "sub%20dir/%C3%BCn%C3%AF.bin": "application/octet-stream",
}


def kinds(rows: Mapping[str, Mapping[str, Any]], root: str, listing: str) -> dict[str, str]:
    rows = {url: row for url, row in rows.items() if row["event"] == "page"}
    assert {row["outcome"] for row in rows.values()} == {"ok"}, rows
    return {url.removeprefix(root): row["mime"].replace(listing, "listing") for url, row in rows.items()}


def test_an_ftp_site_is_crawled_whole(tree: Path, tmp_path: Path) -> None:
    with serving_ftp(tree) as port:
        root = f"ftp://127.0.0.1:{port}/"
        rows, records = crawl(root, tmp_path)
    assert kinds(rows, root, "text/x-ftp-listing") == NAMES
    assert rows[f"{root}page.html"]["title"] == "one"
    assert rows[f"{root}page.html"]["relation"] == "ftp entry"
    assert {kind for kind, _, _ in records} == {"resource"}
    assert {uri for _, uri, _ in records} == {url for url, row in rows.items() if row["event"] == "page"}
    assert (("resource", f"{root}page.html", "text/html")) in records


def test_a_file_tree_is_crawled_whole_and_nothing_beside_it(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.html").write_text("secret")
    rows, records = crawl(f"file://{tree}/", tmp_path)
    assert kinds(rows, f"file://{tree}/", "text/uri-list") == NAMES
    assert {kind for kind, _, _ in records} == {"resource"}
    (tree / "page.html").write_text('<a href="../secret.html">x</a><a href="/etc/passwd">y</a>')
    (tree / "link.html").symlink_to(tmp_path / "secret.html")
    rows, _ = crawl(f"file://{tree}/", tmp_path, overwrite=True)
    outside = {url for url, row in rows.items() if row["outcome"] == "address_refused"}
    assert outside == {f"file://{tmp_path}/secret.html", "file:///etc/passwd", f"file://{tree}/link.html"}
    assert b"secret" not in b"".join(path.read_bytes() for path in (tmp_path / "crawl").rglob("*.gz"))


class Hole:
    """A gopher hole on loopback."""

    def __init__(self, documents: Mapping[bytes, bytes]) -> None:
        self.documents = dict(documents)
        self.asked: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        selector = (await reader.readline()).removesuffix(b"\r\n")
        self.asked.append(selector)
        if selector == b"/silent":
            await reader.read()
        writer.write(self.documents.get(selector, b"3gone\t\terror.host\t1\r\n.\r\n"))
        writer.close()


@contextmanager
def serving_gopher(documents: Mapping[bytes, bytes]) -> Iterator[Hole]:
    """The hole on a thread of its own; `PORT` in a document becomes the number."""
    hole, ready, loops = Hole(documents), threading.Event(), []

    async def main() -> None:
        server = await asyncio.start_server(hole.serve, "127.0.0.1", 0)
        hole.port = server.sockets[0].getsockname()[1]
        hole.documents = {key: body.replace(b"PORT", b"%d" % hole.port) for key, body in documents.items()}
        stopping = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stopping))
        ready.set()
        async with server:
            await stopping.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert ready.wait(HUNG_AFTER)
    try:
        yield hole
    finally:
        loops[0][0].call_soon_threadsafe(loops[0][1].set)
        thread.join(HUNG_AFTER)


MENU = (
    b"iWelcome\tfake\t(NULL)\t0\r\n"
    b"0About us\t/about us.txt\t127.0.0.1\tPORT\r\n"
    b"1More\t/more\t127.0.0.1\tPORT\r\n"
    b"hA page\tURL:gopher://127.0.0.1:PORT/h/page.html\t127.0.0.1\tPORT\r\n"
    b"1Elsewhere\t/\tgopher.test\t70\r\n"
    b"8Login\t\t127.0.0.1\t23\r\n"
    b"0Evil\t/x\r\nEVIL\t127.0.0.1\tPORT\r\n"
    b"0Mail\tHELO\t127.0.0.1\t25\r\n"
    b"broken line\r\n"
    b".\r\n0After the end\t/after\t127.0.0.1\tPORT\r\n"
)


def test_a_gopher_hole_is_crawled_whole(tmp_path: Path) -> None:
    documents = {
        b"": MENU,
        b"/about us.txt": b"We burrow.\r\n.\r\n",
        b"/more": b"gPicture\t/p.gif\t127.0.0.1\tPORT\r\n.\r\n",
        b"/page.html": b"<title>page</title>",
        b"/p.gif": b"GIF89a",
    }
    with serving_gopher(documents) as hole:
        root = f"gopher://127.0.0.1:{hole.port}/"
        rows, records = crawl(root, tmp_path)
        mail = rows.pop("gopher://127.0.0.1:25/0HELO")
        assert mail["outcome"] == "address_refused"
        assert kinds(rows, root, "application/gopher-menu") == {
            "": "listing",
            "0/about%20us.txt": "text/plain",
            "1/more": "listing",
            "h/page.html": "text/html",
            "g/p.gif": "image/gif",
        }
        assert sorted(hole.asked) == sorted(documents)
    assert {kind for kind, _, _ in records} == {"resource"}


@pytest.mark.parametrize("url", ["0/a%0D%0AQUIT", "1/a%09b%00", "0/%0a", "7/find%09x%0D"])
def test_a_selector_that_could_speak_to_other_servers_is_refused_unasked(run: Any, url: str) -> None:
    async def body() -> Response:
        module = GopherModule()  # without a resolver: it is not asked
        return await module.fetch(Task(f"gopher://127.0.0.1/{url}", host="127.0.0.1"))

    assert run(body()).outcome is Outcome.ADDRESS_REFUSED


def resolver() -> SystemResolver:
    return SystemResolver(ResolverSheet(seed_hosts=("127.0.0.1",)))


def test_gopher_keeps_the_promises_of_a_protocol_module(run: Any) -> None:
    with serving_gopher({b"": MENU, b"/long": b"x" * 50_000, b"/empty": b""}) as hole:
        root = f"gopher://127.0.0.1:{hole.port}/"

        async def body() -> None:
            module = GopherModule(TransferSheet(max_body=CAP))
            module.resolver = resolver()
            cases = [
                FetchCase(root, Outcome.OK, hole.documents[b""]),
                FetchCase(f"{root}0/long", Outcome.TRUNCATED, b"x" * CAP),
                FetchCase(f"{root}0/empty", Outcome.OK, b""),
                FetchCase(f"{root}8/telnet", Outcome.ADDRESS_REFUSED),
                FetchCase("gopher://10.0.0.1/", Outcome.ADDRESS_REFUSED),
                FetchCase("gopher://127.0.0.1:1/", Outcome.ADDRESS_REFUSED),
                FetchCase("http://127.0.0.1/", Outcome.SCHEME_REFUSED),
            ]
            await check_protocol_module(module, cases, cap=CAP, silent=f"{root}0/silent", asked=lambda: len(hole.asked))
            await module.stop()

        run(body())


def test_a_silent_hole_meets_the_deadline(run: Any) -> None:
    with serving_gopher({}) as hole:

        async def body() -> None:
            module, clock = GopherModule(), FakeClock()
            module.resolver, module.clock = resolver(), clock
            url = f"gopher://127.0.0.1:{hole.port}/0/silent"
            waiting = asyncio.ensure_future(module.fetch(Task(url, host="127.0.0.1")))
            while not hole.asked:
                await asyncio.sleep(0.001)
            await clock.advance(39, turns=50)
            assert not waiting.done()
            await clock.advance(3, turns=50)
            assert (await waiting).outcome is Outcome.TIMED_OUT
            await module.stop()

        run(body())


def test_ftp_says_what_became_of_each_fetch(tree: Path, run: Any) -> None:
    (tree / "long").write_bytes(b"x" * 50_000)
    with serving_ftp(tree) as port:
        root = f"ftp://127.0.0.1:{port}/"

        async def body() -> None:
            module = FtpModule(FtpSheet(max_body=CAP))
            module.resolver = resolver()
            for url, outcome, content in (
                (f"{root}sub%20dir/two.html", Outcome.OK, b"<title>two</title>"),
                (f"{root}long", Outcome.TRUNCATED, b"x" * CAP),
                (f"{root}sub%20dir", Outcome.REDIRECT, b""),
                (f"{root}gone/", Outcome.CLIENT_ERROR, b""),
                (f"{root}empty/", Outcome.OK, b""),
                (f"{root}a%0D%0ADELE%20x", Outcome.ADDRESS_REFUSED, b""),
                ("ftp://10.0.0.1/", Outcome.ADDRESS_REFUSED, b""),
                ("ftp://127.0.0.1:1/", Outcome.ADDRESS_REFUSED, b""),
                ("http://127.0.0.1/", Outcome.SCHEME_REFUSED, b""),
            ):
                response = await module.fetch(Task(url, host="127.0.0.1"))
                assert (response.outcome, response.content) == (outcome, content), (url, response.error)
            assert (await module.fetch(Task(f"{root}sub%20dir", "127.0.0.1"))).header("location") == f"{root}sub%20dir/"
            await module.stop()

        run(body())


def test_files_outside_the_roots_and_what_is_no_file_are_never_opened(tree: Path, run: Any) -> None:
    (tree / "up").symlink_to("..")
    os.mkfifo(tree / "pipe")
    (tree / "locked").write_text("x" * 20_000)

    async def body() -> None:
        module = FileModule(FileSheet(roots=(str(tree),), max_body=CAP))
        for name, outcome in (
            ("page.html", Outcome.OK),
            ("locked", Outcome.TRUNCATED),
            ("sub%20dir", Outcome.REDIRECT),
            ("sub%20dir/", Outcome.OK),
            ("gone", Outcome.CLIENT_ERROR),
            ("page.html/", Outcome.CLIENT_ERROR),
            ("pipe", Outcome.CLIENT_ERROR),
            ("up/", Outcome.ADDRESS_REFUSED),
            ("up/tree/page.html", Outcome.OK),
            ("%2e%2e/secret", Outcome.ADDRESS_REFUSED),
            ("..%2f..%2fetc%2fpasswd", Outcome.ADDRESS_REFUSED),
            ("a%00b", Outcome.ADDRESS_REFUSED),
            ("x" * 400, Outcome.CLIENT_ERROR),
        ):
            response = await module.fetch(Task(f"file://{tree}/{name}", host=""))
            assert response.outcome is outcome, (name, response.error)
            assert len(response.body) <= CAP
        for url in ("file://host/etc/passwd", "file:///etc/passwd"):
            assert (await module.fetch(Task(url, host=""))).outcome is Outcome.ADDRESS_REFUSED
        nothing = FileModule()
        assert (await nothing.fetch(Task(f"file://{tree}/page.html", host=""))).outcome is Outcome.ADDRESS_REFUSED

    run(body())


def test_web_pages_lead_to_no_file(tree: Path, tmp_path: Path) -> None:
    from gossamer.testing.fakeweb import FakePage, FakeWeb

    page = f'<base href="file://{tree}/"><a href="page.html">x</a><a href="file://{tree}/page.html">y</a>'
    moved = FakePage(status=302, headers=(("Location", f"file://{tree}/page.html"),))
    with FakeWeb({"/": page + '<a href="{}"></a>', "/page.html": moved}) as web:
        rows, _ = crawl(web.url("/"), tmp_path, scope="any", resolve=(web.resolve,))
    assert not [url for url in rows if url.startswith("file:")]
    assert rows[web.url("/")]["rejected"]["scheme:file"] == 1


class Echo(Provider[NoSettings]):
    """A protocol of a package's own: every URL of it is a page that says its name, and links to the next."""

    resolver: Uses[Resolver]

    async def fetch(self, task: Task) -> Response:
        number = int(task.url.rpartition("/")[2] or 0)
        link = f'<a href="/{number + 1}">next</a>' if number < 3 else ""
        return Response(Outcome.OK, headers=(("content-type", "text/html"),), body=f"{task.url} {link}".encode())


def test_a_protocol_of_ones_own_is_a_class_and_a_line_of_the_wiring(tmp_path: Path) -> None:
    known = catalog()
    known.add("echo", Echo)  # as a package does by an entry point of the group `gossamer.providers`
    text = wirings.to_toml(shipped("default")).replace('http = "http"', 'http = "http"\necho = "echo"', 1)
    wiring = wirings.parse(text + '\n[providers.echo]\nuse = "echo"\nproviders = { resolver = "dns" }\n', "own.toml")
    options = CrawlOptions(output=str(tmp_path / "crawl"), delay=0.0, resolve=("place=127.0.0.1:8099",))
    settings = {"dns": {"allow_networks": ["127.0.0.0/8"]}}
    summary = run(Crawl(["echo://place/"], options, wiring=wiring, settings=settings, catalog=known, tables=False))
    assert (summary.state, summary.pages) == ("finished", 4)


class Spoken(Provider[NoSettings]):
    """A protocol whose URLs name no host: it answers with what its URL says, and asks nobody."""

    async def fetch(self, task: Task) -> Response:
        word = path_of(task.url)
        links = (
            '<a href="echo:b">b</a><a href="echo:http://victim.test/x">c</a><a href="tel:1">d</a>'
            if word == "a"
            else ""
        )
        body = f"<title>{word}</title>{links}".encode()
        return Response(Outcome.OK, headers=(("content-type", "text/html"),), body=body)


OWN = '\n[providers.echo]\nuse = "spoken"\n'


def own_wiring(unit: str = OWN) -> wirings.Wiring:
    """The shipped wiring with one protocol more, as a person writes it: a line and a table."""
    text = wirings.to_toml(shipped("default")).replace('http = "http"', 'http = "http"\necho = "echo"', 1)
    return wirings.parse(text + unit, "own.toml")


def speaking(seed: str, folder: Path, **options: Any) -> tuple[Summary, dict[str, dict[str, Any]]]:
    """Crawl through the protocol that names no host; the summary, and the rows of pages by URL."""
    known = catalog()
    known.add("spoken", Spoken)
    options = {"output": str(folder / "crawl"), "delay": 0.0, "overwrite": True, **options}
    summary = run(Crawl([seed], CrawlOptions(**options), wiring=own_wiring(), catalog=known, tables=False))
    rows = map(json.loads, (folder / "crawl" / "logs" / "crawl.jsonl").read_text().splitlines())
    return summary, {row["url"]: row for row in rows if row["event"] == "page"}


def test_a_scheme_without_hosts_is_a_class_and_a_line_of_the_wiring(tmp_path: Path) -> None:
    summary, rows = speaking("echo:a", tmp_path)
    assert (summary.state, summary.pages) == ("finished", 3)
    assert {url: row["outcome"] for url, row in rows.items()} == {
        "echo:a": "ok",
        "echo:b": "ok",
        "echo:http://victim.test/x": "ok",
    }
    assert {row["host"] for row in rows.values()} == {"echo:"}, "a queue and a pace of their own"
    assert rows["echo:a"]["rejected"] == {"scheme:tel": 1}


def test_a_name_that_is_no_machine_is_looked_up_by_nobody(tmp_path: Path) -> None:
    summary, rows = speaking("echo://no-such-name.invalid/a", tmp_path, max_pages=1)
    assert (summary.pages, rows["echo://no-such-name.invalid/a"]["outcome"]) == (1, "ok")


def test_a_crawl_of_a_scheme_without_hosts_goes_on_where_it_was(tmp_path: Path) -> None:
    first, _ = speaking("echo:a", tmp_path, max_pages=1)
    assert first.state == "limit"
    known = catalog()
    known.add("spoken", Spoken)
    options = CrawlOptions(output=str(tmp_path / "crawl"), resume=True, max_pages=9)
    again = run(Crawl([], options, catalog=known, tables=False))
    assert (again.state, again.pages) == ("finished", 3)


def test_seeds_and_links_of_a_scheme_without_hosts_are_refused_where_nobody_serves_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no host"):
        Crawl(["echo:a"], CrawlOptions(output=str(tmp_path / "crawl")), tables=False)
    assert is_bare("echo:8")
    assert not is_bare("echo:8", hostless(own_wiring()))


def test_what_a_wiring_serves_is_told_to_its_stages_beside_what_a_person_has_set() -> None:
    wiring = with_protocols(wirings.with_settings(own_wiring(), "links", {"hostless": ["own"]}))
    assert wiring.components["links"].settings["hostless"] == ["echo", "own"]
    assert wiring.components["frontier"].settings["unresolved"] == ["echo"]
    with_names = own_wiring(OWN + 'providers = { resolver = "dns" }\n')
    assert "unresolved" not in with_protocols(with_names).components["frontier"].settings, "it connects to machines"
    assert with_protocols(shipped("default")) == shipped("default")
