"""A wiring whose pages wait by importance: the parts of OPIC between the stages and the ledger.

Place in the flow: `--strategy opic` is compiled here. Agents put their divided ledger in front.
"""

from typing import Any

import msgspec

from gossamer.flow.errors import WiringError
from gossamer.flow.wiring import ProviderPlan, Wiring

#: What the new providers are called in the wiring.
LEDGER, QUEUES = "opic", "opic-queues"


def with_opic(wiring: Wiring) -> Wiring:
    """A copy of a wiring in which frontier and commit use the ledger by way of OPIC.

    Raises:
        WiringError: the wiring has no frontier, or something bears a name that is needed here.
    """
    frontier = next((plan for plan in wiring.components.values() if plan.use == "frontier"), None)
    if frontier is None:
        raise WiringError(
            f"{wiring.source}: no component uses 'frontier', so that nothing can be ordered by importance"
        )
    if taken := sorted({LEDGER, QUEUES} & wiring.providers.keys()):
        raise WiringError(f"{wiring.source}: {', '.join(taken)}: the strategy needs this name; choose another one")
    ledger, queues = frontier.providers["ledger"], frontier.providers["queues"]
    providers = {
        LEDGER: ProviderPlan("opic-ledger", {"behind": ledger}),
        QUEUES: ProviderPlan("opic-queues", {"behind": queues, "ledger": LEDGER, "store": ledger}),
    }
    components = dict(wiring.components)
    for name, plan in components.items():
        if plan.use in ("frontier", "commit"):
            changed: dict[str, Any] = {**plan.providers, "ledger": LEDGER}
            if "queues" in changed:
                changed["queues"] = QUEUES
            components[name] = msgspec.structs.replace(plan, providers=changed)
    return msgspec.structs.replace(wiring, providers={**wiring.providers, **providers}, components=components)
