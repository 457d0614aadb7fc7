"""JSON-LD scripts that are JSON but for what templates add to it: comments, wrappers, raw line ends, commas too many.

Place in the flow: :mod:`gossamer.rdf.jsonld` asks for it when a script is no JSON. JavaScript, whose scripts these once were,
says what most of it means. Where two readings are possible, the script stays what it is: no JSON.
"""

import html
import re

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
    """The JSON that a script nearly is.

    Raises:
        NotNearly: it cannot be told.
    """
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
