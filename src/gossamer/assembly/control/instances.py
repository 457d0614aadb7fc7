"""The instances of one unit, each with what it has counted and the settings by which it goes: those of all agents of a crawl.

Place in the flow: the message :class:`~gossamer.assembly.control.messages.ReadUnit` asks for them. A crawl of several agents asks
each of them.
"""

from typing import Any

import msgspec

from gossamer.assembly.children import Figures
from gossamer.flow.graph import Graph
from gossamer.flow.running import RunningGraph
from gossamer.flow.sheet import nearest, shown
from gossamer.model.errors import UsageError


class UnitInstance(msgspec.Struct, frozen=True):
    """One instance of a unit."""

    number: int
    """Among those of its agent, from 1; 0 where another process has them, which adds them up."""
    metrics: dict[str, float]
    settings: dict[str, Any]
    """As they stand; a secret is hidden."""
    agent: str = ""
    """Empty where the crawl has one."""


class UnitInstances(msgspec.Struct, frozen=True):
    """All instances of a unit."""

    name: str
    instances: list[UnitInstance]


def instances_of(name: str, running: RunningGraph, elsewhere: list[Figures], agent: str = "") -> UnitInstances:
    """The instances of a unit in one agent.

    Args:
        name: of the unit.
        running: the graph of this process.
        elsewhere: what other processes of the agent have counted.
        agent: its name.

    Raises:
        UsageError: there is no unit of this name.
    """
    check_unit(running.whole, name)
    settings = shown(running.whole.sheet(name))
    found = [
        UnitInstance(number, _rounded(unit.metrics.snapshot()), settings, agent)
        for number, unit in enumerate(running.units(name) if name in _here(running) else [], 1)
    ]
    found += [UnitInstance(0, _rounded(part.units[name]), settings, agent) for part in elsewhere if name in part.units]
    return UnitInstances(name, found)


def check_unit(graph: Graph, name: str) -> None:
    """Refuse a name that no unit of a graph has. Raises UsageError: none has."""
    known = {**graph.components, **graph.providers}
    if name not in known:
        raise UsageError(f"no unit {name!r} runs here{nearest(name, known)}")


def _here(running: RunningGraph) -> set[str]:
    return {*running.graph.components, *running.graph.providers}


def _rounded(metrics: "dict[str, float] | Any") -> dict[str, float]:
    return {name: round(value, 3) for name, value in sorted(metrics.items())}
