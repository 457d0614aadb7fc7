"""SPARQL 1.1 Protocol as plain values: what a request asks for, in which form, and what the service says of itself.

Place in the flow: :mod:`serving` reads requests into :class:`Wanted` here, and answers them.
"""

from collections.abc import Iterable
from urllib.parse import parse_qs

import msgspec
import pyoxigraph as oxigraph

from gossamer.query.triples.questions import SparqlQuestion

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
    """What a request asks for."""

    question: SparqlQuestion | None
    """None where it has no query: it wants the description of the service, or the form for people."""
    is_for_people: bool
    """The answer is wanted as HTML."""


def wanted(method: str, query_string: str, content_type: str, body: str, accept: str) -> Wanted:
    """What a request asks for.

    Args:
        method: of HTTP.
        query_string: behind the `?` of its target.
        content_type: of its body.
        body: of a POST.
        accept: its field of that name.

    Raises:
        RefusedRequest: it is none that the protocol knows, or wants to change something.
    """
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
    """What the service says of itself, in the vocabulary of SPARQL 1.1 Service Description.

    Args:
        endpoint: its URL.
    """
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
    """The form in which a client wants the description."""
    return next((form for form in preferred(accept) if form in GRAPH_TYPES), "turtle")


def result_headers(form: str) -> dict[str, str]:
    """The fields of an answer in a form. A browser must take none of it for anything else."""
    return {
        "Content-Type": f"{TYPES[form]}; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }
