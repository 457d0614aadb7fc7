"""JSON-LD in a page: each script becomes triples by pyoxigraph's parser, with the contexts that it names put in its place.

No context is fetched. Schema.org's is bundled, and of it only those terms are put in that the script uses:
the parser reads the whole context for each script otherwise. A context that is not known is left
out, counted and named; what it would have said is lost, what the script says in full IRIs, or by another context, is not.

Some scripts are JSON but for what templates add to it: comments, wrappers, raw line ends, commas too many. JavaScript, whose
scripts these once were, says what most of it means. Where two readings are possible, the script stays what it is: no JSON.
"""

import html
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf.schema_org_terms import ALIASES, PREFIXES, TYPED
from gossamer.rdf.terms import LANG_STRING, MAX_IRI, XSD, Gathered, TooDear, clean_iri

#: Bytes of a script that is read; the largest of real shops stay below a tenth of it.
MAX_SCRIPT = 4_000_000
#: Bytes that a script of no length costs.
_EACH = 10
#: How often a script that is no JSON is read more than one that is.
_AGAIN = 2


def read_json_ld(script: bytes, base: str, gathered: Gathered) -> None:
    """Gather what a script says; relative IRIs are resolved against `base`. A script that is no JSON-LD is a warning,
    `JsonLdError`; one that is nearly JSON, and is read, is one too, `NearlyJson`, and so is a context that is not known,
    `UnknownContext`. Raises Full: the page has given as much as is taken of one. Raises ReadApart: the scripts of the page may
    cost more than a caller that cannot be stopped may spend."""
    if len(script) > MAX_SCRIPT:
        _skip(gathered, f"{len(script)} bytes are too long")
        return
    try:
        gathered.spend(len(script) + _EACH)
        numbers = _Numbers()
        value = _decoded(script, numbers, gathered)
        if not isinstance(value, dict | list):
            return  # JSON, and nothing is said of anything
        gathered.spend(put_contexts(value, script, base, gathered))
        document = msgspec.json.encode(value)
    except (TooDeep, RecursionError):
        _skip(gathered, "it is nested too deeply")
    except TooDear as error:
        _skip(gathered, str(error))
    except ValueError as error:
        gathered.warn("JsonLdError", str(error))
    else:
        _parse(document, base, numbers, gathered)


def _skip(gathered: Gathered, why: str) -> None:
    """Leave out a script that is over a limit: it may be JSON-LD all the same, so it is trouble of its page."""
    gathered.counts["parse_skipped"] += 1
    gathered.warn("JsonLdError", why)


def _decoded(script: bytes, numbers: "_Numbers", gathered: Gathered) -> Any:
    """The value of a script, also of one that is nearly JSON. Raises msgspec.DecodeError: it is none."""
    try:
        return numbers.decoded(script)
    except ValueError as error:
        gathered.spend(_AGAIN * len(script))
        try:
            value = numbers.decoded(as_json(script.decode("utf-8", "replace")).encode())
        except (NotNearly, ValueError):
            raise error from None
        gathered.warn("NearlyJson", str(error))
        return value


_DOUBLE, _INTEGER = f"{XSD}double", f"{XSD}integer"
#: Numbers from here on are doubles, whole or not, and those from which on the parser says so.
_DOUBLES_FROM, _PARSER_DOUBLES_FROM = 10**21, 10**20
#: Stands for a number that is too large for a double: it has 17 digits, and every other number 16.
_LARGEST, _LARGEST_TEXT = 1.7976931348623157e308, "1.7976931348623157E308"
_LONG = re.compile(rb"[0-9]{19}")
_STRING_OR_LONG = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[0-9]++(?:[.eE][0-9.eE+-]*+)?', re.DOTALL)


class _Numbers:
    """Reads JSON with its numbers as JSON-LD has them (JSON-LD 1.1 API, sections 8.2.2 and 8.6): with a fraction, and from
    10^21 on, they are doubles of 16 digits. The parser writes a few otherwise, and these are known by its text."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(float_hook=self._number)
        self._meant: dict[str, tuple[str, str]] = {}

    def decoded(self, script: bytes) -> Any:
        """The value of a script. Raises ValueError: it is no JSON."""
        if _LONG.search(script):  # strings stay as they are, and a whole number is read by its text
            script = _STRING_OR_LONG.sub(lambda one: one[0] + b".0" if one[0].isdigit() else one[0], script)
        return self._decoder.decode(script)

    def literal(self, text: str, datatype: str) -> tuple[str, str]:
        """Text and datatype of a literal that the parser made."""
        meant, kind = self._meant.get(text, (text, datatype))
        return meant, kind if datatype == _DOUBLE else datatype

    def _number(self, text: str) -> float | int:
        value = float(text)
        sign = "-" if value < 0 else ""
        if math.isinf(value):
            self._meant[sign + _LARGEST_TEXT] = sign + "INF", _DOUBLE
            return math.copysign(_LARGEST, value)
        whole = int(text[:-2]) if text.endswith(".0") else int(value)
        if not value.is_integer() or abs(whole) >= _DOUBLES_FROM:
            rounded = float(f"{value:.15e}")
            return rounded if math.isfinite(rounded) else value
        if abs(whole) >= _PARSER_DOUBLES_FROM:
            digits = str(abs(whole)).rstrip("0")
            self._meant[f"{sign}{digits[0]}.{digits[1:] or 0}E20"] = str(whole), _INTEGER
        return whole


def _parse(document: bytes, base: str, numbers: _Numbers, gathered: Gathered) -> None:
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
                text, datatype = numbers.literal(value.value, LANG_STRING if language else value.datatype.value)
                gathered.add(subject, predicate, text, datatype, language)
            else:
                gathered.add(subject, predicate, resource(value))
    except (SyntaxError, ValueError) as error:
        gathered.warn("JsonLdError", str(error))


# Scripts that are nearly JSON.

#: Space in JavaScript, and what editors leave behind.
_SPACE = "\\s\ufeff\u200b\u2060\0"

# Possessive, so no character is read twice; a string or comment without an end is none of these, and ends the reading.
_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*+")'
    rf"|(?P<space>[{_SPACE}]++)"
    r"|(?P<mark>(?://|/\*)?[ \t]*+(?:<!\[CDATA\[|\]\]>)(?:[ \t]*+\*/)?)"
    r"|(?P<comment>/\*.*?\*/|//[^\n\r\u2028\u2029]*+|<!--.*?-->)"
    r"|(?P<comma>,)"
    r"|(?P<end>[}\]])"
    r"|(?P<other>[\[{:]|[A-Za-z0-9.+-]++|;)",
    re.DOTALL,
)
_OPENS, _CLOSES = "<!--", "-->"
_WRAPPED = re.compile(r"<!--\s*+(?=[{\[])(.*)-->", re.DOTALL)
_IN_STRING = re.compile("\\\\(?:\r\n|[^ux]|u[0-9a-fA-F]{0,4}|x[0-9a-fA-F]{0,2})|[\0-\x1f]", re.DOTALL)
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\\\")
#: Words of JavaScript and Python for which JSON has others or none, and the place of a digit that JSON wants beside a point.
_WORDS = {"True": "true", "False": "false"} | dict.fromkeys(
    ("None", "NaN", "Infinity", "-Infinity", "undefined"), "null"
)
_LOOSE = re.compile(r"(?<![0-9])(?=\.[0-9])|(?<=[0-9]\.)(?![0-9])")
_KEPT = frozenset('"\\/bfnrt')
_UNICODE, _HEX = len("\\uXXXX"), len("\\xXX")


class NotNearly(Exception):
    """The script is no JSON, and no reader can be sure of its meaning."""


def as_json(text: str) -> str:
    """The JSON that a script nearly is. Raises NotNearly: it cannot be told."""
    text = text.strip().strip("\ufeff").strip()
    if '"' not in text and "&quot;" in text:
        text = html.unescape(text)
    if wrapped := _WRAPPED.fullmatch(text):
        text = wrapped[1]
    found = _without_additions(text)
    if not found and text.startswith(_OPENS) and text.endswith(_CLOSES):
        found = _without_additions(text[len(_OPENS) : -len(_CLOSES)])  # other marks stand before the document in it
    return found


def _without_additions(text: str) -> str:
    written: list[str] = []
    comma = -1  # where in `written` one stands that nothing has followed yet
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotNearly
        at, kind = match.end(), match.lastgroup
        if kind == "comma":
            comma = len(written)
        elif kind == "end" and comma >= 0:
            if comma == 0 or written[comma - 1] in "[{,:":
                raise NotNearly  # a value is missing
            written[comma] = " "
        if kind not in ("comma", "space", "mark", "comment"):
            comma = -1
        if kind == "string":
            found = match[0]
            written.append(_PAIR.sub(_paired, _IN_STRING.sub(_escaped, found)) if _IN_STRING.search(found) else found)
        elif kind in ("space", "mark", "comment"):
            if comma < 0:
                written.append(" ")
        else:
            written.append(_WORDS.get(match[0]) or _LOOSE.sub("0", match[0].removeprefix("+")))
    return "".join(written).rstrip("; ")


def _escaped(match: re.Match[str]) -> str:
    found = match[0]
    if found[0] != "\\":
        return "\\ufffd" if found == "\0" else f"\\u{ord(found):04x}"  # the HTML parser does so with a NUL
    letter = found[1]
    if letter in "\r\n":
        return ""  # the string goes on in the next line
    if letter in _KEPT or (letter == "u" and len(found) == _UNICODE):
        return found
    if letter == "x" and len(found) == _HEX:
        return f"\\u00{found[2:]}"
    if letter.isalnum():
        raise NotNearly  # a path of Windows, perhaps
    return letter


def _paired(match: re.Match[str]) -> str:
    """Half a character beyond the first 65,536, as a text that was cut within one ends, is none."""
    return match[0] if len(match[0]) != _UNICODE else "\\ufffd"


# Contexts: put in the place of their names, and weighed before a parser gets them. That of schema.org is bundled, as far as it says
# anything: every other term is its own name behind :data:`VOCABULARY`. The terms are those of one version, which
# :mod:`~gossamer.rdf.schema_org_terms` names; `./gossamer dev schema-org` takes another.

VOCABULARY = "http://schema.org/"

#: How pages name the context.
NAME = re.compile(
    r"https?://(?:www\.)?schema\.org(?:/(?:docs/jsonldcontext\.json(?:ld)?|version/[^/]+/schemaorgcontext\.jsonld)?)?#?",
    re.IGNORECASE,
)

#: Term -> the datatype of its strings, `@id` for links.
COERCED = {term: kind for kind, terms in TYPED.items() for term in terms.split()}

# Contexts are weighed, since their size says nothing of the work of a parser. pyoxigraph copies the context in force, term by
# term, for each object that has one of its own, and for each name in reach of a context that belongs to a term. It reads terms
# that stand for each other by recursion, which ends the process where there are thousands.

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
    """Put contexts in the place of their names, throughout a document. Returns what a parser copies on its way through the
    document, in terms of contexts, each as often as it does so at the most: it makes all triples of an object at once, each with
    the name of its node, and hands them to the object around it. Raises TooDeep: it is nested too deeply. Raises TooDear: a
    context is one that the parser must not see."""
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
    schema: dict[str, Any] = {"@vocab": VOCABULARY}
    schema |= {alias: stands_for for alias, stands_for in ALIASES.items() if alias in used}
    for term in used & COERCED.keys():
        schema[term] = {"@id": VOCABULARY + term, "@type": COERCED[term]}
    for prefix, iri in PREFIXES.items():
        if b'"%s:' % prefix.encode() in script:
            schema[prefix] = iri
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
    if isinstance(context, list):
        return [_known(part, schema, gathered) for part in context]
    if not isinstance(context, str):
        return context
    if NAME.fullmatch(context.strip()):
        return schema
    gathered.warn("UnknownContext", context)
    return {}


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
