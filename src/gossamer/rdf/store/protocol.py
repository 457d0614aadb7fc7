"""The SPARQL 1.1 Protocol as plain values, and the page on which people ask."""

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from urllib.parse import parse_qs

import msgspec
import pyoxigraph as oxigraph

from gossamer.query.contract import TripleAnswer
from gossamer.rdf.store.questions import SparqlQuestion

# SPARQL 1.1 Protocol as plain values: what a request asks for, in which form, and what the service says of itself. :mod:`serving`
# reads requests into :class:`Wanted` here, and answers them.


#: Media types of answers, by form, and the first of a kind is what holds where a client takes anything.
ROW_TYPES = {
    "json": "application/sparql-results+json",
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}
GRAPH_TYPES = {
    "turtle": "text/turtle",
    "jsonld": "application/ld+json",
    "rdfxml": "application/rdf+xml",
    "nquads": "application/n-quads",
}
TYPES = {**ROW_TYPES, **GRAPH_TYPES}

#: Other names of the same.
_ALIASES = {
    "application/json": "json",
    "application/xml": "xml",
    "application/n-triples": "nquads",
    "text/plain": "nquads",
    "application/x-turtle": "turtle",
}
_FORMS = {**{media_type: form for form, media_type in TYPES.items()}, **_ALIASES}

_HTML = "text/html"

#: Parts of an `Accept` that are read: clients name some ten.
_MOST_TYPES = 100

_SD = "http://www.w3.org/ns/sparql-service-description#"
_FORMATS = "http://www.w3.org/ns/formats/"
_RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


class RefusedRequest(ValueError):
    """A request that is no SPARQL query. The text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Wanted(msgspec.Struct, frozen=True):
    question: SparqlQuestion | None
    """None where it has no query: it wants the description of the service, or the form for people."""
    is_for_people: bool
    """The answer is wanted as HTML."""


def wanted(method: str, query_string: str, content_type: str, body: str, accept: str) -> Wanted:
    """What a request asks for, by the text behind the `?` of its target, its body, and two of its fields. Raises
    RefusedRequest: it is none that the protocol knows, or wants to change something."""
    values = _values(query_string)
    if method == "POST":
        kind = content_type.partition(";")[0].strip().lower()
        if kind == "application/x-www-form-urlencoded":
            values = _values(body)
        elif kind == "application/sparql-query":
            values["query"] = [body]
        elif kind == "application/sparql-update":
            raise RefusedRequest(403, "this endpoint is read only")
        else:
            raise RefusedRequest(415, "send a POST with a form, or with a query as application/sparql-query")
    if "update" in values:
        raise RefusedRequest(403, "this endpoint is read only")
    queries = values.get("query", [])
    if len(queries) > 1:
        raise RefusedRequest(400, "send one query at a time")
    forms = preferred(accept)
    is_for_people = next((form for form in forms if form in (_HTML, "any", *TYPES)), "") == _HTML
    if not queries:
        return Wanted(None, is_for_people)
    rows = next((form for form in forms if form in ROW_TYPES), "json")
    graph = next((form for form in forms if form in GRAPH_TYPES), "turtle")
    question = SparqlQuestion(
        queries[0],
        "tsv" if is_for_people else rows,
        "turtle" if is_for_people else graph,
        raw=True,
        default_graphs=tuple(values.get("default-graph-uri", ())),
        named_graphs=tuple(values.get("named-graph-uri", ())),
    )
    return Wanted(question, is_for_people)


def _values(text: str) -> dict[str, list[str]]:
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=1_000)
    except ValueError:
        raise RefusedRequest(400, "the request has too many fields") from None


def preferred(accept: str) -> list[str]:
    """The forms that a client takes, the best first: names of forms, `text/html`, and `any`."""
    found = []
    for number, part in enumerate(accept.split(",")[:_MOST_TYPES]):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        form = _FORMS.get(name) or (_HTML if name == _HTML else "any" if name in ("*/*", "") else "")
        if form and quality > 0:
            found.append((-quality, number, form))
    return [form for _, _, form in sorted(found)]


def description(endpoint: str) -> Iterable[oxigraph.Quad]:
    """What the service says of itself, in the vocabulary of SPARQL 1.1 Service Description."""
    service, dataset = oxigraph.BlankNode("service"), oxigraph.BlankNode("dataset")

    def say(subject: oxigraph.BlankNode, predicate: str, value: str | oxigraph.BlankNode) -> oxigraph.Quad:
        term = value if isinstance(value, oxigraph.BlankNode) else oxigraph.NamedNode(value)
        return oxigraph.Quad(subject, oxigraph.NamedNode(predicate), term)

    yield say(service, _RDF_TYPE, f"{_SD}Service")
    yield say(service, f"{_SD}endpoint", endpoint)
    yield say(service, f"{_SD}supportedLanguage", f"{_SD}SPARQL11Query")
    yield say(service, f"{_SD}feature", f"{_SD}UnionDefaultGraph")
    for name in ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV"):
        yield say(service, f"{_SD}resultFormat", _FORMATS + name)
    for name in ("Turtle", "JSON-LD", "RDF_XML", "N-Quads"):
        yield say(service, f"{_SD}resultFormat", _FORMATS + name)
    yield say(service, f"{_SD}defaultDataset", dataset)
    yield say(dataset, _RDF_TYPE, f"{_SD}Dataset")


def description_form(accept: str) -> str:
    return next((form for form in preferred(accept) if form in GRAPH_TYPES), "turtle")


def result_headers(form: str) -> dict[str, str]:
    """The fields of an answer in a form. A browser must take none of it for anything else."""
    return {
        "Content-Type": f"{TYPES[form]}; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }


# The page on which people ask: a form, and the answer as text. What strangers wrote stands in it escaped, and it has no script.
# :mod:`serving` shows it to browsers.

#: Rows of an answer that are shown; programs get all of it.
SHOWN_ROWS = 2_000

_STYLE = (
    "body{font-family:sans-serif;margin:2em}textarea{width:100%;height:10em;font-family:monospace}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .5em;text-align:left;font-family:monospace}"
    "pre{white-space:pre-wrap}.error{color:#a00}"
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

#: Nothing but this page's own style may run, load or be framed, and its form leads nowhere else.
HTML_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_EXAMPLE = (
    "SELECT ?type (count(*) AS ?number)\nWHERE { ?thing a ?type }\nGROUP BY ?type ORDER BY DESC(?number) LIMIT 50"
)


def _shown(answer: TripleAnswer) -> str:
    if not answer.columns:
        return f"<pre>{escape(answer.graph)}</pre>{'<p>The beginning is shown.</p>' if answer.is_more else ''}"

    def row(cells: Iterable[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in answer.rows)
    note = f"<p>The first {len(answer.rows)} rows are shown.</p>" if answer.is_more else ""
    return f"<table>{row(answer.columns, 'th')}{body}</table>{note}"


def page(query: str, answer: TripleAnswer | None = None, error: str = "") -> str:
    """The page, with what was asked; an example stands in the form where that is empty."""
    told = f'<p class="error">{escape(error)}</p>' if error else ""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>SPARQL</title>"
        f"<style>{_STYLE}</style></head><body><h1>SPARQL</h1>"
        f'<form method="get"><label>Query <textarea name="query">\n{escape(query or _EXAMPLE)}</textarea></label>'
        "<p><button>Ask</button> Every page has a graph, named by its URL. "
        "The prefixes of RDFa need not be declared.</p></form>"
        f"{told}{_shown(answer) if answer is not None else ''}</body></html>\n"
    )
