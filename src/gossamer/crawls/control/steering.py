"""Steering in the crawl's process: a request is carried out, and the change is noted.

Each change of the crawl is told to `logs/steering.jsonl`. Settings, blocked hosts and the graph must outlive the process, so they
are written into `crawl.toml` before the request is answered, and a resumed crawl goes by them. The declaration of each request
says what it does (:mod:`~gossamer.crawls.control.messages`); parts that several of them need stand here. Settings are checked as a
whole, and set in all units that they concern, or in none. :mod:`gossamer.crawls.live` says which unit an option sets.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from gossamer.crawls.compiling import with_fetchers
from gossamer.crawls.control.wire import Answered, ControlRequest
from gossamer.crawls.crawlers import copies_of, crawlers_of, leases_of
from gossamer.crawls.identity import HOST_SETTINGS, HostOptions
from gossamer.crawls.live import properties_of, refuse_identity, settings_of
from gossamer.crawls.options import all_options
from gossamer.engine.errors import SettingError
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode
from gossamer.engine.sheet import HIDDEN, build, change, nearest, shown
from gossamer.engine.wiring import Difference, Wiring
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.storage.logs import STEERING_LOG, add_entry
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable

if TYPE_CHECKING:
    from gossamer.crawls.control.picture import UnitInstances
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.crawls.live import Suspensions
    from gossamer.storage.ledger.ledger import RocksLedger
    from gossamer.values.task import SetAside

U = TypeVar("U")

# The requests that a running crawl takes: one of one agent has all of :class:`Steerable`, one of several has :class:`Settable`.


class Others(Protocol):
    """Lets agents join a crawl, and leave it."""

    def check_number(self, number: int) -> None:
        """Refuse a number of agents that the crawl cannot have, by a UsageError or a WiringError."""

    def resize(self, number: int) -> str:
        """Let it have so many, in some seconds; returns how, in words."""
        ...

    def stay(self, why: str) -> None:
        """Let no agent join but where a person says so, for this reason."""

    def why_alone(self) -> str:
        """Why no agent joins by itself; empty where one may."""
        ...


class Settable(Protocol):
    """The parts of a crawl that changes of settings need, whether it has one agent or several."""

    @property
    def graph(self) -> Graph: ...

    @property
    def others(self) -> Others | None: ...

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        """Change settings of one unit, in whichever process it runs, now and for every later run."""

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        """Change the graph, now and for every later run."""
        ...


class Stoppable(Protocol):
    """Any process of a crawl."""

    def stop(self) -> None: ...

    def abort(self) -> None: ...


class Steerable(Settable, Stoppable, Protocol):
    """The parts of a crawl that requests need; see :class:`~gossamer.crawls.work.CrawlAtWork`."""

    @property
    def directory(self) -> Path: ...

    @property
    def ledger(self) -> "RocksLedger": ...

    def providers(self, kind: type[U]) -> list[U]:
        """The providers of this class in the crawl's own process: a package's request reaches its own units so."""
        ...

    async def standing(self, *, units: bool) -> "CrawlStanding": ...

    async def instances(self, name: str) -> "UnitInstances": ...

    def pause(self) -> None: ...

    def go_on(self) -> None: ...

    @property
    def suspensions(self) -> "Suspensions": ...

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference: ...

    async def undo(self) -> Difference: ...


#: The unit that knows whom not to ask any more, and its setting.
BLOCKING = ("politeness", "blocked")


async def answer(crawl: Steerable, request: ControlRequest) -> Answered:
    """Do what is asked, and note what was changed. Raises UsageError: it is for one of several agents; GossamerError: it cannot
    be done, and nothing has changed; FlowError: likewise."""
    if getattr(request, "agent", ""):
        raise UsageError("this crawl has one agent; leave its name out")
    answered = await request.act(crawl)
    if request.steers:
        note_steering(crawl.directory, request.noted(crawl, answered))
    return answered


def note_steering(directory: Path, done: Mapping[str, Any]) -> None:
    """Write one line for each change; the owner of the file is the person who steered."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    add_entry(directory / STEERING_LOG, {"at": at, **done})


# -- hosts that are not asked any more


def blocked(graph: Graph) -> tuple[str, ...]:
    unit, setting = BLOCKING
    node = graph.providers.get(unit)
    return getattr(node.sheet, setting, ()) if node is not None else ()


async def block(crawl: Settable, names: list[str]) -> str:
    """Block hosts and domains; returns what was done, in words. Raises UsageError: one is no host or domain; SettingError: the
    crawl has no unit that blocks."""
    unit, setting = BLOCKING
    if unit not in crawl.graph.providers:
        raise SettingError(f"this crawl cannot block hosts: it has no unit {unit!r}")
    blocklist = Blocklist(blocked(crawl.graph))
    added = [blocklist.block(name) for name in names]
    await crawl.set(unit, {setting: list(blocklist.lines())})
    told = ", ".join(added[:10]) + (f" and {len(added) - 10} more" if len(added) > 10 else "")
    return f"blocked: {told}; {len(blocklist)} in all"


# -- traps


async def decide(crawl: Settable, aside: "Iterable[SetAside]", confirm: list[str], release: list[str]) -> str:
    """Take a person's word for what is a trap, and what is none; returns what was done, in words. `release`: those of families
    that are none; `all` for every one. Raises SettingError: the crawl does not look for traps; UsageError: there is no family
    of such an identifier."""
    from gossamer.crawls.trap_review import UNIT, decided

    if UNIT not in crawl.graph.providers:
        raise SettingError(f"this crawl does not look for traps: it has no unit {UNIT!r}")
    settings = msgspec.structs.asdict(crawl.graph.sheet(UNIT))
    await crawl.set(UNIT, decided(settings, aside, confirm, release))
    return "this holds from now on: URLs of confirmed families are refused, URLs of released families are fetched"


async def change_values(crawl: Settable, values: Mapping[str, str], *, by_form: bool) -> str:
    """Change settings, and the number of agents, which is no unit's; all of it, or nothing. Returns what was done, in words.
    Raises UsageError: there is no such unit or option, the crawl cannot have so many agents, or a browser asks (`by_form`), which
    may not change this; SettingError: a value does not do, or takes a restart; WiringError: the graph cannot be divided."""
    settings, agents = check_all_values(crawl, values, by_form=by_form)
    if agents is not None and "max_agents" not in settings and "max-agents" not in settings:
        settings["max_agents"] = str(agents)  # they stay as many as a person has said
    told = [await set_values(crawl, settings)] if settings else []
    if agents is not None and crawl.others is not None:
        told.append(f"agents = {agents} ({crawl.others.resize(agents)})")
    return ", ".join(told)


def check_all_values(crawl: Settable, values: Mapping[str, str], *, by_form: bool) -> tuple[dict[str, str], int | None]:
    """The values that :func:`change_values` would set, and its number of agents. Raises as it; changes nothing."""
    if by_form:
        from gossamer.crawls.control.picture import check_values_of_form  # few crawls are steered by a browser

        check_values_of_form(crawl.graph, values)
    settings, agents = dict(values), None
    if "agents" in settings and crawl.others is not None:
        agents = build(all_options(), {"agents": settings.pop("agents")}).agents or 1
        crawl.others.check_number(agents)
    check_values(crawl, settings)
    return settings, agents


async def set_values(crawl: Settable, values: Mapping[str, str]) -> str:
    """Change settings, all of them or none; returns them as they stand, in words. Raises UsageError: there is no such unit or
    option; SettingError: a value does not do, or takes a restart."""
    by_unit = check_values(crawl, values)
    if "concurrency" in values:
        # Give the fetch stage as many workers as there may be requests in flight; those that are too many idle.
        concurrency = build(all_options(), {"concurrency": values["concurrency"]}).concurrency
        wiring = crawl.graph.wiring
        if crawlers_of(wiring) and concurrency > leases_of(wiring):
            raise UsageError(
                f"concurrency: crawlers take {leases_of(wiring)} URLs at once; stop the crawl, and give it to gossamer resume"
            )
        fetch = wiring.components.get("fetch")
        if fetch is not None and fetch.workers < concurrency:
            await crawl.rewire(lambda wiring: with_fetchers(wiring, concurrency))
    for unit, settings in by_unit.items():
        await crawl.set(unit, settings)
    return ", ".join(
        f"{unit}.{setting} = {_shown(shown(crawl.graph.sheet(unit))[setting])}"
        for unit, settings in by_unit.items()
        for setting in settings
    )


def check_values(crawl: Settable, values: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The settings of these values: unit -> setting -> value. Raises as :func:`set_values`; changes nothing."""
    by_unit: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        for unit, settings in _settings(crawl, key, value).items():
            by_unit.setdefault(unit, {}).update(settings)
    for unit, settings in by_unit.items():
        refuse_identity(change(crawl.graph.sheet(unit), settings, running=True), settings, crawl.graph.providers)
    return by_unit


async def set_host(crawl: Settable, name: str, values: Mapping[str, str]) -> str:
    """Change what holds for one host, or for all below `*.DOMAIN`; all of it, or nothing. Returns what was done, in words.
    `values`: option -> value as a person wrote it; `none` takes away what was set. Raises UsageError: the name is none of a
    host, or the crawl has no unit that could obey; SettingError: there is no such option for a host, or the value does not do."""
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


def _settings(crawl: Settable, key: str, value: str) -> dict[str, dict[str, Any]]:
    """The settings behind `UNIT.SETTING`, or an option. Raises UsageError: the crawl has no such unit, or there is no such option,
    or it cannot change; SettingError: the value does not do."""
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
    return {
        key: HIDDEN if any(one.secret for one in properties_of(graph, key)) else value for key, value in values.items()
    }


def _shown(value: object) -> str:
    return "none" if value is None else msgspec.json.encode(value).decode()
