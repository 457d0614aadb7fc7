"""Likeness of pages: the template of a host, learnt from pages that others ask about, and two names of one host, which show
the same pages. In bounded memory, found again in the ledger.

Place in the flow: trap detection asks here what a page has of its own; other parts that compare pages may, too. Plain code
without I/O and clock, but for the ledger that a provider is given.

A host has a few *kinds* of pages, each with a template of its own (sections with navigations of their own, lists, articles): a
page belongs to the kind of whose template it has most. Of a kind it is counted how many of its last pages had each mark; those
that more than half of them had are its template. The rest of a page is kept as a sketch of 64 minima (one-permutation
MinHash): every mark of the remainder takes part in it.

Two names of one host are detected by the same address and the same pages at the same paths (Ridgway 2010, section 2.2.1). They are
reported, and nothing is folded: which spelling of a host is met first is a matter of timing, and a crawl that folded hosts while it
runs would not be the same twice. A person who has read the report folds them from the start, by the setting `links.aliases` or
`--normalize www`. The results of comparisons are kept in the ledger with the host of the shorter name; the pages that were shown
are not: after a restart the ledger itself says of a page whose bytes are known which URL showed them first.
"""

from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence, Set
from typing import Annotated

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.traps.contract import Learnt, TemplateReading
from gossamer.storage.ledger.contract import Ledger
from gossamer.values.outcome import Outcome
from gossamer.values.url import host_of, path_of
from gossamer.values.visit import Visit

#: The name under which the ledger keeps the template of a host.
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
            rare = max(1, self.pages // 4)
            counts = Counter({mark: count for mark, count in counts.items() if count > rare})
            if len(counts) > COUNTED or self.pages == 1:
                self.limit = sorted(marks)[COUNTED // 2] if len(marks) > COUNTED // 2 else self.limit // 2
                counts = Counter(mark for mark in marks if mark < self.limit)
            self.counts = counts
        if self.pages <= 8 or self.pages % 4 == 0:
            half = self.pages / 2
            self.core = {mark for mark, count in counts.items() if count > half}
        if likeness < SAME:
            self.sketches.append(sketch)
            del self.sketches[:-SKETCHES]
        return len(counts) - before

    def record(self) -> tuple[int, bytes, list[bytes]]:
        core, limit = sorted(self.core), self.limit
        if len(core) > KEPT_MARKS:
            limit = core[KEPT_MARKS]
            core = core[:KEPT_MARKS]
        return limit, array("I", core).tobytes(), self.sketches[-KEPT_SKETCHES:]


_encode = msgspec.msgpack.Encoder().encode
_records = msgspec.msgpack.Decoder(list[tuple[int, bytes, list[bytes]]])


class TemplateSheet(Sheet, frozen=True):
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
        self._has_ledger = True
        self._is_partial = self.ledger.counters().get(f"learnt:{WHAT}", 0) > 0

    def observe(self, visit: Visit) -> str:
        """Nothing is learnt but from those who ask."""
        return ""

    def read(self, host: str, marks: Set[int], *, learn: bool = True) -> TemplateReading:
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
                if len(kinds) >= KINDS:
                    least = min(kinds, key=lambda one: one.weight)
                    kinds.remove(least)
                    self._counted -= len(least.counts)
                for other in kinds:
                    other.weight *= FADING
                kinds.append(kind)
        weighed = marks if kind.limit == _ALL else {mark for mark in marks if mark < kind.limit}
        own = weighed - kind.core
        drawn = sketch_of(own)
        likeness = likeness_of(drawn, kind.sketches)
        reading = TemplateReading(own, kind.limit / _ALL, kind.pages, known, likeness)
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
    except ValueError:
        return []
    return found


# -- two names of one host

#: Equal pages that prove an alias, and how many of them may be missing for one that differs: pages with a date or a counter in
#: them differ from one moment to the next.
NEEDED = 3
PER_DIFFERENCE = 5

#: Hosts that have been compared with others and are remembered, and how many others each has: 300 bytes a pair at most, also in the
#: ledger. A host has a few names; a machine that shows one site under a thousand is told sixteen times.
MOST_HOSTS = 4_096
MOST_OTHERS = 16

#: The name under which the ledger keeps the second names of a host.
ALIASES = "aliases"

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
        return self.equal >= NEEDED + PER_DIFFERENCE * self.different


_pairs = msgspec.msgpack.Decoder(list[Alias])


class AliasSheet(Sheet, frozen=True):
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
        name, longer = sorted((one, other), key=lambda host: (host.startswith("www."), len(host), host))
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
            others = self._pairs[name] = _read_pairs(self.ledger.learnt((name,), ALIASES)[0])
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
        return [Learnt(name, ALIASES, _encode(list(others.values()))) for name, others in changed]

    def proven(self) -> list[Alias]:
        """The aliases that are proven and remembered, by name."""
        found = (one for others in self._pairs.values() for one in others.values() if one.is_proven)
        return sorted(found, key=lambda one: (one.name, one.other))


def proven_others(data: bytes | None) -> list[str]:
    """The other names of a host, by the bytes that are kept of it."""
    return sorted(one.other for one in _read_pairs(data).values() if one.is_proven)


def _read_pairs(data: bytes | None) -> dict[str, Alias]:
    try:
        return {one.other: one for one in _pairs.decode(data)} if data else {}
    except ValueError:
        return {}
