"""Filters by where a link leads: scope around the seeds, schemes that the crawl can fetch, and a list of advertisers and trackers.

Place in the flow: links ─► **filter** ─► URL-seen. Nearly all links of a page lead to its own host, so a page's host is
judged once and its links by their beginning; only links that leave it are taken apart. The list costs a link one look-up by its
host; a host is looked for among the names of the list once.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from gossamer.engine.errors import SettingError, refusing
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.predicates import any_of, glob
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import Remembered, registered_domain
from gossamer.values.patterns import lazy_pattern
from gossamer.values.settings import Scope
from gossamer.values.task import REDIRECTS, SITEMAPS, Task, belongs, leads_beside
from gossamer.values.url import (
    are_plain,
    authority_of,
    canonical,
    host_of,
    is_machine,
    path_of,
    scheme_of,
    scheme_rule,
    site_of,
)
from gossamer.values.visit import Link

#: Hosts and URLs whose verdict is remembered at once, about 2 MB of URLs: the pages of a site repeat their links, and a look-up
#: costs a tenth of a judgement.
REMEMBERED_HOSTS, REMEMBERED_URLS = 65_536, 8_192


class ScopeSheet(Sheet, frozen=True):
    scope: Scope = "host"
    seeds: Annotated[tuple[str, ...], setting("Draw the scope around these URLs.")] = ()
    requisites: Annotated[
        bool, setting("Let pictures, style sheets and the like of a page in scope pass from any host.")
    ] = False


class _Around:
    """The facts of seeds for scopes. Seeds may be many, and the first request waits for none of this: it is drawn when the
    first links are judged."""

    def __init__(self, seeds: Sequence[str]) -> None:
        self._seeds = seeds

    @cached_property
    def pages(self) -> frozenset[str]:
        return frozenset(map(_rest, self._seeds))

    @cached_property
    def folders(self) -> tuple[frozenset[str], list[int]]:
        """Directories of seeds, and the lengths that they have."""
        folders = frozenset(map(_rest, map(_directory_of, self._seeds)))
        return folders, sorted(set(map(len, folders)))

    @cached_property
    def hosts(self) -> frozenset[str]:
        return frozenset(map(host_of, self._seeds))

    @cached_property
    def domains(self) -> frozenset[str]:
        return frozenset(map(registered_domain, self.hosts))


class ScopeFilter(Provider[ScopeSheet]):
    """Refuses links out of scope (`scope:host`, ...). Contract: `UrlFilter`.

    Scheme and port do not matter, because a host is known by its name (design question 5). In scope `page` a seed's
    redirect passes as long as it stays on the seeds' hosts, such as one from `http` to `https`.
    """

    def read_sheet(self) -> None:
        seeds = self.sheet.seeds
        try:
            self._around = _Around(seeds if are_plain(seeds) else tuple(map(canonical, seeds)))
        except UnreadableUrl as error:
            raise SettingError(f"setting 'seeds': {error}; write it in full, as https://example.org/") from None
        self._rule = f"scope:{self.sheet.scope}"
        self._of_host = Remembered(self._judge_host, REMEMBERED_HOSTS)
        self._of_url: Mapping[str, str] = Remembered(lambda url: self._of_host[host_of(url)], REMEMBERED_URLS)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`scope:...` for each link that is refused."""
        scope = self.sheet.scope
        if scope == "any":
            verdicts = [""] * len(links)
        elif scope in ("page", "prefix"):
            is_inside = self._is_page if scope == "page" else self._is_below
            verdicts = ["" if is_inside(link) else self._rule for link in links]
        else:
            home = f"{site_of(source.url) or host_of(source.url)}/"
            at_home, of_url = self._of_host[host_of(home)], self._of_url
            verdicts = [at_home if link.url.startswith(home) else of_url[link.url] for link in links]
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

    def _is_page(self, link: Link) -> bool:
        around = self._around
        return _rest(link.url) in around.pages or (link.relation in REDIRECTS and host_of(link.url) in around.hosts)

    def _is_below(self, link: Link) -> bool:
        folders, lengths = self._around.folders
        rest = _rest(link.url)
        return any(rest[:length] in folders for length in lengths)

    def _judge_host(self, host: str) -> str:
        around = self._around
        is_inside = registered_domain(host) in around.domains if self.sheet.scope == "domain" else host in around.hosts
        return "" if is_inside else self._rule


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
    schemes: Annotated[tuple[str, ...], setting("URL schemes that some protocol module serves.")] = ("http", "https")


class SchemeFilter(Provider[SchemeSheet]):
    """Refuses links of schemes that no protocol module serves (`scheme:ftp`, ...). Contract: `UrlFilter`."""

    def read_sheet(self) -> None:
        self._starts = tuple(f"{scheme.lower()}:" for scheme in self.sheet.schemes)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`scheme:...` for each link that is refused."""
        starts = self._starts
        return ["" if link.url.startswith(starts) else scheme_rule(link.url) for link in links]


# -- a list of advertisers and trackers: `--ads` (row S14)

#: Bytes of the longest list: the largest that people share have some 10 MB, and take three times that in memory.
MAX_BYTES = 16_000_000

#: Hosts of which it is remembered what of them is on the list.
HOSTS_OF_LIST = 16_384

#: The one rule of this filter.
RULE = "noise"

#: Addresses in front of a name in hosts files: no server listens there.
_NOWHERE = frozenset(("0.0.0.0", "127.0.0.1", "::", "::1"))  # noqa: S104  (an address to compare with, not to listen at)

#: Names that hosts files define for the machine itself.
_OWN_NAMES = frozenset(
    ("localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback")
)

_DOMAIN = lazy_pattern(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")


class NoiseList:
    """Domains and paths of a list, which comes in three forms that may be mixed:

    ======================== ========================================================================
    `ads.example`            a domain, and everything below it
    `www.example/ads/`       the same, but only paths that begin so
    `/*/adserver/**`         a path of any host, by glob: `*` within a segment, `**` across
    `0.0.0.0 ads.example`    a line of a hosts file: the name alone, with `127.0.0.1`, `::` and `::1`, too
    ======================== ========================================================================

    `#` and `!` begin comments. Lines of other forms (rules of browsers' blockers) are passed over and counted.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.domains: dict[str, tuple[str, ...]] = {}
        """Domain -> beginnings of paths; empty: all of them."""
        self.exact: set[str] = set()
        """Hosts alone, from hosts files."""
        self.paths: list[str] = []
        """Patterns of paths of any host."""
        self.unread = 0
        """Lines of other forms."""
        for line in lines:
            self._read(line.partition("#")[0].strip().lower())

    def __len__(self) -> int:
        return len(self.domains) + len(self.exact) + len(self.paths)

    def _read(self, line: str) -> None:
        if not line or line.startswith("!"):
            return
        if line.startswith("/") and " " not in line:
            self.paths.append(line)
            return
        words = line.split()
        if words[0] in _NOWHERE:
            self.exact.update(word for word in words[1:] if word not in _OWN_NAMES and word not in _NOWHERE)
            return
        domain, slash, path = line.partition("/")
        if not _DOMAIN.fullmatch(domain):
            self.unread += 1
        elif not slash:
            self.domains[domain] = ()
        elif self.domains.get(domain, ("",)) != ():
            self.domains[domain] = (*self.domains.get(domain, ()), f"/{path}")

    def paths_of(self, host: str) -> tuple[str, ...] | None:
        """Beginnings of paths that are noise on this host: empty for all of them, None for none."""
        if host in self.exact:
            return ()
        name, found = host, None
        while name:
            paths = self.domains.get(name)
            if paths == ():
                return ()
            if paths is not None:
                found = (*(found or ()), *paths)
            name = name.partition(".")[2]
        return found


class NoiseSheet(Sheet, frozen=True):
    drop: Annotated[bool, setting("Refuse links to hosts and URLs on the list; if off, let all links pass.")] = True
    file: Annotated[str, setting("Use this list instead of the shipped one.", names="a file")] = ""


class NoiseFilter(Provider[NoiseSheet]):
    """Refuses links to advertisements and trackers (`noise`). Contract: `UrlFilter`.

    The list of domains never refuses a page's links to its own host, so that an advertiser's own site can be crawled.

    Raises:
        SettingError: the list cannot be read.
    """

    def __init__(self, sheet: NoiseSheet | None = None) -> None:
        super().__init__(sheet)
        self.metrics.gauge("entries", lambda: len(self._list))
        self.metrics.gauge("unread_lines", lambda: self._list.unread)

    def read_sheet(self) -> None:
        found = _read(self.sheet.file) if self.sheet.drop else NoiseList(())
        patterns = any_of(f"list {self.sheet.file}", [glob(one, segments=True) for one in found.paths])
        self._list, self.says_nothing = found, not len(found)
        self._paths = Remembered(found.paths_of, HOSTS_OF_LIST)
        """Beginnings of paths that are noise on a host; empty for all of them, None for none."""
        self._of_path = None if patterns is None else patterns.search
        self._of_url = Remembered(self._judge, REMEMBERED_URLS)

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`noise` for each link that is refused."""
        # A crawl of an advertiser's own site wants it: the list of domains does not hold for its links to itself.
        of_url, home = self._of_url, f"{scheme_of(source.url)}://{authority_of(source.url)}/"
        if self._of_path is None:
            return ["" if link.url.startswith(home) else of_url[link.url] for link in links]
        verdicts = [of_url[link.url] for link in links]
        if not any(verdicts) or self._paths[host_of(source.url)] is None:
            return verdicts
        return [
            self._judge_path(link.url) if verdict and link.url.startswith(home) else verdict
            for link, verdict in zip(links, verdicts, strict=True)
        ]

    def _judge(self, url: str) -> str:
        paths = self._paths[host_of(url)]
        if paths is not None and (not paths or path_of(url).lower().startswith(paths)):
            return RULE
        return self._judge_path(url)

    def _judge_path(self, url: str) -> str:
        if self._of_path is None:
            return ""
        return RULE if self._of_path(path_of(url).partition("?")[0].lower()) is not None else ""


@cache
def _shipped() -> NoiseList:
    """The list that ships, `data/noise.txt`; it never changes."""
    text = Path(__file__).with_name("data").joinpath("noise.txt").read_text(encoding="utf-8")
    return NoiseList(text.splitlines())


def _read(file: str) -> NoiseList:
    """The list of a file, or the shipped one. Raises SettingError: it cannot be read, is too long, or holds nothing that could
    be used."""
    if not file:
        return _shipped()
    with refusing(SettingError, f"list of noise {file} cannot be read"), Path(file).open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SettingError(f"list of noise {file}: more than {MAX_BYTES} bytes")
    found = NoiseList(data.decode("utf-8-sig", "replace").splitlines())
    if not len(found):
        raise SettingError(
            f"list of noise {file}: no domain, no path and no line of a hosts file in it; write one domain on each line"
        )
    return found
