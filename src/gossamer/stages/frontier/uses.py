"""What the parts of the frontier see of it: its providers and settings, as they are at the moment of asking.

Place in the flow: a provider may be exchanged while a crawl runs, so the parts keep none; the component itself stands behind this.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gossamer.contracts.filtering import TaskFilter
from gossamer.contracts.flights import Flights
from gossamer.contracts.ledger import Ledger, TaskQueues
from gossamer.contracts.lending import LentHosts
from gossamer.contracts.politeness import Politeness
from gossamer.contracts.resolving import Resolver
from gossamer.contracts.revisiting import Revisits
from gossamer.contracts.robots import RobotsGate
from gossamer.contracts.traversal import Traversal
from gossamer.flow.clock import Clock
from gossamer.flow.metrics import Metrics
from gossamer.stages.frontier.sheet import FrontierSheet


class FrontierUses(Protocol):
    """Providers, clock and settings of a frontier."""

    clock: Clock
    ledger: Ledger
    queues: TaskQueues
    politeness: Politeness
    robots: RobotsGate
    traversal: Traversal
    resolver: Resolver
    gates: Mapping[str, Sequence[TaskFilter]]
    revisits: Mapping[str, Sequence[Revisits]]
    lent: Mapping[str, Sequence[LentHosts]]
    flights: Flights
    sheet: FrontierSheet
    metrics: Metrics
