"""Statements of an answer about its document, beside the text: directives for robots, in `X-Robots-Tag` fields and meta tags, and
links, in `Link` fields (RFC 8288), which are for any document what `link` elements are for HTML. Pure, and every search here is
linear.

Place in the flow: :class:`~gossamer.documents.document.Document` asks once for each page. The canonical URL of a PDF can stand
in a `Link` field alone (RFC 6596, section 3), and the process stage reads links from them; targets are relative to the URL that
answered, whatever base a page names.

Directives are in no standard: RFC 9309 has neither field nor tag. The words are those that search engines agree on; all of them
are recorded, and which of them a crawl follows is decided elsewhere. Search engines name the comma alone between them; pages
also write semicolons, blanks and the commas of their own script, and a crawler that means to obey reads whatever is no part of
a word so.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from gossamer.values.errors import UnreadableUrl
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import canonical, of_field

#: Directives that have a value behind a colon: anything else before a colon is an agent's name.
_VALUED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))

#: Directives that no agent is named after, so that one before a colon, as in `nofollow: true`, is meant.
_WORDS = frozenset(("noindex", "nofollow", "none", "noarchive", "nocache", "nosnippet", "noimageindex", "notranslate"))

#: Directives of a page that are kept: more are no statement but a load (fault 76).
MAX_DIRECTIVES = 64
MAX_DIRECTIVE = 256

#: `rel` tokens by which a page says that it does not vouch for a link (HTML, 4.6.6; Google's `ugc` and `sponsored`).
NOFOLLOW = frozenset({"nofollow", "ugc", "sponsored"})

#: The archive's note on a page that asks for no copy.
NO_COPY = "the page asks that no copy of it be kept"

#: One directive: with its date, which goes to the end; with another value; or a word.
_DIRECTIVE = lazy_pattern(
    r"unavailable_after\s*:.*|max-(?:snippet|image-preview|video-preview)\s*:\s*[^\s:]*|[\w.-]+", re.DOTALL
)

#: Marks that some pages write around a directive.
_AROUND = "'\".!"

_NAME = lazy_pattern(r"\s*([A-Za-z0-9_.*-]+)\s*:")

#: Parts of a date behind a comma, as in `Sat, 01 Jan 2028 00:00:00 GMT`: it belongs to the part before.
_DATE_REST = lazy_pattern(r"\s*\d")


def directives(values: Iterable[str], agent: str) -> frozenset[str]:
    """The directives for `agent`, in lower case: those for everyone and its own, together.

    `none` also counts as what it stands for, `noindex` and `nofollow`. A directive with a value is one text:
    `unavailable_after: 25 jun 2030 15:00:00 pst`, `max-snippet: 20`.

    Args:
        values: `X-Robots-Tag` field values, in which an agent's name and a colon may stand before what is for it; or
            contents of meta tags whose name :func:`concerns` the agent.
        agent: product token, compared without regard to case.
    """
    found, agents = set[str](), (agent.lower(), "*", "robots")
    for value in values:
        parts: list[str] = []
        for part in value[: MAX_DIRECTIVES * MAX_DIRECTIVE].replace(";", ",").split(","):
            if parts and _DATE_REST.match(part) and "unavailable_after" in parts[-1].lower():
                parts[-1] += f",{part}"  # the comma within a date parts nothing
            else:
                parts.append(part)
        is_ours = True  # an agent's name holds until the next one: field values joined by a proxy stay readable
        for part in parts:
            name, begin = _NAME.match(part), 0
            if name is not None and name[1].lower() not in _VALUED | _WORDS:
                is_ours, begin = name[1].lower() in agents, name.end()
            for one in _DIRECTIVE.finditer(part[begin:].lower()) if is_ours else ():
                directive = _folded(one[0]).strip(_AROUND)
                if directive and len(found) < MAX_DIRECTIVES:
                    found.add(directive)
    if "none" in found:
        found |= {"noindex", "nofollow"}
    return frozenset(found)


def concerns(name: str, agent: str) -> bool:
    """A meta tag of this name speaks to `agent`: `robots` speaks to everyone."""
    return name.strip().lower() in ("robots", agent.lower())


def _folded(text: str) -> str:
    """White space folded, one space behind the colon of a valued directive."""
    name, colon, rest = " ".join(text.split()).partition(":")
    return (f"{name.strip()}: {rest.strip()}" if colon else name)[:MAX_DIRECTIVE]


#: Links of one answer that are read: servers name a dozen (fault 76).
MAX_FIELD_LINKS = 200
#: Characters of all fields together that are looked at; a head has at most so many.
MAX_FIELDS = 65_536

# A target, and what stands behind it up to the comma in front of the next one. Commas in quotes part nothing.
_LINK = lazy_pattern(r'<([^<>]*+)>((?:[^",]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z))*+)', re.DOTALL)
# A parameter: its name, and its value in quotes or as a token.
_PARAMETER = lazy_pattern(
    r';[ \t]*+([^\s=;,"]++)[ \t]*+(?:=[ \t]*+(?:"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|([^\s;,"]*+)))?+', re.DOTALL
)
_QUOTED = lazy_pattern(r"\\(.)", re.DOTALL)


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
    `headers`: fields in order, names in lower case; `url`: canonical URL of the document."""
    text = ", ".join([value for name, value in headers if name == "link"])[:MAX_FIELDS]
    found = 0
    for match in _LINK.finditer(text):
        given: dict[str, str] = {}
        for parameter in _PARAMETER.finditer(match[2]):  # the first of each name counts (section 3.3)
            name, quoted, token = parameter.groups()
            given.setdefault(name.lower(), _QUOTED.sub(r"\1", quoted) if quoted is not None else token or "")
        relations = frozenset(given.get("rel", "").lower().split())
        target = _resolved(match[1], url)
        anchor = given.get("anchor")  # a context that is another document, or a place in this one (section 3.2)
        is_elsewhere = anchor is not None and ("#" in anchor or _resolved(anchor, url) != url)
        if not relations or not target or is_elsewhere:
            continue
        yield FieldLink(target, relations, given.get("imagesrcset", ""))
        found += 1
        if found >= MAX_FIELD_LINKS:
            return


def _resolved(target: str, url: str) -> str:
    """The canonical URL of a target; empty where it is none."""
    try:
        return canonical(of_field(target.strip()), url)
    except UnreadableUrl:
        return ""
