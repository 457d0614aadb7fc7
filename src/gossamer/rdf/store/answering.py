"""Answers to questions in SPARQL, each in a process that can be killed.

Place in the flow: :mod:`asking` has a worker (:mod:`gossamer.engine.workers`) answer each question to a copy of a store.
"""

import io
from collections.abc import Iterator
from typing import Any, TextIO

import msgspec
import pyoxigraph as oxigraph

from gossamer.engine.worker import Caller
from gossamer.query.printing import write_csv, write_table
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.questions import GRAPHS, ROWS, CleanText, SparqlQuestion, asks_elsewhere, form_for, prefixes
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Bytes of an answer that are sent at once.
_PIECE = 1 << 16

_RESULTS = {
    "tsv": oxigraph.QueryResultsFormat.TSV,
    "json": oxigraph.QueryResultsFormat.JSON,
    "xml": oxigraph.QueryResultsFormat.XML,
}


class StoreQuestion(msgspec.Struct, frozen=True):
    """A question, and the copy of a store that it is put to."""

    store: str
    """Its folder."""
    question: SparqlQuestion


class BadQuestion(UsageError):
    """It cannot be answered. The text says why, in one line."""


def answer_sparql(asked: StoreQuestion, caller: Caller) -> None:
    """Send the name of a form, and then the answer in that form. Raises BadQuestion: it is no SPARQL query, or its answer has
    not the form that was wished for. Raises CrawlDirectoryError: the store cannot be read."""
    try:
        _answer(oxigraph.Store.read_only(asked.store), asked.question, caller)
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
        raise BadQuestion("SERVICE would ask another server; a query reads the triples of this crawl alone")
    try:
        found = store.query(
            question.query,
            prefixes=prefixes(),
            use_default_graph_as_union=not question.default_graphs,
            default_graph=[oxigraph.NamedNode(iri) for iri in question.default_graphs] or None,
            named_graphs=[oxigraph.NamedNode(iri) for iri in question.named_graphs] or None,
        )
    except (SyntaxError, ValueError) as error:
        raise BadQuestion(_one_line(error)) from None
    is_graph = isinstance(found, oxigraph.QueryTriples)
    form = form_for(question, is_graph)
    if form is None:
        kind, forms = ("a graph", GRAPHS) if is_graph else ("rows", ROWS)
        raise BadQuestion(
            f"the answer is {kind}, and {question.form or question.graph_form} cannot hold it; choose {', '.join(forms)}"
        )
    caller.send(form.encode())
    out = io.TextIOWrapper(io.BufferedWriter(_Parts(caller), _PIECE), encoding="utf-8", newline="")
    if isinstance(found, oxigraph.QueryTriples):
        # What a query constructs is in no graph.
        write_graph((oxigraph.Quad(*triple) for triple in found), form, out)
    elif form in _RESULTS:
        clean = CleanText(out, form)
        found.serialize(output=clean.stream, format=_RESULTS[form])
        clean.finish()
    else:
        _rows(found, form, question.raw, out)
    out.flush()


def _rows(found: oxigraph.QuerySolutions | oxigraph.QueryBoolean, form: str, raw: bool, out: TextIO) -> None:
    if isinstance(found, oxigraph.QueryBoolean):
        columns, rows = ["answer"], _truth(found)
    else:
        columns, rows = [variable.value for variable in found.variables], _cells(found)
    if form == "csv":
        write_csv(columns, rows, out, raw=raw)
    else:
        write_table(columns, rows, out)


def _truth(found: oxigraph.QueryBoolean) -> Iterator[tuple[str | None, ...]]:
    yield ("true" if found else "false",)


def _cells(found: oxigraph.QuerySolutions) -> Iterator[tuple[str | None, ...]]:
    for solution in found:
        yield tuple(None if term is None else str(term) if _is_node(term) else term.value for term in solution)


def _is_node(term: object) -> bool:
    return isinstance(term, oxigraph.BlankNode | oxigraph.Triple)


def _one_line(error: Exception) -> str:
    """What the parser says, without the lists of characters that it would have taken."""
    text = " ".join(str(error).split())
    if "Prefix not found" in text:
        text = f"{text.partition(': expected')[0]}: this prefix is not declared"
    return f"this is not a SPARQL query:  {text[:300]}"
