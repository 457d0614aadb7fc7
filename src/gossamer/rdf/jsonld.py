"""JSON-LD in a page: each script becomes triples by pyoxigraph's parser, with the contexts that it names put in its place.

No context is fetched. Schema.org's is bundled, and of it only those terms are put in that the script uses
(:mod:`gossamer.rdf.contexts`): the parser reads the whole context for each script otherwise. A context that is not known is left
out, counted and named; what it would have said is lost, what the script says in full IRIs, or by another context, is not.

Some scripts are JSON but for what templates add to it: comments, wrappers, raw line ends, commas too many. JavaScript, whose
scripts these once were, says what most of it means. Where two readings are possible, the script stays what it is: no JSON.
"""

import html
import re
from typing import Any

import msgspec
import pyoxigraph as oxigraph

from gossamer.rdf.contexts import TooDeep, put_contexts
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
        base: what relative IRIs are resolved against.
        gathered: takes the triples. A script that is no JSON-LD is a warning, `JsonLdError`; one that is nearly JSON, and
            is read, is one too, `NearlyJson`, and so is a context that is not known, `UnknownContext`.

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
        gathered.spend(put_contexts(value, script, base, gathered))
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
    """The value of a script, also of one that is nearly JSON. Raises msgspec.DecodeError: it is none."""
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
            written.append(_string(match[0]))
        elif kind in ("space", "mark", "comment"):
            if comma < 0:
                written.append(" ")
        else:
            written.append(match[0])
    return "".join(written).rstrip("; ")


def _string(text: str) -> str:
    if _IN_STRING.search(text) is None:
        return text
    return _PAIR.sub(_paired, _IN_STRING.sub(_escaped, text))


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
