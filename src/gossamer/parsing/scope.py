"""Filters by where a link leads: scope around the seeds, and schemes that the crawl can fetch.

Place in the flow: links ─► **filter** ─► URL-seen. Nearly all links of a page lead to its own host, so a page's host is
judged once and its links by their beginning; only links that leave it are taken apart.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.parsing.filters import RememberedVerdicts
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import registered_domain
from gossamer.values.relations import REDIRECTS, SITEMAPS, belongs, leads_beside
from gossamer.values.task import Task
from gossamer.values.url import are_plain, authority_of, canonical, host_of, is_machine, scheme_rule, site_of
from gossamer.values.visit import Link

#: Hosts whose verdict is remembered at once; then all are forgotten, which costs each one more look.
REMEMBERED_HOSTS = 65_536

Scope = Literal["page", "prefix", "host", "domain", "any"]


class ScopeSheet(Sheet, frozen=True):
    """Settings of :class:`ScopeFilter`."""

    scope: Annotated[
        Scope,
        setting(
            "Stay within this scope. `page`: only the seeds; `prefix`: their directories; `host`: their hosts; "
            "`domain`: their registered domains; `any`: everything."
        ),
    ] = "host"
    seeds: Annotated[tuple[str, ...], setting("Draw the scope around these URLs.")] = ()
    requisites: Annotated[
        bool, setting("Let pictures, style sheets and the like of a page in scope pass from any host.")
    ] = False


class ScopeFilter(Provider[ScopeSheet]):
    """Refuses links out of scope (`scope:host`, ...). Contract: `UrlFilter`.

    Scheme and port do not matter, because a host is known by its name (design question 5). In scope `page` a seed's
    redirect passes as long as it stays on the seeds' hosts, such as one from `http` to `https`.
    """

    def __init__(self, sheet: ScopeSheet | None = None) -> None:
        super().__init__(sheet)
        self._draw()

    def changed(self, before: ScopeSheet) -> None:
        self._draw()

    def _draw(self) -> None:
        is_plain = are_plain(self.sheet.seeds)
        try:
            seeds = self.sheet.seeds if is_plain else [canonical(seed) for seed in self.sheet.seeds]
        except UnreadableUrl as error:
            raise SettingError(f"setting 'seeds': {error}; write it in full, as https://example.org/") from None
        self._rule = f"scope:{self.sheet.scope}"
        # Seeds may be many: each scope looks at what it asks for alone.
        folders = {_directory_of(seed) for seed in seeds} if self.sheet.scope == "prefix" else set()
        self._pages = frozenset(map(_rest, seeds)) if self.sheet.scope == "page" else frozenset()
        self._prefixes = tuple(sorted(set(map(_rest, folders))))
        # What most links in scope begin with, so that they need not be taken apart.
        self._starts = tuple(sorted(folders))
        self._hosts = frozenset([seed.split("/", 3)[2] for seed in seeds] if is_plain else map(host_of, seeds))
        self._domains = frozenset(map(registered_domain, self._hosts)) if self.sheet.scope == "domain" else frozenset()
        self._verdicts: dict[str, str] = {}
        self._of_url = RememberedVerdicts(self._judge_host)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`scope:...` for each link that is refused."""
        verdicts = self._judge(links, source)
        if source.found_by in SITEMAPS:
            return [
                "" if verdict and leads_beside(link.relation, host_of(link.url) == source.host) else verdict
                for link, verdict in zip(links, verdicts, strict=True)
            ]
        if not self.sheet.requisites:
            return verdicts
        return [
            "" if verdict and belongs(link.relation, source.relation) else verdict
            for link, verdict in zip(links, verdicts, strict=True)
        ]

    def _judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        if self.sheet.scope == "any":
            return [""] * len(links)
        if self.sheet.scope in ("page", "prefix"):
            return [self._judge_place(link) for link in links]
        home = f"{site_of(source.url) or host_of(source.url)}/"
        at_home, of_url = self._judge_host(home), self._of_url
        return [at_home if link.url.startswith(home) else of_url[link.url] for link in links]

    def _judge_place(self, link: Link) -> str:
        """The verdict of the scope alone on one link."""
        scope = self.sheet.scope
        if scope == "any":
            return ""
        if scope == "page":
            inside = _rest(link.url) in self._pages or (link.relation in REDIRECTS and host_of(link.url) in self._hosts)
            return "" if inside else self._rule
        if scope == "prefix":
            inside = link.url.startswith(self._starts) or _rest(link.url).startswith(self._prefixes)
            return "" if inside else self._rule
        return self._judge_host(link.url)

    def _judge_host(self, url: str) -> str:
        authority = authority_of(url) or host_of(url)
        verdict = self._verdicts.get(authority)
        if verdict is None:
            host = host_of(url)
            inside = registered_domain(host) in self._domains if self._domains else host in self._hosts
            if len(self._verdicts) >= REMEMBERED_HOSTS:
                self._verdicts.clear()
            verdict = self._verdicts[authority] = "" if inside else self._rule
        return verdict


def _directory_of(url: str) -> str:
    """A URL up to its last slash; where it has none, up to the colon of its scheme."""
    path = url.partition("?")[0]
    return path[: max(path.rfind("/"), path.find(":")) + 1]


def _rest(url: str) -> str:
    """Host without port, path and query: a URL without what the scope does not look at."""
    host = host_of(url)
    if not is_machine(host) and host:
        return url
    slash = url.find("/", url.find(":") + 3)
    return host + (url[slash:] if slash >= 0 else "/")


class SchemeSheet(Sheet, frozen=True):
    """Settings of :class:`SchemeFilter`."""

    schemes: Annotated[tuple[str, ...], setting("URL schemes that some protocol module serves.")] = ("http", "https")


class SchemeFilter(Provider[SchemeSheet]):
    """Refuses links of schemes that no protocol module serves (`scheme:ftp`, ...). Contract: `UrlFilter`."""

    def __init__(self, sheet: SchemeSheet | None = None) -> None:
        super().__init__(sheet)
        self._starts = _starts(self.sheet)

    def changed(self, before: SchemeSheet) -> None:
        self._starts = _starts(self.sheet)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`scheme:...` for each link that is refused."""
        starts = self._starts
        return ["" if link.url.startswith(starts) else scheme_rule(link.url) for link in links]


def _starts(sheet: SchemeSheet) -> tuple[str, ...]:
    return tuple(f"{scheme.lower()}:" for scheme in sheet.schemes)
