"""Which connector an address means: the registry of schemes. Asked when a wiring is bound.

====================  =========================================================================
`local:`              a queue in this process (:mod:`.local`)
`fused:`              none: the consumer is called in place (:mod:`.local`)
`priority:FIELD`      a queue in this process, lowest value of a field first (:mod:`.local`)
`unix:PATH`           between processes of one machine (:mod:`.remote`)
`tcp:HOST:PORT`       between machines, with a shared secret (:mod:`.remote`)
`peer:PATH`           between machines, sealed; files say where the other side is by now
====================  =========================================================================

A scheme of one's own is a :class:`Transport` that an installed package names in the entry point group
`gossamer.connectors`; the entry's name is the scheme.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.engine.connector import DEFAULT_CAPACITY, DEFAULT_SLOT, Connector, Side
from gossamer.engine.errors import SettingError, UnknownName, WiringError
from gossamer.engine.local import FusedConnector, LocalConnector, PriorityConnector
from gossamer.engine.sheet import NoSettings, Sheet, build, nearest
from gossamer.engine.subjects import loaded, offered

if TYPE_CHECKING:
    from gossamer.engine.remote.links import Exchange

#: Entry points of other packages.
GROUP = "gossamer.connectors"


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said of a connector when it is to be made."""

    name: str
    item_type: Any
    address: str = "local:"
    capacity: int = DEFAULT_CAPACITY
    side: Side = "both"
    """Which of its ends are in this process."""
    slot: str = DEFAULT_SLOT
    """The name of this process among the senders."""
    senders: int | frozenset[str] = 1
    """How many senders there are, or their slots."""
    options: Mapping[str, Any] = {}
    """Values for the scheme's sheet, as the wiring has them."""
    exchange: "Exchange | None" = None
    """The links of this process; remote schemes need them."""


class Transport(msgspec.Struct, frozen=True):
    """A scheme: what its options are and how its connectors are made."""

    open: Callable[[Opening, str, Any], Connector[Any]]
    """From the opening, the address without its scheme, and the filled sheet."""
    form: str
    """How an address of it is written, for messages."""
    sheet: type[Sheet] = NoSettings
    remote: bool = False
    """Its ends may be in two processes."""


def _here(kind: type[LocalConnector[Any]] | type[FusedConnector[Any]]) -> Callable[[Opening, str, Any], Connector[Any]]:
    """A scheme whose connectors have both ends in this process, and whose address says nothing more."""

    def opened(opening: Opening, rest: str, sheet: NoSettings) -> Connector[Any]:
        if rest:
            form = f"{opening.address.partition(':')[0]}:"
            raise WiringError(
                f"connector {opening.name!r}: address {opening.address!r} has more parts than its scheme takes; write {form}"
            )
        return kind(opening.name, opening.item_type, opening.capacity)

    return opened


def _priority(opening: Opening, rest: str, sheet: NoSettings) -> Connector[Any]:
    if not rest:
        raise WiringError(
            f"connector {opening.name!r}: address {opening.address!r} names no field; write priority:FIELD"
        )
    return PriorityConnector(opening.name, opening.item_type, opening.capacity, field=rest)


_BUILT_IN: Mapping[str, Transport] = {
    "local": Transport(_here(LocalConnector), "local:"),
    "fused": Transport(_here(FusedConnector), "fused:"),
    "priority": Transport(_priority, "priority:FIELD"),
}

#: Schemes between processes, with how an address is written. Few crawls are divided, and what they need is large.
_BETWEEN_PROCESSES = {"unix": "unix:PATH", "tcp": "tcp:HOST:PORT", "peer": "peer:PATH"}


@cache
def _between_processes(scheme: str) -> Transport:
    """One of them, imported when a wiring uses it."""
    from gossamer.engine.remote.connector import RemoteConnector, RemoteSheet

    def remote(opening: Opening, rest: str, sheet: RemoteSheet) -> Connector[Any]:
        if opening.exchange is None:
            raise WiringError(
                f"connector {opening.name!r}: {opening.address} needs this process' links, and none were given"
            )
        return RemoteConnector(
            opening.name,
            opening.item_type,
            opening.address,
            opening.capacity,
            exchange=opening.exchange,
            side=opening.side,
            slot=opening.slot,
            senders=opening.senders,
            options=sheet,
        )

    return Transport(remote, _BETWEEN_PROCESSES[scheme], RemoteSheet, remote=True)


def known_schemes() -> list[str]:
    return sorted({*_BUILT_IN, *_BETWEEN_PROCESSES, *(entry.name for entry in offered(GROUP))})


def transport_of(address: str) -> Transport:
    """The transport of an address' scheme.

    Raises:
        UnknownName: nothing is; lists the known schemes.
        WiringError: the address has no scheme, or the package that registered it gives no :class:`Transport`.
    """
    scheme, colon, _ = address.partition(":")
    if not colon:
        raise WiringError(f"address {address!r} has no scheme; write SCHEME:..., as local: or unix:PATH")
    if scheme in _BUILT_IN:
        return _BUILT_IN[scheme]
    if scheme in _BETWEEN_PROCESSES:
        return _between_processes(scheme)
    for entry in offered(GROUP, scheme):
        found = loaded(entry, "connector scheme")
        if not isinstance(found, Transport):
            raise WiringError(
                f"connector scheme {scheme!r}: {entry.value} is not a gossamer.engine.transports.Transport"
            )
        return found
    raise UnknownName(f"unknown connector scheme {scheme!r}{nearest(scheme, known_schemes())}")


def open_connector(opening: Opening) -> Connector[Any]:
    """Make a connector; the caller starts it.

    Raises:
        UnknownName: the scheme is unknown.
        WiringError: the address is malformed, an option is wrong, or the scheme cannot have its ends in two processes.
    """
    transport = transport_of(opening.address)
    if opening.side != "both" and not transport.remote:
        raise WiringError(
            f"connector {opening.name!r}: {opening.address} has both ends in one process; "
            "give it an address such as unix:PATH to divide it"
        )
    try:
        sheet = build(transport.sheet, opening.options)
    except SettingError as error:
        raise WiringError(f"connector {opening.name!r} ({transport.form}): {error}") from None
    return transport.open(opening, opening.address.partition(":")[2], sheet)
