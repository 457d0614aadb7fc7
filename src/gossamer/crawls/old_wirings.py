"""Wirings that an older version of the program wrote into a crawl directory, so that its crawls go on.

Place in the flow: :mod:`directory` calls this where a crawl is resumed or asked at rest, never for a wiring of the user's own: that
one is told what it lacks. Tables say what is gone, and the wiring that this version compiles shows how everything else is bound
(decision 110).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from gossamer.crawls import catalog
from gossamer.crawls.compiling import compile_wiring, provider_names
from gossamer.crawls.options import all_options
from gossamer.engine import ends
from gossamer.engine.sheet import build
from gossamer.engine.wiring import ComponentPlan, ProviderPlan, Wiring
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.values.errors import UsageError

P = TypeVar("P", ComponentPlan, ProviderPlan)

#: Name of a unit's class that is gone -> the class that does its work, with the names that the settings worth keeping have there.
_GONE: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "trap-shapes": ("traps", {}),
        "interval-rules": (
            "revisits",
            {"rules": "intervals", "min_by_host": "min_by_host", "max_by_host": "max_by_host"},
        ),
    }
)

#: Settings that are gone, by the class that had them.
_SETTINGS_GONE = MappingProxyType(
    {
        "ledger": frozenset({"depths"}),
        "url-seen": frozenset({"depth"}),
        "commit": frozenset({"depth"}),
        "frontier": frozenset({"depth", "keep_trying"}),
        "mass-communicator": frozenset({"disk_wait"}),
        "mass-mail": frozenset({"master"}),
    }
)

#: Roles of the commit that one provider had -> the role whose providers by key have its place, under the key `visits`.
_ROLES_GONE = MappingProxyType({"log": "keepers", "traps": "watchers"})

#: Providers that watch visits directly behind another one, if that one watches.
_WATCHING_BEHIND = MappingProxyType({"template": "traps"})


def completed(wiring: Wiring) -> Wiring:
    """A copy that this version runs: without names that are gone, and with every role that a shipped unit needs today."""
    return _with_roles(_with_watchers(_without_gone(_with_heirs(wiring))))


# -- what is gone


def _with_heirs(wiring: Wiring) -> Wiring:
    """Each setting that another unit has since stands there, unless that one has its own."""
    for use, settings in _moved(wiring):
        for table in ("providers", "components"):
            plans = getattr(wiring, table)
            heirs = {
                name: msgspec.structs.replace(plan, settings={**settings, **plan.settings})
                for name, plan in plans.items()
                if plan.use == use
            }
            wiring = msgspec.structs.replace(wiring, **{table: {**plans, **heirs}})
    return wiring


def _moved(wiring: Wiring) -> Iterator[tuple[str, dict[str, Any]]]:
    """Classes, with settings that they get from older ones."""
    for plan in wiring.providers.values():
        if plan.use in _GONE:
            heir, names = _GONE[plan.use]
            yield heir, {names[name]: value for name, value in plan.settings.items() if name in names}
    for unit in wiring.components.values():
        if unit.use == "commit" and "depth" in unit.settings:
            yield "ledger", {"depth": unit.settings["depth"]}
        if unit.use == "frontier" and unit.settings.get("keep_trying"):
            yield "frontier", {"linger": "forever"}


def _without_gone(wiring: Wiring) -> Wiring:
    """No unit, role or setting is left that this version does not know."""
    gone = {name for name, plan in wiring.providers.items() if plan.use in _GONE}
    providers = {name: _known(plan, gone) for name, plan in wiring.providers.items() if name not in gone}
    components = {name: _known(plan, gone) for name, plan in wiring.components.items()}
    for name, plan in components.items():
        if plan.use == "commit":
            roles = {role: bound for role, bound in plan.providers.items() if role not in _ROLES_GONE}
            moved = {
                new: {"visits": [plan.providers[old]]} for old, new in _ROLES_GONE.items() if old in plan.providers
            }
            components[name] = msgspec.structs.replace(plan, providers={**moved, **roles})
    return msgspec.structs.replace(wiring, providers=providers, components=components)


def _known(plan: P, gone: set[str]) -> P:
    settings = {k: v for k, v in plan.settings.items() if k not in _SETTINGS_GONE.get(plan.use, ())}
    if plan.use == "politeness" and "blocked" in settings:
        settings["blocked"] = [name for name in settings["blocked"] if _closes(name)]
    roles: dict[str, Any] = {}
    for role, bound in plan.providers.items():
        if not isinstance(bound, str):
            roles[role] = {key: _without(names, gone) for key, names in bound.items()}
        elif bound not in gone:
            roles[role] = bound
    return msgspec.structs.replace(plan, settings=settings, providers=roles)


def _closes(name: str) -> bool:
    """Whether a host can have this name; people could block others too, which closed nothing."""
    try:
        return bool(Blocklist([name]))
    except UsageError:
        return False


def _without(names: str | list[str], gone: set[str]) -> str | list[str]:
    left = [name for name in _listed(names) if name not in gone]
    return names if left == _listed(names) else left


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


# -- what was added


def _with_watchers(wiring: Wiring) -> Wiring:
    """Providers that have to see visits since stand behind those that they stand behind today."""
    components = dict(wiring.components)
    for name, plan in wiring.components.items():
        watchers = plan.providers.get("watchers", {})
        found = {key: _listed(names) for key, names in watchers.items()} if isinstance(watchers, Mapping) else {}
        for added, after in _WATCHING_BEHIND.items():
            for names in found.values():
                if after in names and added not in names:
                    names.insert(names.index(after) + 1, added)
                    components[name] = msgspec.structs.replace(plan, providers={**plan.providers, "watchers": found})
    return msgspec.structs.replace(wiring, components=components)


def _with_roles(wiring: Wiring) -> Wiring:
    """Every role that a shipped unit cannot do without is bound as this version binds it, or else as the frontier does."""
    today = _today()
    frontier = next((plan.providers for plan in wiring.components.values() if plan.use == "frontier"), {})
    added = {*_WATCHING_BEHIND} & provider_names(wiring.components.values())
    while True:
        new = {name: today.providers[name] for name in added & today.providers.keys() - wiring.providers.keys()}
        wiring = msgspec.structs.replace(wiring, providers={**wiring.providers, **new})
        changed: dict[str, dict[str, ComponentPlan | ProviderPlan]] = {"providers": {}, "components": {}}
        for table, units in changed.items():
            for name, plan in getattr(wiring, table).items():
                pattern = next(
                    (one.providers for one in getattr(today, table).values() if one.use == plan.use), frontier
                )
                fillers = {**frontier, **pattern}
                missing = _needed(table, plan.use) - plan.providers.keys()
                roles = {role: fillers[role] for role in missing & fillers.keys()}
                if roles:
                    units[name] = msgspec.structs.replace(plan, providers={**plan.providers, **roles})
        if not (new or any(changed.values())):
            return wiring
        added = provider_names(plan for units in changed.values() for plan in units.values())
        wiring = msgspec.structs.replace(
            wiring, **{table: {**getattr(wiring, table), **units} for table, units in changed.items()}
        )


@lru_cache(maxsize=1)
def _today() -> Wiring:
    """The wiring that this version compiles, with what options add whose units an older version wrote differently."""
    return compile_wiring([], build(all_options(), {"recrawl": "adaptive"}))


@lru_cache(maxsize=256)
def _needed(table: str, use: str) -> frozenset[str]:
    """The roles that a shipped unit cannot do without; none of a unit that does not ship."""
    if use not in catalog.shipped_names(table):
        return frozenset()
    unit = catalog.catalog().provider(use) if table == "providers" else catalog.catalog().component(use)
    declared = ends.declared(unit)
    return frozenset(role for role in (*declared.uses, *declared.uses_many) if not hasattr(unit, role))
