"""Literals of RDFa: plain, typed, times of HTML, and markup."""

import re
from collections.abc import Mapping

from gossamer.rdf.nodes import Content, XmlContent
from gossamer.rdf.terms import HTML_LITERAL, XML_LITERAL, XSD, literal

#: Value, datatype and language of an object.
Value = tuple[str, str, str]

#: Datatypes whose value is the markup in the element.
MARKUP = frozenset([XML_LITERAL, HTML_LITERAL])

#: Characters of the longest time; nothing longer is looked at.
MAX_TIME = 100

_ZONE = r"(?:Z|[+-]\d\d:\d\d)?"
# HTML+RDFa 1.1, section 3.1: the first that matches is the datatype.
_TIMES = [
    (f"{XSD}{name}", re.compile(pattern))
    for name, pattern in (
        ("duration", r"-?P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"),
        ("dateTime", rf"-?\d{{4,}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("date", rf"-?\d{{4,}}-\d\d-\d\d{_ZONE}"),
        ("time", rf"\d\d:\d\d:\d\d(?:\.\d+)?{_ZONE}"),
        ("gYearMonth", rf"-?\d{{4,}}-\d\d{_ZONE}"),
        ("gYear", rf"-?\d{{4,}}{_ZONE}"),
    )
]


def typed(text: str, datatype: str, language: str) -> Value:
    """A literal of a datatype, or a plain one where there is none."""
    return (text, datatype, "") if datatype else literal(text, language)


def time(text: str, language: str) -> Value:
    """A literal of the first datatype of times whose form it has, or a plain one."""
    if len(text) <= MAX_TIME:
        for datatype, form in _TIMES:
            if form.fullmatch(text):
                return text, datatype, ""
    return literal(text, language)


def written(content: Content, datatype: str, namespaces: Mapping[str, str]) -> Value:
    """The markup in an element, with the namespaces declared that are known around it."""
    markup = content.markup(namespaces) if isinstance(content, XmlContent) else content.inner_html
    return markup or "", datatype, ""
