"""The links stage: links that processors found become canonical URLs, each once, in document order.

Place in the flow: process, which says what a page wrote, ─► **links** ─► filter, which judges URLs. Pure: the component calls
:func:`resolve_links` with a cache that it owns. Canonicalising is most of the work, and the pages of a site repeat its menus,
so joins are remembered by directory.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.documents.charset import in_charset
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import SettingError
from gossamer.engine.files import text_in
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.errors import UnreadableUrl, UrlTooLong, UsageError
from gossamer.values.request_identity import identity_of, led_back
from gossamer.values.settings import MaxLinks
from gossamer.values.task import CSS_IMPORT, CSS_URL, REDIRECTS
from gossamer.values.url import (
    MAX_URL_BYTES,
    authority_of,
    canonical,
    is_plain_path,
    plain_host,
    scheme_of,
    scheme_rule,
)
from gossamer.values.url_normalization import USUAL, Normalise, Normaliser, Parameter, Step, aliases_of, read_parameters
from gossamer.values.visit import TOO_MANY_LINKS, Found, Link, Visit

# The list of parameters: this is where the links stage touches files.

#: Bytes of the longest list.
MAX_BYTES = 1 << 20


@lru_cache(maxsize=1)
def shipped_parameters() -> Sequence[Parameter]:
    """The list that ships, `data/parameters.txt`."""
    text = Path(__file__).with_name("data").joinpath("parameters.txt").read_text(encoding="utf-8")
    return tuple(read_parameters(text.splitlines()))


def parameters_of(file: str) -> Sequence[Parameter]:
    """The list of a file, or the shipped one where the name is empty. Raises SettingError: the file cannot be read, or is no
    such list."""
    if not file:
        return shipped_parameters()
    called = f"list of parameters {file}"
    lines = text_in(Path(file), SettingError, called=called, most=MAX_BYTES).splitlines()
    try:
        return tuple(read_parameters(lines))
    except ValueError as error:
        raise SettingError(f"{called}: {error}") from None


#: Different URLs that a page leads to and that are kept (design question 12, fault 39).
MAX_LINKS = 6_000

#: The mark of a remembered refusal; no URL begins with it.
_REFUSED = "!"

_IN_STYLES = frozenset({CSS_IMPORT, CSS_URL})

# The parser drops white space and C0 controls in front, and `?` and `#` go on from the whole base, not from its
# directory.
_CACHEABLE_STARTS = frozenset("/._-~%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


# A link of which nothing is left behind a scheme goes on from the whole base where that is the base's own: `http:`, `http:?a`.
# The parser drops tabs and line ends wherever they stand.
_IS_SCHEME_ALONE = re.compile(r"[A-Za-z][A-Za-z0-9+.\t\n\r-]*+:[\0- ]*+(?:\?|\Z)").match


#: Bytes of the longest name that can be looked up, and of its longest label (RFC 1035, section 2.3.4; 255 octets on the wire).
MAX_HOST = 253
MAX_LABEL = 63


def as_it_is(url: str) -> str:
    return url


class JoinCache:
    """Remembers `(directory of the base, href) -> URL`, within a bound on all entries.

    Whole directories leave, those first that were not asked for the longest. Links that name their site are the same from
    everywhere: they have a quarter of the room to themselves.
    """

    __slots__ = ("_directories", "_entries", "_most", "_most_absolute", "absolute")

    def __init__(self, capacity: int = 50_000) -> None:
        """`capacity` counts entries; one takes about 250 bytes."""
        self.absolute: dict[str, str] = {}
        """Of links that begin with `http://` or `https://`."""
        self._most_absolute = capacity // 4
        self._most = capacity - self._most_absolute
        self._directories: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._entries = 0

    def __len__(self) -> int:
        return self._entries + len(self.absolute)

    def table(self, directory: str) -> dict[str, str]:
        """The joins that are remembered for a directory; to be given back with :meth:`grown`."""
        table = self._directories.get(directory)
        if table is None:
            table = self._directories[directory] = {}
        else:
            self._directories.move_to_end(directory)
        return table

    def grown(self, by: int) -> None:
        """The tables have grown, that of the last directory by so much: keep the bound."""
        if len(self.absolute) > self._most_absolute:
            self.absolute.clear()
        self._entries += by
        while self._entries > self._most:
            _, dropped = self._directories.popitem(last=False)
            self._entries -= len(dropped)


def with_queries(found: Sequence[Found], base: str, charset: str) -> Sequence[Found]:
    """The links of a document, their queries in its encoding (:mod:`gossamer.documents.charset`); those of its style sheets stay.

    Args:
        found: in document order.
        base: what relative links are resolved against: a canonical URL.
        charset: the document's encoding, which is not UTF-8.
    """
    if all(one.href.isascii() for one in found):
        return found
    return [
        one
        if one.href.isascii() or one.relation in _IN_STYLES
        else Found(in_charset(one.href, base, charset), one.relation, one.anchor, one.nofollow, one.request)
        for one in found
    ]


def resolve_links(
    found: Sequence[Found],
    base: str,
    page_url: str,
    cache: JoinCache,
    limit: int = MAX_LINKS,
    normalise: Normalise = as_it_is,
    hostless: frozenset[str] = frozenset(),
) -> tuple[tuple[Link, ...], dict[str, int]]:
    """The page's links, and how many each rule refused.

    Args:
        found: in document order.
        base: what relative links are resolved against: a canonical URL.
        page_url: the page's own canonical URL.
        cache: shared by the pages of a crawl.
        limit: the most links that are kept.
        normalise: what brings a canonical URL to its normal form; the cache remembers its results.
        hostless: schemes whose URLs are kept though they name no host, since a protocol module serves them.

    A URL that is found again (with another request it is another) keeps its first place, relation and anchor; it is `nofollow`
    only if each occurrence is.
    A page's link to itself is one like any other. A redirect leads back to where it began only with other cookies; one to
    another spelling of its own page keeps that spelling, for the server insists on it.
    Rules: `not_a_url`, `too_long`, `bad_host`, `scheme:...` (no host to ask and no module that needs none: `mailto`,
    `javascript`, ...; a `file` that another host links to), `too_many_links`.
    """
    # The part of the base that relative paths go on from; a base without a path (`data:`) has none.
    directory, query = "", base.find("?")
    if base.startswith("//", base.find(":") + 1):
        directory = base[: base.rfind("/", 0, query if query >= 0 else len(base)) + 1]
    table = cache.table(directory) if directory else {}
    before = len(table)
    # A redirect to its own page leads nowhere. Any other link to it is one, and a page of fragments has it a hundred times.
    redirects = len(found) == 1 and found[0].relation in REDIRECTS
    urls = _joined(
        found, base, page_url if base == page_url else "", directory, table, cache.absolute, normalise, hostless
    )
    if redirects:  # perhaps back to where they began, which is another request once a cookie was set on the way
        found = [msgspec.structs.replace(found[0], request=led_back(found[0].request, urls[0]))]
    links, rejected = _each_once(found, urls, limit, {page_url: -1} if redirects else {})
    cache.grown(len(table) - before if directory else 0)
    if redirects and not links and not rejected:
        links = _insisted(found[0], base, page_url)
    return tuple(links), rejected


def _joined(
    found: Sequence[Found],
    base: str,
    own: str,
    directory: str,
    table: dict[str, str],
    absolute: dict[str, str],
    normalise: Normalise,
    hostless: frozenset[str],
) -> list[str]:
    """The URL of each link, or a marked refusal, in order. `own` is the URL of a fragment alone, where that is known."""
    get = table.get
    urls = [get(one.href, "") for one in found]
    if all(urls):  # as where the pages of a site have one menu
        return urls
    for place, one in enumerate(found):
        if urls[place]:
            continue
        # The first `#` begins the fragment of any URL; without it, ten links into one document are one look-up. White space
        # before it has to stay: the parser drops it only at the very end.
        href = one.href
        cut = href.find("#")
        if cut == 0 and own:
            urls[place] = own
            continue
        if cut > 0 and href[cut - 1] > " ":
            href = href[:cut]
        url = get(href)
        if not url:
            url = _met(href, base, directory, absolute, normalise, hostless)
            if href[:1] in _CACHEABLE_STARTS and len(href) <= MAX_URL_BYTES and not _IS_SCHEME_ALONE(href):
                table[href] = url
        urls[place] = url
    return urls


def _each_once(
    found: Sequence[Found], urls: Sequence[str], limit: int, places: dict[str, int]
) -> tuple[list[Link], dict[str, int]]:
    """The links, each at its first place, and how many each rule refused; `places` are those that are known before."""
    links: list[Link] = []
    disowned: set[int] = set()
    rejected: dict[str, int] = {}
    cut: set[str] = set()
    for one, url in zip(found, urls, strict=True):
        request = one.request
        identity = url if request is None else identity_of(url, request.mark)
        place = places.get(identity)
        if place is not None:
            if disowned and place in disowned and not one.nofollow:
                disowned.discard(place)
                kept = links[place]
                links[place] = Link(kept.url, kept.relation, kept.anchor, False, kept.request)
        elif url[0] == _REFUSED:
            rule = url[1:]
            rejected[rule] = rejected.get(rule, 0) + 1
        elif len(links) >= limit:
            cut.add(identity)
        else:
            place = places[identity] = len(links)
            links.append(Link(url, one.relation, one.anchor, one.nofollow, request, one.said))
            if one.nofollow:
                disowned.add(place)
    if cut:
        rejected[TOO_MANY_LINKS] = len(cut)
    return links, rejected


def _insisted(redirect: Found, base: str, page_url: str) -> list[Link]:
    """The target of a redirect that leads to another spelling of its own page, which is then no spelling to fold."""
    url = _join(redirect.href, base, as_it_is)
    return [Link(url, redirect.relation, request=redirect.request)] if url != page_url and url[0] != _REFUSED else []


def _met(
    href: str, base: str, directory: str, absolute: dict[str, str], normalise: Normalise, hostless: frozenset[str]
) -> str:
    """The URL of a link, or a marked refusal, when it is first met in this directory."""
    if not href.startswith(("http://", "https://")):
        return _appended(href, directory, normalise) or _join(href, base, normalise, hostless)
    url = absolute.get(href) or _plain(href, normalise) or _join(href, base, normalise, hostless)
    if len(href) <= MAX_URL_BYTES:
        absolute[href] = url
    return url


def _plain(url: str, normalise: Normalise) -> str:
    """The result of :func:`_join` for a URL that is canonical to be sure; empty for any other."""
    if not plain_host(url) or not _has_host_of_dns(url):
        return ""
    return normalise(url)


def _appended(href: str, directory: str, normalise: Normalise) -> str:
    """The result of :func:`_join` for a plain path in or above an http directory; empty for any other link."""
    if len(href) > MAX_URL_BYTES or not directory.startswith("http"):
        return ""
    root = directory.find("/", 8)
    if href[:1] == "/":
        href, directory = href[1:], directory[: root + 1]
    else:
        while href.startswith("../"):
            # The root is its own parent.
            href, directory = href[3:], directory[: directory.rfind("/", root, -1) + 1] or directory
    url = directory + href
    if (
        not href
        or not is_plain_path(href)
        or len(url) > MAX_URL_BYTES
        or (root >= MAX_LABEL and not _has_host_of_dns(url))
    ):
        return ""
    return normalise(url)


def _join(href: str, base: str, normalise: Normalise, hostless: frozenset[str] = frozenset()) -> str:
    """The normal form of the URL, or a marked refusal."""
    try:
        url = canonical(href, base)
    except UrlTooLong:
        return f"{_REFUSED}too_long"
    except UnreadableUrl:
        return f"{_REFUSED}not_a_url"
    if not url.startswith("//", url.find(":") + 1):
        return url if scheme_of(url) in hostless else _REFUSED + scheme_rule(url)
    if url.startswith("file:") and not base.startswith("file:"):
        # Files of this machine are linked to by files of this machine alone (design question 8).
        return _REFUSED + scheme_rule(url)
    return normalise(url) if _has_host_of_dns(url) else f"{_REFUSED}bad_host"


def _has_host_of_dns(url: str) -> bool:
    """Whether the host could be looked up: at most 253 bytes, labels of at most 63 (RFC 1035, section 2.3.4; fault 36)."""
    if url.find("/", 8, MAX_LABEL) > 0:
        # It ends before a label could be too long; behind the 8th byte, where that of `https` may begin.
        return True
    host = authority_of(url).partition(":")[0].rstrip(".")
    return len(host) <= MAX_HOST and max(map(len, host.split("."))) <= MAX_LABEL


#: URLs of one sitemap (sitemaps.org, "Sitemap file limits").
MAX_LISTED = 50_000


def _may_redirect(url: str, target: str) -> bool:
    """A redirect out of http leads to http or https, any other stays in its scheme: the rest are attempts on the program that
    follows them (fault 29)."""
    return scheme_of(target) in ("http", "https") or scheme_of(target) == scheme_of(url)


class LinksSheet(Sheet, frozen=True):
    max_links: MaxLinks = MAX_LINKS
    max_redirects: Annotated[int, setting("Follow at most this many redirects in a row.", unit="redirects", ge=0)] = 10
    normalise: Annotated[
        tuple[Step, ...],
        setting(
            "Fold into one URL the spellings that differ only in these respects: `escapes`, `trailing-dot`, `sessions`, "
            "`tracking`, `unused`, `defaults`, `empty-query`, `sort-query`, `index-pages`, `slashes`, `www`."
        ),
    ] = USUAL
    aliases: Annotated[
        tuple[str, ...], setting("Use the second name of hosts that have two, as `www.example.org=example.org`.")
    ] = ()
    parameters: Annotated[
        str,
        setting(
            "Leave out the parameters that this file lists, instead of the shipped list; see docs/urls.md.",
            names="a file",
        ),
    ] = ""
    hostless: Annotated[
        tuple[str, ...], setting("Keep links of these schemes although they name no host, as `echo:x`.")
    ] = ()


class LinkResolver(Filter[LinksSheet]):
    """Fills in `links`, and counts by rule the links that cannot be followed."""

    inbox: In[Visit]
    outbox: Out[Visit]

    def __init__(self, sheet: LinksSheet | None = None) -> None:
        super().__init__(sheet)
        self.metrics.gauge("joins_remembered", lambda: len(self._cache))

    def read_sheet(self) -> None:
        self._normalise = normaliser(self.sheet)
        self._hostless = frozenset(self.sheet.hostless)
        self._cache = JoinCache()

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Resolve a page's links, and drop those that were found from the envelope: they have served."""
        if not visit.found:
            return (visit,)
        base = visit.base or visit.url
        if visit.found[0].relation in REDIRECTS and visit.task.hops >= self.sheet.max_redirects:
            rule = f"more than {self.sheet.max_redirects} redirects"
            return (msgspec.structs.replace(visit, found=(), rejected={rule: 1}),)
        # A sitemap is a list of links and nothing else: its own limit is that of its standard.
        limit = MAX_LISTED if visit.found[0].relation.startswith("sitemap") else self.sheet.max_links
        found = visit.found if visit.charset in ("", "utf-8") else with_queries(visit.found, base, visit.charset)
        links, rejected = resolve_links(found, base, visit.url, self._cache, limit, self._normalise, self._hostless)
        if links and links[0].relation in REDIRECTS and not _may_redirect(visit.url, links[0].url):
            rejected, links = {scheme_rule(links[0].url): 1}, ()
        for rule, number in visit.rejected.items():  # while it was read
            rejected[rule] = rejected.get(rule, 0) + number
        visit = msgspec.structs.replace(visit, found=(), links=links, rejected=rejected)
        if links and links[0].relation.startswith("sitemap"):
            told = tuple((link.url, link.said) for link in links if link.said is not None)
            visit = msgspec.structs.replace(visit, said=told)
        return (visit,)


def normaliser(sheet: LinksSheet) -> Normaliser:
    """A function that takes a canonical URL to its normal form, as a sheet says. Raises SettingError: the list of parameters
    cannot be read, or an alias is none."""
    try:
        aliases = aliases_of(sheet.aliases)
    except UsageError as error:
        raise SettingError(str(error)) from None
    return Normaliser(sheet.normalise, parameters_of(sheet.parameters), aliases)
