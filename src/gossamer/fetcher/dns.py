"""Names to addresses: the provider that stands between a protocol module and the network.

Every address goes through the guard before it is handed out, whichever way it was found: a literal in the URL, an entry
of the `--resolve` table, or the system's resolver. The order is: the name is judged, resolved, all its addresses
are judged, then the port that will be dialled.
"""

import asyncio
import re
import socket
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Annotated, Generic, TypeVar

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Clock, Provider
from gossamer.fetcher.contract import Endpoint, Resolver
from gossamer.values import addresses as guard
from gossamer.values.errors import AddressRefused, NoSuchName, ResolutionFailed
from gossamer.values.settings import AllowedNetworks, Resolve

# A bounded cache of look-ups, good and bad, in which equal questions at once cost one look-up.

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")
_Refusal = AddressRefused | ResolutionFailed

Dated = tuple[A, float]
"""An answer, and the moment (of the monotonic clock) until which it is good."""


class Answers(Generic[Q, A]):
    """Answers by question, each until its own end.

    When full, the oldest answer makes room: a crawl asks for a host in bursts, so age is as good as use, and costs
    nothing on the path that every request takes.
    """

    capacity: int
    negative_ttl: float

    def __init__(self) -> None:
        self._known: dict[Q, tuple[A | _Refusal, float]] = {}
        self._asked: dict[Q, asyncio.Task[tuple[A | _Refusal, float]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def under_way(self) -> int:
        """Look-ups that have not ended."""
        return len(self._asked)

    def get(self, question: Q, now: float) -> A | None:
        """The answer, if one is known and still good. Raises ResolutionFailed, AddressRefused: that is the answer."""
        known = self._known.get(question)
        return _spoken(known[0]) if known is not None and known[1] > now else None

    def good_until(self, question: Q) -> float:
        """The end of the known answer; 0 without one, and infinite while it is being looked up."""
        if question in self._asked:
            return float("inf")
        known = self._known.get(question)
        return known[1] if known is not None else 0.0

    async def ask(self, question: Q, look_up: Callable[[], Awaitable[Dated[A]]], clock: Clock) -> Dated[A]:
        """Look up what :meth:`get` did not know. A caller that gives up leaves the look-up to the others that wait for it."""
        asked = self._asked.get(question)
        if asked is None:
            asked = asyncio.get_running_loop().create_task(self._look_up(question, look_up, clock))
            self._asked[question] = asked
        answer, until = await asyncio.shield(asked)
        return _spoken(answer), until

    async def _look_up(
        self, question: Q, look_up: Callable[[], Awaitable[Dated[A]]], clock: Clock
    ) -> tuple[A | _Refusal, float]:
        answer: A | _Refusal
        try:
            answer, until = await look_up()
        except (AddressRefused, ResolutionFailed) as error:
            answer, until = error.with_traceback(None), clock.monotonic() + self.negative_ttl
        finally:
            if self._asked.get(question) is asyncio.current_task():
                del self._asked[question]
        self._known.pop(question, None)
        while len(self._known) >= self.capacity:
            del self._known[next(iter(self._known))]
        self._known[question] = (answer, until)
        return answer, until

    def bound(self, capacity: int, negative_ttl: float) -> None:
        """Begin anew within these bounds."""
        self.capacity, self.negative_ttl = capacity, negative_ttl
        self.clear()

    def clear(self) -> None:
        """Forget everything; look-ups under way are not joined any more."""
        self._known.clear()
        self._asked.clear()

    async def close(self) -> None:
        """Cancel what is under way."""
        under_way = list(self._asked.values())
        self.clear()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


def _spoken(answer: A | _Refusal) -> A:
    """Return the answer, or raise a fresh copy of it: one exception raised often would collect every trace."""
    if isinstance(answer, AddressRefused | ResolutionFailed):
        raise type(answer)(*answer.args)
    return answer


class CachedSheet(Sheet, frozen=True):
    """Settings of every resolver: how long and how many answers are kept."""

    ttl: Annotated[
        float, setting("Use an answer for this long if it does not state a time of its own.", unit="s", ge=0)
    ] = 300.0
    negative_ttl: Annotated[
        float,
        setting(
            "Remember a failure or refusal for this long; keep it below the wait before the first retry.",
            unit="s",
            ge=0,
        ),
    ] = 5.0
    capacity: Annotated[int, setting("Keep at most this many answers.", unit="answers", ge=1)] = 65536


C = TypeVar("C", bound=CachedSheet)


class _Remembering(Provider[C]):
    """Remembers answers; a subclass finds those that are not known."""

    def __init__(self, sheet: C | None = None) -> None:
        self._answers = Answers[tuple[str, int], Endpoint]()
        super().__init__(sheet)
        self.metrics.gauge("answers", lambda: len(self._answers))

    def read_sheet(self) -> None:
        self._answers.bound(self.sheet.capacity, self.sheet.negative_ttl)

    async def stop(self) -> None:
        """Give up what is under way."""
        await self._answers.close()

    async def resolve(self, host: str, port: int) -> Endpoint:
        question = (host, port)
        known = self._answers.get(question, self.clock.monotonic())
        return known or (await self._answers.ask(question, partial(self._resolve, host, port), self.clock))[0]

    @abstractmethod
    async def _resolve(self, host: str, port: int) -> Dated[Endpoint]:
        """The answer, and until when it is good."""


#: Addresses of one name that are kept; judged are all of them.
MAX_ADDRESSES = 16


class ResolverSheet(CachedSheet, frozen=True):
    resolve: Resolve = ()
    seed_hosts: Annotated[
        tuple[str, ...],
        setting(
            "Let these hosts, which were given as seeds (`name` or `name:port`), be loopback or private.",
            names="a private host",
        ),
    ] = ()
    allow_networks: AllowedNetworks = ()
    allow_ports: Annotated[
        tuple[Annotated[int, msgspec.Meta(ge=1, le=65_535)], ...],
        setting("Allow these ports although they are on the list of blocked ones.", names="a blocked port"),
    ] = ()
    only_loopback: Annotated[bool, setting("Refuse every address off this machine.", names="other machines")] = True
    deadline: Annotated[float, setting("Give up a look-up that takes longer than this.", unit="s", gt=0)] = 5.0
    ahead: Annotated[int, setting("Look up at most this many names at once ahead of need.", unit="look-ups", ge=0)] = 32
    refresh: Annotated[
        float, setting("Look up a name again, ahead of need, when its answer ends within this time.", unit="s", ge=0)
    ] = 30.0


class FoundAddresses(msgspec.Struct, frozen=True):
    """The answer of a source about a name."""

    addresses: Sequence[str]
    ttl: float | None = None
    """Seconds for which it is good; None: the source does not say."""


class ResolveEntry(msgspec.Struct, frozen=True):
    """One line of the `--resolve` table."""

    pattern: re.Pattern[str]
    address: str
    port: int
    """0 keeps the URL's own port."""


def entry_of(text: str) -> ResolveEntry:
    """Read `PATTERN=ADDRESS[:PORT]`; an IPv6 address with a port wears brackets, as in a URL. Raises SettingError: it cannot be
    read; says how it is written."""
    pattern, equals, target = text.partition("=")
    pattern = pattern.strip().lower().strip("[]")
    if not equals or not pattern or not target:
        raise SettingError(f"resolve entry {text!r}: write it as PATTERN=ADDRESS[:PORT], as *.example=127.0.0.1:8080")
    address, port = split_target(target.strip())
    if not guard.is_address(address):
        raise SettingError(f"resolve entry {text!r}: {address!r} is not an IP address")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingError(f"resolve entry {text!r}: {port!r} is not a port (1 to 65535)")
    return ResolveEntry(re.compile(".*".join(map(re.escape, pattern.split("*"))) + r"\Z"), address, int(port or 0))


def split_target(target: str) -> tuple[str, str]:
    """Address and port (empty where none is written) of `ADDRESS[:PORT]`; an IPv6 address with a port wears brackets."""
    if target.startswith("["):
        address, _, rest = target[1:].partition("]")
        return address, rest.removeprefix(":")
    if target.count(":") == 1:
        address, _, port = target.partition(":")
        return address, port
    return target, ""


R = TypeVar("R", bound=ResolverSheet)


class GuardedResolver(_Remembering[R]):
    """Judges, remembers and looks ahead; where addresses come from, its subclasses say."""

    def __init__(self, sheet: R | None = None) -> None:
        # By name, since ports of one host are looked up once; the answers are what every request goes by.
        self._names = Answers[str, tuple[str, ...]]()
        self._ahead: set[asyncio.Task[None]] = set()
        super().__init__(sheet)
        self.metrics.gauge("ahead", lambda: len(self._ahead))

    def read_sheet(self) -> None:
        """Read the tables, and forget what was judged by others."""
        sheet = self.sheet
        self._table = tuple(map(entry_of, sheet.resolve))
        self._networks = guard.networks(sheet.allow_networks)
        self._seeds = frozenset(map(str.lower, sheet.seed_hosts))
        super().read_sheet()
        self._names.bound(sheet.capacity, sheet.negative_ttl)

    async def stop(self) -> None:
        """Give up what is under way."""
        for task in self._ahead:
            task.cancel()
        await asyncio.gather(*self._ahead, return_exceptions=True)
        await super().stop()
        await self._names.close()

    def prefetch(self, places: Iterable[tuple[str, int]]) -> None:
        """Names beyond `ahead` look-ups at once are looked up when they are needed."""
        soon = self.clock.monotonic() + self.sheet.refresh
        for host, port in places:
            if self._answers.good_until((host, port)) > soon:
                continue
            if len(self._ahead) >= self.sheet.ahead:
                self.metrics.count("prefetch_left")
                continue
            self.metrics.count("prefetched")
            task = asyncio.get_running_loop().create_task(self._look_ahead(host, port))
            self._ahead.add(task)
            task.add_done_callback(self._ahead.discard)

    async def _look_ahead(self, host: str, port: int) -> None:
        try:
            await self._answers.ask((host, port), partial(self._resolve, host, port, soon=True), self.clock)
        except (AddressRefused, ResolutionFailed):
            pass  # remembered, and told to the next caller

    def judge(self, host: str, port: int) -> None:
        seed = guard.seeded(host, port, self._seeds)
        self._refuse(host, guard.judge_name(host, seed=seed))
        if guard.is_address(host):
            self._refuse(host, guard.judge(host, self._networks, seed=seed))
        self._refuse(host, guard.judge_port(port, explicit=port in self.sheet.allow_ports))

    async def _resolve(self, host: str, port: int, *, soon: bool = False) -> Dated[Endpoint]:
        """Judge, look up, judge. `soon`: an answer that is about to end is not good enough."""
        sheet = self.sheet
        seed = guard.seeded(host, port, self._seeds)
        entry = next((entry for entry in self._table if entry.pattern.match(host)), None)
        # A name that the table knows is no question to a local network, whatever it looks like.
        self._refuse(host, guard.judge_name(host, seed=seed or entry is not None))
        if entry or guard.is_address(host):
            addresses: Sequence[str] = [entry.address if entry else host]
            until = self.clock.monotonic() + sheet.ttl
        else:
            addresses, until = await self._addresses(host, soon=soon)
        dialled = (entry.port if entry else 0) or port
        self._refuse(host, guard.refusal(addresses, self._networks, seed=seed, only_loopback=sheet.only_loopback))
        named = guard.port_seeded(host, port, self._seeds)
        explicit = dialled in sheet.allow_ports or (named and all(map(guard.is_loopback, addresses)))
        self._refuse(host, guard.judge_port(dialled, explicit=explicit))
        return Endpoint(addresses[0], dialled, tuple(addresses[1:MAX_ADDRESSES])), until

    def _refuse(self, host: str, reason: str) -> None:
        if reason:
            self.metrics.count("refused")
            raise AddressRefused(f"{host}: {reason}")

    async def _addresses(self, host: str, *, soon: bool) -> Dated[tuple[str, ...]]:
        """A name's addresses, remembered or looked up within the deadline."""
        now = self.clock.monotonic()
        until = self._names.good_until(host)
        if until > now + (self.sheet.refresh if soon else 0.0):
            known = self._names.get(host, now)
            if known is not None:
                return known, until
        return await self._names.ask(host, partial(self._find_in_time, host), self.clock)

    async def _find_in_time(self, host: str) -> Dated[tuple[str, ...]]:
        self.metrics.count("lookups")
        asking = asyncio.ensure_future(self.find(host))
        waiting = asyncio.ensure_future(self.clock.sleep(self.sheet.deadline))
        try:
            await asyncio.wait({asking, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise ResolutionFailed(f"{host}: the resolver gave no answer within {self.sheet.deadline:g} s")
            found = asking.result()
        finally:
            asking.cancel()
            waiting.cancel()
        if not found.addresses:
            raise ResolutionFailed(f"{host}: the name has no address")
        return tuple(found.addresses), self.clock.monotonic() + (self.sheet.ttl if found.ttl is None else found.ttl)

    @abstractmethod
    async def find(self, host: str) -> FoundAddresses:
        """All addresses of a name, and how long they are good for. Raises ResolutionFailed: it has none."""


class SystemResolver(GuardedResolver[ResolverSheet]):
    """Asks the `--resolve` table, then the operating system, in a thread. Implements `fetcher.contract.Resolver`."""

    async def find(self, host: str) -> FoundAddresses:
        """IPv4 comes first: `localhost` has both kinds nearly everywhere, and most servers there listen on IPv4 only."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
                raise NoSuchName(f"{host}: {error.strerror or error}") from None
            raise ResolutionFailed(f"{host}: {getattr(error, 'strerror', None) or error}") from None
        addresses = dict.fromkeys(str(address[0]) for *_, address in found)
        return FoundAddresses(sorted(addresses, key=lambda address: ":" in address))


class CachedResolver(_Remembering[CachedSheet]):
    """Caches the answers of another resolver, which has already checked their addresses."""

    behind: Uses[Resolver]

    def judge(self, host: str, port: int) -> None:
        self.behind.judge(host, port)

    def prefetch(self, places: Iterable[tuple[str, int]]) -> None:
        self.behind.prefetch(places)

    async def _resolve(self, host: str, port: int) -> Dated[Endpoint]:
        self.metrics.count("lookups")
        endpoint = await self.behind.resolve(host, port)
        return endpoint, self.clock.monotonic() + self.sheet.ttl
