"""What can be asked, and in which form it is answered: pure code that command, server and the process that answers share."""

import re

import msgspec

from gossamer.rdf.initial import PREFIXES

#: Forms of an answer that has rows, or is true or false; and of one that is a graph.
ROWS = ("table", "csv", "tsv", "json", "xml")
GRAPHS = ("turtle", "nquads", "jsonld", "rdfxml")

# What hides words from a reader of SPARQL: texts, IRIs, comments, escaped characters, variables, prefixed and tagged names.
_HIDES = re.compile(
    r"""'''(?:(?:''?)?(?:[^'\\]|\\.))*'''|\"\"\"(?:(?:""?)?(?:[^"\\]|\\.))*\"\"\""""
    r"""|'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*\""""
    r"""|<[^<>"{}|^`\\\x00-\x20]*>|\#[^\n\r]*|\\.|[?$@]\w+|[\w-]*:[\w-]*"""
    r"""|(?P<service>\bSERVICE\b)""",
    re.IGNORECASE | re.DOTALL,
)


class SparqlQuestion(msgspec.Struct, frozen=True):
    """A question as it goes to the process that answers it."""

    query: str
    form: str = ""
    """How rows are answered, or true or false: one of :data:`ROWS`."""
    graph_form: str = ""
    """How a graph is answered: one of :data:`GRAPHS`. With one of the two alone, an answer of the other kind is refused."""
    raw: bool = False
    """Write CSV without an apostrophe before cells that a spreadsheet would run as a formula."""
    default_graphs: tuple[str, ...] = ()
    """IRIs of graphs that make up the default graph, which is all of them otherwise."""
    named_graphs: tuple[str, ...] = ()
    """IRIs of graphs that `GRAPH` can name, which are all of them otherwise."""


def asks_elsewhere(query: str) -> bool:
    """Whether a query has the word SERVICE, by which a store would ask another server."""
    return any(match["service"] for match in _HIDES.finditer(query))


def prefixes() -> dict[str, str]:
    """The prefixes that a query can use without saying what they stand for: those of RDFa."""
    return {name: iri for name, iri in PREFIXES.items() if name.isidentifier()}


def form_for(question: SparqlQuestion, is_graph: bool) -> str | None:
    """The form of an answer; `table` or `turtle` unless told, and None where what was wished for does not fit it."""
    if not (question.form or question.graph_form):
        return GRAPHS[0] if is_graph else ROWS[0]
    return (question.graph_form if is_graph else question.form) or None


def question_in(form: str, query: str, *, raw: bool = False) -> SparqlQuestion:
    """A question that a person wants answered in one form; in that which fits, where it is empty."""
    return SparqlQuestion(query, graph_form=form) if form in GRAPHS else SparqlQuestion(query, form, raw=raw)
