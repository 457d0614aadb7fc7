"""Questions in SPARQL and the forms of their answers, made harmless for a terminal and legal in XML."""

import codecs
import json
import re
from typing import IO, TextIO, cast

import msgspec

from gossamer.rdf.terms import PREFIXES

# The text of strangers, made harmless for a terminal and legal in XML on its way out, bit by bit. It means the same afterwards.

_LAYOUT = {ord(character): " " for character in "\n\r\t"}
_HIDDEN = re.compile("[^\n\r\t\x20-\x7e]")

# Characters that XML 1.0 cannot hold, not even by their numbers.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class CleanText:
    """Takes the bytes of one of the forms, and writes them as printable text."""

    def __init__(self, out: TextIO, form: str) -> None:
        self._out = out
        self._is_line_ended = True
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._escape = {"json": _json, "jsonld": _json, "xml": _xml, "rdfxml": _xml}.get(form, _turtle)

    @property
    def stream(self) -> IO[bytes]:
        """It as pyoxigraph wants it, which calls nothing but :meth:`write` and :meth:`flush`."""
        return cast(IO[bytes], self)

    def write(self, data: bytes) -> int:
        self._write(self._decode(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back but what is half of a character."""

    def finish(self) -> None:
        self._write(self._decode(b"", final=True))
        if not self._is_line_ended:
            self._out.write("\n")

    def _write(self, text: str) -> None:
        if not (text.isascii() and text.translate(_LAYOUT).isprintable()):
            text = _HIDDEN.sub(lambda match: match[0] if match[0].isprintable() else self._escape(match[0]), text)
        self._out.write(text)
        if text:
            self._is_line_ended = text.endswith("\n")


# Characters that names with a prefix may have in Turtle, where no escape may stand. None of it reorders or commands anything.
_IN_NAMES = re.compile(
    "[\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff]"
)


def _turtle(character: str) -> str:
    return character if _IN_NAMES.match(character) else f"\\U{ord(character):08X}"


def _json(character: str) -> str:
    return json.dumps(character)[1:-1]


def _xml(character: str) -> str:
    return "\ufffd" if _NOT_XML.match(character) else f"&#x{ord(character):X};"


# Questions, and the forms of their answers: pure code that command, server and the process that answers share.


#: Forms of an answer that has rows, or is true or false; and of one that is a graph.
ROWS = ("table", "csv", "tsv", "json", "xml")
GRAPHS = ("turtle", "nquads", "jsonld", "rdfxml")

# Text that hides words from a reader of SPARQL: texts, IRIs, comments, escaped characters, variables, prefixed and tagged names.
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
    store: str = ""
    """The folder of the copy of a store that it is put to."""


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
