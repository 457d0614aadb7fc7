"""Seeds as people type them, without a scheme: `example.org`, `localhost:8901/a`. The server decides which scheme they get.

Place in the flow: the command line asks here before it makes a crawl. A connection is opened to the address that the crawl's own
resolver and guard allow, and a TLS handshake is tried on it; no request is sent.
"""

import asyncio
import re
import ssl
from collections.abc import Callable, Container, Sequence
from pathlib import Path

from gossamer.assembly.catalog import catalog
from gossamer.assembly.compiling import compile_wiring
from gossamer.assembly.given_seeds import read_seeds
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.protocols import hostless
from gossamer.assembly.seeds import resolvers
from gossamer.contracts.resolving import Endpoint
from gossamer.flow.graph import Graph
from gossamer.flow.planning import plan
from gossamer.flow.wiring import Wiring
from gossamer.model.errors import AddressRefused, ResolutionFailed
from gossamer.model.url import endpoint_of

#: Seconds for a connection and its handshake: a person waits for it.
PATIENCE = 5.0

#: Errors of a handshake by which a server shows that it speaks something else than TLS.
_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)

_BARE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/:?#@\\]+)(?P<port>:[0-9]{1,5})?(?:[/?#].*)?")


def is_bare(text: str, hostless: Container[str] = ()) -> bool:
    """Whether a text names a host without a scheme. A word alone is none, unless it is `localhost` or has a port.

    `hostless`: schemes that are served though their URLs name no host, so that `echo:8` is no port of a host.
    """
    match = _BARE.fullmatch(text)
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
    if not any(is_bare(seed.strip(), served) for seed in seeds):
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
        if not options.proxy and not await _speaks_tls(url, plan(compile_wiring([url], options, wiring), catalog())):
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
        return await _shakes_hands(endpoint, host)
    return True


async def _shakes_hands(endpoint: Endpoint, host: str) -> bool:
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
