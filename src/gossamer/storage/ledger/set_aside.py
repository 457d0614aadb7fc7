"""Tasks that are set aside: those of families that look like traps, behind everything else (design question 22).

Place in the flow: committer and frontier set tasks aside by a group; the frontier brings some back as probes, or all of them. A
task that is set aside is neither queued nor in flight, and as durable as those that are: it moves with the group that says so.

A family has a row with its count, and chunks of its tasks in the order in which they came. Nothing of it is kept in memory.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from gossamer.storage.ledger.chunks import pack_with_level, unpack_with_level
from gossamer.storage.ledger.keys import ASIDE, SHELF, LedgerKeys, after, serial_key
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.task import Family, SetAside, Task

_rows = msgspec.msgpack.Decoder(SetAside)
_encode = msgspec.msgpack.Encoder().encode


class AsideTasks:
    """Tasks that are set aside, as the store has them."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys

    def row(self, family: Family) -> SetAside:
        """The row of a family; an empty one where nothing was ever set aside of it."""
        data = self._store.get("frontier", self.row_key(family))
        return SetAside(family) if data is None else _rows.decode(data)

    def rows(self, after_this: Family | None = None) -> Iterator[SetAside]:
        """Every row, those of one domain together; behind that of a family, where one is given."""
        start = ASIDE if after_this is None else self.row_key(after_this) + b"\x00"
        for _, data in self._store.scan("frontier", start, after(ASIDE)):
            yield _rows.decode(data)

    def of_owner(self, owner: str) -> list[SetAside]:
        """The rows of one owner."""
        prefix = ASIDE + self._keys.host(owner)
        return [_rows.decode(data) for _, data in self._store.scan("frontier", prefix, after(prefix))]

    def chunks(self, family: Family, *, newest: bool = False) -> Iterator[tuple[bytes, list[Task]]]:
        """Keys and tasks of a family's chunks, those that came first at the beginning, or the other way round."""
        prefix = self._prefix(family)
        scan = self._store.scan_back if newest else self._store.scan
        for key, value in scan("frontier", prefix, after(prefix)):
            yield key, unpack_with_level(value)

    def _prefix(self, family: Family) -> bytes:
        return SHELF + self._keys.host(family.owner) + family.key

    def row_key(self, family: Family) -> bytes:
        """The key of a family's row."""
        return ASIDE + self._keys.host(family.owner) + family.key

    def chunk_key(self, family: Family, serial: int) -> bytes:
        """The key of a chunk."""
        return serial_key(self._prefix(family), serial)

    def find(self, owners: Sequence[str], url: str, most: int) -> tuple[Family, Task] | None:
        """The family and the task of a URL that is set aside, among the first `most` chunks of these owners' families."""
        for owner in owners:
            for row in self.of_owner(owner):
                if not row.count:
                    continue
                for _, tasks in self.chunks(row.family):
                    most -= 1
                    found = next((task for task in tasks if task.url == url), None)
                    if found is not None:
                        return row.family, found
                    if most <= 0:
                        return None
        return None


class AsideChanges:
    """The changes of a group to them."""

    def __init__(self, kept: AsideTasks) -> None:
        self._kept = kept
        self._rows: dict[bytes, SetAside] = {}
        self._chunks: dict[bytes, bytes] = {}
        """Empty where the chunk leaves."""

    def _row(self, family: Family) -> SetAside:
        row = self._rows.get(family.key)
        return self._kept.row(family) if row is None else row

    def put(self, family: Family, tasks: Iterable[Task]) -> int:
        """Set tasks aside; returns how many they are."""
        by_lane: dict[tuple[str, int], list[Task]] = {}
        for task in tasks:
            by_lane.setdefault((task.host, task.level), []).append(task)
        row = self._row(family)
        serial, count = row.serial, 0
        for (host, level), those in by_lane.items():
            for chunk in pack_with_level(host, level, those):
                self._chunks[self._kept.chunk_key(family, serial)] = chunk
                serial += 1
            count += len(those)
        self._rows[family.key] = msgspec.structs.replace(row, family=family, count=row.count + count, serial=serial)
        return count

    def take(self, family: Family, most: int, *, newest: bool, probe: bool, last: bool) -> list[Task]:
        """Tasks that are set aside no more, at most so many; what this group itself sets aside is not among them."""
        found: list[Task] = []
        for key, tasks in self._kept.chunks(family, newest=newest):
            if self._chunks.get(key) == b"":
                continue
            room = most - len(found)
            taken, rest = (tasks[-room:], tasks[:-room]) if newest else (tasks[:room], tasks[room:])
            found += taken
            self._chunks[key] = pack_with_level(tasks[0].host, tasks[0].level, rest)[0] if rest else b""
            if len(found) >= most:
                break
        row = self._row(family)
        count = len(found)
        self._rows[family.key] = msgspec.structs.replace(
            row,
            count=row.count - count,
            probes=row.probes + (count if probe else 0),
            last_probes=row.last_probes + (count if last else 0),
        )
        return found

    def write(self, batch: Batch) -> None:
        """Put everything into a batch."""
        for row in self._rows.values():
            batch.put("frontier", self._kept.row_key(row.family), _encode(row))
        for key, value in self._chunks.items():
            if value:
                batch.put("frontier", key, value)
            else:
                batch.delete("frontier", key)
