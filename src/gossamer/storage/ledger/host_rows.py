"""States of hosts, and how many URLs were queued of each host and domain: small tables in front of the store.

A commit asks for the state of each visited host and for the tallies of each new task: most were asked for just before.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gossamer.storage.ledger.contract import Tallied
from gossamer.storage.ledger.keys import HOST_ID_BYTES, LEARNT, ROBOTS, STATE, TALLIES, LedgerKeys
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.seen.caches import RecentlyUsed
from gossamer.values.ledger_rows import HostState

#: States and tallies that are remembered; about 600 and 150 bytes each.
REMEMBERED_STATES, REMEMBERED_TALLIES = 8_192, 65_536

#: Hosts that are remembered for their errors, those with the most: people are shown a handful.
FAILING = 64

_encode = msgspec.msgpack.Encoder().encode
_states = msgspec.msgpack.Decoder(HostState)


class LedgerHosts:
    """Rows of hosts, robots bytes of their sites, what watchers learnt of them, tallies."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys
        self.forget()
        self.failing: dict[str, int] = {}
        """Errors of hosts that had some since this was opened, all runs together; of the hosts with the most."""

    def forget(self) -> None:
        """Ask the store again for all of them."""
        self._states: RecentlyUsed[str, HostState] = RecentlyUsed(REMEMBERED_STATES)
        self._tallies: RecentlyUsed[tuple[Tallied, str], int] = RecentlyUsed(REMEMBERED_TALLIES)

    def states(self, names: Sequence[str]) -> list[HostState]:
        """The states of hosts, in order; an empty one for a host of which nothing is kept."""
        known = self._states
        found = {name: state for name in names if (state := known.get(name)) is not None}
        rest = [name for name in dict.fromkeys(names) if name not in found]
        if rest:
            keys = [self._keys.host(name) + STATE for name in rest]
            for name, data in zip(rest, self._store.get_many("hosts", keys), strict=True):
                found[name] = state = HostState(name) if data is None else _states.decode(data)
                known.set(name, state)
        return [found[name] for name in names]

    def all(self) -> Iterator[HostState]:
        """The states of all hosts, in the order of domains."""
        for key, data in self._store.scan("hosts", b"", b"\xff" * (HOST_ID_BYTES + 2)):
            if key[HOST_ID_BYTES:] == STATE:
                yield _states.decode(data)

    def robots(self, site: str, host: str) -> bytes | None:
        """The robots bytes of a site; None where nothing is kept."""
        return self._store.get("hosts", self._robots_key(site, host))

    def learnt(self, names: Sequence[str], what: str) -> list[bytes | None]:
        """The lessons about hosts under a watcher's name, in order."""
        return self._store.get_many("hosts", [self._learnt_key(name, what) for name in names])

    def tally(self, what: Tallied, name: str) -> int:
        """How many were counted under this name."""
        count = self._tallies.get((what, name))
        if count is None:
            count = int.from_bytes(self._store.get("hosts", self._keys.host(name) + TALLIES[what]) or b"")
            self._tallies.set((what, name), count)
        return count

    def put(
        self,
        states: Mapping[str, HostState],
        robots: Mapping[tuple[str, str], bytes],
        learnt: Mapping[tuple[str, str], bytes],
        tallies: Mapping[tuple[Tallied, str], int],
        batch: Batch,
    ) -> None:
        """Put rows, robots bytes by site and host, what was learnt by host and name, and tallies into a batch."""
        for name, state in states.items():
            batch.put("hosts", self._keys.host(name) + STATE, _encode(state))
        for (site, host), data in robots.items():
            batch.put("hosts", self._robots_key(site, host), data)
        for (name, watcher), data in learnt.items():
            batch.put("hosts", self._learnt_key(name, watcher), data)
        for (what, name), count in tallies.items():
            batch.put("hosts", self._keys.host(name) + TALLIES[what], count.to_bytes(8))

    def applied(self, states: Mapping[str, HostState], tallies: Mapping[tuple[Tallied, str], int]) -> None:
        for name, state in states.items():
            self._states.set(name, state)
            errors = state.counters.get("errors", 0)
            if errors:
                self._note_errors(name, errors)
        for key, count in tallies.items():
            self._tallies.set(key, count)

    def _note_errors(self, name: str, errors: int) -> None:
        self.failing[name] = errors
        if len(self.failing) > 2 * FAILING:
            most = sorted(self.failing.items(), key=lambda pair: -pair[1])
            self.failing = dict(most[:FAILING])

    def _learnt_key(self, host: str, what: str) -> bytes:
        return self._keys.host(host) + LEARNT + what.encode()

    def _robots_key(self, site: str, host: str) -> bytes:
        return self._keys.host(host) + ROBOTS + site.encode("utf-8", "surrogatepass")
