"""Pages that seem to need a browser: shells that hold scripts and hardly anything that a person could read.

Place in the flow: reading a page asks here once its links are known; most pages leave by their number. The crawl counts such pages
and says so. It does not compare their texts, since there are none: every page of a single-page application is the same shell.

A page needs a script that runs, and must not lead on by itself (`meta refresh`). Besides, one of three things must hold:

1. it has a few words and hardly a link;
2. an element with the identifier of an application, or with a name of its own, is empty, and little stands behind it;
3. it asks for JavaScript in a `noscript`.

Pure, and linear in the bytes that are looked at. It is not sure: only a browser that renders the page knows.
"""

import re
from collections.abc import Iterable
from itertools import islice

from gossamer.documents.skim import Skim
from gossamer.documents.terms import texts_of, without
from gossamer.values.visit import Found

#: Words and links below which a page is a shell by itself, where a root is empty, and where a `noscript` asks for JavaScript.
BARE_WORDS, BARE_LINKS = 30, 3
ROOT_WORDS, ASKING_WORDS, FEW_LINKS = 120, 200, 5

#: Words that may stand behind such a root: more of them are the content of a page that has an element of its own beside it.
BEHIND = 20

#: Letters that count as one word where none are divided by blanks.
LETTERS = 8

#: Bytes behind the head that are looked at, and those of a `noscript` that are read.
LOOKED_AT, REQUEST = 131_072, 2_000

#: Elements whose content is not read without a browser, or at all.
_UNREAD = tuple((b"<" + name, b"</" + name) for name in (b"script", b"style", b"noscript", b"template", b"svg"))
_UNREAD += ((b"<!--", b"-->"),)

_WORD = re.compile(r"\w{2,}")
_ROOT = re.compile(
    rb"<(?:div|main|section)\b[^<>]*?\bid\s{0,9}=\s{0,9}[\"']?"
    rb"(?:root|app|main|application|__next|__nuxt|svelte|q-app|mount|container|___gatsby|gatsby|react-root|app-root)"
    rb"[\"'\s>]",
)
_OWN_ELEMENT = re.compile(rb"<([a-z][a-z0-9]{0,30}-[a-z0-9-]{1,60})(?:\s[^<>]*)?>\s*</\1\s*>")
_ASKS = re.compile(
    rb"(?:enable|requires?|need|turn on|without|activ)\W{1,9}(?:\w{1,20}\W{1,9}){0,4}javascript"
    rb"|javascript\W{1,9}(?:\w{1,20}\W{1,9}){0,5}(?:enabled|required|disabled|needed)"
)
#: Types of scripts that run; one without a type does, too.
_RUNS = (
    "",
    "module",
    "text/javascript",
    "application/javascript",
    "text/ecmascript",
    "application/x-javascript",
    "text/babel",
)


def seems_empty(skim: Skim, found: Iterable[Found]) -> bool:
    """Whether a page seems to need a browser, by its tags and the links that were found on it."""
    hrefs = (one.href.strip().lower() for one in found if one.relation == "a href")
    leading = (href for href in hrefs if href and not href.startswith(("#", "javascript:")))
    links = sum(1 for _ in islice(leading, FEW_LINKS))
    if links >= FEW_LINKS:
        return False
    kinds = (script.attributes.get("type", "").partition(";")[0].strip().lower() for script in skim.named(b"script"))
    if not any(kind in _RUNS for kind in kinds):
        return False
    if any(meta.attributes.get("http-equiv", "").strip().lower() == "refresh" for meta in skim.named(b"meta")):
        return False
    body = skim.markup[skim.head_end :][:LOOKED_AT].lower()
    read = without(body, _UNREAD)
    words = _words(read)
    if words >= ASKING_WORDS:
        return False
    if words < BARE_WORDS and links < BARE_LINKS:
        return True
    root = (_ROOT.search(read) or _OWN_ELEMENT.search(read)) if words < ROOT_WORDS else None
    if root is not None and _words(b"<" + read[root.end() :]) < BEHIND:
        return True
    start = body.find(b"<noscript")
    return start >= 0 and _ASKS.search(body[start : start + REQUEST].partition(b"</noscript")[0]) is not None


def _words(markup: bytes) -> int:
    """The number of words between tags, by letters where a script divides none."""
    text = texts_of(markup).decode("utf-8", "replace")
    return max(len(_WORD.findall(text)), sum(map(str.isalpha, text)) // LETTERS)
