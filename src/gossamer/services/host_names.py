"""The one name of a host that has several (Hunyadi 2007, section 5.3.1, step 3).

Place in the flow: the third step of :mod:`gossamer.stages.marshaling`. A person's table is a setting, so that it lies with the
crawl. Names of addresses are looked up only if a person wants it, since they may change. `gossamer why` tells of aliases that
pages have proved.
"""

from collections.abc import Iterable
from typing import Annotated

from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import UsageError
from gossamer.model.normal import aliases_of
from gossamer.services.cares import check_servers
from gossamer.services.reverse import ReverseNames


class HostNamesSheet(Sheet, frozen=True):
    """Settings of :class:`GivenHostNames`."""

    aliases: Annotated[
        tuple[str, ...],
        setting(
            "Use the second name of hosts that have two, as `www.example.org=example.org`; the first may be an address, as "
            "`192.0.2.7=example.org`."
        ),
    ] = ()
    reverse: Annotated[
        bool,
        setting(
            "Look up the names of hosts that are addresses (PTR), and use a name that leads back to its address. Answers are "
            "remembered for an hour."
        ),
    ] = False
    servers: Annotated[
        tuple[str, ...], setting("Ask these name servers, as ADDRESS[:PORT]; empty: those of the system.")
    ] = ()


class GivenHostNames(Provider[HostNamesSheet]):
    """Replaces names of hosts by those in its table of aliases. Contract: `marshaling.HostNames`.

    Raises:
        SettingError: an alias cannot be read, or leads to another one; or a name server is none.
    """

    def __init__(self, sheet: HostNamesSheet | None = None) -> None:
        super().__init__(sheet)
        self._names: dict[str, str] = {}
        self._reverse: ReverseNames | None = None
        self._read()

    async def stop(self) -> None:
        """Give up look-ups that are under way."""
        if self._reverse is not None:
            await self._reverse.close()

    def changed(self, before: HostNamesSheet) -> None:
        """Take the new table, or keep the old one if the new one is bad."""
        self._read()

    def _read(self) -> None:
        check_servers(self.sheet.servers)
        try:
            self._names = aliases_of(self.sheet.aliases)
        except UsageError as error:
            raise SettingError(str(error)) from None

    def name_of(self, host: str) -> str:
        """The canonical name of a host; the host itself where no other name is known."""
        if host not in self._names and self._reverse is not None and self.sheet.reverse:
            host = self._reverse.name_of(host) or host
        return self._names.get(host, host)

    async def learn(self, hosts: Iterable[str]) -> None:
        """Look up the names of hosts that are addresses, if that is wanted."""
        if self.sheet.reverse:
            if self._reverse is None:
                self._reverse = ReverseNames(self.sheet.servers, self.clock.monotonic)
            asked = await self._reverse.look_up(host for host in hosts if host not in self._names)
            self.metrics.count("looked_up", asked)
