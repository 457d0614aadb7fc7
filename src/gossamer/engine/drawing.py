"""The graph for people and programs: text, DOT, Mermaid, JSON (TOML is the wiring itself). Reads nothing but the graph.

What a sheet calls secret is shown nowhere.
"""

from typing import Any

import msgspec

from gossamer.engine.graph import Graph, used_names
from gossamer.engine.sheet import hidden, shown
from gossamer.engine.wiring import Wiring


def first_sentence(unit: type) -> str:
    """The first sentence of a class' own docstring."""
    return (unit.__doc__ or "").strip().split("\n")[0]


def _told(unit: type) -> str:
    return f" - {first_sentence(unit)}" if first_sentence(unit) else ""


def to_json(graph: Graph) -> dict[str, Any]:
    """Plain data: units with their kinds, bindings and settings, connectors with their ends."""
    return {
        "components": {
            node.name: {
                "use": node.use,
                "kind": node.kind,
                "process": node.plan.process,
                "workers": node.plan.workers,
                "instances": node.plan.instances,
                "inputs": dict(node.inputs),
                "outputs": dict(node.outputs),
                "providers": sorted(set(used_names(node.roles))),
                "settings": shown(node.sheet),
                "doc": first_sentence(node.unit),
            }
            for node in graph.components.values()
        },
        "connectors": {
            node.name: {
                "carries": node.item_name,
                "address": node.plan.address,
                "capacity": node.plan.capacity,
                "from": list(node.producers),
                "to": list(node.consumers),
            }
            for node in graph.connectors.values()
        },
        "providers": {
            node.name: {
                "use": node.use,
                "providers": sorted(set(used_names(node.roles))),
                "settings": shown(node.sheet),
                "doc": first_sentence(node.unit),
            }
            for node in graph.providers.values()
        },
    }


def without_secrets(wiring: Wiring, graph: Graph) -> Wiring:
    """The wiring of a graph, to be shown: with secrets hidden, which are to be given again before it runs."""
    components = {
        name: msgspec.structs.replace(plan, settings=hidden(type(graph.components[name].sheet), plan.settings))
        for name, plan in wiring.components.items()
    }
    providers = {
        name: msgspec.structs.replace(plan, settings=hidden(type(graph.providers[name].sheet), plan.settings))
        for name, plan in wiring.providers.items()
    }
    return msgspec.structs.replace(wiring, components=components, providers=providers)


def to_text(graph: Graph) -> str:
    """One line for each arrow, in the order of the wiring, then the providers and their users."""
    lines = ["components and connectors"]
    for component in graph.components.values():
        plan = component.plan
        many = f" x{plan.instances}" if plan.instances > 1 else ""
        pool = f", {plan.workers} workers" if plan.workers > 1 else ""
        lines.append(f"  {component.name}{many} ({component.kind}{pool}){_told(component.unit)}")
        for role, name in component.outputs.items():
            connector = graph.connectors[name]
            takers = ", ".join(connector.consumers) or "nobody"
            lines.append(f"    {role} --[{name}: {connector.item_name}, {connector.plan.address}]--> {takers}")
    lines.append("providers")
    users: dict[str, list[str]] = {name: [] for name in graph.providers}
    for user, name in _uses(graph):
        users[name].append(user)
    for provider in graph.providers.values():
        used_by = ", ".join(users[provider.name]) or "nobody"
        lines.append(f"  {provider.name} ({provider.use}), used by {used_by}{_told(provider.unit)}")
    return "\n".join(lines)


def to_dot(graph: Graph) -> str:
    """Graphviz: components as ellipses, providers as cylinders, connectors as labelled arrows."""
    lines = ["digraph gossamer {", "  rankdir=LR;"]
    lines += [
        f'  "{node.name}" [shape=ellipse, label="{node.name}\\n({node.kind})"];' for node in graph.components.values()
    ]
    lines += [f'  "{name}" [shape=cylinder];' for name in graph.providers]
    lines += [f'  "{source}" -> "{target}" [label="{label}"];' for source, target, label in _arrows(graph)]
    lines += [f'  "{user}" -> "{used}" [style=dashed, arrowhead=open];' for user, used in _uses(graph)]
    return "\n".join([*lines, "}"])


def to_mermaid(graph: Graph) -> str:
    """Mermaid: what Markdown viewers draw."""
    lines = ["flowchart LR"]
    lines += [f"  {_id(name)}([{name}])" for name in graph.components]
    lines += [f"  {_id(name)}[({name})]" for name in graph.providers]
    lines += [f"  {_id(source)} -- {label} --> {_id(target)}" for source, target, label in _arrows(graph)]
    lines += [f"  {_id(user)} -.-> {_id(used)}" for user, used in _uses(graph)]
    return "\n".join(lines)


def _id(name: str) -> str:
    """A name that Mermaid takes as an identifier, also where it is one of its words (`end`); another for each name."""
    return "u_" + name.replace("_", "__").replace("-", "_0")


def _arrows(graph: Graph) -> list[tuple[str, str, str]]:
    return [
        (producer, consumer, node.name)
        for node in graph.connectors.values()
        for producer in node.producers
        for consumer in node.consumers
    ]


def _uses(graph: Graph) -> list[tuple[str, str]]:
    return [(name, used) for name, roles in graph.roles().items() for used in sorted(set(used_names(roles)))]
