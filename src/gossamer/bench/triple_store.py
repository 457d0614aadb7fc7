"""What the triple store costs: CPU time and pace of taking the rows of a crawl's log, and the time of questions to it.

The log is made here: pages of 50 triples, as ten products each. What is measured is the work of the process that follows a crawl,
reading the log included; and a question from the copy of the store to the last row, with the process that answers it.
"""

import asyncio
import resource
import time
from pathlib import Path

import msgspec
import pyoxigraph as oxigraph

from gossamer.bench.report import BenchReport
from gossamer.engine.files import scratch
from gossamer.query.following import feed_all, feeds_of
from gossamer.rdf.store.asking import QuestionLimits, ask, current_copy
from gossamer.rdf.store.graphs import PageGraph, lines
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.rdf.store.store import TripleStore
from gossamer.rdf.terms import STRING, TYPE
from gossamer.storage.tables.log import TableLog, TableLogSheet
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response, Triple, Visit

#: Pages of the log: 200,000 triples.
PAGES = 4_000

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


def measure(report: BenchReport, pages: int = PAGES) -> None:
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
