"""Links to the runtimes that a person configured, one for each address.

Place in the flow: the crawler manager asks here. An address of http or https is a runtime elsewhere; any other is a folder of this
machine, which a runtime at home serves: the home host always has one (Agarwal and others, 3.1).
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import OfferedHost, PageSource, RuntimeLink
from gossamer.mobile.home import HomeRuntime
from gossamer.mobile.manager.sheet import runtime_key
from gossamer.mobile.sources.files import FileSource
from gossamer.mobile.sources.gate import GatedPages, ServedSite
from gossamer.mobile.sources.owner import OwnerLimits
from gossamer.values.errors import UsageError


class RuntimeLinks(Protocol):
    """Gives the link to a runtime."""

    def link(self, address: str, host: str) -> RuntimeLink:
        """The link to the runtime at an address; `host` is one that it is asked for.

        Raises:
            UsageError: there can be no runtime.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A link that holds something."""

    async def close(self) -> None: ...


class RuntimesSheet(Sheet, frozen=True):
    """Settings of :class:`ConfiguredRuntimes`."""

    addresses: Annotated[
        tuple[str, ...], setting("Start only if the runtimes at these addresses can be used.", restart="links are open")
    ] = ()
    keys: Annotated[
        str,
        setting(
            "Read keys and pins of runtimes from this file, which only its owner may read; without it, from the environment.",
            restart="links are open",
            names="a file",
        ),
    ] = ""


class ConfiguredRuntimes(Provider[RuntimesSheet]):
    """Opens each link to a runtime when it is first needed. Contract: `RuntimeLinks`."""

    def __init__(self, sheet: RuntimesSheet | None = None) -> None:
        super().__init__(sheet)
        self._links: dict[str, RuntimeLink] = {}
        self._closing: list[Callable[[], object]] = []

    async def start(self) -> None:
        """Refuse what can never be reached before anything is sent.

        Raises:
            UsageError: a key is not known, or an address is none.
        """
        for address in self.sheet.addresses:
            self.link(address, "")

    def link(self, address: str, host: str) -> RuntimeLink:
        if "://" in address:
            if address not in self._links:
                self._links[address] = self._elsewhere(address)
            return self._links[address]
        # A folder is one site: another host is another one.
        name = f"{host}={address}"
        if name not in self._links:
            self._links[name] = self._at_home(address, host)
        return self._links[name]

    def _elsewhere(self, address: str) -> RuntimeLink:
        from gossamer.mobile.manager.remote_runtime import RemoteRuntime  # a crawl over folders needs no client

        known = runtime_key(address, self.sheet.keys)
        return RemoteRuntime(address, known.key, known.pin)

    def _at_home(self, folder: str, host: str) -> RuntimeLink:
        if not Path(folder).is_dir():
            raise UsageError(
                f"--runtime {host}={folder}: no such folder; name the root of the site's files, or https://ADDRESS"
            )
        source: PageSource = FileSource(Path(folder), limit=OwnerLimits().max_page_size)
        self._closing.append(source.close)
        pages = partial(GatedPages, _only({host: ServedSite(source)}), ObeyRobots(), self.clock)
        return HomeRuntime(pages, (OfferedHost(host, ("http", "https")),))

    async def stop(self) -> None:
        """End the crawlers that run here, and give back what they read."""
        for link in self._links.values():
            if isinstance(link, Closable):
                await link.close()
        for close in self._closing:
            close()


def _only(sites: dict[str, ServedSite]) -> Callable[[str], ServedSite | None]:
    # A host is served on every port.
    # A host is served on every port.
    return lambda name: sites.get(name) or sites.get(name.rpartition(":")[0])
