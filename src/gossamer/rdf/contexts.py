"""Contexts of JSON-LD: put in the place of their names, and weighed before a parser gets them; that of schema.org is
bundled.
"""

import re
from collections.abc import Iterable
from typing import Any

from gossamer.rdf.schema_org_terms import ALIASES, PREFIXES, TYPED, VERSION
from gossamer.rdf.terms import MAX_IRI, Gathered, TooDear

# The JSON-LD context of schema.org, as far as it says anything: every other term is its own name behind :data:`VOCABULARY`.
#
# The terms are those of one version, which :mod:`~gossamer.rdf.schema_org_terms` names; `./gossamer dev schema-org` takes
# another.

__all__ = ["ALIASES", "COERCED", "NAME", "PREFIXES", "VERSION", "VOCABULARY"]

VOCABULARY = "http://schema.org/"

#: How pages name the context.
NAME = re.compile(
    r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?|version/[^/]+/schemaorgcontext\.jsonld)?)?#?",
    re.IGNORECASE,
)

#: Term -> the datatype of its strings, `@id` for links.
COERCED = {term: kind for kind, terms in TYPED.items() for term in terms.split()}

# Contexts are weighed, since their size says nothing of the work of a parser: :mod:`gossamer.rdf.jsonld` asks for it before it
# hands a script to pyoxigraph. That copies the context in force, term by term, for each object that has one of its own, and for
# each name in reach of a context that belongs to a term. It reads terms that stand for each other by recursion, which ends the
# process where there are thousands.


#: Objects and lists in each other (fault 62).
MAX_DEPTH = 200
#: Bytes of names that a parser copies at the price of one term.
_BYTES_A_TERM = 50
#: The price of a value for each object and list that it lies in: a parser hands it up through all of them.
_EACH_LEVEL = 2
#: Keys whose values are names of resources, or parts of names.
_NAMING = ("@id", "@type", "@language", "@base", "@vocab")
#: Terms of contexts, each of which is needed to understand the next; 4,000 overflow a stack of 8 MB, and people write three.
MAX_CHAIN = 50


class TooDeep(Exception):
    """The script is nested too deeply."""


def put_contexts(value: Any, script: bytes, base: str, gathered: Gathered) -> int:
    """Put contexts in the place of their names, throughout a document.

    Returns:
        What a parser copies on its way through the document, in terms of contexts, each as often as it does so at the most. It
        makes all triples of an object at once, each with the name of its node, and hands them to the object around it.

    Raises:
        TooDeep: it is nested too deeply.
        TooDear: a context is one that the parser must not see.
    """
    holders: list[dict[str, Any]] = []
    used: set[str] = set()
    values, handed, longest = 0, 0, len(base)
    level = [value]
    for depth in range(MAX_DEPTH):
        following: list[Any] = []
        for each in level:
            values += len(each)
            handed += depth * len(each)
            if isinstance(each, dict):
                used.update(each)
                longest = max(longest, _longest(each.get(name) for name in _NAMING))
                if "@context" in each:
                    holders.append(each)
                following.extend(inner for inner in each.values() if isinstance(inner, dict | list))
            else:
                following.extend(inner for inner in each if isinstance(inner, dict | list))
        if not following:
            break
        level = following
    else:
        raise TooDeep
    longest = max(longest, _longest(used), *(_longest_of_context(holder["@context"]) for holder in holders))
    copied = handed * _EACH_LEVEL + values * longest // _BYTES_A_TERM
    if not holders:
        return copied
    schema = _schema_org(used, script)
    for holder in holders:
        holder["@context"] = _known(holder["@context"], schema, gathered)
    if all(holder["@context"] is schema for holder in holders):
        return copied + len(schema) * len(holders)  # as in most scripts: the same terms each time
    return copied + _weight(value, schema)


def _longest(names: Iterable[Any]) -> int:
    return max((len(name) for name in names if isinstance(name, str)), default=0)


def _longest_of_context(context: Any) -> int:
    """The longest of the names that a context gives; the contexts of its terms stand for themselves."""
    if isinstance(context, dict):
        return _longest(context.values())
    return max((_longest_of_context(part) for part in context), default=0) if isinstance(context, list) else 0


def _known(context: Any, schema: dict[str, Any], gathered: Gathered) -> Any:
    """A context without names of others."""
    if isinstance(context, list):
        return [_known(part, schema, gathered) for part in context]
    if not isinstance(context, str):
        return context
    if NAME.fullmatch(context.strip()):
        return schema
    gathered.warn("UnknownContext", context)
    return {}


def _schema_org(used: set[str], script: bytes) -> dict[str, Any]:
    context: dict[str, Any] = {"@vocab": VOCABULARY}
    context |= {alias: stands_for for alias, stands_for in ALIASES.items() if alias in used}
    for term in used & COERCED.keys():
        context[term] = {"@id": VOCABULARY + term, "@type": COERCED[term]}
    for prefix, iri in PREFIXES.items():
        if b'"%s:' % prefix.encode() in script:
            context[prefix] = iri
    return context


def _weight(value: Any, schema: dict[str, Any]) -> int:
    weight = 0
    waiting: list[tuple[Any, int, bool]] = [(value, 0, False)]
    while waiting:
        each, terms, is_scoped = waiting.pop()
        if isinstance(each, dict):
            if "@context" in each:
                more, scoped, _ = _measured(each["@context"], schema)
                terms, is_scoped = terms + more, is_scoped or bool(scoped)
                weight += terms * (1 + scoped)
            if is_scoped:
                weight += terms * (1 + len(each))
            inside = (inner for name, inner in each.items() if name != "@context")
        else:
            inside = iter(each)
        waiting.extend((inner, terms, is_scoped) for inner in inside if isinstance(inner, dict | list))
    return weight


def _measured(context: Any, schema: dict[str, Any]) -> tuple[int, int, int]:
    """How many terms a context has, how many contexts belong to terms of it, and how long its longest chain of terms is.
    Raises TooDear: a chain is too long, or a name is: the parser would copy it for each key that uses it."""
    if context is schema:
        return len(context), 0, 1
    terms = scoped = chain = 0
    if isinstance(context, list):
        for part in context:
            more, inner, length = _measured(part, schema)
            terms, scoped, chain = terms + more, scoped + inner, max(chain, length)
    elif isinstance(context, dict):
        terms = len(context)
        for term, meaning in context.items():
            iri = meaning.get("@id") if isinstance(meaning, dict) else meaning
            if isinstance(iri, str) and len(iri) > MAX_IRI:
                raise TooDear(f"the context says {term[:40]!r} in {len(iri)} characters, more than {MAX_IRI}")
            if isinstance(meaning, dict) and "@context" in meaning:
                more, inner, length = _measured(meaning["@context"], schema)
                terms, scoped, chain = terms + more, scoped + inner + 1, max(chain, length)
        chain += _chain(context)
    if chain > MAX_CHAIN:
        raise TooDear(f"the context has over {MAX_CHAIN} terms that stand for each other in a row")
    return terms, scoped, chain


def _chain(context: dict[str, Any]) -> int:
    """How many terms stand in a row of which each is needed for the next; more than :data:`MAX_CHAIN` where there is no end."""
    needs: dict[str, set[str]] = {}
    for term, meaning in context.items():
        words = meaning.values() if isinstance(meaning, dict) else (meaning,)
        names = {term.partition(":")[0]}
        for word in words:
            if isinstance(word, str):
                names |= {word, word.partition(":")[0]}
        if needed := (names & context.keys()) - {term}:
            needs[term] = needed
    for length in range(1, MAX_CHAIN + 1):
        if not needs:
            return length
        needs = {term: still for term, needed in needs.items() if (still := needed & needs.keys())}
    return MAX_CHAIN + 1
