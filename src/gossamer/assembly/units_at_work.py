"""The units of a crawl that work in its own process, found by what they are.

Place in the flow: what steers, counts and shows a crawl (:mod:`crawl`, :mod:`figures`, :mod:`control`) asks here.
"""

from typing import TypeVar

from gossamer.flow.errors import WiringError
from gossamer.flow.running import RunningGraph
from gossamer.stages.frontier.component import Frontier
from gossamer.stores.ledger.ledger import RocksLedger

U = TypeVar("U")


class UnitsAtWork:
    """Components and providers of a running graph."""

    def __init__(self, running: RunningGraph) -> None:
        self.running = running
        """The graph."""

    def __repr__(self) -> str:
        return f"<UnitsAtWork of {self.running!r}>"

    @property
    def frontier(self) -> Frontier:
        """The component that hands out.

        Raises:
            WiringError: the wiring has none.
        """
        for component in self.components(Frontier):
            return component
        raise WiringError("the wiring has no component of class Frontier; a crawl needs one")

    @property
    def ledger(self) -> RocksLedger:
        """What keeps what the crawl must not forget.

        Raises:
            WiringError: the wiring has none.
        """
        for ledger in self.providers(RocksLedger):
            return ledger
        raise WiringError("the wiring has no ledger; a crawl needs one")

    def providers(self, kind: type[U]) -> list[U]:
        """The providers of this class."""
        return [unit for unit in self.running.providers.values() if isinstance(unit, kind)]

    def components(self, kind: type[U]) -> list[U]:
        """The components of this class."""
        found = (runner.component for runner in self.running.runners.values())
        return [component for component in found if isinstance(component, kind)]
