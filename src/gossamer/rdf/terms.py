"""The triples of a page, and the names and limits that all readers share.

A triple is a plain tuple of five strings: subject, predicate, object, datatype, language. The datatype is empty where the
object is a resource, and never empty where it is a literal. A blank node begins with `_:`; anything else that is no literal
is an IRI.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import quote

import msgspec

from gossamer.values.errors import ReadApart
from gossamer.values.visit import Triple

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFA = "http://www.w3.org/ns/rdfa#"
XSD = "http://www.w3.org/2001/XMLSchema#"
XHV = "http://www.w3.org/1999/xhtml/vocab#"

TYPE = f"{RDF}type"
FIRST = f"{RDF}first"
REST = f"{RDF}rest"
NIL = f"{RDF}nil"
LANG_STRING = f"{RDF}langString"
XML_LITERAL = f"{RDF}XMLLiteral"
HTML_LITERAL = f"{RDF}HTML"
STRING = f"{XSD}string"
USES_VOCABULARY = f"{RDFA}usesVocabulary"

#: Triples of one page; the richest pages of the web have some thousand.
MAX_TRIPLES = 20_000
#: Triples of one page with those that it says again: what waits for an object, times the objects that come.
MAX_ADDED = 5 * MAX_TRIPLES
#: Characters of one literal: long articles fit, and so does the literal in a line of the row log, be each of its characters an
#: escape of twelve bytes.
MAX_LITERAL = 300_000
#: Characters of all predicates and objects of a page: as long as the longest page that parsers get, for literals may lie in each
#: other, and a short name may stand for a long IRI.
MAX_CHARACTERS = 16_000_000
#: Triples that are too long, after which a page is not read on: making each of them costs its length.
MAX_LEFT_OUT = 200
#: Characters of a language tag; the longest that is registered has some 30.
MAX_LANGUAGE = 60
#: Characters of one IRI; longer ones are refused by servers as well.
MAX_IRI = 8_192
#: The cost that JSON-LD of a page may have where everything else waits for its reader, in bytes and in terms that a parser copies.
#: Each takes 2 us at the worst, and a twentieth of that in real pages, few of which have a tenth of so many.
MAX_COST_HERE = 300_000
#: The same where the reader can be stopped.
MAX_COST = 4_000_000
#: Warnings of one page that are kept with their words; all are counted.
MAX_WARNINGS = 50
#: Characters of what a page wrote that a warning repeats.
MAX_QUOTED = 100

# Characters that no IRI may hold as they are (RFC 3987, and the grammar of N-Quads).
# The last but one are private and no characters: an IRI has those in its query at most.
_NOT_IN_IRI = re.compile(
    '[\x00-\x20<>"{}|^`\\\\\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufff0-\uffff]|%(?![0-9A-Fa-f]{2})'
)
# Brackets stand around an address of IPv6, and nowhere else.
_BRACKET = re.compile(r"[\[\]]")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


class Warned(msgspec.Struct, frozen=True):
    """A note of a thing not understood: a class of RDFa's processor graph, or a word of ours, and the words it is about."""

    kind: str
    about: str


class Full(Exception):
    """The page has given as many triples, or as much text, as are taken of one."""


class TooDear(Exception):
    """Reading a script would cost more than is spent on a page."""


class Gathered:
    """The triples of a page while it is read, within the limits.

    Attributes:
        triples: in the order in which they were found; one that comes again is there once.
        warnings: the first of them.
        counts: all warnings by kind, and what was left out by limit (`too_many_triples`, `literal_too_long`, ...).
    """

    def __init__(self, *, holds_up: bool = False) -> None:
        """Nothing is gathered yet; `holds_up` says that everything else waits for the reader."""
        self._most = MAX_COST_HERE if holds_up else MAX_COST
        self._holds_up = holds_up
        self._cost = 0
        self.triples: dict[Triple, None] = {}
        self.warnings: list[Warned] = []
        self.counts: Counter[str] = Counter()
        self._characters = 0
        self._blank: dict[str, str] = {}
        self._made = 0
        self._items = 0
        self._added = 0
        self._left_out = 0

    def add(self, subject: str, predicate: str, value: str, datatype: str = "", language: str = "") -> None:
        """One more triple. Raises Full: there are too many."""
        if len(value) > (MAX_LITERAL if datatype else MAX_IRI):
            self._leave_out("literal_too_long" if datatype else "iri_too_long")
            return
        if len(subject) > MAX_IRI or len(predicate) > MAX_IRI or len(datatype) > MAX_IRI:
            self._leave_out("iri_too_long")
            return
        self._characters += len(predicate) + len(value)
        if self._characters > MAX_CHARACTERS:
            self.counts["too_much_text"] += 1
            raise Full
        self._added += 1
        if len(self.triples) >= MAX_TRIPLES or self._added > MAX_ADDED:
            self.counts["too_many_triples"] += 1
            raise Full
        self.triples[subject, predicate, value, datatype, language] = None

    def _leave_out(self, kind: str) -> None:
        """Count what is too long; a page that has nothing else is not read on."""
        self.counts[kind] += 1
        self._left_out += 1
        if self._left_out > MAX_LEFT_OUT:
            raise Full

    def count_item(self) -> None:
        """One more item of a list, which becomes two triples when the list is complete.
        Raises Full: there are too many."""
        self._items += 1
        if 2 * self._items > MAX_TRIPLES:
            self.counts["too_many_triples"] += 1
            raise Full

    def spend(self, cost: int) -> None:
        """Ask for leave to read something. Raises ReadApart: it costs too much for a reader that everything else waits for.
        Raises TooDear: it costs too much for any."""
        self._cost += cost
        if self._cost > self._most:
            if self._holds_up:
                raise ReadApart
            raise TooDear(f"the scripts of the page cost more than {MAX_COST} steps")

    def blank(self) -> str:
        self._made += 1
        return f"_:b{self._made}"

    def blank_of(self, name: str) -> str:
        node = self._blank.get(name)
        if node is None:
            node = self._blank[name] = self.blank()
        return node

    def warn(self, kind: str, about: str) -> None:
        """Count something that was not understood, and keep its words if there are few."""
        self.counts[kind] += 1
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append(Warned(kind, about[:MAX_QUOTED]))


def literal(text: str, language: str = "") -> tuple[str, str, str]:
    """Value, datatype and language of a plain literal; a language that is no tag counts as none."""
    if language and len(language) <= MAX_LANGUAGE and _LANGUAGE.fullmatch(language):
        return text, LANG_STRING, language.lower()
    return text, STRING, ""


def clean_iri(text: str) -> str:
    """The IRI, with what none may hold written in percent codes."""
    if _NOT_IN_IRI.search(text) is not None:
        text = _NOT_IN_IRI.sub(lambda match: quote(_SURROGATE.sub("\ufffd", match[0])), text)
    if _BRACKET.search(text) is None:
        return text
    authority = _AUTHORITY.match(text)
    start = authority.end() if authority else 0
    return text[:start] + _BRACKET.sub(lambda match: quote(match[0]), text[start:])


# The steps that triples go through once they are all there: patterns that are copied, vocabularies that are expanded.
#
# Both follow the documents: property copying is section 3.5 of HTML+RDFa 1.1, vocabulary expansion section 10.1 of RDFa Core
# 1.1. Vocabularies are never fetched; those that are known stand below.


COPY = f"{RDFA}copy"
PATTERN = f"{RDFA}Pattern"

#: The names that follow from a name: of properties and classes alike, each name to all that it implies.
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
    for triple in list(triples):
        if triple[0] in used or (triple[1] == COPY and triple[2] in used):
            del triples[triple]


def expand(gathered: Gathered, vocabularies: Mapping[str, Implications]) -> None:
    """Add what the vocabularies that the page uses (one `rdfa:usesVocabulary` for each) say of its properties and types; one
    that is not known is a warning."""
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


# Prefixes and terms that RDFa knows before a page says anything: its initial contexts (as of 2019, the last change).
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
_XHTML = """
alternate appendix bookmark chapter cite contents copyright first glossary help icon index itsRules last license
meta next p3pv1 prev previous role section start stylesheet subsection top up
"""
XHTML_TERMS = TERMS | {term: f"{XHV}{term}" for term in _XHTML.split()}

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


VOCABULARIES = {_DC: _read(_DC, _DC_TERMS), _FOAF: _read(_FOAF, _FOAF_TERMS), _SKOS: _read(_SKOS, _SKOS_TERMS)}
