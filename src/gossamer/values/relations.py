"""Relations of links: page requisites, sitemaps, and the task that a link becomes.

Place in the flow: processors find requisites, which a browser fetches by itself to show a page, and sitemaps; the filters let both
off the scope, requisites with `--page-requisites`, sitemaps where a site's robots.txt names one of another host. Url-seen,
the commit and :mod:`gossamer.storage.ledger.contract` make tasks of links by :func:`task_of`, so that a limit of depth or of
redirects means the same in each.
"""

from collections.abc import Callable

from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: `rel` tokens of `link` elements that lead to parts of the page itself. They win over all others: `alternate
#: stylesheet` is a style sheet. Their relation is `link` and the token, as `link stylesheet`.
_TYPES = "apple-touch-icon apple-touch-icon-precomposed icon manifest mask-icon modulepreload preload stylesheet"
LINK_TYPES = frozenset(_TYPES.split())

#: Elements that may have a picture behind them (HTML, 15.3.3 and 15.3.8).
BACKGROUNDS = ("body", "table", "thead", "tbody", "tfoot", "tr", "td", "th")

#: Relations of URLs in a style sheet; those in a page's own `style` elements and attributes count the same.
CSS_IMPORT, CSS_URL = "css import", "css url"

#: Relations of what a page shows. `iframe` and `frame` are documents, not requisites.
RELATIONS = frozenset(
    {
        *(f"link {token}" for token in LINK_TYPES),
        *(f"{tag} {name}" for tag in ("img", "source") for name in ("src", "srcset", "data-src", "data-srcset")),
        *(f"{tag} data-src" for tag in ("video", "audio")),
        *(f"video {name}" for name in ("src", "poster")),
        *("audio src", "track src", "embed src", "object data", "script src", "input src"),
        *(f"{tag} background" for tag in BACKGROUNDS),
        "link imagesrcset",
        *(f"{tag} {name}" for tag in ("image", "use", "feimage", "script") for name in ("href", "xlink:href")),
        *(CSS_IMPORT, CSS_URL),
    }
)

#: Relations of sitemaps: of `Sitemap:` lines of robots.txt, of what an index lists, and of what a listed index lists.
SITEMAP, *INDEXED = ("sitemap", "sitemap index", "sitemap index index")
#: The same where a site's robots.txt names a sitemap of another host (sitemaps.org, "Sitemaps & Cross Submits").
_ELSEWHERE = " elsewhere"
SITEMAPS_ELSEWHERE = frozenset(relation + _ELSEWHERE for relation in (SITEMAP, *INDEXED))

_PREFIX = "redirect "

#: All of them, and what they redirect to.
SITEMAPS = frozenset(
    prefix + relation for relation in (SITEMAP, *INDEXED, *SITEMAPS_ELSEWHERE) for prefix in ("", _PREFIX)
)

#: Relations of what a redirect leads to: one that moved a requisite or a sitemap says which kind, as `redirect img src`, so that
#: its target is one too.
REDIRECTS = frozenset({"redirect", *(_PREFIX + relation.removeprefix(_PREFIX) for relation in RELATIONS | SITEMAPS)})


def redirect_of(relation: str) -> str:
    """The relation of where something that was found by `relation` redirects to."""
    kind = relation.removeprefix(_PREFIX)
    return _PREFIX + kind if kind in RELATIONS or kind in SITEMAPS else "redirect"


def sitemap_relation(relation: str, *, is_elsewhere: bool) -> str:
    """The relation of a sitemap; `is_elsewhere`: it lies on another host than the robots.txt that led to it."""
    return relation.removesuffix(_ELSEWHERE) + _ELSEWHERE if is_elsewhere else relation


def level_of(relation: str) -> str:
    """How deep in indexes a sitemap of this relation stands, in the words of one on its own site."""
    return relation.removeprefix(_PREFIX).removesuffix(_ELSEWHERE)


def is_elsewhere(relation: str, at: str, source: str) -> bool:
    """Whether the site whose robots.txt led to a sitemap is not the host that it lies on (`at`); `source` is the host of the
    document that it was found on, by this relation."""
    return relation.endswith(_ELSEWHERE) or (relation.startswith(_PREFIX) and at != source)


def listed_relation(relation: str) -> str:
    """The relation of the sitemaps that an index lists which was itself found by `relation`; empty where they are too deep."""
    level = level_of(relation)
    if level == INDEXED[-1]:
        return ""
    return sitemap_relation(
        INDEXED[-1] if level == INDEXED[0] else INDEXED[0], is_elsewhere=relation.endswith(_ELSEWHERE)
    )


def leads_beside(relation: str, is_same_host: bool) -> bool:
    """Whether something that a sitemap leads to is fetched off scope, as the site wants it whose robots.txt led there: what the
    sitemap redirects to, and further sitemaps on its own host."""
    if relation.startswith(_PREFIX):
        return relation in SITEMAPS
    return is_same_host and relation in SITEMAPS_ELSEWHERE


def belongs(relation: str, source_relation: str) -> bool:
    """Whether something found by `relation` on what was itself found by `source_relation` is fetched off scope too.

    One hop from a page; from there on only what style sheets name, and of those only one import deep. So the way ends
    whatever a server says: page, sheet, imported sheet, picture. Redirects are no hops; they have a limit of their own.
    """
    if relation not in RELATIONS:
        return relation.startswith(_PREFIX) and relation.removeprefix(_PREFIX) in RELATIONS
    source_kind = source_relation.removeprefix(_PREFIX)
    if relation == CSS_IMPORT:
        return source_kind != CSS_IMPORT
    return relation == CSS_URL or source_kind not in RELATIONS


# -- from a link to a task: depth, and redirects in a row


def task_of(source: Task, url: str, relation: str, request: Requested | None = None) -> Task:
    """The task for a link that was found on `source` by this relation; `url` is canonical."""
    hops = source.hops + 1 if relation in REDIRECTS else 0
    depth = source.depth if keeps_depth(relation) else source.depth + 1
    return Task(url, host_of(url), depth, source.url, relation, hops=hops, request=request)


def child_depth(depth: int, relation: str) -> int:
    """The depth of what a page at `depth` leads to: a redirect's target keeps the depth of its source, parts of a page too."""
    return depth if keeps_depth(relation) else depth + 1


def parent_depth(depth: int, relation: str) -> int:
    """The depth of the page that leads to what is at `depth`: the other way round."""
    return depth if keeps_depth(relation) else max(0, depth - 1)


#: Whether what is found by a relation is no further from the seeds than what it was found on.
keeps_depth: Callable[[str], bool] = frozenset((*REDIRECTS, *RELATIONS)).__contains__
