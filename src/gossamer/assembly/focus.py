"""A wiring whose crawl keeps to a topic: the focus at the commit, and what scores pages and links.

Place in the flow: `--topic`, `--topic-page` and `--relevance` are compiled here.
"""

from typing import Any

import msgspec

from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import ProviderPlan, Wiring

#: What the new providers are called in the wiring.
FOCUS, RELEVANCE = "focus", "relevance"

#: Where the focus has a say beside others.
_BESIDE = (("watchers", "visits"), ("keepers", "visits"), ("task_gates", "schedule"))


def with_focus(wiring: Wiring, use: str, settings: dict[str, Any], focus: dict[str, Any]) -> Wiring:
    """A copy of a wiring that goes after relevant pages, the best first.

    Args:
        wiring: has one commit at least.
        use: the relevance, as the catalog names it.
        settings: of the relevance.
        focus: settings of the focus.

    Raises:
        WiringError: the wiring has no commit, or something bears a name that is needed here.
    """
    if not any(plan.use == "commit" for plan in wiring.components.values()):
        raise WiringError(f"{wiring.source}: no component uses 'commit', so that nothing can be judged")
    if taken := sorted({FOCUS, RELEVANCE} & wiring.providers.keys()):
        raise WiringError(f"{wiring.source}: {', '.join(taken)}: a focus needs this name; choose another one")
    components, ledger, replaced = dict(wiring.components), "ledger", set[str]()
    for name, plan in components.items():
        if plan.use == "commit":
            roles: dict[str, Any] = dict(plan.providers)
            ledger = roles["ledger"]
            for role, slot in _BESIDE:
                slots = dict(roles.get(role, {}))
                slots[slot] = [*slots.get(slot, ()), FOCUS]
                roles[role] = slots
            replaced.add(roles["prioritizer"])
            components[name] = msgspec.structs.replace(plan, providers={**roles, "prioritizer": FOCUS})
    used = {one for plan in components.values() for one in plan.providers.values() if isinstance(one, str)}
    providers = {
        **{name: plan for name, plan in wiring.providers.items() if name not in replaced - used},
        "traversal": ProviderPlan("priority"),
        RELEVANCE: ProviderPlan(use, settings=settings),
        FOCUS: ProviderPlan("focus", {"ledger": ledger, "relevance": RELEVANCE}, focus),
    }
    return msgspec.structs.replace(wiring, providers=providers, components=components)
