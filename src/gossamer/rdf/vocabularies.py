"""What RDFa knows beside the page: initial contexts, patterns that are copied, and vocabularies whose implications are
known.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from gossamer.rdf.terms import RDF, RDFA, TYPE, USES_VOCABULARY, XHV, XSD, Full, Gathered
from gossamer.values.visit import Triple

# What is done with triples once they are all there: patterns that are copied, vocabularies that are expanded.
#
# Both follow the documents: property copying is section 3.5 of HTML+RDFa 1.1, vocabulary expansion section 10.1 of RDFa Core
# 1.1. Vocabularies are never fetched; those that are known stand below.


COPY = f"{RDFA}copy"
PATTERN = f"{RDFA}Pattern"

#: What follows from a name: those of properties and classes alike, each name to all that it implies.
Implications = Mapping[str, tuple[str, ...]]


def copy_patterns(gathered: Gathered) -> None:
    """Give each subject what the patterns say that it copies, and take the patterns out."""
    triples = gathered.triples
    if not any(predicate == COPY for _, predicate, *_ in triples):
        return
    patterns = {subject for subject, predicate, value, *_ in triples if predicate == TYPE and value == PATTERN}
    said: dict[str, list[Triple]] = defaultdict(list)
    for triple in triples:
        if triple[0] in patterns and not (triple[1] == TYPE and triple[2] == PATTERN):
            said[triple[0]].append(triple)
    waiting = [(subject, value) for subject, predicate, value, *_ in triples if predicate == COPY and value in patterns]
    done = set(waiting)
    used = {pattern for _, pattern in waiting}
    try:
        while waiting:
            subject, pattern = waiting.pop()
            for _, predicate, value, datatype, language in said[pattern]:
                if predicate != COPY:
                    gathered.add(subject, predicate, value, datatype, language)
                elif value in patterns and (subject, value) not in done:
                    gathered.count_item()
                    done.add((subject, value))
                    used.add(value)
                    waiting.append((subject, value))
    except Full:
        pass  # counted; the patterns go all the same
    for triple in [triple for triple in triples if _is_spent(triple, used)]:
        del triples[triple]


def _is_spent(triple: Triple, used: set[str]) -> bool:
    return triple[0] in used or (triple[1] == COPY and triple[2] in used)


def expand(gathered: Gathered, vocabularies: Mapping[str, Implications]) -> None:
    """Add what the vocabularies that the page uses say of its properties and types.

    Args:
        gathered: the triples, with one `rdfa:usesVocabulary` for each vocabulary.
        vocabularies: by their IRIs; one that is not among them is a warning.
    """
    used = [value for _, predicate, value, *_ in gathered.triples if predicate == USES_VOCABULARY]
    implied: dict[str, tuple[str, ...]] = {}
    for vocabulary in used:
        if vocabulary in vocabularies:
            implied.update(vocabularies[vocabulary])
        else:
            gathered.warn("VocabReferenceError", vocabulary)
    if not implied:
        return
    try:
        for subject, predicate, value, datatype, language in list(gathered.triples):
            for more in closure(predicate, implied):
                gathered.add(subject, more, value, datatype, language)
            if predicate == TYPE:
                for more in closure(value, implied):
                    gathered.add(subject, TYPE, more)
    except Full:
        pass  # counted


def closure(name: str, implied: Implications) -> Iterable[str]:
    """All that a name implies, through any number of steps, without itself."""
    found: dict[str, None] = {}
    waiting = list(implied.get(name, ()))
    while waiting:
        following = waiting.pop()
        if following not in found and following != name:
            found[following] = None
            waiting.extend(implied.get(following, ()))
    return found


# What RDFa knows before a page says anything: prefixes and terms of its initial contexts (as of 2019, the last change).
#
# HTML+RDFa adds nothing to RDFa Core; XHTML+RDFa adds the link types of XHTML as terms.

#: Prefixes of https://www.w3.org/2011/rdfa-context/rdfa-1.1
PREFIXES = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "cc": "http://creativecommons.org/ns#",
    "csvw": "http://www.w3.org/ns/csvw#",
    "ctag": "http://commontag.org/ns#",
    "dc": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcterms": "http://purl.org/dc/terms/",
    "dqv": "http://www.w3.org/ns/dqv#",
    "duv": "https://www.w3.org/ns/duv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "gr": "http://purl.org/goodrelations/v1#",
    "grddl": "http://www.w3.org/2003/g/data-view#",
    "ical": "http://www.w3.org/2002/12/cal/icaltzd#",
    "jsonld": "http://www.w3.org/ns/json-ld#",
    "ldp": "http://www.w3.org/ns/ldp#",
    "ma": "http://www.w3.org/ns/ma-ont#",
    "oa": "http://www.w3.org/ns/oa#",
    "odrl": "http://www.w3.org/ns/odrl/2/",
    "og": "http://ogp.me/ns#",
    "org": "http://www.w3.org/ns/org#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qb": "http://purl.org/linked-data/cube#",
    "rdf": RDF,
    "rdfa": RDFA,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rev": "http://purl.org/stuff/rev#",
    "rif": "http://www.w3.org/2007/rif#",
    "rr": "http://www.w3.org/ns/r2rml#",
    "schema": "http://schema.org/",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "skosxl": "http://www.w3.org/2008/05/skos-xl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "v": "http://rdf.data-vocabulary.org/#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "void": "http://rdfs.org/ns/void#",
    "wdr": "http://www.w3.org/2007/05/powder#",
    "wdrs": "http://www.w3.org/2007/05/powder-s#",
    "xhv": XHV,
    "xml": "http://www.w3.org/XML/1998/namespace",
    "xsd": XSD,
}

#: Terms of the same.
TERMS = {
    "describedby": "http://www.w3.org/2007/05/powder-s#describedby",
    "license": f"{XHV}license",
    "role": f"{XHV}role",
}

#: Terms of https://www.w3.org/2011/rdfa-context/xhtml-rdfa-1.1
XHTML_TERMS = TERMS | {
    term: f"{XHV}{term}"
    for term in [
        "alternate",
        "appendix",
        "bookmark",
        "chapter",
        "cite",
        "contents",
        "copyright",
        "first",
        "glossary",
        "help",
        "icon",
        "index",
        "itsRules",
        "last",
        "license",
        "meta",
        "next",
        "p3pv1",
        "prev",
        "previous",
        "role",
        "section",
        "start",
        "stylesheet",
        "subsection",
        "top",
        "up",
    ]
}


# Vocabularies whose implications are known: what their own documents say of sub-properties and sub-classes.
#
# Dublin Core terms (2020), FOAF (2014) and SKOS (2009) are those of RDFa's initial context that imply anything worth having.
# A page names a vocabulary with `vocab`; expansion is the reader's choice, and nothing is ever fetched.

_DC, _FOAF, _SKOS = PREFIXES["dcterms"], PREFIXES["foaf"], PREFIXES["skos"]

# Each name, then what it implies: of the same vocabulary, or with the prefix of another.
_DC_TERMS = """
abstract description|accessRights rights|alternative title|available date|bibliographicCitation identifier
conformsTo relation|contributor dc11:contributor|coverage dc11:coverage|created date|creator contributor dc11:creator
date dc11:date|dateAccepted date|dateCopyrighted date|dateSubmitted date|description dc11:description
educationLevel audience|extent format|format dc11:format|hasFormat relation|hasPart relation|hasVersion relation
identifier dc11:identifier|isFormatOf relation|isPartOf relation|isReferencedBy relation|isReplacedBy relation
isRequiredBy relation|issued date|isVersionOf relation|language dc11:language|license rights|mediator audience
medium format|modified date|publisher dc11:publisher|references relation|relation dc11:relation|replaces relation
requires relation|rights dc11:rights|source relation dc11:source|spatial coverage|subject dc11:subject
tableOfContents description|temporal coverage|title dc11:title|type dc11:type|valid date
"""
_FOAF_TERMS = """
Person Agent|Group Agent|Organization Agent|Image Document|PersonalProfileDocument Document
OnlineChatAccount OnlineAccount|OnlineEcommerceAccount OnlineAccount|OnlineGamingAccount OnlineAccount
aimChatID nick|icqChatID nick|msnChatID nick|yahooChatID nick|skypeID nick|name rdfs:label|img depiction
homepage page isPrimaryTopicOf|isPrimaryTopicOf page|openid isPrimaryTopicOf|weblog page|tipjar page
"""
_SKOS_TERMS = """
prefLabel rdfs:label|altLabel rdfs:label|hiddenLabel rdfs:label|changeNote note|definition note|editorialNote note
example note|historyNote note|scopeNote note|broader broaderTransitive|narrower narrowerTransitive
broaderTransitive semanticRelation|narrowerTransitive semanticRelation|related semanticRelation
mappingRelation semanticRelation|closeMatch mappingRelation|exactMatch closeMatch|broadMatch mappingRelation broader
narrowMatch mappingRelation narrower|relatedMatch mappingRelation related|topConceptOf inScheme
OrderedCollection Collection
"""


def _read(vocabulary: str, terms: str) -> dict[str, tuple[str, ...]]:
    def iri(name: str) -> str:
        prefix, colon, local = name.partition(":")
        return PREFIXES[prefix] + local if colon else vocabulary + name

    rows = [row.split() for line in terms.strip().splitlines() for row in line.split("|")]
    return {iri(name): tuple(map(iri, implied)) for name, *implied in rows}


VOCABULARIES = {
    _DC: _read(_DC, _DC_TERMS),
    _FOAF: _read(_FOAF, _FOAF_TERMS),
    _SKOS: _read(_SKOS, _SKOS_TERMS),
}
