"""Facts about a page that its author states for readers elsewhere: author, date, description, image, site.

Place in the flow: :attr:`gossamer.documents.document.Document.metadata` asks for it; front matter of Markdown and chunks
have it. Sources, in this order: JSON-LD of an article, `meta` elements of Open Graph and of HTML, the first `time`. Full structured
data is read elsewhere (:mod:`gossamer.rdf`), at a cost that a text should not have.

Promises: pure, linear; each fact is one line of bounded length; what cannot be read is left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gossamer.documents.markup import resolved
from gossamer.documents.skim import Skim
from gossamer.values.errors import UnreadableUrl
from gossamer.values.url import canonical

#: Characters of a fact that are kept.
MAX_FACT = 1_000

#: Bytes of JSON-LD scripts of a page that are read, and values in them that are looked at.
_MAX_SCRIPTS, _MAX_VALUES = 256 << 10, 2_000

_ARTICLES = re.compile(r"Article$|Posting$|Report$|^WebPage$|^Recipe$|^Product$|^Book$")
_SCRIPT = re.compile(rb"""(?i)<script\b[^<>]*\btype\s*=\s*["']?application/ld\+json\b[^<>]*>""")
_TIME = re.compile(rb"""(?i)<time\b[^<>]*?\bdatetime\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))""")
#: The beginning of a date as ISO 8601 has it.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d[^ ]*)?$")

#: Names of `meta` elements for each fact, the best first.
_NAMES = {
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "parsely-author", "twitter:creator"),
    "published": (
        "article:published_time", "datepublished", "date", "dc.date", "dcterms.created", "parsely-pub-date", "pubdate",
        "sailthru.date",
    ),
    "modified": ("article:modified_time", "og:updated_time", "datemodified", "last-modified", "dcterms.modified"),
    "description": ("og:description", "description", "twitter:description", "dc.description"),
    "image": ("og:image", "og:image:url", "twitter:image"),
    "site": ("og:site_name", "application-name"),
}  # fmt: skip


class PageMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts about a page; empty where the page does not state them."""

    author: str = ""
    """One, or several with `, ` between them."""
    published: str = ""
    """ISO 8601."""
    modified: str = ""
    """ISO 8601."""
    description: str = ""
    image: str = ""
    """Canonical URL."""
    site: str = ""


def page_metadata(skim: Skim, base: str) -> PageMetadata:
    """The facts that a page states. `base`: what relative URLs are resolved against."""
    told = _of_metas(tag.attributes for tag in skim.named(b"meta"))
    found = {name: next((told[key] for key in names if key in told), "") for name, names in _NAMES.items()}
    found |= {name: text for name, text in _of_scripts(skim.markup).items() if text}
    for name in ("published", "modified"):
        found[name] = found[name] if _DATE.match(found[name]) else ""
    if not found["published"] and (match := _TIME.search(skim.markup)):
        text = (match[1] or match[2] or match[3] or b"").decode("utf-8", "replace").strip()
        found["published"] = text if _DATE.match(text) else ""
    if found["author"].startswith(("http://", "https://", "@")):
        found["author"] = ""
    try:
        found["image"] = canonical(found["image"], base) if found["image"] else ""
    except UnreadableUrl:
        found["image"] = ""
    return PageMetadata(**found)


def _line(text: str) -> str:
    return " ".join(text.split())[:MAX_FACT]


def _of_metas(metas: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What `meta` elements say, by lower-case name; the first of each."""
    told: dict[str, str] = {}
    for meta in metas:
        name = meta.get("property") or meta.get("name") or meta.get("itemprop") or ""
        content = _line(meta.get("content", "")[: 4 * MAX_FACT])
        if name and content:
            told.setdefault(name.lower(), content)
    return told


def _of_scripts(markup: bytes) -> dict[str, str]:
    """What the first article in JSON-LD says."""
    left = _MAX_SCRIPTS
    for match in _SCRIPT.finditer(markup):
        end = markup.find(b"</", match.end(), match.end() + left)
        if end < 0:
            break
        left -= end - match.end()
        try:
            data = msgspec.json.decode(markup[match.end() : end])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        for thing in _things(data):
            kinds = thing.get("@type")
            if any(
                isinstance(kind, str) and _ARTICLES.search(kind)
                for kind in (kinds if isinstance(kinds, list) else [kinds])
            ):
                return {
                    "author": _line(", ".join(_names(thing.get("author")))),
                    "published": _text(thing.get("datePublished")),
                    "modified": _text(thing.get("dateModified")),
                    "description": _text(thing.get("description")),
                    "image": next(iter(_names(thing.get("image"), "url")), ""),
                }
    return {}


def _things(data: Any) -> Iterator[dict[str, Any]]:
    """Objects of JSON-LD, outer ones first."""
    waiting, seen = [data], 0
    while waiting and seen < _MAX_VALUES:
        one = waiting.pop(0)
        seen += 1
        if isinstance(one, dict):
            yield one
            waiting += [value for value in one.values() if isinstance(value, (dict, list))]
        elif isinstance(one, list):
            waiting += [value for value in one[:_MAX_VALUES] if isinstance(value, (dict, list))]


def _names(value: Any, key: str = "name") -> list[str]:
    """Names of persons, or URLs of images: texts, objects, or lists of them."""
    every = value if isinstance(value, list) else [value]
    return [text for one in every[:20] if (text := _text(one.get(key) if isinstance(one, dict) else one))]


def _text(value: Any) -> str:
    return _line(resolved(value[: 4 * MAX_FACT].encode())) if isinstance(value, str) else ""
