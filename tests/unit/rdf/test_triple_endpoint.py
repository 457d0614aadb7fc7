"""A triple store elsewhere is fed by SPARQL Update: a real server, Oxigraph's, and a small one that misbehaves."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.cli.main import main
from gossamer.query.following import feed_all, feeds_of, follow
from gossamer.rdf.store.endpoint import (
    AUTH_VARIABLE,
    RemoteTripleStore,
    UnfedEndpoint,
    Updates,
    check_endpoint,
    endpoints,
    register_endpoint,
)
from gossamer.rdf.terms import STRING
from gossamer.storage.tables.contract import FeedConsumer
from gossamer.testing import check_feed_consumer
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.errors import UsageError
from gossamer.values.visit import Visit
from tools.killing.programs import PROGRAM, TripleServer

Open = Callable[..., Any]
Make = Callable[..., Visit]

NAME = "http://schema.org/name"
COLUMNS = ("graph", "subject", "predicate", "object", "datatype", "language", "visit")

needs_server = pytest.mark.skipif(
    PROGRAM is None, reason="Oxigraph's server is not installed; `./gossamer dev` does it"
)


def names_in(server: TripleServer) -> dict[str, set[str]]:
    """What pages are called, by their last part."""
    found: dict[str, set[str]] = {}
    for row in server.ask(f"SELECT ?g ?n {{ GRAPH ?g {{ ?s <{NAME}> ?n }} }}"):
        found.setdefault(row["g"].rpartition("/")[2], set()).add(row["n"])
    return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TripleServer]:
    one = TripleServer(tmp_path / "server")
    one.start()
    yield one
    one.kill()


@pytest.fixture
def crawl(kept: Open) -> Any:
    return kept(tables=("pages", "triples"))


def visited(page: Make, number: int, at: int, *names: str) -> Visit:
    triples = tuple(("_:b1", NAME, name, STRING, "") for name in names)
    return msgspec.structs.replace(page(number, triples=triples), id=f"69a42f80c1d2e3f4a5b6-{at}")


def commit(crawl: Any, *visits: Visit) -> None:
    crawl.commit(*visits)
    crawl.rows.committed(crawl.rows.ends())


def ended() -> bool:
    return True


def feed(directory: Path, rest: Callable[[], bool] = ended) -> RemoteTripleStore:
    [endpoint] = endpoints(directory, rest)
    with contextlib.closing(endpoint):
        feed_all(directory, feeds_of(directory, endpoint.consumers()))
    return endpoint


@needs_server
def test_graphs_are_put_replaced_and_deleted_and_those_of_others_stay(
    crawl: Any, page: Make, server: TripleServer
) -> None:
    with contextlib.closing(Updates(server.update, ended)) as updates:
        updates.send(f'INSERT DATA {{ GRAPH <http://other/mine> {{ <urn:a> <{NAME}> "mine" }} }}')
    register_endpoint(crawl.directory, server.update)
    commit(crawl, visited(page, 1, 1, "old"), visited(page, 2, 2, "goes"), visited(page, 3, 3, "stays"))
    feed(crawl.directory)
    assert names_in(server) == {"1": {"old"}, "2": {"goes"}, "3": {"stays"}, "mine": {"mine"}}
    commit(crawl, visited(page, 1, 4, "new"), visited(page, 2, 5))
    feed(crawl.directory)
    assert names_in(server) == {"1": {"new"}, "3": {"stays"}, "mine": {"mine"}}
    [endpoint] = endpoints(crawl.directory, ended)
    with contextlib.closing(endpoint):
        endpoint.consumers()[0].rebuild(1)
    assert names_in(server) == {"mine": {"mine"}}, "an emptied store has nothing of this crawl"
    feed(crawl.directory)
    assert names_in(server) == {"1": {"new"}, "3": {"stays"}, "mine": {"mine"}}


@needs_server
def test_two_crawls_feed_one_store(kept: Open, page: Make, server: TripleServer, tmp_path: Path) -> None:
    for number, name in ((1, "first"), (2, "second")):
        (tmp_path / name).mkdir()
        own = type(kept())(tmp_path / name, tables=("pages", "triples"))
        commit(own, visited(page, number, 1, name))
        register_endpoint(tmp_path / name, server.update)
        feed(tmp_path / name)
    assert names_in(server) == {"1": {"first"}, "2": {"second"}}


@needs_server
def test_a_store_that_was_stopped_catches_up(crawl: Any, page: Make, server: TripleServer) -> None:
    register_endpoint(crawl.directory, server.update)
    commit(crawl, visited(page, 1, 1, "one"))
    looks = 0

    def rest() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            server.kill()
            commit(crawl, visited(page, 2, 2, "two"), visited(page, 1, 3, "one again"))
        elif looks == 8:
            server.start()
        return looks >= 12

    assert follow(crawl.directory, "endpoints", rest, wait=False) == []
    assert names_in(server) == {"1": {"one again"}, "2": {"two"}}


@needs_server
def test_what_strangers_wrote_stays_text(crawl: Any, page: Make, server: TripleServer) -> None:
    text = 'x" } } ; DROP ALL ; INSERT DATA { <urn:evil> <urn:evil> "\\ \n\r\t\x01 \u202e }}'
    register_endpoint(crawl.directory, server.update)
    evil = ("http://a.test/> } } ; DROP ALL ; #", NAME, "evil", STRING, "")
    one = msgspec.structs.replace(visited(page, 1, 1), triples=(("_:b1", NAME, text, STRING, ""), evil))
    commit(crawl, visited(page, 2, 2, "two"), one)
    endpoint = feed(crawl.directory)
    assert names_in(server) == {"1": {text}, "2": {"two"}}
    assert endpoint.left_out == {"not_an_iri": 1}


@needs_server
@pytest.mark.forks
@pytest.mark.parametrize("step", [31, pytest.param(7, marks=pytest.mark.long)])
def test_a_store_elsewhere_misses_no_triple_and_has_none_twice(tmp_path: Path, server: TripleServer, step: int) -> None:
    made: list[RemoteTripleStore] = []

    def make() -> FeedConsumer:
        for endpoint in made:
            endpoint.close()
        made[:] = [RemoteTripleStore(tmp_path / "notes", Updates(server.update, ended))]
        return made[0].consumers()[0]

    def row(number: int) -> tuple[Any, ...]:
        return (f"http://a.test/{number:06}", "_:b1", NAME, str(number), STRING, "", f"run-{number}")

    def kept() -> list[tuple[str, str]]:
        return [(one["g"], one["o"]) for one in server.ask("SELECT ?g ?o { GRAPH ?g { ?s ?p ?o } } ORDER BY ?g")]

    check_feed_consumer(make, kept, COLUMNS, row, step=step)
    made[0].close()


@needs_server
def test_a_crawl_feeds_a_store_elsewhere_and_says_where_it_could_not(
    tmp_path: Path, server: TripleServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = f'<p property="{NAME}">said</p>'
    with FakeWeb({"/": f'{page}<a href="/a">a</a>', "/a": page}) as web:
        options = ["--rdf", "--delay", "0", "--quiet", "--triple-store", server.update]
        assert main(["crawl", web.url("/"), "-o", str(tmp_path / "crawl"), *options]) == 0
        assert names_in(server) == {"": {"said"}, "a": {"said"}}
        capsys.readouterr()
        forbidding = server.update.replace("/update", "/nothing")
        assert main(["crawl", web.url("/"), "-o", str(tmp_path / "other"), *options[:-1], forbidding]) == 0
    [told] = [line for line in capsys.readouterr().err.splitlines() if forbidding in line]
    assert "not complete" in told and "HTTP 40" in told
    assert main(["crawl", web.url("/"), "-o", str(tmp_path / "third"), "--triple-store", server.update]) == 2


# -- servers that misbehave


class Odd:
    """A server that answers each request with the next of its statuses; the last again and again."""

    def __init__(self, *statuses: int, refuses: str = "\0") -> None:
        odd = self
        self.bodies: list[str] = []
        self.authorizations: list[str | None] = []
        left = list(statuses)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                odd.bodies.append(body)
                odd.authorizations.append(self.headers["Authorization"])
                status = 400 if refuses in body else left.pop(0) if len(left) > 1 else left[0]
                text = b"because\x1b[31m " * 1000
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients go away without a word
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/update"

    def __enter__(self) -> "Odd":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (403, "it forbids updates"),
        (401, "does not accept these credentials"),
        (404, "no such endpoint"),
        (405, "takes no updates"),
        (307, "HTTP 307"),
        (507, "it is full"),
        (503, "too much to do"),
        (500, "because"),
        (400, "because"),
    ],
)
def test_a_server_that_takes_nothing_is_told_in_one_line(status: int, told: str) -> None:
    slept: list[float] = []
    with (
        Odd(status) as odd,
        contextlib.closing(Updates(odd.url, ended, slept.append)) as updates,
        pytest.raises(UnfedEndpoint, match=told) as caught,
    ):
        updates.send("CLEAR ALL")
    text = str(caught.value)
    assert odd.url in text and text.isprintable() and len(text) < 400
    assert len(odd.bodies) == (5 if status >= 500 else 1), "what a later try may mend is tried again, and nothing else"


def test_a_server_that_is_gone_is_told_in_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/update"
        with pytest.raises(UnfedEndpoint, match="cannot be reached"):
            Updates(url, ended, lambda seconds: None).send("CLEAR ALL")


def test_a_server_that_says_nothing_is_told_in_one_line() -> None:
    slept: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/update"
        with (
            contextlib.closing(Updates(url, ended, slept.append, patience=0.05)) as updates,
            pytest.raises(UnfedEndpoint, match=r"did not answer within 0\.05 s") as caught,
        ):
            updates.send("CLEAR ALL")
    assert url in str(caught.value) and str(caught.value).isprintable()
    assert len(slept) == 4, "it is asked five times"


def test_pauses_grow_while_the_crawl_runs() -> None:
    rests = 0

    def rest() -> bool:
        nonlocal rests
        rests += 1
        return False

    with Odd(503, 503, 503, 503, 200) as odd, contextlib.closing(Updates(odd.url, rest)) as updates:
        updates.send("CLEAR ALL")
        assert (len(odd.bodies), rests) == (5, 1 + 2 + 4 + 8)


def test_a_page_that_is_refused_costs_no_other_page(crawl: Any, page: Make) -> None:
    names = [f"name {number}" for number in range(9)]
    commit(crawl, *(visited(page, number, number + 1, name) for number, name in enumerate(names)))
    with Odd(200, refuses="name 5") as odd:
        register_endpoint(crawl.directory, odd.url)
        endpoint = feed(crawl.directory)
        taken = [body for body in odd.bodies if "name 5" not in body]
    assert endpoint.left_out == {"refused": 1}
    assert all(any(name in body for body in taken) for name in names if name != "name 5")


def test_credentials_come_from_the_environment_and_are_kept_nowhere(
    crawl: Any, page: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(crawl, visited(page, 1, 1, "one"))
    for secret, sent in (("me:s3cret", "Basic bWU6czNjcmV0"), ("Bearer t0ken", "Bearer t0ken")):
        monkeypatch.setenv(AUTH_VARIABLE, secret)
        with Odd(200) as odd:
            register_endpoint(crawl.directory, odd.url)
            with contextlib.closing(Updates(odd.url, ended)) as updates:
                updates.send("CLEAR ALL")
            assert odd.authorizations == [sent]
    kept = b"".join(path.read_bytes() for path in crawl.directory.rglob("*") if path.is_file())
    assert b"s3cret" not in kept and b"t0ken" not in kept


@pytest.mark.parametrize(
    "url", ["ftp://a/", "a", "http://", "http://me:secret@a/", "http://a:x/", "http://a/ b", "http://a/\n"]
)
def test_a_url_that_is_no_endpoint_is_refused_without_a_word_of_a_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_endpoint(url)
    assert "secret" not in str(caught.value) and len(str(caught.value).splitlines()) == 1


@needs_server
def test_several_agents_feed_one_store_elsewhere(tmp_path: Path, server: TripleServer) -> None:
    hosts = [f"http://www.h{number}.test" for number in range(6)]
    pages = {
        f"{host}/p{number}": f'<p vocab="http://schema.org/" typeof="Thing"><b property="name">{number}</b>'
        f'<a href="{hosts[(number + 1) % 6]}/p{(number + 1) % 6}">next</a>'
        for number, host in enumerate(hosts)
    }
    with FakeWeb(pages) as web:
        options = [
            "--scope",
            "any",
            "--resolve",
            web.resolve,
            "--allow-network",
            "127.0.0.0/8",
            "--delay",
            "0",
            "--quiet",
        ]
        more = ["--rdf", "--agents", "2", "--triple-store", server.update]
        assert main(["crawl", web.url(f"{hosts[0]}/p0"), "-o", str(tmp_path / "crawl"), *options, *more]) == 0
    assert len(list((tmp_path / "crawl").glob("tables/triples/agent-*.parquet"))) == 2  # each agent had some
    assert names_in(server) == {f"p{number}": {str(number)} for number in range(6)}
