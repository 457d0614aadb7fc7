"""The memory of the parts of hosts: bounded, and found again in the ledger by the next process.

Place in the flow: :mod:`watch` asks here for what is known of a host, which suspected parts a task belongs to, and what a person
has decided. The committer keeps what has changed with the visits that it was learnt from, and a host that is touched again is
recalled. Plain code: how kept bytes are read is given by the provider.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import cached_property

import msgspec

from gossamer.frontier.traps.contract import Learnt
from gossamer.frontier.traps.families import parts_of, shape_of
from gossamer.values.hosts import registered_domain
from gossamer.values.task import Family, Task

#: The name under which the ledger keeps what is known of a host.
WHAT = "traps"

#: Bytes of a host in the ledger. Parts that are suspected come first, then those that were looked at last.
KEPT_BYTES = 8_192

#: Parts of one host in memory: a host has a few, and one that makes many must not push out those of others.
PARTS_OF_HOST = 128

#: Suspected parts of one host; further ones are crawled.
SUSPECTS_OF_HOST = 32

#: Gives the bytes that are kept of hosts, in order.
Recall = Callable[[Sequence[str]], Sequence[bytes | None]]


class PartState(IntEnum):
    """The state of a part."""

    FRESH = 0
    """Nothing yet: its pages are looked at once there are several."""
    TRUSTED = 1
    """It has had news: one page in some is looked at."""
    SUSPECT = 2
    """It looks like a trap: its URLs are set aside."""


class TrapPart(msgspec.Struct, array_like=True):
    """The facts about one part of a host. New fields go to the end, with a default: kept ones stay readable."""

    skipped: int = 0
    """Directories that its name does not mask."""
    state: PartState = PartState.FRESH
    feeding: int = 0
    """Pages that led to new URLs of the part, since it was last calm."""
    window: bytearray = msgspec.field(default_factory=bytearray)
    """Of the last pages that were looked at, what each was, as bits: see :mod:`judging`."""
    combinations: set[int] = set()
    """Checksums of combinations of parameters."""
    rests: dict[int, set[int]] = {}
    """Checksum of what stands behind an identifier -> checksums of the identifiers."""
    name: str = ""
    """The trap's name, once it was suspected."""
    pages: int = 0
    """Pages that were looked at."""
    found: int = 0
    """New URLs of the part that these led to."""
    ended: int = 0
    """How often it was suspected, and its last probes led nowhere."""
    news: int = 0
    """Pages of those that were looked at which said something of their own."""
    since: int = 0
    """Pages that were looked at since the last of these."""


class TrapHost(msgspec.Struct, array_like=True, dict=True):
    """The facts about one host."""

    base: str = ""
    """The directories that the paths of all its pages begin with; empty before the first."""
    parts: dict[str, TrapPart] = {}
    """By name, those that were touched last at the end."""
    pages: int = 0
    """Pages that were seen: a host that a domain invented has few."""
    told: list[bytes] = []
    """Sketches of the text of pages whose words say nothing: see :mod:`judging`."""

    @cached_property
    def suspects(self) -> tuple[str, ...]:
        """Names of the parts that are suspected, the widest first. It is asked for with every link, and seldom changes."""
        return tuple(sorted((name for name, part in self.parts.items() if part.state is PartState.SUSPECT), key=len))

    def turn(self, part: TrapPart, state: PartState) -> None:
        """Change what is thought of a part of this host: the one way to do so."""
        if PartState.SUSPECT in (part.state, state):
            self.forget_suspects()
        part.state = state

    def forget_suspects(self) -> None:
        self.__dict__.pop("suspects", None)


_encode = msgspec.msgpack.Encoder().encode
_hosts = msgspec.msgpack.Decoder(TrapHost)


class Memory:
    """Parts by host and name."""

    def __init__(self, parts: int, hosts: int) -> None:
        self._most_parts = parts
        self._most_hosts = hosts
        self._hosts: OrderedDict[str, TrapHost] = OrderedDict()
        self._count = 0
        self.marked: dict[str, None] = {}
        """Hosts of which something has changed that must outlive the process."""
        self._recall: Recall | None = None
        self._is_partial = False
        """The ledger may know of hosts that are not here."""

    def __len__(self) -> int:
        return self._count

    def go_on(self, recall: Recall, *, is_known: bool) -> None:
        """Look for hosts that are not here by `recall`; `is_known` is False where that has nothing yet."""
        self._recall = recall
        self._is_partial = is_known

    def look(self, name: str) -> TrapHost | None:
        found = self._hosts.get(name)
        if found is None and self._is_partial:
            self.recall((name,))
            found = self._hosts.get(name)
        return found

    def recall(self, hosts: Sequence[str]) -> None:
        """Take back what the ledger knows of hosts that are not here: one question for all."""
        if self._recall is None or not self._is_partial:
            return
        missing = [host for host in dict.fromkeys(hosts) if host not in self._hosts]
        if not missing:
            return
        for name, data in zip(missing, self._recall(missing), strict=True):
            self._hosts[name] = host = read_host(data)
            self._count += len(host.parts)
        self._make_room(missing[-1])

    def host(self, name: str) -> TrapHost:
        """The facts about a host that is about to be touched, new where nothing is known."""
        found = self._hosts.get(name) or self.look(name)
        if found is None:
            found = self._hosts[name] = TrapHost()
            self._make_room(name)
        else:
            self._hosts.move_to_end(name)
        return found

    def part(self, owner: str, host: TrapHost, name: str, skipped: int) -> TrapPart:
        """A part that is about to change, new where it is not known."""
        part = host.parts.pop(name, None)
        if part is None:
            part = TrapPart(skipped)
            self._count += 1
        host.parts[name] = part
        if len(host.parts) > PARTS_OF_HOST:
            self._forget_oldest(host)
        self._make_room(owner)
        return part

    def _make_room(self, current: str) -> None:
        while len(self._hosts) > self._most_hosts or self._count > self._most_parts:
            name, host = next(iter(self._hosts.items()))
            if name == current:
                if not host.parts:
                    return
                self._forget_oldest(host)
            else:
                del self._hosts[name]
                self._count -= len(host.parts)
            self._is_partial = self._recall is not None

    def _forget_oldest(self, host: TrapHost) -> None:
        oldest = next((name for name, part in host.parts.items() if part.state is not PartState.SUSPECT), None)
        if oldest is None:
            host.forget_suspects()
        del host.parts[next(iter(host.parts)) if oldest is None else oldest]
        self._count -= 1

    def changed(self) -> Sequence[Learnt]:
        """The bytes to keep of each host that has changed since the last call."""
        changed = [(name, self._hosts[name]) for name in self.marked if name in self._hosts]
        self.marked.clear()
        return [Learnt(name, WHAT, _record(host)) for name, host in changed]


def _record(host: TrapHost) -> bytes:
    data = _encode(host)
    if len(data) <= KEPT_BYTES:
        return data
    recent = list(reversed(host.parts.items()))
    kept: dict[str, TrapPart] = {}
    size = len(_encode(TrapHost(host.base, {}, host.pages, host.told)))
    for name, part in sorted(recent, key=lambda item: item[1].state is not PartState.SUSPECT):
        size += len(name.encode("utf-8", "surrogatepass")) + len(_encode(part)) + 4
        if size > KEPT_BYTES:
            break
        kept[name] = part
    return _encode(TrapHost(host.base, dict(reversed(kept.items())), host.pages, host.told))


def read_host(data: bytes | None) -> TrapHost:
    """The host that these bytes say; an empty one where they cannot be read."""
    try:
        return _hosts.decode(data) if data else TrapHost()
    except ValueError:
        return TrapHost()


# Which parts of a host a task belongs to.

#: Pages of a part that lead to new URLs of it before its pages are looked at: most parts of most hosts have fewer.
GRACE = 8

#: Pages of a host after which it is none of those that a domain invents.
ESTABLISHED = 4

#: How the names of traps begin.
FOUND = "trap:"

#: The part of a domain that is all hosts which it may invent.
WILDCARD = "**"


def belongs(task: Task, name: str, skipped: int, host: TrapHost) -> bool:
    """Whether a task is of the part of this name; `skipped` directories of its URL are not masked."""
    if name == WILDCARD:
        return True
    wide, narrow = parts_of(task.url, skipped)
    if name in (narrow, wide):
        return True
    if name.endswith("/***"):
        return is_young(host, wide)
    return FOUND + name == shape_of(task.url, task.source)


def is_young(host: TrapHost, wide: str) -> bool:
    """Whether a directory is too small, or too new, to be judged by itself."""
    part = host.parts.get(wide)
    return part is None or (part.state is PartState.FRESH and part.feeding < GRACE)


def is_watched(host: TrapHost, names: Sequence[str]) -> bool:
    """Whether the pages of one of these parts are being looked at."""
    for name in names:
        part = host.parts.get(name)
        if part is not None and part.window:
            return True
    return False


def rest_of(host: TrapHost) -> str:
    """The name of the part that is everything in small directories."""
    return f"{host.base if len(host.base) < 100 else '/'}***" if host.base.endswith("/") else "/***"


def wild_owner(host: str) -> str:
    """The owner of the part that is all hosts of this one's registered domain."""
    return f"*.{registered_domain(host)}"


def suspicions_of(task: Task, memory: Memory) -> Iterator[tuple[str, TrapHost, str]]:
    """Owner, host and name of each suspected part that a task belongs to."""
    host = memory.look(task.host)
    if host is not None:
        # The widest first: a directory that is suspected as a whole is one family.
        for name in host.suspects:
            if belongs(task, name, host.parts[name].skipped, host):
                yield task.host, host, name
    if host is None or host.pages < ESTABLISHED:
        owner = wild_owner(task.host)
        wild = memory.look(owner)
        if wild is not None and WILDCARD in wild.suspects and owner[2:] != task.host:
            yield owner, wild, WILDCARD


class Decisions:
    """The decisions of a person, by owner and part: these are traps, those are none. They win over guesses."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._decided: dict[tuple[str, str], tuple[Family, bool]] = {}
        """By owner and part: the family, and whether it is a trap."""

    def decide(self, traps: Sequence[Family], trusted: Sequence[Family]) -> Iterator[Family]:
        """Take these decisions in place of all earlier ones; yields the families that are trusted and were not."""
        before = self._decided
        self._decided = {(one.owner, one.part): (one, True) for one in traps}
        self._decided |= {(one.owner, one.part): (one, False) for one in trusted}
        for key, (family, is_trap) in self._decided.items():
            if not is_trap and before.get(key) != (family, False):
                yield family

    def of(self, owner: str, part: str) -> bool | None:
        decided = self._decided.get((owner, part))
        return None if decided is None else decided[1]

    def is_trap(self, task: Task) -> bool:
        """Whether a person has confirmed that a task is part of a trap."""
        return any(is_trap for is_trap in self._said(task))

    def has(self, task: Task) -> bool:
        """Whether a person has decided on a family of a task: other suspicions of it do not count."""
        return any(True for _ in self._said(task))

    def _said(self, task: Task) -> Iterator[bool]:
        for family, is_trap in self._decided.values():
            if family.owner in (task.host, wild_owner(task.host)) and belongs(
                task, family.part, family.skipped, self._memory.host(family.owner)
            ):
                yield is_trap
