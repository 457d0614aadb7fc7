"""What it costs to find a page's structured data, and to find that it has none; and to keep it: CPU time a page, skimmed
before as in a crawl, and the triple store.

Pages are made here: a list of ten products in RDFa (50 triples), one product in JSON-LD and one in microdata among prose,
OpenGraph in the head alone, and prose. The store takes the rows of a crawl's log, of pages of 50 triples, as ten products
each: what is measured is the work of the process that follows a crawl, reading the log included; and a question from the
copy of the store to the last row, with the process that answers it.
"""

import asyncio
import gc
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pyoxigraph as oxigraph

from gossamer.bench.harness import pages_option
from gossamer.bench.peers import environment
from gossamer.bench.report import BenchReport
from gossamer.documents.document import Document
from gossamer.engine.files import scratch
from gossamer.query.following import feed_all, feeds_of
from gossamer.rdf.filtering import sign_of
from gossamer.rdf.page import structured_data
from gossamer.rdf.store.asking import QuestionLimits, ask, current_copy
from gossamer.rdf.store.graphs import PageGraph, lines
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.rdf.store.store import TripleStore
from gossamer.rdf.terms import STRING, TYPE
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Triple, Visit

#: Pages of the log: 200,000 triples.
STORED = 4_000

#: Pages that the bulk loader takes alone: one batch of the feed.
_ALONE = 4_000

_PRODUCTS = 10
_GROUP = 100
_SCHEMA = "http://schema.org/"

#: Solutions that the questions ask for at the most.
_SOLUTIONS = 10_000

_QUESTIONS = {
    "one pattern": f"SELECT ?s ?n {{ ?s schema:name ?n }} LIMIT {_SOLUTIONS}",
    "a star of three": f"SELECT ?s ?n ?d {{ ?s schema:price '7'; schema:name ?n; schema:description ?d }} LIMIT {_SOLUTIONS}",
    "with its page": f"SELECT ?g ?s {{ GRAPH ?g {{ ?s schema:price '7' }} }} LIMIT {_SOLUTIONS}",
}


def _triples(url: str, number: int) -> tuple[Triple, ...]:
    found: list[Triple] = []
    for product in range(_PRODUCTS):
        subject = f"_:b{product}" if product % 2 else f"{url}#p{product}"
        found += [
            (subject, TYPE, f"{_SCHEMA}Product", "", ""),
            (subject, f"{_SCHEMA}name", f"Product {product} of page {number}", STRING, ""),
            (subject, f"{_SCHEMA}url", f"http://shop.example/p/{number}/{product}", "", ""),
            (subject, f"{_SCHEMA}price", str((number + product) % 100), STRING, ""),
            (
                subject,
                f"{_SCHEMA}description",
                f"What is to be said of product {product}, number {number}",
                STRING,
                "en",
            ),
        ]
    return tuple(found)


def _visit(number: int) -> Visit:
    url = f"http://shop.example/list/{number}.html"
    visit = Visit(Task(url, "shop.example"), Response(Outcome.OK), mime="text/html", triples=_triples(url, number))
    return msgspec.structs.replace(visit, id=f"69a42f80c1d2e3f4a5b6-{number + 1}")


async def _write(directory: Path, pages: int) -> None:
    log = TableLog(TableLogSheet(directory=str(directory), tables=("pages", "triples"), log=False, sha256=False))
    for start in range(0, pages, _GROUP):
        visits = [_visit(number) for number in range(start, min(start + _GROUP, pages))]
        log.append(visits, [None] * len(visits))
    log.committed(log.ends())
    await log.stop()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _loaded(place: Path, pages: int) -> float:
    """Microseconds of CPU a triple in which the library's bulk loader takes as many graphs, in one batch."""
    graphs = (PageGraph(visit.url, visit.id, list(visit.triples)) for visit in map(_visit, range(pages)))
    text = "".join(line for graph in graphs for line in lines(graph.triples, f"<{graph.iri}> ")).encode()
    store = oxigraph.Store(str(place))
    cpu = _cpu()
    store.bulk_load(text, format=oxigraph.RdfFormat.N_QUADS)
    return (_cpu() - cpu) / (pages * _PRODUCTS * 5) * 1e6


async def _asked(copy: Path, query: str) -> int:
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    await ask(copy, SparqlQuestion(query, "tsv"), QuestionLimits(), take)
    return b"".join(pieces).count(b"\n") - 1


def _stored(report: BenchReport, pages: int = STORED) -> None:
    """Feed a store, ask it, and add the tables to a report."""
    with scratch() as folder:
        directory = Path(folder, "crawl")
        directory.mkdir()
        asyncio.run(_write(directory, pages))
        triples = pages * _PRODUCTS * 5
        cpu, began = _cpu(), time.monotonic()
        with TripleStore(directory) as store:
            feed_all(directory, feeds_of(directory, store.consumers()))
        cpu, seconds = _cpu() - cpu, time.monotonic() - began
        size = sum(path.stat().st_size for path in (directory / "triples").rglob("*") if path.is_file())
        alone = _loaded(Path(folder, "alone"), min(pages, _ALONE))
        table = report.table(
            "The store takes the rows of a log",
            *("triples", "CPU us a triple", "of them pyoxigraph's bulk loader", "triples/s", "bytes a triple"),
        )
        table.add(
            *(f"{triples:,}", f"{cpu / triples * 1e6:.1f}", f"{alone:.1f}"),
            *(f"{triples / seconds:,.0f}", f"{size / triples:.0f}"),
        )
        began = time.monotonic()
        with current_copy(directory, 60.0) as copy:
            table = report.table(f"Questions to a store of {triples:,} triples", "question", "solutions", "ms")
            table.add("a copy of the store", "", f"{(time.monotonic() - began) * 1000:,.0f}")
            for name, query in _QUESTIONS.items():
                began = time.monotonic()
                solutions = asyncio.run(_asked(copy, query))
                table.add(name, f"{solutions:,}", f"{(time.monotonic() - began) * 1000:,.0f}")


#: Pages of each kind that are read; a figure is the median.
PAGES = 400

_PROSE = (
    '<div class="section"><p>Some documentation, with <a class="reference" href="/library/os.html#os.open">links</a> and words '
    "about properties and types of things.</p></div>\n"
)
_NAVIGATION = '<ul class="nav">' + "<li><a href=/x>y</a></li>" * 30 + "</ul>"
_RDFA = "".join(
    f'<div class="card" vocab="http://schema.org/" typeof="Product" resource="#p{number}"><h2 property="name">Name {number}</h2>'
    f'<a property="url" href="/p/{number}">go</a><p><span property="price" content="{number}">EUR {number}</span> <b>bold</b></p>'
    '<p property="description">Text <i>of</i> it</p></div>'
    for number in range(10)
)
_JSON_LD = (
    '<script type="application/ld+json">{"@context": "https://schema.org/", "@type": "Product", "@id": "#p", "name": "Widget", '
    '"image": ["/a.jpg", "/b.jpg"], "description": "A very good widget", "sku": "0446310786", "mpn": "925872", '
    '"brand": {"@type": "Brand", "name": "ACME"}, "review": {"@type": "Review", "author": {"@type": "Person", "name": "Fred"}, '
    '"reviewRating": {"@type": "Rating", "ratingValue": "4", "bestRating": "5"}}, '
    '"aggregateRating": {"@type": "AggregateRating", "ratingValue": "4.4", "reviewCount": "89"}, '
    '"offers": {"@type": "Offer", "url": "/anvil", "priceCurrency": "USD", "price": "119.99", "priceValidUntil": "2020-11-20", '
    '"itemCondition": "https://schema.org/UsedCondition", "availability": "https://schema.org/InStock"}}</script>'
)
_MICRODATA = (
    '<div itemscope itemtype="http://schema.org/Product" itemid="#p"><h1 itemprop=name>Widget</h1><img itemprop=image src=/a.jpg>'
    "<p itemprop=description>A very good widget</p><meta itemprop=sku content=0446310786>"
    "<div itemprop=brand itemscope itemtype=http://schema.org/Brand><b itemprop=name>ACME</b></div>"
    "<div itemprop=aggregateRating itemscope itemtype=http://schema.org/AggregateRating><b itemprop=ratingValue>4.4</b>"
    "<b itemprop=reviewCount>89</b></div><div itemprop=offers itemscope itemtype=http://schema.org/Offer>"
    "<a itemprop=url href=/anvil>x</a><b itemprop=price content=119.99>119</b><b itemprop=priceCurrency>USD</b>"
    "<link itemprop=availability href=http://schema.org/InStock></div></div>"
)
_OPENGRAPH = "".join(
    f'<meta property="og:{name}" content="Some value of this">'
    for name in ["title", "type", "url", "image", "description", "site_name"]
)

#: Kind of page -> what stands in its head, and in its body.
KINDS = {
    "RDFa, 50 triples": ("", _NAVIGATION + _RDFA + "<p>text</p>" * 30),
    "JSON-LD, a product": (_JSON_LD, _PROSE * 20),
    "microdata, a product": ("", _PROSE * 20 + _MICRODATA),
    "OpenGraph in the head, 4 kB": (_OPENGRAPH, _PROSE * 20),
    "OpenGraph in the head, 33 kB": (_OPENGRAPH, _PROSE * 180),
    "nothing, 4 kB": ("", _PROSE * 20),
    "nothing, 33 kB": ("", _PROSE * 180),
}


def _page(head: str, body: str) -> str:
    return f"<!doctype html><html><head><title>t</title>{head}</head><body>{body}</body></html>"


def _document(head: str, body: str) -> Document:
    page = _page(head, body).encode()
    response = Response(Outcome.OK, headers=(("content-type", "text/html; charset=utf-8"),), body=page)
    document = Document(Visit(Task("http://a.example/p", "a.example"), response, mime="text/html"))
    for known in ("skim", "base", "trouble"):  # a crawl has them anyway
        getattr(document, known)
    return document


def _microseconds(kind: str, ask: Callable[[Document], object]) -> str:
    documents = [_document(*KINDS[kind]) for _ in range(PAGES)]
    times: list[int] = []
    gc.collect()
    gc.disable()
    try:
        for document in documents:
            began = time.thread_time_ns()
            ask(document)
            times.append(time.thread_time_ns() - began)
    finally:
        gc.enable()
    return f"{sorted(times)[PAGES // 2] / 1000:,.0f}"


#: Peer -> what it needs, and which pages it reads, by what it calls them.
_PEERS = {
    "pyRdfa3": (("pyRdfa3", "html5lib", "rdflib<7"), {"RDFa, 50 triples": "rdfa"}),
    "extruct": (
        ("extruct",),
        {"RDFa, 50 triples": "rdfa", "JSON-LD, a product": "json-ld", "microdata, a product": "microdata"},
    ),
}


def _add_peers(report: BenchReport) -> None:
    """The same pages, read by others in environments of their own; a peer that cannot be set up is named."""
    table = report.table("The same pages by peers", "peer", "page", "found", "CPU ms")
    for name, (packages, kinds) in _PEERS.items():
        try:
            python = environment(f"structured-{name}", *packages)
        except UsageError as error:
            table.add(name, str(error), "", "")
            continue
        script = str(Path(__file__).with_name("structured_peer.py"))
        for kind, syntax in kinds.items():
            command = [str(python), "-I", script, name, syntax]
            done = subprocess.run(command, input=_page(*KINDS[kind]), check=False, capture_output=True, text=True)
            if done.returncode:
                table.add(name, kind, done.stderr.strip().rpartition("\n")[2], "")
                continue
            figures = msgspec.json.decode(done.stdout)
            table.add(name, kind, figures["found"], f"{figures['ms']:.1f}")


@pages_option(STORED, "Let the store take this many pages of 50 triples.")
def run(pages: int = STORED) -> BenchReport:
    """Measure each kind of page, the same by peers, and the store."""
    report = BenchReport("structured-data")
    table = report.table(
        f"CPU time of a page, median of {PAGES}; the tree is built within it where one is needed",
        *("page", "bytes", "triples", "sign us", "all us"),
    )
    for kind, parts in KINDS.items():
        document = _document(*parts)
        found = structured_data(document)
        table.add(
            kind,
            f"{len(document.content):,}",
            len(found.triples),
            _microseconds(kind, sign_of),
            _microseconds(kind, structured_data),
        )
    _add_peers(report)
    _stored(report, pages)
    return report
