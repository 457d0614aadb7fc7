"""What is known of families, host by host: bounded in memory, and found again in the ledger by whoever goes on.

Place in the flow: `watch` asks here for the families of a host; the committer keeps what has changed with the visits that it was
learnt from, and a host that is touched again is recalled. Plain code: how kept bytes are read is given by the provider.
"""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from gossamer.contracts.watching import Learnt
from gossamer.services.traps.novelty import Sketch

#: The name under which the ledger keeps what is known of a host.
WHAT = "traps"

#: Bytes of a host in the ledger: some twenty families. Those that are cut come first, then those that were looked at last.
KEPT_BYTES = 8_192

#: Families of one host in memory: a host has a few, and who makes many must not push out those of others.
FAMILIES_OF_HOST = 256

#: Bytes of an unpacked family, at the most: more is not ours.
_UNPACKED = 65_536

#: Gives the bytes that are kept of hosts, in order.
Recall = Callable[[Sequence[str]], Sequence[bytes | None]]


class Family(msgspec.Struct, array_like=True):
    """What is known of one family. New fields go to the end, with a default: kept ones stay readable."""

    sketch: Sketch = msgspec.field(default_factory=Sketch)
    pages: int = 0
    window: bytearray = msgspec.field(default_factory=bytearray)
    """Of the last pages, what each was, as bits: see :mod:`watch`."""
    combinations: set[int] = set()
    """Checksums of combinations of parameters."""
    rests: dict[int, set[int]] = {}
    """Checksum of what stands behind an identifier -> checksums of the identifiers."""
    rest: int = 0
    """Pages that will not be looked at."""
    rested: int = 0
    """How many they were the last time."""
    level: int = 0
    """How often it was cut."""
    name: str = ""
    stale: int = 0
    fresh: int = 0
    cut: int = 0


_encode = msgspec.msgpack.Encoder().encode
_families = msgspec.msgpack.Decoder(Family)
_records = msgspec.msgpack.Decoder(dict[str, bytes])


class _Host:
    """The families of one host, those that were looked at last at the end."""

    __slots__ = ("families", "packed")

    def __init__(self, families: dict[str, Family], packed: dict[str, bytes]) -> None:
        self.families = families
        self.packed = packed
        """Those that have not changed since they were last packed."""


class Memory:
    """Families by host and name."""

    def __init__(self, families: int, hosts: int) -> None:
        """How many of each are remembered."""
        self._most_families = families
        self._most_hosts = hosts
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._count = 0
        self._changed: dict[str, None] = {}
        self._recall: Recall | None = None
        self._is_partial = False
        """The ledger may know of hosts that are not here."""

    def __repr__(self) -> str:
        return f"<Memory of {self._count} families, {len(self._hosts)} hosts>"

    def __len__(self) -> int:
        return self._count

    def go_on(self, recall: Recall, *, is_known: bool) -> None:
        """Look for hosts that are not here by `recall`; `is_known` is False where that has nothing yet."""
        self._recall = recall
        self._is_partial = is_known

    def get(self, host: str, family: str) -> Family | None:
        """What is known of a family; None where nothing is."""
        found = self._hosts.get(host)
        if found is None:
            if not self._is_partial:
                return None
            self.recall((host,))
            found = self._hosts.get(host)
        return None if found is None else found.families.get(family)

    def recall(self, hosts: Sequence[str]) -> None:
        """Take back what the ledger knows of hosts that are not here: one question for all."""
        if self._recall is None or not self._is_partial:
            return
        missing = [host for host in dict.fromkeys(hosts) if host not in self._hosts]
        if not missing:
            return
        for name, data in zip(missing, self._recall(missing), strict=True):
            packed = _read(data)
            families = {key: family for key, value in packed.items() if (family := _unpacked(value)) is not None}
            self._hosts[name] = _Host(families, packed)
            self._count += len(families)
        self._make_room(missing[-1])

    def touched(self, host: str, name: str) -> Family:
        """A family that is about to change, new where it is not known."""
        family = self.get(host, name)
        known = self._hosts.get(host)
        if known is None:
            known = self._hosts[host] = _Host({}, {})
        self._hosts.move_to_end(host)
        if family is None:
            family = Family()
            self._count += 1
        known.families.pop(name, None)
        known.families[name] = family
        known.packed.pop(name, None)
        self._changed[host] = None
        if len(known.families) > FAMILIES_OF_HOST:
            self._forget_oldest(known)
        self._make_room(host)
        return family

    def _make_room(self, current: str) -> None:
        while len(self._hosts) > self._most_hosts or self._count > self._most_families:
            name, host = next(iter(self._hosts.items()))
            if name == current:
                self._forget_oldest(host)
            else:
                del self._hosts[name]
                self._count -= len(host.families)
            self._is_partial = self._recall is not None

    def _forget_oldest(self, host: _Host) -> None:
        oldest = next(iter(host.families))
        del host.families[oldest]
        host.packed.pop(oldest, None)
        self._count -= 1

    def changed(self) -> Iterator[Learnt]:
        """What is to be kept of each host that was touched since this was last asked."""
        names, self._changed = self._changed, {}
        for name in names:
            host = self._hosts.get(name)
            if host is not None:
                yield Learnt(name, WHAT, _record(host))


def _record(host: _Host) -> bytes:
    """As many families as there is room for."""
    kept: dict[str, bytes] = {}
    size = 0
    recent = list(reversed(host.families.items()))
    cut, others = ([one for one in recent if (one[1].level > 0) is is_cut] for is_cut in (True, False))
    for name, family in (*cut, *others):
        packed = host.packed.get(name)
        if packed is None:
            packed = host.packed[name] = zlib.compress(_encode(family), 1)
        size += len(name.encode("utf-8", "replace")) + len(packed) + 8
        if size > KEPT_BYTES:
            break
        kept[name] = packed
    return _encode(dict(reversed(kept.items())))


def _read(data: bytes | None) -> dict[str, bytes]:
    try:
        return _records.decode(data) if data else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _unpacked(data: bytes) -> Family | None:
    try:
        return _families.decode(zlib.decompressobj().decompress(data, _UNPACKED))
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
