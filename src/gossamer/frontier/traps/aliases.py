"""Two names of one host, detected: same address, same pages at the same paths (Ridgway 2010, section 2.2.1).

Place in the flow: the committer shows it every visit. It reports, and folds nothing: which spelling of a host is met first is a
matter of timing, and a crawl that folded hosts while it runs would not be the same twice. A person who has read the report folds
them from the start, by the setting `links.aliases` or `--normalize www`. Plain code without I/O and clock.

The results of comparisons are kept in the ledger with the host of the shorter name. The pages that were shown are not: after a
restart the ledger itself says of a page whose bytes are known which URL showed them first.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Annotated

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.traps.contract import Learnt
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Visit

#: Equal pages that prove an alias, and how many of them may be missing for one that differs: pages with a date or a counter in
#: them differ from one moment to the next.
NEEDED = 3
PER_DIFFERENCE = 5

#: Hosts that have been compared with others and are remembered, and how many others each has: 300 bytes a pair at most, also in the
#: ledger. A host has a few names; a machine that shows one site under a thousand is told sixteen times.
MOST_HOSTS = 4_096
MOST_OTHERS = 16

#: The name under which the ledger keeps what is known of a host.
WHAT = "aliases"

#: Bytes of a body that says something: a thousand hosts of one machine show the same "It works!".
SUBSTANTIAL = 512


class Alias(msgspec.Struct, array_like=True):
    """Two hosts that show the same pages at the same address. New fields go to the end, with a default."""

    name: str
    """The shorter name, without `www.` where there is a choice."""
    other: str
    equal: int = 0
    different: int = 0

    @property
    def is_proven(self) -> bool:
        """Enough equal pages, and hardly any that differ."""
        return self.equal >= NEEDED + PER_DIFFERENCE * self.different


_encode = msgspec.msgpack.Encoder().encode
_pairs = msgspec.msgpack.Decoder(list[Alias])


class AliasSheet(Sheet, frozen=True):
    """Settings of :class:`HostAliases`."""

    pages: Annotated[
        int,
        setting("Compare at most this many pages, 300 bytes each.", unit="pages", restart="it sizes the memory", ge=1),
    ] = 32_768


class HostAliases(Provider[AliasSheet]):
    """Reports hosts with two names: those of one address that show the same at the same paths. Contract: `Learner`."""

    ledger: Uses[Ledger]
    keeps_state = True

    def __init__(self, sheet: AliasSheet | None = None) -> None:
        super().__init__(sheet)
        self._shown: OrderedDict[tuple[str, str], dict[str, str]] = OrderedDict()
        """(address, path) -> digest -> the first host that showed it."""
        self._pairs: OrderedDict[str, dict[str, Alias]] = OrderedDict()
        """Shorter name -> other name -> what came of comparing them."""
        self._changed: dict[str, None] = {}
        self.metrics.gauge("proven", lambda: len(self.proven()))

    def observe(self, visit: Visit) -> str:
        """Learn from a page: `alias` where it proves one."""
        response = visit.response
        if not visit.is_page or response.outcome is not Outcome.OK or len(response.body) < SUBSTANTIAL:
            return ""
        if not response.address or not visit.digest:
            return ""
        key = (response.address, path_of(visit.url))
        shown = self._shown.setdefault(key, {})
        self._shown.move_to_end(key)
        if len(self._shown) > self.sheet.pages:
            self._shown.popitem(last=False)
        proved, own = None, visit.task.host
        for digest, host in shown.items():
            if host != own:
                alias = self._compared(host, own, is_equal=digest == visit.digest)
                proved = alias or proved
        if visit.duplicate_of and visit.digest not in shown:
            # It was shown by an earlier process, or too long ago to be remembered.
            first = host_of(visit.duplicate_of)
            is_beside = path_of(visit.duplicate_of) == key[1] and first not in (own, *shown.values())
            if is_beside and self.ledger.host_states((first,))[0].address == response.address:
                proved = self._compared(first, own, is_equal=True) or proved
        # A machine with a thousand hosts has a thousand front pages: the first few are enough to compare with.
        if len(shown) < NEEDED:
            shown.setdefault(visit.digest, own)
        if proved is None:
            return ""
        self.metrics.count("found:alias")
        return "alias"

    def _compared(self, one: str, other: str, *, is_equal: bool) -> Alias | None:
        name, longer = sorted((one, other), key=_preference)
        others = self._others(name)
        known = others.get(longer)
        if known is None:
            if not is_equal or len(others) >= MOST_OTHERS:
                return None
            known = others[longer] = Alias(name, longer)
        self._changed[name] = None
        was_proven = known.is_proven
        known.equal += is_equal
        known.different += not is_equal
        return known if known.is_proven and not was_proven else None

    def _others(self, name: str) -> dict[str, Alias]:
        """The hosts that a host has been compared with, as the longer name of each pair."""
        others = self._pairs.get(name)
        if others is None:
            others = self._pairs[name] = _read(self.ledger.learnt((name,), WHAT)[0])
            if len(self._pairs) > MOST_HOSTS:
                self._pairs.popitem(last=False)
        else:
            self._pairs.move_to_end(name)
        return others

    def learnt(self) -> Sequence[Learnt]:
        if not self._changed:
            return ()
        changed = [(name, self._pairs[name]) for name in self._changed if name in self._pairs]
        self._changed.clear()
        return [Learnt(name, WHAT, _encode(list(others.values()))) for name, others in changed]

    def proven(self) -> list[Alias]:
        """The aliases that are proven and remembered, by name."""
        found = (one for others in self._pairs.values() for one in others.values() if one.is_proven)
        return sorted(found, key=lambda one: (one.name, one.other))


def proven_others(data: bytes | None) -> list[str]:
    """The other names of a host, by the bytes that are kept of it."""
    return sorted(one.other for one in _read(data).values() if one.is_proven)


def _read(data: bytes | None) -> dict[str, Alias]:
    try:
        return {one.other: one for one in _pairs.decode(data)} if data else {}
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _preference(host: str) -> tuple[bool, int, str]:
    return host.startswith("www."), len(host), host
