"""Links in the header of an answer (RFC 8288): the `Link` fields, which say of any document what `link` elements say of HTML.

Place in the flow: :class:`~gossamer.documents.document.Document` asks once for each document that has such a field. Its
canonical URL is read from them, which is the only way for a PDF (RFC 6596, section 3), and the process stage reads links
from them. Targets are relative to the URL that answered, whatever base a page names. Every search here is linear.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical, of_field

#: Links of one answer that are read: servers name a dozen (fault 76).
MAX_FIELD_LINKS = 200
#: Characters of all fields together that are looked at; a head has at most so many.
MAX_FIELDS = 65_536

# A target, and what stands behind it up to the comma in front of the next one. Commas in quotes part nothing.
_LINK = re.compile(r'<([^<>]*+)>((?:[^",]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z))*+)', re.DOTALL)
# A parameter: its name, and its value in quotes or as a token.
_PARAMETER = re.compile(
    r';[ \t]*+([^\s=;,"]++)[ \t]*+(?:=[ \t]*+(?:"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|([^\s;,"]*+)))?+', re.DOTALL
)
_QUOTED = re.compile(r"\\(.)", re.DOTALL)


class FieldLink(msgspec.Struct, frozen=True):
    """One link of a `Link` field whose context is the document itself."""

    url: str
    """Canonical."""
    relations: frozenset[str]
    """In lower case."""
    image_set: str = ""
    """The `imagesrcset` of a picture that is to be preloaded."""


def field_links(headers: Iterable[tuple[str, str]], url: str) -> Iterator[FieldLink]:
    """The links of an answer, in order; those of other documents (`anchor`), and those that cannot be read, are left out.

    Args:
        headers: fields in order, names in lower case.
        url: canonical URL of the document.
    """
    text = ", ".join([value for name, value in headers if name == "link"])[:MAX_FIELDS]
    found = 0
    for match in _LINK.finditer(text):
        given = _parameters(match[2])
        relations = frozenset(given.get("rel", "").lower().split())
        target = _resolved(match[1], url)
        if not relations or not target or not _is_of(given.get("anchor"), url):
            continue
        yield FieldLink(target, relations, given.get("imagesrcset", ""))
        found += 1
        if found >= MAX_FIELD_LINKS:
            return


def _parameters(text: str) -> dict[str, str]:
    """The parameters of a link, the first of each name (section 3.3)."""
    given: dict[str, str] = {}
    for match in _PARAMETER.finditer(text):
        name, quoted, token = match.groups()
        given.setdefault(name.lower(), _QUOTED.sub(r"\1", quoted) if quoted is not None else token or "")
    return given


def _is_of(anchor: str | None, url: str) -> bool:
    """Whether a link of this context is one of the document (section 3.2); a place in it is another context."""
    return anchor is None or ("#" not in anchor and _resolved(anchor, url) == url)


def _resolved(target: str, url: str) -> str:
    """The canonical URL of a target; empty where it is none."""
    try:
        return canonical(of_field(target.strip()), url)
    except UnreadableUrl:
        return ""
