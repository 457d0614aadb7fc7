"""The links stage: between process, which says what a page wrote, and filter, which judges URLs."""

from typing import Annotated

import msgspec

from gossamer.flow.component import Filter
from gossamer.flow.errors import SettingError
from gossamer.flow.ports import In, Out
from gossamer.flow.sheet import Sheet, setting
from gossamer.model.errors import UsageError
from gossamer.model.normal import USUAL, Normaliser, Step, aliases_of
from gossamer.model.requisites import REDIRECTS
from gossamer.model.url import scheme_of, scheme_rule
from gossamer.model.visit import Visit
from gossamer.stages.links.lists import parameters_of
from gossamer.stages.links.resolving import MAX_LINKS, JoinCache, resolve_links, with_queries

#: URLs of one sitemap (sitemaps.org, "Sitemap file limits").
MAX_LISTED = 50_000


def _may_redirect(url: str, target: str) -> bool:
    """A redirect out of http leads to http or https, any other stays in its scheme: the rest are attempts on whoever
    follows them (fault 29)."""
    return scheme_of(target) in ("http", "https") or scheme_of(target) == scheme_of(url)


class LinksSheet(Sheet, frozen=True):
    """Settings of :class:`LinkResolver`."""

    max_links: Annotated[
        int, setting("Keep at most this many different links of a page; cut and count the rest.", unit="links", ge=0)
    ] = MAX_LINKS
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
        self._settle()
        self.metrics.gauge("joins_remembered", lambda: len(self._cache))

    def changed(self, before: LinksSheet) -> None:
        """Normalise as the new sheet says, or as before if its list cannot be read."""
        if before != self.sheet:
            self._settle()

    def _settle(self) -> None:
        self._normalise = normaliser(self.sheet)
        self._hostless = frozenset(self.sheet.hostless)
        self._cache = JoinCache()

    def filter(self, visit: Visit) -> tuple[Visit]:
        """Resolve a page's links; what was found has served and is dropped from the envelope."""
        if not visit.found:
            return (visit,)
        base = visit.base or visit.url
        if visit.found[0].relation in REDIRECTS and visit.task.hops >= self.sheet.max_redirects:
            rule = f"more than {self.sheet.max_redirects} redirects"
            return (msgspec.structs.replace(visit, found=(), rejected={rule: 1}),)
        # A sitemap is a list of links and nothing else: its own limit is that of its standard.
        limit = MAX_LISTED if visit.found[0].relation.startswith("sitemap") else self.sheet.max_links
        found = with_queries(visit.found, base, visit.charset)
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
    """What takes a canonical URL to its normal form, as a sheet says.

    Raises:
        SettingError: the list of parameters cannot be read, or an alias is none.
    """
    try:
        aliases = aliases_of(sheet.aliases)
    except UsageError as error:
        raise SettingError(str(error)) from None
    return Normaliser(sheet.normalise, parameters_of(sheet.parameters), aliases)
