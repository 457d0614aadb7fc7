"""Questions in SPARQL to a copy of a triple store, each answered in a process of its own with limits of time and memory.

Place in the flow: `gossamer sparql` and :mod:`serving` ask here, and a worker (:mod:`gossamer.engine.workers`) that can be killed
runs :func:`answer_sparql`. The dashboard has one call :func:`answer_triples`: it brings the store up to date and copies it, as
`gossamer sparql` does, and ends when there is enough to show.
"""

import asyncio
import contextlib
import io
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import msgspec
import pyoxigraph as oxigraph

from gossamer.engine.sheet import show_bytes, show_seconds
from gossamer.engine.worker import Caller, Use
from gossamer.engine.workers import WorkerFailed, working
from gossamer.query.contract import TripleAnswer, TripleQuestion, check_triples
from gossamer.query.following import feed_all, feeds_of
from gossamer.query.printing import write_csv, write_table
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.questions import GRAPHS, ROWS, CleanText, SparqlQuestion, asks_elsewhere, form_for, prefixes
from gossamer.rdf.store.store import TripleStore, snapshot
from gossamer.storage.tables.places import TRIPLES
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError


@contextlib.contextmanager
def current_copy(directory: Path, patience: float) -> Iterator[Path]:
    """A copy of the store with all that the crawl has committed, for commands and the server; the process of a running crawl
    has so many seconds. A deleted store is made again. Raises UsageError: the crawl keeps no triples. Raises
    CrawlDirectoryError: the store is of another version, damaged or in use, or the directory cannot be read or written."""
    check_triples(directory)

    def feed(store: TripleStore) -> None:
        feed_all(directory, feeds_of(directory, store.consumers()))
        store.open()

    with contextlib.ExitStack() as stack:
        try:
            copy = stack.enter_context(snapshot(directory, feed, patience))
        except OSError as error:
            what = error.filename or directory / TRIPLES
            raise CrawlDirectoryError(f"{what}: {error.strerror or error}; the triples cannot be copied") from None
        yield copy


class QuestionLimits(msgspec.Struct, frozen=True):
    seconds: float = 60.0
    memory: int = 1 << 30
    """Bytes."""


class TooMuch(GossamerError):
    """A question wanted more time or memory than it may have."""

    exit_code = 4


Take = Callable[[bytes], Awaitable[None]]
Begin = Callable[[str], Awaitable[None]]


async def ask(
    store: Path, question: SparqlQuestion, limits: QuestionLimits, take: Take, begin: Begin | None = None
) -> None:
    """Have a question answered by a copy of a store, which is not written to, within limits. `take` gets the answer, piece by
    piece; `begin` is told the form of the answer before its first piece. Raises UsageError: the question cannot be answered; says
    why. Raises TooMuch: it wanted more than it may have. Raises CrawlDirectoryError: the store cannot be read."""
    use = Use(
        "gossamer.rdf.store.asking:answer_sparql", niceness=5, memory=limits.memory, seconds=int(limits.seconds) + 2
    )
    try:
        async with asyncio.timeout(limits.seconds), working(use) as worker:
            await worker.put(msgspec.structs.replace(question, store=str(store)))
            form = (await worker.part() or b"").decode()
            if begin is not None:
                await begin(form)
            while piece := await worker.part():
                await take(piece)
    except TimeoutError:
        raise _late(limits) from None
    except WorkerFailed as failed:
        if failed.reason == "time":
            raise _late(limits) from None
        if failed.reason == "memory":
            raise TooMuch(
                f"the answer wants more than {show_bytes(limits.memory)} of memory; ask for less, or allow more"
            ) from None
        if failed.exit_code == UsageError.exit_code:
            raise UsageError(str(failed)) from None
        raise CrawlDirectoryError(str(failed)) from None


def _late(limits: QuestionLimits) -> TooMuch:
    return TooMuch(f"the query got no answer within {show_seconds(limits.seconds)}; ask for less, or give it more time")


#: Bytes of an answer that are read, characters of a cell that are shown, and characters of a graph.
ANSWER, CELL, GRAPH = 4_000_000, 2_000, 200_000

#: Seconds of the time of an answer that are left for the end of the process that is asked, and for what is removed then.
_LAST = 1.0


class Enough(Exception):
    """The result that is shown has been read."""


class ShownAnswer:
    """Takes an answer until there is enough of it to be shown."""

    def __init__(self, rows: int) -> None:
        self.form = ""
        self.is_more = False
        self._rows = rows
        self._data = bytearray()
        self._lines = 0

    async def begin(self, form: str) -> None:
        self.form = form

    async def take(self, piece: bytes) -> None:
        self._data += piece
        self._lines += piece.count(b"\n")
        # The first line names the columns, and the one behind the last that is shown says that there are more.
        if len(self._data) > ANSWER or (self.form == "tsv" and self._lines > self._rows + 1):
            self.is_more = True
            raise Enough

    def answer(self) -> TripleAnswer:
        text = self._data.decode("utf-8", "replace")
        if self.form != "tsv":
            return TripleAnswer([], [], text[:GRAPH], self.is_more or len(text) > GRAPH)
        whole = text[: text.rfind("\n") + 1] if self.is_more else text
        head, *lines = whole.removesuffix("\n").split("\n")
        if not head.startswith("?"):  # ASK is answered with one word
            head, lines = "?answer", [head]
        rows = [[cell[:CELL] for cell in line.split("\t")] for line in lines[: self._rows]]
        return TripleAnswer([name.removeprefix("?") for name in head.split("\t")], rows, "", self.is_more)


def answer_triples(question: TripleQuestion, caller: Caller) -> bytes:
    """A :class:`~gossamer.query.contract.TripleAnswer` as JSON. Raises as :func:`answer`."""
    return msgspec.json.encode(answer(question))


def answer(question: TripleQuestion) -> TripleAnswer:
    """The answer. Raises GossamerError: it cannot be answered, or wants more than it may have."""
    directory = Path(question.directory)
    ends = time.monotonic() + question.seconds - _LAST
    beginning = ShownAnswer(question.rows)
    with current_copy(directory, question.seconds - _LAST) as copy:
        limits = QuestionLimits(max(ends - time.monotonic(), _LAST), question.memory)
        asked = SparqlQuestion(question.query, "tsv", "turtle")
        try:
            asyncio.run(ask(copy, asked, limits, beginning.take, beginning.begin))
        except Enough:
            pass
        except TooMuch as error:
            text = (
                f"{str(error).partition(';')[0]}; ask for less, or give it more: gossamer sparql {directory} --timeout"
            )
            raise UsageError(text) from None
    return beginning.answer()


#: Bytes of an answer that are sent at once.
_PIECE = 1 << 16

_RESULTS = {
    "tsv": oxigraph.QueryResultsFormat.TSV,
    "json": oxigraph.QueryResultsFormat.JSON,
    "xml": oxigraph.QueryResultsFormat.XML,
}


def answer_sparql(question: SparqlQuestion, caller: Caller) -> None:
    """Send the name of a form, and then the answer in that form. Raises UsageError: it is no SPARQL query, or its answer has
    not the form that was wished for. Raises CrawlDirectoryError: the store cannot be read."""
    try:
        _answer(oxigraph.Store.read_only(question.store), question, caller)
    except (OSError, RuntimeError) as error:  # the library raises a RuntimeError where files of the store are damaged
        raise CrawlDirectoryError(f"the triples cannot be read: {error}") from None


class _Parts(io.RawIOBase):
    """Sends everything that is written into it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._caller.send(bytes(data))
        return len(data)


def _answer(store: oxigraph.Store, question: SparqlQuestion, caller: Caller) -> None:
    if asks_elsewhere(question.query):
        raise UsageError("SERVICE would ask another server; a query reads the triples of this crawl alone")
    try:
        found = store.query(
            question.query,
            prefixes=prefixes(),
            use_default_graph_as_union=not question.default_graphs,
            default_graph=[oxigraph.NamedNode(iri) for iri in question.default_graphs] or None,
            named_graphs=[oxigraph.NamedNode(iri) for iri in question.named_graphs] or None,
        )
    except (SyntaxError, ValueError) as error:
        # The parser lists characters that it would have taken, and these go.
        text = " ".join(str(error).split())
        if "Prefix not found" in text:
            text = f"{text.partition(': expected')[0]}: this prefix is not declared"
        raise UsageError(f"this is not a SPARQL query:  {text[:300]}") from None
    is_graph = isinstance(found, oxigraph.QueryTriples)
    form = form_for(question, is_graph)
    if form is None:
        kind, forms = ("a graph", GRAPHS) if is_graph else ("rows", ROWS)
        raise UsageError(
            f"the answer is {kind}, and {question.form or question.graph_form} cannot hold it; choose {', '.join(forms)}"
        )
    caller.send(form.encode())
    out = io.TextIOWrapper(io.BufferedWriter(_Parts(caller), _PIECE), encoding="utf-8", newline="")
    if isinstance(found, oxigraph.QueryTriples):
        # Triples that a query constructs are in no graph.
        write_graph((oxigraph.Quad(*triple) for triple in found), form, out)
    elif form in _RESULTS:
        clean = CleanText(out, form)
        found.serialize(output=clean.stream, format=_RESULTS[form])
        clean.finish()
    else:
        _rows(found, form, question.raw, out)
    out.flush()


def _rows(found: oxigraph.QuerySolutions | oxigraph.QueryBoolean, form: str, raw: bool, out: TextIO) -> None:
    rows: Iterator[tuple[str | None, ...]]
    if isinstance(found, oxigraph.QueryBoolean):
        columns, rows = ["answer"], iter([("true" if found else "false",)])
    else:
        odd = (oxigraph.BlankNode, oxigraph.Triple)
        columns = [variable.value for variable in found.variables]
        rows = (
            tuple(None if term is None else str(term) if isinstance(term, odd) else term.value for term in solution)
            for solution in found
        )
    if form == "csv":
        write_csv(columns, rows, out, raw=raw)
    else:
        write_table(columns, rows, out)
