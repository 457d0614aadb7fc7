"""The common ground of components and providers: a name, a sheet, metrics, a clock, providers of their own, a lifetime; and their
clock, the only source of time, with token buckets that are kept as one instant each.

The framework makes a unit, sets these, then calls :meth:`Unit.start` before it is used and :meth:`Unit.stop` after.
(`GenericBase` of Hunyadi 2007, section 4.5.) Units read their `clock`, so tests can hand them one that stands still.

A bucket is written as the instant at which everything taken so far is paid for (generic cell rate algorithm): no token is ever
added, so nothing has to run in between. The frontier asks buckets for the caps of a whole crawl (pages and bytes a second), and the
fetcher for the bandwidth. The amount that a request brings is not known when it begins, so :class:`Reserve` books the mean of the
last ones and settles the difference: many requests at once would otherwise fetch in one second what is then paid off for many.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from gossamer.engine.sheet import NoSettings, Sheet


class Clock(Protocol):
    """Wall time for people and archives, monotonic time for every delay and deadline, steady time for what outlives both."""

    def now(self) -> float:
        """Seconds since the epoch; may jump."""

    def monotonic(self) -> float:
        """Seconds since some instant; never goes back."""

    def steady(self) -> float:
        """Seconds since the epoch that never jump: wall time when this clock was made, and monotonic time since then.

        For waits that are kept on the disk: another process can read them, and no jump of the wall clock (fault 94) makes
        this one wait an hour more, or not at all.
        """

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of monotonic time."""


class SystemClock:
    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def steady(self) -> float:
        return self._offset + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # units are used without a loop, too: in parser processes, and to judge what a person gave

        await asyncio.sleep(seconds)


#: Seconds' worth of tokens that may be saved up: bridges a late turn of the event loop, and is too short for a burst that
#: a server would notice.
BURST = 0.1


#: Smoothing of the amount that a request brings: the last twenty or so count.
SMOOTHING = 0.1

#: Requests whose amounts must be known before their mean is trusted: the first page of a site is often none like the others.
ENOUGH = 8


class Bucket:
    """Lets `rate` units a second through; any amount may be taken at once and is then paid off."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        """Units a second; None is no cap. May change at any time."""
        self.taken = 0.0
        """Units that were taken so far, less those given back; only while there is a cap."""
        self._paid_at = float("-inf")

    def ready_at(self) -> float:
        """The instant, in monotonic seconds, from which on something may be taken."""
        return self._paid_at if self.rate is not None else float("-inf")

    def lend(self, rate: float | None, now: float) -> None:
        """Go by another rate, also with what was taken and is not paid for: a debt made at a tenth of it would last too long."""
        if self.rate is not None and rate is not None and self._paid_at > now:
            self._paid_at = now + (self._paid_at - now) * self.rate / rate
        self.rate = rate

    def take(self, amount: float, now: float) -> None:
        if self.rate is not None:
            self.taken += amount
            saved = max(0.0, BURST - 1.0 / self.rate)  # below 10 a second one unit is the whole burst
            self._paid_at = max(self._paid_at, now - saved) + amount / self.rate


class Reserve:
    """How much is booked for a request that begins: a bucket's `take` before, and the difference when the amount is known."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._mean = 0.0
        """Units of a request, smoothed; 0 until the first amount is known."""
        self._known = 0
        """Requests whose amount is known, up to :data:`ENOUGH`."""

    def book(self, now: float) -> float:
        """Take what a request probably brings; returns it. The first ones bring a second's worth: too much, until it is known."""
        if self._bucket.rate is None:
            return 0.0
        booked = self._mean if self._known >= ENOUGH else max(self._mean, self._bucket.rate)
        self._bucket.take(booked, now)
        return booked

    def settle(self, amount: float, booked: float, now: float) -> None:
        """It brought so much, after `booked` was taken for it."""
        if self._bucket.rate is None:
            return
        if amount:
            self._known = min(self._known + 1, ENOUGH)
            self._mean += max(SMOOTHING, 1.0 / self._known) * (amount - self._mean)
        self._bucket.take(amount - booked, now)


class Metrics:
    """The counters of a unit. Names are lower case with underscores; a label is part of the name after a colon.

    A counter only grows; a gauge is a function that is asked when the metrics are read.
    """

    __slots__ = ("_gauges", "counters")

    def __init__(self) -> None:
        self.counters: defaultdict[str, int] = defaultdict(int)
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, by: int = 1) -> None:
        self.counters[name] += by

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        self._gauges[name] = read

    def snapshot(self) -> Mapping[str, float]:
        return {**self.counters, **{name: read() for name, read in self._gauges.items()}}


S = TypeVar("S", bound=Sheet)


class Unit(Generic[S]):
    """Base of everything that the wiring can name. A subclass is generic in its sheet: `class Fetch(Filter[FetchSheet])`.

    A constructor takes the sheet alone: `Fetch(FetchSheet(timeout=5))` is a whole unit, ready for a test.
    """

    sheet_type: ClassVar[type[Sheet]] = NoSettings

    name: str
    sheet: S
    metrics: Metrics
    clock: Clock
    report: Callable[[str], None]
    """Tells the person who runs the crawl, in one line, something that needs an act."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Bases of a class above have set the type, and an heir may set another.
        for base in cls.__dict__.get("__orig_bases__", ()):
            for argument in getattr(base, "__args__", ()):
                if isinstance(argument, type) and issubclass(argument, Sheet):
                    cls.sheet_type = argument

    def __init__(self, sheet: S | None = None) -> None:
        self.sheet = self.sheet_type() if sheet is None else sheet  # type: ignore[assignment]  # sheet_type is S
        self.metrics = Metrics()
        self.clock = SystemClock()
        self.report = lambda line: None
        self.name = type(self).__name__
        self.read_sheet()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def start(self) -> None:
        """Acquire what the unit needs. Its providers are bound and started."""

    async def stop(self) -> None:
        """Release it again. Called once, also after a failure, before the unit's own providers stop."""

    def read_sheet(self) -> None:
        """Make what follows from the sheet: when it is there, and again for each later one, which is not taken if this
        raises. Raises SettingError: the sheet asks for what cannot be."""

    def changed(self, before: S) -> None:
        """The sheet was replaced while running; `before` is the old one."""
        self.read_sheet()


class Provider(Unit[S]):
    """A shared service behind an interface: data providers reach what is kept, service providers do a job.

    Providers are passive: components and other providers call them. One may wrap another of the same interface
    (a cache in front of a store) by declaring `behind: Uses[Interface]`.
    """

    keeps_state: ClassVar[bool] = False
    """Its memory decides what the crawl does, so that two copies in two processes would disagree.
    While the graph runs, only a provider that stands in front of it (or one that it stands in front of) takes its place."""

    says_nothing = False
    """Its settings (:meth:`read_sheet`) give it nothing to do: roles of several providers go without it until they change."""


def bind(
    unit: Unit[Any], roles: Mapping[str, str | Mapping[str, tuple[str, ...]]], known: Mapping[str, Provider[Any]]
) -> None:
    for role, bound in roles.items():
        if isinstance(bound, str):
            setattr(unit, role, known[bound])
        else:
            groups = {key: [known[name] for name in names] for key, names in bound.items()}
            setattr(
                unit, role, {key: tuple(one for one in group if not one.says_nothing) for key, group in groups.items()}
            )


@contextlib.asynccontextmanager
async def meanwhile(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let this work go on while the block runs; it is cancelled then, and its failures are its own."""
    import asyncio  # a process without an event loop imports this module, too

    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
