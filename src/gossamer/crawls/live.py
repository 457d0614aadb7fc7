"""Changes of a crawl at work, at once in every process and for every later run, or not at all.

Place in the flow: a crawl is steered (:mod:`~gossamer.crawls.control.steering`), and :class:`KeptChanges` carries the change
out: first in the running graph, then in child processes, last in the directory. An option comes to the settings that a crawl would
begin with (:mod:`~gossamer.crawls.compiling`), but for those of :data:`RULES`; one that cannot change says why where it is
declared (:mod:`gossamer.crawls.options`). Changes of the graph can be taken back, also in a later run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls import identity
from gossamer.crawls.builder import with_protocols
from gossamer.crawls.compiling import OPTIONAL, Settings, option_settings
from gossamer.crawls.directory import CrawlPlace
from gossamer.crawls.identity import token_of, user_agent
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.crawls.plan import CrawlPlan
from gossamer.crawls.processes import Fleet
from gossamer.engine.errors import FlowError, WiringError, refusing
from gossamer.engine.files import replace_file
from gossamer.engine.graph import ComponentNode, Graph, ProviderNode
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import Property, Sheet, build, nearest, properties, renamed
from gossamer.engine.wiring import MAIN_PROCESS, TABLES, ChangedEntry, Difference, Wiring
from gossamer.expressions.contract import GATES
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.limits import USUAL
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import UsageError

# Suspended units. Items for a suspended component wait in its connectors, and so do their senders once these are full. It is not
# kept: a crawl that goes on has no suspended units.

#: Seconds for what a component has in hand. It may be one that waits for another suspended one, so that it never ends.
PATIENCE = 10.0


class Suspensions:
    """The components of one process that take up nothing now."""

    def __init__(self, running: Callable[[], RunningGraph]) -> None:
        self._running = running
        self._suspended: dict[str, asyncio.Task[None]] = {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._suspended)

    async def suspend(self, name: str) -> bool:
        """Let a component take up nothing more. Returns, after some seconds at most, whether it has nothing in hand any more.
        Raises UsageError: there is no such component in this process."""
        running = self._running()
        _check(running.whole, name)
        if name not in self._suspended:
            self._suspended[name] = asyncio.create_task(running.suspend(name))
        done, _ = await asyncio.wait([self._suspended[name]], timeout=PATIENCE)
        return bool(done)

    def unsuspend(self, name: str) -> None:
        """Let a component go on, if it is suspended. Raises UsageError: there is no such component in this process."""
        _check(self._running().whole, name)
        if name in self._suspended:
            self._go_on(name)

    def end(self) -> None:
        for name in list(self._suspended):
            self._go_on(name)

    def _go_on(self, name: str) -> None:
        running = self._running()
        del self._suspended[name]
        if name in running.whole.components:  # the graph may have changed
            running.resume(name)


def _check(graph: Graph, name: str) -> None:
    if name in graph.providers:
        raise UsageError(f"{name} is a provider, which works for components; suspend one of these")
    if name not in graph.components:
        raise UsageError(f"no component {name!r} runs here{nearest(name, graph.components)}")
    process = graph.components[name].plan.process
    if process != MAIN_PROCESS:
        raise UsageError(
            f"{name} runs in process {process!r}; only components of the crawl's own process can be suspended"
        )


Units = Mapping[str, ComponentNode | ProviderNode]


def option_of(key: str) -> str:
    """The option that a person means by this key. Raises UsageError: there is none of that name."""
    known = [prop.name for prop in properties(all_options())]
    [option] = renamed({key.replace("-", "_"): None}, properties(all_options()))
    if option not in known:
        raise UsageError(f"there is no option {key!r}{nearest(option, known)}; or write UNIT.SETTING")
    return option


def properties_of(graph: Graph, key: str) -> list[Property]:
    """The property of the option or the setting `UNIT.SETTING` that a person means by a key; none where no unit has it. Raises
    UsageError: there is no such option."""
    unit, dot, setting = key.rpartition(".")
    if not dot:
        sheet: type[Sheet] = all_options()
        setting = option_of(key)
    elif unit in graph.components or unit in graph.providers:
        sheet = type(graph.sheet(unit))
    else:
        return []
    return [one for one in properties(sheet) if setting in (one.name, one.was)]


def settings_of(key: str, value: str, units: Units) -> Settings:
    """The settings that a new value of an option comes to in a running crawl. `key`: the option as a person wrote it, with `-`
    or `_`. Raises UsageError: there is no such option, or it cannot change; says why; SettingError: the value does not do."""
    option = option_of(key)
    [reason] = [prop.reason for prop in properties(all_options()) if prop.name == option]
    if reason:
        raise UsageError(f"option {key!r} cannot change while a crawl runs: {reason}")
    options = build(all_options(), {option: value})
    made = RULES[option](options, units) if option in RULES else option_settings(option, options)
    made = {unit: values for unit, values in made.items() if unit in units or unit not in OPTIONAL}
    for unit in made:
        if unit not in units:
            raise UsageError(f"option {key!r} sets unit {unit!r}, which this crawl does not have")
    return made


# -- options of which a running crawl asks more


def _retries(options: CrawlOptions, units: Units) -> Settings:
    """Where nothing is tried again, nothing is left that could be waited for without end."""
    found = option_settings("retries", options)
    frontier = units.get("frontier")
    if (
        not options.retries
        and isinstance(frontier, ComponentNode)
        and getattr(frontier.sheet, "linger", 0) == "forever"
    ):
        found["frontier"] = {"linger": USUAL}
    return found


def _until(options: CrawlOptions, units: Units) -> Settings:
    commits = [node.plan for node in units.values() if isinstance(node, ComponentNode) and node.plan.use == "commit"]
    if not any("goals" in plan.providers for plan in commits):
        raise UsageError("until: this crawl's wiring has no goals; stop it, and give --until to gossamer resume")
    return option_settings("until", options)


def _user_agent(options: CrawlOptions, units: Units) -> Settings:
    if not options.user_agent:
        raise UsageError("user-agent: give a product token, as Gossamer/1.0")
    return {"http": {"user_agent": options.user_agent}}


def _contact(options: CrawlOptions, units: Units) -> Settings:
    if not options.contact:
        raise UsageError("contact: give the URL of a page, or a mail address, as me@example.org")
    own = user_agent(CrawlOptions())
    if "http" in units and token_of(getattr(units["http"].sheet, "user_agent", own)) != token_of(own):
        raise UsageError("contact: this crawl has a user agent of its own, which says whom to write to; set user-agent")
    return {"http": {"user_agent": user_agent(options)}}


def refuse_identity(sheet: Sheet, changed: Collection[str], units: Units) -> None:
    """Refuse what a running crawl may not say of itself, whether an option or a setting of the unit says it. Raises UsageError:
    robots.txt was read for another product token, or a field that looks secret would go to every host.

    Args:
        sheet: of any unit, as it would be; only that of http is judged.
        changed: the settings that differ.
    """
    if not isinstance(sheet, HttpSheet):
        return
    known = getattr(units["robots"].sheet, "agent", "") if "robots" in units else ""
    if "user_agent" in changed and known and token_of(sheet.user_agent) != known:
        raise UsageError(
            f"user-agent: robots.txt was read for {known!r}, so its product token stays while the crawl runs; "
            "stop it, and give the other one to gossamer resume"
        )
    if "header" in changed and identity.plain(sheet.header) != sheet.header:
        raise UsageError(
            "header: a field that looks secret goes to the hosts of the seeds alone; "
            "stop the crawl, and give it to gossamer resume"
        )


#: Option -> its settings, where they depend on what the crawl has.
RULES: dict[str, Callable[[CrawlOptions, Units], Settings]] = {
    "retries": _retries,
    "filter": lambda options, _: {
        "expressions": dict.fromkeys(GATES, ()) | option_settings("filter", options)["expressions"]
    },
    "until": _until,
    "header": lambda options, _: {"http": {"header": list(options.header)}},
    "user_agent": _user_agent,
    "contact": _contact,
}


# Changes of the graph that can be taken back, kept for later runs. They are written before the wiring. An edit of `crawl.toml` in
# between may make a change unfit to be taken back: then it is left out, with all that came before it.

#: Where they stand inside a crawl directory. A plan may hold a password: the file is its owner's alone.
CHANGES = "state/rewired.json"

#: Changes that are kept, the last ones: some megabytes at most.
KEPT = 1_000


class _Entry(msgspec.Struct, frozen=True):
    table: str
    name: str
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")


def write_changes(directory: Path, changes: Sequence[Difference]) -> None:
    """Keep the changes, the first one first. Where there are none and never were, nothing is written. Raises OSError: they
    cannot be written; the old file stays."""
    path = directory / CHANGES
    if not changes and not path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    data = msgspec.json.encode([change.entries for change in changes[-KEPT:]])
    replace_file(path, data, sync=True, mode=0o600)


def read_changes(directory: Path, wiring: Wiring) -> list[Difference]:
    """The changes that led to this wiring and can be taken back one after the other, the first one first.

    A file that is no list of changes counts as none: nothing but the undo depends on it.
    """
    try:
        kept = msgspec.json.decode((directory / CHANGES).read_bytes(), type=list[list[_Entry]])
        changes = [Difference(tuple(map(_entry, entries))) for entries in kept]
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError):
        return []
    fitting: list[Difference] = []
    for change in reversed(changes):
        try:
            before = change.opposite.applied(wiring)
        except WiringError:
            if fitting:
                break
            continue  # a kill came between this change and the wiring, or a person has edited that one
        fitting.append(change)
        wiring = before
    return fitting[::-1]


def _entry(one: _Entry) -> ChangedEntry:
    kind: Any = TABLES[one.table] | None
    before, after = (msgspec.json.decode(side, type=kind) for side in (one.before, one.after))
    return ChangedEntry(one.table, one.name, before, after)


# Settings and graph.


class LiveChanges:
    """Changes of a graph while it runs. It stays so until the graph ends."""

    def __init__(self, running: RunningGraph, planned: Callable[[Wiring], Graph]) -> None:
        """`planned` makes the graph of a wiring."""
        self._running = running
        self._planned = planned

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        self._running.set(unit, settings)

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        return await self._running.apply(lambda wiring: with_protocols(change(wiring)), self._planned)

    def foreseen(self, change: Callable[[Wiring], Wiring]) -> Difference:
        return self._running.foreseen(lambda wiring: with_protocols(change(wiring)), self._planned)

    async def undo(self) -> Difference:
        return await self._running.undo(self._planned)


class KeptChanges(LiveChanges):
    """Changes of a crawl, in all of its processes and for every later run: a change that cannot be kept is taken back."""

    def __init__(self, plan: CrawlPlan, running: RunningGraph, fleet: Fleet, place: CrawlPlace) -> None:
        super().__init__(running, plan.planned)
        self._plan = plan
        self._fleet = fleet
        self._place = place

    async def set(self, unit: str, settings: Mapping[str, Any]) -> None:
        before = msgspec.to_builtins(self._running.whole.sheet(unit))
        self._running.set(unit, settings)
        new = msgspec.to_builtins(self._running.whole.sheet(unit))
        try:
            await self._tell_children(unit, {name: new[name] for name in settings})
            self._keep()
        except (FlowError, UsageError):
            old = {name: before[name] for name in settings}
            self._running.set(unit, old)
            await self._tell_children(unit, old)
            raise

    async def _tell_children(self, unit: str, settings: dict[str, Any]) -> None:
        graph = self._running.whole
        for process in graph.wiring.processes[1:]:
            part = graph.part(process)
            if unit in part.components or unit in part.providers:
                await self._fleet.give(process, unit, settings)

    async def rewire(self, change: Callable[[Wiring], Wiring]) -> Difference:
        done = await super().rewire(change)
        await self._keep_or(lambda: self._running.undo(self._planned))
        return done

    async def undo(self) -> Difference:
        last = self._running.history[-1:]
        done = await super().undo()
        await self._keep_or(lambda: self._running.apply(last[0].applied, self._planned))
        return done

    async def _keep_or(self, take_back: Callable[[], Awaitable[object]]) -> None:
        try:
            self._keep()
        except UsageError:
            await take_back()
            raise

    def _keep(self) -> None:
        """Write the wiring that runs by now: a resumed crawl goes by it."""
        graph, directory = self._running.whole, self._plan.directory
        with refusing(UsageError, f"{directory / CRAWL_FILE} cannot be written"):
            write_changes(directory, self._running.history)
            self._place.write(kept := self._plan.kept(graph), graph)
            self._fleet.keep(kept)
