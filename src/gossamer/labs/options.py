"""Options of `gossamer crawl` for crawls whose next page is chosen by a topic, by importance, or by turns in a trie; their wirings.

Place in the flow: `--strategy opic`, `--strategy trie`, `--topic`, `--topic-page` and `--relevance` are compiled by :func:`wire`:
parts of OPIC between the stages and the ledger, the trie in front of the queues, the focus at the commit with the scores of pages
and links.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from gossamer.crawls.options import part_of
from gossamer.engine.errors import WiringError
from gossamer.engine.sheet import Sheet, setting
from gossamer.values.errors import UsageError

if TYPE_CHECKING:
    from gossamer.crawls.builder import Builder

# Settings of the units, too (:mod:`gossamer.labs.focus`).

Topic = Annotated[
    tuple[str, ...],
    setting("Look for pages with these words, and follow the most relevant links first; a text counts as its words."),
]

TopicPages = Annotated[
    tuple[str, ...],
    setting("Look for pages that are about the same topic as this file (HTML or text).", names="a file"),
]

IrrelevantHops = Annotated[
    int,
    setting(
        "If the crawl has a topic, follow links through at most this many irrelevant pages in a row; with 0, follow only links "
        "of relevant pages.",
        unit="pages",
        ge=0,
        le=200,
    ),
]


class FocusOptions(Sheet, frozen=True):
    """The words that a focused crawl looks for."""

    topic: Topic = ()
    topic_page: TopicPages = ()
    relevance: Annotated[
        str,
        setting(
            "Judge the relevance of pages with the installed part of this name, instead of by words.",
            names="code",
        ),
    ] = ""
    irrelevant_hops: Annotated[IrrelevantHops, setting(was="tunnel")] = 2


#: Names of the new providers in the wiring, and where the focus has a say beside others.
OPIC, QUEUES, TRIE, FOCUS, RELEVANCE = "opic", "opic-queues", "trie-queues", "focus", "relevance"
_BESIDE = (("watchers", "visits"), ("keepers", "visits"), ("task_gates", "schedule"))


def wire(builder: "Builder") -> None:
    """Let pages wait by importance or by turns, or keep to a topic, as the options say. Raises UsageError: the options do not fit
    together. Raises WiringError: the wiring lacks a unit, or something bears a name that is needed here."""
    wiring, strategy = builder.wiring, builder.options.strategy
    if strategy == "opic" and not any(plan.use == "opic-ledger" for plan in wiring.providers.values()):
        # Frontier and commit use the ledger by way of OPIC; agents put their divided ledger in front.
        frontier = wiring.components[wiring.only("frontier", "--strategy opic needs")].providers
        wiring.check_free("--strategy opic needs", providers=(OPIC, QUEUES))
        ledger, queues = frontier["ledger"], frontier["queues"]
        builder.add_provider(OPIC, "opic-ledger", {}, {"behind": ledger})
        builder.add_provider(QUEUES, "opic-queues", {}, {"behind": queues, "ledger": OPIC, "store": ledger})
        for name, plan in wiring.components.items():
            if plan.use in ("frontier", "commit"):
                builder.bind(name, ledger=OPIC, **({"queues": QUEUES} if "queues" in plan.providers else {}))
    if strategy == "trie" and TRIE not in wiring.providers:
        name = wiring.only("frontier", "--strategy trie needs")
        builder.add_provider(TRIE, "trie-queues", {}, {"behind": wiring.components[name].providers["queues"]})
        builder.bind(name, queues=TRIE)
    topic = part_of(builder.options, FocusOptions)
    if topic.topic or topic.topic_page or topic.relevance:
        _focus(builder, topic)
    elif topic.irrelevant_hops != FocusOptions().irrelevant_hops:
        raise UsageError("--irrelevant-hops needs a topic; also give --topic, --topic-page or --relevance")


def _focus(builder: "Builder", topic: FocusOptions) -> None:
    """Let the crawl go after pages that some relevance finds relevant, the best first; links are judged by their texts, too."""
    from gossamer.engine.wiring import ProviderPlan  # the help of a crawl does without

    wiring = builder.wiring
    commits = [name for name, plan in wiring.components.items() if plan.use == "commit"]
    if not commits:
        raise WiringError(f"{wiring.source}: no component uses 'commit', so that nothing can be judged")
    wiring.check_free("a focus needs", providers=(FOCUS, RELEVANCE))
    roles = wiring.components[commits[-1]].providers
    for name in commits:
        builder.bind(name, prioritizer=FOCUS)
        for role, slot in _BESIDE:
            builder.bind_also(name, role, slot, FOCUS)
    plans = builder.wiring.components.values()
    used = {one for plan in plans for one in plan.providers.values() if isinstance(one, str)}
    replaced = {wiring.components[name].providers["prioritizer"] for name in commits} - used
    pages = [str(Path(name).absolute()) for name in topic.topic_page]
    settings = {} if topic.relevance else {"words": list(topic.topic), "pages": pages}
    providers = {
        **{name: plan for name, plan in wiring.providers.items() if name not in replaced},
        "traversal": ProviderPlan("priority"),
        RELEVANCE: ProviderPlan(topic.relevance or "relevance-words", settings=settings),
        FOCUS: ProviderPlan(
            "focus", {"ledger": roles["ledger"], "relevance": RELEVANCE}, {"tunnel": topic.irrelevant_hops}
        ),
    }
    builder.wiring = msgspec.structs.replace(builder.wiring, providers=providers)
    builder.set_where_present("html", {"anchors": True})
