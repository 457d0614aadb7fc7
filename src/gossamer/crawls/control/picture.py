"""The graph as a value that says everything of itself, the instances of one unit, and what a browser may change of them.

Place in the flow: the message :class:`~gossamer.crawls.control.messages.ReadGraph` makes a picture; at rest, the dashboard
does. Only the graph is read, so that a unit of an unknown package shows fully. What is secret is hidden. Messages that say
`by_form` are judged here before anything else, in the crawl's process, which knows the sheet of every unit: whatever its owner
may do, a browser names no files, code or secrets of this machine. A setting says of itself what its values can name (`names` of
:func:`gossamer.engine.sheet.setting`). The message :class:`~gossamer.crawls.control.messages.ReadUnit` asks for instances, and
a crawl of several agents asks each of them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.children import Figures
from gossamer.crawls.live import properties_of
from gossamer.engine.errors import FlowError
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode, first_sentence, used_names
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import Property, Sheet, nearest, properties, shown
from gossamer.engine.wiring import Wiring
from gossamer.values.errors import UsageError


class PictureSetting(msgspec.Struct, frozen=True):
    """A setting of a unit, with all that is said of it."""

    name: str
    value: Any
    default: Any
    """As `value`; null also where it must be given."""
    kind: str
    """Its type in words, as `a whole number`."""
    unit: str
    bounds: str
    """As `>= 1`; empty where there are none."""
    doc: str
    words: list[str] = []
    """The words that it takes, where it takes words of a closed list."""
    restart: str = ""
    """Why it changes only with a restart; empty where it is live."""
    is_secret: bool = False
    """Its value is hidden."""
    names: str = ""
    """The thing of its machine that a value can name, as `a file`: no browser may give one then."""


class PictureUnit(msgspec.Struct, frozen=True):
    """A component or a provider."""

    name: str
    use: str
    kind: str
    """As `filter` or `producer`; `provider` of a provider."""
    doc: str
    settings: list[PictureSetting]
    providers: list[str] = []
    """The providers that it uses."""
    process: str = ""
    """Where it runs; empty of a provider, which is wherever it is used."""
    workers: int = 1
    instances: int = 1
    inputs: dict[str, str] = {}
    """Connector of each input."""
    outputs: dict[str, str] = {}
    on_error: str = ""
    roles: dict[str, Any] = {}
    """Provider of each role, or providers by key."""


class PictureConnector(msgspec.Struct, frozen=True):
    name: str
    carries: str
    """The type of its items."""
    address: str
    capacity: int
    producers: list[str]
    consumers: list[str]


class GraphPicture(msgspec.Struct, frozen=True):
    units: list[PictureUnit]
    """Components first."""
    connectors: list[PictureConnector]
    agents: list[str] = []
    """The agents of a crawl that has several: each runs the whole graph."""


def graph_picture(graph: Graph, agents: tuple[str, ...] = ()) -> GraphPicture:
    nodes: list[ComponentNode | ProviderNode] = [*graph.components.values(), *graph.providers.values()]
    return GraphPicture(
        units=[_unit(node) for node in nodes],
        connectors=[
            PictureConnector(
                node.name,
                node.item_name,
                node.plan.address,
                node.plan.capacity,
                list(node.producers),
                list(node.consumers),
            )
            for node in graph.connectors.values()
        ],
        agents=list(agents),
    )


def _unit(node: ComponentNode | ProviderNode) -> PictureUnit:
    values = shown(node.sheet)
    unit = PictureUnit(
        name=node.name,
        use=node.use,
        kind="provider",
        doc=first_sentence(node.unit),
        settings=[
            PictureSetting(
                name=one.name,
                value=values[one.name],
                default=None if one.default is msgspec.NODEFAULT else msgspec.to_builtins(one.default),
                kind=one.kind,
                unit=one.unit,
                bounds=one.bounds,
                doc=one.doc,
                words=list(one.words),
                restart=one.reason,
                is_secret=one.secret,
                names=one.names,
            )
            for one in properties(type(node.sheet))
        ],
        providers=sorted(set(used_names(node.roles))),
        roles=msgspec.to_builtins(node.roles),
    )
    if isinstance(node, ProviderNode):
        return unit
    return msgspec.structs.replace(
        unit,
        kind=node.kind,
        process=node.plan.process,
        workers=node.plan.workers,
        instances=node.plan.instances,
        inputs=dict(node.inputs),
        outputs=dict(node.outputs),
        on_error=node.on_error,
    )


# The instances of one unit, each with its counts and its settings.


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
    """The instances of a unit in one agent. `elsewhere`: what other processes of the agent have counted. Raises UsageError:
    there is no unit of this name."""
    check_unit(running.whole, name)
    settings = shown(running.whole.sheet(name))
    found = [
        UnitInstance(number, _rounded(unit.metrics.snapshot()), settings, agent)
        for number, unit in enumerate(
            running.units(name) if name in {**running.graph.components, **running.graph.providers} else [], 1
        )
    ]
    found += [UnitInstance(0, _rounded(part.units[name]), settings, agent) for part in elsewhere if name in part.units]
    return UnitInstances(name, found)


def check_unit(graph: Graph, name: str) -> None:
    """Refuse a name that no unit of a graph has. Raises UsageError: none has."""
    known = {**graph.components, **graph.providers}
    if name not in known:
        raise UsageError(f"no unit {name!r} runs here{nearest(name, known)}")


def _rounded(metrics: "dict[str, float] | Any") -> dict[str, float]:
    return {name: round(value, 3) for name, value in sorted(metrics.items())}


def check_values_of_form(graph: Graph, values: Mapping[str, str]) -> None:
    """Refuse settings that a form may not change. Those that do not exist are left to be refused as such. Raises UsageError:
    one names what a browser may not name; says how a person can change it."""
    for key in values:
        _refuse_named(properties_of(graph, key), key)


def check_wiring_of_form(graph: Graph, before: Wiring, then: Wiring) -> None:
    """Refuse a change of the graph that gives a unit a setting which a form may not give. Raises UsageError: as
    :func:`check_values_of_form`."""
    for table in ("components", "providers"):
        old: Mapping[str, Any] = getattr(before, table)
        for name, plan in getattr(then, table).items():
            is_same = name in old and old[name].use == plan.use
            known: Mapping[str, Any] = old[name].settings if is_same else {}
            given = [key for key, value in plan.settings.items() if key not in known or known[key] != value]
            if given:
                sheet = type(graph.sheet(name)) if is_same else _sheet_of(table, plan.use)
                for setting in given:
                    known_as = [one for one in properties(sheet) if setting in (one.name, one.was)]
                    _refuse_named(known_as, f"{name}.{setting}")


def _sheet_of(table: str, use: str) -> type[Sheet]:
    """The sheet of a unit of the catalog; one without settings where there is none of this name, which the planner refuses."""
    known = catalog()
    try:
        unit = known.component(use) if table == "components" else known.provider(use)
    except FlowError:
        return Sheet
    found: type[Sheet] = unit.sheet_type
    return found


def _refuse_named(found: Iterable[Property], key: str) -> None:
    for one in found:
        if one.names:
            raise UsageError(
                f"{key}: a browser may not name {one.names}; use the command line: gossamer set, or rewire"
            )
