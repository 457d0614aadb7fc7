"""The cost of questions to a large crawl, and of finding and keeping structured data.

*questions*: SQL over links, reports and PageRank, over tables that no crawl made. Tables of pages and links are made as large as
wanted. Rows are drawn by hashes of their numbers, so that every machine asks the same: hosts of unequal size, links that favour the
first pages of a host, a share of dead ends. Columns that no question here reads are left out.

*structured-data*: finding it in a page, or finding that it has none, in CPU time a page, skimmed before as in a crawl; and the
triple store. Pages are made here: a list of ten products in RDFa (50 triples), one product in JSON-LD and one in microdata among
prose, OpenGraph in the head alone, and prose. The store takes the rows of a crawl's log, of pages of 50 triples, as ten products
each: the work of the process that follows a crawl is measured, reading the log included; and a question from the copy of the store
to the last row, with the process that answers it.
"""

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pyoxigraph as oxigraph

from gossamer.bench.harness import BenchReport, Spent, pages_option
from gossamer.documents.document import Document
from gossamer.engine.files import scratch
from gossamer.query.database import Database
from gossamer.query.engine import ParquetWriter
from gossamer.query.following import feed_all, feeds_of
from gossamer.query.ranking import rank_crawl
from gossamer.query.reports import SPECS, make_report
from gossamer.rdf.page import sign_of, structured_data
from gossamer.rdf.store.asking import QuestionLimits, ask, current_copy
from gossamer.rdf.store.graphs import PageGraph, lines
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.rdf.store.store import TripleStore
from gossamer.rdf.terms import STRING, TYPE
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.storage.tables.places import CRAWL_FILE, TABLES
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Triple, Visit

#: Hosts of the made crawl, and how many pages lie in one Parquet file, as the converter's 32 MB of rows hold about that many.
HOSTS, PAGES_OF_A_FILE = 5_000, 100_000

#: The URL of the page of a number. A host's share of the pages falls with its own number, as on the web.
_URL = (
    "format('https://www.site-{{}}.example/section-{{}}/page-{{}}.html', "
    f"(hash({{n}}) % {HOSTS} * (hash({{n}} + 7) % 1000) // 1000)::INTEGER, ({{n}} % 97)::INTEGER, {{n}})"
)


def url_of(number: str) -> str:
    """SQL of the URL of a page, from SQL of its number."""
    return _URL.format(n=f"({number})")


def make_tables(directory: Path, pages: int, links: int) -> None:
    """Write `pages` and `links` of a crawl into an empty directory.

    Args:
        directory: becomes a crawl directory.
        pages: how many; every fiftieth is a dead link, every hundredth a redirect.
        links: how many, in all.
    """
    (directory / CRAWL_FILE).touch()
    outcome = "CASE WHEN n % 50 = 49 THEN 'client_error' WHEN n % 100 = 50 THEN 'redirect' ELSE 'ok' END"
    chance = "(hash(n, k) % 1000003) / 1000003.0"
    target = f"({chance} * {chance} * {pages})::BIGINT"
    with ParquetWriter() as writer:
        for start in range(0, pages, PAGES_OF_A_FILE):
            numbers = f"range({start}, {min(pages, start + PAGES_OF_A_FILE)}) t(n)"
            name = f"agent-00-20260301120000-{start:08x}-000001.parquet"
            visit = f"format('{start:08x}-{{:012d}}', n) AS visit"
            of_pages = f"""
            SELECT url, split_part(url, '/', 3) AS host, split_part(url, '/', 3)[5:] AS domain, outcome,
                   CASE outcome WHEN 'ok' THEN 200 WHEN 'redirect' THEN 301 ELSE 404 END::INTEGER AS status,
                   'text/html' AS mime, 'text/html' AS media_type, 'Page ' || n AS title, 'en' AS language, 3::INTEGER AS depth,
                   TIMESTAMP '2026-03-01 12:00:00' + INTERVAL 1 SECOND * n AS fetched_at, (hash(n) % 900)::DOUBLE AS elapsed_ms,
                   30000 + n % 1000 AS bytes, 1::INTEGER AS attempt, 'a href' AS relation, {visit}
            FROM (SELECT n, {url_of("n")} AS url, {outcome} AS outcome FROM {numbers})
            """
            of_links = f"""
            SELECT *, split_part(source, '/', 3) AS source_host, split_part(target, '/', 3) AS target_host
            FROM (SELECT {url_of("n")} AS source, {url_of(target)} AS target,
                   CASE WHEN k = 0 AND n % 100 = 50 THEN 'redirect' ELSE 'a href' END AS relation,
                   'a link ' || k AS anchor, k % 20 = 19 AS nofollow, {visit}
                  FROM {numbers}, range({max(1, links // pages)}) u(k) ORDER BY n, k)
            """
            writer.write(of_pages, directory / TABLES / "pages" / name)
            writer.write(of_links, directory / TABLES / "links" / name)


#: Pages and links of the crawl.
PAGES, LINKS = 1_000_000, 10_000_000

REPEATS = 3

#: Rows of a section, as a terminal shows them.
_ROWS = 20

#: Questions in SQL.
SQL = {
    "links by host": "SELECT source_host, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    "links by the host that they lead to": "SELECT target_host, count(*) FROM links GROUP BY 1 ORDER BY 2 DESC LIMIT 20",
    "pages by outcome": "SELECT outcome, count(*) FROM pages GROUP BY 1",
}


def _least(ask: Callable[[], object]) -> tuple[str, str]:
    """Least seconds and least processor seconds of some runs."""
    runs = [Spent() for _ in range(REPEATS)]
    for run in runs:
        with run:
            ask()
    return f"{min(run.wall for run in runs):.2f}", f"{min(run.cpu for run in runs):.2f}"


@pages_option(PAGES, "Make tables of this many pages.")
def run(pages: int = PAGES) -> BenchReport:
    """Make the tables, and ask."""
    report = BenchReport("questions")
    links = pages * (LINKS // PAGES)
    with tempfile.TemporaryDirectory(prefix="gossamer-bench-") as folder:
        directory = Path(folder)
        make_tables(directory, pages, links)
        table = report.table(f"{pages:,} pages, {links:,} links", "question", "seconds", "of CPU")
        for name, sql in SQL.items():
            with Database(directory) as database:
                database.ask("SELECT 1 FROM pages LIMIT 1")
                table.add(name, *_least(lambda sql=sql: list(database.ask(sql))))  # type: ignore[misc]
        for name in SPECS:

            def reported(name: str = name) -> None:
                with Database(directory) as database:
                    make_report(database, SPECS[name], _ROWS)

            table.add(f"report {name}", *_least(reported))
        table.add("rank: PageRank, and its tables", *_least(partial(rank_crawl, directory)))
    return report


#: Pages of the log: 200,000 triples.
STORED = 4_000

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


def _visit(number: int) -> Visit:
    url, found = f"http://shop.example/list/{number}.html", list[Triple]()
    for product in range(_PRODUCTS):
        subject = f"_:b{product}" if product % 2 else f"{url}#p{product}"
        said = f"What is to be said of product {product}, number {number}"
        found += [
            (subject, TYPE, f"{_SCHEMA}Product", "", ""),
            (subject, f"{_SCHEMA}name", f"Product {product} of page {number}", STRING, ""),
            (subject, f"{_SCHEMA}url", f"http://shop.example/p/{number}/{product}", "", ""),
            (subject, f"{_SCHEMA}price", str((number + product) % 100), STRING, ""),
            (subject, f"{_SCHEMA}description", said, STRING, "en"),
        ]
    visit = Visit(Task(url, "shop.example"), Response(Outcome.OK), mime="text/html", triples=tuple(found))
    return msgspec.structs.replace(visit, id=f"69a42f80c1d2e3f4a5b6-{number + 1}")


async def _write(directory: Path, pages: int) -> None:
    log = TableLog(TableLogSheet(directory=str(directory), tables=("pages", "triples"), log=False, sha256=False))
    for start in range(0, pages, _GROUP):
        visits = [_visit(number) for number in range(start, min(start + _GROUP, pages))]
        log.append(visits, [None] * len(visits))
    log.committed(log.ends())
    await log.stop()


async def _solved(copy: Path, query: str) -> int:
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    await ask(copy, SparqlQuestion(query, "tsv"), QuestionLimits(), take)
    return b"".join(pieces).count(b"\n") - 1


def _stored(report: BenchReport, pages: int) -> None:
    """Feed a store, ask it, and add the tables to a report."""
    with scratch() as folder:
        directory = Path(folder, "crawl")
        directory.mkdir()
        asyncio.run(_write(directory, pages))
        triples = pages * _PRODUCTS * 5
        with Spent() as spent, TripleStore(directory) as store:
            feed_all(directory, feeds_of(directory, store.consumers()))
        size = sum(path.stat().st_size for path in (directory / "triples").rglob("*") if path.is_file())
        # The library's bulk loader takes as many graphs, in one batch.
        graphs = (PageGraph(visit.url, visit.id, list(visit.triples)) for visit in map(_visit, range(pages)))
        text = "".join(line for graph in graphs for line in lines(graph.triples, f"<{graph.iri}> ")).encode()
        bare = oxigraph.Store(str(Path(folder, "alone")))
        with Spent() as alone:
            bare.bulk_load(text, format=oxigraph.RdfFormat.N_QUADS)
        table = report.table(
            "The store takes the rows of a log",
            *("triples", "CPU us a triple", "of them pyoxigraph's bulk loader", "triples/s", "bytes a triple"),
        )
        table.add(
            *(f"{triples:,}", f"{spent.cpu / triples * 1e6:.1f}", f"{alone.cpu / triples * 1e6:.1f}"),
            *(f"{triples / spent.wall:,.0f}", f"{size / triples:.0f}"),
        )
        began = time.monotonic()
        with current_copy(directory, 60.0) as copy:
            table = report.table(f"Questions to a store of {triples:,} triples", "question", "solutions", "ms")
            table.add("a copy of the store", "", f"{(time.monotonic() - began) * 1000:,.0f}")
            for name, query in _QUESTIONS.items():
                began = time.monotonic()
                solutions = asyncio.run(_solved(copy, query))
                table.add(name, f"{solutions:,}", f"{(time.monotonic() - began) * 1000:,.0f}")


#: Pages of each kind that are read; a figure is the median.
READ = 400

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
PAGE_KINDS = {
    "RDFa, 50 triples": ("", _NAVIGATION + _RDFA + "<p>text</p>" * 30),
    "JSON-LD, a product": (_JSON_LD, _PROSE * 20),
    "microdata, a product": ("", _PROSE * 20 + _MICRODATA),
    "OpenGraph in the head, 4 kB": (_OPENGRAPH, _PROSE * 20),
    "OpenGraph in the head, 33 kB": (_OPENGRAPH, _PROSE * 180),
    "nothing, 4 kB": ("", _PROSE * 20),
    "nothing, 33 kB": ("", _PROSE * 180),
}


def _document(head: str, body: str) -> Document:
    page = f"<!doctype html><html><head><title>t</title>{head}</head><body>{body}</body></html>".encode()
    response = Response(Outcome.OK, headers=(("content-type", "text/html; charset=utf-8"),), body=page)
    document = Document(Visit(Task("http://a.example/p", "a.example"), response, mime="text/html"))
    for known in ("skim", "base", "trouble"):  # a crawl has them anyway
        getattr(document, known)
    return document


def _microseconds(kind: str, ask: Callable[[Document], object]) -> str:
    documents = [_document(*PAGE_KINDS[kind]) for _ in range(READ)]
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
    return f"{sorted(times)[READ // 2] / 1000:,.0f}"


@pages_option(STORED, "Let the store take this many pages of 50 triples.")
def about_structured_data(pages: int = STORED) -> BenchReport:
    """Measure each kind of page, and the store."""
    report = BenchReport("structured-data")
    table = report.table(
        f"CPU time of a page, median of {READ}; the tree is built within it where one is needed",
        *("page", "bytes", "triples", "sign us", "all us"),
    )
    for kind, parts in PAGE_KINDS.items():
        document = _document(*parts)
        figures = f"{len(document.content):,}", len(structured_data(document).triples)
        table.add(kind, *figures, _microseconds(kind, sign_of), _microseconds(kind, structured_data))
    _stored(report, pages)
    return report
