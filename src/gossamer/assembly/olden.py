"""Wirings that an older version of the program wrote into a crawl directory, so that its crawls go on.

Called where a crawl is resumed, never for a wiring of the user's own: that one is told what it lacks.
"""

from types import MappingProxyType

import msgspec

from gossamer.flow.wiring import ComponentPlan, Wiring

#: Provider -> the role that it has got since, and of which provider of the shipped wiring: what is learnt is kept in the ledger.
_ROLES = MappingProxyType({"traps": ("ledger", "ledger"), "aliases": ("ledger", "ledger")})


def with_roles(wiring: Wiring) -> Wiring:
    """A copy in which the shipped units have the roles that they need today, as far as the wiring has who fills them."""
    providers = dict(wiring.providers)
    for name, plan in wiring.providers.items():
        role, filler = _ROLES.get(plan.use, ("", ""))
        if role and role not in plan.providers and filler in providers:
            providers[name] = msgspec.structs.replace(plan, providers={**plan.providers, role: filler})
    components = {name: _with_keepers(_without_depth(plan)) for name, plan in wiring.components.items()}
    return msgspec.structs.replace(wiring, providers=providers, components=components)


def _with_keepers(plan: ComponentPlan) -> ComponentPlan:
    """The commit's row log is one of its keepers."""
    log = plan.providers.get("log")
    if plan.use != "commit" or not isinstance(log, str) or "keepers" in plan.providers:
        return plan
    roles = {role: bound for role, bound in plan.providers.items() if role != "log"}
    return msgspec.structs.replace(plan, providers={**roles, "keepers": {"visits": [log]}})


def _without_depth(plan: ComponentPlan) -> ComponentPlan:
    """Url-seen has no limit of depth: the commit alone leaves out what is too deep."""
    if plan.use != "url-seen" or "depth" not in plan.settings:
        return plan
    return msgspec.structs.replace(plan, settings={k: v for k, v in plan.settings.items() if k != "depth"})
