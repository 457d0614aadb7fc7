"""What a page gave of triples, and the names and limits that all readers share.

A triple is a plain tuple of five strings: subject, predicate, object, datatype, language. The datatype is empty where the
object is a resource, and never empty where it is a literal. A blank node begins with `_:`; anything else that is no literal
is an IRI.
"""

import re
from collections import Counter
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
#: What the JSON-LD of one page may cost where everything else waits for its reader, in bytes and in terms that a parser copies.
#: Each takes 2 us at the worst, and a twentieth of that in real pages, few of which have a tenth of so many.
MAX_COST_HERE = 300_000
#: The same where the reader can be stopped.
MAX_COST = 4_000_000
#: Warnings of one page that are kept with their words; all are counted.
MAX_WARNINGS = 50
#: Characters of what a page wrote that a warning repeats.
MAX_QUOTED = 100

# What no IRI may hold as it is (RFC 3987, and the grammar of N-Quads).
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
    """What a reader did not understand: a class of RDFa's processor graph, or a word of ours, and the words it is about."""

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
