"""Wirings that an older version of the program wrote into a crawl directory, so that its crawls go on.

Called where a crawl is resumed, never for a wiring of the user's own: that one is told what it lacks.
"""

from collections.abc import Collection, Iterator, Sequence
from types import MappingProxyType

import msgspec

from gossamer.flow.wiring import ComponentPlan, ProviderPlan, Wiring

#: Provider -> the roles that it has got since, each with the provider of the shipped wiring that fills it.
_ROLES = MappingProxyType(
    {
        "traps": {"ledger": "ledger", "template": "template"},
        "aliases": {"ledger": "ledger"},
        "template": {"ledger": "ledger"},
    }
)

#: Providers that others need since, and which ones; behind those they stand where these are watchers.
_ADDED = MappingProxyType({"template": "traps"})

#: Providers that are part of others since.
_GONE = frozenset({"trap-shapes"})

#: Settings that are gone, by the provider that had them.
_SETTINGS_GONE = MappingProxyType({"ledger": frozenset({"depths"})})

#: Component -> the roles that it has got since, which the frontier fills in the same way.
_ROLES_OF_THE_FRONTIER = MappingProxyType({"crawlers": ("politeness",)})

#: Components that had a limit of depth: the ledger alone has it since.
_LIMITED = frozenset({"url-seen", "commit", "frontier"})


def with_roles(wiring: Wiring) -> Wiring:
    """A copy in which the shipped units have the roles that they need today, as far as the wiring has who fills them."""
    gone = {name for name, plan in wiring.providers.items() if plan.use in _GONE}
    providers = {name: _without_gone(plan) for name, plan in wiring.providers.items() if name not in gone}
    for added, after in _ADDED.items():
        if after in providers and added not in providers:
            providers[added] = ProviderPlan(added)
    for name, plan in providers.items():
        missing = {
            role: filler
            for role, filler in _ROLES.get(plan.use, {}).items()
            if role not in plan.providers and filler in providers
        }
        if missing:
            providers[name] = msgspec.structs.replace(plan, providers={**plan.providers, **missing})
    limit = next((plan.settings["depth"] for plan in _with_limits(wiring)), None)
    if limit is not None:
        providers = {name: _with_depth(plan, limit) for name, plan in providers.items()}
    components = {
        name: _as_the_frontier(_with_linger(_with_keepers(_without_depth(_bound(plan, gone)))), wiring)
        for name, plan in wiring.components.items()
    }
    return msgspec.structs.replace(wiring, providers=providers, components=components)


def _without_gone(plan: ProviderPlan) -> ProviderPlan:
    """A provider without settings that it has no more."""
    gone = _SETTINGS_GONE.get(plan.use, frozenset())
    if gone.isdisjoint(plan.settings):
        return plan
    return msgspec.structs.replace(plan, settings={k: v for k, v in plan.settings.items() if k not in gone})


def _bound(plan: ComponentPlan, gone: Collection[str]) -> ComponentPlan:
    """A component without those that are gone, and with those that were added behind whom they stand."""
    roles = dict(plan.providers)
    for role, bound in plan.providers.items():
        if isinstance(bound, str):
            continue
        roles[role] = {key: _names(role, names, gone) for key, names in bound.items()}
    return plan if roles == plan.providers else msgspec.structs.replace(plan, providers=roles)


def _names(role: str, names: "str | Sequence[str]", gone: Collection[str]) -> "str | list[str]":
    if isinstance(names, str):
        return names
    found = [name for name in names if name not in gone]
    for added, after in _ADDED.items():
        if role == "watchers" and after in found and added not in found:
            found.insert(found.index(after) + 1, added)
    return found


def _with_keepers(plan: ComponentPlan) -> ComponentPlan:
    """The commit's row log is one of its keepers."""
    log = plan.providers.get("log")
    if plan.use != "commit" or not isinstance(log, str) or "keepers" in plan.providers:
        return plan
    roles = {role: bound for role, bound in plan.providers.items() if role != "log"}
    return msgspec.structs.replace(plan, providers={**roles, "keepers": {"visits": [log]}})


def _with_linger(plan: ComponentPlan) -> ComponentPlan:
    """A frontier that was to keep trying lingers for ever."""
    if plan.use != "frontier" or "keep_trying" not in plan.settings:
        return plan
    settings = {name: value for name, value in plan.settings.items() if name != "keep_trying"}
    if plan.settings["keep_trying"]:
        settings["linger"] = "forever"
    return msgspec.structs.replace(plan, settings=settings)


def _as_the_frontier(plan: ComponentPlan, wiring: Wiring) -> ComponentPlan:
    """A component that has roles since; the frontier's providers fill them."""
    new = _ROLES_OF_THE_FRONTIER.get(plan.use, ())
    filled = next((one.providers for one in wiring.components.values() if one.use == "frontier"), {})
    roles = {role: filled[role] for role in new if role in filled and role not in plan.providers}
    return msgspec.structs.replace(plan, providers={**plan.providers, **roles}) if roles else plan


def _without_depth(plan: ComponentPlan) -> ComponentPlan:
    """The ledger alone has a limit of depth."""
    if plan.use not in _LIMITED or "depth" not in plan.settings:
        return plan
    return msgspec.structs.replace(plan, settings={k: v for k, v in plan.settings.items() if k != "depth"})


def _with_limits(wiring: Wiring) -> Iterator[ComponentPlan]:
    """Components that say how deep the crawl goes."""
    return (plan for plan in wiring.components.values() if plan.use == "commit" and "depth" in plan.settings)


def _with_depth(plan: ProviderPlan, limit: object) -> ProviderPlan:
    """A ledger that has the limit of depth, unless it has one."""
    if plan.use != "ledger" or "depth" in plan.settings:
        return plan
    return msgspec.structs.replace(plan, settings={**plan.settings, "depth": limit})
