"""Which pages are rendered: those that seem to need it, as far as their hosts have shown that it brings something.

Place in the flow: the stage `render` asks here about each page. A page seems to need a browser if it has scripts and hardly
anything to read (:func:`gossamer.documents.terms.seems_empty`, by which `needs_browser` of the table `pages` goes, too; most pages
leave by their first links), or if its menu is empty or in a script: some generators of documentation write the text of a page, and
have a script write the way to the others. The rule can be wrong in two ways. A page may bring nothing, or the menu that the page
before brought; and a page with text may bring its list of links by a script, with no sign of it. So what rendering brought is
compared, for each host and shape of path: shapes that bring nothing are rendered once in a while only, and on hosts that have pages
which need a browser, one of twenty others is rendered to see.
"""

import contextlib
import re
from collections import OrderedDict
from itertools import islice

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.terms import FEW_LINKS, UNSEEN, marks_of, seems_empty, texts_of, without
from gossamer.values.url import path_of
from gossamer.values.visit import Found, Visit

#: A page is looked at once in so many, where nothing is expected of it.
AUDITED = 20

#: Pages of a shape in a row that brought nothing, after which the others of the shape are only audited; and audits in a row without
#: a gain, after which there are none.
VAIN, VAIN_AUDITS = 10, 200

#: A gain is so many links more, or so large a share of words.
GAINED_LINKS, GAINED_WORDS = 3, 1.2

#: Hosts of which something is remembered, and shapes of each: a site invents both.
MOST_HOSTS, MOST_SHAPES = 10_000, 50

#: Scripts of a page whose names are looked at.
MOST_SCRIPTS = 100

#: Links of menus that are remembered of a host: more than a menu has that is of use.
MOST_KNOWN = 500

#: An empty element with the identifier of a menu, as Doxygen and DocFX write it; and how the address of a script ends that holds
#: the menu of all pages: Doxygen, rustdoc, ExDoc, TypeDoc, Dokka and mdBook have one. Both begin with a literal, so they are found
#: fast.
_MENUS = rb"nav|navbar|navigation|menu|sidemenu|sidebar|toc|sidetoc|tree|tree-contents|nav-sync"
_MENU = re.compile(
    rb" id=[\"']?(?:[\w-]{0,40}[-_])?(?:" + _MENUS + rb")[\"']?(?:\s[^<>]{0,200})?>\s{0,40}</(?:div|nav|ul|aside)>"
)
_SCRIPT_ENDS = re.compile(rb"\.js[\"'\s>]")
_HOLDS_MENU = re.compile(
    rb"[/\"'=](?:menudata|navtreedata|navigation(?:-loader)?|toc(?:-[0-9a-f]{1,32})?|(?:sidebar[-_]items|source-files|src-files)"
    rb"[\w.-]{0,40})$"
)

_LEADING = re.compile(rb"<a\s[^>]{0,2000}?href\s*=\s*[\"']?(?!#|javascript:)([^\s\"'>]+)", re.IGNORECASE)
_VARIABLE = re.compile(r"[^/]*[0-9%][^/]*|[^/]{25,}")
_WORD = re.compile(rb"\w{2,}")


def seems_to_need(visit: Visit) -> bool:
    """Whether an HTML page holds scripts and hardly anything to read, or an empty menu."""
    if _seems_empty(visit):
        return True
    markup = visit.response.content
    if b"<script" not in markup:
        return False
    found = _MENU.search(markup)
    if found is not None and not _is_in_script(markup, found.start()):
        return True
    ends = (found.start() for found in islice(_SCRIPT_ENDS.finditer(markup), MOST_SCRIPTS))
    return any(_HOLDS_MENU.search(markup, max(0, end - 80), end) for end in ends)


def _seems_empty(visit: Visit) -> bool:
    document = Document(visit)
    markup = document.content
    found = (match for match in _LEADING.finditer(markup) if not _is_in_script(markup, match.start()))
    if sum(1 for _ in islice(found, FEW_LINKS)) >= FEW_LINKS or document.is_dear:
        return False
    skim = document.skim
    return seems_empty(skim, [Found(tag.attributes.get("href", "")) for tag in skim.named(b"a")])


def _is_in_script(markup: bytes, at: int) -> bool:
    return markup.rfind(b"<script", 0, at) > markup.rfind(b"</script", 0, at)


class _Shape(msgspec.Struct):
    """Pages of one shape of path."""

    vain: int = 0
    """How many in a row brought nothing."""
    passed: int = 0
    """How many went by unrendered since the last one that was looked at."""


class _Host(msgspec.Struct):
    shapes: dict[str, _Shape] = {}
    has_shown: bool = False
    """Some page of it needed a browser."""
    vain_audits: int = 0
    passed: int = 0
    known: set[int] = set()
    """Marks of links that rendering has brought."""


class Needs:
    """Decides page by page, and learns from what rendering brings, audits and all, so that another run can go on with it."""

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._most_hosts = most_hosts
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hosts)

    def knows(self, host: str) -> bool:
        """Whether anything is known of a host."""
        return host in self._hosts

    def note(self, host: str) -> bytes:
        """Everything that is known of a host."""
        return msgspec.msgpack.encode(self._host(host))

    def recall(self, host: str, note: bytes) -> None:
        """Know again what a note says; one that cannot be read says nothing."""
        with contextlib.suppress(ValueError):
            self._hosts[host] = msgspec.msgpack.decode(note, type=_Host)

    def decide(self, visit: Visit) -> bool:
        """Whether a page is rendered."""
        if seems_to_need(visit):
            shape = self._shape(visit)
            if shape.vain < VAIN:
                return True
            shape.passed += 1
            return shape.passed % AUDITED == 0
        host = self._hosts.get(visit.task.host)
        if host is None or not host.has_shown or host.vain_audits >= VAIN_AUDITS:
            return False
        host.passed += 1
        if host.passed % AUDITED or b"<script" not in visit.response.content:
            return False
        host.vain_audits += 1
        return True

    def learn(self, visit: Visit, markup: bytes) -> None:
        """Compare a page with what a browser made of it."""
        open_roots = markup.replace(b"<template shadowrootmode", b"<div")
        before, after = (without(one.lower(), UNSEEN) for one in (visit.response.content, open_roots))
        host, shape = self._host(visit.task.host), self._shape(visit)
        gained = _links(after) - _links(before)
        has_gained = len(gained) >= GAINED_LINKS or _words(after) >= GAINED_WORDS * _words(before) + 1
        if not _seems_empty(visit):  # it has something to read, so what counts is what no other page has brought
            has_gained = len(gained - host.known) >= GAINED_LINKS
        host.known.update(islice(gained, max(0, MOST_KNOWN - len(host.known))))
        if has_gained:
            host.has_shown, host.vain_audits, shape.vain = True, 0, 0
        else:
            shape.vain += 1

    def _host(self, name: str) -> _Host:
        host = self._hosts.setdefault(name, _Host())
        self._hosts.move_to_end(name)
        while len(self._hosts) > self._most_hosts:
            self._hosts.popitem(last=False)
        return host

    def _shape(self, visit: Visit) -> _Shape:
        shapes = self._host(visit.task.host).shapes
        name = _VARIABLE.sub("*", path_of(visit.url).partition("?")[0])
        return shapes.setdefault(name if name in shapes or len(shapes) < MOST_SHAPES else "", _Shape())


def _links(markup: bytes) -> set[int]:
    return marks_of(found[1] for found in _LEADING.finditer(markup))


def _words(markup: bytes) -> int:
    return sum(1 for _ in _WORD.finditer(texts_of(markup)))
