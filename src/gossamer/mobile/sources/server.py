"""A local server as a source: the owner's own, on this machine, asked for one page at a time.

Place in the flow: :mod:`gossamer.mobile.sources.gate` asks here for hosts whose files are made by programs. Requests go through the
protocol module of a crawl, with its deadlines and caps, to the one address that the owner named, whatever the URL says.
"""

import asyncio
import contextlib
from typing import Final

import msgspec

from gossamer.contracts.sourcing import Withheld
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import endpoint_of, host_of, path_of, site_of
from gossamer.model.visit import Response
from gossamer.services.dns import ResolverSheet, SystemResolver
from gossamer.stages.fetch.http import HttpModule
from gossamer.stages.fetch.http_sheet import HttpSheet

_LOCALHOST: Final = "127.0.0.1"


class ServerSource:
    """Answers of a local server. Contract: `sourcing.PageSource`. Not for use inside a running event loop."""

    def __init__(self, origin: str, host: str, *, limit: int, scheme: str = "") -> None:
        """Open nothing yet.

        Args:
            origin: of the server, on this machine, as `http://127.0.0.1:8080`.
            host: of the site, with the port where its URLs have one: the server is asked for it by this name.
            limit: bytes of a document; a longer one is cut.
            scheme: of the site's URLs, where it is known; the server is told of `https`.
        """
        address, port = endpoint_of(f"{origin}/")
        shown = _LOCALHOST if address == "localhost" else f"[{address}]" if ":" in address else address
        self._host = host
        told = ("X-Forwarded-Proto: https",) if scheme == "https" else ()
        self._resolver = SystemResolver(
            ResolverSheet(
                resolve=(f"*={shown}:{port}",),
                seed_hosts=(endpoint_of(f"http://{host}/")[0],),
                allow_ports=(port, endpoint_of(f"http://{host}/")[1]),
            )
        )
        self._http = HttpModule(HttpSheet(max_body=limit, header=told))
        self._http.resolver = self._resolver
        self._runner: asyncio.Runner | None = None

    def answer(self, url: str) -> Response | Withheld:
        """See the contract."""
        if site_of(url).partition("://")[2] != self._host:
            return Withheld("not_served")
        plain = f"http://{self._host}{path_of(url).partition('#')[0]}"
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._runner.run(self._http.start())
        response = self._runner.run(self._http.fetch(Task(plain, host_of(plain))))
        return _named(response)

    def close(self) -> None:
        """Close the connection."""
        if self._runner is not None:
            with contextlib.closing(self._runner) as runner:
                runner.run(self._http.stop())
                runner.run(self._resolver.stop())
            self._runner = None


def _named(response: Response) -> Response:
    """The answer with a media type: a server that names none leaves it to the bytes."""
    if response.content_type or response.outcome not in (Outcome.OK, Outcome.TRUNCATED):
        return response
    kind = ("content-type", "application/octet-stream")
    return msgspec.structs.replace(response, headers=(*response.headers, kind))
