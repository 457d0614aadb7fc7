"""The addresses of a crawl's seeds, judged before anything is touched (DESIGN 8).

Place in the flow: :mod:`crawl` asks here before it makes its directory, with resolvers as the crawl will have them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gossamer.assembly.options import CrawlOptions
from gossamer.flow.graph import Graph
from gossamer.model.errors import AddressRefused, ResolutionFailed, UsageError
from gossamer.model.url import endpoint_of, scheme_of
from gossamer.services.dns import GuardedResolver


async def check_addresses(
    seeds: Sequence[str], graph: Graph, options: CrawlOptions, report: Callable[[str], None]
) -> None:
    """Refuse seeds that a crawl must not ask, and tell of those that have no address.

    Raises:
        UsageError: a seed is refused; says what would open it.
    """
    nodes = graph.providers.values()
    through_proxy = any(getattr(node.sheet, "proxy", "") for node in nodes)
    for node in nodes:
        if not issubclass(node.unit, GuardedResolver):
            continue
        resolver = node.unit(node.sheet)
        await resolver.start()
        try:
            for url in seeds:
                proxied = through_proxy and scheme_of(url) in ("http", "https")
                try:
                    await _check(url, resolver, proxied=proxied)
                except AddressRefused as error:
                    raise UsageError(f"seed {url}: {error}{_remedy(resolver, options)}") from None
                except ResolutionFailed as error:
                    if not proxied:
                        report(f"seed {url}: {error}")
        finally:
            await resolver.stop()


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
