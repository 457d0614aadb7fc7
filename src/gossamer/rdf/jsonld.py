"""JSON-LD in a page: each script becomes triples by pyoxigraph's parser, with the contexts that it names put in its place.

No context is fetched. Schema.org's is bundled, and of it only those terms are put in that the script uses
(:mod:`gossamer.rdf.contexts`): the parser reads the whole context for each script otherwise. A context that is not known is left
out, counted and named; what it would have said is lost, what the script says in full IRIs, or by another context, is not.
"""

from typing import Any

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf.contexts import TooDeep, put_contexts
from gossamer.rdf.nearly_json import NotNearly, as_json
from gossamer.rdf.terms import LANG_STRING, Gathered, TooDear, clean_iri

#: Bytes of a script that is read; the largest of real shops stay below a tenth of it.
MAX_SCRIPT = 4_000_000
#: Bytes that a script of no length costs.
_EACH = 10
#: How often a script that is no JSON is read more than one that is.
_AGAIN = 2


def read_json_ld(script: bytes, base: str, gathered: Gathered) -> None:
    """Gather what a script says.

    Args:
        script: its text, in UTF-8.
        base: what relative IRIs are resolved against.
        gathered: takes the triples. A script that is no JSON-LD is a warning, `JsonLdError`; one that is nearly JSON, and is
            read, is one too, `NearlyJson`, and so is a context that is not known, `UnknownContext`.

    Raises:
        Full: the page has given as much as is taken of one.
        ReadApart: the scripts of the page may cost more than a caller that cannot be stopped may spend.
    """
    if len(script) > MAX_SCRIPT:
        _skip(gathered, f"{len(script)} bytes are too long")
        return
    try:
        gathered.spend(len(script) + _EACH)
        value = _decoded(script, gathered)
        if not isinstance(value, dict | list):
            return  # JSON, and nothing is said of anything
        gathered.spend(put_contexts(value, script, gathered))
        document = msgspec.json.encode(value)
    except (TooDeep, RecursionError):
        _skip(gathered, "it is nested too deeply")
    except TooDear as error:
        _skip(gathered, str(error))
    except (msgspec.DecodeError, ValueError) as error:
        gathered.warn("JsonLdError", str(error))
    else:
        _parse(document, base, gathered)


def _skip(gathered: Gathered, why: str) -> None:
    """Leave out a script that is over a limit: it may be JSON-LD all the same, so it is trouble of its page."""
    gathered.counts["parse_skipped"] += 1
    gathered.warn("JsonLdError", why)


def _decoded(script: bytes, gathered: Gathered) -> Any:
    """The value of a script, also of one that is nearly JSON.

    Raises:
        msgspec.DecodeError: it is none.
    """
    try:
        return msgspec.json.decode(script)
    except msgspec.DecodeError as error:
        gathered.spend(_AGAIN * len(script))
        try:
            value = msgspec.json.decode(as_json(script.decode("utf-8", "replace")))
        except (NotNearly, msgspec.DecodeError):
            raise error from None
        gathered.warn("NearlyJson", f"read although it is no JSON: {error}")
        return value


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
