"""The host's template, learnt from the pages that other parts ask about: in bounded memory, found again in the ledger.

Place in the flow: trap detection asks here what a page has of its own; other parts that compare pages may, too. Plain code
without I/O and clock, but for the ledger that a provider is given.

A host has a few *kinds* of pages, each with a template of its own (sections with navigations of their own, lists, articles): a
page belongs to the kind of whose template it has most. Of a kind it is counted how many of its last pages had each mark; those
that more than half of them had are its template. The rest of a page is kept as a sketch of 64 minima (one-permutation
MinHash): every mark of the remainder takes part in it.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence, Set
from typing import Annotated

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.traps.contract import Learnt, Reading
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.visit import Visit

#: The name under which the ledger keeps what is known of a host.
WHAT = "template"

#: Kinds of pages of one host in memory, and in the ledger. The one with the fewest pages makes room: a page that is like no other
#: must not push out what many have in common.
KINDS, KEPT_KINDS = 6, 4

#: How much the pages of the other kinds still weigh, each time that there is a new one.
FADING = 0.99

#: How much of a kind's template a page must have to be of that kind.
OF_A_KIND = 0.6

#: Pages after which all counts are halved: a template that changes is learnt anew.
REMEMBERED = 32

#: Marks that are counted of one kind. Above that, those that few pages have are forgotten.
COUNTED = 2_048

#: Minima of a sketch. Two sets that share four fifths differ in some 13 of them, with a standard deviation of three.
MINIMA = 64
_EMPTY = 0xFFFF

#: Remainders of a kind that are remembered, and kept in the ledger: a trap that takes turns between texts has fewer.
SKETCHES, KEPT_SKETCHES = 24, 8

#: From what likeness on a remainder says the same as one that is remembered: then it is not remembered beside it.
SAME = 0.8

#: Marks of a template that are kept in the ledger; four kinds make 15 KiB. Of a larger one a sample is, by checksum.
KEPT_MARKS = 700

_ALL = 1 << 32


class _Kind:
    """One kind of pages of a host."""

    __slots__ = ("core", "counts", "limit", "pages", "sketches", "weight")

    def __init__(self, core: Iterable[int] = (), sketches: Sequence[bytes] = (), limit: int = _ALL) -> None:
        self.core = set(core)
        self.pages = 2 if self.core else 0
        self.counts = Counter(dict.fromkeys(self.core, 2))
        self.sketches = list(sketches)
        self.limit = limit
        """Marks from this one on are not weighed."""
        self.weight = float(self.pages)

    def has(self, marks: Set[int]) -> float:
        """How much of this template these marks have."""
        return len(self.core & marks) / len(self.core) if self.core else 0.0

    def learn(self, marks: Set[int], sketch: bytes, likeness: float) -> int:
        """Remember a page; returns how many more marks are counted."""
        before = len(self.counts)
        self.weight += 1
        counts = self.counts
        counts.update(marks)
        self.pages += 1
        if self.pages >= REMEMBERED:
            self.pages //= 2
            self.counts = counts = Counter({mark: count // 2 for mark, count in counts.items() if count > 1})
        if len(counts) > COUNTED:
            self._forget(marks)
            counts = self.counts
        if self.pages <= 8 or self.pages % 4 == 0:
            half = self.pages / 2
            self.core = {mark for mark, count in counts.items() if count > half}
        if likeness < SAME:
            self.sketches.append(sketch)
            del self.sketches[:-SKETCHES]
        return len(counts) - before

    def _forget(self, marks: Set[int]) -> None:
        rare = max(1, self.pages // 4)
        self.counts = Counter({mark: count for mark, count in self.counts.items() if count > rare})
        if len(self.counts) > COUNTED or self.pages == 1:
            self.limit = sorted(marks)[COUNTED // 2] if len(marks) > COUNTED // 2 else self.limit // 2
            self.counts = Counter(mark for mark in marks if mark < self.limit)

    def record(self) -> tuple[int, bytes, list[bytes]]:
        """The bytes to keep."""
        core, limit = sorted(self.core), self.limit
        if len(core) > KEPT_MARKS:
            limit = core[KEPT_MARKS]
            core = core[:KEPT_MARKS]
        return limit, array("I", core).tobytes(), self.sketches[-KEPT_SKETCHES:]


_encode = msgspec.msgpack.Encoder().encode
_records = msgspec.msgpack.Decoder(list[tuple[int, bytes, list[bytes]]])


class TemplateSheet(Sheet, frozen=True):
    """Settings of :class:`LearntTemplates`."""

    marks: Annotated[
        int,
        setting(
            "Count at most this many words of templates in all; each takes about 90 bytes.",
            unit="words",
            restart="it sizes the memory",
            ge=KINDS * COUNTED,
        ),
    ] = 131_072


class LearntTemplates(Provider[TemplateSheet]):
    """Learns the template of each host from words that its pages share. Contracts: `HostTemplate`, `Learner`."""

    ledger: Uses[Ledger]
    keeps_state = True

    def __init__(self, sheet: TemplateSheet | None = None) -> None:
        super().__init__(sheet)
        self._hosts: OrderedDict[str, list[_Kind]] = OrderedDict()
        self._counted = 0
        self._changed: dict[str, None] = {}
        self._has_ledger = self._is_partial = False
        """The ledger may know of hosts that are not here."""
        self.metrics.gauge("hosts", lambda: len(self._hosts))
        self.metrics.gauge("marks", lambda: self._counted)

    async def start(self) -> None:
        """Go on from what the ledger knows: hosts are recalled when they are touched."""
        self._has_ledger = True
        self._is_partial = self.ledger.counters().get(f"learnt:{WHAT}", 0) > 0

    def observe(self, visit: Visit) -> str:
        """Nothing is learnt but from those who ask."""
        return ""

    def read(self, host: str, marks: Set[int], *, learn: bool = True) -> Reading:
        """Tell a page apart, and remember it unless `learn` is False."""
        kinds = self._kinds(host)
        known = len(kinds)
        shares = [one.has(marks) for one in kinds]
        most = max(shares, default=0.0)
        if most >= OF_A_KIND:
            kind = kinds[shares.index(most)]
        else:
            kind = _Kind()
            if learn:
                self._add(kinds, kind)
        weighed = marks if kind.limit == _ALL else {mark for mark in marks if mark < kind.limit}
        own = weighed - kind.core
        drawn = sketch_of(own)
        likeness = likeness_of(drawn, kind.sketches)
        reading = Reading(own, kind.limit / _ALL, kind.pages, known, likeness)
        if learn:
            self._counted += kind.learn(weighed, drawn.tobytes(), likeness)
            self._changed[host] = None
            self._make_room(host)
        return reading

    def learnt(self) -> Iterable[Learnt]:
        if not self._changed:
            return ()
        changed = [(name, self._hosts[name]) for name in self._changed if name in self._hosts]
        self._changed.clear()
        heaviest = ((name, sorted(kinds, key=lambda kind: -kind.weight)[:KEPT_KINDS]) for name, kinds in changed)
        return [Learnt(name, WHAT, _encode([kind.record() for kind in kinds])) for name, kinds in heaviest]

    def _add(self, kinds: list[_Kind], kind: _Kind) -> None:
        if len(kinds) >= KINDS:
            least = min(kinds, key=lambda one: one.weight)
            kinds.remove(least)
            self._counted -= len(least.counts)
        for other in kinds:
            other.weight *= FADING
        kinds.append(kind)

    def _kinds(self, host: str) -> list[_Kind]:
        kinds = self._hosts.get(host)
        if kinds is None:
            kinds = _read(self.ledger.learnt((host,), WHAT)[0]) if self._is_partial else []
            self._hosts[host] = kinds
            self._counted += sum(len(kind.counts) for kind in kinds)
        self._hosts.move_to_end(host)
        return kinds

    def _make_room(self, current: str) -> None:
        while self._counted > self.sheet.marks or len(self._hosts) > self.sheet.marks // 16:
            name, kinds = self._hosts.popitem(last=False)
            if name in self._changed or name == current:
                # Facts that are not kept yet would be lost: the host goes when they are.
                self._hosts[name] = kinds
                if all(other in self._changed or other == current for other in self._hosts):
                    return
                continue
            self._counted -= sum(len(kind.counts) for kind in kinds)
            self._is_partial = self._has_ledger


def sketch_of(own: Set[int]) -> "array[int]":
    """The least of the high bits of those marks whose low bits are the same."""
    minima = [_EMPTY] * MINIMA
    for mark in own:
        place, value = mark & MINIMA - 1, mark >> 16
        if value < minima[place]:
            minima[place] = value
    return array("H", minima)


def likeness_of(drawn: "array[int]", others: Iterable[bytes]) -> float:
    """The share of marks that a set has in common with the one of others that is most like it, by their sketches.

    Two empty sets are alike; where there are no others, the share is 0.
    """
    own = int.from_bytes(drawn.tobytes(), "little")
    empty = [place for place, least in enumerate(drawn) if least == _EMPTY]
    most = 0.0
    for other in others:
        # All 64 at once: where two minima are the same, nothing is left of their difference.
        difference = array("H", (own ^ int.from_bytes(other, "little")).to_bytes(2 * MINIMA, "little"))
        both_empty = sum(difference[place] == 0 for place in empty)
        filled = MINIMA - both_empty
        most = max(most, (difference.count(0) - both_empty) / filled if filled else 1.0)
    return most


def _read(data: bytes | None) -> list[_Kind]:
    try:
        rows = _records.decode(data) if data else []
        found = []
        for limit, core, sketches in rows[:KEPT_KINDS]:
            marks = array("I")
            marks.frombytes(core)
            found.append(_Kind(marks, [one for one in sketches if len(one) == 2 * MINIMA], min(max(limit, 1), _ALL)))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return []
    return found
