"""Seeds, judged before a crawl touches anything: a module serves the scheme, and the address is allowed (design question 8)."""

from collections.abc import Callable, Sequence
from typing import Any

from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.protocols import served
from gossamer.flow.graph import Graph
from gossamer.model.errors import AddressRefused, ResolutionFailed, UsageError
from gossamer.model.host_table import HostTable
from gossamer.model.url import endpoint_of, host_of, scheme_of, site_of
from gossamer.services.dns import GuardedResolver
from gossamer.stages.frontier.sheet import FrontierSheet
from gossamer.stores.lending.lent import LentSheet

#: Sites of seeds whose names are looked up before a crawl begins, one after the other: a person sees at once that one is wrong.
_LOOKED_UP = 16


def check_schemes(seeds: Sequence[str], graph: Graph) -> None:
    """Refuse seeds that no protocol module of the graph serves.

    Raises:
        UsageError: one of them; says what the wiring has.
        WiringError: a scheme has several modules.
    """
    schemes = served(graph.wiring)
    for url in seeds:
        if scheme_of(url) not in schemes:
            known = ", ".join(sorted(schemes)) or "none"
            raise UsageError(f"seed {url}: no protocol module serves {scheme_of(url)}:; this wiring has {known}")


async def check_addresses(
    seeds: Sequence[str], graph: Graph, options: CrawlOptions, report: Callable[[str], None]
) -> None:
    """Refuse seeds that this crawl must not ask; report those whose names lead nowhere.

    Raises:
        UsageError: one must not be asked; says what to do about it.
    """
    sheets = [node.sheet for node in graph.components.values() if isinstance(node.sheet, FrontierSheet)]
    proxied = any(sheet.proxied for sheet in sheets)
    unresolved = {scheme for sheet in sheets for scheme in sheet.unresolved}
    lent = [HostTable(node.sheet.runtimes) for node in graph.providers.values() if isinstance(node.sheet, LentSheet)]
    for resolver in resolvers(graph):
        await resolver.start()
        try:
            for url in _one_each(seeds):
                if scheme_of(url) in unresolved:
                    continue  # its name is that of no machine
                if any(table.get(host_of(url)) for table in lent):
                    continue  # nobody asks it from here
                try:
                    await _check(url, resolver, proxied=proxied)
                except AddressRefused as error:
                    raise UsageError(f"seed {url}: {error}{_remedy(resolver, options)}") from None
                except ResolutionFailed as error:
                    if not proxied:
                        report(f"seed {url}: {error}")
        finally:
            await resolver.stop()


def _one_each(seeds: Sequence[str]) -> list[str]:
    """A seed of each of the first sites: their names are looked up before the crawl begins, those of others when it asks them."""
    first: dict[str, str] = {}
    for url in seeds:
        if len(first) == _LOOKED_UP:
            break
        first.setdefault(site_of(url), url)
    return list(first.values())


def resolvers(graph: Graph) -> list[GuardedResolver[Any]]:
    """Resolvers as the crawl will have them, for the time before it starts."""
    return [node.unit(node.sheet) for node in graph.providers.values() if issubclass(node.unit, GuardedResolver)]


async def _check(url: str, resolver: GuardedResolver[Any], *, proxied: bool) -> None:
    host, port = endpoint_of(url)
    if not host:
        return  # a file of this machine
    if proxied and not resolver.sheet.only_loopback:
        # Names are the proxy's to look up, and no name server's to know of. Where nobody may be asked off this machine, it
        # has to be known what is on it.
        resolver.judge(host, port)
    else:
        await resolver.resolve(host, port)


def _remedy(resolver: GuardedResolver[Any], options: CrawlOptions) -> str:
    """What to do about a seed that is off this machine and must not be asked; empty where it is not that."""
    if not resolver.sheet.only_loopback:
        return ""
    if options.robots == "ignore" and not options.i_own_these_hosts:
        return "; --robots ignore beyond this machine needs --i-own-these-hosts"
    return (
        "; beyond this machine a crawl says whom site owners can write to: "
        "give --contact URL_OR_MAIL, or set GOSSAMER_CONTACT"
    )
