"""What components and providers have in common: a name, a sheet, metrics, a clock, providers of their own, a lifetime.

The framework makes a unit, sets these, then calls :meth:`Unit.start` before it is used and :meth:`Unit.stop` after.
(`GenericBase` of Hunyadi 2007, section 4.5.)
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from gossamer.engine.clock import Clock, SystemClock
from gossamer.engine.sheet import NoSettings, Sheet


class Metrics:
    """What a unit counts. Names are lower case with underscores; a label is part of the name after a colon.

    A counter only grows; a gauge is a function that is asked when the metrics are read.
    """

    __slots__ = ("_gauges", "counters")

    def __init__(self) -> None:
        self.counters: defaultdict[str, int] = defaultdict(int)
        self._gauges: dict[str, Callable[[], float]] = {}

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] += by

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Register a gauge under a name; a later one of the same name replaces it."""
        self._gauges[name] = read

    def snapshot(self) -> Mapping[str, float]:
        """Every counter and gauge as they stand now."""
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
        for base in cls.__dict__.get(
            "__orig_bases__", ()
        ):  # those of a class above have set the type, and an heir may set another
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
        """Make what follows from the sheet: when it is there, and again for each later one, which is not taken if this raises.

        Raises:
            SettingError: the sheet asks for what cannot be.
        """

    def changed(self, before: S) -> None:
        """The sheet was replaced while running; `before` is the old one."""
        self.read_sheet()


class Provider(Unit[S]):
    """A shared service behind an interface: data providers reach what is kept, service providers do a job.

    Providers are passive: components and other providers call them. One may wrap another of the same interface
    (a cache in front of a store) by declaring `behind: Uses[Interface]`.
    """

    keeps_state: ClassVar[bool] = False
    """What it remembers decides what the crawl does, so that two copies in two processes would disagree.
    While the graph runs, only a provider that stands in front of it (or one that it stands in front of) takes its place."""
