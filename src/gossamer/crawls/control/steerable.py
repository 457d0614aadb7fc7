"""What may be asked of a crawl that runs, as protocols.

Place in the flow: requests (:mod:`~gossamer.crawls.control.messages`) and what carries them out see no more of a crawl than this.
A crawl of one agent has all of :class:`Steerable`, and one of several has :class:`Settable`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gossamer.engine.graph import Graph
from gossamer.engine.wiring import Difference, Wiring

if TYPE_CHECKING:
    from gossamer.crawls.control.instances import UnitInstances
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.crawls.live import Suspensions
    from gossamer.storage.ledger.ledger import RocksLedger

U = TypeVar("U")


class HasGraph(Protocol):
    """A crawl as the steering log sees it: the graph says which settings are secret."""

    @property
    def graph(self) -> Graph: ...


class Others(Protocol):
    """Who lets agents join a crawl, and leave it."""

    def check_number(self, number: int) -> None: ...

    def resize(self, number: int) -> None:
        """Let it have so many, in some seconds."""
        ...

    def stay(self, why: str) -> None:
        """Let no agent join but where a person says so, for this reason."""
        ...

    def why_alone(self) -> str:
        """Why no agent joins by itself; empty where one may."""
        ...


class Settable(HasGraph, Protocol):
    """What changes of settings need of a crawl, whether it has one agent or several."""

    @property
    def others(self) -> Others | None:
        """The part that lets agents join; None where none can."""
        ...

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of one unit, in whichever process it runs, now and for every later run."""
        ...

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph, now and for every later run."""
        ...


class Stoppable(Protocol):
    """Any process of a crawl."""

    def stop(self) -> None:
        """End when what is in flight is finished."""
        ...

    def abort(self) -> None:
        """End at once."""
        ...


class Steerable(Settable, Stoppable, Protocol):
    """What requests need of a crawl."""

    @property
    def directory(self) -> Path:
        """Where it keeps everything."""
        ...

    @property
    def ledger(self) -> "RocksLedger":
        """What it must not forget."""
        ...

    def providers(self, kind: type[U]) -> list[U]:
        """The providers of this class in the crawl's own process: a package's request reaches its own units so."""
        ...

    async def standing(self, *, units: bool) -> "CrawlStanding":
        """How it stands; also every unit's and connector's figures."""
        ...

    async def instances(self, name: str) -> "UnitInstances":
        """The instances of a unit. Raises UsageError: there is no such unit."""
        ...

    def pause(self) -> None:
        """Ask for nothing more until :meth:`go_on`."""
        ...

    def go_on(self) -> None:
        """Ask again."""
        ...

    @property
    def suspensions(self) -> "Suspensions":
        """Its components that take up nothing now."""
        ...

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """What a change of the graph would come to; changes nothing."""
        ...

    async def undo(self) -> Difference:
        """Take the last change of the graph back."""
        ...
