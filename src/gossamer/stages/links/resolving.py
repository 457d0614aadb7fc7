"""What the processors found becomes canonical URLs, each once, in document order.

Place in the flow: process ─► **links** ─► filter. Pure: the component calls :func:`resolve_links` with a cache that it
owns. Canonicalising is most of the work, and the pages of a site repeat its menus, so joins are remembered by
directory.
"""

from collections import OrderedDict
from collections.abc import Sequence

from gossamer.model.errors import UnreadableUrl, UrlTooLong
from gossamer.model.normal import Normalise
from gossamer.model.requisites import REDIRECTS
from gossamer.model.url import MAX_URL_BYTES, authority_of, canonical, scheme_rule
from gossamer.model.visit import Found, Link

#: Links of a page that are kept (DESIGN 9.12, FAULTS 39).
MAX_LINKS = 6_000

#: What marks a remembered refusal; no URL begins with it.
_REFUSED = "!"

# The parser drops white space and C0 controls in front, and `?` and `#` go on from the whole base, not from its
# directory.
_CACHEABLE_STARTS = frozenset("/._-~%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


#: Bytes of the longest name that can be looked up, and of its longest label (RFC 1035, section 2.3.4; 255 octets on the wire).
MAX_HOST = 253
MAX_LABEL = 63


def as_it_is(url: str) -> str:
    """Normalises nothing."""
    return url


class JoinCache:
    """Remembers `(directory of the base, href) -> URL`, within a bound on all entries.

    Whole directories leave, those first that were not asked for the longest.
    """

    __slots__ = ("_capacity", "_directories", "_entries")

    def __init__(self, capacity: int = 50_000) -> None:
        """`capacity` counts entries; one takes about 250 bytes."""
        self._capacity = capacity
        self._directories: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._entries = 0

    def __len__(self) -> int:
        return self._entries

    def table(self, directory: str) -> dict[str, str]:
        """What is remembered for a directory; to be given back with :meth:`grown`."""
        table = self._directories.get(directory)
        if table is None:
            table = self._directories[directory] = {}
        else:
            self._directories.move_to_end(directory)
        return table

    def grown(self, by: int) -> None:
        """A table has grown: keep the bound."""
        self._entries += by
        while self._entries > self._capacity:
            _, dropped = self._directories.popitem(last=False)
            self._entries -= len(dropped)


def resolve_links(
    found: Sequence[Found],
    base: str,
    page_url: str,
    cache: JoinCache,
    limit: int = MAX_LINKS,
    normalise: Normalise = as_it_is,
) -> tuple[tuple[Link, ...], dict[str, int]]:
    """The page's links, and how many each rule refused.

    Args:
        found: in document order.
        base: what relative links are resolved against: a canonical URL.
        page_url: the page's own canonical URL; links to it are dropped without a word, since it has just been fetched.
        cache: shared by the pages of a crawl.
        limit: the most links that are kept.
        normalise: what brings a canonical URL to its normal form; the cache remembers its results.

    A URL that is found again keeps its first place, relation and anchor; it is `nofollow` only if each occurrence is.
    A redirect to another spelling of its own page keeps that spelling: the server insists on it.
    Rules: `not_a_url`, `too_long`, `bad_host`, `scheme:...` (no host to ask: `mailto`, `javascript`, ...; a `file` that
    another host links to), `too_many_links`.
    """
    directory = _directory(base)
    table = cache.table(directory) if directory else {}
    before = len(table)
    own_fragments = base == page_url
    places: dict[str, int] = {page_url: -1}
    links: list[Link] = []
    rejected: dict[str, int] = {}
    for position, one in enumerate(found):
        href = one.href
        # The first `#` begins the fragment of any URL; without it, ten links into one document are one look-up. White
        # space before it has to stay: the parser drops it only at the very end.
        cut = href.find("#")
        if cut > 0 and href[cut - 1] > " ":
            href = href[:cut]
        elif cut == 0 and own_fragments:
            continue
        url = table.get(href)
        if url is None:
            url = _join(href, base, normalise)
            if href[:1] in _CACHEABLE_STARTS and len(href) <= MAX_URL_BYTES:
                table[href] = url
        place = places.get(url)
        if place is not None:
            if place >= 0 and links[place].nofollow and not one.nofollow:
                kept = links[place]
                links[place] = Link(kept.url, kept.relation, kept.anchor)
        elif url[0] == _REFUSED:
            rule = url[1:]
            rejected[rule] = rejected.get(rule, 0) + 1
        elif len(links) >= limit:
            rejected["too_many_links"] = len(found) - position
            break
        else:
            places[url] = len(links)
            links.append(Link(url, one.relation, one.anchor, one.nofollow))
    if directory:
        cache.grown(len(table) - before)
    if len(found) == 1 and not links and not rejected and found[0].relation in REDIRECTS:
        links = _insisted(found[0], base, page_url)
    return tuple(links), rejected


def _insisted(redirect: Found, base: str, page_url: str) -> list[Link]:
    """The target of a redirect that leads to another spelling of its own page, which is then no spelling to fold."""
    url = _join(redirect.href, base, as_it_is)
    return [Link(url, redirect.relation)] if url != page_url and url[0] != _REFUSED else []


def _directory(base: str) -> str:
    """The part of a base that relative paths go on from; empty for a base without a path (`data:`), which has none."""
    if "://" not in base:
        return ""
    query = base.find("?")
    return base[: base.rfind("/", 0, query if query >= 0 else len(base)) + 1]


def _join(href: str, base: str, normalise: Normalise) -> str:
    """The normal form of the URL, or a marked refusal."""
    try:
        url = canonical(href, base)
    except UrlTooLong:
        return f"{_REFUSED}too_long"
    except UnreadableUrl:
        return f"{_REFUSED}not_a_url"
    if "://" not in url[:64] or (url.startswith("file:") and not base.startswith("file:")):
        # Files of this machine are linked to by files of this machine alone (DESIGN 9.8).
        return _REFUSED + scheme_rule(url)
    return normalise(url) if _has_host_of_dns(url) else f"{_REFUSED}bad_host"


def _has_host_of_dns(url: str) -> bool:
    """Whether the host could be looked up: at most 253 bytes, labels of at most 63 (RFC 1035, section 2.3.4; FAULTS 36)."""
    if url.find("/", 8, MAX_LABEL) > 0:
        # It ends before a label could be too long; behind the 8th byte, where that of `https` may begin.
        return True
    host = authority_of(url).partition(":")[0].rstrip(".")
    return len(host) <= MAX_HOST and max(map(len, host.split("."))) <= MAX_LABEL
