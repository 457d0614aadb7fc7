"""A crawl before it begins: its seeds, read as people write them and completed with a scheme (design question 8), and its plan, for
which options are compiled, the graph is planned, and everything is checked that seeds, options and wiring say.

Place in the flow: commands and the API read seeds here before options are compiled (:mod:`~gossamer.crawls.compiling`). A seed
without a scheme, as `example.org`, gets the scheme that its server speaks: a connection is opened to the address that the crawl's
own resolver and guard allow, and a TLS handshake is tried on it; no request is sent. :mod:`crawl` makes a :class:`CrawlPlan` before
it touches anything, and asks it again whenever the running graph is to change.
"""

import asyncio
import datetime
import itertools
import os
import ssl
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.builder import (
    hostless,
    served,
    with_directory,
    with_durability,
    with_subscribers,
    with_told_tls,
    without_subscribers,
)
from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.crawlers import compile_with_crawlers
from gossamer.crawls.directory import kept_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.processes import check_bodies_cross, check_children_can_import, with_pre_filters
from gossamer.engine.errors import SettingError
from gossamer.engine.graph import Graph
from gossamer.engine.planning import Catalog, plan
from gossamer.engine.wiring import Wiring
from gossamer.expressions.predicates import compile_pattern
from gossamer.fetcher.dns import GuardedResolver
from gossamer.frontier.frontier import SeedsSheet
from gossamer.frontier.limits import FrontierSheet
from gossamer.storage.tables.log import TableLogSheet
from gossamer.storage.tables.places import TRIPLES
from gossamer.values.errors import AddressRefused, ResolutionFailed, UnreadableUrl, UrlTooLong, UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.patterns import lazy_pattern
from gossamer.values.url import (
    PLAIN_SCHEMES,
    are_plain,
    canonical,
    endpoint_of,
    host_of,
    is_machine,
    plain_host,
    scheme_of,
    site_of,
    user_of,
)

# Canonical URLs of seeds, and the directory of a crawl that was given none.


def read_seeds(texts: Sequence[str], hostless: Container[str] = ()) -> tuple[str, ...]:
    """Canonical URLs of seeds, each once, in order. `hostless`: schemes that are served though their URLs name no host, beside
    `file`. Raises UsageError: one of them is not a URL, or names no host where one is needed; says what would be right."""
    if are_plain(tuple(texts)):
        return tuple(dict.fromkeys(texts))
    return tuple(dict.fromkeys(read_seed(text, hostless) for text in texts))


def read_seed(text: str, hostless: Container[str]) -> str:
    """The canonical URL of one seed. Arguments and errors as those of :func:`read_seeds`."""
    if plain_host(text):  # there is nothing to read, as of most of many
        return text
    try:
        url = canonical(text.strip())
    except UrlTooLong as error:
        raise UsageError(f"seed {text[:80]!r}...: {error}") from None
    except UnreadableUrl:
        raise UsageError(f"seed {text!r} is not a URL{_fault(text.strip()) or _likely(text.strip())}") from None
    if not is_machine(host_of(url)) and scheme_of(url) != "file" and scheme_of(url) not in hostless:
        raise UsageError(f"seed {url!r} names no host; write it as https://example.org/")
    return url


def users_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The users in seeds such as `https://USER:PASSWORD@example.org/`, as entries of `--auth`. Raises UsageError: a
    site has two users, or is of a scheme that knows none."""
    found: dict[str, str] = {}
    for text in texts:
        user = user_of(text.strip()) if "@" in text else ""
        if not user:
            continue
        site = site_of(canonical(text.strip()))
        if scheme_of(site) not in ("http", "https"):
            raise UsageError(f"seed {site}: only http and https have users; write it without USER:PASSWORD@")
        if found.setdefault(site, user) != user:
            raise UsageError(f"seeds name two users of {site}; leave one out, or make two crawls")
    return tuple(f"{site}={user}" for site, user in found.items())


#: The largest number of a port of TCP.
_LAST_PORT = 65_535
#: A scheme that lacks a colon or a slash, or is missing, before a host.
_BEGINS = lazy_pattern(r"(?i)^(?:https?)?[:/]*/|^https?:")
_WRITTEN = lazy_pattern(
    r"(?i)(?:https?|ftp|wss?)://(?:[^/?#\\]*@)?(?P<host>\[[^\]/?#\\]*\]?|[^:/?#\\]*)(?::(?P<port>[^/?#\\]*))?"
)


def _fault(text: str) -> str:
    """Why a text with a scheme and two slashes is no URL; empty where it has none, or nothing is known."""
    written = _WRITTEN.match(text)
    if written is None:
        return ""
    host, port = written["host"], written["port"] or ""
    if not host:
        return ": it names no host; write it in full, as https://example.org/"
    if port and not (port.isascii() and port.isdigit()):
        return f": its port {port[:40]!r} is no number"
    if port and int(port[:9]) > _LAST_PORT:
        return f": its port {port[:40]} is too large; ports end at {_LAST_PORT}"
    if host.startswith("["):
        return f": {host[:80]!r} is no address of IPv6; write one as http://[::1]/"
    return f": {host[:80]!r} is no name of a host, and no address"


def _likely(text: str) -> str:
    """The URL that a person who wrote this probably meant."""
    is_path = (path := Path(text)).is_absolute() or path.exists()
    is_path = is_path and not (text.startswith("//") and not path.exists())
    if not text or "://" in text or (not is_path and any(map(str.isspace, text))):
        return "; write it in full, as https://example.org/"
    if is_path:
        return f"; did you mean {path.resolve().as_uri()}?"
    rest = _BEGINS.sub("", text)
    return f"; did you mean http://{'localhost' * rest.startswith(':')}{rest}?"


def default_directory(seeds: Sequence[str], today: datetime.date) -> str:
    host = "none"
    if seeds:
        host = host_of(seeds[0]) if is_machine(host_of(seeds[0])) else scheme_of(seeds[0])
    return f"crawl-{host}-{today.isoformat()}"


def free_name(path: Path) -> Path:
    """A path that is not there yet: this one, or the first of PATH-2, PATH-3, ... A default replaces no files."""
    later = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    return next(one for one in itertools.chain([path], later) if not os.path.lexists(one))


#: Sites of the first seeds whose names are looked up before a crawl begins, one after the other: a person sees at once that one is
#: wrong. Of many seeds only so many are looked at.
_LOOKED_UP, _FIRST = 16, 1_000


def check_schemes(seeds: Sequence[str], graph: Graph) -> None:
    """Refuse seeds that no protocol module of the graph serves. Raises UsageError: one of them; says what the wiring has;
    WiringError: a scheme has several modules."""
    schemes = served(graph.wiring)
    if schemes.keys() >= PLAIN_SCHEMES and are_plain(tuple(seeds)):
        return
    for url in seeds:
        if scheme_of(url) not in schemes:
            known = ", ".join(sorted(schemes)) or "none"
            raise UsageError(f"seed {url}: no protocol module serves {scheme_of(url)}:; this wiring has {known}")


async def check_addresses(
    seeds: Sequence[str], graph: Graph, options: CrawlOptions, report: Callable[[str], None]
) -> None:
    """Refuse seeds that this crawl must not ask; report those whose names lead nowhere. Raises UsageError: one must not be
    asked; says what to do about it."""
    sheets = [node.sheet for node in graph.components.values() if isinstance(node.sheet, FrontierSheet)]
    proxied = any(sheet.proxied for sheet in sheets)
    unresolved = {scheme for sheet in sheets for scheme in sheet.unresolved}
    # A provider that lends hosts to mobile crawlers has their runtimes in its sheet.
    lent = [HostTable(getattr(node.sheet, "runtimes", {})) for node in graph.providers.values()]
    first: dict[str, str] = {}
    for url in seeds[:_FIRST]:
        first.setdefault(site_of(url), url)
    for resolver in resolvers(graph):
        await resolver.start()
        try:
            for url in list(first.values())[:_LOOKED_UP]:
                if scheme_of(url) in unresolved or any(table.get(host_of(url)) for table in lent):
                    continue  # its name is that of no machine, or it is not asked from here
                host, port = endpoint_of(url)
                if not host:
                    continue  # a file of this machine
                try:
                    if proxied and not resolver.sheet.only_loopback:
                        # Names are the proxy's to look up, and no name server's to know of. Where no server may be asked off
                        # this machine, it has to be known what is on it.
                        resolver.judge(host, port)
                    else:
                        await resolver.resolve(host, port)
                except AddressRefused as error:
                    raise UsageError(f"seed {url}: {error}{_remedy(resolver, options)}") from None
                except ResolutionFailed as error:
                    if not proxied:
                        report(f"seed {url}: {error}")
        finally:
            await resolver.stop()


def resolvers(graph: Graph) -> list[GuardedResolver[Any]]:
    return [node.unit(node.sheet) for node in graph.providers.values() if issubclass(node.unit, GuardedResolver)]


def _remedy(resolver: GuardedResolver[Any], options: CrawlOptions) -> str:
    """The remedy for a seed that is off this machine and must not be asked; empty for any other seed."""
    if not resolver.sheet.only_loopback:
        return ""
    if options.robots == "ignore" and not options.i_own_these_hosts:
        return "; --robots ignore beyond this machine needs --i-own-these-hosts"
    return (
        "; beyond this machine a crawl says whom site owners can write to: "
        "give --contact URL_OR_MAIL, or set GOSSAMER_CONTACT"
    )


# Seeds without a scheme: `example.org`, `localhost:8901/a`.

#: Seconds for a connection and its handshake: a person waits for it.
PATIENCE = 5.0

#: Errors of a handshake by which a server shows that it speaks something else than TLS.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)

_BARE = lazy_pattern(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:?#@\\]+)(?P<port>:[0-9]{1,5})?(?:[/?#].*)?")


def is_bare(text: str, hostless: Container[str] = ()) -> bool:
    """Whether a text names a host without a scheme. A word alone is none, unless it is `localhost` or has a port.

    `hostless`: schemes that are served though their URLs name no host, so that `echo:8` is no port of a host.
    """
    match = None if "://" in text else _BARE.fullmatch(text)
    if match is None or Path(text).exists():
        return False
    host = match["host"]
    if host.lower() in hostless:
        return False
    return bool(match["port"]) or "." in host.strip(".") or host == "localhost" or host.startswith("[")


def with_schemes(
    seeds: Sequence[str], options: CrawlOptions, wiring: Wiring | None, report: Callable[[str], None]
) -> list[str]:
    """Seeds of which each has a scheme: `https` where the server speaks TLS, otherwise `http`; the choice is reported.

    A seed that cannot be asked here stays https: the crawl itself says why it is refused.
    """
    served = hostless(wiring)
    if are_plain(tuple(seeds)) or not any(is_bare(seed.strip(), served) for seed in seeds):
        return list(seeds)
    return asyncio.run(_with_schemes(seeds, options, wiring, report))


async def _with_schemes(
    seeds: Sequence[str], options: CrawlOptions, wiring: Wiring | None, report: Callable[[str], None]
) -> list[str]:
    found = []
    for seed in seeds:
        text = seed.strip()
        if not is_bare(text, hostless(wiring)):
            found.append(seed)
            continue
        [url] = read_seeds([f"https://{text}"])
        if not options.proxy and not await _speaks_tls(
            url, plan(compile_wiring([url], options, wiring), shipped_catalog())
        ):
            [url] = read_seeds([f"http://{text}"])
        report(f"seed {text}: read as {url}")
        found.append(url)
    return found


async def _speaks_tls(url: str, graph: Graph) -> bool:
    host, port = endpoint_of(url)
    for resolver in resolvers(graph):
        await resolver.start()
        try:
            endpoint = await resolver.resolve(host, port)
        except (AddressRefused, ResolutionFailed):
            return True
        finally:
            await resolver.stop()
        # The certificate is not judged here: one that is wrong is the crawl's to refuse, and no reason to speak plain HTTP.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        for address in (endpoint.address, *endpoint.others):
            try:
                async with asyncio.timeout(PATIENCE):
                    _, writer = await asyncio.open_connection(address, endpoint.port, ssl=context, server_hostname=host)
            except ssl.SSLError as error:
                return error.reason not in _NOT_TLS
            except OSError:  # refused, reset, timed out: the next address may answer
                continue
            writer.close()
            return True
        return False
    return True


# The plan of a crawl.


class CrawlPlan:
    """A crawl as its options and its wiring say it: where, from which seeds, by which graph."""

    def __init__(
        self,
        seeds: Sequence[str],
        options: CrawlOptions,
        wiring: Wiring | None,
        settings: Mapping[str, Mapping[str, Any]],
        catalog: Catalog | None,
        subscribers: Sequence[str],
    ) -> None:
        """Compile and check; touches nothing. Raises UsageError: there is nothing to crawl, or the options do not fit;
        FlowError: the graph cannot be."""
        if users := users_of(seeds):
            options = msgspec.structs.replace(options, auth=(*users, *options.auth))
        self._options = options
        if options.resume:
            wiring = wiring or kept_wiring(options.output)
        self._hostless = hostless(wiring)
        given = read_seeds(seeds, self._hostless)
        # A pattern that is none is refused before anything is said of the directory.
        for name in ("include", "exclude"):
            for pattern in getattr(options, name):
                try:
                    compile_pattern(pattern)
                except ValueError as error:
                    raise SettingError(f"{name}: {error}") from None
        compiled = compile_with_crawlers(given, options, wiring, settings)
        stores = (node.settings.get("directory") for node in compiled.providers.values())
        named = options.output or next((str(text) for text in stores if text), "")
        path = Path(named)
        if not named:
            urls = [url for node in compiled.components.values() for url in node.settings.get("urls", ())]
            path = Path(default_directory(urls, datetime.datetime.now().astimezone().date()))
        self.has_found_name = not (named or options.overwrite)
        """No person named its directory: it is the first free one."""
        self.directory = free_name(path) if self.has_found_name else path
        if options.release:
            from gossamer.crawls.trap_review import with_released

            if not options.resume:
                raise UsageError(
                    "--release fetches what an earlier run has set aside; give it to `gossamer resume DIR`"
                )
            compiled = with_released(compiled, self.directory, options.release)
        self.catalog = catalog or shipped_catalog()
        compiled = with_pre_filters(with_directory(compiled, str(self.directory)))
        self._subscribers = tuple(subscribers)
        self.graph = self.planned(with_subscribers(with_told_tls(with_durability(compiled)), self._subscribers))
        """The graph of all processes, as it begins."""
        sheets = (node.sheet for node in self.graph.components.values() if isinstance(node.sheet, SeedsSheet))
        # Seeds may be many, so none is read twice.
        found = [given if sheet.urls == given else read_seeds(sheet.urls, self._hostless) for sheet in sheets]
        self.seeds = found[0] if len(found) == 1 else tuple(itertools.chain.from_iterable(found))
        """Canonical URLs, each once."""
        if not self.seeds:
            raise UsageError("there is nothing to crawl: give a seed URL, or --seeds FILE with one on each line")
        check_schemes(self.seeds, self.graph)

    def planned(self, wiring: Wiring) -> Graph:
        """The graph of a wiring of this crawl. Raises FlowError: it cannot be."""
        graph = plan(wiring, self.catalog)
        check_bodies_cross(graph)
        check_children_can_import(graph, self.catalog)
        return graph

    def kept(self, graph: Graph) -> Wiring:
        return without_subscribers(graph.wiring, self._subscribers)

    @property
    def keeps_triples(self) -> bool:
        sheets = (node.sheet for node in self.graph.providers.values())
        return any(isinstance(sheet, TableLogSheet) and TRIPLES in sheet.tables for sheet in sheets)
