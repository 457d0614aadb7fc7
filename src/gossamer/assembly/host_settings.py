"""Settings of single hosts, as `[hosts."*.example.org"]` in a file of settings and `gossamer set DIR --host` have them.

Place in the flow: :mod:`~gossamer.assembly.compiling` puts them into a wiring, steering changes them in a running crawl.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from gossamer.assembly.builder import Builder
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.recrawl import SCHEDULE
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, build, setting
from gossamer.model.errors import UsageError
from gossamer.model.host_table import HostTable

#: Setting of a single host -> the unit's setting that holds it for all hosts.
HOST_SETTINGS = {
    "delay": ("politeness", "delays"),
    "per_host": ("politeness", "lives"),
    "max_pages": ("commit", "max_by_host"),
    "min_interval": (SCHEDULE, "min_by_host"),
    "max_interval": (SCHEDULE, "max_by_host"),
    "header": ("http", "headers"),
}


class HostOptions(Sheet, frozen=True):
    """What can be set for single hosts. The names are those of the options that it takes the place of."""

    delay: (
        Annotated[float, setting("Wait this long between two requests.", unit="s", ge=0)] | Literal["auto"] | None
    ) = None
    per_host: Annotated[int, setting("Have at most this many requests in flight.", unit="requests", ge=1)] | None = None
    max_pages: Annotated[int, setting("Queue at most this many URLs.", unit="pages", ge=1)] | None = None
    min_interval: (
        Annotated[float, setting("Wait at least this long between two visits of a page.", unit="s", gt=0)] | None
    ) = None
    max_interval: (
        Annotated[float, setting("Wait at most this long between two visits of a page.", unit="s", gt=0)] | None
    ) = None
    header: Annotated[tuple[str, ...], setting("Send this header field too, as `Name: value`.")] = ()


def put_hosts(builder: Builder) -> None:
    """Set what the options say of single hosts. It comes behind `--recrawl`, which brings one of the units.

    Raises:
        UsageError: a host or a value cannot be read, or a setting means nothing in this crawl; names the host.
        WiringError: the wiring has no such unit.
    """
    hosts = dict(_read(builder.options))
    for name, (unit, table) in HOST_SETTINGS.items():
        values = {host: value for host, options in hosts.items() if (value := getattr(options, name))}
        if name == "delay":
            values |= {host: 0.0 for host, options in hosts.items() if options.delay == 0}
        if values and unit == SCHEDULE and not builder.has(SCHEDULE):
            raise UsageError(
                f'[hosts."{next(iter(values))}"]: {name.replace("_", "-")} says when known pages are visited again; '
                "give --recrawl as well"
            )
        if values:
            builder.set("hosts", unit, {table: msgspec.to_builtins(values)})


def _read(options: CrawlOptions) -> Iterator[tuple[str, HostOptions]]:
    for host, values in options.hosts.items():
        try:
            HostTable({host: True})
            yield host, build(HostOptions, {name.replace("-", "_"): value for name, value in values.items()})
        except (SettingError, UsageError) as error:
            raise UsageError(f'[hosts."{host}"]: {error}') from None
