"""Settings of a running crawl, as people change them: checked as a whole, and set in all units that they concern, or in none.

Place in the flow: the requests that change settings (:mod:`~gossamer.crawls.control.messages`) act by this, in a crawl of one
agent and of several. Which unit an option sets is said by :mod:`gossamer.crawls.live`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gossamer.crawls.compiling import with_fetchers
from gossamer.crawls.control.steerable import Settable
from gossamer.crawls.crawlers import copies_of, crawlers_of, leases_of
from gossamer.crawls.identity import HOST_SETTINGS, HostOptions
from gossamer.crawls.live import option_of, settings_of
from gossamer.crawls.options import all_options
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode
from gossamer.engine.sheet import HIDDEN, build, change, nearest, properties, shown
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable


async def change_values(crawl: Settable, values: Mapping[str, str]) -> str:
    """Change settings, and the number of agents, which is no unit's; all of it, or nothing. Returns what was done, in words.

    Raises:
        UsageError: there is no such unit or option, or the crawl cannot have so many agents.
        SettingError: a value does not do, or takes a restart.
        WiringError: the graph cannot be divided.
    """
    settings, agents = check_all_values(crawl, values)
    if agents is not None and "max_agents" not in settings and "max-agents" not in settings:
        settings["max_agents"] = str(agents)  # they stay as many as a person has said
    told = [await set_values(crawl, settings)] if settings else []
    if agents is not None and crawl.others is not None:
        crawl.others.resize(agents)
        told.append(f"agents = {agents} (all agents rest for some seconds while domains change hands)")
    return ", ".join(told)


def check_all_values(crawl: Settable, values: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """What :func:`change_values` would set, and the number of agents that it would ask for. Raises as it; changes nothing."""
    settings, agents = dict(values), None
    if "agents" in settings and crawl.others is not None:
        agents = build(all_options(), {"agents": settings.pop("agents")}).agents or 1
        crawl.others.check_number(agents)
    check_values(crawl, settings)
    return settings, agents


async def set_values(crawl: Settable, values: Mapping[str, str]) -> str:
    """Change settings, all of them or none; returns them as they stand, in words.

    Raises:
        UsageError: there is no such unit or option.
        SettingError: a value does not do, or takes a restart.
    """
    by_unit = check_values(crawl, values)
    if "concurrency" in values:
        await _enough_workers(crawl, build(all_options(), {"concurrency": values["concurrency"]}).concurrency)
    for unit, settings in by_unit.items():
        await crawl.set(unit, settings)
    return ", ".join(
        f"{unit}.{setting} = {_shown(shown(crawl.graph.sheet(unit))[setting])}"
        for unit, settings in by_unit.items()
        for setting in settings
    )


def check_values(crawl: Settable, values: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What these values set: unit -> setting -> value. Raises as :func:`set_values`; changes nothing."""
    by_unit: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        for unit, settings in _settings(crawl, key, value).items():
            by_unit.setdefault(unit, {}).update(settings)
    for unit, settings in by_unit.items():
        change(crawl.graph.sheet(unit), settings, running=True)
    return by_unit


async def set_host(crawl: Settable, name: str, values: Mapping[str, str]) -> str:
    """Change what holds for one host, or for all below `*.DOMAIN`; all of it, or nothing. Returns what was done, in words.

    Args:
        crawl: the crawl.
        name: the host.
        values: option -> value as a person wrote it; `none` takes away what was set.

    Raises:
        UsageError: the name is none of a host, or the crawl has no unit that could obey.
        SettingError: there is no such option for a host, or the value does not do.
    """
    HostTable({name: True})
    given = build(HostOptions, {key.replace("-", "_"): value for key, value in values.items()})
    by_unit: dict[str, dict[str, Any]] = {}
    for key in values:
        option = key.replace("-", "_")
        unit, setting = HOST_SETTINGS[option]
        if unit not in crawl.graph.components and unit not in crawl.graph.providers:
            raise UsageError(f"{key!r} sets unit {unit!r}, which this crawl does not have")
        table = dict(getattr(crawl.graph.sheet(unit), setting))
        value = getattr(given, option)
        table.pop(name, None)
        if value is not None:
            table[name] = msgspec.to_builtins(value)
        by_unit.setdefault(unit, {})[setting] = table
    for unit, settings in by_unit.items():
        change(crawl.graph.sheet(unit), settings, running=True)
    for unit, settings in by_unit.items():
        await crawl.set(unit, settings)
    return f"{name}: " + ", ".join(f"{key} = {_shown(getattr(given, key.replace('-', '_')))}" for key in values)


async def _enough_workers(crawl: Settable, concurrency: int) -> None:
    """Give the fetch stage as many workers as there may be requests in flight; those that are too many idle."""
    wiring = crawl.graph.wiring
    if crawlers_of(wiring) and concurrency > leases_of(wiring):
        raise UsageError(
            f"concurrency: crawlers take {leases_of(wiring)} URLs at once; stop the crawl, and give it to gossamer resume"
        )
    fetch = wiring.components.get("fetch")
    if fetch is not None and fetch.workers < concurrency:
        await crawl.rewire(lambda wiring: with_fetchers(wiring, concurrency))


def _settings(crawl: Settable, key: str, value: str) -> dict[str, dict[str, Any]]:
    """What `UNIT.SETTING`, or an option, sets.

    Raises:
        UsageError: the crawl has no such unit, or there is no such option, or it cannot change.
        SettingError: the value does not do.
    """
    nodes: dict[str, ComponentNode | ProviderNode] = {**crawl.graph.components, **crawl.graph.providers}
    copies = copies_of(nodes)
    nodes = {**{name: nodes[names[0]] for name, names in copies.items()}, **nodes}
    unit, dot, setting = key.rpartition(".")
    if not dot:
        made = settings_of(key, value, nodes)
    elif unit not in nodes:
        raise UsageError(f"no unit {unit!r} runs here{nearest(unit, nodes)}")
    else:
        made = {unit: {setting: value}}
    # A unit that each crawler has one of is named without the crawler, and all of them are set.
    return {
        one: values for name, values in made.items() for one in (copies.get(name, ()) if name in copies else [name])
    }


def without_secrets(graph: Graph, values: Mapping[str, str]) -> dict[str, str]:
    return {key: HIDDEN if _is_secret(graph, key) else value for key, value in values.items()}


def _is_secret(graph: Graph, key: str) -> bool:
    unit, dot, setting = key.rpartition(".")
    if not dot:
        return any(prop.secret and prop.name == option_of(key) for prop in properties(all_options()))
    if unit not in {**graph.components, **graph.providers}:
        return False
    return any(prop.secret and prop.name == setting for prop in properties(type(graph.sheet(unit))))


def _shown(value: object) -> str:
    return "none" if value is None else msgspec.json.encode(value).decode()
