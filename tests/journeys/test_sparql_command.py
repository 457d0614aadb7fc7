"""`gossamer sparql`, and the triples as `gossamer export` writes them: of a crawl that has ended, and of one that runs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pyoxigraph as oxigraph
import pytest

from gossamer.cli.main import main
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.fakeweb import FakePage, FakeWeb

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
NAME = "http://schema.org/name"

#: What a stranger may write into a text, to speak to a terminal, a browser, a spreadsheet or a parser.
HOSTILE = '=1+1" <script>alert(1)</script> \x1b[31m \u202e \\ ]]> \x01 {'

PAGES = {
    "/": '<a href="/product">p</a><a href="/hostile">h</a><a href="/none">n</a><meta property="og:title" content="T">',
    "/product": '<script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product", "name": "P"}</script>',
    "/hostile": '<script type="application/ld+json">'
    + json.dumps({"@context": "https://schema.org", "name": HOSTILE, "http://a.test/1": "no element"}).replace(
        "<", "\\u003c"
    )
    + "</script>",
    "/none": "<p>text",
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A crawl with triples, and the URL that its site had."""
    directory = tmp_path_factory.mktemp("sparql") / "crawl"
    with FakeWeb(PAGES) as web:
        assert main(["crawl", web.url("/"), "-o", str(directory), "--rdf", "--delay", "0", "--quiet"]) == 0
        return directory, web.url("/").rstrip("/")


def ask(capfd: pytest.CaptureFixture[str], crawl: Path, query: str, *options: str) -> tuple[int, str, str]:
    capfd.readouterr()
    status = main(["sparql", str(crawl), query, *options])
    said = capfd.readouterr()
    return status, said.out, said.err


NAMES = "SELECT ?page ?name { GRAPH ?page { ?thing schema:name ?name } } ORDER BY ?page"


def test_a_query_without_graph_asks_all_pages_and_knows_prefixes(crawl: tuple[Path, str], capfd: Any) -> None:
    directory, site = crawl
    assert ask(capfd, directory, "SELECT (count(*) AS ?n) { ?s ?p ?o }", "-f", "csv")[1].split() == ["n", "5"]
    assert json.loads(ask(capfd, directory, "SELECT ?t { ?s og:title ?t }", "-f", "json")[1])["results"][
        "bindings"
    ] == [{"t": {"type": "literal", "value": "T"}}]
    assert "true" in ask(capfd, directory, f"ASK {{ GRAPH <{site}/product> {{ ?s a schema:Product }} }}")[1]


def test_every_form_says_the_same_and_none_is_broken_by_a_text(crawl: tuple[Path, str], capfd: Any) -> None:
    directory, site = crawl
    for form, kept in (
        ("json", HOSTILE),
        ("xml", HOSTILE.replace("\x01", "\ufffd").replace("\x1b", "\ufffd")),
        ("tsv", HOSTILE),
    ):
        status, out, _ = ask(capfd, directory, NAMES, "-f", form)
        assert status == 0
        assert "\x1b" not in out and "\u202e" not in out and "\x01" not in out, form
        results = oxigraph.parse_query_results(out.encode(), getattr(oxigraph.QueryResultsFormat, form.upper()))
        assert [(row["page"].value, row["name"].value) for row in results] == [
            (f"{site}/hostile", kept),
            (f"{site}/product", "P"),
        ], form
    table, csv = (ask(capfd, directory, NAMES, "-f", form)[1] for form in ("table", "csv"))
    assert "\x1b" not in table
    assert "'=1+1" in csv


def test_a_graph_is_written_in_every_form(crawl: tuple[Path, str], capfd: Any, tmp_path: Path) -> None:
    directory, _ = crawl
    query = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
    for form, syntax in (
        ("turtle", oxigraph.RdfFormat.TURTLE),
        ("nquads", oxigraph.RdfFormat.N_QUADS),
        ("jsonld", oxigraph.RdfFormat.JSON_LD),
    ):
        status, out, _ = ask(capfd, directory, query, "-f", form)
        assert status == 0
        texts = {str(quad.object.value) for quad in oxigraph.parse(out.encode(), syntax)}
        assert {"T", "P", HOSTILE, "no element"} <= texts, form
        assert "\x1b" not in out and "\u202e" not in out, form
        assert main(["export", str(directory), "--to", form, "-o", str(tmp_path / form)]) == 0
        quads = list(oxigraph.parse((tmp_path / form).read_bytes(), syntax))
        assert len(quads) == 5
        graphs = {quad.graph_name for quad in quads}
        assert len(graphs) == (1 if form == "turtle" else 3), form


def test_rdf_xml_is_xml_and_says_what_it_cannot_name(crawl: tuple[Path, str], capfd: Any, tmp_path: Path) -> None:
    directory, _ = crawl
    capfd.readouterr()
    assert main(["export", str(directory), "--to", "rdfxml", "-o", str(tmp_path / "out.rdf")]) == 0
    assert "1 triples are left out" in capfd.readouterr().err
    ElementTree.parse(tmp_path / "out.rdf")
    triples = list(oxigraph.parse((tmp_path / "out.rdf").read_bytes(), oxigraph.RdfFormat.RDF_XML))
    assert len(triples) == 4


@pytest.mark.parametrize(
    ("query", "options", "status", "told"),
    [
        ("SELEC", (), 2, "not a SPARQL query"),
        ("SELECT * { ?s nobody:knows ?o }", (), 2, "prefix is not declared"),
        ("INSERT DATA { <http://a> <http://b> <http://c> }", (), 2, "not a SPARQL query"),
        ("SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", (), 2, "SERVICE"),
        ("SELECT * { ?s ?p ?o }", ("-f", "turtle"), 2, "the answer is rows"),
        ("DESCRIBE ?s { ?s ?p ?o }", ("-f", "csv"), 2, "the answer is a graph"),
        ("SELECT * { ?s ?p ?o }", ("--timeout", "soon"), 2, "--timeout"),
        ("SELECT (count(*) AS ?n) {" + " ".join(f"?a{i} ?b{i} ?c{i}." for i in range(30)) + "}", ("--timeout", "1s"), 4, "within"),
        (
            "SELECT (group_concat(?z) AS ?all) { ?s ?p ?o BIND(%s AS ?z) }"
            % ("REPLACE(" * 12 + '"aaaaaaaaaaaaaaaaaaaa"' + ',"a","aaaaaa")' * 12),
            ("--memory", "400MB"),
            4,
            "memory",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_one_line(
    crawl: tuple[Path, str], capfd: Any, query: str, options: tuple[str, ...], status: int, told: str
) -> None:
    directory, _ = crawl
    found, out, said = ask(capfd, directory, query, *options)
    assert found == status, said
    assert told in said and len(said.splitlines()) == 1
    assert not out


def test_a_crawl_without_triples_and_a_store_of_another_version_are_refused(
    crawl: tuple[Path, str], capfd: Any, tmp_path: Path
) -> None:
    with FakeWeb(PAGES) as web:
        assert main(["crawl", web.url("/"), "-o", str(tmp_path / "plain"), "--delay", "0", "--quiet"]) == 0
    status, _, said = ask(capfd, tmp_path / "plain", NAMES)
    assert status == 2 and "--rdf" in said and len(said.splitlines()) == 1
    other = tmp_path / "other"
    shutil.copytree(crawl[0], other)
    for current in ("MANIFEST-999999\n", "foreign bytes"):
        (other / "triples/store/CURRENT").write_text(current)
        status, _, said = ask(capfd, other, NAMES)
        assert status == 5 and "delete" in said and len(said.splitlines()) == 1


def test_a_store_that_was_deleted_is_made_again_by_the_question(
    crawl: tuple[Path, str], capfd: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(crawl[0], other)
    shutil.rmtree(other / "triples")
    assert ask(capfd, other, NAMES, "-f", "csv") == ask(capfd, crawl[0], NAMES, "-f", "csv")
    assert not list((other / "triples/copies").iterdir()), "no copy is left behind"


def start(seed: str, directory: Path, *options: str) -> "subprocess.Popen[bytes]":
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCE, "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "gossamer", "crawl", seed, "-o", str(directory), "--delay", "0", "--per-host", "4"]
    return subprocess.Popen(
        [*command, "--rdf", "--quiet", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def said_by(page: str) -> str:
    return f'<p vocab="http://schema.org/" typeof="Thing"><b property="name">{page}</b>'


COUNT = "SELECT (count(?page) AS ?n) { GRAPH ?page { ?thing schema:name ?name } }"


def chain(length: int, latency: float) -> FakeWeb:
    """A site of pages that each say their number, and lead to the next."""
    pages = {
        f"/{n}": FakePage(said_by(str(n)) + f'<a href="/{n + 1}">next</a>', latency=latency) for n in range(length)
    }
    return FakeWeb({"/": '<a href="/0">first</a>', **pages})


def test_a_running_crawl_answers_with_everything_that_is_committed(tmp_path: Path, capfd: Any) -> None:
    directory = tmp_path / "crawl"
    with chain(400, 0.02) as web:
        child = start(web.url("/"), directory)
        try:
            counts = []
            for _ in range(3):
                web.wait_for(len(web.requests) + 20)
                status, out, said = ask(capfd, directory, COUNT, "-f", "csv")
                assert status == 0, said
                counts.append(int(out.split()[1]))
            assert child.poll() is None, "the crawl has ended, so nothing was asked while it ran"
        finally:
            child.terminate()
            child.communicate()
    assert counts == sorted(counts) and counts[0] > 0 and counts[2] > counts[0]


@pytest.mark.long
def test_the_store_has_what_the_table_has_whatever_is_killed(tmp_path: Path, capfd: Any) -> None:
    directory = tmp_path / "crawl"
    with chain(400, 0.02) as web:
        for number in range(4):
            child = start(web.url("/"), directory, *(["--resume"] if number else []))
            web.wait_for(len(web.requests) + 25)
            if number % 2:
                ask(capfd, directory, COUNT)
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        web.pages.update(chain(400, 0.0).pages)  # nobody has to be caught at work any more
        done = start(web.url("/"), directory, "--resume")
        _, said = done.communicate(timeout=HUNG_AFTER)
        assert done.returncode == 0, said.decode()
        expected = sorted(web.url(f"/{n}") for n in range(400))
    rows = json.loads(ask(capfd, directory, "SELECT ?g ?n { GRAPH ?g { ?s schema:name ?n } }", "-f", "json")[1])
    assert sorted(row["g"]["value"] for row in rows["results"]["bindings"]) == expected
    capfd.readouterr()
    assert main(["query", str(directory), "SELECT count(*) AS n FROM triples", "-f", "jsonl"]) == 0
    kept = msgspec.json.decode(capfd.readouterr().out)["n"]
    assert (
        int(ask(capfd, directory, "SELECT (count(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }", "-f", "csv")[1].split()[1])
        == kept
    )
