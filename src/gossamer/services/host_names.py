"""The one name of a host that has several, by a person's table (Hunyadi 2007, section 5.3.1, step 3).

Place in the flow: the third step of :mod:`gossamer.stages.marshaling`. The table is a setting, so that it lies with the crawl.
Nothing is looked up: a name that an address has by DNS is a claim of its owner, and changes. `gossamer why` tells of aliases that
pages have proved.
"""

from typing import Annotated

from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.errors import UsageError
from gossamer.model.normal import aliases_of


class HostNamesSheet(Sheet, frozen=True):
    """Settings of :class:`GivenHostNames`."""

    aliases: Annotated[
        tuple[str, ...],
        setting(
            "Use the second name of hosts that have two, as `www.example.org=example.org`; the first may be an address, as "
            "`192.0.2.7=example.org`."
        ),
    ] = ()


class GivenHostNames(Provider[HostNamesSheet]):
    """Replaces names of hosts by those in its table of aliases. Contract: `marshaling.HostNames`.

    Raises:
        SettingError: an alias cannot be read, or leads to another one.
    """

    def __init__(self, sheet: HostNamesSheet | None = None) -> None:
        super().__init__(sheet)
        self._names: dict[str, str] = {}
        self._read()

    def changed(self, before: HostNamesSheet) -> None:
        """Take the new table, or keep the old one if the new one is bad."""
        self._read()

    def _read(self) -> None:
        try:
            self._names = aliases_of(self.sheet.aliases)
        except UsageError as error:
            raise SettingError(str(error)) from None

    def name_of(self, host: str) -> str:
        """The canonical name of a host; the host itself where no other name is known."""
        return self._names.get(host, host)
