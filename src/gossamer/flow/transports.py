"""Which connector stands behind an address: a registry by scheme."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gossamer.flow.connector import Connector
from gossamer.flow.errors import UnknownName
from gossamer.flow.fused import FusedConnector
from gossamer.flow.local import LocalConnector
from gossamer.flow.priority import PriorityConnector
from gossamer.flow.sheet import nearest


class Exchange:
    async def close(self) -> None: ...


class Opening(msgspec.Struct, frozen=True):
    name: str
    item_type: Any
    address: str
    capacity: int
    side: str
    slot: str
    senders: tuple[str, ...]
    options: Mapping[str, Any]
    exchange: Exchange
    report: Callable[[str], None]


def open_connector(opening: Opening) -> Connector[Any]:
    scheme, _, rest = opening.address.partition(":")
    if scheme == "local":
        return LocalConnector(opening.name, opening.item_type, opening.capacity)
    if scheme == "fused":
        return FusedConnector(opening.name, opening.item_type)
    if scheme == "priority":
        return PriorityConnector(opening.name, opening.item_type, opening.capacity, field=rest)
    raise UnknownName(f"{scheme}{nearest(scheme, ['local'])}")
