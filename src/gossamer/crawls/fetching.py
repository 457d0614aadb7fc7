"""One fetch without a crawl: the protocol modules and the resolver as a crawl would have them, put together for one URL."""

from typing import Any, Self

import msgspec

from gossamer.crawls.builder import served
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.seeds import read_seeds, users_of
from gossamer.engine.graph import Graph
from gossamer.engine.planning import plan
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import Wiring, with_settings
from gossamer.fetcher.contract import ProtocolModule
from gossamer.values.errors import UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of, scheme_of
from gossamer.values.visit import Response


class Fetching:
    """Fetches one URL that a person gave: the same options, guard and limits as a crawl with that seed; robots are not asked."""

    def __init__(self, url: str, options: CrawlOptions) -> None:
        """Check everything, open nothing. Raises UsageError: the URL cannot be read, or nothing serves its scheme."""
        [self.url] = read_seeds([url])
        options = msgspec.structs.replace(options, auth=(*users_of([url]), *options.auth))
        self._graph: Graph = plan(_timed(compile_wiring([self.url], options)), catalog())
        self._units: dict[str, Provider[Any]] = {}
        scheme = scheme_of(self.url)
        modules = served(self._graph.wiring)
        if scheme not in modules:
            raise UsageError(f"{self.url}: no protocol module serves {scheme}:; known: {', '.join(sorted(modules))}")
        self._module: ProtocolModule = self._made(modules[scheme])

    def _made(self, name: str) -> Any:
        """A provider of the wiring, behind those that it uses; each once."""
        unit = self._units.get(name)
        if unit is None:
            node = self._graph.providers[name]
            unit = node.unit(node.sheet)
            unit.name = name
            for role, target in node.roles.items():
                if isinstance(target, str):
                    setattr(unit, role, self._made(target))
            self._units[name] = unit
        return unit

    async def __aenter__(self) -> Self:
        for unit in self._units.values():
            await unit.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for unit in reversed(self._units.values()):
            await unit.stop()

    async def fetch(self) -> Response:
        """What came of it. Raises UsageError: the address is one that may not be asked; says what would open it."""
        response = await self._module.fetch(Task(self.url, host_of(self.url)))
        if response.outcome is Outcome.ADDRESS_REFUSED and response.error.endswith("off loopback"):
            raise UsageError(
                f"{self.url}: requests beyond this machine have to name a contact for site owners: give --contact "
                f"URL_OR_MAIL, or set GOSSAMER_CONTACT"
            )
        return response


def _timed(wiring: Wiring) -> Wiring:
    for name, node in wiring.providers.items():
        if node.use in ("http", "ftp", "gopher"):
            wiring = with_settings(wiring, name, {"timings": True})
    return wiring
