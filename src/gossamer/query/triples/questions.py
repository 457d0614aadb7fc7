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


class Question(msgspec.Struct, frozen=True):
    """A question as it goes to the process that answers it."""

    query: str
    form: str = ""
    """One of :data:`ROWS` and :data:`GRAPHS`; empty for `table`, or `turtle`, by what the query asks for."""
    raw: bool = False
    """CSV without an apostrophe before what a spreadsheet takes for a formula."""
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


def form_for(form: str, is_graph: bool) -> str | None:
    """The form of an answer, or None where what was wished for does not fit it."""
    if not form:
        return GRAPHS[0] if is_graph else ROWS[0]
    return form if form in (GRAPHS if is_graph else ROWS) else None
