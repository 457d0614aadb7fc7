"""Wirings of crawls whose next page is chosen by importance, by a topic, or by turns in a trie.

Place in the flow: `--strategy opic`, `--strategy trie`, `--topic`, `--topic-page` and `--relevance` are compiled here: parts
of OPIC between the stages and the ledger, the trie in front of the queues, the focus at the commit with the scores of pages and
links.
"""

from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.builder import Builder
from gossamer.crawls.options import part_of
from gossamer.engine.errors import WiringError
from gossamer.engine.wiring import ProviderPlan, Wiring
from gossamer.labs.options import FocusOptions
from gossamer.values.errors import UsageError


def wire(builder: Builder) -> None:
    """Let pages wait by importance, or keep to a topic, as the options say. The links of pages are then judged by their texts,
    too. Raises UsageError: the options do not fit together. Raises WiringError: the wiring lacks a unit."""
    if builder.options.strategy == "opic" and not any(
        plan.use == "opic-ledger" for plan in builder.wiring.providers.values()
    ):
        builder.wiring = with_opic(builder.wiring)
    if builder.options.strategy == "trie" and TRIE not in builder.wiring.providers:
        builder.wiring = with_trie(builder.wiring)
    topic = part_of(builder.options, FocusOptions)
    if not (topic.topic or topic.topic_page or topic.relevance):
        if topic.irrelevant_hops != FocusOptions().irrelevant_hops:
            raise UsageError("--irrelevant-hops needs a topic; also give --topic, --topic-page or --relevance")
        return
    words: dict[str, Any] = {
        "words": list(topic.topic),
        "pages": [str(Path(name).absolute()) for name in topic.topic_page],
    }
    settings = {} if topic.relevance else words
    use = topic.relevance or "relevance-words"
    builder.wiring = with_focus(builder.wiring, use, settings, {"tunnel": topic.irrelevant_hops})
    builder.set_where_present("html", {"anchors": True})


# `--strategy opic` is compiled here. Agents put their divided ledger in front.

#: Names of the new providers in the wiring.
LEDGER, QUEUES = "opic", "opic-queues"
TRIE = "trie-queues"


def with_trie(wiring: Wiring) -> Wiring:
    """A copy of a wiring in which tasks of a host take turns at every branch of its paths.
    Raises WiringError: the wiring has no frontier."""
    frontier = wiring.only("frontier", "--strategy trie needs")
    plan = wiring.components[frontier]
    components = {
        **wiring.components,
        frontier: msgspec.structs.replace(plan, providers={**plan.providers, "queues": TRIE}),
    }
    providers = {**wiring.providers, TRIE: ProviderPlan("trie-queues", {"behind": plan.providers["queues"]})}
    return msgspec.structs.replace(wiring, providers=providers, components=components)


def with_opic(wiring: Wiring) -> Wiring:
    """A copy of a wiring in which frontier and commit use the ledger by way of OPIC.
    Raises WiringError: the wiring has no frontier, or something bears a name that is needed here."""
    frontier = wiring.components[wiring.only("frontier", "--strategy opic needs")]
    wiring.check_free("--strategy opic needs", providers=(LEDGER, QUEUES))
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


# `--topic`, `--topic-page` and `--relevance` are compiled here.

#: Names of the new providers in the wiring.
FOCUS, RELEVANCE = "focus", "relevance"

#: Where the focus has a say beside others.
_BESIDE = (("watchers", "visits"), ("keepers", "visits"), ("task_gates", "schedule"))


def with_focus(wiring: Wiring, use: str, settings: dict[str, Any], focus: dict[str, Any]) -> Wiring:
    """A copy of a wiring that goes after pages that the relevance of this name finds relevant, the best first. Raises
    WiringError: the wiring has no commit, or something bears a name that is needed here."""
    if not any(plan.use == "commit" for plan in wiring.components.values()):
        raise WiringError(f"{wiring.source}: no component uses 'commit', so that nothing can be judged")
    wiring.check_free("a focus needs", providers=(FOCUS, RELEVANCE))
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
