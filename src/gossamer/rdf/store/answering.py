"""`python -m gossamer.rdf.store.answering STORE`: answers one question, in a process that can be killed.

Place in the flow: :mod:`asking` starts it on a copy of a store, writes the :class:`~questions.SparqlQuestion` to its standard
input, and reads the answer from its standard output. What is wrong with the question is one line on standard error, and status 2.
"""

import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

import msgspec
import pyoxigraph as oxigraph

from gossamer.engine.process_limits import limit
from gossamer.query.printing import write_csv, write_table
from gossamer.rdf.store.graphs import write_graph
from gossamer.rdf.store.questions import GRAPHS, ROWS, CleanText, SparqlQuestion, asks_elsewhere, form_for, prefixes

#: Status of a process that gave up for want of memory; Rust's abort and a kill by the system have others.
NO_MEMORY = 9

_RESULTS = {
    "tsv": oxigraph.QueryResultsFormat.TSV,
    "json": oxigraph.QueryResultsFormat.JSON,
    "xml": oxigraph.QueryResultsFormat.XML,
}


class BadQuestion(ValueError):
    """It cannot be answered. The text says why, in one line."""


def answer(store: oxigraph.Store, question: SparqlQuestion, out: TextIO) -> None:
    """Write the name of a form, the end of a line, and the answer to a question in that form.

    Raises:
        BadQuestion: it is no SPARQL query, or its answer has not the form that was wished for.
        OSError: the store cannot be read, or the answer not be written.
    """
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
    out.write(f"{form}\n")
    if isinstance(found, oxigraph.QueryTriples):
        # What a query constructs is in no graph.
        write_graph((oxigraph.Quad(*triple) for triple in found), form, out)
    elif form in _RESULTS:
        clean = CleanText(out, form)
        found.serialize(output=clean.stream, format=_RESULTS[form])
        clean.finish()
    else:
        _rows(found, form, question.raw, out)


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


def main(arguments: list[str], open_store: Callable[[str], oxigraph.Store] = oxigraph.Store.read_only) -> int:
    """Answer the question on standard input; 0, 2 where it cannot be answered, 5 where the store cannot be read."""
    place, memory, seconds = arguments
    os.nice(5)
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=SparqlQuestion)
    limit(int(memory), int(seconds))
    try:
        answer(open_store(place), question, sys.stdout)
        sys.stdout.flush()
    except BadQuestion as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except BrokenPipeError:
        return 0
    except MemoryError:
        return NO_MEMORY
    except (OSError, RuntimeError) as error:  # the library raises a RuntimeError where files of the store are damaged
        sys.stderr.write(f"{' '.join(str(error).split())[:300]}\n")
        return 5
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    # Leave at once: threads of the store must not have a say in how long that takes.
    sys.stderr.flush()
    os._exit(status)
