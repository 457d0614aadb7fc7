"""The graph as a value that says everything of itself: units with every setting and its bounds, connectors with their ends.

Place in the flow: the message :class:`~gossamer.crawls.control.messages.ReadGraph` makes it; at rest, the dashboard does.
Only the graph is read, so that a unit of an unknown package shows fully. What is secret is hidden.
"""

from typing import Any

import msgspec

from gossamer.engine.graph import ComponentNode, Graph, ProviderNode, Roles, first_sentence, used_names
from gossamer.engine.sheet import properties, shown


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
    """What of its machine a value can name, as `a file`: no browser may give one then."""


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
    """A connector."""

    name: str
    carries: str
    """The type of its items."""
    address: str
    capacity: int
    producers: list[str]
    consumers: list[str]


class GraphPicture(msgspec.Struct, frozen=True):
    """The whole graph."""

    units: list[PictureUnit]
    """Components first."""
    connectors: list[PictureConnector]
    agents: list[str] = []
    """The agents of a crawl that has several: each runs the whole graph."""


def graph_picture(graph: Graph, agents: tuple[str, ...] = ()) -> GraphPicture:
    """Everything that the graph says of itself."""
    return GraphPicture(
        units=[*map(_component, graph.components.values()), *map(_provider, graph.providers.values())],
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


def _component(node: ComponentNode) -> PictureUnit:
    plan = node.plan
    return PictureUnit(
        name=node.name,
        use=node.use,
        kind=node.kind,
        doc=first_sentence(node.unit),
        settings=_settings(node),
        providers=_used(node.roles),
        process=plan.process,
        workers=plan.workers,
        instances=plan.instances,
        inputs=dict(node.inputs),
        outputs=dict(node.outputs),
        on_error=node.on_error,
        roles=msgspec.to_builtins(node.roles),
    )


def _provider(node: ProviderNode) -> PictureUnit:
    return PictureUnit(
        name=node.name,
        use=node.use,
        kind="provider",
        doc=first_sentence(node.unit),
        settings=_settings(node),
        providers=_used(node.roles),
        roles=msgspec.to_builtins(node.roles),
    )


def _used(roles: Roles) -> list[str]:
    return sorted(set(used_names(roles)))


def _settings(node: ComponentNode | ProviderNode) -> list[PictureSetting]:
    values = shown(node.sheet)
    return [
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
    ]
