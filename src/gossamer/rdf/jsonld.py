"""JSON-LD in a page: each script becomes triples by pyoxigraph's parser, with the contexts that it names put in its place.

No context is fetched. Schema.org's is bundled, and of it only those terms are put in that the script uses: the parser reads
the whole context for each script otherwise. A context that is not known is left out, counted and named; what it would have
said is lost, what the script says in full IRIs, or by another context, is not.
"""

from typing import Any

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf import schema_org
from gossamer.rdf.terms import LANG_STRING, MAX_IRI, Gathered, clean_iri

#: Bytes of a script that is read; the largest of real shops stay below a tenth of it.
MAX_SCRIPT = 4_000_000
#: Objects and lists in each other (fault 62).
MAX_DEPTH = 200


class _TooDeep(Exception):
    """The script is nested too deeply."""


def read_json_ld(script: bytes, base: str, gathered: Gathered) -> None:
    """Gather what a script says.

    Args:
        script: its text, in UTF-8.
        base: what relative IRIs are resolved against.
        gathered: takes the triples. A script that is no JSON-LD is a warning, `JsonLdError`; a context that is not known
            one too, `UnknownContext`.

    Raises:
        Full: the page has given as much as is taken of one.
    """
    if len(script) > MAX_SCRIPT:
        gathered.warn("JsonLdError", f"{len(script)} bytes are too long")
        return
    try:
        value = msgspec.json.decode(script)
        _put_contexts(value, script, gathered)
        document = msgspec.json.encode(value)
    except _TooDeep:
        gathered.warn("JsonLdError", "it is nested too deeply")
    except RecursionError:
        gathered.warn("JsonLdError", "it is nested too deeply")
    except (msgspec.DecodeError, ValueError) as error:
        gathered.warn("JsonLdError", str(error))
    else:
        _parse(document, base, gathered)


def _parse(document: bytes, base: str, gathered: Gathered) -> None:
    names: dict[str, str] = {}

    def resource(term: Any) -> str:
        if isinstance(term, oxigraph.NamedNode):
            return clean_iri(term.value)
        node = names.get(term.value)
        if node is None:
            node = names[term.value] = gathered.blank()
        return node

    try:
        for quad in oxigraph.parse(document, oxigraph.RdfFormat.JSON_LD, base_iri=base):
            value = quad.object
            subject, predicate = resource(quad.subject), quad.predicate.value
            if isinstance(value, oxigraph.Literal):
                language = value.language or ""
                datatype = LANG_STRING if language else value.datatype.value
                gathered.add(subject, predicate, value.value, datatype, language)
            else:
                gathered.add(subject, predicate, resource(value))
    except (SyntaxError, ValueError) as error:
        gathered.warn("JsonLdError", str(error))


def _put_contexts(value: Any, script: bytes, gathered: Gathered) -> None:
    """Put contexts in the place of their names, throughout a document.

    Raises:
        _TooDeep: it is nested too deeply.
    """
    holders: list[dict[str, Any]] = []
    used: set[str] = set()
    level = [value]
    for _ in range(MAX_DEPTH):
        following: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                used.update(each)
                if "@context" in each:
                    holders.append(each)
                following.extend(inner for inner in each.values() if isinstance(inner, dict | list))
            else:
                following.extend(inner for inner in each if isinstance(inner, dict | list))
        if not following:
            break
        level = following
    else:
        raise _TooDeep
    schema = _schema_org(used, script)
    for holder in holders:
        holder["@context"] = _known(holder["@context"], schema, gathered)


def _known(context: Any, schema: dict[str, Any], gathered: Gathered) -> Any:
    """A context without names of others."""
    if isinstance(context, list):
        return [_known(part, schema, gathered) for part in context]
    if isinstance(context, dict):
        _check_lengths(context)
    if not isinstance(context, str):
        return context
    if schema_org.NAME.fullmatch(context.strip()):
        return schema
    gathered.warn("UnknownContext", context)
    return {}


def _check_lengths(context: dict[str, Any]) -> None:
    """Refuse a context of the page's own with a name that is too long: the parser would copy it for each key that uses it.

    Raises:
        ValueError: it has one.
    """
    for term, meaning in context.items():
        iri = meaning.get("@id") if isinstance(meaning, dict) else meaning
        if isinstance(iri, str) and len(iri) > MAX_IRI:
            raise ValueError(f"the context says {term[:40]!r} in {len(iri)} characters, more than {MAX_IRI}")


def _schema_org(used: set[str], script: bytes) -> dict[str, Any]:
    """Schema.org's context, with the terms that are used."""
    context: dict[str, Any] = {"@vocab": schema_org.VOCABULARY}
    context |= {alias: stands_for for alias, stands_for in schema_org.ALIASES.items() if alias in used}
    for term in used & schema_org.COERCED.keys():
        context[term] = {"@id": schema_org.VOCABULARY + term, "@type": schema_org.COERCED[term]}
    for prefix, iri in schema_org.PREFIXES.items():
        if b'"%s:' % prefix.encode() in script:
            context[prefix] = iri
    return context
