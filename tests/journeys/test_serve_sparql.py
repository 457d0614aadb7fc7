"""`gossamer serve-sparql`: the SPARQL protocol, asked as programs and browsers ask it, friendly ones and others."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pyoxigraph as oxigraph
import pytest

from gossamer.cli.main import main
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31m\u202e'
PAGES = {
    "/": '<a href="/hostile">h</a><meta property="og:title" content="T">',
    "/hostile": '<script type="application/ld+json">'
    + json.dumps({"@context": "https://schema.org", "name": HOSTILE}).replace("<", "\\u003c")
    + "</script>",
}
ALL = "SELECT ?o { ?s ?p ?o }"


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("served") / "crawl"
    with FakeWeb(PAGES) as web:
        assert main(["crawl", web.url("/"), "-o", str(directory), "--rdf", "--delay", "0", "--quiet"]) == 0
    return directory


@pytest.fixture(scope="module")
def served(crawl: Path) -> Iterator[str]:
    """The address that the command prints."""
    command = [sys.executable, "-m", "gossamer", "serve-sparql", str(crawl), "--timeout", "3s"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": SOURCE, "HOME": "/"}, text=True)
    assert child.stdout is not None
    yield child.stdout.readline().strip()
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=HUNG_AFTER) == 0
    child.stdout.close()
    assert not list(crawl.glob("triples/copies/*")), "a copy is left behind"


def send(url: str, method: str = "GET", body: str | None = None, **headers: str) -> tuple[int, Any, str]:
    """Status, fields and body of an answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=HUNG_AFTER)
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, f"{parts.path}?{parts.query}", body, fields)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def texts(results: str, form: oxigraph.QueryResultsFormat) -> set[str]:
    return {row["o"].value for row in oxigraph.parse_query_results(results.encode(), form)}


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/sparql-results+json", oxigraph.QueryResultsFormat.JSON),
        ("*/*", oxigraph.QueryResultsFormat.JSON),
        ("", oxigraph.QueryResultsFormat.JSON),
        ("text/html;q=0.5, application/sparql-results+xml", oxigraph.QueryResultsFormat.XML),
        ("text/tab-separated-values", oxigraph.QueryResultsFormat.TSV),
        ("text/turtle, application/sparql-results+json;q=0.1", oxigraph.QueryResultsFormat.JSON),
    ],
)
def test_a_query_is_answered_as_the_client_wants_it(served: str, accept: str, form: Any) -> None:
    status, fields, text = send(f"{served}?{urlencode({'query': ALL})}", Accept=accept)
    assert (status, fields["Content-Type"].partition(";")[0]) == (200, form.media_type.partition(";")[0])
    found = texts(text, form)
    assert "T" in found
    assert any("<script>" in one for one in found), "the text is what the page says"
    assert "\x1b" not in text


def test_queries_come_by_form_and_by_body(served: str) -> None:
    form = send(
        served, "POST", urlencode({"query": ALL}), Content_Type="application/x-www-form-urlencoded", Accept="text/csv"
    )
    body = send(served, "POST", ALL, Content_Type="application/sparql-query", Accept="text/csv")
    assert form[0] == body[0] == 200
    assert sorted(form[2].splitlines()) == sorted(body[2].splitlines())


def test_a_graph_is_answered_in_a_form_of_graphs(served: str) -> None:
    query = urlencode({"query": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"})
    for accept, form in (
        ("text/turtle", oxigraph.RdfFormat.TURTLE),
        ("application/ld+json", oxigraph.RdfFormat.JSON_LD),
    ):
        status, fields, text = send(f"{served}?{query}", Accept=accept)
        assert (status, fields["Content-Type"].partition(";")[0]) == (200, accept)
        assert len(list(oxigraph.parse(text.encode(), form))) == 2


def test_graphs_can_be_chosen_by_the_request(served: str) -> None:
    rows = json.loads(send(f"{served}?{urlencode({'query': 'SELECT ?g { GRAPH ?g { ?s og:title ?o } }'})}")[2])
    page = rows["results"]["bindings"][0]["g"]["value"]
    for name in ("default-graph-uri", "named-graph-uri"):
        query = ALL if name.startswith("default") else "SELECT ?o { GRAPH ?g { ?s ?p ?o } }"
        status, _, text = send(f"{served}?{urlencode({'query': query, name: page})}")
        assert status == 200
        assert texts(text, oxigraph.QueryResultsFormat.JSON) == {"T"}


def test_the_service_describes_itself(served: str) -> None:
    for accept, form in (
        ("text/turtle", oxigraph.RdfFormat.TURTLE),
        ("application/rdf+xml", oxigraph.RdfFormat.RDF_XML),
    ):
        status, _, text = send(served, Accept=accept)
        assert status == 200
        said = {
            (quad.predicate.value.rpartition("#")[2], str(quad.object)) for quad in oxigraph.parse(text.encode(), form)
        }
        assert ("endpoint", f"<{served}>") in said
        assert ("supportedLanguage", "<http://www.w3.org/ns/sparql-service-description#SPARQL11Query>") in said


class Tags(HTMLParser):
    """The names of tags and attributes of a page, as a browser sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}


@pytest.mark.parametrize(
    "query", ["", ALL, f'SELECT * {{ ?s ?p "</textarea><script>{quote(HOSTILE)}" }}', "</textarea><script>"]
)
def test_a_browser_sees_a_form_and_text_and_runs_nothing(served: str, query: str) -> None:
    address = f"{served}?{urlencode({'query': query})}" if query else served
    _, fields, text = send(address, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert fields["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in fields["Content-Security-Policy"]
    names = Tags(text).names
    assert "textarea" in names
    assert not names & {"script", "img", "onerror", "src", "href", "style=", "iframe"}
    if query == ALL:
        assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("SELEC", 400),
        ("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", 400),
        ("SELECT (count(*) AS ?n) {" + " ".join(f"?a{i} ?b{i} ?c{i}." for i in range(40)) + "}", 503),
    ],
)
def test_what_cannot_be_answered_says_so_in_the_status(served: str, query: str, status: int) -> None:
    found, fields, text = send(f"{served}?{urlencode({'query': query})}")
    assert (found, fields["Content-Type"]) == (status, "text/plain; charset=utf-8")
    assert len(text.splitlines()) == 1


def test_it_changes_nothing(served: str) -> None:
    update = "CLEAR ALL"
    assert send(served, "POST", update, Content_Type="application/sparql-update")[0] == 403
    assert (
        send(served, "POST", urlencode({"update": update}), Content_Type="application/x-www-form-urlencoded")[0] == 403
    )
    assert send(f"{served}?{urlencode({'query': update})}")[0] == 400
    assert send(served, "DELETE")[0] == 501
    assert send(f"{served}?{urlencode({'query': 'ASK { ?s ?p ?o }'})}", Accept="text/csv")[2].split() == [
        "answer",
        "true",
    ]


def test_who_does_not_know_the_token_or_comes_by_another_name_is_refused(served: str) -> None:
    parts = urlsplit(served)
    for path in ("/", "/sparql", "/x/sparql", f"{parts.path}/x", f"/%2e{parts.path}"):
        assert send(f"http://{parts.netloc}{path}?query=ASK%7B%7D")[0] == 404
    assert send(f"{served}?query=ASK%7B%7D", Host="evil.example:80")[0] == 421


def test_a_request_that_is_no_query_is_refused(served: str) -> None:
    assert send(served, "POST", "x", Content_Type="text/plain")[0] == 415
    large = {"Content_Type": "application/sparql-query", "Content_Length": str(2 << 20)}
    assert send(served, "POST", "the beginning", **large)[0] == 413
    assert send(f"{served}?query=ASK%7B%7D&query=ASK%7B%7D")[0] == 400
    assert send(f"{served}?{'a&' * 2000}")[0] == 400


def test_half_sent_heads_and_bodies_keep_no_question_waiting(served: str) -> None:
    parts = urlsplit(served)
    assert parts.hostname is not None and parts.port is not None
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    body = "Content-Type: application/sparql-query\r\nContent-Length: 99\r\n\r\nASK"
    with contextlib.ExitStack() as held:
        for said in [head] * 60 + [head + body] * 10:
            held.enter_context(socket.create_connection((parts.hostname, parts.port))).sendall(said.encode())
        assert send(f"{served}?query=ASK%7B%7D")[0] == 200
    assert send(served, "POST", Content_Type="application/sparql-query", Transfer_Encoding="chunked")[0] == 411


def test_it_listens_on_this_machine_alone(served: str) -> None:
    port = urlsplit(served).port
    for address in {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}:
        if not str(address).startswith("127."):
            with pytest.raises((ConnectionError, TimeoutError)), socket.create_connection((address, port), timeout=2):
                pass
